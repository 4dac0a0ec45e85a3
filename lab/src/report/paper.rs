//! Look-up of the paper's figures.

use std::collections::BTreeMap;

use crate::experiment::{Experiment, PaperValue};
use crate::rows::Row;

/// The paper's figure for a row's setting, if the experiment has one.
pub(super) fn paper_value(experiment: &Experiment, row: &Row, quantity: &str) -> Option<f64> {
    let fits = |value: &&PaperValue| {
        value.candidate == row.candidate
            && value.quantity == quantity
            && !value.relative
            && parameters(value).iter().all(|(name, value)| row.parameters.get(name) == Some(value))
    };
    experiment.paper_values.iter().find(fits).map(|value| value.value)
}

pub(super) fn parameters(value: &PaperValue) -> BTreeMap<String, String> {
    value.at.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

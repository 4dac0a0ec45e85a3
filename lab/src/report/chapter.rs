//! The parts of a report.

use crate::experiment::{Experiment, Paper};
use crate::judge::Judgement;
use crate::prediction::Point;
use crate::rows::Row;

/// The part of the report about one experiment.
pub(super) struct Section {
    pub(super) experiment: Experiment,
    pub(super) rows: Vec<Row>,
    pub(super) judgements: Vec<Judgement>,
    pub(super) predicted: Vec<Row>,
    pub(super) points: Vec<Point>,
    /// The figure; `None` without a value to draw.
    pub(super) svg: Option<String>,
}

/// A paper and its sections.
pub(super) type Chapter = (Paper, Vec<Section>);

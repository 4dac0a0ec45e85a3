//! JSON output of the NDN measurements.

use std::process::ExitCode;

use ringtap_lab::exclusion::TICK;
use serde_json::{Value, json};

use ringtap_terminal::console;

/// Prints the trials as one JSON object.
pub(super) fn print_json(experiment: &str, trials: &[Value]) -> anyhow::Result<ExitCode> {
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "experiment": experiment,
        "unit": TICK,
        "trials": trials,
    });
    console::print(&(serde_json::to_string_pretty(&report)? + "\n")).map(|()| ExitCode::SUCCESS)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

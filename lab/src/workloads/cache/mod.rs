//! The workload `cache-misses`: cache misses of a ring (the paper's evaluation 4).
//!
//! `by=hardware` counts cache misses of the real rings with the processor's counters. Many virtual
//! machines have none; the trial is then not possible. `by=simulation` runs the paper's pseudocode
//! (figures 3 to 5) on two simulated cores (`rings`, `coherence`). Results of the two are never
//! mixed.

mod coherence;
mod hardware;
mod rings;

use serde_json::{Value, json};

use super::Arguments;
use crate::LabError;

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let kind = arguments.text("kind")?;
    let by = arguments.text("by")?;
    let capacity = arguments.count("capacity", 1 << 24)? as usize;
    let batch = arguments.count("batch", 1 << 24)? as usize;
    let items = arguments.count("items", 1 << 40)?;
    let seed = arguments.optional("seed")?.unwrap_or(1);
    let cores = arguments.cores()?;
    let misses = match by.as_str() {
        "hardware" => hardware::misses(&kind, capacity, batch, items, &cores)?,
        "simulation" => rings::misses(&kind, capacity, batch, items, seed)?,
        _ => {
            return Err(LabError::Trial(format!("invalid by={by}: use hardware or simulation")));
        }
    };
    Ok(json!({
        "workload": "cache-misses",
        "kind": kind,
        "by": by,
        "capacity": capacity,
        "batch": batch,
        "items": items,
        "misses": misses,
        "misses_per_item": misses as f64 / items as f64,
    }))
}

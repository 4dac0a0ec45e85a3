//! The workload `memory`: bytes per second that one core reads, an input of the model in
//! `model.rs`.

use serde_json::{Value, json};

use super::Arguments;
use super::arguments::bind;
use crate::LabError;
use ringtap_base::Clock;

/// Passes over the memory. The fastest counts: disturbances only make a pass slower.
const PASSES: usize = 5;

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let bytes = arguments.count("bytes", 1 << 34)?;
    bind(&arguments.cores()?, 0);
    // The memory is written so that its pages are allocated.
    let words: Vec<u64> = (0..bytes / 8).collect();
    let mut best = f64::INFINITY;
    let mut sum = 0u64;
    for _ in 0..PASSES {
        let watch = Clock::start();
        // Keeps the compiler from reading only once or not at all.
        let words = std::hint::black_box(words.as_slice());
        sum = std::hint::black_box(words.iter().fold(0, |sum: u64, &word| sum.wrapping_add(word)));
        best = best.min(watch.seconds());
    }
    let n = words.len() as u64;
    if sum != (n.wrapping_mul(n.saturating_sub(1))) / 2 {
        return Err(LabError::Trial("the sum of the words read is wrong".into()));
    }
    Ok(json!({
        "workload": "memory",
        "bytes": bytes,
        "seconds": best,
        "bytes_per_second": bytes as f64 / best.max(1e-9),
    }))
}

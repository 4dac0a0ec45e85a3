//! How fast one core reads memory: the last bound of the model in `model.rs`.

use serde_json::{Value, json};

use super::Arguments;
use super::arguments::bind;
use crate::LabError;
use ringtap_base::Clock;

/// Passes over the memory; the fastest counts, for nothing makes memory faster than it is.
const PASSES: usize = 5;

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let bytes = arguments.count("bytes", 1 << 34)?;
    bind(&arguments.cores()?, 0);
    // Written, so that it is really there.
    let words: Vec<u64> = (0..bytes / 8).collect();
    let mut best = f64::INFINITY;
    let mut sum = 0u64;
    for _ in 0..PASSES {
        let watch = Clock::start();
        // Without these the compiler would read once, or not at all.
        let words = std::hint::black_box(words.as_slice());
        sum = std::hint::black_box(words.iter().fold(0, |sum: u64, &word| sum.wrapping_add(word)));
        best = best.min(watch.seconds());
    }
    let n = words.len() as u64;
    if sum != (n.wrapping_mul(n.saturating_sub(1))) / 2 {
        return Err(LabError::Trial("the memory does not hold what was written".into()));
    }
    Ok(json!({
        "workload": "memory",
        "bytes": bytes,
        "seconds": best,
        "bytes_per_second": bytes as f64 / best.max(1e-9),
    }))
}

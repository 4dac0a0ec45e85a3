//! Counting without sharing: single-writer counters, distributions of times, and the ledger that must add up.
//!
//! Invariants: one writer per counter, so no read-modify-write; readers may see a value a moment
//! old, never a torn one. Nothing here locks or allocates after start.
#![forbid(unsafe_code)]

mod counter;
mod latency;
mod ledger;
mod usage;

pub use counter::Counter;
pub use latency::Latency;
pub use ledger::{Ledger, Stage};
pub use usage::Usage;

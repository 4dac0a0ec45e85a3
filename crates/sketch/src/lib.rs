//! Sketches: counters of weights by key that need less memory than the keys, with bounds for each answer.
//!
//! The three structures of X. Wu, P. Li, Y. Ran, Y. Luo, "Network Measurement for 100 Gbps Links Using Multicore
//! Processors" (Count-Min, the reversible sketch, the simple hash table), and better ones for a monitor (conservative
//! update, Misra–Gries, SpaceSaving, MV-Sketch, the exact table), with one interface, [`Sketch`]. docs/SKETCHES.md
//! describes when to use which, and their speed.
//!
//! ```text
//!  worker 0  keys ─▶ update_burst ─▶ sketch ─┐  at the end of an interval
//!  worker 1  keys ─▶ update_burst ─▶ sketch ─┼─▶ merge ─▶ estimate, heavy, to_bytes
//!  worker 2  keys ─▶ update_burst ─▶ sketch ─┘
//! ```
//!
//! ```
//! use ringtap_sketch::{HeavyKeys, MisraGries, Sketch};
//!
//! let mut sketch = MisraGries::<[u8; 4]>::new(768, 42)?;
//! sketch.update(&[192, 0, 2, 1], 1500);
//! sketch.update_burst(&[[192, 0, 2, 1], [192, 0, 2, 7]]);
//! let heavy = sketch.heavy(1000);
//! assert_eq!((heavy[0].key, heavy[0].estimate.value), ([192, 0, 2, 1], 1501));
//! assert!(heavy[0].estimate.is_exact());
//! # Ok::<(), ringtap_sketch::InvalidSize>(())
//! ```
//!
//! Invariants: an estimate is always within its bounds. No weight is lost silently: weight that a structure cannot
//! store is counted. Invalid bytes are an error. This crate does not depend on packets, threads or clocks.
#![forbid(unsafe_code)]

mod apache;
mod buckets;
mod candidates;
mod conservative;
mod count_min;
#[cfg(feature = "distinct")]
mod distinct;
mod exact;
mod face;
mod grid;
mod hash;
mod hash_table;
mod hierarchy;
mod image;
mod key;
mod misra_gries;
mod mv;
mod reversible;
mod shared;
mod space_saving;
mod table;

pub use apache::{ApacheError, FrequentItems};
pub use buckets::{bucket_of, middle_of, quantiles};
pub use candidates::CandidateCountMin;
pub use conservative::ConservativeCountMin;
pub use count_min::CountMin;
#[cfg(feature = "distinct")]
pub use distinct::{Distinct, DistinctEstimate};
pub use exact::Exact;
pub use face::{
    Estimate, Heavy, HeavyKeys, InvalidSize, Linear, Mismatch, Sketch, SubtractError, heaviest,
};
pub use grid::{Cell, Shape};
pub use hash_table::{Collision, HashTable};
pub use hierarchy::{HeavyPrefix, Hierarchy, Parent};
pub use image::ImageError;
pub use key::{Item, Key};
pub use misra_gries::MisraGries;
pub use mv::MvSketch;
pub use reversible::{Reversible, ReversibleModular, SearchBudgetExceeded};
pub use shared::{SharedCountMin, SharedHashTable, SharedReversible, SharedSketch};
pub use space_saving::SpaceSaving;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

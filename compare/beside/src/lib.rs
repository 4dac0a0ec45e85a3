//! Shared code of the comparisons: statistics of interleaved rounds, tables, processes.

#![forbid(unsafe_code)]

mod machine;
mod process;
mod stats;
mod table;

pub use machine::{allowed_cpus, describe};
pub use process::{child, number, numbers, process_cpu, thread_cpu};
pub use stats::{Random, Rate, Ratio, quantile};
pub use table::markdown;

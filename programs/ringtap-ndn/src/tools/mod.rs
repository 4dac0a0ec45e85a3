//! The tools: the consumers ping and load, and a producer.
//!
//! ```text
//!  ping, load ─┐                                ┌─▶ names, times, counters ─▶ report
//!              ├─ Link: UDP or a Unix stream ───┤
//!  server ─────┘                                └─▶ Data
//! ```
//!
//! Invariants: a run ends by its count, its duration or an interrupt, and prints a report. Memory
//! does not grow with received packets.

mod common;
pub(crate) mod generate_key;
pub(crate) mod load;
pub(crate) mod ping;
mod register;
pub(crate) mod server;
mod times;

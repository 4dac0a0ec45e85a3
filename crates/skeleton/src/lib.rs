//! Who runs where: the same [`Application`](ringtap_stage::Application) under different
//! arrangements of threads.
//!
//! - [`reference`](reference::run): one thread, no ring; it defines the right answer.
//! - [`farm`]: Dispatcher → N workers → merger, the paper's Dispatcher → SubAnalyzers →
//!   MainAnalyzer (Lee, Bu, Chandranmenon, section III).
//! - [`simulate`]: the farm's own nodes, stepped by a seeded dice roll on a single thread: finds
//!   lost items, broken order and deadlocks without waiting for luck.
//!
//! The nodes of a farm never block: each is a state machine with one step (`node::Node`). A
//! *seat* is a thread that steps the nodes sitting on it. With as many cores as nodes each has
//! its own seat; with fewer they share seats, so no thread ever waits for a core that another
//! thread of ours is spinning on.
//!
//! Invariants: no packets, applications, files or clocks here. Every run ends: when all nodes
//! are done, or with an error as soon as one panics.
#![forbid(unsafe_code)]

mod error;
pub mod farm;
mod idle;
mod node;
pub mod reference;
pub mod seats;
pub mod simulate;
pub mod stream;

pub use error::RunError;
pub use farm::{FarmOptions, ShardMap};
pub use idle::Wait;
pub use node::{Node, Step};
pub use seats::{HIGHEST_CORE, Role, Seating, free_cores, on_core};

/// Items handed over at once: enough to share the cost of a call, few enough for the first-level
/// cache (256 × 64 bytes).
pub const BURST: usize = 256;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run<R> {
    /// The answer.
    pub report: R,
    /// Items that left the dispatcher.
    pub dispatched: u64,
    /// Items that each worker handled.
    pub handled: Vec<u64>,
}

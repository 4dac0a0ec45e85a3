//! Who runs where: the same [`Application`](ringtap_stage::Application) under different
//! arrangements of threads.
//!
//! - [`Skeleton::Reference`]: one thread, no ring; it defines the right answer.
//! - [`Skeleton::Farm`]: Dispatcher → N workers → merger, the paper's Dispatcher → SubAnalyzers →
//!   MainAnalyzer (Lee, Bu, Chandranmenon, section III).
//! - [`Skeleton::Pipeline`]: reader → worker 0 → … → worker N−1, ffProbe's (Danelutto, Deri, De
//!   Sensi).
//! - [`simulate`]: the nodes of any of them, stepped by a seeded dice roll on a single thread:
//!   finds lost items, broken order and deadlocks without waiting for luck.
//!
//! The nodes of a skeleton never block: each is a state machine with one step ([`Node`]). A
//! *seat* is a thread that steps the nodes sitting on it. With as many cores as nodes each has
//! its own seat; with fewer they share seats, so no thread ever waits for a core that another
//! thread of ours is spinning on.
//!
//! Invariants: no packets, applications, files or clocks here. Every run ends: when all nodes
//! are done, or with an error as soon as one panics.
#![forbid(unsafe_code)]

mod books;
mod error;
mod farm;
mod idle;
mod merger;
mod node;
mod options;
mod owner;
mod pipeline;
pub mod reference;
mod reports;
pub mod seats;
mod shards;
pub mod simulate;
mod skeleton;
pub mod stream;

pub use books::Run;
pub use error::RunError;
pub use idle::Wait;
pub use node::{Node, Step};
pub use options::RunOptions;
pub use seats::{HIGHEST_CORE, Role, Seating, free_cores, on_core};
pub use shards::ShardMap;
pub use skeleton::{Skeleton, UnknownSkeleton, run};

/// Items handed over at once: enough to share the cost of a call, few enough for the first-level
/// cache (256 × 64 bytes).
pub const BURST: usize = 256;

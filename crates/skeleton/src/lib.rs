//! Structured parallelism for streams: pipelines, farms, divide and conquer, on bounded
//! single-producer/single-consumer rings. The caller chooses a skeleton, which provides rings,
//! threads, waiting and an orderly end.
//!
//! ```
//! use ringtap_skeleton::stream::{Options, Policy, Stream};
//!
//! let text = "the skeleton is general the code is yours";
//! let run = Stream::from_iter(text.split(' '))                        // a source, borrowed
//!     .map(str::len)                                                  // a stage of a pipeline
//!     .farm(2, Policy::OnDemand, |_worker| |letters| letters * 2)     // emitter, workers, collector
//!     .fold(0, |sum, n| sum + n)                                      // a sink
//!     .run(&Options::default())?;                                     // run and wait
//! assert_eq!(run.result, 68);
//! # Ok::<(), ringtap_skeleton::RunError>(())
//! ```
//!
//! Two families share one foundation:
//!
//! - [`stream`]: any items through any graph of stages, farms and feedback.
//! - [`run`]: an [`Application`](ringtap_stage::Application), a sharded analysis whose answer must
//!   not depend on threads, under one of a list of [`Skeleton`]s: the reference (one thread, no
//!   ring; it defines the right answer), the farm (the paper's Dispatcher → SubAnalyzers →
//!   MainAnalyzer; Lee, Bu, Chandranmenon, section III), and the pipeline (reader → worker 0 → … →
//!   worker N−1, ffProbe's; Danelutto, Deri, De Sensi).
//!
//! ```text
//! nodes      state machines with one non-blocking step                        node::Node
//! rings      join them, bounded                                               ringtap-ring
//! seats      threads that step their nodes; the caller is one              seats::run
//!  or dice   one thread steps them all in a seeded order                    simulate::nodes
//! ```
//!
//! With as many cores as nodes each node has its own seat; with fewer they share seats, so no
//! thread waits for a core on which another of ours spins. A seat without work spins a little, then
//! yields, then sleeps until a neighbour wakes it ([`Wait`]).
//!
//! [`simulate`] finds lost items, broken order and deadlocks systematically, in the same nodes that
//! threads would step, and the same seed finds them again.
//!
//! Use rayon for loops over data that is complete, and channels for a few threads with rare
//! messages; docs/ENGINE.md has more on the choice.
//!
//! Invariants: no packets, applications or files here, and no clock that reaches a result. Every
//! run ends: when all nodes are done, or with the first error or panic of one.
#![forbid(unsafe_code)]

mod counters;
mod error;
mod farm;
mod idle;
mod merger;
mod multi_queue;
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
mod sync;

pub use counters::Run;
pub use error::RunError;
pub use idle::Wait;
pub use node::{Node, Step};
pub use options::RunOptions;
pub use seats::{HIGHEST_CORE, Role, Seating, allowed_cores, free_cores, on_core};
pub use shards::{MOST_QUEUES, ShardMap};
pub use skeleton::{Skeleton, UnknownSkeleton, run};

/// Items handed over at once: enough to share the cost of a call, few enough for the L1 cache (256
/// × 64 bytes).
pub const BURST: usize = 256;

/// Most marks that a worker or a queue may be ahead of the slowest one: the merger keeps what it handed over at them until
/// all have passed.
pub const MARKS_AHEAD: u64 = 64;

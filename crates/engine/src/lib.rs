//! The engine: connects sources of packets, an application and a skeleton, and keeps the ledger.
//!
//! ```text
//!  Options + the application's options + Machine ─▶ Plan ─▶ run ─▶ Outcome: the report, and where packets went
//!
//!  files ─── PacketFeed ─┐                          ┌ arrangement: skeleton, queues, workers, seats
//!  interfaces LiveFeed ──┴─▶ Frames ─▶ records ─▶ skeleton ─▶ application
//! ```
//!
//! A [`Plan`] is a printable value; all choices are made in it. Applications describe their cost by
//! [`AppOptions`]; the engine depends on none of them.
//!
//! Invariants: the order of packets and marks depends on the capture alone, never on bursts, chunks
//! or threads; every received packet was handed to the application or is counted under a reason.
//! The caller passes in files, interfaces and the [`Watch`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod application;
mod arrangement;
mod duplicates;
mod error;
mod feed;
mod frames;
mod interfaces;
mod live;
mod live_clock;
mod machine;
mod memory;
mod options;
mod outcome;
mod packet_source;
mod plan;
mod recent;
mod run;
mod sharding;
mod source;
mod timeline;
mod watch;

pub use application::AppOptions;
pub use arrangement::Arrangement;
pub use error::{PlanError, within};
pub use feed::PacketFeed;
pub use interfaces::InterfaceCounts;
pub use machine::Machine;
pub use memory::{Buffers, Memory};
pub use options::{Options, RecentBytes, display};
pub use outcome::{INTERRUPTED, LedgerReport, Outcome, Performance};
pub use packet_source::{ClockChanges, Closed, FeedCounts, PacketSource};
pub use plan::Plan;
pub use recent::{LONGEST_FRAME, Reader, Recent, Selected};
pub use run::{live_feeds, run, run_feeds, run_live};
pub use watch::{Gauge, InterfaceGauges, LinkChange, MOST_INTERFACES, Selection, Watch};

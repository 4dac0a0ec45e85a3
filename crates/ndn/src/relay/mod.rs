//! The relay: a running NDN forwarder with faces, tables and management.
//!
//! ```text
//!  faces ─▶ packet ─┬─▶ Forwarder ─▶ packets ─▶ faces
//!                   └─▶ /localhost/nfd, local ─▶ management ─▶ routes, faces, strategies
//! ```
//!
//! Invariants: one thread. Every received packet is handled by the forwarder or by the management,
//! or is counted as dropped with a reason. The main loop reads the steady clock once per round; the
//! modules `forwarder`, `faces` and `packets` never read a clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod batch;
mod core;
mod datasets;
mod doorbell;
mod events;
mod management;
mod plan;
mod report;
mod rib;
mod run;
mod worker;
mod workers;

pub use batch::ShardReport;
pub use plan::{ForwardPlan, PlannedRoute};
pub use report::{FaceReport, ForwardReport};
pub use run::{ForwardError, Relay};

pub use crate::forwarder::{Settings, Strategy, Unsolicited};

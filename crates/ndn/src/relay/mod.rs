//! The relay: a running NDN forwarder with faces, tables and management.
//!
//! ```text
//!  faces ─▶ packet ─┬─▶ Forwarder ─▶ packets ─▶ faces
//!                   ├─▶ /localhost/nfd, local ──────┬▶ trust ─▶ management ─▶ routes, faces, strategies
//!                   └─▶ /localhop/nfd, neighbours ──┘               └─▶ /localhost/nlsr: prefixes for
//!                                                                       a routing daemon
//! ```
//!
//! Invariants: the main thread has the faces and the management. Each part of the tables is in one
//! thread at a time. Every received packet is handled by a forwarder or by the management,
//! or is counted as dropped with a reason. The main loop reads the steady clock once per round; the
//! modules `forwarder`, `faces` and `packets` never read a clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod announce;
mod batch;
mod core;
mod datasets;
mod doorbell;
mod events;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod load;
mod management;
mod pace;
mod plan;
mod replay;
mod report;
mod requests;
mod rib;
mod run;
mod status;
mod trust;
mod worker;
mod workers;

pub use batch::ShardReport;
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz;
pub use plan::{ForwardPlan, PlannedRoute};
pub use report::{FaceReport, ForwardReport};
pub use run::{ForwardError, Relay};
pub use trust::{ANCHORS_MAX, Anchor, Module, RefusedCommand, TrustSettings};

pub use crate::forwarder::{Settings, Strategy, Unsolicited};

//! The NDN forwarder among its neighbours: faces, the state machine, and what may be asked of it while it runs.
//!
//! ```text
//!  faces ─▶ packet ─┬─▶ Forwarder ─▶ packets ─▶ faces
//!                   └─▶ /localhost/nfd, from a program here ─▶ management ─▶ routes, faces, strategies
//! ```
//!
//! Invariant: one thread. Every packet that came was taken by the forwarder, answered by the management, or is counted
//! under a reason. What time it is the relay asks the system, once a round; the crates below never do.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod core;
mod datasets;
mod management;
mod plan;
mod report;
mod rib;
mod run;

pub use plan::{ForwardPlan, PlannedRoute};
pub use report::{FaceReport, ForwardReport};
pub use run::{ForwardError, Relay};

pub use crate::forwarder::{Settings, Strategy, Unsolicited};

//! The monitor: what was seen, which flows, who scanned, who talked most; in one pass.
//!
//! ```text
//!             ┌ volumes ── every packet
//!             ├ activity ─ every packet, into sketches (if asked for)
//! a burst ──▶ ┤ scans ──── SYN and SYN-ACK only
//!             └ flows ──── every packet, through the flow table
//!                  ├ conversations ─ when a flow is first seen (in an interval)
//!                  └ talkers ─────── when a flow ends
//! ```
//!
//! Counting talkers on ended flows, not on packets, gives the same sums for a fraction of the
//! memory traffic: every IP packet belongs to exactly one flow record.
//!
//! [`run()`] and [`run_live`] put the application on the engine. The rest has no threads, rings, clock or I/O; time is
//! packet time.
//!
//! Invariants: packets are sharded by their symmetric address pair, so whatever is keyed by a
//! pair or finer has one owner; whatever is coarser (hosts, ports, a scanner's targets) leaves
//! the worker as sums over disjoint parts or as tables that are united.
#![forbid(unsafe_code)]

mod alert;
mod analyses;
mod app;
mod digest;
mod merger;
mod options;
pub mod report;
mod run;
mod worker;

pub use alert::Alert;
pub use analyses::activity::{Limits, UnknownLimit};
pub use analyses::{About, Analyses, Message, Section, UnknownAnalysis};
pub use app::{Ended, Monitor, OnAlert, OnInterval, OnShortage, Outputs, Partial, Shortage};
pub use merger::MonitorMerger;
pub use options::{Options, Setup};
pub use report::Report;
pub use run::{Outcome, run, run_app, run_live};
pub use worker::MonitorWorker;

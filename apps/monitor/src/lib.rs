//! The monitor: volumes, flows, port scans and talkers in one pass.
//!
//! ```text
//!             ┌ volumes ── every packet
//!             ├ activity ─ every packet, into sketches (if enabled)
//! a burst ──▶ ┤ scans ──── SYN and SYN-ACK only
//!             └ flows ──── every packet, through the flow table
//!                  ├ conversations ─ when a flow is first seen (in an interval)
//!                  ├ talkers ─────── when a flow ends
//!                  └ applications ── the same
//! ```
//!
//! Talkers are counted on ended flows instead of packets: the same sums with a fraction of the
//! memory traffic, because every IP packet belongs to exactly one flow record.
//!
//! [`run()`] and [`run_live`] connect the application to the engine. The rest has no threads,
//! rings, clock or I/O; time is packet time.
//!
//! Invariants: packets are sharded by their symmetric address pair, so everything keyed by a pair
//! or finer has one owner; everything coarser (hosts, ports, a scanner's targets) leaves the worker
//! as sums over disjoint parts or as tables that are merged.
#![forbid(unsafe_code)]

mod alerts;
mod analyses;
mod app;
mod counts;
mod digest;
mod exchanges;
mod flow_ends;
mod held;
mod merger;
mod messages;
mod options;
mod outputs;
mod partial;
mod reload;
pub mod report;
pub mod resume;
mod run;
mod series;
pub mod state;
mod time;
mod times;
mod totals;
mod volume;
mod worker;

pub use alerts::{
    Alert, AlertKind, AlertState, AllowList, AllowRule, Flood, FloodKind, Member, ScanKind,
    Service, Subject,
};
pub use analyses::activity::{Limits, UnknownLimit};
pub use analyses::changes::{ChangeLimits, OwnNetworks};
pub use analyses::custom::{
    Custom, CustomPart, CustomSection, CustomSections, CustomSet, InvalidCustom, Observers,
};
pub use analyses::scans::Suspects;
pub use analyses::{About, Analyses, Context, Scope, Section, UnknownAnalysis};
pub use app::Monitor;
pub use merger::MonitorMerger;
pub use options::{Options, PAGE_NS, Setup, TOP_MOST};
pub use outputs::{EndedInterval, OnAlert, OnInterval, OnTotals, Outputs, Receivers};
pub use partial::Partial;
pub use reload::{Next, Refused, Reloads};
pub use report::Report;
pub use run::{LOSSES, Loss, Outcome, SoFar, losses_so_far, run, run_app, run_live};
pub use series::{Series, Step};
pub use totals::{Responses, Totals};
pub use worker::MonitorWorker;

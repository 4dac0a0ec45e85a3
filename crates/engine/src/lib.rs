//! A plan says what shall run: source, analyses, skeleton, ring, cores, seed. It is a value that
//! can be printed, and [`run`] turns it into an [`Outcome`].
//!
//! The path: [`Request`] (what the user asked for) + [`Machine`] (what there is) →
//! [`Plan`] → [`run`] → [`Outcome`].
//!
//! This is the only room that knows everybody. It does no I/O of its own: it gets its files,
//! its outputs and the [`Watch`] that others may look at, and gives back values.
#![forbid(unsafe_code)]

mod arrange;
mod budget;
mod feed;
pub mod filter;
mod interfaces;
mod live;
mod live_clock;
mod machine;
pub mod measure;
mod outcome;
mod packet_source;
mod request;
mod run;
mod sharding;
mod source;
mod timeline;
mod watch;

pub use feed::PacketFeed;
pub use interfaces::InterfaceCounts;
pub use machine::Machine;
pub use outcome::{Outcome, Performance};
pub use packet_source::{ClockChanges, FeedCounts};
pub use request::{Plan, PlanError, Request};
pub use run::{app, run, run_app, run_live};
pub use watch::{Gauge, InterfaceGauges, MOST_INTERFACES, Watch};

pub use ringtap_export::Summary as Exported;
pub use ringtap_extract::Extractors;
pub use ringtap_flow::Paths;
pub use ringtap_flow::{FlowRecord, Metering, RecordSink, Timeouts};
pub use ringtap_io::bpf::{Expression, ExpressionError};
pub use ringtap_io::capture::{Files, Input, Notice, NoticeKind, Position, Severity};
pub use ringtap_monitor::{
    Alert, Analyses, Ended, Limits, OnInterval, OnShortage, Outputs, Report, Shortage, report,
};
pub use ringtap_ring::Kind as Ring;
pub use ringtap_skeleton::{Role, RunError, Skeleton};
pub use ringtap_wire::Tunnels;

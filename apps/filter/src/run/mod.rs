//! The packet filter over captures, or between two interfaces.
//!
//! ```text
//! files       reader ─ chunk, rules ─▶ judges × n ─▶ writer, in the order of the files ─▶ OUT, DROPS
//! interfaces  queue: receive ─▶ judge ─▶ send                 one each, by the published rules
//!                      └ refused ─▶ ring ─▶ DROPS
//! ```
//!
//! Invariant: a packet is judged by one revision of the rules, and is passed or counted under a
//! reason.

mod batch;
mod control;
mod counters;
mod drops;
mod files;
mod judge;
mod link;
mod live;
mod load;
mod report;
mod requests;
mod sink;
mod snapshot;
mod worker;

pub use batch::SuperFrames;
pub use control::{ControlAuth, ControlKey, ControlKeyError};
pub use files::{FilterFiles, Outputs, filter_files};
pub use judge::NotIp;
pub use live::{FilterLive, filter_live};
pub use report::{Buffers, Control, FilterPlan, FilterReport, FilterStats, Packets, Row, Rules};
pub use requests::{Done, RequestError, Requests, bans_line};
pub use sink::FilterError;
pub use snapshot::StatsSnapshot;
pub use worker::Path;

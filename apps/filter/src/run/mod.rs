//! The packet filter over real packets: captures, or between two interfaces.
//!
//! ```text
//! files       reader ─ chunk, rules ─▶ judges × n ─▶ writer, in the order of the files ─▶ OUT, DROPS
//! interfaces  queue: receive ─▶ judge ─▶ send                 one each, by the rules on the board
//!                      └ refused ─▶ ring ─▶ DROPS
//! ```
//!
//! Invariant: a packet is judged by one revision of the rules, and passed on or counted under a reason.

mod batch;
mod census;
mod control;
mod drops;
mod files;
mod judge;
mod link;
mod live;
mod load;
mod orders;
mod report;
mod sink;
mod tally;
mod worker;

pub use census::Census;
pub use control::{ControlKey, ControlKeyError, Knock};
pub use files::{FilterFiles, Outputs, filter_files};
pub use judge::NotIp;
pub use live::{FilterLive, filter_live};
pub use orders::{Done, OrderError, Orders, bans_line};
pub use report::{Control, FilterPlan, FilterReport, Packets, Row, Rules, Standing};
pub use sink::FilterError;
pub use worker::Way;

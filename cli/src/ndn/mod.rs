//! `ringtap ndn`: consumers and a producer of NDN.
//!
//! ```text
//!  ping, load ─┐                                ┌─▶ names, times, counters ─▶ report
//!              ├─ Link: UDP or a Unix stream ───┤
//!  server ─────┘                                └─▶ Data
//! ```
//!
//! Invariants: a run ends by its count, its duration or an interrupt, and reports. Memory does not grow with what comes.

mod link;
mod load;
mod ping;
mod register;
mod server;
mod times;

pub(crate) use link::Link;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::Watch;

use crate::args::{NdnAction, NdnArgs};
use crate::signals;

static WATCH: Watch = Watch::new();

/// How often a wait ends to look whether it is over.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &NdnArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        NdnAction::Ping(args) => attended(None, || ping::run(args)),
        NdnAction::Server(args) => attended(args.duration, || server::run(args)),
        NdnAction::Load(args) => attended(None, || load::run(args)),
        NdnAction::Bench(moved) => Err(moved.to("ringtap-lab ndn")),
    }
}

/// Does `work`, which an interrupt or the duration ends.
fn attended(
    duration_ns: Option<u64>,
    work: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let duration = duration_ns.map(Duration::from_nanos);
    signals::stoppable_for(&WATCH, duration, work).context("attending to signals")?
}

/// Milliseconds of a lifetime, at least 1.
fn lifetime_ms(timeout_ns: u64) -> Option<u64> {
    Some((timeout_ns / 1_000_000).max(1))
}

/// A number that other runs do not begin with, so that no store has answers to their names.
fn fresh_number() -> u64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    // Room for a long run, and for readers of decimal digits.
    random >> 24
}

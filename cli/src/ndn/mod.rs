//! `ringtap ndn`: NDN tools: the consumers ping and load, and a producer.
//!
//! ```text
//!  ping, load ─┐                                ┌─▶ names, times, counters ─▶ report
//!              ├─ Link: UDP or a Unix stream ───┤
//!  server ─────┘                                └─▶ Data
//! ```
//!
//! Invariants: a run ends by its count, its duration or an interrupt, and prints a report. Memory
//! does not grow with received packets.

mod generate_key;
mod keys;
mod link;
mod load;
mod ping;
mod register;
mod server;
mod times;

pub(crate) use keys::{CommandSigner, PublicKey, hmac as hmac_key, public as public_key};
pub(crate) use link::Link;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ringtap_engine::Watch;

use crate::args::{KeyAction, NdnAction, NdnArgs};
use crate::signals;

static WATCH: Watch = Watch::new();

/// Interval at which a wait checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &NdnArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        NdnAction::Ping(args) => stoppable(None, || ping::run(args)),
        NdnAction::Server(args) => stoppable(args.duration, || server::run(args)),
        NdnAction::Load(args) => stoppable(None, || load::run(args)),
        NdnAction::Key(args) => match &args.action {
            KeyAction::Generate(args) => generate_key::run(args),
        },
    }
}

/// Calls `work`; requests a stop at an interrupt or after the duration.
fn stoppable(
    duration_ns: Option<u64>,
    work: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let duration = duration_ns.map(Duration::from_nanos);
    signals::stoppable_for(&WATCH, duration, work).context("handling signals")?
}

/// The Interest lifetime for a timeout, in milliseconds, at least 1.
fn lifetime_ms(timeout_ns: u64) -> Option<u64> {
    Some((timeout_ns / 1_000_000).max(1))
}

/// A random start number, so that content stores have no answers of other runs.
fn fresh_number() -> u64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0_u8);
    // 40 bits: short names, and room to count up.
    random >> 24
}

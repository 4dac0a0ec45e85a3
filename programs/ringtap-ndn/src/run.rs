//! The run of this process, and how signals and time end it.

use std::time::Duration;

use anyhow::Context;
use ringtap_program::run::Loop;
use ringtap_program::signals;

/// The run of this process.
pub(crate) static RUN: Loop = Loop::new();

/// Calls `work`; requests a stop of [`RUN`] at an interrupt or after the duration.
pub(crate) fn stoppable<T>(
    duration_ns: Option<u64>,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let duration = duration_ns.map(Duration::from_nanos);
    signals::stoppable(&RUN, duration, || (), work).context("handling signals")?
}

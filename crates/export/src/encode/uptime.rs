//! The clock of NetFlow v5 and v9: flow times are milliseconds since the exporter's start, in 32 bits; the header
//! contains the start.
//!
//! ```text
//! start                      first      last     header's time, whole seconds
//!   ├──────────────────────────┼──────────┼────────┤
//!   └─────────────── sysUptime, milliseconds ──────┘
//! ```
//!
//! A file has no start time, so one is chosen: 2³¹ ms (24.8 days) before the first record, with the same range for
//! earlier and later records. A record outside the range begins another message with another start. The header's time
//! is rounded up, so that no flow ends after it (collectors treat that as an overflow), and collectors compute the
//! exact millisecond: header's seconds × 1000 - sysUptime + first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Refusal;
use crate::Reason;

const HALF: u64 = 1 << 31;

#[derive(Default)]
pub(crate) struct Uptime {
    start_ms: Option<u64>,
    latest_ms: u64,
    /// The start that the encoders of all workers use, plus one; 0: not chosen yet.
    common: Arc<AtomicU64>,
}

impl Uptime {
    /// Returns another clock with the same start.
    pub(crate) fn share(&self) -> Self {
        Self { common: Arc::clone(&self.common), ..Self::default() }
    }

    /// Copies the clock of a message from its header.
    pub(crate) fn learn(&mut self, uptime: u32, seconds: u32) {
        self.latest_ms = u64::from(seconds) * 1000;
        self.start_ms = self.latest_ms.checked_sub(uptime.into());
    }

    /// First and last packet since the start. `fresh`: the message is empty, so another start may be chosen.
    pub(crate) fn place(
        &mut self,
        first_ms: u64,
        last_ms: u64,
        fresh: bool,
    ) -> Result<(u32, u32), Refusal> {
        // Relaxed: only this value is shared.
        let common = || self.common.load(Ordering::Relaxed).checked_sub(1);
        if let Some(start) = self.start_ms.or_else(common)
            && let Some(times) = within(start, first_ms, last_ms)
        {
            self.start_ms = Some(start);
            self.latest_ms = self.latest_ms.max(last_ms);
            return Ok(times);
        }
        let start = last_ms.saturating_sub(HALF).min(first_ms);
        let times = within(start, first_ms, last_ms).ok_or(Refusal::Unfit(Reason::TimeSpan))?;
        if !fresh && self.start_ms.is_some() {
            return Err(Refusal::Full);
        }
        self.start_ms = Some(start);
        self.latest_ms = last_ms;
        self.common.store(start + 1, Ordering::Relaxed);
        Ok(times)
    }

    /// sysUptime in milliseconds and the time in seconds, for the header.
    pub(crate) fn header(&self) -> (u32, u32) {
        let seconds = self.latest_ms.div_ceil(1000);
        let start = self.start_ms.unwrap_or(seconds * 1000);
        // Both fit, because `within` has checked every record.
        ((seconds * 1000 - start) as u32, seconds as u32)
    }
}

/// The times as 32-bit offsets, if header and record can contain them.
fn within(start: u64, first_ms: u64, last_ms: u64) -> Option<(u32, u32)> {
    let seconds = last_ms.div_ceil(1000);
    u32::try_from(seconds).ok()?;
    u32::try_from((seconds * 1000).checked_sub(start)?).ok()?;
    let since = |ms: u64| u32::try_from(ms.checked_sub(start)?).ok();
    Some((since(first_ms)?, since(last_ms)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times that a collector computes.
    fn read(uptime: &Uptime, (first, last): (u32, u32)) -> (u64, u64) {
        let (up, seconds) = uptime.header();
        assert!(last <= up, "a flow that ends after the message was sent");
        let start = u64::from(seconds) * 1000 - u64::from(up);
        (start + u64::from(first), start + u64::from(last))
    }

    #[test]
    fn collectors_get_the_exact_times_back() {
        let mut uptime = Uptime::default();
        let now = 1_700_000_000_123;
        for (first, last) in [(now, now), (now - 120_000, now - 1), (now, now + 86_400_000)] {
            let times = uptime.place(first, last, false).unwrap();
            assert_eq!(read(&uptime, times), (first, last));
        }
        for (first, last) in [(0, 0), (0, 999), (1, u64::from(u32::MAX) * 1000)] {
            let mut uptime = Uptime::default();
            match uptime.place(first, last, true) {
                Ok(times) => assert_eq!(read(&uptime, times), (first, last)),
                Err(refusal) => assert_eq!(refusal, Refusal::Unfit(Reason::TimeSpan)),
            }
        }
    }

    #[test]
    fn a_distant_record_starts_another_message_and_an_impossible_one_is_an_error() {
        let mut uptime = Uptime::default();
        let month = 30 * 86_400_000;
        let now = 1_700_000_000_000;
        uptime.place(now, now, true).unwrap();
        assert_eq!(uptime.place(now + month, now + month, false), Err(Refusal::Full));
        let times = uptime.place(now + month, now + month, true).unwrap();
        assert_eq!(read(&uptime, times), (now + month, now + month));
        assert_eq!(uptime.place(now, now, false), Err(Refusal::Full));
        let unfit = Err(Refusal::Unfit(Reason::TimeSpan));
        assert_eq!(uptime.place(now, now + 2 * month, true), unfit);
        assert_eq!(uptime.place(0, 1000 * (1 << 32), true), unfit);
        assert_eq!(uptime.place(u64::MAX / 1_000_000, u64::MAX / 1_000_000, true), unfit);
    }
}

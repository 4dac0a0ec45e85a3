//! Limits how often the main thread wakes up, as interrupt moderation of network cards does.
//!
//! Under load a thread that wakes for every packet spends its time on waking. So while many packets
//! arrive, few at a time, it sleeps shortly before it waits for the next. Packets at lower rates are
//! never delayed.

use std::num::NonZeroU64;
use std::time::Duration;

use ringtap_base::steady_ns;

/// The time over which wake-ups and packets are counted.
const WINDOW_NS: u64 = 1_000_000;

/// Packets in a window below which there is no pause.
const BUSY: u64 = 40;

/// Packets per wake-up below which pauses begin, and from which they end.
const FEW: u64 = 16;
const MANY: u64 = 128;

/// Shortest time between two wake-ups.
const PAUSE_NS: u64 = 100_000;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Start of the window.
    start_ns: u64,
    wakes: u64,
    packets: u64,
    pauses: bool,
    woken_ns: u64,
}

impl Pace {
    pub(super) fn start() -> Self {
        // Sleeps are shorter than the usual slack of timers. If it cannot be set, they are longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
        Self::default()
    }

    /// Sleeps if the thread woke up a short time ago and packets come few at a time. Returns whether
    /// it did.
    pub(super) fn pause(&self) -> bool {
        if !self.pauses {
            return false;
        }
        let left_ns = (self.woken_ns + PAUSE_NS).saturating_sub(steady_ns());
        std::thread::sleep(Duration::from_nanos(left_ns));
        left_ns > 0
    }

    /// Counts a wake-up, and the packets that were received then.
    pub(super) fn woke(&mut self, now_ns: u64, packets: u64) {
        self.woken_ns = now_ns;
        self.wakes += 1;
        self.packets += packets;
        if now_ns.saturating_sub(self.start_ns) < WINDOW_NS {
            return;
        }
        let enough = if self.pauses { MANY } else { FEW };
        self.pauses = self.packets >= BUSY && self.packets < enough * self.wakes;
        (self.start_ns, self.wakes, self.packets) = (now_ns, 0, 0);
    }
}

//! Intervals of packet time: in which one a worker counts a packet.
//!
//! ```text
//!  marks of the source      │ 60 s                     │ 120 s                    │
//!  ─────────────────────────┼──────────────────────────┼──────────────────────────┼──▶ packet time
//!                           │ current                  │ after it                 │
//!   before it: a stray,     │ a packet of this time    │ waits for a mark in or   │
//!   counted in the current  │ is counted               │ behind its interval      │
//! ```
//!
//! A mark that ends an interval has the same place for all workers, so they agree on what is counted in it. A packet waits
//! where time goes on after it: behind a gap, and in the burst of an interface at whose end a mark is due. At the end of
//! the run those that wait are counted in their own intervals.
//!
//! Invariant: where a packet is counted depends on its time and the marks alone, while there is room for those that wait.

use std::ops::Range;

use ringtap_wire::PacketRecord;

/// Most packets that wait: 1 MiB.
const WAITING_MOST: usize = 1 << 14;

/// The place of a worker among the intervals.
pub(crate) struct Intervals {
    length_ns: u64,
    /// The number of the current one; `None` before the first mark or packet.
    pub(crate) current: Option<u64>,
    /// Its times.
    bounds: Range<u64>,
    waiting: Vec<PacketRecord>,
}

impl Intervals {
    pub(crate) fn new(length_ns: u64) -> Self {
        Self { length_ns, current: None, bounds: 0..0, waiting: Vec::new() }
    }

    /// Whether the packet is counted in the current interval, perhaps as one of `strays`; else it
    /// waits.
    #[inline(always)]
    pub(crate) fn takes(&mut self, packet: &PacketRecord, strays: &mut u64) -> bool {
        self.bounds.contains(&packet.ts_ns) || self.takes_other(packet, strays)
    }

    #[cold]
    fn takes_other(&mut self, packet: &PacketRecord, strays: &mut u64) -> bool {
        let number = self.number(packet.ts_ns);
        if self.current.is_none() && packet.ts_ns > 0 {
            self.begin(number);
            return true;
        }
        let is_later = self.current.is_some_and(|current| number > current);
        if is_later && self.waiting.len() < WAITING_MOST {
            self.waiting.push(*packet);
            return false;
        }
        *strays += 1;
        true
    }

    /// The number of the interval of a time.
    pub(crate) fn number(&self, time_ns: u64) -> u64 {
        time_ns / self.length_ns
    }

    /// Begins an interval.
    pub(crate) fn begin(&mut self, number: u64) {
        self.current = Some(number);
        let start = number.saturating_mul(self.length_ns);
        self.bounds = start..start.saturating_add(self.length_ns);
    }

    /// The packets that waited for an interval up to this one, by interval, ascending.
    pub(crate) fn waited(&mut self, upto: u64) -> Vec<(u64, Vec<PacketRecord>)> {
        let mut waiting = std::mem::take(&mut self.waiting);
        // Stable: in the order of arrival within an interval.
        waiting.sort_by_key(|packet| self.number(packet.ts_ns));
        let due = waiting.partition_point(|packet| self.number(packet.ts_ns) <= upto);
        self.waiting = waiting.split_off(due);
        let same =
            |a: &PacketRecord, b: &PacketRecord| self.number(a.ts_ns) == self.number(b.ts_ns);
        let groups = waiting.chunk_by(same);
        groups.map(|group| (self.number(group[0].ts_ns), group.to_vec())).collect()
    }
}

//! What came by each interface of a run.
//!
//! A queue counts what its bursts bring in [`Tallies`] of its own, and shows it to the [`Watch`] after each burst. At the end
//! those of all queues make the [`InterfaceCounts`] of the report.
//!
//! Invariant: packets and drops of all interfaces together are the input of the ledger's row `interface`.

use std::collections::BTreeMap;

use ringtap_io::live::{Dropped, Lost, MergedReceiver};
use serde::Serialize;

use crate::Watch;

/// Frames that the driver or the kernel dropped before a queue could have them.
const RX_DROPPED: &str = "rx_dropped";

/// What came by one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterfaceCounts {
    /// Its name when it was opened.
    pub name: String,
    /// The kernel's number, as in `ingressInterface` of flow records; 0 of a device by DPDK.
    pub index: u32,
    /// Frames read, those among them that a filter expression, the sampling or shedding left out.
    pub packets: u64,
    /// Bytes captured of the others.
    pub captured_octets: u64,
    /// Frames that were lost before they could be read, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// It was deleted, or moved to another network namespace, while the run went on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

impl InterfaceCounts {
    /// The interfaces of a reader, with what each has lost as a whole and nothing else yet.
    pub(crate) fn all(receiver: &MergedReceiver, lost: &[Lost]) -> Vec<Self> {
        let one = |((name, index), lost): (_, &Lost)| {
            let mut one = Self { name, index, ..Self::default() };
            one.lose("missed", lost.missed);
            one.lose(RX_DROPPED, lost.rx_dropped);
            one
        };
        receiver.interfaces().into_iter().zip(lost).map(one).collect()
    }

    /// So many frames are counted by a queue and by the interface.
    pub(crate) fn counted_twice(&mut self, frames: u64) {
        if let Some(lost) = self.dropped.get_mut(RX_DROPPED) {
            *lost = lost.saturating_sub(frames);
            if *lost == 0 {
                self.dropped.remove(RX_DROPPED);
            }
        }
    }

    /// Adds what a queue counted.
    pub(crate) fn add(&mut self, tally: Tally, dropped: &Dropped, gone: bool) {
        self.packets += tally.packets;
        self.captured_octets += tally.octets;
        for (reason, frames) in dropped.by_reason() {
            self.lose(reason, frames);
        }
        self.gone |= gone;
    }

    fn lose(&mut self, reason: &'static str, frames: u64) {
        if frames > 0 {
            *self.dropped.entry(reason).or_default() += frames;
        }
    }

    /// What is to be said if some are gone.
    pub(crate) fn failure(all: &[Self]) -> Option<String> {
        let gone: Vec<_> = all.iter().filter(|one| one.gone).map(|one| one.name.as_str()).collect();
        match gone.as_slice() {
            [] => None,
            [one] => Some(format!("the interface {one} is gone")),
            several => Some(format!("the interfaces {} are gone", several.join(", "))),
        }
    }
}

/// What a queue read by one interface.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) octets: u64,
}

/// The same of all interfaces.
pub(crate) struct Tallies {
    /// Since they were published.
    new: Vec<Tally>,
    published: Vec<Tally>,
}

impl Tallies {
    pub(crate) fn new(interfaces: usize) -> Self {
        let none = vec![Tally::default(); interfaces];
        Self { new: none.clone(), published: none }
    }

    /// Where the present burst counts.
    #[inline(always)]
    pub(crate) fn of(&mut self, interface: usize) -> &mut Tally {
        &mut self.new[interface]
    }

    /// Shows the watch what is new.
    pub(crate) fn publish(&mut self, watch: &Watch, queue: usize) {
        for (place, (new, all)) in self.new.iter_mut().zip(&mut self.published).enumerate() {
            let Tally { packets, octets } = std::mem::take(new);
            if packets > 0 {
                watch.interfaces.add(place, queue, packets, octets);
                all.packets += packets;
                all.octets += octets;
            }
        }
    }

    /// Shows the watch what the kernel says of each interface; how many frames this queue has lost.
    pub(crate) fn look(&self, receiver: &mut MergedReceiver, watch: &Watch, queue: usize) -> u64 {
        let mut all = 0;
        for place in 0..self.published.len() {
            let dropped = receiver.counters(place).dropped.total();
            watch.interfaces.set_dropped(place, queue, dropped);
            if receiver.is_gone(place) {
                watch.interfaces.set_gone(place);
            }
            all += dropped;
        }
        all
    }

    /// All that was published of one.
    pub(crate) fn total(&self, interface: usize) -> Tally {
        self.published.get(interface).copied().unwrap_or_default()
    }
}

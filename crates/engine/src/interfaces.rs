//! Counters of each interface of a run.
//!
//! A queue adds up its bursts in its own [`BurstCounts`], and publishes them to the [`Watch`] after
//! each burst. At the end the sum over all queues is the [`InterfaceCounts`] of the report.
//!
//! Invariant: packets and drops of all interfaces together are the input of the ledger's row `interface`.

use std::collections::BTreeMap;

use ringtap_io::live::{Dropped, Lost, MergedReceiver};
use serde::Serialize;

use crate::{LinkChange, Watch};

/// Frames that the driver or the kernel dropped before any queue.
const RX_DROPPED: &str = "rx_dropped";

/// Counters of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterfaceCounts {
    /// Its name when it was opened.
    pub name: String,
    /// The kernel's interface index, as in `ingressInterface` of flow records; 0 for DPDK devices.
    pub index: u32,
    /// Frames read, including those that filter expression, sampling or shedding left out.
    pub packets: u64,
    /// Captured bytes of the frames that were not left out.
    pub captured_octets: u64,
    /// Frames lost before they could be read, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Whether it was deleted, or moved to another network namespace, during the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// How often it went down or lost its carrier.
    #[serde(skip_serializing_if = "is_zero")]
    pub times_down: u64,
    /// How often its MTU changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub mtu_changes: u64,
    /// How often it was renamed.
    #[serde(skip_serializing_if = "is_zero")]
    pub name_changes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl InterfaceCounts {
    /// The interfaces of a reader, with the losses that belong to no queue, and their changes.
    pub(crate) fn all(receiver: &MergedReceiver, lost: &[Lost], watch: &Watch) -> Vec<Self> {
        let one = |(place, ((name, index), lost)): (_, (_, &Lost))| {
            let changes = |change| watch.interfaces.changes(place, change);
            let mut one = Self {
                name,
                index,
                times_down: changes(LinkChange::Down),
                mtu_changes: changes(LinkChange::Mtu),
                name_changes: changes(LinkChange::Name),
                ..Self::default()
            };
            one.lose("missed", lost.missed);
            one.lose(RX_DROPPED, lost.rx_dropped);
            one
        };
        receiver.interfaces().into_iter().zip(lost).enumerate().map(one).collect()
    }

    /// `frames` frames are counted both by a queue and by the interface.
    pub(crate) fn counted_twice(&mut self, frames: u64) {
        if let Some(lost) = self.dropped.get_mut(RX_DROPPED) {
            *lost = lost.saturating_sub(frames);
            if *lost == 0 {
                self.dropped.remove(RX_DROPPED);
            }
        }
    }

    /// Adds the counters of a queue.
    pub(crate) fn add(&mut self, count: InterfaceCount, dropped: &Dropped, gone: bool) {
        self.packets += count.packets;
        self.captured_octets += count.octets;
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

    /// The error text if some interfaces are gone.
    pub(crate) fn failure(all: &[Self]) -> Option<String> {
        let gone: Vec<_> = all.iter().filter(|one| one.gone).map(|one| one.name.as_str()).collect();
        match gone.as_slice() {
            [] => None,
            [one] => Some(format!("the interface {one} is gone")),
            several => Some(format!("the interfaces {} are gone", several.join(", "))),
        }
    }
}

/// Counters of a queue for one interface.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InterfaceCount {
    pub(crate) packets: u64,
    pub(crate) octets: u64,
}

/// Counters of a queue for all interfaces.
pub(crate) struct BurstCounts {
    /// Not yet published.
    new: Vec<InterfaceCount>,
    published: Vec<InterfaceCount>,
}

impl BurstCounts {
    pub(crate) fn new(interfaces: usize) -> Self {
        let none = vec![InterfaceCount::default(); interfaces];
        Self { new: none.clone(), published: none }
    }

    /// The counter for the current burst.
    #[inline(always)]
    pub(crate) fn of(&mut self, interface: usize) -> &mut InterfaceCount {
        &mut self.new[interface]
    }

    /// Publishes new counts to the watch.
    pub(crate) fn publish(&mut self, watch: &Watch, queue: usize) {
        for (place, (new, all)) in self.new.iter_mut().zip(&mut self.published).enumerate() {
            let InterfaceCount { packets, octets } = std::mem::take(new);
            if packets > 0 {
                watch.interfaces.add(place, queue, packets, octets);
                all.packets += packets;
                all.octets += octets;
            }
        }
    }

    /// Publishes the kernel's counters of each interface; returns the number of frames that this
    /// queue lost.
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

    /// All published counts of an interface.
    pub(crate) fn total(&self, interface: usize) -> InterfaceCount {
        self.published.get(interface).copied().unwrap_or_default()
    }
}

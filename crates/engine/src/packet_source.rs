//! Counters that the feeds of files and interfaces share, and how they are closed.

use std::collections::BTreeMap;

use ringtap_io::bpf::Expression;
use ringtap_io::capture::Notice;
use ringtap_stage::Feed;
use ringtap_wire::{LinkType, NonIp, PacketRecord};
use serde::Serialize;

use crate::interfaces::InterfaceCounts;

/// A queue of a source of packets that can be closed.
pub trait PacketSource: Feed<Item = PacketRecord> + Send + Sized {
    /// The sum of the counters of all queues, and the diagnostics of their source.
    fn close(feeds: Vec<Self>) -> Closed;
}

/// Counters of a feed. Each frame counts in the queue that owns its outermost packet.
#[derive(Clone, Debug, Default)]
pub struct FeedCounts {
    /// Packets handed out, without inner packets of tunnels.
    pub packets: u64,
    /// Inner packets handed out.
    pub inner: u64,
    /// Captured bytes of the packets.
    pub captured_octets: u64,
    /// Packets that are not IP, by reason.
    pub non_ip: BTreeMap<NonIp, u64>,
    /// Packets that the filter expression does not select.
    pub filtered: u64,
    /// Packets whose link type the expression does not support.
    pub unfilterable: u64,
    /// Packets outside the sample.
    pub not_sampled: u64,
    /// Packets seen before within the window.
    pub duplicates: u64,
    /// Packets that were evicted before the window was over, so their duplicates may be counted.
    pub duplicates_evicted: u64,
    /// Packets shed under overload.
    pub shed: u64,
    /// Messages in payloads, read and not read.
    pub payloads: ringtap_extract::Counts,
    /// First fragments evicted within their 30 s for lack of room; their later fragments may lack
    /// ports.
    pub fragments_forgotten: u64,
}

impl FeedCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.inner += other.inner;
        self.captured_octets += other.captured_octets;
        self.filtered += other.filtered;
        self.unfilterable += other.unfilterable;
        self.not_sampled += other.not_sampled;
        self.duplicates += other.duplicates;
        self.duplicates_evicted += other.duplicates_evicted;
        self.shed += other.shed;
        self.fragments_forgotten += other.fragments_forgotten;
        for (&reason, &packets) in &other.non_ip {
            *self.non_ip.entry(reason).or_default() += packets;
        }
        self.payloads.add(&other.payloads);
    }

    /// Whether `filter` rejects a frame; if so, and if the frame is this queue's `own`, counts it.
    pub(crate) fn leaves_out(
        &mut self,
        filter: &Expression,
        link: LinkType,
        frame: &[u8],
        original_len: u32,
        own: bool,
    ) -> bool {
        let count = match filter.selects(link, frame, original_len) {
            Some(true) => return false,
            Some(false) => &mut self.filtered,
            None => &mut self.unfilterable,
        };
        *count += u64::from(own);
        true
    }
}

/// Irregularities of packet time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockChanges {
    /// How often time was set: back, and on an interface also ahead.
    pub set: u64,
    /// Size of the last step, nanoseconds.
    pub last_ns: i64,
    /// Packets far ahead of their neighbours, which moved no time.
    pub strays: u64,
}

impl ClockChanges {
    /// The size of a step as text.
    pub fn set_by(by_ns: i64) -> String {
        let seconds = by_ns.unsigned_abs() / 1_000_000_000;
        format!("{} by {seconds} s", if by_ns < 0 { "back" } else { "ahead" })
    }

    /// The effect of a step as text.
    pub fn effect(by_ns: i64) -> &'static str {
        match by_ns {
            ..0 => "live flows were ended, and intervals continue from the new time",
            _ => "intervals continue from the new time",
        }
    }

    /// Notices about these irregularities.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.set > 0 {
            let times = if self.set == 1 { "once" } else { "several times, last" };
            let (by, effect) = (Self::set_by(self.last_ns), Self::effect(self.last_ns));
            notices.push(format!("the time of packets was set {times} {by}; {effect}"));
        }
        if self.strays > 0 {
            notices.push(format!(
                "packets stamped more than a minute ahead of those around them: {}; they are counted, but no flow or \
                 interval ends by their time",
                self.strays
            ));
        }
        notices
    }
}

/// The result of closing the feeds of a run.
#[derive(Default)]
pub struct Closed {
    /// The counters of all queues.
    pub counts: FeedCounts,
    /// Packets read.
    pub packets: u64,
    /// Packets that could not be read.
    pub damaged: u64,
    /// Diagnostics of the source.
    pub notices: Vec<Notice>,
    /// Interfaces: packets lost before they could be read, by reason.
    pub lost: Option<BTreeMap<&'static str, u64>>,
    /// Interfaces: packets that arrived in another queue than earlier packets of the same address
    /// pair, among the pairs checked.
    pub split: u64,
    /// Interfaces: address pairs of which both directions arrived in one queue, among the pairs checked.
    pub pairs_checked: u64,
    /// Counters of each interface; empty for files.
    pub interfaces: Vec<InterfaceCounts>,
    /// Irregularities of packet time.
    pub clock: ClockChanges,
    /// Files: a stop was requested before their end.
    pub interrupted: bool,
    /// Why the source ended without being stopped, or which interfaces disappeared.
    pub failure: Option<String>,
}

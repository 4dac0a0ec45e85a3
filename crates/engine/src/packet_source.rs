//! What the feeds of files and of interfaces have in common: the books that each keeps, and how they are closed.

use std::collections::BTreeMap;

use ringtap_extract::{Extractors, Unread};
use ringtap_io::bpf::Expression;
use ringtap_io::capture::Notice;
use ringtap_stage::{Attachments, Feed};
use ringtap_wire::{LinkType, NonIp, PacketRecord};
use serde::Serialize;

use crate::interfaces::InterfaceCounts;

/// A queue of a source of packets, whose books can be closed.
pub trait PacketSource: Feed<Item = PacketRecord> + Send + Sized {
    /// What all queues of a run counted, and what their source has to say.
    fn close(feeds: Vec<Self>) -> Closed;
}

/// What feeds counted, each frame in the queue that owns its outermost packet.
#[derive(Clone, Debug, Default)]
pub struct FeedCounts {
    /// Packets handed out, without those within tunnels.
    pub packets: u64,
    /// Packets handed out that others carried.
    pub inner: u64,
    /// Bytes captured of them.
    pub captured_octets: u64,
    /// Packets that are not IP, by reason.
    pub non_ip: BTreeMap<NonIp, u64>,
    /// Packets that the filter expression does not select.
    pub filtered: u64,
    /// Packets that it cannot be applied to, for their link type.
    pub unfilterable: u64,
    /// Packets that are no part of the sample.
    pub not_sampled: u64,
    /// Packets left out because more came than can be worked off.
    pub shed: u64,
    /// Payloads that could not be read, by extractor and reason.
    pub unread: BTreeMap<(&'static str, Unread), u64>,
    /// First fragments dropped within their 30 s for lack of room, so that later ones may lack their ports.
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
        self.shed += other.shed;
        self.fragments_forgotten += other.fragments_forgotten;
        for (&reason, &packets) in &other.non_ip {
            *self.non_ip.entry(reason).or_default() += packets;
        }
        for (&why, &packets) in &other.unread {
            *self.unread.entry(why).or_default() += packets;
        }
    }

    /// Attaches what a payload says of `record` to the item at this place.
    pub(crate) fn extract(
        &mut self,
        extract: Extractors,
        record: &PacketRecord,
        payload: &[u8],
        (at, attachments): (usize, &mut Attachments),
    ) {
        let mut room = true;
        let read = extract.read(record, payload, &mut |kind, value| {
            room &= attachments.push(at, kind as u8, value);
        });
        let why = match read {
            Ok(extractor) if !room => Some((extractor, Unread::TooMuch)),
            Ok(_) => None,
            Err(why) => Some(why),
        };
        if let Some(why) = why {
            *self.unread.entry(why).or_default() += 1;
        }
    }

    /// Whether `filter` leaves a frame out; if so, and it is this queue's `own`, it is counted here.
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

/// How the time of packets went on other than clocks do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockChanges {
    /// How often time was set: back, and on an interface ahead as well.
    pub set: u64,
    /// By how much the last time, nanoseconds.
    pub last_ns: i64,
    /// Packets far ahead of those around them, which moved no time.
    pub strays: u64,
}

impl ClockChanges {
    /// By how much a clock was set, in words.
    pub fn set_by(by_ns: i64) -> String {
        let seconds = by_ns.unsigned_abs() / 1_000_000_000;
        format!("{} by {seconds} s", if by_ns < 0 { "back" } else { "ahead" })
    }

    /// What that changes, in words.
    pub fn effect(by_ns: i64) -> &'static str {
        match by_ns {
            ..0 => "flows that were live then are ended, and intervals go on from the new time",
            _ => "intervals go on from the new time",
        }
    }

    /// What there is to report, in words.
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

/// What is left when the feeds of a run are closed.
#[derive(Default)]
pub struct Closed {
    /// What all queues counted.
    pub counts: FeedCounts,
    /// Packets read.
    pub packets: u64,
    /// Packets that could not be.
    pub damaged: u64,
    /// What the source had to say.
    pub notices: Vec<Notice>,
    /// Of an interface: packets that came and were lost before they could be read, by reason.
    pub lost: Option<BTreeMap<&'static str, u64>>,
    /// Of an interface: packets that came by another queue than what passed between the same addresses before, among
    /// those looked at.
    pub split: u64,
    /// What came by each interface; of files none.
    pub interfaces: Vec<InterfaceCounts>,
    /// How the time of packets went on other than clocks do.
    pub clock: ClockChanges,
    /// Why the source ended though nobody asked it to, or which interfaces were gone before the end.
    pub failure: Option<String>,
}

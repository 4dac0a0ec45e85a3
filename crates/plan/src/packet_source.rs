//! What the feeds of files and of interfaces have in common: the books that each keeps, and how they are closed.

use std::collections::BTreeMap;

use ringtap_bpf::Expression;
use ringtap_stage::Feed;
use ringtap_wire::{LinkType, NonIp, PacketRecord, selection_hash};

/// A queue of a source of packets, whose books can be closed.
pub(crate) trait PacketSource: Feed<Item = PacketRecord> + Send + Sized {
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
        for (&reason, &packets) in &other.non_ip {
            *self.non_ip.entry(reason).or_default() += packets;
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

/// What is left when the feeds of a run are closed.
#[derive(Default)]
pub(crate) struct Closed {
    pub(crate) counts: FeedCounts,
    /// Packets read.
    pub(crate) packets: u64,
    /// Packets that could not be.
    pub(crate) damaged: u64,
    pub(crate) notices: Vec<ringtap_capture::Notice>,
    /// Of an interface: packets that came and were lost before they could be read, by reason.
    pub(crate) lost: Option<BTreeMap<&'static str, u64>>,
    /// Of an interface: packets that came by another queue than what passed between the same addresses before, among
    /// those looked at.
    pub(crate) split: u64,
    /// Why the source ended though nobody asked it to.
    pub(crate) failure: Option<String>,
}

/// Whether a frame belongs to the one in `sample` that count.
pub(crate) fn selected(link: LinkType, frame: &[u8], sample: u32) -> bool {
    (u64::from(selection_hash(link, frame)) * u64::from(sample)) >> 32 == 0
}

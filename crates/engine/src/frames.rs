//! Selects a frame, decodes it and reads its payload; shared by the feeds of files and interfaces.
//!
//! ```text
//!  frame ─▶ filter expression ─▶ decode ─▶ duplicate? sample ─▶ record; after it the innermost packet, if any
//!               └ left out, counted            └ left out           └ payload ─▶ facts, attached to the record
//! ```
//!
//! Several queues may have the same frame if its owner is unknown before decoding. Then each keeps
//! its own packets, and one of them counts the frame.

use std::sync::Arc;

use ringtap_extract::{Kind, Payload, Payloads};
use ringtap_io::bpf::Expression;
use ringtap_io::capture::Frame as Captured;
use ringtap_stage::{Attachments, Burst};
use ringtap_wire::{Decoded, Decoder, Flags, LinkType, PacketRecord, Segment, selection_hash};

use crate::duplicates::Duplicates;
use crate::packet_source::FeedCounts;
use crate::source::Table;
use crate::{AppOptions, Plan, Selection, Watch};

const FIN: u8 = 1;
const SYN: u8 = 2;

/// A frame while its source lends it.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) link: LinkType,
    pub(crate) ts_ns: u64,
    pub(crate) data: &'a [u8],
    pub(crate) original_len: u32,
}

impl<'a> Frame<'a> {
    /// As a frame of a capture.
    pub(crate) fn captured(self) -> Captured<'a> {
        let Self { link, ts_ns, data, original_len } = self;
        Captured { ts_ns, link, original_len, data }
    }
}

/// The free end of a burst, into which packets are decoded.
pub(crate) struct Slots<'b> {
    records: &'b mut [PacketRecord],
    attachments: &'b mut Attachments,
    /// Packets in the burst before these slots.
    before: usize,
    used: usize,
    /// Outermost packets in these slots, and their captured bytes.
    packets: u64,
    octets: u64,
}

impl<'b> Slots<'b> {
    /// `slots` slots after the items of the burst.
    #[inline(always)]
    pub(crate) fn new(burst: &'b mut Burst<PacketRecord>, slots: usize) -> Self {
        let (items, attachments) = burst.parts_mut();
        let before = items.len();
        items.resize(before + slots, PacketRecord::EMPTY);
        let records = &mut items[before..];
        Self { records, attachments, before, used: 0, packets: 0, octets: 0 }
    }

    /// Whether there is room for a packet and its inner packet.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.used + 1 < self.records.len()
    }
}

/// A queue's decoder, its selection, and its counters.
pub(crate) struct Frames {
    pub(crate) decoder: Decoder,
    pub(crate) counts: FeedCounts,
    filter: Option<Arc<Expression>>,
    sample: u32,
    /// The number of the latest selection that was taken up.
    selection: u32,
    duplicates: Option<Box<Duplicates>>,
    payloads: Payloads,
    /// Octets of the payload of each packet that are attached to it.
    octets: usize,
    /// Whether no packet is left out as a duplicate or by sampling.
    takes_all: bool,
    /// Whether segments, payloads or octets of packets are read.
    reads: bool,
}

impl Frames {
    pub(crate) fn new<A: AppOptions>(plan: &Plan<A>, decoder: Decoder) -> Self {
        let payload_bytes = plan.app.payload_bytes() / plan.arrangement.queues as u64;
        let payloads = Payloads::new(plan.app.extractors(), payload_bytes as usize);
        let (sample, octets) = (plan.options.sample, plan.app.octets());
        let duplicates = plan.duplicates().map(Box::new);
        Self {
            decoder,
            counts: FeedCounts::default(),
            filter: plan.options.filter.clone(),
            sample,
            selection: 0,
            takes_all: duplicates.is_none() && sample <= 1,
            reads: plan.app.segments() || payloads.any() || octets > 0,
            duplicates,
            payloads,
            octets,
        }
    }

    /// Takes up the latest selection of packets.
    #[inline]
    pub(crate) fn select(&mut self, watch: &Watch) {
        if let Some(Selection { filter, sample }) = watch.selection_since(&mut self.selection) {
            (self.filter, self.sample) = (filter, sample);
            self.takes_all = self.duplicates.is_none() && sample <= 1;
        }
    }

    /// Whether the filter expression rejects a frame. If `counts`, the frame is counted.
    #[inline(always)]
    pub(crate) fn leaves_out(&mut self, frame: &Frame<'_>, counts: bool) -> bool {
        let Some(filter) = &self.filter else { return false };
        self.counts.leaves_out(filter, frame.link, frame.data, frame.original_len, counts)
    }

    /// Whether the filter expression selects a frame, without counting it.
    pub(crate) fn selects(&self, frame: &Frame<'_>) -> bool {
        let selects = |filter: &Arc<Expression>| {
            filter.selects(frame.link, frame.data, frame.original_len) == Some(true)
        };
        self.filter.as_ref().is_none_or(selects)
    }

    /// Appends the packets of a frame: the outermost, and its innermost packet, if any; there must
    /// be room for both. `owner` returns which pair hashes belong to this queue; `None`: the whole
    /// frame does. Returns true if the outermost packet was appended.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        frame: &Frame<'_>,
        owner: Option<&dyn Fn(u32) -> bool>,
        slots: &mut Slots<'_>,
    ) -> bool {
        let &Frame { link, ts_ns, data, original_len } = frame;
        let record = &mut slots.records[slots.used];
        let decoded = self.decoder.decode(link, ts_ns, data, original_len, record);
        if self.takes_all && owner.is_none() && !record.flags.contains(Flags::TUNNEL) {
            self.append(frame, decoded, slots);
            return true;
        }
        self.take_chosen(frame, decoded, owner, slots)
    }

    /// Appends the packet just decoded, and the one in its tunnel, if they are no duplicates, are in the sample, and belong
    /// to this queue.
    #[inline(never)]
    fn take_chosen(
        &mut self,
        frame: &Frame<'_>,
        decoded: Decoded,
        owner: Option<&dyn Fn(u32) -> bool>,
        slots: &mut Slots<'_>,
    ) -> bool {
        let &Frame { link, ts_ns, data, original_len } = frame;
        let record = &slots.records[slots.used];
        let mut inner = self.decoder.inner(record).copied();
        let mut own = true;
        let duplicates = self.duplicates.as_mut();
        if duplicates.is_some_and(|table| table.is_duplicate(link, ts_ns, data, original_len)) {
            own = owner.is_none_or(|owner| owner(record.pair_hash));
            self.counts.duplicates += u64::from(own);
            return false;
        }
        if owner.is_some() || self.sample > 1 {
            own = owner.is_none_or(|owner| owner(record.pair_hash));
            inner = inner.filter(|inner| owner.is_none_or(|owner| owner(inner.pair_hash)));
            // After decoding, because a fragment that is left out may have the ports of another.
            if self.sample > 1 && !selected(frame, self.sample) {
                self.counts.not_sampled += u64::from(own);
                return false;
            }
        }
        if own {
            self.append(frame, decoded, slots);
        }
        if let Some(inner) = inner {
            self.counts.inner += 1;
            let at = slots.used;
            slots.used += 1;
            slots.records[at] = inner;
            let record = &mut slots.records[at];
            self.read(frame, record, slots.before + at, slots.attachments);
        }
        own
    }

    /// Keeps the packet just decoded, counts it, and reads its payload.
    #[inline(always)]
    fn append(&mut self, frame: &Frame<'_>, decoded: Decoded, slots: &mut Slots<'_>) {
        if let Decoded::NonIp(reason) = decoded {
            *self.counts.non_ip.entry(reason).or_default() += 1;
        }
        let at = slots.used;
        slots.octets += frame.data.len() as u64;
        slots.packets += 1;
        slots.used += 1;
        self.read(frame, &mut slots.records[at], slots.before + at, slots.attachments);
    }

    /// Counts the packets in the slots. Returns the length to which the caller must cut the burst.
    #[inline(always)]
    pub(crate) fn finish(&mut self, slots: &Slots<'_>) -> usize {
        self.counts.packets += slots.packets;
        self.counts.captured_octets += slots.octets;
        slots.before + slots.used
    }

    /// Reads the payload of the packet just decoded, and adds its TCP segment.
    #[inline(always)]
    fn read(
        &mut self,
        frame: &Frame<'_>,
        record: &mut PacketRecord,
        at: usize,
        attachments: &mut Attachments,
    ) {
        if !self.reads {
            return;
        }
        let segment = self.decoder.segment(record);
        if let Some(segment) = segment
            && record.flags.contains(Flags::IPV6)
        {
            // It is the packet's first attachment, so there is room.
            let _ = attachments.push(at, Segment::KIND, &segment.bytes());
        }
        if self.octets > 0 && record.flags.contains(Flags::DATA) {
            self.attach_octets(frame, record, at, attachments);
        }
        if self.payloads.any() {
            self.look(frame, record, at, attachments);
        }
        if let Some(segment) = segment
            && record.flags.contains(Flags::IPV4)
        {
            segment.put(record);
        }
    }

    /// Attaches the first octets of the payload of the packet just decoded.
    #[inline(never)]
    fn attach_octets(
        &self,
        frame: &Frame<'_>,
        record: &PacketRecord,
        at: usize,
        attachments: &mut Attachments,
    ) {
        if let Some(payload) = self.decoder.payload(frame.link, frame.data, record) {
            let octets = &payload.bytes[..payload.bytes.len().min(self.octets)];
            // Only a segment is before it, so there is room.
            let _ = attachments.push(at, Kind::OCTETS, octets);
        }
    }

    /// Looks at the payload of the packet just decoded, and attaches the facts in it to the item at this position.
    #[inline(always)]
    fn look(
        &mut self,
        frame: &Frame<'_>,
        record: &PacketRecord,
        at: usize,
        attachments: &mut Attachments,
    ) {
        // Without data it matters if a connection begins or ends.
        let may = record.flags.0 & (Flags::DATA.0 | Flags::FRAGMENT.0) != 0
            || record.tcp_flags & (SYN | FIN) != 0;
        if may && self.may_read(frame, record) {
            self.extract(frame, record, at, attachments);
        }
    }

    /// Whether a packet with data, a fragment, a SYN or a FIN may be of interest.
    #[inline(never)]
    fn may_read(&self, frame: &Frame<'_>, record: &PacketRecord) -> bool {
        if let Some((at, end)) = self.decoder.plain_data() {
            let data = &frame.data[..end.min(frame.data.len())];
            let sequence = || self.decoder.plain_sequence(data);
            return self.payloads.may_read(record, data, at, sequence);
        }
        if record.flags.contains(Flags::FRAGMENT) {
            return true;
        }
        let payload = self.decoder.payload(frame.link, frame.data, record);
        payload.is_some_and(|payload| {
            let sequence = || Some(payload.sequence);
            self.payloads.may_read(record, payload.bytes, 0, sequence)
        })
    }

    /// Reads the payload of the packet just decoded, if it is of interest.
    #[inline(never)]
    fn extract(
        &mut self,
        frame: &Frame<'_>,
        record: &PacketRecord,
        at: usize,
        attachments: &mut Attachments,
    ) {
        let mut any = false;
        let mut found = |kind, value: &[u8]| {
            any |= kind == Kind::Protocol;
            attachments.push(at, kind as u8, value)
        };
        // Of a sample the other fragments are missing.
        let is_part = record.flags.contains(Flags::FRAGMENT) && self.sample == 1;
        if is_part && let Some(part) = self.decoder.part(frame.link, frame.data, record) {
            self.payloads.read_part(record, &part, &mut found);
        } else {
            let payload = self.decoder.payload(frame.link, frame.data, record);
            let Some(ringtap_wire::Payload { header, bytes, sequence }) = payload else { return };
            self.payloads.read_syn(&Payload { record, bytes: header, sequence }, &mut found);
            self.payloads.read(&Payload { record, bytes, sequence }, &mut found);
        }
        let is_measured = any && self.decoder.segment(record).is_some();
        if let Some(began_ns) = self.payloads.began_ns().filter(|_| is_measured) {
            // Without room, the message seems to begin in this packet.
            let _ = attachments.push(at, Kind::BEGAN, &began_ns.to_le_bytes());
        }
    }

    /// Begins the next turn of a kind of table.
    pub(crate) fn turn(&mut self, table: Table) {
        match table {
            Table::Payloads => self.payloads.turn(),
            Table::Duplicates => _ = self.duplicates.as_mut().map(|table| table.turn()),
        }
    }

    /// Publishes the counters of decoding and of payloads.
    pub(crate) fn publish(&self, watch: &Watch, queue: usize) {
        watch.fragments_forgotten.set(queue, self.decoder.fragments_forgotten());
        if let Some(table) = &self.duplicates {
            watch.duplicates.set(queue, self.counts.duplicates);
            watch.duplicates_evicted.set(queue, table.evicted);
        }
        let (messages, unread) = self.payloads.totals();
        watch.messages.set(queue, messages);
        for (gauge, payloads) in watch.unread_payloads.iter().zip(unread) {
            gauge.set(queue, payloads);
        }
    }

    /// Ends reading: the counters, with what is incomplete.
    pub(crate) fn close(&mut self) -> FeedCounts {
        let fragments_forgotten = self.decoder.fragments_forgotten();
        FeedCounts {
            payloads: self.payloads.counts(true).clone(),
            fragments_forgotten,
            duplicates_evicted: self.duplicates.as_ref().map_or(0, |table| table.evicted),
            ..std::mem::take(&mut self.counts)
        }
    }
}

/// Whether the hash sample contains a frame.
fn selected(frame: &Frame<'_>, sample: u32) -> bool {
    let hash = selection_hash(frame.link, frame.data, frame.original_len);
    (u64::from(hash) * u64::from(sample)) >> 32 == 0
}

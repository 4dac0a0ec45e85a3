//! The performance of a TCP connection, from sequence and acknowledgment numbers: round-trip times, retransmissions,
//! segments out of order, duplicate acknowledgments, zero windows.
//!
//! ```text
//!  initiator       probe           responder
//!     │ SYN ───────────────────────▶ │   ┐ handshake, round-trip time of the responder
//!     │ ◀─────────────────── SYN-ACK │   ┘ ┐ handshake, round-trip time of the initiator
//!     │ ACK ───────────────────────▶ │     ┘
//!     │ data up to n ──────────────▶ │   ┐ a sample: the acknowledgment of exactly n
//!     │ ◀──────────────────── ACK n  │   ┘
//! ```
//!
//! One segment of each direction is timed at once, and a retransmission cancels that (Karn's algorithm, RFC 6298,
//! section 3). Sequence numbers are compared modulo 2^32 (RFC 9293, section 3.4). Classification needs the highest
//! sequence number of each direction and the gaps below it: what fills a gap was not seen before.
//!
//! ```text
//! lines    | sequence numbers of both directions | …       64 bytes each: what each packet needs
//! counts   | times, counts, gaps | …                       96 bytes each, for connections with any of these
//! ```
//!
//! Invariant: the state has a fixed size; it depends on the flow's packets in their order alone.

use ringtap_base::prefetch;
use ringtap_wire::{PacketRecord, Segment};

use crate::fields::Fields;
use crate::flags::{ACK, FIN, RST, SYN};
use crate::pool::Pool;

/// Duplicate acknowledgments that ask for a segment; if it then fills a gap, it was sent again.
const ASKED: u8 = 2;
/// How late a segment out of order may be if the round-trip time of the handshake is unknown.
const LATE_NS: u64 = 3_000_000;
/// Gaps that are known in each direction.
const GAPS: usize = 2;
/// More connections than this have 12 MB of counts. Prefetching fewer takes more time than it saves.
const MANY: usize = 1 << 17;
/// Sequence numbers before the first one seen that may have been sent before the observation began.
const EARLIER: u32 = 1 << 30;
/// A round-trip time above this is none: clocks and captures may have steps.
const RTT_MAX_NS: u64 = 600_000_000_000;
/// No handshake time.
const UNKNOWN: u32 = u32::MAX;

/// Bits of a direction: the next sequence number is known.
const SENT: u8 = 1;
/// The acknowledgment number and the window are known.
const ACKED: u8 = 1 << 1;
/// A segment is timed.
const TIMED: u8 = 1 << 2;
/// The timed segment has a SYN.
const TIMED_SYN: u8 = 1 << 3;
/// The latest segment was a keep-alive.
const KEEP_ALIVE: u8 = 1 << 4;
/// A part of the flow reported the round-trip time of the handshake.
const REPORTED: u8 = 1 << 5;

/// The sender of one direction.
#[derive(Clone, Copy, Debug)]
struct Sender {
    /// The sequence number behind the highest one sent.
    next: u32,
    /// The latest acknowledgment number.
    ack: u32,
    /// Time of the segment that ends at `next`; see [`coarse`].
    next_at: u32,
    /// End and time of the timed segment; the time in nanoseconds, lower half first.
    timed_end: u32,
    timed: [u32; 2],
    /// The latest window.
    window: u16,
    /// Duplicates of the latest acknowledgment.
    repeats: u8,
    bits: u8,
}

impl Sender {
    const UNKNOWN: Self = Self {
        next: 0,
        ack: 0,
        next_at: 0,
        timed_end: 0,
        timed: [0; 2],
        window: 0,
        repeats: 0,
        bits: 0,
    };
}

/// What is counted for one direction.
#[derive(Clone, Copy, Debug)]
struct Counts {
    rtt_ns: u64,
    rtt_count: u32,
    handshake_us: u32,
    retransmissions: u32,
    out_of_order: u32,
    duplicate_acks: u32,
    zero_windows: u32,
    /// Sequence numbers that were skipped, as start and end; empty ones are equal.
    gaps: [[u32; 2]; GAPS],
}

impl Counts {
    const NONE: Self = Self {
        rtt_ns: 0,
        rtt_count: 0,
        handshake_us: UNKNOWN,
        retransmissions: 0,
        out_of_order: 0,
        duplicate_acks: 0,
        zero_windows: 0,
        gaps: [[0; 2]; GAPS],
    };
}

/// What each packet of a flow needs, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    senders: [Sender; 2],
    /// One more than the position of the flow's counts; 0: it has none.
    counts: u32,
}

impl Line {
    const EMPTY: Self = Self { senders: [Sender::UNKNOWN; 2], counts: 0 };
}

const _: () = assert!(size_of::<Line>() == 64);

/// Most bytes that a flow takes more if its performance is measured.
pub const TCP_BYTES: u64 = size_of::<Line>() as u64 + Pool::<[Counts; 2]>::BYTES;

/// A segment among those seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Whether it has sequence numbers that were not seen before.
    pub(crate) is_new: bool,
    /// Whether segments are missing: before it, or of those that it acknowledges.
    pub(crate) is_behind_gap: bool,
    /// Whether another connection of the same ends begins with it.
    pub(crate) begins: bool,
}

impl News {
    const NEW: Self = Self { is_new: true, is_behind_gap: false, begins: false };
}

/// The connections of a shelf, at the positions of their flows.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    lines: Vec<Line>,
    counts: Pool<[Counts; 2]>,
}

/// The performance of a TCP connection. Index 0 of each pair is the initiator's direction, index 1 the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TcpPerformance {
    /// Microseconds from the SYN of this direction, or its SYN-ACK, to the answer.
    pub handshake_us: [Option<u32>; 2],
    /// Sum of the round-trip times from a segment of this direction to its acknowledgment, nanoseconds.
    pub rtt_ns: [u64; 2],
    /// Number of these round-trip times.
    pub rtt_count: [u32; 2],
    /// Segments that were sent again.
    pub retransmissions: [u32; 2],
    /// Segments that arrived later than one behind them, and were not sent again.
    pub out_of_order: [u32; 2],
    /// Acknowledgments that repeat the one before.
    pub duplicate_acks: [u32; 2],
    /// Segments that announce a window of zero.
    pub zero_windows: [u32; 2],
    /// Octets of data, those that were sent again included, without those of segments with RST.
    pub octets: [u64; 2],
}

impl TcpPerformance {
    /// Bytes of [`TcpPerformance::canonical`].
    pub const CANONICAL_LEN: usize = 80;

    /// The mean round-trip time from this direction's segments to their acknowledgments, microseconds, rounded down.
    pub fn rtt_us(&self, direction: usize) -> Option<u64> {
        self.rtt_ns[direction].checked_div(u64::from(self.rtt_count[direction])).map(|ns| ns / 1000)
    }

    /// The round-trip time of the handshake, from SYN to the acknowledgment of the SYN-ACK, microseconds.
    pub fn handshake_total_us(&self) -> Option<u64> {
        let [there, back] = self.handshake_us;
        Some(u64::from(there?) + u64::from(back?))
    }

    /// The performance of this part of a connection and the next one together.
    #[must_use]
    pub fn with(self, later: Self) -> Self {
        let sums =
            |own: [u32; 2], more: [u32; 2]| [0, 1].map(|side| own[side].saturating_add(more[side]));
        Self {
            handshake_us: [0, 1].map(|side| self.handshake_us[side].or(later.handshake_us[side])),
            rtt_ns: [0, 1].map(|side| self.rtt_ns[side].saturating_add(later.rtt_ns[side])),
            rtt_count: sums(self.rtt_count, later.rtt_count),
            retransmissions: sums(self.retransmissions, later.retransmissions),
            out_of_order: sums(self.out_of_order, later.out_of_order),
            duplicate_acks: sums(self.duplicate_acks, later.duplicate_acks),
            zero_windows: sums(self.zero_windows, later.zero_windows),
            octets: [0, 1].map(|side| self.octets[side].saturating_add(later.octets[side])),
        }
    }

    /// A fixed byte string for each value, for digests.
    pub fn canonical(&self) -> [u8; Self::CANONICAL_LEN] {
        let mut out = [0; Self::CANONICAL_LEN];
        let (times, rest) = out.split_at_mut(16);
        let (counts, octets) = rest.split_at_mut(48);
        for (place, own) in octets.chunks_exact_mut(8).zip(self.octets) {
            place.copy_from_slice(&own.to_le_bytes());
        }
        for (place, ns) in times.chunks_exact_mut(8).zip(self.rtt_ns) {
            place.copy_from_slice(&ns.to_le_bytes());
        }
        let handshake = self.handshake_us.map(|us| us.unwrap_or(UNKNOWN));
        let numbers = [
            handshake,
            self.rtt_count,
            self.retransmissions,
            self.out_of_order,
            self.duplicate_acks,
            self.zero_windows,
        ];
        for (place, number) in counts.chunks_exact_mut(4).zip(numbers.as_flattened()) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// The values of these bytes, as [`TcpPerformance::canonical`] returned them.
    pub fn from_canonical(bytes: &[u8; Self::CANONICAL_LEN]) -> Self {
        let mut bytes = Fields(bytes);
        let rtt_ns = [bytes.take(), bytes.take()].map(u64::from_le_bytes);
        let mut pair = || [bytes.take(), bytes.take()].map(u32::from_le_bytes);
        Self {
            handshake_us: pair().map(|us| (us != UNKNOWN).then_some(us)),
            rtt_ns,
            rtt_count: pair(),
            retransmissions: pair(),
            out_of_order: pair(),
            duplicate_acks: pair(),
            zero_windows: pair(),
            octets: [bytes.take(), bytes.take()].map(u64::from_le_bytes),
        }
    }
}

/// Whether sequence number `a` is before `b`.
#[inline(always)]
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// A time in units of 1,024 ns, modulo 73 minutes; only short distances are measured with it.
#[inline(always)]
fn coarse(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// The time since `at`, nanoseconds.
#[inline(always)]
fn since(at: u32, ns: u64) -> u64 {
    u64::from(coarse(ns).wrapping_sub(at)) << 10
}

/// Bytes of a stored connection.
pub(crate) const SAVED_CONNECTION: usize = 2 * 28 + 1 + 2 * 48;

impl Connections {
    /// The bytes of a connection; zeros if it is not measured.
    pub(crate) fn saved(&self, at: usize) -> [u8; SAVED_CONNECTION] {
        let mut out = [0; SAVED_CONNECTION];
        let Some(line) = self.lines.get(at) else { return out };
        let counts = self.counts.get(line.counts);
        let (senders, rest) = out.split_at_mut(56);
        for (own, place) in line.senders.iter().zip(senders.chunks_exact_mut(28)) {
            let Sender { next, ack, next_at, timed_end, timed: [low, high], .. } = *own;
            let words = [next, ack, next_at, timed_end, low, high];
            for (word, place) in words.iter().zip(place.chunks_exact_mut(4)) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            place[24..26].copy_from_slice(&own.window.to_le_bytes());
            (place[26], place[27]) = (own.repeats, own.bits);
        }
        rest[0] = u8::from(counts.is_some());
        for (own, place) in counts.into_iter().flatten().zip(rest[1..].chunks_exact_mut(48)) {
            place[..8].copy_from_slice(&own.rtt_ns.to_le_bytes());
            let numbers = [own.rtt_count, own.handshake_us, own.retransmissions, own.out_of_order];
            let more = [own.duplicate_acks, own.zero_windows];
            let words = numbers.iter().chain(&more).chain(own.gaps.as_flattened());
            for (word, place) in words.zip(place[8..].chunks_exact_mut(4)) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        out
    }

    /// Adds a flow with a connection of [`Connections::saved`].
    pub(crate) fn push_saved(&mut self, saved: &[u8; SAVED_CONNECTION]) {
        let mut bytes = Fields(saved);
        let mut line = Line::EMPTY;
        for own in &mut line.senders {
            let mut word = || u32::from_le_bytes(bytes.take());
            let [next, ack, next_at, timed_end] = [word(), word(), word(), word()];
            let timed = [word(), word()];
            let window = u16::from_le_bytes(bytes.take());
            let [repeats, bits] = bytes.take();
            *own = Sender { next, ack, next_at, timed_end, timed, window, repeats, bits };
        }
        let [has_counts] = bytes.take();
        if has_counts > 0 {
            let counts = [(); 2].map(|()| {
                let rtt_ns = u64::from_le_bytes(bytes.take());
                let mut word = || u32::from_le_bytes(bytes.take());
                Counts {
                    rtt_ns,
                    rtt_count: word(),
                    handshake_us: word(),
                    retransmissions: word(),
                    out_of_order: word(),
                    duplicate_acks: word(),
                    zero_windows: word(),
                    gaps: [(); GAPS].map(|()| [word(), word()]),
                }
            });
            line.counts = self.counts.add(counts);
        }
        self.lines.push(line);
    }

    /// Reserves address space for this number of flows.
    pub(crate) fn reserve(&mut self, flows: usize) {
        // If the system does not reserve that much, the table grows when needed.
        let _ = self.lines.try_reserve_exact(flows);
    }

    /// Adds a flow.
    #[inline(always)]
    pub(crate) fn push(&mut self) {
        self.lines.push(Line::EMPTY);
    }

    /// Removes a flow, if flows are measured; the last one takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, at: usize) {
        if at < self.lines.len() {
            self.release(at);
            self.lines.swap_remove(at);
        }
    }

    /// Removes all flows from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        (len..self.lines.len()).for_each(|at| self.release(at));
        self.lines.truncate(len);
    }

    /// Gives the counts of a flow back.
    #[inline(always)]
    fn release(&mut self, at: usize) {
        self.counts.release(&mut self.lines[at].counts);
    }

    /// A flow has ended and another one, or its next part (`cut`), takes its place. The next part knows the sequence
    /// numbers, and counts from zero.
    pub(crate) fn restart(&mut self, at: usize, cut: bool) {
        if at >= self.lines.len() {
            return;
        }
        if !cut {
            self.release(at);
            self.lines[at] = Line::EMPTY;
        } else if let Some(counts) = self.counts.get_mut(self.lines[at].counts) {
            *counts = counts.map(|own| Counts { gaps: own.gaps, ..Counts::NONE });
            self.lines[at].senders.iter_mut().for_each(|sender| sender.bits &= !REPORTED);
        }
    }

    /// A part of a flow was reported. The next part knows the sequence numbers and the round-trip time of the handshake,
    /// which it does not report again.
    pub(crate) fn cut(&mut self, at: usize) {
        let Some(line) = self.lines.get_mut(at) else { return };
        let Some(counts) = self.counts.get_mut(line.counts) else { return };
        for (own, sender) in counts.iter_mut().zip(&mut line.senders) {
            let Counts { gaps, handshake_us, .. } = *own;
            *own = Counts { gaps, handshake_us, ..Counts::NONE };
            if handshake_us != UNKNOWN {
                sender.bits |= REPORTED;
            }
        }
    }

    /// Prefetches what the next packet of a flow needs.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(line) = self.lines.get(at) {
            prefetch(line);
        }
    }

    /// Whether there are more counts than caches hold.
    #[inline(always)]
    pub(crate) fn has_many_counts(&self) -> bool {
        self.counts.len() > MANY
    }

    /// Prefetches the counts of a flow with a timed segment: the next packet may end its time.
    #[inline(always)]
    pub(crate) fn prefetch_behind(&self, at: usize) {
        if self.has_many_counts()
            && let Some(line) = self.lines.get(at)
            && line.senders.iter().any(|sender| sender.bits & TIMED != 0)
            && let Some(counts) = self.counts.get(line.counts)
        {
            counts.iter().for_each(prefetch);
        }
    }

    /// Handles a segment of a flow in this direction. Returns what is new in it.
    #[inline(always)]
    pub(crate) fn on_segment(
        &mut self,
        at: usize,
        packet: &PacketRecord,
        segment: &Segment,
        direction: usize,
    ) -> News {
        let Self { lines, counts } = self;
        match lines.get_mut(at) {
            Some(Line { senders, counts: own }) => {
                Tcp { senders, own, counts }.on_segment(packet, segment, direction)
            }
            None => News::default(),
        }
    }

    /// The round-trip time of the handshake from the observer to the receiver of a direction, microseconds. Unlike a mean so
    /// far, it does not depend on cuts.
    pub(crate) fn rtt_us(&self, at: usize, direction: usize) -> Option<u64> {
        let own = &self.counts.get(self.lines.get(at)?.counts)?[direction & 1];
        (own.handshake_us != UNKNOWN).then_some(own.handshake_us.into())
    }

    /// The counts of a flow for its record, without octets; `None` if no segment was read.
    pub(crate) fn performance(&self, at: usize) -> Option<TcpPerformance> {
        let Line { senders: [sender, peer], counts } = self.lines.get(at)?;
        if (sender.bits | peer.bits) & (SENT | ACKED) == 0 {
            return None;
        }
        let [own, back] = self.counts.get(*counts).copied().unwrap_or([Counts::NONE; 2]);
        let time =
            |us, sender: &Sender| (us != UNKNOWN && sender.bits & REPORTED == 0).then_some(us);
        Some(TcpPerformance {
            handshake_us: [time(own.handshake_us, sender), time(back.handshake_us, peer)],
            rtt_ns: [own.rtt_ns, back.rtt_ns],
            rtt_count: [own.rtt_count, back.rtt_count],
            retransmissions: [own.retransmissions, back.retransmissions],
            out_of_order: [own.out_of_order, back.out_of_order],
            duplicate_acks: [own.duplicate_acks, back.duplicate_acks],
            zero_windows: [own.zero_windows, back.zero_windows],
            octets: [0; 2],
        })
    }
}

/// The connection of a flow.
struct Tcp<'a> {
    senders: &'a mut [Sender; 2],
    /// As in [`Line`].
    own: &'a mut u32,
    counts: &'a mut Pool<[Counts; 2]>,
}

impl Tcp<'_> {
    /// The counts of both directions, which exist from the first call on.
    #[inline(always)]
    fn counts(&mut self) -> &mut [Counts; 2] {
        if *self.own == 0 {
            self.begin_counts();
        }
        &mut self.counts[*self.own]
    }

    #[cold]
    fn begin_counts(&mut self) {
        *self.own = self.counts.add([Counts::NONE; 2]);
    }

    /// Handles a segment of this direction.
    #[inline]
    fn on_segment(&mut self, packet: &PacketRecord, segment: &Segment, direction: usize) -> News {
        let side = direction & 1;
        let (flags, ns) = (packet.tcp_flags, packet.ts_ns);
        let Segment { sequence, acknowledgment, data_len, window } = *segment;
        let begins = flags & SYN != 0 && self.on_syn(flags, sequence, side);
        let [mut own, peer] = [self.senders[side], self.senders[side ^ 1]];

        // SYN and FIN take a sequence number each.
        let len = data_len + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let end = sequence.wrapping_add(len);
        let in_order = own.bits & SENT != 0 && sequence == own.next;
        let mut bits = own.bits & !KEEP_ALIVE;
        let mut probes = false;

        if flags & (SYN | FIN | RST) == 0 {
            if window == 0 {
                self.counts()[side].zero_windows += 1;
            }
            // A keep-alive repeats the last byte, or begins there without data (RFC 9293, section 3.8.4); a probe sends
            // one new byte into a window of zero (section 3.8.6.1), which is sent again later.
            if data_len <= 1 && own.bits & SENT != 0 && sequence == own.next.wrapping_sub(1) {
                bits |= KEEP_ALIVE;
                // Or the last byte was sent again.
                if data_len == 1 && own.bits & TIMED != 0 && own.timed_end == end {
                    bits &= !(TIMED | TIMED_SYN);
                }
            }
            probes = data_len == 1 && in_order && peer.bits & ACKED != 0 && peer.window == 0;
            let repeats = data_len == 0
                && in_order
                && flags & ACK != 0
                && own.bits & ACKED != 0
                && (window, acknowledgment) == (own.window, own.ack);
            // The answer to a keep-alive repeats an acknowledgment for another reason.
            if repeats && window != 0 && peer.bits & KEEP_ALIVE == 0 {
                self.counts()[side].duplicate_acks += 1;
                own.repeats = own.repeats.saturating_add(1);
            }
        }
        if flags & ACK != 0 {
            if acknowledgment != own.ack {
                own.repeats = 0;
            }
            if peer.bits & TIMED != 0 && !before(acknowledgment, peer.timed_end) {
                self.stop(side ^ 1, acknowledgment, flags, ns);
            }
        }
        own.bits = bits;
        self.senders[side] = own;
        let mut news = News::default();
        if flags & RST == 0 && bits & KEEP_ALIVE == 0 && !probes {
            let acknowledged = data_len > 0
                && peer.bits & ACKED != 0
                && !before(peer.ack, sequence.wrapping_add(data_len));
            if in_order && !acknowledged {
                self.senders[side].advance(len, end, flags, ns);
                news = News::NEW;
            } else if bits & SENT == 0 {
                // The peer has acknowledged less than what precedes it.
                let is_behind_gap = peer.bits & ACKED != 0 && before(peer.ack, sequence);
                self.first(segment, len, flags, ns, side);
                news = News { is_behind_gap, ..News::NEW };
            } else {
                news = self.off_order(segment, (len, acknowledged), flags, ns, side);
            }
        }
        let own = &mut self.senders[side];
        if flags & ACK != 0 {
            (own.ack, own.window) = (acknowledgment, window);
            own.bits |= ACKED;
            news.is_behind_gap |= peer.bits & SENT != 0 && before(peer.next, acknowledgment);
        }
        news.begins = begins;
        news
    }

    /// Ends the timing of a sender's segment, which this acknowledgment covers. One beyond its end answers a later
    /// segment, and gives no sample.
    #[inline]
    fn stop(&mut self, side: usize, acknowledgment: u32, flags: u8, ns: u64) {
        let sender = &mut self.senders[side];
        let of_syn = sender.bits & TIMED_SYN != 0;
        sender.bits &= !(TIMED | TIMED_SYN);
        let usable = flags & RST == 0 && acknowledgment == sender.timed_end;
        let [low, high] = sender.timed.map(u64::from);
        let rtt_ns = ns.checked_sub(high << 32 | low);
        let Some(rtt_ns) = rtt_ns.filter(|&rtt_ns| usable && rtt_ns <= RTT_MAX_NS) else { return };
        let counts = &mut self.counts()[side];
        counts.rtt_ns = counts.rtt_ns.saturating_add(rtt_ns);
        counts.rtt_count = counts.rtt_count.saturating_add(1);
        if of_syn {
            counts.handshake_us = u32::try_from(rtt_ns / 1000).unwrap_or(UNKNOWN);
            self.senders[side].bits &= !REPORTED;
        }
    }

    /// A SYN that does not repeat the latest one begins another connection: what is known of the sequence numbers is
    /// void, that of both directions if the SYN is not an answer. Counts are kept. Returns whether it is of both.
    #[cold]
    fn on_syn(&mut self, flags: u8, sequence: u32, side: usize) -> bool {
        let own = self.senders[side];
        if own.bits & SENT == 0 || own.next == sequence.wrapping_add(1) {
            return false;
        }
        for side in [side, side ^ 1].iter().take(if flags & ACK == 0 { 2 } else { 1 }) {
            self.senders[*side] = Sender::UNKNOWN;
            if *self.own > 0 {
                self.counts()[*side].gaps = Counts::NONE.gaps;
            }
        }
        flags & ACK == 0
    }

    /// The first segment of a direction. Without a SYN there may be earlier ones that were not seen.
    #[cold]
    fn first(&mut self, segment: &Segment, len: u32, flags: u8, ns: u64, side: usize) {
        let Segment { sequence, .. } = *segment;
        if flags & SYN == 0 {
            self.counts()[side].skip(sequence.wrapping_sub(EARLIER), sequence);
        }
        self.senders[side].advance(len, sequence.wrapping_add(len), flags, ns);
    }

    /// A segment of `len` sequence numbers that does not begin where the highest one ended, or whose data the peer has
    /// acknowledged before.
    #[cold]
    fn off_order(
        &mut self,
        segment: &Segment,
        (len, acknowledged): (u32, bool),
        flags: u8,
        ns: u64,
        side: usize,
    ) -> News {
        let handshake = self.handshake_ns();
        let peer = self.senders[side ^ 1];
        let mut own = self.senders[side];
        let counts = &mut self.counts()[side];
        let Segment { sequence, data_len, .. } = *segment;
        let end = sequence.wrapping_add(len);
        if !before(sequence, own.next) {
            counts.retransmissions += u32::from(acknowledged);
            if sequence != own.next {
                counts.skip(own.next, sequence);
            }
            let is_behind_gap = sequence != own.next;
            own.advance(len, end, flags, ns);
            self.senders[side] = own;
            return News { is_new: !acknowledged, is_behind_gap, ..News::default() };
        }
        if len == 0 {
            return News::default();
        }
        // More than a probe's byte from the byte of a probe: new data.
        let resumes = data_len > 1 && sequence == own.next.wrapping_sub(1);
        let missing = counts.fill(sequence, end);
        if acknowledged || !resumes {
            let asked = peer.bits & ACKED != 0 && peer.repeats >= ASKED && peer.ack == sequence;
            let late = since(own.next_at, ns) < handshake.unwrap_or(LATE_NS);
            if missing && late && !asked && !acknowledged {
                counts.out_of_order += 1;
            } else {
                counts.retransmissions += 1;
            }
        }
        // It is unknown which of the two will be acknowledged; of a SYN probably the latest.
        if own.bits & TIMED != 0 && before(sequence, own.timed_end) {
            own.bits &= !(TIMED | TIMED_SYN);
            if flags & SYN != 0 {
                own.time(end, flags, ns);
            }
        }
        let is_new = !acknowledged && (missing || before(own.next, end));
        if before(own.next, end) {
            own.advance(len, end, flags, ns);
        }
        self.senders[side] = own;
        News { is_new, ..News::default() }
    }

    fn handshake_ns(&mut self) -> Option<u64> {
        let [there, back] = self.counts().map(|own| own.handshake_us);
        (there != UNKNOWN && back != UNKNOWN).then(|| (u64::from(there) + u64::from(back)) * 1000)
    }
}

impl Sender {
    /// The highest sequence number is now before `end`; times this segment of `len` sequence numbers if none is timed.
    #[inline(always)]
    fn advance(&mut self, len: u32, end: u32, flags: u8, ns: u64) {
        (self.next, self.bits) = (end, self.bits | SENT);
        if len > 0 {
            self.next_at = coarse(ns);
        }
        if len > 0 && self.bits & TIMED == 0 {
            self.time(end, flags, ns);
        }
    }

    /// Times a segment.
    #[inline(always)]
    fn time(&mut self, end: u32, flags: u8, ns: u64) {
        (self.timed_end, self.timed) = (end, [ns as u32, (ns >> 32) as u32]);
        self.bits |= TIMED | if flags & SYN != 0 { TIMED_SYN } else { 0 };
    }
}

impl Counts {
    /// Notes the gap before a segment. Without a free place it is joined to the last gap, so that segments between the
    /// two seem to fill it.
    fn skip(&mut self, start: u32, end: u32) {
        match self.gaps.iter_mut().find(|gap| gap[0] == gap[1]) {
            Some(free) => *free = [start, end],
            None => self.gaps[GAPS - 1][1] = end,
        }
    }

    /// Whether a segment begins in a gap, of which it fills that part.
    fn fill(&mut self, sequence: u32, end: u32) -> bool {
        for place in 0..GAPS {
            let [start, stop] = self.gaps[place];
            if before(sequence, start) || !before(sequence, stop) {
                continue;
            }
            if sequence == start {
                self.gaps[place] = [if before(end, stop) { end } else { stop }, stop];
                return true;
            }
            // The rest of a gap needs a place; without one the whole gap stays.
            let free = self.gaps.iter().any(|gap| gap[0] == gap[1]);
            if !before(end, stop) {
                self.gaps[place] = [start, sequence];
            } else if free {
                self.gaps[place] = [start, sequence];
                self.skip(end, stop);
            }
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests;

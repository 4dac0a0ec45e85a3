//! The connections of a shelf. Many consist of a SYN and at most its refusal, as in scans and floods; these take eight
//! bytes.
//!
//! ```text
//! places   | state, sequence number | …                    8 bytes each, at the positions of the flows
//!             └ nothing · a SYN · a refused SYN · a line
//! lines    | sequence numbers of both directions | …       64 bytes each: what each packet needs
//! counts   | times, counts, gaps | …                       96 bytes each, for connections with any of these
//! ```
//!
//! Invariant: a flow with a SYN alone began at the time of that SYN.

use ringtap_base::prefetch;
use ringtap_wire::{PacketRecord, Segment};

use super::slab::Slab;
use super::{ACKED, Counts, SENT, Sender, Tcp, TcpPerformance};
use crate::entry::{ACK, FIN, RST, SYN};

/// What each packet of a flow needs, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    senders: [Sender; 2],
    /// As in [`Tcp`].
    counts: u32,
}

impl Line {
    const EMPTY: Self = Self { senders: [Sender::UNKNOWN; 2], counts: 0 };
}

const _: () = assert!(size_of::<Line>() == 64);

/// Most bytes that a flow takes more if its performance is measured; the last are those of free positions.
pub const TCP_BYTES: u64 =
    (size_of::<Place>() + size_of::<Line>() + size_of::<[Counts; 2]>() + 2 * size_of::<u32>())
        as u64;

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// One of the constants below, or [`Place::LINE`] and the position of a line.
    state: u32,
    /// The sequence number of the SYN, if there is no line.
    sequence: u32,
}

impl Place {
    /// No segment was read.
    const NOTHING: u32 = 0;
    /// The initiator sent a SYN.
    const SYN: u32 = 1;
    /// And the responder refused it.
    const REFUSED: u32 = 2;
    const LINE: u32 = 3;

    const EMPTY: Self = Self { state: Self::NOTHING, sequence: 0 };

    /// The position of its line.
    #[inline(always)]
    fn line(self) -> Option<u32> {
        self.state.checked_sub(Self::LINE)
    }

    /// Handles a segment if it is the SYN of a flow that begins at `first_ns`, or the refusal of that.
    #[inline]
    fn take(
        &mut self,
        first_ns: u64,
        packet: &PacketRecord,
        segment: &Segment,
        direction: usize,
    ) -> bool {
        let flags = packet.tcp_flags & (SYN | FIN | RST | ACK);
        let Segment { sequence, acknowledgment, data_len, window } = *segment;
        match (self.state, flags, direction & 1) {
            (Self::NOTHING, SYN, 0) if data_len == 0 && packet.ts_ns == first_ns => {
                *self = Self { state: Self::SYN, sequence };
                true
            }
            (Self::SYN, REFUSAL, 1)
                if data_len == 0
                    && window == 0
                    && acknowledgment == self.sequence.wrapping_add(1) =>
            {
                self.state = Self::REFUSED;
                true
            }
            _ => false,
        }
    }

    /// The line of the segments so far, if it has none.
    fn expanded(self, first_ns: u64) -> Line {
        let mut line = Line::EMPTY;
        let [own, peer] = &mut line.senders;
        let next = self.sequence.wrapping_add(1);
        if self.state != Self::NOTHING {
            own.advance(1, next, SYN, first_ns);
        }
        if self.state == Self::REFUSED {
            own.bits = SENT;
            (peer.ack, peer.bits) = (next, ACKED);
        }
        line
    }
}

const REFUSAL: u8 = RST | ACK;

/// The connections of a shelf, at the positions of their flows.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    places: Vec<Place>,
    lines: Slab<Line>,
    counts: Slab<[Counts; 2]>,
}

impl Connections {
    /// Reserves address space for this number of flows.
    pub(crate) fn reserve(&mut self, flows: usize) {
        // If the system does not reserve that much, the table grows when needed.
        let _ = self.places.try_reserve_exact(flows);
        self.lines.reserve(flows);
    }

    /// Adds a flow.
    #[inline(always)]
    pub(crate) fn push(&mut self) {
        self.places.push(Place::EMPTY);
    }

    /// Removes a flow, if flows are measured; the last one takes its place.
    #[inline(always)]
    pub(crate) fn swap_remove(&mut self, at: usize) {
        if at < self.places.len() {
            self.release(at);
            self.places.swap_remove(at);
        }
    }

    /// Removes all flows from this position on.
    pub(crate) fn truncate(&mut self, len: usize) {
        (len..self.places.len()).for_each(|at| self.release(at));
        self.places.truncate(len);
    }

    /// Gives the line and the counts of a flow back.
    #[inline(always)]
    fn release(&mut self, at: usize) {
        if let Some(line) = self.places[at].line() {
            if let Some(counts) = self.lines.row_mut(line).counts.checked_sub(1) {
                self.counts.remove(counts);
            }
            self.lines.remove(line);
        }
    }

    /// A flow that began at `first_ns` has ended and another one, or its next part (`cut`), takes its place. The next
    /// part knows the sequence numbers, and counts from zero.
    pub(crate) fn restart(&mut self, at: usize, first_ns: u64, cut: bool) {
        if at >= self.places.len() {
            return;
        }
        if !cut {
            self.release(at);
            self.places[at] = Place::EMPTY;
            return;
        }
        self.expand(at, first_ns);
        if let Some(line) = self.places[at].line()
            && let Some(counts) = self.lines.row_mut(line).counts.checked_sub(1)
        {
            let counts = self.counts.row_mut(counts);
            *counts = counts.map(|own| Counts { gaps: own.gaps, ..Counts::NONE });
        }
    }

    /// Gives a flow with segments a line, because the time of its beginning changes from `first_ns` to another one.
    pub(crate) fn expand(&mut self, at: usize, first_ns: u64) {
        if let Some(place) = self.places.get_mut(at)
            && place.state != Place::NOTHING
            && place.line().is_none()
        {
            place.state = Place::LINE + self.lines.add(place.expanded(first_ns));
        }
    }

    /// Prefetches the state of a flow.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(place) = self.places.get(at) {
            prefetch(place);
        }
    }

    /// Prefetches the line of a flow, whose state should be cached.
    #[inline(always)]
    pub(crate) fn prefetch_line(&self, at: usize) {
        if let Some(line) = self.places.get(at).and_then(|place| self.lines.get(place.line()?)) {
            prefetch(line);
        }
    }

    /// Prefetches the counts of a flow, whose line should be cached.
    #[inline(always)]
    pub(crate) fn prefetch_counts(&self, at: usize) {
        let line = self.places.get(at).and_then(|place| self.lines.get(place.line()?));
        if let Some(counts) = line.and_then(|line| self.counts.get(line.counts.checked_sub(1)?)) {
            prefetch(counts);
        }
    }

    /// Handles a segment of a flow that began at `first_ns`, in this direction.
    #[inline(always)]
    pub(crate) fn on_segment(
        &mut self,
        at: usize,
        first_ns: u64,
        packet: &PacketRecord,
        segment: &Segment,
        direction: usize,
    ) {
        let Self { places, lines, counts } = self;
        let Some(place) = places.get_mut(at) else { return };
        let line = match place.line() {
            Some(line) => line,
            None if place.take(first_ns, packet, segment, direction) => return,
            None => {
                let line = lines.add(place.expanded(first_ns));
                place.state = Place::LINE + line;
                line
            }
        };
        let Line { senders, counts: own } = lines.row_mut(line);
        Tcp { senders, own, counts }.on_segment(packet, segment, direction);
    }

    /// The performance of a flow for its record; `None` if no segment was read.
    pub(crate) fn performance(&self, at: usize) -> Option<TcpPerformance> {
        let place = self.places.get(at)?;
        let Some(line) = place.line() else {
            return (place.state != Place::NOTHING).then_some(TcpPerformance::NONE);
        };
        let Line { senders: [own, back], counts } = self.lines.get(line)?;
        if (own.bits | back.bits) & (SENT | ACKED) == 0 {
            return None;
        }
        let counts = counts.checked_sub(1).and_then(|counts| self.counts.get(counts));
        Some(counts.map_or(TcpPerformance::NONE, TcpPerformance::of))
    }

    /// The gaps of both directions.
    #[cfg(test)]
    pub(super) fn gaps(&self, at: usize) -> [[[u32; 2]; super::GAPS]; 2] {
        let line = self.places[at].line().and_then(|line| self.lines.get(line));
        let counts = line.and_then(|line| self.counts.get(line.counts.checked_sub(1)?));
        counts.map_or([[[0; 2]; super::GAPS]; 2], |counts| counts.map(|own| own.gaps))
    }

    #[cfg(test)]
    pub(super) fn has_line(&self, at: usize) -> bool {
        self.places[at].line().is_some()
    }
}

//! How far the directions of connections were read: no message is read twice, and bodies are skipped.
//!
//! ```text
//! sequence    | message | body …        |    | message | message |
//!             |───────── range ─────────|    |────── range ──────|
//! ```
//!
//! A segment within a range was read before, or belongs to a body. Of a segment that begins in a range and ends behind
//! it, the rest is read: there the next message begins. What is outside the ranges is read, so that messages out of
//! order are found.
//!
//! A chunked body has a range to where its next line is expected. That line is read, or waited for, and makes the range
//! longer. A body until the connection ends has a range without end.
//!
//! The data path looks up a direction only if the payload looks like a message, or if the segment may reach the end of a
//! body, or if a SYN begins another connection. Two small filters decide that.
//!
//! Bounds: the memory given to [`Positions::new`], [`RANGES`] ranges a direction. A position that is evicted for lack
//! of room is counted.
//!
//! Invariant: a position depends on the packets of its connection and on the places of [`Positions::turn`] alone, as
//! long as nothing is evicted for lack of room.

use ringtap_base::Aged;
use ringtap_wire::PacketRecord;

use crate::extractor::Switch;
use crate::hashing::Hashing;
use crate::protocols::http::{Frames, Requests};
use crate::streams::Direction;
use crate::{LIFETIME_NS, Unread};

/// Ranges of a direction; the oldest makes room.
const RANGES: usize = 4;
/// Longest range. The rest of a longer body follows when its end is reached.
const RANGE_MAX: u32 = 1 << 30;
/// How far behind the range the rest of a longer body may begin, if segments are missing.
const GAP_MAX: u32 = 1 << 24;
/// Most directions.
const MOST: usize = 1 << 18;
/// Turns that a position is kept: with a request without a response, and with a body or another protocol.
const REQUEST_TURNS: u8 = 3;
const LONG_TURNS: u8 = 60;
/// Slots of the filters of bodies and of directions.
const BODY_SLOTS: usize = 1 << 12;
const SLOTS: usize = 1 << 14;

/// Sequence numbers from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
}

impl Range {
    fn len(self) -> u32 {
        self.end.wrapping_sub(self.start)
    }

    /// The distance of a sequence number from the start.
    fn offset(self, sequence: u32) -> u32 {
        sequence.wrapping_sub(self.start)
    }

    /// The range with the other one, if they touch; at most [`RANGE_MAX`], without the beginning.
    fn joined(self, other: Self) -> Option<Self> {
        let place = |place: u32| i64::from(self.offset(place).cast_signed());
        let (start, end) = (place(other.start), place(other.end));
        if other == Self::default() || start > i64::from(self.len()) || end < 0 {
            return None;
        }
        let start = if start < 0 { other.start } else { self.start };
        let end = if end > i64::from(self.len()) { other.end } else { self.end };
        Some(Self { start, end }.within())
    }

    fn within(self) -> Self {
        if self.len() > RANGE_MAX {
            Self { start: self.end.wrapping_sub(RANGE_MAX), ..self }
        } else {
            self
        }
    }
}

/// What is known of a direction.
struct Position {
    /// The newest first.
    ranges: [Range; RANGES],
    /// The latest packet that was looked up.
    last_ns: u64,
    /// Bytes of the body behind its range.
    left: u64,
    /// The latest body, if its end is not in its header.
    frames: Option<Frames>,
    /// The end of the range of a body that is not over.
    body: Option<u32>,
    /// Requests in this direction.
    requests: Requests,
    switch: Option<Switch>,
    /// The protocol of the latest message.
    protocol: u8,
    /// Whether a packet was looked up since it was inserted.
    touched: bool,
    /// Turns since the latest packet.
    turns: u8,
    hash: u32,
}

impl Position {
    fn touch(&mut self, ts_ns: u64) {
        (self.last_ns, self.touched, self.turns) = (ts_ns, true, 0);
    }
}

/// The place of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its bytes before this position were not read.
    New(usize),
    /// Its bytes before this position were read before, or have nothing to be read.
    Known(usize),
    /// The next line of a chunked body is expected at this sequence number, which is that of the segment or an earlier one.
    Framed(u32, Frames),
    /// Its bytes before this position are behind a body whose end is lost.
    Lost(usize, Frames),
}

/// What was read of a direction.
pub(crate) struct Read {
    /// The sequence number of the first byte.
    pub(crate) start: u32,
    pub(crate) len: usize,
    /// The number of bytes behind it that need not be read.
    pub(crate) body: u64,
    /// The body, if its end is not in its header.
    pub(crate) frames: Option<Frames>,
    /// The requests in the direction, if they may have changed.
    pub(crate) requests: Option<Requests>,
}

/// A body in a slot of the filter; valid if it is the only one.
#[derive(Clone, Copy, Default)]
struct Body {
    hash: u32,
    end: u32,
    known: bool,
}

type Table = Aged<Direction, Position, Hashing>;

/// The positions of a reader.
pub(crate) struct Positions {
    all: Table,
    hashing: Hashing,
    /// Number of directions, and of bodies, in each slot.
    slots: Box<[u32; SLOTS]>,
    body_slots: Box<[u32; BODY_SLOTS]>,
    bodies: Box<[Body; BODY_SLOTS]>,
    /// Bodies in all slots.
    body_count: u32,
}

impl Positions {
    /// No positions; all together take at most `memory` bytes.
    pub(crate) fn new(memory: usize, hashing: Hashing) -> Self {
        Self {
            all: Aged::new((memory / Table::ENTRY_BYTES).min(MOST), hashing.clone()),
            hashing,
            slots: Box::new([0; SLOTS]),
            body_slots: Box::new([0; BODY_SLOTS]),
            bodies: Box::new([Body::default(); BODY_SLOTS]),
            body_count: 0,
        }
    }

    /// Bytes that positions take.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.all.len() * Table::ENTRY_BYTES
    }

    /// A keyed hash of the direction of a packet.
    #[inline(always)]
    fn hash(&self, record: &PacketRecord, reversed: bool) -> u32 {
        self.hashing.direction(record, reversed)
    }

    /// False if nothing is known of the direction.
    #[inline(always)]
    pub(crate) fn may_know(&self, record: &PacketRecord) -> bool {
        !self.all.is_empty() && self.slots[self.hash(record, false) as usize % SLOTS] > 0
    }

    /// False if nothing is known of directions with this hash of [`Hashing::direction`].
    #[inline(always)]
    pub(crate) fn may_know_at(&self, hash: u32) -> bool {
        self.slots[hash as usize % SLOTS] > 0
    }

    /// False if there is certainly no body in directions with this hash.
    #[inline(always)]
    pub(crate) fn may_have_body_at(&self, hash: u32) -> bool {
        self.body_slots[hash as usize % BODY_SLOTS] > 0
    }

    /// Whether there are bodies.
    #[inline(always)]
    pub(crate) fn has_bodies(&self) -> bool {
        self.body_count > 0
    }

    /// Whether nothing is known.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// False if there is certainly no body in the direction.
    #[inline(always)]
    pub(crate) fn may_have_body(&self, record: &PacketRecord) -> bool {
        self.body_count > 0 && self.body_slots[self.hash(record, false) as usize % BODY_SLOTS] > 0
    }

    /// False if the segment does not reach the end of a body.
    pub(crate) fn may_end_body(&self, record: &PacketRecord, sequence: u32, len: usize) -> bool {
        if !self.may_have_body(record) {
            return false;
        }
        let hash = self.hash(record, false);
        let slot = hash as usize % BODY_SLOTS;
        let body = self.bodies[slot];
        let end = sequence.wrapping_add(len as u32);
        !(body.known && self.body_slots[slot] == 1)
            || body.hash == hash && end.wrapping_sub(body.end).cast_signed() >= 0
    }

    /// The place of a segment with this number of bytes, at least one. What is behind it has a place of its own.
    pub(crate) fn place(&mut self, record: &PacketRecord, sequence: u32, len: usize) -> Place {
        if !self.may_know(record) {
            return Place::New(len);
        }
        let key = Direction::of(record).without_path();
        let Some(position) = self.all.get_mut(&key) else { return Place::New(len) };
        if position.switch == Some(Switch::Opaque) {
            return Place::Known(len);
        }
        let mut body = position.body;
        let frames = position.frames;
        if let (Some(end), Some(frames)) = (body, frames.filter(Frames::is_chunked))
            && position.left == 0
            && sequence.wrapping_sub(end) < GAP_MAX
        {
            position.touch(record.ts_ns);
            return Place::Framed(end, frames);
        }
        if position.last_ns.abs_diff(record.ts_ns) > LIFETIME_NS {
            // The body alone is still valid.
            let is_body = |range: &Range| body == Some(range.end);
            position.ranges.iter_mut().filter(|range| !is_body(range)).for_each(|range| {
                *range = Range::default();
            });
        }
        let upto = |range: &Range| range.start.wrapping_sub(sequence) as usize;
        let next = position.ranges.iter().filter(|range| range.len() > 0).map(upto);
        let upto = next.fold(len, usize::min);
        let mut place = match frames.filter(Frames::is_lost) {
            Some(frames) => Place::Lost(upto, frames),
            None => Place::New(upto),
        };
        for range in &mut position.ranges {
            let is_body = body == Some(range.end) && range.len() > 0;
            let begins_behind = range.offset(sequence).wrapping_sub(range.len());
            let more = is_body && position.left > 0;
            if range.offset(sequence) >= range.len() && !(more && begins_behind < GAP_MAX) {
                continue;
            }
            (position.last_ns, position.touched, position.turns) = (record.ts_ns, true, 0);
            if more && range.offset(sequence).saturating_add(len as u32) >= range.len() {
                let next = position.left.min(u64::from(RANGE_MAX / 2));
                position.left -= next;
                let end = range.end.wrapping_add(next as u32);
                *range = Range { start: range.start, end }.within();
                body = Some(end);
            }
            let Some(rest) = range.len().checked_sub(range.offset(sequence)) else { break };
            let rest = rest as usize;
            if is_body && len >= rest && position.left == 0 && frames.is_none() {
                body = None;
            }
            place = Place::Known(len.min(rest));
            break;
        }
        let (hash, old) = (position.hash, std::mem::replace(&mut position.body, body));
        self.count_body(hash, old, body);
        place
    }

    /// The requests in the direction of a packet, and in the other one; `None` if no HTTP may be read.
    pub(crate) fn exchange(&self, record: &PacketRecord) -> Option<[Requests; 2]> {
        let key = Direction::of(record).without_path();
        let of = |reversed: bool| {
            let known = self.slots[self.hash(record, reversed) as usize % SLOTS] > 0;
            let key = if reversed { key.reversed() } else { key };
            known.then(|| self.all.get(&key)).flatten()
        };
        let own = of(false);
        if own.is_some_and(|own| own.switch.is_some()) {
            return None;
        }
        Some([own, of(true)].map(|side| side.map(|side| side.requests).unwrap_or_default()))
    }

    /// Changes the requests in the direction that a packet answers, if it is known.
    pub(crate) fn answer(&mut self, record: &PacketRecord, requests: Requests) {
        let key = Direction::of(record).without_path().reversed();
        if let Some(position) = self.all.get_mut(&key) {
            position.requests = requests;
        }
    }

    /// Stores what was read. Calls `ended` with the protocol of a position that is evicted by this.
    pub(crate) fn advance(
        &mut self,
        record: &PacketRecord,
        protocol: usize,
        read: &Read,
        ended: impl FnMut(usize, Unread),
    ) {
        let &Read { start, len, body, frames, requests } = read;
        let behind = body.min(u64::from(RANGE_MAX / 2));
        let upto = start.wrapping_add(len as u32).wrapping_add(behind as u32);
        let goes_on = body > 0 || frames.as_ref().is_some_and(Frames::is_chunked);
        self.change(record, false, protocol, ended, |position| {
            position.requests = requests.unwrap_or(position.requests);
            let is_over = position.body.is_none_or(|end| upto.wrapping_sub(end).cast_signed() >= 0);
            if goes_on {
                (position.body, position.left) = (Some(upto), body - behind);
                position.frames = frames;
            } else if is_over {
                (position.body, position.left) = (None, 0);
                position.frames = frames;
            }
            let mut joined = Range { start, end: upto }.within();
            let mut kept = [Range::default(); RANGES];
            // A range may touch one that became longer.
            let mut ranges = position.ranges;
            while let Some((range, longer)) = ranges
                .iter_mut()
                .find_map(|range| joined.joined(*range).map(|longer| (range, longer)))
            {
                (*range, joined) = (Range::default(), longer);
            }
            let others = ranges.into_iter().filter(|range| range.len() > 0);
            kept.iter_mut().zip(std::iter::once(joined).chain(others)).for_each(
                |(place, range)| {
                    *place = range;
                },
            );
            position.ranges = kept;
            if goes_on {
                position.body = Some(joined.end);
            }
        });
    }

    /// The end of the body in the direction of a packet is lost.
    pub(crate) fn lose_body(&mut self, record: &PacketRecord, is_response: bool) {
        self.end_body(record, Some(Frames::lost(is_response)));
    }

    /// The connection ends in the direction of a packet, at this sequence number: the length of a body that ends with it.
    pub(crate) fn close(&mut self, record: &PacketRecord, sequence: u32) -> Option<u64> {
        if !self.may_have_body(record) {
            return None;
        }
        let position = self.all.get(&Direction::of(record).without_path())?;
        let frames = position.frames.filter(Frames::is_until_close)?;
        let missing = i64::from(position.body?.wrapping_sub(sequence).cast_signed());
        let skipped = (u64::MAX - position.left).checked_sub_signed(missing)?;
        self.end_body(record, None);
        Some(frames.octets().saturating_add(skipped))
    }

    /// Ends the body in the direction of a packet.
    fn end_body(&mut self, record: &PacketRecord, frames: Option<Frames>) {
        let Some(position) = self.all.get_mut(&Direction::of(record).without_path()) else {
            return;
        };
        position.frames = frames;
        position.left = 0;
        let (hash, old) = (position.hash, position.body.take());
        self.count_body(hash, old, None);
    }

    /// Stores that another protocol follows in both directions.
    pub(crate) fn switch(
        &mut self,
        record: &PacketRecord,
        protocol: usize,
        switch: Switch,
        mut ended: impl FnMut(usize, Unread),
    ) {
        for reversed in [false, true] {
            self.change(record, reversed, protocol, &mut ended, |position| {
                position.switch = Some(switch);
            });
        }
    }

    /// Changes what is known of a direction.
    fn change(
        &mut self,
        record: &PacketRecord,
        reversed: bool,
        protocol: usize,
        mut ended: impl FnMut(usize, Unread),
        change: impl FnOnce(&mut Position),
    ) {
        let own = Direction::of(record).without_path();
        let key = if reversed { own.reversed() } else { own };
        let hash = self.hash(record, reversed);
        let known = self.slots[hash as usize % SLOTS] > 0;
        if let Some(position) = known.then(|| self.all.get_mut(&key)).flatten() {
            let before = position.body;
            position.touch(record.ts_ns);
            position.protocol = protocol as u8;
            change(position);
            let body = position.body;
            return self.count_body(hash, before, body);
        }
        let mut position = Position {
            ranges: [Range::default(); RANGES],
            last_ns: record.ts_ns,
            left: 0,
            frames: None,
            body: None,
            requests: Requests::default(),
            switch: None,
            protocol: protocol as u8,
            touched: false,
            turns: 0,
            hash,
        };
        change(&mut position);
        self.insert(key, position, &mut ended);
    }

    fn insert(
        &mut self,
        key: Direction,
        position: Position,
        ended: &mut impl FnMut(usize, Unread),
    ) {
        self.slots[position.hash as usize % SLOTS] += 1;
        self.count_body(position.hash, None, position.body);
        let (replaced, evicted) = self.all.insert(key, position);
        let evicted = evicted.map(|(_, position)| position);
        for position in replaced.iter().chain(&evicted) {
            self.remove(position);
        }
        if let Some(position) = evicted {
            ended(position.protocol.into(), Unread::Evicted);
        }
    }

    /// A position left the table.
    fn remove(&mut self, position: &Position) {
        self.slots[position.hash as usize % SLOTS] -= 1;
        self.count_body(position.hash, position.body, None);
    }

    /// Changes the filter when a body begins, ends or becomes longer.
    fn count_body(&mut self, hash: u32, old: Option<u32>, new: Option<u32>) {
        if old.is_none() && new.is_none() {
            return;
        }
        let slot = hash as usize % BODY_SLOTS;
        let change = u32::from(new.is_some()).wrapping_sub(u32::from(old.is_some()));
        self.body_count = self.body_count.wrapping_add(change);
        self.body_slots[slot] = self.body_slots[slot].wrapping_add(change);
        self.bodies[slot] = match new {
            Some(end) if self.body_slots[slot] == 1 => Body { hash, end, known: true },
            // Which of several is left is not known.
            _ => Body::default(),
        };
    }

    /// A SYN begins another connection: removes the direction.
    pub(crate) fn begin(&mut self, record: &PacketRecord) {
        if let Some(position) = self.all.remove(&Direction::of(record).without_path()) {
            self.remove(&position);
        }
    }

    /// Ends what has been here for a whole turn; what may be of use for longer, after several. Calls `ended` with the
    /// protocol of a position that is dropped too early.
    pub(crate) fn turn(&mut self, mut ended: impl FnMut(usize, Unread)) {
        self.all.turn();
        while let Some((key, mut position)) = self.all.pop_old() {
            self.remove(&position);
            let long = position.body.is_some() || position.switch.is_some();
            let requests = position.requests != Requests::default();
            position.turns += u8::from(!position.touched);
            if std::mem::take(&mut position.touched)
                || position.turns
                    < if long { LONG_TURNS } else { REQUEST_TURNS * u8::from(requests) }
            {
                self.insert(key, position, &mut ended);
            } else if long {
                ended(position.protocol.into(), Unread::Evicted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(port: u16, ts_ns: u64) -> PacketRecord {
        PacketRecord { src_port: port, dst_port: 80, ts_ns, ..PacketRecord::EMPTY }
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        let range = |start: i32, end: i32| Range {
            start: 5_u32.wrapping_add_signed(start),
            end: 5_u32.wrapping_add_signed(end),
        };
        let own = range(-100, 100);
        assert_eq!(own.joined(range(100, 200)), Some(range(-100, 200)));
        assert_eq!(own.joined(range(-300, -100)), Some(range(-300, 100)));
        assert_eq!(own.joined(range(-20, 30)), Some(own));
        assert_eq!(own.joined(range(-200, 300)), Some(range(-200, 300)));
        assert_eq!((own.joined(range(101, 200)), own.joined(range(-200, -101))), (None, None));
        assert_eq!(own.joined(Range::default()), None);
        let long = Range { start: 7, end: 7 + RANGE_MAX };
        let next = Range { start: 7 + RANGE_MAX, end: 17 + RANGE_MAX };
        assert_eq!(long.joined(next), Some(Range { start: 17, end: 17 + RANGE_MAX }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The filters hide nothing, and count what is there.
        #[test]
        fn filters_agree_with_the_table(
            steps in prop::collection::vec((0..6_u8, 0..40_u16, 0..3_000_u32, 1..400_usize), 1..300),
            room in 1..50_usize,
        ) {
            let mut positions = Positions::new(room * Table::ENTRY_BYTES, Hashing::default());
            for (number, (step, port, sequence, len)) in steps.into_iter().enumerate() {
                let record = &packet(port, number as u64 * LIFETIME_NS / 50);
                let body = u64::from(sequence % 3) * 700;
                match step {
                    0 | 1 => {
                        let frames = match sequence % 7 {
                            0..2 => Some(Frames::chunked(true)),
                            2 => Some(Frames::lost(true)),
                            _ => None,
                        };
                        let read = Read { start: sequence, len, body, frames, requests: None };
                        positions.advance(record, 3, &read, |_, _| {});
                    }
                    2 => positions.begin(record),
                    3 if port == 0 => positions.turn(|_, _| {}),
                    4 if port < 3 => positions.switch(record, 3, Switch::Opaque, |_, _| {}),
                    5 if port < 3 => positions.lose_body(record, true),
                    5 if port < 6 => drop(positions.close(record, sequence)),
                    _ => {
                        let ends = positions.may_end_body(record, sequence, len);
                        let had = positions.all.get(&Direction::of(record)).and_then(|own| own.body);
                        let place = positions.place(record, sequence, len);
                        let from = match place {
                            Place::New(from) | Place::Known(from) | Place::Lost(from, _) => from,
                            Place::Framed(end, _) => {
                                prop_assert!(ends && Some(end) == had);
                                continue;
                            }
                        };
                        prop_assert!((1..=len).contains(&from));
                        if let (Place::Known(_), Some(end)) = (place, had) {
                            let is_body = sequence.wrapping_add(from as u32) == end;
                            prop_assert!(ends || !is_body);
                        }
                    }
                }
                let all: Vec<_> = (0..40).map(|port| packet(port, 0)).collect();
                let known = |record: &&PacketRecord| positions.all.get(&Direction::of(record)).is_some();
                prop_assert!(all.iter().filter(known).all(|record| positions.may_know(record)));
                let bodies = all.iter().filter(|record| {
                    positions.all.get(&Direction::of(record)).is_some_and(|own| own.body.is_some())
                });
                prop_assert_eq!(bodies.count() as u32, positions.body_count);
                prop_assert_eq!(positions.body_slots.iter().sum::<u32>(), positions.body_count);
                let switched = positions.slots.iter().sum::<u32>() as usize;
                prop_assert_eq!(switched, positions.all.len());
                prop_assert!(positions.all.len() <= room);
            }
        }
    }
}

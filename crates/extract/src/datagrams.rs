//! Datagrams that arrive in fragments, until all of their bytes are there.
//!
//! ```text
//! datagram (addresses, identification, tunnel) ─▶ │ bytes, their parts, length │    held
//!                                                 │ –                          │    ignored: no extractor reads it
//! ```
//!
//! A datagram is joined when its last part arrives, in any order, at most [`LIFETIME_NS`] after the first one, by the times of
//! both packets. Parts may repeat bytes of others; if the bytes differ, the datagram is malformed. An identification is used
//! again for another datagram when its first part comes again with other bytes.
//!
//! Bounds: the memory given to [`Datagrams::new`], the oldest datagram is removed first; 64 KiB and [`PARTS_MAX`] pieces of
//! each. A piece has the parts that follow each other as they arrived, so memory is that of the bytes that arrived.
//!
//! Invariant: what is joined depends on the packets of the address pair and on the places of [`Datagrams::turn`] alone, as long
//! as no datagram is removed for lack of room.

use std::mem;

use ringtap_base::Aged;
use ringtap_wire::{DatagramKey, Part};

use crate::hashing::Hashing;
use crate::{LIFETIME_NS, Unread};

/// Most pieces of a datagram: enough for one whose parts arrive in reverse order, each as long as a frame of Ethernet.
const PARTS_MAX: usize = 64;
const DATAGRAM_MAX: u32 = 0xffff;

type Table = Aged<DatagramKey, Datagram, Hashing>;

/// The datagrams of a reader.
pub(crate) struct Datagrams {
    all: Table,
    /// Bytes beside the table, and most bytes with it.
    bytes: usize,
    bytes_max: usize,
}

/// What is known from the first bytes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// An extractor may read it: this one, if its bytes say so.
    Held(Option<usize>),
    /// No extractor reads it.
    Ignored,
}

#[derive(Default)]
struct Datagram {
    start_ns: u64,
    ignored: bool,
    /// Protocol and start, once the first part arrived.
    first: Option<(u8, Option<usize>)>,
    /// In order; none overlaps another.
    pieces: Vec<Piece>,
    /// The length, once the last part arrived.
    len: Option<u32>,
}

/// Bytes of a datagram.
struct Piece {
    begin: u32,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u32 {
        self.begin + self.bytes.len() as u32
    }

    /// The bytes between two places, as far as it has them.
    fn between(&self, begin: u32, end: u32) -> &[u8] {
        let at = |place: u32| (place.clamp(self.begin, self.end()) - self.begin) as usize;
        self.bytes.get(at(begin)..at(end)).unwrap_or_default()
    }
}

impl Datagram {
    /// Bytes beside its place in the table.
    fn memory(&self) -> usize {
        let bytes: usize = self.pieces.iter().map(|piece| piece.bytes.capacity()).sum();
        bytes + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Adds a part.
    fn add(&mut self, part: &Part<'_>) -> Result<(), Unread> {
        let (begin, end) = (part.offset, part.offset + part.bytes.len() as u32);
        let is_last = !part.more;
        let known_end = self.pieces.last().map_or(0, Piece::end);
        if self.len.is_some_and(|len| end > len || is_last && end != len)
            || is_last && known_end > end
        {
            return Err(Unread::Malformed);
        }
        if is_last {
            self.len = Some(end);
        }
        // What is new of it lies before, between and behind the pieces that it overlaps.
        let of = |from: u32, to: u32| &part.bytes[(from - begin) as usize..(to - begin) as usize];
        let mut at = self.pieces.partition_point(|piece| piece.end() <= begin);
        let mut next = begin;
        while next < end {
            let overlaps = self.pieces.get(at).filter(|piece| piece.begin < end);
            let until = overlaps.map_or(end, |piece| piece.begin.max(next));
            let known = overlaps.map_or(end, |piece| piece.end().min(end));
            if overlaps.is_some_and(|piece| piece.between(until, known) != of(until, known)) {
                return Err(Unread::Malformed);
            }
            if next < until {
                at += usize::from(self.insert(at, next, of(next, until)));
            }
            next = known;
            at += 1;
        }
        if self.pieces.len() > PARTS_MAX { Err(Unread::TooMuch) } else { Ok(()) }
    }

    /// Adds bytes before the piece `at`; returns whether they are a piece of their own, not the end of the one before.
    fn insert(&mut self, at: usize, begin: u32, bytes: &[u8]) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.pieces.get_mut(before));
        if let Some(before) = before.filter(|piece| piece.end() == begin) {
            before.bytes.extend_from_slice(bytes);
            return false;
        }
        // Most datagrams have one piece.
        if self.pieces.is_empty() {
            self.pieces.reserve_exact(1);
        }
        self.pieces.insert(at, Piece { begin, bytes: bytes.to_vec() });
        true
    }

    /// Its protocol, if all of its bytes are there.
    fn complete(&self) -> Option<u8> {
        let (protocol, _) = self.first?;
        let len: u32 = self.pieces.iter().map(|piece| piece.bytes.len() as u32).sum();
        (len == self.len?).then_some(protocol)
    }

    /// All bytes of a complete one.
    fn joined(mut self) -> Vec<u8> {
        if self.pieces.len() == 1 {
            return self.pieces.pop().map(|piece| piece.bytes).unwrap_or_default();
        }
        self.pieces.into_iter().flat_map(|piece| piece.bytes).collect()
    }

    /// Whether it has these first bytes; `None` if they did not arrive.
    fn begins_with(&self, bytes: &[u8]) -> Option<bool> {
        self.first?;
        let len = bytes.len() as u32;
        let mut next = 0;
        for piece in self.pieces.iter().take_while(|piece| piece.begin < len) {
            if piece.begin != next || !bytes[next as usize..].starts_with(piece.between(next, len))
            {
                return Some(false);
            }
            next = piece.end().min(len);
        }
        Some(next == len)
    }
}

impl Datagrams {
    /// No datagrams; all together take at most about `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let all = Aged::new(bytes_max / Table::ENTRY_BYTES, Hashing::default());
        Self { all, bytes: 0, bytes_max }
    }

    /// Adds the part of a packet at `ts_ns`; `start` is of the first part. Returns protocol and bytes of a datagram that
    /// is complete now. `ended` gets the extractor of each datagram that is lost, and why.
    pub(crate) fn add(
        &mut self,
        part: &Part<'_>,
        ts_ns: u64,
        start: Option<Start>,
        mut ended: impl FnMut(usize, Unread),
    ) -> Option<(u8, Vec<u8>)> {
        let end = part.offset + part.bytes.len() as u32;
        // All but the last part are of whole words.
        let odd = part.more && !part.bytes.len().is_multiple_of(8);
        if part.bytes.is_empty() || odd || end > DATAGRAM_MAX {
            return None;
        }
        if part.offset == 0 && !part.more {
            return Some((part.protocol, part.bytes.to_vec()));
        }
        let key = &part.datagram;
        let mut is_new = true;
        let is_over = self.all.get(key).is_some_and(|own| {
            is_new = false;
            let used_again =
                start.is_some() && (own.ignored || own.begins_with(part.bytes) == Some(false));
            used_again || ts_ns.saturating_sub(own.start_ns) > LIFETIME_NS
        });
        if is_over && let Some(old) = self.all.remove(key) {
            self.end(old, Unread::Incomplete, &mut ended);
        }
        if is_new || is_over {
            let new = Datagram { start_ns: ts_ns, ..Datagram::default() };
            if let (_, Some((_, old))) = self.all.insert(*key, new) {
                self.end(old, Unread::NoRoom, &mut ended);
            }
        }
        let own = self.all.get_mut(key).filter(|own| !own.ignored)?;
        let before = own.memory();
        let read = match start {
            Some(Start::Ignored) => Err(None),
            start => {
                if let Some(Start::Held(extractor)) = start {
                    own.first = own.first.or(Some((part.protocol, extractor)));
                }
                own.add(part).map_err(Some)
            }
        };
        if let Err(why) = read {
            if let (Some(why), Some((_, Some(extractor)))) = (why, own.first) {
                ended(extractor, why);
            }
            *own = Datagram { start_ns: own.start_ns, ignored: true, ..Datagram::default() };
        }
        self.bytes = self.bytes + own.memory() - before;
        let joined = own.complete().and_then(|protocol| {
            let old = self.all.remove(key)?;
            self.bytes -= old.memory();
            Some((protocol, old.joined()))
        });
        while self.memory() > self.bytes_max
            && let Some((_, old)) = self.all.pop_oldest()
        {
            self.end(old, Unread::NoRoom, &mut ended);
        }
        joined
    }

    /// Removes datagrams whose first packet was before the last turn.
    pub(crate) fn turn(&mut self, mut ended: impl FnMut(usize, Unread)) {
        self.all.turn();
        while let Some((_, old)) = self.all.pop_old() {
            self.end(old, Unread::Incomplete, &mut ended);
        }
    }

    /// Removes all datagrams, at the end.
    pub(crate) fn finish(&mut self, mut ended: impl FnMut(usize, Unread)) {
        while let Some((_, old)) = self.all.pop_oldest() {
            self.end(old, Unread::Incomplete, &mut ended);
        }
    }

    /// A datagram was removed: it is lost if an extractor would read it.
    fn end(&mut self, mut old: Datagram, why: Unread, ended: &mut impl FnMut(usize, Unread)) {
        self.bytes -= old.memory();
        if let Some((_, Some(extractor))) = mem::take(&mut old.first) {
            ended(extractor, why);
        }
    }

    /// Bytes that the datagrams take.
    pub(crate) fn memory(&self) -> usize {
        self.bytes + self.all.len() * Table::ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn key(identification: u32) -> DatagramKey {
        let (src, dst) = ([1; 16], [2; 16]);
        DatagramKey { src, dst, identification, protocol: 17, scope: 0 }
    }

    fn part(identification: u32, offset: u32, more: bool, bytes: &[u8]) -> Part<'_> {
        Part { datagram: key(identification), protocol: 17, offset, more, bytes }
    }

    /// Adds parts of datagram 1: seconds, offset, whether more follow, bytes. Returns what was joined and lost.
    fn join(
        datagrams: &mut Datagrams,
        parts: &[(u64, u32, bool, &[u8])],
    ) -> (Vec<Vec<u8>>, Vec<Unread>) {
        let (mut joined, mut lost) = (Vec::new(), Vec::new());
        for &(second, offset, more, bytes) in parts {
            let start = (offset == 0).then_some(Start::Held(Some(2)));
            let part = part(1, offset, more, bytes);
            let whole = datagrams.add(&part, second * SECOND_NS, start, |extractor, why| {
                assert_eq!(extractor, 2);
                lost.push(why);
            });
            joined.extend(whole.map(|(protocol, bytes)| {
                assert_eq!(protocol, 17);
                bytes
            }));
        }
        (joined, lost)
    }

    #[test]
    fn parts_are_joined_in_any_order() {
        let (a, b, c) = (&[1; 16][..], &[2; 8][..], &[3; 5][..]);
        let whole = vec![[a, b, c].concat()];
        let parts = [(1, 0, true, a), (2, 16, true, b), (3, 24, false, c)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut datagrams = Datagrams::new(1 << 20);
            let parts = order.map(|at| (5, parts[at].1, parts[at].2, parts[at].3));
            assert_eq!(join(&mut datagrams, &parts), (whole.clone(), vec![]), "{order:?}");
            assert_eq!(datagrams.memory(), 0);
        }
        // A copy of each, and a clock that steps back.
        let mut datagrams = Datagrams::new(1 << 20);
        let copies = [
            (9, 0, true, a),
            (1, 0, true, a),
            (3, 16, true, b),
            (2, 16, true, b),
            (9, 24, false, c),
        ];
        assert_eq!(join(&mut datagrams, &copies), (whole, vec![]));
        // A datagram in one part.
        assert_eq!(join(&mut datagrams, &[(1, 0, false, c)]), (vec![c.to_vec()], vec![]));
    }

    #[test]
    fn what_is_not_joined_is_lost() {
        let (a, b) = (&[1; 16][..], &[2; 8][..]);
        let mut datagrams = Datagrams::new(1 << 20);
        // Too late: the rest begins another datagram, of which nothing is known.
        let late = [(1, 0, true, a), (12, 16, false, b)];
        assert_eq!(join(&mut datagrams, &late), (vec![], vec![Unread::Incomplete]));
        // The identification is used again.
        let again = [(30, 0, true, a), (31, 0, true, &[9; 16][..]), (31, 16, false, b)];
        let joined = vec![[&[9; 16][..], b].concat()];
        assert_eq!(join(&mut datagrams, &again), (joined, vec![Unread::Incomplete]));
        for wrong in [
            // Other bytes, another end, bytes behind the end.
            [(60, 0, true, a), (60, 8, true, b)],
            [(60, 24, false, b), (60, 0, true, &[1; 40][..])],
        ] {
            let (joined, lost) = join(&mut datagrams, &wrong);
            assert_eq!((joined.len(), lost), (0, vec![Unread::Malformed]));
            assert_eq!(join(&mut datagrams, &[(60, 16, false, b)]), (vec![], vec![]));
            datagrams.finish(|_, _| {});
        }
        // Neither whole words nor within 64 KiB.
        let odd = [(90, 0, true, &[1; 9][..]), (90, 65_528, false, b)];
        assert_eq!(join(&mut datagrams, &odd), (vec![], vec![]));
        // At the end, and after two turns.
        assert_eq!(join(&mut datagrams, &[(99, 0, true, a)]).1, []);
        let mut lost = 0;
        datagrams.finish(|_, why| lost += u32::from(why == Unread::Incomplete));
        join(&mut datagrams, &[(99, 0, true, a)]);
        datagrams.turn(|_, _| panic!("it was there for less than a turn"));
        datagrams.turn(|_, why| lost += u32::from(why == Unread::Incomplete));
        assert_eq!((lost, datagrams.memory()), (2, 0));
    }

    #[test]
    fn what_no_extractor_reads_takes_no_room() {
        let mut datagrams = Datagrams::new(1 << 20);
        let first = part(1, 0, true, &[1; 1024]);
        datagrams.add(&part(1, 1024, true, &[1; 1024]), 0, None, |_, _| panic!());
        datagrams.add(&first, 0, Some(Start::Ignored), |_, _| panic!());
        datagrams.add(&part(1, 2048, false, &[1; 1024]), 0, None, |_, _| panic!());
        assert_eq!((datagrams.memory(), datagrams.all.len()), (Table::ENTRY_BYTES, 1));
        assert!(datagrams.all.get(&key(1)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_lost() {
        let mut datagrams = Datagrams::new(1 << 20);
        let mut lost = 0;
        for number in 0..10_000 {
            let part = part(number, 0, true, &[7; 1400]);
            let ended = |_, why| lost += u32::from(why == Unread::NoRoom);
            assert_eq!(datagrams.add(&part, 0, Some(Start::Held(Some(0))), ended), None);
            assert!(datagrams.memory() <= 1 << 20);
        }
        assert_eq!(lost as usize + datagrams.all.len(), 10_000);
        assert!(datagrams.all.len() > 500);
        // Room for nothing.
        let mut none = Datagrams::new(0);
        let part = part(1, 0, true, &[7; 1400]);
        assert_eq!(none.add(&part, 0, Some(Start::Held(None)), |_, _| {}), None);
        assert_eq!(none.memory(), 0);
    }

    proptest! {
        #[test]
        fn any_parts_give_the_bytes_or_nothing(
            parts in prop::collection::vec((0_u32..40, 1_usize..80, any::<bool>()), 0..60),
            last in 300_usize..330,
        ) {
            let stream: Vec<u8> = (0..400_u32).map(|byte| (byte * 7 % 251) as u8).collect();
            let mut datagrams = Datagrams::new(1 << 20);
            for (word, words, is_last) in parts {
                let begin = (word as usize * 8).min(last - 1) & !7;
                let end = if is_last { last } else { (begin + words * 8).min(last & !7) };
                if end <= begin {
                    continue;
                }
                let part = part(1, begin as u32, !is_last, &stream[begin..end]);
                let start = (begin == 0).then_some(Start::Held(None));
                if let Some((_, bytes)) = datagrams.add(&part, 0, start, |_, _| {}) {
                    prop_assert_eq!(&bytes[..], &stream[..last]);
                }
            }
        }
    }
}

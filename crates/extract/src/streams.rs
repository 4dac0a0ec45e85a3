//! Reassembly of messages that are longer than a TCP segment.
//!
//! A segment that begins a message and does not finish it opens a *stream*: the bytes of that direction of the
//! connection from there on, in order of their sequence numbers, until the parser has read the message.
//!
//! ```text
//! sequence   start             next
//!            | bytes ──────────| gap |early segment|
//! ```
//!
//! Bounds: [`STREAM_MAX`] bytes and [`EARLY_MAX`] early segments a stream, [`LIFETIME_NS`] by the times of its own
//! packets, and the memory given to [`Streams::new`] for all. A stream that exceeds a bound ends, and is counted under a
//! reason.
//!
//! Invariants: the result depends on the packets of the connection and on the places of [`Streams::turn`] alone, as long
//! as nothing ends for lack of room. The memory is bounded, whatever is opened, finished and left open.

use std::hash::{Hash, Hasher};

use ringtap_base::Aged;
use ringtap_wire::PacketRecord;

use crate::hashing::Hashing;
use crate::opening::LOOKED_AT;
use crate::{LIFETIME_NS, Unread};

/// Most bytes of a stream: a TLS record and its header.
pub(crate) const STREAM_MAX: usize = 16 * 1024 + 5;
/// Most segments of a stream that are held because an earlier one is missing, and most bytes of them.
const EARLY_MAX: usize = 16;
const EARLY_BYTES_MAX: usize = 64 * 1024;
/// Most times that the bytes of a stream are parsed, so that many small segments cost no more than a few large ones.
const PARSES_MAX: u32 = 64;
/// A segment that is further from the stream than this belongs to a later connection with the same ports.
const WINDOW: i32 = 1 << 17;
/// Most streams at a time.
const STREAMS_MAX: usize = 16_384;
/// Slots of the filter that is asked before the map.
const SLOTS: usize = 4_096;

/// A direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Direction {
    src: [u8; 16],
    dst: [u8; 16],
    ports: [u16; 2],
    path: u16,
    flags: u16,
}

impl Direction {
    pub(crate) fn of(record: &PacketRecord) -> Self {
        use ringtap_wire::Flags;
        Self {
            src: record.src,
            dst: record.dst,
            ports: [record.src_port, record.dst_port],
            // Inner packets of different tunnels may have equal addresses.
            path: if record.flags.contains(Flags::INNER) { record.path } else { 0 },
            flags: record.flags.0 & (Flags::INNER.0 | Flags::IPV6.0),
        }
    }

    /// The other direction, by the same path.
    pub(crate) fn reversed(self) -> Self {
        let [src_port, dst_port] = self.ports;
        Self { src: self.dst, dst: self.src, ports: [dst_port, src_port], ..self }
    }

    /// The number of the path if the packet is inside a tunnel, else 0.
    pub(crate) fn path(self) -> u16 {
        self.path
    }

    /// The direction by any path. The paths of the two directions of a tunnel differ.
    pub(crate) fn without_path(self) -> Self {
        Self { path: 0, ..self }
    }
}

impl Hash for Direction {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [ports, path, flags] = [
            u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]),
            self.path.into(),
            self.flags.into(),
        ];
        hasher.write(&self.src);
        hasher.write(&self.dst);
        hasher.write_u64(ports | path << 32 | flags << 48);
    }
}

/// A message that is not complete.
pub(crate) struct Stream {
    /// The position of its protocol in the list.
    pub(crate) protocol: usize,
    /// The bytes so far, from the beginning of the message.
    pub(crate) bytes: Vec<u8>,
    /// The sequence number after `bytes`.
    next: u32,
    /// The time of its first packet.
    pub(crate) start_ns: u64,
    early: Vec<(u32, Vec<u8>)>,
    slot: u16,
    parses: u32,
    /// The sequence number of its first byte.
    pub(crate) start: u32,
    /// False if its first bytes were too few to know the protocol.
    pub(crate) decided: bool,
}

impl Stream {
    /// Drops messages that were read; the next one is of this protocol, and begins in a packet of this time.
    pub(crate) fn skip(&mut self, len: usize, protocol: usize, ts_ns: u64) {
        self.decided |= len > 0 || self.bytes.len() >= LOOKED_AT;
        self.protocol = protocol;
        self.bytes.drain(..len);
        if len > 0 {
            self.start_ns = ts_ns;
        }
        self.start = self.start.wrapping_add(len as u32);
    }

    /// Bytes beside its place in the table.
    fn memory(&self) -> usize {
        let early: usize = self.early.iter().map(|(_, bytes)| bytes.capacity()).sum();
        self.early.capacity() * size_of::<(u32, Vec<u8>)>() + self.bytes.capacity() + early
    }

    /// Adds a segment. Returns whether `bytes` grew; `None`: a bound is exceeded.
    fn add(&mut self, sequence: u32, segment: &[u8]) -> Option<bool> {
        let before = self.bytes.len();
        self.append(sequence, segment)?;
        if self.bytes.len() > before {
            while let Some(at) = self.early.iter().position(|&(early, _)| self.offset(early) <= 0) {
                let (sequence, bytes) = self.early.swap_remove(at);
                self.append(sequence, &bytes)?;
            }
        }
        Some(self.bytes.len() > before)
    }

    /// The distance of a sequence number from `next`.
    fn offset(&self, sequence: u32) -> i32 {
        sequence.wrapping_sub(self.next).cast_signed()
    }

    fn append(&mut self, sequence: u32, segment: &[u8]) -> Option<()> {
        let offset = self.offset(sequence);
        if offset > 0 {
            let known = self
                .early
                .iter()
                .any(|(own, bytes)| *own == sequence && bytes.len() >= segment.len());
            if known {
                return Some(());
            }
            let held: usize = self.early.iter().map(|(_, bytes)| bytes.len()).sum();
            if self.early.len() >= EARLY_MAX || held + segment.len() > EARLY_BYTES_MAX {
                return None;
            }
            self.early.push((sequence, segment.to_vec()));
        } else if let Some(new) = segment.get(offset.unsigned_abs() as usize..) {
            let new = &new[..new.len().min(STREAM_MAX - self.bytes.len())];
            self.bytes.extend_from_slice(new);
            self.next = self.next.wrapping_add(new.len() as u32);
        }
        Some(())
    }
}

/// What a segment did to its stream.
pub(crate) enum Fed {
    /// There is no stream for it.
    NoStream,
    /// The stream waits for earlier bytes.
    Waits,
    /// The stream has more bytes; the caller parses it, and puts it back or ends it.
    Grew(Stream),
    /// The stream exceeded a bound, and ended.
    Exceeded(usize),
}

type Table<V> = Aged<Direction, V, Hashing>;

const STREAM_BYTES: usize = Table::<Stream>::ENTRY_BYTES;

/// The streams of a reader.
pub(crate) struct Streams {
    all: Table<Stream>,
    /// Number of streams in each slot.
    slots: Box<[u32; SLOTS]>,
    hashing: Hashing,
    /// Bytes of all streams beside the table.
    bytes: usize,
    /// Most bytes of all streams with the table.
    bytes_max: usize,
}

impl Streams {
    /// No streams; all together take at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize, hashing: Hashing) -> Self {
        Self {
            all: Aged::new((bytes_max / STREAM_BYTES).min(STREAMS_MAX), hashing.clone()),
            slots: Box::new([0; SLOTS]),
            hashing,
            bytes: 0,
            bytes_max,
        }
    }

    /// False if there is certainly no stream for the packet.
    #[inline(always)]
    pub(crate) fn may_have(&self, record: &PacketRecord) -> bool {
        !self.all.is_empty() && self.slots[usize::from(self.slot(record))] > 0
    }

    /// False if there is certainly no stream for packets with this hash of [`Hashing::direction`].
    #[inline(always)]
    pub(crate) fn may_have_at(&self, hash: u32) -> bool {
        self.slots[hash as usize % SLOTS] > 0
    }

    /// Whether there are no streams.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether there is a stream for the packet.
    pub(crate) fn has(&self, record: &PacketRecord) -> bool {
        self.may_have(record) && self.all.get(&Direction::of(record)).is_some()
    }

    /// The slot of a direction in the filter.
    #[inline(always)]
    fn slot(&self, record: &PacketRecord) -> u16 {
        self.hashing.direction(record, false) as u16 % SLOTS as u16
    }

    /// Whether the stream of the packet's direction begins at this sequence number.
    pub(crate) fn begins_at(&self, record: &PacketRecord, sequence: u32) -> bool {
        let stream = || self.all.get(&Direction::of(record));
        self.may_have(record) && stream().is_some_and(|stream| stream.start == sequence)
    }

    /// Bytes that streams take.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.bytes + self.all.len() * STREAM_BYTES
    }

    /// Passes a segment to its stream. Calls `ended` as [`Streams::open`] does.
    pub(crate) fn feed(
        &mut self,
        record: &PacketRecord,
        sequence: u32,
        segment: &[u8],
        mut ended: impl FnMut(usize, Unread),
    ) -> Fed {
        let direction = Direction::of(record);
        let Some(stream) = self.all.get_mut(&direction) else { return Fed::NoStream };
        let old = record.ts_ns.saturating_sub(stream.start_ns) > LIFETIME_NS;
        if old || !(-WINDOW..WINDOW).contains(&stream.offset(sequence)) {
            if let Some(stream) = self.take(&direction) {
                ended(stream.protocol, Unread::Incomplete);
            }
            return Fed::NoStream;
        }
        let before = stream.memory();
        let grew = stream.add(sequence, segment);
        self.bytes = self.bytes - before + stream.memory();
        if grew == Some(false) {
            self.make_room(ended);
            return Fed::Waits;
        }
        let Some(mut stream) = self.take(&direction) else { return Fed::NoStream };
        stream.parses += 1;
        match grew {
            Some(_) if stream.parses <= PARSES_MAX => Fed::Grew(stream),
            _ => Fed::Exceeded(stream.protocol),
        }
    }

    /// A SYN begins another connection: ends the stream of the direction. Calls `ended` as [`Streams::open`] does.
    pub(crate) fn begin(&mut self, record: &PacketRecord, mut ended: impl FnMut(usize, Unread)) {
        if let Some(stream) = self.take(&Direction::of(record)) {
            ended(stream.protocol, Unread::Incomplete);
        }
    }

    fn take(&mut self, direction: &Direction) -> Option<Stream> {
        let stream = self.all.remove(direction)?;
        self.subtract(&stream);
        Some(stream)
    }

    /// A stream left the table.
    fn subtract(&mut self, stream: &Stream) {
        self.slots[usize::from(stream.slot)] -= 1;
        self.bytes -= stream.memory();
    }

    /// Opens a stream with the segment that begins a message; `decided` if it is certainly of this protocol. Calls
    /// `ended` with the protocol of each stream that ends by this, and the reason.
    pub(crate) fn open(
        &mut self,
        record: &PacketRecord,
        sequence: u32,
        segment: &[u8],
        (protocol, decided): (usize, bool),
        ended: impl FnMut(usize, Unread),
    ) {
        let stream = Stream {
            protocol,
            bytes: segment[..segment.len().min(STREAM_MAX)].to_vec(),
            next: sequence.wrapping_add(segment.len() as u32),
            start_ns: record.ts_ns,
            early: Vec::new(),
            slot: self.slot(record),
            parses: 1,
            start: sequence,
            decided,
        };
        self.put(record, stream, ended);
    }

    /// Puts a stream back. Calls `ended` as [`Streams::open`] does.
    pub(crate) fn put(
        &mut self,
        record: &PacketRecord,
        stream: Stream,
        mut ended: impl FnMut(usize, Unread),
    ) {
        self.slots[usize::from(stream.slot)] += 1;
        self.bytes += stream.memory();
        let (replaced, evicted) = self.all.insert(Direction::of(record), stream);
        if let Some(stream) = replaced {
            self.subtract(&stream);
            ended(stream.protocol, Unread::Incomplete);
        }
        if let Some((_, stream)) = evicted {
            self.subtract(&stream);
            ended(stream.protocol, Unread::NoRoom);
        }
        self.make_room(ended);
    }

    /// Ends streams until the memory suffices: those first that have not grown for the longest time.
    fn make_room(&mut self, mut ended: impl FnMut(usize, Unread)) {
        while self.bytes + self.all.len() * STREAM_BYTES > self.bytes_max
            && let Some((_, stream)) = self.all.pop_oldest()
        {
            self.subtract(&stream);
            ended(stream.protocol, Unread::NoRoom);
        }
    }

    /// Ends what has been here, without growing, for a whole turn. Calls `ended` as [`Streams::open`] does.
    pub(crate) fn turn(&mut self, mut ended: impl FnMut(usize, Unread)) {
        self.all.turn();
        while let Some((_, stream)) = self.all.pop_old() {
            self.subtract(&stream);
            ended(stream.protocol, Unread::Incomplete);
        }
    }

    /// Ends all streams; calls `ended` with the protocol of each.
    pub(crate) fn end(&mut self, mut ended: impl FnMut(usize)) {
        while let Some((_, stream)) = self.all.pop_oldest() {
            self.subtract(&stream);
            ended(stream.protocol);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(port: u16, ts_ns: u64) -> PacketRecord {
        PacketRecord { src_port: port, dst_port: 443, ts_ns, ..PacketRecord::EMPTY }
    }

    /// Feeds segments given by offset and length after a first segment of 100 bytes; returns the stream's bytes.
    fn joined(segments: &[(u32, usize)]) -> Option<Vec<u8>> {
        let byte = |offset: u32| (offset % 251) as u8;
        let segment = |&(offset, len): &(u32, usize)| {
            (offset..offset + len as u32).map(byte).collect::<Vec<u8>>()
        };
        let base = u32::MAX - 150;
        let mut streams = Streams::new(usize::MAX, Hashing::default());
        let record = packet(1, 5);
        streams.open(&record, base, &segment(&(0, 100)), (3, true), |_, _| panic!("nothing ends"));
        for part in segments {
            match streams.feed(&record, base.wrapping_add(part.0), &segment(part), |_, _| {}) {
                Fed::Grew(stream) => streams.put(&record, stream, |_, _| panic!("nothing ends")),
                Fed::Waits => {}
                Fed::NoStream | Fed::Exceeded(_) => return None,
            }
        }
        let bytes = streams.all.get(&Direction::of(&record)).unwrap().bytes.clone();
        assert!(bytes.iter().enumerate().all(|(at, &own)| own == byte(at as u32)));
        Some(bytes)
    }

    #[test]
    fn segments_are_joined_in_order_of_their_sequence_numbers() {
        let len = |segments: &[(u32, usize)]| joined(segments).map(|bytes| bytes.len());
        assert_eq!(len(&[(100, 50), (150, 50)]), Some(200));
        assert_eq!(len(&[(150, 50), (200, 10), (100, 50)]), Some(210));
        assert_eq!(len(&[(0, 100), (50, 100), (120, 10)]), Some(150));
        assert_eq!(len(&[(150, 50)]), Some(100));
        assert_eq!(len(&[(150, 50), (150, 50), (90, 80)]), Some(200));
        assert_eq!(len(&[(100, 40_000)]), Some(STREAM_MAX));
        let many: Vec<_> = (0..=EARLY_MAX as u32).map(|part| (200 + part * 10, 5)).collect();
        assert_eq!(len(&many[1..]), Some(100));
        assert_eq!(len(&many), None);
    }

    #[test]
    fn streams_end_by_turns_and_by_memory() {
        let mut streams = Streams::new(10_500, Hashing::default());
        let mut ended = Vec::new();
        for port in 0..20 {
            let record = packet(port, 1);
            assert!(!streams.may_have(&packet(port, 1)) || port > 0);
            streams.open(&record, 7, &[0; 1_000], (usize::from(port), true), |own, why| {
                ended.push((own, why))
            });
            assert!(streams.may_have(&record) && streams.memory() <= 10_500);
        }
        let no_room = |(at, own): (usize, &(usize, Unread))| *own == (at, Unread::NoRoom);
        assert!(ended.len() > 10 && ended.iter().enumerate().all(no_room));
        // The time of another connection ends nothing.
        let mut live = streams.all.len();
        let late = packet(100, 9 * LIFETIME_NS);
        streams.open(&late, 7, &[], (100, true), |_, _| live -= 1);
        assert_eq!(streams.all.len(), live + 1);
        ended.clear();
        streams.turn(|_, _| panic!("nothing ends"));
        let Fed::Grew(stream) = streams.feed(&late, 7, &[0; 10], |_, _| {}) else { panic!() };
        streams.put(&late, stream, |_, _| live -= 1);
        streams.turn(|own, why| ended.push((own, why)));
        assert!(ended.len() == live && ended.iter().all(|own| own.1 == Unread::Incomplete));
        assert_eq!(streams.all.len(), 1);
        let mut rest = Vec::new();
        streams.end(|own| rest.push(own));
        assert_eq!((rest, streams.memory()), (vec![100], 0));
        assert!(!streams.may_have(&late));
    }

    /// A sender who chooses ports does not fill one slot of the filter.
    #[test]
    fn chosen_ports_spread_over_the_slots() {
        let streams = Streams::new(0, Hashing::default());
        let chosen = (0..1_u32 << 22).filter(|ports| ports.wrapping_mul(0x9e37_79b1) >> 20 == 0);
        let slots: Vec<u16> = chosen
            .take(1_000)
            .map(|ports| {
                let (src_port, dst_port) = ((ports >> 16) as u16, ports as u16);
                streams.slot(&PacketRecord { src_port, dst_port, ..PacketRecord::EMPTY })
            })
            .collect();
        let distinct: std::collections::BTreeSet<_> = slots.iter().collect();
        assert!(slots.len() == 1_000 && distinct.len() > 700, "{}", distinct.len());
    }

    #[test]
    fn a_stream_is_of_one_direction_and_one_time() {
        let mut streams = Streams::new(usize::MAX, Hashing::default());
        streams.open(&packet(1, 5), 7, b"abc", (0, true), |_, _| {});
        assert!(matches!(streams.feed(&packet(2, 5), 10, b"d", |_, _| {}), Fed::NoStream));
        let reversed = PacketRecord { src_port: 443, dst_port: 1, ..packet(1, 5) };
        assert!(matches!(streams.feed(&reversed, 10, b"d", |_, _| {}), Fed::NoStream));
        let grown = streams.feed(&packet(1, 6), 10, b"d", |_, _| {});
        let Fed::Grew(stream) = grown else { panic!("no growth") };
        streams.put(&packet(1, 6), stream, |_, _| {});
        // A late segment, and one of a later connection, end it.
        for (sequence, ts_ns) in [(11, LIFETIME_NS + 6), (1 << 30, 6)] {
            let mut ended = 0;
            streams.open(&packet(3, 5), 7, b"abc", (0, true), |_, _| {});
            let fed = streams.feed(&packet(3, ts_ns), sequence, b"d", |_, why| {
                ended += u32::from(why == Unread::Incomplete);
            });
            assert!(matches!(fed, Fed::NoStream) && ended == 1);
        }
    }

    #[test]
    fn held_segments_and_parses_are_bounded() {
        let (mut streams, mut ended) = (Streams::new(1 << 20, Hashing::default()), 0);
        for port in 0..100 {
            streams.open(&packet(port, 5), 0, b"abc", (0, true), |_, _| ended += 1);
        }
        for part in 1..=EARLY_MAX as u32 {
            for port in 0..100 {
                streams.feed(&packet(port, 5), part * 2_000, &[0; 1_400], |_, _| ended += 1);
                assert!(streams.memory() <= 1 << 20);
            }
        }
        assert!(ended > 10 && streams.all.len() + ended == 100);
        let record = packet(200, 5);
        streams.open(&record, 0, b"a", (0, true), |_, _| {});
        let mut parses = 1;
        while let Fed::Grew(stream) = streams.feed(&record, parses, b"a", |_, _| {}) {
            streams.put(&record, stream, |_, _| {});
            parses += 1;
        }
        assert_eq!(parses, PARSES_MAX);
    }
}

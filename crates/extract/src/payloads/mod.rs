//! The payloads of a reader: which protocols are possible, and who reads them.

use std::collections::BTreeMap;

use ringtap_wire::{Flags, PacketRecord, Part, joined};

use crate::datagrams::{Datagrams, Start};
use crate::hashing::Hashing;
use crate::opening::LOOKED_AT;
use crate::positions::{Place, Positions, Read};
use crate::protocols::http::{Framed, Frames};
use crate::protocols::{self, HTTP, OPENINGS, PORTS, States, http};
use crate::streams::{Fed, STREAM_MAX, Stream, Streams};
use crate::text::Text;
use crate::{Extractors, Found, Kind, Payload, Progress, Unread};

const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN: u8 = 1;
const SYN: u8 = 2;

/// Counters of payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages read, by extractor.
    pub read: BTreeMap<&'static str, u64>,
    /// Payloads and messages that could not be read, by extractor and reason.
    pub unread: BTreeMap<(&'static str, Unread), u64>,
}

impl Counts {
    /// Adds the counters of another reader.
    pub fn add(&mut self, other: &Self) {
        for (&name, &messages) in &other.read {
            *self.read.entry(name).or_default() += messages;
        }
        for (&why, &payloads) in &other.unread {
            *self.unread.entry(why).or_default() += payloads;
        }
    }
}

/// Counts streams and messages that end.
fn ended(unread: &mut UnreadCounts) -> impl FnMut(usize, Unread) {
    |protocol, why| unread[protocol][why as usize] += 1
}

/// Numbers of payloads that could not be read, by extractor and reason.
type UnreadCounts = [[u64; Unread::ALL.len()]; Extractors::NAMES.len()];

/// The result of a look at a packet: the possible protocols.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) protocols: u16,
    /// The protocols that the first bytes allow.
    pub(crate) by_content: u16,
    pub(crate) stream: bool,
}

impl Look {
    /// Whether the payload must be read.
    #[inline(always)]
    pub(crate) fn is_interesting(self) -> bool {
        self.protocols != 0 || self.stream
    }
}

/// The extractors of a reader, with their state.
pub struct Payloads {
    set: Extractors,
    /// The openings of `set` over UDP and TCP.
    openings: [u32; 2],
    datagrams: Datagrams,
    /// The hash of directions, which is that of streams and positions.
    hashing: Hashing,
    streams: Streams,
    positions: Positions,
    states: States,
    /// The time of the first packet of the stream that was read last.
    began_ns: Option<u64>,
    /// Messages read, by extractor.
    read: [u64; Extractors::NAMES.len()],
    unread: UnreadCounts,
    counts: Counts,
}

impl Payloads {
    /// The extractors of `set`. Incomplete messages, and what is known of connections, take at most about `memory` bytes.
    pub fn new(set: Extractors, memory: usize) -> Self {
        let hashing = Hashing::default();
        Self {
            set,
            openings: [OPENINGS[0].openings(set.0), OPENINGS[1].openings(set.0)],
            datagrams: Datagrams::new(memory / 16),
            streams: Streams::new(memory / 16 * 5, hashing.clone()),
            positions: Positions::new(memory / 8, hashing.clone()),
            hashing,
            states: States::new(memory / 2),
            began_ns: None,
            read: [0; Extractors::NAMES.len()],
            unread: [[0; Unread::ALL.len()]; Extractors::NAMES.len()],
            counts: Counts::default(),
        }
    }

    /// The time of the first packet of the first message that the last call of [`Payloads::read`] found, if that is an
    /// earlier packet.
    pub fn began_ns(&self) -> Option<u64> {
        self.began_ns
    }

    /// Messages read so far, and payloads not read by [`Unread`], of all extractors.
    pub fn totals(&self) -> (u64, [u64; Unread::ALL.len()]) {
        let mut unread = [0; Unread::ALL.len()];
        for own in &self.unread {
            unread.iter_mut().zip(own).for_each(|(sum, more)| *sum += more);
        }
        (self.read.iter().sum(), unread)
    }

    /// Whether there are extractors.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.set != Extractors::NONE
    }

    /// Whether a packet may be of interest: its payload, the bytes of `frame` from `at` on, or its SYN or FIN. `sequence` is
    /// called for connections with a body, and returns the number in the TCP header if it is known. Few branches depend
    /// on the packet, because packets of all kinds mix at random: those for short segments, for bodies, for SYNs and FINs.
    #[inline(always)]
    pub fn may_read(
        &self,
        record: &PacketRecord,
        frame: &[u8],
        at: usize,
        sequence: impl FnOnce() -> Option<u32>,
    ) -> bool {
        let tcp = record.protocol == TCP;
        let data = record.flags.contains(Flags::DATA);
        let short = frame.len() < at + LOOKED_AT;
        if short & tcp & data {
            return self.may_begin(record, frame.get(at..).unwrap_or_default());
        }
        let last = frame.len().saturating_sub(LOOKED_AT);
        let openings = match frame.get(at.min(last)..).and_then(|rest| rest.first_chunk()) {
            Some(head) => OPENINGS[usize::from(tcp)].look(head, record.src_port),
            None => 0,
        } & self.openings[usize::from(tcp)];
        let payload = frame.get(at..).unwrap_or_default();
        let openings = OPENINGS[usize::from(tcp)].confirmed(openings, payload);
        let ports = PORTS.has(record.src_port) | PORTS.has(record.dst_port);
        let found = (!short & (openings != 0)) | (ports & !tcp);
        let (streams, positions) = (&self.streams, &self.positions);
        let hash = self.hashing.direction(record, false);
        let waits = !streams.is_empty() && streams.may_have_at(hash);
        let has_body = positions.has_bodies() && positions.may_have_body_at(hash);
        let joins = waits
            || has_body
                && sequence().is_none_or(|sequence| {
                    positions.may_end_body(record, sequence, frame.len().saturating_sub(at))
                });
        let begins = record.tcp_flags & SYN != 0
            && self.reads_syns() | waits | (!positions.is_empty() && positions.may_know_at(hash));
        let ends = record.tcp_flags & FIN != 0 && has_body;
        data & (found | (tcp & joins)) | tcp & (begins | ends)
    }

    /// Whether a short segment may be of interest.
    #[cold]
    fn may_begin(&self, record: &PacketRecord, start: &[u8]) -> bool {
        let openings = OPENINGS[1].look_at_start(start, record.src_port) & self.openings[1];
        openings != 0 && !record.flags.contains(Flags::TRUNCATED)
            || self.streams.may_have(record)
            || self.positions.may_have_body(record)
            || record.tcp_flags & (SYN | FIN) != 0
    }

    /// Looks at the ports and the first bytes of a payload. Over TCP, what has fewer bytes may begin a message, too.
    pub(crate) fn look(&self, record: &PacketRecord, payload: &[u8]) -> Look {
        let (tcp, udp) = (record.protocol == TCP, record.protocol == UDP);
        if payload.is_empty() || !(tcp | udp) {
            return Look { protocols: 0, by_content: 0, stream: false };
        }
        let by_port = PORTS.look(record.src_port) | PORTS.look(record.dst_port);
        let table = &OPENINGS[usize::from(tcp)];
        let openings = match payload.first_chunk::<LOOKED_AT>() {
            Some(head) => table.look(head, record.src_port),
            // What was cut when it was captured shows too little.
            None if tcp && !record.flags.contains(Flags::TRUNCATED) => {
                table.look_at_start(payload, record.src_port)
            }
            None => 0,
        };
        let by_content = table.protocols(openings);
        Look {
            protocols: (by_content | if tcp { 0 } else { by_port }) & self.set.0,
            by_content,
            // Exactly, so that other connections in the slot decide nothing.
            stream: tcp && self.streams.has(record),
        }
    }

    #[inline(always)]
    fn reads_syns(&self) -> bool {
        self.set.0 >> protocols::SYN & 1 != 0
    }

    /// Reads the TCP header of a packet, `header.bytes`, if it has a SYN and these are read; arguments as for
    /// [`Payloads::read`], which follows.
    pub fn read_syn(&mut self, header: &Payload<'_>, found: &mut impl FnMut(Kind, &[u8]) -> bool) {
        if header.record.tcp_flags & SYN == 0 || !self.reads_syns() {
            return;
        }
        self.read[protocols::SYN] += 1;
        if let Err((why, _)) = self.parse(protocols::SYN, header, found) {
            self.lose(protocols::SYN, why);
        }
    }

    /// Reads a payload, if it is of interest; passes the facts in it to `found`, which returns false if it has no room.
    pub fn read(&mut self, payload: &Payload<'_>, found: &mut impl FnMut(Kind, &[u8]) -> bool) {
        let Payload { record, bytes, mut sequence } = *payload;
        let look = self.look(record, bytes);
        self.began_ns = None;
        if record.protocol != TCP {
            if look.is_interesting() {
                self.read_as(look, payload, found);
            }
            return;
        }
        if record.tcp_flags & SYN != 0 {
            self.positions.begin(record);
            self.streams.begin(record, ended(&mut self.unread));
            // It takes a number itself.
            sequence = sequence.wrapping_add(1);
        }
        let ends_body = self.positions.may_end_body(record, sequence, bytes.len());
        // Many bytes look like a method. If nothing is known of the direction, they need no place.
        let is_none = look.protocols == 1 << HTTP
            && !(look.stream || ends_body || self.positions.may_know(record))
            && !http::begins(bytes);
        if (look.is_interesting() || ends_body) && !is_none {
            self.read_segment(look, &Payload { record, bytes, sequence }, found);
        }
        if record.tcp_flags & FIN != 0 {
            let end = sequence.wrapping_add(bytes.len() as u32);
            if let Some(octets) = self.positions.close(record, end) {
                self.end_body(true, octets, found);
            }
        }
    }

    /// Reads what is new in a segment.
    fn read_segment(
        &mut self,
        mut look: Look,
        segment: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) {
        let Payload { record, bytes: mut rest, mut sequence } = *segment;
        while !rest.is_empty() {
            let place = self.positions.place(record, sequence, rest.len());
            let len = match place {
                Place::New(len) | Place::Known(len) | Place::Lost(len, _) => len,
                Place::Framed(next, frames) => {
                    let payload = Payload { record, bytes: rest, sequence };
                    self.read_chunks(next, frames, &payload, found)
                }
            };
            let (bytes, behind) = rest.split_at(len.clamp(1, rest.len()));
            let payload = Payload { record, bytes, sequence };
            // Of a whole segment, it is known.
            if bytes.len() < segment.bytes.len() {
                look = self.look(record, bytes);
            }
            match place {
                Place::New(_) if look.is_interesting() => self.read_as(look, &payload, found),
                Place::Lost(_, frames) if look.is_interesting() => {
                    let resumes = look.protocols >> HTTP & 1 != 0 && http::resumes(bytes, frames);
                    let protocols = u16::from(resumes) << HTTP;
                    self.read_as(
                        Look { protocols, by_content: protocols, ..look },
                        &payload,
                        found,
                    );
                }
                _ => {}
            }
            sequence = sequence.wrapping_add(bytes.len() as u32);
            rest = behind;
        }
    }

    /// Reads the payload of a datagram in fragments, when its last one arrives; arguments as for [`Payloads::read`].
    pub fn read_part(
        &mut self,
        record: &PacketRecord,
        part: &Part<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) {
        self.began_ns = None;
        let first = (part.offset == 0).then(|| self.start(record, part));
        let ended = ended(&mut self.unread);
        let Some((protocol, bytes)) = self.datagrams.add(part, record.ts_ns, first, ended) else {
            return;
        };
        if let Some((record, payload)) = joined(record, protocol, &bytes) {
            let ringtap_wire::Payload { header, bytes, sequence } = payload;
            self.read_syn(&Payload { record: &record, bytes: header, sequence }, found);
            self.read(&Payload { record: &record, bytes, sequence }, found);
        }
    }

    /// What the first part of a datagram says of it.
    fn start(&self, record: &PacketRecord, part: &Part<'_>) -> Start {
        if !matches!(part.protocol, TCP | UDP) {
            return Start::Ignored;
        }
        // A part without the first bytes of the data says nothing.
        let Some((record, payload)) = joined(record, part.protocol, part.bytes) else {
            return Start::Held(None);
        };
        let protocols = self.look(&record, payload.bytes).protocols;
        match (protocols, part.protocol) {
            (0, UDP) if payload.bytes.len() >= LOOKED_AT => Start::Ignored,
            (0, _) => Start::Held(None),
            _ => Start::Held(Some(protocols.trailing_zeros() as usize)),
        }
    }

    /// Reads the lines of a chunked body, the next of which begins at the sequence number `next`, that of the payload or an
    /// earlier one. Returns how many bytes of the payload belong to the body, or wait for earlier ones.
    #[cold]
    fn read_chunks(
        &mut self,
        next: u32,
        mut frames: Frames,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) -> usize {
        let Payload { record, bytes, sequence } = *payload;
        let len = bytes.len();
        let waits = self.streams.begins_at(record, next);
        if !waits && sequence == next {
            return self.step(next, &mut frames, payload, found).min(len);
        }
        // The segment with the line is missing so far.
        if !waits {
            let ended = ended(&mut self.unread);
            self.streams.open(record, next, &[], (HTTP, true), ended);
        }
        match self.streams.feed(record, sequence, bytes, ended(&mut self.unread)) {
            Fed::Waits => {}
            Fed::Grew(stream) => {
                let payload = Payload { bytes: &stream.bytes, sequence: next, ..*payload };
                let used = self.step(next, &mut frames, &payload, found);
                let bytes = stream.bytes.get(used..).unwrap_or_default();
                let look = self.look(record, bytes);
                if look.is_interesting() {
                    let sequence = next.wrapping_add(used as u32);
                    self.read_as(look, &Payload { record, bytes, sequence }, found);
                }
            }
            Fed::Exceeded(protocol) => {
                self.lose(protocol, Unread::Incomplete);
                self.positions.lose_body(record, frames.is_response());
            }
            // It waited for too long, which was counted.
            Fed::NoStream => self.positions.lose_body(record, frames.is_response()),
        }
        len
    }

    /// Reads the lines of a chunked body from the beginning of a payload on. Returns how many bytes belong to the body.
    fn step(
        &mut self,
        start: u32,
        frames: &mut Frames,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) -> usize {
        let Payload { record, bytes, .. } = *payload;
        let framed = frames.step(bytes);
        let (len, body, left) = match framed {
            Framed::Continues(more) => (bytes.len(), more, Some(*frames)),
            Framed::Ends(len) => (len, 0, None),
            Framed::Broken => {
                self.lose(HTTP, Unread::Malformed);
                self.positions.lose_body(record, frames.is_response());
                return bytes.len();
            }
        };
        let read = Read { start, len, body, frames: left, requests: None };
        self.positions.advance(record, HTTP, &read, ended(&mut self.unread));
        if let Framed::Ends(_) = framed {
            self.end_body(frames.is_response(), frames.octets(), found);
        }
        len
    }

    /// Passes the length of a body that ended behind the packet with its header. The fact is in no message.
    fn end_body(
        &mut self,
        is_response: bool,
        octets: u64,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) {
        let kind = if is_response { Kind::HttpResponseLength } else { Kind::HttpRequestLength };
        if !found(kind, Text::number(octets).bytes()) {
            self.lose(HTTP, Unread::TooMuch);
        }
    }

    /// Reads a payload as one of the protocols of `look`.
    pub(crate) fn read_as(
        &mut self,
        look: Look,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) {
        if look.stream {
            let ended = ended(&mut self.unread);
            match self.streams.feed(payload.record, payload.sequence, payload.bytes, ended) {
                Fed::NoStream => {}
                Fed::Waits => return,
                Fed::Exceeded(protocol) => {
                    return self.lose(protocol, Unread::TooMuch);
                }
                Fed::Grew(stream) => {
                    if self.read_stream(stream, payload, found) {
                        return;
                    }
                }
            }
        }
        match self.attempt(look, payload, found) {
            Some((protocol, Ok(Progress::More(from)))) => self.open(protocol, from, payload),
            Some((protocol, Ok(Progress::Preface(len)))) => {
                self.read_behind(protocol, len, payload, found);
            }
            Some((protocol, read)) => {
                let Payload { record, bytes, sequence } = *payload;
                self.finish(record, protocol, (sequence, bytes.len()), read);
            }
            None => {}
        }
    }

    /// Reads a payload with the parsers of `look`, in order: the protocol and its result, unless it is of none of them.
    fn attempt(
        &mut self,
        look: Look,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) -> Option<(usize, Result<Progress, Unread>)> {
        let mut rest = look.protocols;
        let mut failed = None;
        while rest != 0 {
            let protocol = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            match self.parse(protocol, payload, found) {
                Ok(Progress::Other) => {}
                Ok(progress) => return Some((protocol, Ok(progress))),
                // Only the port says that it is this protocol: it may be another one.
                Err((why, 0)) if look.by_content >> protocol & 1 == 0 => {
                    failed = failed.or(Some((protocol, Err(why))));
                }
                Err((why, _)) => return Some((protocol, Err(why))),
            }
        }
        failed
    }

    /// A payload, or a stream, of this many bytes from a sequence number on was read.
    fn finish(
        &mut self,
        record: &PacketRecord,
        protocol: usize,
        (start, len): (u32, usize),
        read: Result<Progress, Unread>,
    ) {
        if record.protocol == TCP {
            let body = if let Ok(Progress::Body(body)) = read { body } else { 0 };
            let exchange = self.states.exchange();
            let (requests, frames) = match protocol {
                HTTP => (Some(exchange.own), exchange.frames),
                _ => (None, None),
            };
            let read = Read { start, len, body, frames, requests };
            self.positions.advance(record, protocol, &read, ended(&mut self.unread));
            if protocol == HTTP && exchange.answered {
                self.positions.answer(record, exchange.other);
            }
        }
        match read {
            Ok(Progress::Switched(switch)) => {
                self.positions.switch(record, protocol, switch, ended(&mut self.unread));
            }
            Ok(_) => {}
            Err(why) => self.lose(protocol, why),
        }
    }

    /// Runs a parser, and counts its messages. The error is why the payload could not be read, and the number of messages
    /// found before.
    fn parse(
        &mut self,
        protocol: usize,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) -> Result<Progress, (Unread, u64)> {
        if protocol == HTTP && payload.record.protocol == TCP {
            if !http::begins(payload.bytes) {
                return Ok(Progress::Other);
            }
            let Some([own, other]) = self.positions.exchange(payload.record) else {
                return Ok(Progress::Other);
            };
            *self.states.exchange() = http::Exchange { own, other, ..Default::default() };
        }
        let (mut messages, mut omitted, mut room) = (0, 0, true);
        let each: Found<'_> = &mut |kind, value| {
            let begins = u64::from(kind == Kind::Protocol);
            // After a value without room nothing more is passed, so that no message has the values of another.
            if room && found(kind, value) {
                messages += begins;
            } else {
                omitted += if room { 1 } else { begins };
                room = false;
            }
        };
        let read = self.states.read(protocol, payload, each);
        self.read[protocol] += messages;
        self.unread[protocol][Unread::TooMuch as usize] += omitted;
        read.map_err(|why| (why, messages))
    }

    /// Reads what follows the first bytes of a payload, which were read, as another protocol.
    fn read_behind(
        &mut self,
        protocol: usize,
        len: usize,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) {
        let Payload { record, bytes, sequence } = *payload;
        self.finish(record, protocol, (sequence, len), Ok(Progress::Done));
        let bytes = bytes.get(len..).unwrap_or_default();
        let look = self.look(record, bytes);
        let look = Look { protocols: look.protocols & !(1 << protocol), stream: false, ..look };
        if look.is_interesting() {
            let sequence = sequence.wrapping_add(len as u32);
            self.read_as(look, &Payload { record, bytes, sequence }, found);
        }
    }

    /// A message continues beyond its first packet. What is before it was read.
    fn open(&mut self, protocol: usize, from: usize, payload: &Payload<'_>) {
        let Payload { record, sequence, .. } = *payload;
        let bytes = payload.bytes.get(from..).unwrap_or_default();
        if record.protocol == TCP && from > 0 {
            self.finish(record, protocol, (sequence, from), Ok(Progress::Done));
        }
        if record.protocol != TCP || record.flags.contains(Flags::TRUNCATED) {
            return self.lose(protocol, Unread::Truncated);
        }
        if bytes.len() >= STREAM_MAX {
            return self.lose(protocol, Unread::TooMuch);
        }
        let ended = ended(&mut self.unread);
        let sequence = sequence.wrapping_add(from as u32);
        let decided = payload.bytes.len() >= LOOKED_AT;
        self.streams.open(record, sequence, bytes, (protocol, decided), ended);
    }

    /// Reads the message of a stream that grew. A stream with less than [`LOOKED_AT`] bytes may be of several protocols;
    /// returns false if it is of none: then the segment may begin a message itself.
    fn read_stream(
        &mut self,
        mut stream: Stream,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) -> bool {
        let Payload { record, .. } = *payload;
        let whole = Payload { record, bytes: &stream.bytes, sequence: stream.start };
        self.began_ns = self.began_ns.or(Some(stream.start_ns));
        let read = if stream.decided {
            let read = self.parse(stream.protocol, &whole, found);
            if read == Ok(Progress::Other) {
                // It turned out to be of another protocol.
                self.lose(stream.protocol, Unread::Malformed);
                self.began_ns = None;
                return false;
            }
            (stream.protocol, read.map_err(|(why, _)| why))
        } else {
            let mut look = self.look(record, &stream.bytes);
            look.protocols |= 1 << stream.protocol;
            let Some(read) = self.attempt(look, &whole, found) else {
                self.began_ns = None;
                return false;
            };
            read
        };
        match read {
            (protocol, Ok(Progress::More(from))) => {
                let from = from.min(stream.bytes.len());
                if from > 0 {
                    self.finish(record, protocol, (stream.start, from), Ok(Progress::Done));
                }
                stream.skip(from, protocol, record.ts_ns);
                if stream.bytes.len() >= STREAM_MAX {
                    self.lose(protocol, Unread::TooMuch);
                } else if record.flags.contains(Flags::TRUNCATED) {
                    self.lose(protocol, Unread::Truncated);
                } else {
                    self.streams.put(record, stream, ended(&mut self.unread));
                }
            }
            (protocol, Ok(Progress::Preface(len))) => {
                self.read_behind(protocol, len, &whole, found);
            }
            (protocol, read) => {
                self.finish(record, protocol, (stream.start, stream.bytes.len()), read);
            }
        }
        true
    }

    fn lose(&mut self, protocol: usize, why: Unread) {
        self.unread[protocol][why as usize] += 1;
    }

    /// Begins the next turn of all tables: what was not used for a whole turn ends. The caller calls it at places of the
    /// stream that depend on the packets alone, at least [`LIFETIME_NS`](crate::LIFETIME_NS) of packet time apart.
    pub fn turn(&mut self) {
        self.datagrams.turn(ended(&mut self.unread));
        self.streams.turn(ended(&mut self.unread));
        self.positions.turn(ended(&mut self.unread));
        self.states.turn();
    }

    /// Bytes that incomplete messages and the like take now, of those given to [`Payloads::new`].
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.datagrams.memory()
            + self.streams.memory()
            + self.positions.memory()
            + self.states.memory()
    }

    /// The counters so far; at the end, `end` is true, and incomplete messages are counted.
    pub fn counts(&mut self, end: bool) -> &Counts {
        let unread = &mut self.unread;
        if end {
            self.datagrams.finish(ended(unread));
            self.streams.end(|protocol| unread[protocol][Unread::Incomplete as usize] += 1);
        }
        self.states.dropped(end, &mut |protocol, why, number| {
            unread[protocol][why as usize] += number;
        });
        for ((name, messages), unread) in Extractors::NAMES.iter().zip(self.read).zip(unread) {
            if messages > 0 {
                self.counts.read.insert(name, messages);
            }
            for (why, payloads) in Unread::ALL.into_iter().zip(*unread) {
                if payloads > 0 {
                    self.counts.unread.insert((name, why), payloads);
                }
            }
        }
        &self.counts
    }
}

#[cfg(test)]
mod tests;

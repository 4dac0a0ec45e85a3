//! The payloads of a reader: which protocols are possible, and who reads them.

use std::collections::BTreeMap;

use ringtap_wire::{Flags, PacketRecord};

use crate::opening::LOOKED_AT;
use crate::protocols::{OPENINGS, PORTS, States};
use crate::streams::{Fed, STREAM_MAX, Stream, Streams};
use crate::{Extractors, Found, Kind, Payload, Progress, Unread};

const TCP: u8 = 6;
const UDP: u8 = 17;
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
    /// Those that the first bytes allow.
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
    streams: Streams,
    states: States,
    /// Messages read, by extractor.
    read: [u64; Extractors::NAMES.len()],
    unread: UnreadCounts,
    counts: Counts,
}

impl Payloads {
    /// The extractors of `set`. Incomplete messages take at most about `memory` bytes.
    pub fn new(set: Extractors, memory: usize) -> Self {
        Self {
            set,
            openings: [OPENINGS[0].openings(set.0), OPENINGS[1].openings(set.0)],
            streams: Streams::new(memory / 2),
            states: States::new(memory / 2),
            read: [0; Extractors::NAMES.len()],
            unread: [[0; Unread::ALL.len()]; Extractors::NAMES.len()],
            counts: Counts::default(),
        }
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

    /// Whether the payload of a packet may be of interest: the bytes of `frame` from `at` on. Without branches that
    /// depend on the packet, because packets of all kinds mix at random.
    #[inline(always)]
    pub fn may_read(&self, record: &PacketRecord, frame: &[u8], at: usize) -> bool {
        let tcp = record.protocol == TCP;
        let short = frame.len() < at + LOOKED_AT;
        let last = frame.len().saturating_sub(LOOKED_AT);
        let openings = match frame.get(at.min(last)..).and_then(|rest| rest.first_chunk()) {
            Some(head) => OPENINGS[usize::from(tcp)].look(head, record.src_port),
            None => 0,
        } & self.openings[usize::from(tcp)];
        // Over TCP the length in front of a DNS message may be a segment of its own.
        let ports = PORTS.has(record.src_port) | PORTS.has(record.dst_port);
        let found = (!short & (openings != 0)) | (ports & (!tcp | short));
        record.flags.contains(Flags::DATA) & (found | (tcp & self.streams.may_have(record)))
    }

    /// Looks at the ports and the first bytes of a payload.
    pub(crate) fn look(&self, record: &PacketRecord, payload: &[u8]) -> Look {
        let (tcp, udp) = (record.protocol == TCP, record.protocol == UDP);
        if payload.is_empty() || !(tcp | udp) {
            return Look { protocols: 0, by_content: 0, stream: false };
        }
        let by_port = PORTS.look(record.src_port) | PORTS.look(record.dst_port);
        let table = &OPENINGS[usize::from(tcp)];
        let (by_content, by_port) = match payload.first_chunk::<LOOKED_AT>() {
            Some(head) if tcp => (table.protocols(table.look(head, record.src_port)), 0),
            Some(head) => (table.protocols(table.look(head, record.src_port)), by_port),
            // Short segments are of interest to protocols over TCP alone.
            None if tcp => (0, by_port & table.protocols(table.openings(u16::MAX))),
            None => (0, by_port),
        };
        Look {
            protocols: (by_content | by_port) & self.set.0,
            by_content,
            stream: tcp && self.streams.may_have(record),
        }
    }

    /// Reads a payload, if it is of interest; passes the facts in it to `found`, which returns false if it has no room.
    pub fn read(&mut self, payload: &Payload<'_>, found: &mut impl FnMut(Kind, &[u8]) -> bool) {
        let look = self.look(payload.record, payload.bytes);
        if look.is_interesting() {
            // A SYN takes a number itself.
            let syn = u32::from(payload.record.tcp_flags & SYN != 0);
            let sequence = payload.sequence.wrapping_add(syn);
            self.read_as(look, &Payload { sequence, ..*payload }, found);
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
                Fed::Grew(stream) => return self.read_stream(stream, payload, found),
            }
        }
        let mut rest = look.protocols;
        let mut failed = None;
        while rest != 0 {
            let protocol = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            match self.parse(protocol, payload, found) {
                Ok(Progress::Other) => {}
                Ok(Progress::More(from)) => return self.open(protocol, from, payload),
                Ok(Progress::Done | Progress::Body(_) | Progress::Switched(_)) => return,
                // Only the port says that it is this protocol: it may be another one.
                Err((why, 0)) if look.by_content >> protocol & 1 == 0 => {
                    failed = failed.or(Some((protocol, why)));
                }
                Err((why, _)) => return self.lose(protocol, why),
            }
        }
        if let Some((protocol, why)) = failed {
            self.lose(protocol, why);
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

    /// A message continues beyond its first packet.
    fn open(&mut self, protocol: usize, from: usize, payload: &Payload<'_>) {
        let record = payload.record;
        let bytes = payload.bytes.get(from..).unwrap_or_default();
        if record.protocol != TCP || record.flags.contains(Flags::TRUNCATED) {
            return self.lose(protocol, Unread::Truncated);
        }
        if bytes.len() >= STREAM_MAX {
            return self.lose(protocol, Unread::TooMuch);
        }
        let ended = ended(&mut self.unread);
        let sequence = payload.sequence.wrapping_add(from as u32);
        self.streams.open(record, sequence, bytes, protocol, ended);
    }

    /// Reads the message of a stream that grew.
    fn read_stream(
        &mut self,
        mut stream: Stream,
        payload: &Payload<'_>,
        found: &mut impl FnMut(Kind, &[u8]) -> bool,
    ) {
        let whole = Payload { bytes: &stream.bytes, sequence: 0, ..*payload };
        let why = match self.parse(stream.protocol, &whole, found) {
            Ok(Progress::More(from)) => {
                stream.bytes.drain(..from.min(stream.bytes.len()));
                if stream.bytes.len() >= STREAM_MAX {
                    Unread::TooMuch
                } else if payload.record.flags.contains(Flags::TRUNCATED) {
                    Unread::Truncated
                } else {
                    return self.streams.put(payload.record, stream, ended(&mut self.unread));
                }
            }
            // It turned out to be of another protocol.
            Ok(Progress::Other) => Unread::Malformed,
            Ok(Progress::Done | Progress::Body(_) | Progress::Switched(_)) => {
                return self.streams.finish(payload.record, &stream, ended(&mut self.unread));
            }
            Err((why, _)) => why,
        };
        self.lose(stream.protocol, why);
    }

    fn lose(&mut self, protocol: usize, why: Unread) {
        self.unread[protocol][why as usize] += 1;
    }

    /// Begins the next turn of all tables: what was not used for a whole turn ends. The caller calls it at places of the
    /// stream that depend on the packets alone, at least [`LIFETIME_NS`](crate::LIFETIME_NS) of packet time apart.
    pub fn turn(&mut self) {
        self.streams.turn(ended(&mut self.unread));
        self.states.turn();
    }

    /// Bytes that incomplete messages and the like take now, of those given to [`Payloads::new`].
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.streams.memory() + self.states.memory()
    }

    /// The counters so far; at the end, `end` is true, and incomplete messages are counted.
    pub fn counts(&mut self, end: bool) -> &Counts {
        let unread = &mut self.unread;
        if end {
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

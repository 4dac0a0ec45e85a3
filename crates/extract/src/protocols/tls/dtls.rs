//! DTLS (RFC 6347, RFC 9147): hellos in datagrams, also those in fragments.
//!
//! ```text
//! record     0      1         3       5          11       13
//!            | type | version | epoch | sequence | length | fragment … |
//! handshake  0      1        4          6                 9                 12
//!            | type | length | sequence | fragment offset | fragment length | fragment … |
//! ```
//!
//! A hello that is longer than a datagram is sent in several records with parts of its body. They are kept until the
//! hello is complete, for [`LIFETIME_NS`] by the times of its packets, within the memory given to the state.

use ringtap_base::Aged;

use super::message::{self, CLIENT_HELLO, HANDSHAKE, SERVER_HELLO, length};
use super::recent::Recent;
use crate::hashing::Hashing;
use crate::opening::{Bytes, Opening};
use crate::streams::Direction;
use crate::{Found, LIFETIME_NS, Payload, Progress, State, Unread};

/// Version 1.0, 1.2 or 1.3, and a sequence number below 2⁴⁰.
pub(super) const OPENING: Opening = Opening {
    first: Bytes::of(&[HANDSHAKE]),
    third: Bytes::of(&[0xff, 0xfd, 0xfc]),
    sixth: Bytes::of(&[0]),
    ..Opening::ANY
};

const RECORD_HEADER: usize = 13;
const HANDSHAKE_HEADER: usize = 12;
/// Longest body of a hello that is joined.
const BODY_MAX: usize = 1 << 14;
/// Most separate parts of a body.
const PARTS_MAX: usize = 16;

/// A fragment of a hello.
struct Fragment<'a> {
    kind: u8,
    /// Length of the body.
    len: usize,
    sequence: [u8; 2],
    offset: usize,
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The fragment at the beginning of `datagram`, and what follows its record; `None`: there is no fragment of a hello.
    ///
    /// # Errors
    /// It is not complete, or contradicts itself.
    fn read(datagram: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, Unread> {
        let Some((header, rest)) = datagram.split_first_chunk::<RECORD_HEADER>() else {
            return Ok(None);
        };
        // Epoch 0: not encrypted.
        let &[HANDSHAKE, 0xfe, 0xff | 0xfd | 0xfc, 0, 0, .., high, low] = header else {
            return Ok(None);
        };
        let record_len = usize::from(u16::from_be_bytes([high, low]));
        let Some((header, _)) = rest.split_first_chunk::<HANDSHAKE_HEADER>() else {
            return Ok(None);
        };
        let &[kind, a, b, c, s0, s1, d, e, f, g, h, i] = header;
        if !matches!(kind, CLIENT_HELLO | SERVER_HELLO) {
            return Ok(None);
        }
        let [len, offset, part] = [[a, b, c], [d, e, f], [g, h, i]].map(length);
        if record_len < HANDSHAKE_HEADER + part || offset + part > len {
            return Err(Unread::Malformed);
        }
        let record = rest.get(..record_len).ok_or(Unread::Truncated)?;
        let bytes = &record[HANDSHAKE_HEADER..HANDSHAKE_HEADER + part];
        let fragment = Self { kind, len, sequence: [s0, s1], offset, bytes };
        Ok(Some((fragment, &rest[record_len..])))
    }
}

/// A hello of which some fragments arrived.
struct Partial {
    kind: u8,
    sequence: [u8; 2],
    body: Vec<u8>,
    /// The parts that arrived, in order, separated by gaps.
    parts: Vec<(usize, usize)>,
    start_ns: u64,
}

impl Partial {
    fn belongs(&self, fragment: &Fragment<'_>) -> bool {
        (self.kind, self.sequence, self.body.len())
            == (fragment.kind, fragment.sequence, fragment.len)
    }

    /// Adds a fragment; returns whether the body is complete; `None`: it has too many gaps.
    fn add(&mut self, fragment: &Fragment<'_>) -> Option<bool> {
        let (mut start, mut end) = (fragment.offset, fragment.offset + fragment.bytes.len());
        self.body[start..end].copy_from_slice(fragment.bytes);
        self.parts.retain(|&(first, last)| {
            let apart = last < start || end < first;
            if !apart {
                (start, end) = (start.min(first), end.max(last));
            }
            apart
        });
        let at = self.parts.partition_point(|&(first, _)| first < start);
        self.parts.insert(at, (start, end));
        (self.parts.len() <= PARTS_MAX).then(|| self.parts == [(0, self.body.len())])
    }

    /// Bytes beside its place in the table.
    fn memory(&self) -> usize {
        (PARTS_MAX + 1) * size_of::<(usize, usize)>() + self.body.len()
    }
}

type Table = Aged<Direction, Partial, Hashing>;

/// Hellos in fragments.
pub(crate) struct Fragments {
    all: Table,
    /// Bytes beside the table, and most bytes with it.
    bytes: usize,
    bytes_max: usize,
    incomplete: u64,
    no_room: u64,
}

impl State for Fragments {
    fn new(memory: usize) -> Self {
        Self {
            all: Aged::new(memory / Table::ENTRY_BYTES, Hashing::default()),
            bytes: 0,
            bytes_max: memory,
            incomplete: 0,
            no_room: 0,
        }
    }

    fn dropped(&mut self, end: bool, count: &mut dyn FnMut(Unread, u64)) {
        if end {
            while let Some((_, partial)) = self.all.pop_oldest() {
                self.bytes -= partial.memory();
                self.incomplete += 1;
            }
        }
        count(Unread::Incomplete, std::mem::take(&mut self.incomplete));
        count(Unread::NoRoom, std::mem::take(&mut self.no_room));
    }

    fn turn(&mut self) {
        self.all.turn();
        while let Some((_, partial)) = self.all.pop_old() {
            self.bytes -= partial.memory();
            self.incomplete += 1;
        }
    }
}

impl Fragments {
    /// Reads the hello, or the parts of one, that a datagram begins with.
    pub(super) fn datagram(
        &mut self,
        payload: &Payload<'_>,
        recent: &mut Recent,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        let mut rest = payload.bytes;
        let mut progress = Progress::Other;
        while let Some((fragment, behind)) = Fragment::read(rest)? {
            if fragment.bytes.len() == fragment.len {
                return message::datagram(fragment.kind, fragment.bytes, recent, found);
            }
            if let Some(hello) = self.join(payload, &fragment)? {
                return message::datagram(hello.kind, &hello.body, recent, found);
            }
            progress = Progress::Done;
            rest = behind;
        }
        Ok(progress)
    }

    /// Adds a fragment to its hello; returns the hello if it is complete.
    fn join(
        &mut self,
        payload: &Payload<'_>,
        fragment: &Fragment<'_>,
    ) -> Result<Option<Partial>, Unread> {
        if fragment.len > BODY_MAX {
            return Err(Unread::TooMuch);
        }
        let (direction, now_ns) = (Direction::of(payload.record), payload.record.ts_ns);
        let mut partial = match self.take(&direction) {
            Some(own) if own.belongs(fragment) && !is_old(own.start_ns, now_ns) => own,
            other => {
                self.incomplete += u64::from(other.is_some());
                Partial {
                    kind: fragment.kind,
                    sequence: fragment.sequence,
                    body: vec![0; fragment.len],
                    parts: Vec::new(),
                    start_ns: now_ns,
                }
            }
        };
        match partial.add(fragment) {
            Some(true) => return Ok(Some(partial)),
            Some(false) => {}
            None => return Err(Unread::TooMuch),
        }
        self.bytes += partial.memory();
        let (_, mut evicted) = self.all.insert(direction, partial);
        // The oldest ones, until the memory suffices.
        loop {
            if let Some((_, partial)) = evicted {
                self.bytes -= partial.memory();
                self.no_room += 1;
            }
            if self.memory() <= self.bytes_max {
                return Ok(None);
            }
            evicted = self.all.pop_oldest();
        }
    }

    fn take(&mut self, direction: &Direction) -> Option<Partial> {
        let partial = self.all.remove(direction)?;
        self.bytes -= partial.memory();
        Some(partial)
    }

    /// Bytes of all.
    pub(super) fn memory(&self) -> usize {
        self.bytes + self.all.len() * Table::ENTRY_BYTES
    }
}

fn is_old(start_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(start_ns) > LIFETIME_NS
}

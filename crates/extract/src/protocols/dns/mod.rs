//! DNS over UDP and TCP (RFC 1035, 7766), multicast DNS (RFC 6762) and LLMNR (RFC 4795).
//!
//! ```text
//! UDP: | message |        TCP: | length (2) | message | length (2) | message | …
//! ```
//!
//! On the UDP ports 53, 5353 and 5355 each datagram is read. On other ports a message is recognised by its content: one
//! question with a printable name and a registered type, and records that end where the message ends.
//!
//! Over TCP a stream is recognised by the beginning of a segment: a length, and a header that is possible (ports 53 and
//! 5355) or as above. There, the first segment of a message must have 14 bytes, on the known ports 1.
//!
//! A message that is cut (a first fragment, a short capture) is reported as far as it is there, and counted. NetBIOS
//! name service has the same format but other names, so its ports are left out.

mod format;
mod message;
mod names;
mod pending;
mod record;
mod types;

use std::mem;

use ringtap_wire::{Flags, PacketRecord};

use crate::opening::{Bytes, Opening};
use crate::streams::STREAM_MAX;
use crate::text::Text;
use crate::{Extractor, Found, Kind, Payload, Progress, State, Unread};

use format::HEADER;
use message::{Message, Outcome, Question, pass_code, pass_flags, pass_question};
use pending::{Asked, Pending};

pub(crate) use types::{class_number, code_number, flags_number, type_number};

const TCP: u8 = 6;
const DNS: u16 = 53;
const MULTICAST: u16 = 5353;
const LLMNR: u16 = 5355;
const NETBIOS: [u16; 2] = [137, 138];

/// The DNS extractor.
pub(crate) struct Dns;

impl Extractor for Dns {
    // The first byte of the length of a message below 4 KiB; longer ones are rarely the first of a segment. The sixth
    // byte: no Z bit, a registered response code.
    const TCP: &'static [Opening] = &[Opening {
        first: Bytes::range(0, 0x0f),
        sixth: Bytes::of(&{
            let (mut bytes, mut at) = ([0; 96], 0);
            while at < bytes.len() {
                let upper = [0x00, 0x10, 0x20, 0x30, 0x80, 0x90, 0xa0, 0xb0][at / 12];
                bytes[at] = upper | (at % 12) as u8;
                at += 1;
            }
            bytes
        }),
        // The lower byte of one question.
        eighth: Bytes::of(&[1]),
        least: Some(HEADER as u16),
        ..Opening::ANY
    }];
    // Flags with the operation 0; the lower byte of one question.
    const UDP: &'static [Opening] = &[Opening {
        third: Bytes::of(&[0, 1, 2, 3, 4, 5, 6, 7, 128, 129, 130, 131, 132, 133, 134, 135]),
        sixth: Bytes::of(&[1]),
        ..Opening::ANY
    }];
    const PORTS: &'static [u16] = &[DNS, MULTICAST, LLMNR];

    type State = Messages;

    fn read(
        state: &mut Messages,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        if payload.record.protocol == TCP {
            stream(state, payload, found)
        } else {
            datagram(state, payload, found)
        }
    }
}

/// Questions without an answer, and reasons to be counted.
pub(crate) struct Messages {
    pending: Pending,
    /// Messages in a stream that could not be read, although later ones could.
    malformed: u64,
    /// Messages with more values than are read.
    too_much: u64,
    /// Room for a text.
    text: Vec<u8>,
}

impl State for Messages {
    fn new(memory: usize) -> Self {
        Self { pending: Pending::new(memory), malformed: 0, too_much: 0, text: Vec::new() }
    }

    fn dropped(&mut self, _end: bool, count: &mut dyn FnMut(Unread, u64)) {
        count(Unread::NoRoom, self.pending.take_no_room());
        count(Unread::Malformed, mem::take(&mut self.malformed));
        count(Unread::TooMuch, mem::take(&mut self.too_much));
    }

    fn turn(&mut self) {
        self.pending.turn();
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        self.pending.memory()
    }
}

/// Reads a datagram.
fn datagram(
    state: &mut Messages,
    payload: &Payload<'_>,
    found: Found<'_>,
) -> Result<Progress, Unread> {
    let Payload { record, bytes, .. } = *payload;
    let cut = record.flags.0 & (Flags::TRUNCATED.0 | Flags::FRAGMENT.0) != 0;
    let message = Message { bytes, cut };
    let len = if cut { usize::MAX } else { bytes.len() };
    let ports = [record.src_port, record.dst_port];
    if !ports.iter().any(|port| Dns::PORTS.contains(port)) {
        let netbios = ports.iter().any(|port| NETBIOS.contains(port));
        if netbios || !message.is_certain(len) {
            return Ok(Progress::Other);
        }
    }
    read(state, record, &message, len, found)?;
    Ok(Progress::Done)
}

/// The next message of a stream.
enum Next<'a> {
    /// There is none.
    Other,
    /// A message begins here, and is not complete.
    Part(Message<'a>, usize),
    /// A complete message.
    Whole(Message<'a>),
}

/// Reads the messages of a stream.
fn stream(
    state: &mut Messages,
    payload: &Payload<'_>,
    found: Found<'_>,
) -> Result<Progress, Unread> {
    let Payload { record, bytes, .. } = *payload;
    let known = [record.src_port, record.dst_port].iter().any(|port| [DNS, LLMNR].contains(port));
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match next(rest, known, at == 0) {
            Next::Other if at == 0 => return Ok(Progress::Other),
            Next::Other => return Err(Unread::Malformed),
            Next::Whole(message) => {
                at += 2 + message.bytes.len();
                let read = read(state, record, &message, message.bytes.len(), found);
                state.malformed += u64::from(read.is_err());
            }
            Next::Part(message, len) => {
                let why = if record.flags.contains(Flags::TRUNCATED) {
                    Unread::Truncated
                } else if rest.len() >= STREAM_MAX {
                    Unread::TooMuch
                } else {
                    return Ok(Progress::More(at));
                };
                let read = read(state, record, &message, len, found);
                return Err(read.err().filter(|&own| own == Unread::Malformed).unwrap_or(why));
            }
        }
    }
    Ok(Progress::Done)
}

/// Looks at the next message of a stream. On a known port it need not be an ordinary one.
fn next(rest: &[u8], known: bool, first: bool) -> Next<'_> {
    let Some((&prefix, behind)) = rest.split_first_chunk() else {
        return if first && !known {
            Next::Other
        } else {
            Next::Part(Message { bytes: &[], cut: true }, HEADER)
        };
    };
    let len = usize::from(u16::from_be_bytes(prefix));
    let bytes = &behind[..len.min(behind.len())];
    let message = Message { bytes, cut: bytes.len() < len };
    let accepted = match message.header() {
        _ if len < HEADER => false,
        Ok(header) if known => header.is_possible(len),
        Ok(_) => message.is_certain(len),
        Err(_) => !first || known && len < 0x1000,
    };
    match accepted {
        false => Next::Other,
        true if message.cut => Next::Part(message, len),
        true => Next::Whole(message),
    }
}

/// Reads a message of this length, as far as it is there.
fn read(
    state: &mut Messages,
    record: &PacketRecord,
    message: &Message<'_>,
    len: usize,
    found: Found<'_>,
) -> Result<(), Unread> {
    let unread = |fault| message.unread(fault);
    let header = message.header().map_err(unread)?;
    if !header.is_possible(len) || header.questions() == 0 && !message.has_records(&header) {
        return Err(Unread::Malformed);
    }
    // Nothing is passed if a question cannot be read.
    let mut question = Question::EMPTY;
    let mut first = None;
    let several = header.questions() > 1;
    let keep_first = |question: &Question| {
        if several {
            first.get_or_insert_with(|| question.clone());
        }
    };
    let records_at = message.each_question(&header, &mut question, keep_first).map_err(unread)?;

    let protocol = protocol(record);
    found(Kind::Protocol, protocol);
    found(Kind::DnsKind, if header.is_answer() { b"answer" } else { b"query" });
    found(Kind::DnsId, Text::number(header.id.into()).bytes());
    let text = &mut state.text;
    pass_flags(&header, text, found);
    let multicast = protocol == b"mdns";
    let mut pass = |question: &Question| pass_question(question, multicast, text, found);
    let first = match (header.questions(), &first) {
        (1, _) => {
            pass(&question);
            Some(&question)
        }
        (_, Some(first)) => {
            message.each_question(&header, &mut question, pass).map_err(unread)?;
            Some(first)
        }
        _ => None,
    };

    let mut outcome = Outcome::default();
    let read = message.read_records(&header, records_at, multicast, text, &mut outcome, found);
    if header.is_answer() {
        pass_code(&header, &outcome, found);
    }
    if let Some(&Question { ref name, kind, .. }) = first
        && header.is_query()
        && protocol == b"dns"
    {
        let asked = Asked { name: name.hash(), kind };
        if !header.is_answer() {
            state.pending.ask(record, header.id, asked);
        } else if let Some(time_ns) = state.pending.answer(record, header.id, asked) {
            found(Kind::DnsResponseTime, Text::number(time_ns / 1_000).bytes());
        }
    }
    state.too_much += u64::from(outcome.too_much);
    read.map_err(unread)
}

/// The protocol by the ports.
fn protocol(record: &PacketRecord) -> &'static [u8] {
    let ports = [record.src_port, record.dst_port];
    match ports {
        _ if ports.contains(&DNS) => b"dns",
        _ if ports.contains(&MULTICAST) && record.protocol != TCP => b"mdns",
        _ if ports.contains(&LLMNR) => b"llmnr",
        _ => b"dns",
    }
}

#[cfg(test)]
mod tests;

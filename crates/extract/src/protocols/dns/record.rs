//! Resource records as texts: owner, type, time to live and data, separated by spaces.
//!
//! ```text
//! www.example.org A 300 192.0.2.1
//! example.org MX 3600 10 mail.example.org
//! My\032Printer._ipp._tcp.local SRV 120 0 0 631 printer.local
//! host.example.org ANY/A 0                                      another class than IN is before the type
//! example.org TYPE65280 60 \# 4 0a000001                        of other types (RFC 3597, section 5)
//! ```
//!
//! The parts of data are listed by type. In owners, and in names among other parts, spaces, control characters and
//! backslashes are `\DDD` (RFC 1035, section 5.1), so that parts can be split; a name that is all of the data is as it
//! is. The strings of a TXT record are joined without separator (RFC 7208, section 3.3).
//!
//! Invariant: a text has a bounded length; what is cut ends in `...`, or says its length.

use std::io::Write as _;
use std::net::Ipv6Addr;

use super::format::Fault;
use super::names::Name;
use super::types::{class_name, type_name};
use crate::protocols::tls::hex;
use crate::text::Text;

/// Most bytes of data as text.
const DATA_MAX: usize = 1_024;
/// Most bytes of data that are written as hexadecimal digits: the longest digest.
const HEX_MAX: usize = 64;

/// The class of the Internet.
pub(super) const INTERNET: u16 = 1;
/// The class of what an update deletes.
const ANY: u16 = 255;

/// A resource record; its owner and its data are at these places of the message.
pub(super) struct Record {
    pub(super) owner: usize,
    pub(super) kind: u16,
    pub(super) class: u16,
    pub(super) ttl: u32,
    pub(super) data: std::ops::Range<usize>,
}

/// A part of data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// A number of 1, 2 or 4 bytes.
    Number(usize),
    Name,
    /// A string with its length, in quotation marks.
    Quoted,
    /// The tag of CAA: a string of letters and digits with its length.
    Tag,
    /// The rest, in quotation marks.
    QuotedRest,
    /// The rest: strings with their lengths, joined.
    Strings,
    /// The rest: hexadecimal digits.
    Digits,
    /// The rest: parameters of a service (RFC 9460, section 2.2).
    Parameters,
}

const BYTE: Part = Part::Number(1);
const HALF: Part = Part::Number(2);
const WORD: Part = Part::Number(4);

/// The parts of the data of a type; none if the type is not read.
const fn parts(kind: u16) -> &'static [Part] {
    match kind {
        // A, AAAA; NS, CNAME, PTR, DNAME; TXT.
        1 => &[Part::Ipv4],
        28 => &[Part::Ipv6],
        2 | 5 | 12 | 39 => &[Part::Name],
        16 => &[Part::Strings],
        // SOA, MX, SRV, NAPTR.
        6 => &[Part::Name, Part::Name, WORD, WORD, WORD, WORD, WORD],
        15 => &[HALF, Part::Name],
        33 => &[HALF, HALF, HALF, Part::Name],
        35 => &[HALF, HALF, Part::Quoted, Part::Quoted, Part::Quoted, Part::Name],
        // DS and CDS, SSHFP, TLSA and SMIMEA, CAA.
        43 | 59 => &[HALF, BYTE, BYTE, Part::Digits],
        44 => &[BYTE, BYTE, Part::Digits],
        52 | 53 => &[BYTE, BYTE, BYTE, Part::Digits],
        257 => &[BYTE, Part::Tag, Part::QuotedRest],
        // SVCB, HTTPS.
        64 | 65 => &[HALF, Part::Name, Part::Parameters],
        _ => &[],
    }
}

/// What a record's data refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Refers {
    /// An address, a name or a text, which is all of its data.
    Whole,
    /// A name that begins after this number of bytes.
    NameAt(usize),
    /// Something else.
    Other,
}

impl Record {
    pub(super) const fn refers(&self) -> Refers {
        match self.kind {
            1 | 28 | 2 | 5 | 12 | 39 | 16 => Refers::Whole,
            15 => Refers::NameAt(2),
            33 => Refers::NameAt(6),
            _ => Refers::Other,
        }
    }

    /// Writes the record's text into `text`, which becomes empty before; returns the position of the data there.
    ///
    /// # Errors
    /// The data contradicts its type, if that is one of an address, a name or a text.
    pub(super) fn write(
        &self,
        message: &[u8],
        owner: &Name,
        multicast: bool,
        text: &mut Vec<u8>,
    ) -> Result<usize, Fault> {
        text.clear();
        push_escaped(text, owner.bytes());
        text.push(b' ');
        // The upper bit of multicast DNS replaces what is in caches (RFC 6762, section 10.2).
        let class = if multicast { self.class & 0x7fff } else { self.class };
        if class != INTERNET {
            push_known(text, class_name(class), "CLASS", class);
            text.push(b'/');
        }
        push_known(text, type_name(self.kind), "TYPE", self.kind);
        text.push(b' ');
        text.extend_from_slice(Text::number(self.ttl.into()).bytes());
        text.push(b' ');
        let start = text.len();
        let mut data = Data { message: &message[..self.data.end], at: self.data.start };
        // An update deletes by records of the class ANY without data (RFC 2136, section 2.5).
        if self.data.is_empty() && class == ANY {
            return Ok(start);
        }
        let parts = parts(self.kind);
        let written = data.write(parts, text);
        match written {
            Ok(()) if !parts.is_empty() && data.rest().is_empty() => {}
            _ if self.refers() != Refers::Other => return Err(Fault::Wrong),
            _ => {
                text.truncate(start);
                let data = &message[self.data.clone()];
                let _ = write!(text, "\\# {}", data.len());
                if !data.is_empty() {
                    text.push(b' ');
                    push_digits(text, &data[..data.len().min(HEX_MAX)]);
                }
            }
        }
        if text.len() > start + DATA_MAX {
            text.truncate(start + DATA_MAX);
            text.extend_from_slice(b"...");
        }
        Ok(start)
    }
}

/// The data of a record: the message up to its end, and a position.
struct Data<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Data<'a> {
    fn rest(&self) -> &'a [u8] {
        self.message.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let taken = self.rest().get(..len).ok_or(Fault::Wrong)?;
        self.at += len;
        Ok(taken)
    }

    fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.at = self.message.len();
        rest
    }

    fn number(&mut self, bytes: usize) -> Result<u32, Fault> {
        Ok(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    fn string(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.number(1)?;
        self.take(len as usize)
    }

    fn write(&mut self, parts: &[Part], text: &mut Vec<u8>) -> Result<(), Fault> {
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                text.push(b' ');
            }
            match part {
                Part::Ipv4 => push_ipv4(text, self.take(4)?),
                Part::Ipv6 => push_ipv6(text, self.take(16)?),
                Part::Number(bytes) => _ = write!(text, "{}", self.number(*bytes)?),
                Part::Name => {
                    let mut name = Name::EMPTY;
                    self.at = name.read(self.message, self.at).map_err(|_| Fault::Wrong)?;
                    match parts.len() {
                        1 => text.extend_from_slice(name.bytes()),
                        _ => push_escaped(text, name.bytes()),
                    }
                }
                Part::Quoted => push_quoted(text, self.string()?),
                Part::Tag => {
                    let tag = self.string()?;
                    if tag.is_empty() || !tag.iter().all(u8::is_ascii_alphanumeric) {
                        return Err(Fault::Wrong);
                    }
                    text.extend_from_slice(tag);
                }
                Part::QuotedRest => {
                    let rest = self.take_rest();
                    push_quoted(text, &rest[..rest.len().min(DATA_MAX)]);
                }
                Part::Strings => {
                    let end = text.len() + DATA_MAX + 1;
                    while !self.rest().is_empty() {
                        let string = self.string()?;
                        // One byte more than the limit shows that it is cut.
                        let room = end.saturating_sub(text.len()).min(string.len());
                        text.extend_from_slice(&string[..room]);
                    }
                }
                Part::Digits => push_digits_of(text, self.take_rest()),
                Part::Parameters => self.write_parameters(text)?,
            }
        }
        Ok(())
    }

    fn write_parameters(&mut self, text: &mut Vec<u8>) -> Result<(), Fault> {
        // Without parameters there is no space behind the target.
        let end = text.len() + DATA_MAX;
        text.pop();
        while !self.rest().is_empty() {
            let key = self.number(2)? as u16;
            let len = self.number(2)? as usize;
            let value = self.take(len)?;
            if text.len() <= end {
                text.push(b' ');
                write_parameter(key, value, end, text)?;
            }
        }
        Ok(())
    }
}

/// Writes a parameter; `text` grows little beyond `end`.
fn write_parameter(key: u16, value: &[u8], end: usize, text: &mut Vec<u8>) -> Result<(), Fault> {
    let mut list = |name: &str, size: usize, push: fn(&mut Vec<u8>, &[u8])| {
        text.extend_from_slice(name.as_bytes());
        if value.is_empty() || !value.len().is_multiple_of(size) {
            return Err(Fault::Wrong);
        }
        for (number, item) in value.chunks_exact(size).enumerate() {
            if text.len() > end {
                break;
            }
            text.push(if number == 0 { b'=' } else { b',' });
            push(text, item);
        }
        Ok(())
    };
    match key {
        0 => list("mandatory", 2, |text, key| push_key(text, half(key))),
        1 => {
            text.extend_from_slice(b"alpn=");
            let (mut rest, mut first) = (value, true);
            while let Some((&len, behind)) = rest.split_first()
                && text.len() <= end
            {
                let (protocol, behind) = behind.split_at_checked(len.into()).ok_or(Fault::Wrong)?;
                if !first {
                    text.push(b',');
                }
                push_escaped(text, protocol);
                (rest, first) = (behind, false);
            }
            Ok(())
        }
        3 => list("port", 2, |text, port| _ = write!(text, "{}", half(port))),
        4 => list("ipv4hint", 4, push_ipv4),
        6 => list("ipv6hint", 16, push_ipv6),
        // dohpath (RFC 9461).
        7 => {
            text.extend_from_slice(b"dohpath=");
            push_escaped(text, &value[..value.len().min(DATA_MAX)]);
            Ok(())
        }
        _ => {
            push_key(text, key);
            if !value.is_empty() {
                text.push(b'=');
                push_digits_of(text, value);
            }
            Ok(())
        }
    }
}

/// Appends the name of a parameter.
fn push_key(text: &mut Vec<u8>, key: u16) {
    const NAMES: [&str; 9] = [
        "mandatory",
        "alpn",
        "no-default-alpn",
        "port",
        "ipv4hint",
        "ech",
        "ipv6hint",
        "dohpath",
        "ohttp",
    ];
    match NAMES.get(usize::from(key)) {
        Some(name) => text.extend_from_slice(name.as_bytes()),
        None => _ = write!(text, "key{key}"),
    }
}

fn half(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u16::from(byte))
}

fn push_ipv4(text: &mut Vec<u8>, bytes: &[u8]) {
    let address = bytes.first_chunk::<4>().copied().unwrap_or_default();
    text.extend_from_slice(Text::ipv4(address).bytes());
}

fn push_ipv6(text: &mut Vec<u8>, bytes: &[u8]) {
    let address = bytes.first_chunk::<16>().copied().unwrap_or_default();
    let _ = write!(text, "{}", Ipv6Addr::from(address));
}

/// Appends a registered name, else a prefix and the number.
pub(super) fn push_known(text: &mut Vec<u8>, name: Option<&str>, prefix: &str, number: u16) {
    match name {
        Some(name) => text.extend_from_slice(name.as_bytes()),
        None => _ = write!(text, "{prefix}{number}"),
    }
}

/// Appends bytes; what would end a word, and backslashes, become `\DDD`.
fn push_escaped(text: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.iter().fold(true, |plain, &byte| plain & !is_escaped(byte)) {
        return text.extend_from_slice(bytes);
    }
    for &byte in bytes {
        match byte {
            byte if is_escaped(byte) => _ = write!(text, "\\{byte:03}"),
            byte => text.push(byte),
        }
    }
}

fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..=b' ' | b'\\' | 0x7f)
}

/// Appends bytes in quotation marks, those within behind backslashes.
fn push_quoted(text: &mut Vec<u8>, bytes: &[u8]) {
    text.push(b'"');
    for &byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(byte);
    }
    text.push(b'"');
}

/// Appends the first bytes as hexadecimal digits; dots if there are more.
fn push_digits_of(text: &mut Vec<u8>, bytes: &[u8]) {
    push_digits(text, &bytes[..bytes.len().min(HEX_MAX)]);
    if bytes.len() > HEX_MAX {
        text.extend_from_slice(b"...");
    }
}

fn push_digits(text: &mut Vec<u8>, bytes: &[u8]) {
    let at = text.len();
    text.resize(at + 2 * bytes.len(), 0);
    hex(bytes, &mut text[at..]);
}

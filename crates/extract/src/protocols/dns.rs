//! DNS over UDP (RFC 1035), multicast DNS (RFC 6762) and LLMNR (RFC 4795): the names in the question.
//!
//! ```text
//!  0    2       4         6        8            10           12
//!  | id | flags | queries | answers | authorities | additional | queries: | name | type | class | …
//! ```
//!
//! A name is labels of 1 to 63 bytes and a zero; two upper bits set make the rest a pointer to an earlier place of the
//! message. It is given as its labels with dots between them, the root as a single dot; bytes stay as they are, whatever
//! the case and whether printable or not.

use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

const HEADER: usize = 12;
/// The longest name, dots included (RFC 1035, section 2.3.4).
const LONGEST: usize = 254;
/// Questions read from one message; more than one is unusual.
const MOST: usize = 15;

pub(crate) struct Dns;

impl Extractor for Dns {
    const PORTS: &'static [u16] = &[53, 5353, 5355];

    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        message(payload.bytes, found)?;
        Ok(Progress::Done)
    }
}

fn message(message: &[u8], found: Found<'_>) -> Result<(), Unread> {
    let header = message.first_chunk::<HEADER>().ok_or(Unread::Truncated)?;
    let queries = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut at = HEADER;
    found(Kind::Protocol, b"dns");
    for query in 0..queries {
        if query == MOST {
            return Err(Unread::TooMuch);
        }
        let mut name = Name::default();
        at = name.read(message, at)?;
        if message.len() < at + 4 {
            return Err(Unread::Truncated);
        }
        at += 4;
        found(Kind::DnsQueryName, name.bytes());
    }
    Ok(())
}

/// A name being read.
struct Name {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Default for Name {
    fn default() -> Self {
        Self { bytes: [0; LONGEST], len: 0 }
    }
}

impl Name {
    /// Reads the name at `at`; returns the position after it.
    fn read(&mut self, message: &[u8], mut at: usize) -> Result<usize, Unread> {
        let mut behind = None;
        // A pointer leads before the beginning of the current part of the name, so there is no
        // loop.
        let mut earliest = at;
        loop {
            let head = *message.get(at).ok_or(Unread::Truncated)?;
            match (head >> 6, head) {
                (0, 0) => return Ok(behind.unwrap_or(at + 1)),
                (0, len) => {
                    let end = at + 1 + usize::from(len);
                    self.label(message.get(at + 1..end).ok_or(Unread::Truncated)?)?;
                    at = end;
                }
                (3, high) => {
                    let low = *message.get(at + 1).ok_or(Unread::Truncated)?;
                    behind.get_or_insert(at + 2);
                    at = usize::from(high & 0x3f) << 8 | usize::from(low);
                    if at >= earliest || at < HEADER {
                        return Err(Unread::Malformed);
                    }
                    earliest = at;
                }
                _ => return Err(Unread::Malformed),
            }
        }
    }

    fn label(&mut self, label: &[u8]) -> Result<(), Unread> {
        let dot = usize::from(self.len > 0);
        let end = self.len + dot + label.len();
        let place = self.bytes.get_mut(self.len..end).ok_or(Unread::Malformed)?;
        place[..dot].fill(b'.');
        place[dot..].copy_from_slice(label);
        self.len = end;
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        if self.len == 0 { b"." } else { &self.bytes[..self.len] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message with this number of queries in its header, followed by `rest`.
    fn message(queries: u16, rest: &[u8]) -> Vec<u8> {
        let mut message = vec![0; HEADER];
        message[4..6].copy_from_slice(&queries.to_be_bytes());
        message.extend_from_slice(rest);
        message
    }

    fn read(message: &[u8]) -> (Vec<String>, Result<(), Unread>) {
        let mut names = Vec::new();
        let read = super::message(message, &mut |kind, name| {
            if kind == Kind::DnsQueryName {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        });
        (names, read)
    }

    #[test]
    fn names_are_read_and_pointers_followed() {
        let one = message(1, b"\x03www\x07example\x03org\0\0\x01\0\x01");
        assert_eq!(read(&one), (vec!["www.example.org".into()], Ok(())));
        let two = message(2, b"\x01A\x02bc\0\0\x01\0\x01\x04mail\xc0\x0e\0\x0f\0\x01");
        assert_eq!(read(&two), (vec!["A.bc".into(), "mail.bc".into()], Ok(())));
        assert_eq!(read(&message(1, b"\0\0\x02\0\x01")), (vec![".".into()], Ok(())));
        assert_eq!(read(&message(0, b"")), (Vec::new(), Ok(())));
    }

    #[test]
    fn invalid_names_have_a_reason() {
        let nothing = |why| (Vec::new(), Err(why));
        assert_eq!(read(b"short"), nothing(Unread::Truncated));
        assert_eq!(read(&message(1, b"\x03ww")), nothing(Unread::Truncated));
        assert_eq!(read(&message(1, b"\x03www\0\0\x01")), nothing(Unread::Truncated));
        assert_eq!(read(&message(1, b"\xc0\x0c\0\x01\0\x01")), nothing(Unread::Malformed));
        assert_eq!(read(&message(1, b"\xc0\x00\0\x01\0\x01")), nothing(Unread::Malformed));
        assert_eq!(read(&message(1, b"\x80www\0")), nothing(Unread::Malformed));
        let mut long = Vec::new();
        (0..5).for_each(|_| long.extend([&[63][..], &[b'x'; 63]].concat()));
        assert_eq!(read(&message(1, &long)), nothing(Unread::Malformed));
        let many = message(100, &b"\x01a\0\0\x01\0\x01".repeat(100));
        let (names, why) = read(&many);
        assert_eq!((names.len(), why), (MOST, Err(Unread::TooMuch)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(queries in 0_u16..20, rest in prop::collection::vec(any::<u8>(), 0..300)) {
            let (names, _) = read(&message(queries, &rest));
            prop_assert!(names.len() <= MOST);
            prop_assert!(read(&rest).0.len() <= MOST);
        }
    }
}

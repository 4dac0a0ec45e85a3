//! Names in messages (RFC 1035, sections 3.1 and 4.1.4).
//!
//! ```text
//! | 3 | w w w | 7 | e x a m p l e | 3 | o r g | 0 |          labels and the root
//! | 4 | m a i l | 0xc0 0x10 |                                a label and a pointer to an earlier place
//! ```
//!
//! A name is given as its labels with dots between them, the root as a single dot. Bytes stay as they are, whatever
//! the case and whether printable or not.
//!
//! Invariant: pointers lead backwards only and are limited, so reading a name takes a bounded time.

use super::format::{Fault, HEADER};

/// The longest name: 255 bytes with all lengths (RFC 1035, section 2.3.4), so 253 with dots between the labels.
const LONGEST: usize = 253;
/// Room for it in whole words.
const ROOM: usize = LONGEST.next_multiple_of(8);
/// Most pointers in a name; one or two are usual, and a label between pointers is possible.
const POINTERS: usize = 127;

/// A name that was read.
#[derive(Clone)]
pub(super) struct Name {
    /// The bytes up to the next multiple of eight are zero.
    bytes: [u8; ROOM],
    len: usize,
}

impl Name {
    /// No name.
    pub(super) const EMPTY: Self = Self { bytes: [0; ROOM], len: 0 };

    /// Reads the name at a position; returns the position after it.
    pub(super) fn read(&mut self, message: &[u8], mut at: usize) -> Result<usize, Fault> {
        self.len = 0;
        let (mut end, mut pointers) = (None, 0);
        // A pointer leads to a place before the current part of the name, so there is no loop.
        let mut earliest = at;
        loop {
            let head = *message.get(at).ok_or(Fault::Short)?;
            match head {
                0 => {
                    self.bytes[self.len..self.len.next_multiple_of(8)].fill(0);
                    return Ok(end.unwrap_or(at + 1));
                }
                1..=63 => {
                    let next = at + 1 + usize::from(head);
                    self.add(message.get(at + 1..next).ok_or(Fault::Short)?)?;
                    at = next;
                }
                0xc0.. => {
                    let to = pointer(message, at)?;
                    end.get_or_insert(at + 2);
                    pointers += 1;
                    if to >= earliest || pointers > POINTERS {
                        return Err(Fault::Wrong);
                    }
                    (at, earliest) = (to, to);
                }
                _ => return Err(Fault::Wrong),
            }
        }
    }

    /// The position after the name at `at`; a pointer is not followed.
    pub(super) fn skip(message: &[u8], mut at: usize) -> Result<usize, Fault> {
        let start = at;
        loop {
            let head = *message.get(at).ok_or(Fault::Short)?;
            match head {
                0 => return Ok(at + 1),
                1..=63 => at += 1 + usize::from(head),
                0xc0.. if pointer(message, at)? < start => return Ok(at + 2),
                _ => return Err(Fault::Wrong),
            }
            if at - start > LONGEST + 1 {
                return Err(Fault::Wrong);
            }
        }
    }

    fn add(&mut self, label: &[u8]) -> Result<(), Fault> {
        let dot = usize::from(self.len > 0);
        let end = self.len + dot + label.len();
        let place = self.bytes[..LONGEST].get_mut(self.len..end).ok_or(Fault::Wrong)?;
        place[..dot].fill(b'.');
        place[dot..].copy_from_slice(label);
        self.len = end;
        Ok(())
    }

    /// The labels with dots between them.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.len == 0 { b"." } else { &self.bytes[..self.len] }
    }

    /// True if the name is printable ASCII without spaces.
    pub(super) fn is_printable(&self) -> bool {
        self.bytes().iter().all(u8::is_ascii_graphic)
    }

    /// True for a name of the NetBIOS name service: one label of 32 letters from A to P (RFC 1001, section 14.1).
    pub(super) fn is_netbios(&self) -> bool {
        let first = self.bytes().split(|&byte| byte == b'.').next().unwrap_or_default();
        first.len() == 32 && first.iter().all(|byte| (b'A'..=b'P').contains(byte))
    }

    /// A hash of the name that ignores the case of letters (RFC 4343): FNV-1a over words of eight bytes, of which the
    /// upper half is mixed into the lower one.
    pub(super) fn hash(&self) -> u64 {
        let words = self.bytes[..self.len.next_multiple_of(8)].as_chunks().0;
        words.iter().fold(self.len as u64, |hash, word: &[u8; 8]| {
            let hash =
                (hash ^ lower_case(u64::from_le_bytes(*word))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^ hash >> 32
        })
    }
}

/// Eight bytes with the letters of ASCII in lower case.
fn lower_case(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    // The top bit of each byte: at least A, above Z, in ASCII. No sum of seven bits goes beyond its byte.
    let seven = word & !TOP;
    let from_a = seven + (0x80 - u64::from(b'A')) * EACH;
    let above_z = seven + (0x7f - u64::from(b'Z')) * EACH;
    let upper = from_a & !above_z & !word & TOP;
    // From 0x80 to 0x20, which is the difference of the cases.
    word | upper >> 2
}

/// The target of the pointer at `at`.
fn pointer(message: &[u8], at: usize) -> Result<usize, Fault> {
    let bytes = message.get(at..at + 2).ok_or(Fault::Short)?;
    let to = usize::from(u16::from_be_bytes([bytes[0] & 0x3f, bytes[1]]));
    if to < HEADER { Err(Fault::Wrong) } else { Ok(to) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The name behind a header and these bytes.
    fn read(before: &[u8], name: &[u8]) -> Result<(String, usize), Fault> {
        let message = [&[0; HEADER], before, name].concat();
        let at = HEADER + before.len();
        let mut name = Name::EMPTY;
        let end = name.read(&message, at)?;
        Ok((String::from_utf8_lossy(name.bytes()).into_owned(), end - at))
    }

    #[test]
    fn labels_are_joined_and_pointers_followed() {
        assert_eq!(read(b"", b"\x03www\x07example\x03org\0"), Ok(("www.example.org".into(), 17)));
        assert_eq!(read(b"", b"\0"), Ok((".".into(), 1)));
        assert_eq!(read(b"\x02bc\0", b"\x01A\xc0\x0c"), Ok(("A.bc".into(), 4)));
        // A pointer to a pointer.
        assert_eq!(read(b"\x02bc\0\x01x\xc0\x0c", b"\xc0\x10"), Ok(("x.bc".into(), 2)));
        assert_eq!(read(b"", b"\x02\xff.\0"), Ok(("\u{fffd}.".into(), 4)));
    }

    #[test]
    fn pointers_lead_backwards_and_behind_the_header() {
        assert_eq!(read(b"", b"\xc0\x0c"), Err(Fault::Wrong), "to itself");
        assert_eq!(read(b"", b"\x01a\xc0\x0c"), Err(Fault::Wrong), "to its own beginning");
        assert_eq!(read(b"", b"\xc0\x0e\x01a\0"), Err(Fault::Wrong), "forwards");
        assert_eq!(read(b"", b"\xc0\x00"), Err(Fault::Wrong), "into the header");
        assert_eq!(read(b"\xc0\x0e", b"\xc0\x0c"), Err(Fault::Wrong), "in a loop");
        let chain: Vec<u8> =
            (0..200_u16).flat_map(|at| (0xc000 | (10 + 2 * at).max(12)).to_be_bytes()).collect();
        assert_eq!(read(&[&[0, 0], &chain[2..]].concat(), b"\xc0\x20").map(|name| name.1), Ok(2));
        assert_eq!(read(&[&[0, 0], &chain[2..]].concat(), b"\xc1\x80"), Err(Fault::Wrong));
    }

    #[test]
    fn lengths_are_limited() {
        assert_eq!(read(b"", b"\x03ww"), Err(Fault::Short));
        assert_eq!(read(b"", b"\x03www"), Err(Fault::Short));
        assert_eq!(read(b"", b"\xc0"), Err(Fault::Short));
        assert_eq!(read(b"", b"\x40www\0"), Err(Fault::Wrong));
        assert_eq!(read(b"", b"\x80www\0"), Err(Fault::Wrong));
        let labels = |last: u8| {
            let mut name: Vec<u8> = [&[63][..], &[b'x'; 63]].concat().repeat(3);
            name.push(last);
            name.resize(name.len() + usize::from(last), b'y');
            name.push(0);
            name
        };
        assert_eq!(read(b"", &labels(61)).map(|name| name.0.len()), Ok(253));
        assert_eq!(read(b"", &labels(62)), Err(Fault::Wrong));
    }

    #[test]
    fn letters_are_in_lower_case() {
        for byte in 0..=u8::MAX {
            let word = [byte, b'Z', byte.wrapping_add(1), 0xff, byte, b'a', 0, byte];
            let lower = word.map(|byte| byte.to_ascii_lowercase());
            assert_eq!(lower_case(u64::from_le_bytes(word)).to_le_bytes(), lower);
        }
    }

    #[test]
    fn names_of_netbios_are_recognised() {
        let name = |bytes: &[u8]| {
            let mut name = Name { bytes: [7; ROOM], len: 5 };
            name.read(&[&[0; HEADER], bytes].concat(), HEADER).unwrap();
            name
        };
        assert!(name(b"\x20CKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\0").is_netbios());
        assert!(!name(b"\x03www\0").is_netbios());
        assert_eq!(name(b"\x03wWw\0").hash(), name(b"\x03WwW\0").hash());
        assert_ne!(name(b"\x03wWw\0").hash(), name(b"\x03wWx\0").hash());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0_usize..320) {
            let mut name = Name::EMPTY;
            if let Ok(end) = name.read(&bytes, at) {
                prop_assert!(end > at && end <= bytes.len() && name.bytes().len() <= LONGEST);
            }
            let _ = Name::skip(&bytes, at);
        }

        #[test]
        fn skipping_ends_where_reading_ends(labels in prop::collection::vec(1_u8..20, 0..9), link in any::<bool>()) {
            let mut name = Vec::new();
            labels.iter().for_each(|&len| name.extend([&[len][..], &vec![b'x'; usize::from(len)]].concat()));
            name.extend_from_slice(if link { b"\xc0\x0c" } else { b"\0" });
            let message = [&[0; HEADER], &b"\x01a\0"[..], &name, b"rest"].concat();
            let end = Name::EMPTY.clone().read(&message, HEADER + 3);
            prop_assert_eq!(end, Ok(HEADER + 3 + name.len()));
            prop_assert_eq!(Name::skip(&message, HEADER + 3), end);
        }
    }
}

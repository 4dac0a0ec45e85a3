//! The frames of Initial packets (RFC 9000, sections 12.4 and 19), and the reassembly of their CRYPTO data.
//!
//! ```text
//! offset   read                                    the data begins at offset 0 with the hello
//!           | received |     gap     | received |  …       at most 16 KiB from `read` on
//!           └ message ─────────────────┘
//! ```
//!
//! Google's versions have CRYPTO frames of another number, ACK frames of another form, and the same PADDING.

use super::header::{Family, varint};
use crate::Unread;

/// Most bytes of CRYPTO data that are held of a side.
pub(super) const CRYPTO_MAX: usize = 16 * 1024;
/// Most separate parts of CRYPTO data that are held of a side.
const PARTS_MAX: usize = 128;
/// The header of a TLS handshake message.
const MESSAGE_HEADER: usize = 4;
/// The header of a message of Google's handshake, and each of its tags.
const CHLO_HEADER: usize = 8;
const CHLO_TAG: usize = 8;

/// Receives the offset and the data of a CRYPTO frame.
type Each<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), Unread>;

/// Passes the offset and the data of each CRYPTO frame of a payload to `each`.
pub(super) fn frames(family: Family, payload: &[u8], each: Each<'_>) -> Result<(), Unread> {
    let google = matches!(family, Family::Google | Family::GoogleChlo);
    let mut frames = Frames { rest: payload };
    while let Some((&kind, rest)) = frames.rest.split_first() {
        frames.rest = rest;
        let known = match kind {
            0 => {
                let padding = rest.iter().take_while(|&&byte| byte == 0).count();
                frames.skip(padding)
            }
            0x06 if !google => frames.crypto(each)?,
            0x08 if google => frames.crypto(each)?,
            0x01 if !google => Some(()),
            0x07 if google => Some(()),
            0x02 | 0x03 if !google => frames.ack(kind == 0x03),
            0x40..=0x7f if google => frames.google_ack(kind),
            0x1c if !google => frames.close(),
            // Google's other frames are rare in Initial packets, and end them.
            _ if google => return Ok(()),
            _ => None,
        };
        known.ok_or(Unread::Malformed)?;
    }
    Ok(())
}

/// The frames behind a frame type; every reader returns `None` if the payload ends early.
struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(part)
    }

    fn skip(&mut self, len: usize) -> Option<()> {
        self.take(len).map(|_| ())
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, len) = varint(self.rest)?;
        self.rest = &self.rest[len..];
        Some(value)
    }

    /// CRYPTO: offset, length, data.
    fn crypto(&mut self, each: Each<'_>) -> Result<Option<()>, Unread> {
        let Some(offset) = self.varint() else { return Ok(None) };
        let Some(len) = self.varint().and_then(|len| usize::try_from(len).ok()) else {
            return Ok(None);
        };
        match self.take(len) {
            Some(data) => each(offset, data).map(Some),
            None => Ok(None),
        }
    }

    /// ACK: largest number, delay, count of ranges, first range; then gap and length of each range; then three counts.
    fn ack(&mut self, with_counts: bool) -> Option<()> {
        self.varint()?;
        self.varint()?;
        let ranges = self.varint()?;
        self.varint()?;
        // Each number takes a byte at least, so the payload bounds the loop.
        for _ in 0..ranges {
            self.varint()?;
            self.varint()?;
        }
        for _ in 0..if with_counts { 3 } else { 0 } {
            self.varint()?;
        }
        Some(())
    }

    /// CONNECTION_CLOSE: error, frame type, length, reason.
    fn close(&mut self) -> Option<()> {
        self.varint()?;
        self.varint()?;
        let len = self.varint()?;
        self.skip(usize::try_from(len).ok()?)
    }

    /// Google's ACK: largest number, delay, number of blocks, blocks, timestamps.
    fn google_ack(&mut self, kind: u8) -> Option<()> {
        const LENGTHS: [usize; 4] = [1, 2, 4, 6];
        let largest = LENGTHS[usize::from(kind >> 2 & 3)];
        let block = LENGTHS[usize::from(kind & 3)];
        self.skip(largest + 2)?;
        let blocks = if kind & 0x20 != 0 { *self.take(1)?.first()? } else { 0 };
        self.skip(block + usize::from(blocks) * (1 + block))?;
        match usize::from(*self.take(1)?.first()?) {
            0 => Some(()),
            times => self.skip(5 + (times - 1) * 3),
        }
    }
}

/// The bytes behind one of Google's ACK frames, whose type was read.
pub(super) fn behind_google_ack(kind: u8, rest: &[u8]) -> Option<&[u8]> {
    let mut frames = Frames { rest };
    frames.google_ack(kind).map(|()| frames.rest)
}

/// The CRYPTO data of one side from a position on.
#[derive(Default)]
pub(super) struct Crypto {
    /// The offset of the first byte held.
    read: u64,
    bytes: Vec<u8>,
    /// The parts of `bytes` that were received: begin and end, in order, with gaps between them.
    parts: Vec<(u16, u16)>,
}

impl Crypto {
    /// No data, of which `read` bytes were read before.
    pub(super) fn from(read: u64) -> Self {
        Self { read, ..Self::default() }
    }

    /// The offset of the first byte that was not read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Whether data was received and not read.
    pub(super) fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The memory of the data.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.parts.capacity() * size_of::<(u16, u16)>()
    }

    /// Adds the data of a frame.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) -> Result<(), Unread> {
        let old = self.read.saturating_sub(offset);
        let Some(data) = usize::try_from(old).ok().and_then(|old| data.get(old..)) else {
            return Ok(());
        };
        if data.is_empty() {
            return Ok(());
        }
        let begin = offset.saturating_sub(self.read);
        let end = begin.saturating_add(data.len() as u64);
        if end > CRYPTO_MAX as u64 {
            return Err(Unread::TooMuch);
        }
        let (begin, end) = (begin as usize, end as usize);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[begin..end].copy_from_slice(data);
        self.mark(begin as u16, end as u16)
    }

    /// Marks a part as received.
    fn mark(&mut self, mut begin: u16, mut end: u16) -> Result<(), Unread> {
        let first = self.parts.partition_point(|part| part.1 < begin);
        let behind = self.parts.partition_point(|part| part.0 <= end);
        if let Some(joined) = self.parts.get(first..behind).filter(|joined| !joined.is_empty()) {
            begin = begin.min(joined[0].0);
            end = end.max(joined[joined.len() - 1].1);
            self.parts[first] = (begin, end);
            self.parts.drain(first + 1..behind);
            return Ok(());
        }
        if self.parts.len() == PARTS_MAX {
            return Err(Unread::TooMuch);
        }
        self.parts.insert(first, (begin, end));
        Ok(())
    }

    /// The next message, if it is complete.
    pub(super) fn message(&self, family: Family) -> Result<Option<&[u8]>, Unread> {
        let received = match self.parts.first() {
            Some(&(0, end)) => &self.bytes[..usize::from(end)],
            _ => return Ok(None),
        };
        let len = match family {
            Family::GoogleChlo => chlo_len(received),
            _ => received.first_chunk().map(|&[_, l0, l1, l2]| {
                MESSAGE_HEADER + u32::from_be_bytes([0, l0, l1, l2]) as usize
            }),
        };
        match len {
            Some(len) if len > CRYPTO_MAX => Err(Unread::TooMuch),
            Some(len) => Ok(received.get(..len)),
            None => Ok(None),
        }
    }

    /// Removes a message that was read.
    pub(super) fn remove(&mut self, len: usize) {
        self.read += len as u64;
        self.bytes.drain(..len.min(self.bytes.len()));
        let len = len as u16;
        self.parts.retain_mut(|part| {
            *part = (part.0.saturating_sub(len), part.1.saturating_sub(len));
            part.1 > part.0
        });
    }
}

/// The length of a message of Google's handshake, if its tags were received.
///
/// ```text
///  | name | tags (little endian) | 0 | tag | end | tag | end | … | values
/// ```
pub(super) fn chlo_len(message: &[u8]) -> Option<usize> {
    let tags = message.get(4..6).map(|tags| usize::from(u16::from_le_bytes([tags[0], tags[1]])))?;
    let values = CHLO_HEADER + tags * CHLO_TAG;
    let Some(last) = values.checked_sub(4).filter(|_| tags > 0) else { return Some(values) };
    let end = u32::from_le_bytes(*message.get(last..)?.first_chunk()?);
    Some(values.saturating_add(end as usize))
}

/// The server name in a client's message of Google's handshake.
pub(super) fn chlo_server_name(message: &[u8]) -> Result<Option<&[u8]>, Unread> {
    let tags = message
        .get(4..6)
        .filter(|_| message.starts_with(b"CHLO"))
        .map(|tags| usize::from(u16::from_le_bytes([tags[0], tags[1]])))
        .ok_or(Unread::Malformed)?;
    let (tags, values) = message
        .get(CHLO_HEADER..)
        .and_then(|rest| rest.split_at_checked(tags * CHLO_TAG))
        .ok_or(Unread::Malformed)?;
    let mut begin = 0;
    for &[t0, t1, t2, t3, e0, e1, e2, e3] in tags.as_chunks().0 {
        let end = u32::from_le_bytes([e0, e1, e2, e3]) as usize;
        let value = values.get(begin..end).ok_or(Unread::Malformed)?;
        if [t0, t1, t2, t3] == *b"SNI\0" {
            return Ok(Some(value));
        }
        begin = end;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Data = Vec<(u64, Vec<u8>)>;

    fn data(family: Family, payload: &[u8]) -> (Data, Result<(), Unread>) {
        let mut all = Vec::new();
        let read = frames(family, payload, &mut |offset, data| {
            all.push((offset, data.to_vec()));
            Ok(())
        });
        (all, read)
    }

    #[test]
    fn crypto_frames_are_found_between_others() {
        let payload = [
            b"\0\0\0".as_slice(),
            b"\x06\x40\x05\x02ab",
            b"\x01",
            b"\x02\x05\x00\x01\x00\x01\x01",
            b"\x03\x05\x00\x00\x00\x01\x01\x01",
            b"\x1c\x0a\x06\x03bad",
            b"\x06\x00\x01c",
        ]
        .concat();
        let both = vec![(5, b"ab".to_vec()), (0, b"c".to_vec())];
        assert_eq!(data(Family::Ietf, &payload), (both, Ok(())));
        for len in [5, 8, 12, payload.len() - 1] {
            assert_eq!(data(Family::Ietf, &payload[..len]).1, Err(Unread::Malformed), "{len}");
        }
        assert_eq!(data(Family::Ietf, b"\x08\0\x01a").1, Err(Unread::Malformed));
        let google = [
            b"\x40\x01\0\0\x01\0".as_slice(),
            b"\x75\0\x01\0\0\x01\0\x01\x02\0\x03\x02\x01\0\0\0\0\x01\0\0",
            b"\x08\x00\x01a\0\0\x07",
        ]
        .concat();
        assert_eq!(data(Family::Google, &google), (vec![(0, b"a".to_vec())], Ok(())));
    }

    #[test]
    fn data_is_joined_in_any_order() {
        let message = b"\x01\0\0\x06abcdef";
        let mut crypto = Crypto::default();
        for (begin, end) in [(6, 8), (2, 3), (0, 2), (6, 7), (8, 10)] {
            crypto.add(begin as u64, &message[begin..end]).unwrap();
            assert_eq!(crypto.message(Family::Ietf), Ok(None));
        }
        assert_eq!(crypto.parts, [(0, 3), (6, 10)]);
        crypto.add(1, &message[1..7]).unwrap();
        assert_eq!(crypto.message(Family::Ietf), Ok(Some(&message[..])));
        crypto.add(10, b"\x0b\0").unwrap();
        crypto.remove(10);
        assert_eq!((crypto.read(), &crypto.bytes[..]), (10, &b"\x0b\0"[..]));
        crypto.add(0, message).unwrap();
        assert_eq!(crypto.parts, [(0, 2)]);
    }

    #[test]
    fn data_is_bounded() {
        let mut crypto = Crypto::default();
        assert_eq!(crypto.add(CRYPTO_MAX as u64 - 1, b"ab"), Err(Unread::TooMuch));
        assert_eq!(crypto.add((1 << 62) - 1, b"a"), Err(Unread::TooMuch));
        for part in 0..PARTS_MAX as u64 {
            crypto.add(2 * part + 4, b"a").unwrap();
        }
        assert_eq!(crypto.add(0, b"a"), Err(Unread::TooMuch));
        crypto.add(5, b"b").unwrap();
        crypto.add(0, b"\x01\0\x40\0").unwrap();
        assert_eq!(crypto.message(Family::Ietf), Err(Unread::TooMuch));
    }

    #[test]
    fn the_server_name_of_googles_handshake_is_found() {
        let chlo = b"CHLO\x02\0\0\0PAD\0\x02\0\0\0SNI\0\x0d\0\0\0--example.org";
        assert_eq!(chlo_len(chlo), Some(chlo.len()));
        assert_eq!(chlo_server_name(chlo), Ok(Some(&b"example.org"[..])));
        assert_eq!(chlo_len(&chlo[..15]), None);
        assert_eq!(chlo_server_name(&chlo[..30]), Err(Unread::Malformed));
        assert_eq!(chlo_server_name(b"CHLO\0\0\0\0"), Ok(None));
        assert_eq!(chlo_server_name(b"REJ\0\0\0\0\0"), Err(Unread::Malformed));
    }

    proptest! {
        #[test]
        fn any_order_gives_the_same_data(cuts in prop::collection::vec((0_usize..300, 1_usize..80), 1..40)) {
            let stream: Vec<u8> = (0..400_u32).map(|byte| (byte * 7 % 251) as u8).collect();
            let mut crypto = Crypto::default();
            let mut received = [false; 400];
            for &(begin, len) in &cuts {
                crypto.add(begin as u64, &stream[begin..begin + len]).unwrap();
                received[begin..begin + len].fill(true);
            }
            let marked: Vec<bool> = (0..400_u16)
                .map(|at| crypto.parts.iter().any(|part| part.0 <= at && at < part.1))
                .collect();
            prop_assert_eq!(&marked[..], &received[..]);
            prop_assert!(crypto.parts.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for family in [Family::Ietf, Family::Google, Family::GoogleChlo] {
                let mut crypto = Crypto::default();
                let _ = frames(family, &bytes, &mut |offset, data| crypto.add(offset, data));
                let _ = crypto.message(family);
            }
            let _ = (chlo_len(&bytes), chlo_server_name(&bytes));
        }
    }
}

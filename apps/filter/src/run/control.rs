//! Changes that travel among the packets: a datagram of UDP with statements, which only who has the key can write.
//!
//! ```text
//!  0          8          16                    48
//!  | ringtap1 | sequence | HMAC-SHA256 of the  | statements, as in a rule file
//!  |          | u64      | rest, by the key    |
//! ```
//!
//! A transaction takes effect exactly at its place: packets before it are judged by the rules before, packets behind it
//! by the next revision. Sequence numbers rise, so a datagram that somebody recorded changes nothing a second time; who
//! sends them takes the time in nanoseconds. Sources: RFC 2104 (HMAC), RFC 4231 (its test vectors).
//!
//! Invariant: a datagram without the right tag is a packet like any other. It is judged, and changes nothing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::link;

const MAGIC: [u8; 8] = *b"ringtap1";
const HEADER: usize = 48;

/// A secret, at least 16 bytes. It shows itself to nobody.
#[derive(Clone)]
pub struct ControlKey(Vec<u8>);

/// Why some bytes are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 16 to 4,096 bytes, not {0}")]
pub struct ControlKeyError(usize);

impl ControlKey {
    /// Of any bytes; a line's end at the end is none of them.
    pub fn new(bytes: &[u8]) -> Result<Self, ControlKeyError> {
        let bytes = bytes.trim_ascii_end();
        if (16..=4096).contains(&bytes.len()) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(ControlKeyError(bytes.len()))
        }
    }

    /// The payload of a datagram with these statements.
    pub fn seal(&self, sequence: u64, statements: &str) -> Vec<u8> {
        let sequence = sequence.to_be_bytes();
        let tag = self.mac(&sequence, statements.as_bytes()).finalize().into_bytes();
        [&MAGIC[..], &sequence, &tag, statements.as_bytes()].concat()
    }

    /// The sequence number and the statements of a payload that was sealed by this key.
    fn open<'a>(&self, payload: &'a [u8]) -> Option<(u64, &'a str)> {
        let (header, statements) = payload.split_at_checked(HEADER)?;
        let sequence: [u8; 8] = header[8..16].try_into().ok()?;
        // In constant time.
        self.mac(&sequence, statements).verify_slice(&header[16..]).ok()?;
        Some((u64::from_be_bytes(sequence), std::str::from_utf8(statements).ok()?))
    }

    fn mac(&self, sequence: &[u8; 8], statements: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mac = mac.unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.chain_update(MAGIC).chain_update(sequence).chain_update(statements)
    }
}

impl fmt::Debug for ControlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControlKey")
    }
}

/// Knows control packets when it sees them. Those it has let in it never lets in again, nor does a clone.
#[derive(Clone, Debug)]
pub struct Knock {
    port: u16,
    key: ControlKey,
    /// The highest sequence number so far.
    last: Arc<AtomicU64>,
}

/// What a frame is to a [`Knock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard<'a> {
    /// A packet like any other.
    Nothing,
    /// It says it is a control packet, but was not written with our key, or is an old one.
    Forged,
    /// These statements are to be applied.
    Statements(&'a str),
}

impl Knock {
    /// For datagrams to this port, sealed by `key`, with sequence numbers above `floor`: for interfaces the time of
    /// the start, so that nothing from before counts.
    pub fn new(port: u16, key: ControlKey, floor: u64) -> Self {
        Self { port, key, last: Arc::new(AtomicU64::new(floor)) }
    }

    /// One comparison for nearly all frames.
    #[inline]
    pub(crate) fn hear<'a>(&self, frame: &'a [u8]) -> Heard<'a> {
        match link::datagram(frame, self.port) {
            Some(payload) if payload.starts_with(&MAGIC) => self.listen(payload),
            _ => Heard::Nothing,
        }
    }

    #[cold]
    fn listen<'a>(&self, payload: &'a [u8]) -> Heard<'a> {
        match self.key.open(payload) {
            // Relaxed: of those who raise it to the same number one is first, and nothing else hangs on it.
            Some((sequence, statements))
                if sequence > self.last.fetch_max(sequence, Ordering::Relaxed) =>
            {
                Heard::Statements(statements)
            }
            _ => Heard::Forged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_that_of_the_standard() {
        // RFC 4231, test case 6: a key longer than a block.
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let mac = Hmac::<Sha256>::new_from_slice(&[0xaa; 131]).unwrap().chain_update(text);
        let tag = mac.finalize().into_bytes();
        assert_eq!(tag[..8], [0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f]);
    }

    #[test]
    fn only_who_has_the_key_is_heard_and_once() {
        let key = ControlKey::new(b"0123456789abcdef\n").unwrap();
        let other = ControlKey::new(b"0123456789abcdeg").unwrap();
        let frame = |payload: &[u8]| link::tests::udp(7777, payload);
        let knock = Knock::new(7777, key.clone(), 10);
        let good = frame(&key.seal(11, "ban 192.0.2.7"));
        assert_eq!(knock.hear(&good), Heard::Statements("ban 192.0.2.7"));
        assert_eq!(knock.hear(&good), Heard::Forged, "a second time");
        assert_eq!(knock.hear(&frame(&key.seal(10, "clear"))), Heard::Forged, "an old one");
        assert_eq!(knock.hear(&frame(&other.seal(12, "clear"))), Heard::Forged);
        let mut changed = frame(&key.seal(12, "ban 192.0.2.7"));
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(knock.hear(&changed), Heard::Forged);
        assert_eq!(knock.hear(&frame(b"ringtap1")), Heard::Forged);
        assert_eq!(knock.hear(&frame(b"hello")), Heard::Nothing);
        assert_eq!(knock.hear(&link::tests::udp(7778, &key.seal(12, "clear"))), Heard::Nothing);
        assert_eq!(knock.hear(&frame(&key.seal(12, "clear"))), Heard::Statements("clear"));
        assert_eq!(
            ControlKey::new(b"short \n").unwrap_err().to_string(),
            "a key has 16 to 4,096 bytes, not 5"
        );
    }
}

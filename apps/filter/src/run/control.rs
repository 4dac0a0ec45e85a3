//! Rule changes in the packet stream: UDP datagrams with statements, authenticated by a shared key.
//!
//! ```text
//!  0          8          16                    48
//!  | ringtap1 | sequence | HMAC-SHA256 of the  | statements, as in a rule file
//!  |          | u64      | rest, by the key    |
//! ```
//!
//! A transaction takes effect at its position: packets before it are judged by the old revision, packets after it by the
//! new one. Sequence numbers must increase, so a replayed datagram is rejected; senders use the time in nanoseconds.
//! Sources: RFC 2104 (HMAC), RFC 4231 (its test vectors).
//!
//! Invariant: a datagram without a valid tag is judged like any other packet and changes nothing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::link;

const MAGIC: [u8; 8] = *b"ringtap1";
const HEADER: usize = 48;

/// A shared secret of 16 to 4,096 bytes. `Debug` does not print it.
#[derive(Clone)]
pub struct ControlKey(Vec<u8>);

/// A key of the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid key of {0} bytes: use 16 to 4,096")]
pub struct ControlKeyError(usize);

impl ControlKey {
    /// Creates a key; trailing ASCII white space is removed.
    pub fn new(bytes: &[u8]) -> Result<Self, ControlKeyError> {
        let bytes = bytes.trim_ascii_end();
        if (16..=4096).contains(&bytes.len()) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(ControlKeyError(bytes.len()))
        }
    }

    /// Returns the datagram payload for these statements.
    pub fn seal(&self, sequence: u64, statements: &str) -> Vec<u8> {
        let sequence = sequence.to_be_bytes();
        let tag = self.mac(&sequence, statements.as_bytes()).finalize().into_bytes();
        [&MAGIC[..], &sequence, &tag, statements.as_bytes()].concat()
    }

    /// Verifies a payload and returns its sequence number and statements.
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

/// Authenticates control packets. Each sequence number is accepted once, also across clones.
#[derive(Clone, Debug)]
pub struct ControlAuth {
    port: u16,
    key: ControlKey,
    /// The highest sequence number accepted so far.
    last: Arc<AtomicU64>,
}

/// The result of [`ControlAuth::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlFrame<'a> {
    /// Not a control packet.
    No,
    /// A control packet with an invalid tag or an old sequence number.
    Forged,
    /// Authentic: apply these statements.
    Statements(&'a str),
}

impl ControlAuth {
    /// Accepts datagrams to `port`, sealed with `key`, with sequence numbers above `floor`. For interfaces `floor` is
    /// the start time, so older datagrams are rejected.
    pub fn new(port: u16, key: ControlKey, floor: u64) -> Self {
        Self { port, key, last: Arc::new(AtomicU64::new(floor)) }
    }

    /// Checks a frame. Most frames cost one comparison.
    #[inline]
    pub(crate) fn check<'a>(&self, frame: &'a [u8]) -> ControlFrame<'a> {
        match link::datagram(frame, self.port) {
            Some(payload) if payload.starts_with(&MAGIC) => self.verify(payload),
            _ => ControlFrame::No,
        }
    }

    #[cold]
    fn verify<'a>(&self, payload: &'a [u8]) -> ControlFrame<'a> {
        match self.key.open(payload) {
            // Relaxed: one of several concurrent `fetch_max` calls wins, and no other memory depends on it.
            Some((sequence, statements))
                if sequence > self.last.fetch_max(sequence, Ordering::Relaxed) =>
            {
                ControlFrame::Statements(statements)
            }
            _ => ControlFrame::Forged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_equals_the_test_vector() {
        // RFC 4231, test case 6: a key longer than a block.
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        let mac = Hmac::<Sha256>::new_from_slice(&[0xaa; 131]).unwrap().chain_update(text);
        let tag = mac.finalize().into_bytes();
        assert_eq!(tag[..8], [0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f]);
    }

    #[test]
    fn a_control_packet_needs_the_key_and_counts_once() {
        let key = ControlKey::new(b"0123456789abcdef\n").unwrap();
        let other = ControlKey::new(b"0123456789abcdeg").unwrap();
        let frame = |payload: &[u8]| link::tests::udp(7777, payload);
        let auth = ControlAuth::new(7777, key.clone(), 10);
        let good = frame(&key.seal(11, "ban 192.0.2.7"));
        assert_eq!(auth.check(&good), ControlFrame::Statements("ban 192.0.2.7"));
        assert_eq!(auth.check(&good), ControlFrame::Forged, "a second time");
        assert_eq!(auth.check(&frame(&key.seal(10, "clear"))), ControlFrame::Forged, "an old one");
        assert_eq!(auth.check(&frame(&other.seal(12, "clear"))), ControlFrame::Forged);
        let mut changed = frame(&key.seal(12, "ban 192.0.2.7"));
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(auth.check(&changed), ControlFrame::Forged);
        assert_eq!(auth.check(&frame(b"ringtap1")), ControlFrame::Forged);
        assert_eq!(auth.check(&frame(b"hello")), ControlFrame::No);
        assert_eq!(auth.check(&link::tests::udp(7778, &key.seal(12, "clear"))), ControlFrame::No);
        assert_eq!(auth.check(&frame(&key.seal(12, "clear"))), ControlFrame::Statements("clear"));
        assert_eq!(
            ControlKey::new(b"short \n").unwrap_err().to_string(),
            "invalid key of 5 bytes: use 16 to 4,096"
        );
    }
}

//! Protection of one key against replayed commands: times and sequence numbers grow, nonces do not
//! repeat.

use std::collections::VecDeque;

use crate::packets::signature::SignatureInfo;

/// Maximum number of stored nonces of a key; the oldest is dropped.
const NONCES_MAX: usize = 256;

/// What the accepted commands of a key had.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    time_ms: u64,
    sequence: Option<u64>,
    nonces: VecDeque<Vec<u8>>,
}

impl Replay {
    /// Whether a signature is newer than all accepted ones. Without `ordered`, its time may be
    /// earlier: several senders share a digest.
    pub(crate) fn is_new(&self, info: &SignatureInfo<'_>, ordered: bool) -> bool {
        let time_grows = !ordered || info.time_ms.is_some_and(|time_ms| time_ms > self.time_ms);
        let sequence_grows = !ordered
            || info.sequence.is_none_or(|new| self.sequence.is_none_or(|latest| new > latest));
        let is_stored = |nonce: &[u8]| self.nonces.iter().any(|stored| stored == nonce);
        time_grows && sequence_grows && !info.nonce.is_some_and(is_stored)
    }

    /// Stores the time, the sequence number and the nonce of an accepted signature.
    pub(crate) fn accept(&mut self, info: &SignatureInfo<'_>) {
        self.time_ms = self.time_ms.max(info.time_ms.unwrap_or(0));
        self.sequence = self.sequence.max(info.sequence);
        if let Some(nonce) = info.nonce {
            self.nonces.truncate(NONCES_MAX - 1);
            self.nonces.push_front(nonce.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(time_ms: u64, nonce: &[u8], sequence: Option<u64>) -> SignatureInfo<'_> {
        let (time_ms, nonce) = (Some(time_ms), Some(nonce));
        SignatureInfo { time_ms, nonce, sequence, ..SignatureInfo::default() }
    }

    #[test]
    fn times_and_sequence_numbers_grow_and_nonces_do_not_repeat() {
        let mut replay = Replay::default();
        replay.accept(&info(100, b"a", Some(5)));
        for (time_ms, nonce, sequence, expected) in [
            (101, &b"b"[..], Some(6), true),
            (101, b"b", None, true),
            (100, b"b", Some(6), false),
            (99, b"b", Some(6), false),
            (101, b"a", Some(6), false),
            (101, b"b", Some(5), false),
        ] {
            let info = info(time_ms, nonce, sequence);
            assert_eq!(replay.is_new(&info, true), expected, "{info:?}");
        }
        assert!(replay.is_new(&info(99, b"b", None), false));
        assert!(!replay.is_new(&info(101, b"a", None), false));
    }

    #[test]
    fn the_latest_nonces_are_stored() {
        let mut replay = Replay::default();
        for number in 0..1_000_u64 {
            replay.accept(&info(number, &number.to_be_bytes(), None));
        }
        let is_new = |number: u64| replay.is_new(&info(0, &number.to_be_bytes(), None), false);
        assert_eq!((is_new(999), is_new(744), is_new(743)), (false, false, true));
        assert_eq!(replay.nonces.len(), NONCES_MAX);
    }
}

//! Keyed hashing for the tables of this crate.
//!
//! Packets choose the keys of the tables, so the hash has a secret key, drawn at random for each table. It is that of
//! [`HashKey`]: two multiplications for 16 bytes, where SipHash takes about 100 instructions. Nothing depends on the
//! order of a table, so results are the same with any key.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use ringtap_wire::{HashKey, PacketRecord};

/// Makes hashers with one secret key.
#[derive(Clone)]
pub(crate) struct Hashing(HashKey);

impl Default for Hashing {
    fn default() -> Self {
        Self(HashKey::from_seed(RandomState::new().hash_one(0)))
    }
}

impl Hashing {
    /// A hash of the direction of a packet, or of the other one.
    #[inline(always)]
    pub(crate) fn direction(&self, record: &PacketRecord, reversed: bool) -> u32 {
        let ports = u32::from(record.src_port) << 16 | u32::from(record.dst_port);
        let ports = if reversed { ports.rotate_left(16) } else { ports };
        let word = u64::from(record.pair_hash) << 32 | u64::from(ports);
        (self.0.word(word) >> 32) as u32
    }
}

impl BuildHasher for Hashing {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher { key: self.0, state: 0 }
    }
}

/// A hash of the words and addresses written so far.
pub(crate) struct KeyedHasher {
    key: HashKey,
    state: u64,
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state = self.key.word(self.state ^ word);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<16>();
        whole.iter().for_each(|part| self.write_u64(self.key.address(part)));
        if !rest.is_empty() {
            let mut part = [0; 16];
            part[..rest.len()].copy_from_slice(rest);
            self.write_u64(self.key.address(&part) ^ rest.len() as u64);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_all_bytes_and_the_key() {
        let (one, other) = (Hashing::default(), Hashing::default());
        let of = |hashing: &Hashing, bytes: &[u8]| {
            let mut hasher = hashing.build_hasher();
            hasher.write(bytes);
            hasher.finish()
        };
        let bytes: Vec<u8> = (0..40).collect();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_ne!(of(&one, &bytes), of(&one, &changed));
            assert_ne!(of(&one, &bytes), of(&one, &bytes[..at]));
        }
        assert_eq!(of(&one, &bytes), of(&one.clone(), &bytes));
        assert_ne!(of(&one, &bytes), of(&other, &bytes));
    }
}

//! Keyed hashing of a key to 128 bits; each row of a sketch uses different bits.
//!
//! ```text
//!  key ── 16 bytes as two words a, b ──▶ (a ^ k0) × (b ^ k1) = 128 bits: low, high
//!                                         low ^ k2 × high ^ k3, folded ──▶ x │ row 0 │ row 1 │
//!                                         low ^ k4 × high ^ k5, folded ──▶ y │ row 2 │ row 3 │
//! ```
//!
//! Multiply-and-fold as in wyhash, in two rounds. One round is not enough: its upper bits are biased, and tables that
//! use the upper bits for positions have long probe sequences. Longer keys are chained, 16 bytes a multiplication. Four
//! rows use 32 bits each, so rows are independent; more rows need another round.
//!
//! An attacker who chooses the keys must not know the seed, otherwise all keys can be made to use one cell. So the seed
//! is drawn at random in each run. This is not a cryptographic hash: the estimates of many chosen keys may reveal
//! information about it.

use ringtap_base::SplitMix;

use crate::key::Key;

/// The key words derived from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Hasher {
    seed: u64,
    k: [u64; 8],
}

/// The 128-bit hash of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hash {
    pub(crate) x: u64,
    pub(crate) y: u64,
}

impl Hasher {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        Self { seed, k: std::array::from_fn(|_| random.next()) }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    #[inline(always)]
    pub(crate) fn hash<K: Key>(&self, key: &K) -> Hash {
        let bytes = key.bytes();
        let (a, b, before) = match K::BYTES {
            0..=7 => (short(bytes), 0, 0),
            8..=16 => (word(bytes, 0), word(bytes, K::BYTES - 8), 0),
            _ => self.long(bytes),
        };
        let [low, high] = multiply(a ^ self.k[0], b ^ self.k[1] ^ before);
        self.finish(low, high, 2)
    }

    /// Another 128 bits, for rows above the fourth.
    #[inline(always)]
    pub(crate) fn again(&self, hash: Hash) -> Hash {
        self.finish(hash.x, hash.y, 4)
    }

    #[inline(always)]
    fn finish(&self, low: u64, high: u64, k: usize) -> Hash {
        let [a, b, c, d] = [self.k[k], self.k[k + 1], self.k[k + 2], self.k[k + 3]];
        Hash { x: fold(low ^ a, high ^ b), y: fold(low ^ c, high ^ d) }
    }

    /// Hashes all but the last 16 bytes, which are the two words. The last 16 bytes may overlap hashed ones.
    #[inline(always)]
    fn long(&self, bytes: &[u8]) -> (u64, u64, u64) {
        let last = bytes.len() - 16;
        let mut before = 0;
        for at in (0..last).step_by(16) {
            before = fold(word(bytes, at) ^ self.k[2], word(bytes, at + 8) ^ self.k[3] ^ before);
        }
        (word(bytes, last), word(bytes, last + 8), before)
    }
}

impl Hash {
    /// 32 bits for row 0 to 3.
    #[inline(always)]
    pub(crate) fn lane(self, row: usize) -> u64 {
        let word = if row & 2 == 0 { self.x } else { self.y };
        if row & 1 == 0 { word >> 32 } else { word & 0xffff_ffff }
    }
}

#[inline(always)]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let [low, high] = multiply(a, b);
    low ^ high
}

#[inline(always)]
const fn multiply(a: u64, b: u64) -> [u64; 2] {
    let wide = a as u128 * b as u128;
    [wide as u64, (wide >> 64) as u64]
}

/// Eight bytes at an offset; the caller ensures that they exist.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// Fewer than eight bytes.
#[inline(always)]
fn short(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Keys as in real traffic: neighbouring addresses and ports, little entropy.
    fn five_tuple(i: u32) -> [u8; 13] {
        let mut key = [0; 13];
        key[..4].copy_from_slice(&(0x0a00_0000 + i / 64).to_be_bytes());
        key[4..8].copy_from_slice(&[192, 168, 0, 1]);
        key[8..10].copy_from_slice(&((1024 + i % 64) as u16).to_be_bytes());
        key[10..12].copy_from_slice(&443u16.to_be_bytes());
        key[12] = 6;
        key
    }

    /// Mean number of slots read for a key, with linear probing in a half-full table.
    fn mean_probe_length(hashes: impl Iterator<Item = u64>, lg: u32) -> f64 {
        let mut slots = vec![false; 1 << lg];
        let (mut probes, mut keys) = (0u64, 0u64);
        for hash in hashes.take(1 << (lg - 1)) {
            let mut at = (hash >> (64 - lg)) as usize;
            probes += 1;
            while std::mem::replace(&mut slots[at], true) {
                at = (at + 1) % slots.len();
                probes += 1;
            }
            keys += 1;
        }
        probes as f64 / keys as f64
    }

    #[test]
    fn tables_half_full_probe_as_short_as_theory_says() {
        // Knuth 6.4: (1 + 1/(1 − 1/2)) / 2 = 1.5 for a random function. The biased hash of one round needed 57 probes.
        let lanes: [fn(Hash) -> u64; 5] = [
            |hash| hash.x,
            |hash| hash.y,
            |hash| hash.lane(1) << 32,
            |hash| hash.lane(3) << 32,
            |hash| hash.x ^ hash.y,
        ];
        for seed in 0..4 {
            let hasher = Hasher::new(seed);
            for lane in lanes {
                let tuples =
                    mean_probe_length((0..).map(|i| lane(hasher.hash(&five_tuple(i)))), 16);
                let addresses = (0u32..).map(|i| lane(hasher.hash(&i.to_be_bytes())));
                let addresses = mean_probe_length(addresses, 16);
                let v6 = (0u32..).map(|i| {
                    let mut key = [0u8; 37];
                    key[2..6].copy_from_slice(&i.to_le_bytes());
                    lane(hasher.hash(&key))
                });
                for probes in [tuples, addresses, mean_probe_length(v6, 16)] {
                    assert!((1.4..1.6).contains(&probes), "seed {seed}: {probes} probes");
                }
            }
        }
    }

    #[test]
    fn every_bit_is_as_often_one_as_zero_and_depends_on_every_bit_of_the_key() {
        let hasher = Hasher::new(3);
        let mut ones = [0u32; 128];
        let mut flips = vec![[0u32; 128]; 104];
        const KEYS: u32 = 2000;
        for i in 0..KEYS {
            let key = five_tuple(i * 977);
            let bits = |hash: Hash| u128::from(hash.x) << 64 | u128::from(hash.y);
            let hash = bits(hasher.hash(&key));
            for (bit, ones) in ones.iter_mut().enumerate() {
                *ones += (hash >> bit) as u32 & 1;
            }
            for (flipped, flips) in flips.iter_mut().enumerate() {
                let mut other = key;
                other[flipped / 8] ^= 1 << (flipped % 8);
                let changed = hash ^ bits(hasher.hash(&other));
                for (bit, flips) in flips.iter_mut().enumerate() {
                    *flips += (changed >> bit) as u32 & 1;
                }
            }
        }
        // Half of 2,000, plus or minus six standard deviations (of 22).
        let fair = |count: &u32| (866..=1134).contains(count);
        assert!(ones.iter().all(fair), "{ones:?}");
        assert!(flips.iter().flatten().all(fair));
    }

    #[test]
    fn every_length_has_a_hash_of_its_own_bytes_and_seed() {
        fn distinct<const N: usize>() {
            let mut seen = HashSet::new();
            for seed in [0, 1] {
                let hasher = Hasher::new(seed);
                let mut key = [0; N];
                assert!(seen.insert(hasher.hash(&key).x));
                for at in 0..N {
                    key[at] = 1;
                    assert!(seen.insert(hasher.hash(&key).x), "length {N}, byte {at}");
                    assert!(seen.insert(hasher.again(hasher.hash(&key)).x));
                    key[at] = 0;
                }
            }
        }
        distinct::<0>();
        distinct::<1>();
        distinct::<3>();
        distinct::<4>();
        distinct::<7>();
        distinct::<8>();
        distinct::<13>();
        distinct::<16>();
        distinct::<17>();
        distinct::<32>();
        distinct::<37>();
        distinct::<64>();
    }
}

//! Keyed hashing of addresses and flows.
//!
//! Packets contain addresses that an attacker can choose, so every hash uses a secret key, drawn at random for each run
//! (or derived from a seed, for reproducible runs). The mixing step is a 64 × 64 → 128 bit multiplication whose halves
//! are combined by exclusive or, as in wyhash and foldhash: one multiplication for 16 bytes.
//!
//! Invariant: [`HashKey::pair`] is symmetric in its addresses and depends on nothing else, so
//! both directions of a conversation and all fragments of a datagram reach the same worker.

/// Number of *regions* of address pairs; the upper bits of the pair hash select the region. Each decoder gets whole
/// regions, and stores only the fragments of its own regions
/// ([`Decoder::with_fragments`](crate::Decoder::with_fragments)). So all decoders together store the same fragments as
/// a single one, while none of them is full.
pub const REGIONS: usize = 64;

/// The region of a pair hash.
#[inline(always)]
pub(crate) const fn region(pair_hash: u32) -> usize {
    pair_hash as usize / ((1 << 32) / REGIONS)
}

/// The key of the hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKey {
    k: [u64; 4],
}

impl HashKey {
    /// Derives a key from a seed (SplitMix64 steps; every word is odd, so never zero).
    pub const fn from_seed(seed: u64) -> Self {
        let mut k = [0; 4];
        let mut state = seed;
        let mut i = 0;
        while i < 4 {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            k[i] = (z ^ (z >> 31)) | 1;
            i += 1;
        }
        Self { k }
    }

    /// Symmetric hash of an address pair.
    #[inline(always)]
    pub fn pair(&self, a: &[u8; 16], b: &[u8; 16]) -> u32 {
        // A commutative sum of two keyed hashes: symmetric without a comparison of the addresses.
        (fold(self.address(a).wrapping_add(self.address(b)), self.k[2]) >> 32) as u32
    }

    /// Symmetric hash of a biflow: the pair's hash, the two ports and the protocol. Packets control whatever
    /// separates flows, so nothing may be combined with the result; see [`HashKey::scoped`].
    #[inline(always)]
    pub fn flow(&self, pair_hash: u32, port_a: u16, port_b: u16, protocol: u8) -> u32 {
        let (low, high) = if port_a <= port_b { (port_a, port_b) } else { (port_b, port_a) };
        let ports = u64::from(low) | u64::from(high) << 16 | u64::from(protocol) << 32;
        (fold(ports ^ self.k[3], u64::from(pair_hash) << 1 ^ self.k[0]) >> 16) as u32
    }

    /// Hash of a pair's hash and what else separates its flows, such as VLANs: instead of the pair's hash in
    /// [`HashKey::flow`].
    #[inline(always)]
    pub fn scoped(&self, pair_hash: u32, scope: u32) -> u32 {
        (self.word(u64::from(pair_hash) << 32 | u64::from(scope)) >> 32) as u32
    }

    /// Hash of any 64-bit word, for tables keyed by small integers.
    #[inline(always)]
    pub fn word(&self, word: u64) -> u64 {
        fold(word ^ self.k[1], self.k[2])
    }

    /// Hash of one address.
    #[inline(always)]
    pub fn address(&self, a: &[u8; 16]) -> u64 {
        let a = u128::from_ne_bytes(*a);
        self.words(a as u64, (a >> 64) as u64)
    }

    /// Hash of a word to `BITS` bits, for caches: faster and weaker.
    #[inline(always)]
    pub(crate) fn bits<const BITS: u32>(&self, word: u64) -> usize {
        (word.wrapping_mul(self.k[0]) >> (64 - BITS)) as usize
    }

    /// Hash of two words.
    #[inline(always)]
    pub(crate) fn words(&self, a: u64, b: u64) -> u64 {
        fold(a ^ self.k[0], b ^ self.k[1])
    }
}

#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let wide = a as u128 * b as u128;
    wide as u64 ^ (wide >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_hash_is_symmetric_and_keyed() {
        let (key, other) = (HashKey::from_seed(1), HashKey::from_seed(2));
        for i in 0..1000u128 {
            let a = (i * 0x1234_5678_9abc_def1).to_ne_bytes();
            let b = (i * i + 77).to_ne_bytes();
            assert_eq!(key.pair(&a, &b), key.pair(&b, &a));
            assert_ne!(key.pair(&a, &b), other.pair(&a, &b));
        }
    }

    #[test]
    fn neighbouring_addresses_spread_over_few_shards_evenly() {
        let key = HashKey::from_seed(7);
        let mut shards = [0u32; 7];
        for host in 0..70_000u32 {
            let mut a = [0; 16];
            a[..4].copy_from_slice(&(0x0a00_0000 + host).to_be_bytes());
            let mut b = [0; 16];
            b[..4].copy_from_slice(&[192, 168, 0, 1]);
            shards[((u64::from(key.pair(&a, &b)) * 7) >> 32) as usize] += 1;
        }
        assert!(shards.iter().all(|&n| (9_500..10_500).contains(&n)), "{shards:?}");
    }
}

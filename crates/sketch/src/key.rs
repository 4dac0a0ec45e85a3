//! What is counted: keys of a fixed number of bytes.
//!
//! A five-tuple of IPv4 is `[u8; 13]`, one of IPv6 `[u8; 37]`, an address `[u8; 4]` or `[u8; 16]`, a
//! pair twice that. The length is known when compiling, so hashing and comparing 13 bytes are a few
//! instructions.

use std::fmt::Debug;

/// A key of [`Key::BYTES`] bytes. Every byte array is one; a newtype around one may be.
pub trait Key: Copy + Eq + Ord + Debug + Send + Sync + 'static {
    /// How long every key is.
    const BYTES: usize;

    /// What vacant slots hold. As a key it is as good as any other.
    const ZERO: Self;

    /// Exactly [`Key::BYTES`] bytes, other ones for each key.
    fn bytes(&self) -> &[u8];

    /// The key with these bytes, if there is one.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl<const N: usize> Key for [u8; N] {
    const BYTES: usize = N;
    const ZERO: Self = [0; N];

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

/// What a burst is made of: keys, which weigh 1 each, or keys with their weights.
pub trait Item<K> {
    fn key(&self) -> &K;
    fn weight(&self) -> u64;
}

impl<K: Key> Item<K> for K {
    #[inline(always)]
    fn key(&self) -> &K {
        self
    }

    #[inline(always)]
    fn weight(&self) -> u64 {
        1
    }
}

impl<K: Key> Item<K> for (K, u64) {
    #[inline(always)]
    fn key(&self) -> &K {
        &self.0
    }

    #[inline(always)]
    fn weight(&self) -> u64 {
        self.1
    }
}

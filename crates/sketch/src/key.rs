//! Keys: arrays of a fixed number of bytes.
//!
//! A five-tuple of IPv4 is `[u8; 13]`, one of IPv6 `[u8; 37]`, an address `[u8; 4]` or `[u8; 16]`, a pair of addresses
//! twice that. The length is a constant, so hashing and comparing 13 bytes take a few instructions.

use std::fmt::Debug;

/// A key of [`Key::BYTES`] bytes. Byte arrays are keys; newtypes around them can be.
pub trait Key: Copy + Eq + Ord + Debug + Send + Sync + 'static {
    /// Length of every key.
    const BYTES: usize;

    /// The key in vacant slots. It is also a valid key.
    const ZERO: Self;

    /// The [`Key::BYTES`] bytes of the key; different keys have different bytes.
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

/// An element of a burst: a key with weight 1, or a key with its weight.
pub trait Item<K> {
    /// The key.
    fn key(&self) -> &K;
    /// Its weight.
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

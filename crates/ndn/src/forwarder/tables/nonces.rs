//! The dead nonce list: nonces of removed PIT entries, for loop detection.
//!
//! ```text
//!  set, 64 bytes:  | hash, until | hash, until | hash, until | hash, until |
//! ```

use super::access::NonceList;

const WAYS: usize = 4;

/// How long a nonce is stored, in nanoseconds.
pub(crate) const LIFE_NS: u64 = 6_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct DeadNonce {
    hash: u64,
    until_ns: u64,
}

/// A set of nonces; one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([DeadNonce; WAYS]);

/// A dead nonce list of one thread.
#[derive(Debug)]
pub struct DeadNonces {
    sets: Vec<Set>,
    evicted: u64,
}

impl DeadNonces {
    /// A list with room for about `capacity` nonces.
    pub fn new(capacity: usize) -> Self {
        let sets = (capacity / WAYS).next_power_of_two().max(1);
        Self { sets: vec![Set::default(); sets], evicted: 0 }
    }

    fn set(&self, hash: u64) -> usize {
        (hash >> 20) as usize & (self.sets.len() - 1)
    }

    /// Prefetches the set of a nonce.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        ringtap_base::prefetch(&self.sets[self.set(hash)]);
    }

    /// Number of nonces replaced before they expired.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

impl NonceList for DeadNonces {
    #[inline]
    fn has(&self, now_ns: u64, hash: u64) -> bool {
        let Set(set) = &self.sets[self.set(hash)];
        set.iter().any(|dead| dead.hash == hash && dead.until_ns > now_ns)
    }

    // In a full set the nonce replaces the one that expires first.
    fn put(&mut self, now_ns: u64, hash: u64) {
        let set = self.set(hash);
        let Set(set) = &mut self.sets[set];
        let mut oldest = 0;
        for (way, dead) in set.iter().enumerate() {
            if dead.hash == hash {
                oldest = way;
                break;
            }
            if dead.until_ns < set[oldest].until_ns {
                oldest = way;
            }
        }
        let dead = &mut set[oldest];
        self.evicted += u64::from(dead.hash != hash && dead.until_ns > now_ns);
        let before_ns = if dead.hash == hash { dead.until_ns } else { 0 };
        *dead = DeadNonce { hash, until_ns: now_ns.saturating_add(LIFE_NS).max(before_ns) };
    }
}

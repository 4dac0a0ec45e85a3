//! What all sketches have in common: update, estimate with bounds, merge, and bytes.

use crate::{
    image::ImageError,
    key::{Item, Key},
};

/// Counts weights by key, exactly or nearly.
///
/// Weights are packets, octets or anything else that adds up; a weight of 0 changes nothing. A sketch has
/// one owner. Owners of parts of a stream merge theirs at the end of an interval.
pub trait Sketch: Sized {
    type Key: Key;

    /// Adds a weight to a key's count.
    #[inline]
    fn update(&mut self, key: &Self::Key, weight: u64) {
        self.update_burst(&[(*key, weight)]);
    }

    /// Updates with all of a burst, in order: keys (each of weight 1) or keys with weights.
    fn update_burst<I: Item<Self::Key>>(&mut self, burst: &[I]);

    /// What is known of a key's count.
    fn estimate(&self, key: &Self::Key) -> Estimate;

    /// The sum of all weights; beyond 2⁶⁴ − 1 it stays there, and so do upper bounds.
    fn total(&self) -> u64;

    /// Adds what another has seen. Nothing changes if that is an error.
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch>;

    /// Forgets all counts and keeps the memory, for the next interval.
    fn clear(&mut self);

    /// Memory held, apart from the struct itself.
    fn memory_bytes(&self) -> usize;

    /// A versioned image with a checksum; equal contents are equal bytes. It holds the seed, which is
    /// nobody's business whose packets are counted.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads an image. Takes no more memory than a small multiple of its length.
    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError>;
}

/// A sketch that keeps keys, so that heavy ones can be listed.
pub trait HeavyKeys: Sketch {
    /// The keys kept whose estimated value reaches the threshold, heaviest first, equal ones by key.
    fn heavy(&self, threshold: u64) -> Vec<Heavy<Self::Key>>;
}

/// A sketch whose state is a sum over its stream, so that a part can be taken away again.
pub trait Linear: Sketch {
    /// Takes away what a part of this sketch's own stream has left in `part`; what remains is as
    /// if that part had never been. So an interval is the difference of two running totals. Nothing changes if that is an error.
    fn subtract(&mut self, part: &Self) -> Result<(), SubtractError>;
}

/// What is known of a key's count: it lies between the bounds, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The count is at least this, with probability [`Estimate::confidence`].
    pub lower: u64,
    /// The best guess.
    pub value: u64,
    /// The count is at most this. Always certain.
    pub upper: u64,
    /// 1 if the lower bound is certain, else its probability over the choice of the seed.
    pub confidence: f64,
}

impl Estimate {
    /// Both bounds are certain.
    pub(crate) fn certain(lower: u64, value: u64, upper: u64) -> Self {
        Self { lower, value, upper, confidence: 1.0 }
    }

    pub fn is_exact(&self) -> bool {
        self.lower == self.upper
    }
}

/// A heavy key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heavy<K> {
    pub key: K,
    pub estimate: Estimate,
}

/// Puts heavy keys in order: heaviest first, equal ones by key.
pub(crate) fn ordered<K: Key>(mut heavy: Vec<Heavy<K>>) -> Vec<Heavy<K>> {
    heavy.sort_unstable_by(|a, b| b.estimate.value.cmp(&a.estimate.value).then(a.key.cmp(&b.key)));
    heavy
}

/// Two sketches that cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("the sketches differ in size or kind")]
    Parameters,
    #[error("the sketches hash with different seeds")]
    Seed,
}

/// A sketch that cannot be taken away from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubtractError {
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error("the sketch to take away has seen what this one has not")]
    NotContained,
    #[error("a counter is full, so what it has counted is not known")]
    Saturated,
}

/// A size that no sketch can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSize {
    #[error("1 to 8 rows, not {0}")]
    Rows(usize),
    #[error("the width of a row is a power of two up to 2^31, not {0}")]
    Width(usize),
    #[error("1 to 2^31 entries, not {0}")]
    Entries(usize),
    #[error("epsilon and delta lie between 0 and 1")]
    Error,
}

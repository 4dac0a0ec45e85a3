//! The interface of all sketches: update, estimate with bounds, merge, and bytes.

use std::cmp::Ordering;

use crate::{
    image::ImageError,
    key::{Item, Key},
};

/// Counts weights by key, exactly or approximately.
///
/// Weights are packets, octets or any other quantity that can be added; a weight of 0 changes nothing. A sketch has one
/// owner. Owners of parts of a stream merge their sketches at the end of an interval.
pub trait Sketch: Sized {
    /// The type of keys.
    type Key: Key;

    /// Adds a weight to a key's count.
    #[inline]
    fn update(&mut self, key: &Self::Key, weight: u64) {
        self.update_burst(&[(*key, weight)]);
    }

    /// Updates the sketch with a burst, in order: keys (each of weight 1) or keys with weights.
    fn update_burst<I: Item<Self::Key>>(&mut self, burst: &[I]);

    /// The estimated count of a key, with bounds.
    fn estimate(&self, key: &Self::Key) -> Estimate;

    /// The sum of all weights; it saturates at 2⁶⁴ − 1, and so do upper bounds.
    fn total(&self) -> u64;

    /// Adds the counts of another sketch. After an error nothing is changed.
    fn merge(&mut self, other: &Self) -> Result<(), Mismatch>;

    /// Removes all counts and keeps the memory, for the next interval.
    fn clear(&mut self);

    /// Bytes of memory, without the struct itself.
    fn memory_bytes(&self) -> usize;

    /// A versioned image with a checksum; equal contents give equal bytes. It contains the seed, which must be secret
    /// from those whose packets are counted.
    fn to_bytes(&self) -> Vec<u8>;

    /// Reads an image. Allocates at most a small multiple of its length.
    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError>;
}

/// A sketch that stores keys, so that heavy ones can be listed.
pub trait HeavyKeys: Sketch {
    /// The stored keys whose estimate reaches the threshold, heaviest first, equal ones by key; the first `most` of them.
    /// Memory is for a few times `most` keys, not for all; `MvSketch` has all of them once.
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<Self::Key>>;

    /// All stored keys whose estimate reaches the threshold, in the order of [`heaviest`](Self::heaviest).
    fn heavy(&self, threshold: u64) -> Vec<Heavy<Self::Key>> {
        self.heaviest(threshold, usize::MAX)
    }
}

/// A sketch whose state is a sum over its stream, so that a part can be subtracted.
pub trait Linear: Sketch {
    /// Subtracts the sketch of a part of this sketch's stream; the result equals a sketch without that part. So an
    /// interval is the difference of two running totals. After an error nothing is changed.
    fn subtract(&mut self, part: &Self) -> Result<(), SubtractError>;
}

/// The estimated count of a key; the count is between the bounds, inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The count is at least this, with probability [`Estimate::confidence`].
    pub lower: u64,
    /// The best estimate.
    pub value: u64,
    /// The count is at most this. Always true.
    pub upper: u64,
    /// 1 if the lower bound is certain, otherwise its probability over the choice of the seed.
    pub confidence: f64,
}

impl Estimate {
    /// Both bounds are certain.
    pub(crate) fn certain(lower: u64, value: u64, upper: u64) -> Self {
        Self { lower, value, upper, confidence: 1.0 }
    }

    /// Returns true if the count is known exactly.
    pub fn is_exact(&self) -> bool {
        self.lower == self.upper
    }
}

/// A heavy key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heavy<K> {
    /// The key.
    pub key: K,
    /// Its estimated count.
    pub estimate: Estimate,
}

/// Keys collected before those behind the first ones are removed.
const COLLECTED: usize = 512;

/// The keys whose estimate reaches the threshold, heaviest first, equal ones by key; the first `most` of them.
pub fn heaviest<K: Key>(
    all: impl Iterator<Item = Heavy<K>>,
    threshold: u64,
    most: usize,
) -> Vec<Heavy<K>> {
    let (mut kept, mut least) = (Vec::new(), threshold);
    if most == 0 {
        return kept;
    }
    let room = most.saturating_mul(2).max(COLLECTED);
    for heavy in all {
        if heavy.estimate.value < least {
            continue;
        }
        kept.push(heavy);
        if kept.len() >= room {
            let (_, last, _) = kept.select_nth_unstable_by(most - 1, order::<K>);
            least = last.estimate.value;
            kept.truncate(most);
        }
    }
    kept.sort_unstable_by(order::<K>);
    kept.truncate(most);
    kept
}

/// Heaviest first, equal ones by key. Not a closure: otherwise each iterator type gets its own copy of the sort.
fn order<K: Key>(a: &Heavy<K>, b: &Heavy<K>) -> Ordering {
    b.estimate.value.cmp(&a.estimate.value).then_with(|| a.key.cmp(&b.key))
}

/// Two sketches that cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Sizes or types differ.
    #[error("the sketches differ in size or kind")]
    Parameters,
    /// Seeds differ.
    #[error("the sketches hash with different seeds")]
    Seed,
}

/// Why a sketch cannot be subtracted from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubtractError {
    /// The sketches do not match.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A counter of the part is larger than that of the whole.
    #[error("the sketch to subtract is not a part of this one")]
    NotContained,
    /// A counter is saturated, so its value is unknown.
    #[error("a counter is saturated, so its value is unknown")]
    Saturated,
}

/// An invalid size of a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSize {
    /// Invalid number of rows.
    #[error("1 to 8 rows, not {0}")]
    Rows(usize),
    /// Invalid number of counters in a row.
    #[error("invalid width {0}: use a power of two up to 2^31")]
    Width(usize),
    /// Invalid number of entries.
    #[error("1 to 2^31 entries, not {0}")]
    Entries(usize),
    /// Invalid error bounds.
    #[error("invalid error bounds: use epsilon and delta between 0 and 1")]
    Error,
}

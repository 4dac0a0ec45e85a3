//! MV-Sketch: the rows of Count-Min, with the majority key in each counter.
//!
//! L. Tang, Q. Huang, P. P. C. Lee, "MV-Sketch: A Fast and Compact Invertible Sketch for Heavy Flow
//! Detection in Network Data Streams", INFOCOM 2019. Each cell has a majority vote by Boyer and Moore (MJRTY):
//!
//! ```text
//!  total V │ candidate K │ lead C       K's weight is added to C; another's is subtracted, and
//!                                       if it exceeds C, it replaces K
//! ```
//!
//! Every unit outside C is paired with one of another key, so for key K: C ≤ count ≤ (V + C) / 2, and for others: count
//! ≤ (V − C) / 2. The bounds are the best of all rows, and certain.
//!
//! Invariants: a key with more than half of a cell's weight is its candidate, so heavy keys can be listed. Merging
//! keeps the bounds, but among light keys the candidate depends on the order.

use crate::{
    face::{Estimate, Heavy, HeavyKeys, Mismatch, Sketch, heaviest},
    grid::{AHEAD, Shape, with_rows},
    hash::{Hasher, word},
    image::{self, ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vote<K> {
    total: u64,
    lead: u64,
    key: K,
}

impl<K: Key> Vote<K> {
    const NONE: Self = Self { total: 0, lead: 0, key: K::ZERO };

    #[inline(always)]
    fn cast(&mut self, key: &K, weight: u64) {
        self.total = self.total.saturating_add(weight);
        if self.key == *key {
            self.lead = self.lead.saturating_add(weight);
        } else if self.lead >= weight {
            self.lead -= weight;
        } else {
            self.lead = weight - self.lead;
            self.key = *key;
        }
    }

    /// Lower and upper bound of a key's count.
    fn bounds(&self, key: &K) -> (u64, u64) {
        let half = |whole: u128| (whole / 2) as u64;
        let (total, lead) = (u128::from(self.total), u128::from(self.lead));
        if self.total == u64::MAX {
            (0, u64::MAX)
        } else if self.key == *key {
            (self.lead, half(total + lead))
        } else {
            (0, half(total - lead))
        }
    }
}

/// Rows of votes.
#[derive(Clone, Debug)]
pub struct MvSketch<K> {
    shape: Shape,
    hasher: Hasher,
    votes: Vec<Vote<K>>,
    total: u64,
}

impl<K: Key> MvSketch<K> {
    /// Two rows of 2¹⁴ (1 MiB for keys of 9 to 16 bytes) found every key above 0.01 % of 20 million packets.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let votes = vec![Vote::NONE; shape.cells()];
        Self { shape, hasher: Hasher::new(seed), votes, total: 0 }
    }

    /// The number of rows and cells.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    #[inline(always)]
    fn cast_all<I: Item<K>, const R: usize>(&mut self, burst: &[I]) {
        let Self { shape, hasher, votes, total } = self;
        for burst in burst.chunks(AHEAD) {
            let mut places = [[0; R]; AHEAD];
            for (item, places) in burst.iter().zip(&mut places) {
                *places = shape.places(hasher, hasher.hash(item.key()));
                for &mut place in places {
                    ringtap_base::prefetch(&votes[place]);
                }
            }
            for (item, places) in burst.iter().zip(places) {
                *total = total.saturating_add(item.weight());
                for place in places {
                    votes[place].cast(item.key(), item.weight());
                }
            }
        }
    }
}

impl<K: Key> Sketch for MvSketch<K> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        with_rows!(self.shape.rows(), R => self.cast_all::<I, R>(burst));
    }

    fn estimate(&self, key: &K) -> Estimate {
        let places = self.shape.all_places(&self.hasher, self.hasher.hash(key));
        let (lower, upper) = places
            .map(|place| self.votes[place].bounds(key))
            .fold((0, self.total), |(a, b), (lower, upper)| (lower.max(a), upper.min(b)));
        Estimate::certain(lower, upper, upper)
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.shape != other.shape {
            return Err(Mismatch::Parameters);
        }
        if self.hasher.seed() != other.hasher.seed() {
            return Err(Mismatch::Seed);
        }
        for (own, other) in self.votes.iter_mut().zip(&other.votes) {
            let total = own.total.saturating_add(other.total);
            // The smaller lead cancels a part of the larger one.
            own.cast(&other.key, other.lead);
            own.total = total;
        }
        self.total = self.total.saturating_add(other.total);
        Ok(())
    }

    fn clear(&mut self) {
        self.votes.fill(Vote::NONE);
        self.total = 0;
    }

    fn memory_bytes(&self) -> usize {
        self.votes.len() * size_of::<Vote<K>>()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::MvSketch, self.hasher.seed());
        self.shape.write(&mut image);
        image.u64(self.total);
        for vote in &self.votes {
            image.bytes(vote.key.bytes());
            image.u64(vote.total);
            image.u64(vote.lead);
        }
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::MvSketch)?;
        let shape = Shape::read(&mut image)?;
        let total = image.u64()?;
        let vote = |piece: &[u8]| {
            let (sum, lead) = (word(piece, K::BYTES), word(piece, K::BYTES + 8));
            if sum > total || lead > sum {
                return Err(ImageError::Impossible("a vote above the total"));
            }
            Ok(Vote { total: sum, lead, key: image::key(piece)? })
        };
        let votes =
            image.pieces(shape.cells(), K::BYTES + 16)?.map(vote).collect::<Result<_, _>>()?;
        let hasher = Hasher::new(image.seed);
        image.finish()?;
        Ok(Self { shape, hasher, votes, total })
    }
}

impl<K: Key> HeavyKeys for MvSketch<K> {
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<K>> {
        let leading = self.votes.iter().filter(|vote| vote.total > 0 && vote.total >= threshold);
        let mut keys: Vec<K> = leading.map(|vote| vote.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let all = keys.into_iter().map(|key| Heavy { key, estimate: self.estimate(&key) });
        heaviest(all, threshold, most)
    }
}

//! SpaceSaving in buckets: the heaviest keys; a new key replaces one of the eight keys in its bucket.
//!
//! A. Metwally, D. Agrawal, A. El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams",
//! ICDT 2005; merging as in P. Agarwal et al., "Mergeable Summaries", PODS 2012. The original replaces the least of all
//! counts and keeps them sorted. Here the least count of a bucket is replaced, so a new key costs as much as a stored
//! one: reading one word of tags and one cache line of counts.
//!
//! ```text
//!  hash ─┬▶ bucket    tags    │ 7f │ 03 │ a1 │ …  eight bytes of hashes
//!        └▶ tag       counts  │ 90 │ 40 │  7 │ …  a cache line
//!                     errors  │  0 │  0 │  6 │ …  the initial count: that of the replaced key
//!                     keys    │  a │  b │  c │ …
//!
//! new key d: replaces the least, c 7: d 8, of which up to 7 may belong to others
//! ```
//!
//! Invariants: count − error ≤ true ≤ count for every stored key, and true ≤ the least count of its bucket for any
//! other key; certain, also after merges. Without merges the counts of a bucket add up to its weight.

use crate::{
    face::{Estimate, Heavy, HeavyKeys, InvalidSize, Mismatch, Sketch, heaviest},
    grid::AHEAD,
    hash::{Hash, Hasher, word},
    image::{self, ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
};

/// Keys in a bucket.
const WAYS: usize = 8;

/// The counts of a bucket are a cache line.
#[repr(align(64))]
#[derive(Clone, Copy, Debug, Default)]
struct Row([u64; WAYS]);

/// Counts of the heavy keys.
#[derive(Clone, Debug)]
pub struct SpaceSaving<K> {
    hasher: Hasher,
    tags: Vec<Tags>,
    counts: Vec<Row>,
    errors: Vec<Row>,
    keys: Vec<[K; WAYS]>,
    total: u64,
}

impl<K: Key> SpaceSaving<K> {
    /// Creates a sketch for `keys` keys, rounded up to a multiple of eight.
    pub fn new(keys: usize, seed: u64) -> Result<Self, InvalidSize> {
        if !(1..=1 << 31).contains(&keys) {
            return Err(InvalidSize::Entries(keys));
        }
        Ok(Self::vacant(keys.div_ceil(WAYS), seed))
    }

    fn vacant(buckets: usize, seed: u64) -> Self {
        Self {
            hasher: Hasher::new(seed),
            tags: vec![Tags::default(); buckets],
            counts: vec![Row::default(); buckets],
            errors: vec![Row::default(); buckets],
            keys: vec![[K::ZERO; WAYS]; buckets],
            total: 0,
        }
    }

    /// The largest weight of a key that is not stored.
    pub fn error(&self) -> u64 {
        self.counts.iter().map(|row| least(row).1).max().unwrap_or(0)
    }

    #[inline(always)]
    fn place(&self, hash: Hash) -> Place {
        let bucket = ((hash.lane(0) * self.tags.len() as u64) >> 32) as usize;
        Place { bucket, tag: hash.lane(1) as u8 }
    }

    #[inline(always)]
    fn way_of(&self, at: Place, key: &K) -> Option<usize> {
        let keys = &self.keys[at.bucket];
        self.tags[at.bucket].ways(at.tag).find(|&way| keys[way] == *key)
    }

    #[inline(always)]
    fn add(&mut self, at: Place, key: &K, weight: u64) {
        let known = self.way_of(at, key);
        let counts = &mut self.counts[at.bucket];
        if let Some(way) = known {
            counts.0[way] = counts.0[way].saturating_add(weight);
        } else if weight > 0 {
            let (way, count) = least(counts);
            counts.0[way] = count.saturating_add(weight);
            self.errors[at.bucket].0[way] = count;
            self.keys[at.bucket][way] = *key;
            self.tags[at.bucket].set(way, at.tag);
        }
    }

    /// The stored keys of a bucket.
    fn kept(&self, bucket: usize) -> impl Iterator<Item = Kept<K>> {
        let of_way = move |way: usize| Kept {
            key: self.keys[bucket][way],
            count: self.counts[bucket].0[way],
            error: self.errors[bucket].0[way],
        };
        (0..WAYS).map(of_way).filter(|kept| kept.count > 0)
    }

    /// The bounds of a key in this bucket: if it is not stored, its count is at most the least stored count.
    fn at_most(&self, bucket: usize, key: K) -> Kept<K> {
        let least = least(&self.counts[bucket]).1;
        let stranger = Kept { key, count: least, error: least };
        self.kept(bucket).find(|kept| kept.key == key).unwrap_or(stranger)
    }

    /// Replaces the contents of a bucket.
    fn refill(&mut self, bucket: usize, all: &[Kept<K>]) {
        self.tags[bucket] = Tags::default();
        self.counts[bucket] = Row::default();
        self.errors[bucket] = Row::default();
        self.keys[bucket] = [K::ZERO; WAYS];
        for (way, kept) in all.iter().enumerate() {
            let tag = self.place(self.hasher.hash(&kept.key)).tag;
            self.tags[bucket].set(way, tag);
            self.counts[bucket].0[way] = kept.count;
            self.errors[bucket].0[way] = kept.error;
            self.keys[bucket][way] = kept.key;
        }
    }

    fn of_kept(&self, Kept { count, error, .. }: Kept<K>) -> Estimate {
        let upper = count.min(self.total);
        // Heavy keys arrive early and stay, so their initial count mostly belongs to other keys.
        let lower = (count - error).min(upper);
        Estimate::certain(lower, lower, upper)
    }
}

/// A key with its count, and the part of the count that may belong to others.
#[derive(Clone, Copy)]
struct Kept<K> {
    key: K,
    count: u64,
    error: u64,
}

/// The bucket and the tag of a key.
#[derive(Clone, Copy, Default)]
struct Place {
    bucket: usize,
    tag: u8,
}

/// A byte of the hash of each key in a bucket; it excludes most other keys.
#[derive(Clone, Copy, Debug, Default)]
struct Tags(u64);

impl Tags {
    const ONES: u64 = 0x0101_0101_0101_0101;

    /// The ways with this tag, and sometimes one with another tag.
    #[inline(always)]
    fn ways(self, tag: u8) -> impl Iterator<Item = usize> {
        let differ = self.0 ^ (u64::from(tag) * Self::ONES);
        let mut found = differ.wrapping_sub(Self::ONES) & !differ & (Self::ONES << 7);
        std::iter::from_fn(move || {
            let way = (found != 0).then(|| found.trailing_zeros() as usize / 8);
            found &= found.wrapping_sub(1);
            way
        })
    }

    #[inline(always)]
    fn set(&mut self, way: usize, tag: u8) {
        self.0 = self.0 & !(0xff << (way * 8)) | u64::from(tag) << (way * 8);
    }
}

/// The way with the least count. A vacant way has 0, so it is used first.
#[inline(always)]
fn least(counts: &Row) -> (usize, u64) {
    let at = |way: usize| (way, counts.0[way]);
    let less = |a: (usize, u64), b: (usize, u64)| if b.1 < a.1 { b } else { a };
    let half = |from: usize| less(less(at(from), at(from + 1)), less(at(from + 2), at(from + 3)));
    less(half(0), half(4))
}

impl<K: Key> Sketch for SpaceSaving<K> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        for burst in burst.chunks(AHEAD) {
            let mut places = [Place::default(); AHEAD];
            for (item, at) in burst.iter().zip(&mut places) {
                *at = self.place(self.hasher.hash(item.key()));
                ringtap_base::prefetch(&self.counts[at.bucket]);
                ringtap_base::prefetch(&self.keys[at.bucket]);
            }
            for (item, at) in burst.iter().zip(places) {
                self.total = self.total.saturating_add(item.weight());
                self.add(at, item.key(), item.weight());
            }
        }
    }

    fn estimate(&self, key: &K) -> Estimate {
        let Place { bucket, .. } = self.place(self.hasher.hash(key));
        let known = self.at_most(bucket, *key);
        self.of_kept(known)
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.tags.len() != other.tags.len() {
            return Err(Mismatch::Parameters);
        }
        if self.hasher.seed() != other.hasher.seed() {
            return Err(Mismatch::Seed);
        }
        for bucket in 0..self.tags.len() {
            let mut keys: Vec<K> = [&*self, other]
                .iter()
                .flat_map(|part| part.kept(bucket))
                .map(|kept| kept.key)
                .collect();
            keys.sort_unstable();
            keys.dedup();
            let sum = |key| {
                let [own, others] = [&*self, other].map(|part| part.at_most(bucket, key));
                Kept {
                    key,
                    count: own.count.saturating_add(others.count),
                    error: own.error.saturating_add(others.error),
                }
            };
            let mut kept: Vec<Kept<K>> = keys.into_iter().map(sum).collect();
            // Among equal counts, the smaller keys stay.
            kept.sort_by_key(|kept| std::cmp::Reverse(kept.count));
            kept.truncate(WAYS);
            self.refill(bucket, &kept);
        }
        self.total = self.total.saturating_add(other.total);
        Ok(())
    }

    fn clear(&mut self) {
        for bucket in 0..self.tags.len() {
            self.refill(bucket, &[]);
        }
        self.total = 0;
    }

    fn memory_bytes(&self) -> usize {
        self.tags.len() * (size_of::<Tags>() + 2 * size_of::<Row>() + size_of::<[K; WAYS]>())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::SpaceSaving, self.hasher.seed());
        image.u64(self.tags.len() as u64);
        image.u64(self.total);
        for bucket in 0..self.tags.len() {
            for way in 0..WAYS {
                image.bytes(self.keys[bucket][way].bytes());
                image.u64(self.counts[bucket].0[way]);
                image.u64(self.errors[bucket].0[way]);
            }
        }
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::SpaceSaving)?;
        let buckets = image.count()?;
        if !(1..=1 << 28).contains(&buckets) {
            return Err(ImageError::Impossible("a number of buckets"));
        }
        let total = image.u64()?;
        let slots = image.pieces(buckets * WAYS, K::BYTES + 16)?;
        let mut sketch = Self { total, ..Self::vacant(buckets, image.seed) };
        let mut kept = Vec::with_capacity(WAYS);
        for (at, slot) in slots.enumerate() {
            let (count, error) = (word(slot, K::BYTES), word(slot, K::BYTES + 8));
            let key: K = image::key(slot)?;
            if error > count || count > total {
                return Err(ImageError::Impossible("counts above the total"));
            }
            let bucket = at / WAYS;
            if count > 0 {
                let astray = sketch.place(sketch.hasher.hash(&key)).bucket != bucket;
                if astray || kept.iter().any(|kept: &Kept<K>| kept.key == key) {
                    return Err(ImageError::Impossible("a key astray"));
                }
                kept.push(Kept { key, count, error });
            } else if key != K::ZERO {
                return Err(ImageError::Impossible("a key that was never seen"));
            }
            if at % WAYS == WAYS - 1 {
                sketch.refill(bucket, &kept);
                kept.clear();
            }
        }
        image.finish()?;
        Ok(sketch)
    }
}

impl<K: Key> HeavyKeys for SpaceSaving<K> {
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<K>> {
        let kept = (0..self.tags.len()).flat_map(|bucket| self.kept(bucket));
        let all = kept.map(|kept| Heavy { key: kept.key, estimate: self.of_kept(kept) });
        heaviest(all, threshold, most)
    }
}

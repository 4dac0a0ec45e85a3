//! The simple hash table: one row of slots, each with a counter and a key; no search and no second position.
//!
//! The poster's SHT, after O. Alipourfard, M. Moshref, M. Yu, "Re-evaluating Measurement Algorithms in
//! Software", HotNets 2015. The source does not define what happens when two keys share a slot, so it is a parameter:
//!
//! | collision | the slot | guarantee |
//! |---|---|---|
//! | overwrite | gets the new key, the old count is lost | count ≤ true ≤ count + lost |
//! | keep first | keeps its key, the new weight is lost | stored keys are exact (unmerged) |
//! | vote | Boyer–Moore: weights cancel each other | count ≤ true ≤ count + lost / 2 |
//!
//! Invariant: Σ counts + lost = total, also after merging. The stored keys depend on the order of the stream, so merged
//! parts do not equal the table of the whole.

use crate::{
    face::{Estimate, Heavy, HeavyKeys, InvalidSize, Mismatch, Sketch, heaviest},
    grid::AHEAD,
    hash::{Hash, Hasher, word},
    image::{self, ImageError, ImageKind, Reader, Writer},
    key::{Item, Key},
    table::Slot,
};

/// What happens when two keys share a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collision {
    /// The new key replaces the stored one.
    Overwrite,
    /// The stored key stays.
    KeepFirst,
    /// The keys vote: their weights cancel each other.
    Vote,
}

impl Collision {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::Overwrite, Self::KeepFirst, Self::Vote];

    /// Applies the rule to a slot and another key; returns the weight that is lost.
    #[inline(always)]
    pub(crate) fn settle<K: Key>(self, slot: &mut Slot<K>, key: &K, weight: u64) -> u64 {
        if slot.count == 0 {
            *slot = Slot { key: *key, count: weight };
            return 0;
        }
        if slot.key == *key {
            slot.count = slot.count.saturating_add(weight);
            return 0;
        }
        match self {
            Self::KeepFirst => weight,
            Self::Overwrite if weight == 0 => 0,
            Self::Overwrite => std::mem::replace(slot, Slot { key: *key, count: weight }).count,
            Self::Vote if slot.count >= weight => {
                slot.count -= weight;
                weight.saturating_mul(2)
            }
            Self::Vote => {
                let gone = std::mem::replace(slot, Slot { key: *key, count: weight - slot.count });
                gone.count.saturating_mul(2)
            }
        }
    }
}

/// One row of slots.
#[derive(Clone, Debug)]
pub struct HashTable<K> {
    pub(crate) collision: Collision,
    pub(crate) hasher: Hasher,
    pub(crate) slots: Vec<Slot<K>>,
    pub(crate) total: u64,
    pub(crate) lost: u64,
    /// The largest part of a stored key's weight that may be in `lost`, for "keep first".
    slack: u64,
}

impl<K: Key> HashTable<K> {
    /// Creates a table with any number of slots up to 2³¹.
    pub fn new(slots: usize, collision: Collision, seed: u64) -> Result<Self, InvalidSize> {
        if !(1..=1 << 31).contains(&slots) {
            return Err(InvalidSize::Entries(slots));
        }
        Ok(Self::of(vec![Slot::VACANT; slots], collision, seed, 0, 0))
    }

    pub(crate) fn of(
        slots: Vec<Slot<K>>,
        collision: Collision,
        seed: u64,
        total: u64,
        lost: u64,
    ) -> Self {
        Self { collision, hasher: Hasher::new(seed), slots, total, lost, slack: 0 }
    }

    /// The collision rule.
    pub fn collision(&self) -> Collision {
        self.collision
    }

    /// The weight that is in no slot.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn of_slot(&self, slot: &Slot<K>, key: &K) -> Estimate {
        let count = if slot.key == *key { slot.count } else { 0 };
        let missing = match self.collision {
            Collision::KeepFirst if count > 0 => self.slack,
            // In a vote at least half of the lost weight belongs to other keys.
            Collision::Vote if self.lost < u64::MAX => self.lost / 2,
            _ => self.lost,
        };
        Estimate::certain(count, count, count.saturating_add(missing).min(self.total))
    }
}

/// The position of a key among `slots`.
#[inline(always)]
pub(crate) fn place(hash: Hash, slots: usize) -> usize {
    ((hash.lane(0) * slots as u64) >> 32) as usize
}

impl<K: Key> Sketch for HashTable<K> {
    type Key = K;

    #[inline]
    fn update_burst<I: Item<K>>(&mut self, burst: &[I]) {
        for burst in burst.chunks(AHEAD) {
            let mut places = [0; AHEAD];
            for (item, at) in burst.iter().zip(&mut places) {
                *at = place(self.hasher.hash(item.key()), self.slots.len());
                ringtap_base::prefetch(&self.slots[*at]);
            }
            for (item, at) in burst.iter().zip(places) {
                self.total = self.total.saturating_add(item.weight());
                let lost = self.collision.settle(&mut self.slots[at], item.key(), item.weight());
                self.lost = self.lost.saturating_add(lost);
            }
        }
    }

    fn estimate(&self, key: &K) -> Estimate {
        let at = place(self.hasher.hash(key), self.slots.len());
        self.of_slot(&self.slots[at], key)
    }

    fn total(&self) -> u64 {
        self.total
    }

    fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        if self.slots.len() != other.slots.len() || self.collision != other.collision {
            return Err(Mismatch::Parameters);
        }
        if self.hasher.seed() != other.hasher.seed() {
            return Err(Mismatch::Seed);
        }
        self.slack = self
            .slack
            .saturating_add(other.slack)
            .max(self.slack.saturating_add(other.lost))
            .max(other.slack.saturating_add(self.lost));
        let mut lost = other.lost;
        for (own, other) in self.slots.iter_mut().zip(&other.slots) {
            if other.count > 0 {
                let settled = self.collision.settle(own, &other.key, other.count);
                lost = lost.saturating_add(settled);
            }
        }
        self.lost = self.lost.saturating_add(lost);
        self.total = self.total.saturating_add(other.total);
        Ok(())
    }

    fn clear(&mut self) {
        self.slots.fill(Slot::VACANT);
        (self.total, self.lost, self.slack) = (0, 0, 0);
    }

    fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot<K>>()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut image = Writer::new::<K>(ImageKind::HashTable, self.hasher.seed());
        image.u8(self.collision as u8);
        image.u64(self.slots.len() as u64);
        image.u64(self.total);
        image.u64(self.lost);
        image.u64(self.slack);
        for slot in &self.slots {
            // A vacant slot may still contain a key that was voted out.
            let slot = if slot.count == 0 { &Slot::VACANT } else { slot };
            slot.write(&mut image);
        }
        image.finish()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mut image = Reader::open::<K>(bytes, ImageKind::HashTable)?;
        let collision = image.u8()?;
        let collision = Collision::ALL.into_iter().find(|&known| known as u8 == collision);
        let collision = collision.ok_or(ImageError::Impossible("a collision rule"))?;
        let n = image.count()?;
        if !(1..=1 << 31).contains(&n) {
            return Err(ImageError::Impossible("a number of slots"));
        }
        let [total, lost, slack] = [image.u64()?, image.u64()?, image.u64()?];
        let slot =
            |piece: &[u8]| Ok(Slot { key: image::key(piece)?, count: word(piece, K::BYTES) });
        let slots: Vec<Slot<K>> =
            image.pieces(n, K::BYTES + 8)?.map(slot).collect::<Result<_, ImageError>>()?;
        let seed = image.seed;
        image.finish()?;
        let sum = slots.iter().fold(lost, |sum, slot| sum.saturating_add(slot.count));
        if sum != total || slack > lost {
            return Err(ImageError::Impossible("a total that is not the sum"));
        }
        Ok(Self { slack, ..Self::of(slots, collision, seed, total, lost) })
    }
}

impl<K: Key> HeavyKeys for HashTable<K> {
    fn heaviest(&self, threshold: u64, most: usize) -> Vec<Heavy<K>> {
        let kept = self.slots.iter().filter(|slot| slot.count > 0);
        let all = kept.map(|slot| Heavy { key: slot.key, estimate: self.of_slot(slot, &slot.key) });
        heaviest(all, threshold, most)
    }
}

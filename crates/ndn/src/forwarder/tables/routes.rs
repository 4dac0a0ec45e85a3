//! A table of values by prefix, for routes and strategies. The longest matching prefix applies.
//!
//! Changes are rare and may allocate. A look-up tries all lengths of stored prefixes, the longest
//! first.

use crate::packets::{Name, NameBuf};
use hashbrown::HashTable;

use super::{COMPONENTS_MAX, NameKey, Prefixes};
use crate::forwarder::face::FaceId;

/// A next hop and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) face: FaceId,
    pub(crate) cost: u64,
}

#[derive(Debug)]
pub(crate) struct PrefixTable<T> {
    rows: HashTable<Row<T>>,
    /// Number of prefixes of each length.
    lengths: [u32; COMPONENTS_MAX + 1],
    longest: usize,
}

#[derive(Debug)]
struct Row<T> {
    hash: u64,
    prefix: NameBuf,
    value: T,
}

impl<T> PrefixTable<T> {
    pub(crate) fn new() -> Self {
        Self { rows: HashTable::new(), lengths: [0; COMPONENTS_MAX + 1], longest: 0 }
    }

    /// The value of the longest prefix of a name, and the prefix's number of components.
    #[inline]
    pub(crate) fn longest(&self, name: &Name<'_>, prefixes: &Prefixes) -> Option<(usize, &T)> {
        (0..=prefixes.components().min(self.longest)).rev().find_map(|components| {
            if self.lengths[components] == 0 {
                return None;
            }
            let hash = prefixes.hash(components);
            let bytes = &name.as_bytes()[..prefixes.end(components)];
            let row = self.rows.find(hash, |row| equal(row.prefix.as_bytes(), bytes))?;
            Some((components, &row.value))
        })
    }

    /// The value of exactly this prefix; `make` creates a missing one. `None` if the prefix has too
    /// many components.
    pub(crate) fn entry(
        &mut self,
        key: &NameKey,
        prefix: &Name<'_>,
        make: impl FnOnce() -> T,
    ) -> Option<&mut T> {
        let (hash, components) = hash_of(key, prefix)?;
        let found = self.rows.find(hash, |row| row.prefix.as_bytes() == prefix.as_bytes());
        if found.is_none() {
            let row = Row { hash, prefix: NameBuf::of(*prefix), value: make() };
            self.rows.insert_unique(hash, row, |row| row.hash);
            self.lengths[components] += 1;
            self.longest = self.longest.max(components);
        }
        let same = |row: &Row<T>| row.prefix.as_bytes() == prefix.as_bytes();
        self.rows.find_mut(hash, same).map(|row| &mut row.value)
    }

    /// Removes the value of exactly this prefix.
    pub(crate) fn remove(&mut self, key: &NameKey, prefix: &Name<'_>) -> Option<T> {
        let (hash, components) = hash_of(key, prefix)?;
        let same = |row: &Row<T>| row.prefix.as_bytes() == prefix.as_bytes();
        let (row, _) = self.rows.find_entry(hash, same).ok()?.remove();
        self.lengths[components] -= 1;
        Some(row.value)
    }

    /// Whether any value is one for which `is_it` returns true.
    pub(crate) fn any(&self, mut is_it: impl FnMut(&T) -> bool) -> bool {
        self.rows.iter().any(|row| is_it(&row.value))
    }

    /// Removes the values for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let lengths = &mut self.lengths;
        self.rows.retain(|row| {
            let stays = keep(&mut row.value);
            if !stays {
                lengths[row.prefix.as_name().components().count()] -= 1;
            }
            stays
        });
    }
}

/// Whether two prefixes are equal. Empty slices are not compared: they may have a dangling address,
/// where a comparison of no bytes can take a hundred nanoseconds (microcode handles faulting masked
/// loads).
#[inline]
fn equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

/// The hash and number of components of a prefix; `None` if it has too many components.
fn hash_of(key: &NameKey, prefix: &Name<'_>) -> Option<(u64, usize)> {
    let mut prefixes = Prefixes::new();
    prefixes.set(key, prefix).then(|| (prefixes.full(), prefixes.components()))
}

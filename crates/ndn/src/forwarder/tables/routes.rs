//! What is said of names by their prefixes: routes, strategies. The longest prefix counts.
//!
//! Changes are rare and may allocate; a look-up tries the lengths that there are, the longest first.

use crate::packets::{Name, NameBuf};
use hashbrown::HashTable;

use super::{COMPONENTS_MAX, NameKey, Prefixes};
use crate::forwarder::face::FaceId;

/// Where to send Interests, and how dear it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHop {
    pub(crate) face: FaceId,
    pub(crate) cost: u64,
}

#[derive(Debug)]
pub(crate) struct PrefixTable<T> {
    rows: HashTable<Row<T>>,
    /// How many prefixes have so many components.
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

    /// What is said of the longest prefix of a name, and how many components that has.
    #[inline]
    pub(crate) fn longest(&self, name: &Name<'_>, prefixes: &Prefixes) -> Option<(usize, &T)> {
        (0..=prefixes.components().min(self.longest)).rev().find_map(|components| {
            if self.lengths[components] == 0 {
                return None;
            }
            let hash = prefixes.hash(components);
            let bytes = &name.as_bytes()[..prefixes.end(components)];
            let row = self.rows.find(hash, |row| is(row.prefix.as_bytes(), bytes))?;
            Some((components, &row.value))
        })
    }

    /// What is said of this very prefix, which `make` begins.
    pub(crate) fn entry(
        &mut self,
        key: &NameKey,
        prefix: &Name<'_>,
        make: impl FnOnce() -> T,
    ) -> Option<&mut T> {
        let (hash, components) = measure(key, prefix)?;
        let known = self.rows.find(hash, |row| row.prefix.as_bytes() == prefix.as_bytes());
        if known.is_none() {
            let row = Row { hash, prefix: NameBuf::of(*prefix), value: make() };
            self.rows.insert_unique(hash, row, |row| row.hash);
            self.lengths[components] += 1;
            self.longest = self.longest.max(components);
        }
        let same = |row: &Row<T>| row.prefix.as_bytes() == prefix.as_bytes();
        self.rows.find_mut(hash, same).map(|row| &mut row.value)
    }

    pub(crate) fn remove(&mut self, key: &NameKey, prefix: &Name<'_>) -> Option<T> {
        let (hash, components) = measure(key, prefix)?;
        let same = |row: &Row<T>| row.prefix.as_bytes() == prefix.as_bytes();
        let (row, _) = self.rows.find_entry(hash, same).ok()?.remove();
        self.lengths[components] -= 1;
        Some(row.value)
    }

    /// Keeps what `keep` says to.
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

/// Whether two prefixes are the same. The empty ones are not compared: they may have no address, and a comparison of no
/// bytes there can take a hundred nanoseconds (masked loads that fault are sorted out by the processor's microcode).
#[inline]
fn is(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

fn measure(key: &NameKey, prefix: &Name<'_>) -> Option<(u64, usize)> {
    let mut prefixes = Prefixes::new();
    prefixes.set(key, prefix).then(|| (prefixes.full(), prefixes.components()))
}

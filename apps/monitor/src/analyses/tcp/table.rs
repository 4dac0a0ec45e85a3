//! What the tables of TCP share: rows as far as there is room, the first ones, and times.

use std::hash::Hash;

use ringtap_flow::{Dense, IpVersion};
use ringtap_wire::HashKey;

/// An address of either version, as in a flow key.
pub(super) type Host = (IpVersion, [u8; 16]);

/// Sums by key.
pub(super) struct Rows<K, V> {
    pub(super) key: HashKey,
    pub(super) rows: Dense<(K, V)>,
    capacity: usize,
}

impl<K: Copy + Eq + Hash, V: Default> Rows<K, V> {
    pub(super) fn new(key: HashKey, capacity: usize) -> Self {
        let capacity = capacity.clamp(1, Dense::<()>::MOST);
        Self { key, rows: Dense::new().with_most(capacity), capacity }
    }

    /// The row of a key; `None` if it is new and there is no room.
    pub(super) fn row(&mut self, wanted: K, hash: u32) -> Option<&mut V> {
        let at = match self.rows.find(hash, |(own, _)| *own == wanted) {
            Some(at) => at,
            None if self.rows.len() < self.capacity => {
                self.rows.insert(hash, (wanted, V::default()))
            }
            None => return None,
        };
        Some(&mut self.rows.row_mut(at).1)
    }
}

/// The first rows by a key, in order.
pub(super) fn first<T, K: Ord>(mut rows: Vec<T>, most: usize, key: impl Fn(&T) -> K) -> Vec<T> {
    if most < rows.len() {
        rows.select_nth_unstable_by_key(most, &key);
        rows.truncate(most);
    }
    rows.sort_unstable_by_key(key);
    rows
}

/// Microseconds as milliseconds with three digits.
pub(super) fn milliseconds(us: u64) -> String {
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

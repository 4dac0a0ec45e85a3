//! A table with a bounded number of rows.

use std::hash::Hash;
use std::ops::AddAssign;

use hashbrown::HashMap;

use super::Room;

/// Rows by key, at most as many as it has room for. What has no room is counted among the losses of the run.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    rows: HashMap<K, V>,
    most: usize,
    room: Room,
}

impl<K: Eq + Hash, V> Table<K, V> {
    /// An empty table with a row for each live flow that there is room for.
    pub fn new(room: &Room) -> Self {
        Self::with_rows(room, room.flows)
    }

    /// An empty table with at most this many rows.
    pub fn with_rows(room: &Room, most: usize) -> Self {
        Self { rows: HashMap::new(), most, room: room.clone() }
    }

    /// The row of a key; `None`, and counted, if it is new and has no room.
    #[inline]
    pub fn row(&mut self, key: K) -> Option<&mut V>
    where
        V: Default,
    {
        let is_full = self.rows.len() >= self.most;
        match self.rows.entry(key) {
            hashbrown::hash_map::Entry::Occupied(row) => Some(row.into_mut()),
            hashbrown::hash_map::Entry::Vacant(_) if is_full => {
                self.room.count_lost(1);
                None
            }
            hashbrown::hash_map::Entry::Vacant(place) => Some(place.insert(V::default())),
        }
    }

    /// Adds to the row of a key.
    #[inline]
    pub fn add(&mut self, key: K, more: V)
    where
        V: Default + AddAssign,
    {
        if let Some(row) = self.row(key) {
            *row += more;
        }
    }

    /// The row of a key, if it has one.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    /// Removes the row of a key.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.rows.remove(key)
    }

    /// Keeps the rows that a condition holds for.
    pub fn retain(&mut self, holds: impl FnMut(&K, &mut V) -> bool) {
        self.rows.retain(holds);
    }

    /// The rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    /// Adds the rows of another table, which has room of its own; `join` adds a row to that of the same key.
    pub fn merge(&mut self, other: Self, mut join: impl FnMut(&mut V, V)) {
        self.most = self.most.saturating_add(other.most);
        for (key, row) in other.rows {
            match self.rows.entry(key) {
                hashbrown::hash_map::Entry::Occupied(mut own) => join(own.get_mut(), row),
                hashbrown::hash_map::Entry::Vacant(place) => {
                    place.insert(row);
                }
            }
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows in the order of their keys.
    pub fn into_sorted(self) -> Vec<(K, V)>
    where
        K: Ord,
    {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        rows
    }

    /// The `most` rows with the largest values, the largest first; equal ones in the order of their keys.
    pub fn into_largest(self, most: usize) -> Vec<(K, V)>
    where
        K: Ord,
        V: Ord,
    {
        let mut rows = self.into_sorted();
        rows.sort_by(|one, other| other.1.cmp(&one.1));
        rows.truncate(most);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        let room = Room::for_flows(2);
        let mut table = Table::<u32, u64>::new(&room);
        for key in [1, 2, 3, 1, 3] {
            table.add(key, 1);
        }
        assert_eq!((room.lost(), table.len()), (2, 2));
        let mut other = Table::new(&Room::for_flows(2));
        *other.row(3).unwrap() = 2;
        *other.row(1).unwrap() = 5;
        table.merge(other, |own, more| *own += more);
        assert_eq!(room.lost(), 2);
        assert_eq!(table.clone().into_sorted(), [(1, 7), (2, 1), (3, 2)]);
        assert_eq!(table.into_largest(2), [(1, 7), (3, 2)]);
    }
}

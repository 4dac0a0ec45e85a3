//! A hash table whose entries are listed by age: a bounded number of entries, the oldest of which makes room.
//!
//! ```text
//! index    | position | position | 0 | …          by the hash of the key
//!               └───────┐
//! entries  | key, value | older | newer | turn |  …
//!            oldest ◀── … ──▶ newest
//! ```
//!
//! All tables whose entries have a limited time are of this kind: the age of an entry is when it was inserted, and an
//! entry that is removed leaves nothing behind. The table knows no time. Its owner compares the times of an entry and of
//! a packet of the same address pair, and calls [`Aged::turn`] at places of the stream that are the same for all
//! arrangements of threads. So the packets of other pairs decide nothing, unless the table is full.
//!
//! Invariant: at most the number of entries given to [`Aged::new`], each of at most [`Aged::ENTRY_BYTES`].

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;

/// The position of an entry plus 1; 0: none.
type Link = u32;

struct Entry<K, V> {
    /// `None`: unused.
    pair: Option<(K, V)>,
    older: Link,
    /// Of an unused entry, the next unused one.
    newer: Link,
    /// The turn in which it was inserted.
    turn: u32,
}

/// Values by key, listed by age.
pub struct Aged<K, V, S> {
    index: HashTable<Link>,
    entries: Vec<Entry<K, V>>,
    unused: Link,
    oldest: Link,
    newest: Link,
    turn: u32,
    most: usize,
    hasher: S,
}

impl<K: Hash + Eq, V, S: BuildHasher> Aged<K, V, S> {
    /// Memory of an entry: itself, and its part of the index, which is at least a fifth full when it is largest.
    pub const ENTRY_BYTES: usize = size_of::<Entry<K, V>>() + 5 * (size_of::<Link>() + 1);

    /// A table for at most `most` entries. Reserves address space for all of them; memory is used as they come.
    pub fn new(most: usize, hasher: S) -> Self {
        let most = most.min(Link::MAX as usize - 1);
        Self {
            index: HashTable::new(),
            entries: Vec::with_capacity(most),
            unused: 0,
            oldest: 0,
            newest: 0,
            turn: 0,
            most,
            hasher,
        }
    }

    /// The hash function.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Most entries.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let &link = self.index.find(self.hasher.hash_one(key), |&link| self.is(link, key))?;
        let (_, value) = self.entries.get(place(link))?.pair.as_ref()?;
        Some(value)
    }

    /// The value of a key, to be changed. Its age stays.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let &link = self.index.find(self.hasher.hash_one(key), |&link| self.is(link, key))?;
        let (_, value) = self.entries.get_mut(place(link))?.pair.as_mut()?;
        Some(value)
    }

    /// Inserts the newest entry. Returns the entries that left: the one of the same key, and the oldest one if the table
    /// was full (the new one itself, if there is no room at all).
    pub fn insert(&mut self, key: K, value: V) -> (Option<V>, Option<(K, V)>) {
        let hash = self.hasher.hash_one(&key);
        let replaced = self.remove_hashed(hash, &key);
        if self.most == 0 {
            return (replaced, Some((key, value)));
        }
        let evicted = if self.len() >= self.most { self.pop_oldest() } else { None };
        let (turn, older) = (self.turn, self.newest);
        let entry = Entry { pair: Some((key, value)), older, newer: 0, turn };
        let link = if let Some(unused) = self.entries.get_mut(place(self.unused)) {
            let link = std::mem::replace(&mut self.unused, unused.newer);
            *unused = entry;
            link
        } else {
            self.entries.push(entry);
            self.entries.len() as Link
        };
        self.newest = link;
        match self.entries.get_mut(place(older)) {
            Some(before) => before.newer = link,
            None => self.oldest = link,
        }
        let Self { index, entries, hasher, .. } = self;
        let hash_of = |&link: &Link| {
            let pair = entries.get(place(link)).and_then(|entry| entry.pair.as_ref());
            pair.map_or(0, |(key, _)| hasher.hash_one(key))
        };
        index.insert_unique(hash, link, hash_of);
        (replaced, evicted)
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_hashed(self.hasher.hash_one(key), key)
    }

    fn remove_hashed(&mut self, hash: u64, key: &K) -> Option<V> {
        let Self { index, entries, .. } = self;
        let is = |&link: &Link| has_key(entries, link, key);
        let (link, _) = index.find_entry(hash, is).ok()?.remove();
        self.take_out(link).map(|(_, value)| value)
    }

    /// Removes the oldest entry.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let oldest = self.oldest;
        let (key, _) = self.entries.get(place(oldest))?.pair.as_ref()?;
        let hash = self.hasher.hash_one(key);
        self.index.find_entry(hash, |&link| link == oldest).ok()?.remove();
        self.take_out(oldest)
    }

    /// Begins the next turn. [`Aged::pop_old`] then returns the entries of the turns before the last one: those that have
    /// been here for at least one whole turn.
    pub fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Removes the oldest entry if it was inserted before the last turn.
    pub fn pop_old(&mut self) -> Option<(K, V)> {
        let entry = self.entries.get(place(self.oldest))?;
        if self.turn.wrapping_sub(entry.turn) < 2 { None } else { self.pop_oldest() }
    }

    fn is(&self, link: Link, key: &K) -> bool {
        has_key(&self.entries, link, key)
    }

    /// Takes an entry out of the list.
    fn take_out(&mut self, link: Link) -> Option<(K, V)> {
        let entry = self.entries.get_mut(place(link))?;
        let pair = entry.pair.take();
        let (older, newer) = (entry.older, entry.newer);
        entry.newer = std::mem::replace(&mut self.unused, link);
        match self.entries.get_mut(place(older)) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.entries.get_mut(place(newer)) {
            Some(behind) => behind.older = older,
            None => self.newest = older,
        }
        pair
    }
}

/// The position of a link; beyond all positions for none.
const fn place(link: Link) -> usize {
    (link as usize).wrapping_sub(1)
}

fn has_key<K: Eq, V>(entries: &[Entry<K, V>], link: Link, key: &K) -> bool {
    let pair = entries.get(place(link)).and_then(|entry| entry.pair.as_ref());
    pair.is_some_and(|(own, _)| own == key)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::hash::RandomState;

    use super::*;
    use crate::SplitMix;

    /// Against a list in order of age.
    #[test]
    fn it_equals_a_list() {
        let mut dice = SplitMix::new(5);
        let mut roll = |most: u64| dice.below(most);
        for most in [0, 1, 2, 7, 40] {
            let mut table = Aged::new(most, RandomState::new());
            let mut list: VecDeque<(u64, u64, u32)> = VecDeque::new();
            let mut turn = 0;
            for value in 0..4_000 {
                let key = roll(30);
                let at = list.iter().position(|entry| entry.0 == key);
                match roll(8) {
                    0..4 => {
                        let replaced = at.and_then(|at| list.remove(at)).map(|entry| entry.1);
                        list.push_back((key, value, turn));
                        let evicted = if list.len() > most { list.pop_front() } else { None };
                        let evicted = evicted.map(|entry| (entry.0, entry.1));
                        assert_eq!(table.insert(key, value), (replaced, evicted));
                    }
                    4 => {
                        let removed = at.and_then(|at| list.remove(at)).map(|entry| entry.1);
                        assert_eq!(table.remove(&key), removed);
                    }
                    5 => {
                        let oldest = list.pop_front().map(|entry| (entry.0, entry.1));
                        assert_eq!(table.pop_oldest(), oldest);
                    }
                    6 if roll(4) == 0 => {
                        (turn, _) = (turn + 1, table.turn());
                        while let Some(old) = list.pop_front_if(|entry| entry.2 + 1 < turn) {
                            assert_eq!(table.pop_old(), Some((old.0, old.1)));
                        }
                        assert_eq!(table.pop_old(), None);
                    }
                    _ => {
                        assert_eq!(table.get(&key), at.map(|at| &list[at].1));
                        if let Some(own) = table.get_mut(&key) {
                            *own += 1;
                            list[at.unwrap()].1 += 1;
                        }
                    }
                }
                assert_eq!((table.len(), table.is_empty()), (list.len(), list.is_empty()));
            }
        }
    }

    /// The memory is that of the entries at most, after any number of insertions and removals.
    #[test]
    fn memory_is_bounded_and_freed_entries_are_used_again() {
        const MOST: usize = 3_000;
        type Table = Aged<u64, u64, RandomState>;
        let mut table = Table::new(MOST, RandomState::new());
        let most_bytes = MOST * Table::ENTRY_BYTES;
        for number in 0..400_000 {
            table.insert(number, number);
            if number % 3 > 0 {
                table.remove(&(number - number % 500));
            }
            let index = table.index.capacity() * 8 / 7 * (size_of::<Link>() + 1);
            let entries = table.entries.capacity() * size_of::<Entry<u64, u64>>();
            assert!(index + entries <= most_bytes && table.entries.len() <= MOST);
        }
        assert_eq!(table.len(), MOST);
    }
}

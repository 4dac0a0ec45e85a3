//! The largest of many rows.

use std::cmp::Reverse;

use crate::report::Volume;

/// The first criterion of the order; then the other, then the key.
#[derive(Clone, Copy)]
pub(super) enum By {
    Octets,
    Packets,
}

impl By {
    pub(super) const ALL: [Self; 2] = [Self::Octets, Self::Packets];

    /// The key of the order: the largest first.
    #[inline(always)]
    pub(super) fn order<K>(self, key: K, volume: &Volume) -> (Reverse<(u64, u64)>, K) {
        (Reverse(self.of(volume)), key)
    }

    #[inline(always)]
    fn of(self, volume: &Volume) -> (u64, u64) {
        match self {
            Self::Octets => (volume.octets, volume.packets),
            Self::Packets => (volume.packets, volume.octets),
        }
    }
}

/// More rows of one packet than this are counted, not listed: of so many, the first by address say nothing.
const SINGLES: u64 = 10_000;

/// The rows of largest volume: those of several packets, those of one, and the number of the latter.
pub(super) struct Top<K> {
    several: Best<K>,
    single: Best<K>,
    singles: u64,
}

impl<K: Ord + Copy> Top<K> {
    pub(super) fn new(top: usize, by: By) -> Self {
        Self { several: Best::new(top, by), single: Best::new(top, by), singles: 0 }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, key: K, volume: Volume) {
        match volume.packets {
            0 => {}
            1 => {
                self.singles += 1;
                self.single.add(key, volume);
            }
            _ => self.several.add(key, volume),
        }
    }

    /// Adds other rows.
    pub(super) fn merge(&mut self, other: Self) {
        self.several.merge(other.several);
        self.single.merge(other.single);
        self.singles += other.singles;
    }

    /// The largest first, and the number of rows of one packet if these are not listed.
    pub(super) fn rows(mut self) -> (impl Iterator<Item = (K, Volume)>, u64) {
        let left_out = if self.singles > SINGLES { self.singles } else { 0 };
        if left_out == 0 {
            self.several.merge(self.single);
        }
        (self.several.rows(), left_out)
    }
}

/// The `top` rows of largest volume.
///
/// It collects twice as many rows as needed and cuts back to the best, without a copy of the whole
/// table. After a cut, only rows above the last of the best are collected.
struct Best<K> {
    top: usize,
    by: By,
    best: Vec<(K, Volume)>,
    /// The last of the best at the last cut.
    bar: Option<(K, Volume)>,
}

impl<K: Ord + Copy> Best<K> {
    fn new(top: usize, by: By) -> Self {
        Self { top, by, best: Vec::new(), bar: None }
    }

    #[inline(always)]
    fn add(&mut self, key: K, volume: Volume) {
        let Self { by, bar, .. } = self;
        let low = bar.as_ref().is_some_and(|bar| by.order(key, &volume) >= by.order(bar.0, &bar.1));
        if !low {
            self.gather(key, volume);
        }
    }

    fn gather(&mut self, key: K, volume: Volume) {
        self.best.push((key, volume));
        if self.best.len() > 2 * self.top {
            self.cut();
            self.bar = self.best.last().copied();
        }
    }

    fn cut(&mut self) {
        let by = self.by;
        self.best.sort_unstable_by_key(|(key, volume)| by.order(*key, volume));
        self.best.truncate(self.top);
    }

    /// Adds the largest of other rows.
    fn merge(&mut self, other: Self) {
        other.best.into_iter().for_each(|(key, volume)| self.add(key, volume));
    }

    /// The largest first.
    fn rows(mut self) -> impl Iterator<Item = (K, Volume)> {
        self.cut();
        self.best.into_iter()
    }
}

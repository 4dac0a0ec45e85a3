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

/// The `top` rows of largest volume. Empty rows are not listed.
///
/// It collects twice as many rows as needed and cuts back to the best, without a copy of the whole
/// table. After a cut, only rows above the last of the best are collected.
pub(super) struct Top<K> {
    top: usize,
    by: By,
    best: Vec<(K, Volume)>,
    /// The last of the best at the last cut.
    bar: Option<(K, Volume)>,
}

impl<K: Ord + Copy> Top<K> {
    pub(super) fn new(top: usize, by: By) -> Self {
        Self { top, by, best: Vec::new(), bar: None }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, key: K, volume: Volume) {
        let Self { by, bar, .. } = self;
        let low = bar.as_ref().is_some_and(|bar| by.order(key, &volume) >= by.order(bar.0, &bar.1));
        if !low && volume.packets > 0 {
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
    pub(super) fn merge(&mut self, other: Self) {
        other.best.into_iter().for_each(|(key, volume)| self.add(key, volume));
    }

    /// The largest first.
    pub(super) fn rows(mut self) -> impl Iterator<Item = (K, Volume)> {
        self.cut();
        self.best.into_iter()
    }
}

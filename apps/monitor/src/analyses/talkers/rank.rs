//! The largest of many rows.

use std::cmp::Reverse;

use super::rows::Crowd;
use crate::volume::Volume;

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

    /// The sum that this order is by.
    fn sum(self, volume: &Volume) -> u64 {
        self.of(volume).0
    }

    #[inline(always)]
    fn of(self, volume: &Volume) -> (u64, u64) {
        match self {
            Self::Octets => (volume.octets, volume.packets),
            Self::Packets => (volume.packets, volume.octets),
        }
    }
}

/// With more rows than this for each one that may be listed, those near the mean are a crowd.
const CROWD: u64 = 1_000;

/// Least size of a list for that.
const LEAST: u64 = 10;

/// Rows of at most this many times the mean of the smaller ones belong to a crowd.
const NEAR: u64 = 4;

/// The `top` rows of largest volume. Empty rows are not listed.
///
/// A flood with spoofed sources makes a crowd: very many rows of nearly equal volume, of which the first by address say
/// nothing. So they are counted instead. The mean is that of the rows behind the `top`: a few very large ones do not change it.
///
/// It collects twice as many rows as needed and cuts back to the best, without a copy of the whole
/// table. After a cut, only rows above the last of the best are collected.
pub(super) struct Top<K> {
    top: usize,
    by: By,
    best: Vec<(K, Volume)>,
    /// The last of the best at the last cut.
    bar: Option<(K, Volume)>,
    /// Number and sum of all rows.
    rows: u64,
    total: u64,
}

impl<K: Ord + Copy> Top<K> {
    pub(super) fn new(top: usize, by: By) -> Self {
        Self { top, by, best: Vec::new(), bar: None, rows: 0, total: 0 }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, key: K, volume: Volume) {
        if volume.packets == 0 {
            return;
        }
        self.rows += 1;
        self.total = self.total.saturating_add(self.by.sum(&volume));
        self.place(key, volume);
    }

    #[inline(always)]
    fn place(&mut self, key: K, volume: Volume) {
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
    pub(super) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.total = self.total.saturating_add(other.total);
        other.best.into_iter().for_each(|(key, volume)| self.place(key, volume));
    }

    /// The largest first.
    pub(super) fn rows(mut self) -> impl Iterator<Item = (K, Volume)> {
        self.cut();
        self.best.into_iter()
    }

    /// The largest first, and the crowd that is left out.
    pub(super) fn rows_and_crowd(mut self) -> (impl Iterator<Item = (K, Volume)>, Option<Crowd>) {
        self.cut();
        let listed = self.best.len();
        let by = self.by;
        let others = self.rows.saturating_sub(listed as u64).max(1);
        let rest = self.best.iter().map(|(_, volume)| by.sum(volume));
        let rest = rest.fold(self.total, u64::saturating_sub);
        let most = NEAR.saturating_mul(rest / others);
        if self.rows > CROWD.saturating_mul(LEAST.max(self.top as u64)) {
            self.best.retain(|(_, volume)| by.sum(volume) > most);
        }
        let is_shorter = self.best.len() < listed;
        let rows = self.rows - self.best.len() as u64;
        (self.best.into_iter(), is_shorter.then_some(Crowd { rows, most }))
    }
}

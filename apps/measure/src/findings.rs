//! The results of all workers or machines: one structure for each IP version.

use ringtap_sketch::{Distinct, DistinctEstimate, Exact, FrequentItems, Mismatch, Sketch};
use thiserror::Error;

use crate::counts::{PacketCounts, Side};
use crate::keys::{Keys, PacketKey};
use crate::settings::{Kind, Settings};
use crate::structure::Structure;

/// The counts of one worker, or the sum of several.
#[derive(Debug)]
pub struct Findings<V: Keys> {
    pub(crate) settings: Settings,
    /// Memory of all structures before they were merged.
    pub(crate) memory_bytes: usize,
    pub(crate) v4: Side<V::V4>,
    pub(crate) v6: Side<V::V6>,
    pub(crate) packets: PacketCounts,
}

/// Frequent items need another structure.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("frequent items of Apache DataSketches need mg, not {0}")]
pub struct FrequentItemsError(Kind);

impl<V: Keys> Findings<V> {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            settings: *settings,
            memory_bytes: 0,
            v4: Side::new(),
            v6: Side::new(),
            packets: PacketCounts::default(),
        }
    }

    /// Adds the results of another worker or machine with equal structures.
    pub(crate) fn join(&mut self, other: Self) -> Result<(), Mismatch> {
        self.v4.merge(other.v4)?;
        self.v6.merge(other.v6)?;
        self.packets.add(&other.packets);
        self.memory_bytes += other.memory_bytes;
        Ok(())
    }

    /// Memory of the structures.
    pub(crate) fn held_bytes(&self) -> usize {
        self.v4.memory_bytes() + self.v6.memory_bytes()
    }

    /// The total weight.
    pub fn total(&self) -> u64 {
        self.v4.total().saturating_add(self.v6.total())
    }

    /// Number of distinct keys, if they were counted.
    pub fn distinct(&self) -> Option<DistinctEstimate> {
        Some(self.all_distinct()?.estimate())
    }

    /// The HyperLogLog of both IP versions, in the form of Apache DataSketches.
    pub fn distinct_to_apache(&self) -> Option<Vec<u8>> {
        Some(self.all_distinct()?.to_apache())
    }

    /// The keys of both versions, whose lengths differ, in one.
    fn all_distinct(&self) -> Option<Distinct<V::V4>> {
        let v6 = self.v6.distinct.as_ref().map(Distinct::to_apache);
        let v6 = v6.and_then(|bytes| Distinct::<V::V4>::from_apache(&bytes).ok());
        match (self.v4.distinct.clone(), v6) {
            (Some(mut both), Some(v6)) => both.merge(&v6).ok().map(|()| both),
            (v4, v6) => v4.or(v6),
        }
    }

    /// The counters of both IP versions, as frequent items of Apache DataSketches, with the keys as
    /// printed.
    pub fn frequent_items(&self) -> Result<Vec<u8>, FrequentItemsError> {
        let by = self.settings.by;
        let mut items = FrequentItems::default();
        if self.settings.structure != Kind::Mg {
            return Err(FrequentItemsError(self.settings.structure));
        }
        if let Some(Structure::Mg(v4)) = &self.v4.structure {
            items = items.with(v4, |key| key.text(by));
        }
        if let Some(Structure::Mg(v6)) = &self.v6.structure {
            items = items.with(v6, |key| key.text(by));
        }
        Ok(items.to_apache())
    }
}

impl<K: PacketKey> Side<K> {
    pub(crate) fn total(&self) -> u64 {
        self.structure.as_ref().map_or(0, Structure::total)
    }

    /// Adds the same of another worker or machine. After an error the value is useless.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), Mismatch> {
        join(&mut self.structure, other.structure, |own, other| own.merge(&other))?;
        join(&mut self.exact, other.exact, |own: &mut Exact<K>, other| own.merge(&other))?;
        join(&mut self.distinct, other.distinct, |own, other| {
            own.merge(&other).map_err(|_| Mismatch::Parameters)
        })
    }
}

/// Both joined, or the existing one.
fn join<T>(
    own: &mut Option<T>,
    other: Option<T>,
    merge: impl FnOnce(&mut T, T) -> Result<(), Mismatch>,
) -> Result<(), Mismatch> {
    match (own.as_mut(), other) {
        (Some(own), Some(other)) => merge(own, other),
        (None, other) => {
            *own = other;
            Ok(())
        }
        (Some(_), None) => Ok(()),
    }
}

//! The error of the answer, compared with the exact one.
//!
//! | number | of the truly heavy keys (T) and the reported ones (R) |
//! |---|---|
//! | precision | share of R that is in T |
//! | recall | share of T that is in R |
//! | F1 | their harmonic mean |
//! | ARE, AAE | mean over T of \|estimate − count\| / count, and of \|estimate − count\| |
//!
//! Precision and recall of an empty set of keys are 1.

use std::collections::BTreeSet;

use ringtap_sketch::{Exact, Heavy, HeavyKeys};
use serde::Serialize;

use crate::keys::PacketKey;
use crate::structure::Structure;

/// The accuracy of the heavy keys, compared with the exact answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Accuracy {
    /// Share of the reported keys that are heavy.
    pub precision: f64,
    /// Share of the heavy keys that are reported.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
    /// Average relative error over the heavy keys.
    pub are: f64,
    /// Average absolute error over the heavy keys.
    pub aae: f64,
    /// Truly heavy keys.
    pub heavy: u64,
    /// Weight without room in the exact answer; unless 0, the other numbers are uncertain.
    pub unchecked: u64,
}

/// Sums over both IP versions.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    heavy: u64,
    reported: u64,
    right: u64,
    relative: f64,
    absolute: f64,
    unchecked: u64,
}

impl Compared {
    pub(crate) fn add<K: PacketKey>(
        &mut self,
        structure: &Structure<K>,
        exact: &Exact<K>,
        reported: &[Heavy<K>],
        threshold: u64,
    ) {
        let truth = exact.heavy(threshold);
        let reported: BTreeSet<K> = reported.iter().map(|heavy| heavy.key).collect();
        self.heavy += truth.len() as u64;
        self.reported += reported.len() as u64;
        self.unchecked += exact.missed();
        for Heavy { key, estimate: count } in &truth {
            let off = structure.estimate(key).value.abs_diff(count.value) as f64;
            self.right += u64::from(reported.contains(key));
            self.relative += off / count.value as f64;
            self.absolute += off;
        }
    }

    pub(crate) fn accuracy(&self) -> Accuracy {
        let of = |part: f64, whole: u64, none| if whole > 0 { part / whole as f64 } else { none };
        let precision = of(self.right as f64, self.reported, 1.0);
        let recall = of(self.right as f64, self.heavy, 1.0);
        let sum = precision + recall;
        Accuracy {
            precision,
            recall,
            f1: if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 },
            are: of(self.relative, self.heavy, 0.0),
            aae: of(self.absolute, self.heavy, 0.0),
            heavy: self.heavy,
            unchecked: self.unchecked,
        }
    }
}

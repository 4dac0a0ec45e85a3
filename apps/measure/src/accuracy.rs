//! The error of the answer, compared with the exact one.
//!
//! | number | of the truly heavy keys (T) and the reported ones (R) |
//! |---|---|
//! | precision | share of R that is in T |
//! | recall | share of T that is in R |
//! | F1 | their harmonic mean |
//! | ARE, AAE | mean over T of \|estimate − count\| / count, and of \|estimate − count\| |
//!
//! Truly heavy are the keys whose count reaches the threshold, with a limit of their number the first ones by count.
//! Precision and recall of an empty set of keys are 1.

use std::cmp::Reverse;

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

/// Both IP versions, compared with the exact answer.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// Keys that are heavy in truth: count, and difference of the estimate.
    truth: Vec<(u64, u64)>,
    unchecked: u64,
}

impl Compared {
    /// Adds the keys of one IP version from this weight on, at most `most`.
    pub(crate) fn add<K: PacketKey>(
        &mut self,
        structure: &Structure<K>,
        exact: &Exact<K>,
        least: u64,
        most: usize,
    ) {
        self.unchecked += exact.missed();
        let truth = exact.heaviest(least, most).into_iter();
        self.truth.extend(truth.map(|Heavy { key, estimate: count }| {
            (count.value, structure.estimate(&key).value.abs_diff(count.value))
        }));
    }

    /// `reported` are the exact counts of the reported keys, of which there are at most `most`.
    pub(crate) fn accuracy(mut self, reported: &[u64], least: u64, most: usize) -> Accuracy {
        let truth = &mut self.truth;
        truth.sort_by_key(|(count, _)| Reverse(*count));
        truth.truncate(most);
        // Of equal keys any may be reported.
        let least =
            if truth.len() == most { truth.last().map_or(least, |(n, _)| *n) } else { least };
        let right = reported.iter().filter(|count| **count >= least).count();
        let of = |part: f64, whole: usize, none| if whole > 0 { part / whole as f64 } else { none };
        let precision = of(right as f64, reported.len(), 1.0);
        let recall = of(right as f64, truth.len(), 1.0);
        let sum = precision + recall;
        let relative: f64 = truth.iter().map(|(count, off)| *off as f64 / *count as f64).sum();
        let absolute: f64 = truth.iter().map(|(_, off)| *off as f64).sum();
        Accuracy {
            precision,
            recall,
            f1: if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 },
            are: of(relative, truth.len(), 0.0),
            aae: of(absolute, truth.len(), 0.0),
            heavy: truth.len() as u64,
            unchecked: self.unchecked,
        }
    }
}

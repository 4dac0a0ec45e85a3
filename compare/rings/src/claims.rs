//! Judges ringtap's claims about its rings by the results of a run.
//!
//! A ratio is computed within each round, where the two trials are seconds apart; its median is
//! judged. A claim *holds* if the median reaches the goal, is *within the spread* if the third
//! quartile does, and otherwise *does not hold*.

use crate::{
    candidates::{Candidate, Mode, Origin},
    rounds::Cell,
};
use beside::Rate;

/// The capacity of most claims.
const CAPACITY: usize = 2_048;

/// The results of a run.
pub struct Results<'a> {
    pub candidates: &'a [Candidate],
    pub cells: &'a [Cell],
}

impl<'a> Results<'a> {
    /// The fastest of the candidates that `choose` selects, at an item size and a capacity.
    pub fn best(
        &self,
        bytes: usize,
        capacity: usize,
        choose: impl Fn(&Candidate) -> bool,
    ) -> Option<&'a Cell> {
        self.cells
            .iter()
            .filter(|cell| cell.bytes == bytes && cell.capacity == capacity)
            .filter(|cell| choose(&self.candidates[cell.candidate]))
            .max_by(|a, b| a.median().total_cmp(&b.median()))
    }

    /// Our default ring, used in place.
    pub fn ours(&self, bytes: usize, capacity: usize) -> Option<&'a Cell> {
        self.best(bytes, capacity, |c| c.origin == Origin::Ours && c.mode == Mode::InPlace)
    }

    pub fn limit(&self, bytes: usize, capacity: usize) -> Option<&'a Cell> {
        self.best(bytes, capacity, |c| c.origin == Origin::Machine)
    }

    fn judge(&self, claim: &str, goal: f64, ours: Option<&Cell>, theirs: Option<&Cell>) -> String {
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            return format!("{claim}: not measured\n");
        };
        let [a, b] = [ours, theirs].map(|cell| {
            format!("{} {}", self.candidates[cell.candidate].label(), Rate(cell.median()))
        });
        let ratio = ours.over(theirs);
        let verdict = ratio.verdict(goal);
        format!("{claim}: {a} / {b} = {ratio}, goal ≥ {goal}: {verdict}\n")
    }
}

/// All claims with their verdicts, a line each.
pub fn judge(results: &Results) -> String {
    let mut lines =
        String::from("Claims and verdicts (million items per second, ratios by round)\n\n");
    let sizes = |min: usize| {
        let mut sizes: Vec<usize> = results.cells.iter().map(|cell| cell.bytes).collect();
        sizes.retain(|&bytes| bytes >= min);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    for bytes in [8, 64] {
        let single = |ours: bool| {
            results.best(bytes, CAPACITY, |c| {
                c.mode == Mode::Single
                    && (ours && c.is_ours() || !ours && c.origin == Origin::Rival)
            })
        };
        let claim = format!("- single, {bytes} B × {CAPACITY}, our best over the best rival");
        lines += &results.judge(&claim, 2.0, single(true), single(false));
    }
    for bytes in sizes(0) {
        let rival = results.best(bytes, CAPACITY, |c| {
            matches!(c.mode, Mode::Copy | Mode::InPlace) && c.origin == Origin::Rival
        });
        let claim = format!("- bursts, {bytes} B × {CAPACITY}, ours over the best rival");
        lines += &results.judge(&claim, 1.0, results.ours(bytes, CAPACITY), rival);
    }
    for bytes in [8, 64] {
        let paper = results.best(bytes, CAPACITY, |c| c.origin == Origin::Paper);
        let claim = format!("- {bytes} B × {CAPACITY}, ours over MCRingBuffer as in the paper");
        lines += &results.judge(&claim, 2.5, results.ours(bytes, CAPACITY), paper);
    }
    for bytes in sizes(64) {
        let mut capacities: Vec<usize> = results.cells.iter().map(|cell| cell.capacity).collect();
        capacities.sort_unstable();
        capacities.dedup();
        for capacity in capacities {
            let claim = format!("- {bytes} B × {capacity}, share of the streaming limit");
            let (ours, limit) = (results.ours(bytes, capacity), results.limit(bytes, capacity));
            lines += &results.judge(&claim, 0.75, ours, limit);
        }
    }
    lines
}

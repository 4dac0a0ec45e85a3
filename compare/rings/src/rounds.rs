//! The trials of a run, their lengths and their order.
//!
//! ```text
//! calibrate   every candidate, size, capacity: short trials of all burst lengths; the best length is
//!             kept, and its rate determines the number of items of a trial
//! rounds      all trials in a new random order each round, each in a process
//! ```

use crate::{
    candidates::{Candidate, Mode, Origin},
    trial::Outcome,
};
use beside::{Random, Ratio, child, quantile};

/// The number of items of a trial is a multiple of this, and so of the paper's batch of 50.
const UNIT: u64 = 12_800;

/// The parameters of a run.
pub struct Plan {
    pub sizes: Vec<usize>,
    pub capacities: Vec<usize>,
    pub rounds: usize,
    /// Milliseconds per trial.
    pub milliseconds: f64,
    pub cpus: [usize; 2],
    pub seed: u64,
}

/// One candidate at one size and capacity.
pub struct Cell {
    pub candidate: usize,
    /// Bytes per item.
    pub bytes: usize,
    /// Capacity in items.
    pub capacity: usize,
    /// Maximum number of items per burst.
    pub burst: usize,
    items: u64,
    /// Million items per second, by round; `None` if the trial was disturbed.
    rates: Vec<Option<f64>>,
    /// Rates of all trials; used if too few were undisturbed.
    all: Vec<f64>,
}

impl Cell {
    fn name(&self, candidates: &[Candidate]) -> String {
        let label = candidates[self.candidate].label();
        format!("{label}, {} bytes × {}", self.bytes, self.capacity)
    }

    /// Rates in ascending order, and whether they are from undisturbed trials only.
    pub fn sorted(&self) -> (Vec<f64>, bool) {
        let mut rates: Vec<f64> = self.rates.iter().flatten().copied().collect();
        let clean = rates.len() >= self.rates.len().div_ceil(2);
        if !clean {
            rates.clone_from(&self.all);
        }
        rates.sort_by(f64::total_cmp);
        (rates, clean)
    }

    /// The rate of every trial, and whether it was undisturbed.
    pub fn trials(&self) -> impl Iterator<Item = (f64, bool)> {
        self.all.iter().zip(&self.rates).map(|(&rate, clean)| (rate, clean.is_some()))
    }

    /// The ratio of its rate to another's, round by round: over the rounds in which both were
    /// undisturbed, or over all rounds if those are too few.
    pub fn over(&self, other: &Self) -> Ratio {
        let pairs = || self.trials().zip(other.trials());
        let clean = |((_, a), (_, b)): &((f64, bool), (f64, bool))| *a && *b;
        let enough = pairs().filter(clean).count() * 2 >= pairs().count();
        Ratio::of(pairs().filter(|pair| !enough || clean(pair)).map(|((a, _), (b, _))| a / b))
    }

    pub fn median(&self) -> f64 {
        quantile(&self.sorted().0, 0.5)
    }
}

/// Measures all cells. A lost or wrong item is an error.
pub fn measure(candidates: &[Candidate], plan: &Plan) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for &bytes in &plan.sizes {
            for &capacity in &plan.capacities {
                if candidate.mode != Mode::Blocking {
                    cells.push(calibrate(candidates, index, bytes, capacity, plan.cpus)?);
                }
            }
        }
        eprintln!("rings: {} delivers all items in order", candidate.label());
    }
    let target = plan.milliseconds / 1e3;
    for cell in &mut cells {
        let rate = cell.median() * 1e6;
        cell.items = units((rate * target) as u64);
        cell.rates.clear();
        cell.all.clear();
    }
    let mut random = Random(plan.seed);
    let mut order: Vec<usize> = (0..cells.len()).collect();
    for round in 1..=plan.rounds {
        random.shuffle(&mut order);
        for &index in &order {
            let cell = &mut cells[index];
            let outcome = trial(candidates, cell, plan.cpus)?;
            let rate = cell.items as f64 / outcome.seconds / 1e6;
            cell.all.push(rate);
            cell.rates.push((!outcome.disturbed).then_some(rate));
        }
        eprintln!("rings: round {round} of {}", plan.rounds);
    }
    Ok(cells)
}

/// Checks the candidate, finds its best burst length, and stores its rate in the cell.
fn calibrate(
    candidates: &[Candidate],
    candidate: usize,
    bytes: usize,
    capacity: usize,
    cpus: [usize; 2],
) -> Result<Cell, String> {
    let mut best: Option<Cell> = None;
    for burst in candidates[candidate].bursts(in_lines(&candidates[candidate], bytes, capacity)) {
        let items = units(2 * capacity as u64);
        let mut cell =
            Cell { candidate, bytes, capacity, burst, items, rates: Vec::new(), all: Vec::new() };
        // One trial to estimate the rate, and five trials of 8 milliseconds.
        for attempt in 0..6 {
            let outcome = trial(candidates, &cell, cpus)?;
            let rate = cell.items as f64 / outcome.seconds;
            if attempt == 0 {
                cell.items = units((rate * 0.008) as u64);
            } else {
                cell.all.push(rate / 1e6);
            }
        }
        cell.rates = vec![cell.all.iter().copied().reduce(f64::max)];
        if best.as_ref().is_none_or(|best| best.median() < cell.median()) {
            best = Some(cell);
        }
    }
    best.ok_or_else(|| format!("{}: no burst fits {capacity}", candidates[candidate].label()))
}

fn units(items: u64) -> u64 {
    items.div_ceil(UNIT).max(1) * UNIT
}

/// The number of units for `items` items: cache lines for the limit, whose buffer is as large as
/// the ring, and items for all others.
fn in_lines(candidate: &Candidate, bytes: usize, items: usize) -> usize {
    if candidate.origin == Origin::Machine { items * bytes / 64 } else { items }
}

/// Runs a trial in a new process.
fn trial(candidates: &[Candidate], cell: &Cell, cpus: [usize; 2]) -> Result<Outcome, String> {
    let candidate = &candidates[cell.candidate];
    let lines = |items| in_lines(candidate, cell.bytes, items as usize) as u64;
    let bytes = if candidate.origin == Origin::Machine { 64 } else { cell.bytes as u64 };
    let capacity = cell.capacity as u64;
    let [a, b] = cpus.map(|cpu| cpu as u64);
    let sent = [lines(units(capacity)), lines(cell.items)];
    let arguments =
        [cell.candidate as u64, bytes, lines(capacity), cell.burst as u64, sent[0], sent[1], a, b];
    let outcome = child("trial", &arguments).and_then(|line| line.parse::<Outcome>());
    match outcome {
        Ok(outcome) if !outcome.wrong => Ok(outcome),
        Ok(_) => Err(format!("{}: wrong items", cell.name(candidates))),
        Err(why) => Err(format!("{}: {why}", cell.name(candidates))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{candidates, ends::pair, trial};

    #[test]
    fn every_candidate_delivers_every_item_in_order() {
        let cpus = crate::machine::first_two().unwrap();
        for candidate in candidates::all() {
            let sizes: &[usize] =
                if candidate.origin == Origin::Machine { &[64] } else { &crate::item::SIZES };
            for &bytes in sizes {
                for burst in candidate.bursts(256) {
                    let ends = candidate.ends(bytes, 256, burst);
                    let outcome = trial::run(ends, UNIT, UNIT, cpus).unwrap();
                    assert!(!outcome.wrong, "{} of {bytes} bytes", candidate.label());
                }
            }
        }
    }

    #[test]
    fn a_wrong_item_is_detected() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let ends = pair(
            1,
            move |next, _| usize::from(sender.send(if next == 77 { 78 } else { next }).is_ok()),
            move |next, _, wrong| {
                let item: u64 = receiver.recv().unwrap();
                *wrong |= item ^ next;
                1
            },
        );
        let cpus = crate::machine::first_two().unwrap();
        assert!(trial::run(ends, 50, 100, cpus).unwrap().wrong);
    }

    #[test]
    fn disturbed_trials_count_only_if_too_few_are_undisturbed() {
        let cell = |rates: &[Option<f64>]| Cell {
            candidate: 0,
            bytes: 8,
            capacity: 256,
            burst: 1,
            items: UNIT,
            rates: rates.to_vec(),
            all: vec![3.0, 1.0, 9.0],
        };
        assert_eq!(cell(&[Some(3.0), Some(1.0), None]).sorted(), (vec![1.0, 3.0], true));
        assert_eq!(cell(&[Some(3.0), None, None]).sorted(), (vec![1.0, 3.0, 9.0], false));
    }
}

//! The result of a benchmark run: which packets passed, and how often each fingerprint occurred.
//!
//! ```text
//! worker 0  verdicts 1 0 0 0 1 …   histogram ─┐
//! worker 1  verdicts 0 0 1 0 0 …   histogram ─┼─▶ OR, +  ─▶ outcome
//! worker 2  verdicts 0 0 0 0 0 …   histogram ─┘
//! ```
//!
//! The verdict of a packet is the bit at the packet's number, so workers need no common order, and
//! outcomes are equal only if every verdict is. Memory: one bit per packet and 512 KiB per worker.

use std::fmt;
use std::sync::Arc;

use ringtap_stage::{Mark, Merger, Shard};
use sha2::{Digest, Sha256};

use crate::filter::history::Recorder;
use crate::filter::work::{FINGERPRINTS, Job, Work};

/// Packet counts, verdicts and histogram of a benchmark run.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Control packets.
    pub controls: u64,
    /// Data packets that passed.
    pub accepted: u64,
    /// Data packets that were refused.
    pub refused: u64,
    /// Bit n of these words, lowest first, is set if packet n is data and passed.
    verdicts: Vec<u64>,
    histogram: Vec<u64>,
}

impl Default for Outcome {
    fn default() -> Self {
        let histogram = vec![0; FINGERPRINTS];
        Self { controls: 0, accepted: 0, refused: 0, verdicts: Vec::new(), histogram }
    }
}

impl Outcome {
    /// Number of all packets.
    pub fn packets(&self) -> u64 {
        self.controls + self.accepted + self.refused
    }

    /// Number of occurrences of each of the 65,536 fingerprints.
    pub fn histogram(&self) -> &[u64] {
        &self.histogram
    }

    /// Whether packet `number` is a data packet that passed.
    pub fn passed(&self, number: u64) -> bool {
        let word = self.verdicts.get((number / 64) as usize).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    /// The number of the first packet that passed in one outcome and not in the other.
    pub fn first_difference(&self, other: &Self) -> Option<u64> {
        let words = self.verdicts.len().max(other.verdicts.len());
        let word = |outcome: &Self, at| outcome.verdicts.get(at).copied().unwrap_or(0);
        (0..words).find_map(|at| match word(self, at) ^ word(other, at) {
            0 => None,
            differ => Some(64 * at as u64 + u64::from(differ.trailing_zeros())),
        })
    }

    /// SHA-256 of the verdicts as little-endian 64-bit words, in hexadecimal.
    pub fn verdicts_sha256(&self) -> String {
        let words = (self.packets() as usize).div_ceil(64);
        let present = self.verdicts.iter().copied().chain(std::iter::repeat(0));
        sha256(present.take(words))
    }

    /// SHA-256 of the 65,536 counts as little-endian 64-bit words, in hexadecimal.
    pub fn histogram_sha256(&self) -> String {
        sha256(self.histogram.iter().copied())
    }

    fn add(&mut self, part: &Self) {
        self.controls += part.controls;
        self.accepted += part.accepted;
        self.refused += part.refused;
        let words = self.verdicts.len().max(part.verdicts.len());
        self.verdicts.resize(words, 0);
        self.verdicts.iter_mut().zip(&part.verdicts).for_each(|(word, part)| *word |= part);
        self.histogram.iter_mut().zip(&part.histogram).for_each(|(sum, part)| *sum += part);
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("controls", &self.controls)
            .field("accepted", &self.accepted)
            .field("refused", &self.refused)
            .field("verdicts_sha256", &self.verdicts_sha256())
            .field("histogram_sha256", &self.histogram_sha256())
            .finish()
    }
}

fn sha256(words: impl Iterator<Item = u64>) -> String {
    let mut hash = Sha256::new();
    words.for_each(|word| hash.update(word.to_le_bytes()));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A worker's part of the outcome, and the pending jobs of packets that passed.
#[derive(Debug, Default)]
pub(crate) struct WorkerOutcome {
    outcome: Outcome,
    work: Work,
    /// The first `pending` of these are to be run.
    jobs: Vec<Job>,
    pending: usize,
    recorder: Option<Arc<Recorder>>,
}

impl WorkerOutcome {
    pub(crate) fn new(work: Work, recorder: Option<Arc<Recorder>>) -> Self {
        Self { work, recorder, ..Self::default() }
    }

    pub(crate) fn control(&mut self, number: u64) {
        self.outcome.controls += 1;
        self.returned(number);
    }

    #[inline]
    pub(crate) fn data(&mut self, number: u64, job: Job, passed: bool) {
        let (word, bit) = ((number / 64) as usize, number % 64);
        if word >= self.outcome.verdicts.len() {
            self.outcome.verdicts.resize(word + 1, 0);
        }
        // Verdicts are unpredictable, so the code has no branch on them: the job of a refused
        // packet is overwritten.
        self.outcome.verdicts[word] |= u64::from(passed) << bit;
        self.outcome.accepted += u64::from(passed);
        self.outcome.refused += u64::from(!passed);
        if self.pending == self.jobs.len() {
            self.jobs.push(job);
        }
        self.jobs[self.pending] = job;
        self.pending += usize::from(passed);
        self.returned(number);
    }

    fn returned(&self, number: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.returned(number);
        }
    }

    /// Runs the pending jobs.
    pub(crate) fn run_jobs(&mut self) {
        let histogram = &mut self.outcome.histogram;
        self.work.run(&self.jobs[..self.pending], |fingerprint| histogram[fingerprint] += 1);
        self.pending = 0;
    }

    pub(crate) fn close(&mut self) -> Outcome {
        self.run_jobs();
        std::mem::take(&mut self.outcome)
    }
}

/// A worker's result at a mark: at the end, its part of the outcome; otherwise none.
pub type Partial = Option<Box<Outcome>>;

/// Adds up the workers' parts.
#[derive(Debug, Default)]
pub struct OutcomeMerger {
    outcome: Outcome,
}

impl Merger for OutcomeMerger {
    type Message = std::convert::Infallible;
    type Partial = Partial;
    type Report = Outcome;

    fn on_message(&mut self, message: Self::Message) {
        match message {}
    }

    fn on_partial(&mut self, _shard: Shard, _mark: &Mark, partial: Partial) {
        if let Some(part) = partial {
            self.outcome.add(&part);
        }
    }

    fn finish(self) -> Outcome {
        self.outcome
    }
}

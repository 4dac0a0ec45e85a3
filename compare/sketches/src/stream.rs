//! The stream that all candidates count, and its exact counts.

use beside::Random;
use std::collections::HashMap;

/// An IPv4 five-tuple.
pub type Key = [u8; 13];

/// Number of distinct keys from which the stream is drawn.
pub const POPULATION: usize = 1_000_000;

/// Minimum share of the stream of a heavy key.
const HEAVY: f64 = 0.0001;

pub struct Stream {
    pub keys: Vec<Key>,
    pub truth: HashMap<Key, u64>,
    pub threshold: u64,
    heavy: usize,
}

impl Stream {
    /// A stream of random keys with a Zipf distribution of exponent 1.
    pub fn new(packets: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        let population: Vec<Key> = (0..POPULATION)
            .map(|_| {
                let mut key = [0; 13];
                key[..8].copy_from_slice(&random.number().to_le_bytes());
                key[8..].copy_from_slice(&random.number().to_le_bytes()[..5]);
                key
            })
            .collect();
        let mut cumulated = Vec::with_capacity(POPULATION);
        let mut sum = 0.0;
        for rank in 1..=POPULATION {
            sum += 1.0 / rank as f64;
            cumulated.push(sum);
        }
        let keys: Vec<Key> = (0..packets)
            .map(|_| {
                let at = (random.number() >> 11) as f64 / (1u64 << 53) as f64 * sum;
                let rank = cumulated.partition_point(|&c| c < at);
                population[rank.min(POPULATION - 1)]
            })
            .collect();
        let mut truth = HashMap::new();
        for key in &keys {
            *truth.entry(*key).or_insert(0) += 1;
        }
        let threshold = (packets as f64 * HEAVY) as u64;
        let heavy = truth.values().filter(|&&count| count >= threshold).count();
        Self { keys, truth, threshold, heavy }
    }

    /// The F1 score of a list of heavy keys: the harmonic mean of precision and recall.
    pub fn f1(&self, listed: &[Key]) -> f64 {
        let right = |key: &&Key| self.truth.get(*key).is_some_and(|&count| count >= self.threshold);
        let hits = listed.iter().filter(right).count();
        2.0 * hits as f64 / (listed.len() + self.heavy) as f64
    }

    pub fn describe(&self) -> String {
        format!(
            "{} packets of {} five-tuples (Zipf 1.0 over {POPULATION}); {} of them heavy, with {} packets or more.",
            self.keys.len(),
            self.truth.len(),
            self.heavy,
            self.threshold
        )
    }
}

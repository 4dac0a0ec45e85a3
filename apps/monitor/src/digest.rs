//! A digest of a set of flow records that does not depend on their order.
//!
//! The SHA-256 of each record is added, as four 64-bit words with wrap-around, to a sum; sums of
//! workers add up. Equal sets have equal sums; it detects accidents, not crafted records.

use ringtap_flow::FlowRecord;
use sha2::{Digest, Sha256};

/// The sum so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordDigest([u64; 4]);

impl RecordDigest {
    pub(crate) fn add(&mut self, record: &FlowRecord) {
        let mut hasher = Sha256::new();
        hasher.update(record.canonical());
        if let Some(path) = record.canonical_reverse_path() {
            hasher.update(path);
        }
        hasher.update(record.facts.bytes());
        if record.facts.beyond() > 0 {
            hasher.update(record.facts.beyond().to_le_bytes());
        }
        if let Some(tcp) = &record.tcp {
            hasher.update(tcp.canonical());
        }
        if let Some(times) = &record.responses {
            hasher.update(times.canonical());
        }
        if let Some(statistics) = &record.statistics {
            hasher.update(statistics.bytes());
        }
        let hash = hasher.finalize();
        let (words, _) = hash.as_chunks::<8>();
        for (sum, word) in self.0.iter_mut().zip(words) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, word) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(word);
        }
    }

    /// The words of the sum.
    pub(crate) fn words(&self) -> [u64; 4] {
        self.0
    }

    pub(crate) fn word_mut(&mut self, at: usize) -> Option<&mut u64> {
        self.0.get_mut(at)
    }

    pub(crate) fn hex(&self) -> String {
        self.0.iter().map(|word| format!("{word:016x}")).collect()
    }
}

//! What a forwarder is told at the start.

use crate::packets::NameBuf;

/// Sizes and policies.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pending Interests at the most; 2^24 a shard, for their tokens.
    pub pit_capacity: usize,
    /// Interests that one face may have pending; further ones are refused. `None`: as many as fit.
    pub pit_per_face: Option<usize>,
    /// Data kept at the most; 0: none.
    pub cs_capacity: usize,
    /// Bytes of Data kept at the most.
    pub cs_bytes: usize,
    /// Nonces remembered after their Interest is gone.
    pub dead_nonces: usize,
    /// An Interest is pending for no longer than this, in milliseconds.
    pub lifetime_max_ms: u64,
    /// What happens to Data that nobody asked for.
    pub unsolicited: Unsolicited,
    /// Where this forwarder is: a forwarding hint that names it has done its work.
    pub regions: Vec<NameBuf>,
    /// Of the keyed hashes: attackers choose the names.
    pub seed: u64,
}

/// What happens to Data that nobody asked for. It is never passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsolicited {
    /// Forgotten.
    #[default]
    Drop,
    /// Kept if it comes from a local face.
    KeepLocal,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pit_capacity: 1 << 17,
            pit_per_face: None,
            cs_capacity: 1 << 16,
            cs_bytes: 128 << 20,
            dead_nonces: 1 << 17,
            lifetime_max_ms: 10_000,
            unsolicited: Unsolicited::Drop,
            regions: Vec::new(),
            seed: 0,
        }
    }
}

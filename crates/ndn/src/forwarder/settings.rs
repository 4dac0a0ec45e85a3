//! Settings of a forwarder.

use crate::packets::NameBuf;

/// Sizes and policies.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum number of pending Interests; at most 2^24 per shard, the limit of PIT tokens.
    pub pit_capacity: usize,
    /// Maximum number of pending Interests of one face; `None`: no limit per face.
    pub pit_per_face: Option<usize>,
    /// Size of the content store in bytes, of Data packets and all that they need in its tables; 0:
    /// nothing is stored.
    pub cs_bytes: usize,
    /// Size of the dead nonce list: nonces stored after their entry is removed.
    pub dead_nonces: usize,
    /// Maximum lifetime of a pending Interest, in milliseconds.
    pub lifetime_max_ms: u64,
    /// The handling of unsolicited Data.
    pub unsolicited: Unsolicited,
    /// Regions of this forwarder: a forwarding hint that names one is removed.
    pub regions: Vec<NameBuf>,
    /// Number of name components that select the shard of a packet, at least 1. More of them
    /// spread the names of one application; names with fewer are hashed as a whole.
    pub dispatch_components: usize,
    /// Seed of the keyed hashes. They are keyed because attackers choose the names.
    pub seed: u64,
}

/// The handling of unsolicited Data. They are never forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsolicited {
    /// Dropped.
    #[default]
    Drop,
    /// Stored if received from a local face, else dropped.
    KeepLocal,
}

impl Settings {
    /// Maximum number of Data in the content store, if all are of the smallest size.
    pub fn cs_entries_max(&self) -> usize {
        self.cs_bytes / crate::forwarder::tables::BYTES_PER_DATA_MIN
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pit_capacity: 1 << 17,
            pit_per_face: None,
            cs_bytes: 128 << 20,
            dead_nonces: 1 << 17,
            lifetime_max_ms: 10_000,
            unsolicited: Unsolicited::Drop,
            regions: Vec::new(),
            dispatch_components: 2,
            seed: 0,
        }
    }
}

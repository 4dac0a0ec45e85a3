//! What is measured, and in which structure.

use ringtap_engine::display;
use serde::Serialize;
use thiserror::Error;

use crate::CountBy;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    #[serde(serialize_with = "display")]
    pub structure: Kind,
    #[serde(serialize_with = "display")]
    pub state: State,
    #[serde(rename = "key", serialize_with = "display")]
    pub by: CountBy,
    #[serde(serialize_with = "display")]
    pub weight: Weight,
    /// A key is heavy from this share of the total weight on; above 0, at most 1.
    pub threshold: f64,
    /// For one structure of one IP version; a separate one of each worker.
    pub memory_bytes: u64,
    /// Whether the exact answer is found, too, to compare with.
    pub check: bool,
    /// Whether different keys are counted.
    pub distinct: bool,
    /// Of the hash functions. Structures merge only with equal ones.
    #[serde(skip)]
    pub seed: u64,
}

impl Default for Settings {
    /// The threshold is that of the paper.
    fn default() -> Self {
        Self {
            structure: Kind::Mg,
            state: State::Separate,
            by: CountBy::FiveTuple,
            weight: Weight::Packets,
            threshold: 0.0001,
            memory_bytes: 1 << 20,
            check: false,
            distinct: false,
            seed: 0,
        }
    }
}

ringtap_base::choices! {
    /// A structure that counts.
    pub enum Kind: "structure" {
        /// Count-Min; it keeps no keys.
        Cms = "cms",
        /// Count-Min with conservative update; it keeps no keys.
        CmsCu = "cms-cu",
        /// The same, with the keys that look heavy.
        CmsKeys = "cms-keys",
        /// The simple hash table; who comes first stays.
        Sht = "sht",
        /// The poster's reversible sketch; keys are found by a search that may be too dear.
        Rs = "rs",
        /// Schweller's reversible sketch, for IPv4 addresses and prefixes.
        RsModular = "rs-modular",
        /// MV-Sketch.
        Mv = "mv",
        /// Misra–Gries.
        Mg = "mg",
        /// SpaceSaving in buckets.
        Ss = "ss",
        /// Every key, while there is room.
        Exact = "exact",
    }
}

ringtap_base::choices! {
    /// Whose the structures are.
    pub enum State: "state" {
        /// Each worker has one, and they are merged at the end.
        Separate = "separate",
        /// All workers update the same one.
        Shared = "shared",
    }
}

ringtap_base::choices! {
    /// What a packet adds to its key.
    pub enum Weight: "weight" {
        /// One.
        Packets = "packets",
        /// The length of its IP packet.
        Octets = "octets",
    }
}

impl Kind {
    /// Those that threads can share.
    pub const SHARED: [Self; 3] = [Self::Cms, Self::Sht, Self::Rs];

    /// Whether its heavy keys can be listed without knowing keys from elsewhere.
    pub const fn keeps_keys(self) -> bool {
        !matches!(self, Self::Cms | Self::CmsCu)
    }

    /// Whether any number of separate ones, merged, and a shared one, are bit for bit the one of a single owner. `Mg` and
    /// `Exact` are while all keys find room. Of the others only the bounds hold.
    pub const fn is_linear(self) -> bool {
        matches!(self, Self::Cms | Self::Rs | Self::RsModular)
    }
}

/// Settings that cannot be met.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SettingsError {
    #[error("{0} has no shared form; there are cms, sht and rs, and all can be separate")]
    NotShared(Kind),
    #[error("rs-modular counts by single IPv4 addresses and prefixes, not by {0}")]
    OneAddress(CountBy),
    #[error("a threshold is a share of the total, above 0 and at most 1, not {0}")]
    Threshold(f64),
    #[error("{given} bytes of memory are too few for {structure}: the smallest takes {least}")]
    TooLittleMemory { structure: Kind, given: u64, least: u64 },
    #[error("{given} bytes of memory are too many for {structure}")]
    TooMuchMemory { structure: Kind, given: u64 },
}

impl Settings {
    /// Memory for a structure unless something else is asked for: 1 MiB holds every heavy key of a link for a sketch; every
    /// key wants more.
    pub fn usual_bytes(structure: Kind, machine_bytes: u64) -> u64 {
        match structure {
            Kind::Exact => (256 << 20).min(machine_bytes / 4),
            _ => 1 << 20,
        }
    }

    /// The weight from which on a key is heavy.
    pub fn heavy_from(&self, total: u64) -> u64 {
        ((self.threshold * total as f64).ceil() as u64).max(1)
    }
}

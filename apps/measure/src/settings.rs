//! Settings of a measurement.

use ringtap_engine::display;
use serde::Serialize;
use thiserror::Error;

use crate::CountBy;

/// What is measured, and in which structure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// The kind of structure.
    #[serde(serialize_with = "display")]
    pub structure: Kind,
    /// Whether workers have separate structures or a shared one.
    #[serde(serialize_with = "display")]
    pub state: State,
    /// The kind of keys.
    #[serde(rename = "key", serialize_with = "display")]
    pub by: CountBy,
    /// The weight of a packet.
    #[serde(serialize_with = "display")]
    pub weight: Weight,
    /// Share of the total weight from which a key is listed, above 0 and at most 1; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Most keys listed, those with the largest estimates; `None`: all from the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<usize>,
    /// Length of the intervals of packet time, each with its own structures, nanoseconds; `None`:
    /// the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Memory of one structure of one IP version; for separate ones, of each worker.
    pub memory_bytes: u64,
    /// Whether to compute the exact answer, too.
    pub check: bool,
    /// Whether to count distinct keys.
    pub distinct: bool,
    /// Seed of the hash functions. Structures merge only with equal seeds.
    #[serde(skip)]
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            structure: Kind::Mg,
            state: State::Separate,
            by: CountBy::FiveTuple,
            weight: Weight::Packets,
            threshold: None,
            top: Some(Self::TOP),
            interval_ns: None,
            memory_bytes: 1 << 20,
            check: false,
            distinct: false,
            seed: 0,
        }
    }
}

ringtap_base::choices! {
    /// The kinds of structures.
    pub enum Kind: "structure" {
        /// Count-Min; stores no keys.
        Cms = "cms",
        /// Count-Min with conservative update; stores no keys.
        CmsCu = "cms-cu",
        /// Count-Min with conservative update, with candidate keys.
        CmsKeys = "cms-keys",
        /// The simple hash table; the first key of a slot stays.
        Sht = "sht",
        /// The poster's reversible sketch; recovers keys by a search, which may exceed its budget.
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
    /// Separate or shared structures.
    pub enum State: "state" {
        /// Each worker has one, and they are merged at the end.
        Separate = "separate",
        /// All workers update the same one.
        Shared = "shared",
    }
}

ringtap_base::choices! {
    /// The weight of a packet.
    pub enum Weight: "weight" {
        /// One.
        Packets = "packets",
        /// The length of its IP packet.
        Octets = "octets",
    }
}

impl Kind {
    /// Structures that threads can share.
    pub const SHARED: [Self; 3] = [Self::Cms, Self::Sht, Self::Rs];

    /// Whether its heavy keys can be listed without a list of candidates.
    pub const fn keeps_keys(self) -> bool {
        !matches!(self, Self::Cms | Self::CmsCu)
    }

    /// Whether any number of merged separate structures, and a shared one, equal the structure of a
    /// single owner bit for bit. `Mg` and `Exact` also do while all keys have room. For the others
    /// only the bounds hold.
    pub const fn is_linear(self) -> bool {
        matches!(self, Self::Cms | Self::Rs | Self::RsModular)
    }
}

/// Invalid settings.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SettingsError {
    /// The structure has no shared form.
    #[error("{0} has no shared form: use cms, sht or rs, or --state separate")]
    NotShared(Kind),
    /// `rs-modular` needs keys of one IPv4 address.
    #[error("rs-modular needs single IPv4 addresses or prefixes as keys, not {0}")]
    OneAddress(CountBy),
    /// Workers reach the end of an interval at different times.
    #[error("intervals need a structure for each worker: use --state separate with --interval")]
    SharedIntervals,
    /// The interval is too short.
    #[error("invalid interval of {} ms: use 1ms or more", milliseconds(.0))]
    Interval(u64),
    /// The threshold is out of range.
    #[error("invalid threshold {0}: use a share of the total, above 0 and at most 1")]
    Threshold(f64),
    /// The memory is less than the smallest structure needs.
    #[error("invalid memory {given} for {structure}: use at least {least} bytes")]
    TooLittleMemory {
        /// The structure.
        structure: Kind,
        /// Bytes given.
        given: u64,
        /// Bytes of the smallest structure.
        least: u64,
    },
    /// The memory exceeds the largest structure.
    #[error("invalid memory {given} for {structure}: use less")]
    TooMuchMemory {
        /// The structure.
        structure: Kind,
        /// Bytes given.
        given: u64,
    },
}

fn milliseconds(ns: &u64) -> f64 {
    *ns as f64 / 1e6
}

impl Settings {
    /// Keys listed without a threshold.
    pub const TOP: usize = 10;
    /// The shortest interval, nanoseconds.
    pub const LEAST_INTERVAL_NS: u64 = 1_000_000;

    /// Default memory of a structure: 1 MiB of sketch holds every heavy key of a link; every key
    /// needs more. `share_bytes` is its share of the machine's memory.
    pub(crate) fn default_bytes(&self, share_bytes: u64) -> u64 {
        match self.structure {
            Kind::Exact => (256 << 20).min(share_bytes / 4),
            _ => 1 << 20,
        }
    }

    /// The weight of the threshold; 1 without one.
    pub fn least_weight(&self, total: u64) -> u64 {
        self.threshold.map_or(1, |share| ((share * total as f64).ceil() as u64).max(1))
    }

    /// Most keys listed.
    pub fn most(&self) -> usize {
        self.top.unwrap_or(usize::MAX)
    }
}

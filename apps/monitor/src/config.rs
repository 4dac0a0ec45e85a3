//! What the monitor shall do.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ringtap_flow::Metering;
use ringtap_stage::Shard;
use ringtap_wire::{HashKey, Paths, Tunnels};

use crate::analyses::activity::Limits;

/// Everything the analyses need to know. The same for every worker of a run.
#[derive(Clone)]
pub struct Config {
    /// Which analyses run.
    pub analyses: Analyses,
    /// Of tunnels, whose packets make flows, talkers and scans: as the decoder was told.
    pub tunnels: Tunnels,
    /// What a flow is and when it ends.
    pub metering: Metering,
    /// Reporting interval in packet time, nanoseconds; `None`: the whole run.
    pub interval_ns: Option<u64>,
    /// Live flows at the most, all workers together; also the bound on conversations, scan
    /// attempts, hosts and pairs kept.
    pub max_flows: usize,
    /// Bytes for the facts of live flows, all workers together.
    pub fact_bytes: usize,
    /// Room for the rows of intervals: [`ROW_UNITS`](crate::ROW_UNITS) each, and 1 for each protocol in one.
    pub interval_room: usize,
    /// Intervals whose activity is kept for the report, at the most.
    pub activity_room: usize,
    /// More failed attempts than this are a scan.
    pub scan_threshold: u32,
    /// What is too much for one host in an interval.
    pub limits: Limits,
    /// Rows in each list of talkers.
    pub top: usize,
    /// Whether the flow records are digested.
    pub digest: bool,
    /// Secret of all hash tables of the run.
    pub hash_key: HashKey,
    /// The ways that packets come by, as the decoders number them.
    pub paths: Arc<Paths>,
    /// Share of the key space of each worker, in any unit.
    pub shares: Vec<u32>,
}

impl Config {
    /// The interval that volumes are counted by.
    pub(crate) fn volumes_interval_ns(&self) -> Option<u64> {
        self.interval_ns.filter(|_| self.analyses.volumes)
    }

    /// A worker's part of [`Config::max_flows`].
    pub(crate) fn capacity_of(&self, shard: Shard) -> usize {
        self.part(self.max_flows, shard)
    }

    /// A worker's part of a number, as large as its part of the key space.
    pub(crate) fn part(&self, number: usize, shard: Shard) -> usize {
        let all: u64 = self.shares.iter().copied().map(u64::from).sum();
        match self.shares.get(shard.index) {
            Some(&own) if self.shares.len() == shard.count && all > 0 => {
                (number as u128 * u128::from(own)).div_ceil(u128::from(all)) as usize
            }
            _ => number.div_ceil(shard.count),
        }
    }
}

/// A set of analyses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analyses {
    /// Packets, octets and conversations, per protocol and interval.
    pub volumes: bool,
    /// Flow records.
    pub flows: bool,
    /// Vertical and horizontal port scans.
    pub scans: bool,
    /// Who sent and received most.
    pub talkers: bool,
    /// Who was busy in each interval, by sketches.
    pub activity: bool,
}

impl Analyses {
    /// All of them but activity, which is asked for by name: it costs more than all others together.
    pub const ALL: Self =
        Self { volumes: true, flows: true, scans: true, talkers: true, activity: false };

    /// None; a start for parsing.
    const NONE: Self =
        Self { volumes: false, flows: false, scans: false, talkers: false, activity: false };

    /// Names of those in the set, in alphabetical order.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            ("activity", self.activity),
            ("flows", self.flows),
            ("scans", self.scans),
            ("talkers", self.talkers),
            ("volumes", self.volumes),
        ];
        all.into_iter().filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Whether packets go through the flow table.
    pub fn need_flows(&self) -> bool {
        self.flows || self.talkers || self.volumes
    }
}

/// A name in the list that is no analysis.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownAnalysis(pub String);

impl fmt::Display for UnknownAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no analysis is called {:?}; there are flows, scans, talkers, volumes and activity",
            self.0
        )
    }
}

impl std::error::Error for UnknownAnalysis {}

impl FromStr for Analyses {
    type Err = UnknownAnalysis;

    fn from_str(list: &str) -> Result<Self, UnknownAnalysis> {
        let mut set = Self::NONE;
        for name in list.split(',').map(str::trim) {
            match name {
                "volumes" => set.volumes = true,
                "flows" => set.flows = true,
                "scans" => set.scans = true,
                "talkers" => set.talkers = true,
                "activity" => set.activity = true,
                "all" => set = Self { activity: set.activity, ..Self::ALL },
                other => return Err(UnknownAnalysis(other.into())),
            }
        }
        Ok(set)
    }
}

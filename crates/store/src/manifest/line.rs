//! The lines of a manifest.

use std::collections::BTreeMap;

use ringtap_export::sums::Sums;
use serde::{Deserialize, Serialize};

use crate::layout::Kind;

/// A line. Each has the hash of the line before, so none can be changed, removed or moved without a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its number, from 1, in all files of the probe.
    pub n: u64,
    /// When it was written, in seconds since 1970, by the clock.
    pub time: u64,
    /// What it says.
    #[serde(flatten)]
    pub what: What,
    /// SHA-256 of the line before, without the end of the line; empty in the first line of a probe.
    pub before: String,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum What {
    /// A run begins.
    Start(Start),
    /// A file is complete.
    File(Box<FileLine>),
    /// A file was removed by retention.
    Removed {
        /// Its path in the store.
        file: String,
    },
    /// A run has ended.
    End(Counts),
}

/// The begin of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Version of the program.
    pub version: String,
    /// The number of its process.
    pub process: u32,
    /// Whether packets come from an interface.
    pub live: bool,
    /// Seconds of a file.
    pub rotate: u64,
    /// Seconds of the parts of a flow; absent if flows are not cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
    /// Whether the run before ended by itself; absent in the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
    /// Until when, as far as is known, the run before wrote, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// A complete file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLine {
    /// What it has.
    pub of: Kind,
    /// Its path in the store.
    pub file: String,
    /// Its rows or lines.
    pub rows: u64,
    /// Its length.
    pub octets: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Seconds of an interval of the sums.
    pub interval: u64,
    /// Sums of its flow records, by the interval of the flows' ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums: Option<Sums>,
    /// The file was completed after its process ended early: how many bytes at its end were no whole record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_octets: Option<u64>,
    /// The counts of the run so far; absent if its process ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<Counts>,
}

/// Counts of a run since its begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Packets, before the analyses.
    pub packets: Packets,
    /// Flows.
    pub flows: Flows,
    /// How often the clock of an interface's packets was set.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_steps: u64,
    /// Records, by output.
    pub outputs: BTreeMap<String, Records>,
}

/// Packets of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// All.
    pub received: u64,
    /// Packets that reached the analyses.
    pub handled: u64,
    /// The others, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u64>,
}

/// Flows of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Live ones.
    pub live: u64,
    /// Flows that have ended, by reason.
    pub ended: BTreeMap<String, u64>,
    /// Records of their parts, if they are cut.
    pub parts: u64,
}

/// Records of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Made for it.
    pub made: u64,
    /// Written or sent.
    pub sent: u64,
    /// Lost, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

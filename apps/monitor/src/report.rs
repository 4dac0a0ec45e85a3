//! The monitor's report. Rows are sorted and numbers are integers, so that equal runs give equal
//! bytes. The rows of an analysis stand with it.

use std::collections::BTreeMap;

use ringtap_extract::Kind;
use ringtap_flow::FactCounts;
use serde::Serialize;

use crate::series::Series;
use crate::state::SavedParts;
use crate::volume::is_zero;

pub use crate::alerts::Suppressed;
pub use crate::analyses::Sections;
pub use crate::analyses::activity::rows as activity;
pub use crate::analyses::applications::{ApplicationRow, ApplicationVolume, Applications};
pub use crate::analyses::changes::rows::{Changes, NewDevice, NewServerPort, VolumeChange};
pub use crate::analyses::names::{DnsNameRow, NameRow, Names};
pub use crate::analyses::passive_dns::{PassiveDns, PassiveDnsRow};
pub use crate::analyses::scans::rows::{HorizontalScan, ScanProtocol, Scans, VerticalScan};
pub use crate::analyses::talkers::rows::{
    Crowd, Crowds, HostOrigin, HostRow, PairRow, PortRow, Rankings, Talkers,
};
pub use crate::analyses::tcp::rows::{LossyPair, RoundTrips, Tcp, TcpTotals};
pub use crate::analyses::watch::{Watched, WatchedRow};
pub use crate::flow_ends::FlowEnds;
pub use crate::time::Time;
pub use crate::times::Times;
pub use crate::volume::{Conversations, Interval, Octets, Packets, Volume};

/// The report. A part is absent if its analysis did not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Packets by kind.
    pub packets: Packets,
    /// Octets by layer.
    pub octets: Octets,
    /// Volumes over time, earliest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Vec<Interval>>,
    /// Packets in intervals beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub packets_in_further_intervals: u64,
    /// Alerts that were not reported, because too many were followed; outside the digest.
    #[serde(skip)]
    pub alerts_without_room: u64,
    /// Messages that were not joined to exchanges for lack of room; outside the digest.
    #[serde(skip)]
    pub exchanges_without_room: u64,
    /// The rules that suppressed alerts, if there are rules; outside the digest.
    #[serde(skip)]
    pub suppressed_alerts: Option<Vec<Suppressed>>,
    /// Volumes by IP protocol number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocols: Option<BTreeMap<u8, Volume>>,
    /// Distinct unordered pairs of endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversations: Option<Conversations>,
    /// Flow records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Flows>,
    /// Facts from payloads, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The sections of the analyses.
    #[serde(flatten)]
    pub sections: Sections,
    /// What the state of the run is made of, if it is saved.
    #[serde(skip)]
    pub state: Option<SavedParts>,
    /// Packets and octets over time, for charts.
    #[serde(skip)]
    pub series: Option<Series>,
}

/// Counts of flows and their records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flows {
    /// Ended flows; without cuts as many records.
    pub records: u64,
    /// Largest number of live flows at a mark. Marks are half the shortest idle timeout apart, with one
    /// at the end. A merge does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_peak: Option<u64>,
    /// Records of their parts, if live flows are cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<u64>,
    /// Flows of the run before that were continued, with `--resume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<u64>,
    /// Flows of the run before that could not be continued, and ended at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_continued: Option<u64>,
    /// Flows that were live at the end and are kept for the next run, with `--resume`. They have no record yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Records by end reason.
    pub end_reasons: BTreeMap<&'static str, u64>,
    /// Sum over the records' hashes, with `--digest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_digest: Option<String>,
}

/// Numbers of values that were read from payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// In flow records, by field.
    pub kept: BTreeMap<&'static str, u64>,
    /// Dropped because the flow already had the maximum number of values of the field.
    pub beyond: u64,
    /// Dropped because the memory for facts was used up.
    #[serde(skip_serializing_if = "is_zero")]
    pub no_room: u64,
}

impl Facts {
    pub(crate) fn of(counts: &FactCounts) -> Option<Self> {
        let &FactCounts { kept, beyond, no_room } = counts;
        let named = Kind::ALL.iter().map(|kind| kind.name()).zip(kept);
        let kept: BTreeMap<_, _> = named.filter(|&(_, values)| values > 0).collect();
        let any = !kept.is_empty() || no_room > 0;
        any.then_some(Self { kept, beyond, no_room })
    }
}

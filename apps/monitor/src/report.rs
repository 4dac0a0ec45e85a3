//! The monitor's report. Rows are sorted and numbers are integers, so that equal runs give equal
//! bytes.

pub mod activity;
mod tcp;
mod times;

use std::collections::BTreeMap;

use ringtap_base::civil;
use ringtap_enrich::EntryKind;
use ringtap_extract::Kind;
use ringtap_flow::{FactCounts, FlowKey, Origin};
use serde::{Serialize, Serializer};

pub use crate::analyses::Sections;
use crate::series::Series;
use crate::state::SavedParts;
pub use tcp::{LossyPair, RoundTrips, Tcp, TcpTotals};
pub use times::Times;

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

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Packets by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets that reached the analyses.
    pub handled: u64,
    /// IPv4.
    pub ipv4: u64,
    /// IPv6.
    pub ipv6: u64,
    /// Neither IPv4 nor IPv6.
    pub non_ip: u64,
    /// IPv4 with MF or an offset, IPv6 with a fragment header.
    pub fragments: u64,
    /// Packets with fewer bytes captured than on the wire.
    pub truncated: u64,
    /// Packets within tunnels, in addition to the counts above, which are of outermost IP headers.
    #[serde(skip_serializing_if = "is_zero")]
    pub inner: u64,
}

/// Octets by layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Octets {
    /// Sum of original lengths, never less than captured ones.
    pub wire: u64,
    /// Sum of layer 3 lengths: IPv4 total length, or 40 + payload length for IPv6.
    pub ip: u64,
}

/// Packets and layer 3 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Layer 3 octets.
    pub octets: u64,
}

impl Volume {
    pub(crate) fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// One measurement interval; only those with packets are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its beginning (for the whole run: the earliest packet).
    pub start: Time,
    /// Its end, exclusive (for the whole run: the latest packet).
    pub end: Time,
    /// All packets.
    pub packets: Packets,
    /// All octets.
    pub octets: Octets,
    /// By IP protocol number.
    pub protocols: BTreeMap<u8, Volume>,
    /// Conversations with a packet in this interval.
    pub conversations: Conversations,
}

/// Distinct unordered pairs of (address, port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Conversations {
    /// TCP.
    pub tcp: u64,
    /// UDP.
    pub udp: u64,
    /// False if memory ran short and the numbers are estimates.
    pub exact: bool,
}

impl Default for Conversations {
    fn default() -> Self {
        Self { tcp: 0, udp: 0, exact: true }
    }
}

/// Counts of flows and their records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flows {
    /// Records of ended flows.
    pub records: u64,
    /// Largest number of live flows at a mark. Marks are half the shortest idle timeout apart, with one
    /// at the end. A merge does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_peak: Option<u64>,
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

/// Port scans by failed connection attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scans {
    /// One source, one target, many ports.
    pub vertical: Vec<VerticalScan>,
    /// One source, one port, many targets.
    pub horizontal: Vec<HorizontalScan>,
    /// SYNs and SYN-ACKs without room in memory; 0 means the numbers are exact.
    pub attempts_ignored: u64,
}

/// One source, one target, many ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct VerticalScan {
    /// The scanner.
    pub source: std::net::IpAddr,
    /// The target.
    pub target: std::net::IpAddr,
    /// Number of distinct ports that never answered.
    pub ports: u64,
    /// First failed attempt.
    pub first: Time,
    /// Last failed attempt.
    pub last: Time,
    /// The ten lowest of these ports.
    pub sample: Vec<u16>,
}

/// One source, one port, many targets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HorizontalScan {
    /// The scanner.
    pub source: std::net::IpAddr,
    /// The port.
    pub port: u16,
    /// Always TCP.
    pub protocol: &'static str,
    /// Number of distinct targets that never answered.
    pub targets: u64,
    /// First failed attempt.
    pub first: Time,
    /// Last failed attempt.
    pub last: Time,
    /// The ten lowest of these targets.
    pub sample: Vec<std::net::IpAddr>,
}

/// The talkers, by octets and by packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Talkers {
    /// Largest first.
    pub by_octets: Rankings,
    /// Largest first.
    pub by_packets: Rankings,
    /// No octet count in the rankings is too low by more than this; 0 means exact.
    pub error_bound: u64,
    /// No packet count in the rankings is too low by more than this; 0 means exact.
    #[serde(skip_serializing_if = "is_zero")]
    pub packets_error_bound: u64,
}

/// The largest of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rankings {
    /// Addresses as senders.
    pub source: Vec<HostRow>,
    /// Addresses as receivers.
    pub destination: Vec<HostRow>,
    /// Unordered address pairs, both directions together.
    pub pair: Vec<PairRow>,
    /// Ports on either side of a packet.
    pub port: Vec<PortRow>,
    /// Rows that are not listed, because they are very many of nearly equal volume.
    #[serde(skip_serializing_if = "Crowds::is_empty")]
    pub crowds: Crowds,
}

/// Rows of nearly equal volume that are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Crowd {
    /// Their number.
    pub rows: u64,
    /// None has more octets or, in a list by packets, more packets.
    pub most: u64,
}

/// The crowds of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crowds {
    /// Addresses as senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Crowd>,
    /// Addresses as receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Crowd>,
    /// Address pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<Crowd>,
}

impl Crowds {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostRow {
    /// The address.
    pub address: std::net::IpAddr,
    /// Its network, country and autonomous system, as far as they are known.
    #[serde(flatten)]
    pub origin: HostOrigin,
    /// Sent or received volume.
    #[serde(flatten)]
    pub volume: Volume,
}

/// The origin of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostOrigin {
    /// The name of the user's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The code of the country.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The number of the autonomous system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_number: Option<u32>,
    /// The name of its organisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_name: Option<String>,
}

impl HostOrigin {
    pub(crate) fn of(origin: Origin) -> Self {
        let Origin { network, country, as_number, as_name } = origin;
        Self {
            network: network.map(|name| name.to_string()),
            country: country.map(|code| String::from_utf8_lossy(&code).into_owned()),
            as_number,
            as_name: as_name.map(|name| name.to_string()),
        }
    }

    /// For texts: network, country, AS; empty if nothing is known.
    pub(crate) fn text(&self) -> String {
        let Self { network, country, as_number, as_name } = self;
        let number = as_number.map(|number| format!("AS{number}"));
        let parts = [network.clone(), country.clone(), number, as_name.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A pair of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairRow {
    /// The lower address first.
    pub addresses: [std::net::IpAddr; 2],
    /// Volume in both directions.
    #[serde(flatten)]
    pub volume: Volume,
}

/// A port of a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortRow {
    /// IP protocol number.
    pub protocol: u8,
    /// The port.
    pub port: u16,
    /// Packets that carried it as source or destination.
    #[serde(flatten)]
    pub volume: Volume,
}

/// Hosts that reached watched entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Watched {
    /// In order of time; 10,000 at most.
    pub rows: Vec<WatchedRow>,
    /// Number of further rows.
    #[serde(skip_serializing_if = "is_zero")]
    pub further: u64,
    /// Matches without room in memory; 0 means that all are counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub matches_ignored: u64,
}

/// A watched entry and a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WatchedRow {
    /// The first match.
    pub first: Time,
    /// The last match; of a flow its end.
    pub last: Time,
    /// The other end of a flow with a watched address, or the client of a watched message.
    pub host: std::net::IpAddr,
    /// The entry.
    pub entry: String,
    /// What the entry is.
    #[serde(skip)]
    pub kind: EntryKind,
    /// Its label.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// What matched first: the name of a field.
    pub field: &'static str,
    /// The flow of the first match.
    pub flow: FlowEnds,
    /// Flow records with a watched address, and messages.
    pub matches: u64,
}

/// The addresses, ports and protocol of a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FlowEnds {
    /// The sender.
    pub source: std::net::IpAddr,
    /// Its port.
    pub source_port: u16,
    /// The receiver.
    pub destination: std::net::IpAddr,
    /// Its port.
    pub destination_port: u16,
    /// IP protocol number.
    pub protocol: u8,
}

impl FlowEnds {
    pub(crate) fn of(key: &FlowKey) -> Self {
        Self {
            source: key.source(),
            source_port: key.src_port,
            destination: key.destination(),
            destination_port: key.dst_port,
            protocol: key.protocol,
        }
    }
}

/// Volumes by application, from flow records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applications {
    /// The largest by octets, then by name.
    pub rows: Vec<ApplicationRow>,
    /// Number of further applications.
    #[serde(skip_serializing_if = "is_zero")]
    pub further: u64,
    /// Flows without a label.
    pub unlabelled: ApplicationVolume,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApplicationRow {
    /// Its label.
    pub application: String,
    /// Its volume, both directions together.
    #[serde(flatten)]
    pub volume: ApplicationVolume,
}

/// Names in payloads, from flow records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Names {
    /// Server names of TLS, QUIC and HTTP, the largest by octets first.
    pub servers: Vec<NameRow>,
    /// Names that DNS looked up, by flow records.
    pub dns: Vec<DnsNameRow>,
    /// Names whose look-ups failed, by failures.
    pub dns_failed: Vec<DnsNameRow>,
    /// Distinct server names.
    pub server_names: u64,
    /// Distinct names of DNS.
    pub dns_names: u64,
    /// Values that are in no row, because there was no room for another name.
    #[serde(skip_serializing_if = "is_zero")]
    pub values_ignored: u64,
}

/// A server name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameRow {
    /// As sent; invalid UTF-8 is replaced.
    pub name: String,
    /// Flow records.
    pub flows: u64,
    /// Their layer 3 octets, in both directions.
    pub octets: u64,
}

/// A name that DNS looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DnsNameRow {
    /// As sent; invalid UTF-8 is replaced.
    pub name: String,
    /// Flow records.
    pub flows: u64,
    /// Flow records whose first name it was, and whose first answer had another code than NOERROR.
    pub failed: u64,
}

/// Flow records, packets and layer 3 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApplicationVolume {
    /// Flow records.
    pub flows: u64,
    /// Packets.
    pub packets: u64,
    /// Layer 3 octets.
    pub octets: u64,
}

impl ApplicationVolume {
    pub(crate) fn add(&mut self, other: Self) {
        self.flows += other.flows;
        self.packets += other.packets;
        self.octets += other.octets;
    }
}

/// Nanoseconds since 1970; in JSON a string in the form of RFC 3339.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, ns) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let (year, month, day) = civil(seconds / 86_400);
        let [hour, minute, second] = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60];
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn times_have_the_form_of_rfc_3339() {
        assert_eq!(Time(0).to_string(), "1970-01-01T00:00:00.000000000Z");
        let time = Time(1_709_251_199_000_000_042);
        assert_eq!(time.to_string(), "2024-02-29T23:59:59.000000042Z");
        assert_eq!(Time(u64::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }
}

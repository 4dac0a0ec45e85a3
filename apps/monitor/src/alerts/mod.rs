//! Alerts during a run.
//!
//! ```text
//! analyses ── signals at marks ──▶ Alerts (suppressed.rs) ──▶ Tracker (tracker.rs) ── begins, continues, ends, withdrawn ──▶ OnAlert
//! ```
//!
//! An analysis reports what it sees; the tracker turns that into alerts with states. Time is packet time.

mod allow;
mod evidence;
mod json;
mod kind;
mod scans;
mod suppressed;
mod text;
mod tracker;

use std::fmt;
use std::net::IpAddr;

use ringtap_enrich::{EntryKind, Stage};
use ringtap_flow::FlowKey;
use serde::{Serialize, Serializer};

use crate::analyses::scans::rows::ScanProtocol;
use crate::time::Time;

pub use allow::{AllowList, AllowRule};
pub use kind::AlertKind;
pub(crate) use scans::ScanLimits;
pub(crate) use suppressed::Alerts;
pub use suppressed::Suppressed;
pub(crate) use tracker::MOST_ALERT_BYTES;

/// Receives each change.
type Emit<'a> = &'a mut dyn FnMut(&Alert);

/// A change of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The number of the alert in this run, from 1. All changes of an alert have the same.
    pub id: u64,
    /// The change.
    pub state: AlertState,
    /// What it is about.
    pub subject: Subject,
    /// Its size at that time: failed ports or targets, hosts sent to, packets a second of a flood, hosts that reached a
    /// watched entry or new ports since it began, octets of an interval.
    /// When it is withdrawn, the last size before.
    pub number: u64,
    /// Details of a flood.
    pub flood: Option<Flood>,
    /// When it began: the time of its first change, or the start of the first interval over a limit.
    pub since: Time,
    /// The time of this change.
    pub time: Time,
    /// Flows that it is about end from the first of these times up to the second one.
    pub evidence: [Time; 2],
}

/// A change of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertState {
    /// The alert is new.
    Begins,
    /// Its size has doubled since it was last reported.
    Continues,
    /// The alert is over.
    Ends,
    /// No scan after all: late answers left too few failed attempts.
    Withdrawn,
}

impl AlertState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Begins, Self::Continues, Self::Ends, Self::Withdrawn];

    /// Its name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Begins => "begins",
            Self::Continues => "continues",
            Self::Ends => "ends",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether the alert is new with this change.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::Begins)
    }
}

/// What an alert is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Scans by one source.
    Scan {
        /// Their kind.
        kind: ScanKind,
        /// The scanner.
        source: IpAddr,
        /// The lowest of their targets or ports.
        sample: Vec<Member>,
        /// Number of targets or ports.
        scans: u64,
    },
    /// Too many packets, bits or senders to one host.
    Flood {
        /// The receiver.
        target: IpAddr,
    },
    /// One source, many destinations.
    Spread {
        /// The sender.
        source: IpAddr,
    },
    /// Hosts that reached a watched entry.
    Watched {
        /// The first of them.
        host: IpAddr,
        /// The first few, in the order of time.
        hosts: Vec<IpAddr>,
        /// Packets and messages of the entry in the seconds that had ended at the change; at the end of the run, all.
        hits: u64,
        /// Further hosts or hits had no room.
        at_least: bool,
        /// The entry.
        entry: String,
        /// What it is.
        kind: EntryKind,
        /// Its label; may be empty.
        label: String,
        /// What matched first: the name of a field.
        field: &'static str,
        /// The flow, in the direction of the packet.
        flow: FlowKey,
    },
    /// A device that sent for the first time.
    NewDevice {
        /// Its address.
        host: IpAddr,
    },
    /// Ports on which a host answered for the first time.
    NewServerPort {
        /// The host.
        host: IpAddr,
        /// The first few, in the order of time.
        services: Vec<Service>,
    },
    /// A host that exchanged much more in an interval than before.
    VolumeChange {
        /// The host.
        host: IpAddr,
        /// Octets of the median of its intervals before.
        median: u64,
        /// The length of an interval, nanoseconds.
        interval_ns: u64,
    },
}

/// A port of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    /// IP protocol number: TCP or UDP.
    pub protocol: u8,
    /// The port.
    pub port: u16,
}

impl Service {
    /// The name of the protocol in questions and outputs.
    pub(crate) const fn protocol(self) -> &'static str {
        if self.protocol == 17 { "udp" } else { "tcp" }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.port, self.protocol())
    }
}

impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Subject {
    /// Its kind.
    pub fn kind(&self) -> AlertKind {
        match self {
            Self::Scan { kind, .. } => (*kind).into(),
            Self::Flood { .. } => AlertKind::Flood,
            Self::Spread { .. } => AlertKind::Spread,
            Self::Watched { .. } => AlertKind::Watched,
            Self::NewDevice { .. } => AlertKind::NewDevice,
            Self::NewServerPort { .. } => AlertKind::NewServerPort,
            Self::VolumeChange { .. } => AlertKind::VolumeChange,
        }
    }

    /// The host that rules of `--allow` are compared with.
    pub(crate) const fn host(&self) -> IpAddr {
        match self {
            Self::Scan { source, .. } | Self::Spread { source } => *source,
            Self::Flood { target } => *target,
            Self::Watched { host, .. }
            | Self::NewDevice { host }
            | Self::NewServerPort { host, .. }
            | Self::VolumeChange { host, .. } => *host,
        }
    }

    /// What is new of it is one alert: the text of the entry, or the host.
    pub(crate) fn grown(&self) -> Grown {
        let text = match self {
            Self::Watched { entry, .. } => entry.clone(),
            other => other.host().to_string(),
        };
        (self.kind(), text)
    }
}

/// What grows by what is new: an entry by hosts, a host by ports.
pub(crate) type Grown = (AlertKind, String);

/// The kind of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScanKind {
    /// One source, one target, many TCP ports.
    Vertical,
    /// One source, one TCP port, many targets.
    Horizontal,
    /// One source, one target, many UDP ports.
    UdpVertical,
    /// One source, one UDP port, many targets.
    UdpHorizontal,
}

impl ScanKind {
    /// The vertical scans of a protocol.
    pub(crate) const fn vertical(protocol: ScanProtocol) -> Self {
        match protocol {
            ScanProtocol::Tcp => Self::Vertical,
            ScanProtocol::Udp => Self::UdpVertical,
        }
    }

    /// The horizontal scans of a protocol.
    pub(crate) const fn horizontal(protocol: ScanProtocol) -> Self {
        match protocol {
            ScanProtocol::Tcp => Self::Horizontal,
            ScanProtocol::Udp => Self::UdpHorizontal,
        }
    }

    /// The protocol.
    pub const fn protocol(self) -> ScanProtocol {
        match self {
            Self::Vertical | Self::Horizontal => ScanProtocol::Tcp,
            Self::UdpVertical | Self::UdpHorizontal => ScanProtocol::Udp,
        }
    }

    /// Whether it is of many ports.
    pub const fn is_vertical(self) -> bool {
        matches!(self, Self::Vertical | Self::UdpVertical)
    }
}

impl From<ScanKind> for AlertKind {
    fn from(kind: ScanKind) -> Self {
        match kind {
            ScanKind::Vertical => Self::VerticalScan,
            ScanKind::Horizontal => Self::HorizontalScan,
            ScanKind::UdpVertical => Self::UdpVerticalScan,
            ScanKind::UdpHorizontal => Self::UdpHorizontalScan,
        }
    }
}

/// What a scan has besides its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Member {
    /// The target of a vertical scan.
    Target(IpAddr),
    /// The port of a horizontal scan.
    Port(u16),
}

/// A scan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScanId {
    /// Its kind.
    pub kind: ScanKind,
    /// The scanner.
    pub source: IpAddr,
    /// The target or port.
    pub member: Member,
}

/// A flood in an interval. All numbers are averages and lower bounds; 0 if not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flood {
    /// Packets a second.
    pub packets_per_second: u64,
    /// Layer 3 bits a second.
    pub bits_per_second: u64,
    /// Distinct sources.
    pub sources: u64,
    /// The most frequent IP protocol.
    pub protocol: u8,
    /// Its share of the packets, percent; 0 if the packets are not known.
    pub percent: u8,
    /// The share of TCP segments with SYN and without ACK, percent.
    pub syn_percent: u8,
    /// The limits that were reached, by name.
    pub limits: Vec<&'static str>,
}

/// The kind of a flood, by the protocol of most of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// Mostly TCP segments with SYN and without ACK.
    Syn,
    /// Mostly other TCP segments.
    Tcp,
    /// Mostly UDP.
    Udp,
    /// Mostly ICMP or ICMPv6.
    Icmp,
    /// Mostly another protocol.
    Other,
    /// No protocol has half of the packets.
    Mixed,
}

impl FloodKind {
    /// Its name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syn => "syn",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Other => "other",
            Self::Mixed => "mixed",
        }
    }
}

impl Flood {
    /// Its kind.
    pub const fn kind(&self) -> FloodKind {
        match self.protocol {
            _ if self.percent < 50 => FloodKind::Mixed,
            6 if self.syn_percent >= 50 => FloodKind::Syn,
            6 => FloodKind::Tcp,
            17 => FloodKind::Udp,
            1 | 58 => FloodKind::Icmp,
            _ => FloodKind::Other,
        }
    }
}

impl Alert {
    /// If it begins, the addresses that packets about it have, all of them: those of a pair, or that of a host.
    pub fn packets_of(&self) -> Vec<IpAddr> {
        match &self.subject {
            _ if !self.state.is_first() => Vec::new(),
            Subject::Scan { source, sample, scans: 1, .. } => {
                let target = sample.first().and_then(Member::target);
                std::iter::once(*source).chain(target).collect()
            }
            Subject::Watched { kind: EntryKind::Network, flow, .. } => {
                vec![flow.source(), flow.destination()]
            }
            other => vec![other.host()],
        }
    }

    /// As outputs get it.
    pub(crate) fn pass(&mut self, stage: &mut Stage) {
        match &mut self.subject {
            Subject::Scan { source, sample, .. } => {
                stage.replace(source);
                for member in sample {
                    if let Member::Target(target) = member {
                        stage.replace(target);
                    }
                }
            }
            Subject::Spread { source } => stage.replace(source),
            Subject::NewDevice { host }
            | Subject::NewServerPort { host, .. }
            | Subject::VolumeChange { host, .. } => stage.replace(host),
            Subject::Flood { target } => stage.replace(target),
            Subject::Watched { host, hosts, entry, kind, flow, .. } => {
                stage.replace(host);
                hosts.iter_mut().for_each(|host| stage.replace(host));
                stage.replace_key(flow);
                stage.replace_entry(*kind, entry);
            }
        }
    }
}

/// What an analysis reports at a mark.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// A scan whose number of failed attempts is above the threshold and has changed.
    Scan {
        /// The time of the latest attempt.
        time: Time,
        /// The scan.
        scan: ScanId,
        /// Failed attempts so far.
        number: u64,
        /// Whether it was not above the threshold before.
        crossed: bool,
        /// The time of the earliest attempt.
        first: Time,
    },
    /// A scan whose number has fallen to the threshold or below.
    NoScan(ScanId),
    /// A finished interval.
    Interval {
        /// Its beginning.
        start: Time,
        /// Its end.
        end: Time,
        /// All hosts that reached limits in it.
        reached: Vec<Reached>,
        /// Whether their volumes were compared with those before; otherwise all their numbers with fixed limits.
        of_volumes: bool,
    },
    /// A host that reached a watched entry for the first time, a new device, or a new port of a host.
    New {
        /// When it was first seen.
        time: Time,
        /// What it is.
        subject: Subject,
    },
    /// Packets or messages of a watched entry in a second.
    Hits {
        /// The end of the second.
        time: Time,
        /// The entry.
        entry: String,
        /// Their number.
        hits: u64,
    },
}

/// A host that reached a limit in an interval.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// A flood, a spread, or a changed volume.
    pub subject: Subject,
    /// Its size.
    pub number: u64,
    /// Details of a flood.
    pub flood: Option<Flood>,
}

#[cfg(test)]
mod tests {
    use ringtap_wire::PacketRecord;

    use super::*;

    #[test]
    fn packets_about_an_alert_that_begins_are_those_of_a_pair_or_a_host() {
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let packets_of = |state, subject| {
            let times = [Time(0); 4];
            let [since, time, evidence @ ..] = times;
            Alert { id: 1, state, subject, number: 9, flood: None, since, time, evidence }
                .packets_of()
        };
        let begins = |subject| packets_of(AlertState::Begins, subject);
        let scan = |kind, sample: &[Member], scans| {
            begins(Subject::Scan { kind, source: one, sample: sample.to_vec(), scans })
        };
        let target = Member::Target(other);
        assert_eq!(scan(ScanKind::Vertical, &[target], 1), [one, other]);
        assert_eq!(scan(ScanKind::Vertical, &[target, target], 2), [one]);
        assert_eq!(scan(ScanKind::Horizontal, &[Member::Port(22)], 1), [one]);
        assert_eq!(begins(Subject::Flood { target: other }), [other]);
        let watched = |kind| {
            let flow = FlowKey::of(&PacketRecord::EMPTY);
            begins(Subject::Watched {
                host: one,
                hosts: vec![one],
                hits: 0,
                at_least: false,
                entry: "entry".into(),
                kind,
                label: String::new(),
                field: "dnsQueryName",
                flow,
            })
        };
        assert_eq!(watched(EntryKind::Name), [one]);
        assert_eq!(watched(EntryKind::Network).len(), 2);
        for state in [AlertState::Continues, AlertState::Ends, AlertState::Withdrawn] {
            assert!(packets_of(state, Subject::Spread { source: one }).is_empty());
        }
    }
}

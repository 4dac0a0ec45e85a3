//! An alert as a JSON object. Names and meanings are stable; `docs/MONITOR.md` lists them.

use std::net::IpAddr;

use serde::{Serialize, Serializer};

use super::{Alert, Member, Service, Subject};
use crate::flow_ends::FlowEnds;
use crate::time::Time;

#[derive(Serialize)]
struct Document<'a> {
    id: u64,
    state: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    subject: Fields<'a>,
    number: u64,
    #[serde(flatten)]
    flood: Option<Numbers<'a>>,
    since: Time,
    time: Time,
    text: String,
    severity: &'static str,
    query: String,
}

#[derive(Default, Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    targets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ports: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<&'a [Member]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<&'a [IpAddr]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<FlowEnds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    services: Option<&'a [Service]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<u64>,
}

/// Numbers of a flood; those not known are absent.
#[derive(Serialize)]
struct Numbers<'a> {
    flood: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_percent: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syn_percent: Option<u8>,
    limits: &'a [&'static str],
}

impl Member {
    pub(super) fn target(&self) -> Option<IpAddr> {
        match *self {
            Self::Target(target) => Some(target),
            Self::Port(_) => None,
        }
    }

    fn port(&self) -> Option<u16> {
        match *self {
            Self::Port(port) => Some(port),
            Self::Target(_) => None,
        }
    }
}

impl<'a> Fields<'a> {
    fn of(subject: &'a Subject) -> Self {
        let none = Self::default();
        match subject {
            Subject::Scan { kind, source, sample, scans } => {
                let own = Self { source: Some(*source), sample: Some(sample), ..none };
                let only = sample.first().filter(|_| *scans == 1);
                if kind.is_vertical() {
                    Self { target: only.and_then(Member::target), targets: Some(*scans), ..own }
                } else {
                    Self { port: only.and_then(Member::port), ports: Some(*scans), ..own }
                }
            }
            &Subject::Flood { target } => Self { target: Some(target), ..none },
            &Subject::Spread { source } => Self { source: Some(source), ..none },
            Subject::NewDevice { host } => Self { host: Some(*host), ..none },
            Subject::NewServerPort { host, services } => {
                Self { host: Some(*host), services: Some(services), ..none }
            }
            Subject::VolumeChange { host, median, .. } => {
                Self { host: Some(*host), median: Some(*median), ..none }
            }
            Subject::Watched { host, hosts, hits, at_least, entry, label, field, flow, .. } => {
                Self {
                    host: Some(*host),
                    hosts: Some(hosts),
                    hits: Some(*hits).filter(|hits| *hits > 0),
                    at_least: Some(*at_least).filter(|at_least| *at_least),
                    entry: Some(entry),
                    label: Some(&**label).filter(|label| !label.is_empty()),
                    field: Some(field),
                    flow: Some(FlowEnds::of(flow)),
                    ..none
                }
            }
        }
    }
}

impl Serialize for Alert {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = |number: u64| Some(number).filter(|number| *number > 0);
        let flood = self.flood.as_ref().map(|flood| {
            let packets = known(flood.packets_per_second);
            Numbers {
                flood: flood.kind().name(),
                packets_per_second: packets,
                bits_per_second: known(flood.bits_per_second),
                sources: known(flood.sources),
                protocol: packets.map(|_| flood.protocol),
                protocol_percent: packets.map(|_| flood.percent),
                syn_percent: packets.filter(|_| flood.protocol == 6).map(|_| flood.syn_percent),
                limits: &flood.limits,
            }
        });
        let document = Document {
            id: self.id,
            state: self.state.name(),
            kind: self.subject.kind().name(),
            subject: Fields::of(&self.subject),
            number: self.number,
            flood,
            since: self.since,
            time: self.time,
            text: self.to_string(),
            severity: self.subject.kind().severity().name(),
            query: self.query(),
        };
        document.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::{AlertState, Flood, ScanKind};

    #[test]
    fn an_object_has_the_fields_of_its_kind() {
        let [source, target]: [IpAddr; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        let (since, time) = (Time(0), Time(1_000_000_000));
        let alert = |state, subject, number, flood| {
            let evidence = [since, time];
            let alert = Alert { id: 7, state, subject, number, flood, since, time, evidence };
            serde_json::to_string(&alert).unwrap()
        };
        let vertical = |scans| {
            let (kind, sample) = (ScanKind::Vertical, vec![Member::Target(target)]);
            Subject::Scan { kind, source, sample, scans }
        };
        let scan = alert(AlertState::Begins, vertical(1), 21, None);
        assert_eq!(
            scan,
            "{\"id\":7,\"state\":\"begins\",\"kind\":\"vertical_scan\",\"source\":\"10.0.0.1\",\"target\":\"10.0.0.2\",\
             \"targets\":1,\"sample\":[\"10.0.0.2\"],\"number\":21,\"since\":\"1970-01-01T00:00:00.000000000Z\",\"time\":\"1970-01-01T00:00:01.000000000Z\",\
             \"text\":\"10.0.0.1 scans 10.0.0.2: 21 ports failed so far\",\"severity\":\"medium\",\
             \"query\":\"'flows where src host 10.0.0.1 and dst host 10.0.0.2 and (failed or refused)' \
             --from 1970-01-01T00:00:00.000000000Z --to 1970-01-01T00:00:01.001000000Z\"}"
        );
        let scan = alert(AlertState::Begins, vertical(2), 42, None);
        let fields =
            "\"source\":\"10.0.0.1\",\"targets\":2,\"sample\":[\"10.0.0.2\"],\"number\":42,";
        assert!(scan.contains(fields), "{scan}");
        let (kind, sample) = (ScanKind::Horizontal, vec![Member::Port(22), Member::Port(80)]);
        let scan = Subject::Scan { kind, source, sample, scans: 2 };
        let scan = alert(AlertState::Begins, scan, 42, None);
        assert!(scan.contains("\"ports\":2,\"sample\":[22,80],\"number\":42,"), "{scan}");
        let flood = Flood {
            packets_per_second: 9,
            protocol: 6,
            percent: 100,
            syn_percent: 90,
            limits: vec!["dst-pps"],
            ..Flood::default()
        };
        let flood = alert(AlertState::Ends, Subject::Flood { target }, 9, Some(flood));
        for part in [
            "\"kind\":\"flood\",\"target\":\"10.0.0.2\",\"number\":9,\"flood\":\"syn\",\"packets_per_second\":9,\
             \"protocol\":6,\"protocol_percent\":100,\"syn_percent\":90,\"limits\":[\"dst-pps\"],\"since\"",
            "\"state\":\"ends\"",
        ] {
            assert!(flood.contains(part), "{flood}");
        }
        let services = vec![Service { protocol: 6, port: 8_080 }];
        let subject = Subject::NewServerPort { host: target, services };
        let port = alert(AlertState::Begins, subject, 1, None);
        let fields = "\"kind\":\"new_server_port\",\"host\":\"10.0.0.2\",\"services\":[\"8080/tcp\"],\"number\":1,";
        assert!(port.contains(fields), "{port}");
        let volume = Subject::VolumeChange { host: target, median: 7, interval_ns: 60_000_000_000 };
        let volume = alert(AlertState::Begins, volume, 90, None);
        let fields = "\"kind\":\"volume_change\",\"host\":\"10.0.0.2\",\"median\":7,\"number\":90,";
        assert!(volume.contains(fields), "{volume}");
    }
}

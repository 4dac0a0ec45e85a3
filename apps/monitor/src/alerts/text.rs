//! Alerts as sentences.

use std::fmt;
use std::net::SocketAddr;

use ringtap_base::text::shown;
use ringtap_terminal::names;
use ringtap_terminal::numbers::{bit_rate, bytes, count, of, rate};

use super::{Alert, AlertState, Flood, FloodKind, Member, Service, Subject};
use crate::analyses::scans::rows::ScanProtocol;

/// The sentence, without state and time.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = count(self.number);
        match &self.subject {
            Subject::Scan { kind, source, sample, scans } => {
                let protocol = kind.protocol();
                let first = sample.first().map(|member| member.text(protocol)).unwrap_or_default();
                let [udp, over] = match protocol {
                    ScanProtocol::Tcp => [""; 2],
                    ScanProtocol::Udp => ["UDP ", " over UDP"],
                };
                let failed = match (kind.is_vertical(), scans) {
                    (true, 1) => format!("{number} {udp}ports failed"),
                    (false, 1) => format!("{number} targets failed"),
                    _ => format!("{number} attempts failed"),
                };
                let what = match (kind.is_vertical(), scans) {
                    (_, 1) => first,
                    (true, hosts) => {
                        format!("{} hosts{over}, first {first}", count(*hosts))
                    }
                    (false, ports) => format!("{} ports, first {first}", count(*ports)),
                };
                match self.state {
                    AlertState::Begins | AlertState::Continues => {
                        write!(f, "{source} scans {what}: {failed} so far")
                    }
                    AlertState::Ends => write!(f, "{source} scans {what}: {failed}"),
                    AlertState::Withdrawn => {
                        write!(
                            f,
                            "no scan of {what} by {source}: {failed}, then too many answered late"
                        )
                    }
                }
            }
            Subject::Flood { target } => {
                let flood = self.flood.clone().unwrap_or_default();
                write!(f, "{target} receives a {}", flood.title())?;
                let numbers = flood.numbers();
                if numbers.is_empty() { Ok(()) } else { write!(f, ": {}", numbers.join(", ")) }
            }
            Subject::Spread { source } => write!(f, "{source} sent to {}", of(self.number, "host")),
            Subject::NewDevice { host } => write!(f, "{host} is a new device"),
            Subject::NewServerPort { host, services } => {
                let first = services.first().map(Service::to_string).unwrap_or_default();
                match self.number {
                    0 | 1 => write!(f, "{host} answers on a new port, {first}"),
                    _ => write!(f, "{host} answers on {number} new ports, first {first}"),
                }
            }
            Subject::VolumeChange { host, median, interval_ns } => {
                let [octets, median] = [self.number, *median].map(bytes);
                let seconds = *interval_ns as f64 / 1e9;
                write!(f, "{host} exchanged {octets} in {seconds} s, usually {median}")
            }
            Subject::Watched { host, hits, at_least, entry, label, field, flow, .. } => {
                let entry = shown(entry);
                let label =
                    if label.is_empty() { String::new() } else { format!(" ({})", shown(label)) };
                let [from, to] =
                    [(flow.source(), flow.src_port), (flow.destination(), flow.dst_port)]
                        .map(|(address, port)| SocketAddr::new(address, port));
                let protocol = names::protocol(flow.protocol);
                let hosts = match self.number {
                    0 | 1 => String::new(),
                    number if *at_least => format!("at least {}, first ", of(number, "host")),
                    number => format!("{}, first ", of(number, "host")),
                };
                let hits = match hits {
                    0 => String::new(),
                    hits => format!(", {}", of(*hits, "hit")),
                };
                write!(
                    f,
                    "{entry}{label} seen by {hosts}{host}{hits}: {field} in {protocol} {from} → {to}"
                )
            }
        }
    }
}

impl Member {
    fn text(&self, protocol: ScanProtocol) -> String {
        match self {
            Self::Target(target) => target.to_string(),
            Self::Port(port) => format!("port {port}/{}", protocol.name()),
        }
    }
}

impl Flood {
    /// Its kind in words.
    fn title(&self) -> String {
        match self.kind() {
            FloodKind::Syn => "SYN flood".into(),
            FloodKind::Mixed => "flood".into(),
            FloodKind::Tcp | FloodKind::Udp | FloodKind::Icmp | FloodKind::Other => {
                format!("{} flood", names::protocol(self.protocol))
            }
        }
    }

    /// The known numbers, with units.
    fn numbers(&self) -> Vec<String> {
        let share = |percent| match percent {
            100 | 0 => String::new(),
            less => format!(" ({less} % {})", names::protocol(self.protocol)),
        };
        let rate = |number: u64| rate(number as f64);
        let packets =
            || format!("{} packets/s{}", rate(self.packets_per_second), share(self.percent));
        let mut all = Vec::new();
        all.extend((self.packets_per_second > 0).then(packets));
        all.extend((self.bits_per_second > 0).then(|| bit_rate(self.bits_per_second as f64)));
        all.extend((self.sources > 0).then(|| format!("from {}", of(self.sources, "host"))));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use ringtap_enrich::EntryKind;
    use ringtap_flow::{FlowKey, IpVersion};
    use ringtap_wire::PacketRecord;

    use super::*;
    use crate::alerts::ScanKind;
    use crate::time::Time;

    fn text(state: AlertState, subject: Subject, number: u64, flood: Option<Flood>) -> String {
        let (since, time) = (Time(0), Time(1));
        let evidence = [since, time];
        Alert { id: 1, state, subject, number, flood, since, time, evidence }.to_string()
    }

    #[test]
    fn a_scan_is_a_sentence_in_each_state() {
        let [source, target] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        let scan = |state, kind, sample: &[Member], scans, number| {
            let subject = Subject::Scan { kind, source, sample: sample.to_vec(), scans };
            text(state, subject, number, None)
        };
        let target = [Member::Target(target)];
        let vertical = |state, scans| scan(state, ScanKind::Vertical, &target, scans, 1_021);
        let begins = "10.0.0.1 scans 10.0.0.2: 1,021 ports failed so far";
        assert_eq!(vertical(AlertState::Begins, 1), begins);
        assert_eq!(vertical(AlertState::Ends, 1), "10.0.0.1 scans 10.0.0.2: 1,021 ports failed");
        assert_eq!(
            vertical(AlertState::Withdrawn, 1),
            "no scan of 10.0.0.2 by 10.0.0.1: 1,021 ports failed, then too many answered late"
        );
        let several = "10.0.0.1 scans 1,000 hosts, first 10.0.0.2: 1,021 attempts failed";
        assert_eq!(vertical(AlertState::Ends, 1_000), several);
        let horizontal = |scans| {
            scan(AlertState::Continues, ScanKind::Horizontal, &[Member::Port(22)], scans, 42)
        };
        assert_eq!(horizontal(1), "10.0.0.1 scans port 22/tcp: 42 targets failed so far");
        let several = "10.0.0.1 scans 2 ports, first port 22/tcp: 42 attempts failed so far";
        assert_eq!(horizontal(2), several);
        let ends = |kind, sample: &[Member], scans| scan(AlertState::Ends, kind, sample, scans, 42);
        for (kind, sample, scans, text) in [
            (ScanKind::UdpVertical, target, 1, "10.0.0.2: 42 UDP ports failed"),
            (
                ScanKind::UdpVertical,
                target,
                2,
                "2 hosts over UDP, first 10.0.0.2: 42 attempts failed",
            ),
            (ScanKind::UdpHorizontal, [Member::Port(53)], 1, "port 53/udp: 42 targets failed"),
            (
                ScanKind::UdpHorizontal,
                [Member::Port(53)],
                2,
                "2 ports, first port 53/udp: 42 attempts failed",
            ),
        ] {
            assert_eq!(ends(kind, &sample, scans), format!("10.0.0.1 scans {text}"));
        }
    }

    #[test]
    fn a_watched_entry_has_the_number_of_its_hosts_and_the_first() {
        let host = IpAddr::from([10, 0, 0, 1]);
        let mut flow = FlowKey::of(&PacketRecord::EMPTY);
        (flow.version, flow.protocol, flow.dst_port) = (IpVersion::V4, 17, 53);
        let watched = |number, at_least, hits| {
            let subject = Subject::Watched {
                host,
                hosts: vec![host],
                hits,
                at_least,
                entry: "evil.example".into(),
                kind: EntryKind::Name,
                label: "bad".into(),
                field: "dnsQueryName",
                flow,
            };
            text(AlertState::Ends, subject, number, None)
        };
        let rest = "dnsQueryName in UDP 0.0.0.0:0 → 0.0.0.0:53";
        for (number, at_least, hits, by) in [
            (1, false, 0, "10.0.0.1"),
            (1, false, 1, "10.0.0.1, 1 hit"),
            (1_045, false, 20_000, "1,045 hosts, first 10.0.0.1, 20,000 hits"),
            (45, true, 45, "at least 45 hosts, first 10.0.0.1, 45 hits"),
        ] {
            let expected = format!("evil.example (bad) seen by {by}: {rest}");
            assert_eq!(watched(number, at_least, hits), expected);
        }
    }

    #[test]
    fn changes_of_hosts_are_sentences() {
        let host = IpAddr::from([10, 0, 0, 1]);
        let of = |subject, number| text(AlertState::Begins, subject, number, None);
        assert_eq!(of(Subject::NewDevice { host }, 1), "10.0.0.1 is a new device");
        let port = |port| Service { protocol: 6, port };
        let services = vec![Service { protocol: 17, port: 53 }, port(8_080)];
        let ports =
            |number| of(Subject::NewServerPort { host, services: services.clone() }, number);
        assert_eq!(ports(1), "10.0.0.1 answers on a new port, 53/udp");
        assert_eq!(ports(1_200), "10.0.0.1 answers on 1,200 new ports, first 53/udp");
        let volume = Subject::VolumeChange { host, median: 1 << 20, interval_ns: 2_500_000_000 };
        let expected = "10.0.0.1 exchanged 3.00 GiB in 2.5 s, usually 1.00 MiB";
        assert_eq!(of(volume, 3 << 30), expected);
    }

    #[test]
    fn a_flood_has_its_kind_and_the_known_numbers() {
        let target = [10, 0, 0, 2].into();
        let text_of =
            |flood: Flood| text(AlertState::Begins, Subject::Flood { target }, 0, Some(flood));
        let syn = Flood {
            packets_per_second: 2_000_000,
            bits_per_second: 640_000_000,
            sources: 1_500_000,
            protocol: 6,
            percent: 98,
            syn_percent: 97,
            limits: vec!["dst-pps"],
        };
        assert_eq!(
            text_of(syn.clone()),
            "10.0.0.2 receives a SYN flood: 2.00 M packets/s (98 % TCP), 640 Mbit/s, from 1,500,000 hosts"
        );
        assert_eq!(
            text_of(Flood { syn_percent: 10, ..syn.clone() }).split(':').next(),
            Some("10.0.0.2 receives a TCP flood")
        );
        let udp = Flood { packets_per_second: 3, protocol: 17, percent: 100, ..Flood::default() };
        assert_eq!(text_of(udp.clone()), "10.0.0.2 receives a UDP flood: 3 packets/s");
        let slow = Flood { bits_per_second: 4, ..udp };
        assert_eq!(text_of(slow), "10.0.0.2 receives a UDP flood: 3 packets/s, 4 bit/s");
        let sources = Flood { sources: 200, ..Flood::default() };
        assert_eq!(text_of(sources), "10.0.0.2 receives a flood: from 200 hosts");
    }
}

//! The question to stored records that shows what an alert is about.
//!
//! It is what follows the store in `ringtap query`, for a shell: the question in quotation marks, and its time.

use std::fmt::Write as _;
use std::net::IpAddr;

use ringtap_base::Network;
use ringtap_enrich::EntryKind;
use ringtap_flow::FlowKey;

use super::{Alert, FloodKind, Member, ScanKind, Subject};
use crate::analyses::scans::rows::ScanProtocol;
use crate::time::Time;

const MILLISECOND_NS: u64 = 1_000_000;

impl Alert {
    /// The arguments of `ringtap query` behind the store.
    pub fn query(&self) -> String {
        let [from, to] = self.evidence;
        // No quotation mark of an entry ends those of the question.
        let filter = self.filter().replace('\'', "'\\''");
        let mut query = format!("'flows where {filter}' --from {from}");
        if to < Time(u64::MAX) {
            // A question ends before a time, in milliseconds.
            let _ = write!(query, " --to {}", Time(to.0.saturating_add(MILLISECOND_NS)));
        }
        query
    }

    fn filter(&self) -> String {
        match &self.subject {
            Subject::Scan { kind, source, sample, scans } => {
                let only = sample.first().filter(|_| *scans == 1);
                scan(*kind, *source, only)
            }
            Subject::Flood { target } => {
                let kind = self.flood.as_ref().map(|flood| flood.kind());
                let of = match kind {
                    Some(FloodKind::Syn | FloodKind::Tcp) => " and tcp",
                    Some(FloodKind::Udp) => " and udp",
                    Some(FloodKind::Icmp) => " and (icmp or icmp6)",
                    Some(FloodKind::Other | FloodKind::Mixed) | None => "",
                };
                format!("host {target}{of}")
            }
            Subject::Spread { source: host }
            | Subject::NewDevice { host }
            | Subject::VolumeChange { host, .. } => format!("host {host}"),
            Subject::NewServerPort { host, services } => match &services[..] {
                all if self.number > all.len() as u64 => format!("host {host}"),
                all => {
                    let tests =
                        all.iter().map(|own| format!("{} port {}", own.protocol(), own.port));
                    format!("host {host} and ({})", tests.collect::<Vec<_>>().join(" or "))
                }
            },
            Subject::Watched { host, entry, kind, flow, .. } => {
                let of = match kind {
                    EntryKind::Name => names(entry),
                    EntryKind::Fingerprint => {
                        format!("(ja3 = {entry} or ja3s = {entry} or ja4 = {entry})")
                    }
                    EntryKind::Network => watched_network(entry, flow),
                };
                let only =
                    if self.number == 1 { format!(" and host {host}") } else { String::new() };
                format!("{of}{only}")
            }
        }
    }
}

fn scan(kind: ScanKind, source: IpAddr, only: Option<&Member>) -> String {
    let member = match only {
        Some(Member::Target(target)) => format!(" and dst host {target}"),
        Some(Member::Port(port)) => format!(" and dst port {port}"),
        None => String::new(),
    };
    match kind.protocol() {
        ScanProtocol::Tcp => format!("src host {source}{member} and (failed or refused)"),
        ScanProtocol::Udp => {
            format!("src host {source}{member} and udp and not reversePacketDeltaCount > 0")
        }
    }
}

/// A name or one below it, in any field of a message that is compared with entries; a host of HTTP may have a port.
fn names(entry: &str) -> String {
    let pattern = format!("\"(^|[.]){}[.]?(:[0-9]+)?$\"", entry.replace('.', "[.]"));
    format!("(name ~ {pattern} or dnsAnswers ~ {pattern})")
}

/// An address or a network: of an end of a flow, or in the fields of a message. The text of an address shows whether it is in
/// a network if that has whole octets; for others the flow of the first host stands for messages.
fn watched_network(entry: &str, flow: &FlowKey) -> String {
    let octets = |network: &Network| match network.address {
        IpAddr::V4(address) if network.length > 0 && network.length.is_multiple_of(8) => {
            let octets = address.octets();
            let octets = octets.iter().take(usize::from(network.length / 8));
            Some(octets.map(|octet| format!("{octet}[.]")).collect::<String>())
        }
        _ => None,
    };
    let (end, text) = match entry.split_once('/') {
        None => {
            // With a port, an address of IPv6 is in brackets.
            let address = entry.replace('.', "[.]");
            (format!("host {entry}"), Some(format!("^[[]?{address}[]]?(:[0-9]+)?$")))
        }
        Some(_) => {
            let octets = entry.parse().ok().as_ref().and_then(octets);
            (format!("net {entry}"), octets.map(|octets| format!("^{octets}")))
        }
    };
    match text {
        Some(text) => format!("({end} or name ~ \"{text}\" or dnsAnswers ~ \"{text}\")"),
        None => format!("({end} or ({}))", ends(flow)),
    }
}

fn ends(flow: &FlowKey) -> String {
    let [source, destination] = [flow.source(), flow.destination()];
    let ports = [flow.src_port, flow.dst_port].map(|port| format!(" and port {port}"));
    format!("host {source} and host {destination}{}", ports.concat())
}

#[cfg(test)]
mod tests {
    use ringtap_flow::IpVersion;
    use ringtap_wire::PacketRecord;

    use super::*;
    use crate::alerts::{AlertState, Flood, Service};

    fn query(subject: Subject, number: u64, flood: Option<Flood>, to_ns: u64) -> String {
        let (since, time) = (Time(0), Time(9));
        let evidence = [Time(1_000_000), Time(to_ns)];
        let state = AlertState::Ends;
        Alert { id: 1, state, subject, number, flood, since, time, evidence }.query()
    }

    fn filter(subject: Subject, number: u64, flood: Option<Flood>) -> String {
        let query = query(subject, number, flood, u64::MAX);
        let filter = query.strip_prefix("'flows where ").unwrap();
        filter.strip_suffix("' --from 1970-01-01T00:00:00.001000000Z").unwrap().to_owned()
    }

    #[test]
    fn a_question_has_a_time_if_flows_end() {
        let spread = || Subject::Spread { source: [10, 0, 0, 1].into() };
        assert_eq!(filter(spread(), 3, None), "host 10.0.0.1");
        assert_eq!(
            query(spread(), 3, None, 2_500_000),
            "'flows where host 10.0.0.1' --from 1970-01-01T00:00:00.001000000Z --to 1970-01-01T00:00:00.003500000Z"
        );
    }

    #[test]
    fn no_entry_ends_the_quotation_of_a_question() {
        let host = IpAddr::from([10, 0, 0, 1]);
        let subject = Subject::Watched {
            host,
            hosts: vec![host],
            hits: 0,
            at_least: false,
            entry: "a';b'".into(),
            kind: EntryKind::Fingerprint,
            label: String::new(),
            field: "ja4",
            flow: FlowKey::of(&PacketRecord::EMPTY),
        };
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s|' {}", query(subject, 2, None, u64::MAX))])
            .output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let words: Vec<_> = text.split('|').collect();
        assert_eq!(words[0], "flows where (ja3 = a';b' or ja3s = a';b' or ja4 = a';b')");
        assert_eq!((words[1], words.len()), ("--from", 4));
    }

    #[test]
    fn scans_have_their_target_or_port_if_there_is_one() {
        let source = IpAddr::from([10, 0, 0, 1]);
        let of = |kind, sample: &[Member]| {
            let scans = sample.len() as u64;
            filter(Subject::Scan { kind, source, sample: sample.to_vec(), scans }, 30, None)
        };
        let target = Member::Target("fd20::1".parse().unwrap());
        for (kind, sample, expected) in [
            (ScanKind::Vertical, vec![target], " and dst host fd20::1 and (failed or refused)"),
            (ScanKind::Vertical, vec![target, target], " and (failed or refused)"),
            (
                ScanKind::Horizontal,
                vec![Member::Port(22)],
                " and dst port 22 and (failed or refused)",
            ),
            (
                ScanKind::UdpHorizontal,
                vec![Member::Port(53)],
                " and dst port 53 and udp and not reversePacketDeltaCount > 0",
            ),
        ] {
            assert_eq!(of(kind, &sample), format!("src host 10.0.0.1{expected}"));
        }
    }

    #[test]
    fn new_ports_are_listed_if_all_are_known() {
        let host = IpAddr::from([10, 0, 0, 1]);
        let services = vec![Service { protocol: 17, port: 53 }, Service { protocol: 6, port: 22 }];
        let of = |number| {
            filter(Subject::NewServerPort { host, services: services.clone() }, number, None)
        };
        assert_eq!(of(2), "host 10.0.0.1 and (udp port 53 or tcp port 22)");
        assert_eq!(of(3), "host 10.0.0.1");
        assert_eq!(filter(Subject::NewDevice { host }, 1, None), "host 10.0.0.1");
    }

    #[test]
    fn floods_have_their_protocol() {
        let target = IpAddr::from([10, 0, 0, 1]);
        for (protocol, percent, expected) in [
            (6, 90, " and tcp"),
            (17, 50, " and udp"),
            (1, 90, " and (icmp or icmp6)"),
            (17, 49, ""),
            (47, 99, ""),
        ] {
            let flood = Flood { protocol, percent, ..Flood::default() };
            let of = filter(Subject::Flood { target }, 9, Some(flood));
            assert_eq!(of, format!("host 10.0.0.1{expected}"));
        }
    }

    #[test]
    fn watched_entries_are_found_in_flows_and_messages() {
        let host = IpAddr::from([10, 0, 0, 1]);
        let mut flow = FlowKey::of(&PacketRecord::EMPTY);
        (flow.version, flow.src_port, flow.dst_port) = (IpVersion::V4, 7, 53);
        let of = |entry: &str, kind, number| {
            let subject = Subject::Watched {
                host,
                hosts: vec![host],
                hits: 0,
                at_least: false,
                entry: entry.into(),
                kind,
                label: String::new(),
                field: "dnsAnswers",
                flow,
            };
            filter(subject, number, None)
        };
        for (entry, kind, number, expected) in [
            (
                "evil.example",
                EntryKind::Name,
                2,
                "(name ~ \"(^|[.])evil[.]example[.]?(:[0-9]+)?$\" or dnsAnswers ~ \"(^|[.])evil[.]example[.]?(:[0-9]+)?$\")",
            ),
            (
                "ab12",
                EntryKind::Fingerprint,
                1,
                "(ja3 = ab12 or ja3s = ab12 or ja4 = ab12) and host 10.0.0.1",
            ),
            (
                "192.0.2.7",
                EntryKind::Network,
                2,
                "(host 192.0.2.7 or name ~ \"^[[]?192[.]0[.]2[.]7[]]?(:[0-9]+)?$\" or dnsAnswers ~ \"^[[]?192[.]0[.]2[.]7[]]?(:[0-9]+)?$\")",
            ),
            (
                "192.0.0.0/16",
                EntryKind::Network,
                2,
                "(net 192.0.0.0/16 or name ~ \"^192[.]0[.]\" or dnsAnswers ~ \"^192[.]0[.]\")",
            ),
            (
                "2001:db8::/32",
                EntryKind::Network,
                1,
                "(net 2001:db8::/32 or (host 0.0.0.0 and host 0.0.0.0 and port 7 and port 53)) and host 10.0.0.1",
            ),
        ] {
            assert_eq!(of(entry, kind, number), expected);
        }
    }
}

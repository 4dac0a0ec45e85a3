//! Compares reports and records of generated traffic with its ground truth, which finds errors that
//! all skeletons share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::common::*;
use ringtap_enrich::Networks;
use ringtap_flow::{EndReason, FlowRecord, Initiator, Metering, Timeouts};
use ringtap_monitor::{ChangeLimits, Outcome};
use ringtap_ring::Kind as Ring;
use ringtap_traffic::{Began, Ended, FlowRules, Profile, RecordTruth, ScanSpec, Truth};

fn check(name: &str, outcome: &Outcome, truth: &Truth) {
    let report = &outcome.run.report;
    assert_eq!(outcome.run.received, truth.packets, "{name}");
    assert_eq!(report.packets.handled, truth.packets, "{name}");
    assert_eq!(
        (report.packets.ipv4, report.packets.ipv6, report.packets.non_ip),
        (truth.ipv4, truth.ipv6, truth.non_ip),
        "{name}"
    );
    assert_eq!(report.packets.fragments, truth.fragments, "{name}");
    assert_eq!(report.packets.truncated, truth.truncated, "{name}");
    assert_eq!(
        (report.octets.wire, outcome.run.counts.captured_octets, report.octets.ip),
        (truth.octets.wire, truth.octets.captured, truth.octets.ip),
        "{name}"
    );
    let conversations = report.conversations.unwrap();
    assert!(conversations.exact);
    assert_eq!(
        (conversations.tcp, conversations.udp),
        (truth.conversations.tcp, truth.conversations.udp),
        "{name}"
    );
    let protocols = report.protocols.as_ref().unwrap();
    let packets = |protocol| protocols.get(&protocol).map_or(0, |v| v.packets);
    assert_eq!(
        (packets(6), packets(17), packets(1), packets(58)),
        (truth.protocols.tcp, truth.protocols.udp, truth.protocols.icmp, truth.protocols.icmpv6),
        "{name}"
    );

    let scans = report.sections.scans.as_ref().unwrap();
    let vertical: BTreeSet<_> =
        scans.vertical.iter().map(|s| (s.source, s.target, s.ports)).collect();
    let horizontal: BTreeSet<_> =
        scans.horizontal.iter().map(|s| (s.source, s.port, s.targets)).collect();
    let true_scans = &truth.scans;
    assert_eq!(
        vertical,
        true_scans.vertical.iter().map(|s| (s.source, s.target, u64::from(s.ports))).collect(),
        "{name}"
    );
    assert_eq!(
        horizontal,
        true_scans.horizontal.iter().map(|s| (s.source, s.port, u64::from(s.targets))).collect(),
        "{name}"
    );

    let scans = report.sections.udp_scans.as_ref().unwrap();
    let vertical: BTreeSet<_> =
        scans.vertical.iter().map(|s| (s.source, s.target, s.ports)).collect();
    let horizontal: BTreeSet<_> =
        scans.horizontal.iter().map(|s| (s.source, s.port, s.targets)).collect();
    let true_scans = &truth.udp_scans;
    let true_vertical = true_scans.vertical.iter();
    assert_eq!(
        vertical,
        true_vertical.map(|s| (s.source, s.target, u64::from(s.ports))).collect(),
        "{name}"
    );
    let true_horizontal = true_scans.horizontal.iter();
    assert_eq!(
        horizontal,
        true_horizontal.map(|s| (s.source, s.port, u64::from(s.targets))).collect(),
        "{name}"
    );

    let flows = report.flows.as_ref().unwrap();
    assert_eq!(flows.end_reasons.values().sum::<u64>(), flows.records, "{name}");
    assert_eq!(flows.end_reasons["lack_of_resources"], 0, "{name}");

    let talkers = report.sections.talkers.as_ref().unwrap();
    assert_eq!(talkers.error_bound, 0);
    let top: Vec<_> = talkers
        .by_octets
        .source
        .iter()
        .map(|row| (row.address, row.volume.packets, row.volume.octets))
        .collect();
    let mut expected: Vec<_> =
        truth.talkers.by_octets.iter().map(|t| (t.source, t.packets, t.octets)).collect();
    if let Some(crowd) = talkers.by_octets.crowds.source {
        expected.retain(|(.., octets)| *octets > crowd.most);
    }
    let is_crowd = name == "flood";
    assert_eq!(talkers.by_octets.crowds.source.is_some(), is_crowd, "{name}");
    assert_eq!(top, expected, "{name}: sources by octets");
}

#[test]
fn the_report_of_every_profile_matches_its_truth() {
    for name in ringtap_traffic::Profile::NAMES {
        for (seed, packets) in [(1, 20_000), (2, 77_777)] {
            let (bytes, truth) = generate(&profile(name, packets, 4_000), seed);
            let capture = Capture::Bytes(bytes);
            check(name, &run(&reference(request()), &capture), &truth);
            for skeleton in skeletons() {
                let plan = parallel(request(), skeleton, (2, 3), Ring::default(), (4096, 50));
                check(name, &run(&plan, &capture), &truth);
            }
        }
    }
}

#[test]
fn reports_of_any_number_of_packets_match_the_truth() {
    for packets in [1, 2, 3, 999, 1_000, 5_431] {
        let (bytes, truth) = generate(&profile("scans", packets, 500), 9);
        check("scans", &run(&reference(request()), &Capture::Bytes(bytes)), &truth);
    }
}

/// Scans over UDP with as many failed attempts as the threshold, one more, and many; with answers, and repeated.
#[test]
fn scans_of_udp_match_the_truth() {
    let mut profile = profile("mix", 60_000, 2_000);
    profile.scans.clear();
    for ipv6 in [false, true] {
        let scan =
            ScanSpec { udp: true, sources: 2, first_port: 2_000, ipv6, ..ScanSpec::default() };
        for failed in [20, 21, 300] {
            for answered in [0, 7] {
                let some = failed + 2 * answered;
                let scan = ScanSpec { answered, resends: answered % 3, ..scan.clone() };
                profile.scans.push(ScanSpec { ports: some, ..scan.clone() });
                profile.scans.push(ScanSpec { targets: some, ports: 1, ..scan.clone() });
                profile.scans.push(ScanSpec { targets: some, ports: 1, late: true, ..scan });
            }
        }
        profile.scans.push(ScanSpec { targets: 25, ports: 25, answered: 40, ..scan });
    }
    let (bytes, truth) = generate(&profile, 3);
    let (vertical, horizontal) = (truth.udp_scans.vertical.len(), truth.udp_scans.horizontal.len());
    assert!(vertical > 16 && horizontal > 32, "{vertical} {horizontal}");
    let capture = Capture::Bytes(bytes);
    check("udp", &run(&reference(request()), &capture), &truth);
    for skeleton in skeletons() {
        let plan = parallel(request(), skeleton, (2, 3), Ring::default(), (4096, 50));
        check("udp", &run(&plan, &capture), &truth);
    }
    super::equality::agrees_everywhere("udp", &capture, &request(), &[(64, 8)], 1);
}

/// A record in the form of the truth.
fn as_truth(record: &FlowRecord) -> RecordTruth {
    RecordTruth {
        source: record.key.source(),
        destination: record.key.destination(),
        source_port: record.key.src_port,
        destination_port: record.key.dst_port,
        protocol: record.key.protocol,
        first_ns: record.first_ns,
        last_ns: record.last_ns,
        packets: record.packets,
        octets: record.octets,
        tcp_flags: record.tcp_flags,
        icmp_type_code: record.icmp_type_code,
        began: match record.initiator {
            Initiator::FirstPacket => Began::FirstPacket,
            Initiator::Syn => Began::Syn,
            Initiator::SynAck => Began::SynAck,
        },
        ended: match record.end_reason {
            EndReason::Idle => Ended::Idle,
            EndReason::Active => Ended::Active,
            EndReason::EndDetected => Ended::Detected,
            EndReason::Forced => Ended::Forced,
            EndReason::LackOfResources => panic!("the flow table was full"),
        },
    }
}

/// All records of a run, sorted.
fn records(plan: &Plan, capture: &Capture) -> Vec<RecordTruth> {
    let (outputs, records) = gather(plan.arrangement.workers, as_truth);
    run_with(plan, capture, outputs);
    let mut all = std::mem::take(&mut *records.lock().unwrap());
    all.sort_unstable();
    all
}

/// Checks the records of a profile under every skeleton. Returns the expected records.
fn check_records(profile: &Profile, seed: u64, rules: FlowRules) -> Vec<RecordTruth> {
    let (bytes, truth) = metered(profile, seed, rules);
    let capture = Capture::Bytes(bytes);
    let request = request().app(|o| o.metering = metering(rules));
    let parallel = skeletons()
        .map(|skeleton| parallel(request.clone(), skeleton, (2, 3), Ring::default(), (512, 50)));
    for plan in [reference(request.clone())].into_iter().chain(parallel) {
        let found = records(&plan, &capture);
        let place = format!("{} seed {seed} {} {rules:?}", profile.name, plan.arrangement.skeleton);
        // Only the first difference is printed.
        let differs = found.iter().zip(&truth).find(|(found, truth)| found != truth);
        assert_eq!(differs, None, "{place}: found, true");
        assert_eq!(found.len(), truth.len(), "{place}");
    }
    truth
}

fn metering(rules: FlowRules) -> Metering {
    let FlowRules { tcp_ns, tcp_fin_ns, tcp_rst_ns, udp_ns, icmp_ns, active_ns, .. } = rules;
    Metering {
        timeouts: Timeouts {
            active_ns,
            tcp_ns,
            tcp_fin_ns,
            tcp_rst_ns,
            udp_ns,
            icmp_ns,
            ..Timeouts::default()
        },
        uniflow: rules.uniflow,
        ..Metering::default()
    }
}

const SECOND: u64 = 1_000_000_000;

/// Short timeouts, all different, so that each of them ends flows within a minute. The timeout
/// after an RST is longer than the idle timeout.
fn short() -> FlowRules {
    FlowRules {
        tcp_ns: 3 * SECOND,
        tcp_fin_ns: SECOND / 2,
        tcp_rst_ns: 4 * SECOND,
        udp_ns: 2 * SECOND,
        icmp_ns: SECOND,
        active_ns: 10 * SECOND,
        ..FlowRules::default()
    }
}

#[test]
fn the_records_of_every_profile_match_their_truth() {
    for name in Profile::NAMES {
        for (seed, packets) in [(1, 20_000), (2, 33_333), (3, 999)] {
            let mut profile = profile(name, packets, 2_000);
            check_records(&profile, seed, FlowRules::default());
            profile.duration_ns = 60 * SECOND;
            check_records(&profile, seed, short());
            check_records(&profile, seed, FlowRules { uniflow: true, ..short() });
        }
    }
}

#[test]
fn the_records_of_slow_traffic_match_their_truth() {
    let mut reasons = [0; 5];
    for (seed, minutes) in [(1, 10), (2, 30), (3, 120)] {
        let mut profile = profile("mix", 40_000, 1_500);
        profile.duration_ns = minutes * 60 * SECOND;
        // Clients that retry closed ports: at once, and after the timeout of closed flows.
        for targets in [1, 40, 300] {
            let scan = ScanSpec { targets, reset: true, insist: true, ..ScanSpec::default() };
            profile.scans.push(ScanSpec { ports: 3, resends: 2, answered: targets / 2, ..scan });
        }
        for record in check_records(&profile, seed, FlowRules::default()) {
            reasons[record.ended as usize] += 1;
        }
    }
    // The comparison must cover every end reason.
    assert!(reasons[1..].iter().all(|&records| records > 100), "{reasons:?}");
}

/// A host, or a port of it.
type Known = (IpAddr, Option<(u8, u16)>);

/// Devices and ports whose first flow, by the truth, begins after the learning time; those of which one interval has flows
/// of both times may be either.
#[test]
fn new_devices_and_server_ports_match_the_truth() {
    let own = "10.0.0.0/8 clients\n198.18.0.0/15 servers\n2001:db8:2::/48 servers\n";
    let networks = Arc::new(Networks::parse(own.as_bytes()).unwrap());
    let is_own = |host: IpAddr| networks.name(host).is_some();
    for seed in [1, 2] {
        let mut profile = profile("mix", 40_000, 3_000);
        profile.duration_ns = 600 * SECOND;
        let rules = FlowRules::default();
        let (bytes, records) = metered(&profile, seed, rules);
        let capture = Capture::Bytes(bytes);
        let request = request().app(|app| {
            app.metering = metering(rules);
            app.enrichment.networks = Some(Arc::clone(&networks));
            app.change_limits = ChangeLimits {
                new_device: Some(120 * SECOND),
                new_server_port: Some(200 * SECOND),
                ..ChangeLimits::default()
            };
            app.interval_ns = Some(5 * SECOND);
        });
        let changes =
            run(&reference(request.clone()), &capture).run.report.sections.changes.unwrap();
        let mut begins: BTreeMap<Known, (u64, u64)> = BTreeMap::new();
        for record in &records {
            let times = (record.first_ns, record.last_ns);
            let mut add = |host, port| {
                if is_own(host) {
                    let own = begins.entry((host, port)).or_insert(times);
                    *own = (own.0.min(times.0), own.1.min(times.1));
                }
            };
            let ends = [record.source, record.destination];
            let sent = ends.into_iter().zip(record.packets).filter(|(_, packets)| *packets > 0);
            sent.for_each(|(host, _)| add(host, None));
            let is_answered = match record.protocol {
                6 => record.tcp_flags[1] & 18 == 18,
                17 => record.packets[1] > 0 && (1..32_768).contains(&record.destination_port),
                _ => false,
            };
            if is_answered {
                add(record.destination, Some((record.protocol, record.destination_port)));
            }
        }
        let begin = begins.iter().filter(|((_, port), _)| port.is_none()).map(|(_, own)| own.0);
        let begin = begin.min().unwrap();
        let devices = changes.new_devices.iter().map(|row| (row.host, None));
        let ports = changes.new_server_ports.iter();
        let ports = ports.map(|row| (row.host, Some((row.service.protocol, row.service.port))));
        let found: BTreeSet<_> = devices.chain(ports).collect();
        let from = |port: &Option<_>| begin + if port.is_none() { 120 } else { 200 } * SECOND;
        let surely: BTreeSet<_> = begins
            .iter()
            .filter(|((_, port), (first, _))| *first >= from(port))
            .map(|(key, _)| *key)
            .collect();
        // The earliest end of a flow is an upper bound of the first packet.
        let perhaps: BTreeSet<_> = begins
            .iter()
            .filter(|((_, port), (_, last))| *last >= from(port))
            .map(|(key, _)| *key)
            .collect();
        assert!(surely.is_subset(&found), "{:?}", surely.difference(&found));
        assert!(found.is_subset(&perhaps), "{:?}", found.difference(&perhaps));
        let [devices, ports]: [usize; 2] = [true, false]
            .map(|is_device| surely.iter().filter(|(_, port)| port.is_none() == is_device).count());
        assert!(devices > 20 && ports > 20, "{devices} {ports}");
        assert_eq!(changes.ignored, 0);
        for skeleton in skeletons() {
            let plan = parallel(request.clone(), skeleton, (2, 3), Ring::default(), (64, 8));
            let own = run(&plan, &capture).run.report.sections.changes;
            assert_eq!(own.as_ref(), Some(&changes), "{skeleton}");
        }
    }
}

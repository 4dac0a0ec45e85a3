//! Generated traffic, whose truth is known: the skeletons cannot be wrong together.

use std::collections::BTreeSet;

use ringtap_plan::{Outcome, Ring};
use ringtap_tests::*;
use ringtap_traffic::Truth;

fn check(name: &str, outcome: &Outcome, truth: &Truth) {
    let report = &outcome.report;
    assert_eq!(outcome.received, truth.packets, "{name}");
    assert_eq!(report.packets.handled, truth.packets, "{name}");
    assert_eq!(
        (report.packets.ipv4, report.packets.ipv6, report.packets.non_ip),
        (truth.ipv4, truth.ipv6, truth.non_ip),
        "{name}"
    );
    assert_eq!(report.packets.fragments, truth.fragments, "{name}");
    assert_eq!(report.packets.truncated, truth.truncated, "{name}");
    assert_eq!(
        (report.octets.wire, outcome.captured_octets, report.octets.ip),
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

    let scans = report.scans.as_ref().unwrap();
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

    let flows = report.flows.as_ref().unwrap();
    assert_eq!(flows.end_reasons.values().sum::<u64>(), flows.records, "{name}");
    assert_eq!(flows.end_reasons["lack_of_resources"], 0, "{name}");

    let talkers = report.talkers.as_ref().unwrap();
    assert_eq!(talkers.error_bound, 0);
    let top: Vec<_> = talkers
        .by_octets
        .source
        .iter()
        .map(|row| (row.address, row.volume.packets, row.volume.octets))
        .collect();
    let expected: Vec<_> =
        truth.talkers.by_octets.iter().map(|t| (t.source, t.packets, t.octets)).collect();
    assert_eq!(top, expected, "{name}: sources by octets");
}

#[test]
fn every_profile_is_reported_as_it_was_made() {
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
fn cut_anywhere_it_still_agrees() {
    for packets in [1, 2, 3, 999, 1_000, 5_431] {
        let (bytes, truth) = generate(&profile("scans", packets, 500), 9);
        check("scans", &run(&reference(request()), &Capture::Bytes(bytes)), &truth);
    }
}

//! Compares reports of real captures with results of other programs: the manifest of the captures
//! (tshark, capinfos), scans counted from a list of SYNs, and Community IDs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::common::{Capture, gather, reference, request, run, traces};
use ringtap_engine::Watch;
use ringtap_export::formats::{CommunityId, Format, Interfaces};
use ringtap_monitor::{Outcome, report::Scans};

/// A value in which the manifest is wrong.
struct Difference {
    file: &'static str,
    column: &'static str,
    manifest: u64,
    ours: u64,
    reason: &'static str,
}

const CUSTOM_BLOCKS: &str = "frames 1, 7 and 10 of tshark are custom blocks, not packets";

const DIFFERENCES: &[Difference] = &[
    Difference {
        file: "o054-test202.pcapng",
        column: "non_ip_frames",
        manifest: 3,
        ours: 0,
        reason: CUSTOM_BLOCKS,
    },
    Difference {
        file: "o054-test202.pcapng",
        column: "cap_bytes",
        manifest: 1_156,
        ours: 1_040,
        reason: CUSTOM_BLOCKS,
    },
    Difference {
        file: "o054-test202.pcapng",
        column: "wire_bytes",
        manifest: 2_420,
        ours: 2_304,
        reason: CUSTOM_BLOCKS,
    },
    Difference {
        file: "o038-frag-30.pcap",
        column: "fragments",
        manifest: 49,
        ours: 48,
        reason: "packet 7 is not a fragment: it is an ICMPv6 error that quotes a fragment",
    },
];

/// Our numbers by the manifest's column names.
fn facts(outcome: &Outcome) -> [(&'static str, u64); 11] {
    let report = &outcome.run.report;
    let conversations = report.conversations.unwrap();
    assert!(conversations.exact);
    [
        ("packets_capinfos", outcome.run.received),
        ("ipv4_frames", report.packets.ipv4),
        ("ipv6_frames", report.packets.ipv6),
        ("non_ip_frames", report.packets.non_ip),
        ("tcp_conv_bidir", conversations.tcp),
        ("udp_conv_bidir", conversations.udp),
        ("ip_bytes", report.octets.ip),
        ("fragments", report.packets.fragments),
        ("truncated_frames", report.packets.truncated),
        ("cap_bytes", outcome.run.counts.captured_octets),
        ("wire_bytes", report.octets.wire),
    ]
}

/// The rows of the manifest by file, each by column name.
fn manifest(folder: &Path) -> BTreeMap<PathBuf, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    let rows: BTreeMap<_, BTreeMap<_, _>> = lines
        .map(|cells| names.iter().cloned().zip(cells).collect::<BTreeMap<_, _>>())
        .map(|row| (folder.join(&row["file"]), row))
        .collect();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    rows
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn reports_match_every_value_of_the_manifest() {
    let Some(folder) = traces() else { return };
    let mut wrong = Vec::new();
    let mut differences: Vec<_> = DIFFERENCES.iter().collect();
    for (path, row) in manifest(&folder) {
        let name = name(&path);
        let outcome = run(&reference(request()), &Capture::File(path));
        let mut agreeing = 0;
        for (column, ours) in facts(&outcome) {
            let theirs: u64 = row[column].parse().unwrap();
            let known = differences.iter().position(|d| d.file == name && d.column == column);
            match known.map(|at| differences.swap_remove(at)) {
                None if ours == theirs => agreeing += 1,
                None => wrong.push(format!("{name}: {column} {theirs}, ours {ours}")),
                Some(known) if (known.manifest, known.ours) == (theirs, ours) => {
                    println!("{name}: {column} {theirs}, ours {ours}: {}", known.reason);
                }
                Some(_) => wrong.push(format!("{name}: {column} {theirs}, ours {ours}: stale")),
            }
        }
        println!("{name}: {} packets, {agreeing} facts agree", outcome.run.received);
    }
    wrong.extend(differences.iter().map(|d| format!("{}: {}: no such fact", d.file, d.column)));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Failed connection attempts of a file: total; pairs of source and target with any; pairs of
/// source and port with any; maximum number of ports of one pair; maximum number of targets of one
/// source and port. Counted from the list of SYNs that tshark prints: SYN without ACK, FIN and RST,
/// less those with a SYN-ACK, TCP directly after the innermost IP header (two of o006 are in GRE).
/// Other files have none.
const FAILED: &[(&str, [u64; 5])] = &[
    ("o004-gnutella.pcap", [76, 75, 73, 2, 4]),
    ("o006-sanitized4k.pcap", [116, 116, 91, 1, 4]),
    ("o009-fragtest.pcap", [99, 98, 79, 2, 14]),
    ("o013-mixed-vlan-mpls.pcap", [1, 1, 1, 1, 1]),
    ("o025-raw_ip.pcap", [2, 2, 1, 1, 2]),
    ("o027-loopback.pcap", [1, 1, 1, 1, 1]),
    ("o037-denial6-5.pcap", [2, 2, 1, 1, 2]),
    ("o041-synscan.pcap", [997, 1, 997, 997, 1]),
    ("o042-445_scan.pcap", [9, 9, 1, 1, 9]),
    ("o044-infection_scan.pcap", [40, 40, 1, 1, 40]),
    ("o046-nmap_tcp_syn_version.pcap", [12, 1, 12, 12, 1]),
    ("o047-nmap_udp_version.pcap", [1, 1, 1, 1, 1]),
    ("o051-100_packetsns.pcap", [6, 6, 5, 1, 2]),
    ("o055-fuzz-2006-06-26-2594.pcap", [6, 5, 6, 2, 1]),
    ("o060-ethernet.pcap", [1, 1, 1, 1, 1]),
];

fn scans(path: &Path, threshold: Option<u32>) -> Scans {
    let default = request().app.scan_threshold;
    let plan = reference(request().app(|o| o.scan_threshold = threshold.unwrap_or(default)));
    let scans = run(&plan, &Capture::File(path.into())).run.report.sections.scans.unwrap();
    assert_eq!(scans.attempts_ignored, 0);
    scans
}

#[test]
fn every_failed_attempt_is_counted_and_only_scans_are_reported_as_scans() {
    let Some(folder) = traces() else { return };
    let mut expected: BTreeMap<_, _> = FAILED.iter().copied().collect();
    let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
    for path in manifest(&folder).into_keys() {
        let name = name(&path);
        // With a threshold of zero, the list has every failed attempt.
        let all = scans(&path, Some(0));
        let down: Vec<u64> = all.vertical.iter().map(|scan| scan.ports).collect();
        let across: Vec<u64> = all.horizontal.iter().map(|scan| scan.targets).collect();
        let failed: u64 = down.iter().sum();
        assert_eq!(failed, across.iter().sum::<u64>(), "{name}: vertical and horizontal sums");
        let most = |counts: &[u64]| counts.iter().copied().max().unwrap_or(0);
        assert_eq!(
            [failed, down.len() as u64, across.len() as u64, most(&down), most(&across)],
            expected.remove(name.as_str()).unwrap_or_default(),
            "{name}"
        );
        let scans = scans(&path, None);
        let vertical: Vec<_> =
            scans.vertical.iter().map(|scan| (scan.source, scan.target, scan.ports)).collect();
        let horizontal: Vec<_> =
            scans.horizontal.iter().map(|scan| (scan.source, scan.port, scan.targets)).collect();
        match name.as_str() {
            "o041-synscan.pcap" => {
                assert_eq!(vertical, [(ip("172.16.0.8"), ip("64.13.134.52"), 997)]);
                assert_eq!(horizontal, []);
            }
            "o044-infection_scan.pcap" => {
                assert_eq!(vertical, []);
                assert_eq!(horizontal, [(ip("10.0.0.5"), 445, 40)]);
            }
            // Floods, backscatter, scans with other flags than SYN, and busy clients that get
            // answers are not scans.
            _ => assert_eq!((vertical, horizontal), (vec![], vec![]), "{name}"),
        }
        println!(
            "{name}: {failed} failed attempts, {} scans",
            scans.vertical.len() + scans.horizontal.len()
        );
    }
    assert!(expected.is_empty(), "missing files: {expected:?}");
}

/// Scans over UDP in all captures, of which the content explains each: a host of Gnutella asks the peers that it knows from
/// earlier, most of which are gone. The scan of o047 has 13 ports, as many as that program sends without an answer.
#[test]
fn only_scans_over_udp_are_reported_as_such() {
    let Some(folder) = traces() else { return };
    let applications = std::fs::read_dir(folder.join("applications")).unwrap();
    let files = applications.map(|entry| entry.unwrap().path());
    let is_capture = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|own| own.to_string_lossy().starts_with("pcap"))
    };
    let all: Vec<_> = manifest(&folder).into_keys().chain(files.filter(is_capture)).collect();
    assert!(all.len() > 120, "{}", all.len());
    let found = |path: &Path, threshold: u32| {
        let plan = reference(request().app(|o| o.udp_scan_threshold = threshold));
        let outcome = run(&plan, &Capture::File(path.into()));
        let scans = outcome.run.report.sections.udp_scans.unwrap();
        let down = scans.vertical.iter().map(|scan| format!("{} {}", scan.source, scan.ports));
        let across = scans
            .horizontal
            .iter()
            .map(|scan| format!("{} port {} {}", scan.source, scan.port, scan.targets));
        down.chain(across).collect::<Vec<_>>()
    };
    for path in all {
        let expected: &[&str] = match &*name(&path) {
            "o004-gnutella.pcap" => &["10.0.2.15 port 6346 73"],
            _ => &[],
        };
        assert_eq!(found(&path, 20), expected, "{}", path.display());
    }
    let nmap = folder.join("o047-nmap_udp_version.pcap");
    assert_eq!(found(&nmap, 12), ["192.168.177.151 13"]);
}

/// The baseline has an id for each direction and each ICMP message. A record has one id, which for
/// ICMP is that of the flow's first message. So each of our ids must be in the baseline, and a
/// baseline id may be missing only for ICMP between two hosts for which we have an ICMP record.
#[test]
fn community_ids_match_the_baseline() {
    let Some(folder) = traces() else { return };
    let (outputs, records) = gather(1, |record| record.clone());
    let capture = Capture::File(folder.join("o050-combined.pcap"));
    let outcome =
        ringtap_monitor::run(&reference(request()), capture.open(), outputs, &Watch::new())
            .unwrap();
    let text = String::from_utf8(
        Format::Json.encode(&records.lock().unwrap(), &Interfaces::default()).unwrap(),
    )
    .unwrap();
    assert_eq!(text.lines().count() as u64, outcome.run.report.flows.unwrap().records);

    let baseline = std::fs::read_to_string(folder.join("BASELINE-community-id.json")).unwrap();
    let baseline: Vec<serde_json::Value> = serde_json::from_str(&baseline).unwrap();
    let field = |row: &serde_json::Value, names: [&str; 2]| {
        let value = names.iter().find_map(|name| row.get(name)).unwrap();
        value.as_str().unwrap().to_owned()
    };
    let icmp = |row: &serde_json::Value, name: &str| [1, 58].contains(&row[name].as_u64().unwrap());
    let theirs: BTreeSet<String> =
        baseline.iter().map(|row| field(row, ["communityid"; 2])).collect();

    let (mut ours, mut icmp_pairs) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        ours.insert(field(&row, ["communityId"; 2]));
        if icmp(&row, "protocolIdentifier") {
            let source = field(&row, ["sourceIPv4Address", "sourceIPv6Address"]);
            let destination = field(&row, ["destinationIPv4Address", "destinationIPv6Address"]);
            icmp_pairs.insert(BTreeSet::from([source, destination]));
        }
    }
    assert!(ours.iter().all(|id| id.len() == CommunityId::LEN));
    assert_eq!(ours.difference(&theirs).collect::<Vec<_>>(), Vec::<&String>::new());
    for row in &baseline {
        let ends = BTreeSet::from([field(row, ["saddr"; 2]), field(row, ["daddr"; 2])]);
        let covered = icmp(row, "proto") && icmp_pairs.contains(&ends);
        assert!(covered || ours.contains(&field(row, ["communityid"; 2])), "{row}");
    }
    println!("{} ids, all among the {} of the baseline", ours.len(), theirs.len());
}

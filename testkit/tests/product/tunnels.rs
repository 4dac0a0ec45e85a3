//! Tests of tunnelled traffic: encapsulation does not change results, and innermost addresses and
//! ports of real captures equal those that tshark prints.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::common::{
    Capture, generate, generate_tunnelled, profile, reference, request, run, traces,
};
use ringtap_monitor::Outcome;
use ringtap_wire::Tunnels;
use ringtap_wire::{Decoder, Flags, HashKey, PacketRecord};

#[test]
fn encapsulation_does_not_change_the_results_of_inner_packets() {
    // The snapshot length must not cut encapsulated frames.
    let mut profile = profile("scans", 20_000, 1_000);
    profile.snaplen = 262_144;
    let run = |bytes: Vec<u8>, tunnels| -> Outcome {
        run(&reference(request().run(|o| o.tunnels = tunnels)), &Capture::Bytes(bytes))
    };
    let plain = run(generate(&profile, 3).0, Tunnels::Inner);
    let tunnelled = generate_tunnelled(&profile, 3).0;
    let inner = run(tunnelled.clone(), Tunnels::Inner);
    let without_digest = |outcome: &Outcome| {
        let flows = outcome.run.report.flows.clone().unwrap();
        (flows.records, flows.active_peak, flows.end_reasons)
    };
    // Digests are not compared: records contain the tunnel.
    assert_eq!(without_digest(&inner), without_digest(&plain));
    assert_eq!(inner.run.report.sections.scans, plain.run.report.sections.scans);
    assert_eq!(inner.run.report.sections.talkers, plain.run.report.sections.talkers);
    let scans = inner.run.report.sections.scans.as_ref().unwrap();
    assert!(!scans.vertical.is_empty() && !scans.horizontal.is_empty());
    // Counters of the outermost headers count the tunnel's.
    let (with, without) = (&inner.run.report, &plain.run.report);
    let packets = with.packets;
    assert_eq!((packets.ipv6, packets.ipv4), (0, without.packets.ipv4 + without.packets.ipv6));
    assert_eq!((packets.inner, packets.non_ip), (packets.ipv4, without.packets.non_ip));
    assert_eq!(with.octets.ip, without.octets.ip + 20 * packets.inner);
    assert_eq!(with.conversations.unwrap().tcp, 0);
    assert!(with.protocols.as_ref().unwrap().keys().all(|number| [4, 41].contains(number)));

    let outer = run(tunnelled.clone(), Tunnels::Outer);
    assert_eq!((outer.run.report.packets.inner, outer.run.received), (0, plain.run.received));
    assert!(outer.run.report.sections.scans.unwrap().vertical.is_empty());
    let both = run(tunnelled, Tunnels::Both);
    let records = |report: &ringtap_monitor::Report| report.flows.as_ref().unwrap().records;
    assert_eq!(
        records(&both.run.report),
        records(&inner.run.report) + outer.run.report.flows.unwrap().records
    );
}

/// Captures with tunnels of every kind, and others with few or none.
const FILES: [&str; 16] = [
    "o004-gnutella.pcap",
    "o006-sanitized4k.pcap",
    "o009-fragtest.pcap",
    "o013-mixed-vlan-mpls.pcap",
    "o015-gre-within-gre.pcap",
    "o016-erspan.pcap",
    "o017-vxlan.pcap",
    "o018-geneve-47101.pcap",
    "o019-gtp1_gn_normal_incl_fragmentation.pcap",
    "o020-ipv6_in_gtp.pcap",
    "o021-teredo_bubble_with_payload.pcap",
    "o022-6in4tunnel.pcap",
    "o032-ip-frag.pcap",
    "o043-backscatter.trace",
    "o047-nmap_udp_version.pcap",
    "o050-combined.pcap",
];

/// Source and destination of the innermost packet, its ports if it is TCP or UDP, and whether it
/// was in a tunnel.
type Ends = (IpAddr, IpAddr, Option<(u16, u16)>, bool);

fn ours(path: &Path) -> Vec<Option<Ends>> {
    let mut files = Capture::File(path.into()).open();
    let mut decoder = Decoder::new(HashKey::from_seed(1), Default::default());
    let mut all = Vec::new();
    let mut each = |frame: ringtap_io::capture::Frame<'_>| {
        let mut record = PacketRecord::EMPTY;
        decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, &mut record);
        if let Some(within) = decoder.inner(&record) {
            record = *within;
        }
        let has = |flag| record.flags.contains(flag);
        let ported = has(Flags::PORTS) && matches!(record.protocol, 6 | 17);
        let ports = ported.then_some((record.src_port, record.dst_port));
        let addressed = record.is_ip() && !has(Flags::BAD_HEADER);
        let ends =
            || (record.source().unwrap(), record.destination().unwrap(), ports, has(Flags::INNER));
        all.push(addressed.then(ends));
    };
    while files.burst(100, &mut each) > 0 {}
    all
}

/// The ends according to tshark: of the last IP layer before a packet quoted by an ICMP error, by frame.
fn theirs(path: &Path) -> Vec<Option<Ends>> {
    const LAYERS: [&str; 4] = ["ip", "ipv6", "tcp", "udp"];
    const UDP_TUNNELS: [&str; 4] = ["vxlan", "geneve", "gtp", "teredo"];
    let fields = ["ip.src", "ip.dst", "ipv6.src", "ipv6.dst"];
    let ports = ["tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"];
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]);
    command.args(["--enable-heuristic", "teredo_udp"]);
    command.args(["-T", "fields", "-E", "occurrence=a", "-e", "frame.protocols"]);
    for field in fields.iter().chain(&ports) {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ends = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let pair = |first: usize, nth: usize| {
            let value = |at: usize| columns[at].split(',').nth(nth);
            Some((value(first)?, value(first + 1)?)).filter(|(a, b)| !a.is_empty() && !b.is_empty())
        };
        let mut seen = [0; 4];
        let mut found: Option<Ends> = None;
        let mut layers = columns[0].split(':').peekable();
        while let Some(layer) = layers.next() {
            if layer.starts_with("icmp") {
                break;
            }
            let Some(kind) = LAYERS.iter().position(|&name| name == layer) else { continue };
            // A header without addresses or ports is truncated.
            let Some((a, b)) = pair(1 + 2 * kind, seen[kind]) else { break };
            seen[kind] += 1;
            if kind < 2 {
                found = Some((a.parse().unwrap(), b.parse().unwrap(), None, found.is_some()));
            } else if let Some((_, _, ports, _)) = &mut found {
                *ports = Some((a.parse().unwrap(), b.parse().unwrap()));
                if !layers.peek().is_some_and(|next| UDP_TUNNELS.contains(next)) {
                    break;
                }
            }
        }
        found
    };
    text.lines().map(ends).collect()
}

#[test]
fn innermost_addresses_and_ports_match_tshark() {
    let Some(folder) = traces() else { return };
    if Command::new("tshark").arg("-v").output().is_err() {
        println!("SKIPPED: tshark is not installed");
        return;
    }
    let (mut wrong, mut tunnelled) = (Vec::new(), 0);
    for name in FILES {
        let path = folder.join(name);
        let (ours, theirs) = (ours(&path), theirs(&path));
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let within = theirs.iter().flatten().filter(|(.., within)| *within).count();
        println!("{name}: {} packets, {within} of them in tunnels", ours.len());
        tunnelled += within;
        for (number, pair) in (1..).zip(ours.iter().zip(&theirs)) {
            if pair.0 != pair.1 {
                wrong.push(format!("{name} {number}: ours {:?}, theirs {:?}", pair.0, pair.1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ: {wrong:#?}", wrong.len());
    assert!(tunnelled > 1_000, "{tunnelled}");
}

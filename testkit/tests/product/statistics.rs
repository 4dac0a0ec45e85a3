//! Compares the statistics of packets of all real captures with those that follow by their definitions from the packets
//! that tshark shows.
//!
//! The packets of two ends and a protocol are given to the flow records of these in turn, as many as each record has.
//! Flows of which tshark shows another number of packets, as of fragments without ports, are counted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::*;
use ringtap_flow::{BURST_GAP_NS, BURST_PACKETS, BURSTS_MOST, FlowRecord, IDLE_NS, Moments};

/// First packets of a flow, and first octets of the payload of a direction.
const MOST: u8 = 12;
const OCTETS: u16 = 300;

/// Address and port.
type End = (IpAddr, u16);

/// The lower and the higher end, and the protocol.
type Ends = ([End; 2], u8);

/// A packet as tshark shows it.
#[derive(Clone, Debug)]
struct Packet {
    ns: u64,
    sender: End,
    octets: u64,
    flags: u8,
    payload: Vec<u8>,
}

const FIELDS: [&str; 15] = [
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "tcp.srcport",
    "udp.srcport",
    "tcp.dstport",
    "udp.dstport",
    "ip.len",
    "ipv6.plen",
    "tcp.flags",
    "frame.protocols",
    "tcp.payload",
    "udp.payload",
];

/// Decimal seconds as nanoseconds.
fn ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()?)
}

/// The innermost packets of TCP and UDP, in the order of the capture.
fn tshark(path: &Path) -> BTreeMap<Ends, Vec<Packet>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-Y", "(tcp or udp) and not icmp and not icmpv6", "-T", "fields", "-r"]);
    command.arg(path);
    for option in ["tcp.desegment_tcp_streams", "ip.defragment", "ipv6.defragment"] {
        command.args(["-o", &format!("{option}:FALSE")]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark, which scripts/setup-test.sh installs");
    let mut all = BTreeMap::<_, Vec<Packet>>::new();
    for (ends, packet) in String::from_utf8_lossy(&output.stdout).lines().filter_map(packet) {
        all.entry(ends).or_default().push(packet);
    }
    all
}

fn packet(line: &str) -> Option<(Ends, Packet)> {
    let field: Vec<Vec<&str>> = line
        .split('\t')
        .map(|values| values.split(',').filter(|value| !value.is_empty()).collect())
        .collect();
    let last = |at: usize| field.get(at)?.last().copied();
    let is_v6 = last(12)?.rsplit(':').find(|name| ["ip", "ipv6"].contains(name)) == Some("ipv6");
    let address = |at: usize| last(at + usize::from(is_v6))?.parse::<IpAddr>().ok();
    let is_tcp = last(5).is_some();
    let port = |at: usize| last(at + usize::from(!is_tcp))?.parse::<u16>().ok();
    let length = last(9 + usize::from(is_v6))?.parse::<u64>().ok()?;
    let flags = u32::from_str_radix(last(11).unwrap_or("0x0").trim_start_matches("0x"), 16).ok()?;
    let [sender, receiver] = [(address(1)?, port(5)?), (address(3)?, port(7)?)];
    let ends = [sender.min(receiver), sender.max(receiver)];
    let packet = Packet {
        ns: ns(field[0].first()?)?,
        sender,
        octets: length + if is_v6 { 40 } else { 0 },
        flags: flags as u8,
        payload: last(13 + usize::from(!is_tcp)).map_or_else(Vec::new, octets_of),
    };
    Some(((ends, if is_tcp { 6 } else { 17 }), packet))
}

fn octets_of(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The entropy of the first octets of payload, in units of 1/32 bit.
fn entropy<'a>(sent: impl Iterator<Item = &'a Packet>) -> Option<u8> {
    let octets: Vec<_> =
        sent.flat_map(|packet| &packet.payload).take(OCTETS.into()).copied().collect();
    let share =
        |octet: u8| octets.iter().filter(|own| **own == octet).count() as f64 / octets.len() as f64;
    let shares = (0..=255).map(share).filter(|share| *share > 0.0);
    let bits: f64 = shares.map(|share| -share * share.log2()).sum();
    (!octets.is_empty()).then_some((bits * 32.0).round() as u8)
}

/// The records of a capture with long timeouts, by their ends, in order.
fn ours(path: &Path) -> BTreeMap<Ends, Vec<FlowRecord>> {
    let plan = reference(request().app(|app| {
        app.metering.timeouts = app.metering.timeouts.idle(36_000_000_000_000);
        app.metering.timeouts.active_ns = u64::MAX;
        app.statistics_packets = Some(MOST);
        app.statistics_octets = OCTETS;
    }));
    let (outputs, records) = gather(1, |record| record.clone());
    run_with(&plan, &Capture::File(path.into()), outputs);
    let mut all = BTreeMap::<_, Vec<FlowRecord>>::new();
    for record in records.lock().unwrap().drain(..) {
        let key = &record.key;
        let ends = [(key.source(), key.src_port), (key.destination(), key.dst_port)];
        let ends = ([ends[0].min(ends[1]), ends[0].max(ends[1])], key.protocol);
        all.entry(ends).or_default().push(record);
    }
    all.values_mut().for_each(|records| records.sort_by_key(|record| record.first_ns));
    all
}

/// Moments of values, with the textbook's two passes.
fn same_moments(found: &Moments, values: &[u64], what: &str) {
    assert_eq!(found.count(), values.len() as u64, "{what}");
    assert_eq!(found.minimum(), values.iter().copied().min(), "{what}");
    assert_eq!(found.maximum(), values.iter().copied().max(), "{what}");
    let (count, sum) = (values.len() as f64, values.iter().map(|own| *own as f64).sum::<f64>());
    let mean = sum / count;
    let near = |found: Option<u64>, expected: f64| {
        let found = found.unwrap() as f64;
        assert!((expected - found).abs() <= 1.0 + expected * 1e-9, "{what}: {found}, {expected}");
    };
    if count > 0.0 {
        near(found.mean(), mean);
    }
    if count > 1.0 {
        let squares: f64 = values.iter().map(|own| (*own as f64 - mean).powi(2)).sum();
        near(found.deviation(), (squares / (count - 1.0)).sqrt());
    }
}

fn gaps<'a>(packets: impl Iterator<Item = &'a Packet>) -> (Vec<u64>, u64) {
    let times: Vec<_> = packets.map(|packet| packet.ns).collect();
    let negative = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let gaps = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    (gaps, negative as u64)
}

/// Numbers of what was compared.
#[derive(Debug, Default)]
struct Compared {
    records: u64,
    bursts: u64,
    idle_times: u64,
    negative_gaps: u64,
    entropies: u64,
    /// Entropies of payloads of which tshark shows others.
    other_entropies: u64,
    /// Records of which tshark shows other packets.
    others: u64,
}

fn same(record: &FlowRecord, packets: &[Packet], name: &str, compared: &mut Compared) {
    let what = format!("{name} {:?}", record.key);
    let found = record.statistics.as_deref().expect("the analysis is on");
    let source = (record.key.source(), record.key.src_port);
    let side = |packet: &Packet| usize::from(packet.sender != source);
    assert!(!found.is_cut());
    let first: Vec<_> = found
        .first_packets()
        .iter()
        .map(|own| (own.ts_ns(), usize::from(own.side), u64::from(own.octets), own.tcp_flags))
        .collect();
    let expected: Vec<_> = packets
        .iter()
        .take(MOST.into())
        .map(|own| (own.ns, side(own), own.octets.min(65_535), own.flags))
        .collect();
    assert_eq!(first, expected, "{what}");
    for direction in 0..2 {
        let sent: Vec<_> = packets.iter().filter(|own| side(own) == direction).collect();
        let octets: Vec<_> = sent.iter().map(|own| own.octets).collect();
        same_moments(found.lengths(direction), &octets, &what);
        let (gaps, negative) = gaps(sent.iter().copied());
        same_moments(found.gaps(direction), &gaps, &what);
        assert_eq!(found.negative_gaps(direction), negative, "{what}");
        compared.negative_gaps += negative;
        if let Some(entropy) = entropy(sent.iter().copied()) {
            compared.entropies += 1;
            compared.other_entropies += u64::from(found.entropy(direction) != Some(entropy));
        }
        let near = |a: &&Packet, b: &&Packet| b.ns.saturating_sub(a.ns) < BURST_GAP_NS;
        let bursts: Vec<_> = sent
            .chunk_by(near)
            .filter(|run| run.len() as u64 >= BURST_PACKETS)
            .map(|run| {
                let octets = run.iter().map(|own| own.octets).sum::<u64>();
                (run[0].ns, run[run.len() - 1].ns, run.len() as u64, octets)
            })
            .take(BURSTS_MOST)
            .collect();
        let own = found.bursts(direction);
        let own: Vec<_> =
            own.map(|one| (one.start_ns, one.end_ns, one.packets, one.octets)).collect();
        assert_eq!(own, bursts, "{what}");
        compared.bursts += bursts.len() as u64;
    }
    let (all, _) = gaps(packets.iter());
    let idle: Vec<_> = all.iter().copied().filter(|gap| *gap > IDLE_NS).collect();
    same_moments(found.idle(), &idle, &what);
    let active: Vec<u64> = all.split(|gap| *gap > IDLE_NS).map(|gaps| gaps.iter().sum()).collect();
    same_moments(&found.active(), &active, &what);
    compared.records += 1;
    compared.idle_times += idle.len() as u64;
}

/// All captures of a folder.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let is_capture = |path: &PathBuf| {
        let ends = path.extension().and_then(|ends| ends.to_str());
        ends.is_some_and(|ends| ["pcap", "pcapng", "trace"].contains(&ends))
    };
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok());
    let mut files: Vec<_> = files.map(|entry| entry.path()).filter(is_capture).collect();
    files.sort();
    files
}

#[test]
fn tshark_agrees() {
    let Some(folder) = traces() else { return };
    let files = [captures(&folder), captures(&folder.join("applications"))].concat();
    assert!(files.len() > 100, "{}", files.len());
    let mut compared = Compared::default();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (mut theirs, ours) = (tshark(&path), ours(&path));
        for (ends, records) in ours.iter().filter(|(ends, _)| [6, 17].contains(&ends.1)) {
            let packets = theirs.remove(ends).unwrap_or_default();
            let count = |record: &FlowRecord| record.packets.iter().sum::<u64>() as usize;
            if records.iter().map(count).sum::<usize>() != packets.len() {
                let own: Vec<_> = records.iter().map(count).collect();
                println!("{name} {ends:?}: {own:?}, tshark shows {}", packets.len());
                compared.others += records.len() as u64;
                continue;
            }
            let mut rest = &packets[..];
            for record in records {
                let (own, behind) = rest.split_at(count(record));
                same(record, own, &name, &mut compared);
                rest = behind;
            }
        }
    }
    println!("{compared:?}");
    let Compared { records, bursts, idle_times, negative_gaps, entropies, other_entropies, others } =
        compared;
    assert!(entropies > 5_000 && other_entropies * 100 < entropies);
    assert!(records > 5_000 && bursts > 1_000 && idle_times > 100 && negative_gaps > 0);
    assert!(others * 50 < records, "{others} of {records}");
}

/// A flow of nfstream: source, destination, protocol; numbers of both directions; lengths, directions and gaps of the first
/// packets.
type Streamed = ((IpAddr, u16, IpAddr, u16, u8), [f64; 20], [Vec<i64>; 3]);

/// The flows of nfstream, if the tests that take long are on and it is installed.
fn nfstream(path: &Path) -> Option<Vec<Streamed>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let python = Path::new(root).join("target/test-tools/nfstream/bin/python");
    if std::env::var_os("RINGTAP_FULL").is_none() || !python.exists() {
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/product/nfstream.py");
    let output = Command::new(python).arg(script).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Compares a record with the flow of nfstream, whose times are whole milliseconds.
fn same_as_nfstream(record: &FlowRecord, flow: &Streamed, what: &str) {
    let (_, numbers, [lengths, directions, gaps]) = flow;
    let found = record.statistics.as_deref().expect("the analysis is on");
    let near = |ours: Option<u64>, unit: f64, theirs: f64, least: f64| {
        let ours = ours.unwrap_or(0) as f64 / unit;
        assert!((ours - theirs).abs() <= least, "{what}: {ours}, {theirs}");
    };
    for direction in (0..2).filter(|direction| record.packets[*direction] > 0) {
        let of = &numbers[direction * 10..][..10];
        let all = [
            (found.lengths(direction), 1.0, &of[2..6], 1.0),
            (found.gaps(direction), 1e6, &of[6..], 1.5),
        ];
        for (ours, unit, theirs, least) in all {
            near(ours.minimum(), unit, theirs[0], least);
            near(ours.maximum(), unit, theirs[1], least);
            near(ours.mean(), unit, theirs[2], least);
            near(ours.deviation(), unit, theirs[3], least);
        }
    }
    let first = found.first_packets();
    assert_eq!(first.len(), lengths.iter().filter(|octets| **octets >= 0).count(), "{what}");
    for (at, own) in first.iter().enumerate() {
        let gap_ns = own.ts_ns().saturating_sub(first[at.saturating_sub(1)].ts_ns());
        near(Some(gap_ns), 1e6, gaps[at] as f64, 1.0);
        let packet = (i64::from(own.octets), i64::from(own.side));
        assert_eq!(packet, (lengths[at], directions[at]), "{what}");
    }
}

#[test]
fn nfstream_agrees() {
    let Some(folder) = traces() else { return };
    let (mut equal, mut others) = (0, 0);
    for path in [captures(&folder), captures(&folder.join("applications"))].concat() {
        let Some(theirs) = nfstream(&path) else {
            println!("SKIPPED: nfstream is not installed (RINGTAP_FULL=1 scripts/setup-test.sh)");
            return;
        };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ours = ours(&path);
        for flow in &theirs {
            let (source, source_port, destination, port, protocol) = flow.0;
            let ends = [(source, source_port), (destination, port)];
            let key = ([ends[0].min(ends[1]), ends[0].max(ends[1])], protocol);
            // Its flows do not end with a connection, and its source sent the first packet.
            let record = match ours.get(&key).map(Vec::as_slice) {
                Some([record]) if [6, 17].contains(&protocol) => record,
                _ => continue,
            };
            let counts = [flow.1[0], flow.1[1], flow.1[10], flow.1[11]].map(|number| number as u64);
            let own = [record.packets[0], record.octets[0], record.packets[1], record.octets[1]];
            if counts == own && record.key.source() == source {
                same_as_nfstream(record, flow, &format!("{name} {:?}", record.key));
                equal += 1;
            } else {
                println!("{name} {:?}: {counts:?}, ours {own:?}", flow.0);
                others += 1;
            }
        }
    }
    println!("{equal} flows are equal, {others} have other packets");
    assert!(equal > 3_000 && others * 5 < equal, "{equal}, {others}");
}

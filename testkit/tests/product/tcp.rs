//! Compares the performance of TCP connections in real captures with tshark's `tcp.analysis.*`.
//!
//! Differences are sorted by their reason. What is left must agree for 97 of 100 segments of a kind.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::common::*;
use ringtap_flow::{FlowKey, IpVersion, TcpPerformance};

/// Sender and receiver: address and port.
type Direction = [(IpAddr, u16); 2];

/// Segments of a direction by kind: sent again, out of order, duplicate acknowledgments, zero windows.
type Counts = [u64; 4];

const KINDS: [&str; 4] = ["retransmissions", "out of order", "duplicate ACKs", "zero windows"];

/// Why tshark says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// tshark calls a segment out of order whose bytes it has shown before; RFC 9293, section 3.10.7.4, calls them
    /// already received, so it was sent again.
    SeenBefore,
    /// The SYN was answered by a RST: there was no handshake.
    Refused,
    /// A SYN after a RST. The RST has ended the flow, so the SYN begins another one and repeats nothing.
    AfterReset,
    /// A SYN or SYN-ACK with a sequence number of its own, such as an answer to a forged SYN, repeats nothing.
    OtherSequence,
    /// One direction is missing: tshark takes the time from SYN to the next segment of the same side.
    OneWay,
}

/// What tshark found in a capture.
#[derive(Default)]
struct Found {
    counts: BTreeMap<Direction, Counts>,
    /// Round-trip times of handshakes, microseconds, by the lower and the higher end.
    handshakes: BTreeMap<Direction, u64>,
    classified: BTreeMap<Reason, u64>,
}

/// What tshark needs to know about a segment.
const FIELDS: [&str; 14] = [
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.len",
    "tcp.flags",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.zero_window",
    "tcp.analysis.initial_rtt",
];

const SYN: u32 = 2;
const RST: u32 = 4;
const ACK: u32 = 16;

/// What is known of a direction so far.
#[derive(Default)]
struct Seen {
    /// Start and end of each segment with data.
    segments: Vec<(u32, u32)>,
    /// Sequence numbers of SYNs.
    syns: Vec<u32>,
    flags: u32,
    reset: bool,
}

fn ends([low, high]: Direction) -> Direction {
    [low.min(high), low.max(high)]
}

/// Whether segments cover these sequence numbers.
fn covered(segments: &[(u32, u32)], mut from: u32, to: u32) -> bool {
    let offset = |at: u32, from: u32| at.wrapping_sub(from).cast_signed();
    while offset(to, from) > 0 {
        let reaches =
            |&&(start, end): &&(u32, u32)| offset(start, from) <= 0 && offset(end, from) > 0;
        let Some(&(_, end)) = segments.iter().find(reaches) else { return false };
        from = end;
    }
    true
}

/// Runs tshark, without reassembly, on the innermost packets.
fn tshark(path: &Path) -> Found {
    let mut command = Command::new("tshark");
    command.args(["-n", "-Y", "tcp", "-T", "fields", "-E", "occurrence=l", "-r"]).arg(path);
    command.args(["-o", "tcp.desegment_tcp_streams:FALSE"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark, which scripts/setup-test.sh installs");
    let mut found = Found::default();
    let mut seen = BTreeMap::<Direction, Seen>::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let field: Vec<_> = line.split('\t').collect();
        let address = |v4: usize, v6: usize| -> IpAddr {
            let text = if field[v6].is_empty() { field[v4] } else { field[v6] };
            text.parse().unwrap()
        };
        let number = |at: usize| field[at].parse::<u32>().unwrap_or(0);
        let port = |at: usize| number(at) as u16;
        let direction = [(address(0, 1), port(4)), (address(2, 3), port(5))];
        let flags = u32::from_str_radix(field[8].trim_start_matches("0x"), 16).unwrap_or(0);
        let (start, len) = (number(6), number(7));
        let [there, back] = direction;
        let peer = seen.entry([back, there]).or_default();
        let (peer_flags, peer_reset) = (peer.flags, peer.reset);
        let own = seen.entry(direction).or_default();
        let counts = found.counts.entry(direction).or_default();
        let end = start.wrapping_add(len);
        for kind in (0..4).filter(|kind| !field[9 + kind].is_empty()) {
            if kind == 1 && covered(&own.segments, start, end) {
                *found.classified.entry(Reason::SeenBefore).or_default() += 1;
                counts[0] += 1;
            } else if kind == 0 && flags & (SYN | ACK) == SYN && (peer_reset || own.reset) {
                *found.classified.entry(Reason::AfterReset).or_default() += 1;
            } else if kind == 0 && flags & SYN != 0 && !own.syns.contains(&start) {
                *found.classified.entry(Reason::OtherSequence).or_default() += 1;
            } else {
                counts[kind] += 1;
            }
        }
        own.flags |= flags;
        own.reset |= flags & RST != 0;
        if flags & SYN != 0 {
            own.syns.push(start);
        }
        if len > 0 {
            own.segments.push((start, end));
        }
        let both = own.flags & peer_flags & SYN != 0;
        if let Ok(seconds) = field[13].parse::<f64>()
            && !found.handshakes.contains_key(&ends(direction))
        {
            let reason = match (flags & RST != 0, both) {
                (true, false) => Some(Reason::Refused),
                (false, false) => Some(Reason::OneWay),
                _ => None,
            };
            match reason {
                Some(reason) => *found.classified.entry(reason).or_default() += 1,
                None => {
                    let us = (seconds * 1e6).round() as u64;
                    found.handshakes.insert(ends(direction), us);
                }
            }
        }
    }
    found
}

fn direction(key: &FlowKey) -> Direction {
    let ip = |address: [u8; 16]| -> IpAddr {
        match (key.version, address) {
            (IpVersion::V4, [a, b, c, d, ..]) => [a, b, c, d].into(),
            (IpVersion::V6, address) => address.into(),
        }
    };
    [(ip(key.src), key.src_port), (ip(key.dst), key.dst_port)]
}

fn ours(path: &Path) -> Found {
    let plan = reference(request().app(|app| {
        app.metering.timeouts = app.metering.timeouts.idle(36_000_000_000_000);
        app.metering.timeouts.active_ns = u64::MAX;
    }));
    let (outputs, records) = gather(1, |record| (record.key, record.tcp));
    run_with(&plan, &Capture::File(path.into()), outputs);
    let mut found = Found::default();
    for (key, tcp) in records.lock().unwrap().iter() {
        let Some(tcp) = tcp else { continue };
        let [there, back] = direction(key);
        let TcpPerformance { retransmissions, out_of_order, duplicate_acks, zero_windows, .. } =
            tcp;
        for (side, direction) in [[there, back], [back, there]].into_iter().enumerate() {
            let counts = found.counts.entry(direction).or_default();
            let more = [retransmissions, out_of_order, duplicate_acks, zero_windows];
            for (count, more) in counts.iter_mut().zip(more) {
                *count += u64::from(more[side]);
            }
        }
        if let Some(us) = tcp.handshake_total_us() {
            found.handshakes.insert(ends([there, back]), us);
        }
    }
    found
}

/// Numbers of both, of tshark alone and of ours alone.
#[derive(Clone, Copy, Debug, Default)]
struct Agreement {
    both: u64,
    theirs: u64,
    ours: u64,
}

impl Agreement {
    fn add(&mut self, theirs: u64, ours: u64) {
        let both = theirs.min(ours);
        self.both += both;
        self.theirs += theirs - both;
        self.ours += ours - both;
    }

    fn check(&self, what: &str) {
        let all = self.both + self.theirs + self.ours;
        println!("{what}: {self:?}");
        assert!(self.both * 100 >= all * 97, "{what}: {self:?}");
    }
}

#[test]
fn tshark_agrees() {
    let Some(folder) = traces() else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with('o'));
    files.sort();
    let mut kinds = [Agreement::default(); 4];
    let mut handshakes = Agreement::default();
    let mut classified = BTreeMap::<Reason, u64>::new();
    for path in &files {
        let (theirs, ours) = (tshark(path), ours(path));
        for (&reason, &count) in &theirs.classified {
            *classified.entry(reason).or_default() += count;
        }
        let name = path.file_name().unwrap().to_string_lossy();
        let directions = theirs.counts.keys().chain(ours.counts.keys());
        for direction in directions.collect::<std::collections::BTreeSet<_>>() {
            let of = |found: &Found| found.counts.get(direction).copied().unwrap_or_default();
            let (theirs, ours) = (of(&theirs), of(&ours));
            if theirs != ours {
                println!("{name} {direction:?}: tshark {theirs:?}, ours {ours:?}");
            }
            for ((agreement, theirs), ours) in kinds.iter_mut().zip(theirs).zip(ours) {
                agreement.add(theirs, ours);
            }
        }
        for (ends, us) in &theirs.handshakes {
            // Both parts are rounded down.
            let same = |ours: &u64| us.abs_diff(*ours) <= 2;
            let equal = ours.handshakes.get(ends).is_some_and(same);
            if !equal {
                println!("{name} {ends:?}: tshark {us} us, ours {:?}", ours.handshakes.get(ends));
            }
            handshakes.add(1, u64::from(equal));
        }
    }
    println!("{classified:?}");
    for (agreement, kind) in kinds.iter().zip(KINDS) {
        agreement.check(kind);
    }
    handshakes.check("handshakes");
    assert!(kinds[0].both > 1000 && kinds[2].both > 500 && handshakes.both > 300, "{kinds:?}");
    assert_eq!(classified.len(), 5, "{classified:?}");
}

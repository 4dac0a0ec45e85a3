//! Compares the response times of real captures, each at its packet, with tshark: `http.time` and `dns.time`, and for TLS
//! and other TCP connections the times between the packets in which it shows hellos and first data.
//!
//! tshark reassembles nothing here, so it shows a message in the packet in which it begins. Differences are sorted by
//! their reason; each must have one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::common::*;

/// Sender and receiver: address and port.
type Direction = [(IpAddr, u16); 2];

/// A packet: its time in nanoseconds, its ends, its protocol.
type Place = (u64, Direction, u8);

const TCP: u8 = 6;
const SYN: u32 = 2;

/// Why tshark says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// A request takes several packets: tshark takes the time from the first one.
    RequestContinues,
    /// tshark takes the time to an interim response, such as `100 Continue`, and none to the final one.
    Interim,
    /// tshark shows the messages, or one of them, and no time between them.
    NoTime,
    /// Multicast questions have answers from other hosts.
    Multicast,
    /// The answer came more than 10 s after its question.
    Late,
    /// tshark takes the packets for another protocol, or shows only messages that are in one packet.
    NotShown,
    /// The header of the request has no end, so the connection is measured as another one.
    Endless,
    /// The answer has another question than the query with its identifier: tshark does not compare them.
    OtherQuestion,
    /// tshark gives up at the rest of the answer, before it looks for the question.
    Malformed,
    /// The question was repeated: tshark takes the time from the first one only for 5 s.
    AskedAgain,
}

const FIELDS: [&str; 23] = [
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "tcp.srcport",
    "udp.srcport",
    "tcp.dstport",
    "udp.dstport",
    "tcp.seq_raw",
    "tcp.len",
    "tcp.flags",
    "http.request.method",
    "http.response.code",
    "http.time",
    "dns.flags.response",
    "dns.time",
    "tls.handshake.type",
    "frame.protocols",
    "dns.id",
    "dns.qry.name",
    "dns.qry.type",
    "_ws.malformed",
];

/// A packet as tshark shows it.
#[derive(Clone, Debug)]
struct Packet {
    ns: u64,
    ends: Direction,
    protocol: u8,
    sequence: u32,
    len: u32,
    flags: u32,
    requests: usize,
    statuses: Vec<u16>,
    http_us: Vec<u64>,
    is_dns: bool,
    dns_us: Vec<u64>,
    /// Identifier, name and type.
    question: String,
    hellos: Vec<u8>,
    is_malformed: bool,
}

impl Packet {
    fn place(&self) -> Place {
        (self.ns, ends(self.ends), self.protocol)
    }
}

fn ends([low, high]: Direction) -> Direction {
    [low.min(high), low.max(high)]
}

/// Decimal seconds as nanoseconds.
fn ns(text: &str) -> u64 {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    seconds.parse::<u64>().unwrap_or(0) * 1_000_000_000 + fraction.parse::<u64>().unwrap()
}

/// Runs tshark on the innermost packets.
fn tshark(path: &Path) -> Vec<Packet> {
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
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(packet).collect()
}

fn packet(line: &str) -> Option<Packet> {
    let field: Vec<Vec<&str>> = line
        .split('\t')
        .map(|values| values.split(',').filter(|value| !value.is_empty()).collect())
        .collect();
    // A value may have the end of a line in it.
    if field.len() != FIELDS.len() || field[0].is_empty() {
        return None;
    }
    let last = |at: usize| field[at].last().copied();
    let is_v6 = last(18)?.rsplit(':').find(|name| ["ip", "ipv6"].contains(name)) == Some("ipv6");
    let address = |at: usize| last(at + usize::from(is_v6))?.parse::<IpAddr>().ok();
    let is_tcp = last(5).is_some();
    let port = |at: usize| last(at + usize::from(!is_tcp))?.parse::<u16>().ok();
    let number = |at: usize| last(at).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let hex = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let times = |at: usize| field[at].iter().map(|text| ns(text) / 1_000).collect();
    Some(Packet {
        ns: ns(field[0][0]),
        ends: [(address(1)?, port(5)?), (address(3)?, port(7)?)],
        protocol: if is_tcp { TCP } else { 17 },
        sequence: number(9),
        len: number(10),
        flags: last(11).and_then(hex).unwrap_or(0),
        requests: field[12].len(),
        statuses: field[13].iter().filter_map(|text| text.parse().ok()).collect(),
        http_us: times(14),
        is_dns: !field[15].is_empty(),
        dns_us: times(16),
        question: format!("{:?} {:?} {:?}", field[19], field[20], field[21]),
        hellos: field[17].iter().filter_map(|text| text.parse().ok()).collect(),
        is_malformed: !field[22].is_empty(),
    })
}

/// What is known of a TCP connection, or of a pair of ports, so far.
#[derive(Default)]
struct Seen {
    /// Of each end: the sequence number behind the highest one.
    next: BTreeMap<(IpAddr, u16), u32>,
    /// The client, if a SYN was seen.
    client: Option<(IpAddr, u16)>,
    /// The sender of the first data, and their time.
    first: Option<((IpAddr, u16), u64)>,
    /// Whether the other end has sent data, too.
    answered: bool,
    /// The sender and the time of a ClientHello without an answer.
    hello: Option<((IpAddr, u16), u64)>,
    /// Of each end: the time of the latest data that were not seen before.
    latest: BTreeMap<(IpAddr, u16), u64>,
    /// Whether the latest response was an interim one.
    interim: bool,
    /// Each end, what it asked, and when first.
    asked: BTreeMap<((IpAddr, u16), String), u64>,
}

/// The times of tshark, of hellos and of first data, at their packets, by kind.
#[derive(Default)]
struct Theirs {
    times: BTreeMap<Place, Vec<(&'static str, u64)>>,
    /// Of a packet with data: the times since the latest new data of the other end, and its first data.
    since: BTreeMap<Place, [Option<u64>; 2]>,
    /// Packets with final responses behind interim ones, and with interim ones.
    interim: BTreeSet<Place>,
    /// Packets in which tshark shows a response of HTTP.
    shown: BTreeSet<Place>,
    /// Packets with an answer whose question was not asked.
    unasked: BTreeSet<Place>,
    /// Packets with a malformed answer: the time since its question.
    malformed: BTreeMap<Place, u64>,
}

fn theirs(packets: &[Packet]) -> Theirs {
    let connection = |packet: &Packet| (ends(packet.ends), packet.protocol);
    let named: BTreeSet<_> = packets
        .iter()
        .filter(|own| own.requests + own.statuses.len() + own.hellos.len() > 0 || own.is_dns)
        .map(connection)
        .collect();
    let mut theirs = Theirs::default();
    let mut all = BTreeMap::<_, Seen>::new();
    for packet in packets {
        let [from, to] = packet.ends;
        let times = theirs.times.entry(packet.place()).or_default();
        times.extend(
            packet.http_us.iter().filter(|_| packet.protocol == TCP).map(|&us| ("http", us)),
        );
        times.extend(packet.dns_us.iter().map(|&us| ("dns", us)));
        let seen = all.entry(connection(packet)).or_default();
        if packet.flags & SYN != 0 {
            let client = if packet.flags & 16 == 0 { from } else { to };
            if seen.client.is_none() || packet.flags & 16 == 0 {
                *seen = Seen { client: Some(client), ..Seen::default() };
            }
        }
        if packet.protocol == TCP && packet.len == 0 {
            continue;
        }
        let since = |asked: Option<u64>| {
            asked.and_then(|asked| packet.ns.checked_sub(asked)).map(|ns| ns / 1_000)
        };
        if packet.is_dns {
            let asked = seen.asked.get(&(to, packet.question.clone())).copied();
            if asked.is_none() {
                theirs.unasked.insert(packet.place());
            }
            if let Some(us) = since(asked).filter(|_| packet.is_malformed) {
                theirs.malformed.insert(packet.place(), us);
            }
            seen.asked.entry((from, packet.question.clone())).or_insert(packet.ns);
        }
        let first = seen.first.filter(|first| first.0 != from && !seen.answered);
        let place = packet.place();
        theirs.since.insert(
            place,
            [since(seen.latest.get(&to).copied()), since(first.map(|first| first.1))],
        );
        if let Some((_, ns)) = first {
            seen.answered = true;
            let is_other = packet.protocol == TCP && !named.contains(&connection(packet));
            if is_other && seen.client == Some(to) {
                times.extend(since(Some(ns)).map(|us| ("tcp", us)));
            }
        }
        seen.first.get_or_insert((from, packet.ns));
        for hello in packet.hellos.iter().filter(|_| packet.protocol == TCP) {
            match (hello, seen.hello) {
                (1, None) => seen.hello = Some((from, packet.ns)),
                (2, Some((client, ns))) if client == to => {
                    times.extend(since(Some(ns)).map(|us| ("tls", us)));
                    seen.hello = None;
                }
                _ => {}
            }
        }
        for status in &packet.statuses {
            let is_interim = (100..200).contains(status) && *status != 101;
            if is_interim || seen.interim {
                theirs.interim.insert(place);
            }
            seen.interim = is_interim;
            theirs.shown.insert(place);
        }
        let end = packet.sequence.wrapping_add(packet.len);
        let next = seen.next.entry(from).or_insert(packet.sequence);
        if end.wrapping_sub(*next).cast_signed() > 0 {
            *next = end;
            seen.latest.insert(from, packet.ns);
        }
    }
    theirs.times.retain(|_, times| !times.is_empty());
    theirs
}

impl Theirs {
    /// Why they differ, if there is a reason.
    fn reason(&self, place: &Place, theirs: &[(&str, u64)], ours: (u64, u32)) -> Option<Reason> {
        let [(_, low), (_, high)] = place.1;
        let [latest, first] = self.since.get(place).copied().unwrap_or_default();
        let by_definition = ours.1 == 1 && latest == Some(ours.0);
        match theirs {
            [("dns", us)] if ours.1 == 0 && *us > 10_000_000 => Some(Reason::Late),
            [("dns", _)] if ours.1 == 0 && [low, high].contains(&5353) => Some(Reason::Multicast),
            [("dns", _)] if ours.1 == 0 && self.unasked.contains(place) => {
                Some(Reason::OtherQuestion)
            }
            [] if ours.1 == 1 && self.malformed.get(place) == Some(&ours.0) => {
                Some(Reason::Malformed)
            }
            [("http", _)] if ours.1 == 0 && self.interim.contains(place) => Some(Reason::Interim),
            [] if by_definition && self.interim.contains(place) => Some(Reason::Interim),
            [("http", us)] if by_definition && *us > ours.0 => Some(Reason::RequestContinues),
            [] if by_definition && self.shown.contains(place) => Some(Reason::NoTime),
            [] if by_definition => Some(Reason::NotShown),
            // Inside Teredo on any port, or in a datagram that it joins elsewhere.
            [] if !self.since.contains_key(place) => Some(Reason::NotShown),
            [] if ours.1 == 1 && first == Some(ours.0) => match place.2 {
                TCP => Some(Reason::Endless),
                _ => Some(Reason::AskedAgain),
            },
            _ => None,
        }
    }
}

/// The sum of response times, microseconds, and their number, by the packet that has the responses.
fn ours(path: &Path) -> BTreeMap<Place, (u64, u32)> {
    let plan = reference(request().app(|app| {
        app.metering.timeouts = app.metering.timeouts.idle(36_000_000_000_000);
        app.metering.timeouts.active_ns = u64::MAX;
        // A part for each time, so that the response times of each packet are known.
        app.metering.cut_ns = Some(1);
    }));
    let (outputs, records) = gather(1, |record| (record.key, record.last_ns, record.responses));
    run_with(&plan, &Capture::File(path.into()), outputs);
    let mut found = BTreeMap::new();
    for (key, last_ns, responses) in records.lock().unwrap().iter() {
        let Some(times) = responses else { continue };
        let place = (
            *last_ns,
            ends([(key.source(), key.src_port), (key.destination(), key.dst_port)]),
            key.protocol,
        );
        let own: &mut (u64, u32) = found.entry(place).or_default();
        *own = (own.0 + times.sum_us, own.1 + times.count);
    }
    found
}

#[test]
fn tshark_agrees() {
    let Some(folder) = traces() else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with('o'));
    files.sort();
    let mut equal = BTreeMap::<&str, u64>::new();
    let mut classified = BTreeMap::<Reason, u64>::new();
    let mut without_reason = 0;
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy();
        let (theirs, ours) = (theirs(&tshark(path)), ours(path));
        let all: BTreeSet<_> = theirs.times.keys().chain(ours.keys()).collect();
        for place in all {
            let found = ours.get(place).copied().unwrap_or_default();
            let times = theirs.times.get(place).map_or(&[][..], |times| &times[..]);
            let sum: u64 = times.iter().map(|time| time.1).sum();
            if times.len() as u32 == found.1 && sum.abs_diff(found.0) <= times.len() as u64 {
                times.iter().for_each(|time| *equal.entry(time.0).or_default() += 1);
                continue;
            }
            let reason = theirs.reason(place, times, found);
            match reason {
                Some(reason) => *classified.entry(reason).or_default() += 1,
                None => without_reason += 1,
            }
            println!("{name} {place:?}: tshark {times:?}, ours {found:?}: {reason:?}");
        }
    }
    println!("equal {equal:?}, {classified:?}, without a reason {without_reason}");
    assert_eq!(without_reason, 0, "differences without a reason");
    assert!(equal["http"] > 500 && equal["dns"] > 120, "{equal:?}");
    assert!(equal["tls"] > 250 && equal["tcp"] > 30, "{equal:?}");
    assert_eq!(classified.len(), 10, "{classified:?}");
}

//! Who sent when: the volumes of states of intervals, by host, pair, port, application and name, against sums over the
//! packets themselves; of each part of a run, and of parts that follow each other.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ringtap_extract::Names;
use ringtap_flow::{FlowKey, FlowRecord, Initiator, Kind};
use ringtap_io::capture::PcapWriter;
use ringtap_monitor::report::Report;
use ringtap_monitor::state::{
    Choices, Earlier, Identity, Merged, OnPart, StatePart, merge_states, report,
};
use ringtap_monitor::{Outputs, Receivers};
use ringtap_ring::Kind as Ring;
use ringtap_wire::{Decoder, Flags, HashKey, LinkType, PacketRecord, Paths, Tunnels};

use crate::common::*;

const SECOND: u64 = 1_000_000_000;
/// Most parts of a capture whose sums are compared one by one.
const MOST_PARTS: usize = 24;

/// Packets and octets.
type Sum = [u64; 2];

/// The volumes of some time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Volumes {
    sources: BTreeMap<IpAddr, Sum>,
    destinations: BTreeMap<IpAddr, Sum>,
    pairs: BTreeMap<[IpAddr; 2], Sum>,
    ports: BTreeMap<(u8, u16), Sum>,
}

/// Volumes by label, and octets by name.
#[derive(Clone, Debug, Default, PartialEq)]
struct Named {
    labels: BTreeMap<String, Sum>,
    names: BTreeMap<String, u64>,
}

fn add<K: Ord>(sums: &mut BTreeMap<K, Sum>, key: K, [packets, octets]: Sum) {
    let own = sums.entry(key).or_default();
    *own = [own[0] + packets, own[1] + octets];
}

/// The flows of a run, with their server ports, by their ends in order.
struct Servers(HashMap<FlowKey, Vec<(u64, u64, u16)>>);

impl Servers {
    fn of(plan: &Plan, capture: &Capture) -> Self {
        let plan = without_state(plan);
        let (outputs, records) = gather(plan.arrangement.workers, FlowRecord::clone);
        run_with(&plan, capture, outputs);
        let mut all = Self(HashMap::new());
        for record in records.lock().unwrap().iter() {
            let FlowKey { src_port, dst_port, .. } = record.key;
            let class = |port| [1_024, 32_768].iter().filter(|first| port >= **first).count();
            let is_guess = record.initiator == Initiator::FirstPacket;
            let is_lower = dst_port == 0 || src_port > 0 && class(src_port) < class(dst_port);
            let is_source = is_guess && is_lower;
            let port = if is_source { src_port } else { dst_port };
            let times = (record.first_ns, record.last_ns, port);
            all.0.entry(record.key.min(record.key.reversed())).or_default().push(times);
        }
        all
    }

    /// The server port of a packet's flow; 0 without one.
    fn port(&self, packet: &PacketRecord) -> u16 {
        let key = FlowKey::of(packet);
        let time = packet.ts_ns;
        let all = self.0.get(&key.min(key.reversed())).into_iter().flatten();
        let mut own = all.filter(|(first, last, _)| (*first..=*last).contains(&time));
        own.next().map_or(0, |(.., port)| *port)
    }
}

impl Volumes {
    fn add(&mut self, packet: &PacketRecord, servers: &Servers) {
        if !packet.is_ip() || packet.flags.contains(Flags::BAD_HEADER) {
            return;
        }
        let [source, destination] = [packet.src, packet.dst].map(|bytes| {
            let [a, b, c, d, ..] = bytes;
            let is_v4 = packet.flags.contains(Flags::IPV4);
            if is_v4 { IpAddr::from([a, b, c, d]) } else { IpAddr::from(bytes) }
        });
        let one = [1, u64::from(packet.ip_len)];
        add(&mut self.sources, source, one);
        add(&mut self.destinations, destination, one);
        add(&mut self.pairs, [source.min(destination), source.max(destination)], one);
        // ICMP has type and code there.
        let has_ports = !matches!(packet.protocol, 1 | 58);
        let port = servers.port(packet);
        if has_ports && packet.flags.contains(Flags::PORTS) && port > 0 {
            add(&mut self.ports, (packet.protocol, port), one);
        }
    }

    /// The volumes of a report with all rows.
    fn of(report: &Report) -> Self {
        let talkers = report.sections.talkers.as_ref().unwrap();
        assert_eq!((talkers.error_bound, talkers.packets_error_bound), (0, 0));
        let rows = &talkers.by_octets;
        let sum = |volume: &ringtap_monitor::report::Volume| [volume.packets, volume.octets];
        let mut all = Self::default();
        rows.source.iter().for_each(|row| add(&mut all.sources, row.address, sum(&row.volume)));
        for row in &rows.destination {
            add(&mut all.destinations, row.address, sum(&row.volume));
        }
        rows.pair.iter().for_each(|row| add(&mut all.pairs, row.addresses, sum(&row.volume)));
        for row in &rows.port {
            add(&mut all.ports, (row.protocol, row.port), sum(&row.volume));
        }
        all
    }
}

impl Named {
    fn of(report: &Report) -> Self {
        let applications = report.sections.applications.as_ref().unwrap();
        let mut all = Self::default();
        let rows = applications.rows.iter().map(|row| (row.application.as_str(), row.volume));
        for (label, volume) in rows.chain([("", applications.unlabelled)]) {
            add(&mut all.labels, label.to_owned(), [volume.packets, volume.octets]);
        }
        for row in &report.sections.names.as_ref().unwrap().servers {
            *all.names.entry(row.name.clone()).or_default() += row.octets;
        }
        all.settled()
    }

    fn merge(&mut self, other: Self) {
        other.labels.into_iter().for_each(|(label, sum)| add(&mut self.labels, label, sum));
        for (name, octets) in other.names {
            *self.names.entry(name).or_default() += octets;
        }
    }

    /// Without what has no packets: flows that ended may have none in this time.
    fn settled(mut self) -> Self {
        self.labels.retain(|_, sum| *sum != [0; 2]);
        self.names.retain(|_, octets| *octets > 0);
        self
    }
}

/// A packet with its frame.
struct Packet {
    frame: Vec<u8>,
    original_len: u32,
    link: LinkType,
    record: PacketRecord,
}

/// The packets of a capture, as they are without tunnels opened.
fn packets(capture: &Capture) -> Vec<Packet> {
    let mut decoder = Decoder::new(HashKey::from_seed(1), Arc::new(Paths::new()));
    let (mut files, mut all) = (capture.open(), Vec::new());
    while files.burst(256, |frame| {
        let mut record = PacketRecord::EMPTY;
        decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, &mut record);
        record.ts_ns = frame.ts_ns;
        let (original_len, link) = (frame.original_len, frame.link);
        all.push(Packet { frame: frame.data.to_vec(), original_len, link, record });
    }) > 0
    {}
    all
}

/// The states of a run, in order.
fn states(plan: &Plan, capture: &Capture) -> Vec<Vec<u8>> {
    let all = Arc::new(Mutex::new((Earlier::default(), Vec::new())));
    let (to, own) = (Arc::clone(&all), plan.clone());
    let part: OnPart = Box::new(move |part: StatePart| {
        let (earlier, states) = &mut *to.lock().unwrap();
        states.push(part.write(&own, 0, earlier, Vec::new()).unwrap());
    });
    let receivers = Receivers { part: Some(part), ..Receivers::default() };
    let outcome = run_with(plan, capture, Outputs { receivers, ..Outputs::default() });
    let (earlier, states) = &mut *all.lock().unwrap();
    states.push(outcome.write_state(earlier, Vec::new()).unwrap());
    std::mem::take(states)
}

/// The report over states, with all rows.
fn merged(states: &[Vec<u8>]) -> Merged {
    let choices = Choices {
        scan_threshold: 20,
        udp_scan_threshold: 20,
        top: ringtap_monitor::TOP_MOST,
        digest: true,
        names: Names::built_in(),
        memory_bytes: Some(512 << 20),
    };
    report(states.iter().map(|state| &state[..]).collect(), &choices).unwrap()
}

/// A request with a state for each interval.
fn request_of(interval_ns: u64, page: bool) -> Request {
    let identity = Identity { run: 7, probe: "a".into(), in_parts: true };
    request().run(|run| run.tunnels = Tunnels::Outer).app(|app| {
        (app.interval_ns, app.state, app.page) = (Some(interval_ns), Some(identity), page);
        app.top = ringtap_monitor::TOP_MOST;
    })
}

/// What was said of the flows of the packets so far: volume, label and names of each flow.
type Flows = HashMap<(FlowKey, u64), (Sum, String, Vec<String>)>;

/// The flows of a run over some of the packets, without states or slices. `None` if two flows have the same key and time.
fn flows(packets: &[Packet]) -> Option<Flows> {
    let mut bytes = Vec::new();
    let link = packets.first().map_or(LinkType::ETHERNET, |packet| packet.link);
    let mut writer = PcapWriter::new(&mut bytes, link, u32::MAX);
    for Packet { frame, original_len, record, .. } in packets {
        writer.write(record.ts_ns, *original_len, frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    let plan = reference(request().run(|run| run.tunnels = Tunnels::Outer));
    let (outputs, records) = gather(plan.arrangement.workers, FlowRecord::clone);
    run_with(&plan, &Capture::Bytes(bytes), outputs);
    let mut flows = Flows::new();
    for record in records.lock().unwrap().iter() {
        let sum = [record.packets.iter().sum(), record.octets.iter().sum()];
        let label = record.application.map_or_else(String::new, |own| own.label.as_str().into());
        let facts = &record.facts;
        let names = facts.values(Kind::TlsServerName).chain(facts.values(Kind::HttpHost));
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        if flows.insert((record.key, record.first_ns), (sum, label, names)).is_some() {
            return None;
        }
    }
    Some(flows)
}

/// By label and name, the packets that a run over more packets has beyond those of one over fewer.
fn named(before: &Flows, after: &Flows) -> Named {
    let mut all = Named::default();
    for (key, ([packets, octets], label, names)) in after {
        let [own_packets, own_octets] = before.get(key).map_or([0; 2], |(sum, ..)| *sum);
        let since = [packets - own_packets, octets - own_octets];
        add(&mut all.labels, label.clone(), since);
        names.iter().for_each(|name| *all.names.entry(name.clone()).or_default() += since[1]);
    }
    all.settled()
}

/// What a capture was compared by.
#[derive(Default)]
struct Compared {
    parts: usize,
    windows: usize,
    named: usize,
}

/// Compares the states of a capture in intervals with its packets. `own_slices`: also by label and name.
fn compare(name: &str, capture: &Capture, interval_ns: u64, turn: usize) -> Compared {
    let plan = reference(request_of(interval_ns, turn.is_multiple_of(2)));
    let states = states_checked(name, &plan, capture, turn);
    let all = merged(&states);
    let packets = packets(capture);
    let servers = Servers::of(&plan, capture);
    let mut expected = Volumes::default();
    packets.iter().for_each(|packet| expected.add(&packet.record, &servers));
    let has_fragments = all.report.packets.fragments > 0;
    // The ports of later fragments are those of the first.
    let same = |own: &Volumes, other: &Volumes| {
        let without = |all: &Volumes| Volumes { ports: BTreeMap::new(), ..all.clone() };
        if has_fragments { without(own) == without(other) } else { own == other }
    };
    assert!(same(&Volumes::of(&all.report), &expected), "{name}: the whole run");
    // The report of the run has the same rows as that of its parts, of which the labels are those at the end of flows.
    let whole = run(&plan, capture);
    assert_eq!(digest(&whole), digest(&run(&without_state(&plan), capture)), "{name}");

    let times: Vec<_> = packets.iter().map(|packet| packet.record.ts_ns).collect();
    if !times.is_sorted() || times.first() == Some(&0) {
        return Compared::default();
    }
    // Each packet is in the first part that ended behind its interval.
    let each: Vec<Merged> =
        states.iter().map(|state| merged(std::slice::from_ref(state))).collect();
    let ends: Vec<u64> = each
        .iter()
        .map(|part| part.header.runs.values().next().unwrap().parts[0].until_ns / interval_ns)
        .collect();
    let last = states.len() - 1;
    let part_of = |packet: &Packet| {
        let interval = packet.record.ts_ns / interval_ns;
        ends[..last].iter().position(|end| interval < *end).unwrap_or(last)
    };
    let mut volumes = vec![Volumes::default(); states.len()];
    packets.iter().for_each(|packet| volumes[part_of(packet)].add(&packet.record, &servers));
    for (number, (part, expected)) in each.iter().zip(&volumes).enumerate() {
        assert!(same(&Volumes::of(&part.report), expected), "{name}: part {number}");
        let sum: u64 = expected.sources.values().map(|sum| sum[1]).sum();
        let protocols = part.report.protocols.as_ref().unwrap();
        let octets: u64 = protocols.values().map(|volume| volume.octets).sum();
        let unusable = part.report.octets.ip > sum;
        assert!(octets == sum || unusable, "{name}: part {number}: {octets}, {sum}");
    }
    // Parts that follow each other, directly and nested.
    let mut compared = Compared { parts: states.len(), ..Compared::default() };
    for from in 0..states.len().min(MOST_PARTS) {
        let upto = states.len().min(from + 2 + (from + turn) % 4);
        let mut expected = Volumes::default();
        packets
            .iter()
            .filter(|packet| (from..upto).contains(&part_of(packet)))
            .for_each(|packet| expected.add(&packet.record, &servers));
        let window = &states[from..upto];
        let report = merged(window).report;
        assert!(same(&Volumes::of(&report), &expected), "{name}: parts {from} to {upto}");
        let mut nested = Vec::new();
        merge_states(window.iter().map(|state| &state[..]).collect(), &mut nested).unwrap();
        assert_eq!(merged(&[nested]).report, report, "{name}: parts {from} to {upto}");
        compared.windows += 1;
    }
    // By label and name, from runs that end with each slice.
    let slice_ns = plan.app.slice_ns().unwrap();
    let slices: Vec<_> =
        packets.chunk_by(|a, b| a.record.ts_ns / slice_ns == b.record.ts_ns / slice_ns).collect();
    let links: Vec<_> = packets.iter().map(|packet| packet.link).collect();
    if slices.len() > MOST_PARTS || links.iter().any(|link| *link != links[0]) {
        return compared;
    }
    let (mut before, mut until) = (Flows::new(), 0);
    let mut expected = vec![Named::default(); states.len()];
    for slice in slices {
        until += slice.len();
        let Some(after) = flows(&packets[..until]) else { return compared };
        expected[part_of(&slice[0])].merge(named(&before, &after));
        before = after;
    }
    for (number, (part, expected)) in each.iter().zip(&expected).enumerate() {
        assert_eq!(Named::of(&part.report), *expected, "{name}: part {number}");
        compared.named += expected.names.len() + usize::from(expected.labels.len() > 1);
    }
    compared
}

/// The plan without a state.
fn without_state(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    (plan.app.state, plan.app.page) = (None, false);
    plan
}

/// The states of a run; other arrangements have the same: two of them, by `turn`.
fn states_checked(name: &str, plan: &Plan, capture: &Capture, turn: usize) -> Vec<Vec<u8>> {
    let own = states(plan, capture);
    let shown = |states: &[Vec<u8>]| -> Vec<_> {
        let shown = |state: &Vec<u8>| {
            let Merged { header, report, .. } = merged(std::slice::from_ref(state));
            let spans = header.runs.values().map(|run| run.parts.clone()).collect::<Vec<_>>();
            let Report { packets, sections, .. } = report;
            (spans, packets, sections.talkers, sections.applications, sections.names)
        };
        states.iter().map(shown).collect()
    };
    let expected = shown(&own[..own.len().min(MOST_PARTS)]);
    let request = Request { run: plan.options.clone(), app: plan.app.clone() };
    for (turn, skeleton) in skeletons().cycle().enumerate().skip(2 * turn).take(2) {
        let ring = Ring::ALL[turn % Ring::ALL.len()];
        let shape = (1 + turn % 2, 2 + turn % 2);
        let request = request.clone().app(|app| app.max_flows = None);
        let other = states(&parallel(request, skeleton, shape, ring, (64, 8)), capture);
        assert_eq!(other.len(), own.len(), "{name}: {skeleton}");
        for (number, (own, other)) in expected.iter().zip(shown(&other)).enumerate() {
            assert_eq!(&other, own, "{name}: {skeleton}, part {number}");
        }
    }
    own
}

/// The seconds from the first to the last packet.
fn seconds(path: &Path) -> u64 {
    let (mut files, mut times) = (Capture::File(path.to_owned()).open(), [u64::MAX, 0]);
    while files.burst(256, |frame| {
        times = [times[0].min(frame.ts_ns), times[1].max(frame.ts_ns)];
    }) > 0
    {}
    times[1].saturating_sub(times[0]) / SECOND
}

#[test]
fn states_of_real_captures_have_the_packets_of_their_intervals() {
    let Some(folder) = traces() else { return };
    let mut compared = Compared::default();
    let mut captures = 0;
    for folder in [folder.clone(), folder.join("applications")] {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.to_string_lossy().contains("pcap") && seconds(path) > 60);
        files.sort();
        for (turn, path) in files.iter().enumerate() {
            let interval_ns = [60, 10, 7][turn % 3] * SECOND;
            let own = compare(
                &path.display().to_string(),
                &Capture::File(path.clone()),
                interval_ns,
                turn,
            );
            compared.parts += own.parts;
            compared.windows += own.windows;
            compared.named += own.named;
            captures += 1;
        }
    }
    let Compared { parts, windows, named } = compared;
    println!("{captures} captures: {parts} parts, {windows} windows, {named} labels and names");
    assert!(captures > 20 && parts > 200 && windows > 100 && named > 100);
}

/// Constant, bursty and on-off traffic of long and short flows, with names.
#[test]
fn states_of_generated_traffic_have_the_packets_of_their_intervals() {
    let mut named = 0;
    for (turn, (name, steady)) in
        [("mix", true), ("mix", false), ("applications", false), ("scans", true)]
            .into_iter()
            .enumerate()
    {
        let mut profile = profile(name, 20_000, [300, 6_000][turn % 2]);
        (profile.duration_ns, profile.steady) = (200 * SECOND, steady);
        let (bytes, _) = generate(&profile, 5 + turn as u64);
        let interval_ns = [120 * SECOND, 10 * SECOND, 2_500_000_000][turn % 3];
        let compared = compare(name, &Capture::Bytes(bytes), interval_ns, turn);
        assert!(compared.windows > 1, "{name}");
        named += compared.named;
    }
    assert!(named > 20, "{named}");
    let capture = on_off();
    for (turn, interval_ns) in [60 * SECOND, 7 * SECOND, 700_000_000].into_iter().enumerate() {
        let compared = compare("on-off", &capture, interval_ns, turn);
        assert!(compared.windows > 3);
    }
}

/// A UDP packet of a client.
fn packet(client: u8, len: usize) -> Vec<u8> {
    let mut frame = [&[2; 12][..], &[8, 0, 0x45, 0]].concat();
    frame.extend((len as u16 + 28).to_be_bytes());
    frame.extend([0, client, 0, 0, 64, 17, 0, 0, 10, 0, 0, client, 192, 0, 2, 1]);
    frame.extend([0x9c, client, 0, 53]);
    frame.extend((len as u16 + 8).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(vec![0; len]);
    frame
}

fn written(packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Capture {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType::ETHERNET, u32::MAX);
    for (ts_ns, frame) in packets {
        writer.write(ts_ns, frame.len() as u32, &frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    Capture::Bytes(bytes)
}

/// Flows with a packet each second, in bursts of 10 of 40 seconds, and of packets minutes apart, of which none moves the
/// clock alone.
fn on_off() -> Capture {
    let mut packets = Vec::new();
    for second in 0..300 {
        packets.push((second, 1, 100));
        if second % 40 < 10 {
            (0..5).for_each(|_| packets.push((second, 2, 1_000)));
        }
        if second % 7 == 0 {
            packets.push((second, 3 + (second / 7) as u8, 50));
        }
    }
    packets.extend((3..20).map(|number| (number * 130, 200 + number as u8 % 3, 80)));
    let begin = 1_700_000_001 * SECOND;
    packets.sort_by_key(|packet| packet.0);
    written(packets.into_iter().enumerate().map(|(number, (second, client, len))| {
        (begin + second * SECOND + number as u64 % 1000, packet(client, len))
    }))
}

/// The sums of all parts are those of the packets, and equal in every arrangement, when times are out of order or step
/// back; `compare` checks both.
#[test]
fn clocks_that_step_back_lose_nothing() {
    let begin = 1_700_000_000 * SECOND;
    let time = |number: u64| {
        let second = begin + number * SECOND / 10;
        match number {
            // An hour back, then a few packets late, then one far ahead.
            1_500.. => second - 3_600 * SECOND,
            700..720 => second - 12 * SECOND,
            900 => second + 40_000 * SECOND,
            _ => second,
        }
    };
    let capture =
        written((0..3_000).map(|number| (time(number), packet((number % 11) as u8, 100))));
    let plan = reference(request_of(10 * SECOND, false));
    for turn in 0..3 {
        let states = states_checked("step back", &plan, &capture, turn);
        assert!(states.len() > 20, "{}", states.len());
    }
    for (turn, interval_ns) in [10 * SECOND, 60 * SECOND, 2_500_000_000].into_iter().enumerate() {
        compare("step back", &capture, interval_ns, turn);
    }
}

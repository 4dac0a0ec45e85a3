//! Cuts against the same table without cuts, and slices against the packets.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use ringtap_stage::Attachments;
use ringtap_wire::{Flags, Path};

use super::*;
use crate::{EndReason, FlowStatistics, Part, Slice};

const SECOND: u64 = Timeouts::SECOND;
const EVERY: u64 = 10 * SECOND;
const KEY: HashKey = HashKey::from_seed(3);

/// The unknown path, one, its mirror, and another one.
static PATHS: LazyLock<Arc<Paths>> = LazyLock::new(|| {
    let paths = Paths::new();
    let one = Path { macs: [[1; 6], [2; 6]], ..Path::default() };
    let other = Path { vlan_tags: 1, vlans: [7, 0], ..one };
    [one, one.reversed(), other].iter().for_each(|path| assert!(paths.number(path) > 0));
    Arc::new(paths)
});

/// The parts, the slices and the whole flows that a table reported, in order.
#[derive(Default)]
struct Reports {
    parts: Vec<FlowRecord>,
    slices: Vec<(FlowRecord, bool)>,
    whole: Vec<FlowRecord>,
    /// What was in no slice before the flows were forced to end.
    unsliced: Vec<FlowRecord>,
}

impl Observer for Reports {
    fn counted(&mut self, _: &PacketRecord, _: &mut u16) {}
    fn late(&mut self, _: &PacketRecord, _: u16) {}
    fn part(&mut self, record: &FlowRecord) {
        self.parts.push(record.clone());
    }
    fn slice(&mut self, record: &FlowRecord, of: Slice) {
        self.slices.push((record.clone(), of == Slice::Whole));
    }
    fn ended(&mut self, record: &FlowRecord, _: u16) {
        self.whole.push(FlowRecord { part: None, ..record.clone() });
    }
}

/// What happens in a test: a packet, with a fact if there is one, or a mark.
#[derive(Clone, Debug)]
enum Step {
    Packet { flow: u8, back: bool, flags: u8, fact: Option<(Kind, u8)> },
    Mark,
}

fn packet(ts_ns: u64, flow: u8, back: bool, tcp_flags: u8) -> PacketRecord {
    let mut packet = PacketRecord { ts_ns, ..PacketRecord::EMPTY };
    let (src, dst) = if back { (2, 1) } else { (1, 2) };
    (packet.src[0], packet.dst[0]) = (src, dst);
    (packet.src_port, packet.dst_port) = if back { (80, flow.into()) } else { (flow.into(), 80) };
    packet.protocol = if flow.is_multiple_of(3) { 17 } else { 6 };
    packet.tcp_flags = if packet.protocol == 6 { tcp_flags } else { 0 };
    packet.ip_len = 40 + (ts_ns / 7 % 90) as u32;
    (packet.ttl, packet.tos) = (60 + (ts_ns / 11 % 5) as u8, (ts_ns / 13 % 7) as u8);
    packet.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0 | Flags::DATA.0);
    if packet.protocol == 17 && (ts_ns / 19).is_multiple_of(3) {
        packet.flags.insert(Flags::IRREGULAR);
    }
    packet.pair_hash = KEY.pair(&packet.src, &packet.dst);
    packet.path = (ts_ns / 17 % 4) as u16;
    if packet.protocol == 6 {
        let number = (ts_ns / 3 % 600) as u32;
        let (data_len, window) = (number % 4 * 10, (ts_ns / 5 % 3) as u16);
        packet.flags = Flags(packet.flags.0 | Flags::SEGMENT.0);
        Segment { sequence: number, acknowledgment: number / 2, data_len, window }.put(&mut packet);
    }
    packet
}

fn run(steps: &[(u64, Step)], metering: Metering, capacity: usize) -> Reports {
    run_sliced(steps, metering, capacity, None)
}

fn run_sliced(
    steps: &[(u64, Step)],
    metering: Metering,
    capacity: usize,
    slice_ns: Option<u64>,
) -> Reports {
    run_twice(steps, metering, capacity, slice_ns, None)
}

/// At the step `other_at`, another table takes up the flows.
fn run_twice(
    steps: &[(u64, Step)],
    metering: Metering,
    capacity: usize,
    slice_ns: Option<u64>,
    other_at: Option<usize>,
) -> Reports {
    let new = || {
        FlowTable::new(capacity, &metering, KEY, Arc::clone(&PATHS))
            .with_tcp(true)
            .with_slices(slice_ns)
            .with_statistics(Some(7), 0, usize::MAX)
    };
    let mut table = new();
    let mut reports = Reports::default();
    let mut last_ns = 0;
    for (at, (ts_ns, step)) in steps.iter().enumerate() {
        if other_at == Some(at) {
            let mut other = new();
            while !table.is_empty() {
                table.keep(0, 2, &mut reports, &mut |flow| {
                    let facts = flow.record.facts.bytes();
                    let mut stored = OpenFlow::from_canonical(&flow.canonical(), facts).unwrap();
                    let statistics = flow.record.statistics.as_ref().map(|own| own.bytes());
                    stored.record.statistics = statistics
                        .map(|bytes| Box::new(FlowStatistics::split_from(&bytes).unwrap().0));
                    assert_eq!(stored, flow);
                    assert!(other.restore(&stored));
                });
            }
            table = other;
        }
        match step {
            Step::Packet { flow, back, flags, fact } => {
                let mut attachments = Attachments::default();
                if let Some((kind, value)) = fact {
                    assert!(attachments.push(0, *kind as u8, &[*value; 3]));
                }
                let packets = [packet(*ts_ns, *flow, *back, *flags)];
                table.burst(&packets, &attachments, &mut reports);
            }
            // As a worker does when a clock is set back.
            Step::Mark if *ts_ns < last_ns => {
                while !table.is_empty() {
                    table.drain(0, 2, &mut reports);
                }
                last_ns = *ts_ns;
            }
            Step::Mark => {
                while !table.sweep(*ts_ns, 2, &mut reports) {}
                last_ns = *ts_ns;
            }
        }
    }
    let sliced = reports.slices.len();
    table.each_unsliced(|record| reports.unsliced.push(record.clone()));
    while !table.is_empty() {
        table.drain(last_ns, 2, &mut reports);
    }
    let (last, unsliced) = (&reports.slices[sliced..], &reports.unsliced);
    assert!(slice_ns.is_none() || sums(last.iter().map(|(record, _)| record)) == sums(unsliced));
    assert_eq!(table.v4.fact_bytes + table.v6.fact_bytes, 0);
    reports
}

/// The records without cuts, from parts alone: as a reader of files would join them.
fn joined(parts: &[FlowRecord]) -> Vec<FlowRecord> {
    let mut flows: Vec<Vec<FlowRecord>> = Vec::new();
    for part in parts {
        let at = part.part.expect("a part");
        if at.number == 0 {
            flows.push(vec![part.clone()]);
            continue;
        }
        let same = |flow: &&mut Vec<FlowRecord>| {
            let before = flow[flow.len() - 1].part.map(|before| before.number + 1);
            let first = flow[0].part.map(|first| first.flow_first_ns);
            flow[0].key == part.key && first == Some(at.flow_first_ns) && before == Some(at.number)
        };
        flows.iter_mut().rev().find(same).expect("an earlier part").push(part.clone());
    }
    flows.into_iter().filter_map(FlowRecord::of_parts).collect()
}

fn sorted(mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    records.sort();
    records
}

/// Packets and octets by interval, sender, receiver and protocol.
type Sums = BTreeMap<(u64, [u16; 2], u8), [u64; 2]>;

const SLICE: u64 = 4 * SECOND;

fn add(sums: &mut Sums, key: (u64, [u16; 2], u8), [packets, octets]: [u64; 2]) {
    let sum = sums.entry(key).or_default();
    *sum = [sum[0] + packets, sum[1] + octets];
}

/// The sums of slices.
fn sums<'a>(slices: impl IntoIterator<Item = &'a FlowRecord>) -> Sums {
    let mut all = Sums::new();
    for slice in slices {
        let interval = slice.first_ns / SLICE;
        assert_eq!(interval, slice.last_ns / SLICE, "{slice:?}");
        let key = &slice.key;
        for (side, ports) in [[key.src_port, key.dst_port], [key.dst_port, key.src_port]]
            .into_iter()
            .enumerate()
            .filter(|&(side, _)| slice.packets[side] > 0)
        {
            let sum = [slice.packets[side], slice.octets[side]];
            add(&mut all, (interval, ports, key.protocol), sum);
        }
    }
    all
}

/// The sums of the packets themselves.
fn of_packets(steps: &[(u64, Step)]) -> Sums {
    let mut all = Sums::new();
    for (ts_ns, step) in steps {
        if let Step::Packet { flow, back, flags, .. } = step {
            let packet = packet(*ts_ns, *flow, *back, *flags);
            let key = (ts_ns / SLICE, [packet.src_port, packet.dst_port], packet.protocol);
            add(&mut all, key, [1, packet.ip_len.into()]);
        }
    }
    all
}

/// Packets and marks, mostly forward in time, sometimes late, sometimes after a step back.
fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let flags =
        prop_oneof![6 => Just(16_u8), 2 => Just(2), 1 => Just(18), 1 => Just(17), 1 => Just(4)];
    let kinds =
        prop_oneof![Just(Kind::DnsQueryName), Just(Kind::TlsServerName), Just(Kind::TlsVersion)];
    let fact = proptest::option::weighted(0.3, (kinds, 0..24_u8));
    let packet = (0..6_u8, any::<bool>(), flags, fact)
        .prop_map(|(flow, back, flags, fact)| Step::Packet { flow, back, flags, fact });
    let step = prop_oneof![8 => packet, 1 => Just(Step::Mark)];
    let moves = prop_oneof![
        20 => 0..3 * SECOND as i64,
        3 => -2 * SECOND as i64..0,
        1 => 0..40 * SECOND as i64,
        1 => -30 * SECOND as i64..0,
    ];
    proptest::collection::vec((moves, step), 1..300).prop_map(|steps| {
        let mut now = 1_000 * SECOND as i64;
        let at = |(moved, step): (i64, Step)| {
            now += moved;
            (now as u64, step)
        };
        steps.into_iter().map(at).collect()
    })
}

proptest! {
    #[test]
    fn parts_are_the_flows_without_cuts(
        steps in steps(),
        uniflow in any::<bool>(),
        active in prop_oneof![Just(u64::MAX), Just(25 * SECOND)],
        capacity in prop_oneof![Just(64_usize), Just(3)],
    ) {
        let timeouts = Timeouts { active_ns: active, ..Timeouts::default() };
        let metering = Metering { timeouts, uniflow, ..Metering::default() };
        let plain = run(&steps, metering, capacity);
        prop_assert!(plain.parts.is_empty());
        let cut = run(&steps, Metering { cut_ns: Some(EVERY), ..metering }, capacity);
        prop_assert_eq!(&cut.whole, &plain.whole);
        prop_assert_eq!(sorted(joined(&cut.parts)), sorted(plain.whole));
        for part in &cut.parts {
            prop_assert_eq!(part.first_ns / EVERY, part.last_ns / EVERY, "{:?}", part);
        }
    }
}

proptest! {
    #[test]
    fn flows_continue_in_another_table(
        steps in steps(),
        uniflow in any::<bool>(),
        cut_ns in prop_oneof![Just(None), Just(Some(EVERY))],
        slice_ns in prop_oneof![Just(None), Just(Some(SLICE))],
        other_at in any::<prop::sample::Index>(),
    ) {
        let metering = Metering { uniflow, cut_ns, ..Metering::default() };
        let plain = run_sliced(&steps, metering, 64, slice_ns);
        let other_at = Some(other_at.index(steps.len()));
        let twice = run_twice(&steps, metering, 64, slice_ns, other_at);
        prop_assert_eq!(sorted(joined(&twice.parts)), sorted(joined(&plain.parts)));
        prop_assert_eq!(sorted(twice.whole), sorted(plain.whole));
        if slice_ns.is_some() {
            prop_assert_eq!(sums(twice.slices.iter().map(|(slice, _)| slice)), of_packets(&steps));
        }
    }
}

proptest! {
    /// Stored bytes may be any; what is a flow is counted on without overflow.
    #[test]
    fn damaged_flows_are_refused_or_continued(
        steps in steps(),
        cut_ns in prop_oneof![Just(None), Just(Some(EVERY))],
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let metering = Metering { cut_ns, ..Metering::default() };
        let new = || FlowTable::new(64, &metering, KEY, Arc::clone(&PATHS)).with_tcp(true);
        let (mut table, mut other, mut reports) = (new(), new(), Reports::default());
        let feed = |table: &mut FlowTable, reports: &mut Reports| {
            for (ts_ns, step) in &steps {
                if let Step::Packet { flow, back, flags, .. } = step {
                    let packets = [packet(*ts_ns, *flow, *back, *flags)];
                    table.burst(&packets, &Attachments::default(), reports);
                }
            }
        };
        feed(&mut table, &mut reports);
        while !table.is_empty() {
            table.keep(0, 64, &mut reports, &mut |flow| {
                let mut bytes = flow.canonical();
                for (at, byte) in &changes {
                    bytes[at.index(OpenFlow::CANONICAL_LEN)] = *byte;
                }
                if let Some(flow) = OpenFlow::from_canonical(&bytes, flow.record.facts.bytes()) {
                    other.restore(&flow);
                }
            });
        }
        feed(&mut other, &mut reports);
        while !other.is_empty() {
            other.drain(u64::MAX, 64, &mut reports);
        }
    }
}

proptest! {
    #[test]
    fn slices_are_the_packets_of_each_interval(
        steps in steps(),
        uniflow in any::<bool>(),
        cut_ns in prop_oneof![Just(None), Just(Some(EVERY)), Just(Some(SECOND))],
        active in prop_oneof![Just(u64::MAX), Just(25 * SECOND)],
        capacity in prop_oneof![Just(64_usize), Just(3)],
    ) {
        let timeouts = Timeouts { active_ns: active, ..Timeouts::default() };
        let metering = Metering { timeouts, uniflow, cut_ns, ..Metering::default() };
        let plain = run(&steps, metering, capacity);
        let sliced = run_sliced(&steps, metering, capacity, Some(SLICE));
        prop_assert_eq!(&sliced.whole, &plain.whole);
        prop_assert_eq!(&sliced.parts, &plain.parts);
        prop_assert_eq!(sums(sliced.slices.iter().map(|(slice, _)| slice)), of_packets(&steps));
        // The record of a flow in one slice follows it.
        let whole: Vec<_> = sliced.slices.iter().filter(|(_, is_whole)| *is_whole).collect();
        for (slice, _) in &whole {
            prop_assert!(sliced.whole.contains(slice), "{:?}", slice);
        }
        prop_assert!(whole.len() <= sliced.whole.len());
    }
}

/// At a mark only flows with packets that no slice has are sliced.
#[test]
fn a_mark_slices_only_flows_with_packets() {
    let at = |ts_s: u64, flow: u8| {
        (ts_s * SECOND, Step::Packet { flow, back: false, flags: 16, fact: None })
    };
    let mark = |ts_s: u64| (ts_s * SECOND, Step::Mark);
    let steps = [at(1_001, 1), at(1_002, 2), mark(1_004), at(1_005, 1), mark(1_008), mark(1_012)];
    let reports = run_sliced(&steps, Metering::default(), 64, Some(SLICE));
    let shown = |(slice, is_whole): &(FlowRecord, bool)| {
        assert!(!is_whole && slice.end_reason == EndReason::Active);
        (slice.key.src_port, slice.first_ns / SLICE, slice.packets[0])
    };
    let mut shown: Vec<_> = reports.slices.iter().map(shown).collect();
    shown.sort_unstable();
    assert_eq!(shown, [(1, 250, 1), (1, 251, 1), (2, 250, 1)]);
}

/// A mark reports what is live and had packets, once.
#[test]
fn a_mark_cuts_only_flows_with_packets() {
    let at = |ts_s: u64, flow: u8| {
        (ts_s * SECOND, Step::Packet { flow, back: false, flags: 16, fact: None })
    };
    let mark = |ts_s: u64| (ts_s * SECOND, Step::Mark);
    let steps = [at(1_001, 1), at(1_002, 2), mark(1_010), at(1_012, 1), mark(1_020), mark(1_030)];
    let metering = Metering { cut_ns: Some(EVERY), ..Metering::default() };
    let reports = run(&steps, metering, 64);
    let mut shown: Vec<_> = reports
        .parts
        .iter()
        .map(|part| {
            (part.key.src_port, part.part.map(|part| part.number), part.packets[0], part.end_reason)
        })
        .collect();
    let [one, two] = [1, 2].map(|flow| (flow, Some(0), 1, EndReason::Active));
    let [silent, later] = [(2, Some(1), 0, EndReason::Forced), (1, Some(1), 1, EndReason::Active)];
    shown.sort();
    assert_eq!(shown, [one, later, (1, Some(2), 0, EndReason::Forced), two, silent]);
}

/// A packet that is late for its part is a part of its own, in its own window.
#[test]
fn a_late_packet_is_in_its_window() {
    let at =
        |ts_s: u64| (ts_s * SECOND, Step::Packet { flow: 1, back: false, flags: 16, fact: None });
    let steps = [at(1_008), at(1_011), at(1_009), at(1_012)];
    let metering = Metering { cut_ns: Some(EVERY), ..Metering::default() };
    let reports = run(&steps, metering, 64);
    let times: Vec<_> =
        reports.parts.iter().map(|part| (part.first_ns / SECOND, part.last_ns / SECOND)).collect();
    assert_eq!(times, [(1_008, 1_008), (1_011, 1_011), (1_009, 1_009), (1_012, 1_012)]);
    let flow = Part { number: 3, flow_first_ns: 1_008 * SECOND };
    assert_eq!(reports.parts[3].part, Some(flow));
    assert_eq!((reports.whole.len(), reports.whole[0].packets[0]), (1, 4));
}

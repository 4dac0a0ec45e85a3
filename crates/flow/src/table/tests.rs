//! The table against an oracle without hashing, groups or reuse of entries.

use proptest::prelude::*;
use ringtap_stage::Attachments;
use ringtap_wire::Flags;

use super::*;
use crate::{EndReason, History, Initiator};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const TCP: u8 = 6;
const SECOND: u64 = Timeouts::SECOND;

#[derive(Default)]
struct Records(Vec<FlowRecord>, u64);

impl Observer for Records {
    fn counted(&mut self, _: &PacketRecord, stamp: &mut u16) {
        *stamp = stamp.saturating_add(1);
        self.1 += 1;
    }
    fn late(&mut self, _: &PacketRecord, stamp: u16) {
        assert!(stamp > 0);
        self.1 += 1;
    }
    fn ended(&mut self, record: &FlowRecord, stamp: u16) {
        assert!(stamp > 0);
        self.0.push(record.clone());
    }
}

fn packet(
    key: HashKey,
    ts_ns: u64,
    from: u8,
    to: u8,
    ports: (u16, u16),
    flags: u8,
) -> PacketRecord {
    let mut p = PacketRecord::EMPTY;
    p.ts_ns = ts_ns;
    p.src[0] = from;
    p.dst[0] = to;
    (p.src_port, p.dst_port) = ports;
    p.protocol = TCP;
    p.tcp_flags = flags;
    p.ip_len = 40 + (ts_ns / SECOND % 3) as u32;
    (p.ttl, p.tos) = (60 + (ts_ns / SECOND % 5) as u8, (ts_ns / SECOND % 7) as u8);
    p.flags = Flags(
        Flags::IPV4.0 | Flags::PORTS.0 | if ts_ns.is_multiple_of(2) { Flags::DATA.0 } else { 0 },
    );
    p.pair_hash = key.pair(&p.src, &p.dst);
    p
}

fn run(packets: &[PacketRecord], capacity: usize, bursts: usize) -> Vec<FlowRecord> {
    let mut table =
        FlowTable::new(capacity, &Metering::default(), HashKey::from_seed(9), Arc::default());
    let mut records = Records::default();
    for burst in packets.chunks(bursts.max(1)) {
        table.burst(burst, Attachments::NONE, &mut records);
    }
    let end = packets.iter().map(|p| p.ts_ns).max().unwrap_or(0);
    let (live, mut alive) = (table.len() as u64, 0);
    while !table.is_empty() {
        alive += table.drain(end, 3, &mut records);
    }
    let idle = records.0.iter().rev().take(live as usize);
    assert!(
        alive <= live
            && idle.filter(|r| r.end_reason == EndReason::Idle).count() as u64 <= live - alive
    );
    assert_eq!(records.1, packets.len() as u64);
    records.0.sort();
    records.0
}

/// Facts belong to the flow of their packet, also if the next packet of the burst ends it and if
/// the entry moves; their memory is released.
#[test]
fn records_get_their_applications_from_the_list() {
    let key = HashKey::from_seed(1);
    let packets = [packet(key, 1, 1, 2, (50_000, 443), SYN), packet(key, 2, 1, 3, (1, 2), SYN)];
    let names = Arc::new(Names::parse(b"example.org example").unwrap());
    let labels = |names: Option<&Arc<Names>>| {
        let paths = Arc::new(Paths::new());
        let mut table = FlowTable::new(8, &Metering::default(), key, paths);
        if let Some(names) = names {
            table = table.with_names(Arc::clone(names));
        }
        let mut records = Records::default();
        table.burst(&packets, &Attachments::default(), &mut records);
        while !table.is_empty() {
            table.drain(3, 10, &mut records);
        }
        records.0.sort();
        let label = |record: &FlowRecord| Some(record.application?.label.as_str().to_owned());
        records.0.iter().map(label).collect::<Vec<_>>()
    };
    assert_eq!(labels(Some(&names)), [Some("https".to_owned()), None]);
    assert_eq!(labels(None), [None, None]);
}

#[test]
fn facts_leave_with_their_flow() {
    let packet_of = |port: u16, ts_ns: u64, flags: u8| {
        packet(HashKey::from_seed(9), ts_ns, 1, 2, (port, 53), flags)
    };
    let packets = [
        packet_of(1, 1, 0),
        packet_of(2, 1, 0),
        packet_of(3, 1, 0),
        packet_of(2, 40 * SECOND, 0),
        packet_of(2, 41 * SECOND, 0),
    ];
    let mut attachments = Attachments::default();
    for (item, value) in [(0, "one"), (0, "uno"), (1, "two"), (3, "later"), (4, "later")] {
        assert!(attachments.push(item, Kind::DnsQueryName as u8, value.as_bytes()));
    }
    let metering = Metering::default();
    let mut table = FlowTable::new(10, &metering, HashKey::from_seed(9), Arc::default());
    let mut records = Records::default();
    table.burst(&packets, &attachments, &mut records);
    assert_eq!(table.fact_counts().kept[Kind::DnsQueryName as usize], 4);
    while !table.sweep(41 * SECOND, 1, &mut records) {}
    while !table.is_empty() {
        table.drain(0, 1, &mut records);
    }
    let facts = |record: &FlowRecord| {
        let names = record.facts.values(Kind::DnsQueryName);
        (
            record.key.src_port,
            names.map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        )
    };
    let mut found: Vec<(u16, Vec<String>)> = records.0.iter().map(facts).collect();
    found.sort();
    let expected: [(u16, &[&str]); 4] =
        [(1, &["one", "uno"]), (2, &["later"]), (2, &["two"]), (3, &[])];
    assert_eq!(
        found,
        expected.map(|(port, names)| (port, names.iter().map(|n| n.to_string()).collect()))
    );
    assert_eq!(table.v4.fact_bytes, 0);
}

/// The client is the sender of the SYN, whatever the ports and whatever the reader assumed.
#[test]
fn the_side_of_a_fact_follows_from_the_syn() {
    let key = HashKey::from_seed(9);
    let to_server = |ts_ns, flags| packet(key, ts_ns, 1, 2, (40_000, 50_022), flags);
    let to_client = |ts_ns, flags| packet(key, ts_ns, 2, 1, (50_022, 40_000), flags);
    let [syn, answer] = [to_server(1, SYN), to_client(2, SYN | ACK)];
    let lines = [to_client(4, ACK), to_server(6, ACK)];
    let run = |packets: &[PacketRecord], uniflow: bool| {
        let mut attachments = Attachments::default();
        // As by the ports.
        let lines = [(Kind::SshServer, b"client"), (Kind::SshClient, b"server")];
        for (item, packet) in packets.iter().enumerate().filter(|(_, packet)| packet.ts_ns > 2) {
            let (kind, line) = lines[usize::from(packet.src_port == 50_022)];
            assert!(attachments.push(item, kind as u8, line));
        }
        let metering = Metering { uniflow, ..Metering::default() };
        let mut table = FlowTable::new(10, &metering, key, Arc::default());
        let mut records = Records::default();
        table.burst(packets, &attachments, &mut records);
        let sides = table.sides().to_vec();
        while !table.is_empty() {
            table.drain(0, 1, &mut records);
        }
        let mut facts: Vec<_> = records
            .0
            .iter()
            .flat_map(|record| record.facts.all().map(|(kind, line)| (kind, line.to_vec())))
            .collect();
        facts.sort();
        (facts, sides)
    };
    let by_syn = vec![(Kind::SshClient, b"client".to_vec()), (Kind::SshServer, b"server".to_vec())];
    let by_ports =
        vec![(Kind::SshClient, b"server".to_vec()), (Kind::SshServer, b"client".to_vec())];
    for uniflow in [false, true] {
        let all = [syn, answer, lines[0], lines[1]];
        let sides = vec![(2, false), (3, true)];
        assert_eq!(run(&all, uniflow), (by_syn.clone(), sides));
        assert_eq!(run(&lines, uniflow), (by_ports.clone(), vec![]));
    }
    assert_eq!(run(&[syn, lines[0], lines[1]], false).0, by_syn);
    assert_eq!(run(&[answer, lines[0], lines[1]], false).0, by_syn);
}

/// A live flow by the definitions alone.
struct Live {
    record: FlowRecord,
    fin: [bool; 2],
    closed: bool,
}

impl Live {
    fn begin(p: &PacketRecord) -> Self {
        let own = FlowKey::of(p);
        let answer = p.tcp_flags & (SYN | ACK) == SYN | ACK && own != own.reversed();
        let mut record = FlowRecord::new(if answer { own.reversed() } else { own });
        (record.first_ns, record.last_ns) = (p.ts_ns, p.ts_ns);
        record.initiator = match p.tcp_flags & (SYN | ACK) {
            SYN => Initiator::Syn,
            _ if answer => Initiator::SynAck,
            _ => Initiator::FirstPacket,
        };
        Self { record, fin: [false; 2], closed: false }
    }

    fn expired(&self, now_ns: u64) -> Option<EndReason> {
        let timeouts = Timeouts::default();
        let silent_ns = now_ns.saturating_sub(self.record.last_ns);
        match self.closed {
            true => (silent_ns > timeouts.tcp_fin_ns).then_some(EndReason::EndDetected),
            false => (silent_ns > timeouts.tcp_ns).then_some(EndReason::Idle),
        }
    }

    fn ends_before(&self, p: &PacketRecord) -> Option<EndReason> {
        let old = p.ts_ns.saturating_sub(self.record.first_ns) >= Timeouts::default().active_ns;
        let anew = self.closed && p.tcp_flags & (SYN | ACK) == SYN;
        self.expired(p.ts_ns)
            .or(old.then_some(EndReason::Active))
            .or(anew.then_some(EndReason::EndDetected))
    }

    fn count(&mut self, p: &PacketRecord) {
        let record = &mut self.record;
        let side = usize::from(record.key != FlowKey::of(p));
        let len = p.ip_len.min(65_535) as u16;
        if record.packets[side] == 0 {
            (record.ttl[side], record.ip_len[side]) = ([p.ttl; 2], [len; 2]);
            record.tos[side] = p.tos;
            if side == 1 && [1, 58].contains(&p.protocol) {
                record.reverse_icmp_type_code = Some(p.dst_port);
            }
        }
        record.first_ns = record.first_ns.min(p.ts_ns);
        record.last_ns = record.last_ns.max(p.ts_ns);
        record.packets[side] += 1;
        record.octets[side] += u64::from(p.ip_len);
        record.tcp_flags[side] |= p.tcp_flags;
        record.ttl[side] = [record.ttl[side][0].min(p.ttl), record.ttl[side][1].max(p.ttl)];
        record.ip_len[side] = [record.ip_len[side][0].min(len), record.ip_len[side][1].max(len)];
        record.irregular |= p.flags.contains(Flags::IRREGULAR);
        let has = |bits| p.tcp_flags & bits == bits;
        let bare = p.tcp_flags & (SYN | ACK | FIN | RST) == ACK && !p.flags.contains(Flags::DATA);
        let letters = [
            (has(SYN) && !has(ACK), 's'),
            (has(SYN | ACK), 'h'),
            (bare, 'a'),
            (p.flags.contains(Flags::DATA), 'd'),
            (has(FIN), 'f'),
            (has(RST), 'r'),
        ];
        let mut text = record.history.to_string();
        for (_, letter) in letters.iter().filter(|(is, _)| *is) {
            text.push(if side == 0 { letter.to_ascii_uppercase() } else { *letter });
        }
        record.history = History::of(&text);
        self.fin[side] |= has(FIN);
        self.closed |= has(RST) || self.fin == [true; 2];
    }
}

/// One flow at a time, in a list.
fn oracle(packets: &[PacketRecord]) -> Vec<FlowRecord> {
    let mut live: Vec<Live> = Vec::new();
    let mut out = Vec::new();
    for p in packets {
        let key = FlowKey::of(p);
        let is = |flow: &Live| flow.record.key == key || flow.record.key == key.reversed();
        let mut next = Live::begin(p);
        if let Some(at) = live.iter().position(is) {
            let flow = &live[at];
            match flow.ends_before(p) {
                None => next = live.remove(at),
                Some(reason) => {
                    if reason == EndReason::Active {
                        next.record.key = flow.record.key;
                        next.record.initiator = flow.record.initiator;
                        (next.fin, next.closed) = (flow.fin, flow.closed);
                    }
                    out.push(FlowRecord { end_reason: reason, ..live.remove(at).record });
                }
            }
        }
        next.count(p);
        live.push(next);
    }
    let end = packets.iter().map(|p| p.ts_ns).max().unwrap_or(0);
    for flow in live {
        let rest = if flow.closed { EndReason::EndDetected } else { EndReason::Forced };
        let end_reason = flow.expired(end).unwrap_or(rest);
        out.push(FlowRecord { end_reason, ..flow.record });
    }
    out.sort();
    out
}

fn packets() -> impl Strategy<Value = Vec<PacketRecord>> {
    let one = (0u64..20, any::<bool>(), 0u8..4, 0u8..4, 0u16..3, 0u16..3, 0u8..32);
    // Sometimes many in a row, most of them alike.
    let times = prop_oneof![4 => Just(1usize), 1 => 2usize..40];
    prop::collection::vec((one, times), 0..300).prop_map(|steps| {
        let steps = steps.into_iter().flat_map(|(one, times)| {
            let again = (one.0 % 2, one.1, one.2, one.3, one.4, one.5, one.6);
            std::iter::once(one).chain(std::iter::repeat_n(again, times - 1))
        });
        let key = HashKey::from_seed(9);
        let mut now = 100 * SECOND;
        steps
            .into_iter()
            .map(|(step, back, from, to, a, b, flags)| {
                // Mostly forward, sometimes out of order.
                now += step * SECOND;
                let ts = if back { now - step * SECOND / 2 } else { now };
                packet(key, ts, from, to, (a, b), flags)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn records_equal_the_oracles_whatever_the_burst(packets in packets(), bursts in 1usize..100) {
        prop_assert_eq!(run(&packets, 1000, bursts), oracle(&packets));
    }

    #[test]
    fn a_full_table_loses_no_packet(packets in packets(), capacity in 1usize..6) {
        let records = run(&packets, capacity, 50);
        let total: u64 = records.iter().map(|r| r.packets[0] + r.packets[1]).sum();
        prop_assert_eq!(total, packets.len() as u64);
        prop_assert!(records.iter().all(|r| r.first_ns <= r.last_ns));
    }

    #[test]
    fn a_sweep_between_bursts_changes_no_record(packets in packets(), every in 1usize..40) {
        // In order, so that a late packet cannot continue a flow after a sweep.
        let mut packets = packets;
        packets.sort_by_key(|p| p.ts_ns);
        let mut table = FlowTable::new(1000, &Metering::default(), HashKey::from_seed(9), Arc::default());
        let mut records = Records::default();
        for burst in packets.chunks(every) {
            table.burst(burst, Attachments::NONE, &mut records);
            while !table.sweep(burst[burst.len() - 1].ts_ns, 2, &mut records) {}
        }
        while !table.is_empty() {
            table.drain(packets.last().map_or(0, |last| last.ts_ns), 7, &mut records);
        }
        records.0.sort();
        prop_assert_eq!(records.0, oracle(&packets));
    }
}

#[test]
fn the_last_ack_belongs_to_the_closed_connection() {
    let key = HashKey::from_seed(9);
    let at = |ms: u64| 50 * SECOND + ms * 1_000_000;
    let (ab, ba) = ((1000, 80), (80, 1000));
    let packets = [
        packet(key, at(0), 1, 2, ab, SYN),
        packet(key, at(1), 2, 1, ba, SYN | ACK),
        packet(key, at(2), 1, 2, ab, ACK | FIN),
        packet(key, at(3), 2, 1, ba, ACK | FIN),
        packet(key, at(4), 1, 2, ab, ACK),
        packet(key, at(900), 1, 2, ab, SYN),
    ];
    let records = run(&packets, 10, 6);
    assert_eq!(records.len(), 2);
    assert_eq!((records[0].packets, records[0].end_reason), ([3, 2], EndReason::EndDetected));
    assert_eq!((records[1].packets, records[1].end_reason), ([1, 0], EndReason::Forced));
}

#[test]
fn an_answer_seen_first_does_not_make_the_server_the_initiator() {
    let key = HashKey::from_seed(9);
    let records = run(&[packet(key, SECOND, 2, 1, (80, 1000), SYN | ACK)], 10, 1);
    assert_eq!((records[0].key.src[0], records[0].key.dst_port), (1, 80));
    assert_eq!(records[0].packets, [0, 1]);
}

#[test]
fn the_active_timeout_is_never_exceeded() {
    let key = HashKey::from_seed(9);
    let packets: Vec<_> = (0..60).map(|i| packet(key, i * 7 * SECOND, 1, 2, (5, 6), ACK)).collect();
    for record in run(&packets, 10, 60) {
        assert!(record.last_ns - record.first_ns < Timeouts::default().active_ns, "{record:?}");
    }
}

#[test]
fn counters_do_not_overflow() {
    let key = HashKey::from_seed(9);
    let mut giant = packet(key, SECOND, 1, 2, (5, 6), ACK);
    giant.ip_len = u32::MAX;
    let packets: Vec<_> = (0..70_000)
        .map(|n| if n % 1000 == 0 { giant } else { packet(key, SECOND, 2, 1, (6, 5), ACK) })
        .collect();
    let records = run(&packets, 10, 256);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].packets, [70, 69_930]);
    assert_eq!(records[0].octets, [70 * u64::from(u32::MAX), 69_930 * 41]);
}

#[test]
fn the_active_timeout_holds_with_sweeps_between() {
    let key = HashKey::from_seed(9);
    let timeouts = Timeouts::default();
    let mut table = FlowTable::new(10, &Metering::default(), key, Arc::default());
    let mut records = Records::default();
    let mut due = timeouts.tick_ns();
    for second in 0..1_000 {
        let now = second * SECOND;
        if now >= due {
            while !table.sweep(now, 100, &mut records) {}
            due = now + timeouts.tick_ns();
        }
        table.burst(&[packet(key, now, 1, 2, (5, 6), ACK)], Attachments::NONE, &mut records);
    }
    assert_eq!(records.0.len(), 8);
    for record in records.0 {
        assert_eq!(record.end_reason, EndReason::Active);
        assert_eq!(record.packets, [120, 0]);
    }
}

#[test]
fn all_fragments_of_a_ping_and_its_answer_are_one_flow() {
    let key = HashKey::from_seed(9);
    let ping = |from, to, type_code: u16, flags: Flags| {
        let mut p = packet(key, SECOND, from, to, (0, type_code), 0);
        p.protocol = 1;
        p.flags = Flags(Flags::IPV4.0 | flags.0);
        p
    };
    let packets = [
        ping(1, 2, 8 << 8, Flags::FRAGMENT),
        ping(1, 2, 8 << 8, Flags(Flags::FRAGMENT.0 | Flags::PORTS_FROM_FIRST.0)),
        ping(2, 1, 0, Flags::FRAGMENT),
        ping(2, 1, 0, Flags(Flags::FRAGMENT.0 | Flags::PORTS_FROM_FIRST.0)),
    ];
    let records = run(&packets, 10, 4);
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].packets, records[0].icmp_type_code), ([2, 2], 8 << 8));
    assert_eq!(records[0].reverse_icmp_type_code, Some(0));
    let copy = FlowRecord::from_canonical(&records[0].canonical()).unwrap();
    assert_eq!(copy.reverse_icmp_type_code, Some(0));
}

fn table(metering: &Metering) -> FlowTable {
    FlowTable::new(100, metering, HashKey::from_seed(9), Arc::default())
}

fn all(mut table: FlowTable, packets: &[PacketRecord]) -> Vec<FlowRecord> {
    let mut records = Records::default();
    table.burst(packets, Attachments::NONE, &mut records);
    while !table.is_empty() {
        table.drain(0, 7, &mut records);
    }
    records.0.sort();
    records.0
}

#[test]
fn a_uniflow_has_one_direction() {
    let key = HashKey::from_seed(9);
    let (ab, ba) = ((1000, 80), (80, 1000));
    let packets = [
        packet(key, SECOND, 1, 2, ab, SYN),
        packet(key, SECOND, 2, 1, ba, SYN | ACK),
        packet(key, SECOND, 1, 2, ab, ACK),
    ];
    let records = all(table(&Metering { uniflow: true, ..Metering::default() }), &packets);
    let counts: Vec<_> = records.iter().map(|r| (r.key.src_port, r.packets)).collect();
    assert_eq!(counts, [(1000, [2, 0]), (80, [1, 0])]);
    assert_eq!(all(table(&Metering::default()), &packets).len(), 1);
}

/// Flows that differ in what a packet controls spread over the index with any key: VLANs, directions, ports.
#[test]
fn no_choice_of_tags_and_ports_makes_hashes_collide() {
    const FLOWS: usize = 4_096;
    let paths = Arc::new(Paths::default());
    let number = |outer: u16, inner: u16| {
        let vlans = [outer, inner];
        let path = ringtap_wire::Path { vlan_tags: 2, vlans, ..Default::default() };
        paths.number(&path)
    };
    let tagged = |tags: fn(u16) -> (u16, u16)| {
        let each = move |tag| {
            let (outer, inner) = tags(tag);
            (number(outer, inner), (1_000, 80))
        };
        (0..FLOWS as u16).map(each).collect::<Vec<_>>()
    };
    let kinds = [
        tagged(|tag| (1, tag)),
        tagged(|tag| (tag, 1)),
        tagged(|tag| (tag, tag)),
        (0..FLOWS as u16).map(|port| (0, (port << 4, 80))).collect(),
        (0..FLOWS as u16).map(|port| (0, (port, port))).collect(),
    ];
    for seed in 0..50 {
        let key = HashKey::from_seed(seed);
        for (kind, flows) in kinds.iter().enumerate() {
            for uniflow in [false, true] {
                let metering = Metering { vlan_in_key: true, uniflow, ..Metering::default() };
                let mut table = FlowTable::new(FLOWS, &metering, key, Arc::clone(&paths));
                let hashes: Vec<u32> = flows
                    .iter()
                    .flat_map(|&(path, ports)| [(path, ports, 1), (path, ports, 3)])
                    .take(FLOWS)
                    .map(|(path, ports, from)| {
                        // The second one is the other direction.
                        let packet =
                            PacketRecord { path, ..packet(key, 0, from, 4 - from, ports, SYN) };
                        table.hash(&packet, ports.0, ports.1)
                    })
                    .collect();
                // The longest search in an index, and the most hashes of one tag. With hashes at random these are about 40
                // and 40; both directions share a hash unless each is a flow.
                let distinct =
                    if uniflow { hashes } else { hashes.into_iter().step_by(2).collect() };
                let (mut index, mut tags) = (vec![false; 2 * distinct.len()], [0; 256]);
                let longest = |hash: &u32| {
                    tags[(hash >> 24) as usize] += 1;
                    let mut at = *hash as usize % index.len();
                    let start = at;
                    while std::mem::replace(&mut index[at], true) {
                        at = (at + 1) % index.len();
                    }
                    (at + index.len() - start) % index.len()
                };
                let longest = distinct.iter().map(longest).max().unwrap();
                let of_tag = tags.into_iter().max().unwrap();
                assert!(longest < 200 && of_tag < 100, "{seed}, {kind}: {longest}, {of_tag}");
            }
        }
    }
}

#[test]
fn vlans_are_not_in_the_key_by_default() {
    let key = HashKey::from_seed(9);
    let paths = Arc::new(Paths::new());
    let way = |outer, inner| {
        paths.number(&ringtap_wire::Path {
            vlan_tags: 2,
            vlans: [outer, inner],
            ..Default::default()
        })
    };
    let ways = [way(7, 1), way(8, 1), way(7, 2), way(7, 1)];
    let packets = ways.map(|path| PacketRecord { path, ..packet(key, SECOND, 1, 2, (5, 6), ACK) });
    let flows = |vlan_in_key| {
        let metering = Metering { vlan_in_key, ..Metering::default() };
        let table = FlowTable::new(100, &metering, key, Arc::clone(&paths));
        all(table, &packets).iter().map(|r| (r.path.vlans, r.packets[0])).collect::<Vec<_>>()
    };
    assert_eq!(flows(false), [([7, 1], 4)]);
    let mut three = flows(true);
    three.sort();
    assert_eq!(three, [([7, 1], 2), ([7, 2], 1), ([8, 1], 1)]);
}

/// Each protocol has its own timeout, and a reset connection its grace.
#[test]
fn every_protocol_has_its_own_timeout() {
    let key = HashKey::from_seed(9);
    let timeouts = Timeouts {
        tcp_ns: 10 * SECOND,
        tcp_fin_ns: 2 * SECOND,
        tcp_rst_ns: 3 * SECOND,
        udp_ns: 20 * SECOND,
        icmp_ns: 30 * SECOND,
        general_ns: 40 * SECOND,
        ..Timeouts::default()
    };
    let cases =
        [(6, 0, 10), (6, FIN, 10), (6, RST, 3), (17, 0, 20), (1, 0, 30), (58, 0, 30), (47, 0, 40)];
    for (protocol, flags, seconds) in cases {
        let mut p = packet(key, 100 * SECOND, 1, 2, (5, 6), flags);
        p.protocol = protocol;
        for (later, left) in [(seconds, 1), (seconds + 1, 0)] {
            let mut table = table(&Metering { timeouts, ..Metering::default() });
            let mut records = Records::default();
            table.burst(&[p], Attachments::NONE, &mut records);
            while !table.sweep((100 + later) * SECOND, 10, &mut records) {}
            assert_eq!(table.len(), left, "protocol {protocol}, flags {flags}, {later} s");
        }
    }
}

/// IPv4 and IPv6 share the capacity; evictions come from either.
#[test]
fn both_versions_share_the_capacity() {
    let key = HashKey::from_seed(9);
    let mut table = FlowTable::new(4, &Metering::default(), key, Arc::default());
    let mut records = Records::default();
    for host in 0..40 {
        let mut p = packet(key, SECOND, host, 200, (5, 6), ACK);
        if host % 10 < 5 {
            p.flags = Flags(Flags::IPV6.0 | Flags::PORTS.0);
        }
        table.burst(&[p], Attachments::NONE, &mut records);
        assert!(table.len() <= 4);
    }
    assert_eq!(records.0.len(), 36);
    assert!(records.0.iter().all(|r| r.end_reason == EndReason::LackOfResources));
}

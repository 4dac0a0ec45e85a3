//! Edge cases of scans: the threshold, the order of SYN and SYN-ACK, flags that are neither.

use std::net::IpAddr;

use ringtap_wire::HashKey;

use super::rows::HorizontalScan;
use super::*;
use crate::Options;
use crate::alerts::{Member, ScanId, ScanKind};
use crate::time::Time;

const KEY: HashKey = HashKey::from_seed(5);
const THRESHOLD: u32 = 20;
const SCANNER: u8 = 66;

/// A TCP packet between hosts given by numbers.
fn tcp(ts_ns: u64, from: (u8, u16), to: (u8, u16), tcp_flags: u8) -> PacketRecord {
    let mut packet = PacketRecord::EMPTY;
    packet.ts_ns = ts_ns;
    packet.src[3] = from.0;
    packet.dst[3] = to.0;
    (packet.src_port, packet.dst_port) = (from.1, to.1);
    packet.protocol = TCP;
    packet.tcp_flags = tcp_flags;
    packet.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
    packet
}

fn syn(ts_ns: u64, target: u8, port: u16) -> PacketRecord {
    tcp(ts_ns, (SCANNER, 40_000), (target, port), SYN)
}

fn syn_ack(ts_ns: u64, target: u8, port: u16) -> PacketRecord {
    tcp(ts_ns, (target, port), (SCANNER, 40_000), SYN_ACK)
}

fn context(capacity: u64) -> Context {
    let options = Options {
        scan_threshold: THRESHOLD,
        udp_scan_threshold: 3,
        max_flows: Some(capacity),
        ..Options::default()
    };
    options.context(KEY, Vec::new())
}

/// Workers and their merger.
struct Watched<P> {
    tables: Vec<ScanTable<P>>,
    merger: ScanMerger<P>,
    signals: Vec<Signal>,
}

impl<P: Scanned> Watched<P> {
    fn new(workers: usize, capacity: u64) -> Self {
        let context = context(capacity);
        let table = |index| Analysis::new(&context, Shard { index, count: workers });
        Self {
            tables: (0..workers).map(table).collect(),
            merger: Merge::new(&context),
            signals: Vec::new(),
        }
    }

    /// The target determines the worker of a pair.
    fn see(&mut self, packets: &[PacketRecord]) {
        let workers = self.tables.len();
        for packet in packets {
            let target = if packet.src[3] == SCANNER { packet.dst[3] } else { packet.src[3] };
            self.tables[usize::from(target) % workers].on_packets(&[*packet]);
        }
    }

    fn end_flows(&mut self, records: &[FlowRecord]) {
        let workers = self.tables.len();
        for record in records {
            self.tables[usize::from(record.key.dst[3]) % workers].on_record(record);
        }
    }

    /// All workers reach a mark, the last one first.
    fn mark(&mut self) {
        for table in self.tables.iter_mut().rev() {
            table.on_tick(0).into_iter().for_each(|found| self.merger.merge(found));
        }
        self.merger.on_time(0, &mut |signal| self.signals.push(signal));
    }

    /// The signals since the last call.
    fn take(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.signals)
    }

    fn finish(mut self) -> (Scans, Vec<Signal>) {
        for table in self.tables.into_iter().rev() {
            self.merger.merge_end(table.end());
        }
        let scans = Merge::end(self.merger, &mut |signal| self.signals.push(signal));
        (scans, self.signals)
    }
}

fn scans(packets: &[PacketRecord]) -> Scans {
    let mut watched = Watched::<Tcp>::new(1, 1_000);
    watched.see(packets);
    watched.finish().0
}

/// SYNs to this many ports of one target, a nanosecond apart, the highest port first.
fn ports(count: u16) -> Vec<PacketRecord> {
    (0..count).map(|n| syn(100 + u64::from(n), 1, count - n)).collect()
}

/// SYNs to one port of this many targets.
fn targets(count: u8) -> Vec<PacketRecord> {
    (0..count).map(|n| syn(100 + u64::from(n), count - n, 445)).collect()
}

#[test]
fn a_scan_needs_one_more_than_the_threshold() {
    assert_eq!(scans(&ports(20)), Scans::default());
    assert_eq!(scans(&targets(20)), Scans::default());
    let address = |host| IpAddr::from([0, 0, 0, host]);
    let found = scans(&ports(21));
    let scan = VerticalScan {
        source: address(SCANNER),
        target: address(1),
        ports: 21,
        first: Time(100),
        last: Time(120),
        sample: (1..=10).collect(),
    };
    assert_eq!((found.vertical, found.horizontal), (vec![scan], vec![]));
    let found = scans(&targets(21));
    let scan = HorizontalScan {
        source: address(SCANNER),
        port: 445,
        protocol: "tcp",
        targets: 21,
        first: Time(100),
        last: Time(120),
        sample: (1..=10).map(address).collect(),
    };
    assert_eq!((found.vertical, found.horizontal), (vec![], vec![scan]));
}

fn vertical() -> ScanId {
    let [source, target] = [SCANNER, 1].map(|host| IpAddr::from([0, 0, 0, host]));
    ScanId { kind: ScanKind::Vertical, source, member: Member::Target(target) }
}

fn horizontal(port: u16) -> ScanId {
    let source = IpAddr::from([0, 0, 0, SCANNER]);
    ScanId { kind: ScanKind::Horizontal, source, member: Member::Port(port) }
}

fn scan(scan: ScanId, number: u64, times_ns: [u64; 2], crossed: bool) -> Signal {
    let [first, time] = times_ns.map(Time);
    Signal::Scan { time, scan, number, crossed, first }
}

#[test]
fn late_answers_withdraw_a_scan() {
    let all = |answer: fn(u8) -> PacketRecord| (1..=21).map(answer).collect::<Vec<_>>();
    for (attempts, answers, id) in [
        (ports(21), vec![syn_ack(900, 1, 7)], vertical()),
        (ports(21), all(|port| syn_ack(900, 1, port.into())), vertical()),
        (targets(21), vec![syn_ack(900, 7, 445)], horizontal(445)),
        (targets(21), all(|target| syn_ack(900, target, 445)), horizontal(445)),
    ] {
        for (workers, marked) in [(1, true), (1, false), (3, true), (3, false)] {
            let mut watched = Watched::<Tcp>::new(workers, 1_000);
            watched.see(&attempts);
            watched.mark();
            // The merger may have some of the changes at the next mark.
            watched.mark();
            assert_eq!(watched.take(), [scan(id.clone(), 21, [100, 120], true)]);
            watched.see(&answers);
            if marked {
                watched.mark();
                assert_eq!(watched.take(), [Signal::NoScan(id.clone())]);
            }
            let (scans, rest) = watched.finish();
            assert_eq!(scans, Scans::default());
            let expected = if marked { vec![] } else { vec![Signal::NoScan(id.clone())] };
            assert_eq!(rest, expected, "{workers} workers, {marked}");
        }
    }
}

#[test]
fn an_answer_may_be_seen_before_its_syn() {
    let mut packets = vec![syn_ack(50, 1, 7), syn_ack(51, 1, 9)];
    packets.extend(ports(22));
    assert_eq!(scans(&packets), Scans::default());
    packets.extend([syn(900, 1, 23)]);
    let found = scans(&packets);
    assert_eq!(found.vertical[0].ports, 21);
    assert!(!found.vertical[0].sample.contains(&7));
}

#[test]
fn an_answer_counts_for_its_own_port_and_direction_alone() {
    let mut packets = ports(21);
    packets.push(syn_ack(900, 1, 99));
    packets.push(syn_ack(900, 2, 7));
    // A SYN-ACK that the scanner itself sends.
    packets.push(tcp(900, (SCANNER, 7), (1, 40_000), SYN_ACK));
    assert_eq!(scans(&packets).vertical[0].ports, 21);
}

#[test]
fn retransmissions_count_once_and_move_the_end() {
    let mut packets = ports(20);
    packets.extend(ports(20));
    packets.push(syn(90, 1, 5));
    packets.push(syn(800, 1, 6));
    // Another source port is the same attempt.
    packets.push(tcp(801, (SCANNER, 40_001), (1, 5), SYN));
    assert_eq!(scans(&packets), Scans::default());
    packets.push(syn(500, 1, 21));
    let scan = &scans(&packets).vertical[0];
    assert_eq!((scan.ports, scan.first, scan.last), (21, Time(90), Time(801)));
}

#[test]
fn only_a_plain_syn_is_an_attempt_and_only_a_plain_syn_ack_an_answer() {
    const FIN: u8 = 1;
    const RST: u8 = 4;
    const PSH_URG_ECE_CWR: u8 = 8 | 32 | 64 | 128;
    let flagged = |flags: u8| -> Vec<_> {
        ports(21).into_iter().map(|p| PacketRecord { tcp_flags: flags, ..p }).collect()
    };
    for flags in 0..=u8::MAX {
        let attempts = scans(&flagged(flags)).vertical.len();
        assert_eq!(attempts == 1, flags & !PSH_URG_ECE_CWR == SYN, "{flags:#04x}");
        let mut packets = ports(21);
        packets.push(PacketRecord { tcp_flags: flags, ..syn_ack(900, 1, 7) });
        let answered = scans(&packets).vertical.is_empty();
        assert_eq!(answered, flags & !PSH_URG_ECE_CWR == SYN_ACK, "{flags:#04x}");
    }
    assert_eq!(scans(&flagged(SYN | FIN)), Scans::default());
    assert_eq!(scans(&flagged(SYN | RST)), Scans::default());
    // Nor packets that only resemble TCP: another protocol, or a later fragment.
    let other = |change: fn(&mut PacketRecord)| {
        let mut packets = ports(21);
        packets.iter_mut().for_each(change);
        scans(&packets)
    };
    assert_eq!(other(|p| p.protocol = 17), Scans::default());
    assert_eq!(other(|p| p.flags = Flags::IPV4), Scans::default());
}

#[test]
fn each_change_of_a_scan_is_reported() {
    let mut watched = Watched::<Tcp>::new(1, 1_000);
    watched.see(&ports(20));
    watched.mark();
    assert_eq!(watched.take(), []);
    watched.see(&[syn(300, 1, 21)]);
    watched.mark();
    assert_eq!(watched.take(), [scan(vertical(), 21, [100, 300], true)]);
    watched.mark();
    assert_eq!(watched.take(), []);
    watched.see(&[syn(310, 1, 22)]);
    watched.mark();
    assert_eq!(watched.take(), [scan(vertical(), 22, [100, 310], false)]);
    // Below the threshold, and crossed again.
    watched.see(&[syn_ack(400, 1, 1), syn_ack(401, 1, 2)]);
    watched.mark();
    assert_eq!(watched.take(), [Signal::NoScan(vertical())]);
    watched.see(&[syn(402, 1, 23), syn(403, 1, 24)]);
    watched.mark();
    assert_eq!(watched.take(), [scan(vertical(), 22, [100, 403], true)]);
    watched.see(&targets(30));
    watched.mark();
    // One of them is a further port of the vertical scan.
    let expected =
        [scan(horizontal(445), 30, [100, 129], true), scan(vertical(), 23, [100, 403], false)];
    assert_eq!(watched.take(), expected);
    // Scans that change after the last mark are reported at the end, and so are all others.
    let others = targets(30).into_iter().map(|syn| PacketRecord { dst_port: 446, ..syn });
    watched.see(&others.collect::<Vec<_>>());
    let (scans, signals) = watched.finish();
    assert_eq!(scans.vertical[0].ports, 24);
    let expected = [
        scan(horizontal(445), 30, [100, 129], false),
        scan(horizontal(446), 30, [100, 129], true),
        scan(vertical(), 24, [100, 403], false),
    ];
    assert_eq!(signals, expected);
}

#[test]
fn a_source_that_slowly_crosses_the_threshold_is_reported_at_the_next_mark() {
    for workers in [1, 2, 3, 7] {
        let mut watched = Watched::<Tcp>::new(workers, 1_000);
        for target in 0..40 {
            let crossed = |signal: &&Signal| matches!(signal, Signal::Scan { crossed: true, .. });
            let scans = watched.signals.iter().filter(crossed).count();
            assert_eq!(scans, usize::from(target > 20), "{workers}, {target}");
            watched.see(&[syn(u64::from(target), target, 445)]);
            watched.mark();
        }
        assert_eq!(watched.finish().0.horizontal[0].targets, 40);
    }
}

#[test]
fn a_full_table_counts_what_it_ignores() {
    let mut watched = Watched::<Tcp>::new(1, 30);
    watched.see(&ports(100));
    let found = watched.finish().0;
    assert_eq!((found.vertical[0].ports, found.attempts_ignored), (30, 70));
}

#[test]
fn several_workers_find_what_one_finds() {
    let mut all = ports(50);
    all.extend(targets(60));
    all.push(syn_ack(700, 9, 445));
    let expected = scans(&all);
    assert_eq!((expected.vertical.len(), expected.horizontal[0].targets), (1, 59));
    for workers in [2, 3, 5] {
        let mut watched = Watched::<Tcp>::new(workers, 1_000);
        for packets in all.chunks(13) {
            watched.see(packets);
            watched.mark();
        }
        let (found, signals) = watched.finish();
        let crossed = |signal: &&Signal| matches!(signal, Signal::Scan { crossed: true, .. });
        let scans = signals.iter().filter(crossed).count();
        assert_eq!((found, scans), (expected.clone(), 2), "{workers}");
    }
}

/// A UDP flow of the scanner, perhaps with an answer.
fn udp(ts_ns: u64, target: u8, port: u16, answered: bool) -> FlowRecord {
    let key = ringtap_flow::FlowKey::of(&PacketRecord {
        protocol: 17,
        ..tcp(0, (SCANNER, 40_000), (target, port), 0)
    });
    FlowRecord {
        first_ns: ts_ns,
        last_ns: ts_ns + 5,
        packets: [1, u64::from(answered)],
        ttl: [[64; 2]; 2],
        ..FlowRecord::new(key)
    }
}

#[test]
fn answered_attempts_of_udp_offset_failed_ones() {
    let source = IpAddr::from([0, 0, 0, SCANNER]);
    let kinds = [ScanKind::UdpHorizontal, ScanKind::UdpVertical];
    let id = |kind, member| ScanId { kind, source, member };
    let across = || id(kinds[0], Member::Port(123));
    let down = || id(kinds[1], Member::Target([0, 0, 0, 9].into()));
    for workers in [1, 2, 3, 5] {
        let mut watched = Watched::<Udp>::new(workers, 1_000);
        let sweep = |targets: std::ops::Range<u8>, answered| {
            targets.map(|target| udp(target.into(), target, 123, answered)).collect::<Vec<_>>()
        };
        watched.end_flows(&sweep(1..4, false));
        // The port of the target does not matter for a sweep of another port.
        watched.end_flows(&sweep(4..5, true));
        watched.mark();
        watched.end_flows(&sweep(10..11, false));
        watched.mark();
        assert_eq!(watched.take(), [], "{workers}");
        watched.end_flows(&sweep(11..13, false));
        watched.end_flows(&(1..7).map(|port| udp(100, 9, port, false)).collect::<Vec<_>>());
        watched.end_flows(&[udp(100, 9, 7, true)]);
        // The merger may have some of the changes at the next mark.
        watched.mark();
        watched.mark();
        let expected = [scan(across(), 5, [1, 17], true), scan(down(), 5, [100, 105], true)];
        assert_eq!(watched.take(), expected, "{workers}");
        // One of the failed ones is answered by a later flow: one less, and one more that offsets.
        watched.end_flows(&[udp(200, 1, 123, true), udp(200, 9, 2, true)]);
        watched.mark();
        assert_eq!(watched.take(), [Signal::NoScan(down()), Signal::NoScan(across())]);
        watched.end_flows(&[udp(300, 13, 123, false)]);
        watched.mark();
        assert_eq!(watched.take(), [scan(across(), 4, [1, 305], true)], "{workers}");
        let (scans, _) = watched.finish();
        assert_eq!((scans.vertical.len(), scans.protocol), (0, ScanProtocol::Udp));
        let [sweep] = &scans.horizontal[..] else { panic!("{scans:?}") };
        let sample = [2, 3, 10, 11, 12, 13].map(|host| IpAddr::from([0, 0, 0, host]));
        assert_eq!((sweep.targets, sweep.first, sweep.last), (4, Time(2), Time(305)));
        assert_eq!((&sweep.sample[..], sweep.protocol), (&sample[..], "udp"));
    }
}

#[test]
fn a_full_table_of_udp_counts_what_it_ignores() {
    let mut watched = Watched::<Udp>::new(1, 160);
    watched.end_flows(&(0..100).map(|port| udp(1, 1, port, false)).collect::<Vec<_>>());
    let found = watched.finish().0;
    assert_eq!((found.vertical[0].ports, found.attempts_ignored), (20, 80));
}

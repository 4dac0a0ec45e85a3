//! Scans at their edges: the threshold, the order of SYN and SYN-ACK, flags that are neither.

use std::net::IpAddr;

use super::*;

const KEY: HashKey = HashKey::from_seed(5);
const THRESHOLD: u32 = 20;
const SCANNER: u8 = 66;

/// A TCP packet between hosts given by a number each.
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

/// One worker's table and the merger behind it.
struct Watched {
    table: ScanTable,
    merger: ScanMerger,
    alerts: Vec<Alert>,
}

impl Watched {
    fn new(capacity: usize) -> Self {
        Self {
            table: ScanTable::new(KEY, THRESHOLD, capacity),
            merger: ScanMerger::new(KEY, THRESHOLD, capacity),
            alerts: Vec::new(),
        }
    }

    fn see(&mut self, packets: &[PacketRecord]) {
        let mut sent = Vec::new();
        self.table.on_burst(packets, &mut |message| sent.push(message));
        for message in sent {
            match message {
                Message::Attempted(report) => self.alerts.extend(self.merger.on_attempted(report)),
                Message::Alert(alert) => self.alerts.push(alert),
            }
        }
    }

    fn finish(mut self) -> Scans {
        self.merger.on_findings(self.table.finish());
        self.merger.finish()
    }
}

fn scans(packets: &[PacketRecord]) -> Scans {
    let mut watched = Watched::new(1_000);
    watched.see(packets);
    watched.finish()
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
fn exactly_the_threshold_is_no_scan_and_one_more_is() {
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

#[test]
fn a_late_answer_takes_a_scan_back() {
    for (scan, answer) in [(ports(21), syn_ack(900, 1, 7)), (targets(21), syn_ack(900, 7, 445))] {
        let mut watched = Watched::new(1_000);
        watched.see(&scan);
        assert_eq!(watched.alerts.len(), 1);
        watched.see(&[answer]);
        assert_eq!(watched.finish(), Scans::default());
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
    // From another source port it is the same attempt.
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
    // Nor what only looks like TCP: another protocol, or a later fragment.
    let other = |change: fn(&mut PacketRecord)| {
        let mut packets = ports(21);
        packets.iter_mut().for_each(change);
        scans(&packets)
    };
    assert_eq!(other(|p| p.protocol = 17), Scans::default());
    assert_eq!(other(|p| p.flags = Flags::IPV4), Scans::default());
}

#[test]
fn one_alert_for_each_scan_however_long_it_goes_on() {
    let mut watched = Watched::new(1_000);
    watched.see(&ports(20));
    assert_eq!(watched.alerts, []);
    watched.see(&[syn(300, 1, 21)]);
    let (source, target) = (IpAddr::from([0, 0, 0, SCANNER]), IpAddr::from([0, 0, 0, 1]));
    let alert = Alert::Vertical { source, target, ports: 21, time: Time(300) };
    assert_eq!(watched.alerts, [alert]);
    // Taken back below the threshold and crossed again: the same scan still.
    watched.see(&[syn_ack(400, 1, 1), syn_ack(401, 1, 2), syn(402, 1, 22), syn(403, 1, 23)]);
    watched.see(&ports(100));
    assert_eq!(watched.alerts.len(), 1);
    watched.see(&targets(30));
    let alert = Alert::Horizontal { source, port: 445, targets: 21, time: Time(120) };
    assert_eq!(watched.alerts[1..], [alert]);
    assert_eq!(watched.finish().vertical[0].ports, 98 + 1);
}

#[test]
fn a_full_table_counts_what_it_ignores() {
    let mut watched = Watched::new(30);
    watched.see(&ports(100));
    let found = watched.finish();
    assert_eq!((found.vertical[0].ports, found.attempts_ignored), (30, 70));
}

#[test]
fn two_workers_find_what_one_finds() {
    let mut all = ports(50);
    all.extend(targets(60));
    all.push(syn_ack(700, 9, 445));
    let expected = scans(&all);
    assert_eq!((expected.vertical.len(), expected.horizontal[0].targets), (1, 59));
    let target = |p: &PacketRecord| if p.src[3] == SCANNER { p.dst[3] } else { p.src[3] };
    let mut merger = ScanMerger::new(KEY, THRESHOLD, 1_000);
    // The second worker's reports come first: their order does not matter.
    for worker in [1, 0] {
        let mut table = ScanTable::new(KEY, THRESHOLD, 1_000);
        let own: Vec<_> = all.iter().filter(|p| target(p) % 2 == worker).copied().collect();
        let mut sent = Vec::new();
        table.on_burst(&own, &mut |message| sent.push(message));
        for message in sent {
            if let Message::Attempted(report) = message {
                merger.on_attempted(report);
            }
        }
        merger.on_findings(table.finish());
    }
    assert_eq!(merger.finish(), expected);
}

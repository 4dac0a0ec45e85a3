//! The table against an oracle that knows no hashing, no groups and no reuse of entries.

use proptest::prelude::*;
use ringtap_wire::Flags;

use super::*;

const SECOND: u64 = Timeouts::SECOND;

#[derive(Default)]
struct Records(Vec<FlowRecord>, u64);

impl Observer for Records {
    fn counted(&mut self, _: &PacketRecord, stamp: &mut u16) {
        *stamp = stamp.wrapping_add(1);
        self.1 += 1;
    }
    fn ended(&mut self, record: &FlowRecord) {
        self.0.push(*record);
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
    p.ip_len = 40;
    p.flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
    p.pair_hash = key.pair(&p.src, &p.dst);
    p
}

fn run(packets: &[PacketRecord], capacity: usize, bursts: usize) -> Vec<FlowRecord> {
    let mut table =
        FlowTable::new(capacity, Timeouts::default(), HashKey::from_seed(9), Arc::default());
    let mut records = Records::default();
    for burst in packets.chunks(bursts.max(1)) {
        table.burst(burst, &mut records);
    }
    let end = packets.iter().map(|p| p.ts_ns).max().unwrap_or(0);
    while !table.sweep(end, 3, &mut records) {}
    while !table.drain(3, &mut records) {}
    assert_eq!(records.1, packets.len() as u64);
    records.0.sort();
    records.0
}

/// One flow at a time, by the definitions alone.
fn oracle(packets: &[PacketRecord]) -> Vec<FlowRecord> {
    let timeouts = Timeouts::default();
    let mut live: Vec<FlowEntry> = Vec::new();
    let mut out = Vec::new();
    for p in packets {
        let key = FlowKey::of(p);
        let at = live.iter().position(|e| e.direction(&key).is_some());
        let mut carried = None;
        if let Some(at) = at
            && let Some(reason) = live[at].ends_before(p, &timeouts, 0)
        {
            let old = live.remove(at);
            out.push(old.record(&Paths::new(), reason));
            carried = (reason == EndReason::Active).then_some(old);
        }
        let at = live.iter().position(|e| e.direction(&key).is_some()).unwrap_or_else(|| {
            let mut entry = FlowEntry::new(p, FlowTable::oriented(p, key).0);
            if let Some(old) = carried {
                entry.key = old.key;
                entry.state = old.state & !AGEING;
                entry.closed_ns = old.closed_ns;
            }
            live.push(entry);
            live.len() - 1
        });
        let direction = live[at].direction(&key).unwrap();
        live[at].count(p, direction);
    }
    let end = packets.iter().map(|p| p.ts_ns).max().unwrap_or(0);
    for e in live {
        let closed = e.state & CLOSED != 0;
        let rest = if closed { EndReason::EndDetected } else { EndReason::Forced };
        out.push(e.record(&Paths::new(), e.expired(end, &timeouts).unwrap_or(rest)));
    }
    out.sort();
    out
}

fn packets() -> impl Strategy<Value = Vec<PacketRecord>> {
    let one = (0u64..20, any::<bool>(), 0u8..4, 0u8..4, 0u16..3, 0u16..3, 0u8..32);
    prop::collection::vec(one, 0..300).prop_map(|steps| {
        let key = HashKey::from_seed(9);
        let mut now = 100 * SECOND;
        steps
            .into_iter()
            .map(|(step, back, from, to, a, b, flags)| {
                // Mostly forward, at times out of order.
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
        // In order, so that a swept flow cannot be continued by a late packet.
        let mut packets = packets;
        packets.sort_by_key(|p| p.ts_ns);
        let mut table = FlowTable::new(1000, Timeouts::default(), HashKey::from_seed(9), Arc::default());
        let mut records = Records::default();
        for burst in packets.chunks(every) {
            table.burst(burst, &mut records);
            while !table.sweep(burst[burst.len() - 1].ts_ns, 2, &mut records) {}
        }
        while !table.drain(7, &mut records) {}
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
    assert_eq!(records[0].octets, [70 * u64::from(u32::MAX), 69_930 * 40]);
}

#[test]
fn the_active_timeout_holds_with_sweeps_between() {
    let key = HashKey::from_seed(9);
    let timeouts = Timeouts::default();
    let mut table = FlowTable::new(10, timeouts, key, Arc::default());
    let mut records = Records::default();
    let mut due = timeouts.tick_ns();
    for second in 0..1_000 {
        let now = second * SECOND;
        if now >= due {
            while !table.sweep(now, 100, &mut records) {}
            due = now + timeouts.tick_ns();
        }
        table.burst(&[packet(key, now, 1, 2, (5, 6), ACK)], &mut records);
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
}

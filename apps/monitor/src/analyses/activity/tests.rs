use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proptest::prelude::*;
use ringtap_wire::{Flags, HashKey, PacketRecord};

use super::rows::Activity;
use super::*;
use crate::alerts::{Reached, Signal, Subject};

const SECOND: u64 = 1_000_000_000;

fn packet(key: &HashKey, ts_ns: u64, src: u32, dst: u32, octets: u32) -> PacketRecord {
    let host = |address: u32| {
        let mut host = [0; 16];
        host[..4].copy_from_slice(&address.to_be_bytes());
        host
    };
    let (src, dst) = (host(src), host(dst));
    PacketRecord {
        ts_ns,
        src,
        dst,
        ip_len: octets,
        pair_hash: key.pair(&src, &dst),
        flags: Flags::IPV4,
        protocol: if octets.is_multiple_of(2) { 6 } else { 17 },
        ..PacketRecord::default()
    }
}

/// The result of `shards` workers and a merger for a stream, with marks every `tick` packets.
fn observe(
    packets: &[PacketRecord],
    shards: usize,
    tick: usize,
    interval_ns: Option<u64>,
    limits: Limits,
) -> (Vec<Activity>, Vec<Signal>) {
    let key = HashKey::from_seed(7);
    let mut tables: Vec<_> = (0..shards).map(|_| ActivityTable::new(interval_ns, &key)).collect();
    let mut merger = ActivityMerger::new(interval_ns, limits, 10_000, usize::MAX);
    let mut signals = Vec::new();
    let mut high_ns = 0;
    for burst in packets.chunks(tick) {
        for (shard, table) in tables.iter_mut().enumerate() {
            let own: Vec<_> = burst
                .iter()
                .filter(|packet| packet.pair_hash as usize % shards == shard)
                .copied()
                .collect();
            table.on_burst(&own);
        }
        high_ns = burst.iter().fold(high_ns, |high, packet| high.max(packet.ts_ns));
        tables.iter_mut().for_each(|table| merger.add(table.take_before(high_ns)));
        merger.close_before(high_ns, &mut |signal| signals.push(signal));
    }
    tables.into_iter().for_each(|table| merger.add(table.finish()));
    merger.close_all(&mut |signal| signals.push(signal));
    (merger.finish().intervals, signals)
}

/// Computed directly: octets by source, packets by destination, destinations by source.
#[derive(Default)]
struct Truth {
    sent: BTreeMap<IpAddr, u64>,
    packets_to: BTreeMap<IpAddr, u64>,
    peers: BTreeMap<IpAddr, BTreeSet<IpAddr>>,
}

fn truth(packets: &[PacketRecord], interval_ns: u64) -> BTreeMap<u64, Truth> {
    let mut truth: BTreeMap<u64, Truth> = BTreeMap::new();
    for packet in packets {
        let own = truth.entry(packet.ts_ns / interval_ns).or_default();
        let address = |host: &[u8; 16]| IpAddr::from([host[0], host[1], host[2], host[3]]);
        let (src, dst) = (address(&packet.src), address(&packet.dst));
        *own.sent.entry(src).or_default() += u64::from(packet.ip_len);
        *own.packets_to.entry(dst).or_default() += 1;
        own.peers.entry(src).or_default().insert(dst);
    }
    truth
}

fn check(activity: &Activity, truth: &Truth) {
    let sent: u64 = truth.sent.values().sum();
    assert_eq!(activity.octets, sent);
    for row in &activity.senders {
        assert!((row.lower..=row.upper).contains(&truth.sent[&row.address]), "{row:?}");
    }
    for row in &activity.sending_networks {
        let within = |host: &IpAddr| match (row.prefix.address, host) {
            (IpAddr::V4(network), IpAddr::V4(host)) => {
                let shift = 32 - u32::from(row.prefix.length);
                (network.to_bits() ^ host.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        };
        let truth: u64 = truth.sent.iter().filter(|(host, _)| within(host)).map(|(_, n)| n).sum();
        assert!((row.lower..=row.upper).contains(&truth), "{row:?}, {truth}");
    }
    for row in &activity.targets {
        assert!((row.lower..=row.upper).contains(&truth.packets_to[&row.address]), "{row:?}");
    }
    for row in &activity.spreaders {
        // Pairs that share a bit count once.
        assert!(row.lower <= truth.peers[&row.address].len() as u64, "{row:?}");
    }
    // A host with more than 1/768 of all is always listed.
    for (host, octets) in &truth.sent {
        let kept = activity.senders.iter().any(|row| row.address == *host);
        assert!(kept || *octets <= sent / 768, "{host} sent {octets} of {sent}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bounds_hold_and_few_hosts_are_exact(
        seed in any::<u64>(), hosts in prop_oneof![Just(40_u32), Just(5_000)], shards in 1_usize..5, tick in 50_usize..2_000,
    ) {
        let key = HashKey::from_seed(7);
        let mut random = seed;
        let mut next = |below: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) as u32) % below
        };
        let packets: Vec<_> = (0..20_000)
            .map(|number: u64| {
                let src = next(hosts).min(next(hosts));
                packet(&key, number * SECOND / 4_000, src, next(hosts), 40 + next(1_460))
            })
            .collect();
        let (activities, _) = observe(&packets, shards, tick, Some(SECOND), Limits::default());
        let truth = truth(&packets, SECOND);
        prop_assert_eq!(activities.len(), truth.len());
        for (activity, (number, truth)) in activities.iter().zip(&truth) {
            prop_assert_eq!(activity.start.0, number * SECOND);
            check(activity, truth);
            let sources = truth.sent.len() as f64;
            prop_assert!((activity.distinct.sources as f64 - sources).abs() <= 0.08 * sources + 1.0);
            if hosts == 40 {
                prop_assert!(activity.senders.iter().all(|row| row.lower == row.upper));
                prop_assert_eq!(activity.senders.len(), truth.sent.len());
            }
        }
        if hosts == 40 {
            let (mut one, _) = observe(&packets, 1, tick, Some(SECOND), Limits::default());
            for (one, all) in one.iter_mut().zip(&activities) {
                // Each shard rounds its own estimate.
                prop_assert!(one.distinct.pairs.abs_diff(all.distinct.pairs) <= shards as u64 + 2);
                one.distinct.pairs = all.distinct.pairs;
            }
            prop_assert!(one == activities, "shards disagree");
        }
    }
}

#[test]
fn late_packets_stay_in_their_interval_or_are_strays() {
    let key = HashKey::from_seed(7);
    let at = |seconds: u64| packet(&key, seconds * SECOND, 1, 2, 100);
    let (activities, _) =
        observe(&[at(1), at(2), at(1), at(2)], 1, 100, Some(SECOND), Limits::default());
    let counted = |all: &[Activity]| all.iter().map(|a| (a.packets, a.strays)).collect::<Vec<_>>();
    assert_eq!(counted(&activities), [(2, 0), (2, 0)]);
    // Interval 1 was handed over before its latest packet arrived.
    let (activities, _) =
        observe(&[at(1), at(2), at(1), at(2)], 1, 1, Some(SECOND), Limits::default());
    assert_eq!(counted(&activities), [(1, 0), (3, 1)]);
    // Widely distributed times take no more memory than four intervals.
    let wild: Vec<_> = (0..1_000).map(|n| at(n * 7_919 % 1_000)).collect();
    let (activities, _) = observe(&wild, 1, 10_000, Some(SECOND), Limits::default());
    assert_eq!(activities.len(), OPEN_MOST);
    assert_eq!(activities.iter().map(|a| a.packets).sum::<u64>(), 1_000);
    assert_eq!(activities.iter().map(|a| a.strays).sum::<u64>(), 996);
}

#[test]
fn a_change_has_a_certain_lower_bound() {
    let key = HashKey::from_seed(7);
    let packets = [
        packet(&key, 0, 1, 9, 1_000),
        packet(&key, 0, 2, 9, 500),
        packet(&key, SECOND, 1, 9, 100),
        packet(&key, SECOND, 2, 9, 500),
        packet(&key, SECOND, 3, 9, 400),
    ];
    let (activities, _) = observe(&packets, 2, 10, Some(SECOND), Limits::default());
    let changes: Vec<_> =
        activities[1].changers.iter().map(|c| (c.before, c.now, c.at_least)).collect();
    assert_eq!(changes, [(1_000, 100, 900), (0, 400, 400)]);
    assert!(activities[0].changers.is_empty());
}

#[test]
fn a_network_is_listed_without_its_heavy_hosts() {
    let key = HashKey::from_seed(7);
    let mut packets: Vec<_> = (0..10_000)
        .map(|n| packet(&key, n, 0x0a01_0000 + (n as u32).wrapping_mul(40_503) % 65_536, 7, 100))
        .collect();
    packets.extend((0..500).map(|n| packet(&key, n, 0x0a01_0203, 7, 1_000)));
    let (activities, _) = observe(&packets, 3, 500, None, Limits::default());
    let rows = &activities[0].sending_networks;
    let [row] = rows[..] else { panic!("{rows:?}") };
    assert_eq!(row.prefix.to_string(), "10.1.0.0/16");
    let of_host = 500_000
        + packets.iter().filter(|p| p.src[2..4] == [2, 3] && p.ip_len == 100).count() as u64 * 100;
    assert_eq!((row.lower, row.upper), (1_500_000, 1_500_000));
    assert!(row.beyond >= 1_500_000 - of_host && row.beyond < 1_100_000, "{row:?}");
}

#[test]
fn hosts_that_reach_limits_are_reported_each_interval() {
    let key = HashKey::from_seed(7);
    let mut packets: Vec<_> =
        (0..300).map(|n| packet(&key, n, 1, 100 + n as u32 % 50, 41)).collect();
    packets.extend((0..200).map(|n| packet(&key, 500 + n, 1_000 + n as u32, 7, 40)));
    packets.push(packet(&key, 2 * SECOND, 1, 7, 40));
    let mut limits = Limits::default();
    for (name, limit) in
        [("dst-pps", 100), ("dst-bps", 32_001), ("src-peers", 50), ("dst-peers", 200)]
    {
        limits.set(name, limit).unwrap();
    }
    assert!(limits.set("dst-mps", 1).is_err());
    let reached = |signals: &[Signal]| -> Vec<(u64, Vec<Reached>)> {
        let reached = |signal: &Signal| match signal {
            Signal::Interval { end, reached, .. } => (end.0 / SECOND, reached.clone()),
            other => panic!("{other:?}"),
        };
        signals.iter().map(reached).collect()
    };
    let (_, signals) = observe(&packets, 3, 64, Some(2 * SECOND), limits);
    let [(2, first), (4, second)] = &reached(&signals)[..] else { panic!("{signals:?}") };
    assert_eq!(second[..], []);
    let [flood, spread] = &first[..] else { panic!("{first:?}") };
    let Reached { flood: Some(numbers), subject: Subject::Flood { .. }, number: 100 } = flood
    else {
        panic!("{flood:?}")
    };
    assert_eq!((numbers.packets_per_second, numbers.bits_per_second), (100, 32_000));
    assert_eq!((numbers.sources, numbers.protocol, numbers.percent), (200, 6, 100));
    assert_eq!(numbers.limits, ["dst-pps", "dst-peers"]);
    assert!(matches!(spread, Reached { number: 50, subject: Subject::Spread { .. }, .. }));
    // An interval without packets ends what was over a limit before it.
    packets.last_mut().unwrap().ts_ns = 9 * SECOND;
    packets.push(packet(&key, 11 * SECOND, 1, 7, 40));
    let (_, signals) = observe(&packets, 3, 64, Some(2 * SECOND), limits);
    let ends: Vec<_> = reached(&signals).iter().map(|(end, all)| (*end, all.len())).collect();
    assert_eq!(ends, [(2, 2), (4, 0), (10, 0), (12, 0)]);
}

#[test]
fn a_flood_has_the_share_of_syns() {
    let key = HashKey::from_seed(7);
    const SYN: u8 = 2;
    let segment = |number: u32, tcp_flags: u8| {
        let flags = Flags(Flags::IPV4.0 | Flags::PORTS.0);
        let packet = packet(&key, u64::from(number), 1_000 + number, 7, 40);
        PacketRecord { tcp_flags, flags, ..packet }
    };
    let packets: Vec<_> =
        (0..1_000).map(|number| segment(number, if number < 900 { SYN } else { 16 })).collect();
    let limits = Limits { dst_peers: Some(1), ..Limits::default() };
    let (activities, signals) = observe(&packets, 2, 100, None, limits);
    let target = activities[0].targets[0];
    assert_eq!((target.of_protocol, target.syns), (1_000, 900));
    let [Signal::Interval { reached, .. }] = &signals[..] else { panic!("{signals:?}") };
    let numbers = reached[0].flood.as_ref().unwrap();
    assert_eq!((reached.len(), numbers.percent, numbers.syn_percent), (1, 100, 90));
}

//! Talkers: ranks, ties, bounds, and merged parts.

use std::net::IpAddr;

use ringtap_flow::{EndReason, FlowKey, Initiator};

use super::rows::Crowd;
use super::*;

const KEY: HashKey = HashKey::from_seed(5);

fn address(host: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[3] = host;
    bytes
}

/// A TCP record with this many packets and octets in one direction, and one packet of 40 octets in
/// the other.
fn record(src: (u8, u16), dst: (u8, u16), packets: u64, octets: u64) -> FlowRecord {
    let key = FlowKey {
        version: IpVersion::V4,
        src: address(src.0),
        dst: address(dst.0),
        src_port: src.1,
        dst_port: dst.1,
        protocol: 6,
    };
    FlowRecord {
        packets: [packets, 1],
        octets: [octets, 40],
        end_reason: EndReason::Idle,
        ..FlowRecord::new(key)
    }
}

fn found(capacity: usize, records: &[FlowRecord], top: usize) -> TalkersFound {
    let mut table = TalkerTable::new(KEY, capacity, top);
    records.iter().for_each(|record| table.take(record));
    table.finish()
}

fn bounded(capacity: usize, records: &[FlowRecord], top: usize) -> Talkers {
    found(capacity, records, top).report(top)
}

fn talkers(records: &[FlowRecord]) -> Talkers {
    bounded(1_000, records, 10)
}

fn hosts(rows: &[HostRow]) -> Vec<(u8, u64, u64)> {
    let row = |row: &HostRow| match row.address {
        IpAddr::V4(address) => (address.octets()[3], row.volume.packets, row.volume.octets),
        IpAddr::V6(address) => panic!("{address}"),
    };
    rows.iter().map(row).collect()
}

#[test]
fn each_direction_counts_for_its_sender_and_both_for_the_server_port() {
    let found = talkers(&[record((1, 1000), (2, 80), 3, 500)]);
    let ranked = &found.by_octets;
    assert_eq!(hosts(&ranked.source), [(1, 3, 500), (2, 1, 40)]);
    assert_eq!(hosts(&ranked.destination), [(2, 3, 500), (1, 1, 40)]);
    let both = Volume { packets: 4, octets: 540 };
    let pair = [IpAddr::from([0, 0, 0, 1]), IpAddr::from([0, 0, 0, 2])];
    assert_eq!(ranked.pair, [PairRow { addresses: pair, volume: both }]);
    let ports: Vec<_> = ranked.port.iter().map(|row| (row.protocol, row.port)).collect();
    assert_eq!(ports, [(6, 80)]);
    assert!(ranked.port.iter().all(|row| row.volume == both));
}

#[test]
fn the_port_of_a_client_is_not_ranked() {
    let ports = |record: FlowRecord| {
        let found = talkers(&[record]).by_octets.port;
        found.into_iter().map(|row| row.port).collect::<Vec<_>>()
    };
    // The first packet that was seen may be an answer.
    let answer = record((1, 443), (2, 50_000), 3, 500);
    assert_eq!(ports(answer.clone()), [443]);
    assert_eq!(ports(FlowRecord { initiator: Initiator::Syn, ..answer }), [50_000]);
    // Both are those of clients: the side that was asked.
    assert_eq!(ports(record((1, 50_000), (2, 40_000), 3, 500)), [40_000]);
}

#[test]
fn octets_and_packets_have_separate_ranks_and_ties_have_an_order() {
    let records: Vec<_> = [(9, 2, 100), (3, 2, 100), (5, 3, 100), (7, 1, 200), (4, 2, 100)]
        .map(|(host, packets, octets)| record((host, 1), (200, 2), packets, octets))
        .into();
    let found = talkers(&records);
    let order = |rows: &[HostRow]| hosts(rows).iter().map(|row| row.0).collect::<Vec<_>>();
    assert_eq!(order(&found.by_octets.source), [200, 7, 5, 3, 4, 9]);
    assert_eq!(order(&found.by_packets.source), [200, 5, 3, 4, 9, 7]);
}

#[test]
fn no_more_rows_than_requested_and_no_empty_rows() {
    // In an order in which every row exceeds all before it, then in the reverse.
    let rising: Vec<_> =
        (1..100).map(|n| record((n, 1), (200, 2), 1, 1_000 + u64::from(n))).collect();
    let falling: Vec<_> = rising.iter().rev().cloned().collect();
    for records in [rising, falling] {
        for top in [0, 1, 2, 10] {
            let found = bounded(1_000, &records, top);
            let own = |row: &&(u8, u64, u64)| row.0 != 200;
            let rows = hosts(&found.by_octets.source);
            assert_eq!(rows.len(), top);
            let expected: Vec<_> = (90..100).rev().map(|n| (n, 1, 1_000 + u64::from(n))).collect();
            let mut expected = expected.into_iter();
            assert!(rows.iter().filter(own).all(|row| Some(*row) == expected.next()), "{rows:?}");
        }
    }
    let unanswered =
        FlowRecord { packets: [5, 0], octets: [200, 0], ..record((1, 1), (2, 2), 5, 200) };
    assert_eq!(hosts(&talkers(&[unanswered]).by_octets.source), [(1, 5, 200)]);
}

#[test]
fn unknown_ports_are_not_ranked_and_a_port_on_both_sides_counts_once() {
    assert_eq!(talkers(&[record((1, 0), (2, 0), 1, 40)]).by_octets.port, []);
    let found = talkers(&[record((1, 53), (2, 53), 1, 40)]);
    let [row] = &found.by_octets.port[..] else { panic!("{found:?}") };
    assert_eq!((row.port, row.volume), (53, Volume { packets: 2, octets: 80 }));
    let sctp = |record: FlowRecord| {
        let key = FlowKey { protocol: 132, ..record.key };
        FlowRecord { key, ..record }
    };
    let found = talkers(&[record((1, 53), (2, 53), 1, 40), sctp(record((1, 53), (2, 53), 1, 40))]);
    let rows: Vec<_> = found.by_octets.port.iter().map(|row| (row.protocol, row.port)).collect();
    assert_eq!(rows, [(6, 53), (132, 53)]);
}

#[test]
fn losses_are_within_the_error_bound() {
    // Every host sends to itself, so there are as many pairs as hosts.
    let records: Vec<_> = (0..50)
        .map(|n| record((n, 1), (n, 2), 1, 1_000))
        .chain([record((7, 1), (7, 2), 1, 9_000)])
        .collect();
    let exact = talkers(&records);
    assert_eq!(exact.error_bound, 0);
    let bounded = bounded(20, &records, 50);
    let ranked = &bounded.by_octets;
    assert!(ranked.source.len() <= 20 && ranked.pair.len() <= 20);
    // All but one are equal, so all but that are dropped at once, a few times.
    assert!((1_040..=8 * 2_080).contains(&bounded.error_bound), "{}", bounded.error_bound);
    for truth in &exact.by_octets.source {
        let ours = bounded.by_octets.source.iter().find(|row| row.address == truth.address);
        let ours = ours.map_or(0, |row| row.volume.octets);
        assert!(ours <= truth.volume.octets);
        assert!(ours + bounded.error_bound >= truth.volume.octets);
    }
    assert_eq!(hosts(&bounded.by_octets.source)[0].0, 7);
}

#[test]
fn rows_that_are_large_by_any_sum_are_kept() {
    // Many small ones; one host sends many octets, one many packets, one receives many octets.
    let mut records = Vec::new();
    for round in 0..200_u16 {
        let crowd = (0..100).map(|n| record((n, round), (n, 9), 1, 40));
        records.extend(crowd);
        records.push(FlowRecord {
            octets: [50_000, 0],
            packets: [1, 0],
            ..record((201, 1), (202, 2), 1, 40)
        });
        records.push(FlowRecord {
            octets: [40, 0],
            packets: [900, 0],
            ..record((203, 1), (1, 2), 1, 40)
        });
    }
    let (exact, bounded) = (talkers(&records), bounded(40, &records, 3));
    assert!(bounded.error_bound > 0);
    assert_eq!(hosts(&bounded.by_octets.source)[0], (201, 200, 200 * 50_000));
    assert_eq!(hosts(&bounded.by_octets.destination)[0], (202, 200, 200 * 50_000));
    assert_eq!(bounded.by_packets.source[0], exact.by_packets.source[0]);
    assert_eq!(bounded.by_octets.pair[0], exact.by_octets.pair[0]);
}

#[test]
fn many_rounds_through_a_full_table_of_recent_pairs_stay_exact() {
    // 30 pairs of 31 hosts, and room for 40: hundreds of times full of rows, never of pairs.
    let records: Vec<_> = (0..4_000u16)
        .map(|n| record(((n % 30) as u8, n), (99, 80), 1, 40 + u64::from(n)))
        .collect();
    let few = bounded(40, &records, 50);
    assert_eq!((few.error_bound, few), (0, bounded(100_000, &records, 50)));
    // Room for 29: hosts and pairs are dropped, within the error bound.
    let (exact, fewer) = (bounded(100_000, &records, 50), bounded(29, &records, 50));
    assert!(fewer.error_bound > 0);
    for truth in &exact.by_octets.pair {
        let ours = fewer.by_octets.pair.iter().find(|row| row.addresses == truth.addresses);
        let ours = ours.map_or(0, |row| row.volume.octets);
        assert!(ours <= truth.volume.octets);
        assert!(ours + fewer.error_bound >= truth.volume.octets);
    }
}

#[test]
fn two_tables_merged_are_one() {
    let records: Vec<_> = (0..400u16)
        .map(|n| {
            let (a, b) = ((n % 13) as u8, (n % 7) as u8);
            let octets = 40 + u64::from(n) * 7;
            let record = record((a, n), (b, 80), u64::from(n % 5) + 1, octets);
            let protocol = [6, 17, 132, 1][usize::from(n % 4)];
            let version = if n % 3 == 0 { IpVersion::V6 } else { IpVersion::V4 };
            FlowRecord { key: FlowKey { protocol, version, ..record.key }, ..record }
        })
        .collect();
    let whole = talkers(&records);
    let pair = |r: &FlowRecord| r.key.src[3].min(r.key.dst[3]) + r.key.src[3].max(r.key.dst[3]);
    for parts in [2, 3] {
        // A pair of addresses has one owner, hosts and ports have several.
        let part = |index| {
            let own = |r: &&FlowRecord| pair(r) % parts == index;
            found(1_000, &records.iter().filter(own).cloned().collect::<Vec<_>>(), 10)
        };
        for order in [(0..parts).collect::<Vec<_>>(), (0..parts).rev().collect()] {
            let merged = order.into_iter().map(part).reduce(|mut all, more| {
                all.merge(more);
                all
            });
            assert_eq!(merged.unwrap().report(10), whole);
        }
    }
}

#[test]
fn tables_that_were_not_full_lose_nothing_when_merged() {
    // Each with six hosts and room for eight; together they have room for sixteen.
    let part = |from: u8| {
        let records: Vec<_> =
            (0..3).map(|n| record((from + 2 * n, 1), (from + 2 * n + 1, 80), 1, 100)).collect();
        found(8, &records, 20)
    };
    let mut merged = part(0);
    merged.merge(part(100));
    let talkers = merged.report(20);
    assert_eq!((talkers.error_bound, talkers.by_octets.source.len()), (0, 12));
}

/// A record of this many packets from a source given by a number; the destination does not answer.
fn from(number: u32, packets: u64) -> FlowRecord {
    let mut record = record((0, 1), (200, 80), packets, 40 * packets + u64::from(number % 7));
    record.key.src[..4].copy_from_slice(&number.to_be_bytes());
    FlowRecord { packets: [packets, 0], octets: [record.octets[0], 0], ..record }
}

#[test]
fn a_crowd_of_equal_hosts_is_counted_instead_of_listed() {
    let few: Vec<_> = (1_000..10_998).map(|n| from(n, 1 + u64::from(n % 2))).collect();
    let busy = [from(5, 300), from(6, 9)];
    let few: Vec<_> = few.into_iter().chain(busy).collect();
    let ranked = bounded(100_000, &few, 4).by_packets;
    assert_eq!((ranked.source.len(), ranked.pair.len()), (4, 4));
    assert_eq!(ranked.crowds, Crowds::default());
    let many: Vec<_> = few.iter().cloned().chain([from(20_000, 1)]).collect();
    for talkers in [bounded(100_000, &many, 4), {
        let (left, right) = many.split_at(7_000);
        let mut all = found(100_000, left, 4);
        all.merge(found(100_000, right, 4));
        all.report(4)
    }] {
        let mut packets = hosts(&talkers.by_packets.source).into_iter().map(|row| row.1);
        assert_eq!([packets.next(), packets.next(), packets.next()], [Some(300), Some(9), None]);
        let crowd = Some(Crowd { rows: 9_999, most: 4 });
        let expected = Crowds { source: crowd, pair: crowd, ..Crowds::default() };
        assert_eq!(talkers.by_packets.crowds, expected);
        assert_eq!(talkers.by_octets.crowds.source.unwrap().rows, 9_999);
        assert_eq!(talkers.by_packets.destination.len(), 1);
        let mut page = Page::default();
        text::show(&talkers, &mut page);
        assert!(page.text().contains("and 9,999 hosts of at most 248 B each"), "{}", page.text());
    }
    // A longer list is not cut.
    let ranked = bounded(100_000, &many, 5_000).by_packets;
    assert_eq!((ranked.source.len(), ranked.crowds), (5_000, Crowds::default()));
}

#[test]
fn one_very_large_host_does_not_hide_other_large_hosts_in_a_crowd() {
    let mut top = Top::new(10, By::Octets);
    let volume = |octets| Volume { packets: 1, octets };
    top.add(0, volume(60_000_000));
    (1..10).for_each(|host| top.add(host, volume(9_000)));
    (10..12_010).for_each(|host| top.add(host, volume(40)));
    let (rows, crowd) = top.rows_and_crowd();
    assert_eq!(rows.map(|(host, _)| host).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(crowd, None);
}

#[test]
fn blocks_of_ports_have_all_their_ports_and_others_are_not_touched() {
    let mut ports = ByPort::new();
    for port in [1, 63, 64, 4_095, 4_096, 65_535, 64] {
        ports.add(port, Volume { packets: 1, octets: 40 });
    }
    let rows: Vec<_> = ports.rows().collect();
    assert_eq!(rows.len(), 5 * BLOCK);
    assert!(rows.is_sorted_by_key(|row| row.0));
    let counted = rows.iter().filter(|(_, volume)| volume.packets > 0);
    let counted: Vec<_> = counted.map(|(port, volume)| (*port, volume.octets)).collect();
    assert_eq!(counted, [(1, 40), (63, 40), (64, 80), (4_095, 40), (4_096, 40), (65_535, 40)]);
}

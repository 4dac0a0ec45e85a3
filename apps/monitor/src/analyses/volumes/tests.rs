//! Volumes over time: interval bounds, late packets, the extremes of time, and limits.

use std::ops::Range;

use super::*;

/// More than any test uses.
const ROOM: usize = usize::MAX;

fn packet(ts_ns: u64) -> PacketRecord {
    let mut packet = PacketRecord::EMPTY;
    packet.ts_ns = ts_ns;
    packet.flags = Flags::IPV4;
    packet.protocol = 17;
    (packet.ip_len, packet.wire_len) = (30, 44);
    packet
}

fn volumes(interval_ns: Option<u64>, bursts: &[&[u64]]) -> Volumes {
    let mut volumes = Volumes::new(interval_ns, ROOM);
    for burst in bursts {
        let packets: Vec<_> = burst.iter().map(|&ts_ns| packet(ts_ns)).collect();
        volumes.on_burst(&packets);
    }
    volumes.end();
    volumes
}

fn rows(volumes: &Volumes) -> Vec<(Range<u64>, u64)> {
    let intervals = volumes.intervals(Conversations::default());
    intervals.iter().map(|row| (row.start.0..row.end.0, row.packets.handled)).collect()
}

#[test]
fn an_interval_begins_with_its_first_nanosecond_and_ends_before_the_next() {
    let found = volumes(Some(100), &[&[0, 99, 100, 199, 200, 500]]);
    assert_eq!(rows(&found), [(0..100, 2), (100..200, 2), (200..300, 1), (500..600, 1)]);
    assert_eq!((found.packets().handled, found.octets().wire, found.octets().ip), (6, 264, 180));
    assert_eq!(found.protocols(), BTreeMap::from([(17, Volume { packets: 6, octets: 180 })]));
    let row = &found.intervals(Conversations::default())[1];
    assert_eq!(row.protocols, BTreeMap::from([(17, Volume { packets: 2, octets: 60 })]));
    assert_eq!((row.octets.wire, row.octets.ip, row.packets.ipv4), (88, 60, 2));
}

#[test]
fn intervals_handed_over_early_and_late_are_the_same_together() {
    let times: Vec<u64> = vec![10, 20, 110, 130, 250, 15, 340, 120, 360];
    let whole = volumes(Some(100), &[&times]);
    for cut in 0..times.len() {
        let mut own = Volumes::new(Some(100), ROOM);
        let mut merged = Volumes::new(Some(100), ROOM);
        for (number, &time) in times.iter().enumerate() {
            own.on_burst(&[packet(time)]);
            if number >= cut {
                let part = own.take_before(time);
                assert!(rows(&part).iter().all(|(interval, _)| interval.end <= time));
                // Packets ahead of time are in no total before their interval.
                let handled = rows(&part).iter().map(|(_, handled)| handled).sum::<u64>();
                assert_eq!(part.packets().handled, handled);
                merged.merge(part);
            }
        }
        own.end();
        merged.merge(own);
        assert_eq!(rows(&merged), rows(&whole), "from {cut} on");
        assert_eq!(merged.packets(), whole.packets());
    }
}

#[test]
fn late_packets_count_where_they_belong() {
    let in_order = volumes(Some(100), &[&[50, 60, 150, 250, 251]]);
    for bursts in [&[&[150, 50, 250, 60, 251][..]][..], &[&[251], &[60], &[150, 50], &[250]]] {
        assert_eq!(rows(&volumes(Some(100), bursts)), rows(&in_order));
    }
}

#[test]
fn without_intervals_there_is_one_from_the_earliest_to_the_latest_packet() {
    assert_eq!(rows(&volumes(None, &[&[700, 300], &[500]])), [(300..700, 3)]);
    assert_eq!(rows(&volumes(None, &[])), []);
    assert_eq!(rows(&volumes(Some(7), &[])), []);
}

#[test]
fn the_extremes_of_time_are_ordinary_times() {
    const MAX: u64 = u64::MAX;
    assert_eq!(rows(&volumes(None, &[&[MAX, 0, MAX]])), [(0..MAX, 3)]);
    let start = MAX / 1_000 * 1_000;
    assert_eq!(rows(&volumes(Some(1_000), &[&[MAX, 1, MAX]])), [(0..1_000, 1), (start..MAX, 2)]);
    assert_eq!(rows(&volumes(Some(MAX), &[&[MAX, 1, MAX - 1]])), [(0..MAX, 2), (MAX..MAX, 1)]);
    // The last nanosecond shares an interval with the one before, as there is no number after it.
    let found = volumes(Some(1), &[&[MAX, 1, MAX - 1]]);
    assert_eq!(rows(&found), [(1..2, 1), (MAX - 1..MAX, 2)]);
    assert!(found.interval_of(MAX).checked_add(1).is_some());
    assert_eq!(found.interval_of(MAX), found.interval_of(MAX - 1));
}

#[test]
fn conversations_count_in_their_interval() {
    let mut volumes = Volumes::new(Some(100), ROOM);
    volumes.on_burst(&[packet(10), packet(110)]);
    volumes.count_conversations(volumes.interval_of(10), 0, 1);
    volumes.count_conversations(volumes.interval_of(110), 1, 1);
    volumes.count_conversations(volumes.interval_of(110), 1, 1);
    volumes.end();
    let all = Conversations { tcp: 1, udp: 2, exact: false };
    let found: Vec<_> = volumes.intervals(all).iter().map(|row| row.conversations).collect();
    let exact = false;
    assert_eq!(
        found,
        [Conversations { tcp: 1, udp: 0, exact }, Conversations { tcp: 0, udp: 2, exact }]
    );
    let mut volumes = Volumes::new(None, ROOM);
    volumes.on_burst(&[packet(10)]);
    volumes.count_conversations(0, 0, 1);
    volumes.end();
    assert_eq!(volumes.intervals(all)[0].conversations, all);
}

#[test]
fn the_earliest_intervals_are_kept_and_the_others_counted() {
    const MORE: u64 = MOST_INTERVALS as u64 + 10;
    let rising: Vec<u64> = (0..MORE).collect();
    let falling: Vec<u64> = (0..MORE).rev().collect();
    for times in [&rising, &falling] {
        let mut volumes = Volumes::new(Some(1), ROOM);
        for chunk in times.chunks(1_000) {
            let packets: Vec<_> = chunk.iter().map(|&ts_ns| packet(ts_ns)).collect();
            volumes.on_burst(&packets);
            for packet in &packets {
                volumes.count_conversations(volumes.interval_of(packet.ts_ns), 1, 1);
            }
            assert!(volumes.intervals.len() <= MOST_INTERVALS + 1_000);
        }
        volumes.end();
        let rows = volumes.intervals(Conversations::default());
        assert_eq!(rows.len(), MOST_INTERVALS);
        assert_eq!(rows[MOST_INTERVALS - 1].start, Time(MOST_INTERVALS as u64 - 1));
        assert!(rows.iter().all(|row| (row.packets.handled, row.conversations.udp) == (1, 1)));
        assert_eq!((volumes.further(), volumes.packets().handled), (10, MORE));
    }
}

#[test]
fn two_parts_merged_are_the_whole_even_beyond_the_bound() {
    let times: Vec<u64> = (0..MOST_INTERVALS as u64 * 2).step_by(3).chain(100..50_000).collect();
    let part = |own: &dyn Fn(&&u64) -> bool| {
        let times: Vec<u64> = times.iter().filter(own).copied().collect();
        volumes(Some(1), &[&times])
    };
    let whole = part(&|_| true);
    assert!(whole.further() > 0);
    let mut merged = part(&|time| **time % 5 < 2);
    merged.merge(part(&|time| **time % 5 >= 2));
    assert_eq!(rows(&merged), rows(&whole));
    assert_eq!((merged.further(), merged.packets()), (whole.further(), whole.packets()));
}

/// Times and protocols of packets.
fn of_protocols(room: usize, packets: impl Iterator<Item = (u64, u8)>) -> Volumes {
    let mut volumes = Volumes::new(Some(1), room);
    let packets: Vec<_> =
        packets.map(|(ts_ns, protocol)| PacketRecord { protocol, ..packet(ts_ns) }).collect();
    for burst in packets.chunks(100) {
        volumes.on_burst(burst);
        for packet in burst {
            volumes.count_conversations(volumes.interval_of(packet.ts_ns), 0, 1);
        }
    }
    volumes.end();
    volumes
}

#[test]
fn protocols_take_room_too() {
    // Three rows of 100 protocols fit, or 34 of one.
    let room = 3 * (ROW_UNITS + 100) - 10;
    let many = of_protocols(room, (0..1_000).map(|n| (n / 100, (n % 100) as u8)));
    let one = of_protocols(room, (0..1_000).map(|n| (n, 6)));
    assert_eq!((rows(&many).len(), many.further()), (2, 800));
    assert_eq!((rows(&one).len(), one.further()), (34, 966));
    assert!(many.units <= room && one.units <= room);
    // No room for a row: all packets are counted, none is listed.
    let none = of_protocols(ROW_UNITS, (0..10).map(|n| (n, 6)));
    assert_eq!((rows(&none), none.further(), none.packets().handled), (vec![], 10, 10));
}

/// For any order, parts and marks: an interval without room gets none back.
#[test]
fn parts_with_little_room_agree_with_the_whole() {
    let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let all: Vec<(u64, u8)> = (0..20_000)
        .map(|n| (n / 40 + mix(n) % 30, (mix(n + 99) % (1 + mix(n / 2_000) % 90)) as u8))
        .collect();
    for room in [200, 1_000, 3_000] {
        let whole = of_protocols(room, all.iter().copied());
        assert!(whole.further() > 0 && whole.units <= room && !rows(&whole).is_empty());
        let backwards = of_protocols(room, all.iter().rev().copied());
        assert_eq!((rows(&backwards), backwards.further()), (rows(&whole), whole.further()));
        for parts in [2, 3, 7] {
            let mut merged = Volumes::new(Some(1), room);
            for part in 0..parts {
                let own = (0..).zip(&all).filter(|&(n, _)| mix(n) % parts == part);
                merged.merge(of_protocols(room, own.map(|(_, &packet)| packet)));
                assert!(merged.units <= room);
            }
            let all = Conversations::default();
            assert_eq!(merged.intervals(all), whole.intervals(all), "{parts} parts, {room}");
            assert_eq!((merged.further(), merged.packets()), (whole.further(), whole.packets()));
        }
    }
}

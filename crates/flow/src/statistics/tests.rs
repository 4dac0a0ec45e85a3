//! Statistics against their definitions, and joined pieces against the whole.

use proptest::prelude::*;
use ringtap_wire::PacketRecord;

use super::slab::{Measure, Slab};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// Time, side, octets.
type Sent = (u64, usize, u32);

fn measure(most: u8, room: usize) -> Measure {
    Measure { packets: Some(most), octets: 0, room: Room::new(room) }
}

fn packet(&(ts_ns, side, ip_len): &Sent) -> PacketRecord {
    PacketRecord { ts_ns, ip_len, tcp_flags: 16 + side as u8, ..PacketRecord::EMPTY }
}

/// The statistics of a flow of these packets.
fn of(packets: &[Sent], most: u8) -> Option<FlowStatistics> {
    FlowStatistics::of(most, packets.iter().map(|own| (own.1, own.0, own.2, 16 + own.1 as u8)))
        .map(|own| *own)
}

/// What a reader of the packets finds by the definitions.
fn check(found: &FlowStatistics, packets: &[Sent], most: u8) {
    let first: Vec<_> = found
        .first_packets()
        .iter()
        .map(|own| (own.ts_ns(), usize::from(own.side), u32::from(own.octets)))
        .collect();
    let expected = &packets[..packets.len().min(most.into())];
    assert_eq!(
        first,
        expected.iter().map(|own| (own.0, own.1, own.2.min(65_535))).collect::<Vec<_>>()
    );
    for side in 0..2 {
        let own: Vec<_> = packets.iter().filter(|own| own.1 == side).collect();
        let pairs = || own.windows(2).map(|pair| (pair[0].0, pair[1].0));
        let gaps: Vec<u64> = pairs().map(|(before, next)| next.saturating_sub(before)).collect();
        let lengths: Vec<u64> = own.iter().map(|own| own.2.into()).collect();
        for (moments, values) in [(found.gaps(side), &gaps), (found.lengths(side), &lengths)] {
            assert_eq!(moments.count(), values.len() as u64);
            assert_eq!(moments.sum(), values.iter().sum::<u64>());
            let squares = values.iter().map(|value| u128::from(*value).pow(2));
            assert_eq!(moments.squares, squares.fold(0, u128::saturating_add));
            assert_eq!(moments.minimum(), values.iter().copied().min());
            assert_eq!(moments.maximum(), values.iter().copied().max());
        }
        let negative = pairs().filter(|(before, next)| next < before).count();
        assert_eq!(found.negative_gaps(side), negative as u64);
        let times = || own.iter().map(|own| own.0);
        assert_eq!(found.times(side), times().min().zip(times().max()).map(<[_; 2]>::from));
        let near = |a: &&Sent, b: &&Sent| b.0.saturating_sub(a.0) < BURST_GAP_NS;
        let bursts = own.chunk_by(near).filter(|run| run.len() as u64 >= BURST_PACKETS);
        let bursts: Vec<_> = bursts
            .map(|run| Burst {
                start_ns: run[0].0,
                end_ns: run[run.len() - 1].0,
                packets: run.len() as u64,
                octets: run.iter().map(|own| u64::from(own.2)).sum(),
            })
            .take(BURSTS_MOST)
            .collect();
        assert_eq!(found.bursts(side).copied().collect::<Vec<_>>(), bursts);
    }
    let near = |a: &Sent, b: &Sent| b.0.saturating_sub(a.0) <= IDLE_NS;
    let length = |run: &[Sent]| -> u64 {
        run.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).sum()
    };
    let active: Vec<_> = packets.chunk_by(near).map(length).collect();
    assert_eq!(found.active().count(), active.len() as u64);
    assert_eq!(found.active().sum(), active.iter().sum::<u64>());
    assert_eq!(found.active().maximum(), active.iter().copied().max());
    assert_eq!(found.idle().count() + 1, active.len() as u64);
    let all = length(packets);
    assert_eq!(found.idle().sum() + found.active().sum(), all);
}

/// Packets with short, long and negative gaps.
fn packets() -> impl Strategy<Value = Vec<Sent>> {
    let gap = prop_oneof![
        20 => 0..SECOND as i64,
        4 => SECOND as i64 - 1..SECOND as i64 + 2,
        3 => SECOND as i64..7 * SECOND as i64,
        2 => 5 * SECOND as i64 - 1..5 * SECOND as i64 + 2,
        2 => -3 * SECOND as i64..0,
    ];
    let octets = prop_oneof![9 => 40..1_500_u32, 1 => 65_000..200_000_u32];
    proptest::collection::vec((gap, 0..2_usize, octets), 1..150).prop_map(|all| {
        let mut now = 1_000 * SECOND as i64;
        let sent = |(gap, side, octets)| {
            now += gap;
            (now as u64, side, octets)
        };
        all.into_iter().map(sent).collect()
    })
}

proptest! {
    #[test]
    fn statistics_follow_their_definitions(packets in packets(), most in 0..40_u8) {
        let (found, listed) = (of(&packets, most).unwrap(), of(&packets, 255).unwrap());
        check(&found, &packets, most);
        // Computed with each packet, or from the list of all.
        let is_exact = packets.iter().all(|own| own.2 < 65_536);
        prop_assert_eq!(listed.counted.get().is_none(), is_exact);
        prop_assert_eq!(found.counts(), listed.counts());
        prop_assert_eq!(found.counted(), listed.counted());
    }

    #[test]
    fn pieces_are_joined_to_the_whole(
        packets in packets(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        most in prop_oneof![Just(0_u8), Just(7), Just(255)],
    ) {
        let mut ends: Vec<_> = cuts.iter().map(|at| at.index(packets.len())).collect();
        ends.push(packets.len());
        ends.sort_unstable();
        let mut start = 0;
        let mut pieces = Vec::new();
        for end in ends {
            pieces.extend(of(&packets[start..end], most));
            start = end;
        }
        let whole = of(&packets, most).unwrap();
        // From the left, and from the right.
        let join = |mut own: FlowStatistics, later: &FlowStatistics| {
            own.join(later);
            own
        };
        let left = pieces.iter().cloned().reduce(|own, later| join(own, &later)).unwrap();
        prop_assert_eq!(&left, &whole);
        let right = pieces.into_iter().rev().reduce(|later, own| join(own, &later)).unwrap();
        prop_assert_eq!(&right, &whole);
        let mut turned = whole.clone();
        turned.turn();
        let other: Vec<_> = packets.iter().map(|own| (own.0, 1 - own.1, own.2)).collect();
        let mut expected = of(&other, most).unwrap();
        expected.packets.iter_mut().for_each(|own| own.tcp_flags ^= 1);
        prop_assert_eq!(turned, expected);
    }

    #[test]
    fn bytes_are_the_same_value_and_flows_continue(packets in packets(), at in any::<prop::sample::Index>()) {
        let whole = of(&packets, 20).unwrap();
        let bytes = [whole.bytes(), b"rest".to_vec()].concat();
        prop_assert!(bytes.len() <= FlowStatistics::most_bytes(20, 0) + 4);
        let (read, rest) = FlowStatistics::split_from(&bytes).unwrap();
        prop_assert_eq!((&read, rest), (&whole, &b"rest"[..]));
        prop_assert!(!whole.is_cut());
        for len in 0..whole.bytes().len() {
            prop_assert_eq!(FlowStatistics::split_from(&bytes[..len]), None);
        }
        // Another run goes on, and has other settings.
        let (before, after) = packets.split_at(at.index(packets.len()).max(1));
        let (mut slab, measure) = (Slab::default(), measure(200, usize::MAX));
        slab.push_saved(&of(before, 20).unwrap(), &measure);
        after.iter().for_each(|sent| slab.count(0, sent.1, &packet(sent), &measure));
        prop_assert_eq!(*slab.get(0).unwrap(), whole);
    }

    /// Stored bytes may be any.
    #[test]
    fn damaged_bytes_are_refused_or_counted_on(
        packets in packets(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let mut bytes = of(&packets, 20).unwrap().bytes();
        for (at, byte) in changes {
            let len = bytes.len();
            bytes[at.index(len)] = byte;
        }
        let Some((mut damaged, _)) = FlowStatistics::split_from(&bytes) else { return Ok(()) };
        let (mut slab, measure) = (Slab::default(), measure(30, usize::MAX));
        slab.push_saved(&damaged, &measure);
        packets.iter().for_each(|sent| slab.count(0, sent.1, &packet(sent), &measure));
        let mut own = *slab.get(0).unwrap();
        damaged.join(&own);
        own.join(&damaged);
        for found in [&damaged, &own] {
            let all = [found.gaps(0), found.gaps(1), found.lengths(0), found.idle(), &found.active()];
            all.iter().for_each(|moments| _ = (moments.mean(), moments.deviation()));
            prop_assert!(found.bursts(0).chain(found.bursts(1)).count() <= 2 * BURSTS_MOST);
            FlowStatistics::split_from(&found.bytes()).unwrap();
        }
    }

    /// Lists without room end where they are, and their flows say so; what flows gave back is used again.
    #[test]
    fn lists_without_room_are_cut(flows in proptest::collection::vec(packets(), 1..6), blocks in 0..40_usize) {
        let (mut slab, measure) = (Slab::default(), measure(30, blocks * 70));
        for _ in 0..3 {
            for (at, packets) in flows.iter().enumerate() {
                slab.push(&measure);
                for sent in packets {
                    slab.count(at, sent.1, &packet(sent), &measure);
                }
                let (found, whole) = (slab.get(at).unwrap(), of(packets, 30).unwrap());
                prop_assert!(whole.first_packets().starts_with(found.first_packets()));
                let complete = found.first_packets() == whole.first_packets()
                    && (0..2).all(|side| found.counted().bursts[side] == whole.counted().bursts[side]);
                prop_assert_eq!(found.is_cut(), !complete);
                prop_assert_eq!(found.lengths(0), whole.lengths(0));
                prop_assert_eq!(found.active(), whole.active());
            }
            prop_assert!(measure.room.used() <= blocks * 70);
            slab.swap_remove(0);
            if flows.len() > 1 {
                slab.restart(0, &measure);
            }
            slab.truncate(0);
            prop_assert!(measure.room.used() <= blocks * 70);
        }
    }
}

/// A clock that is set back makes gaps of zero, which are counted.
#[test]
fn a_clock_that_steps_back_is_counted() {
    let times = [100, 101, 40, 41, 42, 120].map(|s| s * SECOND);
    let packets: Vec<_> = times.map(|ts_ns| (ts_ns, 0, 100)).into();
    let found = of(&packets, 30).unwrap();
    check(&found, &packets, 30);
    assert_eq!((found.negative_gaps(0), found.gaps(0).sum()), (1, 81 * SECOND));
    assert_eq!((found.idle().count(), found.active().sum()), (1, 3 * SECOND));
    assert_eq!(found.gaps(0).minimum(), Some(0));
}

#[test]
fn only_the_first_bursts_are_kept() {
    let at = |burst: u64, n: u64| (burst * 3 * SECOND + n * 1_000, 0, 50 + burst as u32);
    let packets: Vec<_> = (1..40).flat_map(|burst| [0, 1, 2].map(|n| at(burst, n))).collect();
    for most in [0, 5, 255] {
        let found = of(&packets, most).unwrap();
        check(&found, &packets, most);
        assert_eq!((found.bursts(0).count(), found.bursts(1).count()), (BURSTS_MOST, 0));
        assert!(!found.is_cut());
    }
}

/// A list that had no room has no packets behind the one that is missing, also if a later run has room.
#[test]
fn a_list_that_is_cut_ends_there() {
    let packets: Vec<_> = (0..40).map(|n| (n * 1_000, 0, 100)).collect();
    let (mut slab, full) = (Slab::default(), measure(30, 0));
    slab.push(&full);
    packets[..10].iter().for_each(|sent| slab.count(0, sent.1, &packet(sent), &full));
    let before = slab.get(0).unwrap();
    assert!(before.is_cut() && !before.first_packets().is_empty());
    let (mut slab, roomy) = (Slab::default(), measure(30, usize::MAX));
    slab.push_saved(&before, &roomy);
    packets[10..].iter().for_each(|sent| slab.count(0, sent.1, &packet(sent), &roomy));
    let after = slab.get(0).unwrap();
    assert_eq!(after.first_packets(), before.first_packets());
    assert!(after.is_cut());
    assert_eq!(after.lengths(0), of(&packets, 30).unwrap().lengths(0));
}

/// Squares of gaps below a second, and of lengths, that a word does not hold.
#[test]
fn sums_of_squares_are_carried() {
    let packets: Vec<_> = (0..300).map(|n| (n * (SECOND - 1), 0, u32::MAX - n as u32)).collect();
    for most in [0, 255] {
        check(&of(&packets, most).unwrap(), &packets, most);
    }
    let packets: Vec<_> = (0..40).map(|n| (n % 2 * u64::MAX, n as usize / 2 % 2, 100)).collect();
    let found = of(&packets, 0).unwrap();
    assert_eq!([0, 1].map(|side| found.gaps(side).squares), [u128::MAX; 2]);
}

/// Steps back of more than a word holds together.
#[test]
fn clocks_that_step_back_far_are_counted_exactly() {
    const LAST: u64 = u64::MAX;
    for times in [&[LAST, 0, 5, 0][..], &[LAST, 0, LAST, 1 << 63, 0, 0], &[3, LAST, 2, 9, 1]] {
        let packets: Vec<_> = times.iter().map(|ts_ns| (*ts_ns, 0, 100)).collect();
        for most in [0, 255] {
            let whole = of(&packets, most).unwrap();
            for at in 1..packets.len() {
                let mut joined = of(&packets[..at], most).unwrap();
                joined.join(&of(&packets[at..], most).unwrap());
                assert_eq!(joined, whole, "{times:?} at {at}");
            }
        }
    }
}

#[test]
fn sums_of_gaps_that_do_not_fit_keep_the_largest_number() {
    let packets: Vec<_> = [0, 1 << 63, 0, 1 << 63, 0, 1 << 63].map(|ts_ns| (ts_ns, 0, 100)).into();
    let found = of(&packets, 30).unwrap();
    assert_eq!((found.gaps(0).sum(), found.negative_gaps(0)), (u64::MAX, 2));
    let mut joined = of(&packets[..3], 30).unwrap();
    joined.join(&of(&packets[3..], 30).unwrap());
    assert_eq!(joined.gaps(0), found.gaps(0));
}

/// Side and payload of a packet.
type Payload = (usize, Vec<u8>);

const OCTETS: u16 = 70;

fn with_octets(room: usize) -> Measure {
    Measure { octets: OCTETS, ..measure(30, room) }
}

fn add(slab: &mut Slab, at: usize, payloads: &[Payload], measure: &Measure) {
    for (number, (side, payload)) in payloads.iter().enumerate() {
        slab.count(at, *side, &packet(&(number as u64, *side, 60)), measure);
        slab.add_octets(at, *side, payload, measure);
    }
}

/// Shannon's formula, in units of 1/32 bit.
fn entropy(payloads: &[Payload], side: usize) -> Option<u8> {
    let all = payloads.iter().filter(|own| own.0 == side).flat_map(|own| &own.1);
    let first: Vec<_> = all.copied().take(OCTETS.into()).collect();
    let share = |octet: u8| {
        let count = first.iter().filter(|own| **own == octet).count();
        count as f64 / first.len() as f64
    };
    let octets = (0..=255_u8).filter(|octet| first.contains(octet));
    let bits: f64 = octets.map(|octet| -share(octet) * share(octet).log2()).sum();
    (!first.is_empty()).then_some((32.0 * bits).round() as u8)
}

fn payloads() -> impl Strategy<Value = Vec<Payload>> {
    let octets = proptest::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..100);
    proptest::collection::vec((0..2_usize, octets), 1..8)
}

proptest! {
    #[test]
    fn the_entropy_is_that_of_the_first_octets_however_they_are_parted(
        payloads in payloads(),
        at in any::<prop::sample::Index>(),
    ) {
        let (mut slab, measure) = (Slab::default(), with_octets(usize::MAX));
        slab.push(&measure);
        add(&mut slab, 0, &payloads, &measure);
        let whole = slab.get(0).unwrap();
        prop_assert_eq!([0, 1].map(|side| whole.entropy(side)), [0, 1].map(|side| entropy(&payloads, side)));
        prop_assert!(!whole.is_cut());
        let bytes = whole.bytes();
        prop_assert!(bytes.len() <= FlowStatistics::most_bytes(30, OCTETS));
        prop_assert_eq!(FlowStatistics::split_from(&bytes), Some(((*whole).clone(), &[][..])));
        for len in 0..bytes.len() {
            prop_assert_eq!(FlowStatistics::split_from(&bytes[..len]), None);
        }
        // Another run, and a later part.
        let (before, after) = payloads.split_at(at.index(payloads.len()));
        let mut slab = Slab::default();
        slab.push(&measure);
        add(&mut slab, 0, before, &measure);
        let earlier = slab.get(0);
        let mut next = Slab::default();
        match &earlier {
            Some(own) => next.push_saved(own, &measure),
            None => next.push(&measure),
        }
        add(&mut next, 0, after, &measure);
        slab.restart(0, &measure);
        add(&mut slab, 0, after, &measure);
        let mut joined = slab.get(0).unwrap();
        if let Some(own) = earlier {
            let later = std::mem::replace(&mut joined, own);
            joined.join(&later);
        }
        for found in [next.get(0).unwrap(), joined] {
            prop_assert_eq!(&found.octets, &whole.octets);
        }
        let mut turned = (*whole).clone();
        turned.turn();
        prop_assert_eq!([1, 0].map(|side| turned.entropy(side)), [0, 1].map(|side| whole.entropy(side)));
    }

    #[test]
    fn octets_without_room_are_cut_and_stay_so(payloads in payloads(), blocks in 0..8_usize) {
        let (mut slab, few) = (Slab::default(), with_octets(blocks * 70));
        slab.push(&few);
        add(&mut slab, 0, &payloads, &few);
        let (found, mut whole) = (slab.get(0).unwrap(), Slab::default());
        let roomy = with_octets(usize::MAX);
        whole.push(&roomy);
        add(&mut whole, 0, &payloads, &roomy);
        let whole = whole.get(0).unwrap();
        prop_assert_eq!(found.is_cut(), found.octets != whole.octets || found.packets != whole.packets);
        let mut next = Slab::default();
        next.push_saved(&found, &roomy);
        add(&mut next, 0, &payloads, &roomy);
        prop_assert_eq!(next.get(0).unwrap().is_cut(), found.is_cut());
        slab.truncate(0);
        prop_assert!(few.room.used() <= blocks * 70);
    }
}

#[test]
fn entropies_are_between_none_and_eight_bits() {
    let of = |octets: Vec<u8>| {
        let (mut slab, measure) = (Slab::default(), with_octets(usize::MAX));
        let measure = Measure { octets: OCTETS_MOST, ..measure };
        slab.push(&measure);
        add(&mut slab, 0, &[(0, octets)], &measure);
        slab.get(0).unwrap().entropy(0)
    };
    assert_eq!(of(vec![]), None);
    assert_eq!(of(vec![7; 300]), Some(0));
    assert_eq!(of([1, 2].repeat(3)), Some(32));
    assert_eq!(of((0..=255).collect()), Some(255));
    assert_eq!(of((0..=15).collect()), Some(128));
}

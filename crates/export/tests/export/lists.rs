//! Statistics of packets in IPFIX: sums of squares, and lists in CESNET's elements.

use proptest::collection::vec;
use proptest::prelude::*;
use ringtap_export::encode::{Ipfix, LEAST_LIMIT, STREAM_LIMIT, UDP_LIMIT};
use ringtap_flow::{FlowRecord, FlowStatistics, IpVersion};

use crate::common::{answered, encode, tunnelled};
use crate::facts::{Decoded, any_record, decode, layouts};

const SECOND: u64 = 1_000_000_000;
const SQUARES: u16 = 198;
const FIRST_OF_BURSTS: [u16; 2] = [1_050, 1_054];

fn values<const OCTETS: usize, T>(
    all: impl Iterator<Item = T>,
    value: impl Fn(T) -> [u8; OCTETS],
) -> Vec<Vec<u8>> {
    all.map(|one| value(one).to_vec()).collect()
}

/// The values of each list, by the elements of CESNET.
fn expected(own: &FlowStatistics) -> Vec<(u16, Vec<Vec<u8>>)> {
    let ms = |ns: u64| (ns / 1_000_000).to_be_bytes();
    let packets = || own.first_packets().iter();
    let mut all = vec![
        (1_013, values(packets(), |one| one.octets.to_be_bytes())),
        (1_014, values(packets(), |one| ms(one.ts_ns()))),
        (1_015, values(packets(), |one| [one.tcp_flags])),
        (1_016, values(packets(), |one| [if one.side == 0 { 1 } else { 255 }])),
    ];
    for (direction, first) in FIRST_OF_BURSTS.into_iter().enumerate() {
        let bursts = || own.bursts(direction);
        all.push((first, values(bursts(), |one| (one.packets as u32).to_be_bytes())));
        all.push((first + 1, values(bursts(), |one| (one.octets as u32).to_be_bytes())));
        all.push((first + 2, values(bursts(), |one| ms(one.start_ns))));
        all.push((first + 3, values(bursts(), |one| ms(one.end_ns))));
    }
    all
}

/// Checks sums and lists; lists may have the first values alone if `cut`.
fn check(record: &FlowRecord, decoded: &Decoded, cut: bool) {
    let none = FlowStatistics::of(0, [(0, 0, 0, 0)]).unwrap();
    let own = record.statistics.as_deref();
    let directions = if record.packets[1] > 0 { 2 } else { 1 };
    assert_eq!(decoded.values.contains_key(&(29_305, SQUARES)), directions == 2);
    assert_eq!(decoded.values.contains_key(&(8_057, 1_054)), directions == 2);
    for (direction, enterprise) in [0, 29_305][..directions].iter().enumerate() {
        let squares = own.map_or(0, |own| own.lengths(direction).squares());
        assert_eq!(decoded.values[&(*enterprise, SQUARES)], [squares.to_be_bytes()]);
    }
    let mut lists = expected(own.unwrap_or(&none));
    lists.truncate(4 * (1 + directions));
    let mut lengths = Vec::new();
    for (element, full) in &lists {
        let got = &decoded.values[&(8_057, *element)];
        lengths.push(got.len());
        if cut {
            assert!(full.starts_with(got), "{element}");
        } else {
            assert_eq!(got, full, "{element}");
        }
    }
    // Those of the same packets or bursts have the same length.
    assert!(lengths.chunks(4).all(|four| four.iter().all(|len| *len == four[0])), "{lengths:?}");
}

fn any_statistics() -> impl Strategy<Value = Option<Box<FlowStatistics>>> {
    let gap = prop_oneof![5 => 0..SECOND, 1 => SECOND..9 * SECOND];
    let packets = vec((gap, 0..2_usize, 40..2_000_u32, any::<u8>()), 0..200);
    (prop_oneof![Just(30), Just(0), Just(255)], packets).prop_map(|(most, packets)| {
        let mut now = 1_700_000_000 * SECOND;
        let sent = packets.into_iter().map(|(gap, side, octets, flags)| {
            now += gap;
            (side, now, octets, flags)
        });
        FlowStatistics::of(most, sent)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_has_its_lists_cut_if_there_is_no_room(
        records in vec(((any_record(), any_statistics()), any::<bool>()), 0..20),
        limit in prop_oneof![LEAST_LIMIT..2_000, Just(UDP_LIMIT), Just(STREAM_LIMIT)],
        ingress: bool,
        entropy: bool,
    ) {
        let of = |((record, statistics), answered)| {
            let mut record = FlowRecord { statistics, ..record };
            record.packets[1] *= u64::from(answered);
            record
        };
        let records: Vec<_> = records.into_iter().map(of).collect();
        let mut encoder = Ipfix::new(77, 1, limit).with_ingress(ingress).with_statistics(true);
        encoder = encoder.with_entropy(entropy);
        let encoded = encode(&mut encoder, &records);
        prop_assert!(encoded.refused.is_empty());
        prop_assert!(encoded.messages.iter().all(|message| message.len() <= limit));
        let decoded = decode(&encoded);
        prop_assert_eq!(decoded.len(), records.len());
        for (record, decoded) in records.iter().zip(&decoded) {
            let facts: usize = record.facts.all().map(|(_, value)| value.len() + 20).sum();
            let packets = record.statistics.as_deref().map_or(0, |own| own.first_packets().len());
            let most = facts + 500 + 12 * packets + 2 * 15 * 24;
            check(record, decoded, most > limit.min(4_096));
            // None of these records has octets of payload.
            for (element, direction) in [(35, 0), (16_419, 1)] {
                let has = entropy && (direction == 0 || record.packets[1] > 0);
                let none = has.then(|| vec![vec![0]]);
                prop_assert_eq!(decoded.values.get(&(6_871, element)), none.as_ref());
            }
        }
    }
}

#[test]
fn every_layout_with_statistics_fits_into_the_smallest_message() {
    let mut v6 = tunnelled();
    v6.key.version = IpVersion::V6;
    v6.path.tunnel.as_mut().unwrap().ipv6 = true;
    let records: Vec<_> = [answered(), v6].iter().flat_map(layouts).collect();
    let mut encoder = Ipfix::new(7, 1, LEAST_LIMIT).with_ingress(true).with_parts(true);
    encoder = encoder.with_statistics(true).with_entropy(true);
    let encoded = encode(&mut encoder, &records);
    assert!(encoded.refused.is_empty());
    let decoded = decode(&encoded);
    assert_eq!(decoded.len(), records.len());
    records.iter().zip(&decoded).for_each(|(record, decoded)| check(record, decoded, true));
}

/// The lists of RFC 6313, octet by octet.
#[test]
fn a_flow_of_two_packets_octet_by_octet() {
    let packets = [(0, 1_001 * SECOND, 60, 2), (1, 1_001 * SECOND + 2_500_000, 1_500, 18)];
    let record = FlowRecord { statistics: FlowStatistics::of(30, packets), ..answered() };
    let mut encoder = Ipfix::new(7, 1, UDP_LIMIT).with_statistics(true);
    let encoded = encode(&mut encoder, &[record]);
    let hex = crate::golden::hex;
    let all = encoded.messages.concat();
    let has = |octets: &[u8]| all.windows(octets.len()).any(|part| part == octets);
    let template = "00c6 0008  80c6 0008 00007279  0123 ffff 0123 ffff 0123 ffff 0123 ffff";
    assert!(has(&hex(template)), "the fields");
    let squares = "0000000000000e10 00000000002255 10";
    let octets = "ff 000d 04 83f5 0002 00001f79  003c 05dc";
    let times = "ff 0019 04 83f6 0008 00001f79  00000000000f4628 00000000000f462a";
    let flags = "ff 000b 04 83f7 0001 00001f79  02 12";
    let directions = "ff 000b 04 83f8 0001 00001f79  01 ff";
    let bursts = "ff 0009 04 841a 0004 00001f79  ff 0009 04 841b 0004 00001f79 \
        ff 0009 04 841c 0008 00001f79  ff 0009 04 841d 0008 00001f79";
    let record = [squares, octets, times, flags, directions, bursts].concat();
    assert!(has(&hex(&record)), "the record");
}

//! A record, its JSON, its CSV and its Parquet have one sum, and any other record has another one.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use ringtap_flow::{
    FlowRecord, FlowStatistics, Kind, Origin, Part, ResponseTimes, TcpPerformance, Type as FactType,
};

use super::row::TAGS;
use super::{Column, Given, INTERVALS_MOST, NamedRow, RowSum, Sum, Sums};
use crate::fields::{Columns, FIELDS, Origins};
use crate::formats::tests::{any_record, key, record};
use crate::formats::{Format, Interface, Interfaces};

/// A run in which records have all columns.
fn interfaces() -> Interfaces {
    let interface = Interface { index: 1, name: "eth0".to_owned(), description: String::new() };
    Interfaces::new(&[interface])
        .with(Origins { networks: true, geo: true, vendors: true, vlans: true })
        .with_parts(true)
        .with_statistics(true)
}

fn sum(record: &FlowRecord) -> RowSum {
    RowSum::of(record, interfaces().columns(), &mut Vec::new())
}

fn any_fact() -> impl Strategy<Value = (Kind, Vec<u8>)> {
    let text = prop_oneof![
        any::<String>().prop_map(String::into_bytes),
        "[a;\\\\\",x0-9\\n]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    let kinds = prop::sample::select(Kind::KEPT.to_vec());
    (kinds, text, prop_oneof![0..3_u64, any::<u64>()]).prop_map(|(kind, text, number)| {
        let is_text = kind.value_type() == FactType::Text;
        (kind, if is_text { text } else { number.to_string().into_bytes() })
    })
}

prop_compose! {
    fn any_origin()(
        network in prop::option::of(any::<String>()),
        country in prop::option::of("[A-Z]{2}"),
        as_number: Option<u32>,
        as_name in prop::option::of(any::<String>()),
        links in prop::array::uniform3(prop::option::of(any::<String>())),
    ) -> Origin {
        let country = country.and_then(|code| code.into_bytes().try_into().ok());
        let [network, as_name] = [network, as_name].map(|name| name.map(Arc::from));
        let [vendor, interface, vlan] = links.map(|name| name.map(Arc::from));
        Origin { network, country, as_number, as_name, vendor, interface, vlan }
    }
}

prop_compose! {
    fn any_performance()(
        handshake_us: [Option<u32>; 2],
        rtt_ns: [u64; 2],
        counts: [[u32; 2]; 5],
        octets: [u64; 2],
    ) -> TcpPerformance {
        let [rtt_count, retransmissions, out_of_order, duplicate_acks, zero_windows] = counts;
        TcpPerformance {
            handshake_us, rtt_ns, rtt_count, retransmissions, out_of_order, duplicate_acks,
            zero_windows, octets
        }
    }
}

/// Direction, time, octets and flags of a packet.
fn any_packet() -> impl Strategy<Value = (usize, u64, u32, u8)> {
    let times = prop_oneof![
        9 => 1_700_000_000_123_000_000..1_700_000_002_456_000_000_u64,
        1 => any::<u64>(),
    ];
    (0..2_usize, times, prop_oneof![9 => 0..1_500_u32, 1 => any::<u32>()], any::<u8>())
}

prop_compose! {
    /// Any record, with all that it may have.
    fn any_whole()(
        mut record in any_record(),
        facts in prop::collection::vec(any_fact(), 0..8),
        origins in prop::option::of((any_origin(), any_origin())),
        tcp in prop::option::of(any_performance()),
        responses in prop::option::of((any::<u64>(), 1..u32::MAX)),
        packets in prop::collection::vec(any_packet(), 0..40),
        part in prop::option::of((any::<u32>(), any::<u64>())),
        ingress: u32,
    ) -> FlowRecord {
        for (kind, value) in facts {
            record.facts.add(kind, &value, usize::MAX).unwrap();
        }
        record.origins = origins.map(|(source, destination)| Box::new([source, destination]));
        record.tcp = tcp;
        record.responses = responses.map(|(sum_us, count)| ResponseTimes { sum_us, count });
        record.statistics = FlowStatistics::of(30, packets);
        record.part = part.map(|(number, flow_first_ns)| Part { number, flow_first_ns });
        record.path.ingress = ingress;
        record
    }
}

/// The record in this format.
fn written(format: Format, record: &FlowRecord) -> Vec<u8> {
    format.encode(std::slice::from_ref(record), &interfaces()).unwrap()
}

fn of_json(record: &FlowRecord) -> RowSum {
    let object: serde_json::Value = serde_json::from_slice(&written(Format::Json, record)).unwrap();
    let mut row = NamedRow::default();
    // The object has its own order of names.
    for (name, value) in object.as_object().unwrap() {
        let Some(column) = Column::named(name) else { continue };
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            let given = value.as_u64().map(Given::Number);
            row.add(column, given.unwrap_or_else(|| Given::Text(value.as_str().unwrap()))).unwrap();
        }
    }
    row.sum().unwrap()
}

fn of_csv(record: &FlowRecord) -> RowSum {
    let file = written(Format::Csv, record);
    let mut lines = csv::Reader::from_reader(&file[..]);
    let names = lines.headers().unwrap().clone();
    let line = lines.records().next().unwrap().unwrap();
    let mut row = NamedRow::default();
    for (name, field) in names.iter().zip(&line) {
        match Column::named(name) {
            Some(column) => row.add_csv(column, field).unwrap(),
            None => assert_eq!(name, "communityId"),
        }
    }
    row.sum().unwrap()
}

#[cfg(feature = "parquet")]
fn of_parquet(record: &FlowRecord) -> RowSum {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let file = bytes::Bytes::from(written(Format::Parquet, record));
    let reader = SerializedFileReader::new(file).unwrap();
    let line = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let mut row = NamedRow::default();
    let mut add = |column, value: &Field| {
        let given = match *value {
            Field::Null => return,
            Field::UByte(number) => Given::Number(number.into()),
            Field::UShort(number) => Given::Number(number.into()),
            Field::UInt(number) => Given::Number(number.into()),
            Field::ULong(number) => Given::Number(number),
            Field::TimestampMillis(number) => Given::Number(number.cast_unsigned()),
            Field::Str(ref text) => Given::Text(text),
            ref other => panic!("{other:?}"),
        };
        row.add(column, given).unwrap();
    };
    for (name, value) in line.get_column_iter() {
        let Some(column) = Column::named(name) else { continue };
        match value {
            Field::ListInternal(list) => list.elements().iter().for_each(|one| add(column, one)),
            one => add(column, one),
        }
    }
    row.sum().unwrap()
}

#[test]
fn tags_are_distinct() {
    let tags: HashSet<u32> = TAGS.iter().copied().collect();
    assert_eq!(tags.len(), FIELDS.len());
    // Of another implementation.
    let row = FIELDS.iter().position(|field| field.name == "flowId").unwrap();
    assert_eq!(TAGS[row], 0xe3ad_ff90);
}

/// As an implementation in another language computes it from the JSON.
#[test]
fn the_sum_of_a_record_is_fixed() {
    let mut record = record(key(17, "10.0.0.1", "10.0.0.53", (5_000, 53)));
    record.irregular = true;
    for value in ["example.org", "example.net"] {
        record.facts.add(Kind::DnsQueryName, value.as_bytes(), usize::MAX).unwrap();
    }
    let sum = sum(&record);
    assert_eq!((sum.end_ms, sum.directions, sum.packets), (1_700_000_007_456, 2, 23));
    assert_eq!(sum.octets, 2_100, "modulo 2⁶⁴");
    assert_eq!(format!("{:032x}", sum.all), "ed72dd20ba80adb2bf8a3ca38ec6ea68");
    assert_eq!(format!("{:032x}", sum.core), "658fdd7eac652b432ee2771014a29d60");
}

/// NetFlow v9 has a record for each direction.
#[test]
fn the_core_of_a_flow_is_that_of_its_directions() {
    let both = record(key(6, "2001:db8::1", "2001:db8::2", (1_000, 443)));
    let one = |direction: usize| FlowRecord {
        key: if direction == 0 { both.key } else { both.key.reversed() },
        packets: [both.packets[direction], 0],
        octets: [both.octets[direction], 0],
        ..both.clone()
    };
    let [whole, there, back] = [both.clone(), one(0), one(1)].map(|record| sum(&record));
    assert_eq!(there.core.wrapping_add(back.core), whole.core);
    assert_eq!([there.directions, back.directions, whole.directions], [1, 1, 2]);
    let answer = FlowRecord { packets: [0, both.packets[1]], octets: [0, both.octets[1]], ..both };
    assert_eq!((sum(&answer).core, sum(&answer).directions), (back.core, 1));
    let nothing = FlowRecord { packets: [0; 2], octets: [0; 2], ..answer };
    // A part that only says why its flow ended: NetFlow has no record of it.
    assert_eq!((sum(&nothing).core, sum(&nothing).directions), (0, 0));
}

#[test]
fn names_of_both_ip_versions_are_one_column() {
    let column = Column::named("sourceIPAddress").unwrap();
    assert_eq!(Column::named("sourceIPv4Address"), Some(column));
    assert_eq!(Column::named("sourceIPv6Address"), Some(column));
    assert_eq!(Column::named("icmpTypeCodeIPv6").unwrap().name(), "icmpTypeCode");
    for name in ["ipVersion", "payloadValuesOmitted", "communityId", "", "other"] {
        assert_eq!(Column::named(name), None, "{name}");
    }
}

#[test]
fn a_row_without_addresses_is_no_record() {
    let add = |row: &mut NamedRow, name, given| row.add(Column::named(name).unwrap(), given);
    let mut row = NamedRow::default();
    add(&mut row, "flowEndMilliseconds", Given::Number(0)).unwrap();
    add(&mut row, "sourceIPAddress", Given::Text("10.0.0.1")).unwrap();
    assert_eq!(row.sum(), None);
    add(&mut row, "destinationIPAddress", Given::Text("10.0.0.2")).unwrap();
    let first = row.sum().unwrap();
    assert_eq!((first.end_ms, first.directions), (0, 0));
    row.clear();
    assert_eq!(row.sum(), None);
    let error = add(&mut row, "packetDeltaCount", Given::Text("-1")).unwrap_err();
    assert_eq!(error.to_string(), "packetDeltaCount is \"-1\", which is not a number");
    assert!(add(&mut row, "sourceIPAddress", Given::Number(1)).is_err());
    add(&mut row, "packetDeltaCount", Given::Text("18446744073709551615")).unwrap();
}

#[test]
fn the_latest_intervals_are_kept_in_any_order() {
    let rows: Vec<RowSum> = (0..200_u64)
        .map(|second| RowSum {
            end_ms: second * 7_000,
            all: second.into(),
            ..sum(&record(key(6, "10.0.0.1", "10.0.0.2", (1, 2))))
        })
        .collect();
    let of = |rows: &mut dyn Iterator<Item = &RowSum>| {
        let mut sums = Sums::default();
        rows.for_each(|row| sums.add(row, 10));
        sums
    };
    let forward = of(&mut rows.iter());
    assert_eq!(forward, of(&mut rows.iter().rev()));
    let mut parts = of(&mut rows.iter().step_by(2));
    parts.merge(&of(&mut rows.iter().skip(1).step_by(2)));
    assert_eq!(forward, parts);
    let starts: Vec<_> = forward.intervals().keys().copied().collect();
    assert_eq!((starts.len(), starts.last()), (INTERVALS_MOST, Some(&1_390)));
    let mut all = Sum::default();
    rows.iter().for_each(|row| all += row.into());
    assert_eq!((forward.total(), all.rows), (all, 200));
    let later = rows.iter().filter(|row| row.end_ms / 1_000 >= starts[0]).count() as u64;
    assert_eq!(forward.others().rows, 200 - later);

    let json = serde_json::to_string(&forward).unwrap();
    assert_eq!(serde_json::from_str::<Sums>(&json).unwrap(), forward);
    let few = of(&mut rows.iter().take(1));
    let core = format!("{:032x}", rows[0].core);
    assert_eq!(
        serde_json::to_string(&few).unwrap(),
        format!(
            "{{\"intervals\":[{{\"start\":0,\"rows\":1,\"directions\":2,\"packets\":23,\"octets\":2100,\
             \"all\":\"00000000000000000000000000000000\",\"core\":\"{core}\"}}]}}"
        )
    );
    assert!(serde_json::from_str::<Sums>(&json.replace("\"all\":\"", "\"all\":\"+")).is_err());
}

/// The sums of these records.
fn total(records: &[FlowRecord]) -> Sum {
    let mut total = Sum::default();
    records.iter().for_each(|record| total += (&sum(record)).into());
    total
}

/// The record with another value of a field, if it has the field.
fn changed(record: &FlowRecord, field: usize) -> FlowRecord {
    let mut other = record.clone();
    match field {
        0 => other.first_ns ^= 1 << 40,
        1 => other.last_ns ^= 1 << 40,
        2 => other.key.src[0] ^= 1,
        3 => other.key.dst[3] ^= 0x80,
        4 => other.key.src_port ^= 1,
        5 => other.key.dst_port ^= 0x8000,
        6 => other.key.protocol ^= 1,
        7 => other.packets[0] = other.packets[0].wrapping_add(1),
        8 => other.packets[1] = other.packets[1].wrapping_add(1),
        9 => other.octets[0] ^= 1,
        10 => other.octets[1] ^= 1 << 63,
        11 => other.tcp_flags[1] ^= 1,
        12 => other.ttl[0][1] ^= 1,
        13 => other.ip_len[1][0] ^= 1,
        14 => other.icmp_type_code ^= 1,
        15 => other.path.macs[0][5] ^= 1,
        16 => other.path.vlans[0] ^= 1,
        17 => other.path.ingress ^= 1,
        18 => drop(other.facts.add(Kind::HttpTarget, b"/another one", usize::MAX)),
        19 => other.path.mpls_label = Some(other.path.mpls_label.unwrap_or(4) ^ 1),
        20 => other.application = None,
        21 => other.origins = None,
        22 => other.tcp = None,
        23 => other.part = None,
        24 => other.responses = None,
        25 => other.statistics = None,
        26 => other.reverse_path = None,
        27 => other.path.mpls_second_label = Some(other.path.mpls_second_label.unwrap_or(4) ^ 1),
        _ => other.end_reason = record.end_reason,
    }
    other
}

/// Fields of [`changed`].
const CHANGES: usize = 28;

proptest! {
    #[test]
    fn all_formats_have_the_sum_of_the_record(record in any_whole()) {
        let own = sum(&record);
        prop_assert_eq!(of_json(&record), own);
        prop_assert_eq!(of_csv(&record), own);
        #[cfg(feature = "parquet")]
        prop_assert_eq!(of_parquet(&record), own);
    }

    #[test]
    fn the_buffer_may_have_any_bytes(record in any_whole(), mut buffer: Vec<u8>) {
        prop_assert_eq!(RowSum::of(&record, interfaces().columns(), &mut buffer), sum(&record));
    }

    #[test]
    fn without_a_column_the_sum_is_that_of_records_without_the_field(record in any_whole()) {
        let mut path = record.path;
        path.ingress = 0;
        let plain =
            FlowRecord { origins: None, part: None, statistics: None, path, ..record.clone() };
        let without = RowSum::of(&record, Columns::default(), &mut Vec::new());
        prop_assert_eq!(without, sum(&plain));
        prop_assert_eq!(without.core, sum(&record).core);
    }

    /// Whatever changes the line of JSON changes the sum, also by one field in one of many records.
    #[test]
    fn a_changed_field_changes_the_sum(
        mut records in prop::collection::vec(any_whole(), 1..4),
        at: prop::sample::Index,
        field in 0..CHANGES,
    ) {
        let before = total(&records);
        let record = at.get(&records).clone();
        let other = changed(&record, field);
        let same = written(Format::Json, &record) == written(Format::Json, &other);
        // Zero and absent are equal in sums; JSON is compared without zeros.
        let nonzero = |record: &FlowRecord| {
            let json = String::from_utf8(written(Format::Json, record)).unwrap();
            let mut object: serde_json::Value = serde_json::from_str(&json).unwrap();
            object.as_object_mut().unwrap().retain(|_, value| *value != 0 && *value != "");
            object
        };
        let same = same || nonzero(&record) == nonzero(&other);
        let at = at.index(records.len());
        records[at] = other;
        prop_assert_eq!(total(&records).all == before.all, same);
        let is_core = field < 11;
        prop_assert!(is_core || total(&records).core == before.core);
    }

    #[test]
    fn a_removed_or_doubled_row_changes_the_sum(
        mut records in prop::collection::vec(any_whole(), 1..4)
    ) {
        let before = total(&records);
        records.push(records[0].clone());
        let doubled = total(&records);
        prop_assert!(doubled.all != before.all && doubled.core != before.core);
        records.truncate(records.len() - 2);
        let removed = total(&records);
        prop_assert!(removed.all != before.all && removed.core != before.core);
    }

    /// Packets and octets in total are the same.
    #[test]
    fn two_rows_with_a_swapped_field_change_the_sum(a in any_whole(), b in any_whole()) {
        prop_assume!(a.octets[0] != b.octets[0] && a.key != b.key);
        let before = total(&[a.clone(), b.clone()]);
        let (mut c, mut d) = (a, b);
        std::mem::swap(&mut c.octets[0], &mut d.octets[0]);
        let after = total(&[c.clone(), d.clone()]);
        prop_assert!(after.all != before.all);
        prop_assert_eq!((after.packets, after.octets), (before.packets, before.octets));
        let seen = |record: &FlowRecord| record.packets[0] > 0 || record.packets[1] == 0;
        prop_assert!(after.core != before.core || !seen(&c) && !seen(&d));
    }
}

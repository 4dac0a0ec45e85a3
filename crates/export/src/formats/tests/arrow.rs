//! Record batches have the values of the records, and nulls where there are none.

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt8Type, UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use ringtap_flow::{FlowRecord, FlowStatistics, Kind};

use super::{echo, tcp, tunnelled};
use crate::fields::Chosen;
use crate::formats::{Columns, GrowingBatch, Rows};

/// The batch of records that two workers made.
fn batch(first: &[FlowRecord], second: &[FlowRecord]) -> RecordBatch {
    let mut all = GrowingBatch::new(Columns::default(), Chosen::ALL, 4);
    for records in [first, second] {
        let mut rows = Rows::new(Columns::default());
        records.iter().for_each(|record| rows.push(record));
        all.append(&rows);
    }
    let batch = all.take(4).unwrap();
    assert_eq!((all.len(), all.take(4).unwrap().num_rows()), (0, 0));
    batch
}

#[test]
fn chosen_columns_are_those_of_all_columns() {
    let names = [
        "sourceIPAddress",
        "flowStartMilliseconds",
        "sourceTransportPort",
        "tunnelType",
        "nothing",
    ];
    let chosen = Chosen::named(&names);
    let records = [tcp(), tunnelled(), echo()];
    let mut some = GrowingBatch::new(Columns::default(), chosen, 4);
    let mut rows = Rows::choosing(Columns::default(), chosen);
    records.iter().for_each(|record| rows.push(record));
    some.append(&rows);
    let (some, all) = (some.take(4).unwrap(), batch(&records, &[]));
    assert_eq!((some.num_columns(), some.num_rows()), (4, 3));
    for name in &names[..4] {
        assert_eq!(some.column_by_name(name), all.column_by_name(name), "{name}");
    }
    // Rows without columns are still rows.
    let mut none = GrowingBatch::new(Columns::default(), Chosen::named(&["nothing"]), 4);
    none.append(&rows);
    assert_eq!(none.take(4).unwrap().num_rows(), 3);
}

fn named(kind: Kind, values: &[&str]) -> FlowRecord {
    let mut record = tcp();
    for value in values {
        assert!(record.facts.add(kind, value.as_bytes(), usize::MAX).is_ok());
    }
    record
}

#[test]
fn numbers_times_and_texts_are_null_where_they_are_missing() {
    let batch = batch(&[echo(), tcp(), echo()], &[echo(), tunnelled(), echo()]);
    let column = |name| batch.column_by_name(name).unwrap();
    let octets = column("reverseOctetDeltaCount").as_primitive::<UInt64Type>();
    assert_eq!(octets.values().to_vec(), [u64::MAX; 6]);
    let times = column("flowStartMilliseconds").as_primitive::<TimestampMillisecondType>();
    assert_eq!((times.timezone(), times.value(5)), (Some("UTC"), 1_700_000_000_123));
    let ports = column("sourceTransportPort").as_primitive::<UInt16Type>();
    let port = tunnelled().key.src_port;
    let expected = [None, Some(49152), None, None, Some(port), None];
    assert_eq!(ports.iter().collect::<Vec<_>>(), expected);
    let lifetimes = column("minimumTTL").as_primitive::<UInt8Type>();
    assert_eq!((lifetimes.null_count(), lifetimes.value(5)), (0, 63));
    let tunnels = column("tunnelType").as_string::<i32>();
    let expected = [None, None, None, None, Some("vxlan"), None];
    assert_eq!(tunnels.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn lists_have_all_values_of_their_rows() {
    let names = [named(Kind::DnsQueryName, &["a.example", "b.example"]), tcp()];
    let more = [tcp(), named(Kind::DnsQueryName, &["c.example"]), tcp()];
    let batch = batch(&names, &more);
    let column = |name| batch.column_by_name(name).unwrap();
    let lists = column("dnsQueryName").as_list::<i32>();
    let texts = |list: arrow_array::ArrayRef| -> Vec<String> {
        list.as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
    };
    let lists: Vec<_> = lists.iter().map(|list| list.map(texts)).collect();
    let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let expected = [some(&["a.example", "b.example"]), None, None, some(&["c.example"]), None];
    assert_eq!(lists, expected);
    assert_eq!(column("httpStatus").as_list::<i32>().null_count(), 5, "in no record");
}

#[test]
fn lists_of_numbers_have_zeros_too() {
    let columns = Columns { statistics: true, ..Columns::default() };
    let first_ns = tcp().first_ns;
    let packets = [(0, 0, 60, 2), (1, 2_000, 1_500, 18), (0, 5_000, 52, 16)];
    let at = packets.map(|(side, ns, octets, flags)| (side, first_ns + ns, octets, flags));
    let measured = FlowRecord { statistics: FlowStatistics::of(30, at), ..tcp() };
    let (mut all, mut rows) = (GrowingBatch::new(columns, Chosen::ALL, 4), Rows::new(columns));
    [tcp(), measured, tcp()].iter().for_each(|record| rows.push(record));
    all.append(&rows);
    let batch = all.take(4).unwrap();
    let column = |name| batch.column_by_name(name).unwrap();
    let list = |name| column(name).as_list::<i32>().value(1);
    let octets = list("firstPacketLengths");
    assert_eq!(octets.as_primitive::<UInt16Type>().values().to_vec(), [60, 1_500, 52]);
    let sides = list("firstPacketDirections");
    assert_eq!(sides.as_primitive::<UInt8Type>().values().to_vec(), [0, 1, 0]);
    let times = list("firstPacketMicroseconds");
    assert_eq!(times.as_primitive::<UInt64Type>().values().to_vec(), [0, 2, 5]);
    assert_eq!(column("firstPacketFlags").as_list::<i32>().null_count(), 2);
    assert_eq!(column("burstPackets").as_list::<i32>().null_count(), 3);
    let means = column("packetLengthMean").as_primitive::<UInt64Type>();
    assert_eq!(means.iter().collect::<Vec<_>>(), [None, Some(56), None]);
}

#[test]
fn a_batch_without_rows_has_all_columns() {
    let batch = batch(&[], &[]);
    assert_eq!(batch.num_rows(), 0);
    assert!(batch.column_by_name("communityId").is_some());
}

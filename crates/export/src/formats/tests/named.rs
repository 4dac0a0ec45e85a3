//! The formats with IPFIX names, JSON lines, CSV and Parquet, contain the same values.

use std::net::IpAddr;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use ringtap_flow::{
    Application, ApplicationReason, FlowRecord, IpVersion, Kind, Label, Path, TcpPerformance,
};
use serde_json::{Value, json};

use super::{any_record, echo, key, record, tcp, text, tunnelled, written};
use crate::fields;
use crate::formats::{Columns, CommunityId, Format, ParquetFile, Rows};

fn object(record: FlowRecord) -> Value {
    super::object(Format::Json, record)
}

/// The columns that are not empty.
fn columns(record: FlowRecord) -> Vec<(String, String)> {
    let text = text(Format::Csv, &[record]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].len(), lines[1].len());
    let pairs = lines[0].iter().zip(&lines[1]);
    pairs.filter(|(_, v)| !v.is_empty()).map(|(&k, &v)| (k.to_owned(), v.to_owned())).collect()
}

/// The rows of a Parquet file, with the columns that are not null.
pub(super) fn rows(file: Vec<u8>) -> Vec<Vec<(String, String)>> {
    let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
    let value = |field: &Field| match field {
        Field::UByte(n) => n.to_string(),
        Field::UShort(n) => n.to_string(),
        Field::UInt(n) => n.to_string(),
        Field::ULong(n) => n.to_string(),
        Field::TimestampMillis(n) => n.to_string(),
        Field::Str(text) => text.clone(),
        other => panic!("{other:?} is of no type that is promised"),
    };
    let value = |field: &Field| match field {
        Field::ListInternal(list) => {
            list.elements().iter().map(value).collect::<Vec<_>>().join(";")
        }
        other => value(other),
    };
    let row = |row: parquet::record::Row| {
        let there = row.get_column_iter().filter(|(_, field)| **field != Field::Null);
        there.map(|(name, field)| (name.clone(), value(field))).collect()
    };
    reader.get_row_iter(None).unwrap().map(|one| row(one.unwrap())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
}

#[test]
fn facts_and_the_application_are_in_all_formats() {
    let mut record = record(key(17, "10.0.0.1", "10.0.0.53", (5_000, 53)));
    let values: [&[u8]; 3] = [b"example.org", b"a\"b;c", b"\xff,"];
    for value in values {
        assert!(record.facts.add(Kind::DnsQueryName, value, usize::MAX).is_ok());
    }
    for (kind, value) in
        [(Kind::HttpStatus, "404"), (Kind::HttpStatus, "0"), (Kind::NtpStratum, "3")]
    {
        assert!(record.facts.add(kind, value.as_bytes(), usize::MAX).is_ok());
    }
    record.application =
        Some(Application { label: Label::new(b"a,\"b").unwrap(), reason: ApplicationReason::Name });
    let object = object(record.clone());
    assert_eq!(object["dnsQueryName"], json!(["example.org", "a\"b;c", "\u{fffd},"]));
    assert_eq!(object["httpStatus"], json!([404, 0]));
    assert_eq!((&object["ntpStratum"], &object["tlsServerName"]), (&json!(3), &Value::Null));
    assert_eq!(object["application"], "a,\"b");
    assert_eq!(object["applicationReason"], "name");

    let text = text(Format::Csv, std::slice::from_ref(&record));
    let (head, line) = text.split_once('\n').unwrap();
    assert!(head.contains(",ntpStratum,application,applicationReason,tcpHandshake"), "{head}");
    assert!(line.contains(",\"example.org;a\"\"b\\x3bc;\u{fffd},\","), "{line}");
    assert!(line.contains(",404;0,") && line.contains(",3,\"a,\"\"b\",name,"), "{line}");

    let rows = rows(written(Format::Parquet, &[tcp(), record, echo()]));
    let get = |row: usize, name| {
        rows[row].iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(get(1, "dnsQueryName"), Some("example.org;a\"b;c;\u{fffd},"));
    assert_eq!(get(1, "httpStatus"), Some("404;0"));
    assert_eq!(get(1, "ntpStratum"), Some("3"));
    assert_eq!((get(1, "application"), get(1, "applicationReason")), (Some("a,\"b"), Some("name")));
    for (row, name) in [(0, "dnsQueryName"), (2, "httpStatus"), (2, "application")] {
        assert_eq!(get(row, name), None);
    }
}

#[test]
fn the_performance_of_tcp_is_in_json_csv_and_parquet() {
    let tcp = TcpPerformance {
        handshake_us: [Some(1000), Some(20)],
        rtt_ns: [3_000_999, 0],
        rtt_count: [2, 0],
        retransmissions: [1, 2],
        out_of_order: [3, 4],
        duplicate_acks: [5, 6],
        zero_windows: [7, 8],
        octets: [9, 10],
    };
    let record = FlowRecord { tcp: Some(tcp), ..self::tcp() };
    let expected = [
        ("tcpHandshakeRttMicroseconds", Some("1020")),
        ("tcpClientHandshakeRttMicroseconds", Some("20")),
        ("tcpServerHandshakeRttMicroseconds", Some("1000")),
        ("tcpClientRttMicroseconds", None),
        ("tcpServerRttMicroseconds", Some("1500")),
        ("tcpRetransmissions", Some("1")),
        ("reverseTcpRetransmissions", Some("2")),
        ("tcpOutOfOrder", Some("3")),
        ("reverseTcpOutOfOrder", Some("4")),
        ("tcpDuplicateAcks", Some("5")),
        ("reverseTcpDuplicateAcks", Some("6")),
        ("tcpZeroWindows", Some("7")),
        ("reverseTcpZeroWindows", Some("8")),
        ("initiatorOctets", Some("9")),
        ("responderOctets", Some("10")),
    ];
    let object = object(record.clone());
    let text = text(Format::Csv, std::slice::from_ref(&record));
    let (head, line) = text.trim_end().split_once('\n').unwrap();
    let rows = rows(written(Format::Parquet, &[record, echo()]));
    for (name, value) in expected {
        let number = value.map(|value| value.parse::<u64>().unwrap());
        assert_eq!(object[name].as_u64(), number, "{name}");
        let at = head.split(',').position(|column| column == name).unwrap();
        assert_eq!(line.split(',').nth(at), Some(value.unwrap_or_default()), "{name}");
        let of = |row: &[(String, String)]| {
            row.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
        };
        assert_eq!((of(&rows[0]).as_deref(), of(&rows[1])), (value, None), "{name}");
    }
}

#[test]
fn json_of_tcp_has_every_field() {
    assert_eq!(
        object(tcp()),
        json!({
            "flowStartMilliseconds": 1_700_000_000_123_u64,
            "flowEndMilliseconds": 1_700_000_007_456_u64,
            "sourceIPv4Address": "192.0.2.1",
            "destinationIPv4Address": "198.51.100.2",
            "sourceTransportPort": 49152,
            "destinationTransportPort": 443,
            "protocolIdentifier": 6,
            "octetDeltaCount": 2101,
            "packetDeltaCount": 11,
            "reverseOctetDeltaCount": u64::MAX,
            "reversePacketDeltaCount": 12,
            "tcpControlBits": 0x1b,
            "reverseTcpControlBits": 0xdf,
            "minimumTTL": 63,
            "maximumTTL": 64,
            "minimumIpTotalLength": 40,
            "maximumIpTotalLength": 1500,
            "ipClassOfService": 0x28,
            "reverseMinimumTTL": 55,
            "reverseMaximumTTL": 57,
            "reverseMinimumIpTotalLength": 52,
            "reverseMaximumIpTotalLength": 65_535,
            "reverseIpClassOfService": 0xb8,
            "history": "ShADadFf",
            "sourceMacAddress": "02:00:00:00:00:a1",
            "destinationMacAddress": "02:00:00:00:00:b2",
            "vlanId": 4094,
            "biflowDirection": 1,
            "flowEndReason": 3,
            "communityId": "1:vXun9A9cW2Ry2J4BkTjoTIYpvAA=",
        })
    );
}

/// The path is that of the initiator, although the first packet came from the other end.
#[test]
fn json_of_a_tunnel_has_its_ends_in_the_direction_of_the_key() {
    let object = object(tunnelled());
    for (name, value) in [
        ("vlanId", json!(100)),
        ("dot1qCustomerVlanId", json!(7)),
        ("mplsTopLabel", json!(299_792)),
        ("tunnelType", json!("vxlan")),
        ("tunnelSourceIPv6Address", json!("2001:db8::bb")),
        ("tunnelDestinationIPv6Address", json!("2001:db8::aa")),
        ("tunnelId", json!(5001)),
        ("sourceMacAddress", json!("02:00:00:00:00:b2")),
        ("destinationMacAddress", json!("02:00:00:00:00:a1")),
        ("biflowDirection", json!(1)),
    ] {
        assert_eq!(object[name], value, "{name}");
    }
}

#[test]
fn json_leaves_out_missing_values() {
    let names = |record| -> Vec<String> {
        let object = object(record);
        let always = [
            "flowStartMilliseconds",
            "flowEndMilliseconds",
            "protocolIdentifier",
            "octetDeltaCount",
            "packetDeltaCount",
            "reverseOctetDeltaCount",
            "reversePacketDeltaCount",
            "minimumTTL",
            "maximumTTL",
            "minimumIpTotalLength",
            "maximumIpTotalLength",
            "ipClassOfService",
            "biflowDirection",
            "flowEndReason",
            "communityId",
        ];
        let object = object.as_object().unwrap();
        assert!(always.iter().all(|&name| object.contains_key(name)), "{object:?}");
        object.keys().filter(|name| !always.contains(&name.as_str())).cloned().collect()
    };
    let v4 = ["destinationIPv4Address", "sourceIPv4Address"];
    let v6 = ["destinationIPv6Address", "sourceIPv6Address"];
    let sorted = |address: [&str; 2], rest: &[&str]| {
        let mut names: Vec<String> =
            address.iter().chain(rest).map(|&name| name.to_owned()).collect();
        names.sort();
        names
    };
    let of = |protocol, v: u8| {
        let (source, destination) =
            if v == 4 { ("10.0.0.1", "10.0.0.2") } else { ("2001:db8::1", "2001:db8::2") };
        let unanswered = [11, 0];
        let record = record(key(protocol, source, destination, (0, 0)));
        let mut names = names(FlowRecord { packets: unanswered, octets: unanswered, ..record });
        names.sort();
        names
    };
    let ports = ["destinationTransportPort", "sourceTransportPort"];
    for protocol in [17, 33, 132, 136] {
        assert_eq!(of(protocol, 4), sorted(v4, &ports), "protocol {protocol}");
        assert_eq!(of(protocol, 6), sorted(v6, &ports), "protocol {protocol}");
    }
    let tcp = [ports[0], ports[1], "tcpControlBits", "reverseTcpControlBits"];
    assert_eq!(of(6, 6), sorted(v6, &tcp));
    assert_eq!(of(1, 4), sorted(v4, &["icmpTypeCodeIPv4"]));
    assert_eq!(of(58, 6), sorted(v6, &["icmpTypeCodeIPv6"]));
    assert_eq!(of(47, 4), sorted(v4, &[]));
    assert_eq!(of(0, 6), sorted(v6, &[]));
}

#[test]
fn json_of_icmpv6() {
    let key = key(58, "3ffe:501:410::2c0:dfff:fe47:33e", "3ffe:507:0:1:200:86ff:fe05:80da", (0, 0));
    let object = object(FlowRecord { icmp_type_code: 1 << 8 | 4, ..record(key) });
    assert_eq!(object["sourceIPv6Address"], "3ffe:501:410:0:2c0:dfff:fe47:33e");
    assert_eq!(object["destinationIPv6Address"], "3ffe:507:0:1:200:86ff:fe05:80da");
    assert_eq!(object["icmpTypeCodeIPv6"], 260);
    assert_eq!(object.get("reverseIcmpTypeCodeIPv6"), None);
    assert_eq!(object["communityId"], "1:hLZd0XGWojozrvxqE0dWB1iM6R0=");
}

#[test]
fn answers_of_icmp_have_type_and_code() {
    let answered = FlowRecord { reverse_icmp_type_code: Some(0), ..echo() };
    assert_eq!(object(answered.clone())["reverseIcmpTypeCodeIPv4"], 0);
    let has_zero = ("reverseIcmpTypeCode".to_owned(), "0".to_owned());
    assert!(columns(answered).contains(&has_zero));
}

/// The first columns never change.
#[test]
fn csv_of_icmp_has_no_ports() {
    let columns = columns(FlowRecord { packets: [11, 0], ..echo() });
    assert_eq!(
        columns,
        pairs(&[
            ("flowStartMilliseconds", "1700000000123"),
            ("flowEndMilliseconds", "1700000007456"),
            ("sourceIPAddress", "192.168.0.89"),
            ("destinationIPAddress", "192.168.0.1"),
            ("protocolIdentifier", "1"),
            ("octetDeltaCount", "2101"),
            ("packetDeltaCount", "11"),
            ("reverseOctetDeltaCount", "18446744073709551615"),
            ("reversePacketDeltaCount", "0"),
            ("icmpTypeCode", "2048"),
            ("flowEndReason", "3"),
            ("communityId", "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
            ("minimumTTL", "63"),
            ("maximumTTL", "64"),
            ("minimumIpTotalLength", "40"),
            ("maximumIpTotalLength", "1500"),
            ("ipClassOfService", "40"),
            ("biflowDirection", "0"),
        ])
    );
}

#[test]
fn csv_always_has_one_header() {
    let nothing = text(Format::Csv, &[]);
    assert!(nothing.starts_with("flowStartMilliseconds,flowEndMilliseconds,sourceIPAddress,"));
    assert!(nothing.contains(",icmpTypeCode,vlanId,flowEndReason,communityId,minimumTTL,"));
    assert_eq!(nothing.lines().count(), 1);
    // Without the version, which Parquet alone has.
    assert_eq!(nothing.split(',').count(), fields::columns(Columns::default()).count() - 1);
    assert_eq!(text(Format::Csv, &[tcp(), echo()]).lines().count(), 3);
}

#[test]
fn without_records_json_is_empty_and_the_table_too() {
    assert_eq!(text(Format::Json, &[]), "");
    assert!(rows(written(Format::Parquet, &[])).is_empty());
}

/// More rows than a group holds, in order, each with its own values.
#[test]
fn parquet_continues_in_a_second_row_group() {
    let records: Vec<_> = (0..70_000)
        .map(|n| {
            let ports = (n as u16, (n >> 16) as u16);
            let path = if n % 3 == 0 { tunnelled().path } else { echo().path };
            let record = record(key(17, "10.0.0.1", "10.0.0.2", ports));
            FlowRecord { octets: [n, 0], path, ..record }
        })
        .collect();
    let file = written(Format::Parquet, &records);
    let reader = SerializedFileReader::new(Bytes::from(file.clone())).unwrap();
    let groups = reader.metadata().row_groups();
    assert_eq!(groups.iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [65_536, 4_464]);
    for (number, (row, record)) in rows(file).into_iter().zip(&records).enumerate() {
        let get = |name: &str| row.iter().find(|(own, _)| own == name).map(|(_, v)| v.as_str());
        assert_eq!(get("octetDeltaCount"), Some(number.to_string().as_str()));
        assert_eq!(get("sourceTransportPort"), Some((number as u16).to_string().as_str()));
        assert_eq!(get("communityId"), Some(CommunityId::of(record).to_string().as_str()));
        assert_eq!(get("tunnelType"), (number % 3 == 0).then_some("vxlan"));
    }
}

#[test]
fn rows_of_several_workers_append_to_one_group() {
    let mut parts = [Rows::new(Columns::default()), Rows::new(Columns::default())];
    parts[0].push(&tcp());
    parts[0].push(&tunnelled());
    parts[1].push(&echo());
    let mut rows = Rows::new(Columns::default());
    parts.iter().for_each(|part| rows.append(part));
    assert_eq!((rows.len(), rows.is_empty()), (3, false));
    let mut file = ParquetFile::new(Columns::default()).unwrap();
    let mut out = file.group(&mut rows).unwrap();
    assert!(rows.is_empty());
    out.extend(file.end().unwrap());
    assert_eq!(out, written(Format::Parquet, &[tcp(), tunnelled(), echo()]));
    parts[0].clear();
    assert!(parts[0].is_empty());
}

#[test]
fn formats_are_known_by_name() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "yaml".parse::<Format>().unwrap_err();
    let expected = "unknown record format \"yaml\": use json, csv, eve, zeek or parquet";
    assert_eq!(error.to_string(), expected);
    let error = "ipfix-file".parse::<Format>().unwrap_err();
    let expected = "IPFIX is not a format of --write: use --export ipfix-file:PATH";
    assert_eq!(error.to_string(), expected);
}

proptest! {
    /// All three formats contain the same correct values for any record.
    #[test]
    fn any_record_reads_back(record in any_record()) {
        let object = object(record.clone());
        let key = record.key;
        let six = key.version == IpVersion::V6;
        let address = |end: &str| -> IpAddr {
            let name = format!("{end}IPv{}Address", if six { 6 } else { 4 });
            object[name.as_str()].as_str().unwrap().parse().unwrap()
        };
        let number = |name: &str| object[name].as_u64();
        prop_assert_eq!(address("source"), key.source());
        prop_assert_eq!(address("destination"), key.destination());
        prop_assert_eq!(number("flowStartMilliseconds"), Some(record.first_ns / 1_000_000));
        prop_assert_eq!(number("flowEndMilliseconds"), Some(record.last_ns / 1_000_000));
        prop_assert_eq!(number("octetDeltaCount"), Some(record.octets[0]));
        prop_assert_eq!(number("packetDeltaCount"), Some(record.packets[0]));
        prop_assert_eq!(number("reverseOctetDeltaCount"), Some(record.octets[1]));
        prop_assert_eq!(number("reversePacketDeltaCount"), Some(record.packets[1]));
        prop_assert_eq!(number("flowEndReason"), Some(record.end_reason as u64));
        prop_assert_eq!(&object["communityId"], &CommunityId::of(&record).to_string());
        let answered = record.packets[1] > 0;
        prop_assert_eq!(number("reverseMinimumTTL"), answered.then(|| record.ttl[1][0].into()));
        let [own, other] = record.paths();
        let path = own.copied().unwrap_or(record.path.reversed());
        prop_assert_eq!(number("mplsTopLabel"), path.mpls_label.map(u64::from));
        prop_assert_eq!(number("mplsSecondLabel"), path.mpls_second_label.map(u64::from));
        let inner = |path: &Path| (path.vlan_tags > 1).then(|| path.vlans[1].into());
        prop_assert_eq!(number("dot1qCustomerVlanId"), inner(&path));
        let other = other.filter(|_| own.is_some());
        let tag = other.filter(|path| path.vlan_tags > 0).map(|path| path.vlans[0].into());
        prop_assert_eq!(number("reverseVlanId"), tag);
        prop_assert_eq!(number("reverseDot1qCustomerVlanId"), other.and_then(inner));
        let label = other.and_then(|path| path.mpls_label).map(u64::from);
        prop_assert_eq!(number("reverseMplsTopLabel"), label);
        let id = other.and_then(|path| path.tunnel).map(|tunnel| tunnel.id.into());
        prop_assert_eq!(number("reverseTunnelId"), id.filter(|&id: &u64| id > 0));
        for (end, name) in ["reverseSourceMacAddress", "reverseDestinationMacAddress"].iter().enumerate() {
            let macs = other.map(|path| path.macs).filter(|macs| *macs != [[0; 6]; 2]);
            let text = macs.map(|macs| macs[end].map(|octet| format!("{octet:02x}")).join(":"));
            prop_assert_eq!(object.get(name).and_then(|own| own.as_str()), text.as_deref());
        }

        let mut from_json: Vec<(String, String)> = object
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                let name = name.replace("IPv4Address", "IPAddress");
                let name = name.replace("IPv6Address", "IPAddress");
                let name = name.replace("CodeIPv4", "Code").replace("CodeIPv6", "Code");
                (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
        let mut from_csv = columns(record.clone());
        let mut from_parquet = rows(written(Format::Parquet, &[record])).remove(0);
        let version = from_parquet.remove(2);
        prop_assert_eq!(version, ("ipVersion".to_owned(), (key.version as u8).to_string()));
        from_json.sort();
        from_csv.sort();
        from_parquet.sort();
        prop_assert_eq!(&from_json, &from_csv);
        prop_assert_eq!(&from_json, &from_parquet);
    }
}

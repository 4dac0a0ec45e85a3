//! Text records read back by independent readers, and Community IDs against the specification's
//! own baseline and against ids computed by another implementation of it.

use std::io::{self, Write};
use std::net::IpAddr;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{EndReason, FlowKey, IpVersion};

fn key(protocol: u8, source: &str, destination: &str, ports: (u16, u16)) -> FlowKey {
    let bytes = |text: &str| {
        let mut bytes = [0; 16];
        match text.parse().unwrap() {
            IpAddr::V4(address) => {
                bytes[..4].copy_from_slice(&address.octets());
                (IpVersion::V4, bytes)
            }
            IpAddr::V6(address) => (IpVersion::V6, address.octets()),
        }
    };
    let ((version, src), (_, dst)) = (bytes(source), bytes(destination));
    FlowKey { version, src, dst, src_port: ports.0, dst_port: ports.1, protocol }
}

/// A record in which no two fields are alike.
fn record(key: FlowKey) -> FlowRecord {
    FlowRecord {
        key,
        first_ns: 1_700_000_000_123_999_999,
        last_ns: 1_700_000_007_456_000_000,
        packets: [11, 12],
        octets: [2101, u64::MAX],
        tcp_flags: [0x1b, 0xdf],
        icmp_type_code: 0,
        vlan: 0,
        end_reason: EndReason::EndDetected,
    }
}

/// What the given format makes of the records.
fn written(format: Format, records: &[FlowRecord]) -> String {
    let mut out = Vec::new();
    {
        let mut writer: Box<dyn RecordWriter + '_> = match format {
            Format::Json => Box::new(JsonLines::new(&mut out)),
            Format::Csv => Box::new(Csv::new(&mut out)),
        };
        for record in records {
            writer.write(record).unwrap();
        }
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

fn object(record: FlowRecord) -> Value {
    let text = written(Format::Json, &[record]);
    assert_eq!(text.find('\n'), Some(text.len() - 1), "one whole line");
    serde_json::from_str(&text).unwrap()
}

/// The columns with something in them.
fn columns(record: FlowRecord) -> Vec<(String, String)> {
    let text = written(Format::Csv, &[record]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].len(), lines[1].len());
    let pairs = lines[0].iter().zip(&lines[1]);
    pairs.filter(|(_, v)| !v.is_empty()).map(|(&k, &v)| (k.to_owned(), v.to_owned())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn tcp() -> FlowRecord {
    FlowRecord { vlan: 4094, ..record(key(6, "192.0.2.1", "198.51.100.2", (49152, 443))) }
}

fn echo() -> FlowRecord {
    FlowRecord { icmp_type_code: 8 << 8, ..record(key(1, "192.168.0.89", "192.168.0.1", (0, 0))) }
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
            "vlanId": 4094,
            "flowEndReason": 3,
            "communityId": "1:vXun9A9cW2Ry2J4BkTjoTIYpvAA=",
        })
    );
}

#[test]
fn json_leaves_out_what_a_flow_does_not_have() {
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
        let mut names = names(record(key(protocol, source, destination, (0, 0))));
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
    assert_eq!(object["communityId"], "1:hLZd0XGWojozrvxqE0dWB1iM6R0=");
}

#[test]
fn csv_of_tcp_has_every_column_but_icmp() {
    assert_eq!(
        columns(tcp()),
        pairs(&[
            ("flowStartMilliseconds", "1700000000123"),
            ("flowEndMilliseconds", "1700000007456"),
            ("sourceIPAddress", "192.0.2.1"),
            ("destinationIPAddress", "198.51.100.2"),
            ("sourceTransportPort", "49152"),
            ("destinationTransportPort", "443"),
            ("protocolIdentifier", "6"),
            ("octetDeltaCount", "2101"),
            ("packetDeltaCount", "11"),
            ("reverseOctetDeltaCount", "18446744073709551615"),
            ("reversePacketDeltaCount", "12"),
            ("tcpControlBits", "27"),
            ("reverseTcpControlBits", "223"),
            ("vlanId", "4094"),
            ("flowEndReason", "3"),
            ("communityId", "1:vXun9A9cW2Ry2J4BkTjoTIYpvAA="),
        ])
    );
}

#[test]
fn csv_of_icmp_has_no_ports() {
    assert_eq!(
        columns(echo()),
        pairs(&[
            ("flowStartMilliseconds", "1700000000123"),
            ("flowEndMilliseconds", "1700000007456"),
            ("sourceIPAddress", "192.168.0.89"),
            ("destinationIPAddress", "192.168.0.1"),
            ("protocolIdentifier", "1"),
            ("octetDeltaCount", "2101"),
            ("packetDeltaCount", "11"),
            ("reverseOctetDeltaCount", "18446744073709551615"),
            ("reversePacketDeltaCount", "12"),
            ("icmpTypeCode", "2048"),
            ("flowEndReason", "3"),
            ("communityId", "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
        ])
    );
}

#[test]
fn csv_has_one_header_whatever_follows() {
    let nothing = written(Format::Csv, &[]);
    assert!(nothing.starts_with("flowStartMilliseconds,flowEndMilliseconds,sourceIPAddress,"));
    assert!(nothing.ends_with(",icmpTypeCode,vlanId,flowEndReason,communityId\n"));
    assert_eq!(nothing.lines().count(), 1);
    assert_eq!(nothing.split(',').count(), 17);

    let mut out = Vec::new();
    let mut csv = Csv::new(&mut out);
    csv.finish().unwrap();
    csv.write(&tcp()).unwrap();
    csv.finish().unwrap();
    csv.write(&echo()).unwrap();
    csv.finish().unwrap();
    drop(csv);
    assert_eq!(String::from_utf8(out).unwrap(), written(Format::Csv, &[tcp(), echo()]));
}

#[test]
fn no_records_are_no_json() {
    assert_eq!(written(Format::Json, &[]), "");
}

#[test]
fn formats_are_known_by_name() {
    for format in [Format::Json, Format::Csv] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "yaml".parse::<Format>().unwrap_err();
    assert_eq!(error.to_string(), "unknown record format \"yaml\": json and csv are written");
}

/// (protocol, source, destination, ports or ICMP type and code, id).
type Known = (u8, &'static str, &'static str, (u16, u16), &'static str);

/// From the baseline of the specification, which lists what its reference makes of its captures.
const BASELINE: &[Known] = &[
    (6, "128.232.110.120", "66.35.250.204", (34855, 80), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
    (6, "66.35.250.204", "128.232.110.120", (80, 34855), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
    (
        6,
        "2001:470:e5bf:dead:4957:2174:e82c:4887",
        "2607:f8b0:400c:c03::1a",
        (63943, 25),
        "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4=",
    ),
    (17, "192.168.1.52", "8.8.8.8", (54585, 53), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
    (17, "8.8.8.8", "192.168.1.52", (53, 54585), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
    (132, "192.168.170.8", "192.168.170.56", (7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
    (132, "192.168.170.56", "192.168.170.8", (7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
    (46, "10.1.12.1", "10.1.12.2", (0, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
    (46, "10.1.12.2", "10.1.12.1", (0, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
    (1, "192.168.0.89", "192.168.0.1", (8, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
    (1, "192.168.0.1", "192.168.0.89", (0, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
    (1, "10.0.0.1", "10.0.0.2", (11, 0), "1:YHxtAirCG//0OzkcVAukqKQN9xM="),
    (
        58,
        "fe80::200:86ff:fe05:80da",
        "fe80::260:97ff:fe07:69ea",
        (135, 0),
        "1:dGHyGvjMfljg6Bppwm3bg0LO8TY=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "fe80::200:86ff:fe05:80da",
        (136, 0),
        "1:dGHyGvjMfljg6Bppwm3bg0LO8TY=",
    ),
    (
        58,
        "fe80::260:97ff:fe07:69ea",
        "fe80::200:86ff:fe05:80da",
        (135, 0),
        "1:zavyT/cezQr1fmImYCwYnMXbgck=",
    ),
    (
        58,
        "3ffe:501:1800:2345::2",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        (3, 0),
        "1:2ObVBgIn28oZvibYZhZMBgh7WdQ=",
    ),
    (
        58,
        "3ffe:507:0:1:200:86ff:fe05:80da",
        "3ffe:501:0:1001::2",
        (128, 0),
        "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg=",
    ),
    (
        58,
        "3ffe:501:0:1001::2",
        "3ffe:507:0:1:200:86ff:fe05:80da",
        (129, 0),
        "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg=",
    ),
    (58, "fe80::200:86ff:fe05:80da", "ff02::2", (133, 0), "1:hO+sN4H+MG5MY/8hIrXPqc4ZQz0="),
    (58, "fe80::260:97ff:fe07:69ea", "ff02::1", (134, 0), "1:pkvHqCL88/tg1k4cPigmZXUtL00="),
];

/// Cases the baseline lacks, computed by an implementation in another language that reproduces
/// the whole baseline.
const COMPUTED: &[Known] = &[
    (6, "10.0.0.7", "10.0.0.7", (5000, 80), "1:tKNgtB7ewoLjzkIOZHYVGTGfRK8="),
    (6, "10.0.0.7", "10.0.0.7", (80, 5000), "1:tKNgtB7ewoLjzkIOZHYVGTGfRK8="),
    (17, "2001:db8::1", "2001:db8::2", (53, 40000), "1:eGdaE36ivsxnM3NpfgD06A5eRj8="),
    (132, "10.9.0.2", "10.9.0.1", (2905, 2906), "1:laqW/6+jWQ+9o3Z3zHpnPXp+MlQ="),
    // Ports that the specification does not count.
    (136, "10.9.0.2", "10.9.0.1", (7, 9), "1:Nh4P7ipLRU09rftAbpz+6qU41Tw="),
    (33, "10.9.0.2", "10.9.0.1", (7, 9), "1:YL4BJvkUHVCbKejavvkPRHjoIDw="),
    (47, "10.9.0.2", "10.9.0.1", (0, 0), "1:Ha8Sdh495jvqeCJ1xqWqRJml56A="),
    // Without a counterpart: the code counts, and so does the direction.
    (1, "10.0.0.2", "10.0.0.1", (3, 3), "1:LhjXG72oBqb/FpYqPl9LboG4/B4="),
    (1, "10.0.0.1", "10.0.0.2", (3, 3), "1:sn6MAmXQ6UD1gYE1XbV3XTNewrk="),
    (58, "2001:db8::2", "2001:db8::1", (1, 4), "1:qxd1LeYGiZWewhdgFCEH4g39f1w="),
    // With one.
    (1, "10.0.0.9", "224.0.0.1", (9, 0), "1:aKGqmmD05208l3yuRg5elOJJMIA="),
    (1, "10.0.0.5", "224.0.0.2", (10, 0), "1:1gi8p/OlXFYJ/xXe/hCx5tE562k="),
    (1, "10.0.0.5", "10.0.0.4", (13, 0), "1:eYKyJJ5FQ13cFNJ2T+ABQUXNwck="),
    (1, "10.0.0.4", "10.0.0.5", (14, 0), "1:eYKyJJ5FQ13cFNJ2T+ABQUXNwck="),
    (1, "10.0.0.5", "10.0.0.4", (15, 0), "1:7F1Sk3Q6cJ8VGR5PUkB3cKy6hGQ="),
    (1, "10.0.0.5", "10.0.0.4", (17, 0), "1:QGYlGms4SYRW10gCkfQe+JKQz6I="),
    (58, "2001:db8::2", "2001:db8::1", (130, 0), "1:xps6Lwc0qSxO2d8X+k4jnhqfpP0="),
    (58, "2001:db8::2", "2001:db8::1", (139, 0), "1:EyvsTyxh629HwHG1XyqvKuccnPM="),
    (58, "2001:db8::2", "2001:db8::1", (144, 0), "1:tpS7VP1V1DNOq0L6LOxDDupNGcA="),
];

#[test]
fn community_ids_are_those_of_the_specification() {
    for &(protocol, source, destination, pair, id) in BASELINE.iter().chain(COMPUTED) {
        let record = if matches!(protocol, 1 | 58) {
            let icmp_type_code = pair.0 << 8 | pair.1;
            FlowRecord { icmp_type_code, ..record(key(protocol, source, destination, (0, 0))) }
        } else {
            record(key(protocol, source, destination, pair))
        };
        let found = CommunityId::of(&record);
        assert_eq!(
            found.to_string(),
            id,
            "protocol {protocol}, {source} to {destination} {pair:?}"
        );
        assert_eq!(found.as_bytes(), id.as_bytes());
    }
}

/// Every ICMP type that answers another has that one for its own answer, and the ids then agree.
#[test]
fn a_request_and_its_answer_have_one_id() {
    let id = |protocol, from, to, icmp_type: u8, code: u8| {
        let icmp_type_code = u16::from_be_bytes([icmp_type, code]);
        let key = key(protocol, from, to, (0, 0));
        CommunityId::of(&FlowRecord { icmp_type_code, ..record(key) })
    };
    let ends = [(1, "10.0.0.2", "10.0.0.1"), (58, "2001:db8::1", "2001:db8::2")];
    let mut pairs = Vec::new();
    for (protocol, from, to) in ends {
        for request in 0..=u8::MAX {
            let asked = id(protocol, from, to, request, 7);
            let answers: Vec<u8> =
                (0..=u8::MAX).filter(|&reply| id(protocol, to, from, reply, 7) == asked).collect();
            assert!(answers.len() <= 1, "{protocol}: {request} has {answers:?}");
            pairs.extend(answers.into_iter().map(|answer| (protocol, request, answer)));
        }
    }
    let mut known = Vec::new();
    for (protocol, a, b) in [
        (1, 0, 8),
        (1, 9, 10),
        (1, 13, 14),
        (1, 15, 16),
        (1, 17, 18),
        (58, 128, 129),
        (58, 130, 131),
        (58, 133, 134),
        (58, 135, 136),
        (58, 139, 140),
        (58, 144, 145),
    ] {
        known.extend([(protocol, a, b), (protocol, b, a)]);
    }
    known.sort_unstable();
    // Type 7 is without a counterpart, and its code is 7 here: equal ports, so that its id has a
    // direction only if one-way messages keep theirs.
    assert_eq!(pairs, known);
}

/// Takes `room` bytes, at most `sip` at once, and then fails until given more room.
struct Narrow<'a> {
    taken: &'a mut Vec<u8>,
    room: &'a std::sync::atomic::AtomicUsize,
    sip: usize,
}

impl Write for Narrow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.load(std::sync::atomic::Ordering::Relaxed);
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = bytes.len().min(room).min(self.sip);
        self.taken.extend_from_slice(&bytes[..n]);
        self.room.store(room - n, std::sync::atomic::Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_and_leaves_whole_lines_once_there_is_room() {
    for format in [Format::Json, Format::Csv] {
        let mut taken = Vec::new();
        let room = std::sync::atomic::AtomicUsize::new(100_000);
        let out = Narrow { taken: &mut taken, room: &room, sip: 1000 };
        let mut writer: Box<dyn RecordWriter + '_> = match format {
            Format::Json => Box::new(JsonLines::new(out)),
            Format::Csv => Box::new(Csv::new(out)),
        };
        let mut accepted = Vec::new();
        let mut refused = 0;
        for port in 0..2000 {
            let record = record(key(17, "10.0.0.1", "10.0.0.2", (port, 53)));
            match writer.write(&record) {
                Ok(()) => accepted.push(record),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && !accepted.is_empty());
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        room.store(usize::MAX, std::sync::atomic::Ordering::Relaxed);
        writer.finish().unwrap();
        drop(writer);
        assert_eq!(String::from_utf8(taken).unwrap(), written(format, &accepted));
    }
}

#[test]
fn finish_passes_on_the_flush_and_its_error() {
    struct NoFlush;
    impl Write for NoFlush {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    for format in [Format::Json, Format::Csv] {
        let mut writer = format.writer(Box::new(NoFlush));
        writer.write(&tcp()).unwrap();
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}

prop_compose! {
    fn any_record()(
        v6: bool,
        addresses: [[u8; 16]; 2],
        ports: [u16; 2],
        protocol in prop_oneof![
            Just(1), Just(6), Just(17), Just(33), Just(58), Just(132), Just(136), any::<u8>()
        ],
        times: [u64; 2],
        packets: [u64; 2],
        octets: [u64; 2],
        tcp_flags: [u8; 2],
        icmp_type_code: u16,
        vlan in 0_u16..4096,
        reason in 0..EndReason::ALL.len(),
    ) -> FlowRecord {
        let [mut src, mut dst] = addresses;
        if !v6 {
            src[4..].fill(0);
            dst[4..].fill(0);
        }
        let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        FlowRecord {
            key: FlowKey { version, src, dst, src_port: ports[0], dst_port: ports[1], protocol },
            first_ns: times[0].min(times[1]),
            last_ns: times[0].max(times[1]),
            packets,
            octets,
            tcp_flags,
            icmp_type_code,
            vlan,
            end_reason: EndReason::ALL[reason],
        }
    }
}

proptest! {
    /// Both formats say the same of any record, and what they say is true.
    #[test]
    fn any_record_reads_back(record in any_record()) {
        let object = object(record);
        let key = record.key;
        let six = key.version == IpVersion::V6;
        let address = |end: &str| -> IpAddr {
            let name = format!("{end}IPv{}Address", if six { 6 } else { 4 });
            object[name.as_str()].as_str().unwrap().parse().unwrap()
        };
        prop_assert_eq!(address("source"), key.source());
        prop_assert_eq!(address("destination"), key.destination());
        prop_assert_eq!(object["flowStartMilliseconds"].as_u64(), Some(record.first_ns / 1_000_000));
        prop_assert_eq!(object["flowEndMilliseconds"].as_u64(), Some(record.last_ns / 1_000_000));
        prop_assert_eq!(object["octetDeltaCount"].as_u64(), Some(record.octets[0]));
        prop_assert_eq!(object["packetDeltaCount"].as_u64(), Some(record.packets[0]));
        prop_assert_eq!(object["reverseOctetDeltaCount"].as_u64(), Some(record.octets[1]));
        prop_assert_eq!(object["reversePacketDeltaCount"].as_u64(), Some(record.packets[1]));
        prop_assert_eq!(object["flowEndReason"].as_u64(), Some(record.end_reason as u64));
        prop_assert_eq!(&object["communityId"], &CommunityId::of(&record).to_string());

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
        let mut from_csv = columns(record);
        from_json.sort();
        from_csv.sort();
        prop_assert_eq!(from_json, from_csv);
    }

    /// Both directions of a flow with ports meet in one id.
    #[test]
    fn an_id_has_no_direction(record in any_record()) {
        prop_assume!(!matches!(record.key.protocol, 1 | 58));
        let reversed = FlowRecord { key: record.key.reversed(), ..record };
        prop_assert_eq!(CommunityId::of(&record), CommunityId::of(&reversed));
    }
}

//! Text records read back by independent readers; destinations that fail.

mod community_ids;

use std::io::{self, Write};
use std::net::IpAddr;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{EndReason, FlowKey, IpVersion, Path};

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
        first_ns: 1_700_000_000_123_999_999,
        last_ns: 1_700_000_007_456_000_000,
        packets: [11, 12],
        octets: [2101, u64::MAX],
        tcp_flags: [0x1b, 0xdf],
        icmp_type_code: 0,
        end_reason: EndReason::EndDetected,
        ..FlowRecord::new(key)
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
    let path = Path { vlan_tags: 1, vlans: [4094, 0], ..Path::default() };
    FlowRecord { path, ..record(key(6, "192.0.2.1", "198.51.100.2", (49152, 443))) }
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
        let (src_port, dst_port) = (ports[0], ports[1]);
        let key = FlowKey { version, src, dst, src_port, dst_port, protocol };
        FlowRecord {
            first_ns: times[0].min(times[1]),
            last_ns: times[0].max(times[1]),
            packets,
            octets,
            tcp_flags,
            icmp_type_code,
            end_reason: EndReason::ALL[reason],
            path: Path { vlan_tags: u8::from(vlan > 0), vlans: [vlan, 0], ..Path::default() },
            ..FlowRecord::new(key)
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
}

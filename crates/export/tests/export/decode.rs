//! An independent decoder, netflow_parser, reads the messages: every field of every record, every length, every
//! sequence number.

use crate::common::{Encoded, any_record, encode};
use netflow_parser::variable_versions::field_value::FieldValue;
use netflow_parser::variable_versions::{ipfix, v9};
use netflow_parser::{NetflowPacket, NetflowParser};
use proptest::collection::vec;
use proptest::prelude::*;
use ringtap_export::encode::{Ipfix, LEAST_LIMIT, NetFlow5, NetFlow9, Refusal, UDP_LIMIT};
use ringtap_export::{Reason, RecordTotals};
use ringtap_flow::{FlowRecord, Initiator, IpVersion, Path, TunnelKind};

/// A decoded record: the octets of each field with its name, sorted; equal names in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Decoded(Vec<(String, Vec<u8>)>);

impl Decoded {
    fn put(&mut self, name: &str, octets: impl Into<Vec<u8>>) {
        self.0.push((name.to_owned(), octets.into()));
        self.0.sort_by(|one, other| one.0.cmp(&other.0));
    }

    fn of(fields: &[(impl std::fmt::Debug, FieldValue)]) -> Self {
        let mut own = Self::default();
        fields.iter().for_each(|(name, value)| own.put(&format!("{name:?}"), octets(value)));
        own
    }
}

fn octets(value: &FieldValue) -> Vec<u8> {
    let mut out = Vec::new();
    value.write_be_bytes(&mut out).unwrap();
    out
}

fn packets(parser: &mut NetflowParser, message: &[u8]) -> Vec<NetflowPacket> {
    let result = parser.parse_bytes(message);
    assert!(result.error.is_none(), "{:?}", result.error);
    assert_eq!(result.packets.len(), 1);
    result.packets
}

/// The flows in IPFIX messages; checks lengths and sequence numbers.
fn read_ipfix(encoded: &Encoded, limit: usize) -> Vec<Decoded> {
    let mut parser = NetflowParser::default();
    let (mut flows, mut sequence) = (Vec::new(), 0);
    for message in &encoded.messages {
        assert!(message.len() <= limit);
        let NetflowPacket::IPFix(packet) = packets(&mut parser, message).remove(0) else {
            panic!("not IPFIX")
        };
        assert_eq!(usize::from(packet.header.length), message.len());
        assert_eq!(packet.header.sequence_number, sequence, "data records before this message");
        assert_eq!(packet.header.observation_domain_id, 77);
        for set in packet.flowsets {
            use ipfix::FlowSetBody as Body;
            match set.body {
                Body::Data(data) => {
                    sequence += data.fields.len() as u32;
                    flows.extend(data.fields.iter().map(|fields| Decoded::of(fields)));
                }
                Body::OptionsData(data) => sequence += data.fields.len() as u32,
                Body::Template(_) | Body::Templates(_) => {}
                Body::OptionsTemplate(_) | Body::OptionsTemplates(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    flows
}

/// The flows in NetFlow v9 messages with start and end in milliseconds since 1970, as collectors compute them.
fn read_v9(encoded: &Encoded, limit: usize) -> Vec<Decoded> {
    let mut parser = NetflowParser::default();
    let mut flows = Vec::new();
    for (sequence, message) in encoded.messages.iter().enumerate() {
        assert!(message.len() <= limit && message.len() % 4 == 0);
        let NetflowPacket::V9(packet) = packets(&mut parser, message).remove(0) else {
            panic!("not v9")
        };
        assert_eq!(packet.header.sequence_number as usize, sequence, "messages before this one");
        assert_eq!(packet.header.source_id, 77);
        let boot = u64::from(packet.header.unix_secs) * 1000 - u64::from(packet.header.sys_up_time);
        let mut count = 0;
        for set in packet.flowsets {
            use v9::FlowSetBody as Body;
            match set.body {
                Body::Template(templates) => count += templates.templates.len(),
                Body::OptionsTemplate(templates) => count += templates.templates.len(),
                Body::OptionsData(data) => count += data.fields.len(),
                Body::Data(data) => {
                    count += data.fields.len();
                    flows.extend(data.fields.iter().map(|fields| {
                        let mut flow = Decoded::of(fields);
                        let times = flow.0.iter_mut().filter(|(name, _)| name.contains("Switched"));
                        for (_, since) in times {
                            let ms = u32::from_be_bytes(since[..].try_into().unwrap());
                            assert!(ms <= packet.header.sys_up_time);
                            *since = (boot + u64::from(ms)).to_be_bytes().to_vec();
                        }
                        flow
                    }));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(usize::from(packet.header.count), count, "records of all kinds");
    }
    flows
}

fn iana(name: &str) -> String {
    format!("IANA({name})")
}

/// A label without the other four bits of its entry; 0 if there is none.
fn label(label: Option<u32>) -> Vec<u8> {
    (label.unwrap_or(0) << 4).to_be_bytes()[1..].into()
}

fn is_icmp(record: &FlowRecord) -> bool {
    record.key.protocol == if record.key.version == IpVersion::V4 { 1 } else { 58 }
}

fn address(record: &FlowRecord, octets: &[u8; 16]) -> Vec<u8> {
    octets[..if record.key.version == IpVersion::V4 { 4 } else { 16 }].to_vec()
}

/// The counters of one direction, with these names.
fn put_counts(
    fields: &mut Decoded,
    record: &FlowRecord,
    way: usize,
    names: [&str; 7],
    named: impl Fn(&str) -> String,
) {
    let [[min_ttl, max_ttl], [min_len, max_len]] =
        [record.ttl[way].map(u16::from), record.ip_len[way]];
    fields.put(&named(names[0]), record.packets[way].to_be_bytes());
    fields.put(&named(names[1]), record.octets[way].to_be_bytes());
    fields.put(&named(names[2]), [record.tos[way]]);
    fields.put(&named(names[3]), [min_ttl as u8]);
    fields.put(&named(names[4]), [max_ttl as u8]);
    fields.put(&named(names[5]), min_len.to_be_bytes());
    fields.put(&named(names[6]), max_len.to_be_bytes());
}

/// The expected record of an IPFIX collector.
fn as_ipfix(record: &FlowRecord, ingress: bool) -> Decoded {
    let (key, (path, other)) = (&record.key, paths(record));
    let mut fields = Decoded::default();
    let mut put = |name: &str, octets: Vec<u8>| fields.put(&iana(name), octets);
    let addresses = |v6: bool| {
        if v6 {
            ["SourceIpv6address", "DestinationIpv6address"]
        } else {
            ["SourceIpv4address", "DestinationIpv4address"]
        }
    };
    if let Some(tunnel) = &path.tunnel {
        use TunnelKind::*;
        // The outer header first.
        let [source, destination] = addresses(tunnel.ipv6);
        let len = if tunnel.ipv6 { 16 } else { 4 };
        put(source, tunnel.src[..len].into());
        put(destination, tunnel.dst[..len].into());
        let (protocol, segment, gre, gtp) = match tunnel.kind {
            Gre => (47, 0, tunnel.id, 0),
            Erspan => (47, 0, 0, 0),
            IpIp => (4, 0, 0, 0),
            SixInFour => (41, 0, 0, 0),
            EtherIp => (97, 0, 0, 0),
            L2tpIp => (115, 0, 0, 0),
            Vxlan => (17, 1 << 56 | u64::from(tunnel.id), 0, 0),
            Geneve | VxlanGpe => (17, u64::from(tunnel.id), 0, 0),
            GreUdp => (17, 0, tunnel.id, 0),
            GtpU => (17, 0, 0, tunnel.id),
            Teredo | MplsUdp | L2tp | Gue | Lisp | Capwap => (17, 0, 0, 0),
        };
        put("ProtocolIdentifier", vec![protocol]);
        put("Layer2segmentId", segment.to_be_bytes().into());
        put("GreKey", gre.to_be_bytes().into());
        // gtpuTEid, for which this decoder has no name.
        put("Unknown(507)", gtp.to_be_bytes().into());
    }
    let v6 = key.version == IpVersion::V6;
    let [source, destination] = addresses(v6);
    put(source, address(record, &key.src));
    put(destination, address(record, &key.dst));
    put("ProtocolIdentifier", vec![key.protocol]);
    put("FlowEndReason", vec![record.end_reason as u8]);
    put("FlowStartMilliseconds", (record.first_ns / 1_000_000).to_be_bytes().into());
    put("FlowEndMilliseconds", (record.last_ns / 1_000_000).to_be_bytes().into());
    let answered = record.packets[1] > 0;
    if is_icmp(record) {
        let name = if v6 { "IcmpTypeCodeIpv6" } else { "IcmpTypeCodeIpv4" };
        put(name, record.icmp_type_code.to_be_bytes().into());
    } else {
        put("SourceTransportPort", key.src_port.to_be_bytes().into());
        put("DestinationTransportPort", key.dst_port.to_be_bytes().into());
        put("TcpControlBits", vec![record.tcp_flags[0]]);
    }
    if answered {
        put("BiflowDirection", vec![u8::from(record.initiator != Initiator::FirstPacket)]);
    }
    let other = other.filter(|_| answered);
    let any = |is: fn(&Path) -> bool| is(path) || other.is_some_and(is);
    let labelled = any(|path| path.mpls_label.is_some());
    let tagged = labelled || path.tunnel.is_some() || any(|path| path.vlan_tags > 0);
    let linked = tagged || any(|path| path.macs != [[0; 6]; 2]);
    for (path, named) in [(Some(path), iana as fn(&str) -> String), (other, reverse)] {
        let Some(path) = path else { continue };
        let mut put = |name: &str, octets: Vec<u8>| fields.put(&named(name), octets);
        if linked {
            put("SourceMacaddress", path.macs[0].into());
            put("DestinationMacaddress", path.macs[1].into());
        }
        if tagged {
            put("VlanId", path.vlans[0].to_be_bytes().into());
            put("Dot1qVlanId", path.vlans[0].to_be_bytes().into());
            put("Dot1qCustomerVlanId", path.vlans[1].to_be_bytes().into());
        }
        if labelled {
            put("MplsTopLabelStackSection", label(path.mpls_label));
            put("MplsLabelStackSection2", label(path.mpls_second_label));
        }
    }
    let names = [
        "PacketDeltaCount",
        "OctetDeltaCount",
        "IpClassOfService",
        "MinimumTtl",
        "MaximumTtl",
        "MinimumIpTotalLength",
        "MaximumIpTotalLength",
    ];
    put_counts(&mut fields, record, 0, names, iana);
    if answered {
        put_counts(&mut fields, record, 1, names, reverse);
        if !is_icmp(record) {
            fields.put(&reverse("TcpControlBits"), [record.tcp_flags[1]]);
        } else {
            let name = if v6 { "IcmpTypeCodeIPv6" } else { "IcmpTypeCodeIPv4" };
            let code = record.reverse_icmp_type_code.unwrap_or(0);
            fields.put(&reverse(name), code.to_be_bytes());
        }
    }
    if ingress {
        fields.put("IANA(IngressInterface)", input(record, 0).to_be_bytes());
        if answered {
            fields.put(&reverse("IngressInterface"), input(record, 1).to_be_bytes());
        }
    }
    fields
}

/// The path of the first packet, or those of both directions.
fn paths(record: &FlowRecord) -> (&Path, Option<&Path>) {
    match &record.reverse_path {
        None => (&record.path, None),
        Some(other) if record.initiator == Initiator::SynAck => (other, Some(&record.path)),
        Some(other) => (&record.path, Some(other)),
    }
}

/// The interface of a direction, which is known for the direction of the first packet, or for both.
fn input(record: &FlowRecord, way: usize) -> u32 {
    let first = if record.initiator == Initiator::SynAck { 1 } else { 0 };
    let other = record.reverse_path.as_ref().map_or(0, |other| other.ingress);
    if way == first { record.path.ingress } else { other }
}

/// Type and code of ICMP of a direction.
fn type_code(record: &FlowRecord, way: usize) -> Option<u16> {
    let own = [Some(record.icmp_type_code), record.reverse_icmp_type_code][way];
    own.filter(|_| is_icmp(record))
}

fn reverse(name: &str) -> String {
    format!(
        "ReverseInformationElement(Reverse{})",
        name.replace("Ttl", "TTL").replace("Macaddress", "MacAddress")
    )
}

/// The expected record of a NetFlow v9 collector for one direction.
fn as_v9(record: &FlowRecord, way: usize, ingress: bool) -> Decoded {
    let key = if way == 0 { record.key } else { record.key.reversed() };
    let (path, is_known) = match paths(record) {
        (_, Some(other)) if way == 1 => (other, true),
        (path, _) => (path, way == 0),
    };
    let mut fields = Decoded::default();
    let mut put = |name: &str, octets: Vec<u8>| fields.put(name, octets);
    let names = if key.version == IpVersion::V6 {
        ["Ipv6SrcAddr", "Ipv6DstAddr"]
    } else {
        ["Ipv4SrcAddr", "Ipv4DstAddr"]
    };
    put(names[0], address(record, &key.src));
    put(names[1], address(record, &key.dst));
    if ingress {
        put("InputSnmp", input(record, way).to_be_bytes().into());
    }
    put("Protocol", vec![key.protocol]);
    put("FirstSwitched", (record.first_ns / 1_000_000).to_be_bytes().into());
    put("LastSwitched", (record.last_ns / 1_000_000).to_be_bytes().into());
    put("FlowEndReason", vec![record.end_reason as u8]);
    if let Some(code) = type_code(record, way) {
        put("IcmpType", code.to_be_bytes().into());
    } else {
        put("L4SrcPort", key.src_port.to_be_bytes().into());
        put("L4DstPort", key.dst_port.to_be_bytes().into());
        put("TcpFlags", vec![record.tcp_flags[way]]);
    }
    // Link addresses and label are those of the first packet, which belongs to direction 0, or of both.
    let labelled = path.mpls_label.filter(|_| is_known);
    let ethernet = labelled.is_some() || is_known && path.macs != [[0; 6]; 2];
    if ethernet {
        put("InSrcMac", path.macs[0].into());
        put("InDstMac", path.macs[1].into());
    }
    if ethernet || path.vlan_tags > 0 {
        put("SrcVlan", path.vlans[0].to_be_bytes().into());
    }
    if labelled.is_some() {
        put("MplsLabel1", label(labelled));
        put("MplsLabel2", label(path.mpls_second_label));
    }
    let names = ["InPkts", "InBytes", "SrcTos", "MinTtl", "MaxTtl", "MinPktLngth", "MaxPktLngth"];
    put_counts(&mut fields, record, way, names, str::to_owned);
    fields
}

fn ways(record: &FlowRecord) -> Vec<usize> {
    [0, 1].into_iter().filter(|&way| record.packets[way] > 0).collect()
}

fn sum(records: &[FlowRecord], of: impl Fn(&FlowRecord) -> u64) -> RecordTotals {
    let mut sum = RecordTotals::default();
    for record in records {
        let [packets, octets] = [record.packets, record.octets].map(|[a, b]| a + b);
        sum += RecordTotals { records: of(record), packets, octets };
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ipfix_contains_every_record(
        records in vec(any_record(), 0..200),
        limit in LEAST_LIMIT..20_000,
        ingress: bool,
    ) {
        let encoded = encode(&mut Ipfix::new(77, 1, limit).with_ingress(ingress), &records);
        let expected: Vec<_> = records.iter().map(|record| as_ipfix(record, ingress)).collect();
        prop_assert_eq!(read_ipfix(&encoded, limit), expected);
        prop_assert_eq!(encoded.flows, sum(&records, |_| 1));
        prop_assert!(encoded.refused.is_empty());
    }

    #[test]
    fn netflow9_says_every_direction(
        records in vec(any_record(), 0..200),
        limit in LEAST_LIMIT..20_000,
        ingress: bool,
    ) {
        let encoded = encode(&mut NetFlow9::new(77, limit).with_ingress(ingress), &records);
        let expected: Vec<_> = records
            .iter()
            .flat_map(|record| ways(record).into_iter().map(|way| as_v9(record, way, ingress)))
            .collect();
        prop_assert_eq!(read_v9(&encoded, limit), expected);
        prop_assert_eq!(encoded.flows, sum(&records, |record| ways(record).len() as u64));
        prop_assert!(encoded.refused.is_empty());
    }

    #[test]
    fn netflow5_says_every_direction_of_ipv4(records in vec(any_record(), 0..200)) {
        let encoded = encode(&mut NetFlow5::new(0x0102, UDP_LIMIT), &records);
        let (v4, v6): (Vec<_>, Vec<_>) =
            records.iter().cloned().partition(|record| record.key.version == IpVersion::V4);
        let unfit: Vec<_> = v6.into_iter().map(|one| (one, Refusal::Unfit(Reason::Ipv6))).collect();
        prop_assert_eq!(&encoded.refused, &unfit);

        // Both directions of all flows, each summed from its records.
        let mut sequence = 0;
        let mut read = Vec::new();
        for message in &encoded.messages {
            prop_assert!(message.len() <= UDP_LIMIT);
            let mut packets = packets(&mut NetflowParser::default(), message);
            let NetflowPacket::V5(packet) = packets.remove(0) else { panic!("not v5") };
            let header = &packet.header;
            prop_assert_eq!(header.flow_sequence, sequence, "records before this message");
            prop_assert_eq!((header.engine_type, header.engine_id), (1, 2));
            prop_assert_eq!(usize::from(header.count), packet.flowsets.len());
            sequence += u32::from(header.count);
            let boot = u64::from(header.unix_secs) * 1000 - u64::from(header.sys_up_time);
            for flow in &packet.flowsets {
                let key = (flow.src_addr, flow.dst_addr, flow.src_port, flow.dst_port);
                let rest = (flow.protocol_number, flow.tcp_flags, flow.tos, flow.input);
                let times = (boot + u64::from(flow.first), boot + u64::from(flow.last));
                read.push(((key, rest, times), u64::from(flow.d_pkts), u64::from(flow.d_octets)));
            }
        }
        let mut read = read.into_iter();
        for record in &v4 {
            for way in ways(record) {
                let key = if way == 0 { record.key } else { record.key.reversed() };
                let [src, dst] = [key.src, key.dst].map(|ip| [ip[0], ip[1], ip[2], ip[3]].into());
                let to = type_code(record, way).unwrap_or(key.dst_port);
                let same = (
                    (src, dst, key.src_port, to),
                    (
                        key.protocol,
                        record.tcp_flags[way],
                        record.tos[way],
                        u16::try_from(input(record, way)).unwrap_or(0),
                    ),
                    (record.first_ns / 1_000_000, record.last_ns / 1_000_000),
                );
                let (mut packets, mut octets) = (0, 0);
                while packets < record.packets[way] || octets < record.octets[way] {
                    let (which, more, bytes) = read.next().unwrap();
                    prop_assert_eq!(which, same);
                    packets += more;
                    octets += bytes;
                }
                prop_assert_eq!((packets, octets), (record.packets[way], record.octets[way]));
            }
        }
        prop_assert!(read.next().is_none());
        prop_assert_eq!(encoded.flows.records, u64::from(sequence));
    }
}

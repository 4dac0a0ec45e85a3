//! A direction of a flow record as a protobuf message with the names and numbers of goflow2's `FlowMessage`
//! (`pb/flow.proto` of goflow2, version 2), so that its readers understand ours. Only fields with a value are filled.
//! docs/OUTPUTS.md has the table of fields.

use std::net::IpAddr;

use ringtap_flow::{FlowKey, FlowRecord, IpVersion};

use crate::Settings;
use crate::fields::{self, View};

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;

/// The message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct FlowMessage {
    #[prost(uint64, tag = "3")]
    sampling_rate: u64,
    #[prost(bytes = "vec", tag = "6")]
    src_addr: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    dst_addr: Vec<u8>,
    #[prost(uint64, tag = "9")]
    bytes: u64,
    #[prost(uint64, tag = "10")]
    packets: u64,
    #[prost(bytes = "vec", tag = "11")]
    sampler_address: Vec<u8>,
    #[prost(uint32, tag = "14")]
    src_as: u32,
    #[prost(uint32, tag = "15")]
    dst_as: u32,
    #[prost(uint32, tag = "18")]
    in_if: u32,
    #[prost(uint32, tag = "20")]
    proto: u32,
    #[prost(uint32, tag = "21")]
    src_port: u32,
    #[prost(uint32, tag = "22")]
    dst_port: u32,
    #[prost(uint32, tag = "23")]
    ip_tos: u32,
    #[prost(uint32, tag = "25")]
    ip_ttl: u32,
    #[prost(uint32, tag = "26")]
    tcp_flags: u32,
    #[prost(uint64, tag = "27")]
    src_mac: u64,
    #[prost(uint64, tag = "28")]
    dst_mac: u64,
    #[prost(uint32, tag = "29")]
    vlan_id: u32,
    #[prost(uint32, tag = "30")]
    etype: u32,
    #[prost(uint32, tag = "31")]
    icmp_type: u32,
    #[prost(uint32, tag = "32")]
    icmp_code: u32,
    #[prost(uint32, tag = "33")]
    src_vlan: u32,
    #[prost(uint32, tag = "70")]
    observation_domain_id: u32,
    #[prost(uint32, repeated, tag = "81")]
    mpls_label: Vec<u32>,
    #[prost(uint64, tag = "110")]
    time_received_ns: u64,
    #[prost(uint64, tag = "111")]
    time_flow_start_ns: u64,
    #[prost(uint64, tag = "112")]
    time_flow_end_ns: u64,
}

impl FlowMessage {
    /// A message with the fields that are equal in all.
    pub(crate) fn new(settings: &Settings, sampler: Option<IpAddr>) -> Self {
        let octets = |address| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        Self {
            sampler_address: sampler.map(octets).unwrap_or_default(),
            sampling_rate: settings.sampling.map_or(1, |sampling| sampling.of().into()),
            observation_domain_id: settings.observation_domain,
            ..Self::default()
        }
    }

    /// Fills all other fields with a direction of a record: 0 from the initiator, 1 to it. The memory is used again.
    pub(crate) fn fill(&mut self, record: &FlowRecord, direction: usize) {
        let mut reversed = None;
        let v = &View::of(record, &mut reversed);
        let forward = direction == 0;
        let key = if forward { record.key } else { record.key.reversed() };
        let FlowKey { src, dst, src_port, dst_port, protocol, version } = key;
        let (octets, etype) = match version {
            IpVersion::V4 => (4, IPV4),
            IpVersion::V6 => (16, IPV6),
        };
        put(&mut self.src_addr, &src[..octets]);
        put(&mut self.dst_addr, &dst[..octets]);
        (self.etype, self.proto) = (etype, protocol.into());
        (self.src_port, self.dst_port) = (src_port.into(), dst_port.into());
        (self.bytes, self.packets) = (record.octets[direction], record.packets[direction]);
        self.ip_tos = record.tos[direction].into();
        self.ip_ttl = record.ttl[direction][0].into();
        self.tcp_flags = record.tcp_flags[direction].into();
        self.in_if = fields::ingress(record, direction);

        let number = |end: usize| {
            let origins = record.origins.as_ref();
            origins.and_then(|origins| origins[end].as_number).unwrap_or_default()
        };
        (self.src_as, self.dst_as) = (number(direction), number(1 - direction));

        let path = v.way(direction);
        self.vlan_id = if path.vlan_tags > 0 { path.vlans[0].into() } else { 0 };
        self.src_vlan = self.vlan_id;
        // Fields of the first packet: as in NetFlow v9, the answering direction has them only if its own path is known.
        let path = Some(path).filter(|_| forward || v.reverse_path.is_some());
        let macs = path.map_or_else(Default::default, |path| path.macs);
        [self.src_mac, self.dst_mac] = macs.map(|mac| mac.iter().fold(0, number_of));
        self.mpls_label.clear();
        let labels = path.map(|path| [path.mpls_label, path.mpls_second_label]);
        self.mpls_label.extend(labels.into_iter().flatten().flatten());
        let icmp = fields::type_code(record, direction).unwrap_or_default();
        (self.icmp_type, self.icmp_code) = (u32::from(icmp >> 8), u32::from(icmp & 0xff));

        (self.time_flow_start_ns, self.time_flow_end_ns) = (record.first_ns, record.last_ns);
        self.time_received_ns = record.last_ns;
    }
}

/// Appends an octet to a number.
fn number_of(number: u64, octet: &u8) -> u64 {
    number << 8 | u64::from(*octet)
}

fn put(field: &mut Vec<u8>, octets: &[u8]) {
    field.clear();
    field.extend_from_slice(octets);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message as _;
    use ringtap_flow::{Initiator, Origin, Path};

    use super::*;
    use crate::Sampling;

    /// A value on the wire.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Value {
        Number(u64),
        Octets(Vec<u8>),
    }

    fn varint(octets: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = octets.split_first().unwrap();
            *octets = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }

    /// The fields of a message by number, read without its definition.
    fn fields(mut octets: &[u8]) -> BTreeMap<u64, Value> {
        let mut fields = BTreeMap::new();
        while !octets.is_empty() {
            let tag = varint(&mut octets);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut octets)),
                2 => {
                    let length = varint(&mut octets) as usize;
                    let (value, rest) = octets.split_at(length);
                    octets = rest;
                    Value::Octets(value.to_vec())
                }
                other => panic!("wire type {other}"),
            };
            assert_eq!(fields.insert(tag >> 3, value), None, "field {}", tag >> 3);
        }
        fields
    }

    fn record() -> FlowRecord {
        let (mut src, mut dst) = ([0; 16], [0; 16]);
        src[..4].copy_from_slice(&[10, 0, 0, 1]);
        dst[..4].copy_from_slice(&[10, 0, 0, 2]);
        let (src_port, dst_port) = (0x1234, 443);
        let key = FlowKey { version: IpVersion::V4, src, dst, src_port, dst_port, protocol: 6 };
        let origin = |as_number| Origin { as_number: Some(as_number), ..Origin::default() };
        FlowRecord {
            first_ns: 1_700_000_000_123_999_999,
            last_ns: 1_700_000_001_001_000_000,
            packets: [3, 2],
            octets: [0x102, 0x203],
            tcp_flags: [0x1b, 0x12],
            ttl: [[62, 64], [50, 51]],
            tos: [0xb8, 0x28],
            initiator: Initiator::Syn,
            path: Path {
                macs: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
                vlan_tags: 2,
                vlans: [7, 9],
                mpls_label: Some(0x12345),
                mpls_second_label: Some(2),
                ingress: 5,
                ..Path::default()
            },
            origins: Some(Box::new([origin(64_500), origin(64_501)])),
            ..FlowRecord::new(key)
        }
    }

    fn message(record: &FlowRecord, direction: usize) -> FlowMessage {
        let sampling = Some(Sampling::Random(100));
        let settings = Settings { observation_domain: 42, sampling, ..Settings::default() };
        let mut message = FlowMessage::new(&settings, "192.0.2.1".parse().ok());
        message.fill(record, direction);
        message
    }

    #[test]
    fn every_field_has_the_number_and_value_of_the_table() {
        let forward = fields(&message(&record(), 0).encode_to_vec());
        let number = Value::Number;
        let octets = |octets: &[u8]| Value::Octets(octets.to_vec());
        let expected = BTreeMap::from([
            (3, number(100)),
            (6, octets(&[10, 0, 0, 1])),
            (7, octets(&[10, 0, 0, 2])),
            (9, number(0x102)),
            (10, number(3)),
            (11, octets(&[192, 0, 2, 1])),
            (14, number(64_500)),
            (15, number(64_501)),
            (18, number(5)),
            (20, number(6)),
            (21, number(0x1234)),
            (22, number(443)),
            (23, number(0xb8)),
            (25, number(62)),
            (26, number(0x1b)),
            (27, number(0x0200_0000_0001)),
            (28, number(0x0200_0000_0002)),
            (29, number(7)),
            (30, number(0x0800)),
            (33, number(7)),
            (70, number(42)),
            // Packed: the varints of 0x12345 and 2.
            (81, octets(&[0xc5, 0xc6, 0x04, 2])),
            (110, number(1_700_000_001_001_000_000)),
            (111, number(1_700_000_000_123_999_999)),
            (112, number(1_700_000_001_001_000_000)),
        ]);
        assert_eq!(forward, expected);

        let mut back = expected;
        for (field, value) in [
            (6, octets(&[10, 0, 0, 2])),
            (7, octets(&[10, 0, 0, 1])),
            (9, number(0x203)),
            (10, number(2)),
            (14, number(64_501)),
            (15, number(64_500)),
            (21, number(443)),
            (22, number(0x1234)),
            (23, number(0x28)),
            (25, number(50)),
            (26, number(0x12)),
        ] {
            back.insert(field, value);
        }
        for of_the_first_packet in [18, 27, 28, 81] {
            back.remove(&of_the_first_packet);
        }
        assert_eq!(fields(&message(&record(), 1).encode_to_vec()), back);

        // The path of the answers is known.
        let path = Path {
            macs: [[2, 0, 0, 0, 0, 9], [0; 6]],
            ingress: 6,
            mpls_label: Some(1),
            ..Path::default()
        };
        let two_paths = FlowRecord { reverse_path: Some(Box::new(path)), ..record() };
        back.extend([(18, number(6)), (27, number(0x0200_0000_0009)), (81, octets(&[1]))]);
        [29, 33].iter().for_each(|of_the_tag| drop(back.remove(of_the_tag)));
        assert_eq!(fields(&message(&two_paths, 1).encode_to_vec()), back);
    }

    #[test]
    fn icmp_v6_has_type_code_and_long_addresses() {
        let mut echo = record();
        (echo.key.version, echo.key.protocol) = (IpVersion::V6, 58);
        (echo.key.src, echo.key.dst) = ([0x20; 16], [0x21; 16]);
        echo.icmp_type_code = 1 << 8 | 4;
        echo.reverse_icmp_type_code = Some(129 << 8);
        let back = fields(&message(&echo, 1).encode_to_vec());
        assert_eq!(back.get(&31), Some(&Value::Number(129)));
        let fields = fields(&message(&echo, 0).encode_to_vec());
        assert_eq!(fields[&6], Value::Octets(vec![0x20; 16]));
        assert_eq!(fields[&7], Value::Octets(vec![0x21; 16]));
        let numbers = [20, 30, 31, 32].map(|field| fields[&field].clone());
        assert_eq!(numbers, [58, 0x86dd, 1, 4].map(Value::Number));
    }

    #[test]
    fn a_message_is_decoded_and_used_again() {
        let mut used = message(&record(), 0);
        assert_eq!(FlowMessage::decode(&used.encode_to_vec()[..]).unwrap(), used);
        // Without path and origins nothing of the previous record is left.
        let plain = FlowRecord { path: Path::default(), origins: None, ..record() };
        used.fill(&plain, 0);
        assert_eq!(used, message(&plain, 0));
        assert_eq!((used.vlan_id, used.src_mac, used.src_as, used.in_if), (0, 0, 0, 0));
        assert!(used.mpls_label.is_empty());
    }
}

//! Written records are read by independent parsers.

#[cfg(feature = "arrow")]
mod arrow;
mod community_ids;
mod eve;
#[cfg(feature = "parquet")]
mod ingress;
#[cfg(feature = "parquet")]
mod named;
mod zeek;

use std::net::IpAddr;

use proptest::prelude::*;
use ringtap_flow::{
    Application, ApplicationReason, EndReason, FlowKey, FlowRecord, History, Initiator, IpVersion,
    Kind, Label, Path, Tunnel, TunnelKind,
};
use serde_json::Value;

use crate::formats::{Format, Interfaces};

fn address(text: &str) -> (IpVersion, [u8; 16]) {
    let mut bytes = [0; 16];
    match text.parse().unwrap() {
        IpAddr::V4(address) => {
            bytes[..4].copy_from_slice(&address.octets());
            (IpVersion::V4, bytes)
        }
        IpAddr::V6(address) => (IpVersion::V6, address.octets()),
    }
}

pub(crate) fn key(protocol: u8, source: &str, destination: &str, ports: (u16, u16)) -> FlowKey {
    let ((version, src), (_, dst)) = (address(source), address(destination));
    FlowKey { version, src, dst, src_port: ports.0, dst_port: ports.1, protocol }
}

/// A record in which all fields differ.
pub(crate) fn record(key: FlowKey) -> FlowRecord {
    FlowRecord {
        first_ns: 1_700_000_000_123_999_999,
        last_ns: 1_700_000_007_456_000_000,
        packets: [11, 12],
        octets: [2101, u64::MAX],
        tcp_flags: [0x1b, 0xdf],
        ttl: [[63, 64], [55, 57]],
        ip_len: [[40, 1500], [52, 65_535]],
        tos: [0x28, 0xb8],
        icmp_type_code: 0,
        end_reason: EndReason::EndDetected,
        ..FlowRecord::new(key)
    }
}

fn tcp() -> FlowRecord {
    let macs = [[2, 0, 0, 0, 0, 0xa1], [2, 0, 0, 0, 0, 0xb2]];
    let path = Path { macs, vlan_tags: 1, vlans: [4094, 0], ..Path::default() };
    FlowRecord {
        path,
        history: History::of("ShADadFf"),
        initiator: Initiator::Syn,
        ..record(key(6, "192.0.2.1", "198.51.100.2", (49152, 443)))
    }
}

fn echo() -> FlowRecord {
    FlowRecord { icmp_type_code: 8 << 8, ..record(key(1, "192.168.0.89", "192.168.0.1", (0, 0))) }
}

/// Two VLAN tags, an MPLS label and a tunnel over IPv6 around a flow whose first packet was the answer.
fn tunnelled() -> FlowRecord {
    let ((_, src), (_, dst)) = (address("2001:db8::aa"), address("2001:db8::bb"));
    let tunnel = Tunnel { kind: TunnelKind::Vxlan, ipv6: true, src, dst, id: 5001 };
    let path = Path {
        vlan_tags: 2,
        vlans: [100, 7],
        mpls_label: Some(299_792),
        tunnel: Some(tunnel),
        ..tcp().path
    };
    FlowRecord { path, initiator: Initiator::SynAck, history: History::of("hAdD"), ..tcp() }
}

/// The records in this format.
fn written(format: Format, records: &[FlowRecord]) -> Vec<u8> {
    format.encode(records, &Interfaces::default()).unwrap()
}

fn text(format: Format, records: &[FlowRecord]) -> String {
    String::from_utf8(written(format, records)).unwrap()
}

/// The object of a format with one line a record.
fn object(format: Format, record: FlowRecord) -> Value {
    let text = text(format, &[record]);
    assert_eq!(text.find('\n'), Some(text.len() - 1), "one whole line");
    serde_json::from_str(&text).unwrap()
}

/// A flow in whose payloads this protocol was recognised.
fn of_protocol(name: &str) -> FlowRecord {
    let mut record = tcp();
    assert!(record.facts.add(Kind::Protocol, name.as_bytes(), usize::MAX).is_ok());
    record
}

prop_compose! {
    fn any_path()(
        macs: [[u8; 6]; 2],
        vlan_tags in 0_u8..4,
        vlans in prop::array::uniform2(0_u16..4096),
        labels in prop::option::of((0_u32..1 << 20, prop::option::of(0_u32..1 << 20))),
        kind in prop::option::of(prop::sample::select(&TunnelKind::ALL[..])),
        ipv6: bool,
        ends: [[u8; 16]; 2],
        id: u32,
        linked: bool,
        outer_macs: [[u8; 6]; 2],
    ) -> Path {
        let tunnel = kind.map(|kind| Tunnel { kind, ipv6, src: ends[0], dst: ends[1], id });
        let macs = if linked { macs } else { [[0; 6]; 2] };
        // Those of the frame around a tunnel, beside those of the frame in it.
        let outer_macs = if linked && tunnel.is_some() { outer_macs } else { [[0; 6]; 2] };
        let (mpls_label, mpls_second_label) = labels.map_or((None, None), |(top, second)| (Some(top), second));
        Path { macs, outer_macs, vlan_tags, vlans, mpls_label, mpls_second_label, tunnel, ingress: 0 }
    }
}

prop_compose! {
    /// Any record; [`any_record`] sets its end reason and its path.
    fn any_counts()(
        v6: bool,
        addresses: [[u8; 16]; 2],
        ports: [u16; 2],
        protocol in prop_oneof![
            Just(1), Just(6), Just(17), Just(33), Just(58), Just(132), Just(136), any::<u8>()
        ],
        times: [u64; 2],
        sent: u64,
        answered in prop_oneof![Just(0), any::<u64>()],
        octets: [u64; 2],
        ttl: [[u8; 2]; 2],
        ip_len: [[u16; 2]; 2],
        tos: [u8; 2],
    ) -> FlowRecord {
        let [mut src, mut dst] = addresses;
        if !v6 {
            src[4..].fill(0);
            dst[4..].fill(0);
        }
        let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        let [src_port, dst_port] = ports;
        let first_ns = times[0].min(times[1]);
        let last_ns = times[0].max(times[1]);
        let key = FlowKey { version, src, dst, src_port, dst_port, protocol };
        FlowRecord {
            first_ns, last_ns, packets: [sent, answered], octets, ttl, ip_len, tos, ..FlowRecord::new(key)
        }
    }
}

prop_compose! {
    pub(crate) fn any_record()(
        counts in any_counts(),
        tcp_flags: [u8; 2],
        icmp_type_code: u16,
        reverse_icmp_type_code: Option<u16>,
        letters in prop::collection::vec(prop::sample::select(b"SHADFRshadfr".to_vec()), 0..12),
        initiator in prop::sample::select(vec![
            Initiator::FirstPacket, Initiator::Syn, Initiator::SynAck
        ]),
        reason in 0..EndReason::ALL.len(),
        path in any_path(),
        reverse_path in prop::option::of(any_path().prop_map(Box::new)),
        irregular: bool,
        label in prop::option::of("[a-z0-9-]{1,30}"),
    ) -> FlowRecord {
        let label = label.and_then(|text| Label::new(text.as_bytes()));
        FlowRecord {
            tcp_flags,
            icmp_type_code,
            reverse_icmp_type_code,
            history: History::of(std::str::from_utf8(&letters).unwrap()),
            irregular: irregular && counts.key.protocol == 17,
            initiator,
            end_reason: EndReason::ALL[reason],
            path,
            reverse_path,
            application: label.map(|label| Application { label, reason: ApplicationReason::Port }),
            ..counts
        }
    }
}

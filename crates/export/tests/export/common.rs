//! Flow records for tests, and encoders called as by an exporting thread.

use proptest::prelude::*;
use ringtap_export::encode::{Encoder, Progress, Refusal, Templates};
use ringtap_export::{Exports, RecordTotals};
use ringtap_flow::{
    EndReason, FlowKey, FlowRecord, Initiator, IpVersion, Path, RecordSink, Sinks, Tunnel,
    TunnelKind,
};

/// The workers' sinks for flow records.
pub(crate) fn record_sinks(
    (sinks, exports): (Vec<Sinks>, Exports),
) -> (Vec<Box<dyn RecordSink>>, Exports) {
    (sinks.into_iter().filter_map(|sinks| sinks.records).collect(), exports)
}

/// An answered flow, TCP over IPv4.
pub(crate) fn answered() -> FlowRecord {
    let mut key = FlowKey {
        version: IpVersion::V4,
        src: [0; 16],
        dst: [0; 16],
        src_port: 0x1234,
        dst_port: 443,
        protocol: 6,
    };
    key.src[..4].copy_from_slice(&[10, 0, 0, 1]);
    key.dst[..4].copy_from_slice(&[10, 0, 0, 2]);
    FlowRecord {
        first_ns: 1_700_000_000_123_999_999,
        last_ns: 1_700_000_001_001_000_000,
        packets: [3, 2],
        octets: [0x102, 0x203],
        tcp_flags: [0x1b, 0x12],
        ttl: [[62, 64], [50, 51]],
        ip_len: [[40, 1500], [52, 0xffff]],
        tos: [0xb8, 0x28],
        initiator: Initiator::Syn,
        icmp_type_code: 0,
        end_reason: EndReason::EndDetected,
        path: Path {
            macs: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
            vlan_tags: 2,
            vlans: [7, 9],
            ..Path::default()
        },
        ..FlowRecord::new(key)
    }
}

/// An ICMPv6 echo without an answer.
pub(crate) fn echo_v6() -> FlowRecord {
    let mut record = answered();
    record.key = FlowKey {
        version: IpVersion::V6,
        src: std::array::from_fn(|at| at as u8),
        dst: std::array::from_fn(|at| 0xf0 | at as u8),
        src_port: 0,
        dst_port: 0,
        protocol: 58,
    };
    (record.packets, record.octets, record.tcp_flags) = ([1, 0], [96, 0], [0, 0]);
    (record.ttl, record.ip_len, record.tos) = ([[1, 1], [0; 2]], [[96, 96], [0; 2]], [0; 2]);
    record.icmp_type_code = 128 << 8;
    record.path = Path::default();
    record
}

/// [`answered`] inside VXLAN over IPv4, with a label.
pub(crate) fn tunnelled() -> FlowRecord {
    let mut record = answered();
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src[..4].copy_from_slice(&[192, 0, 2, 1]);
    dst[..4].copy_from_slice(&[192, 0, 2, 2]);
    let tunnel = Tunnel { kind: TunnelKind::Vxlan, ipv6: false, src, dst, id: 0xabcdef };
    (record.path.tunnel, record.path.mpls_label) = (Some(tunnel), Some(0x12345));
    record
}

/// Any path of a packet.
fn any_path() -> impl Strategy<Value = Path> {
    use TunnelKind::{Geneve, Vxlan, VxlanGpe};
    let kinds = TunnelKind::ALL;
    let tunnel =
        (0..kinds.len(), any::<bool>(), any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u32>());
    let tunnel = tunnel.prop_map(move |(kind, ipv6, mut src, mut dst, id)| {
        if !ipv6 {
            src[4..].fill(0);
            dst[4..].fill(0);
        }
        let id = if matches!(kinds[kind], Vxlan | Geneve | VxlanGpe) { id >> 8 } else { id };
        Tunnel { kind: kinds[kind], ipv6, src, dst, id }
    });
    let label = || prop_oneof![Just(None), (0u32..1 << 20).prop_map(Some)];
    let labels = (label(), label()).prop_map(|(top, second)| (top, top.and(second)));
    let tunnel = prop_oneof![Just(None), tunnel.prop_map(Some)];
    let macs = prop_oneof![Just([[0; 6]; 2]), any::<[[u8; 6]; 2]>()];
    let ingress = prop_oneof![Just(0), any::<u32>(), (1u32..100)];
    (macs, 0u8..3, any::<[u16; 2]>(), labels, tunnel, ingress).prop_map(
        |(macs, vlan_tags, vlans, (mpls_label, mpls_second_label), tunnel, ingress)| Path {
            macs,
            outer_macs: [[0; 6]; 2],
            vlan_tags,
            vlans: std::array::from_fn(|at| {
                if at < usize::from(vlan_tags) { vlans[at] % 4096 } else { 0 }
            }),
            mpls_label,
            mpls_second_label,
            tunnel,
            ingress,
        },
    )
}

/// Any record whose times every protocol can represent.
pub(crate) fn any_record() -> impl Strategy<Value = FlowRecord> {
    let key = (
        any::<bool>(),
        any::<[u8; 16]>(),
        any::<[u8; 16]>(),
        any::<(u16, u16)>(),
        prop_oneof![Just(1u8), Just(6), Just(17), Just(58), any::<u8>()],
    );
    let key = key.prop_map(|(v6, mut src, mut dst, (src_port, dst_port), protocol)| {
        if !v6 {
            src[4..].fill(0);
            dst[4..].fill(0);
        }
        let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        FlowKey { version, src, dst, src_port, dst_port, protocol }
    });
    let counts = prop_oneof![
        (1u64..1000, 0u64..1000),
        (0u64..3, 1u64..1000),
        (1u64..1 << 34, 0u64..1 << 34),
    ];
    let times = (1_600_000_000_000u64..1_700_000_000_000, 0u64..1 << 30, 0u64..1_000_000);
    let what = (any::<[u8; 2]>(), any::<u16>(), 0usize..5, 0usize..3);
    let paths = (any_path(), proptest::option::of(any_path().prop_map(Box::new)));
    let more = (any::<[[u8; 2]; 2]>(), any::<[[u16; 2]; 2]>(), any::<[u8; 2]>(), paths);
    (key, counts.clone(), counts, times, what, more).prop_map(
        |(
            key,
            packets,
            octets,
            (first, lasted, ns),
            what,
            (ttl, ip_len, tos, (path, reverse_path)),
        )| {
            let (tcp_flags, icmp_type_code, reason, initiator) = what;
            let has_answer = packets.1 > 0 && [1, 58].contains(&key.protocol);
            FlowRecord {
                first_ns: first * 1_000_000 + ns,
                last_ns: (first + lasted) * 1_000_000 + ns,
                packets: packets.into(),
                octets: octets.into(),
                tcp_flags,
                ttl,
                ip_len,
                tos,
                icmp_type_code,
                reverse_icmp_type_code: has_answer.then_some(!icmp_type_code),
                initiator: [Initiator::FirstPacket, Initiator::Syn, Initiator::SynAck][initiator],
                end_reason: EndReason::ALL[reason],
                path,
                reverse_path,
                ..FlowRecord::new(key)
            }
        },
    )
}

/// The result of encoding.
#[derive(Default)]
pub(crate) struct Encoded {
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) flows: RecordTotals,
    pub(crate) refused: Vec<(FlowRecord, Refusal)>,
}

/// Encodes the announcement, all records and the statistics.
pub(crate) fn encode(encoder: &mut dyn Encoder, records: &[FlowRecord]) -> Encoded {
    let mut out = Encoded { messages: encoder.announcement(), ..Encoded::default() };
    for record in records {
        let mut flows = RecordTotals::default();
        let mut added = encoder.add(record, &mut flows);
        if added == Err(Refusal::Full) {
            send(encoder, &mut out);
            added = encoder.add(record, &mut flows);
        }
        match added {
            Ok(_) => {}
            Err(refusal) => out.refused.push((record.clone(), refusal)),
        }
    }
    send(encoder, &mut out);
    out.messages.extend(encoder.statistics(&Progress::default()));
    out
}

/// The templates that the sealed message needs.
pub(crate) fn needed(encoder: &dyn Encoder) -> Templates {
    let mut needed = Templates::default();
    encoder.note_templates(&mut needed);
    needed
}

fn send(encoder: &mut dyn Encoder, out: &mut Encoded) {
    if let Some(sealed) = encoder.seal() {
        let message = sealed.bytes.to_vec();
        out.flows += sealed.flows;
        out.messages.extend(encoder.missing(&needed(encoder), 1));
        out.messages.push(message);
        encoder.done();
    }
}

//! Flow records for tests, and encoders driven as an exporting thread drives them.

use proptest::prelude::*;
use ringtap_export::Tally;
use ringtap_export::encode::{Encoder, Progress, Refusal};
use ringtap_flow::{EndReason, FlowKey, FlowRecord, IpVersion, Path};

/// One that was answered, TCP over IPv4.
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
        icmp_type_code: 0,
        end_reason: EndReason::EndDetected,
        path: Path { vlan_tags: 1, vlans: [7, 0], ..Path::default() },
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
    record.icmp_type_code = 128 << 8;
    record
}

/// Any record whose times every protocol can express.
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
    let rest = (any::<[u8; 2]>(), any::<u16>(), 0u16..4096, 0usize..5);
    (key, counts.clone(), counts, times, rest).prop_map(
        |(key, packets, octets, (first, lasted, ns), (tcp_flags, icmp, vlan, reason))| FlowRecord {
            first_ns: first * 1_000_000 + ns,
            last_ns: (first + lasted) * 1_000_000 + ns,
            packets: packets.into(),
            octets: octets.into(),
            tcp_flags,
            icmp_type_code: icmp,
            end_reason: EndReason::ALL[reason],
            path: Path { vlan_tags: u8::from(vlan > 0), vlans: [vlan, 0], ..Path::default() },
            ..FlowRecord::new(key)
        },
    )
}

/// What came of encoding.
#[derive(Default)]
pub(crate) struct Encoded {
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) flows: Tally,
    pub(crate) refused: Vec<(FlowRecord, Refusal)>,
}

/// Announces, adds all records and ends with statistics.
pub(crate) fn encode(encoder: &mut dyn Encoder, records: &[FlowRecord]) -> Encoded {
    let mut out = Encoded { messages: encoder.announcement(), ..Encoded::default() };
    for record in records {
        let mut added = encoder.add(record);
        if added == Err(Refusal::Full) {
            send(encoder, &mut out);
            added = encoder.add(record);
        }
        match added {
            Ok(()) => {}
            Err(refusal) => out.refused.push((*record, refusal)),
        }
    }
    send(encoder, &mut out);
    out.messages.extend(encoder.statistics(&Progress::default()));
    out
}

fn send(encoder: &mut dyn Encoder, out: &mut Encoded) {
    if let Some(sealed) = encoder.seal() {
        out.messages.push(sealed.bytes.to_vec());
        out.flows += sealed.flows;
        encoder.done();
    }
}

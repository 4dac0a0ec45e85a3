//! The entry point of fuzz targets: any bytes become frames for one decoder.
//!
//! ```text
//!  input:  | link type | (time step | captured length | lack | frame bytes) …
//!          | 1         | (1         | 1               | 1    | as the length says)
//! ```
//!
//! Deterministic, so each crash can be reproduced from its input.

use std::sync::Arc;

use crate::{
    Decoded, Decoder, Flags, HashKey, LinkType, PacketRecord, Path, Paths, TunnelPorts, Tunnels,
};

/// Decodes `bytes` as frames. Panics if a record violates an invariant.
pub fn fuzz(bytes: &[u8]) {
    let Some((&link, mut rest)) = bytes.split_first() else { return };
    // The number after the last in the list means an unsupported link type.
    let link = usize::from(link) % (LinkType::SUPPORTED.len() + 1);
    let link = LinkType::SUPPORTED.get(link).copied().unwrap_or(LinkType(0xffff));
    let key = HashKey::from_seed(1);
    let paths = Arc::new(Paths::new());
    let decoder = || Decoder::new(key, Arc::clone(&paths));
    let mut measuring = decoder().with_segments(true);
    let (mut decoder, mut twin, mut closed) =
        (decoder(), decoder(), decoder().with_tunnels(Tunnels::Outer));
    let ports = TunnelPorts::default();
    let mut ts_ns = 0;
    while let Some((&[step, len, lack], tail)) = rest.split_first_chunk::<3>() {
        let (frame, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        ts_ns += u64::from(step) * 1_000_000_000;
        let original_len = frame.len() as u32 + u32::from(lack) * 8;

        let mut out = PacketRecord::EMPTY;
        let decoded = decoder.decode(link, ts_ns, frame, original_len, &mut out);
        check(&key, decoded, ts_ns, frame, original_len, &out);
        let path = *paths.get(out.path);
        assert_eq!((path.tunnel, path.vlan_tags > 0), (None, out.flags.contains(Flags::VLAN)));
        let inner = decoder.inner(&out).copied();
        if let Some(inner) = inner {
            let version =
                if inner.flags.contains(Flags::IPV4) { Decoded::Ipv4 } else { Decoded::Ipv6 };
            check(&key, version, ts_ns, frame, original_len, &inner);
            let within = *paths.get(inner.path);
            let tunnel = within.tunnel.expect("a tunnel around what is within");
            assert!(inner.flags.contains(Flags::INNER) && !inner.flags.contains(Flags::BAD_HEADER));
            assert!(!inner.flags.contains(Flags::TUNNEL) && out.is_ip());
            assert_eq!((tunnel.src, tunnel.dst), (out.src, out.dst));
            let [macs, outer_macs] = [path.macs, path.outer_macs];
            assert_eq!(Path { tunnel: None, macs, outer_macs, ..within }, path);
            assert!(macs == within.macs || macs == within.outer_macs);
        }
        if let Some(hash) = crate::pair_hash(&key, &ports, link, frame, original_len) {
            assert!(hash == out.pair_hash && !out.flags.contains(Flags::TUNNEL), "{out:?}");
        }
        crate::selection_hash(link, frame, original_len);
        crate::content_hash(&HashKey::from_seed(1), link, frame, original_len);

        for record in [Some(out), inner].into_iter().flatten() {
            // The places that decoding found are those that are found again.
            let payload = decoder.payload(link, frame, &record);
            assert_eq!(payload, decoder.payload_of_any(link, frame, &record), "{record:?}");
            if let Some(part) = decoder.part(link, frame, &record) {
                assert!(record.flags.contains(Flags::FRAGMENT));
                assert_eq!(record.flags.contains(Flags::LATER_FRAGMENT), part.offset > 0);
                assert_eq!((part.datagram.src, part.datagram.dst), (record.src, record.dst));
                let _ = crate::joined(&record, part.protocol, part.bytes);
            }
        }

        // All fields of the record must be overwritten.
        let mut dirty = PacketRecord { src_port: 1, tcp_flags: 0xff, path: 7, ..out };
        (dirty.src, dirty.dst, dirty.flags) = ([0xaa; 16], [0x55; 16], Flags(0xffff));
        assert_eq!(twin.decode(link, ts_ns, frame, original_len, &mut dirty), decoded);
        assert!(dirty == out, "{dirty:?} {out:?}");
        assert!(twin.inner(&dirty).copied() == inner);

        // Segments must not change the rest of the record.
        assert_eq!(measuring.decode(link, ts_ns, frame, original_len, &mut dirty), decoded);
        if let Some(segment) = measuring.segment(&dirty) {
            assert!(dirty.protocol == 6 && segment.data_len <= dirty.ip_len, "{segment:?}");
            dirty.flags.0 &= !Flags::SEGMENT.0;
        }
        assert!(dirty == out, "{dirty:?} {out:?}");

        // Opening tunnels must not change the outer record, except that inner fragments share its fragment table.
        if !out.flags.contains(Flags::FRAGMENT) {
            assert_eq!(closed.decode(link, ts_ns, frame, original_len, &mut dirty), decoded);
            out.flags.0 &= !Flags::TUNNEL.0;
            assert!(dirty == out, "{dirty:?} {out:?}");
        }
    }
}

/// Checks the invariants of a record.
fn check(
    key: &HashKey,
    decoded: Decoded,
    ts_ns: u64,
    frame: &[u8],
    original_len: u32,
    out: &PacketRecord,
) {
    let has = |flag| out.flags.contains(flag);
    assert_eq!(out.ts_ns, ts_ns);
    assert_eq!(out.wire_len, original_len.max(frame.len() as u32));
    assert_eq!(has(Flags::TRUNCATED), (frame.len() as u32) < out.wire_len);
    match decoded {
        Decoded::Ipv4 => {
            assert!(has(Flags::IPV4) && !has(Flags::IPV6));
            assert!(out.src[4..] == [0; 12] && out.dst[4..] == [0; 12]);
        }
        Decoded::Ipv6 => assert!(has(Flags::IPV6) && !has(Flags::IPV4)),
        Decoded::NonIp(_) => {
            let nothing = PacketRecord {
                ts_ns,
                wire_len: out.wire_len,
                dst_port: out.dst_port,
                path: out.path,
                flags: Flags(out.flags.0 & (Flags::TRUNCATED.0 | Flags::VLAN.0)),
                ..PacketRecord::EMPTY
            };
            assert!(*out == nothing, "{out:?}");
        }
    }
    if !out.is_ip() || has(Flags::BAD_HEADER) {
        assert_eq!((out.src, out.dst, out.pair_hash), ([0; 16], [0; 16], 0));
        assert!(!has(Flags::PORTS) && !has(Flags::PORTS_FROM_FIRST));
    } else {
        assert_eq!(out.pair_hash, key.pair(&out.src, &out.dst));
    }
    assert!(!has(Flags::LATER_FRAGMENT) || has(Flags::FRAGMENT));
    assert!(!has(Flags::PORTS) || !has(Flags::LATER_FRAGMENT));
    assert!(!has(Flags::PORTS_FROM_FIRST) || has(Flags::LATER_FRAGMENT));
    if has(Flags::PORTS) {
        assert!(matches!(out.protocol, 6 | 17 | 33 | 132 | 136));
    } else if out.is_ip() && !has(Flags::PORTS_FROM_FIRST) {
        assert_eq!(out.src_port, 0);
        assert!(out.dst_port == 0 || matches!(out.protocol, 1 | 58));
    }
    assert!(out.tcp_flags == 0 || out.protocol == 6 && has(Flags::PORTS));
    assert!(!has(Flags::IRREGULAR) || out.protocol == 17);
    if out.protocol == 17 && has(Flags::PORTS) && !has(Flags::IRREGULAR) {
        assert!(!has(Flags::FRAGMENT) && out.ip_len >= if has(Flags::IPV6) { 48 } else { 28 });
    }
    if has(Flags::DATA) {
        assert!(matches!(out.protocol, 6 | 17));
        assert!(has(Flags::PORTS) || has(Flags::PORTS_FROM_FIRST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_of_any_link_type_keep_the_invariants(
            bytes in prop::collection::vec(
                prop_oneof![
                    any::<u8>(),
                    prop::sample::select(vec![0u8, 2, 3, 4, 6, 8, 0x11, 0x21, 0x2c, 0x45, 0x60, 0x81, 0x88, 0xaa, 0xdd]),
                ],
                0..400,
            ),
        ) {
            fuzz(&bytes);
        }

        #[test]
        fn tunnels_with_a_few_changed_bytes_keep_them_too(
            first in 0u8..12,
            second in 0u8..12,
            changes in prop::collection::vec((0usize..200, any::<u8>()), 0..4),
            cut in prop_oneof![3 => Just(255usize), 1 => 0usize..200],
        ) {
            let user = around(17, &[0, 9, 0, 80, 0, 12, 0, 0, 1, 2, 3, 4]);
            let mut frame = [&[2; 12][..], &[8, 0], &within(first, &within(second, &user))].concat();
            for (at, byte) in changes {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            frame.truncate(cut.min(255));
            // Ethernet is the second link type in the list.
            fuzz(&[&[1, 0, frame.len() as u8, 0][..], &frame].concat());
        }
    }

    /// An IPv4 packet.
    fn around(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header = [0x45, 0, 0, 20 + payload.len() as u8, 0, 1, 0, 0, 64, protocol, 0, 0];
        [&header[..], &[10, 0, 0, 1, 10, 0, 0, 2], payload].concat()
    }

    /// A packet in a tunnel of the given kind.
    fn within(kind: u8, packet: &[u8]) -> Vec<u8> {
        let udp = |port: u16, header: &[u8], data: &[u8]| {
            let [high, low] = port.to_be_bytes();
            around(17, &[&[0, 9, high, low, 0, 0, 0, 0][..], header, data].concat())
        };
        let frame = [&[4; 12][..], &[8, 0], packet].concat();
        match kind {
            0 => around(4, packet),
            1 => around(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 1][..], packet].concat()),
            2 => around(
                47,
                &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 1, 0, 0, 0, 0][..], &frame]
                    .concat(),
            ),
            3 => udp(4789, &[8, 0, 0, 0, 0, 0, 1, 0], &frame),
            4 => udp(6081, &[1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0], &frame),
            5 => udp(4790, &[0x0c, 0, 0, 1, 0, 0, 1, 0], packet),
            6 => udp(1701, &[0, 2, 0, 1, 0, 2, 0, 0x21], packet),
            7 => udp(5247, &[0, 0x10, 2, 0, 0, 0, 0, 0], &frame),
            8 => udp(6080, &[0, 4, 0, 0], packet),
            9 => around(115, &[&[0, 0, 0, 1][..], &frame].concat()),
            10 => around(97, &[&[0x30, 0][..], &frame].concat()),
            _ => {
                let len = packet.len() as u8;
                udp(2152, &[0x30, 255, 0, len, 0, 0, 0, 1], packet)
            }
        }
    }
}

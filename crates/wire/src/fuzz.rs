//! An entry for fuzzers: any bytes become a series of frames for one decoder.
//!
//! ```text
//!  input:  | link type | (time step | captured length | lack | frame bytes) …
//!          | 1         | (1         | 1               | 1    | as the length says)
//! ```
//!
//! Deterministic, so every crash can be run again from its input.

use std::sync::Arc;

use crate::{Decoded, Decoder, Flags, HashKey, LinkType, PacketRecord, Paths};

/// Decodes `bytes` as frames and panics if a record contradicts itself.
pub fn fuzz(bytes: &[u8]) {
    let Some((&link, mut rest)) = bytes.split_first() else { return };
    // One step past the list stands for a link type that is not decoded.
    let link = usize::from(link) % (LinkType::SUPPORTED.len() + 1);
    let link = LinkType::SUPPORTED.get(link).copied().unwrap_or(LinkType(0xffff));
    let key = HashKey::from_seed(1);
    let paths = Arc::new(Paths::new());
    let (mut decoder, mut twin) = (Decoder::new(key, Arc::clone(&paths)), Decoder::new(key, paths));
    let mut ts_ns = 0;
    while let Some((&[step, len, lack], tail)) = rest.split_first_chunk::<3>() {
        let (frame, tail) = tail.split_at(usize::from(len).min(tail.len()));
        rest = tail;
        ts_ns += u64::from(step) * 1_000_000_000;
        let original_len = frame.len() as u32 + u32::from(lack) * 8;

        let mut out = PacketRecord::EMPTY;
        let decoded = decoder.decode(link, ts_ns, frame, original_len, &mut out);
        check(&key, decoded, ts_ns, frame, original_len, &out);
        if let Some(hash) = crate::pair_hash(&key, link, frame) {
            assert!(hash == out.pair_hash && !out.flags.contains(Flags::TUNNEL), "{out:?}");
        }
        crate::selection_hash(link, frame);

        // What the record held before must not shine through.
        let mut dirty = PacketRecord { src_port: 1, tcp_flags: 0xff, path: 7, ..out };
        (dirty.src, dirty.dst, dirty.flags) = ([0xaa; 16], [0x55; 16], Flags(0xffff));
        assert_eq!(twin.decode(link, ts_ns, frame, original_len, &mut dirty), decoded);
        assert!(dirty == out, "{dirty:?} {out:?}");
    }
}

/// The invariants of a record.
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
    }
}

//! Identifiers of records: Zeek's `uid` and EVE's `flow_id`.
//!
//! Both are a hash of the flow key, the VLANs and the time of the first packet, with a constant hash key: a flow has
//! the same identifier in every run and arrangement, and so have the parts of a flow. If the active timeout splits a flow,
//! its records have different first packets and so different identifiers; `communityId` joins them.

use ringtap_flow::{FlowRecord, Tunnel};

/// A uid: `C` and 17 characters of base 62.
pub(crate) type Uid = [u8; 18];

/// Below 2⁵¹, as in Suricata, so that doubles represent it exactly.
pub(crate) fn flow_id(record: &FlowRecord) -> u64 {
    hash(record) >> 13
}

pub(crate) fn uid(record: &FlowRecord) -> Uid {
    spell(hash(record))
}

/// The uid of a tunnel from its outer header, equal for both directions.
pub(crate) fn tunnel_uid(tunnel: &Tunnel) -> Uid {
    let (a, b) = (words(&tunnel.src), words(&tunnel.dst));
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    let kind = tunnel.kind as u64 | u64::from(tunnel.ipv6) << 8 | u64::from(tunnel.id) << 16;
    spell(mix([low[0], low[1], high[0], high[1], kind]))
}

fn hash(record: &FlowRecord) -> u64 {
    let key = &record.key;
    let first_ns = record.part.map_or(record.first_ns, |part| part.flow_first_ns);
    let ([a, b], [c, d]) = (words(&key.src), words(&key.dst));
    let ports = u64::from(key.src_port) | u64::from(key.dst_port) << 16;
    let protocol = u64::from(key.protocol) << 32 | (key.version as u64) << 40;
    let [outer, inner] = record.path.vlans.map(u64::from);
    mix([a, b, c, d, ports | protocol, outer | inner << 16, first_ns])
}

fn words(address: &[u8; 16]) -> [u64; 2] {
    let whole = u128::from_le_bytes(*address);
    [whole as u64, (whole >> 64) as u64]
}

/// One 64 × 64 bit multiplication a word; both halves are combined.
fn mix<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(0x243f_6a88_85a3_08d3, |state, word| {
        let wide = u128::from(state ^ word) * 0x9e37_79b9_7f4a_7c15;
        (wide as u64 ^ (wide >> 64) as u64).wrapping_add(0x1319_8a2e_0370_7344)
    })
}

/// Converts 64 bits to 17 digits.
fn spell(hash: u64) -> Uid {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut uid = [b'C'; 18];
    let (first, second) = uid[1..].split_at_mut(8);
    for (part, mut rest) in [(first, hash), (second, hash.wrapping_mul(0xd134_2543_de82_ef95))] {
        for digit in part {
            let wide = u128::from(rest) * 62; // the fraction rest / 2⁶⁴, digit by digit
            *digit = DIGITS[(wide >> 64) as usize];
            rest = wide as u64;
        }
    }
    uid
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ringtap_flow::{FlowKey, IpVersion, TunnelKind};

    use super::*;

    fn record(port: u16, first_ns: u64) -> FlowRecord {
        let (src, dst) = ([10; 16], [11; 16]);
        let key = FlowKey {
            version: IpVersion::V6,
            src,
            dst,
            src_port: port,
            dst_port: 53,
            protocol: 17,
        };
        FlowRecord { first_ns, ..FlowRecord::new(key) }
    }

    #[test]
    fn identifiers_differ_and_do_not_change() {
        let (mut uids, mut ids) = (HashSet::new(), HashSet::new());
        for port in 0..1000 {
            for time in 0..100 {
                let record = record(port, time);
                let uid = uid(&record);
                assert!(uid[0] == b'C' && uid.iter().all(u8::is_ascii_alphanumeric));
                assert!(uids.insert(uid) && ids.insert(flow_id(&record)));
            }
        }
        assert!(ids.iter().all(|&id| id < 1 << 51) && ids.iter().any(|&id| id > 1 << 50));
        // Identifiers must not change between versions.
        assert_eq!(String::from_utf8_lossy(&uid(&record(7, 9))), "C8yovfYpovRVwYKKCh");
    }

    #[test]
    fn a_tunnel_has_one_uid_in_both_directions() {
        let (kind, src, dst) = (TunnelKind::Vxlan, [1; 16], [2; 16]);
        let there = Tunnel { kind, ipv6: false, src, dst, id: 7 };
        let back = Tunnel { src: there.dst, dst: there.src, ..there };
        assert_eq!(tunnel_uid(&there), tunnel_uid(&back));
        assert_ne!(tunnel_uid(&there), tunnel_uid(&Tunnel { id: 8, ..there }));
    }
}

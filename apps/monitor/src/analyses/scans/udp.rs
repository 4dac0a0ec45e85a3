//! What of a UDP flow record is an attempt, and what is an answer.
//!
//! A flow without packets back is an attempt that failed: an ICMP message that says so belongs to another flow. What many
//! hosts do without a scan is no attempt: groups and broadcasts, answers of services, traceroute, streams.

use std::net::IpAddr;

use ringtap_flow::FlowRecord;

use super::attempts::{ANSWERED, TRIED};

const UDP: u8 = 17;

/// Services that answer from ports above the system's: SSDP, WS-Discovery, multicast DNS, LLMNR.
const SERVICES: [u16; 4] = [1900, 3702, 5353, 5355];
/// The first port that is none of the system's.
const FIRST_USER_PORT: u16 = 1024;
/// The smallest time to live of traceroute's packets, at most.
const TRACEROUTE_TTL: u8 = 30;
/// More datagrams than these are a stream.
const DATAGRAMS: u64 = 16;

/// The bit of group addresses in the first byte of a link address.
const GROUP: u8 = 1;

/// Calls `found` with source and target, port and state of each attempt that the record is about.
#[inline(always)]
pub(super) fn attempts(record: &FlowRecord, mut found: impl FnMut([&[u8; 16]; 2], u16, u8)) {
    let key = &record.key;
    // The ports of later fragments may be unknown.
    if key.protocol != UDP || (key.src_port, key.dst_port) == (0, 0) {
        return;
    }
    let [sent, back] = record.packets;
    let tried = if is_attempt(record) { TRIED } else { 0 };
    let answered = if back > 0 { ANSWERED } else { 0 };
    if tried | answered != 0 {
        found([&key.src, &key.dst], key.dst_port, tried | answered);
    }
    // It may be the late answer to a flow that has ended, or that another probe saw.
    if back == 0 && sent > 0 && !is_service(key.dst_port) {
        found([&key.dst, &key.src], key.src_port, ANSWERED);
    }
}

fn is_attempt(record: &FlowRecord) -> bool {
    !is_service(record.key.src_port)
        && (1..=DATAGRAMS).contains(&record.packets[0])
        && record.ttl[0][0] > TRACEROUTE_TTL
        && !is_group(record)
}

fn is_service(port: u16) -> bool {
    port < FIRST_USER_PORT || SERVICES.contains(&port)
}

/// Whether the destination is a multicast or broadcast address. The broadcast address of a network shows on the link.
fn is_group(record: &FlowRecord) -> bool {
    let [_, link_destination] = record.path.macs;
    link_destination[0] & GROUP != 0
        || match record.key.destination() {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::{FlowKey, IpVersion};

    use super::*;

    /// A flow from 10.0.0.1 to an address, with this number of datagrams in each direction.
    fn record(target: [u8; 4], ports: [u16; 2], packets: [u64; 2]) -> FlowRecord {
        let wide = |address: [u8; 4]| u128::from(u32::from_le_bytes(address)).to_le_bytes();
        let key = FlowKey {
            version: IpVersion::V4,
            src: wide([10, 0, 0, 1]),
            dst: wide(target),
            src_port: ports[0],
            dst_port: ports[1],
            protocol: UDP,
        };
        FlowRecord { packets, ttl: [[64; 2]; 2], ..FlowRecord::new(key) }
    }

    /// The last bytes of source and target, the port and the state of each.
    fn found(record: &FlowRecord) -> Vec<(u8, u8, u16, u8)> {
        let mut all = Vec::new();
        attempts(record, |[source, target], port, state| {
            all.push((source[3], target[3], port, state));
        });
        all
    }

    const HOST: [u8; 4] = [10, 0, 0, 2];

    #[test]
    fn a_flow_is_an_attempt_and_a_flow_of_an_answer() {
        let of = |ports, packets| found(&record(HOST, ports, packets));
        assert_eq!(of([5000, 7000], [1, 0]), [(1, 2, 7000, TRIED), (2, 1, 5000, ANSWERED)]);
        assert_eq!(of([5000, 7000], [1, 1]), [(1, 2, 7000, TRIED | ANSWERED)]);
        // A service sends no attempts, so it needs no answers.
        assert_eq!(of([5000, 53], [1, 0]), [(1, 2, 53, TRIED)]);
        assert_eq!(of([53, 7000], [1, 0]), [(2, 1, 53, ANSWERED)]);
        assert_eq!(of([1023, 53], [1, 0]), []);
        assert_eq!(of([0, 0], [1, 0]), []);
        let tcp = record(HOST, [5000, 7000], [1, 0]);
        assert_eq!(found(&FlowRecord { key: FlowKey { protocol: 6, ..tcp.key }, ..tcp }), []);
    }

    #[test]
    fn what_hosts_do_without_a_scan_is_no_attempt() {
        let is_tried = |record: &FlowRecord| found(record).iter().any(|one| one.3 & TRIED != 0);
        let plain = record(HOST, [5000, 7000], [16, 0]);
        assert!(is_tried(&plain));
        assert!(!is_tried(&record(HOST, [5000, 7000], [17, 0])));
        for (port, tried) in
            [(1023, false), (1024, true), (1900, false), (3702, false), (5353, false)]
        {
            assert_eq!(is_tried(&record(HOST, [port, 7000], [1, 0])), tried, "{port}");
        }
        for target in [[224, 0, 0, 251], [239, 255, 255, 250], [255; 4]] {
            assert!(!is_tried(&record(target, [5000, 7000], [1, 0])), "{target:?}");
        }
        for (ttl, tried) in [(1, false), (30, false), (31, true)] {
            let record = FlowRecord { ttl: [[ttl, 64], [64; 2]], ..plain.clone() };
            assert_eq!(is_tried(&record), tried, "{ttl}");
        }
        let mut broadcast = plain.clone();
        broadcast.path.macs[1] = [0xff; 6];
        assert!(!is_tried(&broadcast));
        let mut group = plain;
        group.key.version = IpVersion::V6;
        group.key.dst[0] = 0xff;
        assert!(!is_tried(&group));
    }
}

//! Test: under every arrangement, facts from payloads are in the record of the flow whose packet
//! carried them.

use std::collections::BTreeMap;

use crate::common::*;
use ringtap_extract::Extractors;
use ringtap_flow::{FlowRecord, Kind};
use ringtap_io::capture::PcapWriter;
use ringtap_ring::Kind as Ring;
use ringtap_wire::LinkType;

/// Names by the client's host and port and the server's port, in order of first appearance: those asked for over DNS,
/// and the hosts of HTTP requests.
type Names = BTreeMap<(u8, u16, u16), Vec<Vec<u8>>>;

const PACKETS: u32 = 6_000;
/// TCP connections, each with one message in several segments.
const CONNECTIONS: u32 = 600;
/// The ports of servers; 9 has DNS, too.
const SERVERS: [u16; 3] = [9, 53, 80];
/// Maximum number of distinct names that a flow keeps.
const KEPT: usize = 16;

/// A name of up to 240 bytes, encoded as labels and as text.
fn name(number: u32) -> (Vec<u8>, Vec<u8>) {
    let (mut labels, mut text) = (Vec::new(), Vec::new());
    for part in 0..=number % 4 {
        let label = vec![b'a' + (number % 23) as u8; (number / 7 % 56 + part + 1) as usize];
        labels.push(label.len() as u8);
        labels.extend_from_slice(&label);
        text.extend((part > 0).then_some(b'.'));
        text.extend_from_slice(&label);
    }
    labels.push(0);
    (labels, text)
}

/// A DNS message with one or two questions, and their names.
fn message(number: u32) -> (Vec<u8>, Vec<Vec<u8>>) {
    let queries = 1 + number % 2;
    let mut bytes = vec![0, 7, 1, 0, 0, queries as u8, 0, 0, 0, 0, 0, 0];
    let mut names = Vec::new();
    for query in 0..queries {
        let (labels, text) = name(number / 3 + 1_000 * query);
        bytes.extend_from_slice(&labels);
        bytes.extend_from_slice(&[0, 1, 0, 1]);
        names.push(text);
    }
    (bytes, names)
}

fn ipv4(protocol: u8, src: [u8; 4], dst: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len() as u16).to_be_bytes();
    let header = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&header[..], &src, &dst, payload].concat()
}

fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [src, dst, 8 + payload.len() as u16, 0] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    [&bytes[..], payload].concat()
}

fn tcp(src: u16, dst: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [src.to_be_bytes(), dst.to_be_bytes()].concat();
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 1, 0x50, 0x18, 4, 0, 0, 0, 0, 0]);
    [&bytes[..], payload].concat()
}

/// The packet in a frame: without encapsulation, with a VLAN tag or in IP-in-IP.
fn frame(number: u32, packet: &[u8]) -> Vec<u8> {
    match number % 3 {
        0 => [&[2; 12][..], &[8, 0], packet].concat(),
        1 => [&[2; 12][..], &[0x81, 0, 0, 9, 8, 0], packet].concat(),
        _ => {
            let ends = [[10, 9, 0, (number % 4) as u8], [10, 9, 1, 0]];
            [&[2; 12][..], &[8, 0], &ipv4(4, ends[0], ends[1], packet)].concat()
        }
    }
}

/// The message of a connection and its name: DNS in two segments, or an HTTP request in three.
fn connection(number: u32) -> (u16, Vec<u8>, Vec<u8>) {
    if number.is_multiple_of(2) {
        let (message, names) = message(number * 2);
        let frame = [&(message.len() as u16).to_be_bytes()[..], &message].concat();
        (53, frame, names[0].clone())
    } else {
        let host = format!("host-{}.example.org", number % 50);
        let request = format!("GET /{number} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        (80, request.into_bytes(), host.into_bytes())
    }
}

/// The segments of connections: frames in an order in which the last segment of an HTTP request comes before its
/// second.
fn segments(names: &mut Names) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for first in (0..CONNECTIONS).step_by(10) {
        for turn in 0..3 {
            for number in first..first + 10 {
                let (host, port) = ((number % 11) as u8, 20_000 + number as u16);
                let (server, bytes, name) = connection(number);
                names.insert((host, port, server), vec![name]);
                // DNS: even a segment of the length alone. HTTP: the start line in any two parts.
                let cut =
                    if server == 53 { 2 + number as usize % 13 } else { 8 + number as usize % 9 };
                let parts = match (server, turn) {
                    (_, 0) => 0..cut,
                    (53, 1) => cut..bytes.len(),
                    (80, 1) => bytes.len() - 7..bytes.len(),
                    (80, 2) => cut..bytes.len() - 7,
                    _ => continue,
                };
                // The numbers wrap around in every second connection.
                let start = 0_u32.wrapping_sub(number % 4 * 5);
                let segment =
                    tcp(port, server, start.wrapping_add(parts.start as u32), &bytes[parts]);
                frames.push(frame(number, &ipv4(6, [10, 0, 0, host], [10, 1, 0, 53], &segment)));
            }
        }
    }
    frames
}

/// A capture of DNS in both directions and of TCP segments, without encapsulation, with a VLAN tag and in IP-in-IP,
/// and other packets of the same hosts. Returns the names of each flow, too.
fn capture() -> (Capture, Names) {
    let (mut bytes, mut names) = (Vec::new(), Names::new());
    let mut writer = PcapWriter::new(&mut bytes, LinkType::ETHERNET, u32::MAX);
    for number in 0..PACKETS {
        let (host, port) = ((number % 11) as u8, 1_024 + (number % 37 * 7) as u16);
        let (client, server) = ([10, 0, 0, host], [10, 1, 0, 53]);
        let (message, queried) = message(number);
        let packet = match number % 5 {
            0 => ipv4(17, client, server, &udp(port, 9, &message)),
            1 => ipv4(17, server, client, &udp(53, port, &message)),
            _ => ipv4(17, client, server, &udp(port, 53, &message)),
        };
        // On another port a message is recognised if it has one question.
        let server = if number % 5 == 0 { 9 } else { 53 };
        if server == 53 || queried.len() == 1 {
            let own = names.entry((host, port, server)).or_default();
            for name in queried {
                if !own.contains(&name) && own.len() < KEPT {
                    own.push(name);
                }
            }
        }
        let frame = frame(number, &packet);
        writer.write(u64::from(number) * 1_000, frame.len() as u32, &frame).unwrap();
    }
    for (number, frame) in segments(&mut names).iter().enumerate() {
        let ts_ns = (u64::from(PACKETS) + number as u64) * 1_000;
        writer.write(ts_ns, frame.len() as u32, frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    (Capture::Bytes(bytes), names)
}

/// The names of a run's records, and its digest.
fn found(plan: &Plan, capture: &Capture) -> (Names, String) {
    let (outputs, records) = gather(plan.arrangement.workers, FlowRecord::clone);
    let outcome = run_with(plan, capture, outputs);
    let mut names = Names::new();
    for record in records.lock().unwrap().iter() {
        let key = &record.key;
        let (client, port, server) = if SERVERS.contains(&key.dst_port) {
            (key.src, key.src_port, key.dst_port)
        } else {
            (key.dst, key.dst_port, key.src_port)
        };
        let kinds = [Kind::DnsQueryName, Kind::HttpHost];
        let own = kinds.into_iter().flat_map(|kind| record.facts.values(kind));
        let own: Vec<_> = own.map(<[u8]>::to_vec).collect();
        if !own.is_empty() {
            assert!(names.insert((client[3], port, server), own).is_none(), "{record:?}");
        }
    }
    let facts = outcome.run.report.facts.as_ref();
    let kept = facts.map_or(0, |facts| facts.kept["dnsQueryName"] + facts.kept["httpHost"]);
    assert_eq!(kept, names.values().map(|own| own.len() as u64).sum::<u64>());
    (names, digest(&outcome).to_owned())
}

#[test]
fn under_every_arrangement_each_flow_has_the_names_of_its_packets() {
    let (capture, expected) = capture();
    let (reference_names, digest) = found(&reference(request()), &capture);
    assert_eq!(reference_names, expected);
    assert!(expected.values().any(|own| own.len() == KEPT) && expected.len() > 300);
    let shapes = [(1, 1), (1, 3), (2, 2), (3, 1)];
    for (turn, skeleton) in skeletons().enumerate() {
        for (r, ring) in Ring::ALL.into_iter().enumerate() {
            for (s, shape) in shapes.into_iter().enumerate() {
                let size = [(1, 1), (3, 50), (64, 8), (4096, 50)][(turn + r + s) % 4];
                let plan = parallel(request(), skeleton, shape, ring, size);
                let (names, own) = found(&plan, &capture);
                assert_eq!(names, expected, "{skeleton}, {ring}, {shape:?}, {size:?}");
                assert_eq!(own, digest, "{skeleton}, {ring}, {shape:?}, {size:?}");
            }
        }
    }
}

#[test]
fn without_extractors_there_are_no_facts_and_without_memory_lost_facts_are_counted() {
    let (capture, expected) = capture();
    let request = request().app(|o| o.extract = Extractors::NONE);
    let (names, _) = found(&reference(request.clone()), &capture);
    assert!(names.is_empty());
    let mut plan = reference(request.app(|o| o.extract = Extractors::ALL));
    plan.app.fact_bytes = 20_000;
    let outcome = run(&plan, &capture);
    let facts = outcome.run.report.facts.as_ref().unwrap();
    let all = expected.values().map(|own| own.len() as u64).sum::<u64>();
    assert!(facts.no_room > 0 && facts.kept["dnsQueryName"] < all, "{facts:?}");
    let losses = outcome.losses();
    assert!(losses.contains(&("facts from payloads left out for lack of memory", facts.no_room)));
    assert!(outcome.warnings().iter().any(|warning| warning.contains("raise --memory")));
}

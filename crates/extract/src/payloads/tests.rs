//! Segments of connections: what is sent again, cut into short segments, or hidden in a body.

use proptest::prelude::*;

use super::*;
use crate::LIFETIME_NS;

const MEMORY: usize = 1 << 22;

/// A connection between the ports 40,000 and another one, from its SYN on.
struct Connection {
    payloads: Payloads,
    port: u16,
    ts_ns: u64,
    /// The next sequence number of client and server.
    next: [u32; 2],
    facts: Vec<String>,
    /// Lengths of the bodies of messages.
    lengths: Vec<String>,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
const START: [u32; 2] = [u32::MAX - 100, 5_000];

impl Connection {
    fn new(port: u16) -> Self {
        let payloads = Payloads::new(Extractors::ALL, MEMORY);
        Self { payloads, port, ts_ns: 1, next: START, facts: Vec::new(), lengths: Vec::new() }
    }

    fn record(&self, side: usize) -> PacketRecord {
        let (mut src, mut dst) = ([0; 16], [0; 16]);
        (src[side], dst[1 - side]) = (1, 1);
        let ports = if side == CLIENT { [40_000, self.port] } else { [self.port, 40_000] };
        PacketRecord {
            src,
            dst,
            src_port: ports[0],
            dst_port: ports[1],
            protocol: TCP,
            flags: Flags(Flags::IPV4.0 | Flags::PORTS.0 | Flags::DATA.0),
            ts_ns: self.ts_ns,
            ..PacketRecord::EMPTY
        }
    }

    /// Reads a segment at this sequence number, if a reader would look at it.
    fn at(&mut self, side: usize, sequence: u32, bytes: &[u8]) -> &mut Self {
        let record = self.record(side);
        if self.payloads.may_read(&record, bytes, 0, || Some(sequence)) {
            let Self { payloads, facts, lengths, .. } = self;
            let payload = Payload { record: &record, bytes, sequence };
            payloads.read(&payload, &mut |kind, value| {
                if matches!(kind, Kind::HttpRequestLength | Kind::HttpResponseLength) {
                    lengths.push(value.escape_ascii().to_string());
                }
                let shown = [
                    Kind::Protocol,
                    Kind::HttpTarget,
                    Kind::HttpStatus,
                    Kind::TlsServerName,
                    Kind::SshClient,
                    Kind::SshServer,
                    Kind::DnsQueryName,
                    Kind::ProxySourceAddress,
                ];
                if shown.contains(&kind) {
                    facts.push(value.escape_ascii().to_string());
                }
                true
            });
        }
        self
    }

    /// The next segment of a side.
    fn send(&mut self, side: usize, bytes: &[u8]) -> &mut Self {
        let sequence = self.next[side];
        self.next[side] = sequence.wrapping_add(bytes.len() as u32);
        self.at(side, sequence, bytes)
    }

    /// A SYN of a side: its sequence numbers begin again.
    fn syn(&mut self, side: usize) -> &mut Self {
        let sequence = START[side].wrapping_sub(1);
        let record =
            PacketRecord { tcp_flags: SYN, flags: Flags(Flags::IPV4.0), ..self.record(side) };
        if self.payloads.may_read(&record, &[], 0, || None) {
            let payload = Payload { record: &record, bytes: &[], sequence };
            self.payloads.read(&payload, &mut |_, _| panic!("a SYN has no facts"));
        }
        self.next[side] = START[side];
        self
    }

    /// A FIN of a side, without data.
    fn fin(&mut self, side: usize) -> &mut Self {
        let record =
            PacketRecord { tcp_flags: FIN, flags: Flags(Flags::IPV4.0), ..self.record(side) };
        let sequence = self.next[side];
        if self.payloads.may_read(&record, &[], 0, || Some(sequence)) {
            let lengths = &mut self.lengths;
            let payload = Payload { record: &record, bytes: &[], sequence };
            self.payloads.read(&payload, &mut |kind, value| {
                assert_eq!(kind, Kind::HttpResponseLength);
                lengths.push(value.escape_ascii().to_string());
                true
            });
        }
        self
    }

    /// The facts since the last call.
    fn facts(&mut self) -> String {
        std::mem::take(&mut self.facts).join(" ")
    }

    fn unread(&mut self) -> Vec<(&'static str, Unread)> {
        self.payloads.counts(true).unread.keys().copied().collect()
    }
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: h.example\r\n\r\n").into_bytes()
}

fn response(status: u16, body: usize) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {body}\r\n\r\n").into_bytes()
}

fn hello(name: &str) -> Vec<u8> {
    let with_len = |bytes: Vec<u8>| [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat();
    let name = [&[0][..], &with_len(name.as_bytes().to_vec())].concat();
    let extension = [&[0, 0][..], &with_len(with_len(name))].concat();
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &with_len(extension)].concat();
    let message = [&[1, 0][..], &with_len(body)].concat();
    [&[22, 3, 1][..], &with_len(message)].concat()
}

fn question(name: &str) -> Vec<u8> {
    let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.len() as u8];
    message.extend_from_slice(name.as_bytes());
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    [&(message.len() as u16).to_be_bytes()[..], &message].concat()
}

/// First messages with their server's port and facts.
fn firsts() -> [(u16, Vec<u8>, &'static str); 5] {
    [
        (443, hello("tls.example"), "tls tls.example"),
        (8_443, hello("tls.example"), "tls tls.example"),
        (80, get("/a"), "http /a"),
        (22, b"SSH-2.0-client\r\n".to_vec(), "ssh SSH-2.0-client"),
        (53, question("example"), "dns example"),
    ]
}

#[test]
fn http_has_its_position() {
    assert_eq!(Extractors::NAMES[HTTP], "http");
}

#[test]
fn syns_are_read_if_they_are_named() {
    assert_eq!(Extractors::NAMES[protocols::SYN], "syn");
    let header = [&[0; 12][..], &[0x60, SYN, 4, 0, 0, 0, 0, 0], &[2, 4, 5, 0xb4]].concat();
    for (set, expected) in [("all", 0), ("syn", 2), ("all,syn", 2)] {
        let mut own = Connection::new(80);
        own.payloads = Payloads::new(set.parse().unwrap(), MEMORY);
        let flags = Flags(Flags::IPV4.0);
        let record = PacketRecord { tcp_flags: SYN, flags, ..own.record(CLIENT) };
        assert_eq!(own.payloads.may_read(&record, &[], 0, || None), expected > 0);
        let mut facts = 0;
        let payload = Payload { record: &record, bytes: &header, sequence: 7 };
        own.payloads.read_syn(&payload, &mut |_, _| {
            facts += 1;
            true
        });
        assert_eq!(facts, expected);
        let read = own.payloads.counts(true).read.get("syn").copied();
        assert_eq!(read, (expected > 0).then_some(1));
        let other = PacketRecord { tcp_flags: 16, ..record };
        assert!(!own.payloads.may_read(&other, &[], 0, || None));
    }
}

#[test]
fn a_message_that_is_sent_again_is_not_read_again() {
    for (port, bytes, facts) in firsts() {
        let mut own = Connection::new(port);
        own.send(CLIENT, &bytes);
        for _ in 0..3 {
            own.ts_ns += LIFETIME_NS;
            own.at(CLIENT, START[0], &bytes);
            own.at(CLIENT, START[0], &bytes[..bytes.len() / 2]);
            own.at(CLIENT, START[0].wrapping_add(3), &bytes[3..]);
        }
        assert_eq!((own.facts(), own.unread()), (facts.into(), vec![]));
        // Later than its lifetime, it is another connection.
        own.ts_ns += LIFETIME_NS + 1;
        assert_eq!(own.at(CLIENT, START[0], &bytes).facts(), facts);
        // A SYN begins another one, too, with the same numbers.
        assert_eq!(own.syn(CLIENT).send(CLIENT, &bytes).facts(), facts);
        assert_eq!(own.at(CLIENT, START[0], &bytes).facts(), "");
        // The other direction has its own positions.
        assert!(!own.at(SERVER, START[0], &bytes).facts().is_empty());
    }
}

#[test]
fn what_follows_the_header_of_a_proxy_is_read() {
    let line = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n";
    let ends = [192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 4, 1, 0xbb];
    let binary = [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &ends].concat();
    for (port, bytes, facts) in firsts() {
        for header in [&line[..], &binary] {
            let stream = [header, &bytes].concat();
            let expected = (format!("proxy 192.0.2.1 {facts}"), vec![]);
            let mut own = Connection::new(port);
            own.send(CLIENT, &stream).at(CLIENT, START[0], &stream);
            assert_eq!((own.facts(), own.unread()), expected);
            for cut in 8..stream.len() {
                let mut own = Connection::new(port);
                own.send(CLIENT, &stream[..cut]).send(CLIENT, &stream[cut..]);
                assert_eq!((own.facts(), own.unread()), expected, "{port}: cut at {cut}");
            }
            // A second header is none.
            let mut own = Connection::new(port);
            own.send(CLIENT, &[header, header, header].concat());
            assert_eq!((own.facts(), own.unread()), ("proxy 192.0.2.1".into(), vec![]));
        }
    }
}

#[test]
fn all_of_several_messages_are_sent_again() {
    let all = [get("/1"), get("/2"), get("/3")];
    let mut own = Connection::new(80);
    all.iter().for_each(|bytes| _ = own.send(CLIENT, bytes));
    let mut sequence = START[0];
    for bytes in &all {
        own.at(CLIENT, sequence, bytes);
        sequence = sequence.wrapping_add(bytes.len() as u32);
    }
    own.at(CLIENT, START[0], &all.concat());
    assert_eq!(own.facts(), "http /1 http /2 http /3");
    // The new part of a segment of which the rest is known.
    let more = [&all[2][..], &get("/4"), &get("/5")[..20]].concat();
    own.at(CLIENT, sequence.wrapping_sub(all[2].len() as u32), &more);
    assert_eq!(own.facts(), "http /4");
    sequence = sequence.wrapping_add((get("/4").len() + 20) as u32);
    assert_eq!(own.at(CLIENT, sequence, &get("/5")[20..]).facts(), "http /5");
    assert!(own.unread().is_empty());
}

#[test]
fn messages_out_of_order_are_not_lost() {
    let all = [get("/1"), get("/2"), get("/3"), get("/4")];
    let len = all[0].len() as u32;
    for order in [[1, 0, 3, 2], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let mut own = Connection::new(80);
        for _ in 0..2 {
            for at in order {
                own.at(CLIENT, START[0].wrapping_add(at as u32 * len), &all[at]);
            }
        }
        let expected = order.map(|at| format!("http /{}", at + 1)).join(" ");
        assert_eq!((own.facts(), own.unread()), (expected, vec![]));
    }
}

#[test]
fn a_message_may_begin_with_a_short_segment() {
    for (port, bytes, facts) in firsts() {
        for first in 1..10 {
            for second in first + 1..first + 6 {
                let mut own = Connection::new(port);
                own.send(CLIENT, &bytes[..first]).send(CLIENT, &bytes[first..second]);
                own.send(CLIENT, &bytes[second..]);
                assert_eq!(own.facts(), facts, "{port}: {first} {second}");
                assert!(own.unread().is_empty());
            }
        }
        let mut own = Connection::new(port);
        bytes[..40.min(bytes.len())].chunks(1).for_each(|byte| _ = own.send(CLIENT, byte));
        assert_eq!(own.send(CLIENT, bytes.get(40..).unwrap_or_default()).facts(), facts);
        // What is given up is counted.
        let mut own = Connection::new(port);
        own.send(CLIENT, &bytes[..3]);
        assert_eq!(own.unread().len(), 1);
    }
}

#[test]
fn short_segments_that_begin_nothing_hide_nothing() {
    for (port, bytes, facts) in firsts() {
        for short in
            [&b"G"[..], b"\x16", b"\x16\x03", b"S", b"\0", b"SS", b"Hello\r\n", b"POST", b"\r\n"]
        {
            if (port, short) == (53, b"\r\n") {
                // The length of a message.
                continue;
            }
            let mut own = Connection::new(port);
            own.send(CLIENT, short).send(CLIENT, &bytes);
            assert_eq!((own.facts(), own.unread()), (facts.into(), vec![]), "{port} {short:?}");
            // A keep-alive repeats a byte, or sends another one in its place.
            let before = own.next[0].wrapping_sub(1);
            own.at(CLIENT, before, b"G").at(CLIENT, before, b"\0");
            assert_eq!((own.facts(), own.unread()), (String::new(), vec![]));
        }
    }
    // Keys of a terminal.
    let mut own = Connection::new(23);
    b"GET SSH HTTP\x16\x03\x01 SPOT".iter().for_each(|key| _ = own.send(CLIENT, &[*key]));
    own.send(CLIENT, b"\r\n");
    assert_eq!((own.facts(), own.unread()), (String::new(), vec![]));
}

/// Bodies with what looks like messages, in segments of this length.
fn with_body(own: &mut Connection, side: usize, head: &[u8], parts: &[Vec<u8>], segment: usize) {
    let body = parts.concat();
    let bytes = [head, &body].concat();
    bytes.chunks(segment).for_each(|segment| _ = own.send(side, segment));
}

#[test]
fn nothing_is_read_in_a_body_of_known_length() {
    let parts = [vec![b'z'; 937], get("/evil"), hello("in-body.example"), vec![b'z'; 500]];
    let len = parts.iter().map(Vec::len).sum();
    let post =
        |len: usize| format!("POST /up HTTP/1.1\r\nContent-Length: {len}\r\n\r\n").into_bytes();
    for segment in (1..40).chain([937 + post(len).len(), 1_400, 4_000]) {
        let mut own = Connection::new(80);
        with_body(&mut own, CLIENT, &post(len), &parts, segment);
        own.send(CLIENT, &get("/next"));
        with_body(&mut own, SERVER, &response(200, len), &parts, segment);
        // The next message in the segment in which the body ends.
        own.send(SERVER, &response(200, len));
        let bytes = [parts.concat(), response(302, 0)].concat();
        bytes.chunks(1_000).for_each(|segment| _ = own.send(SERVER, segment));
        let expected = "http /up http /next http 200 http 200 http 302";
        assert_eq!((own.facts(), own.unread()), (expected.into(), vec![]), "{segment}");
    }
    // A segment that begins with a message in front of a body is lost: what follows the body is found.
    let mut own = Connection::new(80);
    own.send(CLIENT, &post(len));
    own.next[0] = own.next[0].wrapping_add(1_000);
    let rest = [&parts.concat()[1_000..], &get("/next")].concat();
    assert_eq!(own.send(CLIENT, &rest).facts(), "http /up http /next");
}

/// A chunked body with what looks like messages, and the length of its data.
fn chunked(parts: &[Vec<u8>]) -> (Vec<u8>, usize) {
    let mut body = Vec::new();
    for part in parts {
        body.extend(format!("{:X};x=y\r\n", part.len()).into_bytes());
        body.extend_from_slice(part);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"0\r\nTrailer: z\r\n\r\n");
    (body, parts.iter().map(Vec::len).sum())
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n";

fn evil() -> Vec<Vec<u8>> {
    let in_body = [get("/evil"), response(200, 0), hello("in-body.example")];
    let mut parts = vec![vec![b'z'; 937]];
    parts.extend(in_body);
    parts.push(vec![b'z'; 3_000]);
    parts
}

#[test]
fn nothing_is_read_in_a_chunked_body() {
    let (body, octets) = chunked(&evil());
    let post = b"POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for segment in (1..40).chain([500, 1_000, 1_400, 6_000]) {
        let mut own = Connection::new(80);
        with_body(&mut own, CLIENT, post, std::slice::from_ref(&body), segment);
        own.send(CLIENT, &get("/next"));
        for status in [302, 404] {
            with_body(&mut own, SERVER, CHUNKED, std::slice::from_ref(&body), segment);
            own.ts_ns += 3 * LIFETIME_NS;
            own.send(SERVER, &response(status, 0));
        }
        let expected = "http /up http /next http 200 http 302 http 200 http 404";
        assert_eq!((own.facts(), own.unread()), (expected.into(), vec![]), "{segment}");
        let octets = octets.to_string();
        assert_eq!(own.lengths, [&octets, &octets, "0", &octets, "0"], "{segment}");
    }
}

#[test]
fn chunks_may_be_out_of_order() {
    let (body, octets) = chunked(&evil());
    let bytes = [CHUNKED, &body, &response(302, 7)].concat();
    let first = bytes.len() / 8;
    for segment in [400, 700, 1_000] {
        let mut own = Connection::new(80);
        own.send(SERVER, &bytes[..first]);
        let mut segments: Vec<_> = (first..bytes.len()).step_by(segment).collect();
        segments.reverse();
        for at in segments {
            let end = (at + segment).min(bytes.len());
            own.at(SERVER, START[1].wrapping_add(at as u32), &bytes[at..end]);
        }
        assert_eq!((own.facts(), own.unread()), ("http 200 http 302".into(), vec![]));
        assert_eq!(own.lengths, [octets.to_string(), "7".into()]);
    }
}

#[test]
fn behind_lost_chunks_the_next_response_is_found() {
    let (body, octets) = chunked(&evil());
    let lost = |from: usize, to: usize| {
        let mut own = Connection::new(80);
        own.send(SERVER, CHUNKED);
        own.send(SERVER, &body[..from]);
        own.next[1] = own.next[1].wrapping_add((to - from) as u32);
        for segment in body[to..].chunks(100) {
            own.send(SERVER, segment);
        }
        // Of the other direction, and another protocol.
        own.send(SERVER, &get("/evil")).send(SERVER, &hello("in-body.example"));
        for _ in 0..20 {
            own.send(SERVER, &[b'z'; 100]);
        }
        own.send(SERVER, &response(302, 0)).send(SERVER, &response(404, 0));
        (own.facts(), own.unread(), own.lengths)
    };
    let incomplete = vec![("http", Unread::Incomplete)];
    let expected = "http 200 http 302 http 404".to_owned();
    // A line between chunks is missing.
    assert_eq!(lost(900, 1_000), (expected, incomplete, vec!["0".into(), "0".into()]));
    // Data alone are missing, so the end is found.
    let (facts, unread, lengths) = lost(100, 800);
    assert!(facts.starts_with("http 200 ") && lengths[0] == octets.to_string(), "{facts}");
    assert!(unread.is_empty());
    // What is no chunk.
    let mut own = Connection::new(80);
    own.send(SERVER, CHUNKED).send(SERVER, b"zz\r\n").send(SERVER, &hello("in-body.example"));
    own.send(SERVER, &get("/evil")).send(SERVER, &response(302, 3));
    assert_eq!(own.facts(), "http 200 http 302");
    assert_eq!(own.unread(), [("http", Unread::Malformed)]);
    // Without a length, but to an unknown request.
    let mut own = Connection::new(80);
    own.send(SERVER, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    own.send(SERVER, &hello("in-body.example")).send(SERVER, &get("/evil"));
    assert_eq!(own.send(SERVER, &response(302, 3)).facts(), "http 200 http 302");
    assert!(own.unread().is_empty());
}

#[test]
fn a_body_may_end_with_the_connection() {
    for len in [0_u64, 5, 3_000, 9 << 30] {
        let mut own = Connection::new(80);
        own.send(CLIENT, &get("/a")).send(SERVER, b"HTTP/1.1 200 OK\r\n\r\nfirst");
        let mut left = len;
        while left > 0 {
            own.ts_ns += LIFETIME_NS;
            let next = left.min(64 << 10);
            let bytes = response(404, 0).repeat(3);
            let shown = bytes.len().min(next as usize);
            own.next[1] = own.next[1].wrapping_add((next - shown as u64) as u32);
            own.send(SERVER, &bytes[..shown]);
            left -= next;
        }
        own.fin(SERVER).fin(SERVER);
        assert_eq!((own.facts(), own.unread()), ("http /a http 200".into(), vec![]), "{len}");
        assert_eq!(own.lengths, [(len + 5).to_string()]);
        own.syn(CLIENT).syn(SERVER).send(CLIENT, &get("/b")).send(SERVER, &response(404, 0));
        assert_eq!(own.facts(), "http /b http 404");
    }
}

#[test]
fn a_body_may_be_longer_than_sequence_numbers() {
    let mut own = Connection::new(80);
    let len = 9_u64 << 30;
    own.send(SERVER, format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").as_bytes());
    let (mut left, step) = (len, 64 << 10);
    while left > 0 {
        own.ts_ns += LIFETIME_NS;
        let next = left.min(step);
        own.send(SERVER, &get("/evil").repeat(3)[..next.min(80) as usize]);
        own.next[1] = own.next[1].wrapping_add((next - next.min(80)) as u32);
        // Only the segment at the end of a range is looked at in full.
        own.at(SERVER, own.next[1].wrapping_sub(80), &[b'z'; 80]);
        left -= next;
    }
    own.send(SERVER, &response(302, 0));
    assert_eq!((own.facts(), own.unread()), ("http 200 http 302".into(), vec![]));
}

#[test]
fn a_response_to_head_has_no_body() {
    let head = |target: &str| format!("HEAD {target} HTTP/1.1\r\n\r\n").into_bytes();
    let mut own = Connection::new(80);
    own.send(CLIENT, &[head("/1"), get("/2"), head("/3")].concat());
    own.send(SERVER, &response(100, 0)).send(SERVER, &response(200, 900));
    own.send(SERVER, &[response(200, 5), get("/no")[..5].to_vec()].concat());
    own.send(SERVER, &response(200, 900)).send(SERVER, &response(302, 900));
    own.send(SERVER, &response(404, 0));
    assert_eq!(own.facts(), "http /1 http /2 http /3 http 100 http 200 http 200 http 200 http 302");
    // More requests than are kept: all are taken for others.
    let mut own = Connection::new(80);
    own.send(CLIENT, &head("/1").repeat(40));
    own.facts();
    own.send(SERVER, &response(200, 50)).send(SERVER, &response(404, 0));
    assert_eq!(own.facts(), "http 200");
}

#[test]
fn no_messages_follow_an_upgrade_and_no_http_a_tunnel() {
    let upgrade = |to: &str| {
        format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: {to}\r\n\r\n").into_bytes()
    };
    let connect = b"CONNECT h:443 HTTP/1.1\r\n\r\n";
    let no_body = b"HTTP/1.1 200 OK\r\n\r\n";
    for (request, answer, facts, later) in [
        (&get("/ws")[..], &upgrade("websocket")[..], "http /ws http 101", ""),
        (&get("/tls"), &upgrade("TLS/1.2"), "http /tls http 101", "tls a.example tls b.example"),
        (connect, no_body, "http h:443 http 200", "tls a.example tls b.example"),
        (
            connect,
            &response(403, 0),
            "http h:443 http 403",
            "http /no http 200 tls a.example tls b.example",
        ),
    ] {
        let mut own = Connection::new(80);
        own.send(CLIENT, request).send(SERVER, answer);
        assert_eq!(own.facts(), facts);
        own.ts_ns += 100 * LIFETIME_NS;
        own.send(CLIENT, &get("/no")).send(SERVER, &response(200, 0));
        own.send(CLIENT, &hello("a.example")).send(SERVER, &hello("b.example"));
        assert_eq!((own.facts(), own.unread()), (later.into(), vec![]));
        // A SYN of each side begins another connection.
        own.syn(CLIENT).syn(SERVER).send(CLIENT, &get("/yes")).send(SERVER, &response(404, 0));
        assert_eq!(own.facts(), "http /yes http 404");
    }
}

#[test]
fn what_is_known_of_connections_ends_with_the_turns() {
    let mut own = Connection::new(80);
    own.send(CLIENT, &get("/1"));
    let sent_again = |own: &mut Connection| own.at(CLIENT, START[0], &get("/1")).facts();
    own.facts();
    own.payloads.turn();
    assert_eq!(sent_again(&mut own), "");
    // A request without a response is kept for longer.
    own.payloads.turn();
    assert_eq!(sent_again(&mut own), "");
    own.send(SERVER, &response(200, 10));
    (0..8).for_each(|_| own.payloads.turn());
    own.facts();
    assert_eq!(sent_again(&mut own), "http /1");
    // The body of the response has not ended.
    own.send(SERVER, &[&[b'z'; 10][..], &response(404, 0)].concat());
    assert_eq!((own.facts(), own.unread()), ("http 404".into(), vec![]));
}

#[test]
fn what_is_evicted_for_lack_of_room_is_counted() {
    let mut own = Connection::new(80);
    own.payloads = Payloads::new(Extractors::ALL, 80_000);
    for port in 1..2_000 {
        own.port = port;
        own.send(CLIENT, &get("/1"));
    }
    assert!(own.payloads.positions.memory() <= 10_000);
    assert_eq!(own.unread(), [("http", Unread::Evicted)]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Segments that are cut anywhere and sent again change nothing.
    #[test]
    fn facts_do_not_depend_on_segments(
        messages in prop::collection::vec(0..5_usize, 1..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let post = [&b"POST /p HTTP/1.1\r\nContent-Length: 300\r\n\r\n"[..], &get("/evil").repeat(9)[..300]].concat();
        let kinds = [get("/a"), post, get("/b"), b"\r\nBREW /pot HTTP/1.1\r\n\r\n".to_vec(), get("/c")];
        let bytes: Vec<u8> = messages.iter().flat_map(|kind| kinds[*kind].clone()).collect();
        let mut whole = Connection::new(80);
        whole.send(CLIENT, &bytes);
        let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        at.dedup();
        let mut own = Connection::new(80);
        for (number, ends) in at.windows(2).enumerate() {
            own.at(CLIENT, START[0].wrapping_add(ends[0] as u32), &bytes[ends[0]..ends[1]]);
            // An earlier segment, and a part of several.
            let from = again.get(number).map_or(ends[0], |from| from.index(ends[1]));
            own.at(CLIENT, START[0].wrapping_add(from as u32), &bytes[from..ends[1]]);
        }
        prop_assert_eq!(own.facts(), whole.facts());
        prop_assert!(own.unread().is_empty());
    }
}

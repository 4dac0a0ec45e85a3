//! Messages, their facts, and what is no message.

use proptest::prelude::*;
use ringtap_wire::PacketRecord;

use super::*;
use crate::Payloads;
use crate::opening::LOOKED_AT;

fn packet(protocol: u8, port: u16) -> PacketRecord {
    PacketRecord {
        src_port: 4_000,
        dst_port: port,
        protocol,
        flags: Flags(Flags::IPV4.0 | Flags::DATA.0),
        ..PacketRecord::EMPTY
    }
}

/// The facts in segments at these positions of a stream, and the reasons why something was not read.
fn read_segments(record: &PacketRecord, segments: &[(usize, &[u8])]) -> (String, Vec<Unread>) {
    let mut payloads = Payloads::new("http".parse().unwrap(), 1 << 20);
    let mut facts = Vec::new();
    for &(sequence, bytes) in segments {
        let payload = Payload { record, bytes, sequence: sequence as u32 };
        payloads.read(&payload, &mut |kind, value| {
            if let Some(short) = short(kind) {
                facts.push(format!("{short}={}", value.escape_ascii()));
            }
            true
        });
    }
    let unread = payloads.counts(true).unread.keys().map(|&(_, why)| why).collect();
    (facts.join(" "), unread)
}

/// The short name of a kind; `None`: of the lengths of bodies, which tests of connections compare.
fn short(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Protocol => "protocol",
        Kind::HttpKind => "kind",
        Kind::HttpMethod => "method",
        Kind::HttpHost => "host",
        Kind::HttpTarget => "target",
        Kind::HttpUserAgent => "agent",
        Kind::HttpStatus => "status",
        Kind::HttpReferer => "referer",
        Kind::HttpContentType => "type",
        Kind::HttpLocation => "location",
        _ => return None,
    })
}

fn tcp(bytes: &[u8]) -> String {
    let (facts, unread) = read_segments(&packet(TCP, 80), &[(1, bytes)]);
    assert!(unread.is_empty(), "{unread:?}");
    facts
}

const GET: &[u8] =
    b"GET /a?b HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test/1 (x)\r\nAccept: */*\r\n\r\n";
const GOT: &str =
    "protocol=http kind=request method=GET host=example.org target=/a?b agent=test/1 (x)";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const WAS_OK: &str = "protocol=http kind=response status=200";

#[test]
fn requests_and_responses_are_read() {
    assert_eq!(tcp(GET), GOT);
    assert_eq!(tcp(OK), WAS_OK);
    assert_eq!(tcp(b"HTTP/1.0 404\r\n\r\n"), "protocol=http kind=response status=404");
    // What servers accept: bare line feeds, odd spaces and cases, lines without a colon, folded lines.
    let odd = b"POST  /x y  HTTP/1.0\nhOST : \t h:80 \nno colon\nuser-agent:\xe9\n more: x\nHost: second\n\n";
    let facts = "protocol=http kind=request method=POST host=h:80 target=/x y agent=\\xe9";
    assert_eq!(tcp(odd), facts);
    assert_eq!(
        tcp(b"HEAD / HTTP/1.1\r\nHost:\r\n\r\n"),
        "protocol=http kind=request method=HEAD target=/"
    );
}

#[test]
fn further_fields_are_read() {
    let request =
        b"POST / HTTP/1.1\r\nHost: h\r\nReferer: http://a/b\r\nCONTENT-TYPE: a/b; c=d\r\n\r\n";
    let facts =
        "protocol=http kind=request method=POST host=h target=/ referer=http://a/b type=a/b; c=d";
    assert_eq!(tcp(request), facts);
    let response =
        b"HTTP/1.1 301 X\r\nContent-Type: text/html\r\nLocation: /x\r\nReferer: no\r\n\r\n";
    assert_eq!(tcp(response), "protocol=http kind=response status=301 type=text/html location=/x");
}

#[test]
fn the_host_can_be_in_the_target() {
    let request = |line: &str| {
        let facts = tcp(format!("{line} HTTP/1.1\r\nX: y\r\n\r\n").as_bytes());
        facts.split(' ').find_map(|fact| fact.strip_prefix("host=")).unwrap_or("").to_owned()
    };
    assert_eq!(request("CONNECT example.org:443"), "example.org:443");
    assert_eq!(request("GET http://user@example.org:8080/a@b?c://d"), "example.org:8080");
    assert_eq!(request("GET http://[2001:db8::1]"), "[2001:db8::1]");
    assert_eq!(request("GET /?u=http://other/"), "");
    assert_eq!(request("OPTIONS *"), "");
    let facts = tcp(b"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n");
    assert!(facts.contains("host=b "), "{facts}");
}

#[test]
fn other_protocols_are_left_alone() {
    for other in [
        &b"OPTIONS sip:a@example.org SIP/2.0\r\n\r\n"[..],
        b"NOTIFY sip:a@example.org SIP/2.0\r\nTo: x",
        b"OPTIONS rtsp://example.org/x RTSP/1.0\r\n\r\n",
        b"OPTIONS rtsp://example.org/x",
        b"GET /\r\n",
        b"G\0T / HTTP/1.1\r\n\r\n",
        b"INVITE sip:a@example.org",
        b"GET HTTP/1.1\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"(get) / HTTP/1.1\r\n\r\n",
        b"get /key",
        b"set /key 0 0 3\r\nabc\r\n",
        b"LIST mailbox",
        b"LIST\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 007 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"MOVE \0\0\0\0",
    ] {
        assert_eq!(tcp(other), "", "{}", other.escape_ascii());
    }
}

#[test]
fn any_token_is_a_method() {
    for method in
        ["GET", "M-SEARCH", "VERSION-CONTROL", "CCM_POST", "BREW", "GO", "Ab1!#", "get", "1-x", "*"]
    {
        let facts = tcp(format!("{method} /pot HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        assert_eq!(facts, format!("protocol=http kind=request method={method} host=h target=/pot"));
    }
    let long = "X".repeat(METHOD_MAX + 1);
    assert_eq!(tcp(format!("{long} / HTTP/1.1\r\n\r\n").as_bytes()), "");
}

#[test]
fn empty_lines_before_a_message_are_ignored() {
    for lines in ["\r\n", "\n", "\r\n\r\n"] {
        assert_eq!(tcp(&[lines.as_bytes(), GET].concat()), GOT);
    }
    assert_eq!(tcp(b"\r\n\r\n\r\n\r\n"), "");
}

#[test]
fn a_header_can_be_split_anywhere() {
    for (bytes, facts) in [(GET, GOT), (&OK[..OK.len() - 5], WAS_OK)] {
        let record = packet(TCP, 8_080);
        for at in 1..bytes.len() {
            let parts = [(1, &bytes[..at]), (1 + at, &bytes[at..])];
            assert_eq!(read_segments(&record, &parts), (facts.into(), vec![]), "{at}");
            let next = (at + 3).min(bytes.len());
            let parts = [parts[0], (1 + next, &bytes[next..]), (1 + at, &bytes[at..next])];
            assert_eq!(read_segments(&record, &parts), (facts.into(), vec![]), "{at}");
        }
    }
}

#[test]
fn messages_behind_a_known_body_are_read() {
    let post = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\r\n";
    let posted = "protocol=http kind=request method=POST host=h target=/p";
    assert_eq!(tcp(&[GET, post, GET].concat()), [GOT, posted, GOT].join(" "));
    let next = b"HTTP/1.1 100 Continue\r\n\r\n";
    let nothing = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n";
    let facts = tcp(&[&next[..], nothing, OK, OK].concat());
    assert_eq!(facts.matches("protocol=http").count(), 4);
    // A body in chunks that end within the payload.
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["0\r\n\r\n", "5;a=b\r\nhello\r\nA\n0123456789\n0\r\nX: y\r\n\r\n"] {
        let facts = tcp(&[&head[..], body.as_bytes(), OK].concat());
        assert_eq!(facts, [WAS_OK, WAS_OK].join(" "));
    }
    for body in ["5\r\nhello", "5\r\nhello12\r\n0\r\n\r\n", "x\r\n", "fffffffffffffffff\r\n"] {
        let bytes = [&head[..], body.as_bytes(), OK].concat();
        let read = read_segments(&packet(TCP, 80), &[(1, &bytes)]);
        assert_eq!(read, (WAS_OK.into(), vec![Unread::Malformed]), "{body:?}");
    }
    // A body of unknown length, and one that continues end the reading.
    for head in ["X: y", "Content-Length: 99999", "Content-Length: 1, 1", "Content-Length: +1"] {
        let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
        assert_eq!(tcp(&[head.as_bytes(), OK].concat()), WAS_OK);
    }
    assert_eq!(tcp(&[OK, b"something else"].concat()), WAS_OK);
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    assert_eq!(tcp(&[huge.as_bytes(), OK].concat()), WAS_OK);
    // The second message continues.
    let all = [GET, GET].concat();
    for at in GET.len() + 1..all.len() {
        let parts = [(1, &all[..at]), (1 + at, &all[at..])];
        let (facts, unread) = read_segments(&packet(TCP, 80), &parts);
        assert_eq!((facts, unread), ([GOT, GOT].join(" "), vec![]), "{at}");
    }
}

#[test]
fn a_header_that_is_cut_or_too_long_is_read_as_far_as_it_is_there() {
    let mut record = packet(TCP, 80);
    let long = [&GET[..GET.len() - 2], &b"Cookie: ".repeat(3_000)].concat();
    let (facts, unread) = read_segments(&record, &[(1, &long)]);
    assert_eq!((&facts[..], &unread[..]), (GOT, &[Unread::TooMuch][..]));
    let segments: Vec<_> =
        long.chunks(1_000).enumerate().map(|(at, part)| (1_000 * at, part)).collect();
    let (facts, unread) = read_segments(&record, &segments);
    assert_eq!((&facts[..], &unread[..]), (GOT, &[Unread::TooMuch][..]));
    record.flags.insert(Flags::TRUNCATED);
    for len in LOOKED_AT..GET.len() {
        let (facts, unread) = read_segments(&record, &[(1, &GET[..len])]);
        assert!(facts.starts_with("protocol=http kind=request method=GET"), "{len}");
        assert_eq!(unread, [Unread::Truncated]);
        assert_eq!(facts.contains("target=/a?b"), len >= 19, "{len}");
        assert_eq!(facts.contains("host=example.org"), len >= 38, "{len}");
    }
}

#[test]
fn long_values_are_shortened() {
    let long = "x".repeat(2_000);
    let facts =
        tcp(format!("GET /{long} HTTP/1.1\r\nHost: {long}\r\nUser-Agent: {long}\r\n\r\n")
            .as_bytes());
    let lengths: Vec<_> = facts.split(' ').map(|fact| fact.len()).collect();
    assert_eq!(lengths[3..], [5 + 512, 7 + 1_024, 6 + 512]);
}

#[test]
fn ssdp_is_read_over_udp() {
    let udp = |bytes: &[u8]| read_segments(&packet(17, 1_900), &[(0, bytes)]);
    let search =
        b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\n\r\n";
    let facts = "protocol=ssdp kind=request method=M-SEARCH host=239.255.255.250:1900 target=*";
    assert_eq!(udp(search), (facts.into(), vec![]));
    // Without the empty line, too.
    assert_eq!(udp(&search[..search.len() - 2]), (facts.into(), vec![]));
    assert_eq!(
        udp(b"HTTP/1.1 200 OK\r\nST: x\r\n\r\n").0,
        "protocol=ssdp kind=response status=200"
    );
    assert_eq!(udp(b"NOTIFY /x"), (String::new(), vec![]));
    assert_eq!(udp(b"GET / HTTP/1.1\r\n\r\n"), (String::new(), vec![]));
    assert_eq!(udp(b"NOTIFY * HTTP/1.1\r\n\r\nNOTIFY").0.matches("protocol").count(), 1);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        start in prop::sample::select(vec!["GET /", "HTTP/1.1 20", "POST http://a", "M-SEARCH", "NOTIFY * HTTP/1.1\r\n", ""]),
        rest in prop::collection::vec(prop::sample::select(b"\r\n :/1HhTP.0\xff\0Content-Length".to_vec()), 0..80),
        protocol in prop::sample::select(vec![TCP, 17]),
        cut in any::<bool>(),
    ) {
        let bytes = [start.as_bytes(), &rest].concat();
        let mut record = packet(protocol, 80);
        if cut {
            record.flags.insert(Flags::TRUNCATED);
        }
        read_segments(&record, &[(1, &bytes), (1 + bytes.len(), &bytes)]);
        read_segments(&record, &[(1, &[GET, &bytes].concat())]);
    }
}

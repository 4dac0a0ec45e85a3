//! HTTP/1 over TCP (RFC 9112) and SSDP over UDP (UPnP Device Architecture 2.0, section 1).
//!
//! ```text
//! GET /index.html HTTP/1.1       HTTP/1.1 200 OK           start line
//! Host: example.org              Content-Length: 4         fields
//!                                                          empty line
//!                                text                      body
//! ```
//!
//! A message is recognised by its start line, on any port. The body is skipped if its length is known: from
//! Content-Length, also across segments, and from chunks that end within the payload. Then the next message is read. A
//! body of another length ends the reading of the payload. After `101 Switching Protocols` nothing is read, after the
//! success of CONNECT no HTTP.
//!
//! ```text
//! client    | GET | HEAD |                     requests without a final response are kept, because the
//! server                  | 200 | 200 |        response to HEAD has no body, and that to CONNECT no HTTP after it
//! ```
//!
//! The parser accepts what clients and servers accept: empty lines before a message, lines without carriage return,
//! spaces around names, bytes above 127, and lines without a colon, which are ignored. It also reads a header of which
//! only the beginning is there. A method, a target and a version are needed in any case. The method may be any token
//! (RFC 9110, section 9.1) that begins with an upper-case letter.

use memchr::{memchr, memchr_iter};
use ringtap_wire::Flags;

use crate::extractor::Switch;
use crate::opening::{Bytes, Opening};
use crate::streams::STREAM_MAX;
use crate::{Extractor, Found, Kind, Payload, Progress, State, Unread};

const TCP: u8 = 6;
/// Most bytes of a target.
const TARGET_MAX: usize = 1_024;
/// Most bytes of a user agent, and of a host.
const FIELD_MAX: usize = 512;
/// Most bytes of a method; the longest registered one has 17.
const METHOD_MAX: usize = 24;

/// The bytes of a method of which the end is not there.
const USUAL: Bytes = Bytes::range(b'A', b'Z').and(Bytes::of(b"-_"));
/// The bytes of a token (RFC 9110, section 5.6.2).
const TOKEN: Bytes = Bytes::range(b'A', b'Z')
    .and(Bytes::range(b'a', b'z'))
    .and(Bytes::range(b'0', b'9'))
    .and(Bytes::of(b"!#$%&'*+-.^_`|~"));
/// The first letters of the names of fields that are kept.
const INITIALS: Bytes = Bytes::of(b"hHuUcCtT");

/// The HTTP extractor.
pub(crate) struct Http;

impl Extractor for Http {
    const TCP: &'static [Opening] = &[
        // A method, or `HTTP/1`.
        Opening {
            first: Bytes::range(b'A', b'Z'),
            third: TOKEN.and(Bytes::of(b" ")),
            sixth: Bytes::range(b' ', b'~'),
            ..Opening::ANY
        },
        // Empty lines before it.
        Opening {
            first: Bytes::of(b"\r\n"),
            third: Bytes::range(b'A', b'Z').and(Bytes::of(b"\r\n")),
            sixth: Bytes::range(b' ', b'~'),
            ..Opening::ANY
        },
    ];
    // `M-SEARCH`, `NOTIFY` and `HTTP/1`.
    const UDP: &'static [Opening] = &[Opening {
        first: Bytes::of(b"MNH"),
        third: Bytes::of(b"ST"),
        sixth: Bytes::of(b"RY1"),
        ..Opening::ANY
    }];

    type State = Exchange;

    fn read(
        exchange: &mut Exchange,
        payload: &Payload<'_>,
        found: Found<'_>,
    ) -> Result<Progress, Unread> {
        let Payload { record, bytes, .. } = *payload;
        let over_udp = record.protocol != TCP;
        let cut = record.flags.contains(Flags::TRUNCATED)
            || over_udp && record.flags.contains(Flags::FRAGMENT);
        let mut at = if over_udp { 0 } else { empty_lines(bytes) };
        let mut any = false;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let start = match StartLine::read(rest) {
                Line::Other => break,
                // A line of a whole datagram has an end.
                Line::Part(_) if over_udp && !cut => break,
                Line::Part(StartLine::Request([], _)) if cut => break,
                Line::Part(start) | Line::Whole(start) => start,
            };
            if over_udp && !start.is_discovery() {
                break;
            }
            any = true;
            let head = Head::read(start, rest);
            // The header of a datagram ends with it.
            if !head.complete && (cut || !over_udp) {
                let why = if cut {
                    Unread::Truncated
                } else if rest.len() >= STREAM_MAX {
                    Unread::TooMuch
                } else {
                    return Ok(Progress::More(at));
                };
                head.pass(over_udp, found);
                return Err(why);
            }
            head.pass(over_udp, found);
            if over_udp {
                break;
            }
            at = at.saturating_add(head.len);
            let behind = bytes.get(at..).unwrap_or_default();
            match head.body(exchange) {
                Body::Length(len) => match len.checked_sub(behind.len() as u64) {
                    None | Some(0) => at += len as usize,
                    Some(more) => return Ok(Progress::Body(more)),
                },
                Body::Chunked => match chunks(behind) {
                    Some(len) => at += len,
                    None => break,
                },
                Body::Unknown => break,
                Body::Switched(switch) => return Ok(Progress::Switched(switch)),
            }
            at += empty_lines(bytes.get(at..).unwrap_or_default());
        }
        Ok(if any { Progress::Done } else { Progress::Other })
    }
}

/// Whether a message may begin with these bytes.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    !matches!(StartLine::read(&bytes[empty_lines(bytes)..]), Line::Other)
}

/// The length of the empty lines at the beginning, which are ignored (RFC 9112, section 2.2).
fn empty_lines(bytes: &[u8]) -> usize {
    const MOST: usize = 8;
    let upto = &bytes[..bytes.len().min(MOST)];
    upto.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(upto.len())
}

/// The length of a chunked body that ends within these bytes (RFC 9112, section 7.1).
fn chunks(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..)?;
        let line = &rest[..memchr(b'\n', rest)?];
        at += line.len() + 1;
        let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
        let size = std::str::from_utf8(&line[..digits]).ok()?;
        match usize::from_str_radix(size, 16).ok()? {
            // Trailer fields end with an empty line, as those of a header do.
            0 => loop {
                let rest = bytes.get(at..)?;
                let end = memchr(b'\n', rest)?;
                at += end + 1;
                if matches!(&rest[..end], [] | [b'\r']) {
                    return Some(at);
                }
            },
            size => {
                at = at.checked_add(size)?;
                let end = bytes.get(at..)?;
                at += match end {
                    [b'\r', b'\n', ..] => 2,
                    [b'\n', ..] => 1,
                    _ => return None,
                };
            }
        }
    }
}

/// The requests of a connection whose final response was not read, the oldest in the lowest two bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests(u64);

/// A request, by what its response means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Unknown,
    Usual,
    Head,
    Connect,
}

impl Requests {
    const BITS: u32 = 2;
    /// There were too many.
    const LOST: u64 = u64::MAX;

    fn push(&mut self, method: &[u8]) {
        let asked = match method {
            b"HEAD" => Asked::Head,
            b"CONNECT" => Asked::Connect,
            _ => Asked::Usual,
        };
        let used = (u64::BITS - self.0.leading_zeros()).next_multiple_of(Self::BITS);
        self.0 = match (asked as u64).checked_shl(used) {
            Some(bits) => self.0 | bits,
            None => Self::LOST,
        };
    }

    fn pop(&mut self) -> Asked {
        if self.0 == Self::LOST {
            return Asked::Unknown;
        }
        let oldest = self.0 & 3;
        self.0 >>= Self::BITS;
        match oldest {
            1 => Asked::Usual,
            2 => Asked::Head,
            3 => Asked::Connect,
            _ => Asked::Unknown,
        }
    }
}

/// The requests of the connection that is read; [`Positions`](crate::positions::Positions) keeps those of all.
#[derive(Default)]
pub(crate) struct Exchange {
    /// The requests of the packet's direction.
    pub(crate) own: Requests,
    /// The requests of the other direction, which responses in the packet's direction answer.
    pub(crate) other: Requests,
    /// Whether one of them was answered.
    pub(crate) answered: bool,
}

impl Exchange {
    /// Removes the request that a response answers.
    fn answer(&mut self) -> Asked {
        self.answered = true;
        self.other.pop()
    }
}

impl State for Exchange {
    fn new(_memory: usize) -> Self {
        Self::default()
    }
}

/// The first line of a message.
#[derive(Clone, Copy)]
enum StartLine<'a> {
    /// Method and target; the target is empty if the line is not complete, and the method if it is not.
    Request(&'a [u8], &'a [u8]),
    /// The status code, three digits; empty if the line is not complete.
    Response(&'a [u8]),
}

/// A line that may be a start line.
enum Line<'a> {
    /// Not a start line.
    Other,
    /// The bytes end within the line; so far it is one.
    Part(StartLine<'a>),
    /// A start line.
    Whole(StartLine<'a>),
}

impl<'a> StartLine<'a> {
    fn read(bytes: &'a [u8]) -> Line<'a> {
        const VERSION: &[u8] = b"HTTP/1.";
        let end = || memchr(b'\n', &bytes[..bytes.len().min(STREAM_MAX)]);
        let line_behind = |word: &[u8]| {
            let end = end();
            let rest = &bytes[word.len()..end.unwrap_or(bytes.len())];
            (rest.trim_ascii_end(), end.is_some())
        };
        if bytes.starts_with(VERSION) {
            let (rest, whole) = line_behind(VERSION);
            return Self::response(rest, whole);
        }
        if VERSION.starts_with(bytes) {
            return Line::Part(Self::Response(&[]));
        }
        if !bytes.first().is_some_and(u8::is_ascii_uppercase) {
            return Line::Other;
        }
        let beginning = &bytes[..bytes.len().min(METHOD_MAX + 1)];
        match beginning.iter().position(|&byte| !TOKEN.contains(byte)) {
            Some(end) if bytes[end] == b' ' => {
                let (method, _) = bytes.split_at(end);
                let (rest, whole) = line_behind(method);
                Self::request(method, rest.trim_ascii_start(), whole)
            }
            None if bytes.len() <= METHOD_MAX && bytes.iter().all(|&byte| USUAL.contains(byte)) => {
                Line::Part(Self::Request(&[], &[]))
            }
            _ => Line::Other,
        }
    }

    /// `rest` is the line behind the method.
    fn request(method: &'a [u8], rest: &'a [u8], whole: bool) -> Line<'a> {
        // Without an early end, so that many bytes are compared at a time.
        if rest.iter().fold(false, |any, byte| any | byte.is_ascii_control()) {
            return Line::Other;
        }
        if whole {
            return match rest.split_last_chunk::<9>() {
                Some((target, [b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'])) => {
                    match target.trim_ascii() {
                        [] => Line::Other,
                        target => Line::Whole(Self::Request(method, target)),
                    }
                }
                _ => Line::Other,
            };
        }
        // The forms of a target (RFC 9112, section 3.2), as far as it is there.
        let absolute = |scheme: &[u8]| rest.starts_with(scheme) || scheme.starts_with(rest);
        let target = method == b"CONNECT"
            || matches!(rest, [] | [b'/' | b'*', ..])
            || absolute(b"http://")
            || absolute(b"https://");
        if target { Line::Part(Self::Request(method, &[])) } else { Line::Other }
    }

    /// `rest` is the line behind `HTTP/1.`.
    fn response(rest: &'a [u8], whole: bool) -> Line<'a> {
        let pattern = |(at, byte): (usize, &u8)| match at {
            1 | 5 => *byte == b' ',
            2 => matches!(byte, b'1'..=b'9'),
            _ => byte.is_ascii_digit(),
        };
        match rest {
            _ if !rest.iter().take(6).enumerate().all(pattern) => Line::Other,
            [_, _, status @ ..] if status.len() >= 3 => {
                let start = Self::Response(&status[..3]);
                if whole { Line::Whole(start) } else { Line::Part(start) }
            }
            _ if whole => Line::Other,
            _ => Line::Part(Self::Response(&[])),
        }
    }

    /// True for the messages of SSDP.
    fn is_discovery(&self) -> bool {
        matches!(self, Self::Request(b"M-SEARCH" | b"NOTIFY", _) | Self::Response(_))
    }
}

/// The header of a message, as far as it is there.
struct Head<'a> {
    start: StartLine<'a>,
    host: &'a [u8],
    agent: &'a [u8],
    /// The value of Content-Length.
    length: Option<&'a [u8]>,
    /// Whether there is a Transfer-Encoding.
    encoded: bool,
    upgrade: &'a [u8],
    /// Length with the empty line.
    len: usize,
    /// Whether the empty line is there.
    complete: bool,
}

impl<'a> Head<'a> {
    /// Reads the fields of a header that begins with a start line.
    fn read(start: StartLine<'a>, bytes: &'a [u8]) -> Self {
        let mut head = Self {
            start,
            host: &[],
            agent: &[],
            length: None,
            encoded: false,
            upgrade: &[],
            len: 0,
            complete: false,
        };
        // The last line may be cut: its value is not reported.
        for end in memchr_iter(b'\n', bytes) {
            let line = &bytes[head.len..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let is_start = head.len == 0;
            head.len = end + 1;
            match line {
                [] => {
                    head.complete = true;
                    break;
                }
                [first, ..] if !is_start && INITIALS.contains(*first) => head.line(line),
                _ => {}
            }
        }
        head
    }

    /// Reads a line of a field. A line that begins with a space continues the value of the last field, of which the first
    /// line is kept.
    fn line(&mut self, line: &'a [u8]) {
        if let Some(colon) = memchr(b':', line) {
            self.field(line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii());
        }
    }

    /// Keeps the first value of each field.
    fn field(&mut self, name: &[u8], value: &'a [u8]) {
        let first = |kept: &mut &'a [u8]| {
            if kept.is_empty() {
                *kept = &value[..value.len().min(FIELD_MAX)];
            }
        };
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => first(&mut self.host),
            7 if name.eq_ignore_ascii_case(b"upgrade") => first(&mut self.upgrade),
            10 if name.eq_ignore_ascii_case(b"user-agent") => first(&mut self.agent),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                self.length.get_or_insert(value);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.encoded = true,
            _ => {}
        }
    }

    /// Passes the facts.
    fn pass(&self, over_udp: bool, found: Found<'_>) {
        found(Kind::Protocol, if over_udp { b"ssdp" } else { b"http" });
        let mut pass = |kind, value: &[u8]| {
            if !value.is_empty() {
                found(kind, value);
            }
        };
        match self.start {
            StartLine::Request(method, target) => {
                pass(Kind::HttpKind, b"request");
                pass(Kind::HttpMethod, method);
                let host = if self.host.is_empty() && self.complete {
                    authority(method, target)
                } else {
                    self.host
                };
                pass(Kind::HttpHost, &host[..host.len().min(FIELD_MAX)]);
                pass(Kind::HttpTarget, &target[..target.len().min(TARGET_MAX)]);
                pass(Kind::HttpUserAgent, self.agent);
            }
            StartLine::Response(status) => {
                pass(Kind::HttpKind, b"response");
                pass(Kind::HttpStatus, status);
            }
        }
    }

    /// The body of the message, which belongs to an exchange of the connection.
    fn body(&self, exchange: &mut Exchange) -> Body {
        let known = match self.start {
            StartLine::Request(method, _) => {
                exchange.own.push(method);
                Some(0)
            }
            // Another response follows.
            StartLine::Response(status @ [b'1', ..]) if status != b"101" => {
                return Body::Length(0);
            }
            StartLine::Response(status) => match (exchange.answer(), status) {
                (_, b"101") if self.upgrade.starts_with(b"TLS") => {
                    return Body::Switched(Switch::Tunnel);
                }
                (_, b"101") => return Body::Switched(Switch::Opaque),
                (Asked::Connect, [b'2', ..]) => return Body::Switched(Switch::Tunnel),
                (Asked::Head, _) | (_, b"204" | b"304") => return Body::Length(0),
                _ => None,
            },
        };
        if self.encoded {
            return Body::Chunked;
        }
        let length = match self.length {
            Some(value) if value.iter().all(u8::is_ascii_digit) => {
                std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok())
            }
            Some(_) => None,
            None => known,
        };
        length.map_or(Body::Unknown, Body::Length)
    }
}

/// What follows a header.
enum Body {
    /// A body of this length.
    Length(u64),
    /// A body with a transfer encoding, which is chunked as a rule.
    Chunked,
    /// A body whose end is unknown.
    Unknown,
    /// Another protocol.
    Switched(Switch),
}

/// The authority of a target: all of it for CONNECT, and what follows the scheme of an absolute target.
fn authority<'a>(method: &[u8], target: &'a [u8]) -> &'a [u8] {
    if method == b"CONNECT" {
        return target;
    }
    let Some(scheme) = target.windows(3).position(|part| part == b"://") else { return &[] };
    if !target[..scheme].iter().all(u8::is_ascii_alphanumeric) {
        return &[];
    }
    let rest = &target[scheme + 3..];
    let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
    let authority = &rest[..end];
    // Without user information.
    match authority.iter().rposition(|&byte| byte == b'@') {
        Some(at) => &authority[at + 1..],
        None => authority,
    }
}

#[cfg(test)]
mod tests {
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
                facts.push(format!("{}={}", short(kind), value.escape_ascii()));
                true
            });
        }
        let unread = payloads.counts(true).unread.keys().map(|&(_, why)| why).collect();
        (facts.join(" "), unread)
    }

    fn short(kind: Kind) -> &'static str {
        match kind {
            Kind::Protocol => "protocol",
            Kind::HttpKind => "kind",
            Kind::HttpMethod => "method",
            Kind::HttpHost => "host",
            Kind::HttpTarget => "target",
            Kind::HttpUserAgent => "agent",
            Kind::HttpStatus => "status",
            _ => "other",
        }
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
            b"get / HTTP/1.1\r\n\r\n",
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
        for method in ["GET", "M-SEARCH", "VERSION-CONTROL", "CCM_POST", "BREW", "GO", "Ab1!#"] {
            let facts = tcp(format!("{method} /pot HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
            assert_eq!(
                facts,
                format!("protocol=http kind=request method={method} host=h target=/pot")
            );
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
            assert_eq!(tcp(&[&head[..], body.as_bytes(), OK].concat()), WAS_OK);
        }
        // A body of unknown length, and one that continues end the reading.
        for head in ["X: y", "Content-Length: 99999", "Content-Length: 1, 1", "Content-Length: +1"]
        {
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
}

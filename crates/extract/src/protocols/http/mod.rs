//! HTTP/1 over TCP (RFC 9112) and SSDP over UDP (UPnP Device Architecture 2.0, section 1).
//!
//! ```text
//! GET /index.html HTTP/1.1       HTTP/1.1 200 OK           start line
//! Host: example.org              Content-Length: 4         fields
//!                                                          empty line
//!                                text                      body
//! ```
//!
//! A message is recognised by its start line, on any port. Its body is skipped, also across segments: by Content-Length,
//! by its chunks (frames.rs), or until the connection ends. Behind it the next message begins. After `101 Switching
//! Protocols` nothing is read, after the success of CONNECT no HTTP.
//!
//! ```text
//! client    | GET | HEAD |                     requests without a final response are kept, because the
//! server                  | 200 | 200 |        response to HEAD has no body, and that to CONNECT no HTTP after it
//! ```
//!
//! If the end of a body is lost, because a line between chunks is missing or is none, or because the header does not give it, the
//! direction is read again from the next segment on that begins with a start line: of a response behind a response, of a
//! request behind a request. No other protocol is looked for meanwhile.
//!
//! The parser accepts what clients and servers accept: empty lines before a message, lines without carriage return,
//! spaces around names, bytes above 127, and lines without a colon, which are ignored. It also reads a header of which
//! only the beginning is there. A method, a target and a version are needed in any case. The method may be any token
//! (RFC 9110, section 9.1). If the first segment ends within the line, it must be of upper-case letters.

mod frames;

use memchr::{memchr, memchr_iter};
use ringtap_wire::Flags;

use crate::extractor::Switch;
use crate::opening::{Bytes, Opening};
use crate::streams::STREAM_MAX;
use crate::text::Text;
use crate::{Extractor, Found, Kind, Payload, Progress, State, Unread};

pub(crate) use frames::{Framed, Frames};

const TCP: u8 = 6;
/// Most bytes of a target.
const TARGET_MAX: usize = 1_024;
/// Most bytes of a user agent, a host and a content type.
const FIELD_MAX: usize = 512;
/// Most bytes of a method; the longest registered one has 17.
const METHOD_MAX: usize = 24;

/// The beginning of a response.
const VERSION: &[u8; 7] = b"HTTP/1.";
/// The bytes of a method if the end of its line is not there.
const USUAL: Bytes = Bytes::range(b'A', b'Z').and(Bytes::of(b"-_"));
/// The bytes of a token (RFC 9110, section 5.6.2).
const TOKEN: Bytes = Bytes::range(b'A', b'Z')
    .and(Bytes::range(b'a', b'z'))
    .and(Bytes::range(b'0', b'9'))
    .and(Bytes::of(b"!#$%&'*+-.^_`|~"));
/// Whether a byte is one of a token.
static IS_TOKEN: [bool; 256] = TOKEN.table();
/// Whether a byte is the first letter of the name of a field that is kept.
static IS_INITIAL: [bool; 256] = Bytes::of(b"hHuUcCtTrRlL").table();

/// The HTTP extractor.
pub(crate) struct Http;

impl Extractor for Http {
    const TCP: &'static [Opening] = &[
        // A usual method, or `HTTP/1`. A target may have other letters than those of ASCII.
        Opening {
            first: Bytes::range(b'A', b'Z'),
            third: TOKEN.and(Bytes::of(b" /*")),
            sixth: Bytes::range(b' ', b'~'),
            eighth: Bytes::range(b' ', b'~').and(Bytes::range(0x80, 0xff)),
            ..Opening::ANY
        },
        // Any method.
        Opening {
            first: TOKEN,
            third: TOKEN.and(Bytes::of(b" /*")),
            sixth: Bytes::range(b' ', b'~'),
            eighth: Bytes::range(b' ', b'~'),
            ..Opening::ANY
        },
        // Empty lines before it.
        Opening {
            first: Bytes::of(b"\r\n"),
            third: TOKEN.and(Bytes::of(b"\r\n")),
            sixth: Bytes::range(b' ', b'~'),
            eighth: Bytes::range(b' ', b'~'),
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
                head.pass(over_udp, None, found);
                return Err(why);
            }
            if over_udp {
                head.pass(over_udp, None, found);
                break;
            }
            at = at.saturating_add(head.len);
            let behind = bytes.get(at..).unwrap_or_default();
            let body = head.body(exchange);
            let is_response = head.is_response();
            match body {
                Body::Length(len) => {
                    head.pass(false, Some(len), found);
                    match len.checked_sub(behind.len() as u64) {
                        None | Some(0) => at += len as usize,
                        Some(more) => return Ok(Progress::Body(more)),
                    }
                }
                Body::Chunked => {
                    let mut frames = Frames::chunked(is_response);
                    let framed = frames.step(behind);
                    let ends = matches!(framed, Framed::Ends(_));
                    head.pass(false, ends.then_some(frames.octets()), found);
                    match framed {
                        Framed::Ends(len) => at += len,
                        Framed::Continues(more) => {
                            exchange.frames = Some(frames);
                            return Ok(Progress::Body(more));
                        }
                        Framed::Broken => {
                            exchange.frames = Some(frames);
                            return Err(Unread::Malformed);
                        }
                    }
                }
                Body::UntilClose => {
                    head.pass(false, None, found);
                    exchange.frames = Some(Frames::until_close(behind.len()));
                    return Ok(Progress::Body(u64::MAX));
                }
                Body::Lost => {
                    head.pass(false, None, found);
                    exchange.frames = Some(Frames::lost(is_response));
                    break;
                }
                Body::Unknown => {
                    head.pass(false, None, found);
                    break;
                }
                Body::Switched(switch) => {
                    head.pass(false, None, found);
                    return Ok(Progress::Switched(switch));
                }
            }
            at += empty_lines(bytes.get(at..).unwrap_or_default());
        }
        Ok(if any { Progress::Done } else { Progress::Other })
    }
}

/// Whether a message may begin with these bytes.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    let bytes = &bytes[empty_lines(bytes)..];
    !lacks_space(bytes) && !matches!(StartLine::read(bytes), Line::Other)
}

/// Whether bytes are no start line because no space ends the method, as those of most payloads that look like one.
#[inline]
fn lacks_space(bytes: &[u8]) -> bool {
    // Many bytes are compared at a time.
    let has_space = |beginning: &[u8; METHOD_MAX + 1]| {
        beginning.iter().fold(false, |any, &byte| any | (byte == b' '))
    };
    bytes.first_chunk().is_some_and(|beginning| !has_space(beginning))
        && bytes.first_chunk() != Some(VERSION)
}

/// Whether a message behind a body whose end is lost begins with these bytes.
pub(crate) fn resumes(bytes: &[u8], frames: Frames) -> bool {
    match StartLine::read(&bytes[empty_lines(bytes)..]) {
        Line::Whole(StartLine::Request(..)) => !frames.is_response(),
        Line::Whole(StartLine::Response(_)) => frames.is_response(),
        _ => false,
    }
}

/// The length of the empty lines at the beginning, which are ignored (RFC 9112, section 2.2).
fn empty_lines(bytes: &[u8]) -> usize {
    const MOST: usize = 8;
    let upto = &bytes[..bytes.len().min(MOST)];
    upto.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(upto.len())
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
    /// The body of the last message, if its end is not in its header.
    pub(crate) frames: Option<Frames>,
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
        let end = || memchr(b'\n', &bytes[..bytes.len().min(STREAM_MAX)]);
        let line_behind = |word: &[u8]| {
            let end = end();
            let rest = &bytes[word.len()..end.unwrap_or(bytes.len())];
            (rest.trim_ascii_end(), end.is_some())
        };
        if bytes.first_chunk() == Some(VERSION) {
            let (rest, whole) = line_behind(VERSION);
            return Self::response(rest, whole);
        }
        if VERSION.starts_with(bytes) {
            return Line::Part(Self::Response(&[]));
        }
        let beginning = &bytes[..bytes.len().min(METHOD_MAX + 1)];
        match beginning.iter().position(|&byte| !IS_TOKEN[usize::from(byte)]) {
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
        if !method.iter().all(|&byte| USUAL.contains(byte)) {
            return Line::Other;
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
    /// The value of Transfer-Encoding.
    encoding: Option<&'a [u8]>,
    content_type: &'a [u8],
    referer: &'a [u8],
    location: &'a [u8],
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
            encoding: None,
            content_type: &[],
            referer: &[],
            location: &[],
            upgrade: &[],
            len: 0,
            complete: false,
        };
        // The last line may be cut: its value is not reported.
        for end in memchr_iter(b'\n', bytes) {
            let line = &bytes[head.len..end];
            let line = if let [line @ .., b'\r'] = line { line } else { line };
            let is_start = head.len == 0;
            head.len = end + 1;
            match line {
                [] => {
                    head.complete = true;
                    break;
                }
                [first, ..] if !is_start && IS_INITIAL[usize::from(*first)] => head.line(line),
                _ => {}
            }
        }
        head
    }

    /// Reads a line of a field. A line that begins with a space continues the value of the last field, of which the first
    /// line is kept.
    fn line(&mut self, line: &'a [u8]) {
        // Names are short.
        if let Some(colon) = line.iter().position(|&byte| byte == b':') {
            self.field(line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii());
        }
    }

    /// Keeps the first value of each field.
    fn field(&mut self, name: &[u8], value: &'a [u8]) {
        let first = |kept: &mut &'a [u8], most: usize| {
            if kept.is_empty() {
                *kept = &value[..value.len().min(most)];
            }
        };
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => first(&mut self.host, FIELD_MAX),
            7 if name.eq_ignore_ascii_case(b"upgrade") => first(&mut self.upgrade, FIELD_MAX),
            7 if name.eq_ignore_ascii_case(b"referer") => first(&mut self.referer, TARGET_MAX),
            8 if name.eq_ignore_ascii_case(b"location") => first(&mut self.location, TARGET_MAX),
            10 if name.eq_ignore_ascii_case(b"user-agent") => first(&mut self.agent, FIELD_MAX),
            12 if name.eq_ignore_ascii_case(b"content-type") => {
                first(&mut self.content_type, FIELD_MAX);
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                self.length.get_or_insert(value);
            }
            // Of several values the last one decides.
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.encoding = Some(value),
            _ => {}
        }
    }

    fn is_response(&self) -> bool {
        matches!(self.start, StartLine::Response(_))
    }

    /// Passes the facts; `octets` is the length of the body.
    fn pass(&self, over_udp: bool, octets: Option<u64>, found: Found<'_>) {
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
                pass(Kind::HttpReferer, self.referer);
                pass(Kind::HttpContentType, self.content_type);
                // A request has no body as a rule.
                if let Some(octets) = octets.filter(|&octets| octets > 0) {
                    pass(Kind::HttpRequestLength, Text::number(octets).bytes());
                }
            }
            StartLine::Response(status) => {
                pass(Kind::HttpKind, b"response");
                pass(Kind::HttpStatus, status);
                pass(Kind::HttpContentType, self.content_type);
                pass(Kind::HttpLocation, self.location);
                if let Some(octets) = octets.filter(|_| !is_interim(status)) {
                    pass(Kind::HttpResponseLength, Text::number(octets).bytes());
                }
            }
        }
    }

    /// The body of the message, which belongs to an exchange of the connection.
    fn body(&self, exchange: &mut Exchange) -> Body {
        let asked = match self.start {
            StartLine::Request(method, _) => {
                exchange.own.push(method);
                None
            }
            StartLine::Response(status) if is_interim(status) => return Body::Length(0),
            StartLine::Response(status) => match (exchange.answer(), status) {
                (_, b"101") if self.upgrade.starts_with(b"TLS") => {
                    return Body::Switched(Switch::Tunnel);
                }
                (_, b"101") => return Body::Switched(Switch::Opaque),
                (Asked::Connect, [b'2', ..]) => return Body::Switched(Switch::Tunnel),
                (Asked::Head, _) | (_, b"204" | b"304") => return Body::Length(0),
                (asked, _) => Some(asked),
            },
        };
        match (self.encoding, self.length, asked) {
            (Some(encoding), ..) if is_chunked(encoding) => Body::Chunked,
            (None, Some(value), _) => length(value).map_or(Body::Lost, Body::Length),
            (None, None, None) => Body::Length(0),
            // It may be the success of CONNECT.
            (None, None, Some(Asked::Unknown)) if self.content_type.is_empty() => Body::Unknown,
            (.., None | Some(Asked::Unknown)) => Body::Lost,
            _ => Body::UntilClose,
        }
    }
}

/// Whether another response follows this status (RFC 9110, section 15.2).
fn is_interim(status: &[u8]) -> bool {
    status.starts_with(b"1") && status != b"101"
}

/// Whether the last of these encodings is `chunked`.
fn is_chunked(encodings: &[u8]) -> bool {
    let last = encodings.rsplit(|&byte| byte == b',').next().unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// The number in a Content-Length.
fn length(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What follows a header.
enum Body {
    /// A body of this length.
    Length(u64),
    /// A body in chunks.
    Chunked,
    /// All that follows.
    UntilClose,
    /// A body whose end cannot be found.
    Lost,
    /// A body or another protocol.
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
mod tests;

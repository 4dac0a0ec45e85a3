//! Events in Zeek's `dns.log`, `http.log` and `ssl.log`, as tab-separated text that `zeek-cut` reads. Source: Zeek's
//! scripts `base/protocols/{dns,http,ssl}/main.zeek`.
//!
//! Zeek joins a question and its answer, a request and its response, or both hellos to one line; here each message is
//! one, with the fields that it has. `uid` is unset, because the start of the connection is unknown where payloads are
//! read; `community_id` joins the logs. The orig side is the sender of the question, request or client's hello.

use ringtap_flow::{Event, Kind};

use crate::formats::address::push_address;
use crate::formats::date::push_seconds;
use crate::formats::lines::push_number;
use crate::formats::protocol::TCP;
use crate::formats::zeek::{push_head, tail};
use crate::formats::{CommunityId, TextFormat};

pub(super) const DNS: TextFormat<Event> = TextFormat {
    head: Some(|line, open_ns, _| push_head(line, open_ns, "dns", &[CONNECTION, DNS_COLUMNS])),
    line: |line, event, _| dns(line, event),
    tail: Some(tail),
};

pub(super) const HTTP: TextFormat<Event> = TextFormat {
    head: Some(|line, open_ns, _| push_head(line, open_ns, "http", &[CONNECTION, HTTP_COLUMNS])),
    line: |line, event, _| http(line, event),
    tail: Some(tail),
};

pub(super) const SSL: TextFormat<Event> = TextFormat {
    head: Some(|line, open_ns, _| push_head(line, open_ns, "ssl", &[CONNECTION, SSL_COLUMNS])),
    line: |line, event, _| ssl(line, event),
    tail: Some(tail),
};

/// The columns that all logs begin with.
const CONNECTION: &[(&str, &str)] = &[
    ("ts", "time"),
    ("uid", "string"),
    ("id.orig_h", "addr"),
    ("id.orig_p", "port"),
    ("id.resp_h", "addr"),
    ("id.resp_p", "port"),
];

const DNS_COLUMNS: &[(&str, &str)] = &[
    ("proto", "enum"),
    ("trans_id", "count"),
    ("rtt", "interval"),
    ("query", "string"),
    ("qtype_name", "string"),
    ("rcode_name", "string"),
    ("answers", "vector[string]"),
    ("community_id", "string"),
];

const HTTP_COLUMNS: &[(&str, &str)] = &[
    ("method", "string"),
    ("host", "string"),
    ("uri", "string"),
    ("user_agent", "string"),
    ("status_code", "count"),
    ("community_id", "string"),
];

const SSL_COLUMNS: &[(&str, &str)] = &[
    ("version", "string"),
    ("cipher", "string"),
    ("server_name", "string"),
    ("ja3", "string"),
    ("ja3s", "string"),
    ("ja4", "string"),
    ("community_id", "string"),
];

fn dns(line: &mut Vec<u8>, event: &Event) {
    if !matches!(event.protocol(), b"dns" | b"mdns" | b"llmnr") {
        return;
    }
    let values = &event.values;
    connection(line, event, values.first(Kind::DnsKind) == Some(b"answer"));
    line.extend_from_slice(if event.key.protocol == TCP { b"tcp\t" } else { b"udp\t" });
    field(line, values.of(Kind::DnsId));
    let time = values.first(Kind::DnsResponseTime).and_then(|digits| str::from_utf8(digits).ok());
    match time.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(microseconds) => push_seconds(line, microseconds.saturating_mul(1_000)),
        None => line.push(b'-'),
    }
    line.push(b'\t');
    field(line, values.of(Kind::DnsQueryName).take(1));
    field(line, values.of(Kind::DnsQueryType).take(1));
    field(line, values.of(Kind::DnsResponseCode));
    vector(line, values.of(Kind::DnsAnswers));
    end(line, event);
}

fn http(line: &mut Vec<u8>, event: &Event) {
    if event.protocol() != b"http" {
        return;
    }
    let values = &event.values;
    connection(line, event, values.first(Kind::HttpKind) == Some(b"response"));
    let kinds =
        [Kind::HttpMethod, Kind::HttpHost, Kind::HttpTarget, Kind::HttpUserAgent, Kind::HttpStatus];
    for kind in kinds {
        field(line, values.of(kind));
    }
    end(line, event);
}

fn ssl(line: &mut Vec<u8>, event: &Event) {
    if !matches!(event.protocol(), b"tls" | b"dtls") {
        return;
    }
    let values = &event.values;
    connection(line, event, values.first(Kind::TlsKind) == Some(b"server"));
    // Zeek writes `TLSv12` for TLS 1.2.
    let version = values.first(Kind::TlsVersion).unwrap_or_default();
    let mut spelled: Vec<u8> = Vec::new();
    for &byte in version {
        match byte {
            b' ' => spelled.push(b'v'),
            b'.' => {}
            other => spelled.push(other),
        }
    }
    field(line, (!spelled.is_empty()).then_some(spelled.as_slice()).into_iter());
    for kind in [Kind::TlsCipher, Kind::TlsServerName, Kind::Ja3, Kind::Ja3s, Kind::Ja4] {
        field(line, values.of(kind));
    }
    end(line, event);
}

/// Appends the columns of the connection; `reply`: the packet came from the resp side.
fn connection(line: &mut Vec<u8>, event: &Event, reply: bool) {
    let key = if reply { event.key.reversed() } else { event.key };
    push_seconds(line, event.time_ns);
    line.extend_from_slice(b"\t-\t");
    for (address, port) in [(&key.src, key.src_port), (&key.dst, key.dst_port)] {
        push_address(line, key.version, address);
        line.push(b'\t');
        push_number(line, port);
        line.push(b'\t');
    }
}

/// Appends a value and a tab; `-` if there is none.
fn field<'a>(line: &mut Vec<u8>, mut values: impl Iterator<Item = &'a [u8]>) {
    match values.next() {
        None => line.push(b'-'),
        Some(value) => push_value(line, value, false),
    }
    line.push(b'\t');
}

/// Appends a vector of values and a tab: separated by commas, which are escaped in the values; `-` if there are none.
fn vector<'a>(line: &mut Vec<u8>, values: impl Iterator<Item = &'a [u8]>) {
    let before = line.len();
    for value in values {
        if line.len() > before {
            line.push(b',');
        }
        push_value(line, value, true);
    }
    if line.len() == before {
        line.push(b'-');
    }
    line.push(b'\t');
}

/// Appends a value. Bytes that are not printable ASCII become `\xHH`, and so does the first byte of a value that would
/// read as an absent or an empty one.
fn push_value(line: &mut Vec<u8>, value: &[u8], in_vector: bool) {
    if value.is_empty() {
        return line.extend_from_slice(b"(empty)");
    }
    let ambiguous = value == b"-" || value == b"(empty)";
    for (at, &byte) in value.iter().enumerate() {
        let escaped = byte == b'\\' || in_vector && byte == b',' || ambiguous && at == 0;
        match byte {
            b' '..=b'~' if !escaped => line.push(byte),
            other => push_escaped(line, other),
        }
    }
}

fn push_escaped(line: &mut Vec<u8>, byte: u8) {
    line.extend_from_slice(b"\\x");
    crate::formats::lines::push_hex(line, byte);
}

fn end(line: &mut Vec<u8>, event: &Event) {
    line.extend_from_slice(CommunityId::of_event(event).as_bytes());
    line.push(b'\n');
}

//! Events in Zeek's `dns.log`, `http.log` and `ssl.log`, as tab-separated text that `zeek-cut` reads. Source: Zeek's
//! scripts `base/protocols/{dns,http,ssl}/main.zeek`.
//!
//! As in Zeek, a question and its answer, a request and its response, and the messages of a handshake (of TLS, DTLS and
//! QUIC) are one line, at the time of the first. `uid` is unset, because the start of the connection is unknown where
//! payloads are read; `community_id` joins the logs. `rtt` in `http.log` is an addition: the time from the request to its
//! response. `resp_mime_types` has the content type that the server states; Zeek has one that it finds itself. The orig
//! side is the sender of the question, request or client's hello.

use ringtap_flow::{DnsRecord, Event, Kind, unescaped};

use super::http::{host_and_port, media_type};
use crate::formats::address::push_address;
use crate::formats::date::push_seconds;
use crate::formats::lines::push_number;
use crate::formats::protocol::TCP;
use crate::formats::zeek::{push_head, tail};
use crate::formats::{CommunityId, TextFormat};

pub(super) const DNS: TextFormat<Event> = TextFormat {
    head: Some(|line, open_ns, _| push_head(line, open_ns, "dns", &[CONNECTION, DNS_COLUMNS])),
    line: |line, event, _| exchange(line, event, &[b"dns", b"mdns", b"llmnr"], dns),
    tail: Some(tail),
};

pub(super) const HTTP: TextFormat<Event> = TextFormat {
    head: Some(|line, open_ns, _| push_head(line, open_ns, "http", &[CONNECTION, HTTP_COLUMNS])),
    line: |line, event, _| exchange(line, event, &[b"http"], http),
    tail: Some(tail),
};

pub(super) const SSL: TextFormat<Event> = TextFormat {
    head: Some(|line, open_ns, _| push_head(line, open_ns, "ssl", &[CONNECTION, SSL_COLUMNS])),
    line: |line, event, _| exchange(line, event, &[b"tls", b"dtls", b"quic"], ssl),
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
    ("qclass", "count"),
    ("qclass_name", "string"),
    ("qtype", "count"),
    ("qtype_name", "string"),
    ("rcode", "count"),
    ("rcode_name", "string"),
    ("AA", "bool"),
    ("TC", "bool"),
    ("RD", "bool"),
    ("RA", "bool"),
    ("Z", "count"),
    ("answers", "vector[string]"),
    ("TTLs", "vector[interval]"),
    ("rejected", "bool"),
    ("community_id", "string"),
];

const HTTP_COLUMNS: &[(&str, &str)] = &[
    ("method", "string"),
    ("host", "string"),
    ("uri", "string"),
    ("referrer", "string"),
    ("user_agent", "string"),
    ("request_body_len", "count"),
    ("response_body_len", "count"),
    ("status_code", "count"),
    ("rtt", "interval"),
    ("resp_mime_types", "vector[string]"),
    ("community_id", "string"),
];

const SSL_COLUMNS: &[(&str, &str)] = &[
    ("version", "string"),
    ("cipher", "string"),
    ("server_name", "string"),
    ("ja3", "string"),
    ("ja3s", "string"),
    ("ja4", "string"),
    ("resumed", "bool"),
    ("last_alert", "string"),
    ("subject", "string"),
    ("issuer", "string"),
    ("cert_chain_fps", "vector[string]"),
    ("community_id", "string"),
];

/// Appends the line of an exchange of these protocols.
fn exchange(
    line: &mut Vec<u8>,
    event: &Event,
    protocols: &[&[u8]],
    columns: fn(&mut Vec<u8>, &Event),
) {
    if event.is_exchange() && protocols.contains(&event.protocol()) {
        columns(line, event);
        end(line, event);
    }
}

fn dns(line: &mut Vec<u8>, event: &Event) {
    let values = &event.values;
    let is_answer = values.of(Kind::DnsKind).any(|kind| kind == b"answer");
    connection(line, event, event.time_ns);
    line.extend_from_slice(if event.key.protocol == TCP { b"tcp\t" } else { b"udp\t" });
    field(line, values.of(Kind::DnsId));
    interval(line, response_time_ns(event, Kind::DnsResponseTime));
    let records = || values.of(Kind::DnsRecords).filter_map(DnsRecord::of);
    let asked = values.first(Kind::DnsQueryName);
    // Without a question the first answer is about the name.
    let owner = records().next().map(|record| record.owner());
    field(line, asked.or(owner.as_deref()).into_iter());
    question_class(line, event, asked.is_some());
    for kind in [Kind::DnsQueryType, Kind::DnsResponseCode] {
        numbered(line, kind, values.first(kind));
    }
    let flags = values.first(Kind::DnsFlags).and_then(|flags| Kind::DnsFlags.number(flags));
    let flags = flags.unwrap_or(0);
    for bit in [10, 9, 8, 7] {
        push_bool(line, flags >> bit & 1 != 0);
    }
    // Z, AD and CD, which were one field in RFC 1035.
    push_number(line, flags >> 4 & 7);
    line.push(b'\t');
    vector(line, records().filter(|_| is_answer).map(answer));
    let ttl = |record: DnsRecord<'_>| [record.ttl, b".000000"].concat();
    vector(line, records().filter(|_| is_answer).map(ttl));
    let code = values.first(Kind::DnsResponseCode).unwrap_or(b"NOERROR");
    let is_refused = !matches!(code, b"NOERROR" | b"NXDOMAIN");
    push_bool(line, is_answer && is_refused && records().next().is_none());
}

/// Appends the class of the first question: its number and its name.
fn question_class(line: &mut Vec<u8>, event: &Event, is_asked: bool) {
    let mut names = 0;
    // A class behind the second name is that of another question.
    let class = event.values.all().find(|(kind, _)| {
        names += u32::from(*kind == Kind::DnsQueryName);
        *kind == Kind::DnsQueryClass || names > 1
    });
    let class = class.filter(|(kind, _)| *kind == Kind::DnsQueryClass);
    let number = match class {
        _ if !is_asked => None,
        Some((kind, value)) => kind.number(value),
        None => Some(1),
    };
    let Some(number) = number else { return line.extend_from_slice(b"-\t-\t") };
    push_number(line, number);
    line.push(b'\t');
    match number {
        1 => line.extend_from_slice(b"C_INTERNET"),
        3 => line.extend_from_slice(b"C_CHAOS"),
        4 => line.extend_from_slice(b"C_HESIOD"),
        254 => line.extend_from_slice(b"C_NONE"),
        255 => line.extend_from_slice(b"C_ANY"),
        _ => {
            line.extend_from_slice(b"qclass-");
            push_number(line, number);
        }
    }
    line.push(b'\t');
}

/// Appends the number of a value and the value.
fn numbered(line: &mut Vec<u8>, kind: Kind, value: Option<&[u8]>) {
    match value.and_then(|value| kind.number(value)) {
        Some(number) => push_number(line, number),
        None => line.push(b'-'),
    }
    line.push(b'\t');
    field(line, value.into_iter());
}

fn push_bool(line: &mut Vec<u8>, is_true: bool) {
    line.extend_from_slice(if is_true { b"T\t" } else { b"F\t" });
}

/// An answer: an address or a name; of other types the type and the data, and of text its length between them.
fn answer(record: DnsRecord<'_>) -> Vec<u8> {
    let DnsRecord { kind, data, .. } = record;
    let target = match kind {
        b"SVCB" | b"HTTPS" => None,
        b"SOA" => record.part(0).map(unescaped),
        _ => record.target(),
    };
    match target {
        Some(target) => target.into_owned(),
        None if kind == b"TXT" => [b"TXT ", data.len().to_string().as_bytes(), b" ", data].concat(),
        None => [kind, b" ", data].concat(),
    }
}

fn http(line: &mut Vec<u8>, event: &Event) {
    let values = &event.values;
    let time_ns = response_time_ns(event, Kind::HttpResponseTime);
    connection(line, event, event.time_ns.saturating_sub(time_ns.unwrap_or(0)));
    field(line, values.of(Kind::HttpMethod));
    field(line, values.of(Kind::HttpHost).map(|host| host_and_port(host).0));
    for kind in [Kind::HttpTarget, Kind::HttpReferer, Kind::HttpUserAgent] {
        field(line, values.of(kind));
    }
    field(line, values.of(Kind::HttpRequestLength).chain([&b"0"[..]]));
    field(line, values.of(Kind::HttpResponseLength));
    field(line, values.of(Kind::HttpStatus));
    interval(line, time_ns);
    vector(line, values.of(Kind::HttpContentType).map(|value| media_type(value).to_vec()));
}

/// The time from a question to its answer, which a fact of this kind has.
fn response_time_ns(event: &Event, kind: Kind) -> Option<u64> {
    let microseconds: u64 = str::from_utf8(event.values.first(kind)?).ok()?.parse().ok()?;
    Some(microseconds.saturating_mul(1_000))
}

/// Appends an interval and a tab.
fn interval(line: &mut Vec<u8>, ns: Option<u64>) {
    match ns {
        Some(ns) => push_seconds(line, ns),
        None => line.push(b'-'),
    }
    line.push(b'\t');
}

fn ssl(line: &mut Vec<u8>, event: &Event) {
    let values = &event.values;
    connection(line, event, event.time_ns);
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
    let resumed = values.first(Kind::TlsResumption).map(|_| b"T".as_slice());
    field(line, resumed.into_iter());
    field(line, values.of(Kind::TlsClientAlerts).chain(values.of(Kind::TlsServerAlerts)));
    for kind in [Kind::TlsCertificateSubject, Kind::TlsCertificateIssuer] {
        let name = values.first(kind).map(|name| [b"CN=", name].concat());
        field(line, name.as_deref().into_iter());
    }
    vector(line, values.of(Kind::TlsCertificateSha256).map(<[u8]>::to_vec));
}

/// Appends the columns of the connection.
fn connection(line: &mut Vec<u8>, event: &Event, time_ns: u64) {
    let key = event.key;
    push_seconds(line, time_ns);
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
fn vector(line: &mut Vec<u8>, values: impl Iterator<Item = Vec<u8>>) {
    let before = line.len();
    for value in values {
        if line.len() > before {
            line.push(b',');
        }
        push_value(line, &value, true);
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

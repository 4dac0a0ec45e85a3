//! Events of EVE, the event log of Suricata. Source: Suricata's published schema (`etc/schema.json`, version 8), and its
//! user guide, "Eve JSON Format".
//!
//! ```text
//! {"timestamp":"…","event_type":"dns","src_ip":"10.0.0.1","src_port":…,"dest_ip":…,"dest_port":…,"ip_v":4,
//!  "proto":"UDP","dns":{"version":3,"type":"request","id":7,"flags":"100","rd":true,"opcode":0,
//!         "queries":[{"rrname":"example.org","rrtype":"A"}]},…}
//! ```
//!
//! As in Suricata, a request of HTTP and its response are one event, and so are the messages of a TLS handshake; each
//! message of other protocols is one. Events have no `flow_id`, because the start of the flow is unknown where payloads
//! are read; `community_id` joins them.

use ringtap_flow::{DnsRecord, Event, Kind, unescaped};

use super::http::{host_and_port, media_type};
use crate::formats::address::push_address;
use crate::formats::date::push_iso;
use crate::formats::eve::push_protocol;
use crate::formats::lines::{push_json, push_number};
use crate::formats::{CommunityId, Interfaces, TextFormat};

pub(super) const FORMAT: TextFormat<Event> = TextFormat { head: None, line, tail: None };

/// The writer of an event's own object.
type Body = fn(&mut Object<'_>, &Event);

fn line(line: &mut Vec<u8>, event: &Event, interfaces: &Interfaces) {
    let is_exchange = event.is_exchange();
    let (name, body): (&str, Body) = match event.protocol() {
        b"tls" | b"dtls" if is_exchange => ("tls", tls),
        b"http" if is_exchange => ("http", http),
        b"tls" | b"dtls" | b"http" => return,
        _ if is_exchange => return,
        b"dns" | b"mdns" | b"llmnr" => ("dns", dns),
        b"quic" => ("quic", quic),
        b"ssh" => ("ssh", ssh),
        b"dhcp" => ("dhcp", dhcp),
        b"ntp" => ("ntp", ntp),
        _ => return,
    };
    let key = &event.key;
    line.extend_from_slice(b"{\"timestamp\":\"");
    push_iso(line, event.time_ns);
    line.push(b'"');
    if let Some(interface) = interfaces.quoted_name(event.ingress) {
        line.extend_from_slice(b",\"in_iface\":");
        line.extend_from_slice(interface.as_bytes());
    }
    line.extend_from_slice(b",\"event_type\":\"");
    line.extend_from_slice(name.as_bytes());
    for (address, port, names) in [
        (&key.src, key.src_port, ["\",\"src_ip\":\"", "\",\"src_port\":"]),
        (&key.dst, key.dst_port, [",\"dest_ip\":\"", "\",\"dest_port\":"]),
    ] {
        line.extend_from_slice(names[0].as_bytes());
        push_address(line, key.version, address);
        line.extend_from_slice(names[1].as_bytes());
        push_number(line, port);
    }
    line.extend_from_slice(b",\"ip_v\":");
    push_number(line, key.version as u8);
    line.extend_from_slice(b",\"proto\":\"");
    push_protocol(line, key.protocol);
    line.extend_from_slice(b"\",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(b"\":");
    let mut object = Object::new(line);
    body(&mut object, event);
    object.end();
    line.extend_from_slice(b",\"community_id\":\"");
    line.extend_from_slice(CommunityId::of_event(event).as_bytes());
    line.extend_from_slice(b"\"}\n");
}

fn dns(object: &mut Object<'_>, event: &Event) {
    let values = &event.values;
    let answer = values.first(Kind::DnsKind) == Some(b"answer");
    object.number("version", Some(b"3"));
    object.text("type", Some(if answer { b"response" } else { b"request" }));
    object.number("id", values.first(Kind::DnsId));
    let code = values.first(Kind::DnsResponseCode);
    let number = |kind: Kind, value: Option<&[u8]>| value.and_then(|value| kind.number(value));
    let code_bits = number(Kind::DnsResponseCode, code).unwrap_or(0) & 0xf;
    let flags = number(Kind::DnsFlags, values.first(Kind::DnsFlags)).unwrap_or(0);
    let flags = u64::from(answer) << 15 | flags | code_bits;
    object.text("flags", Some(format!("{flags:x}").as_bytes()));
    for (bit, name) in [(15, "qr"), (10, "aa"), (9, "tc"), (8, "rd"), (7, "ra"), (6, "z")] {
        object.number(name, Some(&b"true"[..]).filter(|_| flags >> bit & 1 != 0));
    }
    object.number("opcode", Some((flags >> 11 & 15).to_string().as_bytes()));
    object.text("rcode", code);
    let questions = values.of(Kind::DnsQueryName).zip(values.of(Kind::DnsQueryType));
    object.list("queries", questions, |line, (name, kind)| {
        let mut question = Object::new(line);
        question.text("rrname", Some(name));
        question.text("rrtype", Some(kind));
        question.end();
    });
    // Those of an update are in the place of authorities.
    let section = if answer { "answers" } else { "authorities" };
    object.list(section, values.of(Kind::DnsRecords).filter_map(DnsRecord::of), dns_record);
}

/// The members of data with several parts, in their order.
const SOA: [&str; 7] = ["mname", "rname", "serial", "refresh", "retry", "expire", "minimum"];
const SRV: [&str; 4] = ["priority", "weight", "port", "name"];

fn dns_record(line: &mut Vec<u8>, record: DnsRecord<'_>) {
    let mut object = Object::new(line);
    object.text("rrname", Some(&record.owner()));
    object.text("rrtype", Some(record.kind));
    object.number("ttl", Some(record.ttl));
    let members: &[&str] = match record.kind {
        b"SOA" => &SOA,
        b"SRV" => &SRV,
        _ => &[],
    };
    let parts = record.data.split(|&byte| byte == b' ');
    // Data that were cut, or not read, have other parts.
    let is_member = |(name, part): (&&str, &[u8])| {
        name.ends_with("name") || !part.is_empty() && part.iter().all(u8::is_ascii_digit)
    };
    let fits =
        parts.clone().count() == members.len() && members.iter().zip(parts.clone()).all(is_member);
    match record.kind {
        _ if !members.is_empty() && fits => {
            object.name(if record.kind == b"SOA" { "soa" } else { "srv" });
            let mut inner = Object::new(object.line);
            for (name, part) in members.iter().zip(parts) {
                if name.ends_with("name") {
                    inner.text(name, Some(&unescaped(part)));
                } else {
                    inner.number(name, Some(part));
                }
            }
            inner.end();
        }
        b"MX" => {
            object.text("rdata", record.target().as_deref().or(Some(record.data)));
        }
        _ => object.text("rdata", Some(record.data).filter(|data| !data.is_empty())),
    }
    object.end();
}

fn tls(object: &mut Object<'_>, event: &Event) {
    let values = &event.values;
    object.text("subject", values.first(Kind::TlsCertificateSubject).map(common_name).as_deref());
    object.text("issuerdn", values.first(Kind::TlsCertificateIssuer).map(common_name).as_deref());
    object.text("serial", values.first(Kind::TlsCertificateSerial).map(pairs).as_deref());
    object.list("subjectaltname", values.of(Kind::TlsCertificateNames), push_json);
    // Without the zone, as Suricata writes them.
    let time = |kind| values.first(kind).map(|time| time.strip_suffix(b"Z").unwrap_or(time));
    object.text("notbefore", time(Kind::TlsCertificateNotBefore));
    object.text("notafter", time(Kind::TlsCertificateNotAfter));
    object.text("sni", values.first(Kind::TlsServerName));
    let version = values.first(Kind::TlsVersion).map(version_name);
    object.text("version", version);
    let offered = values.first(Kind::TlsClientVersion).map(version_name);
    object.object("client_handshake", &[("version", offered)]);
    let cipher = values.first(Kind::TlsCipher).and_then(|name| Kind::TlsCipher.number(name));
    if let Some(cipher) = cipher {
        object.name("server_handshake");
        let mut inner = Object::new(object.line);
        inner.text("version", version);
        inner.literal("cipher", cipher.to_string().as_bytes());
        inner.end();
    }
    if values.first(Kind::TlsResumption).is_some() {
        object.literal("session_resumed", b"true");
    }
    let of_server = |(kind, value): &(Kind, &[u8])| *kind == Kind::TlsKind && *value == b"server";
    let protocol = |(kind, value)| (kind == Kind::TlsAlpn).then_some(value);
    let offered = values.all().take_while(|own| !of_server(own)).filter_map(protocol);
    object.list("client_alpns", offered, push_json);
    let selected = values.all().skip_while(|own| !of_server(own)).filter_map(protocol);
    object.list("server_alpns", selected, push_json);
    fingerprints(object, event);
}

/// A version of TLS as Suricata writes it.
fn version_name(version: &[u8]) -> &[u8] {
    match version {
        b"SSL 2.0" => b"SSLv2",
        b"SSL 3.0" => b"SSLv3",
        b"TLS 1.0" => b"TLSv1",
        other => other,
    }
}

/// A name of which the common name alone is known.
fn common_name(name: &[u8]) -> Vec<u8> {
    [b"CN=", name].concat()
}

/// Hexadecimal digits in upper case, a colon between octets.
fn pairs(digits: &[u8]) -> Vec<u8> {
    digits.chunks(2).collect::<Vec<_>>().join(&b':').to_ascii_uppercase()
}

fn quic(object: &mut Object<'_>, event: &Event) {
    object.text("version", event.values.first(Kind::QuicVersion));
    object.text("sni", event.values.first(Kind::TlsServerName));
    fingerprints(object, event);
}

fn fingerprints(object: &mut Object<'_>, event: &Event) {
    for (name, kind) in [("ja3", Kind::Ja3), ("ja3s", Kind::Ja3s)] {
        object.object(name, &[("hash", event.values.first(kind))]);
    }
    object.text("ja4", event.values.first(Kind::Ja4));
}

fn http(object: &mut Object<'_>, event: &Event) {
    let values = &event.values;
    let host = values.first(Kind::HttpHost).map(host_and_port);
    object.text("hostname", host.map(|(name, _)| name));
    let port = host.and_then(|(_, port)| port).map(|port| port.to_string());
    object.number("http_port", port.as_deref().map(str::as_bytes));
    object.text("url", values.first(Kind::HttpTarget));
    object.text("http_user_agent", values.first(Kind::HttpUserAgent));
    object.text("http_content_type", values.first(Kind::HttpContentType).map(media_type));
    object.text("http_refer", values.first(Kind::HttpReferer));
    object.text("http_method", values.first(Kind::HttpMethod));
    let status = values.first(Kind::HttpStatus);
    object.number("status", status);
    if status.is_some_and(|status| status.starts_with(b"3")) {
        object.text("redirect", values.first(Kind::HttpLocation));
    }
    object.number("length", values.first(Kind::HttpResponseLength));
}

fn ssh(object: &mut Object<'_>, event: &Event) {
    for (name, kind) in [("client", Kind::SshClient), ("server", Kind::SshServer)] {
        // `SSH-protocol-software comments` (RFC 4253, section 4.2).
        let rest = event.values.first(kind).and_then(|version| version.strip_prefix(b"SSH-"));
        let at = rest.and_then(|rest| rest.iter().position(|&byte| byte == b'-'));
        if let (Some(rest), Some(at)) = (rest, at) {
            let (protocol, software) = (&rest[..at], &rest[at + 1..]);
            object.object(
                name,
                &[("proto_version", Some(protocol)), ("software_version", Some(software))],
            );
        }
    }
}

fn dhcp(object: &mut Object<'_>, event: &Event) {
    let request = event.key.src_port == 68;
    object.text("type", Some(if request { b"request" } else { b"reply" }));
    object.text("hostname", event.values.first(Kind::DhcpHostname));
}

fn ntp(object: &mut Object<'_>, event: &Event) {
    object.number("mode", event.values.first(Kind::NtpMode));
    object.number("stratum", event.values.first(Kind::NtpStratum));
}

/// A JSON object being written. Values that are absent are left out.
struct Object<'a> {
    line: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Object<'a> {
    fn new(line: &'a mut Vec<u8>) -> Self {
        line.push(b'{');
        Self { line, any: false }
    }

    fn name(&mut self, name: &str) {
        self.line.extend_from_slice(if self.any { b",\"" } else { b"\"" });
        self.line.extend_from_slice(name.as_bytes());
        self.line.extend_from_slice(b"\":");
        self.any = true;
    }

    fn text(&mut self, name: &str, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.name(name);
            push_json(self.line, value);
        }
    }

    fn number(&mut self, name: &str, digits: Option<&[u8]>) {
        if let Some(digits) = digits {
            self.literal(name, digits);
        }
    }

    /// A value that needs no quotes.
    fn literal(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.line.extend_from_slice(value);
    }

    /// An object of texts; nothing if all are absent.
    fn object(&mut self, name: &str, texts: &[(&str, Option<&[u8]>)]) {
        if texts.iter().any(|(_, value)| value.is_some()) {
            self.name(name);
            let mut inner = Object::new(self.line);
            texts.iter().for_each(|(name, value)| inner.text(name, *value));
            inner.end();
        }
    }

    /// A list; nothing if it is empty.
    fn list<T>(&mut self, name: &str, items: impl Iterator<Item = T>, push: fn(&mut Vec<u8>, T)) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        self.name(name);
        self.line.push(b'[');
        while let Some(item) = items.next() {
            push(self.line, item);
            self.line.push(if items.peek().is_some() { b',' } else { b']' });
        }
    }

    fn end(self) {
        self.line.push(b'}');
    }
}

//! Events of EVE, the event log of Suricata. Source: Suricata's published schema (`etc/schema.json`, version 8), and its
//! user guide, "Eve JSON Format".
//!
//! ```text
//! {"timestamp":"…","event_type":"dns","src_ip":"10.0.0.1","src_port":…,"dest_ip":…,"dest_port":…,"ip_v":4,
//!  "proto":"UDP","dns":{"version":3,"type":"request","id":7,"queries":[{"rrname":"example.org","rrtype":"A"}]},…}
//! ```
//!
//! Suricata joins a connection's hellos, or a request and its response, to one event; here each message is one. Events
//! have no `flow_id`, because the start of the flow is unknown where payloads are read; `community_id` joins them.

use ringtap_flow::{Event, Kind};

use crate::formats::address::push_address;
use crate::formats::date::push_iso;
use crate::formats::eve::push_protocol;
use crate::formats::lines::{push_json, push_number};
use crate::formats::{CommunityId, Interfaces, TextFormat};

pub(super) const FORMAT: TextFormat<Event> = TextFormat { head: None, line, tail: None };

/// The writer of an event's own object.
type Body = fn(&mut Object<'_>, &Event);

fn line(line: &mut Vec<u8>, event: &Event, interfaces: &Interfaces) {
    let (name, body): (&str, Body) = match event.protocol() {
        b"dns" | b"mdns" | b"llmnr" => ("dns", dns),
        b"tls" | b"dtls" => ("tls", tls),
        b"quic" => ("quic", quic),
        b"http" => ("http", http),
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
    object.text("rcode", values.first(Kind::DnsResponseCode));
    let questions = values.of(Kind::DnsQueryName).zip(values.of(Kind::DnsQueryType));
    object.list("queries", questions, |line, (name, kind)| {
        let mut question = Object::new(line);
        question.text("rrname", Some(name));
        question.text("rrtype", Some(kind));
        question.end();
    });
    object.list("answers", values.of(Kind::DnsAnswers), |line, data| {
        let mut answer = Object::new(line);
        answer.text("rdata", Some(data));
        answer.end();
    });
}

fn tls(object: &mut Object<'_>, event: &Event) {
    let values = &event.values;
    object.text("sni", values.first(Kind::TlsServerName));
    object.text("version", values.first(Kind::TlsVersion));
    let client = values.first(Kind::TlsKind) == Some(b"client");
    let protocols = if client { "client_alpns" } else { "server_alpns" };
    object.list(protocols, values.of(Kind::TlsAlpn), push_json);
    fingerprints(object, event);
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
    object.text("hostname", values.first(Kind::HttpHost));
    object.text("url", values.first(Kind::HttpTarget));
    object.text("http_user_agent", values.first(Kind::HttpUserAgent));
    object.text("http_method", values.first(Kind::HttpMethod));
    object.number("status", values.first(Kind::HttpStatus));
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
            self.name(name);
            self.line.extend_from_slice(digits);
        }
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

//! Tests: each format writes one valid line for a message, with the right fields.

use ringtap_flow::{FlowKey, IpVersion, Values};
use serde_json::{Value, json};

use super::*;
use crate::formats::{CommunityId, Interfaces};

fn event(protocol: u8, facts: &[(ringtap_flow::Kind, &[u8])]) -> Event {
    let mut src = [0; 16];
    src[..4].copy_from_slice(&[10, 0, 0, 1]);
    let mut dst = src;
    dst[3] = 2;
    let key = FlowKey { version: IpVersion::V4, src, dst, src_port: 1024, dst_port: 53, protocol };
    let mut values = Values::default();
    facts.iter().for_each(|(kind, value)| values.push(*kind, value));
    Event { key, time_ns: 1_700_000_000_123_456_789, ingress: 0, values }
}

fn line(format: EventFormat, event: &Event) -> String {
    let mut line = Vec::new();
    (format.text().line)(&mut line, event, &Interfaces::default());
    String::from_utf8(line).unwrap()
}

fn question() -> Event {
    use ringtap_flow::Kind::*;
    event(
        17,
        &[
            (Protocol, b"dns"),
            (DnsKind, b"query"),
            (DnsId, b"7"),
            (DnsQueryName, b"a\"b,.example"),
            (DnsQueryType, b"AAAA"),
        ],
    )
}

fn answer() -> Event {
    use ringtap_flow::Kind::*;
    event(
        17,
        &[
            (Protocol, b"dns"),
            (DnsKind, b"answer"),
            (DnsId, b"7"),
            (DnsQueryName, b"example"),
            (DnsQueryType, b"A"),
            (DnsResponseCode, b"NOERROR"),
            (DnsAnswers, b"192.0.2.1"),
            (DnsAnswers, b"192.0.2.2"),
            (DnsResponseTime, b"1500"),
        ],
    )
}

#[test]
fn json_lines_have_the_fields_of_the_message() {
    let value: Value = serde_json::from_str(&line(EventFormat::Json, &answer())).unwrap();
    assert_eq!(value["event"], "dns");
    assert_eq!(value["observationTimeMicroseconds"], 1_700_000_000_123_456_u64);
    assert_eq!(value["sourceIPv4Address"], "10.0.0.1");
    assert_eq!(value["dnsAnswers"], json!(["192.0.2.1", "192.0.2.2"]));
    assert_eq!(value["dnsResponseCode"], "NOERROR");
    assert_eq!(value["dnsResponseMicroseconds"], 1500);
    let value: Value = serde_json::from_str(&line(EventFormat::Json, &question())).unwrap();
    assert_eq!(value["dnsQueryName"], json!(["a\"b,.example"]));
    assert_eq!(value["communityId"].as_str().unwrap().len(), CommunityId::LEN);
}

#[test]
fn eve_events_have_suricatas_names() {
    use ringtap_flow::Kind::*;
    let parsed =
        |event: &Event| -> Value { serde_json::from_str(&line(EventFormat::Eve, event)).unwrap() };
    let dns = parsed(&answer());
    assert_eq!(
        dns["dns"],
        json!({
            "version": 3, "type": "response", "id": 7, "rcode": "NOERROR",
            "queries": [{"rrname": "example", "rrtype": "A"}],
            "answers": [{"rdata": "192.0.2.1"}, {"rdata": "192.0.2.2"}],
        })
    );
    assert_eq!(
        (&dns["event_type"], &dns["proto"], &dns["src_port"]),
        (&json!("dns"), &json!("UDP"), &json!(1024))
    );
    let hello = event(
        6,
        &[
            (Protocol, b"tls"),
            (TlsKind, b"client"),
            (TlsServerName, b"example.org"),
            (TlsVersion, b"TLS 1.3"),
            (TlsAlpn, b"h2"),
            (Ja3, b"00"),
            (Ja4, b"t13"),
        ],
    );
    let tls = json!({
        "sni": "example.org", "version": "TLS 1.3", "client_alpns": ["h2"], "ja3": {"hash": "00"}, "ja4": "t13",
    });
    assert_eq!(parsed(&hello)["tls"], tls);
    let ssh = event(6, &[(Protocol, b"ssh"), (SshServer, b"SSH-2.0-OpenSSH_9.2 Debian")]);
    let server =
        json!({"server": {"proto_version": "2.0", "software_version": "OpenSSH_9.2 Debian"}});
    assert_eq!(parsed(&ssh)["ssh"], server);
    assert_eq!(parsed(&event(6, &[(Protocol, b"ssh")]))["ssh"], json!({}));
    assert_eq!(line(EventFormat::Eve, &event(6, &[(Protocol, b"sip")])), "");
}

#[test]
fn zeeks_lines_have_a_field_for_each_column() {
    for (format, event) in [(EventFormat::ZeekDns, question()), (EventFormat::ZeekDns, answer())] {
        let mut text = Vec::new();
        (format.text().head.unwrap())(&mut text, 0, &Interfaces::default());
        let head = String::from_utf8(text).unwrap();
        let names: Vec<&str> = head
            .lines()
            .find_map(|line| line.strip_prefix("#fields\t"))
            .unwrap()
            .split('\t')
            .collect();
        let line = line(format, &event);
        let fields: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
        assert_eq!(names.len(), fields.len(), "{line}");
        let field = |name| fields[names.iter().position(|own| *own == name).unwrap()];
        if fields.contains(&"NOERROR") {
            // The sender of the answer is the resp side.
            assert_eq!((field("id.orig_h"), field("id.resp_p")), ("10.0.0.2", "1024"));
            assert_eq!((field("answers"), field("rtt")), ("192.0.2.1,192.0.2.2", "0.001500"));
        } else {
            assert_eq!((field("id.orig_h"), field("query")), ("10.0.0.1", "a\"b,.example"));
        }
    }
    use ringtap_flow::Kind::{HttpHost, HttpUserAgent, Protocol};
    let request = event(6, &[(Protocol, b"http"), (HttpHost, b"-"), (HttpUserAgent, b"a, b\tc")]);
    assert!(line(EventFormat::ZeekHttp, &request).contains("\t\\x2d\t-\ta, b\\x09c\t-\t"));
    assert_eq!(line(EventFormat::ZeekSsl, &question()), "");
    assert_eq!(line(EventFormat::ZeekHttp, &question()), "");
}

#[test]
fn formats_are_named() {
    assert_eq!(EventFormat::named("zeek").unwrap().len(), 3);
    let error = EventFormat::named("csv").unwrap_err().to_string();
    assert_eq!(error, "unknown event format \"csv\": use json, eve or zeek");
}

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

/// An exchange of this message alone.
fn alone(message: &Event, kind: ringtap_flow::Kind) -> Event {
    let mut values = Values::default();
    for (at, (own, value)) in message.values.all().enumerate() {
        if at == 1 {
            values.push(kind, b"exchange");
        }
        values.push(own, value);
    }
    Event { values, ..message.clone() }
}

fn question() -> Event {
    use ringtap_flow::Kind::*;
    event(
        17,
        &[
            (Protocol, b"dns"),
            (DnsKind, b"query"),
            (DnsId, b"7"),
            (DnsFlags, b"RD AD"),
            (DnsQueryName, b"a\"b,.example"),
            (DnsQueryType, b"AAAA"),
            (DnsQueryClass, b"CH"),
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
            (DnsFlags, b"AA RD RA"),
            (DnsQueryName, b"example"),
            (DnsQueryType, b"A"),
            (DnsAnswers, b"192.0.2.1"),
            (DnsRecords, b"example A 60 192.0.2.1"),
            (DnsAnswers, b"192.0.2.2"),
            (DnsRecords, b"example A 61 192.0.2.2"),
            (DnsResponseCode, b"NOERROR"),
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

fn certificate() -> Event {
    use ringtap_flow::Kind::*;
    let facts = [
        (Protocol, &b"tls"[..]),
        (TlsKind, b"certificate"),
        (TlsCertificateSha256, b"00ff"),
        (TlsCertificateSubject, b"www.example.org"),
        (TlsCertificateIssuer, b"Example CA"),
        (TlsCertificateSerial, b"0bad"),
        (TlsCertificateNotBefore, b"2026-01-31T00:00:00Z"),
        (TlsCertificateNotAfter, b"2026-04-30T23:59:59Z"),
        (TlsCertificateNames, b"a"),
        (TlsCertificateNames, b"b"),
    ];
    event(6, &facts)
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
            "version": 3, "type": "response", "id": 7, "flags": "8580", "qr": true, "aa": true,
            "rd": true, "ra": true, "opcode": 0, "rcode": "NOERROR",
            "queries": [{"rrname": "example", "rrtype": "A"}],
            "answers": [
                {"rrname": "example", "rrtype": "A", "ttl": 60, "rdata": "192.0.2.1"},
                {"rrname": "example", "rrtype": "A", "ttl": 61, "rdata": "192.0.2.2"},
            ],
        })
    );
    let update: [&[u8]; 6] = [
        br"a\032b SRV 9 0 1 2 c\032d.example",
        b"example SOA 9 ns.example host.example 1 2 3 4 5",
        b"example MX 9 10 mx.example",
        b"example ANY/A 0 ",
        br"example SOA 9 \# 1 00",
        b"example SOA 9 a b 1 2 3 4 42...",
    ];
    let head: [(ringtap_flow::Kind, &[u8]); 3] =
        [(Protocol, b"dns"), (DnsKind, b"query"), (DnsFlags, b"UPDATE")];
    let records = update.map(|record| (DnsRecords, record));
    let update = parsed(&event(17, &[&head[..], &records].concat()));
    assert_eq!((&update["dns"]["flags"], &update["dns"]["opcode"]), (&json!("2800"), &json!(5)));
    let srv = json!({"priority": 0, "weight": 1, "port": 2, "name": "c d.example"});
    let soa = json!({
        "mname": "ns.example", "rname": "host.example", "serial": 1, "refresh": 2, "retry": 3,
        "expire": 4, "minimum": 5,
    });
    assert_eq!(
        update["dns"]["authorities"],
        json!([
            {"rrname": "a b", "rrtype": "SRV", "ttl": 9, "srv": srv},
            {"rrname": "example", "rrtype": "SOA", "ttl": 9, "soa": soa},
            {"rrname": "example", "rrtype": "MX", "ttl": 9, "rdata": "mx.example"},
            {"rrname": "example", "rrtype": "A", "ttl": 0},
            {"rrname": "example", "rrtype": "SOA", "ttl": 9, "rdata": "\\# 1 00"},
            {"rrname": "example", "rrtype": "SOA", "ttl": 9, "rdata": "a b 1 2 3 4 42..."},
        ])
    );
    assert_eq!(
        (&dns["event_type"], &dns["proto"], &dns["src_port"]),
        (&json!("dns"), &json!("UDP"), &json!(1024))
    );
    let handshake = event(
        6,
        &[
            (Protocol, b"tls"),
            (TlsKind, b"exchange"),
            (TlsServerName, b"example.org"),
            (TlsClientVersion, b"TLS 1.3"),
            (TlsAlpn, b"h2"),
            (TlsAlpn, b"http/1.1"),
            (Ja3, b"00"),
            (Ja4, b"t13"),
            (TlsKind, b"server"),
            (TlsVersion, b"TLS 1.0"),
            (TlsCipher, b"TLS_RSA_WITH_AES_128_CBC_SHA"),
            (TlsAlpn, b"h2"),
            (TlsResumption, b"ticket"),
        ],
    );
    let tls = json!({
        "sni": "example.org", "client_handshake": {"version": "TLS 1.3"}, "client_alpns": ["h2", "http/1.1"],
        "version": "TLSv1", "server_handshake": {"version": "TLSv1", "cipher": 47}, "server_alpns": ["h2"],
        "session_resumed": true, "ja3": {"hash": "00"}, "ja4": "t13",
    });
    assert_eq!(parsed(&handshake)["tls"], tls);
    let tls = json!({
        "subject": "CN=www.example.org", "issuerdn": "CN=Example CA", "serial": "0B:AD", "subjectaltname": ["a", "b"],
        "notbefore": "2026-01-31T00:00:00", "notafter": "2026-04-30T23:59:59",
    });
    assert_eq!(parsed(&alone(&certificate(), TlsKind))["tls"], tls);
    // Messages of a handshake are no events of their own.
    assert_eq!(line(EventFormat::Eve, &certificate()), "");
    assert_eq!(line(EventFormat::Eve, &alone(&answer(), DnsKind)), "");
    let ssh = event(6, &[(Protocol, b"ssh"), (SshServer, b"SSH-2.0-OpenSSH_9.2 Debian")]);
    let server =
        json!({"server": {"proto_version": "2.0", "software_version": "OpenSSH_9.2 Debian"}});
    assert_eq!(parsed(&ssh)["ssh"], server);
    assert_eq!(parsed(&event(6, &[(Protocol, b"ssh")]))["ssh"], json!({}));
    assert_eq!(line(EventFormat::Eve, &event(6, &[(Protocol, b"sip")])), "");
}

#[test]
fn zeeks_lines_have_a_field_for_each_column() {
    use ringtap_flow::Kind::{DnsKind, HttpHost, HttpKind, HttpUserAgent, Protocol, TlsKind};
    let format = EventFormat::ZeekDns;
    for event in [question(), answer()] {
        assert_eq!(line(format, &event), "");
        let event = alone(&event, DnsKind);
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
            assert_eq!((field("answers"), field("rtt")), ("192.0.2.1,192.0.2.2", "0.001500"));
            assert_eq!(field("TTLs"), "60.000000,61.000000");
            assert_eq!(
                ["AA", "TC", "RD", "RA", "Z", "rejected"].map(field),
                ["T", "F", "T", "T", "0", "F"]
            );
            let names = ["qclass", "qclass_name", "qtype", "qtype_name", "rcode", "rcode_name"];
            assert_eq!(names.map(field), ["1", "C_INTERNET", "1", "A", "0", "NOERROR"]);
        } else {
            assert_eq!((field("id.orig_h"), field("query")), ("10.0.0.1", "a\"b,.example"));
            assert_eq!(["RD", "Z", "rcode", "answers"].map(field), ["T", "2", "-", "-"]);
            assert_eq!(["qclass", "qclass_name", "qtype"].map(field), ["3", "C_CHAOS", "28"]);
        }
    }
    let (kind, host) = ((HttpKind, &b"exchange"[..]), (HttpHost, &b"-"[..]));
    let request = event(6, &[(Protocol, b"http"), kind, host, (HttpUserAgent, b"a, b\tc")]);
    let rest = "\t\\x2d\t-\t-\ta, b\\x09c\t0\t-\t-\t-\t-\t";
    assert!(line(EventFormat::ZeekHttp, &request).contains(rest));
    assert_eq!(line(EventFormat::ZeekSsl, &question()), "");
    let of_certificate = line(EventFormat::ZeekSsl, &alone(&certificate(), TlsKind));
    let columns = "\t-\t-\tCN=www.example.org\tCN=Example CA\t00ff\t";
    assert!(of_certificate.contains(columns), "{of_certificate}");
    assert_eq!(line(EventFormat::ZeekHttp, &question()), "");
}

/// A request and its response.
fn exchange() -> Event {
    use ringtap_flow::Kind::*;
    event(
        6,
        &[
            (Protocol, b"http"),
            (HttpKind, b"exchange"),
            (HttpMethod, b"POST"),
            (HttpHost, b"a.example:8080"),
            (HttpTarget, b"/x"),
            (HttpUserAgent, b"agent"),
            (HttpReferer, b"http://b/"),
            (HttpRequestLength, b"5"),
            (HttpStatus, b"302"),
            (HttpContentType, b"text/html; charset=utf-8"),
            (HttpLocation, b"/y"),
            (HttpResponseLength, b"7"),
            (HttpResponseTime, b"123400"),
        ],
    )
}

#[test]
fn a_request_and_its_response_are_one_line_of_eve_and_zeek() {
    assert_eq!(line(EventFormat::Json, &exchange()), "");
    let eve: Value = serde_json::from_str(&line(EventFormat::Eve, &exchange())).unwrap();
    let http = json!({
        "hostname": "a.example", "http_port": 8080, "url": "/x", "http_user_agent": "agent",
        "http_content_type": "text/html", "http_refer": "http://b/", "http_method": "POST",
        "status": 302, "redirect": "/y", "length": 7,
    });
    assert_eq!((&eve["http"], &eve["src_ip"]), (&http, &json!("10.0.0.1")));
    // At the time of the request.
    let zeek = line(EventFormat::ZeekHttp, &exchange());
    let fields = "1700000000.000056\t-\t10.0.0.1\t1024\t10.0.0.2\t53\tPOST\ta.example\t/x\thttp://b/\tagent\t5\t7\t302\t\
                  0.123400\ttext/html\t";
    assert!(zeek.starts_with(fields), "{zeek}");
    use ringtap_flow::Kind::{HttpKind, Protocol};
    let single = event(6, &[(Protocol, b"http"), (HttpKind, b"request")]);
    assert_eq!(line(EventFormat::Eve, &single) + &line(EventFormat::ZeekHttp, &single), "");
    assert!(line(EventFormat::Json, &single).contains("\"httpKind\":\"request\""));
}

#[test]
fn zeeks_answers_are_of_all_types() {
    use ringtap_flow::Kind::*;
    let of = |facts: &[(ringtap_flow::Kind, &[u8])]| {
        let head: [(ringtap_flow::Kind, &[u8]); 3] =
            [(Protocol, b"mdns"), (DnsKind, b"exchange"), (DnsKind, b"answer")];
        let line = line(EventFormat::ZeekDns, &event(17, &[&head[..], facts].concat()));
        line.split('\t').map(str::to_owned).collect::<Vec<_>>()
    };
    let records: [&[u8]; 5] = [
        br"a\032b SRV 9 0 1 2 c\032d.example",
        b"example SOA 9 ns.example host.example 1 2 3 4 5",
        b"example TXT 9 a,b",
        b"example HTTPS 9 1 . alpn=h3",
        b"example CNAME 9 a b",
    ];
    let fields = of(&records.map(|record| (DnsRecords, record)));
    let answers = r"c d.example,ns.example,TXT 3 a\x2cb,HTTPS 1 . alpn=h3,a b";
    // The first answer's owner is in the place of the name in a question.
    assert_eq!((&fields[9][..], &fields[21][..]), ("a b", answers), "{fields:?}");
    let of_others = of(&[(DnsQueryName, b"a"), (DnsQueryName, b"b"), (DnsQueryClass, b"CH")]);
    assert_eq!(of_others[10], "1");
    for (code, rejected) in [("REFUSED", "T"), ("NXDOMAIN", "F"), ("NOERROR", "F")] {
        assert_eq!(of(&[(DnsResponseCode, code.as_bytes())])[23], rejected, "{code}");
    }
}

#[test]
fn formats_are_named() {
    assert_eq!(EventFormat::named("zeek").unwrap().len(), 3);
    let error = EventFormat::named("csv").unwrap_err().to_string();
    assert_eq!(error, "unknown event format \"csv\": use json, eve or zeek");
}

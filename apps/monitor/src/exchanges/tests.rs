//! Tests of joined messages.

use ringtap_flow::IpVersion;

use super::parts::{EXCHANGE, REQUESTS_MAX};
use super::*;

const SECOND: u64 = 1_000_000_000;

fn key(port: u16) -> FlowKey {
    let (src, dst) = ([1; 16], [2; 16]);
    FlowKey { version: IpVersion::V4, src, dst, src_port: port, dst_port: 80, protocol: 6 }
}

fn message(key: FlowKey, time_ns: u64, facts: &[(Kind, &str)]) -> Event {
    let mut values = Values::default();
    facts.iter().for_each(|(kind, value)| values.push(*kind, value.as_bytes()));
    Event { key, time_ns, ingress: 0, values }
}

fn request(port: u16, time_ns: u64, target: &str) -> Event {
    let facts = [
        (Kind::Protocol, "http"),
        (Kind::HttpKind, "request"),
        (Kind::HttpMethod, "GET"),
        (Kind::HttpTarget, target),
        (Kind::HttpContentType, "of/request"),
    ];
    message(key(port), time_ns, &facts)
}

fn response(port: u16, time_ns: u64, status: &str, length: Option<&str>) -> Event {
    let mut facts = vec![
        (Kind::Protocol, "http"),
        (Kind::HttpKind, "response"),
        (Kind::HttpStatus, status),
        (Kind::HttpContentType, "of/response"),
    ];
    facts.extend(length.map(|length| (Kind::HttpResponseLength, length)));
    message(key(port).reversed(), time_ns, &facts)
}

fn length(port: u16, octets: &str) -> Event {
    message(key(port).reversed(), 9, &[(Kind::HttpResponseLength, octets)])
}

/// Adds messages; returns what ended: port, target, status, length and response time.
fn ended(exchanges: &mut Exchanges, events: Vec<Event>) -> Vec<String> {
    let mut all = Vec::new();
    for mut event in events {
        exchanges.add(&mut event, &mut |event| all.push(shown(event)));
    }
    all
}

fn shown(event: &Event) -> String {
    assert_eq!(event.values.first(Kind::HttpKind), Some(EXCHANGE));
    let types: Vec<_> = event.values.of(Kind::HttpContentType).collect();
    assert!(types.iter().all(|own| *own == b"of/response"));
    let kinds =
        [Kind::HttpTarget, Kind::HttpStatus, Kind::HttpResponseLength, Kind::HttpResponseTime];
    let value = |kind| {
        let value = event.values.first(kind).unwrap_or(b"-");
        String::from_utf8_lossy(value).into_owned()
    };
    format!("{} {}", event.key.src_port, kinds.map(value).join(" "))
}

#[test]
fn responses_answer_requests_in_order() {
    let mut own = Exchanges::new(1 << 20);
    let found = ended(
        &mut own,
        vec![
            request(1, 1_000_999, "/1"),
            request(1, 2_000_000, "/2"),
            request(2, 2_000_000, "/3"),
            response(1, 3_000_000, "100", None),
            response(1, 5_000_000, "200", Some("7")),
            response(2, 4_000_000, "200", None),
            response(1, 6_000_000, "404", None),
            length(2, "12"),
            response(1, 7_000_000, "500", Some("0")),
            length(1, "99"),
        ],
    );
    let expected = ["1 /1 200 7 4000", "2 /3 200 12 2000", "1 /2 404 - 4000", "1 - 500 0 -"];
    assert_eq!((found, own.bytes, own.all.len()), (expected.map(str::to_owned).into(), 0, 0));
    let mut late = response(1, 1, "200", None);
    ended(&mut own, vec![request(1, 5_000, "/1")]);
    own.add(&mut late, &mut |_| panic!("its body goes on"));
    assert_eq!(late.values.first(Kind::HttpResponseTime), None);
}

#[test]
fn what_follows_an_upgrade_is_not_waited_for() {
    let mut own = Exchanges::new(1 << 20);
    let mut connect = request(1, 1, "h:443");
    connect.values = connect.values.map(|kind, value, to| {
        to.extend_from_slice(if kind == Kind::HttpMethod { b"CONNECT" } else { value });
    });
    let found = ended(&mut own, vec![connect, response(1, 2, "200", None)]);
    assert_eq!(found, ["1 h:443 200 - 0"]);
    let found = ended(&mut own, vec![request(1, 1, "/"), response(1, 2, "101", None)]);
    assert_eq!(found, ["1 / 101 - 0"]);
}

#[test]
fn requests_without_an_answer_end_by_their_own_times_by_marks_and_at_the_end() {
    let mut own = Exchanges::new(1 << 20);
    let found = ended(
        &mut own,
        vec![
            request(1, SECOND, "/1"),
            request(1, 61 * SECOND, "/2"),
            request(1, 62 * SECOND, "/3"),
            response(1, 122 * SECOND, "200", Some("1")),
            // A clock that steps back.
            response(1, SECOND, "404", Some("1")),
        ],
    );
    assert_eq!(found, ["1 /1 - - -", "1 /2 - - -", "1 /3 200 1 60000000", "1 - 404 1 -"]);
    ended(&mut own, vec![request(1, SECOND, "/1"), request(2, SECOND, "/2")]);
    let mut all = Vec::new();
    own.on_mark(100 * SECOND, &mut |event| all.push(shown(event)));
    own.on_mark(101 * SECOND, &mut |event| all.push(shown(event)));
    assert!(all.is_empty());
    ended(&mut own, vec![request(3, SECOND, "/3")]);
    own.on_mark(160 * SECOND, &mut |event| all.push(shown(event)));
    assert_eq!(all, ["1 /1 - - -", "2 /2 - - -"]);
    own.end(&mut |event| all.push(shown(event)));
    assert_eq!((all.len(), own.bytes, own.without_room()), (3, 0, 0));
}

#[test]
fn what_has_no_room_is_passed_and_counted() {
    let mut own = Exchanges::new(20_000);
    let requests = (1..=1_000).map(|port| request(port, 1, "/")).collect();
    let early = ended(&mut own, requests).len();
    assert!(early > 0 && own.bytes + own.all.len() * Table::ENTRY_BYTES <= 20_000);
    assert_eq!(own.without_room(), early as u64);
    let mut rest = 0;
    own.end(&mut |_| rest += 1);
    assert_eq!((early + rest, own.bytes), (1_000, 0));
    let mut own = Exchanges::new(1 << 20);
    let requests = (0..=REQUESTS_MAX).map(|_| request(1, 1, "/")).collect();
    assert_eq!(ended(&mut own, requests).len(), 1);
    assert_eq!(own.without_room(), 1);
    let mut none = Exchanges::new(0);
    assert_eq!(ended(&mut none, vec![request(1, 1, "/")]).len(), 1);
    assert_eq!(none.without_room(), 1);
}

fn of(
    port: u16,
    time_ns: u64,
    protocol: &str,
    kind: Kind,
    what: &str,
    more: &[(Kind, &str)],
) -> Event {
    let key = if matches!(what, "client" | "query") { key(port) } else { key(port).reversed() };
    message(key, time_ns, &[&[(Kind::Protocol, protocol), (kind, what)], more].concat())
}

/// Adds messages; returns what ended: port, microsecond and all values.
fn all_values(exchanges: &mut Exchanges, events: Vec<Event>) -> Vec<String> {
    let mut all = Vec::new();
    for mut event in events {
        exchanges.add(&mut event, &mut |event| all.push(joined(event)));
    }
    all
}

fn joined(event: &Event) -> String {
    assert!(event.is_exchange());
    let values = event.values.all().map(|(_, value)| String::from_utf8_lossy(value).into_owned());
    let values: Vec<_> = values.filter(|value| value != "exchange").collect();
    format!("{} {} {}", event.key.src_port, event.time_ns / 1_000, values.join(" "))
}

#[test]
fn the_messages_of_a_handshake_are_joined() {
    let tls =
        |port, us: u64, what, more: &[_]| of(port, us * 1_000, "tls", Kind::TlsKind, what, more);
    let client = |port, us, name| tls(port, us, "client", &[(Kind::TlsServerName, name)]);
    let server = |port, us, version| tls(port, us, "server", &[(Kind::TlsVersion, version)]);
    let certificate =
        |port, us| tls(port, us, "certificate", &[(Kind::TlsCertificateSubject, "s")]);
    let refused =
        |port, us| tls(port, us, "alert", &[(Kind::TlsServerAlerts, "handshake_failure")]);
    let mut own = Exchanges::new(1 << 20);
    let found = all_values(
        &mut own,
        vec![
            client(1, 1, "a"),
            client(2, 2, "b"),
            server(1, 3, "TLS 1.2"),
            // With another hello of both sides, and one that is sent again.
            tls(2, 4, "retry", &[(Kind::TlsVersion, "TLS 1.3")]),
            client(2, 5, "b"),
            client(2, 6, "b"),
            server(2, 7, "TLS 1.3"),
            certificate(1, 8),
            client(3, 9, "c"),
            refused(3, 10),
            client(4, 11, "d"),
            tls(
                4,
                12,
                "server",
                &[(Kind::TlsVersion, "TLS 1.2"), (Kind::TlsResumption, "session")],
            ),
            // Another handshake on the same ports.
            client(4, 13, "d"),
            client(4, 14, "e"),
            server(4, 15, "TLS 1.3"),
            // Without its beginning.
            server(5, 16, "TLS 1.3"),
            certificate(6, 17),
        ],
    );
    let expected = [
        "2 2 tls b server TLS 1.3",
        "1 1 tls a server TLS 1.2 certificate s",
        "3 9 tls c alert handshake_failure",
        "4 11 tls d server TLS 1.2 session",
        "4 13 tls d",
        "4 14 tls e server TLS 1.3",
        "5 16 tls server TLS 1.3",
        "6 17 tls certificate s",
    ];
    assert_eq!((found, own.bytes, own.without_room()), (expected.map(str::to_owned).into(), 0, 0));
    // Of DTLS and QUIC nothing is read behind the hellos.
    let of_dtls = |what, more: &[_]| of(7, 1_000, "dtls", Kind::TlsKind, what, more);
    let hellos = vec![of_dtls("client", &[]), of_dtls("server", &[(Kind::TlsVersion, "TLS 1.2")])];
    assert_eq!(all_values(&mut own, hellos), ["7 1 dtls server TLS 1.2"]);
    // A clock that steps back, and marks.
    let hellos = vec![client(8, 90_000_000, "f"), server(8, 1, "TLS 1.2"), client(9, 1, "g")];
    assert_eq!(all_values(&mut own, hellos), ["8 90000000 tls f"]);
    let mut all = Vec::new();
    for time_ns in [100, 160, 220].map(|seconds| seconds * SECOND) {
        own.on_mark(time_ns, &mut |event| all.push(joined(event)));
    }
    assert_eq!(all, ["8 1 tls server TLS 1.2", "9 1 tls g"]);
}

#[test]
fn answers_belong_to_the_question_with_their_identifier() {
    let dns = |us: u64, what, id| {
        let time_ns = us * 1_000;
        of(1, time_ns, "dns", Kind::DnsKind, what, &[(Kind::DnsId, id), (Kind::DnsQueryName, "n")])
    };
    let mut own = Exchanges::new(1 << 20);
    let found = all_values(
        &mut own,
        vec![
            dns(1, "query", "7"),
            dns(2, "query", "8"),
            dns(3, "answer", "8"),
            dns(4, "answer", "7"),
            dns(5, "answer", "7"),
            of(2, 6_000, "mdns", Kind::DnsKind, "query", &[(Kind::DnsId, "0")]),
        ],
    );
    let expected = ["1 2 dns answer 8 n", "1 1 dns answer 7 n", "1 5 dns answer 7 n", "2 6 mdns 0"];
    assert_eq!((found, own.bytes, own.all.len()), (expected.map(str::to_owned).into(), 0, 0));
    all_values(&mut own, vec![dns(1, "query", "9")]);
    let mut all = Vec::new();
    own.end(&mut |event| all.push(joined(event)));
    assert_eq!(all, ["1 1 dns 9 n"]);
}

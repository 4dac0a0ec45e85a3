//! Handshakes of both sides: certificates, resumed sessions, alerts and SSL 2.0.

use proptest::prelude::*;
use ringtap_wire::PacketRecord;

use super::hello::extension;
use super::tests::*;
use super::*;
use crate::{LIFETIME_NS, Payloads};

/// A certificate for www.example.org, signed by Example CA; the facts below are those that OpenSSL 3.0 prints.
const SIGNED: &str = "308201a73082014ca00302010202050badc0ffee300a06082a8648ce3d04030230153113301106035504030c0a4578616d706c65204341\
    301e170d3236303133313030303030305a170d3236303433303233353935395a302c3110300e060355040a0c074578616d706c65311830\
    1606035504030c0f7777772e6578616d706c652e6f72673076301006072a8648ce3d020106052b81040022036200043f7b7c0e06dd74da\
    cd4875fd2609c5b63af0995839489f9504ff99ec203c40885cedb7c7098e523084ec03f080f0cefd68849d880bbf4162bd5710e89ba2bf\
    4d8401ac7a1ae6ab9dded2cf540303a2cc8e7ca9e6691ffa08b02bc4686f4784cfa355305330510603551d11044a3048820f7777772e65\
    78616d706c652e6f7267820d2a2e6578616d706c652e6e65748704c0000201871020010db8000000000000000000000001810e6d654065\
    78616d706c652e6f7267300a06082a8648ce3d0403020349003046022100d64ca0bd605dc5a0d66c3350601b97503f9c6d7bb3dbcc6f7b\
    e4ed4f4f39de4d022100f8b2cb2e36b0c2ef9ee9e81f2b5a57821b0c07afec55efc66ac70a293c787700";
/// A certificate of a router, signed by itself.
const OWN: &str = "3082019830820101a003020102020101300d06092a864886f70d01010b05003011310f300d06035504030c06726f757465723020170d30\
    30303130313030303030305a180f32303630303130313030303030305a3011310f300d06035504030c06726f7574657230819f300d0609\
    2a864886f70d010101050003818d003081890281810096c20f425e4c9a1583440e142d4fd241c52da16eda46029c7830d8bc42c3dfc7bd\
    3e3f524b950605278295c5453d1e83385bf2baf730b894a82e20cdbcd0441a31ee35932bb16276840b9b99d4798c1d8611ef44922c69c9\
    dfd9ac08ffc217fd2ae3f7e34ac0ab77f41dbd9c7c2f4ddffe61e78b39e7cd8a4bca997b7790300d0203010001300d06092a864886f70d\
    01010b0500038181007c90e7a9732305a0e6f58dedf56f50af274a66e1acd7aa4be2b057cb3f867ab5a83cd55d936da5c899d44068cf4b\
    ea289f8f5ef26c291a828c0c469e0a815e64cc29787a7f11bae94dfec3076d7bdc29d5942dcd9a772cdefcf5041ad180ba8c83b1622728\
    eccf2c3a9f144dff3287c26b131ad8a130524b5ef2a9fadc94cc35";
const CIPHER: u16 = 0xc02f;
/// 2026-03-01.
const MARCH_NS: u64 = 1_772_323_200_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

/// A certificate message.
fn certificates(list: &[&[u8]]) -> Vec<u8> {
    let each: Vec<u8> = list.iter().flat_map(|own| vector(3, own)).collect();
    whole(11, &vector(3, &each))
}

fn certificate() -> Vec<u8> {
    certificates(&[&bytes(SIGNED), &bytes(OWN)])
}

fn server_hello() -> Vec<u8> {
    whole(2, &server(0x0303, CIPHER, &[]))
}

fn client_hello(list: &[(u16, Vec<u8>)]) -> Vec<u8> {
    record(&whole(1, &client(0x0303, None, &[CIPHER], &extensions(list))))
}

/// The server's hello with another session identifier than that of [`client`].
fn new_session() -> Vec<u8> {
    let mut hello = server_hello();
    hello[4 + 2 + 32 + 1] ^= 1;
    hello
}

/// A connection.
struct Connection {
    payloads: Payloads,
    facts: Facts,
    at: [usize; 2],
    ts_ns: u64,
}

impl Connection {
    fn new() -> Self {
        Self { payloads: payloads(), facts: Facts::default(), at: [0; 2], ts_ns: MARCH_NS }
    }

    fn send(&mut self, from_client: bool, bytes: &[u8]) -> &mut Self {
        let (client, server) = ([1; 16], [2; 16]);
        let side = usize::from(from_client);
        let own = segment(if from_client { [40_000, 443] } else { [443, 40_000] });
        let [src, dst] = if from_client { [client, server] } else { [server, client] };
        let packet = PacketRecord { src, dst, ts_ns: self.ts_ns, ..own };
        self.facts.read(&mut self.payloads, &packet, bytes, self.at[side]);
        self.at[side] += bytes.len();
        self
    }

    fn get(&self, kind: Kind) -> Vec<&str> {
        self.facts.get(kind)
    }

    fn unread(&mut self) -> Vec<Unread> {
        unread(self.payloads.counts(true))
    }
}

#[test]
fn facts_of_a_certificate() {
    let mut connection = Connection::new();
    connection.send(true, &client_hello(&[server_name("WWW.example.org")]));
    let flight = record(&[new_session(), certificate(), whole(14, &[])].concat());
    connection.facts.0.clear();
    connection.send(false, &flight);
    let expected = [
        "applicationProtocol: tls",
        "tlsKind: certificate",
        "tlsCertificateChain: 2",
        "tlsCertificateSha256: 7dee8ad43411e6f78acd7035030e7e50a79261a7cfaab701842ca1cab977b8e1",
        "tlsCertificateSubject: www.example.org",
        "tlsCertificateIssuer: Example CA",
        "tlsCertificateSerial: 0badc0ffee",
        "tlsCertificateNotBefore: 2026-01-31T00:00:00Z",
        "tlsCertificateNotAfter: 2026-04-30T23:59:59Z",
        "tlsCertificateKey: id-ecPublicKey",
        "tlsCertificateKeyBits: 384",
        "tlsCertificateSignature: ecdsa-with-SHA256",
        "tlsCertificateNames: www.example.org",
        "tlsCertificateNames: *.example.net",
        "tlsCertificateNames: 192.0.2.1",
        "tlsCertificateNames: 2001:db8::1",
        "tlsCertificateNames: me@example.org",
    ];
    assert_eq!(connection.facts.0[5..], expected);
    assert!(connection.unread().is_empty());
    let mut own = Connection::new();
    own.send(false, &record(&[new_session(), certificates(&[&bytes(OWN)])].concat()));
    let expected = [
        "tlsCertificateChain: 1",
        "tlsCertificateSha256: a18d868f4eed7d0bc814954ef79c0f74abb45dc06c2da7b296840c0049817dad",
        "tlsCertificateSubject: router",
        "tlsCertificateIssuer: router",
        "tlsCertificateSerial: 01",
        "tlsCertificateNotBefore: 2000-01-01T00:00:00Z",
        "tlsCertificateNotAfter: 2060-01-01T00:00:00Z",
        "tlsCertificateKey: rsaEncryption",
        "tlsCertificateKeyBits: 1024",
        "tlsCertificateSignature: sha256WithRSAEncryption",
        "tlsCertificateFlaws: self-signed",
    ];
    assert_eq!(own.facts.0[7..], expected);
}

#[test]
fn flaws_of_a_certificate() {
    let flaws = |name: &str, ts_ns: u64, list: &[&[u8]]| {
        let mut connection = Connection::new();
        connection.ts_ns = ts_ns;
        connection.send(true, &client_hello(&[server_name(name)]));
        connection.send(false, &record(&[new_session(), certificates(list)].concat()));
        connection.get(Kind::TlsCertificateFlaws).join(" ")
    };
    let signed: &[&[u8]] = &[&bytes(SIGNED)];
    for name in ["www.example.org", "WWW.EXAMPLE.ORG", "a.example.net", "192.0.2.1"] {
        assert_eq!(flaws(name, MARCH_NS, signed), "", "{name}");
    }
    for name in ["example.org", "example.net", ".example.net", "a.b.example.net", "192.0.2.2", "*"]
    {
        assert_eq!(flaws(name, MARCH_NS, signed), "name-mismatch", "{name}");
    }
    let name = "www.example.org";
    assert_eq!(flaws(name, MARCH_NS + 61 * DAY_NS, signed), "expired");
    assert_eq!(flaws(name, MARCH_NS + 61 * DAY_NS - 1_000_000_000, signed), "");
    assert_eq!(flaws(name, MARCH_NS - 30 * DAY_NS, signed), "not-yet-valid");
    // Without alternative names, the common name counts.
    let own: &[&[u8]] = &[&bytes(OWN)];
    assert_eq!(flaws("router", MARCH_NS, own), "self-signed");
    assert_eq!(flaws("www", MARCH_NS, own), "self-signed name-mismatch");
}

#[test]
fn certificates_are_joined_from_records_and_segments() {
    let messages = [new_session(), certificate(), whole(14, &[])].concat();
    let records = [
        record(&messages),
        messages.chunks(60).flat_map(record).collect(),
        [record(&messages[..100]), record(&messages[100..])].concat(),
    ];
    for stream in records {
        for cut in 60..stream.len() {
            let mut connection = Connection::new();
            connection.send(false, &stream[..cut]).send(false, &stream[cut..]);
            let kinds = connection.get(Kind::TlsKind);
            assert_eq!(kinds, ["server", "certificate"], "cut at {cut}");
            assert!(connection.unread().is_empty(), "cut at {cut}");
        }
        let mut connection = Connection::new();
        stream.chunks(30).for_each(|bytes| _ = connection.send(false, bytes));
        assert_eq!(connection.get(Kind::TlsCertificateChain), ["2"]);
        let mut connection = Connection::new();
        connection.send(false, &stream[..stream.len() / 2]);
        assert_eq!(connection.get(Kind::TlsKind), ["server"]);
        assert_eq!(connection.unread(), [Unread::Incomplete]);
    }
}

#[test]
fn segments_that_are_late_or_sent_again() {
    let stream = record(&[new_session(), certificate()].concat());
    let mut connection = Connection::new();
    connection.send(false, &stream[..300]);
    connection.at[0] = 600;
    connection.send(false, &stream[600..]);
    connection.at[0] = 0;
    connection.send(false, &stream[..300]).send(false, &stream[300..600]);
    connection.at[0] = 0;
    connection.send(false, &stream[..300]).send(false, &stream[300..]);
    assert_eq!(connection.get(Kind::TlsKind), ["server", "certificate"]);
    assert!(connection.unread().is_empty());
    // The rest comes too late, or before the beginning by a clock that was set back.
    for later_ns in [MARCH_NS + LIFETIME_NS + 1, 0] {
        let mut connection = Connection::new();
        connection.send(false, &stream[..300]);
        connection.ts_ns = later_ns;
        connection.send(false, &stream[300..]);
        assert_eq!(connection.get(Kind::TlsKind), ["server"]);
        assert_eq!(connection.unread().len(), 1);
    }
}

#[test]
fn nothing_is_read_behind_the_hello_of_tls_1_3() {
    let selected = extensions(&[(extension::SUPPORTED_VERSIONS, vec![3, 4])]);
    let hello = whole(2, &server(0x0303, 0x1301, &selected));
    let mut connection = Connection::new();
    connection.send(false, &[record(&hello), record(&certificate())].concat());
    assert_eq!(connection.get(Kind::TlsKind), ["server"]);
    assert_eq!(connection.get(Kind::TlsResumption), [] as [&str; 0]);
    assert!(!connection.payloads.look(&segment([443, 40_000]), b"").stream);
    let selected = extensions(&[
        (extension::SUPPORTED_VERSIONS, vec![3, 4]),
        (extension::PRE_SHARED_KEY, vec![0; 2]),
    ]);
    let mut connection = Connection::new();
    connection.send(false, &record(&whole(2, &server(0x0303, 0x1301, &selected))));
    assert_eq!(connection.get(Kind::TlsResumption), ["psk"]);
}

#[test]
fn resumed_sessions() {
    let ticket = (extension::SESSION_TICKET, vec![5; 40]);
    let change: &[u8] = &[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1];
    let how = |list: &[(u16, Vec<u8>)], answer: &[u8]| {
        let mut connection = Connection::new();
        connection.send(true, &client_hello(list)).send(false, answer);
        assert!(connection.unread().is_empty());
        connection.get(Kind::TlsResumption).join(" ")
    };
    let same = [&record(&server_hello())[..], change].concat();
    assert_eq!(how(&[], &same), "session");
    assert_eq!(how(std::slice::from_ref(&ticket), &same), "ticket");
    let other = record(&new_session());
    assert_eq!(how(std::slice::from_ref(&ticket), &[&other[..], change].concat()), "ticket");
    let renewed = record(&whole(4, &[0; 60]));
    assert_eq!(how(&[ticket], &[&other[..], &renewed, change].concat()), "ticket");
    let full = record(&[new_session(), certificate()].concat());
    assert_eq!(how(&[], &full), "");
    // Without certificates: an anonymous server.
    assert_eq!(how(&[], &record(&[new_session(), whole(12, &[0; 60])].concat())), "");
}

#[test]
fn alerts_have_a_side() {
    let alert = |description: u8| [ALERT, 3, 3, 0, 2, 2, description];
    let mut connection = Connection::new();
    connection.send(true, &client_hello(&[])).send(false, &alert(40));
    assert_eq!(connection.get(Kind::TlsServerAlerts), ["handshake_failure"]);
    connection.send(true, &alert(48)).send(true, &[&alert(200)[..], &alert(0)].concat());
    let expected = ["unknown_ca", "alert_200", "close_notify"];
    assert_eq!(connection.get(Kind::TlsClientAlerts), expected);
    // In place of certificates.
    let mut connection = Connection::new();
    connection.send(false, &[&record(&new_session())[..], &alert(70)].concat());
    assert_eq!(connection.get(Kind::TlsServerAlerts), ["protocol_version"]);
    assert!(connection.unread().is_empty());
    // Encrypted; of another level; incomplete.
    for other in [&[ALERT, 3, 3, 0, 3, 2, 40, 1][..], &[ALERT, 3, 3, 0, 2, 3, 40]] {
        let mut connection = Connection::new();
        connection.send(true, other);
        assert!(connection.facts.0.is_empty() && connection.unread().is_empty());
    }
    let mut connection = Connection::new();
    connection.send(true, &alert(40)[..6]).send(true, &alert(40)[6..]);
    assert_eq!(connection.get(Kind::TlsClientAlerts), ["handshake_failure"]);
}

#[test]
fn a_hello_of_ssl_2() {
    let head = [0x80, 9 + 6 + 16, 1, 3, 1, 0, 6, 0, 0, 0, 16];
    let hello = [&head[..], &[1, 0, 0x80, 0, 0, 5], &[7; 16]].concat();
    let expected = ["applicationProtocol: tls", "tlsKind: client", "tlsClientVersion: TLS 1.0"];
    for cut in [8, 20, hello.len()] {
        let mut connection = Connection::new();
        connection.send(true, &hello[..cut]);
        if cut < hello.len() {
            connection.send(true, &hello[cut..]);
        }
        assert_eq!(connection.facts.0, expected, "cut at {cut}");
    }
}

#[test]
fn an_encrypted_hello_is_offered() {
    let outer = [&[0, 0, 1, 0, 1, 77][..], &vector(2, &[1; 32]), &vector(2, &[2; 100])].concat();
    let id = |value: Vec<u8>| {
        let mut connection = Connection::new();
        let list = [server_name("outer.example"), (extension::ENCRYPTED_CLIENT_HELLO, value)];
        connection.send(true, &client_hello(&list));
        assert_eq!(connection.get(Kind::TlsServerName), ["outer.example"]);
        connection.get(Kind::TlsEchConfigId).join(" ")
    };
    assert_eq!(id(outer.clone()), "77");
    assert_eq!(id([&outer[..], &[0]].concat()), "");
    assert_eq!(id(vec![1]), "");
}

#[test]
fn malformed_certificates_have_a_reason() {
    let reason = |message: &[u8]| {
        let mut connection = Connection::new();
        connection.send(false, &record(&[&new_session()[..], message].concat()));
        let kinds = connection.get(Kind::TlsKind).join(" ");
        (kinds, connection.unread())
    };
    let signed = bytes(SIGNED);
    assert_eq!(reason(&certificates(&[&signed])).1, []);
    let cut = certificates(&[&signed[..signed.len() - 1]]);
    assert_eq!(reason(&cut), ("server certificate".to_owned(), vec![Unread::Malformed]));
    for message in [certificates(&[]), whole(11, &[0, 0, 9, 0, 0, 5, 1]), whole(11, &[9])] {
        assert_eq!(reason(&message), ("server".to_owned(), vec![Unread::Malformed]));
    }
    let long = whole(11, &[0; 40_000]);
    let mut connection = Connection::new();
    let stream: Vec<u8> = [new_session(), long].concat().chunks(8_000).flat_map(record).collect();
    stream.chunks(1_400).for_each(|bytes| _ = connection.send(false, bytes));
    assert_eq!(connection.unread(), [Unread::TooMuch]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_certificate_makes_it_panic(
        changes in prop::collection::vec((0_usize..900, any::<u8>()), 0..6),
        cut in 8_usize..900,
    ) {
        let mut stream = record(&[new_session(), certificate()].concat());
        for (at, value) in changes {
            if let Some(place) = stream.get_mut(at) {
                *place = value;
            }
        }
        let (first, second) = stream.split_at(cut.min(stream.len()));
        Connection::new().send(true, &client_hello(&[server_name("x")])).send(false, &stream);
        Connection::new().send(false, first).send(false, second);
    }
}

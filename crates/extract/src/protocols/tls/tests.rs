//! Hellos as `Payloads` reads them: published ones, and some that are built here.

use proptest::prelude::*;
use ringtap_wire::{Flags, PacketRecord};

use super::hello::extension;
use super::*;
use crate::{Counts, Kind, Payloads};

/// The ClientHello and the ServerHello of RFC 8448, section 3.
const CLIENT: &str = "010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7000006130113031302\
    010000910000000b0009000006736572766572ff01000100000a00140012001d001700180019010001010102010301040023000000330026\
    0024001d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304000d0020001e0403050306\
    03020308040805080604010501060102010402050206020202002d00020101001c00024001";
const SERVER: &str = "020000560303a6af06a4121860dc5e6e60249cd34c95930c8ac5cb1434dac155772ed3e2692800130100002e00330024\
    001d0020c9828876112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f002b00020304";

const NAME: u16 = extension::SERVER_NAME;
const GROUPS: u16 = extension::SUPPORTED_GROUPS;
const FORMATS: u16 = extension::POINT_FORMATS;
const SIGNATURES: u16 = extension::SIGNATURE_ALGORITHMS;
const ALPN: u16 = extension::ALPN;
const VERSIONS: u16 = extension::SUPPORTED_VERSIONS;

pub(super) fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Bytes preceded by their number in `size` bytes.
pub(super) fn vector(size: usize, content: &[u8]) -> Vec<u8> {
    [&content.len().to_be_bytes()[8 - size..], content].concat()
}

pub(super) fn numbers(list: &[u16]) -> Vec<u8> {
    list.iter().flat_map(|number| number.to_be_bytes()).collect()
}

pub(super) fn extensions(list: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let each = list.iter().map(|(kind, value)| [numbers(&[*kind]), vector(2, value)].concat());
    vector(2, &each.collect::<Vec<_>>().concat())
}

pub(super) fn server_name(name: &str) -> (u16, Vec<u8>) {
    (NAME, vector(2, &[&[0], &vector(2, name.as_bytes())[..]].concat()))
}

fn protocols(names: &[&[u8]]) -> (u16, Vec<u8>) {
    let names: Vec<_> = names.iter().map(|name| vector(1, name)).collect();
    (ALPN, vector(2, &names.concat()))
}

pub(super) fn versions(list: &[u16]) -> (u16, Vec<u8>) {
    (VERSIONS, vector(1, &numbers(list)))
}

/// The body of a ClientHello; of DTLS with a cookie.
pub(super) fn client(version: u16, cookie: Option<&[u8]>, ciphers: &[u16], rest: &[u8]) -> Vec<u8> {
    let cookie = cookie.map(|cookie| vector(1, cookie)).unwrap_or_default();
    let head = [&numbers(&[version]), &[7; 32][..], &vector(1, &[9; 32]), &cookie].concat();
    [&head[..], &vector(2, &numbers(ciphers)), &[1, 0], rest].concat()
}

pub(super) fn server(version: u16, cipher: u16, rest: &[u8]) -> Vec<u8> {
    let head = [&numbers(&[version]), &[7; 32][..], &vector(1, &[9; 32])].concat();
    [&head[..], &numbers(&[cipher]), &[0], rest].concat()
}

/// The handshake message with this body.
pub(super) fn whole(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &vector(3, body)[..]].concat()
}

pub(super) fn record(fragment: &[u8]) -> Vec<u8> {
    [&[HANDSHAKE, 3, 1], &vector(2, fragment)[..]].concat()
}

/// The ClientHello in the description of JA4, with GREASE.
fn example(signatures: &[u16], names: &[&[u8]]) -> Vec<u8> {
    let ciphers = [
        0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
        0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
    ];
    let empty = |kind: u16| (kind, Vec::new());
    let list = [
        empty(0x4a4a),
        empty(0x001b),
        server_name("example.org"),
        empty(0x0033),
        protocols(names),
        empty(0x4469),
        empty(0x0017),
        empty(0x002d),
        (SIGNATURES, vector(2, &numbers(signatures))),
        empty(0x0005),
        empty(0x0023),
        empty(0x0012),
        versions(&[0x7a7a, 0x0303, 0x0304]),
        empty(0xff01),
        empty(FORMATS),
        empty(GROUPS),
        (0x0015, vec![0; 1_100]),
        empty(0xfafa),
    ];
    client(0x0303, None, &ciphers, &extensions(&list))
}

const SIGNATURES_OF_EXAMPLE: [u16; 8] =
    [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
const JA4_OF_EXAMPLE: &str = "t13d1516h2_8daaf6152771_e5627efa2ab1";

pub(super) fn segment(ports: [u16; 2]) -> PacketRecord {
    let flags = Flags(Flags::IPV4.0 | Flags::PORTS.0 | Flags::DATA.0);
    let [src_port, dst_port] = ports;
    PacketRecord { protocol: 6, flags, src_port, dst_port, ..PacketRecord::EMPTY }
}

fn datagram(ts_ns: u64) -> PacketRecord {
    PacketRecord { protocol: 17, ts_ns, ..segment([40_000, 443]) }
}

/// The facts as lines of text.
#[derive(Default)]
pub(super) struct Facts(pub(super) Vec<String>);

impl Facts {
    pub(super) fn read(
        &mut self,
        payloads: &mut Payloads,
        record: &PacketRecord,
        bytes: &[u8],
        at: usize,
    ) {
        let sequence = (u32::MAX - 50).wrapping_add(at as u32);
        payloads.read(&Payload { record, bytes, sequence }, &mut |kind, value| {
            self.0.push(format!("{}: {}", kind.name(), String::from_utf8_lossy(value)));
            true
        });
    }

    pub(super) fn get(&self, kind: Kind) -> Vec<&str> {
        let name = format!("{}: ", kind.name());
        self.0.iter().filter_map(|line| line.strip_prefix(&name)).collect()
    }
}

pub(super) fn payloads() -> Payloads {
    Payloads::new("tls".parse().unwrap(), 1 << 20)
}

/// The facts and counters of segments in one direction.
fn read(segments: &[&[u8]]) -> (Facts, Counts) {
    let (mut payloads, mut facts, mut at) = (payloads(), Facts::default(), 0);
    for bytes in segments {
        facts.read(&mut payloads, &segment([40_000, 8_443]), bytes, at);
        at += bytes.len();
    }
    (facts, payloads.counts(true).clone())
}

/// The facts and counters of datagrams, one a second.
fn read_datagrams<'a>(datagrams: impl IntoIterator<Item = &'a [u8]>) -> (Facts, Counts) {
    let (mut payloads, mut facts) = (payloads(), Facts::default());
    for (second, bytes) in (0..).zip(datagrams) {
        facts.read(&mut payloads, &datagram(second * 1_000_000_000), bytes, 0);
    }
    (facts, payloads.counts(true).clone())
}

pub(super) fn unread(counts: &Counts) -> Vec<Unread> {
    counts.unread.iter().flat_map(|(&(_, why), &number)| vec![why; number as usize]).collect()
}

fn one(message: &[u8]) -> Facts {
    read(&[&record(message)]).0
}

#[test]
fn hellos_of_rfc_8448() {
    let (facts, counts) = read(&[&record(&bytes(CLIENT)), &record(&bytes(SERVER))]);
    let expected = [
        "applicationProtocol: tls",
        "tlsKind: client",
        "tlsServerName: server",
        "tlsClientVersion: TLS 1.3",
        "ja3: da4dea34fe6d4ce5f0725df3f2682fa0",
        "ja4: t13d030900_55b375c5d22e_59cd3dafc54d",
        "applicationProtocol: tls",
        "tlsKind: server",
        "tlsVersion: TLS 1.3",
        "tlsCipher: TLS_AES_128_GCM_SHA256",
        "ja3s: eb1d94daa7e0344597e756a1fb6e7054",
    ];
    assert_eq!(facts.0, expected);
    assert_eq!((counts.read["tls"], counts.unread.len()), (2, 0));
}

#[test]
fn published_examples_of_ja3() {
    let ciphers = [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
    let list = [
        server_name("example.org"),
        (GROUPS, vector(2, &numbers(&[0x1a1a, 23, 24, 25]))),
        (FORMATS, vec![1, 0]),
    ];
    let facts = one(&whole(1, &client(769, None, &ciphers, &extensions(&list))));
    assert_eq!(facts.get(Kind::Ja3), ["ada70206e40642a3e4461f35503241d5"]);
    let ciphers = [4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99];
    let facts = one(&whole(1, &client(769, None, &ciphers, &[])));
    assert_eq!(facts.get(Kind::Ja3), ["de350869b8c85de67a350c8d186f11e6"]);
    assert_eq!(facts.get(Kind::TlsClientVersion), ["TLS 1.0"]);
}

#[test]
fn published_examples_of_ja4() {
    let ja4 = |signatures: &[u16], name: &[u8]| {
        one(&whole(1, &example(signatures, &[name, b"http/1.1"]))).get(Kind::Ja4).concat()
    };
    assert_eq!(ja4(&SIGNATURES_OF_EXAMPLE, b"h2"), JA4_OF_EXAMPLE);
    assert_eq!(ja4(&[], b"h2"), "t13d1516h2_8daaf6152771_6d807ffa2a79");
    let ends = |name: &[u8]| ja4(&[], name)[8..10].to_owned();
    assert_eq!(ends(b"http/1.1"), "h1");
    assert_eq!(ends(b""), "00");
    assert_eq!(ends(b"x"), "xx");
    assert_eq!(ends(b"\xab"), "ab");
    assert_eq!(ends(b"\xab\xcd"), "ad");
    assert_eq!(ends(b"\x30\xab"), "3b");
    assert_eq!(ends(b"\x30\x31\xab\xcd"), "3d");
    assert_eq!(ends(b"\x30\xab\xcd\x31"), "01");
    let bare = one(&whole(1, &client(0x0300, None, &[0x0a0a], &[])));
    assert_eq!(bare.get(Kind::Ja4), ["ts3i000000_000000000000_000000000000"]);
    assert_eq!(bare.get(Kind::TlsClientVersion), ["SSL 3.0"]);
    let many: Vec<u16> = (1..=150).collect();
    let ja4 = one(&whole(1, &client(0x0302, None, &many, &[]))).get(Kind::Ja4).concat();
    assert_eq!(ja4[..10], *"t11i990000");
    let draft = extensions(&[versions(&[0x0303, 0x7f1c])]);
    let facts = one(&whole(1, &client(0x0303, None, &[1], &draft)));
    assert_eq!(facts.get(Kind::Ja4).concat()[..10], *"t00i010100");
    assert_eq!(facts.get(Kind::TlsClientVersion), ["TLS 1.3 draft-28"]);
}

#[test]
fn a_handshake_of_quic() {
    let mut kinds = Vec::new();
    let message = whole(1, &example(&SIGNATURES_OF_EXAMPLE, &[b"h3"]));
    let read =
        handshake(&message, Transport::Quic, &mut Recent::new(1 << 20), &mut |kind, value| {
            kinds.push(kind);
            if kind == Kind::Ja4 {
                assert_eq!(value, b"q13d1516h3_8daaf6152771_e5627efa2ab1");
            }
        });
    assert_eq!(read, Ok(()));
    let expected = [
        Kind::TlsKind,
        Kind::TlsServerName,
        Kind::TlsClientVersion,
        Kind::TlsAlpn,
        Kind::Ja3,
        Kind::Ja4,
    ];
    assert_eq!(kinds, expected);
    for wrong in [&message[..message.len() - 1], &whole(11, &[0; 50])] {
        assert_eq!(
            handshake(wrong, Transport::Quic, &mut Recent::new(1 << 20), &mut |_, _| panic!(
                "no facts"
            )),
            Err(Unread::Malformed)
        );
    }
}

#[test]
fn a_hello_is_joined_from_segments() {
    let message = whole(1, &example(&SIGNATURES_OF_EXAMPLE, &[b"h2"]));
    let (first, second) = message.split_at(700);
    for stream in [record(&message), [record(first), record(second)].concat()] {
        // A first segment of less than eight bytes is not looked at.
        for cut in 8..stream.len() {
            let (facts, counts) = read(&[&stream[..cut], &stream[cut..]]);
            assert_eq!(facts.get(Kind::Ja4), [JA4_OF_EXAMPLE], "cut at {cut}");
            assert!(counts.read["tls"] == 1 && counts.unread.is_empty(), "cut at {cut}");
        }
        let segments: Vec<&[u8]> = stream.chunks(40).collect();
        assert_eq!(read(&segments).0.get(Kind::Ja4), [JA4_OF_EXAMPLE]);
        let (facts, counts) = read(&segments[..segments.len() - 1]);
        assert_eq!((facts.0.len(), unread(&counts)), (0, vec![Unread::Incomplete]));
    }
}

#[test]
fn a_hello_is_joined_from_records() {
    let message = whole(1, &example(&SIGNATURES_OF_EXAMPLE, &[b"h2"]));
    for cut in 1..message.len() {
        let stream = [record(&message[..cut]), record(&message[cut..])].concat();
        assert_eq!(read(&[&stream]).0.get(Kind::Ja4), [JA4_OF_EXAMPLE], "cut at {cut}");
    }
    let small: Vec<u8> = message.chunks(3).flat_map(record).collect();
    assert_eq!(read(&[&small]).0.get(Kind::Ja4), [JA4_OF_EXAMPLE]);
    let interleaved = [&record(&message[..50]), &[23, 3, 3, 0, 1, 0][..]].concat();
    assert_eq!(unread(&read(&[&interleaved]).1), [Unread::Malformed]);
}

#[test]
fn what_follows_or_precedes_a_hello_is_skipped() {
    let (client, server) = (bytes(CLIENT), bytes(SERVER));
    let certificate = whole(11, &[0; 100]);
    for bytes in [
        record(&[&server[..], &certificate].concat()),
        [record(&server), record(&certificate)].concat(),
    ] {
        assert_eq!(read(&[&bytes]).0.get(Kind::TlsKind), ["server"]);
    }
    let warned = [&[ALERT, 3, 1, 0, 2, 1, 112][..], &record(&server)].concat();
    assert_eq!(read(&[&warned]).0.get(Kind::TlsKind), ["alert", "server"]);
    let again = [&[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1][..], &record(&client)].concat();
    for cut in 12..again.len() {
        let (facts, _) = read(&[&again[..cut], &again[cut..]]);
        assert_eq!(facts.get(Kind::TlsServerName), ["server"], "cut at {cut}");
    }
    let (facts, counts) = read(&[&again[..6]]);
    assert!(facts.0.is_empty() && counts == Counts::default());
}

#[test]
fn a_hello_after_starttls() {
    let dialogues: [(u16, &[&str]); 4] = [
        (
            25,
            &[
                "220 mail ESMTP\r\n",
                "EHLO me\r\n",
                "250 STARTTLS\r\n",
                "STARTTLS\r\n",
                "220 go\r\n",
            ],
        ),
        (143, &["* OK ready\r\n", "a1 STARTTLS\r\n", "a1 OK begin\r\n"]),
        (110, &["+OK ready\r\n", "STLS\r\n", "+OK begin\r\n"]),
        (21, &["220 ready\r\n", "AUTH TLS\r\n", "234 proceed\r\n"]),
    ];
    for (port, lines) in dialogues {
        let (mut payloads, mut facts) = (payloads(), Facts::default());
        for line in lines {
            facts.read(&mut payloads, &segment([port, 40_000]), line.as_bytes(), 0);
            facts.read(&mut payloads, &segment([40_000, port]), line.as_bytes(), 0);
        }
        facts.read(&mut payloads, &segment([40_000, port]), &record(&bytes(CLIENT)), 100);
        facts.read(&mut payloads, &segment([port, 40_000]), &record(&bytes(SERVER)), 100);
        assert_eq!(facts.get(Kind::TlsKind), ["client", "server"], "port {port}");
        assert!(payloads.counts(true).unread.is_empty());
    }
}

#[test]
fn names_that_are_not_sent_in_clear() {
    // RFC 6066 allows further types of names.
    let other = [&[1], &vector(2, b"other")[..], &[0], &vector(2, b"host")].concat();
    let encrypted_hello = (0xfe0d, vec![0; 200]);
    let facts =
        |list: &[(u16, Vec<u8>)]| one(&whole(1, &client(771, None, &[1], &extensions(list))));
    assert_eq!(facts(&[(NAME, vector(2, &other))]).get(Kind::TlsServerName), ["host"]);
    let outer = facts(&[server_name("outer.example"), encrypted_hello]);
    assert_eq!(outer.get(Kind::TlsServerName), ["outer.example"]);
    let none: Vec<&str> = Vec::new();
    assert_eq!(facts(&[(0xffce, vec![0; 200])]).get(Kind::TlsServerName), none);
    // The value contradicts itself.
    let wrong = facts(&[(NAME, vec![0, 9, 0, 0, 1, b'x'])]);
    assert_eq!(wrong.get(Kind::TlsServerName), none);
    assert_eq!(wrong.get(Kind::Ja4).concat()[..10], *"t12d010100");
}

#[test]
fn versions_and_ciphers_of_servers() {
    let facts = |body: &[u8]| one(&whole(2, body));
    let facts_of = facts(&server(0x0303, 0xc02f, &extensions(&[protocols(&[b"h2"])])));
    let expected = [
        "applicationProtocol: tls",
        "tlsKind: server",
        "tlsVersion: TLS 1.2",
        "tlsCipher: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "tlsAlpn: h2",
    ];
    assert_eq!(facts_of.0[..5], expected);
    let facts_of = facts(&server(0x0300, 0xfefe, &[]));
    assert_eq!(facts_of.get(Kind::TlsVersion), ["SSL 3.0"]);
    assert_eq!(facts_of.get(Kind::TlsCipher), ["0xfefe"]);
    // Draft 18 of TLS 1.3: no session id, no compression.
    let draft = [&[0x7f, 0x12], &[7; 32][..], &[0x13, 0x02], &extensions(&[(40, vec![0; 4])])];
    let facts_of = facts(&draft.concat());
    assert_eq!(facts_of.get(Kind::TlsVersion), ["TLS 1.3 draft-18"]);
    assert_eq!(facts_of.get(Kind::TlsCipher), ["TLS_AES_256_GCM_SHA384"]);
}

#[test]
fn contradictions_have_a_reason() {
    let body = client(771, None, &[1, 2], &extensions(&[server_name("x")]));
    let reason = |body: &[u8]| unread(&read(&[&record(&whole(1, body))]).1);
    assert_eq!(reason(&body), []);
    let change = |at: usize, by: u8| {
        let mut body = body.clone();
        body[at] += by;
        body
    };
    assert_eq!(reason(&[&body[..], &[0]].concat()), [Unread::Malformed]);
    assert_eq!(reason(&body[..body.len() - 1]), [Unread::Malformed]);
    // The length of the session id, of the ciphers, of an extension.
    for (at, by) in [(34, 1), (68, 1), (68, 2), (68, 200), (80, 1)] {
        assert_eq!(reason(&change(at, by)), [Unread::Malformed], "byte {at} + {by}");
    }
    let many: Vec<u16> = (1..=600).collect();
    assert_eq!(reason(&client(771, None, &many, &[])), [Unread::TooMuch]);
    let long = extensions(&[(21, vec![0; 40_000])]);
    let long = whole(1, &client(771, None, &[1], &long));
    let stream: Vec<u8> = long.chunks(8_000).flat_map(record).collect();
    let segments: Vec<&[u8]> = stream.chunks(1_400).collect();
    assert_eq!(unread(&read(&segments).1), [Unread::TooMuch]);
}

#[test]
fn what_is_not_tls_is_left_to_others() {
    let record = record(&bytes(CLIENT));
    // The versions, the length of the record, the type, the length of the hello.
    for (at, value) in [(1, 2), (2, 5), (3, 0x50), (5, 16), (6, 1), (8, 9), (9, 9)] {
        let mut changed = record.clone();
        changed[at] = value;
        let (facts, counts) = read(&[&changed]);
        assert!(facts.0.is_empty() && counts == Counts::default(), "byte {at}");
    }
}

/// A datagram with a part of a hello.
fn part(kind: u8, sequence: u8, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    let three = |number: usize| number.to_be_bytes()[5..].to_vec();
    let head = [&[kind][..], &three(body.len()), &[0, sequence], &three(from), &three(to - from)];
    let fragment = [&head.concat()[..], &body[from..to]].concat();
    let record = [HANDSHAKE, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, sequence];
    [&record[..], &vector(2, &fragment)].concat()
}

fn dtls_example() -> Vec<u8> {
    let list = [
        (SIGNATURES, vector(2, &numbers(&[0x0403]))),
        versions(&[0xfefd, 0xfefc]),
        (0x0015, vec![0; 1_500]),
    ];
    client(0xfefd, Some(b"cookie"), &[0x1301, 0xc02b], &extensions(&list))
}

#[test]
fn hellos_of_dtls() {
    let body = dtls_example();
    let (facts, counts) = read_datagrams([&part(1, 0, &body, 0, body.len())[..]]);
    assert_eq!(
        facts.0[..3],
        ["applicationProtocol: dtls", "tlsKind: client", "tlsClientVersion: DTLS 1.3"]
    );
    assert_eq!(facts.get(Kind::Ja4).concat()[..10], *"dd3i020300");
    assert!(counts.unread.is_empty());
    let body = server(0xfeff, 0x002f, &[]);
    let answer = [part(2, 1, &body, 0, body.len()), part(11, 2, &[0; 90], 0, 90)].concat();
    let (facts, _) = read_datagrams([&answer[..]]);
    assert_eq!(facts.get(Kind::TlsVersion), ["DTLS 1.0"]);
    assert_eq!(facts.get(Kind::TlsCipher), ["TLS_RSA_WITH_AES_128_CBC_SHA"]);
    // A HelloVerifyRequest, and an encrypted record.
    let verify = part(3, 0, &[0xfe, 0xff, 0], 0, 3);
    let mut encrypted = part(1, 0, &dtls_example(), 0, 40);
    encrypted[4] = 1;
    for other in [verify, encrypted] {
        let (facts, counts) = read_datagrams([&other[..]]);
        assert!(facts.0.is_empty() && counts == Counts::default());
    }
}

#[test]
fn a_hello_of_dtls_is_joined_from_fragments() {
    let body = dtls_example();
    let end = body.len();
    let part = |from: usize, to: usize| part(1, 0, &body, from, to);
    let orders: [&[(usize, usize)]; 5] = [
        &[(0, 1_000), (1_000, end)],
        &[(1_000, end), (0, 1_000)],
        &[(500, 900), (0, 100), (100, 600), (800, end)],
        &[(0, 700), (0, 700), (600, end)],
        &[(400, 500), (0, 400), (600, end), (500, 600)],
    ];
    for order in orders {
        let datagrams: Vec<_> = order.iter().map(|&(from, to)| part(from, to)).collect();
        let (facts, counts) = read_datagrams(datagrams.iter().map(Vec::as_slice));
        assert_eq!(facts.get(Kind::TlsKind), ["client"], "{order:?}");
        assert!(counts.unread.is_empty());
        let (facts, _) = read_datagrams([&datagrams.concat()[..]]);
        assert_eq!(facts.get(Kind::TlsKind), ["client"], "{order:?}");
        let missing = &datagrams[..datagrams.len() - 1];
        let (facts, counts) = read_datagrams(missing.iter().map(Vec::as_slice));
        assert_eq!((facts.0.len(), unread(&counts)), (0, vec![Unread::Incomplete]), "{order:?}");
    }
    let empty: &[u8] = &[];
    let (first, second) = (part(0, 900), part(900, end));
    let late = std::iter::once(&first[..]).chain([empty; 10]).chain([&second[..]]);
    assert_eq!(unread(&read_datagrams(late).1), [Unread::Incomplete; 2]);
    let gaps: Vec<_> = (0..17).map(|at| part(at * 50 + 1, at * 50 + 2)).collect();
    let (_, counts) = read_datagrams([&gaps.concat()[..]]);
    assert_eq!(unread(&counts), [Unread::TooMuch]);
}

#[test]
fn fragments_are_kept_within_their_memory() {
    let mut payloads = Payloads::new("tls".parse().unwrap(), 1 << 21);
    let body = dtls_example();
    let first = part(1, 0, &body, 0, 900);
    for port in 0..2_000 {
        let record = PacketRecord { src_port: port, ..datagram(5) };
        Facts::default().read(&mut payloads, &record, &first, 0);
    }
    let counts = payloads.counts(true);
    let number = |why| counts.unread[&("tls", why)];
    assert_eq!(number(Unread::NoRoom) + number(Unread::Incomplete), 2_000);
    assert!(number(Unread::Incomplete) > 20);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(
        changes in prop::collection::vec((0_usize..250, any::<u8>()), 0..6),
        server in any::<bool>(),
        udp in any::<bool>(),
        len in 0_usize..260,
        cut in 6_usize..250,
    ) {
        let mut bytes = match (server, udp) {
            (false, false) => record(&bytes(CLIENT)),
            (true, false) => record(&bytes(SERVER)),
            (_, true) => part(1, 0, &dtls_example(), 0, 200),
        };
        for (at, value) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = value;
            }
        }
        bytes.truncate(len);
        if udp {
            read_datagrams([&bytes[..]]);
        } else {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            read(&[&bytes]);
            read(&[first, second]);
        }
        let _ = handshake(&bytes, Transport::Quic, &mut Recent::new(1 << 20), &mut |_, _| {});
    }
}

/// Fingerprints of recent hellos are those of hellos that were computed.
#[test]
fn fingerprints_of_recent_hellos_are_the_same() {
    let hello = |variant: u16| {
        let ciphers = [4865 + variant % 7, 4866, 49195 + variant / 7];
        let list = [(GROUPS, vector(2, &numbers(&[29, 23 + variant % 3]))), (FORMATS, vec![1, 0])];
        client(771, None, &ciphers, &extensions(&list))
    };
    let read = |body: &[u8], recent: &mut Recent| {
        let (message, mut facts) =
            ([&[1, 0, (body.len() >> 8) as u8, body.len() as u8], body].concat(), Vec::new());
        let found = &mut |kind, value: &[u8]| facts.push((kind, value.to_vec()));
        handshake(&message, Transport::Quic, recent, found).unwrap();
        facts
    };
    let mut recent = Recent::new(1 << 20);
    for variant in (0..500).chain(0..500).chain([3, 3, 3]) {
        let body = hello(variant);
        assert_eq!(read(&body, &mut recent), read(&body, &mut Recent::new(1 << 20)), "{variant}");
    }
    // More numbers than are kept.
    let many: Vec<u16> = (0..400).collect();
    let body = client(771, None, &many, &[]);
    assert_eq!(read(&body, &mut recent), read(&body, &mut Recent::new(1 << 20)));
}

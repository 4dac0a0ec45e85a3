//! Facts from payloads in IPFIX: octets as in the specifications, and a small decoder that knows only templates and
//! basicLists.

use std::collections::BTreeMap;

use crate::common::{Encoded, answered, echo_v6, encode, needed, tunnelled};
use proptest::collection::vec;
use proptest::prelude::*;
use ringtap_export::RecordTotals;
use ringtap_export::encode::{Encoder, Ipfix, LEAST_LIMIT, NetFlow9, STREAM_LIMIT, UDP_LIMIT};
use ringtap_flow::{Application, ApplicationReason, Facts, FlowRecord, IpVersion, Kind, Label};

/// A record with these facts, and with a label if it is not empty.
pub(crate) fn with(record: FlowRecord, label: &str, facts: &[(Kind, &[u8])]) -> FlowRecord {
    let label = Label::new(label.as_bytes());
    let application = label.map(|label| Application { label, reason: ApplicationReason::Name });
    let mut all = Facts::default();
    for (kind, value) in facts {
        all.add(*kind, value, usize::MAX).unwrap();
    }
    FlowRecord { facts: all, application, ..record }
}

/// A record of each layout of facts.
pub(crate) fn layouts(record: &FlowRecord) -> Vec<FlowRecord> {
    use Kind::*;
    let of = |facts: &[(Kind, &[u8])]| with(record.clone(), "label", facts);
    vec![
        of(&[]),
        of(&[(TlsServerName, b"www.example"), (Ja3, b"00112233445566778899aabbccddeeff")]),
        of(&[(SshClient, b"SSH-2.0-a"), (SshServer, b"SSH-2.0-b")]),
        of(&[(DnsQueryName, b"a.example")]),
        of(&[(DnsQueryName, b"a.example"), (DnsAnswers, b"192.0.2.1")]),
        of(&[(HttpHost, b"a.example"), (HttpStatus, b"200")]),
        of(&[(HttpHost, b"a.example"), (HttpHost, b"b.example")]),
        of(&[(TlsServerName, b"www.example"), (TlsCertificateIssuer, b"example")]),
        of(&[(TlsServerName, b"www.example"), (HttpHost, b"a.example"), (HttpMethod, b"CONNECT")]),
    ]
}

/// An element: enterprise number and identifier.
pub(crate) type Element = (u32, u16);

/// A decoded record: its set, and the values of each element in order; those of lists follow.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    set: u16,
    fields: usize,
    pub(crate) values: BTreeMap<Element, Vec<Vec<u8>>>,
}

/// The rest of some octets.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    pub(crate) fn half(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    /// Element and length.
    pub(crate) fn specifier(&mut self) -> (Element, u16) {
        let (id, len) = (self.half(), self.half());
        let pen =
            if id & 0x8000 == 0 { 0 } else { u32::from_be_bytes(self.take(4).try_into().unwrap()) };
        ((pen, id & 0x7fff), len)
    }

    /// A value whose template has this length.
    pub(crate) fn value(&mut self, len: u16) -> &'a [u8] {
        let len = match (len, len == u16::MAX && self.0[0] < 255) {
            (u16::MAX, true) => self.take(1)[0].into(),
            (u16::MAX, false) => {
                self.take(1);
                self.half()
            }
            (fixed, _) => fixed,
        };
        self.take(len.into())
    }
}

pub(crate) fn decode(encoded: &Encoded) -> Vec<Decoded> {
    let (mut templates, mut records) = (BTreeMap::new(), Vec::new());
    for message in &encoded.messages {
        let mut sets = Reader(&message[16..]);
        while !sets.0.is_empty() {
            let (id, len) = (sets.half(), sets.half());
            let mut set = Reader(sets.take(usize::from(len) - 4));
            while id == 2 && !set.0.is_empty() {
                let (number, count) = (set.half(), set.half());
                let fields: Vec<_> = (0..count).map(|_| set.specifier()).collect();
                let known = templates.insert(number, fields.clone());
                assert!(known.is_none_or(|known| known == fields), "{number} changed");
            }
            if id < 256 || (320..326).contains(&id) {
                continue;
            }
            while !set.0.is_empty() {
                let fields = &templates[&id];
                let mut record = Decoded { set: id, fields: fields.len(), ..Decoded::default() };
                for &(element, len) in fields {
                    let value = set.value(len);
                    if element == (0, 291) {
                        let mut list = Reader(value);
                        assert_eq!(list.take(1), [4], "ordered");
                        let (element, len) = list.specifier();
                        let values = record.values.entry(element).or_default();
                        while !list.0.is_empty() {
                            values.push(list.value(len).into());
                        }
                    } else {
                        record.values.entry(element).or_default().push(value.into());
                    }
                }
                records.push(record);
            }
        }
    }
    records
}

/// The elements of facts, by kind, as documented. Answers have several.
fn elements(kind: Kind) -> &'static [Element] {
    match kind {
        Kind::TlsServerName => &[(6871, 294)],
        Kind::TlsVersion => &[(6871, 288)],
        Kind::TlsCipher => &[(6871, 187)],
        Kind::Ja3 => &[(6871, 463)],
        Kind::Ja3s => &[(6871, 465)],
        Kind::SshClient => &[(6871, 171)],
        Kind::SshServer => &[(6871, 472)],
        Kind::DnsResponseCode => &[(6871, 177)],
        Kind::DnsQueryType => &[(6871, 175)],
        Kind::DnsQueryName => &[(6871, 179)],
        Kind::DnsAnswers => &[(6871, 302), (6871, 303)],
        Kind::HttpMethod => &[(0, 459)],
        Kind::HttpHost => &[(0, 460)],
        Kind::HttpTarget => &[(0, 461)],
        Kind::HttpUserAgent => &[(0, 468)],
        Kind::HttpStatus => &[(0, 457)],
        Kind::HttpContentType => &[(0, 469)],
        Kind::HttpReferer => &[(6871, 115)],
        Kind::HttpLocation => &[(6871, 116)],
        Kind::DnsId => &[(6871, 226)],
        Kind::TlsCertificateSubject => &[(6871, 205)],
        Kind::TlsCertificateIssuer => &[(6871, 196)],
        Kind::TlsCertificateNotBefore => &[(6871, 247)],
        Kind::TlsCertificateNotAfter => &[(6871, 248)],
        Kind::TlsCertificateKeyBits => &[(6871, 250)],
        Kind::TlsCertificateSerial => &[(6871, 244)],
        Kind::TlsCertificateSha256 => &[(6871, 295)],
        _ => &[],
    }
}

/// The octets that a collector should get for a value in an element; `None` if the value does not belong there.
fn expected(kind: Kind, element: Element, value: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(value).into_owned();
    let number = |octets: usize| {
        let number = kind.number(value).unwrap_or(0).to_be_bytes();
        Some(number[8 - octets..].to_vec())
    };
    match (kind, element) {
        (Kind::TlsVersion | Kind::DnsQueryType | Kind::HttpStatus, _) => number(2),
        (Kind::DnsId | Kind::TlsCertificateKeyBits, _) => number(2),
        (Kind::TlsCipher, _) => number(4),
        (Kind::DnsResponseCode, _) => number(1),
        (Kind::Ja3 | Kind::Ja3s | Kind::TlsCertificateSerial | Kind::TlsCertificateSha256, _) => {
            let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            Some((0..text.len()).step_by(2).map(digit).collect())
        }
        (Kind::DnsAnswers, (_, 302)) => {
            text.parse::<std::net::Ipv4Addr>().ok().map(|ip| ip.octets().into())
        }
        (Kind::DnsAnswers, _) => {
            text.parse::<std::net::Ipv6Addr>().ok().map(|ip| ip.octets().into())
        }
        _ => Some(text.into_bytes()),
    }
}

/// The upper octet of templates with facts of several protocols.
const SEVERAL_PROTOCOLS: u16 = 10;

/// Whether only records with facts of one protocol have facts of a kind.
fn of_one_alone(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, DnsId | HttpContentType | HttpReferer | HttpLocation)
        || kind.name().starts_with("tlsCertificate")
}

/// Checks that each element has the record's values, or none; cut ones, or fewer, if `cut`.
fn check(record: &FlowRecord, decoded: &Decoded, cut: bool) {
    assert!(decoded.fields <= 60, "tshark accepts no more: {}", decoded.fields);
    let of = |element: Element| decoded.values.get(&element).cloned().unwrap_or_default();
    let label = record.application.map(|one| one.label.as_str().as_bytes().to_vec());
    let has_facts = decoded.set >= 512;
    let none = if has_facts { vec![Vec::new()] } else { Vec::new() };
    assert_eq!(of((0, 96)), label.map_or(none, |label| vec![label]));
    let of_one_protocol = decoded.set >> 8 != SEVERAL_PROTOCOLS;
    for kind in Kind::KEPT.into_iter().filter(|kind| of_one_protocol || !of_one_alone(*kind)) {
        for &element in elements(kind) {
            let values = record.facts.values(kind);
            let full: Vec<_> = values.filter_map(|value| expected(kind, element, value)).collect();
            // A field without a value is empty or 0.
            let mut got = of(element);
            if full.is_empty() {
                got.retain(|value| value.iter().any(|&octet| octet != 0));
            }
            if !cut {
                assert_eq!(got, full, "{kind:?}");
                continue;
            }
            assert!(got.len() <= full.len().max(1), "{kind:?}");
            for (got, full) in got.iter().zip(&full) {
                assert!(full.starts_with(got), "{kind:?}");
                assert!(got.len() == full.len() || std::str::from_utf8(got).is_ok(), "{kind:?}");
            }
        }
    }
    if has_facts && !of((6871, 174)).is_empty() {
        let is_answered = record.facts.values(Kind::DnsResponseCode).next().is_some();
        assert_eq!(of((6871, 174)), [[u8::from(is_answered)]]);
    }
}

fn any_value(kind: Kind) -> BoxedStrategy<Vec<u8>> {
    let names = |names: &'static [&'static str]| {
        prop::sample::select(names).prop_map(|name| name.as_bytes().to_vec()).boxed()
    };
    match kind {
        Kind::TlsVersion => {
            names(&["TLS 1.2", "TLS 1.3", "DTLS 1.0", "TLS 1.3 draft-28", "0xfb1a"])
        }
        Kind::TlsCipher => names(&["TLS_AES_128_GCM_SHA256", "0xfefe"]),
        Kind::Ja3 | Kind::Ja3s => names(&["00112233445566778899aabbccddeeff"]),
        Kind::TlsCertificateSerial | Kind::TlsCertificateSha256 => names(&["00ff", "1234567890"]),
        Kind::DnsId | Kind::TlsCertificateKeyBits => names(&["0", "2048", "65535"]),
        Kind::DnsResponseCode => names(&["NOERROR", "NXDOMAIN", "RCODE14"]),
        Kind::DnsQueryType => names(&["A", "AAAA", "HTTPS", "TYPE65000"]),
        Kind::HttpStatus => names(&["200", "404", "301", "599"]),
        Kind::DnsAnswers => prop_oneof![
            any::<[u8; 4]>().prop_map(|ip| std::net::Ipv4Addr::from(ip).to_string().into_bytes()),
            any::<[u8; 16]>().prop_map(|ip| std::net::Ipv6Addr::from(ip).to_string().into_bytes()),
            names(&["cname.example"]),
        ]
        .boxed(),
        _ => prop_oneof![
            "[a-z.]{1,40}".prop_map(String::into_bytes),
            vec(any::<u8>(), 0..40),
            "[a-zä€𝄞]{200,400}".prop_map(String::into_bytes),
        ]
        .boxed(),
    }
}

fn any_facts() -> impl Strategy<Value = Vec<(Kind, Vec<u8>)>> {
    let kinds: Vec<_> = Kind::KEPT.into_iter().filter(|kind| !elements(*kind).is_empty()).collect();
    let fact = prop::sample::select(kinds)
        .prop_flat_map(|kind| any_value(kind).prop_map(move |value| (kind, value)));
    prop_oneof![vec(fact.clone(), 0..4), vec(fact, 0..60)]
}

pub(crate) fn any_record() -> impl Strategy<Value = FlowRecord> {
    let base = prop::sample::select(vec![answered(), tunnelled()]);
    let label = prop_oneof![Just(""), Just("google"), Just("abcdefghijklmnopqrstuvwxyz0123")];
    (base, label, any_facts(), any::<bool>()).prop_map(|(record, label, facts, v6)| {
        let facts: Vec<_> = facts.iter().map(|(kind, value)| (*kind, &value[..])).collect();
        let mut record = with(record, label, &facts);
        if v6 {
            record.key.version = IpVersion::V6;
        }
        record
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_is_sent_with_its_facts_cut_if_there_is_no_room(
        records in vec(any_record(), 0..40),
        limit in prop_oneof![LEAST_LIMIT..2_000, Just(UDP_LIMIT), Just(STREAM_LIMIT)],
        ingress: bool,
    ) {
        let encoded = encode(&mut Ipfix::new(77, 1, limit).with_ingress(ingress), &records);
        prop_assert!(encoded.refused.is_empty());
        prop_assert!(encoded.messages.iter().all(|message| message.len() <= limit));
        let decoded = decode(&encoded);
        prop_assert_eq!(decoded.len(), records.len());
        for (record, decoded) in records.iter().zip(&decoded) {
            let octets: usize = record.facts.all().map(|(_, value)| value.len() + 20).sum();
            let long = record.facts.all().any(|(_, value)| value.len() > 500);
            check(record, decoded, long || octets + 300 > limit.min(4_096));
        }
        // Equal records are equal octets, where they are in a message.
        let mut alone = Ipfix::new(77, 1, limit).with_ingress(ingress);
        for record in &records {
            let message = encode(&mut alone, std::slice::from_ref(record));
            let at = message.messages.len() - 2;
            let all: Vec<u8> = encoded.messages.concat();
            let own = &message.messages[at][20..];
            prop_assert!(all.windows(own.len()).any(|part| part == own));
        }
    }
}

/// The octets of a text in hexadecimal; spaces are ignored.
fn hex(text: &str) -> Vec<u8> {
    crate::golden::hex(text)
}

fn has(messages: &[Vec<u8>], octets: &[u8]) -> bool {
    messages.iter().any(|one| one.windows(octets.len()).any(|part| part == octets))
}

#[test]
fn a_dns_flow_octet_by_octet() {
    use Kind::*;
    let facts: [(Kind, &[u8]); 8] = [
        (Protocol, b"dns"),
        (DnsId, b"4660"),
        (DnsQueryName, b"a.example"),
        (DnsQueryType, b"A"),
        (DnsQueryType, b"AAAA"),
        (DnsResponseCode, b"NOERROR"),
        (DnsAnswers, b"192.0.2.1"),
        (DnsAnswers, b"c.example"),
    ];
    let record = with(answered(), "dns", &facts);
    let encoded = encode(&mut Ipfix::new(7, 1, UDP_LIMIT), &[record]);
    // Layout 5, template 0x14 of it: an answered flow over IPv4 with VLAN tags.
    assert!(has(&encoded.messages, &hex("0614 0028 0008 0004 000c 0004")));
    let template = "
        00f5 0002
        0060 ffff  80ae 0001 00001ad7  80b1 0001 00001ad7  80af 0002 00001ad7  80b3 ffff 00001ad7
        80e2 0002 00001ad7
        0123 ffff  0123 ffff  0123 ffff  0123 ffff";
    assert!(has(&encoded.messages, &hex(template)));
    let facts = "
        0007 0007 0009
        03 646e73  01 00 0001  09 612e6578616d706c65  1234
        ff 000b 04 80af 0002 00001ad7 001c
        ff 0009 04 80b3 ffff 00001ad7
        ff 000d 04 812e 0004 00001ad7 c0000201
        ff 0009 04 812f 0010 00001ad7";
    assert!(has(&encoded.messages, &hex(facts)));
}

#[test]
fn records_without_facts_have_the_same_octets_and_no_further_templates() {
    let plain = encode(&mut Ipfix::new(7, 1, UDP_LIMIT), &[answered(), echo_v6()]);
    // Facts without an element are no reason for another template.
    let ntp = with(answered(), "", &[(Kind::Protocol, b"ntp"), (Kind::NtpMode, b"3")]);
    // ICMP has none.
    let echo = with(echo_v6(), "label", &[(Kind::HttpHost, b"a.example")]);
    let other = encode(&mut Ipfix::new(7, 1, UDP_LIMIT), &[ntp, echo]);
    assert_eq!(plain.messages, other.messages);
}

#[test]
fn templates_are_announced_when_they_are_needed_and_then_always() {
    let mut encoder = Ipfix::new(7, 1, UDP_LIMIT);
    let before = encoder.announcement();
    let record = &layouts(&answered())[1];
    encoder.add(record, &mut RecordTotals::default()).unwrap();
    let message = encoder.seal().unwrap().bytes.to_vec();
    assert_eq!(message[16..18], [3, 20]);
    let needed = needed(&encoder);
    let missing = encoder.missing(&needed, 2);
    assert_eq!(missing.len(), 2, "a template, twice");
    assert!(encoder.missing(&needed, 2).is_empty());
    let template = hex("0314 0024 0008 0004");
    assert!(has(&missing, &template) && !has(&before, &template));
    assert!(has(&encoder.announcement(), &template));
    assert!(encoder.farewell().concat().ends_with(&hex("0314 0000")));
}

#[test]
fn every_layout_of_every_record_fits_into_the_smallest_message() {
    let mut v6 = tunnelled();
    v6.key.version = IpVersion::V6;
    v6.path.tunnel.as_mut().unwrap().ipv6 = true;
    let records: Vec<_> = [answered(), v6].iter().flat_map(layouts).collect();
    let encoded = encode(&mut Ipfix::new(7, 1, LEAST_LIMIT).with_ingress(true), &records);
    assert!(encoded.refused.is_empty());
    let decoded = decode(&encoded);
    assert_eq!(decoded.len(), records.len());
    records.iter().zip(&decoded).for_each(|(record, decoded)| check(record, decoded, false));
    let layouts: Vec<_> = decoded.iter().map(|one| one.set >> 8).collect();
    assert_eq!(layouts, (2..11).chain(2..11).collect::<Vec<_>>());
}

#[test]
fn long_texts_are_cut_between_characters_and_invalid_ones_are_replaced() {
    let target = "é".repeat(500);
    let facts: [(Kind, &[u8]); 3] = [
        (Kind::HttpTarget, target.as_bytes()),
        (Kind::HttpHost, b"a\xff.example"),
        (Kind::HttpUserAgent, &[b'u'; 255]),
    ];
    let record = with(answered(), "", &facts);
    for (limit, kept) in [(STREAM_LIMIT, 512), (UDP_LIMIT, 512), (LEAST_LIMIT, 370)] {
        let encoded = encode(&mut Ipfix::new(7, 1, limit), std::slice::from_ref(&record));
        let decoded = &decode(&encoded)[0].values;
        assert_eq!(decoded[&(0, 460)][0], "a\u{fffd}.example".as_bytes());
        let target = &decoded[&(0, 461)][0];
        assert_eq!((target.len(), std::str::from_utf8(target).is_ok()), (kept, true), "{limit}");
        let agent = decoded[&(0, 468)][0].len();
        assert_eq!(agent, if limit == LEAST_LIMIT { 1 } else { 255 });
    }
}

#[test]
fn netflow9_has_the_label_in_a_fixed_length_for_both_directions() {
    let mut encoder = NetFlow9::new(7, UDP_LIMIT);
    let templates = encoder.announcement();
    assert!(
        has(&templates, &hex("0118 0014 0008 0004")) && !has(&templates, &hex("0112 000f 0008"))
    );
    assert!(has(&templates, &hex("0038 0006  0050 0006  0060 001e")));
    let record = with(answered(), "google", &[(Kind::TlsServerName, b"www.google.com")]);
    encoder.add(&record, &mut RecordTotals::default()).unwrap();
    let message = encoder.seal().unwrap().bytes.to_vec();
    assert_eq!(message[20..22], [1, 0x18]);
    let label = [&b"google"[..], &[0; 24]].concat();
    let count = message.windows(30).filter(|part| *part == label).count();
    assert_eq!(count, 2);
}

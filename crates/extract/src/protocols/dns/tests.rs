//! Tests of the extractor through its public interface.

use proptest::prelude::*;

use super::*;
use crate::{Counts, Extractors, Payloads};

/// A packet of a client at port 4000.
fn packet(protocol: u8, server: u16, ts_ns: u64) -> PacketRecord {
    PacketRecord {
        src: [1; 16],
        dst: [2; 16],
        src_port: 4_000,
        dst_port: server,
        protocol,
        ts_ns,
        flags: Flags(Flags::IPV4.0 | Flags::DATA.0),
        ..PacketRecord::EMPTY
    }
}

/// A packet to the client.
fn reply(protocol: u8, server: u16, ts_ns: u64) -> PacketRecord {
    let PacketRecord { src, dst, src_port, dst_port, .. } = packet(protocol, server, ts_ns);
    PacketRecord {
        src: dst,
        dst: src,
        src_port: dst_port,
        dst_port: src_port,
        ..packet(protocol, server, ts_ns)
    }
}

const UDP: u8 = 17;

struct Reader(Payloads, Vec<String>);

impl Reader {
    fn new() -> Self {
        Self(Payloads::new("dns".parse().unwrap(), 1 << 22), Vec::new())
    }

    /// Reads a packet if it is of interest; the facts are collected.
    fn take(&mut self, record: &PacketRecord, sequence: u32, bytes: &[u8]) -> &mut Self {
        let Self(payloads, facts) = self;
        payloads.read(&Payload { record, bytes, sequence }, &mut |kind, value| {
            facts.push(format!("{}={}", short(kind), value.escape_ascii()));
            true
        });
        self
    }

    /// The facts since the last call, separated by spaces.
    fn facts(&mut self) -> String {
        mem::take(&mut self.1).join(" ")
    }

    fn counts(&mut self) -> Counts {
        self.0.counts(true).clone()
    }

    fn unread(&mut self) -> Vec<(Unread, u64)> {
        self.counts().unread.iter().map(|(&(_, why), &number)| (why, number)).collect()
    }
}

fn short(kind: Kind) -> &'static str {
    match kind {
        Kind::Protocol => "protocol",
        Kind::DnsKind => "kind",
        Kind::DnsId => "id",
        Kind::DnsQueryName => "name",
        Kind::DnsQueryType => "type",
        Kind::DnsResponseCode => "code",
        Kind::DnsAnswers => "data",
        Kind::DnsFlags => "flags",
        Kind::DnsQueryClass => "class",
        Kind::DnsRecords => "record",
        Kind::DnsResponseTime => "time",
        _ => "other",
    }
}

fn udp(server: u16, bytes: &[u8]) -> (String, Vec<(Unread, u64)>) {
    let mut reader = Reader::new();
    reader.take(&packet(UDP, server, 1), 0, bytes);
    (reader.facts(), reader.unread())
}

/// A message with these flags, counts and rest.
fn message(flags: u16, counts: [u16; 4], rest: &[u8]) -> Vec<u8> {
    let head = [0x1234, flags].into_iter().chain(counts).flat_map(u16::to_be_bytes);
    head.chain(rest.iter().copied()).collect()
}

const QUESTION: &[u8] = b"\x03www\x07example\x03org\0\0\x01\0\x01";
const OPT: &[u8] = b"\0\0\x29\x10\0\0\0\x80\0\0\0";

fn query() -> Vec<u8> {
    message(0x0120, [1, 0, 0, 1], &[QUESTION, OPT].concat())
}

/// A record that refers to the name in the question.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let fixed = [0xc00c, kind, 1, 0, 300, data.len() as u16];
    fixed.into_iter().flat_map(u16::to_be_bytes).chain(data.iter().copied()).collect()
}

fn response() -> Vec<u8> {
    let records = [
        record(5, b"\x01a\xc0\x10"),
        record(1, &[192, 0, 2, 1]),
        record(28, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        OPT.to_vec(),
    ];
    message(0x8180, [1, 3, 0, 1], &[QUESTION, &records.concat()].concat())
}

const ASKED: &str = "protocol=dns kind=query id=4660 flags=RD AD name=www.example.org type=A";
const ANSWERED: &str = "protocol=dns kind=answer id=4660 flags=RD RA name=www.example.org type=A \
    data=a.example.org record=www.example.org CNAME 300 a.example.org \
    data=192.0.2.1 record=www.example.org A 300 192.0.2.1 \
    data=2001:db8::1 record=www.example.org AAAA 300 2001:db8::1 code=NOERROR";

#[test]
fn messages_are_found_by_content_on_any_port() {
    for port in [53, 9, 54_321] {
        assert_eq!(udp(port, &query()), (ASKED.into(), vec![]));
        assert_eq!(udp(port, &response()), (ANSWERED.into(), vec![]));
    }
    // The name service of NetBIOS, at its port and in its form.
    assert_eq!(udp(137, &query()), (String::new(), vec![]));
    let netbios = b"\x20CKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\0\0\x21\0\x01";
    let netbios = message(0x0010, [1, 0, 0, 0], netbios);
    assert_eq!(udp(9, &netbios), (String::new(), vec![]));
    assert!(udp(53, &netbios).0.ends_with("name=CKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA type=SRV"));
}

#[test]
fn other_ports_need_an_ordinary_message() {
    let question = |name: &[u8], kind: u16, class: u16| {
        [name, &kind.to_be_bytes(), &class.to_be_bytes()].concat()
    };
    let usual = question(b"\x01a\0", 1, 1);
    let accepted = |bytes: &[u8]| {
        let (facts, unread) = udp(9, bytes);
        assert!(unread.is_empty());
        !facts.is_empty()
    };
    let asks = |question: &[u8]| accepted(&message(0x0100, [1, 0, 0, 0], question));
    assert!(asks(&usual) && asks(&question(b"\x01a\0", 255, 0x8001)));
    assert!(!asks(&question(b"\x01a\0", 54, 1)), "a type that is not registered");
    assert!(!asks(&question(b"\x01a\0", 1, 2)), "an unusual class");
    assert!(!asks(&question(b"\x01\x07\0", 1, 1)), "a name that is not printable");
    assert!(!asks(&[&usual[..], b"x"].concat()), "bytes behind the end");
    assert!(!asks(&usual[..5]), "no end");
    for (flags, counts) in [
        (0x0900, [1, 0, 0, 0]),
        (0x0140, [1, 0, 0, 0]),
        (0x0180, [1, 0, 0, 0]),
        (0x0103, [1, 0, 0, 0]),
        (0x0100, [0, 0, 0, 0]),
        (0x0100, [257, 0, 0, 0]),
        (0x0100, [1, 1, 0, 0]),
        (0x8180, [1, 1, 0, 0]),
        (0x818b, [1, 0, 0, 0]),
    ] {
        assert!(!accepted(&message(flags, counts, &usual)), "{flags:04x} {counts:?}");
    }
    assert!(accepted(&message(0x8183, [1, 0, 0, 0], &usual)));
}

#[test]
fn random_bytes_are_not_taken_for_messages() {
    let mut state = 7_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut reader = Reader::new();
    let (mut bytes, mut read) = ([0; 64], 0);
    for turn in 0..1_000_000 {
        bytes.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&random().to_le_bytes()));
        // One in 4,096 datagrams has these bytes; one in 1,000 segments a length that fits.
        (bytes[2], bytes[5]) = (bytes[2] & 0x87, 1);
        reader.take(&packet(UDP, 9, 1), 0, &bytes);
        if turn % 2 == 0 {
            (bytes[0], bytes[1], bytes[5]) = (0, 62, bytes[5] & 0x93);
            reader.take(&packet(TCP, 9, 1), turn, &bytes);
        }
        read += usize::from(!reader.facts().is_empty());
    }
    assert_eq!(read, 0);
    assert_eq!(reader.unread(), []);
}

#[test]
fn what_contradicts_dns_is_malformed_on_its_ports() {
    let malformed = vec![(Unread::Malformed, 1)];
    let nothing = (String::new(), malformed.clone());
    assert_eq!(udp(53, b"short"), nothing);
    assert_eq!(udp(53, &message(0x1900, [1, 0, 0, 0], QUESTION)), nothing, "operation 3");
    assert_eq!(udp(53, &message(0x0100, [1, 0, 0, 0], b"\x03ww")), nothing);
    assert_eq!(udp(53, &message(0x0100, [1, 0, 0, 0], b"\xc0\x0c\0\x01\0\x01")), nothing);
    assert_eq!(udp(53, &message(0x0100, [1, 9, 0, 0], QUESTION)), nothing, "too many records");
    assert_eq!(udp(53, &message(0x8180, [0, 1, 0, 0], &[b'x'; 40])), nothing);
    // The question is right, the records are not.
    let question =
        "protocol=dns kind=answer id=4660 flags=RD RA name=www.example.org type=A code=NOERROR";
    for data in [record(1, b"abc"), record(5, b"\xc0\xff"), record(16, b"\x04abc")] {
        let bytes = message(0x8180, [1, 1, 0, 0], &[QUESTION, &data].concat());
        assert_eq!(udp(53, &bytes), (question.into(), malformed.clone()));
    }
    let looping = [QUESTION, &record(2, b"\xc0\x2d")].concat();
    let looping = message(0x8180, [1, 1, 0, 0], &looping);
    assert_eq!(udp(53, &looping), (question.into(), malformed.clone()));
}

#[test]
fn types_codes_and_data_have_names() {
    let unknown = message(0x0100, [1, 0, 0, 0], b"\0\xff\xfe\0\x01");
    assert!(udp(53, &unknown).0.ends_with("name=. type=TYPE65534"));
    let two = message(0x0100, [2, 0, 0, 0], b"\x01b\0\0\x41\0\x01\xc0\x0c\0\x1c\0\x01");
    assert!(udp(53, &two).0.ends_with("name=b type=HTTPS name=b type=AAAA"));
    let code = |flags, code: u8, counts| {
        let opt = [b"\0\0\x29\x10\0", &[code][..], b"\0\0\0\0\0"].concat();
        let (facts, _) = udp(53, &message(flags, counts, &[QUESTION, &opt].concat()));
        facts.split("code=").nth(1).map(str::to_owned)
    };
    assert_eq!(code(0x8183, 0, [1, 0, 0, 1]).as_deref(), Some("NXDOMAIN"));
    assert_eq!(code(0x8180, 1, [1, 0, 0, 1]).as_deref(), Some("BADVERS"));
    assert_eq!(code(0x8187, 1, [1, 0, 0, 1]).as_deref(), Some("BADCOOKIE"));
    assert_eq!(code(0x818c, 0, [1, 0, 0, 0]).as_deref(), Some("RCODE12"));
    let records = [
        record(15, b"\0\x0a\x02mx\xc0\x10"),
        record(33, b"\0\x01\0\x02\0\x50\x03srv\xc0\x10"),
        record(16, b"\x03a b\0\x02cd"),
        record(6, b"\0\0"),
        record(12, b"\0"),
    ];
    let bytes = message(0x8580, [1, 5, 0, 0], &[QUESTION, &records.concat()].concat());
    let (facts, unread) = udp(53, &bytes);
    let data = "data=mx.example.org record=www.example.org MX 300 10 mx.example.org \
        data=srv.example.org record=www.example.org SRV 300 1 2 80 srv.example.org \
        data=a bcd record=www.example.org TXT 300 a bcd \
        record=www.example.org SOA 300 \\\\# 2 0000 data=. record=www.example.org PTR 300 . code=NOERROR";
    assert!(facts.ends_with(data) && unread.is_empty(), "{facts}");
}

/// The text of a record of this type and data.
fn text(kind: u16, data: &[u8]) -> String {
    let bytes = message(0x8180, [1, 1, 0, 0], &[QUESTION, &record(kind, data)].concat());
    let (facts, unread) = udp(53, &bytes);
    assert!(unread.is_empty(), "{facts}");
    let record = facts.split_once("record=www.example.org ").expect("a record").1;
    let record = record.strip_suffix(" code=NOERROR").unwrap();
    record.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[test]
fn records_are_written_by_their_types() {
    let soa = [&b"\x02ns\xc0\x10\x04a  b\xc0\x10"[..], &[0, 0, 0, 1].repeat(5)].concat();
    assert_eq!(text(6, &soa), r"SOA 300 ns.example.org a\032\032b.example.org 1 1 1 1 1");
    assert_eq!(text(39, b"\x01d\xc0\x10"), "DNAME 300 d.example.org");
    assert_eq!(text(257, b"\0\x05issueca\"x"), r#"CAA 300 0 issue "ca\"x""#);
    let naptr = b"\0\x64\0\x0a\x01u\x07E2U+sip\x03!\\!\0";
    assert_eq!(text(35, naptr), r#"NAPTR 300 100 10 "u" "E2U+sip" "!\\!" ."#);
    assert_eq!(text(43, &[0xec, 0x45, 5, 1, 0xab, 0xcd]), "DS 300 60485 5 1 abcd");
    assert_eq!(text(52, &[3, 1, 1, 0xff]), "TLSA 300 3 1 1 ff");
    let service = b"\0\x01\0\0\x01\0\x06\x02h2\x02h3\0\x03\0\x02\x20\xfb\0\x04\0\x08\x01\x02\x03\x04\x05\x06\x07\x08";
    let hints = "1 . alpn=h2,h3 port=8443 ipv4hint=1.2.3.4,5.6.7.8";
    assert_eq!(text(65, service), format!("HTTPS 300 {hints}"));
    let six = [
        &b"\0\x01\x01a\0\0\x06\0\x10"[..],
        &[0; 15],
        &[1, 0, 5, 0, 1, 7, 0, 2, 0, 0, 0xff, 0, 0, 0],
    ]
    .concat();
    assert_eq!(text(64, &six), "SVCB 300 1 a ipv6hint=::1 ech=07 no-default-alpn key65280");
    assert_eq!(text(64, b"\0\0\x01a\0"), "SVCB 300 0 a");
    assert_eq!(text(999, b"\x01\x02"), r"TYPE999 300 \# 2 0102");
    assert_eq!(text(999, b""), r"TYPE999 300 \# 0");
    // What contradicts its type is as of a type that is not read.
    assert_eq!(
        text(65, b"\0\x01\0\0\x04\0\x03\x01\x02\x03"),
        r"HTTPS 300 \# 10 00010000040003010203"
    );
    assert_eq!(text(43, b"\0"), r"DS 300 \# 1 00");
    assert_eq!(text(257, b"\0\x03a b"), r"CAA 300 \# 5 0003612062");
}

#[test]
fn texts_of_records_are_bounded() {
    let strings = [&[255][..], &[b'x'; 255]].concat().repeat(5);
    assert_eq!(text(16, &strings), format!("TXT 300 {}...", "x".repeat(1_024)));
    let digits = |bytes: usize| "ff".repeat(bytes);
    assert_eq!(text(999, &[0xff; 9_000]), format!(r"TYPE999 300 \# 9000 {}", digits(64)));
    let digest = [&[3, 1, 0][..], &[0xff; 500]].concat();
    assert_eq!(text(52, &digest), format!("TLSA 300 3 1 0 {}...", digits(64)));
    for key in [0, 1, 4, 6, 7, 9] {
        let value = vec![1; 12_000];
        let data = [&[0, 1, 0, 0, key][..], &12_000_u16.to_be_bytes(), &value].concat();
        let text = text(64, &data);
        assert!(text.len() <= 1_024 + "SVCB 300 ...".len() && text.ends_with("..."), "{text}");
    }
    let many = (0..3_000_u16).flat_map(|key| [key.to_be_bytes(), [0, 0]]).flatten();
    let text = text(64, &[&[0, 1, 0][..], &many.skip(12 * 4).collect::<Vec<_>>()].concat());
    assert!(text.len() == 1_024 + "SVCB 300 ...".len() && text.ends_with("..."), "{text}");
}

#[test]
fn owners_are_those_of_each_record() {
    // The second owner is another pointer, the third one the first again; the last are in a response without a question.
    let two = record(5, b"\x01a\xc0\x10");
    let mut third = record(1, &[192, 0, 2, 1]);
    third[..2].copy_from_slice(&[0xc0, 0x2d]);
    let bytes = [QUESTION, &two, &third, &record(1, &[192, 0, 2, 2])].concat();
    let (facts, _) = udp(53, &message(0x8400, [1, 3, 0, 0], &bytes));
    let owners: Vec<_> =
        facts.split("record=").skip(1).map(|text| text.split(' ').next()).collect();
    assert_eq!(owners, ["www.example.org", "a.example.org", "www.example.org"].map(Some));
    let owner = b"\x03a b\0\0\x10\0\x03\0\0\0\x01\0\x02\x01x";
    let (facts, _) = udp(53, &message(0x8400, [0, 1, 0, 0], owner));
    assert!(facts.contains(r"flags=AA data=x record=a\\032b CH/TXT 1 x code="), "{facts}");
    // The data is as it should be, the owner is not.
    let mut wrong = record(1, &[192, 0, 2, 1]);
    wrong[..2].copy_from_slice(&[0xc0, 0xff]);
    let (facts, unread) = udp(53, &message(0x8180, [1, 1, 0, 0], &[QUESTION, &wrong].concat()));
    assert!(!facts.contains("record=") && unread == [(Unread::Malformed, 1)], "{facts}");
}

#[test]
fn questions_have_a_class_if_it_is_another_one() {
    let version = b"\x07version\x04bind\0\0\x10\0\x03";
    let (facts, _) = udp(53, &message(0x0100, [1, 0, 0, 0], version));
    assert!(facts.ends_with("name=version.bind type=TXT class=CH"), "{facts}");
    let (facts, _) = udp(53, &message(0, [1, 0, 0, 0], b"\x01a\0\0\x01\x12\x34"));
    assert_eq!(facts, "protocol=dns kind=query id=4660 name=a type=A class=CLASS4660");
}

#[test]
fn other_operations_have_questions_but_no_answers() {
    let zone = [QUESTION, &record(1, b"")].concat();
    let update = message(0x2800, [1, 1, 0, 0], &zone);
    let asked = "protocol=dns kind=query id=4660 flags=UPDATE name=www.example.org type=A";
    assert_eq!(udp(53, &update), (asked.into(), vec![]));
    let inverse = message(0x8984, [0, 0, 0, 0], b"");
    let answered = "protocol=dns kind=answer id=4660 flags=IQUERY RD RA code=NOTIMP";
    assert_eq!(udp(53, &inverse).0, answered);
    let stateful = message(0x3000, [0, 0, 0, 0], &[0, 1, 0, 0]);
    assert_eq!(udp(53, &stateful).0, "protocol=dns kind=query id=4660 flags=DSO");
}

#[test]
fn an_update_has_the_zone_and_the_records_that_it_changes() {
    let of_class = |class: u8, mut record: Vec<u8>| {
        record[5] = class;
        record
    };
    let records = [
        of_class(255, record(255, b"")),
        record(1, &[192, 0, 2, 1]),
        of_class(255, record(1, b"")),
        of_class(254, record(16, b"\x01a")),
    ];
    let bytes = message(0x2800, [1, 1, 3, 0], &[QUESTION, &records.concat()].concat());
    let (facts, unread) = udp(53, &bytes);
    let changed = "name=www.example.org type=A record=www.example.org A 300 192.0.2.1 \
        record=www.example.org ANY/A 300  record=www.example.org NONE/TXT 300 a";
    assert!(facts.ends_with(changed) && unread.is_empty(), "{facts}");
}

#[test]
fn ports_distinguish_multicast_dns_and_llmnr() {
    let owner = b"\x04host\x05local\0\0\x01\x80\x01\0\0\0\x78\0\x04\xc0\0\x02\x01";
    let announced = message(0x8400, [0, 1, 0, 0], owner);
    let facts = "protocol=mdns kind=answer id=4660 flags=AA data=192.0.2.1 \
        record=host.local A 120 192.0.2.1 code=NOERROR";
    assert_eq!(udp(5_353, &announced), (facts.into(), vec![]));
    assert_eq!(udp(9, &announced), (String::new(), vec![]));
    let query = message(0, [1, 0, 0, 0], b"\x04host\0\0\x1c\x80\x01");
    let facts = udp(5_353, &query).0;
    assert_eq!(facts, "protocol=mdns kind=query id=4660 name=host type=AAAA");
    assert!(udp(5_355, &query).0.starts_with("protocol=llmnr kind=query"));
}

#[test]
fn a_cut_message_is_read_as_far_as_it_is_there() {
    let whole = response();
    for flag in [Flags::TRUNCATED, Flags::FRAGMENT] {
        for port in [53, 9] {
            let mut record = packet(UDP, port, 1);
            record.flags.insert(flag);
            for len in 1..whole.len() {
                let mut reader = Reader::new();
                let facts = reader.take(&record, 0, &whole[..len]).facts();
                let named = len >= HEADER + QUESTION.len();
                assert_eq!(facts.contains("name=www.example.org"), named, "{len}");
                assert_eq!(facts.contains("data=192.0.2.1"), len >= whole.len() - 39, "{len}");
                let records = facts.matches("record=").count();
                assert_eq!(records, facts.matches("data=").count(), "{len}");
                let read = port == 53 || len >= HEADER;
                assert_eq!(reader.unread(), [(Unread::Truncated, 1)][..usize::from(read)]);
            }
        }
    }
    // A truncated answer may count records that are not there.
    let truncated = message(0x8380, [1, 5, 0, 0], QUESTION);
    let facts = "protocol=dns kind=answer id=4660 flags=TC RD RA name=www.example.org type=A \
        code=NOERROR";
    assert_eq!(udp(53, &truncated), (facts.into(), vec![(Unread::Truncated, 1)]));
}

#[test]
fn values_beyond_the_limits_are_counted() {
    let records = record(1, &[192, 0, 2, 1]).repeat(25);
    let bytes = message(0x8180, [1, 25, 0, 0], &[QUESTION, &records].concat());
    let (facts, unread) = udp(53, &bytes);
    assert_eq!((facts.matches("data=").count(), &unread[..]), (20, &[(Unread::TooMuch, 1)][..]));
    let questions = QUESTION.repeat(16);
    let (facts, unread) = udp(53, &message(0x0100, [16, 0, 0, 0], &questions));
    assert_eq!((facts.matches("name=").count(), &unread[..]), (15, &[(Unread::TooMuch, 1)][..]));
}

fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let frame = |own: &Vec<u8>| [&(own.len() as u16).to_be_bytes()[..], own].concat();
    messages.iter().flat_map(frame).collect()
}

#[test]
fn messages_over_tcp_are_joined_at_every_position() {
    let bytes = framed(&[query(), response(), query()]);
    let all = format!("{ASKED} {ANSWERED} {ASKED}");
    for port in [53, 9] {
        let mut reader = Reader::new();
        assert_eq!(reader.take(&packet(TCP, port, 1), 5, &bytes).facts(), all);
        // A single byte may be a keep-alive; on other ports a header is necessary.
        for at in if port == 53 { 2 } else { 14 }..bytes.len() {
            let (first, second) = bytes.split_at(at);
            let mut reader = Reader::new();
            let record = packet(TCP, port, 1);
            reader.take(&record, 5, first).take(&record, 5 + at as u32, second);
            assert_eq!((reader.facts(), reader.unread()), (all.clone(), vec![]), "{at}");
            // The second segment twice, and one that comes too early.
            let third = bytes.len().min(at + 7);
            let mut reader = Reader::new();
            reader.take(&record, 5, first).take(&record, 5 + third as u32, &bytes[third..]);
            reader.take(&record, 5 + at as u32, second);
            assert!(reader.facts().starts_with(&all[..ASKED.len()]), "{at}");
        }
    }
}

#[test]
fn the_end_of_a_stream_is_counted() {
    let bytes = framed(&[query()]);
    let mut reader = Reader::new();
    reader.take(&packet(TCP, 53, 1), 5, &bytes[..20]);
    assert_eq!((reader.facts(), reader.unread()), (String::new(), vec![(Unread::Incomplete, 1)]));
    let mut reader = Reader::new();
    let mut cut = packet(TCP, 53, 1);
    cut.flags.insert(Flags::TRUNCATED);
    reader.take(&cut, 5, &bytes[..bytes.len() - 3]);
    assert_eq!((reader.facts(), reader.unread()), (ASKED.into(), vec![(Unread::Truncated, 1)]));
    // A malformed message does not prevent the next one from being read; something else does.
    let wrong = message(0x0100, [1, 0, 0, 0], b"\xc0\x0c\0\x01\0\x01");
    let mut reader = Reader::new();
    reader.take(&packet(TCP, 53, 1), 5, &framed(&[query(), wrong, query()]));
    assert_eq!(reader.facts(), format!("{ASKED} {ASKED}"));
    assert_eq!(reader.unread(), [(Unread::Malformed, 1)]);
    let mut reader = Reader::new();
    reader.take(&packet(TCP, 53, 1), 5, &[&bytes[..], &[0, 3, 1, 2, 3]].concat());
    assert_eq!((reader.facts(), reader.unread()), (ASKED.into(), vec![(Unread::Malformed, 1)]));
}

#[test]
fn a_message_longer_than_a_stream_is_read_as_far_as_it_is_there() {
    let records = record(1, &[192, 0, 2, 1]).repeat(1_100);
    let long = message(0x8180, [1, 1_100, 0, 0], &[QUESTION, &records].concat());
    let bytes = framed(&[query(), long]);
    let mut reader = Reader::new();
    for (number, part) in bytes.chunks(1_000).enumerate() {
        reader.take(&packet(TCP, 53, 1), 1_000 * number as u32, part);
    }
    let facts = reader.facts();
    assert!(facts.starts_with(ASKED) && facts.matches("data=192.0.2.1").count() == 20);
    assert!(reader.unread().iter().all(|(why, _)| *why == Unread::TooMuch));
}

#[test]
fn an_answer_has_the_time_since_its_question() {
    for (protocol, wrap) in [(UDP, false), (TCP, true)] {
        let bytes = |own: Vec<u8>| if wrap { framed(&[own]) } else { own };
        let mut reader = Reader::new();
        let (asks, answers) = (bytes(query()), bytes(response()));
        reader.take(&packet(protocol, 53, 1_000), 1, &asks);
        reader.take(&packet(protocol, 53, 2_001_000), 1_001, &asks);
        reader.take(&reply(protocol, 53, 5_001_999), 1, &answers);
        let all = format!("{ASKED} {ASKED} {ANSWERED} time=5000");
        assert_eq!(reader.facts(), all);
        reader.take(&reply(protocol, 53, 6_000_000), 1_001, &answers);
        assert_eq!((reader.facts(), reader.unread()), (ANSWERED.into(), vec![]));
    }
    // The case of letters may differ, the type may not.
    let mut reader = Reader::new();
    let mut upper = response();
    upper[13..16].copy_from_slice(b"WWW");
    reader.take(&packet(UDP, 53, 1_000), 0, &query()).facts();
    reader.take(&reply(UDP, 53, 2_000), 0, &upper);
    assert!(reader.facts().ends_with("time=1"));
    let mut other = response();
    other[30] = 28;
    reader.take(&packet(UDP, 53, 1_000), 0, &query()).facts();
    reader.take(&reply(UDP, 53, 2_000), 0, &other);
    assert!(reader.facts().ends_with("code=NOERROR"));
}

#[test]
fn questions_without_room_are_counted() {
    let memory = 2 * Extractors::NAMES.len() * 4_096;
    let mut reader = Reader(Payloads::new(Extractors::ALL, memory), Vec::new());
    for id in 0..500_u16 {
        let mut bytes = query();
        bytes[..2].copy_from_slice(&id.to_be_bytes());
        reader.take(&packet(UDP, 53, 1), 0, &bytes);
    }
    let unread = reader.unread();
    assert!(matches!(unread[..], [(Unread::NoRoom, 400..)]), "{unread:?}");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        counts in prop::array::uniform4(0_u16..30),
        flags in any::<u16>(),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        cut in any::<bool>(),
    ) {
        let mut reader = Reader::new();
        for bytes in [message(flags, counts, &rest), rest] {
            for port in [53, 5_353, 9] {
                let mut record = packet(UDP, port, 1);
                if cut {
                    record.flags.insert(Flags::TRUNCATED);
                }
                reader.take(&record, 0, &bytes);
                record.protocol = TCP;
                reader.take(&record, 0, &framed(&[query(), bytes.clone()]));
                reader.take(&record, 0, &bytes);
            }
        }
    }

    #[test]
    fn changed_messages_do_not_make_it_panic(at in 0_usize..100, value: u8, end in 0_usize..200) {
        let mut bytes = response();
        let at = at % bytes.len();
        bytes[at] = value;
        bytes.truncate(end);
        let mut reader = Reader::new();
        for port in [53, 9] {
            reader.take(&packet(UDP, port, 1), 0, &bytes);
            reader.take(&packet(TCP, port, 1), 0, &framed(&[bytes.clone()]));
        }
    }
}

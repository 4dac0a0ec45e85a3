use proptest::prelude::*;
use ringtap_wire::PacketRecord;

use super::*;
use crate::opening::{LOOKED_AT, Table};

static TABLES: [Table; 2] = [Table::EMPTY.with(Labels::UDP, 0), Table::EMPTY.with(Labels::TCP, 0)];

/// The label of a payload from and to these ports.
fn label_between(protocol: u8, [src_port, dst_port]: [u16; 2], bytes: &[u8]) -> Option<String> {
    let head = bytes.first_chunk::<LOOKED_AT>()?;
    if TABLES[usize::from(protocol == 6)].look(head, 40_000) == 0 {
        return None;
    }
    let record = &PacketRecord { protocol, src_port, dst_port, ..PacketRecord::EMPTY };
    let mut label = None;
    let read =
        Labels::read(&mut (), &Payload { record, bytes, sequence: 0 }, &mut |kind, value| {
            assert_eq!((kind, label.take()), (Kind::Protocol, None));
            label = Some(String::from_utf8(value.to_vec()).unwrap());
        });
    assert_eq!(read, Ok(if label.is_some() { Progress::Done } else { Progress::Other }));
    label
}

fn tcp(bytes: &[u8]) -> Option<String> {
    label_between(6, [50_000, 50_001], bytes)
}

fn udp(bytes: &[u8]) -> Option<String> {
    label_between(17, [50_000, 50_001], bytes)
}

fn is(label: &str) -> Option<String> {
    Some(label.into())
}

#[test]
fn text_protocols() {
    for (line, label) in [
        ("INVITE sip:bob@example.org SIP/2.0\r\nVia: x", "sip"),
        ("OPTIONS sip:100@1.2.3.4 SIP/2.0\r\n", "sip"),
        ("SIP/2.0 200 OK\r\n", "sip"),
        ("220 mail.example.org ESMTP Postfix\r\n", "smtp"),
        ("220-mx.google.com ESMTP\r\n220 more\r\n", "smtp"),
        ("EHLO client.example.org\r\n", "smtp"),
        ("helo [192.0.2.1]\r\n", "smtp"),
        ("220 (vsFTPd 3.0.3)\r\n", "ftp"),
        ("220-FileZilla Server 1.7.0\r\n", "ftp"),
        ("331 Please specify the password.\r\n", "ftp"),
        ("+OK POP3 server ready <1896.697170952@dbc.mtview.ca.us>\r\n", "pop3"),
        ("* OK [CAPABILITY IMAP4rev1] Dovecot ready.\r\n", "imap"),
        ("* PREAUTH IMAP4rev1 server\r\n", "imap"),
    ] {
        assert_eq!(tcp(line.as_bytes()), is(label), "{line}");
        let over_udp = (label == "sip").then(|| label.into());
        assert_eq!(udp(line.as_bytes()), over_udp, "{line}");
    }
    for command in [&b"USER anonymous\r\n"[..], b"AUTH TLS\r\n"] {
        assert_eq!(label_between(6, [50_000, 21], command), is("ftp"));
        assert_eq!(label_between(6, [50_000, 110], command), None);
    }
}

#[test]
fn similar_text_is_not_labelled() {
    for line in [
        "OPTIONS * HTTP/1.1\r\n",
        "OPTIONS rtsp://example.org RTSP/1.0\r\n",
        "INVITE sip:bob@example.org SIP/2.0",
        "SIP/2.0 OK\r\n",
        "220 welcome\r\n",
        "2200 ESMTP\r\n",
        "220 ESMTP\n",
        "220 ESMTP \x01\r\n",
        "EHLO \r\n",
        "EHLO a b\r\n",
        "EHLO a\r\nMAIL FROM:<a@b>\r\n",
        "+OK\r\n",
        "+OK text",
        "* OKAY \r\n",
        "331 no\r\n",
        "HTTP/1.1 220 SMTP\r\n",
    ] {
        assert_eq!((tcp(line.as_bytes()), udp(line.as_bytes())), (None, None), "{line}");
    }
}

#[test]
fn bittorrent() {
    assert_eq!(tcp(b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05"), is("bittorrent"));
    assert_eq!(tcp(b"\x13BitTorrent protokol\0\0\0\0\0\x10\0\x05"), None);
    for message in [
        &b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe"[..],
        b"d1:rd2:id20:mnopqrstuvwxyz123456e1:t2:aa1:y1:re",
        b"d2:ip6:\x01\x02\x03\x04\x05\x061:rd2:id20:mnopqrstuvwxyz123456e",
        b"\0\0\x04\x17\x27\x10\x19\x80\0\0\0\0\x01\x02\x03\x04",
        b"BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\n",
    ] {
        assert_eq!(udp(message), is("bittorrent"));
    }
    assert_eq!(udp(b"d2:ip6:\x01\x02\x03\x04\x05\x062:rd2:id20:mnopqrstuvwxyz123456e"), None);
    assert_eq!(udp(b"\0\0\x04\x17\x27\x10\x19\x80\0\0\0\x01\x01\x02\x03\x04"), None);
}

#[test]
fn stun_by_cookie_length_and_method() {
    let request = b"\0\x01\0\x08\x21\x12\xa4\x42abcdefghijkl\x80\x22\0\x04abcd";
    assert_eq!((udp(request), tcp(request)), (is("stun"), is("stun")));
    assert_eq!(tcp(&[&request[..], b"more"].concat()), is("stun"));
    assert_eq!(udp(&[&request[..], b"more"].concat()), None);
    assert_eq!(udp(b"\x01\x01\0\0\x21\x12\xa4\x42abcdefghijkl"), is("stun"));
    for (at, value) in [(0, 0x40), (0, 0x3f), (1, 0x0f), (3, 9), (3, 4)] {
        let mut other = *request;
        other[at] = value;
        assert_eq!(udp(&other), None, "{at}");
    }
}

#[test]
fn stun_over_tcp_has_a_cookie() {
    let mut request = *b"\0\x01\0\x08\x21\x12\xa4\x42abcdefghijkl\x80\x22\0\x04abcd";
    request[7] = 0;
    assert_eq!((tcp(&request), udp(&request)), (None, is("stun")));
}

#[test]
fn stun_without_a_cookie_by_its_attributes() {
    let request = b"\0\x01\0\x08abcdefghijklmnop\0\x03\0\x04\0\0\0\x06";
    assert_eq!((udp(request), tcp(request)), (is("stun"), None));
    let answer = b"\x01\x01\0\x0cabcdefghijklmnop\0\x01\0\x08\0\x01\x12\x34\x0a\0\0\x01";
    assert_eq!(udp(answer), is("stun"));
    for (at, value) in [(0, 2), (1, 3), (3, 4), (21, 0), (21, 12), (23, 3), (23, 8)] {
        let mut other = *request;
        other[at] = value;
        assert_eq!(udp(&other), None, "{at}");
    }
    // Without attributes only the port shows what it is.
    assert_eq!(udp(b"\0\x01\0\0abcdefghijklmnop"), None);
}

#[test]
fn rdp_by_cookie_or_negotiation() {
    let request =
        b"\x03\0\0\x2a\x25\xe0\0\0\0\0\0Cookie: mstshash=eltons\r\n\x01\0\x08\0\x0b\0\0\0";
    assert_eq!(request.len(), 0x2a + 2);
    let mut request = request.to_vec();
    (request[3], request[4]) = (0x2c, 0x27);
    assert_eq!(tcp(&request), is("rdp"));
    assert_eq!(tcp(b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x03\0\0\0"), is("rdp"));
    assert_eq!(tcp(b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x02\0\0\0"), is("rdp"));
    // X.224 of other protocols, such as S7: no cookie and no negotiation.
    assert_eq!(
        tcp(b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02"),
        None
    );
    assert_eq!(tcp(b"\x03\0\0\x12\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x03\0\0\0"), None);
}

#[test]
fn wireguard_by_type_and_length() {
    let message = |kind, len: usize, counter: u64| {
        let mut bytes = vec![0x5a; len];
        bytes[..4].copy_from_slice(&[kind, 0, 0, 0]);
        bytes[8..16].copy_from_slice(&counter.to_le_bytes());
        udp(&bytes)
    };
    for (kind, len) in [(1, 148), (2, 92), (3, 64), (4, 32), (4, 1456)] {
        assert_eq!(message(kind, len, 32), is("wireguard"));
        assert_eq!(message(kind, len + 1, 32), None);
    }
    assert_eq!((message(4, 32, 7), message(4, 96, 7)), (is("wireguard"), None));
    assert_eq!((message(4, 32, 1 << 40), message(4, 16, 0), message(5, 64, 0)), (None, None, None));
}

#[test]
fn openvpn_hard_resets() {
    const SESSION: &[u8] = b"\x11\x22\x33\x44\x55\x66\x77\x88";
    const ACK: &[u8] = b"\x01\0\0\0\0\x99\x88\x77\x66\x55\x44\x33\x22\0\0\0\0";
    const REPLAY: &[u8] = b"\0\0\0\x01\x65\x43\x21\x01";
    let hmac = |len| vec![0xa5_u8; len];
    let mut key = vec![0xb6; 300];
    key[298..].copy_from_slice(&300_u16.to_be_bytes());
    let packets = [
        [b"\x38", SESSION, &[0; 5]].concat(),
        [b"\x40", SESSION, ACK].concat(),
        [b"\x38", SESSION, &hmac(20), REPLAY, &[0; 5]].concat(),
        [b"\x38", SESSION, &hmac(64), REPLAY, &[0; 5]].concat(),
        [b"\x40", SESSION, &hmac(32), REPLAY, ACK].concat(),
        [b"\x38", SESSION, REPLAY, &hmac(37)].concat(),
        [b"\x40", SESSION, REPLAY, &hmac(49)].concat(),
        [b"\x50", SESSION, b"\x0f\0\0\x01", &REPLAY[4..], &hmac(37), &key].concat(),
    ];
    for packet in &packets {
        assert_eq!(udp(packet), is("openvpn"), "{packet:x?}");
        let over_tcp = [&(packet.len() as u16).to_be_bytes()[..], packet].concat();
        assert_eq!(tcp(&over_tcp), is("openvpn"), "{packet:x?}");
        assert_eq!(udp(&packet[..packet.len() - 1]), None);
        assert_eq!(tcp(&over_tcp[..over_tcp.len() - 1]), None);
        let other_key = [&[packet[0] | 1][..], &packet[1..]].concat();
        assert_eq!(udp(&other_key), None);
    }
    assert_eq!(udp(&[0x38; 14]), None);
    assert_eq!(udp(&[b"\x38", SESSION, b"\0\0\0\0\x01"].concat()), None);
}

#[test]
fn snmp_of_each_version() {
    let v2 = b"\x30\x26\x02\x01\x01\x04\x06public\xa0\x19\x02\x01\x01\x02\x01\0\x02\x01\0\x30\x0e\x30\x0c\x06\x08\x2b\x06\x01\x02\x01\x01\x01\0\x05\0";
    assert_eq!(udp(v2), is("snmp"));
    assert_eq!(udp(&v2[..v2.len() - 1]), None);
    let mut ldap = *v2;
    ldap[5] = 0x60;
    assert_eq!(udp(&ldap), None);
    let v3 = b"\x30\x3a\x02\x01\x03\x30\x0f\x02\x02\x4a\x69\x02\x03\0\xff\xe3\x04\x01\x04\x02\x01\x03\x04\x10\x30\x0e\x04\0\x02\x01\0\x02\x01\0\x04\0\x04\0\x04\0\x30\x12\x04\0\x04\0\xa0\x0c\x02\x02\x37\xf0\x02\x01\0\x02\x01\0\x30\0";
    assert_eq!(udp(v3), is("snmp"));
    let mut other = *v3;
    other[4] = 2;
    assert_eq!(udp(&other), None);
}

/// Reads many pseudo-random payloads, first with any bytes, then with each byte that a payload may begin with.
#[test]
fn random_bytes_have_no_label() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let firsts = b"SIABCOREPNUMd2345EHUA+*\x13\x03\x00\x01\x02\x04\x38\x40\x50\x30";
    for round in 0..200_000_usize {
        let mut bytes = [0_u8; 160];
        bytes.iter_mut().for_each(|byte| *byte = next() as u8);
        if round % 2 == 1 {
            bytes[0] = firsts[round / 2 % firsts.len()];
        }
        let lens = [14, 26, 42, 54, 64, 66, 92, 96, 148, 160];
        let bytes = &bytes[..lens[round % lens.len()]];
        assert_eq!((tcp(bytes), udp(bytes)), (None, None), "{bytes:x?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        head in prop::sample::select(vec![
            &b""[..], b"\x30", b"\x30\x82", b"\x30\x0a\x02\x01\x01\x04", b"\x38", b"\x40", b"\x50", b"\x00\x0e\x38",
            b"\x03\0\0\x13\x0e\xe0", b"d2:ip6:", b"d2:ip18:", b"220 ", b"+OK ", b"SIP/2.0 ", b"\x04\0\0\0",
            b"\0\x01\0\0\x21\x12\xa4\x42", b"EHLO ", b"USER ",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..100),
        port in prop::sample::select(vec![21_u16, 50_000]),
    ) {
        let bytes = [head, &rest].concat();
        for protocol in [6, 17] {
            let record = &PacketRecord { protocol, dst_port: port, ..PacketRecord::EMPTY };
            let _ = Labels::read(&mut (), &Payload { record, bytes: &bytes, sequence: 0 }, &mut |_, _| {});
        }
    }
}

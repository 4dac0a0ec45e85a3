//! Protocols of which only the name is a fact, recognised by their first bytes on any port.
//!
//! Each line of the tables below is a protocol and the test of a payload. The tests are strict: they check lengths,
//! constants and the end of text lines, because no label is better than a wrong one. They look at one payload, so a
//! protocol that is recognisable only over several packets (RTP, uTP) has none.
//!
//! | label | recognised by | source |
//! |---|---|---|
//! | `sip` | request or status line with `SIP/2.0` | RFC 3261, section 7 |
//! | `smtp` | greeting `220` with SMTP, `EHLO`, `HELO` | RFC 5321, sections 3.1 and 4.1.1.1 |
//! | `ftp` | greeting `220` with FTP, `331` with password; to port 21 `USER`, `AUTH` | RFC 959, section 5.4 |
//! | `pop3`, `imap` | greeting `+OK` with text; `* OK` or `* PREAUTH` | RFC 1939, section 4; RFC 9051, section 7.1 |
//! | `bittorrent` | handshake; DHT, UDP tracker and local discovery messages | BEP 3, 5, 14, 15, 42 |
//! | `stun` | magic cookie, message length; without the cookie also the attributes | RFC 8489, section 5; RFC 3489, section 11 |
//! | `rdp` | X.224 connection request and confirm with cookie or negotiation | MS-RDPBCGR, section 2.2.1 |
//! | `wireguard` | message type and length | WireGuard protocol, section 5.4 |
//! | `openvpn` | control packets of a hard reset with the length of one of its forms | OpenVPN's protocol documentation |
//! | `snmp` | BER sequence of version, community or header, and request | RFC 1157, RFC 3416, RFC 3412 |

use ringtap_wire::Flags;

use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

/// Longest first line of a text protocol that is searched.
const LINE_MAX: usize = 1_024;

/// Bytes of text, up to the end of a line.
const TEXT: Bytes = Bytes::of(&{
    let (mut bytes, mut at) = ([b'\r'; 97], 0);
    while at < 95 {
        bytes[at] = b' ' + at as u8;
        at += 1;
    }
    (bytes[95], bytes[96]) = (b'\n', b'\t');
    bytes
});

/// Two zero bits, and bytes of the magic cookie.
const STUN: Opening = Opening {
    first: Bytes::range(0, 0x3f),
    sixth: Bytes::of(&[0x12]),
    eighth: Bytes::of(&[0x42]),
    ..Opening::ANY
};

/// The first bytes of type and length. Of the transaction, which is random, two bytes are not both 0: zeros alone are
/// frequent filler.
const OLD_STUN: Opening =
    Opening { first: Bytes::of(&[0, 1]), third: Bytes::of(&[0]), ..Opening::ANY };
const NOT_0: Bytes = Bytes::range(1, 0xff);

pub(crate) struct Labels;

type Recognise = fn(&Payload<'_>) -> bool;

const OVER_TCP: [(&[u8], Recognise); 9] = [
    (b"sip", sip),
    (b"smtp", smtp),
    (b"ftp", ftp),
    (b"pop3", pop3),
    (b"imap", imap),
    (b"bittorrent", handshake),
    (b"stun", stun),
    (b"rdp", rdp),
    (b"openvpn", openvpn_over_tcp),
];

const OVER_UDP: [(&[u8], Recognise); 7] = [
    (b"sip", sip),
    (b"bittorrent", dht),
    (b"stun", stun),
    (b"stun", old_stun),
    (b"wireguard", wireguard),
    (b"openvpn", openvpn_over_udp),
    (b"snmp", snmp),
];

impl Extractor for Labels {
    // SIP, SMTP, FTP, POP3, IMAP; BitTorrent; STUN; RDP; OpenVPN.
    const TCP: &'static [Opening] = &[
        Opening {
            first: Bytes::of(b"SIABCOREPNUM23EHehUA+*"),
            third: Bytes::of(b"PVKENTGABFSD01LlEeTO"),
            sixth: TEXT,
            eighth: TEXT,
            from: None,
            ..Opening::ANY
        },
        Opening { first: Bytes::of(&[19]), third: Bytes::of(b"i"), ..Opening::ANY },
        STUN,
        Opening {
            first: Bytes::of(&[3]),
            third: Bytes::of(&[0]),
            sixth: Bytes::of(&[0xd0, 0xe0]),
            ..Opening::ANY
        },
        Opening {
            first: Bytes::of(&[0, 1, 2, 3, 4]),
            third: Bytes::of(&[0x38, 0x40, 0x50]),
            ..Opening::ANY
        },
    ];
    // SIP; BitTorrent, and its trackers; STUN, with its cookie and without; WireGuard; OpenVPN; SNMP.
    const UDP: &'static [Opening] = &[
        Opening {
            first: Bytes::of(b"SIABCOREPNUM"),
            third: TEXT,
            sixth: TEXT,
            eighth: TEXT,
            from: None,
            ..Opening::ANY
        },
        Opening { first: Bytes::of(b"d"), third: Bytes::of(b":"), ..Opening::ANY },
        Opening { first: Bytes::of(b"d"), third: Bytes::of(b"i"), ..Opening::ANY },
        Opening {
            first: Bytes::of(&[0]),
            third: Bytes::of(&[4]),
            sixth: Bytes::of(&[16]),
            eighth: Bytes::of(&[128]),
            from: None,
            ..Opening::ANY
        },
        STUN,
        Opening { sixth: NOT_0, ..OLD_STUN },
        Opening { eighth: NOT_0, ..OLD_STUN },
        Opening { first: Bytes::range(1, 4), third: Bytes::of(&[0]), ..Opening::ANY },
        Opening { first: Bytes::of(&[0x38, 0x40, 0x50]), ..Opening::ANY },
        Opening { first: Bytes::of(&[0x30]), ..Opening::ANY },
    ];

    type State = ();

    #[inline]
    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let table: &[(&[u8], Recognise)] =
            if payload.record.protocol == 6 { &OVER_TCP } else { &OVER_UDP };
        match table.iter().find(|(_, recognise)| recognise(payload)) {
            Some((label, _)) => {
                found(Kind::Protocol, label);
                Ok(Progress::Done)
            }
            None => Ok(Progress::Other),
        }
    }
}

/// The first line without its CR and LF, if it is complete and printable.
fn line<'a>(payload: &Payload<'a>) -> Option<&'a [u8]> {
    let bytes = &payload.bytes[..payload.bytes.len().min(LINE_MAX)];
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let line = bytes[..end].strip_suffix(b"\r")?;
    line.iter().all(|&byte| matches!(byte, b' '..=b'~' | b'\t' | 0x80..)).then_some(line)
}

/// True if `text` contains `word`, in any case.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// The text after a prefix in any case.
fn after<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Big-endian numbers at a position.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn sip(payload: &Payload<'_>) -> bool {
    const METHODS: [&[u8]; 14] = [
        b"INVITE",
        b"ACK",
        b"BYE",
        b"CANCEL",
        b"OPTIONS",
        b"REGISTER",
        b"PRACK",
        b"SUBSCRIBE",
        b"NOTIFY",
        b"PUBLISH",
        b"INFO",
        b"REFER",
        b"MESSAGE",
        b"UPDATE",
    ];
    if !payload.bytes.first().is_some_and(u8::is_ascii_uppercase) {
        return false;
    }
    if let Some(status) = payload.bytes.strip_prefix(b"SIP/2.0 ") {
        return matches!(status, [b'1'..=b'6', b'0'..=b'9', b'0'..=b'9', b' ', ..])
            && line(payload).is_some();
    }
    let known = METHODS.iter().any(|method| {
        payload.bytes.strip_prefix(*method).is_some_and(|rest| rest.first() == Some(&b' '))
    });
    known && line(payload).is_some_and(|line| line.ends_with(b" SIP/2.0"))
}

/// The text of a line that begins with a reply code: `220 text` or `220-text`.
fn reply<'a>(payload: &Payload<'a>, code: &[u8]) -> Option<&'a [u8]> {
    let rest = payload.bytes.strip_prefix(code)?;
    matches!(rest, [b' ' | b'-', ..]).then(|| line(payload)?.get(code.len() + 1..)).flatten()
}

fn smtp(payload: &Payload<'_>) -> bool {
    if let Some(text) = reply(payload, b"220") {
        return contains(text, b"SMTP");
    }
    let hello = |hello: &[u8]| -> Option<bool> {
        after(payload.bytes, hello)?;
        let name = line(payload)?.get(hello.len()..)?;
        // One name or address; nothing else of a mail may follow it.
        let sole = name.iter().all(u8::is_ascii_graphic) && !name.is_empty();
        Some(sole && payload.bytes.len() == hello.len() + name.len() + 2)
    };
    hello(b"EHLO ").or_else(|| hello(b"HELO ")) == Some(true)
}

fn ftp(payload: &Payload<'_>) -> bool {
    if let Some(text) = reply(payload, b"220") {
        return contains(text, b"FTP") || contains(text, b"FileZilla Server");
    }
    if let Some(text) = reply(payload, b"331") {
        return contains(text, b"password");
    }
    // POP3 and IRC have a command USER, too.
    payload.record.dst_port == 21
        && line(payload).is_some_and(|line| {
            let command = after(line, b"USER ").or_else(|| after(line, b"AUTH "));
            command.is_some_and(|name| !name.is_empty())
        })
}

/// `+OK` alone is a reply of Redis and NATS.
fn pop3(payload: &Payload<'_>) -> bool {
    payload.bytes.starts_with(b"+OK ") && line(payload).is_some_and(|line| line.len() > 4)
}

fn imap(payload: &Payload<'_>) -> bool {
    let greeting = [&b"* OK "[..], b"* PREAUTH "].iter().any(|own| payload.bytes.starts_with(own));
    greeting && line(payload).is_some()
}

fn handshake(payload: &Payload<'_>) -> bool {
    payload.bytes.starts_with(b"\x13BitTorrent protocol")
}

fn dht(payload: &Payload<'_>) -> bool {
    /// Identifies the protocol of UDP trackers; followed by action 0, connect.
    const TRACKER: &[u8] = b"\0\0\x04\x17\x27\x10\x19\x80\0\0\0\0";
    let bytes = payload.bytes;
    // The sender's address may come before an answer (BEP 42): 6 bytes, or 18 of IPv6.
    let address = [(&b"d2:ip6:"[..], 6), (b"d2:ip18:", 18)];
    let answer = address.iter().any(|(head, len)| {
        bytes
            .strip_prefix(*head)
            .and_then(|rest| rest.get(*len..))
            .is_some_and(|rest| rest.starts_with(b"1:rd2:id20:"))
    });
    answer
        || bytes.starts_with(b"d1:ad2:id20:")
        || bytes.starts_with(b"d1:rd2:id20:")
        || bytes.starts_with(b"BT-SEARCH * HTTP/1.1\r\n")
        || bytes.len() == 16 && bytes.starts_with(TRACKER)
}

fn stun(payload: &Payload<'_>) -> bool {
    const HEADER: usize = 20;
    const COOKIE: u32 = 0x2112_a442;
    let bytes = payload.bytes;
    if bytes.len() < HEADER || bytes[0] >> 6 != 0 || u32_at(bytes, 4) != Some(COOKIE) {
        return false;
    }
    let len = u16_at(bytes, 2).map_or(0, usize::from);
    let whole = match payload.record.protocol {
        6 => bytes.len() >= HEADER + len,
        _ => bytes.len() == HEADER + len,
    };
    // The method is assigned: 1 to 12, and 128 (RFC 8489, section 18.2).
    let kind = u16_at(bytes, 0).unwrap_or(0);
    let method = kind & 0xf | kind >> 1 & 0x70 | kind >> 2 & 0xf80;
    len.is_multiple_of(4) && whole && matches!(method, 1..=12 | 0x80)
}

/// STUN before it had a cookie. A message without attributes is recognised from and to its ports alone.
fn old_stun(payload: &Payload<'_>) -> bool {
    const HEADER: usize = 20;
    const PORTS: [u16; 2] = [3478, 3479];
    /// Requests, answers and errors of Binding and Shared Secret.
    const TYPES: [u16; 6] = [0x001, 0x101, 0x111, 0x002, 0x102, 0x112];
    let (bytes, record) = (payload.bytes, payload.record);
    let (Some(kind), Some(len)) = (u16_at(bytes, 0), u16_at(bytes, 2)) else { return false };
    let Some(mut rest) = bytes.get(HEADER..).filter(|rest| rest.len() == usize::from(len)) else {
        return false;
    };
    if !TYPES.contains(&kind) {
        return false;
    }
    if rest.is_empty() {
        return [record.src_port, record.dst_port].iter().any(|port| PORTS.contains(port));
    }
    while !rest.is_empty() {
        let (Some(attribute), Some(len)) = (u16_at(rest, 0), u16_at(rest, 2)) else { return false };
        let fits = match attribute {
            // Addresses, what to change, integrity, XOR-MAPPED-ADDRESS of later drafts.
            1 | 2 | 4 | 5 | 11 | 0x8020 => len == 8,
            3 => len == 4,
            8 => len == 20,
            // Name, password, error, unknown attributes, software.
            6 | 7 | 9 | 10 | 0x8022 => len.is_multiple_of(4),
            _ => false,
        };
        let Some(behind) = rest.get(4 + usize::from(len)..).filter(|_| fits) else { return false };
        rest = behind;
    }
    true
}

fn rdp(payload: &Payload<'_>) -> bool {
    const REQUEST: u8 = 0xe0;
    const CONFIRM: u8 = 0xd0;
    let bytes = payload.bytes;
    // TPKT: version 3, length; X.224: length, type, two references, class 0.
    let &[3, 0, len0, len1, own_len, kind, _, _, _, _, 0, ..] = bytes else { return false };
    let len = usize::from(u16::from_be_bytes([len0, len1]));
    let (Some(rest), true) = (bytes.get(11..len), len == usize::from(own_len) + 5) else {
        return false;
    };
    // Type, flags, length 8 in little-endian, and four bytes.
    let negotiation = |types: &[u8]| {
        let part = rest.last_chunk::<8>();
        part.is_some_and(|part| {
            types.contains(&part[0]) && part[2..4] == [8, 0] && part[5..8] == [0; 3]
        })
    };
    match kind {
        REQUEST => {
            let cookie = [&b"Cookie: mstshash="[..], b"Cookie: msts="];
            cookie.iter().any(|own| rest.starts_with(own)) || negotiation(&[1])
        }
        CONFIRM => rest.len() == 8 && negotiation(&[2, 3]),
        _ => false,
    }
}

/// Of the data, keep-alives and every 16th message: a flow of any length has a label, at a fraction of the work. Which
/// ones depends on the counter in the message alone.
fn wireguard(payload: &Payload<'_>) -> bool {
    const KEEP_ALIVE: usize = 32;
    let bytes = payload.bytes;
    let &[kind, 0, 0, 0, ..] = bytes else { return false };
    match (kind, bytes.len()) {
        (1, 148) | (2, 92) | (3, 64) => true,
        (4, len @ KEEP_ALIVE..) if len % 16 == 0 => {
            // No connection counts beyond 2⁴⁰ messages before it has new keys.
            bytes[13..16] == [0; 3] && (len == KEEP_ALIVE || bytes[8].is_multiple_of(16))
        }
        _ => false,
    }
}

fn openvpn_over_tcp(payload: &Payload<'_>) -> bool {
    let Some(len) = u16_at(payload.bytes, 0).map(usize::from) else { return false };
    payload.bytes.get(2..2 + len).is_some_and(hard_reset)
}

fn openvpn_over_udp(payload: &Payload<'_>) -> bool {
    hard_reset(payload.bytes)
}

/// A hard reset of an OpenVPN client or server with key 0, in one of its three forms:
///
/// ```text
/// | op | session, 8 |                              acknowledgement | packet 0 |    plain
/// | op | session, 8 | HMAC, 16 to 64 | replay, 4 + 4 time | … the same           tls-auth
/// | op | session, 8 | replay, 4 + 4 time | HMAC, 32 | … the same, encrypted      tls-crypt, and a wrapped key
/// ```
///
/// The acknowledgement is a zero from the client; from the server it is a count of 1, the number 0 and the client's session.
fn hard_reset(bytes: &[u8]) -> bool {
    const CLIENT_V2: u8 = 7 << 3;
    const SERVER_V2: u8 = 8 << 3;
    const CLIENT_V3: u8 = 10 << 3;
    /// Opcode and session.
    const HEAD: usize = 9;
    /// Number and time against replays.
    const REPLAY: usize = 8;
    const HMACS: [usize; 6] = [16, 20, 28, 32, 48, 64];
    // The number of a session's first packets; the upper byte may say that keys are negotiated early.
    let first =
        |at: usize| u32_at(bytes, at).is_some_and(|number| matches!(number & 0xf0ff_ffff, 1..=15));
    let (Some(&op), Some(session)) = (bytes.first(), bytes.get(1..HEAD)) else { return false };
    if session.iter().all(|&byte| byte == session[0]) {
        return false;
    }
    let zeros = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(|&byte| byte == 0))
    };
    let body = match op {
        CLIENT_V2 => 5,
        SERVER_V2 => 17,
        CLIENT_V3 => {
            // The wrapped key ends with its length.
            let (crypt, len) = (HEAD + REPLAY + 32 + 5, bytes.len());
            let wrapped = len.checked_sub(2).and_then(|at| u16_at(bytes, at)).map(usize::from);
            return first(HEAD) && len > crypt && wrapped == Some(len - crypt);
        }
        _ => return false,
    };
    let is_body = |at: usize| match op {
        CLIENT_V2 => zeros(at..at + 5),
        _ => bytes.get(at) == Some(&1) && zeros(at + 1..at + 5) && zeros(at + 13..at + 17),
    };
    let Some(more) = bytes.len().checked_sub(HEAD + body) else { return false };
    let signed = || {
        let hmac = more.checked_sub(REPLAY)?;
        (HMACS.contains(&hmac) && first(HEAD + hmac) && is_body(HEAD + hmac + REPLAY)).then_some(())
    };
    more == 0 && is_body(HEAD) || signed().is_some() || more == REPLAY + 32 && first(HEAD)
}

fn snmp(payload: &Payload<'_>) -> bool {
    let whole = !payload.record.flags.contains(Flags::TRUNCATED);
    whole && snmp_message(payload.bytes).is_some()
}

/// `Some` if the bytes are an SNMP message.
fn snmp_message(bytes: &[u8]) -> Option<()> {
    const INTEGER: u8 = 0x02;
    const OCTETS: u8 = 0x04;
    const SEQUENCE: u8 = 0x30;
    let only = |(value, rest): (_, &[u8])| rest.is_empty().then_some(value);
    let message = only(value(bytes, SEQUENCE)?)?;
    let (version, rest) = value(message, INTEGER)?;
    match version {
        [0 | 1] => {
            let (_community, rest) = value(rest, OCTETS)?;
            // The requests of both versions: 0xa0 to 0xa8.
            let kind = *rest.first().filter(|kind| matches!(kind, 0xa0..=0xa8))?;
            let request = only(value(rest, kind)?)?;
            // A trap of version 1 begins with an object identifier, all others with a number.
            value(request, if kind == 0xa4 { 0x06 } else { INTEGER }).map(|_| ())
        }
        [3] => {
            let (header, rest) = value(rest, SEQUENCE)?;
            let (_id, header) = value(header, INTEGER)?;
            let (_size, header) = value(header, INTEGER)?;
            let (flags, header) = value(header, OCTETS)?;
            let model = only(value(header, INTEGER)?)?;
            value(rest, OCTETS)?;
            (flags.len() == 1 && model.len() == 1).then_some(())
        }
        _ => None,
    }
}

/// The contents of a BER value with this tag, and the bytes behind it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[own, first], rest) = bytes.split_first_chunk()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => (usize::from(u16_at(rest, 0)?), &rest[2..]),
        _ => return None,
    };
    (own == tag).then(|| rest.split_at_checked(len)).flatten()
}

#[cfg(test)]
mod tests;

//! The bytes of messages and the facts in them: hellos of TLS 1.3 (RFC 8446), HTTP/1.1 (RFC 9112), DNS (RFC 1035).
//!
//! The hellos have few shapes, so that their fingerprints are constants: computed from the lists below by other programs,
//! and those of TLS over TCP compared with tshark's.
//!
//! Invariant: everything follows from the exchange; a buffer with enough room does not grow.

use std::fmt::{Display, Formatter};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::exchange::{Exchange, Protocol};
use super::names::Name;
use super::quic::Initial;
use crate::keyed::mix;

/// Most bytes of a message.
pub(super) const MESSAGE_MAX: usize = 1 << 15;

/// A message of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The ClientHello in a record.
    ClientHello,
    /// The ServerHello in a record, and encrypted records.
    ServerHello,
    /// The end of the client's handshake, and an encrypted record.
    Finished,
    /// Encrypted records.
    Encrypted,
    /// The request with this number.
    Request(u8),
    /// Its response.
    Response(u8),
    /// The question for an A (0) or AAAA record (1).
    Query(u8),
    /// Its answer.
    Answer(u8),
    /// A client's Initial packet with the first or second part of its hello.
    ClientInitial(u8),
    /// A server's Initial packet with its hello.
    ServerInitial,
    /// A QUIC packet with a short header, of the client (0) or the server (1).
    Short(u8),
    /// The version line of SSH, of the client (0) or the server (1).
    Version(u8),
    /// An SSH packet.
    Binary,
}

/// The fields of facts, by their names in flow records.
mod field {
    pub(super) const PROTOCOL: &str = "applicationProtocol";
    pub(super) const SERVER_NAME: &str = "tlsServerName";
    pub(super) const VERSION: &str = "tlsVersion";
    pub(super) const CLIENT_VERSION: &str = "tlsClientVersion";
    pub(super) const ALPN: &str = "tlsAlpn";
    pub(super) const CIPHER: &str = "tlsCipher";
    pub(super) const JA3: &str = "ja3";
    pub(super) const JA3S: &str = "ja3s";
    pub(super) const JA4: &str = "ja4";
    pub(super) const QUIC_VERSION: &str = "quicVersion";
    pub(super) const QUERY_NAME: &str = "dnsQueryName";
    pub(super) const QUERY_TYPE: &str = "dnsQueryType";
    pub(super) const RESPONSE_CODE: &str = "dnsResponseCode";
    pub(super) const ANSWERS: &str = "dnsAnswers";
    pub(super) const ID: &str = "dnsId";
    pub(super) const FLAGS: &str = "dnsFlags";
    pub(super) const RECORDS: &str = "dnsRecords";
    pub(super) const SSH: [&str; 2] = ["sshClient", "sshServer"];
    pub(super) const METHOD: &str = "httpMethod";
    pub(super) const HOST: &str = "httpHost";
    pub(super) const TARGET: &str = "httpTarget";
    pub(super) const USER_AGENT: &str = "httpUserAgent";
    pub(super) const STATUS: &str = "httpStatus";
    pub(super) const CONTENT_TYPE: &str = "httpContentType";
    pub(super) const RESPONSE_LENGTH: &str = "httpResponseLength";
}

/// Fields of which a flow has several values.
pub(super) const LISTS: [&str; 14] = [
    field::PROTOCOL,
    field::ALPN,
    field::QUERY_NAME,
    field::QUERY_TYPE,
    field::ANSWERS,
    field::FLAGS,
    field::RECORDS,
    field::METHOD,
    field::HOST,
    field::TARGET,
    field::USER_AGENT,
    field::STATUS,
    field::CONTENT_TYPE,
    field::RESPONSE_LENGTH,
];

/// The time from a question to its answer, microseconds.
pub(super) const RESPONSE_TIME: &str = "dnsResponseMicroseconds";

/// A cipher suite, its name and the JA3S of a server that selects it.
const CIPHERS: [(u16, &str, &str); 2] = [
    (0x1301, "TLS_AES_128_GCM_SHA256", "f4febc55ea12b31ae17cfb7e614afda8"),
    (0x1302, "TLS_AES_256_GCM_SHA384", "15af977ce25de452b96affa2addb1036"),
];
/// Time to live of DNS records, seconds.
const TTL: u32 = 300;
const CONTENT_TYPE: &str = "text/plain";
const AGENTS: [&str; 4] = ["agent/1.0", "agent/2.5 (X11; Linux)", "fetch/7.88.1", "robot"];
const SIGNATURES: [u16; 8] = [0x403, 0x804, 0x401, 0x503, 0x805, 0x501, 0x806, 0x601];
/// X25519MLKEM768, x25519 and secp256r1; the first with a long key share.
const GROUPS: [u16; 3] = [0x11ec, 29, 23];
const LONG_KEY: usize = 1216;
const KEY: usize = 32;

impl Exchange {
    /// Appends the bytes of a message to `out`. `len` is the length of messages with filler, else unused.
    pub(super) fn write(&self, kind: Kind, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        match kind {
            Kind::ClientHello => self.record(1, out, |out| self.client_hello(out)),
            Kind::ServerHello => {
                self.record(3, out, |out| self.server_hello(out));
                out.extend_from_slice(&[20, 3, 3, 0, 1, 1]);
                self.encrypted(start + len, out);
            }
            Kind::Finished => {
                out.extend_from_slice(&[20, 3, 3, 0, 1, 1]);
                self.encrypted(start + len, out);
            }
            Kind::Encrypted => self.encrypted(start + len, out),
            Kind::Request(number) => self.request(number, out),
            Kind::Response(number) => {
                self.response(number, out);
                let text = b"abcdefghijklmnopqrstuvwxyz, abcdefghijklmnopqrstuvwxyz.\n".iter();
                let missing = (start + len).saturating_sub(out.len());
                out.extend(text.cycle().take(missing));
            }
            Kind::Query(number) => self.dns(number, false, out),
            Kind::Answer(number) => self.dns(number, true, out),
            Kind::ClientInitial(_) | Kind::ServerInitial => self.initial(kind, out),
            Kind::Short(from) => {
                out.push(0x40 | self.bits(9) as u8 & 0x3f);
                out.extend_from_slice(&self.connection(from == 1));
                self.random(start + len, out);
            }
            Kind::Version(from) => {
                let _ = write!(out, "{}\r\n", self.version(from));
            }
            Kind::Binary => {
                // The length of the packet without these four bytes (RFC 4253, section 6).
                out.extend_from_slice(&(len.saturating_sub(4) as u32).to_be_bytes());
                self.random(start + len, out);
            }
        }
    }

    /// The bytes at the beginning of a message in which its facts are, and the length of the message without filler.
    pub(super) fn lengths(&self, kind: Kind, scratch: &mut Vec<u8>) -> (usize, usize) {
        scratch.clear();
        self.write(kind, 0, scratch);
        match kind {
            Kind::ServerHello => (scratch.len() - 6, scratch.len()),
            Kind::Finished | Kind::Encrypted | Kind::Short(_) | Kind::Binary => (0, 0),
            // The body of a request follows its head.
            Kind::Request(_) => (head_len(scratch), scratch.len()),
            _ => (scratch.len(), scratch.len()),
        }
    }

    /// Passes the facts of a message in the order in which they are read.
    pub(super) fn facts(&self, kind: Kind, mut each: impl FnMut(&'static str, String)) {
        let long = self.long();
        let (_, cipher, ja3s) = CIPHERS[self.cipher()];
        match kind {
            Kind::ClientHello => {
                each(field::PROTOCOL, "tls".into());
                each(field::SERVER_NAME, self.name().to_string());
                each(field::CLIENT_VERSION, "TLS 1.3".into());
                each(field::ALPN, "h2".into());
                each(field::ALPN, "http/1.1".into());
                let ja3 = ["3407354ee8b7f588c2c7067046e2fb64", "9a1737a06eca851b959ef71814584732"];
                each(field::JA3, ja3[usize::from(long)].into());
                each(field::JA4, "t13d0708h2_04ca88ad2b9b_27e1a4e77d38".into());
            }
            Kind::ClientInitial(_) => {
                each(field::PROTOCOL, "quic".into());
                each(field::QUIC_VERSION, "1".into());
                each(field::SERVER_NAME, self.name().to_string());
                each(field::CLIENT_VERSION, "TLS 1.3".into());
                each(field::ALPN, "h3".into());
                let ja3 = ["c47f12ba3d9a132503f7b8a27ab5c0a0", "fff51fcb6764621ea4389e6f9e2e5199"];
                each(field::JA3, ja3[usize::from(long)].into());
                each(field::JA4, "q13d0308h3_55b375c5d22e_1b7ced03430d".into());
            }
            Kind::ServerHello | Kind::ServerInitial => {
                let quic = kind == Kind::ServerInitial;
                each(field::PROTOCOL, if quic { "quic".into() } else { "tls".into() });
                if quic {
                    each(field::QUIC_VERSION, "1".into());
                }
                each(field::VERSION, "TLS 1.3".into());
                each(field::CIPHER, cipher.into());
                each(field::JA3S, ja3s.into());
            }
            Kind::Request(number) => {
                each(field::PROTOCOL, "http".into());
                each(field::METHOD, self.method(number).into());
                each(field::HOST, self.name().to_string());
                each(field::TARGET, self.target(number).to_string());
                each(field::USER_AGENT, self.agent().into());
            }
            Kind::Response(number) => {
                each(field::PROTOCOL, "http".into());
                each(field::STATUS, self.status(number).0.to_string());
                each(field::CONTENT_TYPE, CONTENT_TYPE.into());
                let length = if self.has_body(number) { self.body(number) } else { 0 };
                each(field::RESPONSE_LENGTH, length.to_string());
            }
            Kind::Query(number) | Kind::Answer(number) => {
                let asks = matches!(kind, Kind::Query(_));
                let record_type = if number == 0 { "A" } else { "AAAA" };
                let mut owner = self.name();
                each(field::PROTOCOL, "dns".into());
                each(field::ID, self.dns_id(number).to_string());
                each(field::FLAGS, if asks { "RD".into() } else { "RD RA".into() });
                each(field::QUERY_NAME, owner.to_string());
                each(field::QUERY_TYPE, record_type.into());
                if asks {
                    return;
                }
                if let Some(alias) = self.alias() {
                    each(field::ANSWERS, alias.to_string());
                    each(field::RECORDS, format!("{owner} CNAME {TTL} {alias}"));
                    owner = alias;
                }
                for at in 0..self.addresses(number) {
                    let address = self.address(number, at);
                    each(field::ANSWERS, address.to_string());
                    each(field::RECORDS, format!("{owner} {record_type} {TTL} {address}"));
                }
                let code = if self.is_missing() { "NXDOMAIN" } else { "NOERROR" };
                each(field::RESPONSE_CODE, code.into());
            }
            Kind::Version(from) => {
                each(field::PROTOCOL, "ssh".into());
                each(field::SSH[usize::from(from)], self.version(from).to_string());
            }
            Kind::Finished | Kind::Encrypted | Kind::Short(_) | Kind::Binary => {}
        }
    }

    /// Whether a response has a body.
    pub(super) fn has_body(&self, number: u8) -> bool {
        self.method(number) != "HEAD" && self.status(number).0 != 304
    }

    /// 64 bits that belong to this exchange and a purpose.
    pub(super) fn bits(&self, purpose: u64) -> u64 {
        mix(self.salt ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn cipher(&self) -> usize {
        (self.bits(1) & 1) as usize
    }

    fn agent(&self) -> &'static str {
        AGENTS[(self.bits(2) & 3) as usize]
    }

    fn version(&self, from: u8) -> impl Display {
        let (side, minor) = (["client", "server"][usize::from(from)], self.bits(20) % 10);
        Text(move |out: &mut Formatter<'_>| write!(out, "SSH-2.0-{side}_9.{minor}"))
    }

    fn method(&self, number: u8) -> &'static str {
        ["GET", "GET", "POST", "HEAD"][(self.bits(16 + u64::from(number)) & 3) as usize]
    }

    fn target(&self, number: u8) -> impl Display {
        let bits = self.bits(16 + u64::from(number)) >> 8;
        Text(move |out: &mut Formatter<'_>| {
            write!(out, "/{}/{:x}?q={number}", bits & 7, bits >> 3 & 0xffff)
        })
    }

    fn status(&self, number: u8) -> (u16, &'static str) {
        const ALL: [(u16, &str); 4] =
            [(200, "OK"), (200, "OK"), (304, "Not Modified"), (404, "Not Found")];
        ALL[(self.bits(16 + u64::from(number)) >> 32 & 3) as usize]
    }

    /// The name of which an answer says that the queried one is an alias.
    fn alias(&self) -> Option<Name> {
        (!self.is_missing() && self.bits(3) & 3 == 0).then_some(Name(self.name().0 | 1 << 20))
    }

    /// Addresses in an answer: as many for each protocol.
    fn addresses(&self, number: u8) -> u8 {
        if self.is_missing() { 0 } else { 1 + (self.bits(4 + u64::from(number)) % 3) as u8 }
    }

    fn address(&self, number: u8, at: u8) -> IpAddr {
        let bits = mix(u64::from(self.name().0) << 8 | u64::from(at));
        match number {
            0 => Ipv4Addr::from(0xcb00_7100 | bits as u32 & 0x3f | u32::from(at) << 6).into(),
            _ => Ipv6Addr::from(
                0x2001_0db8 << 96 | 0xff << 64 | u128::from(bits) << 2 | u128::from(at),
            )
            .into(),
        }
    }

    /// A record of the handshake; `minor` is its version's.
    fn record(&self, minor: u8, out: &mut Vec<u8>, fragment: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(&[22, 3, minor]);
        vector(out, fragment);
    }

    /// Encrypted records up to this length of `out`.
    fn encrypted(&self, end: usize, out: &mut Vec<u8>) {
        while end.saturating_sub(out.len()) > 5 {
            out.extend_from_slice(&[23, 3, 3]);
            let fragment = (end - out.len() - 2).min(4096);
            vector(out, |out| self.random(out.len() + fragment, out));
        }
        out.resize(end.max(out.len()), 0);
    }

    /// Random bytes up to this length of `out`.
    fn random(&self, end: usize, out: &mut Vec<u8>) {
        let mut at = 0;
        while out.len() < end {
            let bytes = mix(self.salt.wrapping_add(at)).to_le_bytes();
            out.extend_from_slice(&bytes[..(end - out.len()).min(8)]);
            at += 1;
        }
    }

    fn client_hello(&self, out: &mut Vec<u8>) {
        let quic = self.protocol == Protocol::Quic;
        let long = self.long();
        // RFC 8701: values without a meaning.
        let grease = 0x0a0a + 0x1010 * (self.bits(6) & 15) as u16;
        message(1, out, |out| {
            half(out, 0x0303);
            self.random(out.len() + 32, out);
            let id = if quic { 0 } else { 32 };
            out.push(id);
            self.random(out.len() + usize::from(id), out);
            vector(out, |out| {
                half(out, grease);
                [0x1301, 0x1302, 0x1303].into_iter().for_each(|cipher| half(out, cipher));
                if !quic {
                    [0xc02b, 0xc02f, 0xc02c, 0xc030]
                        .into_iter()
                        .for_each(|cipher| half(out, cipher));
                }
            });
            out.extend_from_slice(&[1, 0]);
            vector(out, |out| {
                extension(grease, out, |_| {});
                extension(0, out, |out| {
                    vector(out, |out| {
                        out.push(0);
                        // A vector of bytes takes every text.
                        vector(out, |out| drop(write!(out, "{}", self.name())));
                    });
                });
                let groups = if long { &GROUPS[..] } else { &GROUPS[1..] };
                extension(10, out, |out| {
                    vector(out, |out| groups.iter().for_each(|&group| half(out, group)));
                });
                if !quic {
                    extension(11, out, |out| out.extend_from_slice(&[1, 0]));
                }
                extension(13, out, |out| {
                    vector(out, |out| SIGNATURES.iter().for_each(|&one| half(out, one)));
                });
                extension(16, out, |out| {
                    let names = if quic { &b"\x02h3"[..] } else { b"\x02h2\x08http/1.1" };
                    vector(out, |out| out.extend_from_slice(names));
                });
                let versions = if quic { &[2, 3, 4][..] } else { &[4, 3, 4, 3, 3] };
                extension(43, out, |out| out.extend_from_slice(versions));
                extension(45, out, |out| out.extend_from_slice(&[1, 1]));
                extension(51, out, |out| {
                    vector(out, |out| {
                        for (group, len) in [(GROUPS[0], LONG_KEY), (GROUPS[1], KEY)] {
                            if long || group != GROUPS[0] {
                                half(out, group);
                                vector(out, |out| self.random(out.len() + len, out));
                            }
                        }
                    });
                });
                if quic {
                    // initial_source_connection_id (RFC 9000, section 18.2).
                    extension(57, out, |out| {
                        out.extend_from_slice(&[15, 8]);
                        out.extend_from_slice(&self.connection(true));
                    });
                }
            });
        });
    }

    fn server_hello(&self, out: &mut Vec<u8>) {
        let quic = self.protocol == Protocol::Quic;
        message(2, out, |out| {
            half(out, 0x0303);
            self.random(out.len() + 32, out);
            let id = if quic { 0 } else { 32 };
            out.push(id);
            self.random(out.len() + usize::from(id), out);
            half(out, CIPHERS[self.cipher()].0);
            out.push(0);
            vector(out, |out| {
                extension(43, out, |out| half(out, 0x0304));
                extension(51, out, |out| {
                    half(out, GROUPS[1]);
                    vector(out, |out| self.random(out.len() + KEY, out));
                });
            });
        });
    }

    fn request(&self, number: u8, out: &mut Vec<u8>) {
        let body = if self.method(number) == "POST" { &b"name=value"[..] } else { b"" };
        let lines = Text(|out: &mut Formatter<'_>| {
            write!(out, "{} {} HTTP/1.1\r\n", self.method(number), self.target(number))?;
            write!(out, "Host: {}\r\nUser-Agent: {}\r\n", self.name(), self.agent())?;
            write!(out, "Accept: */*\r\n")?;
            if number == 0 && self.long() {
                write!(out, "Cookie: id={:01700}\r\n", self.bits(7))?;
            }
            if !body.is_empty() {
                write!(out, "Content-Length: {}\r\n", body.len())?;
            }
            write!(out, "\r\n")
        });
        // A vector of bytes takes every text.
        let _ = write!(out, "{lines}");
        out.extend_from_slice(body);
    }

    fn response(&self, number: u8, out: &mut Vec<u8>) {
        let (code, reason) = self.status(number);
        let length = if self.status(number).0 == 304 { 0 } else { self.body(number) };
        let _ = write!(
            out,
            "HTTP/1.1 {code} {reason}\r\nServer: site\r\nContent-Type: {CONTENT_TYPE}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
    }

    /// Bytes of a response's body: many short ones, up to 24 KiB.
    pub(super) fn body(&self, number: u8) -> usize {
        let bits = self.bits(32 + u64::from(number));
        ((bits as usize & 0x7fff) * 3 / 4) >> (bits >> 32 & 7)
    }

    /// The identifier of a question and its answer.
    fn dns_id(&self, number: u8) -> u16 {
        (self.bits(8) as u16).wrapping_add(u16::from(number))
    }

    fn dns(&self, number: u8, answer: bool, out: &mut Vec<u8>) {
        half(out, self.dns_id(number));
        let (flags, alias) = (if self.is_missing() { 0x8183 } else { 0x8180 }, self.alias());
        half(out, if answer { flags } else { 0x0100 });
        half(out, 1);
        let answers = u16::from(self.addresses(number)) + u16::from(alias.is_some());
        half(out, if answer { answers } else { 0 });
        half(out, 0);
        half(out, 1);
        labels(self.name(), out);
        let kind = if number == 0 { 1 } else { 28 };
        half(out, kind);
        half(out, 1);
        if answer {
            // The position of the queried name, or of its alias.
            let mut owner = 0xc00c;
            let record = |owner: u16, kind: u16, out: &mut Vec<u8>| {
                half(out, owner);
                half(out, kind);
                half(out, 1);
                out.extend_from_slice(&TTL.to_be_bytes());
            };
            if let Some(alias) = alias {
                record(owner, 5, out);
                owner = 0xc000 | (out.len() + 2) as u16;
                vector(out, |out| labels(alias, out));
            }
            for at in 0..self.addresses(number) {
                record(owner, kind, out);
                vector(out, |out| match self.address(number, at) {
                    IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
                    IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
                });
            }
        }
        // OPT (RFC 6891) for messages of 1232 bytes.
        out.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    }

    /// A connection identifier, of the client or the server.
    fn connection(&self, client: bool) -> [u8; 8] {
        self.bits(if client { 10 } else { 11 }).to_be_bytes()
    }

    fn initial(&self, kind: Kind, out: &mut Vec<u8>) {
        let first = self.bits(12).to_be_bytes();
        let from_client = kind != Kind::ServerInitial;
        // The hello is written behind the place of the packet, and removed.
        let mut hello = [0; 2048];
        let start = out.len();
        if from_client {
            self.client_hello(out)
        } else {
            self.server_hello(out)
        }
        let len = (out.len() - start).min(hello.len());
        hello[..len].copy_from_slice(&out[start..start + len]);
        out.truncate(start);
        let half = if self.long() { super::quic::CRYPTO_MAX } else { len };
        let half = half.min(len);
        let (number, at, crypto) = match kind {
            Kind::ClientInitial(1) => (1, half, &hello[half..len]),
            Kind::ClientInitial(_) => (0, 0, &hello[..half]),
            _ => (0, 0, &hello[..len]),
        };
        let packet = Initial {
            first,
            destination: if from_client { first } else { self.connection(true) },
            source: self.connection(from_client),
            from_client,
            number,
            acknowledges: !from_client,
            at,
            crypto,
        };
        let written = packet.write(out);
        debug_assert!(written.is_some(), "a hello fits in its packets");
    }
}

/// Text that a function writes.
struct Text<F>(F);

impl<F: Fn(&mut Formatter<'_>) -> std::fmt::Result> Display for Text<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        (self.0)(f)
    }
}

fn head_len(request: &[u8]) -> usize {
    request.windows(4).position(|end| end == b"\r\n\r\n").map_or(request.len(), |at| at + 4)
}

fn half(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Bytes after their number in two bytes.
fn vector(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 2]);
    write(out);
    let len = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&len.to_be_bytes());
}

/// A message of the handshake.
fn message(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0]);
    vector(out, write);
}

fn extension(kind: u16, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    half(out, kind);
    vector(out, write);
}

/// A name as labels, each after its length.
fn labels(name: Name, out: &mut Vec<u8>) {
    let mut start = out.len();
    out.push(0);
    let end = out.len();
    let _ = write!(out, "{name}");
    for at in end..out.len() {
        if out[at] == b'.' {
            out[start] = (at - start - 1) as u8;
            start = at;
        }
    }
    out[start] = (out.len() - start - 1) as u8;
    out.push(0);
}

//! Replaces whatever identifies a host or a person, with a key: addresses by [Crypto-PAn](crate::cryptopan), names and
//! texts by keyed hashes (HMAC-SHA-256, RFC 2104).
//!
//! ```text
//! mail.example.org ─▶ 16 hexadecimal digits of HMAC(mail.example.org) . of HMAC(example.org) . of HMAC(org)
//! ```
//!
//! The number of labels and common suffixes remain, so names of one domain stay together. Equal names are equal after
//! it, in any case of letters. Every kind of fact is classified in [`class`]; a new kind does not compile before it is.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use ringtap_flow::{DnsRecord, Event, FlowKey, FlowRecord, IpVersion, Kind, Path};
use sha2::Sha256;

use crate::cryptopan::CryptoPan;
use crate::recent::Recent;

/// Bytes of a hash that are kept: 16 hexadecimal digits.
const HASH_BYTES: usize = 8;

/// What a hash is of: equal texts of different domains have different hashes.
#[derive(Clone, Copy)]
enum Domain {
    Name = 1,
    Text = 2,
    Mac = 3,
}

/// The class of a fact's values.
enum Class {
    /// Describes protocols and software: kept.
    Public,
    /// A name or an address.
    Name,
    /// A name or an address, perhaps with a port.
    Host,
    /// Any text.
    Text,
    /// A version line, `SSH-2.0-text`.
    Version,
    /// A resource record of DNS.
    Record,
}

/// The class of a kind of facts.
const fn class(kind: Kind) -> Class {
    match kind {
        Kind::DnsQueryName
        | Kind::DnsAnswers
        | Kind::DhcpHostname
        | Kind::TlsCertificateNames
        | Kind::TlsCertificateSubject
        | Kind::ProxySourceAddress
        | Kind::ProxyDestinationAddress => Class::Name,
        Kind::TlsServerName | Kind::HttpHost => Class::Host,
        // The serial number and the digest identify the certificate in public lists.
        Kind::HttpTarget
        | Kind::HttpUserAgent
        | Kind::HttpReferer
        | Kind::HttpLocation
        | Kind::TlsCertificateIssuer
        | Kind::TlsCertificateSerial
        | Kind::TlsCertificateSha256 => Class::Text,
        Kind::SshClient | Kind::SshServer => Class::Version,
        Kind::DnsRecords => Class::Record,
        Kind::Protocol
        | Kind::TlsVersion
        | Kind::TlsAlpn
        | Kind::TlsCipher
        | Kind::Ja3
        | Kind::Ja3s
        | Kind::Ja4
        | Kind::QuicVersion
        | Kind::DnsQueryType
        | Kind::DnsResponseCode
        | Kind::DnsResponseTime
        | Kind::HttpMethod
        | Kind::HttpStatus
        | Kind::NtpMode
        | Kind::NtpStratum
        | Kind::TlsClientVersion
        | Kind::TlsEchConfigId
        | Kind::TlsResumption
        | Kind::TlsClientAlerts
        | Kind::TlsServerAlerts
        | Kind::TlsCertificateNotBefore
        | Kind::TlsCertificateNotAfter
        | Kind::TlsCertificateKey
        | Kind::TlsCertificateKeyBits
        | Kind::TlsCertificateSignature
        | Kind::TlsCertificateChain
        | Kind::TlsCertificateFlaws
        | Kind::ProxySourcePort
        | Kind::ProxyDestinationPort
        | Kind::DnsKind
        | Kind::DnsId
        | Kind::DnsFlags
        | Kind::DnsQueryClass
        | Kind::HttpContentType
        | Kind::HttpResponseLength
        | Kind::TcpSyn
        | Kind::TcpSynAck
        | Kind::TcpSequence
        | Kind::TcpSynAckSequence
        | Kind::HttpRequestLength
        | Kind::HttpResponseTime
        | Kind::HttpKind
        | Kind::TlsKind => Class::Public,
    }
}

/// The mapping of a key.
pub struct Anonymiser {
    addresses: CryptoPan,
    /// Keyed, and without input.
    hash: Hmac<Sha256>,
}

impl fmt::Debug for Anonymiser {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anonymiser")
    }
}

/// A keyed hash function.
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).unwrap_or_else(|_| unreachable!("keys of HMAC have any length"))
}

impl Anonymiser {
    /// The mapping of a key: its 32 bytes are those of Crypto-PAn. Names have a key that is derived from it.
    pub fn new(key: &[u8; 32]) -> Self {
        let names = keyed(key).chain_update("ringtap names").finalize().into_bytes();
        Self { addresses: CryptoPan::new(key), hash: keyed(&names) }
    }

    /// The replacement of an address.
    pub fn address(&self, address: IpAddr) -> IpAddr {
        self.addresses.address(address)
    }

    /// The replacement of a link-layer address: a hash that is locally administered, and a group address if this one is.
    /// Broadcast and the absent address remain.
    pub fn mac(&self, mac: [u8; 6]) -> [u8; 6] {
        const LOCAL: u8 = 2;
        const GROUP: u8 = 1;
        if mac == [0; 6] || mac == [0xff; 6] {
            return mac;
        }
        let [a, b, c, d, e, f, ..] = self.hash(Domain::Mac, &mac);
        [a & !GROUP | LOCAL | mac[0] & GROUP, b, c, d, e, f]
    }

    /// Appends the replacement of a name, or of an address as text.
    pub fn push_name(&self, name: &[u8], out: &mut Vec<u8>) {
        let text = std::str::from_utf8(name).unwrap_or_default();
        if let Ok(address) = text.parse::<IpAddr>() {
            return out.extend_from_slice(self.address(address).to_string().as_bytes());
        }
        self.push_labels(name, out);
    }

    /// Appends the replacement of the name of a server; a port behind it remains.
    pub fn push_host(&self, name: &[u8], out: &mut Vec<u8>) {
        let text = std::str::from_utf8(name).unwrap_or_default();
        let (host, port) = split_port(text);
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Some(Ok(address)) = inner.map(str::parse::<IpAddr>) {
            out.extend_from_slice(format!("[{}]{port}", self.address(address)).as_bytes());
        } else if text.parse::<IpAddr>().is_ok() {
            self.push_name(name, out);
        } else {
            self.push_name(&name[..name.len() - port.len()], out);
            out.extend_from_slice(port.as_bytes());
        }
    }

    fn push_labels(&self, name: &[u8], out: &mut Vec<u8>) {
        let name = name.to_ascii_lowercase();
        let suffix_of = |rest: &[u8]| rest.strip_suffix(b".").unwrap_or(rest).to_owned();
        let mut rest = &name[..];
        while !rest.is_empty() {
            let end = rest.iter().position(|&byte| byte == b'.');
            let label = &rest[..end.unwrap_or(rest.len())];
            if !label.is_empty() {
                push_hex(&self.hash(Domain::Name, &suffix_of(rest)), out);
            }
            out.extend(end.map(|_| b'.'));
            rest = end.map_or(&[], |end| &rest[end + 1..]);
        }
    }

    /// Appends the replacement of a fact's value.
    pub fn push_value(&self, kind: Kind, value: &[u8], out: &mut Vec<u8>) {
        match class(kind) {
            Class::Public => out.extend_from_slice(value),
            Class::Name => self.push_name(value, out),
            Class::Host => self.push_host(value, out),
            Class::Text => self.push_text(value, out),
            Class::Record => self.push_record(value, out),
            Class::Version => {
                let dashes = value.iter().enumerate().filter(|(_, byte)| **byte == b'-');
                let software = dashes.map(|(at, _)| at + 1).nth(1).unwrap_or(0);
                out.extend_from_slice(&value[..software]);
                self.push_text(&value[software..], out);
            }
        }
    }

    /// Appends the replacement of a resource record: type and time to live remain, and so does the form of data that is
    /// an address or a name. Other data becomes one hash.
    fn push_record(&self, value: &[u8], out: &mut Vec<u8>) {
        let Some(record) = DnsRecord::of(value) else { return self.push_text(value, out) };
        self.push_name(&record.owner(), out);
        out.push(b' ');
        if let Some(class) = record.class {
            out.extend_from_slice(class);
            out.push(b'/');
        }
        for part in [record.kind, record.ttl] {
            out.extend_from_slice(part);
            out.push(b' ');
        }
        match record.target() {
            Some(target) if *target == *record.data => self.push_name(&target, out),
            _ => self.push_text(record.data, out),
        }
    }

    fn push_text(&self, text: &[u8], out: &mut Vec<u8>) {
        if !text.is_empty() {
            push_hex(&self.hash(Domain::Text, text), out);
        }
    }

    fn hash(&self, domain: Domain, bytes: &[u8]) -> [u8; HASH_BYTES] {
        let hash = self.hash.clone().chain_update([domain as u8]).chain_update(bytes);
        let hash = hash.finalize().into_bytes();
        let mut first = [0; HASH_BYTES];
        first.copy_from_slice(&hash[..HASH_BYTES]);
        first
    }
}

/// Splits `:port` from a host; the port is empty if there is none.
pub(crate) fn split_port(text: &str) -> (&str, &str) {
    match text.rfind(':') {
        Some(at) if is_port(&text[at + 1..]) => text.split_at(at),
        _ => (text, ""),
    }
}

/// Whether this is a port, or nothing.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.is_empty() || text.parse::<u16>().is_ok())
}

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// Anonymises the items of one thread; stores recent addresses.
#[derive(Debug)]
pub(crate) struct Anonymising {
    by: Arc<Anonymiser>,
    recent: Recent<IpAddr>,
}

impl Anonymising {
    pub(crate) fn new(by: &Arc<Anonymiser>) -> Self {
        Self { by: Arc::clone(by), recent: Recent::new() }
    }

    pub(crate) fn by(&self) -> &Anonymiser {
        &self.by
    }

    pub(crate) fn address(&mut self, address: IpAddr) -> IpAddr {
        let by = &self.by;
        *self.recent.get(address, || by.address(address))
    }

    fn bytes(&mut self, version: IpVersion, address: &mut [u8; 16]) {
        match self.address(version.address(address)) {
            IpAddr::V4(own) => address[..4].copy_from_slice(&own.octets()),
            IpAddr::V6(own) => *address = own.octets(),
        }
    }

    pub(crate) fn key(&mut self, key: &mut FlowKey) {
        self.bytes(key.version, &mut key.src);
        self.bytes(key.version, &mut key.dst);
    }

    fn path(&mut self, path: &mut Path) {
        path.macs = path.macs.map(|mac| self.by.mac(mac));
        if path.outer_macs != [[0; 6]; 2] {
            path.outer_macs = path.outer_macs.map(|mac| self.by.mac(mac));
        }
        if let Some(tunnel) = &mut path.tunnel {
            let version = if tunnel.ipv6 { IpVersion::V6 } else { IpVersion::V4 };
            self.bytes(version, &mut tunnel.src);
            self.bytes(version, &mut tunnel.dst);
        }
    }

    pub(crate) fn record(&mut self, record: &mut FlowRecord) {
        self.key(&mut record.key);
        self.path(&mut record.path);
        if let Some(path) = &mut record.reverse_path {
            self.path(path);
        }
        let by = &self.by;
        record.facts = record.facts.map(|kind, value, out| by.push_value(kind, value, out));
    }

    pub(crate) fn event(&mut self, event: &mut Event) {
        self.key(&mut event.key);
        let by = &self.by;
        event.values = event.values.map(|kind, value, out| by.push_value(kind, value, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind, value: &str) -> String {
        let mut out = Vec::new();
        Anonymiser::new(&[7; 32]).push_value(kind, value.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn name(name: &str) -> String {
        value(Kind::DnsQueryName, name)
    }

    #[test]
    fn names_keep_their_labels_and_common_suffixes() {
        let [mail, www] = ["mail.example.org", "WWW.Example.org"].map(name);
        let labels = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(labels(&mail)[1..], labels(&www)[1..]);
        assert_ne!(labels(&mail)[0], labels(&www)[0]);
        assert_ne!(labels(&name("www.other.org"))[0], labels(&www)[0]);
        assert_eq!(name("www.example.org"), www);
        assert_eq!(name("www.example.org."), format!("{www}."));
        assert!(labels(&mail).iter().all(|label| label.len() == 16));
        assert_eq!((name("."), name("")), (".".into(), String::new()));
    }

    #[test]
    fn an_address_in_a_name_is_mapped_as_an_address() {
        let by = Anonymiser::new(&[7; 32]);
        let mapped = |text: &str| by.address(text.parse().unwrap()).to_string();
        assert_eq!(value(Kind::DnsAnswers, "192.0.2.1"), mapped("192.0.2.1"));
        assert_eq!(value(Kind::DnsAnswers, "2001:db8::1"), mapped("2001:db8::1"));
        assert_eq!(value(Kind::HttpHost, "192.0.2.1:8080"), mapped("192.0.2.1") + ":8080");
        assert_eq!(value(Kind::HttpHost, "[2001:db8::1]"), format!("[{}]", mapped("2001:db8::1")));
        assert_eq!(value(Kind::HttpHost, "example.org:80"), name("example.org") + ":80");
    }

    #[test]
    fn texts_are_hashed_and_protocols_remain() {
        assert_eq!(value(Kind::Ja4, "t13d"), "t13d");
        assert_eq!(value(Kind::HttpUserAgent, "curl/8").len(), 16);
        assert_ne!(value(Kind::HttpUserAgent, "curl/8"), name("curl/8"));
        let version = value(Kind::SshServer, "SSH-2.0-OpenSSH_9 host-7");
        assert!(version.starts_with("SSH-2.0-") && version.len() == 24, "{version}");
        assert_eq!(value(Kind::SshServer, "odd").len(), 16);
    }

    #[test]
    fn records_keep_their_types() {
        let by = Anonymiser::new(&[7; 32]);
        let address = by.address("192.0.2.1".parse().unwrap()).to_string();
        let of = |text| value(Kind::DnsRecords, text);
        let owner = name("www.example.org");
        assert_eq!(of("www.example.org A 300 192.0.2.1"), format!("{owner} A 300 {address}"));
        let alias = format!("{owner} CNAME 300 {}", name("a.example.org"));
        assert_eq!(of("www.example.org CNAME 300 a.example.org"), alias);
        assert_eq!(of("www.example.org ANY/A 0 "), format!("{owner} ANY/A 0 "));
        let mail = of("example.org MX 300 10 mail.example.org");
        assert!(mail.starts_with(&format!("{} MX 300 ", name("example.org"))), "{mail}");
        assert_eq!(mail.rsplit(' ').next().unwrap().len(), 16);
        assert_eq!(of("odd").len(), 16);
        // A name with spaces is one name.
        assert_eq!(of(r"a\032b.local A 1 x").split(' ').count(), 4);
    }

    #[test]
    fn link_addresses_become_local_ones() {
        let by = Anonymiser::new(&[7; 32]);
        let [one, group] = [[0, 1, 2, 3, 4, 5], [1, 0, 0x5e, 3, 4, 5]].map(|mac| by.mac(mac));
        assert_eq!((one[0] & 3, group[0] & 3), (2, 3));
        assert_ne!(one, by.mac([0, 1, 2, 3, 4, 6]));
        assert_eq!((by.mac([0xff; 6]), by.mac([0; 6])), ([0xff; 6], [0; 6]));
    }
}

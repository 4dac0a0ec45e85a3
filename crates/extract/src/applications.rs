//! The application of a flow: a label from its names, its protocol or its ports.
//!
//! ```text
//! 0  content   DNS within TLS or QUIC: by the ALPN value dot or doq, or on port 853          dns-over-tls
//! 1  name      the longest suffix of the server name, HTTP host or queried name in a list     google
//! 2  content   the first protocol recognised in the payloads                                  tls
//! 3  port      the lower port, then the higher one, in the list of the user (`port_labels.rs`)      internal-api
//! 4  port      the same in the table below                                                    https
//! ```
//!
//! The list is text: a suffix and a label on each line, `#` begins a comment. Suffixes match whole labels of a name, so
//! `example.org` matches `www.example.org` and not `myexample.org`. Of equal suffixes the last one counts.
//!
//! A name is searched from its end: the hash of each suffix continues that of the shorter one, so a search reads the
//! name once and the table once for each label.
//!
//! ```text
//! slots   | 0 | 2 | 0 | 1 | …        the number of an entry, or 0; a power of two, at most half full
//! entries | text, length, label |    suffixes are one after another in one text
//! ```

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha256};

use crate::label::{Application, ApplicationReason, InvalidNames, LABEL_MAX, Label, TCP, UDP, key};
use crate::port_labels::PortLabels;
use crate::{Facts, Kind};

/// The built-in list.
const BUILT_IN: &str = include_str!("../data/names.txt");

/// Most different labels of a list.
pub const LABELS_MAX: usize = 65_536;
/// Most suffixes of a list.
pub const SUFFIXES_MAX: usize = 1 << 22;
/// The longest name (RFC 1035, section 2.3.4), without the last dot.
const NAME_MAX: usize = 253;

/// A list of names: suffixes with their labels; and the user's labels of ports.
#[derive(Clone, Default)]
pub struct Names {
    text: Vec<u8>,
    entries: Vec<Entry>,
    slots: Vec<u32>,
    labels: Vec<Label>,
    ports: PortLabels,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    len: u8,
    label: u16,
}

impl Names {
    /// The built-in list.
    pub fn built_in() -> Arc<Self> {
        static LIST: LazyLock<Arc<Names>> =
            LazyLock::new(|| Arc::new(Names::parse(BUILT_IN.as_bytes()).unwrap_or_default()));
        Arc::clone(&LIST)
    }

    /// The SHA-256 of all suffixes, ports and labels, in hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for &Entry { start, len, label } in &self.entries {
            let start = start as usize;
            hasher.update([len]);
            hasher.update(&self.text[start..start + usize::from(len)]);
            hasher.update(self.labels[usize::from(label)].as_str());
            hasher.update([0]);
        }
        self.ports.digest(&mut hasher);
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The first line that is neither a suffix and a label nor empty, or one too many.
    pub fn parse(list: &[u8]) -> Result<Self, InvalidNames> {
        let mut names = Self::default();
        let mut known = std::collections::HashMap::new();
        let list = list.strip_prefix(b"\xef\xbb\xbf").unwrap_or(list);
        for (at, line) in list.split(|&byte| byte == b'\n').enumerate() {
            let is_comment = line.trim_ascii_start().starts_with(b";");
            let line = line.split(|&byte| byte == b'#' || is_comment).next().unwrap_or_default();
            let invalid = |why| InvalidNames { line: at + 1, why };
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let Some(suffix) = words.next() else { continue };
            let (Some(label), None) = (words.next(), words.next()) else {
                let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
                return Err(invalid(format!(
                    "{line:?} is not a suffix and a label: write a line such as \"example.org example\""
                )));
            };
            if !is_suffix(suffix) {
                let suffix = String::from_utf8_lossy(suffix);
                return Err(invalid(format!(
                    "invalid suffix {suffix:?}: use a domain name in ASCII such as example.org, without * and \
                     dots at its ends"
                )));
            }
            let Some(own) = Label::new(label) else {
                let label = String::from_utf8_lossy(label);
                return Err(invalid(format!(
                    "invalid label {label:?}: use up to {LABEL_MAX} printable characters of ASCII"
                )));
            };
            let next = names.labels.len();
            let label = *known.entry(own).or_insert(next);
            if label == LABELS_MAX {
                return Err(invalid(format!("more than {LABELS_MAX} labels: use fewer")));
            }
            if label == next {
                names.labels.push(own);
            }
            if names.entries.len() == SUFFIXES_MAX {
                return Err(invalid(format!("more than {SUFFIXES_MAX} suffixes: use fewer")));
            }
            names.insert(suffix, label as u16);
        }
        Ok(names)
    }

    /// Adds the user's labels of ports (`port_labels.rs`).
    ///
    /// # Errors
    /// The first line that is neither a port and a label nor empty, or one label too many.
    pub fn with_ports(mut self, list: &[u8]) -> Result<Self, InvalidNames> {
        self.ports = PortLabels::parse(list)?;
        let known: HashSet<_> = self.labels.iter().copied().collect();
        let further = self.ports.labels().into_iter();
        self.labels.extend(further.filter(|label| !known.contains(label)));
        if self.labels.len() > LABELS_MAX {
            let why = format!("with the names more than {LABELS_MAX} labels: use fewer");
            return Err(InvalidNames { line: 1, why });
        }
        Ok(self)
    }

    /// Adds a suffix, or replaces its label.
    fn insert(&mut self, suffix: &[u8], label: u16) {
        if (self.entries.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        match self.find_slot(hash_of(suffix), suffix) {
            Ok(at) => self.entries[at].label = label,
            Err(slot) => {
                let start = self.text.len() as u32;
                self.text.extend(suffix.iter().map(u8::to_ascii_lowercase));
                self.entries.push(Entry { start, len: suffix.len() as u8, label });
                self.slots[slot] = self.entries.len() as u32;
            }
        }
    }

    fn grow(&mut self) {
        let mut slots = vec![0; (self.slots.len() * 2).max(16)];
        for (at, entry) in self.entries.iter().enumerate() {
            let mut slot = place(hash_of(self.suffix(entry)), slots.len());
            while slots[slot] != 0 {
                slot = (slot + 1) & (slots.len() - 1);
            }
            slots[slot] = at as u32 + 1;
        }
        self.slots = slots;
    }

    fn suffix(&self, entry: &Entry) -> &[u8] {
        &self.text[entry.start as usize..][..usize::from(entry.len)]
    }

    /// The number of the entry with this suffix, else the free slot for it. There must be slots.
    fn find_slot(&self, hash: u64, suffix: &[u8]) -> Result<usize, usize> {
        let mut slot = place(hash, self.slots.len());
        loop {
            let Some(at) = (self.slots[slot] as usize).checked_sub(1) else { return Err(slot) };
            if self.suffix(&self.entries[at]).eq_ignore_ascii_case(suffix) {
                return Ok(at);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Number of suffixes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if the list has no suffix.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of different labels.
    pub fn labels(&self) -> usize {
        self.labels.len()
    }

    /// All labels.
    pub fn each_label(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(Label::as_str)
    }

    /// Memory in bytes.
    pub fn memory(&self) -> usize {
        self.text.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.slots.capacity() * size_of::<u32>()
            + self.labels.capacity() * size_of::<Label>()
            + self.ports.memory()
    }

    /// The label of the longest suffix of a name, which may end with a dot.
    pub fn find(&self, name: &[u8]) -> Option<Label> {
        let name = name.strip_suffix(b".").unwrap_or(name);
        if name.len() > NAME_MAX || self.is_empty() {
            return None;
        }
        let mut longest = None;
        each_suffix(name, |hash, suffix| {
            if let Ok(entry) = self.find_slot(hash, suffix) {
                longest = Some(entry);
            }
        });
        longest.map(|entry| self.labels[usize::from(self.entries[entry].label)])
    }

    /// The application of a flow of this IP protocol, with these ports and facts.
    #[inline]
    pub fn application(&self, protocol: u8, ports: [u16; 2], facts: &Facts) -> Option<Application> {
        if !facts.is_empty() {
            if let Some(label) = encrypted_dns(ports, facts) {
                return Some(Application { label, reason: ApplicationReason::Content });
            }
            if let Some(label) = self.by_name(facts) {
                return Some(Application { label, reason: ApplicationReason::Name });
            }
            // What follows the header of a proxy says more.
            let protocols = || facts.values(Kind::Protocol);
            let protocol = protocols().find(|&name| name != b"proxy").or(protocols().next());
            if let Some(label) = protocol.and_then(Label::new) {
                return Some(Application { label, reason: ApplicationReason::Content });
            }
        }
        self.ports.find(protocol, ports).or_else(|| by_port(protocol, ports))
    }

    /// The label of the first name in the list: server names, HTTP hosts, queried names.
    fn by_name(&self, facts: &Facts) -> Option<Label> {
        let of = |kind| {
            let host = |name| if kind == Kind::HttpHost { without_port(name) } else { name };
            let mut values = facts.has(kind).then(|| facts.values(kind))?;
            values.find_map(|name| self.find(host(name)))
        };
        [Kind::TlsServerName, Kind::HttpHost, Kind::DnsQueryName].into_iter().find_map(of)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names({} suffixes)", self.len())
    }
}

/// Calls `each` with the suffixes of a name and their hashes, from the shortest.
#[inline]
fn each_suffix<'a>(name: &'a [u8], mut each: impl FnMut(u64, &'a [u8])) {
    let (mut hash, mut end) = (0, name.len());
    loop {
        let start = name[..end].iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot + 1);
        hash = step(hash, &name[start..end]);
        each(hash, &name[start..]);
        match start.checked_sub(1) {
            Some(dot) => end = dot,
            None => return,
        }
    }
}

/// The hash of a suffix.
fn hash_of(suffix: &[u8]) -> u64 {
    let mut last = 0;
    each_suffix(suffix, |hash, _| last = hash);
    last
}

/// The hash of a suffix with a label before it, without regard to case.
#[inline]
fn step(hash: u64, label: &[u8]) -> u64 {
    /// The bit in which letters differ by case. Others that differ in it alone have equal hashes, too.
    const CASE: u64 = u64::from_ne_bytes([0x20; 8]);
    let (words, rest) = label.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word) | CASE);
    let rest =
        rest.iter().fold(rest.len() as u64, |word, &byte| word << 8 | u64::from(byte | 0x20));
    words.chain([rest]).fold(hash, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

/// The first slot of a hash.
fn place(hash: u64, slots: usize) -> usize {
    hash as usize & (slots - 1)
}

/// Labels of letters, digits, `-` and `_`, with dots between them.
fn is_suffix(suffix: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let label = |label: &[u8]| (1..=63).contains(&label.len()) && label.iter().all(letter);
    suffix.len() <= NAME_MAX && suffix.split(|&byte| byte == b'.').all(label)
}

/// The label of DNS over TLS (RFC 7858) or QUIC (RFC 9250), whatever the name of the server.
fn encrypted_dns(ports: [u16; 2], facts: &Facts) -> Option<Label> {
    const PORT: u16 = 853;
    let known = ports.contains(&PORT);
    if !known && !facts.has(Kind::TlsAlpn) {
        return None;
    }
    let begins = |start: &[u8]| facts.values(Kind::TlsAlpn).any(|own| own.starts_with(start));
    let has = |name: &[u8]| facts.values(Kind::Protocol).any(|own| own == name);
    // Drafts of DNS over QUIC have values such as `doq-i03`.
    let label: &[u8] = match () {
        () if has(b"quic") && (known || begins(b"doq")) => b"dns-over-quic",
        () if has(b"tls") && (known || facts.values(Kind::TlsAlpn).any(|own| own == b"dot")) => {
            b"dns-over-tls"
        }
        () if has(b"dtls") && known => b"dns-over-dtls",
        () => return None,
    };
    Label::new(label)
}

/// A host of HTTP without its port.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|&byte| byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

/// The application of the lower port, else of the higher one. Without branches, because the ports of flows mix at random.
#[inline]
fn by_port(protocol: u8, [one, other]: [u16; 2]) -> Option<Application> {
    let number = |port| {
        let key = key(protocol, port);
        let number = PORT_NUMBERS.1[port_place(key, PORT_NUMBERS.0)];
        std::hint::select_unpredictable(PORT_KEYS[usize::from(number)] == key, number, NO_PORT)
    };
    let (low, high) = (number(one.min(other)), number(one.max(other)));
    let number = std::hint::select_unpredictable(low == NO_PORT, high, low);
    PORT_APPLICATIONS[usize::from(number)]
}

/// The number behind the last port of the list: another port.
const NO_PORT: u8 = PORTS.len() as u8;
/// Number of places of ports.
const PORT_PLACES: usize = 1 << 11;

const fn port_place(key: u32, factor: u32) -> usize {
    (key.wrapping_mul(factor) >> (u32::BITS - PORT_PLACES.ilog2())) as usize
}

/// A factor of the hash that gives each port of the list a place of its own, and for each place the number of its port.
static PORT_NUMBERS: (u32, [u8; PORT_PLACES]) = {
    let mut factor: u32 = 0x9e37_79b1;
    'search: loop {
        let (mut places, mut at) = ([NO_PORT; PORT_PLACES], 0);
        while at < PORTS.len() {
            let place = port_place(PORT_KEYS[at], factor);
            if places[place] != NO_PORT {
                factor = factor.wrapping_add(2);
                continue 'search;
            }
            places[place] = at as u8;
            at += 1;
        }
        break (factor, places);
    }
};

/// The keys of the ports in the list, and one that no port has.
const PORT_KEYS: [u32; PORTS.len() + 1] = {
    let (mut keys, mut at) = ([u32::MAX; PORTS.len() + 1], 0);
    while at < PORTS.len() {
        let (protocol, port) = PORTS[at].0;
        keys[at] = key(protocol, port);
        at += 1;
    }
    keys
};

/// The applications of the ports in the list; the last is that of other ports.
static PORT_APPLICATIONS: [Option<Application>; PORTS.len() + 1] = {
    let (mut applications, mut at) = ([None; PORTS.len() + 1], 0);
    while at < PORTS.len() {
        let label = Label::of(PORTS[at].1);
        applications[at] = Some(Application { label, reason: ApplicationReason::Port });
        at += 1;
    }
    applications
};

/// Well-known ports (IANA's registry of service names, and common use), in ascending order.
#[rustfmt::skip]
const PORTS: [((u8, u16), &str); 94] = [
    ((TCP, 21), "ftp"), ((TCP, 22), "ssh"), ((TCP, 23), "telnet"), ((TCP, 25), "smtp"),
    ((TCP, 43), "whois"), ((TCP, 49), "tacacs"), ((TCP, 53), "dns"), ((TCP, 80), "http"),
    ((TCP, 88), "kerberos"), ((TCP, 110), "pop3"), ((TCP, 111), "rpcbind"), ((TCP, 119), "nntp"),
    ((TCP, 135), "msrpc"), ((TCP, 139), "netbios"), ((TCP, 143), "imap"), ((TCP, 179), "bgp"),
    ((TCP, 389), "ldap"), ((TCP, 443), "https"), ((TCP, 445), "smb"), ((TCP, 465), "smtps"),
    ((TCP, 502), "modbus"), ((TCP, 514), "syslog"), ((TCP, 515), "lpd"), ((TCP, 554), "rtsp"),
    ((TCP, 587), "smtp"), ((TCP, 631), "ipp"), ((TCP, 636), "ldaps"), ((TCP, 853), "dns-over-tls"),
    ((TCP, 873), "rsync"), ((TCP, 989), "ftps"), ((TCP, 990), "ftps"), ((TCP, 993), "imaps"),
    ((TCP, 995), "pop3s"), ((TCP, 1080), "socks"), ((TCP, 1194), "openvpn"), ((TCP, 1433), "mssql"),
    ((TCP, 1521), "oracle"), ((TCP, 1723), "pptp"), ((TCP, 1883), "mqtt"), ((TCP, 2049), "nfs"),
    ((TCP, 2181), "zookeeper"), ((TCP, 2379), "etcd"), ((TCP, 3128), "http-proxy"), ((TCP, 3260), "iscsi"),
    ((TCP, 3268), "ldap"), ((TCP, 3306), "mysql"), ((TCP, 3389), "rdp"), ((TCP, 4222), "nats"),
    ((TCP, 5060), "sip"), ((TCP, 5061), "sips"), ((TCP, 5222), "xmpp"), ((TCP, 5269), "xmpp"),
    ((TCP, 5432), "postgresql"), ((TCP, 5671), "amqps"), ((TCP, 5672), "amqp"), ((TCP, 5900), "vnc"),
    ((TCP, 5984), "couchdb"), ((TCP, 5985), "winrm"), ((TCP, 6379), "redis"), ((TCP, 6443), "kubernetes"),
    ((TCP, 6667), "irc"), ((TCP, 8080), "http"), ((TCP, 8443), "https"), ((TCP, 8883), "mqtts"),
    ((TCP, 9092), "kafka"), ((TCP, 9200), "elasticsearch"), ((TCP, 11211), "memcached"), ((TCP, 27017), "mongodb"),
    ((UDP, 53), "dns"), ((UDP, 67), "dhcp"), ((UDP, 68), "dhcp"), ((UDP, 69), "tftp"),
    ((UDP, 88), "kerberos"), ((UDP, 123), "ntp"), ((UDP, 137), "netbios"), ((UDP, 138), "netbios"),
    ((UDP, 161), "snmp"), ((UDP, 162), "snmp"), ((UDP, 443), "quic"), ((UDP, 500), "ipsec"),
    ((UDP, 514), "syslog"), ((UDP, 546), "dhcpv6"), ((UDP, 547), "dhcpv6"), ((UDP, 1194), "openvpn"),
    ((UDP, 1812), "radius"), ((UDP, 1813), "radius"), ((UDP, 1900), "ssdp"), ((UDP, 3478), "stun"),
    ((UDP, 4500), "ipsec"), ((UDP, 5060), "sip"), ((UDP, 5353), "mdns"), ((UDP, 5355), "llmnr"),
    ((UDP, 5683), "coap"), ((UDP, 51820), "wireguard"),
];

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(text: &str) -> Option<Label> {
        Some(Label::new(text.as_bytes()).unwrap())
    }

    pub(crate) fn facts(values: &[(Kind, &str)]) -> Facts {
        let mut facts = Facts::default();
        for (kind, value) in values {
            facts.add(*kind, value.as_bytes(), usize::MAX).unwrap();
        }
        facts
    }

    #[test]
    fn the_longest_suffix_of_whole_labels_counts() {
        let names = Names::parse(
            b"# comment\n\nexample.org one # more\r\n  A.Example.org\ttwo\nlocal three\nexample.org four",
        )
        .unwrap();
        assert_eq!((names.len(), names.labels()), (3, 4));
        for (name, expected) in [
            ("example.org", Some("four")),
            ("EXAMPLE.ORG.", Some("four")),
            ("www.example.org", Some("four")),
            ("a.example.org", Some("two")),
            ("b.a.example.org", Some("two")),
            ("ba.example.org", Some("four")),
            ("myexample.org", None),
            ("org", None),
            ("printer.local", Some("three")),
            ("", None),
            (".", None),
            (".local", Some("three")),
        ] {
            assert_eq!(names.find(name.as_bytes()), expected.and_then(label), "{name}");
        }
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        for (list, line, text) in [
            ("a.b c\n\nexample.org", 3, "write a line such as"),
            ("a b c", 1, "write a line such as"),
            ("*.a b", 1, "invalid suffix \"*.a\""),
            ("a. b", 1, "without * and dots"),
            ("\u{e9}.org b", 1, "in ASCII"),
            ("a 0123456789012345678901234567890", 1, "up to 30"),
        ] {
            let error = Names::parse(list.as_bytes()).unwrap_err();
            assert_eq!(error.line, line, "{list}");
            assert!(error.to_string().contains(text), "{error}");
        }
        let many: String = (0..=LABELS_MAX).map(|n| format!("a{n} b{n}\n")).collect();
        assert!(Names::parse(many.as_bytes()).unwrap_err().to_string().contains("more than 65536"));
    }

    #[test]
    fn a_million_lines_are_read() {
        let list: String =
            (0..1_000_000).map(|n| format!("host{n}.example.org l{}\n", n % 100)).collect();
        let names = Names::parse(list.as_bytes()).unwrap();
        assert_eq!((names.len(), names.labels()), (1_000_000, 100));
        assert!(names.memory() < 100 << 20);
        assert_eq!(names.find(b"x.host999999.example.org"), label("l99"));
        assert_eq!(names.find(b"host1000000.example.org"), None);
    }

    #[test]
    fn the_rule_is_name_content_port() {
        let names = Names::parse(b"example.org service\nexample.com other").unwrap();
        let of = |ports, values: &[(Kind, &str)]| {
            let found = names.application(TCP, ports, &facts(values))?;
            Some((found.label.as_str().to_owned(), found.reason))
        };
        let found = |label: &str, reason| Some((label.to_owned(), reason));
        let server = (Kind::TlsServerName, "www.example.org");
        let host = (Kind::HttpHost, "www.example.com:8080");
        let (first, second) =
            ((Kind::DnsQueryName, "unknown.test"), (Kind::DnsQueryName, "example.com"));
        let tls = (Kind::Protocol, "tls");
        assert_eq!(
            of([50_000, 443], &[tls, host, server]),
            found("service", ApplicationReason::Name)
        );
        assert_eq!(of([50_000, 443], &[host]), found("other", ApplicationReason::Name));
        assert_eq!(of([50_000, 53], &[first, second]), found("other", ApplicationReason::Name));
        assert_eq!(of([50_000, 53], &[first, tls]), found("tls", ApplicationReason::Content));
        assert_eq!(of([50_000, 443], &[first]), found("https", ApplicationReason::Port));
        assert_eq!(of([443, 50_000], &[]), found("https", ApplicationReason::Port));
        assert_eq!(of([443, 22], &[]), found("ssh", ApplicationReason::Port));
        assert_eq!(of([1_234, 3_306], &[]), found("mysql", ApplicationReason::Port));
        assert_eq!(of([50_000, 50_001], &[]), None);
        assert_eq!(names.application(1, [22, 443], &Facts::default()), None);
    }

    #[test]
    fn encrypted_dns_is_known_by_its_port_or_its_alpn_value() {
        let names = Names::parse(b"example.org service").unwrap();
        let of = |ports, values: &[(Kind, &str)]| {
            let name = [(Kind::TlsServerName, "dns.example.org")];
            let found = names.application(TCP, ports, &facts(&[values, &name].concat()))?;
            Some(found.label.as_str().to_owned())
        };
        let [tls, quic, dtls] = ["tls", "quic", "dtls"].map(|own| (Kind::Protocol, own));
        let alpn = |value| (Kind::TlsAlpn, value);
        for (ports, values, expected) in [
            ([853, 40_000], [tls, alpn("h2")], "dns-over-tls"),
            ([40_000, 853], [quic, alpn("h3")], "dns-over-quic"),
            ([40_000, 853], [dtls, alpn("h3")], "dns-over-dtls"),
            ([40_000, 443], [tls, alpn("dot")], "dns-over-tls"),
            ([40_000, 784], [quic, alpn("doq-i02")], "dns-over-quic"),
            ([40_000, 443], [quic, alpn("h3")], "service"),
            ([40_000, 443], [tls, alpn("h2")], "service"),
            ([40_000, 443], [tls, alpn("dotted")], "service"),
            ([40_000, 853], [(Kind::Protocol, "http"), alpn("h2")], "service"),
        ] {
            assert_eq!(of(ports, &values).as_deref(), Some(expected), "{ports:?} {values:?}");
        }
    }

    #[test]
    fn each_port_of_the_list_is_found_and_no_other() {
        let text = |found: Option<Application>| found.map(|own| own.label.as_str().to_owned());
        for protocol in [0, 1, TCP, UDP, u8::MAX] {
            for port in 0..=u16::MAX {
                let listed = PORTS.iter().find(|(own, _)| *own == (protocol, port));
                let expected = listed.map(|(_, text)| (*text).to_owned());
                assert_eq!(text(by_port(protocol, [port, u16::MAX])), expected);
            }
        }
    }

    #[test]
    fn ports_are_in_order_and_have_labels() {
        assert!(PORTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(PORTS.iter().all(|(_, text)| Label::new(text.as_bytes()).is_some()));
    }

    #[test]
    fn the_built_in_list_is_valid() {
        let names = Names::parse(BUILT_IN.as_bytes()).unwrap();
        assert_eq!(Names::built_in().len(), names.len());
        let lines = BUILT_IN.lines().filter(|line| !line.trim_start().starts_with('#'));
        let lines = lines.filter(|line| !line.trim().is_empty()).count();
        assert_eq!(names.len(), lines, "a suffix is listed twice");
        for (name, expected) in [
            ("www.google.com", "google"),
            ("rr3---sn-4g5ednz7.googlevideo.com", "youtube"),
            ("scontent.xx.fbcdn.net", "facebook"),
            ("teams.microsoft.com", "teams"),
            ("www.microsoft.com", "microsoft"),
            ("s3.eu-west-1.amazonaws.com", "aws"),
        ] {
            assert_eq!(names.find(name.as_bytes()), label(expected), "{name}");
        }
    }

    proptest! {
        /// The longest suffix is that of a simple search.
        #[test]
        fn a_search_finds_the_longest_suffix(
            list in prop::collection::vec("(a|b|abcdefgh|abcdefghi)(\\.(a|b|abcdefgh)){0,3}", 0..20),
            name in "([abAB]{0,2}|[aA]bcdef[gG]h(i|j)?)(\\.([ab]{0,2}|abcdefgH)){0,5}\\.?",
        ) {
            let text: String = list.iter().enumerate().map(|(n, own)| format!("{own} l{n}\n")).collect();
            let names = Names::parse(text.as_bytes()).unwrap();
            let plain = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
            let matching = |own: &&String| plain == **own || plain.ends_with(&format!(".{own}"));
            let longest = list.iter().filter(matching).map(String::len).max();
            let expected = longest.and_then(|len| {
                list.iter().rposition(|own| own.len() == len && matching(&own))
            });
            let found = names.find(name.as_bytes());
            prop_assert_eq!(found, expected.and_then(|n| label(&format!("l{n}"))));
        }

        #[test]
        fn no_bytes_make_it_panic(list in prop::collection::vec(any::<u8>(), 0..200), name in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(names) = Names::parse(&list) {
                let _ = names.find(&name);
            }
            let _ = Names::built_in().find(&name);
        }
    }
}

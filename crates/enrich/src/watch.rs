//! The entries of `--watch`: names, fingerprints, addresses and networks.
//!
//! ```text
//! texts    evil.example│192.0.2.0/24│…          by entry: end of its text, number of its label
//! table    hash of a name or fingerprint ─▶ entry
//! networks ranges of addresses ─▶ entry
//! ```
//!
//! A name has itself and all names below it: each suffix of a name is looked up, the longest first. Some 40 bytes an
//! entry.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::net::IpAddr;
use std::path::Path;

use hashbrown::HashTable;
use ringtap_base::{Network, parse_address};
use ringtap_flow::Kind;

use crate::lines::{InvalidList, each, read, wrong_network};
use crate::prefixes::Prefixes;

/// Most entries.
const ENTRIES_MAX: usize = 1 << 24;
/// Most bytes of a name (RFC 1035, section 2.3.4).
const NAME_MAX: usize = 253;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A name, with those below it.
    Name,
    /// A JA3, JA3S or JA4 fingerprint.
    Fingerprint,
    /// An address or a network.
    Network,
}

/// The entries of a list.
pub struct WatchList {
    texts: String,
    ends: Vec<u32>,
    /// By entry; 0 is none.
    labels: Vec<u32>,
    label_texts: Vec<Box<str>>,
    hasher: RandomState,
    table: HashTable<u32>,
    networks: Prefixes,
    /// By [`EntryKind`], in order.
    counts: [usize; 3],
    /// A hash of the entries and labels that were read.
    read: u64,
}

impl fmt::Debug for WatchList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchList").field(&self.counts).finish()
    }
}

impl Default for WatchList {
    fn default() -> Self {
        Self {
            texts: String::new(),
            ends: Vec::new(),
            labels: Vec::new(),
            label_texts: vec!["".into()],
            hasher: RandomState::new(),
            table: HashTable::new(),
            networks: Prefixes::new(std::iter::empty()),
            counts: [0; 3],
            read: 0,
        }
    }
}

impl WatchList {
    /// Reads a list.
    ///
    /// # Errors
    /// [`InvalidList`].
    pub fn read(path: &Path) -> Result<Self, InvalidList> {
        Self::parse(&read(path)?)
    }

    /// Parses a list. Of equal entries the first one counts.
    ///
    /// # Errors
    /// [`InvalidList::Line`].
    pub fn parse(list: &[u8]) -> Result<Self, InvalidList> {
        let mut own = Self::default();
        let mut networks: Vec<(Network, u32)> = Vec::new();
        let mut label_numbers: HashMap<Box<str>, u32> = HashMap::from([("".into(), 0)]);
        each(list, |entry, label| {
            if own.ends.len() >= ENTRIES_MAX {
                return Err("too many entries: 16,777,216 at most");
            }
            let (kind, text) = normal(entry)?;
            if kind == EntryKind::Network && is_of_hosts_file(entry, label) {
                return Err("a line of a hosts file, which watches this host: use the name alone");
            }
            let number = own.ends.len() as u32;
            match kind {
                EntryKind::Network => {
                    let network = text.parse().map_err(|_| "not a network")?;
                    networks.push((network, number));
                }
                EntryKind::Name | EntryKind::Fingerprint => {
                    if own.find(&text).is_some() {
                        return Ok(());
                    }
                    own.insert(&text, number);
                }
            }
            let label = match label_numbers.get(label) {
                Some(known) => *known,
                None => {
                    let next = own.label_texts.len() as u32;
                    own.label_texts.push(label.into());
                    label_numbers.insert(label.into(), next);
                    next
                }
            };
            own.texts.push_str(&text);
            own.ends.push(own.texts.len() as u32);
            own.labels.push(label);
            own.counts[kind as usize] += 1;
            Ok(())
        })?;
        own.texts.shrink_to_fit();
        own.ends.shrink_to_fit();
        own.labels.shrink_to_fit();
        let mut hasher = DefaultHasher::new();
        (&own.texts, &own.ends, &own.labels, &own.label_texts).hash(&mut hasher);
        own.read = hasher.finish();
        // Of equal networks the last one counts there.
        own.networks = Prefixes::new(networks.into_iter().rev());
        Ok(own)
    }

    /// Whether the same entries and labels were read.
    pub fn is_like(&self, other: &Self) -> bool {
        self.read == other.read
    }

    /// The list as the successor of another one: entries of the other keep their numbers and texts, also those that are
    /// watched no more. `None` if both have too many entries together.
    pub fn after(&self, earlier: &Self) -> Option<Self> {
        let mut own = Self {
            texts: earlier.texts.clone(),
            ends: earlier.ends.clone(),
            labels: earlier.labels.clone(),
            label_texts: earlier.label_texts.clone(),
            ..Self::default()
        };
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for number in 0..earlier.ends.len() as u32 {
            numbers.entry(earlier.text(number)).or_insert(number);
        }
        let known = earlier.label_texts.iter().map(|label| &**label);
        let mut labels: HashMap<&str, u32> = known.zip(0..).collect();
        let (mut watched, mut networks) = (HashSet::new(), Vec::new());
        for entry in 0..self.ends.len() as u32 {
            let text = self.text(entry);
            let number = *numbers.entry(text).or_insert_with(|| {
                own.texts.push_str(text);
                own.ends.push(own.texts.len() as u32);
                own.labels.push(0);
                own.ends.len() as u32 - 1
            });
            // Of equal networks the first one counts.
            if !watched.insert(number) {
                continue;
            }
            own.labels[number as usize] = *labels.entry(self.label(entry)).or_insert_with(|| {
                own.label_texts.push(self.label(entry).into());
                own.label_texts.len() as u32 - 1
            });
            match text.parse::<Network>() {
                Ok(network) => networks.push((network, number)),
                Err(_) => own.insert(text, number),
            }
        }
        own.texts.shrink_to_fit();
        own.ends.shrink_to_fit();
        own.labels.shrink_to_fit();
        (own.counts, own.read) = (self.counts, self.read);
        own.networks = Prefixes::new(networks.into_iter());
        (own.ends.len() <= ENTRIES_MAX).then_some(own)
    }

    /// Adds an entry whose text is pushed next.
    fn insert(&mut self, text: &str, number: u32) {
        let Self { table, hasher, texts, ends, .. } = self;
        let hash = hasher.hash_one(text);
        table.insert_unique(hash, number, |&other| hasher.hash_one(text_of(texts, ends, other)));
    }

    fn find(&self, text: &str) -> Option<u32> {
        let is = |&entry: &u32| self.text(entry) == text;
        self.table.find(self.hasher.hash_one(text), is).copied()
    }

    /// The text of an entry.
    pub fn text(&self, entry: u32) -> &str {
        text_of(&self.texts, &self.ends, entry)
    }

    /// Its label; empty if it has none.
    pub fn label(&self, entry: u32) -> &str {
        &self.label_texts[self.labels[entry as usize] as usize]
    }

    /// What it is.
    pub fn kind(&self, entry: u32) -> EntryKind {
        normal(self.text(entry)).map_or(EntryKind::Name, |(kind, _)| kind)
    }

    /// The number of entries of a kind.
    pub fn count(&self, kind: EntryKind) -> usize {
        self.counts[kind as usize]
    }

    /// Whether any entry needs payloads.
    pub fn needs_payloads(&self) -> bool {
        self.count(EntryKind::Name) + self.count(EntryKind::Fingerprint) > 0
    }

    /// The longest network with this address.
    #[inline]
    pub fn address(&self, address: IpAddr) -> Option<u32> {
        self.networks.find(address)
    }

    /// The entry for a fact's value, if its kind is watched.
    pub fn value(&self, kind: Kind, value: &[u8]) -> Option<u32> {
        match kind {
            Kind::TlsServerName
            | Kind::DnsQueryName
            | Kind::DnsAnswers
            | Kind::HttpHost
            | Kind::TlsCertificateNames
            | Kind::ProxySourceAddress
            | Kind::ProxyDestinationAddress => self.name(value),
            Kind::Ja3 | Kind::Ja3s | Kind::Ja4 => self.find(std::str::from_utf8(value).ok()?),
            _ => None,
        }
    }

    /// The longest name that this one is, or is below; the network, if it is an address.
    fn name(&self, name: &[u8]) -> Option<u32> {
        let name = std::str::from_utf8(name).ok()?;
        if let Some(address) = parse_address(name) {
            return self.address(address);
        }
        let (host, _port) = crate::anonymiser::split_port(name);
        if let Some(address) = parse_address(host.trim_matches(['[', ']'])) {
            return self.address(address);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let host = host.to_ascii_lowercase();
        let host = &host[host.len().saturating_sub(NAME_MAX + 1)..];
        let below = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
        std::iter::once(host).chain(below).find_map(|suffix| self.find(suffix))
    }

    /// Bytes of memory.
    pub fn memory(&self) -> u64 {
        let labels: usize = self.label_texts.iter().map(|label| label.len() + 16).sum();
        let numbers = (self.ends.capacity() + self.labels.capacity()) * size_of::<u32>();
        let all = self.texts.capacity() + numbers + labels + self.table.allocation_size();
        (all + self.networks.memory()) as u64
    }
}

fn text_of<'a>(texts: &'a str, ends: &[u32], entry: u32) -> &'a str {
    let entry = entry as usize;
    let start = entry.checked_sub(1).map_or(0, |before| ends[before] as usize);
    &texts[start..ends.get(entry).map_or(texts.len(), |end| *end as usize)]
}

/// The kind of an entry, and its text in one form.
fn normal(entry: &str) -> Result<(EntryKind, String), &'static str> {
    match entry.parse::<Network>() {
        Ok(Network { address, length }) => {
            let one = length == if address.is_ipv4() { 32 } else { 128 };
            let text = if one { address.to_string() } else { format!("{address}/{length}") };
            return Ok((EntryKind::Network, text));
        }
        Err(wrong) => {
            if let Some(reason) = wrong_network(wrong) {
                return Err(reason);
            }
        }
    }
    let text = entry.to_ascii_lowercase();
    if is_fingerprint(&text) {
        return Ok((EntryKind::Fingerprint, text));
    }
    let name = text.strip_prefix("*.").unwrap_or(&text);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    // An incomplete address is not a name.
    let top = name.rsplit('.').next().unwrap_or_default();
    let is_number = top.bytes().all(|byte| byte.is_ascii_digit());
    if name.len() <= NAME_MAX && name.split('.').all(is_label) && !is_number {
        return Ok((EntryKind::Name, name.to_owned()));
    }
    Err("use a name, a JA3 or JA4 fingerprint, an address or a network")
}

/// Whether an address and the text behind it are a line of a hosts file that blocks a name, as in `0.0.0.0 evil.example`: no
/// address, or this host's, and a name.
fn is_of_hosts_file(address: &str, text: &str) -> bool {
    let Some(address) = parse_address(address) else { return false };
    let name = text.split_whitespace().next().unwrap_or_default();
    let is_name = || normal(name).is_ok_and(|(kind, _)| kind == EntryKind::Name);
    address.is_unspecified() || address.is_loopback() && is_name()
}

/// JA3 and JA3S are 32 hexadecimal digits; JA4 is as in `t13d1516h2_8daaf6152771_b186095e22b6`.
fn is_fingerprint(text: &str) -> bool {
    let hex =
        |part: &str, len| part.len() == len && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = text.split('_');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(ja3), None, ..) => hex(ja3, 32),
        (Some(head), Some(ciphers), Some(extensions), None) => {
            let is_head = head.len() == 10 && head.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_head && hex(ciphers, 12) && hex(extensions, 12)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JA3: &str = "e7d705a3286e19ea42f587b344ee6865";
    const JA4: &str = "t13d1516h2_8daaf6152771_b186095e22b6";

    fn found<'a>(list: &'a WatchList, kind: Kind, value: &str) -> &'a str {
        list.value(kind, value.as_bytes()).map_or("", |entry| list.text(entry))
    }

    #[test]
    fn a_name_has_itself_and_those_below_it() {
        let list = b"Example.ORG. first\nmail.example.org\n*.example.net\nexample.org second\n";
        let list = WatchList::parse(list).unwrap();
        let name = |name| found(&list, Kind::DnsQueryName, name);
        assert_eq!(name("example.org"), "example.org");
        assert_eq!(name("a.b.EXAMPLE.org."), "example.org");
        assert_eq!(name("x.mail.example.org"), "mail.example.org");
        assert_eq!(name("example.net"), "example.net");
        assert_eq!((name("notexample.org"), name("org"), name("")), ("", "", ""));
        assert_eq!(found(&list, Kind::HttpHost, "www.example.net:8080"), "example.net");
        assert_eq!(found(&list, Kind::HttpUserAgent, "example.net"), "");
        assert_eq!((list.label(0), list.label(1)), ("first", ""));
        assert_eq!(list.count(EntryKind::Name), 3);
    }

    #[test]
    fn networks_and_fingerprints_are_entries() {
        let list =
            format!("192.0.2.0/24 lab\n192.0.2.7\n2001:DB8::/32\n{JA3} bot\n{JA4}\n192.0.2.7 x");
        let list = WatchList::parse(list.as_bytes()).unwrap();
        let address = |address: &str| {
            list.address(address.parse().unwrap()).map_or("", |entry| list.text(entry))
        };
        assert_eq!((address("192.0.2.6"), address("192.0.2.7")), ("192.0.2.0/24", "192.0.2.7"));
        assert_eq!(list.label(list.address("192.0.2.7".parse().unwrap()).unwrap()), "");
        assert_eq!((address("2001:db8:1::"), address("192.0.3.0")), ("2001:db8::/32", ""));
        assert_eq!(found(&list, Kind::Ja3, JA3), JA3);
        assert_eq!(found(&list, Kind::Ja4, JA4), JA4);
        assert_eq!(found(&list, Kind::DnsAnswers, "192.0.2.7"), "192.0.2.7");
        assert_eq!(found(&list, Kind::HttpHost, "[2001:db8::1]:80"), "2001:db8::/32");
        let kinds = [0, 3, 4].map(|entry| list.kind(entry));
        assert_eq!(kinds, [EntryKind::Network, EntryKind::Fingerprint, EntryKind::Fingerprint]);
    }

    #[test]
    fn entries_keep_their_numbers_in_the_next_list() {
        let list = |text: &str| WatchList::parse(text.as_bytes()).unwrap();
        let first = list("example.org a\n192.0.2.0/24 b\nexample.net\n192.0.2.0/24 c");
        let next = list("192.0.2.0/24 d\nexample.com b\nexample.net\n192.0.2.0/24 e");
        let both = next.after(&first).unwrap();
        let name = |list: &WatchList, name: &str| list.value(Kind::DnsQueryName, name.as_bytes());
        let address = |list: &WatchList| list.address("192.0.2.1".parse().unwrap());
        assert_eq!(name(&both, "example.net"), name(&first, "example.net"));
        assert_eq!(address(&both), address(&first));
        assert_eq!(
            (name(&both, "example.org"), both.text(0), both.label(0)),
            (None, "example.org", "a")
        );
        let new = name(&both, "example.com").unwrap();
        assert_eq!((new as usize, both.label(new)), (first.ends.len(), "b"));
        assert_eq!(both.label(address(&both).unwrap()), "d");
        assert_eq!(both.count(EntryKind::Name), 2);
        assert!(both.is_like(&next) && !both.is_like(&first));
        let again = first.after(&both).unwrap();
        assert_eq!((again.ends.len(), name(&again, "example.org")), (both.ends.len(), Some(0)));
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        let list = "\u{feff}::ffff:192.0.2.7 \t\r\n; comment\n::ffff:198.51.100.0/120 label\n";
        let list = WatchList::parse(list.as_bytes()).unwrap();
        let address = |address: &str| {
            list.address(address.parse().unwrap()).map_or("", |entry| list.text(entry))
        };
        assert_eq!(address("192.0.2.7"), "192.0.2.7");
        assert_eq!(address("198.51.100.9"), "198.51.100.0/24");
        assert_eq!(address("::ffff:192.0.2.7"), "", "an address of a packet is what it is");
        assert_eq!(found(&list, Kind::DnsAnswers, "::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(found(&list, Kind::HttpHost, "[::ffff:192.0.2.7]:80"), "192.0.2.7");
    }

    #[test]
    fn a_wrong_entry_is_an_error_with_its_line() {
        let error = |list: &str| WatchList::parse(list.as_bytes()).unwrap_err().to_string();
        let use_ = "use a name, a JA3 or JA4 fingerprint, an address or a network";
        assert_eq!(error("a\nhttp://x/\n"), format!("line 2: {use_}: \"http://x/\""));
        let commands = "';ls;'1234_000000000000_000000000000";
        assert_eq!(error(commands), format!("line 1: {use_}: {commands:?}"));
        assert_eq!(
            error("10.0.0.1/8"),
            "line 1: bits behind the network's are not 0: \"10.0.0.1/8\""
        );
        assert_eq!(
            error("10.0.0.0/40"),
            "line 1: invalid length of a network: use 0 to 32: \"10.0.0.0/40\""
        );
        for line in
            ["0.0.0.0 evil.example", "127.0.0.1\tlocalhost", "::1 a.example b", "0.0.0.0", "::"]
        {
            let expected = format!(
                "line 3: a line of a hosts file, which watches this host: use the name alone: {line:?}"
            );
            assert_eq!(error(&format!("# hosts\n\n{line} # x\n")), expected);
        }
        for line in ["127.0.0.1", "127.0.0.0/8 localhost", "0.0.0.0/0", "192.0.2.1 evil.example"] {
            assert!(WatchList::parse(line.as_bytes()).is_ok(), "{line}");
        }
        assert!(error("a..b").contains(use_) && error("10.0.0").contains(use_));
    }
}

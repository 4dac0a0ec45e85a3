//! The rules of `--allow`: alerts of known hosts, which are counted and not reported.
//!
//! ```text
//! 10.1.2.3      vertical_scan                         # a known scanner
//! 10.1.0.0/16   *              2027-01-01T00:00:00Z   # all kinds, until a time
//! ```
//!
//! The rule of an alert is the first line of the longest network that has one for it.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use ringtap_base::{Network, list_lines};
use ringtap_enrich::{InvalidList, wrong_network};

use super::AlertKind;
use crate::time::Time;

/// Most rules.
const RULES_MAX: usize = 1 << 20;

/// What a line should be.
const USE: &str = "use an address or a network, a kind of alerts or *, and perhaps a time, as in 10.1.2.3 * 2027-01-01T00:00:00Z";

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowRule {
    /// The number of its line, from 1.
    pub line: usize,
    /// The network with the host that an alert is about.
    pub network: Network,
    /// The kind of alerts; `None`: all.
    pub kind: Option<AlertKind>,
    /// Alerts from this time on are reported.
    pub until: Option<Time>,
}

/// All rules.
#[derive(Default)]
pub struct AllowList {
    rules: Vec<AllowRule>,
    /// The rules of each network, in the order of lines.
    networks: HashMap<(IpAddr, u8), Vec<u32>>,
    /// The lengths of networks, longest first: of IPv4, and of IPv6.
    lengths: [Vec<u8>; 2],
}

impl fmt::Debug for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AllowList").field(&self.rules.len()).finish()
    }
}

impl AllowList {
    /// Parses a list; `time` reads a time.
    ///
    /// # Errors
    /// [`InvalidList::Line`].
    pub fn parse(list: &[u8], time: impl Fn(&str) -> Option<Time>) -> Result<Self, InvalidList> {
        let mut own = Self::default();
        for (number, line) in list_lines(list) {
            let (text, rule) = match line {
                Ok(text) => (text.to_owned(), rule(number, text, &time)),
                Err(bytes) => (String::from_utf8_lossy(bytes).into_owned(), Err("not UTF-8")),
            };
            let rule = match rule {
                Ok(_) if own.rules.len() >= RULES_MAX => Err("too many rules: 1,048,576 at most"),
                other => other,
            };
            let rule = rule.map_err(|reason| InvalidList::Line {
                number,
                line: text.chars().take(80).collect(),
                reason,
            })?;
            own.add(rule);
        }
        own.lengths.iter_mut().for_each(|lengths| lengths.sort_unstable_by(|a, b| b.cmp(a)));
        Ok(own)
    }

    fn add(&mut self, rule: AllowRule) {
        let Network { address, length } = rule.network;
        let lengths = &mut self.lengths[usize::from(address.is_ipv6())];
        if !lengths.contains(&length) {
            lengths.push(length);
        }
        self.networks.entry((address, length)).or_default().push(self.rules.len() as u32);
        self.rules.push(rule);
    }

    /// Whether it has no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// All rules, in the order of lines.
    pub fn rules(&self) -> &[AllowRule] {
        &self.rules
    }

    /// The position of the rule for alerts of a kind about a host at a time.
    pub(crate) fn find(&self, host: IpAddr, kind: AlertKind, time: Time) -> Option<usize> {
        let lengths = &self.lengths[usize::from(host.is_ipv6())];
        lengths.iter().find_map(|&length| {
            let network = Network::around(host, length);
            let own = self.networks.get(&(network.address, length))?;
            let mut own = own.iter().map(|&position| position as usize);
            own.find(|&position| {
                let AllowRule { kind: of, until, .. } = self.rules[position];
                of.is_none_or(|of| of == kind) && until.is_none_or(|until| time < until)
            })
        })
    }

    /// Bytes of memory, with the counts of the rules.
    pub fn memory(&self) -> u64 {
        let of_rule = size_of::<AllowRule>() + size_of::<u64>();
        let of_network = 2 * size_of::<((IpAddr, u8), Vec<u32>)>() + 4 * size_of::<u32>();
        (self.rules.capacity() * of_rule + self.networks.capacity() * of_network) as u64
    }
}

fn rule(
    line: usize,
    text: &str,
    time: impl Fn(&str) -> Option<Time>,
) -> Result<AllowRule, &'static str> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (network, kind, until) = match words[..] {
        [network, kind] => (network, kind, None),
        [network, kind, until] => (network, kind, Some(until)),
        _ => return Err(USE),
    };
    let network = network.parse().map_err(|wrong| wrong_network(wrong).unwrap_or(USE))?;
    let known = AlertKind::ALL.into_iter().find(|own| own.name() == kind);
    if known.is_none() && kind != "*" {
        return Err(KINDS);
    }
    let until = until.map(|text| time(text).ok_or(TIME)).transpose()?;
    Ok(AllowRule { line, network, kind: known, until })
}

/// What a time should be.
const TIME: &str = "invalid time: use 2027-01-01T00:00:00Z, or 2027-01-01";

/// What a kind should be.
const KINDS: &str = "unknown kind of alerts: use vertical_scan, horizontal_scan, udp_vertical_scan, udp_horizontal_scan, flood, spread, \
     watched, new_device, new_server_port, volume_change or *";

#[cfg(test)]
mod tests {
    use super::*;

    /// Years are seconds here.
    fn year(text: &str) -> Option<Time> {
        text.parse().ok().map(|seconds: u64| Time(seconds * 1_000_000_000))
    }

    fn found(list: &AllowList, host: &str, kind: AlertKind, time: &str) -> Option<usize> {
        let rule = list.find(host.parse().unwrap(), kind, year(time).unwrap());
        rule.map(|position| list.rules()[position].line)
    }

    #[test]
    fn the_longest_network_with_a_rule_counts() {
        let list = b"10.0.0.0/8 *\n# comment\n10.1.2.3 vertical_scan 2027 # known\n\
                     10.1.2.3 flood\n10.1.2.3 vertical_scan\n2001:db8::/32 spread\n::ffff:192.0.2.0/120 *\n";
        let list = AllowList::parse(list, year).unwrap();
        let of = |host, kind, time| found(&list, host, kind, time);
        use AlertKind::*;
        assert_eq!(of("10.1.2.3", VerticalScan, "2026"), Some(3));
        assert_eq!(of("10.1.2.3", VerticalScan, "2027"), Some(5));
        assert_eq!(of("10.1.2.3", Flood, "2027"), Some(4));
        assert_eq!(of("10.1.2.3", Spread, "2027"), Some(1));
        assert_eq!(of("10.1.2.4", VerticalScan, "2027"), Some(1));
        assert_eq!(of("11.1.2.4", VerticalScan, "2027"), None);
        assert_eq!(of("2001:db8:7::1", Spread, "2027"), Some(6));
        assert_eq!(of("2001:db8:7::1", Flood, "2027"), None);
        assert_eq!(of("192.0.2.9", Flood, "2027"), Some(7));
        assert!(list.memory() > 0 && AllowList::parse(b"# none\n", year).unwrap().is_empty());
    }

    #[test]
    fn a_wrong_line_is_an_error_with_its_number() {
        let error = |line: &str| {
            let list = format!("10.0.0.1 *\n\n{line} # x\n");
            AllowList::parse(list.as_bytes(), year).unwrap_err().to_string()
        };
        for (line, reason) in [
            ("10.0.0.1", USE),
            ("scanner *", USE),
            ("10.0.0.1 * 2027 x", USE),
            ("10.0.0.1/8 *", "bits behind the network's are not 0"),
            ("10.0.0.0/40 *", "invalid length of a network: use 0 to 32"),
            ("10.0.0.1 scan", KINDS),
            ("10.0.0.1 * tomorrow", TIME),
        ] {
            assert_eq!(error(line), format!("line 3: {reason}: {line:?}"));
        }
        for kind in AlertKind::ALL {
            assert!(KINDS.contains(kind.name()), "{}", kind.name());
        }
    }
}

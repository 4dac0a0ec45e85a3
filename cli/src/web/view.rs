//! What a page shows: the query of its address, so that every view has a permanent link.

use std::fmt::Write;
use std::net::IpAddr;

use ringtap_base::Network;
use ringtap_monitor::report::Time;
use ringtap_query::moment::{self, Zone};

/// The spans that can be chosen, with their seconds.
pub(super) const SPANS: [(&str, u64); 9] = [
    ("1m", 60),
    ("5m", 300),
    ("15m", 900),
    ("1h", 3600),
    ("6h", 21_600),
    ("1d", 86_400),
    ("2d", 172_800),
    ("7d", 604_800),
    ("30d", 2_592_000),
];

/// The usual span.
const SPAN: (&str, u64) = SPANS[1];

/// The numbers of rows in a table that can be chosen.
pub(super) const ROWS: [usize; 4] = [10, 50, 200, 1000];

/// What tables of sums are ordered by.
pub(super) const MEASURES: [&str; 3] = ["octets", "packets", "flows"];

/// The farthest zones from UTC, minutes.
const ZONES: std::ops::RangeInclusive<i32> = -24 * 60..=24 * 60;

/// Longest text of a filter, bytes.
const TEXT: usize = 256;

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Flows of this host, or of the hosts of this network.
    pub(super) host: Option<Network>,
    /// Flows with this port.
    pub(super) port: Option<u16>,
    /// Flows with this label.
    pub(super) application: Option<String>,
    /// Flows whose server name or DNS name contains this.
    pub(super) name: Option<String>,
    /// The beginning of the shown time, seconds since 1970.
    pub(super) from: Option<u64>,
    /// Length of the shown time unless it has a beginning: its name, and seconds.
    pub(super) span: (&'static str, u64),
    /// The end of the shown time, seconds since 1970; else now.
    pub(super) until: Option<u64>,
    /// The word of the only table; else those of an overview.
    pub(super) table: Option<String>,
    /// What tables of sums are ordered by.
    pub(super) by: &'static str,
    /// Rows of a table.
    pub(super) rows: usize,
    /// The zone of shown times, minutes ahead of UTC.
    pub(super) zone: i32,
}

impl Default for View {
    fn default() -> Self {
        let (host, port, application, name) = (None, None, None, None);
        let (from, until, table, by) = (None, None, None, MEASURES[0]);
        Self {
            host,
            port,
            application,
            name,
            from,
            span: SPAN,
            until,
            table,
            by,
            rows: ROWS[0],
            zone: 0,
        }
    }
}

impl View {
    /// The view of a query; an error says what is wrong. Unknown parameters are ignored.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut view = Self::default();
        for (name, value) in zone_first(query) {
            view.set(name, value.trim())?;
        }
        match (view.from, view.until) {
            (Some(from), Some(until)) if from >= until => Err("from is not before until".into()),
            (Some(from), _) if is_ahead(from) => Err(format!("from is in the future: {AHEAD}")),
            _ => Ok(view),
        }
    }

    /// The view of what is right in a query.
    pub(super) fn of_right_parts(query: &str) -> Self {
        let mut view = Self::default();
        for (name, value) in zone_first(query) {
            let _ = view.set(name, value.trim());
        }
        let is_wrong = |from: u64| view.until.is_some_and(|until| from >= until) || is_ahead(from);
        view.from = view.from.filter(|from| !is_wrong(*from));
        view
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Ok(());
        }
        let wrong = |expected: &str| format!("{name}={value:?}: use {expected}");
        match name {
            "host" => {
                self.host = Some(
                    network(value).ok_or_else(|| wrong("an address or a network, 10.0.0.0/8"))?,
                );
            }
            "port" => self.port = Some(value.parse().map_err(|_| wrong("0 to 65535"))?),
            "application" | "name" | "table" if value.len() > TEXT => {
                return Err(format!("{name} has more than {TEXT} bytes"));
            }
            "application" => self.application = Some(value.to_lowercase()),
            "name" => self.name = Some(value.to_lowercase()),
            "table" => self.table = Some(value.to_owned()),
            "span" => {
                let found = SPANS.into_iter().find(|(name, _)| *name == value);
                let names = SPANS.map(|(name, _)| name).join(", ");
                self.span = found.ok_or_else(|| wrong(&names))?;
            }
            "from" => self.from = Some(time(value, self.zone).ok_or_else(|| wrong(TIME))?),
            "until" => self.until = Some(time(value, self.zone).ok_or_else(|| wrong(TIME))?),
            "by" => {
                let found = MEASURES.into_iter().find(|measure| *measure == value);
                self.by = found.ok_or_else(|| wrong("octets, packets or flows"))?;
            }
            "rows" => {
                let found = ROWS.into_iter().find(|rows| rows.to_string() == value);
                self.rows = found.ok_or_else(|| wrong("10, 50, 200 or 1000"))?;
            }
            "zone" => {
                let minutes = value.parse().ok().filter(|minutes| ZONES.contains(minutes));
                self.zone = minutes.ok_or_else(|| wrong("minutes ahead of UTC"))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The query.
    pub(super) fn query(&self) -> String {
        let mut query = String::new();
        let mut add = |name: &str, value: &str| {
            let mark = if query.is_empty() { '?' } else { '&' };
            // Writing to a String cannot fail.
            let _ = write!(query, "{mark}{name}={}", encoded(value));
        };
        if let Some(host) = self.host {
            add("host", &host.to_string());
        }
        if let Some(port) = self.port {
            add("port", &port.to_string());
        }
        if let Some(label) = &self.application {
            add("application", label);
        }
        if let Some(name) = &self.name {
            add("name", name);
        }
        if self.zone != 0 {
            add("zone", &self.zone.to_string());
        }
        match self.from {
            Some(from) => add("from", &from.to_string()),
            None if self.span != SPAN => add("span", self.span.0),
            None => {}
        }
        if let Some(until) = self.until {
            add("until", &until.to_string());
        }
        if let Some(table) = &self.table {
            add("table", table);
        }
        if self.by != MEASURES[0] {
            add("by", self.by);
        }
        if self.rows != ROWS[0] {
            add("rows", &self.rows.to_string());
        }
        query
    }

    /// The address of this view.
    pub(super) fn link(&self) -> String {
        format!("/{}", self.query())
    }

    /// The address of this view, changed.
    pub(super) fn link_with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut view = self.clone();
        change(&mut view);
        view.link()
    }

    /// Whether it shows a part of the flows.
    pub(super) fn is_filtered(&self) -> bool {
        self.host.is_some()
            || self.port.is_some()
            || self.application.is_some()
            || self.name.is_some()
    }

    /// The only host that it is of.
    pub(super) fn one_host(&self) -> Option<IpAddr> {
        self.host.filter(|host| *host == of_one(host.address)).map(|host| host.address)
    }

    /// The filter in the words of `ringtap query`: `host 10.0.0.1 and port 53`.
    pub(super) fn filter(&self) -> String {
        let parts = [
            self.host.map(|host| match self.one_host() {
                Some(host) => format!("host {host}"),
                None => format!("net {host}"),
            }),
            self.port.map(|port| format!("port {port}")),
            self.application.as_ref().map(|label| match label.as_str() {
                UNKNOWN => "not app ~ \".\"".into(),
                label => format!("app = {}", quoted(label)),
            }),
            self.name.as_ref().map(|name| format!("name ~ {}", quoted(&pattern(name)))),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    /// The time of an answer (RFC 3339), in the view's zone.
    pub(super) fn time_text(&self, text: &str) -> String {
        match moment::parse(text, 0, Zone::Utc) {
            Ok(ms) => self.local(ms.unsigned_abs().saturating_mul(1_000_000)),
            Err(_) => text.to_owned(),
        }
    }

    /// A time in the view's zone: `2026-11-26 10:02:03`.
    pub(super) fn local(&self, ns: u64) -> String {
        let ns = ns.saturating_add_signed(i64::from(self.zone) * 60_000_000_000);
        Time(ns).to_string().get(..19).unwrap_or_default().replace('T', " ")
    }

    /// The view's zone: `UTC`, `UTC+01:00`.
    pub(super) fn zone_name(&self) -> String {
        match self.zone {
            0 => "UTC".into(),
            minutes => {
                let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
                format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

/// The application of flows without a label.
pub(super) const UNKNOWN: &str = "unknown";

/// How to name an earlier day.
const AHEAD: &str = "of another day it needs the date, 2026-11-26T10:02";

/// Whether a time is in the future, by more than clocks differ.
fn is_ahead(seconds: u64) -> bool {
    seconds > moment::now().max(0).unsigned_abs() / 1_000 + 60
}

/// The names of parameters.
const NAMES: [&str; 11] =
    ["host", "port", "application", "name", "from", "span", "until", "table", "by", "rows", "zone"];

/// Refuses a query with other parameters.
pub(super) fn known_alone(query: &str) -> Result<(), String> {
    let unknown = pairs(query).find(|(name, _)| !name.is_empty() && !NAMES.contains(name));
    unknown.map_or(Ok(()), |(name, _)| {
        Err(format!("unknown parameter {name}: use {}", NAMES.join(", ")))
    })
}

/// The forms of a time.
const TIME: &str = "2026-11-26T10:02, -1h, or seconds since 1970";

/// Seconds since 1970.
fn time(value: &str, zone: i32) -> Option<u64> {
    if let Ok(seconds) = value.parse() {
        return Some(seconds);
    }
    let now_ms = moment::now();
    let ahead_ms = i64::from(zone) * 60_000;
    // A time without a zone is of the view's.
    let is_relative = value == "now" || value.starts_with('-');
    let has_zone =
        value.ends_with('Z') || value.get(19..).is_some_and(|end| end.contains(['+', '-']));
    let ahead_ms = if is_relative || has_zone { 0 } else { ahead_ms };
    let ms = moment::parse(value, now_ms.checked_add(ahead_ms)?, Zone::Utc).ok()?;
    u64::try_from(ms.checked_sub(ahead_ms)? / 1_000).ok()
}

/// An address, or a network; bits of hosts are ignored.
fn network(text: &str) -> Option<Network> {
    match text.parse() {
        Ok(network) => Some(network),
        Err(ringtap_base::NotANetwork::HostBits(network)) => Some(network),
        Err(_) => None,
    }
}

/// The network of one host.
pub(super) fn of_one(address: IpAddr) -> Network {
    Network { address, length: if address.is_ipv4() { 32 } else { 128 } }
}

/// A text in the language of questions, which has no letter for a quotation mark in a text: two of a kind end it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('"') { '\'' } else { '"' };
    format!("{quote}{}{quote}", text.replace(quote, ""))
}

/// A regular expression for a text that contains this one.
fn pattern(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        match letter {
            letter if letter.is_alphanumeric() || "-_ ,:/@".contains(letter) => {
                pattern.push(letter)
            }
            // In a question a text ends with a quotation mark.
            '"' | '\'' => _ = write!(pattern, "\\x{:02x}", u32::from(letter)),
            letter => {
                _ = write!(
                    pattern,
                    "[{}]",
                    if "\\^]".contains(letter) { format!("\\{letter}") } else { letter.into() }
                )
            }
        }
    }
    pattern
}

/// The parameters of a query.
fn pairs(query: &str) -> impl Iterator<Item = (&str, String)> {
    query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name, decoded(value))
    })
}

/// The parameters of a query, the zone first: times are read in it.
fn zone_first(query: &str) -> impl Iterator<Item = (&str, String)> {
    let is_zone = |(name, _): &(&str, String)| *name == "zone";
    pairs(query).filter(is_zone).chain(pairs(query).filter(move |pair| !is_zone(pair)))
}

/// The last value of a parameter.
pub(super) fn last_value(query: &str, name: &str) -> Option<String> {
    pairs(query).filter(|(own, _)| *own == name).last().map(|(_, value)| value)
}

/// A value of a query (application/x-www-form-urlencoded).
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, more @ ..] = rest {
        rest = more;
        bytes.push(match (first, more) {
            (b'+', _) => b' ',
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    rest = after;
                    high << 4 | low
                }
                _ => b'%',
            },
            (byte, _) => *byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' | b'/' => {
                text.push(char::from(byte));
            }
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_that_of_its_own_query() {
        for query in [
            "",
            "host=10.0.0.1",
            "host=2001%3adb8%3A%3a1&port=53&span=1h",
            "application=dns&name=ex%26mple+.ORG%25&rows=50&until=1700000000&span=2d",
            "host=&port=&unknown=1&%%%",
            "host=10.1.2.3/8&from=1700000000&until=1700000300&table=pairs&by=flows&zone=-90",
        ] {
            let view = View::parse(query).unwrap();
            let link = view.link();
            assert_eq!(View::parse(link.trim_start_matches("/?")).unwrap(), view, "{link}");
        }
        let right = View::of_right_parts("host=x&port=53&rows=7&span=1h");
        assert_eq!(right.link(), "/?port=53&span=1h");
        let view = View::parse("name=a%20B%2b&host=::1").unwrap();
        assert_eq!((view.name.as_deref(), view.one_host()), (Some("a b+"), "::1".parse().ok()));
        assert_eq!(view.link(), "/?host=::1&name=a%20b%2B");
        assert_eq!(view.filter(), "host ::1 and name ~ \"a b[+]\"");
        let view = View::parse("host=10.1.2.3/8&application=unknown&zone=60&from=2026-11-26T10:02")
            .unwrap();
        assert_eq!(view.filter(), "net 10.0.0.0/8 and not app ~ \".\"");
        assert_eq!((view.one_host(), view.from), (None, Some(1_795_683_720)));
        let behind = View::parse("from=2026-11-26T10:02&zone=60").unwrap();
        assert_eq!(behind.from, view.from, "the zone is that of all times");
        assert_eq!(view.time_text("2026-11-26T10:02:03.500Z"), "2026-11-26 11:02:03");
        assert_eq!(view.zone_name(), "UTC+01:00");
        assert_eq!(View::default().link(), "/");
    }

    #[test]
    fn wrong_values_are_named() {
        for (query, expected) in [
            ("host=example", "host=\"example\": use an address or a network, 10.0.0.0/8"),
            ("port=70000", "port=\"70000\": use 0 to 65535"),
            ("span=3m", "span=\"3m\": use 1m, 5m, 15m, 1h, 6h, 1d, 2d, 7d, 30d"),
            ("until=x", "until=\"x\": use 2026-11-26T10:02, -1h, or seconds since 1970"),
            ("rows=1", "rows=\"1\": use 10, 50, 200 or 1000"),
            ("by=x", "by=\"x\": use octets, packets or flows"),
            ("zone=x", "zone=\"x\": use minutes ahead of UTC"),
            ("from=20&until=20", "from is not before until"),
            (
                "from=99999999999",
                "from is in the future: of another day it needs the date, 2026-11-26T10:02",
            ),
        ] {
            assert_eq!(View::parse(query).unwrap_err(), expected);
        }
        assert!(known_alone("host=1&&from=2").is_ok() && known_alone("").is_ok());
        assert!(
            known_alone("form=2").unwrap_err().starts_with("unknown parameter form: use host, ")
        );
        let long = format!("name={}", "x".repeat(TEXT + 1));
        assert_eq!(View::parse(&long).unwrap_err(), "name has more than 256 bytes");
    }
}

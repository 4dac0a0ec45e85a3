//! What a page shows: the query of its address, so that every view has a permanent link.

use std::fmt::Write;
use std::net::IpAddr;

use ringtap_base::parse_address;

/// The spans that can be chosen, with their seconds.
pub(super) const SPANS: [(&str, u64); 7] = [
    ("1m", 60),
    ("5m", 300),
    ("15m", 900),
    ("1h", 3600),
    ("6h", 21_600),
    ("1d", 86_400),
    ("2d", 172_800),
];

/// The usual span.
const SPAN: (&str, u64) = SPANS[1];

/// The numbers of rows in a table that can be chosen.
pub(super) const ROWS: [usize; 3] = [10, 50, 200];

/// Longest text of a filter, bytes.
const TEXT: usize = 256;

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Flows of this host.
    pub(super) host: Option<IpAddr>,
    /// Flows with this port.
    pub(super) port: Option<u16>,
    /// Flows with this label.
    pub(super) application: Option<String>,
    /// Flows whose server name or DNS name contains this.
    pub(super) name: Option<String>,
    /// Length of the shown time: its name, and seconds.
    pub(super) span: (&'static str, u64),
    /// The end of the shown time, seconds since 1970; else now.
    pub(super) until: Option<u64>,
    /// Rows of a table.
    pub(super) rows: usize,
}

impl Default for View {
    fn default() -> Self {
        let (host, port, application, name, until) = (None, None, None, None, None);
        Self { host, port, application, name, span: SPAN, until, rows: ROWS[0] }
    }
}

impl View {
    /// The view of a query; an error says what is wrong. Unknown parameters are ignored.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut view = Self::default();
        pairs(query).try_for_each(|(name, value)| view.set(name, value.trim()))?;
        Ok(view)
    }

    /// The view of what is right in a query.
    pub(super) fn of_right_parts(query: &str) -> Self {
        let mut view = Self::default();
        for (name, value) in pairs(query) {
            let _ = view.set(name, value.trim());
        }
        view
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Ok(());
        }
        let wrong = |expected: &str| format!("{name}={value:?}: use {expected}");
        match name {
            "host" => self.host = Some(parse_address(value).ok_or_else(|| wrong("an address"))?),
            "port" => self.port = Some(value.parse().map_err(|_| wrong("0 to 65535"))?),
            "application" | "name" if value.len() > TEXT => {
                return Err(format!("{name} has more than {TEXT} bytes"));
            }
            "application" => self.application = Some(value.to_lowercase()),
            "name" => self.name = Some(value.to_lowercase()),
            "span" => {
                let found = SPANS.into_iter().find(|(name, _)| *name == value);
                let names = SPANS.map(|(name, _)| name).join(", ");
                self.span = found.ok_or_else(|| wrong(&names))?;
            }
            "until" => self.until = Some(value.parse().map_err(|_| wrong("seconds since 1970"))?),
            "rows" => {
                let found = ROWS.into_iter().find(|rows| rows.to_string() == value);
                self.rows = found.ok_or_else(|| wrong("10, 50 or 200"))?;
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
        if self.span != SPAN {
            add("span", self.span.0);
        }
        if let Some(until) = self.until {
            add("until", &until.to_string());
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

    /// The filter in words: `host 10.0.0.1, port 53`.
    pub(super) fn filter(&self) -> String {
        let parts = [
            self.host.map(|host| format!("host {host}")),
            self.port.map(|port| format!("port {port}")),
            self.application.as_ref().map(|label| format!("application {label}")),
            self.name.as_ref().map(|name| format!("name {name}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, String)> {
    query.split('&').map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name, decoded(value))
    })
}

/// The value of a parameter.
pub(super) fn value(query: &str, name: &str) -> Option<String> {
    pairs(query).find(|(own, _)| *own == name).map(|(_, value)| value)
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
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' => {
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
        ] {
            let view = View::parse(query).unwrap();
            let link = view.link();
            assert_eq!(View::parse(link.trim_start_matches("/?")).unwrap(), view, "{link}");
        }
        let right = View::of_right_parts("host=x&port=53&rows=7&span=1h");
        assert_eq!(right.link(), "/?port=53&span=1h");
        let view = View::parse("name=a%20B%2b&host=::1").unwrap();
        assert_eq!((view.name.as_deref(), view.host), (Some("a b+"), "::1".parse().ok()));
        assert_eq!(view.link(), "/?host=::1&name=a%20b%2B");
        assert_eq!(view.filter(), "host ::1, name a b+");
        assert_eq!(View::default().link(), "/");
    }

    #[test]
    fn wrong_values_are_named() {
        for (query, expected) in [
            ("host=example", "host=\"example\": use an address"),
            ("port=70000", "port=\"70000\": use 0 to 65535"),
            ("span=3m", "span=\"3m\": use 1m, 5m, 15m, 1h, 6h, 1d, 2d"),
            ("until=-1", "until=\"-1\": use seconds since 1970"),
            ("rows=1", "rows=\"1\": use 10, 50 or 200"),
        ] {
            assert_eq!(View::parse(query).unwrap_err(), expected);
        }
        let long = format!("name={}", "x".repeat(TEXT + 1));
        assert_eq!(View::parse(&long).unwrap_err(), "name has more than 256 bytes");
    }
}

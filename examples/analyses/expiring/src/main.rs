//! Certificates of TLS servers that end within thirty days of their latest connection, or have ended.

use std::net::IpAddr;

use ringtap::{Analysis, Fact, Flow, Room, Table};
use serde::Serialize;

const DAYS: i64 = 30;

/// A certificate, by its SHA-256.
#[derive(Default)]
struct Certificate {
    subject: String,
    /// As `2026-01-31T00:00:00Z`.
    not_after: String,
    /// The smallest of their addresses.
    server: Option<IpAddr>,
    connections: u64,
    latest_ns: u64,
}

struct Expiring(Table<Vec<u8>, Certificate>);

#[derive(Serialize)]
struct Row {
    not_after: String,
    days_left: i64,
    subject: String,
    connections: u64,
    server: Option<IpAddr>,
}

/// The value of a fact as text.
fn text(flow: &Flow, fact: Fact) -> String {
    flow.facts
        .values(fact)
        .next()
        .map_or(String::new(), |value| String::from_utf8_lossy(value).into())
}

/// Days since 1970 of a date such as `2026-01-31…`; years begin in March, so that leap days are last.
fn days(date: &str) -> Option<i64> {
    let part = |range: std::ops::Range<usize>| date.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let year = if month < 3 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468)
}

impl Analysis for Expiring {
    const NAME: &'static str = "expiring";
    const TAKES_MESSAGES: bool = false;
    const FLOW_BYTES: u64 = 512;

    type Report = Vec<Row>;

    fn new(room: &Room) -> Self {
        Self(Table::new(room))
    }

    fn record(&mut self, flow: &Flow) {
        let Some(hash) = flow.facts.values(Fact::TlsCertificateSha256).next() else { return };
        let Some(row) = self.0.row(hash.to_vec()) else { return };
        row.subject = text(flow, Fact::TlsCertificateSubject);
        row.not_after = text(flow, Fact::TlsCertificateNotAfter);
        row.server = row.server.into_iter().chain([flow.key.destination()]).min();
        row.connections += 1;
        row.latest_ns = row.latest_ns.max(flow.last_ns);
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0, |own, more| {
            own.server = own.server.into_iter().chain(more.server).min();
            own.connections += more.connections;
            own.latest_ns = own.latest_ns.max(more.latest_ns);
        });
    }

    fn report(self) -> Vec<Row> {
        let row = |(_, own): (Vec<u8>, Certificate)| {
            let latest = (own.latest_ns / 86_400_000_000_000) as i64;
            let days_left = days(&own.not_after)? - latest;
            (days_left <= DAYS).then_some(Row {
                not_after: own.not_after,
                days_left,
                subject: own.subject,
                connections: own.connections,
                server: own.server,
            })
        };
        let mut rows: Vec<Row> = self.0.into_sorted().into_iter().filter_map(row).collect();
        rows.sort_by_key(|row| row.days_left);
        rows
    }
}

ringtap::main![Expiring];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_everywhere() {
        ringtap::testing::equal_everywhere::<Expiring>([ringtap::testing::BUNDLED]);
    }

    #[test]
    fn dates_are_days() {
        assert_eq!(days("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(days("2000-03-01T00:00:00Z"), Some(11_017));
        assert_eq!(days("2026-11-29T12:00:00Z"), Some(20_786));
        assert_eq!(days("soon"), None);
    }
}

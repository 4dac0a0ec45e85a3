//! Questions in short forms, and the SQL that answers them.
//!
//! ```text
//! top 20 hosts by packets every 5m where tcp port 443 and not net 10.0.0.0/8
//!  │  │  │     │          │        └ a filter, after any form
//!  │  │  │     │          └ of each period
//!  │  │  │     └ octets, packets or flows
//!  │  └ how many rows
//! ```
//!
//! A record counts when its last packet is in the time of the question; with cut flows, that is exact to the cut. Flows
//! are counted by their first parts.

use std::net::IpAddr;

use ringtap_terminal::units;

use crate::filter::{self, Filter};
use crate::moment;
use crate::sql::literal;
use crate::text::{Misunderstood, Words};

/// Rows of a list, unless the question or a flag says how many.
const ROWS: u64 = 10;

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    form: Form,
    filter: Option<Filter>,
    rows: Option<u64>,
}

#[derive(Clone, Debug)]
enum Form {
    Top { of: &'static Ranking, by: Measure, every_ms: Option<u64> },
    Compare { of: &'static Ranking, by: Measure },
    Flows,
    Failed,
    Long,
    Scans,
    Asked(String),
    NamesOf(IpAddr),
    Servers,
    Timeline { of: Option<IpAddr>, every_ms: u64 },
    Alerts { of: Option<IpAddr> },
}

/// What can be ranked.
#[derive(Debug)]
struct Ranking {
    /// The word for it.
    word: &'static str,
    /// Names of the key's columns.
    keys: &'static [&'static str],
    counts: Counts,
    /// What each record gives: the keys in SQL, and the condition that there is one. The second of two is counted with sent
    /// and received exchanged.
    of: &'static [(&'static [&'static str], &'static str)],
}

/// What is counted for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Both directions.
    Both,
    /// Both directions, and each by itself.
    Sides,
    /// What the first end sent.
    Sent,
}

/// The server port, as `FlowRecord::server_port` has it: if the begin of a connection was not seen, that of the lower class.
macro_rules! server_port {
    () => {
        "CASE WHEN biflowDirection = 0 \
         AND sourceTransportPort > 0 AND (destinationTransportPort = 0 \
         OR (sourceTransportPort >= 1024)::TINYINT + (sourceTransportPort >= 32768)::TINYINT \
         < (destinationTransportPort >= 1024)::TINYINT + (destinationTransportPort >= 32768)::TINYINT) \
         THEN sourceTransportPort ELSE destinationTransportPort END"
    };
}

/// All rankings.
const RANKINGS: [Ranking; 11] = [
    Ranking {
        word: "hosts",
        keys: &["host"],
        counts: Counts::Sides,
        of: &[
            (&["sourceIPAddress"], ""),
            (&["destinationIPAddress"], "sourceIPAddress <> destinationIPAddress"),
        ],
    },
    Ranking {
        word: "sources",
        keys: &["host"],
        counts: Counts::Sent,
        of: &[(&["sourceIPAddress"], ""), (&["destinationIPAddress"], "")],
    },
    Ranking {
        word: "destinations",
        keys: &["host"],
        counts: Counts::Sent,
        of: &[(&["destinationIPAddress"], ""), (&["sourceIPAddress"], "")],
    },
    Ranking {
        word: "pairs",
        keys: &["host", "peer"],
        counts: Counts::Both,
        of: &[(
            &[
                "least(sourceIPAddress, destinationIPAddress)",
                "greatest(sourceIPAddress, destinationIPAddress)",
            ],
            "",
        )],
    },
    Ranking {
        word: "ports",
        keys: &["protocol", "port"],
        counts: Counts::Both,
        of: &[(&["protocolIdentifier", server_port!()], concat!(server_port!(), " > 0"))],
    },
    Ranking {
        word: "protocols",
        keys: &["protocol"],
        counts: Counts::Both,
        of: &[(&["protocolIdentifier"], "")],
    },
    Ranking {
        word: "applications",
        keys: &["application"],
        counts: Counts::Both,
        of: &[(&["coalesce(application, 'unknown')"], "")],
    },
    Ranking {
        word: "names",
        keys: &["name"],
        counts: Counts::Both,
        of: &[(
            &["coalesce(tlsServerName, httpHost[1], dnsQueryName[1])"],
            "coalesce(tlsServerName, httpHost[1], dnsQueryName[1]) IS NOT NULL",
        )],
    },
    Ranking {
        word: "networks",
        keys: &["network"],
        counts: Counts::Sides,
        of: &[
            (&["sourceNetwork"], "sourceNetwork IS NOT NULL"),
            (
                &["destinationNetwork"],
                "destinationNetwork IS NOT NULL AND destinationNetwork IS DISTINCT FROM sourceNetwork",
            ),
        ],
    },
    Ranking {
        word: "countries",
        keys: &["country"],
        counts: Counts::Sides,
        of: &[
            (&["sourceCountry"], "sourceCountry IS NOT NULL"),
            (
                &["destinationCountry"],
                "destinationCountry IS NOT NULL AND destinationCountry IS DISTINCT FROM sourceCountry",
            ),
        ],
    },
    Ranking {
        word: "as",
        keys: &["number", "organisation"],
        counts: Counts::Sides,
        of: &[
            (&["bgpSourceAsNumber", "sourceAsName"], "bgpSourceAsNumber IS NOT NULL"),
            (
                &["bgpDestinationAsNumber", "destinationAsName"],
                "bgpDestinationAsNumber IS NOT NULL AND bgpDestinationAsNumber IS DISTINCT FROM bgpSourceAsNumber",
            ),
        ],
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Octets,
    Packets,
    Flows,
}

impl Measure {
    const fn word(self) -> &'static str {
        match self {
            Self::Octets => "octets",
            Self::Packets => "packets",
            Self::Flows => "flows",
        }
    }
}

/// The sums of a record: from the initiator, to it, and whether a flow begins with it.
const SUMS: [&str; 5] = [
    "octetDeltaCount",
    "coalesce(reverseOctetDeltaCount, 0)",
    "packetDeltaCount",
    "coalesce(reversePacketDeltaCount, 0)",
    "(coalesce(flowPart, 0) = 0)::UBIGINT",
];

impl Question {
    /// Reads a question.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(text: &str) -> Result<Self, Misunderstood> {
        let mut words = Words::new(text)?;
        let (form, rows) = Self::form(&mut words)?;
        let filter = if words.accept("where") { Some(Filter::read(&mut words)?) } else { None };
        if filter.is_some()
            && matches!(form, Form::Alerts { .. } | Form::Scans | Form::Asked(_) | Form::NamesOf(_))
        {
            return Err(words.wrong("a filter is for flow records, not for alerts and events"));
        }
        match words.peek() {
            None => Ok(Self { form, filter, rows }),
            Some(_) if filter.is_some() => Err(words.expected("and, or, or the end")),
            Some(_) => Err(words.expected("where, or the end")),
        }
    }

    fn form(words: &mut Words<'_>) -> Result<(Form, Option<u64>), Misunderstood> {
        let is_top = words.accept("top");
        if is_top || words.accept("compare") {
            let rows = number(words);
            let word = words.word("what to rank, such as hosts")?;
            let of = RANKINGS.iter().find(|ranking| ranking.word.eq_ignore_ascii_case(&word));
            let of = of.ok_or_else(|| {
                let all: Vec<_> = RANKINGS.iter().map(|ranking| ranking.word).collect();
                words.wrong(format!("unknown {word}: use {}", all.join(", ")))
            })?;
            let mut by = Measure::Octets;
            if words.accept("by") {
                let word = words.word("octets, packets or flows")?;
                let all = [Measure::Octets, Measure::Packets, Measure::Flows];
                let found = all.into_iter().find(|own| own.word().eq_ignore_ascii_case(&word));
                by = found.ok_or_else(|| {
                    words.wrong(format!("unknown measure {word}: use octets, packets or flows"))
                })?;
            }
            if !is_top {
                return Ok((Form::Compare { of, by }, rows));
            }
            return Ok((Form::Top { of, by, every_ms: every(words)? }, rows));
        }
        let form = if words.accept("flows") {
            Form::Flows
        } else if words.accept("failed") {
            Form::Failed
        } else if words.accept("long") {
            Form::Long
        } else if words.accept("scans") {
            Form::Scans
        } else if words.accept("servers") {
            Form::Servers
        } else if words.accept("who") {
            if !words.accept("asked") {
                return Err(words.expected("asked"));
            }
            Form::Asked(words.word("a name")?)
        } else if words.accept("names") {
            Form::NamesOf(of_address(words)?)
        } else if words.accept("alerts") {
            Form::Alerts { of: of_any(words)? }
        } else if words.accept("timeline") {
            let of = of_any(words)?;
            Form::Timeline { of, every_ms: every(words)?.unwrap_or(3_600_000) }
        } else {
            return Err(words.expected(
                "top, compare, flows, failed, long, alerts, scans, who, names, servers or timeline",
            ));
        };
        let rows = number(words);
        Ok((form, rows))
    }

    /// Whether the answer needs the period of `--with`.
    pub const fn compares(&self) -> bool {
        matches!(self.form, Form::Compare { .. })
    }

    /// Whether the answer is from events or alerts, which a store alone has.
    pub const fn needs_store(&self) -> bool {
        matches!(self.form, Form::Alerts { .. } | Form::Scans | Form::Asked(_) | Form::NamesOf(_))
    }

    /// The SQL, over the tables `flows`, `flows_before`, `events` and `alerts`. `rows` is the number of rows that the caller wants. For a table, flow
    /// records have few columns.
    pub fn sql(&self, rows: Option<u64>, is_table: bool) -> String {
        let rows = rows.or(self.rows);
        let limit = rows.unwrap_or(ROWS);
        let filter = self.filter.as_ref().map_or_else(|| "true".to_owned(), Filter::sql);
        match &self.form {
            Form::Top { of, by, every_ms } => top(of, *by, *every_ms, &filter, limit),
            Form::Compare { of, by } => compare(of, *by, &filter, limit),
            Form::Flows => {
                let limit = rows.map_or_else(String::new, |rows| format!("\nLIMIT {rows}"));
                let columns = if is_table { FEW } else { "*" };
                format!(
                    "SELECT {columns}\nFROM flows\nWHERE {filter}\nORDER BY flowStartMilliseconds, flowEndMilliseconds{limit}"
                )
            }
            // An answer may be in a later part.
            Form::Failed => format!(
                "SELECT destinationIPAddress AS server, destinationTransportPort AS port, count(*) AS connections, \
                 count(DISTINCT sourceIPAddress) AS clients, min(sourceIPAddress) AS client, \
                 min(flowStartMilliseconds) AS first, max(flowEndMilliseconds) AS last\nFROM flows AS own\n\
                 WHERE {} AND coalesce(flowPart, 0) = 0 AND {filter}\n  \
                 AND NOT EXISTS (SELECT 1 FROM flows AS later WHERE later.flowPart > 0 AND later.flowId = own.flowId \
                 AND later.reversePacketDeltaCount > 0)\n\
                 GROUP BY ALL\nORDER BY connections DESC, server, port\nLIMIT {limit}",
                Filter::Test(filter::Test::Failed).sql()
            ),
            Form::Long => format!(
                "SELECT min(flowStartMilliseconds) AS start, max(flowEndMilliseconds) AS \"end\", \
                 (epoch_ms(max(flowEndMilliseconds)) - epoch_ms(min(flowStartMilliseconds))) / 1000 AS seconds, \
                 protocolIdentifier AS protocol, sourceIPAddress AS source, sourceTransportPort AS source_port, \
                 destinationIPAddress AS destination, destinationTransportPort AS port, \
                 max_by(application, flowEndMilliseconds) AS application, {}, {}\nFROM flows\nWHERE {filter}\n\
                 GROUP BY protocolIdentifier, sourceIPAddress, sourceTransportPort, destinationIPAddress, \
                 destinationTransportPort, coalesce(flowId, epoch_ms(flowStartMilliseconds))\n\
                 ORDER BY seconds DESC, octets DESC, packets DESC, start, source, source_port\nLIMIT {limit}",
                sum("octets", &format!("{} + {}", SUMS[0], SUMS[1])),
                sum("packets", &format!("{} + {}", SUMS[2], SUMS[3])),
            ),
            Form::Scans => format!(
                "SELECT * FROM alerts\nWHERE contains(kind, 'scan') OR contains(kind, 'sweep')\nORDER BY time\nLIMIT {limit}"
            ),
            Form::Asked(name) => {
                let (name, below) =
                    (literal(&name.to_lowercase()), literal(&format!(".{}", name.to_lowercase())));
                format!(
                    "SELECT sourceIPAddress AS host, name, count(*) AS questions, min(time) AS first, max(time) AS last\nFROM \
                     (SELECT sourceIPAddress, time, lower(unnest(dnsQueryName)) AS name FROM events WHERE event = 'dns' AND dnsKind = 'query')\n\
                     WHERE name = {name} OR ends_with(name, {below})\n\
                     GROUP BY ALL\nORDER BY questions DESC, host, name\nLIMIT {limit}"
                )
            }
            Form::NamesOf(host) => format!(
                "SELECT name, \"by\", count(*) AS messages, min(time) AS first, max(time) AS last\nFROM (\n  \
                 SELECT lower(unnest(dnsQueryName)) AS name, 'dns' AS \"by\", time FROM events WHERE list_contains(dnsAnswers, '{host}')\n  \
                 UNION ALL SELECT lower(tlsServerName), event, time FROM events WHERE destinationIPAddress = '{host}' AND tlsServerName IS NOT NULL\n  \
                 UNION ALL SELECT lower(unnest(httpHost)), event, time FROM events WHERE destinationIPAddress = '{host}'\n)\n\
                 GROUP BY ALL\nORDER BY messages DESC, name, \"by\"\nLIMIT {limit}"
            ),
            Form::Servers => format!(
                "SELECT destinationIPAddress AS server, destinationTransportPort AS port, application, \
                 coalesce(sum(responseCount), 0)::UBIGINT AS responses, \
                 (sum(responseMicroseconds::UHUGEINT * responseCount) / sum(responseCount))::UBIGINT AS mean_us, \
                 max(responseMicroseconds) AS slowest_record_us, \
                 median(tcpServerHandshakeRttMicroseconds)::UBIGINT AS rtt_median_us, max(tcpServerHandshakeRttMicroseconds) AS rtt_longest_us\n\
                 FROM flows\nWHERE (responseCount > 0 OR tcpServerHandshakeRttMicroseconds IS NOT NULL) AND {filter}\n\
                 GROUP BY ALL\nORDER BY mean_us DESC NULLS LAST, rtt_median_us DESC, server, port\nLIMIT {limit}"
            ),
            Form::Alerts { of } => {
                let of = of.map_or_else(String::new, |of| {
                    format!("\nWHERE '{of}' IN (source, target, host)")
                });
                format!(
                    "SELECT since, max(time) AS time, arg_max(state, time) AS state, arg_max(severity, time) AS severity, \
                     any_value(kind) AS kind, any_value(coalesce(source, host, target)) AS host, arg_max(text, time) AS text\n\
                     FROM alerts{of}\nGROUP BY since, id\nORDER BY since DESC, id\nLIMIT {limit}"
                )
            }
            Form::Timeline { of: None, every_ms } => {
                let [out, into, packets_out, packets_in, flows] = SUMS;
                format!(
                    "SELECT {} AS time, {}, {}, {}\nFROM flows\nWHERE {filter}\nGROUP BY ALL\nORDER BY time",
                    period(*every_ms),
                    sum("octets", &format!("{out} + {into}")),
                    sum("packets", &format!("{packets_out} + {packets_in}")),
                    sum("flows", flows),
                )
            }
            Form::Timeline { of: Some(of), every_ms } => {
                // One scan of the records, because most of them are of others.
                let [out, into, packets_out, packets_in, flows] = SUMS;
                let is_source = format!("sourceIPAddress = '{of}'");
                let sides = |own: &str, other: &str| {
                    format!("CASE WHEN {is_source} THEN {own} ELSE {other} END")
                };
                format!(
                    "SELECT {} AS time, {}, {}, {}, {}, {}, count(DISTINCT {}) AS peers\nFROM flows\n\
                     WHERE ({is_source} OR destinationIPAddress = '{of}') AND {filter}\nGROUP BY ALL\nORDER BY time",
                    period(*every_ms),
                    sum("octets", &format!("{out} + {into}")),
                    sum("sent", &sides(out, into)),
                    sum("received", &sides(into, out)),
                    sum("packets", &format!("{packets_out} + {packets_in}")),
                    sum("flows", flows),
                    sides("destinationIPAddress", "sourceIPAddress"),
                )
            }
        }
    }
}

/// The columns of flow records in a table.
const FEW: &str = "flowStartMilliseconds AS start, (epoch_ms(flowEndMilliseconds) - epoch_ms(flowStartMilliseconds)) / 1000 AS seconds, \
    protocolIdentifier AS protocol, sourceIPAddress AS source, sourceTransportPort AS source_port, destinationIPAddress AS destination, \
    destinationTransportPort AS port, octetDeltaCount + coalesce(reverseOctetDeltaCount, 0) AS octets, \
    packetDeltaCount + coalesce(reversePacketDeltaCount, 0) AS packets, application, \
    coalesce(tlsServerName, httpHost[1], dnsQueryName[1]) AS name";

fn number(words: &mut Words<'_>) -> Option<u64> {
    let number = match words.peek() {
        Some(crate::text::Is::Word(word)) => word.parse().ok(),
        _ => None,
    }?;
    words.take();
    Some(number)
}

fn every(words: &mut Words<'_>) -> Result<Option<u64>, Misunderstood> {
    if !words.accept("every") {
        return Ok(None);
    }
    let word = words.word("a time such as 5m")?;
    let ns = units::positive_duration_ns(&word).map_err(|error| words.wrong(error))?;
    let ms = Some(ns / 1_000_000).filter(|&ms| ms > 0 && ms <= i64::MAX as u64);
    ms.map(Some).ok_or_else(|| words.wrong("invalid period: use at least 1ms"))
}

fn of_any(words: &mut Words<'_>) -> Result<Option<IpAddr>, Misunderstood> {
    match words.peek() {
        Some(crate::text::Is::Word(word)) if word.eq_ignore_ascii_case("of") => {
            of_address(words).map(Some)
        }
        _ => Ok(None),
    }
}

fn of_address(words: &mut Words<'_>) -> Result<IpAddr, Misunderstood> {
    if !words.accept("of") {
        return Err(words.expected("of"));
    }
    let word = words.word("an address")?;
    word.parse().map_err(|_| words.wrong(format!("invalid address {word}: use 10.1.2.3")))
}

fn sum(name: &str, of: &str) -> String {
    format!("sum({of})::UBIGINT AS {name}")
}

/// The begin of the period that a record ends in, counted from 1970.
fn period(every_ms: u64) -> String {
    format!("make_timestamptz((epoch_ms(flowEndMilliseconds) // {every_ms} * {every_ms}) * 1000)")
}

/// The sums of all keys of a ranking.
fn ranked(of: &Ranking, table: &str, every_ms: Option<u64>, filter: &str) -> String {
    let mut parts = Vec::new();
    for (side, (keys, holds)) in of.of.iter().enumerate() {
        let is_second = side == 1 && of.of.len() == 2;
        let [mut out, mut into, mut packets_out, mut packets_in, flows] = SUMS;
        if is_second {
            (out, into, packets_out, packets_in) = (into, out, packets_in, packets_out);
        }
        let mut conditions = vec![filter];
        conditions.extend(Some(*holds).filter(|holds| !holds.is_empty()));
        let sent_any = format!("{packets_out} > 0");
        let (octets, packets) = if of.counts == Counts::Sent {
            conditions.push(&sent_any);
            (out.to_owned(), packets_out.to_owned())
        } else {
            (format!("{out} + {into}"), format!("{packets_out} + {packets_in}"))
        };
        let named: Vec<_> =
            keys.iter().zip(of.keys).map(|(sql, name)| format!("{sql} AS {name}")).collect();
        let time =
            every_ms.map_or_else(String::new, |every_ms| format!("{} AS time, ", period(every_ms)));
        let sides = if of.counts == Counts::Sides {
            format!(", {out} AS sent, {into} AS received")
        } else {
            String::new()
        };
        parts.push(format!("  SELECT {time}{}, {octets} AS octets{sides}, {packets} AS packets, {flows} AS flows FROM {table} WHERE {}", named.join(", "), conditions.join(" AND ")));
    }
    let sides = if of.counts == Counts::Sides {
        format!(", {}, {}", sum("sent", "sent"), sum("received", "received"))
    } else {
        String::new()
    };
    let time = if every_ms.is_some() { "time, " } else { "" };
    format!(
        "SELECT {time}{}, {}{sides}, {}, {}\nFROM (\n{}\n)\nGROUP BY ALL",
        of.keys.join(", "),
        sum("octets", "octets"),
        sum("packets", "packets"),
        sum("flows", "flows"),
        parts.join("\n  UNION ALL\n")
    )
}

fn top(of: &Ranking, by: Measure, every_ms: Option<u64>, filter: &str, limit: u64) -> String {
    let (ranked, by, keys) = (ranked(of, "flows", every_ms, filter), by.word(), of.keys.join(", "));
    if every_ms.is_none() {
        return format!("{ranked}\nORDER BY {by} DESC, {keys}\nLIMIT {limit}");
    }
    format!(
        "SELECT * FROM (\n{ranked}\n)\nQUALIFY row_number() OVER (PARTITION BY time ORDER BY {by} DESC, {keys}) <= {limit}\n\
         ORDER BY time, {by} DESC, {keys}"
    )
}

fn compare(of: &Ranking, by: Measure, filter: &str, limit: u64) -> String {
    let (by, keys) = (by.word(), of.keys.join(", "));
    let [now, before] = ["flows", "flows_before"].map(|table| ranked(of, table, None, filter));
    format!(
        "SELECT {keys}, {by}, {by}_before, {by}::BIGINT - {by}_before::BIGINT AS more\nFROM (\n\
         SELECT {keys}, coalesce(now.{by}, 0) AS {by}, coalesce(before.{by}, 0) AS {by}_before\nFROM (\n{now}\n) AS now\n\
         FULL JOIN (\n{before}\n) AS before USING ({keys})\n)\n\
         ORDER BY more DESC, {by} DESC, {keys}\nLIMIT {limit}"
    )
}

/// The begin and the end of a table's rows, in milliseconds since 1970.
pub(crate) fn within(column: &str, window: [Option<i64>; 2]) -> String {
    let [from, to] = window;
    let from = from.map(|ms| format!("{column} >= {}", moment::sql(ms)));
    let to = to.map(|ms| format!("{column} < {}", moment::sql(ms)));
    let all: Vec<_> = from.into_iter().chain(to).collect();
    if all.is_empty() { "true".to_owned() } else { all.join(" AND ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_and_faults_are_named() {
        for text in [
            "top hosts",
            "top 20 pairs by packets every 5m where tcp",
            "TOP as BY flows",
            "compare 3 ports by packets",
            "flows where not tcp",
            "failed 5",
            "long",
            "servers where app http",
            "timeline of 10.1.2.3",
            "timeline of ::1 every 1d where udp",
            "timeline every 5m where net 10.0.0.0/8",
            "alerts",
            "alerts of 10.1.2.3",
            "who asked example.com",
            "names of 10.1.2.3",
            "scans",
        ] {
            Question::new(text).unwrap_or_else(|error| panic!("{text}: {error}")).sql(None, true);
        }
        for (text, words) in [
            ("", "expected top, compare"),
            ("top", "expected what to rank"),
            ("top hots", "unknown hots: use hosts, sources"),
            ("top hosts by weight", "use octets, packets or flows"),
            ("top hosts every 0s", "use more than 0"),
            ("top hosts every 1ns", "use at least 1ms"),
            ("top hosts tcp", "expected where, or the end, found tcp"),
            ("who is", "expected asked"),
            ("names of www.example.com", "invalid address"),
            ("scans where tcp", "not for alerts and events"),
            ("flows where", "expected a test"),
        ] {
            let error = Question::new(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn rows_are_those_of_the_flag_of_the_question_or_ten() {
        let sql = |text: &str, rows| {
            Question::new(text).map(|own| own.sql(rows, false)).unwrap_or_default()
        };
        assert!(sql("top hosts", None).ends_with("LIMIT 10"));
        assert!(sql("top 3 hosts", None).ends_with("LIMIT 3"));
        assert!(sql("top 3 hosts", Some(4)).ends_with("LIMIT 4"));
        assert!(!sql("flows", None).contains("LIMIT"));
        assert!(sql("flows 7", None).ends_with("LIMIT 7"));
    }
}

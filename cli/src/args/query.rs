//! Flags of `ringtap query`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum, ValueHint};
use ringtap_query::moment::Zone;
use ringtap_terminal::units;

const FORMS: &str = "\
Questions:
  top [N] WHAT [by octets|packets|flows] [every TIME]   the largest hosts, sources, destinations,
      pairs, ports, protocols, applications, names, networks, countries or as
  compare [N] WHAT [by MEASURE]   what grew most, with --with
  flows                           flow records
  failed                          connections whose SYN had no answer, by server
  long                            the longest flows
  servers                         round-trip times of servers, slowest first
  timeline [of HOST] [every TIME] traffic by time [every 1h]
  who asked NAME                  hosts that asked for a name, or one below it (store)
  names of HOST                   names that led to an address (store)
  alerts [of HOST]                alerts, latest first (store)
  scans                           changes of alerts of scans (store)
Filters, after any question but the last four:
  where host 10.1.2.3 and tcp port 443 and not (octets < 10k or name ~ \"[.]example$\")
  Words: host, net, port, portrange, each also with src or dst; tcp, udp, icmp, …; proto, ip, ip6;
  octets, packets, duration, name, app, country, as, network, vlan, mac, failed, refused; any field of records.
  Signs: = != < <= > >=, ~ (regular expression), !~; and, or, not, ( ).
Times: 2026-11-26T10:02:03Z, '2026-11-26 10:02', 2026-11-26, 10:02, -1h, now. A record counts where
its last packet is from --from on and before --to.
The engine is DuckDB's program duckdb ('pip install duckdb-cli'; tested with 1.5), from PATH or
RINGTAP_DUCKDB. It reads the chosen files alone, and writes nothing but the answer.
Exit codes: 0 success; 1 a file or the engine failed; 2 usage error.";

/// Flags of `ringtap query`.
#[derive(Args)]
#[command(after_long_help = FORMS, after_help = "Questions: top, compare, flows, failed, long, servers, timeline, who asked, names of, alerts, scans;\n'where' and a filter may follow. 'ringtap query --help' describes them.")]
pub(crate) struct QueryArgs {
    /// A store written by 'ringtap monitor --store', or Parquet files of flow records; then the question in words
    #[arg(value_name = "STORE|FILE|QUESTION", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) words: Vec<String>,
    /// Ask in SQL, over the tables flows, flows_before, events, alerts and totals
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) sql: Option<String>,
    /// Only records from this time on
    #[arg(long, value_name = "MOMENT", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) from: Option<String>,
    /// Only records before this time
    #[arg(long, value_name = "MOMENT", value_parser = moment, allow_hyphen_values = true)]
    pub(crate) to: Option<String>,
    /// Compare with the period that is this much earlier: -1d
    #[arg(long, value_name = "TIME", value_parser = earlier, allow_hyphen_values = true)]
    pub(crate) with: Option<u64>,
    /// Times without a zone, and times in the answer, are local instead of UTC
    #[arg(long)]
    pub(crate) local: bool,
    /// Only records of this probe
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) probe: Option<String>,
    /// Most rows [default: 10; flows: 100 in a table, otherwise all]
    #[arg(long, value_name = "N", value_parser = rows, conflicts_with = "sql")]
    pub(crate) limit: Option<u64>,
    /// The answer on stdout: table, csv, json (an object a line) or parquet
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_possible_values = true)]
    pub(crate) output: Rows,
    /// Print the SQL of the question instead of the answer
    #[arg(long, conflicts_with = "sql")]
    pub(crate) explain: bool,
    /// Memory of the engine; what does not fit is on disk, in the folder of TMPDIR
    #[arg(long, value_name = "SIZE", default_value = "700M", value_parser = units::positive_bytes)]
    pub(crate) memory: u64,
}

/// A time, which is read again when the zone is known.
fn moment(text: &str) -> Result<String, String> {
    let read = ringtap_query::moment::parse(text, ringtap_query::moment::now(), Zone::Utc);
    read.map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Milliseconds, with a sign or without.
fn earlier(text: &str) -> Result<u64, String> {
    units::positive_duration_ns(text.strip_prefix('-').unwrap_or(text)).map(|ns| ns / 1_000_000)
}

/// A number of rows.
fn rows(text: &str) -> Result<u64, String> {
    let most = 1_000_000_000_000;
    let rows = units::positive_count(text)?;
    if rows <= most {
        Ok(rows)
    } else {
        Err(format!("invalid number of rows {text}: use at most 1T"))
    }
}

/// The format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rows {
    Table,
    Csv,
    Json,
    Parquet,
}

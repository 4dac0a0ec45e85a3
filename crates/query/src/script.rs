//! The script for the engine, DuckDB: tables over files, what it may read, and the query.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ringtap_export::{Column, ColumnType, parquet_columns};

use crate::moment::Zone;
use crate::question::within;
use crate::sql::{MACROS, literal};

/// The files of the tables.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Flow records: files with the same columns, and these.
    pub flows: Vec<(Vec<PathBuf>, Vec<String>)>,
    /// Flow records of the time that is compared with.
    pub flows_before: Vec<(Vec<PathBuf>, Vec<String>)>,
    /// Events, lines of JSON.
    pub events: Vec<PathBuf>,
    /// Alerts, lines of JSON.
    pub alerts: Vec<PathBuf>,
    /// Totals of intervals, lines of JSON.
    pub totals: Vec<PathBuf>,
}

/// A file that the engine cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Its path.
    #[error("{}: a path with any of * ? [ or bytes that are not UTF-8 cannot be queried", .0.display())]
    Path(PathBuf),
    /// Its columns.
    #[error("{}: no flow records of ringtap: the column {} is missing", .0.display(), .1)]
    Columns(PathBuf, &'static str),
}

/// Limits of a run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of memory, nearly.
    pub memory: u64,
    /// Number of threads.
    pub threads: usize,
    /// A folder for what does not fit.
    pub spill: PathBuf,
}

/// The format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With a line of names.
    Csv,
    /// An object a line.
    Json,
    /// A file of Parquet.
    Parquet,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Script {
    /// The query: one SELECT.
    pub sql: String,
    /// The files.
    pub source: Source,
    /// Begin and end, in milliseconds since 1970.
    pub window: [Option<i64>; 2],
    /// Begin and end of the time that is compared with.
    pub window_before: [Option<i64>; 2],
    /// The zone of times in rows.
    pub zone: Zone,
}

/// The engine's standard output, which must be a pipe. Not /dev/stdout: if a query fails, the engine removes what it wrote
/// to by this name, which for root is the link that all programs use; nothing can be removed from /proc.
const ANSWER: &str = "/proc/self/fd/1";

/// Columns that all records have.
const NEEDED: [&str; 4] =
    ["flowStartMilliseconds", "flowEndMilliseconds", "sourceIPAddress", "octetDeltaCount"];

impl Script {
    /// The text for the engine's standard input; rows go to its standard output.
    ///
    /// # Errors
    /// A file that cannot be in it.
    pub fn text(&self, format: Format, limits: &Limits) -> Result<String, Unusable> {
        let mut text = format!(
            "SET memory_limit='{}B';\nSET threads={};\nSET temp_directory={};\nSET autoinstall_known_extensions=false;\n\
             SET autoload_known_extensions=false;\nSET enable_progress_bar=false;\n{MACROS}",
            limits.memory,
            limits.threads,
            literal(&limits.spill.to_string_lossy()),
        );
        if self.zone == Zone::Utc {
            text += "SET TimeZone='UTC';\n";
        }
        let Source { flows, flows_before, events, alerts, totals } = &self.source;
        let tables = [
            ("flows", flow_records(flows, self.window)?),
            ("flows_before", flow_records(flows_before, self.window_before)?),
            ("events", self.events(events)?),
            ("alerts", self.lines(alerts, &ALERTS, "\"time\"")?),
            ("totals", self.lines(totals, &TOTALS, "\"start\"")?),
        ];
        for (name, table) in tables {
            let _ = writeln!(text, "CREATE VIEW {name} AS {table};");
        }
        let files = flows.iter().chain(flows_before).flat_map(|(files, _)| files);
        let files: Vec<_> = files.chain(events).chain(alerts).chain(totals).collect();
        let _ = writeln!(
            text,
            "SET allowed_paths={};\nSET enable_external_access=false;\nSET lock_configuration=true;",
            list(files.into_iter().map(PathBuf::as_path).chain([Path::new(ANSWER)]))?
        );
        // The parser of JSON takes a SELECT and nothing else, so the query cannot end and begin another statement.
        let _ = writeln!(
            text,
            "COPY (SELECT * FROM json_execute_serialized_sql(json_serialize_sql({}))) TO '{ANSWER}' ({});",
            literal(&self.sql),
            match format {
                Format::Csv => "FORMAT csv, HEADER",
                Format::Json if self.zone == Zone::Utc =>
                    "FORMAT json, TIMESTAMPFORMAT '%Y-%m-%dT%H:%M:%S.%gZ'",
                Format::Json => "FORMAT json, TIMESTAMPFORMAT '%Y-%m-%dT%H:%M:%S.%g%z'",
                Format::Parquet => "FORMAT parquet",
            }
        );
        Ok(text)
    }

    fn events(&self, files: &[PathBuf]) -> Result<String, Unusable> {
        let facts = || parquet_columns().filter(|own| own.is_fact);
        let mut columns = vec![
            ("observationTimeMicroseconds", "BIGINT".to_owned()),
            ("event", "VARCHAR".to_owned()),
            ("sourceIPv4Address", "VARCHAR".to_owned()),
            ("sourceIPv6Address", "VARCHAR".to_owned()),
            ("destinationIPv4Address", "VARCHAR".to_owned()),
            ("destinationIPv6Address", "VARCHAR".to_owned()),
            ("sourceTransportPort", "USMALLINT".to_owned()),
            ("destinationTransportPort", "USMALLINT".to_owned()),
            ("protocolIdentifier", "UTINYINT".to_owned()),
            ("dnsKind", "VARCHAR".to_owned()),
            ("httpKind", "VARCHAR".to_owned()),
            ("tlsKind", "VARCHAR".to_owned()),
        ];
        columns.extend(facts().map(|own| (own.name, type_of(own))));
        let names: Vec<_> = facts().map(|own| own.name).collect();
        Ok(format!(
            "SELECT * FROM (SELECT make_timestamptz(observationTimeMicroseconds) AS time, event, \
             coalesce(sourceIPv4Address, sourceIPv6Address) AS sourceIPAddress, coalesce(destinationIPv4Address, \
             destinationIPv6Address) AS destinationIPAddress, sourceTransportPort, destinationTransportPort, \
             protocolIdentifier, dnsKind, httpKind, tlsKind, {} FROM {}) WHERE {}",
            names.join(", "),
            read_json(files, &columns)?,
            within("time", self.window)
        ))
    }

    fn lines(
        &self,
        files: &[PathBuf],
        columns: &[(&str, &str)],
        time: &str,
    ) -> Result<String, Unusable> {
        let columns: Vec<_> = columns.iter().map(|(name, of)| (*name, (*of).to_owned())).collect();
        Ok(format!(
            "SELECT * FROM {} WHERE {}",
            read_json(files, &columns)?,
            within(time, self.window)
        ))
    }
}

const ALERTS: [(&str, &str); 14] = [
    ("time", "TIMESTAMPTZ"),
    ("since", "TIMESTAMPTZ"),
    ("id", "UBIGINT"),
    ("state", "VARCHAR"),
    ("kind", "VARCHAR"),
    ("severity", "VARCHAR"),
    ("source", "VARCHAR"),
    ("target", "VARCHAR"),
    ("port", "USMALLINT"),
    ("host", "VARCHAR"),
    ("entry", "VARCHAR"),
    ("number", "UBIGINT"),
    ("text", "VARCHAR"),
    ("query", "VARCHAR"),
];

const TOTALS: [(&str, &str); 6] = [
    ("start", "TIMESTAMPTZ"),
    ("end", "TIMESTAMPTZ"),
    (
        "packets",
        "STRUCT(handled UBIGINT, ipv4 UBIGINT, ipv6 UBIGINT, non_ip UBIGINT, fragments UBIGINT, truncated UBIGINT)",
    ),
    ("octets", "STRUCT(wire UBIGINT, ip UBIGINT)"),
    ("protocols", "MAP(VARCHAR, STRUCT(packets UBIGINT, octets UBIGINT))"),
    ("conversations", "STRUCT(tcp UBIGINT, udp UBIGINT, exact BOOLEAN)"),
];

/// The type of a column in SQL.
fn type_of(column: Column) -> String {
    let of = match column.of {
        ColumnType::Time => "TIMESTAMPTZ",
        ColumnType::Number => "UBIGINT",
        ColumnType::Text => "VARCHAR",
    };
    if column.is_list { format!("{of}[]") } else { of.to_owned() }
}

fn flow_records(
    groups: &[(Vec<PathBuf>, Vec<String>)],
    window: [Option<i64>; 2],
) -> Result<String, Unusable> {
    let mut parts = Vec::new();
    for (files, columns) in groups {
        let has = |name: &str| columns.iter().any(|own| own == name);
        if let (Some(missing), Some(file)) =
            (NEEDED.into_iter().find(|name| !has(name)), files.first())
        {
            return Err(Unusable::Columns(file.clone(), missing));
        }
        let select = parquet_columns().map(|own| {
            if has(own.name) { own.name.to_owned() } else { absent(own.name, &type_of(own)) }
        });
        let select: Vec<_> = select.collect();
        parts.push(format!(
            "SELECT {} FROM read_parquet({}) WHERE {}",
            select.join(", "),
            list(files.iter().map(PathBuf::as_path))?,
            within("flowEndMilliseconds", window)
        ));
    }
    if parts.is_empty() {
        let select: Vec<_> = parquet_columns().map(|own| absent(own.name, &type_of(own))).collect();
        return Ok(format!("SELECT {} WHERE false", select.join(", ")));
    }
    Ok(parts.join(" UNION ALL "))
}

/// A column without values.
fn absent(name: &str, of: &str) -> String {
    format!("NULL::{of} AS \"{name}\"")
}

fn read_json(files: &[PathBuf], columns: &[(&str, String)]) -> Result<String, Unusable> {
    let all = |text: fn(&str, &str) -> String| {
        let all: Vec<_> = columns.iter().map(|(name, of)| text(name, of)).collect();
        all.join(", ")
    };
    if files.is_empty() {
        return Ok(format!("(SELECT {} WHERE false)", all(absent)));
    }
    Ok(format!(
        "read_json({}, format = 'newline_delimited', maximum_object_size = 1048576, columns = {{{}}})",
        list(files.iter().map(PathBuf::as_path))?,
        all(|name, of| format!("\"{name}\": {}", literal(of)))
    ))
}

/// A list of paths.
fn list<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<String, Unusable> {
    let mut text = "[".to_owned();
    for path in paths {
        let name = path.to_str().filter(|name| !name.contains(['*', '?', '[', '\n']));
        let name = name.ok_or_else(|| Unusable::Path(path.to_owned()))?;
        let _ = write!(text, "{}{}", if text.len() > 1 { "," } else { "" }, literal(name));
    }
    Ok(text + "]")
}

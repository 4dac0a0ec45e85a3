//! What a word of a filter stands for: a column of flow records, or an expression over several.

use ringtap_export::{ColumnType, parquet_columns};

/// A column, or an expression over columns, in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// In SQL.
    pub sql: &'static str,
    /// The type of its values.
    pub of: ColumnType,
    /// Whether a record has a list of them.
    pub is_list: bool,
    /// Whether numbers are milliseconds, written as durations.
    pub is_duration: bool,
}

/// Words for what is no column of its own, and what they stand for: one of the columns compares so.
const WORDS: [(&str, &[&str]); 12] = [
    ("octets", &["(octetDeltaCount + coalesce(reverseOctetDeltaCount, 0))"]),
    ("packets", &["(packetDeltaCount + coalesce(reversePacketDeltaCount, 0))"]),
    ("duration", &["(epoch_ms(flowEndMilliseconds) - epoch_ms(flowStartMilliseconds))"]),
    ("name", &["tlsServerName", "httpHost", "dnsQueryName"]),
    ("app", &["application"]),
    ("country", &["sourceCountry", "destinationCountry"]),
    ("as", &["bgpSourceAsNumber", "bgpDestinationAsNumber"]),
    ("network", &["sourceNetwork", "destinationNetwork"]),
    ("mac", &["sourceMacAddress", "destinationMacAddress"]),
    ("vlan", &["vlanId"]),
    ("status", &["httpStatus"]),
    ("rcode", &["dnsResponseCode"]),
];

/// What a word stands for; none if there is no such field.
pub(super) fn known(word: &str) -> Vec<Column> {
    let of = WORDS.iter().find(|(own, _)| own.eq_ignore_ascii_case(word)).map(|(_, of)| *of);
    match of {
        Some(&[sql]) if sql.starts_with('(') => vec![Column {
            sql,
            of: ColumnType::Number,
            is_list: false,
            is_duration: word.eq_ignore_ascii_case("duration"),
        }],
        Some(names) => names.iter().filter_map(|name| column(name)).collect(),
        None => column(word).into_iter().collect(),
    }
}

fn column(name: &str) -> Option<Column> {
    let found = parquet_columns().find(|column| column.name.eq_ignore_ascii_case(name))?;
    Some(Column { sql: found.name, of: found.of, is_list: found.is_list, is_duration: false })
}

/// The fields whose names contain the word.
pub(super) fn like(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    let names = WORDS.iter().map(|(name, _)| *name).chain(parquet_columns().map(|own| own.name));
    let like = |name: &&str| {
        let name = name.to_ascii_lowercase();
        name.contains(&word) || word.contains(&name)
    };
    let near: Vec<_> = names.filter(like).take(4).collect();
    if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) }
}

//! What a word of a filter stands for: a column of flow records, or an expression over several.

use ringtap_export::{ColumnType, parquet_columns};

/// A column, or an expression over columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Where its values are from.
    pub source: Source,
    /// The type of its values.
    pub of: ColumnType,
    /// Whether a record has a list of them.
    pub is_list: bool,
}

/// Where the values of a column are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A column of flow records.
    Column(&'static str),
    /// The sum of both directions, of which the second may be absent.
    Sum([&'static str; 2]),
    /// Milliseconds from the first packet to the last.
    Duration,
}

use Source::{Duration, Sum};

/// Words for what is no column of its own.
const SOURCES: [(&str, Source); 3] = [
    ("octets", Sum(["octetDeltaCount", "reverseOctetDeltaCount"])),
    ("packets", Sum(["packetDeltaCount", "reversePacketDeltaCount"])),
    ("duration", Duration),
];

/// Words for columns: one of them compares so.
const WORDS: [(&str, &[&str]); 9] = [
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
    if let Some((_, source)) = SOURCES.iter().find(|(own, _)| own.eq_ignore_ascii_case(word)) {
        return vec![Column { source: *source, of: ColumnType::Number, is_list: false }];
    }
    let names = WORDS.iter().find(|(own, _)| own.eq_ignore_ascii_case(word)).map(|(_, of)| *of);
    names.unwrap_or(&[word]).iter().filter_map(|name| column(name)).collect()
}

fn column(name: &str) -> Option<Column> {
    let found = parquet_columns().find(|column| column.name.eq_ignore_ascii_case(name))?;
    Some(Column { source: Source::Column(found.name), of: found.of, is_list: found.is_list })
}

/// The fields whose names contain the word.
pub(super) fn like(word: &str) -> String {
    let word = word.to_ascii_lowercase();
    let sources = SOURCES.iter().map(|(name, _)| *name);
    let words = WORDS.iter().map(|(name, _)| *name);
    let names = sources.chain(words).chain(parquet_columns().map(|own| own.name));
    let like = |name: &&str| {
        let name = name.to_ascii_lowercase();
        name.contains(&word) || word.contains(&name)
    };
    let near: Vec<_> = names.filter(like).take(4).collect();
    if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) }
}

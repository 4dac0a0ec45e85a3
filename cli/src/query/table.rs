//! An answer as a table.

use ringtap_base::text::shown;
use ringtap_terminal::numbers::{bytes, count};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::Table;

/// Columns of octets.
const OCTETS: [&str; 5] = ["octets", "sent", "received", "octets_before", "more"];
/// Columns of numbers that are not counts.
const PLAIN: [&str; 6] = ["port", "source_port", "protocol", "number", "id", "seconds"];
/// Names of protocols.
const PROTOCOLS: [(&str, &str); 5] =
    [("1", "ICMP"), ("6", "TCP"), ("17", "UDP"), ("58", "ICMPv6"), ("132", "SCTP")];

/// The table of an answer in CSV.
pub(super) fn of(answer: &[u8]) -> anyhow::Result<String> {
    let mut reader = csv::ReaderBuilder::new().from_reader(answer);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let rows = reader.records().collect::<Result<Vec<_>, _>>()?;
    if rows.is_empty() {
        return Ok("no rows\n".to_owned());
    }
    let is_number = |at: usize| {
        let mut values =
            rows.iter().filter_map(|row| row.get(at)).filter(|value| !value.is_empty());
        values.all(|value| value.parse::<f64>().is_ok())
    };
    let leans: Vec<_> =
        (0..names.len()).map(|at| if is_number(at) { Right } else { Left }).collect();
    let is_of_octets = names.iter().any(|name| name == "octets");
    let mut table = Table::new(&leans);
    table.row(names.iter().cloned());
    for row in &rows {
        table.row(row.iter().zip(&names).map(|(value, name)| cell(value, name, is_of_octets)));
    }
    let mut page = Page::default();
    page.table(table);
    Ok(page.text())
}

fn cell(value: &str, name: &str, is_of_octets: bool) -> String {
    if name == "protocol" {
        let known = PROTOCOLS.iter().find(|(number, _)| *number == value);
        return known.map_or(value, |(_, name)| name).to_owned();
    }
    if PLAIN.contains(&name) {
        return value.to_owned();
    }
    let (sign, digits) = value.strip_prefix('-').map_or(("", value), |digits| ("-", digits));
    match digits.parse::<u64>() {
        Ok(number) if OCTETS.contains(&name) && is_of_octets => format!("{sign}{}", bytes(number)),
        Ok(number) => format!("{sign}{}", count(number)),
        Err(_) => shown(value.strip_suffix("+00").unwrap_or(value)).to_string(),
    }
}

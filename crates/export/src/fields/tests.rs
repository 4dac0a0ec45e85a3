//! The table itself, and the page that is made of it.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

#[test]
fn names_are_distinct_and_every_kept_kind_has_a_row() {
    let names: BTreeSet<_> = FIELDS.iter().map(|field| field.name).collect();
    assert_eq!(names.len(), FIELDS.len());
    // The name of the row is that of the kind.
    let facts: Vec<_> = FIELDS.iter().filter_map(|field| Some((field.name, field.kind?))).collect();
    assert_eq!(facts, Kind::KEPT.map(|kind| (kind.name(), kind)));
}

#[test]
fn every_column_is_once_in_the_order_by_editions() {
    let all = Columns {
        ingress: true,
        origins: Origins { networks: true, geo: true, vendors: true, vlans: true },
        parts: true,
        statistics: true,
        entropy: true,
        stored: false,
    };
    let editions: Vec<_> = columns(all).map(|(_, field)| field.edition).collect();
    assert!(editions.is_sorted());
    let rows: BTreeSet<_> = columns(all).map(|(row, _)| row).collect();
    let expected = (0..COUNT).filter(|&row| FIELDS[row].edition > 0);
    assert!(rows.into_iter().eq(expected));
}

/// A line of docs/OUTPUTS.md: a field, with that of the other direction.
fn line(field: &Field) -> String {
    let quoted = |name: &str| format!("`{}`", name.trim_matches(|sign| ",\":".contains(sign)));
    let (first, rest) = field.name.split_at(1);
    let reverse = format!("reverse{}{rest}", first.to_uppercase());
    let reverse = FIELDS.iter().find(|other| other.side == 1 && other.name == reverse);
    let both = || std::iter::once(field).chain(reverse);
    let mut name = both().map(|own| quoted(own.name)).collect::<Vec<_>>().join(", ");
    if field.keys[0] != field.keys[1] {
        let keys: Vec<_> = both().flat_map(|own| own.keys).map(quoted).collect();
        name += &format!("; in JSON {}", keys.join(", "));
    }
    let elements: Vec<_> = field.elements.iter().map(element).collect();
    let elements = if elements.is_empty() { "–".to_owned() } else { elements.join(", ") };
    let (meaning, mut present) = (field.meaning.trim(), field.presence.text().to_owned());
    if let Some(other) = reverse.filter(|other| other.presence != field.presence) {
        present += &format!("; the reverse: {}", other.presence.text());
    }
    format!("| {name} | {elements} | {meaning} | {present} |\n")
}

/// An element, and how a fact is written in it.
fn element(&Element { enterprise, id, len, form }: &Element) -> String {
    let id = if enterprise == 0 { id.to_string() } else { format!("{enterprise}/{id}") };
    match (form, len) {
        (Form::Plain, _) => id,
        (Form::Word | Form::Text, _) => format!("{id} (string)"),
        (Form::Octets, _) => format!("{id} (octets)"),
        (_, 1) => format!("{id} (1 octet)"),
        _ => format!("{id} ({len} octets)"),
    }
}

/// With RINGTAP_WRITE=1 the table is written.
#[test]
fn the_table_of_outputs_md_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OUTPUTS.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let head = "| name | IE | meaning, unit | present |\n|---|---|---|---|\n";
    let at = page.find(head).expect("the head of the table") + head.len();
    let end = at + page[at..].find("\n\n").expect("the end of the table") + 1;
    let table: String = FIELDS.iter().filter(|field| field.side == 0).map(line).collect();
    if page[at..end] != table && std::env::var_os("RINGTAP_WRITE").is_some() {
        return std::fs::write(&path, [&page[..at], &table, &page[end..]].concat()).unwrap();
    }
    assert!(page[at..end] == table, "run RINGTAP_WRITE=1 cargo test -p ringtap-export table_of");
}

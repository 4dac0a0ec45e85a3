//! Talkers as text.

use ringtap_terminal::names;
use ringtap_terminal::numbers::{bytes, count};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};

use super::rows::{Crowd, HostRow, PairRow, PortRow, Rankings, Talkers};
use crate::volume::Volume;

/// Most columns of an origin.
const ORIGIN: usize = 24;

/// Prints the largest by octets.
pub(super) fn show(talkers: &Talkers, page: &mut Page) {
    let Rankings { source, destination, pair, port: ports, crowds } = &talkers.by_octets;
    for (title, rows, more) in [
        ("Top sources", source, crowds.source),
        ("Top destinations", destination, crowds.destination),
    ] {
        let row = |row: &HostRow| (row.address.to_string(), row.volume, cut(row.origin.text()));
        ranking(page, title, rows.iter().map(row), more, "hosts");
    }
    let row = |PairRow { addresses: [low, high], volume }: &PairRow| {
        (format!("{low} ↔ {high}"), *volume, String::new())
    };
    ranking(page, "Top pairs", pair.iter().map(row), crowds.pair, "pairs");
    let row = |row: &PortRow| {
        let name = format!("{} {}", names::protocol(row.protocol), names::port(row.port));
        (name, row.volume, String::new())
    };
    ranking(page, "Top ports", ports.iter().map(row), None, "ports");
    let &Talkers { error_bound, packets_error_bound, .. } = talkers;
    if error_bound > 0 {
        page.line(&format!(
            "(each may be too low by up to {} and {} packets)",
            bytes(error_bound),
            count(packets_error_bound)
        ));
    }
}

/// Cuts an origin to fit the page.
fn cut(origin: String) -> String {
    match origin.char_indices().nth(ORIGIN) {
        Some((end, _)) => format!("{}…", &origin[..end]),
        None => origin,
    }
}

/// Prints a list, and the crowd that is not in it.
fn ranking(
    page: &mut Page,
    title: &str,
    rows: impl Iterator<Item = (String, Volume, String)>,
    crowd: Option<Crowd>,
    what: &'static str,
) {
    let name = what.trim_end_matches('s');
    let mut table =
        Table::with_head(&[(name, Left), ("octets", Right), ("packets", Right), ("origin", Left)]);
    for (name, volume, origin) in rows {
        let packets = Cell::count(volume.packets);
        table.row([name.into(), Cell::bytes(volume.octets), packets, origin.into()]);
    }
    let Some(Crowd { rows, most }) = crowd else { return page.section(title, table) };
    page.heading(title);
    page.table(table);
    page.line(&format!("and {} {what} of at most {} each", count(rows), bytes(most)));
}

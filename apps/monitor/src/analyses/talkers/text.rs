//! Talkers as text.

use ringtap_terminal::names;
use ringtap_terminal::numbers::{bytes, count};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::Table;

use crate::report::{HostRow, PairRow, PortRow, Rankings, Talkers, Volume};

/// Prints the largest by octets.
pub(super) fn show(talkers: &Talkers, page: &mut Page) {
    let Rankings { source, destination, pair, port: ports } = &talkers.by_octets;
    for (title, rows) in [("Top sources", source), ("Top destinations", destination)] {
        let row = |row: &HostRow| (row.address.to_string(), row.volume);
        ranking(page, title, rows.iter().map(row));
    }
    let row =
        |PairRow { addresses: [low, high], volume }: &PairRow| (format!("{low} ↔ {high}"), *volume);
    ranking(page, "Top pairs", pair.iter().map(row));
    let row = |row: &PortRow| {
        (format!("{} {}", names::protocol(row.protocol), names::port(row.port)), row.volume)
    };
    ranking(page, "Top ports", ports.iter().map(row));
    let &Talkers { error_bound, packets_error_bound, .. } = talkers;
    if error_bound > 0 {
        page.line(&format!(
            "(each may be too low by up to {} and {} packets)",
            bytes(error_bound),
            count(packets_error_bound)
        ));
    }
}

fn ranking(page: &mut Page, title: &str, rows: impl Iterator<Item = (String, Volume)>) {
    let mut table = Table::new(&[Left, Right, Right]);
    for (name, volume) in rows {
        table.row([name, bytes(volume.octets), format!("{} packets", count(volume.packets))]);
    }
    page.section(title, &table);
}

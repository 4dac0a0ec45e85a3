//! Activity as text: one interval in full, several with a line each.

use ringtap_terminal::names;
use ringtap_terminal::numbers::{bytes, count};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::Table;

use super::rows::{Activity, Busy, Network, Target};
use crate::times::Times;

/// Prints the activity of all intervals.
pub(super) fn show(page: &mut Page, intervals: &[Activity], further: u64, times: Times) {
    match intervals {
        [] => {}
        [only] => in_full(page, only),
        all => in_lines(page, all, times),
    }
    if further > 0 {
        page.line(&format!("and {} intervals beyond these", count(further)));
    }
}

fn in_full(page: &mut Page, activity: &Activity) {
    page.heading("Activity");
    let distinct = &activity.distinct;
    page.line(&format!(
        "about {} sources, {} destinations, {} pairs of them",
        count(distinct.sources),
        count(distinct.destinations),
        count(distinct.pairs)
    ));
    let octets = |row: &Busy| within(row.lower, row.upper, bytes);
    let peers = |row: &Busy| within(row.lower, row.upper, count);
    busy(page, "Sent most", "octets", &activity.senders, octets);
    busy(page, "Received most", "octets", &activity.receivers, octets);
    networks(page, "Networks that sent most", &activity.sending_networks);
    networks(page, "Networks that received most", &activity.receiving_networks);
    let mut table =
        Table::with_head(&[("host", Left), ("packets", Right), ("most frequent protocol", Left)]);
    for target in &activity.targets {
        table.row([
            target.address.to_string(),
            within(target.lower, target.upper, count),
            protocol_share(target),
        ]);
    }
    page.section("Received most packets", table);
    busy(page, "Sent to most hosts", "hosts", &activity.spreaders, peers);
    busy(page, "Received from most hosts", "hosts", &activity.attractors, peers);
}

fn busy(
    page: &mut Page,
    title: &str,
    what: &'static str,
    rows: &[Busy],
    number: impl Fn(&Busy) -> String,
) {
    let mut table = Table::with_head(&[("host", Left), (what, Right)]);
    rows.iter().for_each(|row| table.row([row.address.to_string(), number(row)]));
    page.section(title, table);
}

fn networks(page: &mut Page, title: &str, rows: &[Network]) {
    let mut table = Table::with_head(&[("network", Left), ("octets", Right), ("of them", Left)]);
    for row in rows {
        let rest = if row.beyond == row.lower {
            String::new()
        } else {
            format!("{} without its heavy parts", bytes(row.beyond))
        };
        table.row([row.prefix.to_string(), within(row.lower, row.upper, bytes), rest]);
    }
    page.section(title, table);
}

fn in_lines(page: &mut Page, intervals: &[Activity], times: Times) {
    page.heading("Activity");
    let mut table = Table::with_head(&[
        ("from", Left),
        ("sources", Right),
        ("destinations", Right),
        ("sent most", Left),
        ("received most packets", Left),
        ("sent to most hosts", Left),
        ("changed most", Left),
    ]);
    let none = String::new;
    for interval in intervals {
        let sender = interval.senders.first();
        let target = interval.targets.first();
        let spreader = interval.spreaders.first();
        let changer = interval.changers.first();
        table.row([
            times.short(interval.start),
            count(interval.distinct.sources),
            count(interval.distinct.destinations),
            sender.map_or_else(none, |row| {
                format!("{} {}", row.address, within(row.lower, row.upper, bytes))
            }),
            target.map_or_else(none, |row| {
                format!("{} {}", row.address, within(row.lower, row.upper, count))
            }),
            spreader.map_or_else(none, |row| {
                format!("{} {}", row.address, within(row.lower, row.upper, count))
            }),
            changer.map_or_else(none, |row| {
                format!("{} {} → {}", row.address, bytes(row.before), bytes(row.now))
            }),
        ]);
    }
    page.table(table);
}

/// A number, or its bounds.
fn within(lower: u64, upper: u64, text: impl Fn(u64) -> String) -> String {
    if lower == upper { text(lower) } else { format!("{} to {}", text(lower), text(upper)) }
}

fn protocol_share(target: &Target) -> String {
    let percent = 100 * u128::from(target.of_protocol) / u128::from(target.lower.max(1));
    format!("{} % {}", percent.min(100), names::protocol(target.protocol))
}

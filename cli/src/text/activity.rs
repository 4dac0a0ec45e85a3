//! Who was busy, for people: one interval in full, more of them a line each.

use ringtap_engine::report::activity::{Activity, Busy, Network, Target};

use super::{Page, Times};
use crate::names;
use ringtap_terminal::numbers::{bytes, count};
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::Table;

impl Page {
    pub(super) fn activity(&mut self, intervals: &[Activity], further: u64, times: Times) {
        match intervals {
            [] => {}
            [only] => self.in_full(only),
            all => self.in_lines(all, times),
        }
        if further > 0 {
            self.line(&format!("and {} intervals beyond these", count(further)));
        }
    }

    fn in_full(&mut self, activity: &Activity) {
        self.heading("Activity");
        let distinct = &activity.distinct;
        self.line(&format!(
            "about {} sources, {} destinations, {} pairs of them",
            count(distinct.sources),
            count(distinct.destinations),
            count(distinct.pairs)
        ));
        let octets = |row: &Busy| within(row.lower, row.upper, bytes);
        let peers = |row: &Busy| within(row.lower, row.upper, count);
        self.busy("Sent most", &activity.senders, octets);
        self.busy("Received most", &activity.receivers, octets);
        self.networks("Networks that sent most", &activity.sending_networks);
        self.networks("Networks that received most", &activity.receiving_networks);
        let mut table = Table::new(&[Left, Right, Left]);
        for target in &activity.targets {
            table.row([
                target.address.to_string(),
                format!("{} packets", within(target.lower, target.upper, count)),
                mostly(target),
            ]);
        }
        if !activity.targets.is_empty() {
            self.heading("Received most packets");
            self.table(&table);
        }
        self.busy("Sent to most hosts", &activity.spreaders, peers);
        self.busy("Received from most hosts", &activity.attractors, peers);
    }

    fn busy(&mut self, title: &str, rows: &[Busy], number: impl Fn(&Busy) -> String) {
        let mut table = Table::new(&[Left, Right]);
        rows.iter().for_each(|row| table.row([row.address.to_string(), number(row)]));
        if !rows.is_empty() {
            self.heading(title);
            self.table(&table);
        }
    }

    fn networks(&mut self, title: &str, rows: &[Network]) {
        let mut table = Table::new(&[Left, Right, Left]);
        for row in rows {
            let rest = if row.beyond == row.lower {
                String::new()
            } else {
                format!("{} without its heavy parts", bytes(row.beyond))
            };
            table.row([row.prefix.to_string(), within(row.lower, row.upper, bytes), rest]);
        }
        if !rows.is_empty() {
            self.heading(title);
            self.table(&table);
        }
    }

    fn in_lines(&mut self, intervals: &[Activity], times: Times) {
        self.heading("Activity");
        let mut table = Table::new(&[Left, Right, Right, Left, Left, Left, Left]);
        table.row([
            "from",
            "sources",
            "destinations",
            "sent most",
            "received most packets",
            "sent to most hosts",
            "changed most",
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
        self.table(&table);
    }
}

/// A number, or what it lies between.
fn within(lower: u64, upper: u64, text: impl Fn(u64) -> String) -> String {
    if lower == upper { text(lower) } else { format!("{} to {}", text(lower), text(upper)) }
}

fn mostly(target: &Target) -> String {
    let percent = 100 * u128::from(target.of_protocol) / u128::from(target.lower.max(1));
    format!("{} % {}", percent.min(100), names::protocol(target.protocol))
}

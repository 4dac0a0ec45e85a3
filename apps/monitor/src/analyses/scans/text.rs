//! Scans as text.

use ringtap_terminal::names;
use ringtap_terminal::numbers::count;
use ringtap_terminal::page::{Page, WIDTH};
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};

use super::rows::{HorizontalScan, ScanProtocol, Scans, VerticalScan};
use crate::analyses::About;
use crate::time::Time;
use crate::times::Times;

/// Most scans of either kind in the text; JSON has all.
const SCANS: usize = 50;

/// Shows the scans, the largest first.
pub(super) fn show(scans: &Scans, page: &mut Page, about: &About) {
    let (threshold, times) = (about.scan_threshold, about.times);
    let of = match scans.protocol {
        ScanProtocol::Tcp => "",
        ScanProtocol::Udp => "UDP ",
    };
    // The plan has the threshold of UDP.
    let is_tcp = scans.protocol == ScanProtocol::Tcp;
    if is_tcp && scans.vertical.is_empty() && scans.horizontal.is_empty() {
        page.heading("Port scans");
        page.line(&format!("none with more than {threshold} failed attempts"));
    }
    if !scans.vertical.is_empty() {
        page.heading(&format!("Vertical {of}scans: one source, many ports of one target"));
        let shown = largest(&scans.vertical, |scan| scan.ports);
        let names =
            shown.iter().map(|scan| scan.source.to_string().len() + scan.target.to_string().len());
        let room = room(names.max(), times);
        let mut table = Table::with_head(&[
            ("source and target", Left),
            ("ports", Right),
            ("time", Left),
            ("some of them", Left),
        ]);
        for VerticalScan { source, target, ports, first, last, sample } in shown {
            table.row([
                format!("{source} → {target}").into(),
                Cell::count(*ports),
                times.range(*first, *last).into(),
                some(sample, *ports, room).into(),
            ]);
        }
        page.table(table);
        more(page, scans.vertical.len().saturating_sub(SCANS));
    }
    if !scans.horizontal.is_empty() {
        page.heading(&format!("Horizontal {of}scans: one source, one port of many targets"));
        let shown = largest(&scans.horizontal, |scan| scan.targets);
        let names = shown.iter().map(|scan| {
            scan.source.to_string().len() + "port ".len() + names::port(scan.port).len()
        });
        let room = room(names.max(), times);
        let mut table = Table::with_head(&[
            ("source and port", Left),
            ("targets", Right),
            ("time", Left),
            ("some of them", Left),
        ]);
        for scan in shown {
            let HorizontalScan { source, targets, first, last, sample, .. } = scan;
            table.row([
                format!("{source} → port {}", names::port(scan.port)).into(),
                Cell::count(*targets),
                times.range(*first, *last).into(),
                some(sample, *targets, room).into(),
            ]);
        }
        page.table(table);
        more(page, scans.horizontal.len().saturating_sub(SCANS));
    }
    if scans.attempts_ignored > 0 {
        let ignored = count(scans.attempts_ignored);
        page.line(&format!("{ignored} attempts were ignored for lack of memory"));
    }
}

fn more(page: &mut Page, scans: usize) {
    if scans > 0 {
        page.line(&format!("and {} more; --report json has all", count(scans as u64)));
    }
}

/// The largest scans, largest first, as many as fit the text.
fn largest<T>(scans: &[T], size: impl Fn(&T) -> u64) -> Vec<&T> {
    let mut shown: Vec<&T> = scans.iter().collect();
    // Stable: equal ones stay in the order of their keys.
    shown.sort_by_key(|scan| std::cmp::Reverse(size(scan)));
    shown.truncate(SCANS);
    shown
}

/// Columns left for a sample beside the names of a scan, its size and its times.
fn room(names: Option<usize>, times: Times) -> usize {
    let size = "1,000,000 targets".len();
    let times = times.range(Time(0), Time(1_000_000_000)).chars().count();
    let gaps = 2 + " → ".chars().count() + 3 * 2 + " …".chars().count();
    WIDTH.saturating_sub(names.unwrap_or(0) + size + times + gaps)
}

/// The first of `all` items, as many as fit in `room` columns.
fn some<T: ToString>(sample: &[T], all: u64, room: usize) -> String {
    let mut text = String::new();
    for (shown, item) in sample.iter().enumerate() {
        let item = item.to_string();
        if text.len() + item.len() > room {
            return text + "…";
        }
        text += &item;
        if (shown as u64) + 1 < all {
            text.push(' ');
        }
    }
    if all > sample.len() as u64 { text + "…" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_sample_ends_with_an_ellipsis() {
        assert_eq!(some(&[1, 2, 3], 3, 30), "1 2 3");
        assert_eq!(some(&[1, 2, 3], 400, 30), "1 2 3 …");
        let long: Vec<u32> = (10_000..10_020).collect();
        assert_eq!(some(&long, 20, 12), "10000 10001 …");
        assert_eq!(some(&long, 20, 0), "…");
    }

    #[test]
    fn the_largest_scans_come_first() {
        let sizes: Vec<u64> = (0..70).chain([69]).collect();
        let shown = largest(&sizes, |&size| size);
        assert_eq!((shown.len(), shown[..3].to_vec()), (SCANS, vec![&69, &69, &68]));
    }
}

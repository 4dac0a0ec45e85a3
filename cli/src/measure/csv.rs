//! The keys of a measurement as CSV.

use ringtap_measure::{Interval, Report};

/// The names of the columns.
pub(super) fn header(has_intervals: bool) -> String {
    let times = if has_intervals { "start,end," } else { "" };
    format!("{times}key,estimate,lower,upper,total\n")
}

/// A row for each key, with the times of the interval. Nothing in a key needs quotes.
pub(super) fn rows(interval: Option<&Interval>, report: &Report) -> String {
    let times = interval.map_or_else(String::new, |one| format!("{},{},", one.start, one.end));
    let row = |row: &ringtap_measure::report::Row| {
        let (key, total) = (&row.key, report.total);
        format!("{times}{key},{},{},{},{total}\n", row.estimate, row.lower, row.upper)
    };
    report.heavy.iter().map(row).collect()
}

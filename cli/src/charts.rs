//! The charts of a report: packets and bits over time.

use ringtap_monitor::report::{Interval, Time};
use ringtap_monitor::{Series, Step};
use ringtap_terminal::chart::Timeline;

/// Nanoseconds of a day, and the days from which labels have a year.
const DAY_NS: u64 = 86_400_000_000_000;
const YEAR: u64 = 300;

/// The intervals of a report as steps; those without a packet are empty.
pub(crate) fn series(intervals: &[Interval], interval_ns: u64) -> Series {
    let mut series = Series::new(interval_ns);
    for interval in intervals {
        let step = Step { packets: interval.packets.handled, octets: interval.octets.wire };
        series.add(interval.start.0, step);
    }
    series
}

/// Charts of packets and bits; none without packets.
pub(crate) fn of(series: &Series) -> Vec<Timeline> {
    let steps = series.steps();
    if steps.is_empty() {
        return Vec::new();
    }
    let step = series.step_ns() as f64 / 1e9;
    let days = steps.len() as u64 * (series.step_ns() / 1_000_000) / (DAY_NS / 1_000_000);
    let chart = |title: &str, unit, colour, value: &dyn Fn(&Step) -> f64| Timeline {
        title: title.to_owned(),
        unit,
        start: series.start_ns() as f64 / 1e9,
        step,
        values: steps.iter().map(|one| value(one) / step).collect(),
        colour,
        day: if days < YEAR { month_and_day } else { year_and_month },
    };
    vec![
        chart("Packets", "packets/s", 0, &|one| one.packets as f64),
        chart("Bits on the wire", "bit/s", 1, &|one| 8.0 * one.octets as f64),
    ]
}

/// Parts of the date of a number of days since 1970.
pub(crate) fn month_and_day(number: u64) -> String {
    Time(number.saturating_mul(DAY_NS)).to_string().get(5..10).unwrap_or_default().to_owned()
}

fn year_and_month(number: u64) -> String {
    Time(number.saturating_mul(DAY_NS)).to_string().get(..7).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rates_at_their_times() {
        let interval = |second: u64, handled| {
            let mut interval = Interval {
                start: Time(second * 1_000_000_000),
                end: Time((second + 10) * 1_000_000_000),
                ..Interval::default()
            };
            interval.packets.handled = handled;
            interval.octets.wire = 100 * handled;
            interval
        };
        let series = series(&[interval(100, 70), interval(120, 90)], 10_000_000_000);
        let charts = of(&series);
        assert_eq!((charts[0].start, charts[0].step), (100.0, 10.0));
        assert_eq!(charts[0].values, [7.0, 0.0, 9.0]);
        assert_eq!(charts[1].values, [5_600.0, 0.0, 7_200.0]);
        assert_eq!((charts[0].day)(20_000), "10-04");
        assert_eq!(year_and_month(20_000), "2024-10");
        assert!(of(&Series::default()).is_empty());
    }
}

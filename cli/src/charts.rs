//! The charts of a report: packets and bits over time.

use ringtap_monitor::report::{Interval, Time};
use ringtap_terminal::chart::Timeline;

/// Most steps of a chart; further intervals share one.
const STEPS: u64 = 240;

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// Charts of intervals of this length, in order of time; those that are not listed had no packets.
pub(crate) fn of(intervals: &[Interval], interval_ns: u64) -> Vec<Timeline> {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else {
        return Vec::new();
    };
    let number = last.end.0.saturating_sub(first.start.0).div_ceil(interval_ns.max(1));
    let step_ns = interval_ns.saturating_mul(number.div_ceil(STEPS).max(1));
    let step = step_ns as f64 / 1e9;
    let chart = |title: &str, unit, colour, value: &dyn Fn(&Interval) -> u64| {
        let steps = last.start.0.saturating_sub(first.start.0) / step_ns + 1;
        let mut values = vec![0.0; steps as usize];
        for interval in intervals {
            let at = interval.start.0.saturating_sub(first.start.0) / step_ns;
            values[at as usize] += value(interval) as f64 / step;
        }
        let title = match number.div_ceil(STEPS) {
            0 | 1 => title.to_owned(),
            _ => format!("{title}, mean of {step} s"),
        };
        let start = first.start.0 as f64 / 1e9;
        Timeline { title, unit, start, step, values, colour, day }
    };
    vec![
        chart("Packets", "packets/s", 0, &|interval| interval.packets.handled),
        chart("Bits on the wire", "bit/s", 1, &|interval| 8 * interval.octets.wire),
    ]
}

/// Month and day of a number of days since 1970.
fn day(number: u64) -> String {
    let date = Time(number.saturating_mul(DAY_NS)).to_string();
    date.get(5..10).unwrap_or(&date).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_at_their_times_and_long_runs_are_shortened() {
        let interval = |second: u64, handled| {
            let mut interval = Interval {
                start: Time(second * 1_000_000_000),
                end: Time((second + 1) * 1_000_000_000),
                ..Interval::default()
            };
            interval.packets.handled = handled;
            interval
        };
        let charts = of(&[interval(100, 7), interval(102, 9)], 1_000_000_000);
        assert_eq!((charts[0].start, charts[0].step), (100.0, 1.0));
        assert_eq!(charts[0].values, [7.0, 0.0, 9.0]);
        assert_eq!(charts[0].title, "Packets");
        let charts = of(&[interval(0, 10), interval(5_000_000_000, 20)], 1_000_000_000);
        assert!(charts[0].values.len() as u64 <= STEPS);
        let packets: f64 = charts[0].values.iter().map(|rate| rate * charts[0].step).sum();
        assert_eq!(packets.round(), 30.0);
        assert!(charts[0].title.starts_with("Packets, mean of "));
        assert!(of(&[], 1).is_empty());
        assert_eq!(day(20_000), "10-04");
    }
}

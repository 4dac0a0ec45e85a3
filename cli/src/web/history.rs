//! Counters of the run over time, in bounded memory: the last minutes by seconds, the last hours by tens of seconds, the
//! last days by minutes.

use std::collections::VecDeque;

/// Step in seconds, and number of steps, of each level.
const LEVELS: [(u64, usize); 3] = [(1, 960), (10, 2_200), (60, 2_900)];

/// Most steps of a chart.
const CHART: u64 = 360;

/// Counters at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Seconds since 1970.
    pub(super) at: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets dropped or shed.
    pub(super) lost: u64,
    /// Flows that have ended.
    pub(super) flows: u64,
}

/// The samples.
#[derive(Debug, Default)]
pub(super) struct History {
    levels: [VecDeque<Sample>; LEVELS.len()],
}

/// Rates by steps.
#[derive(Debug, PartialEq)]
pub(super) struct Rates {
    /// Seconds since 1970.
    pub(super) start: u64,
    /// Seconds.
    pub(super) step: u64,
    /// Per second, one for each step.
    pub(super) values: Vec<f64>,
}

impl History {
    /// Adds counters of a later time. If the clock was set back, samples of later times are dropped.
    pub(super) fn add(&mut self, sample: Sample) {
        for (level, (step, most)) in self.levels.iter_mut().zip(LEVELS) {
            while level.pop_back_if(|last| last.at > sample.at).is_some() {}
            let last = level.back().map_or(0, |last| last.at / step);
            if sample.at / step > last || level.is_empty() {
                level.push_back(sample);
                if level.len() > most {
                    level.pop_front();
                }
            }
        }
    }

    /// When the history begins, seconds since 1970.
    pub(super) fn begin(&self) -> Option<u64> {
        self.levels.iter().filter_map(|level| level.front()).map(|first| first.at).min()
    }

    /// The rates of a counter in the `span` seconds until a time, as far as they are known.
    pub(super) fn rates(&self, span: u64, until: u64, counter: impl Fn(&Sample) -> u64) -> Rates {
        let from = until.saturating_sub(span).max(self.begin().unwrap_or(until));
        let reaches =
            |level: &VecDeque<Sample>| level.front().is_some_and(|first| first.at <= from);
        let levels = || self.levels.iter().zip(LEVELS);
        let fits = |(_, (step, _)): &(_, (u64, usize))| span / step <= CHART * 4;
        let found = levels().filter(fits).find(|(level, _)| reaches(level));
        let Some((level, (own, _))) = found.or_else(|| levels().next_back()) else {
            return Rates { start: from, step: 1, values: Vec::new() };
        };
        // Steps of a chart are multiples of those of its level.
        let step = (span / CHART).max(1).div_ceil(own) * own;
        let start = from / step * step;
        let steps = (until.saturating_sub(start) / step).min(2 * CHART);
        let mut values = vec![0.0; steps as usize];
        for (before, after) in level.iter().zip(level.iter().skip(1)) {
            let more = counter(after).saturating_sub(counter(before)) as f64;
            let seconds = (after.at - before.at).max(1) as f64;
            // A late sample belongs to all steps since the one before.
            let first = before.at.max(start).saturating_sub(start) / step;
            let last = after.at.saturating_sub(start) / step;
            for at in first..=last {
                let Some(value) = values.get_mut(at as usize) else { break };
                let (begin, end) = (start + at * step, start + (at + 1) * step);
                let overlap = after.at.min(end).saturating_sub(before.at.max(begin)) as f64;
                *value += more / seconds * overlap / step as f64;
            }
        }
        Rates { start, step, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of this many seconds with ten packets in each.
    fn history(seconds: u64) -> History {
        let mut history = History::default();
        for second in 0..=seconds {
            history.add(Sample {
                at: 1_000_000 + second,
                packets: 10 * second,
                ..Sample::default()
            });
        }
        history
    }

    #[test]
    fn rates_are_those_of_the_counters_for_every_span() {
        for run in [5, 100, 3_700, 90_000, 200_000] {
            let history = history(run);
            let until = 1_000_000 + run;
            for span in [60, 300, 900, 3_600, 21_600, 86_400, 172_800] {
                let rates = history.rates(span, until, |sample| sample.packets);
                let known = span.min(run);
                let covered = rates.values.len() as u64 * rates.step;
                assert!(covered <= known + 2 * rates.step, "{run} {span}: {covered}");
                assert!(covered + 2 * rates.step >= known, "{run} {span}: {covered}");
                assert!(rates.values.len() as u64 <= 2 * CHART, "{}", rates.values.len());
                // The first and the last step may not be whole.
                let inner = rates.values.get(1..rates.values.len().saturating_sub(1));
                for value in inner.unwrap_or_default() {
                    assert!((value - 10.0).abs() < 1e-6, "{run} {span}: {rates:?}");
                }
            }
        }
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_times_in_order() {
        let mut history = history(3_600);
        for (second, packets) in [(2_800, 36_010), (2_801, 36_020), (2_802, 36_030)] {
            history.add(Sample { at: 1_000_000 + second, packets, ..Sample::default() });
        }
        for level in &history.levels {
            assert!(level.iter().is_sorted_by(|one, other| one.at < other.at));
        }
        let rates = history.rates(60, 1_002_802, |sample| sample.packets);
        // The packets that came before the clock was set back are in the step in which that was.
        let [before @ .., back, after] = &rates.values[..] else { panic!("{rates:?}") };
        assert!(before.iter().all(|rate| *rate == 10.0) && *back > 10.0 && *after == 10.0);
    }

    #[test]
    fn an_hour_ago_can_be_viewed_by_seconds_of_ten() {
        let history = history(3 * 3_600);
        let rates = history.rates(300, 1_000_000 + 3_600, |sample| sample.packets);
        assert_eq!((rates.start, rates.step, rates.values.len()), (1_003_300, 10, 30));
        assert!(rates.values.iter().all(|value| (value - 10.0).abs() < 1e-6), "{rates:?}");
    }

    #[test]
    fn memory_is_bounded_and_late_samples_fill_all_their_steps() {
        let history = history(400_000);
        for (level, (_, most)) in history.levels.iter().zip(LEVELS) {
            assert_eq!(level.len(), most);
        }
        let mut late = History::default();
        for (second, packets) in [(0, 0), (1, 10), (11, 110), (12, 120)] {
            late.add(Sample { at: 1_000_000 + second, packets, ..Sample::default() });
        }
        let rates = late.rates(60, 1_000_012, |sample| sample.packets);
        assert_eq!(rates.values, [10.0; 12]);
        let empty = History::default().rates(60, 5, |sample| sample.packets);
        assert_eq!(empty.values, Vec::<f64>::new());
    }
}

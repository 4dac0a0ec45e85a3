//! The charts of a view.

use ringtap_terminal::chart::Timeline;

use super::content::Shown;
use super::flows::Flow;
use super::history::{Rates, Sample};
use super::pace::SECOND_NS;
use super::sources::Sources;
use super::view::View;
use crate::charts::month_and_day;

/// Most steps of a chart of flows.
const MOST: u64 = 1_000;

impl Shown<'_> {
    /// The counters of the run over time.
    pub(super) fn charts(&self, view: &View) -> Vec<Timeline> {
        let until = self.until_s(view);
        let span = view.from.map_or(view.span.1, |from| until.saturating_sub(from));
        let chart = |title, unit, colour, counter: &dyn Fn(&Sample) -> u64| {
            let Rates { start, step, values } = self.history.rates(span, until, counter);
            let start = start.saturating_add_signed(i64::from(view.zone) * 60);
            timeline(title, unit, (start, step), colour, values)
        };
        vec![
            chart("Packets", "packets/s", 0, &|one| one.packets),
            chart("Bits as captured", "bit/s", 1, &|one| one.bytes.saturating_mul(8)),
            chart("Packets lost", "packets/s", 2, &|one| one.lost),
            chart("Flows ended", "flows/s", 3, &|one| one.flows),
        ]
    }

    /// The packets and octets of slices, spread evenly over their time, and of the store.
    pub(super) fn charts_of(&self, view: &View, sources: &Sources) -> Vec<Timeline> {
        if self.flows.latest_ns == 0 && sources.stored.is_none() {
            return Vec::new();
        }
        let step_s = sources.step_s;
        let until_s = sources.until_ns.div_ceil(SECOND_NS);
        let start_s = sources.from_ns / SECOND_NS / step_s * step_s;
        // A step that is not over would look like an outage.
        let goes_on = self.now.is_live && view.until.is_none() && step_s > 1;
        let whole_s = if goes_on { until_s / step_s * step_s } else { until_s };
        let steps = whole_s.saturating_sub(start_s).div_ceil(step_s).clamp(1, MOST) as usize;
        let (mut packets, mut bits) = (vec![0.0; steps], vec![0.0; steps]);
        let shown = start_s / step_s;
        let (stored, memory) = self.packets(view, sources);
        let slices = memory.map(|memory| {
            let from_ns = start_s.saturating_mul(SECOND_NS).max(memory.slices.0);
            self.flows.slices(view, (from_ns, u64::MAX))
        });
        for Flow { row, .. } in slices.into_iter().flatten() {
            let step = |ns: u64| ns / SECOND_NS / step_s;
            let (first, last) = (step(row.first_ns), step(row.last_ns));
            let share = ((last - first + 1) * step_s) as f64;
            let sum = |numbers: [u64; 2]| numbers[0] as f64 + numbers[1] as f64;
            for at in first.max(shown)..(last + 1).min(shown + steps as u64) {
                let at = (at - shown) as usize;
                packets[at] += sum(row.packets) / share;
                bits[at] += 8.0 * sum(row.octets) / share;
            }
        }
        if let Some(answer) = stored {
            for row in &answer.rows {
                let step = answer.time_s(row, "time").map(|second| second / step_s);
                let Some(at) = step.and_then(|step| step.checked_sub(shown)) else { continue };
                let at = at as usize;
                if let (Some(packets), Some(bits)) = (packets.get_mut(at), bits.get_mut(at)) {
                    *packets += answer.number(row, "packets") as f64 / step_s as f64;
                    *bits += 8.0 * answer.number(row, "octets") as f64 / step_s as f64;
                }
            }
        }
        let start_s = start_s.saturating_add_signed(i64::from(view.zone) * 60);
        let time = (start_s, step_s);
        vec![
            timeline("Packets of flows", "packets/s", time, 0, packets),
            timeline("Bits of flows", "bit/s", time, 1, bits),
        ]
    }
}

fn timeline(
    title: &str,
    unit: &'static str,
    (start, step): (u64, u64),
    colour: usize,
    values: Vec<f64>,
) -> Timeline {
    Timeline {
        title: title.into(),
        unit,
        start: start as f64,
        step: step as f64,
        values,
        colour,
        day: month_and_day,
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::tests::shown;
    use super::*;

    #[test]
    fn a_long_flow_is_spread_over_its_whole_time() {
        shown(true, 2_000, &[(1_000, 1_999)], |shown| {
            for span in ["1m", "5m", "15m", "1h"] {
                let view = View::parse(&format!("port=80&span={span}")).unwrap();
                let chart = &shown.charts_of(&view, &shown.sources(&view))[0];
                let middle = chart.values.len() - 3;
                assert!((chart.values[middle] - 10.0).abs() < 0.4, "{span}: {chart:?}");
                let end = chart.start + chart.values.len() as f64 * chart.step;
                assert!(end > 2_000.0 - chart.step && end <= 2_000.0, "{span}: {chart:?}");
            }
            // Also at a time before its end.
            let view = View::parse("port=80&span=1m&until=1500").unwrap();
            let chart = &shown.charts_of(&view, &shown.sources(&view))[0];
            assert!(chart.values.iter().all(|value| (value - 10.0).abs() < 0.1), "{chart:?}");
        });
    }
}

//! An axis: maps values to coordinates and selects ticks.

/// Values from `low` to `high`, in a line of the chart.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    /// Coordinates of its ends.
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that covers all `values`, with a margin. A linear axis includes 0.
    pub fn new(values: impl Iterator<Item = f64>, log: bool, from: f64, to: f64) -> Self {
        let values: Vec<f64> =
            values.filter(|value| value.is_finite() && (!log || *value > 0.0)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match (values.is_empty(), log) {
            (true, _) => (if log { 0.1 } else { 0.0 }, 1.0),
            (false, true) => (low / 1.3, high * 1.3),
            (false, false) => (low.min(0.0), if high > 0.0 { high * 1.06 } else { 1.0 }),
        };
        Self { low, high, log, from, to }
    }

    /// An axis that covers all `values`, with a smaller margin if it is logarithmic.
    pub fn close(values: impl Iterator<Item = f64>, log: bool, from: f64, to: f64) -> Self {
        let mut axis = Self::new(values, log, from, to);
        if log {
            (axis.low, axis.high) = (axis.low * 1.3 / 1.08, axis.high / 1.3 * 1.08);
        }
        axis
    }

    /// The coordinate of a value. On a logarithmic axis values below its start are placed at its
    /// start.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// The ticks: values and labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let ticks: Vec<f64> = if self.log { self.log_ticks() } else { self.even_ticks() };
        ticks.into_iter().map(|tick| (tick, short(tick))).collect()
    }

    fn even_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|digit| digit * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        (first..).map(|n| n as f64 * step).take_while(|tick| *tick <= self.high).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let digits: &[f64] = match decades {
            d if d < 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d < 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        powers
            .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
            .filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

/// A number as text, with suffix k, M or G and without trailing zeros.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let (factor, letter) = match size {
        s if s >= 1e9 => (1e9, "G"),
        s if s >= 1e6 => (1e6, "M"),
        s if s >= 1e4 => (1e3, "k"),
        s if s > 0.0 && s < 1e-3 => return format!("{value:.0e}"),
        _ => (1.0, ""),
    };
    let scaled = value / factor;
    let digits = if scaled.abs() >= 100.0 {
        0
    } else if scaled.abs() >= 1.0 {
        2
    } else {
        4
    };
    let text = format!("{scaled:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_begin_at_zero_and_logarithmic_ones_do_not() {
        let axis = Axis::new([3.0, 47.0].into_iter(), false, 0.0, 100.0);
        let ticks: Vec<_> = axis.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["0", "10", "20", "30", "40"]);
        assert_eq!(axis.place(0.0), 0.0);
        let axis = Axis::new([8.0, 1_024.0].into_iter(), true, 100.0, 0.0);
        let ticks: Vec<_> = axis.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["10", "20", "50", "100", "200", "500", "1000"]);
        assert!(axis.place(8.0) > axis.place(1_024.0));
    }

    #[test]
    fn axes_of_unusual_values_are_finite() {
        for values in [vec![], vec![0.0], vec![f64::NAN, f64::INFINITY], vec![-1.0], vec![5.0, 5.0]]
        {
            for log in [false, true] {
                let axis = Axis::new(values.iter().copied(), log, 0.0, 100.0);
                assert!(axis.ticks().len() < 20);
                assert!(axis.place(5.0).is_finite(), "{values:?} {log} {axis:?}");
            }
        }
    }

    #[test]
    fn numbers_have_suffixes_and_few_digits() {
        let short = [0.0, 0.25, 1.5, 64.0, 2_000.0, 16_384.0, 14_880_000.0, 2e9, 1e-5].map(short);
        assert_eq!(short, ["0", "0.25", "1.5", "64", "2000", "16.38k", "14.88M", "2G", "1e-5"]);
    }
}

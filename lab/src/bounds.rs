//! The bounds of a claim, and the verdict on an interval by its place between them.
//!
//! ```text
//!  a gain of 3 × in the paper
//!   contradicted │ weaker │ reproduced       │ stronger
//!  ──────────────┼────────┼──────────────────┼──────────▶
//!               1.1       2        3         5
//!         no effect    half of it         twice it
//! ```
//!
//! A reduction has the same parts from right to left; twice a reduction is twice the gain of its
//! inverse. An interval is reproduced if all of it lies within the bounds, stronger if all of it
//! lies beyond twice the effect, weaker if all of it falls short of the bound and shows an effect,
//! contradicted if all of it shows no effect or the opposite, and inconclusive if it crosses a bound
//! or shows both an effect and none.

use crate::experiment::{Claim, TIMES};
use crate::verdict::Verdict;

/// A tenth of the effect at the bound, or less, is no effect.
const NO_EFFECT: f64 = 0.1;

/// The places at which the verdict on an interval changes.
#[derive(Debug, PartialEq)]
pub(crate) struct Bounds {
    /// Least reproduced figure.
    low: f64,
    /// Greatest reproduced figure.
    high: f64,
    /// Where the effect begins; `None` if each figure outside of the bounds contradicts the claim.
    begin: Option<f64>,
    /// Where a stronger figure begins; `None` without an effect in the paper.
    twice: Option<f64>,
}

impl Bounds {
    pub(crate) fn of(claim: &Claim) -> Self {
        let half = claim.effect.map(|effect| (1.0 + effect) / 2.0);
        let least = half.filter(|half| *half > 1.0).or(claim.at_least);
        let most = half.filter(|half| *half < 1.0).or(claim.at_most);
        // A bound of 0.8 × or more accepts no effect, so nothing is weaker.
        let bound = match (least, most) {
            (Some(least), None) => Some(least).filter(|least| *least > 1.0),
            (None, Some(most)) => Some(most).filter(|most| *most < 1.0),
            _ => None,
        };
        let begin = bound.filter(|_| claim.unit == TIMES);
        let twice = |effect: f64| match effect > 1.0 {
            true => 2.0 * effect - 1.0,
            false => 1.0 / (2.0 / effect - 1.0),
        };
        Self {
            low: least.unwrap_or(f64::NEG_INFINITY),
            high: most.unwrap_or(f64::INFINITY),
            begin: begin.map(|bound| 1.0 + NO_EFFECT * (bound - 1.0)),
            twice: claim.effect.map(twice),
        }
    }

    /// The verdict on an interval.
    pub(crate) fn verdict(&self, (from, to): (f64, f64)) -> Verdict {
        let is_reduction = self.high.is_finite();
        if from >= self.low && to <= self.high {
            let is_beyond = |twice| if is_reduction { to <= twice } else { from >= twice };
            return match self.twice.is_some_and(is_beyond) {
                true => Verdict::Stronger,
                false => Verdict::Reproduced,
            };
        }
        if !(to < self.low || from > self.high) {
            return Verdict::Inconclusive;
        }
        let Some(begin) = self.begin else { return Verdict::Contradicted };
        let shows_none = if is_reduction { from >= begin } else { to <= begin };
        let shows_effect = if is_reduction { to < 1.0 } else { from > 1.0 };
        match (shows_none, shows_effect) {
            (true, _) => Verdict::Contradicted,
            (false, true) => Verdict::Weaker,
            (false, false) => Verdict::Inconclusive,
        }
    }

    /// What intervals of a verdict have in common; none for figures within the bounds.
    pub(crate) fn reason(&self, verdict: Verdict) -> Option<&'static str> {
        match verdict {
            Verdict::Contradicted if self.begin.is_some() => Some("no effect or the opposite"),
            Verdict::Contradicted => Some("outside the bounds"),
            Verdict::Weaker => Some("short of the bound"),
            Verdict::Inconclusive => Some("the interval crosses a bound"),
            Verdict::Stronger | Verdict::Reproduced | Verdict::NotPossibleHere => None,
        }
    }
}

/// The bounds of a claim and the reason for them, as text.
pub(crate) fn words(claim: &Claim) -> String {
    let Claim { unit, because, .. } = claim;
    let Bounds { low, high, twice, .. } = Bounds::of(claim);
    let (low, high) = (rounded(low), rounded(high));
    let because = if because.is_empty() { String::new() } else { format!(": {because}") };
    match (twice.map(rounded), low.is_finite(), high.is_finite()) {
        (Some(twice), true, _) => format!(
            "reproduced if at least {low} {unit}, half of the paper's gain; stronger if at least {twice} {unit}, \
             twice the gain{because}"
        ),
        (Some(twice), false, _) => format!(
            "reproduced if at most {high} {unit}, half of the paper's reduction; stronger if at most {twice} {unit}, \
             twice the gain of the inverse{because}"
        ),
        (None, true, true) => format!("reproduced if {low} to {high} {unit}{because}"),
        (None, true, false) => format!("reproduced if at least {low} {unit}{because}"),
        (None, false, true) => format!("reproduced if at most {high} {unit}{because}"),
        (None, false, false) => format!("reproduced if all results are equal{because}"),
    }
}

/// A bound without the errors of its calculation.
fn rounded(bound: f64) -> f64 {
    (bound * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Contradicted, Inconclusive, Reproduced, Stronger, Weaker};

    fn claim(text: &str) -> Claim {
        let head = "text = 't'\nkind = 'measured'\nsource = 's'\npaper = 'p'\nquantity = 'v'\n";
        toml::from_str(&(head.to_owned() + text)).unwrap()
    }

    fn verdicts(text: &str, intervals: &[(f64, f64)]) -> Vec<Verdict> {
        let bounds = Bounds::of(&claim(text));
        intervals.iter().map(|interval| bounds.verdict(*interval)).collect()
    }

    #[test]
    fn a_gain_is_reproduced_from_half_of_it_and_stronger_from_twice_of_it() {
        let all = [(5.0, 9.0), (4.9, 9.0), (2.0, 2.1), (1.9, 2.1), (1.2, 1.9), (0.9, 1.2)];
        let expected = [Stronger, Reproduced, Reproduced, Inconclusive, Weaker, Inconclusive];
        assert_eq!(verdicts("effect = 3.0", &all), expected);
        let none = [(0.99, 1.05), (0.2, 0.5), (f64::NAN, f64::NAN)];
        assert_eq!(verdicts("effect = 3.0", &none), [Contradicted, Contradicted, Inconclusive]);
    }

    #[test]
    fn a_reduction_mirrors_the_gain_of_its_inverse() {
        // 0.5 × is a gain of 2 × of the inverse: 3 × are twice that.
        let all = [(0.1, 0.33), (0.1, 0.34), (0.5, 0.76), (0.8, 0.9), (0.8, 1.2), (0.98, 1.2)];
        let expected = [Stronger, Reproduced, Inconclusive, Weaker, Inconclusive, Contradicted];
        assert_eq!(verdicts("effect = 0.5", &all), expected);
    }

    #[test]
    fn a_bound_without_an_effect_has_no_stronger_figure() {
        assert_eq!(verdicts("at_least = 3.0", &[(90.0, 99.0), (2.0, 2.5)]), [Reproduced, Weaker]);
        assert_eq!(verdicts("at_most = 0.95", &[(0.1, 0.2), (0.96, 0.98)]), [Reproduced, Weaker]);
    }

    #[test]
    fn figures_outside_of_bounds_that_accept_no_effect_contradict_the_claim() {
        for bounds in [
            "at_least = 0.8",
            "at_least = 1.0",
            "at_least = 0.7\nat_most = 0.78",
            "at_least = 1.5\nunit = 'cycles'",
        ] {
            assert_eq!(verdicts(bounds, &[(0.6, 0.65)]), [Contradicted], "{bounds}");
        }
        assert_eq!(verdicts("at_most = 1.25", &[(1.3, 1.4)]), [Contradicted]);
    }

    #[test]
    fn bounds_are_printed_with_their_reasons() {
        assert_eq!(
            words(&claim("effect = 1.23\nbecause = 'the line rate limits it'")),
            "reproduced if at least 1.115 ×, half of the paper's gain; stronger if at least 1.46 ×, twice the \
             gain: the line rate limits it"
        );
        assert_eq!(
            words(&claim("effect = 0.41")),
            "reproduced if at most 0.705 ×, half of the paper's reduction; stronger if at most 0.2579 ×, twice the \
             gain of the inverse"
        );
        assert_eq!(
            words(&claim("at_least = 0.8\nat_most = 1.25\nbecause = 'similar'")),
            "reproduced if 0.8 to 1.25 ×: similar"
        );
    }
}

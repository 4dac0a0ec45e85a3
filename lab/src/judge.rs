//! Judges the paper's claims by the rows of a run.
//!
//! Our figure is a ratio within a round, or a value; its interval is over the rounds. The claim has
//! bounds. If the whole interval lies within them, the claim is reproduced; if all of it lies
//! outside, it is not reproduced; if the interval crosses a bound, the claim is inconclusive. A
//! claim is also inconclusive if one of its settings failed, hung or gave a wrong result.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::experiment::{Best, Claim, ClaimKind, Experiment, Selector};
use crate::rows::{Row, State};
use crate::statistics;

/// Our figure for a claim of equal results, if they are not equal.
const DIFFERENT: &str = "different";

/// With fewer rounds a claim is inconclusive.
const ROUNDS_MIN: usize = 3;

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Id of the experiment.
    pub experiment: String,
    /// Text of the claim.
    pub claim: String,
    /// Verdicts on claims of other kinds than `Measured` are counted separately.
    pub kind: ClaimKind,
    /// Place in the paper.
    pub source: String,
    /// The paper's figure.
    pub paper: String,
    /// Our figure.
    pub ours: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict; mostly empty if the claim is reproduced.
    pub reason: String,
    /// The bounds and the reason for them.
    pub judged: String,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The measurement agrees with the claim.
    Reproduced,
    /// The measurement contradicts the claim.
    NotReproduced,
    /// The machine lacks cores, shared caches or counters for it.
    NotPossibleHere,
    /// The spread of the measurement includes both results.
    Inconclusive,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 4] =
        [Self::Reproduced, Self::NotReproduced, Self::NotPossibleHere, Self::Inconclusive];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not-reproduced",
            Self::NotPossibleHere => "not-possible-here",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Judges all claims of `experiment` by the rows of one run.
pub fn judge(experiment: &Experiment, rows: &[Row]) -> Vec<Judgement> {
    experiment.claims.iter().map(|claim| judgement(experiment, claim, rows)).collect()
}

/// Figure, verdict and reason for one claim.
struct Finding {
    ours: String,
    verdict: Verdict,
    reason: String,
}

impl Finding {
    fn none(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { ours: "–".into(), verdict, reason: reason.into() }
    }

    /// The finding, changed to inconclusive if `failed` (failed trials of the claim) is not empty.
    fn without(self, failed: &[&Row]) -> Self {
        let Some(first) = failed.first() else { return self };
        if self.verdict == Verdict::NotReproduced && self.ours == DIFFERENT {
            // Two results that differ are enough; a missing third one does not matter.
            return self;
        }
        let settings: BTreeSet<_> =
            failed.iter().map(|row| (&row.candidate, &row.parameters)).collect();
        let what = match settings.len() {
            1 => "a setting".to_owned(),
            several => format!("{several} settings"),
        };
        let mut reason = format!("{what} gave no result ({}: {})", first.candidate, first.reason);
        if !self.reason.is_empty() && self.reason != first.reason {
            reason += &format!("; {}", self.reason);
        }
        Self { ours: self.ours, verdict: Verdict::Inconclusive, reason }
    }
}

/// Trials that a claim depends on and that failed, hung, or gave a wrong result.
fn failed<'r>(experiment: &Experiment, claim: &Claim, rows: &'r [Row]) -> Vec<&'r Row> {
    if claim.quantity.is_none() {
        // For a claim of equal results, wrong results are the finding itself, not a failure.
        let compared = |row: &&Row| {
            let candidate = experiment.candidates.iter().find(|one| one.name == row.candidate);
            let own = candidate.and_then(|one| one.equal.as_ref());
            !own.unwrap_or(&experiment.equal).is_empty()
        };
        return rows.iter().filter(|row| row.state == State::Failed).filter(compared).collect();
    }
    let fits = |selector: &Selector, row: &Row| {
        [selector, &claim.base(selector)].iter().any(|s| s.fits(&row.candidate, &row.parameters))
    };
    let point = |row: &Row| claim.each.as_ref().and_then(|name| row.parameters.get(name).cloned());
    let above = rows.iter().filter(|row| fits(&claim.of, row));
    let points: BTreeSet<_> = above.filter_map(point).collect();
    let concerned = |row: &&Row| {
        fits(&claim.of, row)
            || claim.to.as_ref().is_some_and(|to| fits(to, row))
                && point(row).is_none_or(|at| points.contains(&at))
    };
    let is_failed = |row: &&Row| matches!(row.state, State::Failed | State::Wrong);
    rows.iter().filter(is_failed).filter(concerned).collect()
}

/// Number of claims of these kinds by verdict.
pub fn count_verdicts<'j>(
    judgements: impl IntoIterator<Item = &'j Judgement>,
    kinds: &[ClaimKind],
) -> [(Verdict, usize); Verdict::ALL.len()] {
    let mut counts = Verdict::ALL.map(|verdict| (verdict, 0));
    for judgement in judgements {
        if kinds.contains(&judgement.kind) {
            counts[judgement.verdict as usize].1 += 1;
        }
    }
    counts
}

fn judgement(experiment: &Experiment, claim: &Claim, rows: &[Row]) -> Judgement {
    let finding = match &claim.quantity {
        None => equality(experiment, rows),
        Some(quantity) => figure(claim, quantity, rows),
    };
    let Finding { ours, verdict, reason } = finding.without(&failed(experiment, claim, rows));
    Judgement {
        experiment: experiment.id.clone(),
        claim: claim.text.clone(),
        kind: claim.kind,
        source: claim.source.clone(),
        paper: claim.paper.clone(),
        ours,
        verdict,
        reason,
        judged: bounds(claim),
    }
}

/// The bounds as text: "reproduced if at least 1.2 ×: half of the paper's gain".
fn bounds(claim: &Claim) -> String {
    let (unit, because) = (&claim.unit, &claim.because);
    match (claim.at_least, claim.at_most) {
        (Some(low), Some(high)) => format!("reproduced if {low} to {high} {unit}: {because}"),
        (Some(low), None) => format!("reproduced if at least {low} {unit}: {because}"),
        (None, Some(high)) => format!("reproduced if at most {high} {unit}: {because}"),
        (None, None) => format!("reproduced if all results are equal: {because}"),
    }
}

/// Judges whether all trials that should have equal results have.
fn equality(experiment: &Experiment, rows: &[Row]) -> Finding {
    let with = rows
        .iter()
        .filter(|row| !row.result.is_empty() && row.trial > 0 || row.state == State::Wrong);
    let mut results: BTreeMap<Vec<&str>, BTreeSet<&str>> = BTreeMap::new();
    let (mut trials, mut settings) = (BTreeSet::new(), BTreeSet::new());
    for row in with {
        let of = |name: &String| row.parameters.get(name).map_or("", String::as_str);
        let group = experiment.equal_by.iter().map(of).collect();
        results.entry(group).or_default().insert(&row.result);
        trials.insert((&row.candidate, &row.parameters, row.trial));
        settings.insert((&row.candidate, &row.parameters));
    }
    if settings.len() < 2 {
        return missing(rows.iter(), "fewer than two settings have a result");
    }
    let differ = results.values().filter(|results| results.len() > 1).count();
    if differ > 0 {
        let reason = format!("{differ} of {} groups have several results", results.len());
        return Finding { ours: DIFFERENT.into(), verdict: Verdict::NotReproduced, reason };
    }
    let ours = format!("equal in all {} trials", trials.len());
    Finding { ours, verdict: Verdict::Reproduced, reason: String::new() }
}

/// The finding for a claim without values: the reason of a row, or `otherwise`.
fn missing<'a>(rows: impl Iterator<Item = &'a Row>, otherwise: &str) -> Finding {
    let mut reasons = BTreeMap::new();
    for row in rows.filter(|row| row.state != State::Ok) {
        reasons.entry(row.state).or_insert(&row.reason);
    }
    let reason = |state| reasons.get(&state).map(|reason| reason.as_str());
    match reason(State::NotPossible).or_else(|| reason(State::Oversubscribed)) {
        Some(reason) => Finding::none(Verdict::NotPossibleHere, reason),
        None => {
            let reason = reason(State::Wrong).or_else(|| reason(State::Failed));
            Finding::none(Verdict::Inconclusive, reason.unwrap_or(otherwise))
        }
    }
}

fn figure(claim: &Claim, quantity: &str, rows: &[Row]) -> Finding {
    let Some(name) = &claim.each else {
        return match ratio(claim, quantity, &claim.of, claim.to.as_ref(), rows) {
            Ok(values) => decide(claim, &[(String::new(), values)]),
            Err(finding) => finding,
        };
    };
    // The points of the numerator, in the order of their numbers.
    let mut points: Vec<&String> = rows
        .iter()
        .filter(|row| claim.of.fits(&row.candidate, &row.parameters))
        .filter_map(|row| row.parameters.get(name))
        .collect();
    points.sort_by(|a, b| by_number(a, b));
    points.dedup();
    if points.is_empty() {
        return Finding::none(Verdict::Inconclusive, "nothing was measured");
    }
    let (mut found, mut without) = (Vec::new(), Vec::new());
    for point in points {
        let of = claim.of.and(name, point);
        let to = claim.to.as_ref().map(|to| to.and(name, point));
        match ratio(claim, quantity, &of, to.as_ref(), rows) {
            Ok(values) => found.push((format!("{name} {point}"), values)),
            Err(finding) if finding.verdict == Verdict::Inconclusive => return finding,
            Err(finding) => without.push((point.as_str(), finding)),
        }
    }
    if found.is_empty() {
        let nothing = || Finding::none(Verdict::Inconclusive, "nothing was measured");
        return without.into_iter().next().map_or_else(nothing, |(_, finding)| finding);
    }
    let mut finding = decide(claim, &found);
    // Points that are not possible on this machine do not affect the verdict; the reason lists
    // them.
    if let Some((_, lacking)) = without.first() {
        let points: Vec<_> = without.iter().map(|(point, _)| *point).collect();
        let not_at = format!("not judged at {name} {}: {}", points.join(", "), lacking.reason);
        finding.reason = [finding.reason, not_at]
            .into_iter()
            .filter(|r| !r.is_empty())
            .collect::<Vec<_>>()
            .join("; ");
    }
    finding
}

/// The figure of each round, or the finding if there is none.
fn ratio(
    claim: &Claim,
    quantity: &str,
    of: &Selector,
    to: Option<&Selector>,
    rows: &[Row],
) -> Result<Vec<f64>, Finding> {
    let concerned = |row: &&Row| {
        let fits = |selector: &Selector| selector.fits(&row.candidate, &row.parameters);
        fits(of) || to.is_some_and(fits)
    };
    let none = |otherwise: &str| missing(rows.iter().filter(concerned), otherwise);
    let found = |selector: &Selector, quantity: &str| {
        let values = by_round(selector, quantity, rows)?;
        if claim.gain_over.is_empty() {
            return Ok(values);
        }
        Ok(over(&values, &by_round(&claim.base(selector), quantity, rows)?))
    };
    let above = found(of, quantity)?;
    let values = match to {
        None => above,
        Some(to) => over(&above, &found(to, claim.over.as_deref().unwrap_or(quantity))?),
    };
    let values: Vec<f64> = values.into_values().collect();
    if values.is_empty() {
        return Err(none("nothing was measured"));
    }
    if values.len() < ROUNDS_MIN {
        let ours = show(statistics::median(&values).unwrap_or(f64::NAN), &claim.unit);
        let reason = format!("only {} rounds; {ROUNDS_MIN} are needed", values.len());
        return Err(Finding { ours, verdict: Verdict::Inconclusive, reason });
    }
    Ok(values)
}

/// The quotients, round by round.
fn over(above: &BTreeMap<u32, f64>, below: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
    above.iter().filter_map(|(round, a)| Some((*round, a / below.get(round)?))).collect()
}

/// The value that a selector has in each round.
fn by_round(
    selector: &Selector,
    quantity: &str,
    rows: &[Row],
) -> Result<BTreeMap<u32, f64>, Finding> {
    let mut found: BTreeMap<u32, f64> = BTreeMap::new();
    let wanted = rows.iter().filter(|row| {
        row.state == State::Ok
            && row.quantity == quantity
            && selector.fits(&row.candidate, &row.parameters)
    });
    for (round, value) in wanted.filter_map(|row| Some((row.trial, row.value?))) {
        let known = found.get(&round).copied();
        let value = match (known, selector.best) {
            (None, _) => value,
            (Some(known), Some(Best::Highest)) => known.max(value),
            (Some(known), Some(Best::Lowest)) => known.min(value),
            (Some(_), None) => {
                let reason = "the claim must select one setting, but several fit";
                return Err(Finding::none(Verdict::Inconclusive, reason));
            }
        };
        found.insert(round, value);
    }
    Ok(found)
}

/// The verdict on one figure, or on one figure per point, all of which must lie within the bounds.
fn decide(claim: &Claim, points: &[(String, Vec<f64>)]) -> Finding {
    let low = claim.at_least.unwrap_or(f64::NEG_INFINITY);
    let high = claim.at_most.unwrap_or(f64::INFINITY);
    let mut medians = Vec::new();
    let (mut outside, mut open) = (Vec::new(), Vec::new());
    for (point, values) in points {
        let (from, to) = statistics::interval(values).unwrap_or((f64::NAN, f64::NAN));
        medians.push(statistics::median(values).unwrap_or(f64::NAN));
        let interval = || {
            let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
            format!("{} to {}{at}", show(from, ""), show(to, &claim.unit))
        };
        if to < low || from > high {
            outside.push(interval());
        } else if !(from >= low && to <= high) {
            open.push(interval());
        }
    }
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let most = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let unit = &claim.unit;
    let ours = match points {
        [(_, values)] => {
            let (from, to) = statistics::interval(values).unwrap_or((least, most));
            format!("{} ({}–{})", show(least, unit), show(from, ""), show(to, ""))
        }
        _ => format!("{} to {}", show(least, ""), show(most, unit)),
    };
    let (verdict, reason) = match (outside.is_empty(), open.is_empty()) {
        (false, _) => {
            (Verdict::NotReproduced, format!("outside the bounds: {}", outside.join(", ")))
        }
        (true, false) => {
            let reason = format!("the interval crosses a bound: {}", open.join(", "));
            (Verdict::Inconclusive, reason)
        }
        (true, true) => (Verdict::Reproduced, String::new()),
    };
    Finding { ours, verdict, reason }
}

/// A number with three significant digits and its unit.
pub fn show(value: f64, unit: &str) -> String {
    let size = value.abs();
    let number = if value.is_infinite() {
        "∞".into()
    } else if value.is_nan() {
        "–".into()
    } else if size >= 1e15 || (size > 0.0 && size < 1e-3) {
        format!("{value:.2e}")
    } else if size >= 100.0 {
        grouped(value.round() as i64)
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 || size == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    };
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// A number with commas between groups of three digits.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// Compares two parameters: numbers by value, other texts alphabetically.
pub(crate) fn by_number(a: &str, b: &str) -> std::cmp::Ordering {
    match (crate::template::number(a), crate::template::number(b)) {
        (Some(x), Some(y)) => x.total_cmp(&y),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::row;

    fn claim(text: &str) -> Claim {
        toml::from_str(&format!(
            "text = 't'\nkind = 'measured'\nsource = 's'\npaper = '2'\nbecause = 'b'\nquantity = 'v'\n{text}"
        ))
        .unwrap()
    }

    /// Rows of `a` and `b` by round.
    fn rows(a: &[f64], b: &[f64]) -> Vec<Row> {
        let of = |name: &'static str, values: &[f64]| {
            let rows = values.iter().zip(1..).map(|(&value, trial)| row(name, trial, value));
            rows.collect::<Vec<_>>()
        };
        [of("a", a), of("b", b)].concat()
    }

    const A_TO_B: &str = "of = { candidate = 'a' }\nto = { candidate = 'b' }\nat_least = 1.5";

    fn verdict(text: &str, rows: &[Row]) -> (Verdict, String, String) {
        let found = figure(&claim(text), "v", rows);
        (found.verdict, found.ours, found.reason)
    }

    #[test]
    fn an_interval_within_or_outside_the_bounds_is_decided() {
        let twice = rows(&[20.0, 22.0, 19.0, 40.0, 21.0], &[10.0, 11.0, 10.0, 20.0, 10.0]);
        let (found, ours, _) = verdict(A_TO_B, &twice);
        assert_eq!((found, ours.as_str()), (Verdict::Reproduced, "2.00 × (1.90–2.10)"));
        let less = rows(&[10.0, 11.0, 10.5], &[10.0, 10.0, 10.0]);
        assert_eq!(verdict(A_TO_B, &less).0, Verdict::NotReproduced);
        let within = A_TO_B.to_owned() + "\nat_most = 1.8";
        assert_eq!(verdict(&within, &twice).0, Verdict::NotReproduced);
    }

    #[test]
    fn an_interval_across_a_bound_and_too_few_rounds_are_inconclusive() {
        let noisy = rows(&[10.0, 30.0, 18.0, 12.0], &[10.0, 10.0, 10.0, 10.0]);
        let (found, _, reason) = verdict(A_TO_B, &noisy);
        assert_eq!(found, Verdict::Inconclusive);
        assert!(reason.contains("crosses a bound"), "{reason}");
        let (found, _, reason) = verdict(A_TO_B, &rows(&[20.0, 20.0], &[10.0, 10.0]));
        assert_eq!(found, Verdict::Inconclusive);
        assert!(reason.contains("2 rounds"), "{reason}");
    }

    #[test]
    fn oversubscribed_trials_are_never_judged() {
        let mut all = rows(&[20.0; 5], &[10.0; 5]);
        for row in all.iter_mut().filter(|row| row.candidate == "a") {
            row.state = State::Oversubscribed;
            row.reason = "7 threads on 2 cores".into();
        }
        let (found, ours, reason) = verdict(A_TO_B, &all);
        assert_eq!((found, ours.as_str()), (Verdict::NotPossibleHere, "–"));
        assert_eq!(reason, "7 threads on 2 cores");
    }

    #[test]
    fn claims_of_a_failed_setting_are_inconclusive() {
        let experiment = |claims: &str| {
            let text = "id = 'test/test'\npaper = 'p'\nfigure = 'f'\ntitle = 't'\nabout = 'a'\n\
                        command = 'c'\nequal = ['/x']\n[values.v]\nat = '/v'\nunit = 'u'\n\
                        [quick]\nrepeat = 3\n[full]\nrepeat = 3\n[plot]\nkind = 'bars'\ny = 'v'\n\
                        y_label = 'y'\n[[candidate]]\nname = 'a'\n[[candidate]]\nname = 'b'\n\
                        [[candidate]]\nname = 'c'\n[[candidate]]\nname = 'alone'\nequal = []\n";
            let claim = "\n[[claim]]\ntext = 't'\nkind = 'measured'\nsource = 's'\npaper = 'p'\nbecause = 'b'\n";
            let all: String = claims.split('|').map(|one| claim.to_owned() + one).collect();
            Experiment::parse("test.toml", &(text.to_owned() + &all)).unwrap()
        };
        let experiment = experiment(&format!(
            "|quantity = 'v'\n{A_TO_B}|quantity = 'v'\nof = {{ candidate = 'c' }}\nat_least = 1.0|\
             quantity = 'v'\nof = {{ candidate = ['a', 'b', 'c'], best = 'highest' }}\nat_least = 1.0"
        ));
        let good = [
            rows(&[20.0; 4], &[10.0; 4]),
            rows(&[5.0; 4], &[])
                .into_iter()
                .map(|row| Row { candidate: "c".into(), ..row })
                .collect(),
        ]
        .concat();
        let verdicts = |rows: &[Row]| -> Vec<_> {
            judge(&experiment, rows).into_iter().map(|j| (j.verdict, j.reason)).collect()
        };
        assert!(
            verdicts(&good).iter().all(|(verdict, _)| *verdict == Verdict::Reproduced),
            "{:?}",
            verdicts(&good)
        );
        // One hung round is enough, and affects only the claims that depend on the setting.
        let hung = |candidate: &str, trial: u32| Row {
            state: State::Failed,
            value: None,
            result: String::new(),
            reason: "timed out after 9 s".into(),
            ..row(candidate, trial, 0.0)
        };
        let all = verdicts(&[good.clone(), vec![hung("c", 5)]].concat());
        let found: Vec<_> = all.iter().map(|(verdict, _)| *verdict).collect();
        use Verdict::{Inconclusive as Open, Reproduced as Good};
        assert_eq!(found, [Open, Good, Open, Open]);
        assert!(all[0].1.contains("a setting gave no result (c: timed out after 9 s)"), "{all:?}");
        // A candidate without compared results does not affect a claim of equal results.
        let alone = verdicts(&[good.clone(), vec![hung("alone", 0)]].concat());
        assert!(alone.iter().all(|(verdict, _)| *verdict == Good), "{alone:?}");
        // Two results that differ are enough, even if a third is missing.
        let other = Row { result: "other".into(), ..row("b", 6, 10.0) };
        let differ = verdicts(&[good, vec![other, hung("c", 5)]].concat());
        assert_eq!(differ[0].0, Verdict::NotReproduced);
    }

    #[test]
    fn verdicts_are_counted_by_kind() {
        let judgement = |kind, verdict| Judgement {
            experiment: String::new(),
            claim: String::new(),
            kind,
            source: String::new(),
            paper: String::new(),
            ours: String::new(),
            verdict,
            reason: String::new(),
            judged: String::new(),
        };
        let all = [
            judgement(ClaimKind::Measured, Verdict::Inconclusive),
            judgement(ClaimKind::Model, Verdict::Reproduced),
            judgement(ClaimKind::Absolute, Verdict::Reproduced),
            judgement(ClaimKind::Measured, Verdict::Reproduced),
        ];
        let counts = |kinds: &[ClaimKind]| count_verdicts(&all, kinds).map(|(_, count)| count);
        assert_eq!(counts(&[ClaimKind::Measured]), [1, 0, 0, 1]);
        assert_eq!(counts(&ClaimKind::ALL[1..]), [2, 0, 0, 0]);
        assert_eq!(count_verdicts(&all, &[])[3].0, Verdict::Inconclusive);
    }

    #[test]
    fn a_claim_must_hold_at_each_point_and_can_select_the_best_of_several() {
        let mut all = Vec::new();
        for (size, factor) in [("8", 3.0), ("64", 2.0), ("1024", 1.0)] {
            for mut row in rows(&[10.0 * factor; 3], &[10.0; 3]) {
                row.parameters.insert("size".into(), size.into());
                all.push(row);
            }
        }
        let each = A_TO_B.to_owned() + "\neach = 'size'";
        let (found, ours, reason) = verdict(&each, &all);
        assert_eq!((found, ours.as_str()), (Verdict::NotReproduced, "1.00 to 3.00 ×"));
        assert!(reason.ends_with("at size 1024"), "{reason}");
        let (found, _, reason) = verdict(A_TO_B, &all);
        assert_eq!(found, Verdict::Inconclusive);
        assert!(reason.contains("several fit"), "{reason}");
        let best = "of = { candidate = 'a', best = 'highest' }\n\
                    to = { candidate = 'b', size = [64, 1024], best = 'lowest' }\nat_least = 1.5";
        assert_eq!(verdict(best, &all).1, "3.00 × (3.00–3.00)");
    }

    #[test]
    fn gains_are_compared_independently_of_the_base_values() {
        // With one worker b is twice as fast, but a second worker doubles a and does not help b.
        let mut all = Vec::new();
        for (workers, a, b) in [("1", 10.0, 20.0), ("2", 20.0, 20.0)] {
            for mut row in rows(&[a; 3], &[b; 3]) {
                row.parameters.insert("workers".into(), workers.into());
                all.push(row);
            }
        }
        let gain = "of = { candidate = 'a', workers = 2 }\nto = { candidate = 'b', workers = 2 }\n\
                    gain_over = { workers = 1 }\nat_least = 1.5";
        let (found, ours, _) = verdict(gain, &all);
        assert_eq!((found, ours.as_str()), (Verdict::Reproduced, "2.00 × (2.00–2.00)"));
    }

    #[test]
    fn points_with_too_many_threads_are_listed_in_the_reason() {
        let mut all = Vec::new();
        for workers in ["1", "2"] {
            for mut row in rows(&[20.0; 3], &[10.0; 3]) {
                row.parameters.insert("workers".into(), workers.into());
                if workers == "2" {
                    row.state = State::Oversubscribed;
                    row.reason = "3 threads on 2 cores".into();
                }
                all.push(row);
            }
        }
        let each = A_TO_B.to_owned() + "\neach = 'workers'";
        let (found, _, reason) = verdict(&each, &all);
        assert_eq!(found, Verdict::Reproduced);
        assert_eq!(reason, "not judged at workers 2: 3 threads on 2 cores");
        let (found, _, reason) = verdict(&each, &all[6..]);
        assert_eq!((found, reason.as_str()), (Verdict::NotPossibleHere, "3 threads on 2 cores"));
    }

    #[test]
    fn numbers_are_shown_with_three_digits() {
        let shown =
            [0.0, 0.000_012, 0.1664, 4.321, 38.04, 226.4, 12_345_678.0].map(|n| show(n, ""));
        assert_eq!(shown, ["0.00", "1.20e-5", "0.166", "4.32", "38.0", "226", "12,345,678"]);
    }
}

//! Judges the paper's claims by the rows of a run.
//!
//! Our figure is a ratio within a round, or a value; its interval is over the rounds. The claim's
//! bounds decide the verdict on the interval (`bounds.rs`). A claim is inconclusive, whatever its
//! interval, if one of its settings failed, hung, gave a wrong result, or was saturated. Disturbed
//! trials are not judged.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::bounds::{self, Bounds};
use crate::experiment::{Best, Claim, ClaimKind, Experiment, Saturation, Selector};
use crate::prediction::Point;
use crate::quiet::Disturbances;
use crate::rows::{Row, State};
use crate::run_folder::RunFolder;
use crate::verdict::Verdict;
use crate::{LabError, prediction, statistics};

/// Our figure for a claim of equal results, if they are not equal.
const DIFFERENT: &str = "different";
/// Our figure, if there is none.
pub(crate) const NONE: &str = "–";

/// With fewer rounds a claim is inconclusive, as with fewer in each half of the rounds if the best of
/// several settings is selected.
pub(crate) const ROUNDS_MIN: usize = 3;

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Id of the row: the experiment's name and the number of the claim, from 1.
    pub id: String,
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
    /// The reason for the verdict; mostly empty if the claim is reproduced or stronger.
    pub reason: String,
    /// The bounds and the reason for them.
    pub judged: String,
    /// What predictions say of a claim that is not possible here, and what verdict that would be; otherwise empty.
    #[serde(default)]
    pub predicted: String,
}

/// Confidence level of the interval of a claim that got further rounds. Each block of them is another
/// chance to decide wrongly, so it is higher than that of the planned rounds.
const CONFIDENCE_FURTHER: f64 = 0.99;

/// Judges all claims of `experiment` by the rows of one run.
pub fn judge(experiment: &Experiment, rows: &[Row]) -> Vec<Judgement> {
    let rows = &counted(experiment, rows);
    let judged = |(claim, number)| {
        let id = format!("{}-{number}", experiment.file_name());
        Judgement { id, ..judgement(experiment, claim, rows).0 }
    };
    experiment.claims.iter().zip(1..).map(judged).collect()
}

/// What a run says of an experiment.
pub struct Judged {
    /// The rows of its trials.
    pub rows: Vec<Row>,
    /// All claims, judged by them; none without a row. Claims that are not possible have the run's predictions.
    pub judgements: Vec<Judgement>,
    /// The rows of its predictions.
    pub(crate) predicted: Vec<Row>,
    /// The points that are predicted.
    pub(crate) points: Vec<Point>,
}

/// Judges all claims of an experiment by a run.
///
/// # Errors
/// The rows or the predictions cannot be read.
pub fn of_run(folder: &RunFolder, experiment: &Experiment) -> Result<Judged, LabError> {
    let (rows, predicted) = (folder.measured(experiment)?, folder.predicted(experiment)?);
    let points = prediction::points(experiment, folder.facts.quick, &predicted, &rows)?;
    let mut judgements = if rows.is_empty() { Vec::new() } else { judge(experiment, &rows) };
    let as_measured = prediction::as_measured(&predicted);
    for (judgement, claim) in judgements.iter_mut().zip(&experiment.claims) {
        if judgement.verdict == Verdict::NotPossibleHere && claim.predicted {
            judgement.predicted = said(claim, &points, &as_measured);
        }
    }
    Ok(Judged { rows, judgements, predicted, points })
}

/// What predictions, as rows like measured ones, say of a claim; empty if nothing. Each of the two values of a ratio may be as
/// far off as the worst point that was measured.
fn said(claim: &Claim, points: &[Point], predicted: &[Row]) -> String {
    let Some(quantity) = &claim.quantity else { return String::new() };
    let off = 1.0 + prediction::tolerance(points);
    let off = if claim.to.is_some() { off * off } else { off };
    let wider = |values: &[f64]| {
        let (from, to) = statistics::interval(values, statistics::CONFIDENCE)?;
        Some((from / off, to * off))
    };
    let found = figure_of(claim, quantity, predicted, &wider);
    let checked = match prediction::worst(points) {
        None => ", unchecked here".to_owned(),
        Some(error) if prediction::is_withdrawn(points) => {
            return match found.ours.as_str() {
                NONE => String::new(),
                ours => format!(
                    "{ours} by a model that is withdrawn: it is {:.0} % off at a point that was measured",
                    error.abs() * 100.0
                ),
            };
        }
        Some(_) => String::new(),
    };
    match (found.ours.as_str(), found.verdict) {
        (NONE, _) => String::new(),
        (ours, Verdict::Inconclusive) => format!("{ours}, which would decide nothing{checked}"),
        (ours, verdict) => format!("{ours}, which would be {verdict}{checked}"),
    }
}

/// The rows; those whose values are the same on fewer cores than threads count like any others.
fn counted(experiment: &Experiment, rows: &[Row]) -> Vec<Row> {
    let anywhere = |row: &Row| {
        let own = experiment.candidates.iter().find(|one| one.name == row.candidate);
        let values = own.and_then(|one| one.values.as_ref()).unwrap_or(&experiment.values);
        values.get(&row.quantity).is_some_and(|reading| reading.any_cores)
    };
    let counted = |row: &Row| match row.state {
        State::Oversubscribed if anywhere(row) => {
            Row { state: State::Ok, reason: String::new(), ..row.clone() }
        }
        _ => row.clone(),
    };
    rows.iter().map(counted).collect()
}

/// Candidate and parameters of the settings of measured and transferred claims that further rounds may decide.
pub(crate) fn undecided(
    experiment: &Experiment,
    rows: &[Row],
) -> BTreeSet<(String, BTreeMap<String, String>)> {
    let rows = &counted(experiment, rows);
    let is_open_to_trials =
        |claim: &&Claim| matches!(claim.kind, ClaimKind::Measured | ClaimKind::Transferred);
    let measured = experiment.claims.iter().filter(is_open_to_trials);
    let open = measured.filter(|claim| judgement(experiment, claim, rows).1);
    let settings = open.flat_map(|claim| concerned(experiment, claim, rows));
    settings.map(|row| (row.candidate.clone(), row.parameters.clone())).collect()
}

/// Whether rows have rounds beyond those that a full run plans. A quick run has no such rounds.
pub(crate) fn has_further_rounds<'r>(
    experiment: &Experiment,
    rows: impl IntoIterator<Item = &'r Row>,
) -> bool {
    rows.into_iter().any(|row| row.trial > experiment.full.repeat)
}

/// Figure, verdict and reason for one claim.
struct Finding {
    ours: String,
    verdict: Verdict,
    reason: String,
}

impl Finding {
    fn none(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { ours: NONE.into(), verdict, reason: reason.into() }
    }

    /// The finding, changed to inconclusive for a reason.
    fn undecided(self, mut reason: String) -> Self {
        if !self.reason.is_empty() {
            reason += &format!("; {}", self.reason);
        }
        Self { ours: self.ours, verdict: Verdict::Inconclusive, reason }
    }

    /// The finding, changed to inconclusive if `failed` (failed trials of the claim) is not empty.
    fn without(mut self, failed: &[&Row]) -> Self {
        let Some(first) = failed.first() else { return self };
        if self.verdict == Verdict::Contradicted && self.ours == DIFFERENT {
            // Two results that differ are enough; a missing third one does not matter.
            return self;
        }
        let settings: BTreeSet<_> =
            failed.iter().map(|row| (&row.candidate, &row.parameters)).collect();
        let what = match settings.len() {
            1 => "a setting".to_owned(),
            several => format!("{several} settings"),
        };
        if self.reason == first.reason {
            self.reason.clear();
        }
        self.undecided(format!("{what} gave no result ({}: {})", first.candidate, first.reason))
    }

    /// The finding, changed to inconclusive if a setting of `concerned` (rows of the claim) is saturated.
    fn unless_saturated(self, limit: Option<&Saturation>, concerned: &[&Row]) -> Self {
        let Some(Saturation { quantity, above }) = limit else { return self };
        if self.verdict == Verdict::NotPossibleHere {
            return self;
        }
        let mut settings: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        let wanted =
            concerned.iter().filter(|row| row.state == State::Ok && row.quantity == *quantity);
        for (row, value) in wanted.filter_map(|row| Some((row, row.value?))) {
            settings.entry((&row.candidate, &row.parameters)).or_default().push(value);
        }
        let medians = settings.iter().filter_map(|((candidate, _), values)| {
            statistics::median(values).map(|median| (median, candidate))
        });
        match medians.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
            Some((median, candidate)) if median > *above => {
                self.undecided(format!("{candidate} is saturated: {quantity} {}", show(median, "")))
            }
            _ => self,
        }
    }
}

/// The disturbed trials of a claim, if there are any: "3 of 9 trials were disturbed".
fn disturbed(concerned: &[&Row]) -> Option<String> {
    let found = Disturbances::of(concerned.iter().copied());
    let first = concerned.iter().find(|row| row.state == State::Disturbed)?;
    let Disturbances { trials, .. } = found;
    let count = |left| format!("{left} of {trials} trials were disturbed ({})", first.reason);
    Some(found.left()).filter(|left| *left > 0).map(count)
}

/// Rows of the settings that a claim depends on.
fn concerned<'r>(experiment: &Experiment, claim: &Claim, rows: &'r [Row]) -> Vec<&'r Row> {
    if claim.quantity.is_none() {
        let compared = |row: &&Row| {
            let candidate = experiment.candidates.iter().find(|one| one.name == row.candidate);
            let own = candidate.and_then(|one| one.equal.as_ref());
            !own.unwrap_or(&experiment.equal).is_empty()
        };
        return rows.iter().filter(compared).collect();
    }
    let fits = |selector: &Selector, row: &Row| {
        [selector, &claim.base(selector)].iter().any(|s| s.fits(&row.candidate, &row.parameters))
    };
    let point = |row: &Row| claim.each.as_ref().and_then(|name| row.parameters.get(name).cloned());
    let above = rows.iter().filter(|row| fits(&claim.of, row));
    let points: BTreeSet<_> = above.filter_map(point).collect();
    let of_claim = |row: &&Row| {
        fits(&claim.of, row)
            || claim.to.as_ref().is_some_and(|to| fits(to, row))
                && point(row).is_none_or(|at| points.contains(&at))
    };
    rows.iter().filter(of_claim).collect()
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

/// The verdict on a claim, and whether further rounds may decide it.
fn judgement(experiment: &Experiment, claim: &Claim, rows: &[Row]) -> (Judgement, bool) {
    let concerned = concerned(experiment, claim, rows);
    let confidence = match has_further_rounds(experiment, concerned.iter().copied()) {
        true => CONFIDENCE_FURTHER,
        false => statistics::CONFIDENCE,
    };
    let finding = match &claim.quantity {
        None => equality(experiment, rows),
        Some(quantity) => figure(claim, quantity, rows, confidence),
    };
    let (is_open, reason) = (finding.verdict == Verdict::Inconclusive, finding.reason.clone());
    // For a claim of equal results, wrong results are the finding itself, not a failure.
    let is_failed = |row: &&&Row| {
        row.state == State::Failed || row.state == State::Wrong && claim.quantity.is_some()
    };
    let failed: Vec<&Row> = concerned.iter().filter(is_failed).copied().collect();
    let finding = finding.unless_saturated(claim.saturated.as_ref(), &concerned);
    let mut finding = finding.without(&failed);
    // Another reason than the interval or the number of rounds remains in further ones.
    let is_open = is_open && finding.reason == reason && claim.quantity.is_some();
    if finding.verdict == Verdict::Inconclusive
        && let Some(disturbed) = disturbed(&concerned)
    {
        finding = finding.undecided(disturbed);
    }
    let Finding { ours, verdict, reason } = finding;
    let judgement = Judgement {
        id: String::new(),
        experiment: experiment.id.clone(),
        claim: claim.text.clone(),
        kind: claim.kind,
        source: claim.source.clone(),
        paper: claim.paper.clone(),
        ours,
        verdict,
        reason,
        judged: bounds::words(claim),
        predicted: String::new(),
    };
    (judgement, is_open)
}

/// Judges whether all trials that should have equal results have.
fn equality(experiment: &Experiment, rows: &[Row]) -> Finding {
    let with = rows
        .iter()
        .filter(|row| row.state != State::Disturbed)
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
        return Finding { ours: DIFFERENT.into(), verdict: Verdict::Contradicted, reason };
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

fn figure(claim: &Claim, quantity: &str, rows: &[Row], confidence: f64) -> Finding {
    figure_of(claim, quantity, rows, &|values| statistics::interval(values, confidence))
}

/// The interval of the values of all rounds.
type Interval<'i> = &'i dyn Fn(&[f64]) -> Option<(f64, f64)>;

/// As [`figure`], with intervals of another kind.
fn figure_of(claim: &Claim, quantity: &str, rows: &[Row], interval: Interval<'_>) -> Finding {
    let Some(name) = &claim.each else {
        return match ratio(claim, quantity, &claim.of, claim.to.as_ref(), rows) {
            Ok(values) => decide(claim, &[(String::new(), values)], interval),
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
    let mut finding = decide(claim, &found, interval);
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

/// Values by round.
type Rounds = BTreeMap<u32, f64>;

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

/// The quotients, round by round; none where both values are 0, for example because no packet was dropped.
fn over(above: &Rounds, below: &Rounds) -> Rounds {
    let quotient = |(round, a): (&u32, &f64)| Some((*round, a / below.get(round)?));
    above.iter().filter_map(quotient).filter(|(_, quotient)| !quotient.is_nan()).collect()
}

/// The value that a selector has in each round.
fn by_round(selector: &Selector, quantity: &str, rows: &[Row]) -> Result<Rounds, Finding> {
    let mut settings: BTreeMap<_, Rounds> = BTreeMap::new();
    let wanted = rows.iter().filter(|row| {
        row.state == State::Ok
            && row.quantity == quantity
            && selector.fits(&row.candidate, &row.parameters)
    });
    for (row, value) in wanted.filter_map(|row| Some((row, row.value?))) {
        let rounds = settings.entry((&row.candidate, &row.parameters)).or_default();
        rounds.insert(row.trial, value);
    }
    let mut settings: Vec<Rounds> = settings.into_values().collect();
    match selector.best {
        Some(best) => best_by_round(best, &settings),
        None if settings.len() > 1 => {
            let reason = "the claim must select one setting, but several fit";
            Err(Finding::none(Verdict::Inconclusive, reason))
        }
        None => Ok(settings.pop().unwrap_or_default()),
    }
}

/// The values of the best of `settings`: in odd rounds of the best in even rounds, and the other
/// way round. So no value takes part in its own choice; the best of each round would be biased.
fn best_by_round(best: Best, settings: &[Rounds]) -> Result<Rounds, Finding> {
    let mut found = Rounds::new();
    for parity in [0, 1] {
        let of_half = |rounds: &Rounds, half: u32| -> Rounds {
            let of = rounds.iter().filter(|(round, _)| *round % 2 == half);
            of.map(|(round, value)| (*round, *value)).collect()
        };
        let mut medians = Vec::new();
        for rounds in settings {
            let others: Vec<f64> = of_half(rounds, 1 - parity).into_values().collect();
            if others.len() < ROUNDS_MIN {
                let reason = format!(
                    "only {} rounds; {} are needed to select the best setting",
                    rounds.len(),
                    2 * ROUNDS_MIN
                );
                return Err(Finding::none(Verdict::Inconclusive, reason));
            }
            medians.extend(statistics::median(&others).map(|median| (median, rounds)));
        }
        let order = |(a, _): &(f64, _), (b, _): &(f64, _)| a.total_cmp(b);
        let chosen = match best {
            Best::Highest => medians.into_iter().max_by(order),
            Best::Lowest => medians.into_iter().min_by(order),
        };
        if let Some((_, rounds)) = chosen {
            found.extend(of_half(rounds, parity));
        }
    }
    Ok(found)
}

/// The verdict on one figure, or on one figure per point. A claim is as good as its worst point.
fn decide(claim: &Claim, points: &[(String, Vec<f64>)], interval: Interval<'_>) -> Finding {
    /// From the worst to the best.
    const ORDER: [Verdict; 5] = [
        Verdict::Contradicted,
        Verdict::Weaker,
        Verdict::Inconclusive,
        Verdict::Reproduced,
        Verdict::Stronger,
    ];
    let bounds = Bounds::of(claim);
    let mut medians = Vec::new();
    let mut intervals: BTreeMap<Verdict, Vec<String>> = BTreeMap::new();
    for (point, values) in points {
        let (from, to) = interval(values).unwrap_or((f64::NAN, f64::NAN));
        medians.push(statistics::median(values).unwrap_or(f64::NAN));
        let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
        let text = format!("{} to {}{at}", show(from, ""), show(to, &claim.unit));
        intervals.entry(bounds.verdict((from, to))).or_default().push(text);
    }
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let most = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let unit = &claim.unit;
    let ours = match points {
        [(_, values)] => {
            let (from, to) = interval(values).unwrap_or((least, most));
            format!("{} ({}–{})", show(least, unit), show(from, ""), show(to, ""))
        }
        _ => format!("{} to {}", show(least, ""), show(most, unit)),
    };
    let found = ORDER.iter().filter_map(|verdict| Some((*verdict, intervals.get(verdict)?)));
    let verdict = found.clone().map(|(verdict, _)| verdict).next();
    let reasons = found.filter_map(|(verdict, intervals)| {
        let reason = bounds.reason(verdict)?;
        Some(format!("{reason}: {}", intervals.join(", ")))
    });
    Finding {
        ours,
        verdict: verdict.unwrap_or(Verdict::Inconclusive),
        reason: reasons.collect::<Vec<_>>().join("; "),
    }
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
        let found = figure(&claim(text), "v", rows, statistics::CONFIDENCE);
        (found.verdict, found.ours, found.reason)
    }

    #[test]
    fn an_interval_within_or_outside_the_bounds_is_decided() {
        let twice = rows(&[20.0, 22.0, 19.0, 40.0, 21.0], &[10.0, 11.0, 10.0, 20.0, 10.0]);
        let (found, ours, _) = verdict(A_TO_B, &twice);
        assert_eq!((found, ours.as_str()), (Verdict::Reproduced, "2.00 × (1.90–2.10)"));
        let less = rows(&[10.8, 11.0, 10.6], &[10.0, 10.0, 10.0]);
        assert_eq!(verdict(A_TO_B, &less).0, Verdict::Weaker);
        let none = rows(&[10.0, 11.0, 10.6], &[10.0, 10.0, 10.0]);
        assert_eq!(verdict(A_TO_B, &none).0, Verdict::Inconclusive);
        let within = A_TO_B.to_owned() + "\nat_most = 1.8";
        assert_eq!(verdict(&within, &twice).0, Verdict::Contradicted);
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
            rows(&[20.0; 6], &[10.0; 6]),
            rows(&[5.0; 6], &[])
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
        let all = verdicts(&[good.clone(), vec![hung("c", 7)]].concat());
        let found: Vec<_> = all.iter().map(|(verdict, _)| *verdict).collect();
        use Verdict::{Inconclusive as Open, Reproduced as Good};
        assert_eq!(found, [Open, Good, Open, Open]);
        assert!(all[0].1.contains("a setting gave no result (c: timed out after 9 s)"), "{all:?}");
        // A candidate without compared results does not affect a claim of equal results.
        let alone = verdicts(&[good.clone(), vec![hung("alone", 0)]].concat());
        assert!(alone.iter().all(|(verdict, _)| *verdict == Good), "{alone:?}");
        // Two results that differ are enough, even if a third is missing.
        let other = Row { result: "other".into(), ..row("b", 8, 10.0) };
        let differ = verdicts(&[good, vec![other, hung("c", 7)]].concat());
        assert_eq!(differ[0].0, Verdict::Contradicted);
    }

    #[test]
    fn verdicts_are_counted_by_kind() {
        let judgement = |kind, verdict| Judgement {
            id: String::new(),
            experiment: String::new(),
            claim: String::new(),
            kind,
            source: String::new(),
            paper: String::new(),
            ours: String::new(),
            verdict,
            reason: String::new(),
            judged: String::new(),
            predicted: String::new(),
        };
        let all = [
            judgement(ClaimKind::Measured, Verdict::Inconclusive),
            judgement(ClaimKind::Model, Verdict::Reproduced),
            judgement(ClaimKind::Absolute, Verdict::Reproduced),
            judgement(ClaimKind::Measured, Verdict::Reproduced),
        ];
        let counts = |kinds: &[ClaimKind]| count_verdicts(&all, kinds).map(|(_, count)| count);
        assert_eq!(counts(&[ClaimKind::Measured]), [0, 1, 0, 0, 1, 0]);
        assert_eq!(counts(&ClaimKind::ALL[1..]), [0, 2, 0, 0, 0, 0]);
        assert_eq!(count_verdicts(&all, &[]).map(|(verdict, _)| verdict), Verdict::ALL);
    }

    /// Rows of `a`, and of `b` with 10 in each round, at each size.
    fn sized(sizes: &[(&str, &[f64])]) -> Vec<Row> {
        let at = |(size, a): &(&str, &[f64])| {
            let mut rows = rows(a, &vec![10.0; a.len()]);
            for row in &mut rows {
                row.parameters.insert("size".into(), (*size).into());
            }
            rows
        };
        sizes.iter().flat_map(at).collect()
    }

    #[test]
    fn a_claim_is_as_good_as_its_worst_point() {
        let each =
            "of = { candidate = 'a' }\nto = { candidate = 'b' }\neach = 'size'\neffect = 2.0";
        let at = |sizes: &[(&str, &[f64])]| verdict(each, &sized(sizes));
        let (strong, weak, none) =
            (("8", &[30.0; 3][..]), ("64", &[13.0; 3][..]), ("1024", &[10.0; 3][..]));
        let (found, ours, reason) = at(&[strong, weak, none]);
        assert_eq!((found, ours.as_str()), (Verdict::Contradicted, "1.00 to 3.00 ×"));
        assert_eq!(
            reason,
            "no effect or the opposite: 1.00 to 1.00 × at size 1024; short of the bound: 1.30 to 1.30 × at size 64"
        );
        let open = ("128", &[20.0, 10.0, 20.0][..]);
        assert_eq!(at(&[strong, weak, open]).0, Verdict::Weaker);
        assert_eq!(at(&[strong, open]).0, Verdict::Inconclusive);
        assert_eq!(at(&[strong, ("64", &[20.0; 3])]).0, Verdict::Reproduced);
        let (found, _, reason) = at(&[strong, ("64", &[31.0; 3])]);
        assert_eq!((found, reason.as_str()), (Verdict::Stronger, ""));
    }

    #[test]
    fn swapped_candidates_contradict_a_slower_one_is_weaker_and_a_far_faster_one_is_stronger() {
        let claim = "of = { candidate = 'a' }\nto = { candidate = 'b' }\neffect = 2.5";
        let (a, b) = ([25.0, 24.0, 26.0, 25.5], [10.0, 9.8, 10.2, 10.0]);
        assert_eq!(verdict(claim, &rows(&a, &b)).0, Verdict::Reproduced);
        assert_eq!(verdict(claim, &rows(&b, &a)).0, Verdict::Contradicted);
        assert_eq!(verdict(claim, &rows(&a.map(|a| a / 2.0), &b)).0, Verdict::Weaker);
        assert_eq!(verdict(claim, &rows(&a.map(|a| a * 2.0), &b)).0, Verdict::Stronger);
        // A saving, as the same claim about times.
        let claim = claim.replace("2.5", "0.4");
        let verdict = |a: &[f64], b: &[f64]| verdict(&claim, &rows(a, b)).0;
        assert_eq!(verdict(&b, &a), Verdict::Reproduced);
        assert_eq!(verdict(&a, &b), Verdict::Contradicted);
        assert_eq!(verdict(&b.map(|b| b * 2.0), &a), Verdict::Weaker);
        assert_eq!(verdict(&b.map(|b| b / 2.0), &a), Verdict::Stronger);
    }

    #[test]
    fn the_best_setting_is_chosen_by_other_rounds_than_it_is_judged_by() {
        let sizes = sized(&[("8", &[30.0; 6]), ("64", &[20.0; 6]), ("1024", &[10.0; 6])]);
        let (found, _, reason) = verdict(A_TO_B, &sizes);
        assert_eq!(found, Verdict::Inconclusive);
        assert!(reason.contains("several fit"), "{reason}");
        let best = "of = { candidate = 'a', best = 'highest' }\n\
                    to = { candidate = 'b', size = [64, 1024], best = 'lowest' }\nat_least = 1.5";
        assert_eq!(verdict(best, &sizes).1, "3.00 × (3.00–3.00)");
        let few: Vec<Row> = sizes.into_iter().filter(|row| row.trial < 6).collect();
        let (found, ours, reason) = verdict(best, &few);
        assert_eq!((found, ours.as_str()), (Verdict::Inconclusive, "–"));
        assert!(reason.contains("6 are needed"), "{reason}");
        // Equal settings with noise: the highest of each round would exceed the other by a half.
        let noise = |size: u32| {
            move |round: u32| if (round + size).is_multiple_of(3) { 15.0 } else { 10.0 }
        };
        let noisy = (0..3).flat_map(|size| {
            (1..=18).map(move |round| {
                let mut row = row("a", round, noise(size)(round));
                row.parameters.insert("size".into(), size.to_string());
                row
            })
        });
        let other = (1..=18).map(|round| row("b", round, 10.0));
        let all: Vec<Row> = noisy.chain(other).collect();
        let best =
            "of = { candidate = 'a', best = 'highest' }\nto = { candidate = 'b' }\nat_least = 1.4";
        let (found, ours, _) = verdict(best, &all);
        assert!(found != Verdict::Reproduced && ours.starts_with("1.00 ×"), "{ours}");
    }

    #[test]
    fn a_saturated_setting_decides_nothing() {
        let experiment = |above: f64| {
            let text = format!(
                "id = 't'\npaper = 'p'\nfigure = 'f'\ntitle = 't'\nabout = 'a'\ncommand = 'c'\n[values.v]\n\
                 at = '/v'\nunit = 'u'\n[quick]\nrepeat = 3\n[full]\nrepeat = 3\n[plot]\nkind = 'bars'\n\
                 y = 'v'\ny_label = 'y'\n[[candidate]]\nname = 'a'\n[[candidate]]\nname = 'b'\n[[claim]]\n\
                 text = 't'\nkind = 'measured'\nsource = 's'\npaper = 'p'\nquantity = 'v'\neffect = 2.0\n\
                 of = {{ candidate = 'a' }}\nto = {{ candidate = 'b' }}\n\
                 saturated = {{ quantity = 'dropped', above = {above} }}\n"
            );
            Experiment::parse("test.toml", &text).unwrap()
        };
        let dropped = rows(&[0.0, 0.1, 0.2], &[0.0; 3])
            .into_iter()
            .map(|row| Row { quantity: "dropped".into(), ..row });
        let all = [rows(&[20.0; 3], &[10.0; 3]), dropped.collect()].concat();
        let verdict = |above| judge(&experiment(above), &all).remove(0);
        assert_eq!(verdict(0.1).verdict, Verdict::Reproduced);
        let found = verdict(0.05);
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert_eq!(found.reason, "a is saturated: dropped 0.100");
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

//! Builds the figures of a report from rows.

use std::collections::BTreeMap;

use super::chapter::{Chapter, Section};
use super::paper::{paper_value, parameters};
use crate::experiment::{ClaimKind, Experiment, Plot, PlotKind};
use crate::judge::{by_number, count_verdicts};
use crate::plot::{Bar, Bars, Chart, Entry, Line, LineKind, Mark, Overview, Sign};
use crate::rows::{Row, State};
use crate::verdict::Verdict;
use crate::{statistics, template};

/// The figure of an experiment as SVG; figures of lines have the predictions, too, dashed.
pub(super) fn svg(experiment: &Experiment, rows: &[Row], predicted: &[Row]) -> String {
    let is_probe =
        |row: &&Row| experiment.candidates.iter().any(|c| c.probe && c.name == row.candidate);
    let of = |rows| <[Row]>::iter(rows).filter(|row| !is_probe(row)).collect::<Vec<_>>();
    match experiment.plot.kind {
        PlotKind::Lines => lines(experiment, &[of(rows), of(predicted)].concat()).svg(),
        PlotKind::Bars => bars(experiment, &of(rows)).svg(),
    }
}

/// The overview of a run as SVG: a mark for each claim, measured ones first.
pub(super) fn overview(papers: &[Chapter]) -> String {
    let all = || {
        let sections = papers.iter().flat_map(|(_, sections)| sections);
        sections.flat_map(|section| &section.judgements)
    };
    let kinds = count_verdicts(all(), &[ClaimKind::Measured]).map(|(verdict, count)| {
        (format!("{count} {}", verdict.name().replace('-', " ")), sign(verdict))
    });
    let mut rows = Vec::new();
    for (paper, sections) in papers {
        rows.push(Entry::Heading(paper.title.clone()));
        for Section { experiment, judgements, .. } in sections {
            let signs = |measured: bool| {
                let of = judgements.iter().filter(|j| (j.kind == ClaimKind::Measured) == measured);
                of.map(|judgement| sign(judgement.verdict)).collect()
            };
            let id = experiment.id.clone();
            rows.push(Entry::Claims { id, measured: signs(true), others: signs(false) });
        }
    }
    let of_kind = |kind| all().filter(move |judgement| judgement.kind == kind).count();
    let measured = of_kind(ClaimKind::Measured);
    let title = format!("{measured} measured claims of {} papers", papers.len());
    let others: Vec<String> = ClaimKind::ALL[1..]
        .iter()
        .filter(|kind| of_kind(**kind) > 0)
        .map(|kind| format!("{} {}", of_kind(*kind), kind.name().replace('-', " ")))
        .collect();
    let note = match others.is_empty() {
        true => String::new(),
        false => format!("right of the bar, not counted: {}", others.join(", ")),
    };
    Overview { title, note, kinds: kinds.into(), rows }.svg()
}

/// The mark of a verdict. Verdicts differ both by shape and by colour.
fn sign(verdict: Verdict) -> Sign {
    let (shape, colour, hollow) = match verdict {
        Verdict::Stronger => (2, 0, false),
        Verdict::Reproduced => (0, 2, false),
        Verdict::Weaker => (0, 4, true),
        Verdict::Contradicted => (1, 1, false),
        Verdict::Inconclusive => (1, 3, true),
        Verdict::NotPossibleHere => (3, 7, true),
    };
    Sign { shape, colour, hollow }
}

/// The title, with the figure's number in the paper if it fits.
fn title(experiment: &Experiment) -> String {
    let Experiment { title, figure, .. } = experiment;
    if title.len() + figure.len() < 80 { format!("{title} ({figure})") } else { title.clone() }
}

/// Values of one setting, by round.
type Rounds = BTreeMap<u32, f64>;
/// The points of a line, by state: measured, oversubscribed, predicted.
type Points = BTreeMap<State, Vec<(f64, Rounds)>>;

fn lines(experiment: &Experiment, shown: &[&Row]) -> Chart {
    let plot = &experiment.plot;
    let Some(x_name) = &plot.x else { return Chart::default() };
    let mut panels: Vec<String> = match &plot.panels {
        Some(name) => shown.iter().filter_map(|row| row.parameters.get(name).cloned()).collect(),
        None => vec![String::new()],
    };
    panels.sort_by(|a, b| by_number(a, b));
    panels.dedup();
    let mut chart = Chart {
        title: title(experiment),
        x_label: plot.x_label.clone().unwrap_or_else(|| x_name.clone()),
        y_label: plot.y_label.clone(),
        log_x: plot.log_x,
        log_y: plot.log_y,
        panels: Vec::new(),
    };
    for panel in panels {
        let of_panel = |parameters: &BTreeMap<String, String>| {
            plot.panels.as_ref().is_none_or(|name| parameters.get(name) == Some(&panel))
        };
        // By line, then by state, then by x.
        let mut found: BTreeMap<(usize, String), Points> = BTreeMap::new();
        for row in shown.iter().filter(|row| of_panel(&row.parameters) && row.quantity == plot.y) {
            let (Some(value), true) = (row.value, row.state.has_value()) else { continue };
            let Some(x) = row.parameters.get(x_name).and_then(|x| template::number(x)) else {
                continue;
            };
            let line =
                found.entry(line_name(experiment, &row.candidate, &row.parameters)).or_default();
            let points = line.entry(row.state).or_default();
            match points.iter_mut().find(|(known, _)| *known == x) {
                Some((_, rounds)) => drop(rounds.insert(row.trial, value)),
                None => points.push((x, [(row.trial, value)].into())),
            }
        }
        let mut lines = Vec::new();
        for ((at, name), states) in found {
            let modelled = experiment.candidates.get(at).is_some_and(|c| c.modelled);
            // Predictions are relative to a prediction, which is of other trials.
            let base = |predicted: bool| {
                let x = template::number(&plot.relative_to.as_ref()?.to_string())?;
                let of =
                    states.iter().filter(|(state, _)| (**state == State::Predicted) == predicted);
                let mut points = of.flat_map(|(_, points)| points);
                points.find(|(known, _)| *known == x).map(|(_, rounds)| rounds.clone())
            };
            let bases = [base(false), base(true)];
            for (state, mut points) in states {
                points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                let kind = match state {
                    _ if modelled => LineKind::Model,
                    State::Predicted => LineKind::Model,
                    State::Oversubscribed => LineKind::Oversubscribed,
                    _ => LineKind::Measured,
                };
                let base = bases[usize::from(state == State::Predicted)].as_ref();
                let mark = |(x, rounds): &(f64, Rounds)| mark(plot, *x, rounds, base);
                let marks = points.iter().filter_map(mark).collect();
                lines.push(Line { name: name.clone(), kind, marks });
            }
        }
        lines.extend(of_paper(experiment, x_name, of_panel));
        // Panels without points are omitted; the page lists the reasons below the figure.
        if lines.iter().any(|line| !line.marks.is_empty()) {
            chart.panels.push((panel_heading(plot, &panel), lines));
        }
    }
    chart
}

fn panel_heading(plot: &Plot, panel: &str) -> String {
    plot.panels.as_ref().map_or_else(String::new, |name| format!("{name}: {panel}"))
}

/// The sort key and the name of a row's line.
fn line_name(
    experiment: &Experiment,
    candidate: &str,
    parameters: &BTreeMap<String, String>,
) -> (usize, String) {
    let at = experiment.candidates.iter().position(|c| c.name == candidate).unwrap_or(usize::MAX);
    let of = experiment.plot.lines.as_ref();
    let name = match of.and_then(|name| Some((name, parameters.get(name)?))) {
        Some((name, value)) if experiment.candidates.len() == 1 => format!("{name} {value}"),
        Some((name, value)) => format!("{candidate}, {name} {value}"),
        None => candidate.to_owned(),
    };
    (at, name)
}

fn mark(plot: &Plot, x: f64, rounds: &Rounds, base: Option<&Rounds>) -> Option<Mark> {
    let values: Vec<f64> = match (&plot.relative_to, base) {
        (None, _) => rounds.values().copied().collect(),
        (Some(_), Some(base)) => {
            rounds.iter().filter_map(|(round, y)| Some(y / base.get(round)?)).collect()
        }
        (Some(_), None) => return None,
    };
    let found = statistics::summary(&values)?;
    Some(Mark { x, y: found.median, low: found.low, high: found.high })
}

/// The paper's figures in this panel, as one line per candidate.
fn of_paper(
    experiment: &Experiment,
    x_name: &str,
    of_panel: impl Fn(&BTreeMap<String, String>) -> bool,
) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for value in experiment.paper_values.iter().filter(|v| v.quantity == experiment.plot.y) {
        let at = parameters(value);
        let Some(x) = at.get(x_name).and_then(|x| template::number(x)) else { continue };
        if !of_panel(&at) {
            continue;
        }
        let mark = Mark { x, y: value.value, low: value.value, high: value.value };
        let (_, name) = line_name(experiment, &value.candidate, &at);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.marks.push(mark),
            None => lines.push(Line { name, kind: LineKind::Paper, marks: vec![mark] }),
        }
    }
    lines
}

fn bars(experiment: &Experiment, shown: &[&Row]) -> Bars {
    let plot = &experiment.plot;
    let mut bars = Vec::new();
    for group in super::table::settings(experiment, shown) {
        let values: Vec<f64> = group
            .iter()
            .filter(|row| row.quantity == plot.y && row.state.has_value())
            .filter_map(|row| row.value)
            .collect();
        let first = group[0];
        let varying = super::table::varying(experiment, shown);
        let values_of = varying.iter().filter_map(|name| first.parameters.get(*name));
        let words = std::iter::once(&first.candidate).chain(values_of).cloned();
        bars.push(Bar {
            name: words.collect::<Vec<_>>().join(", "),
            measured: statistics::summary(&values).map(|s| (s.median, s.low, s.high)),
            oversubscribed: group.iter().any(|row| row.state == State::Oversubscribed),
            paper: paper_value(experiment, first, &plot.y),
            missing: group
                .iter()
                .map(|row| row.reason.as_str())
                .find(|r| !r.is_empty())
                .unwrap_or("")
                .into(),
        });
    }
    Bars { title: title(experiment), label: plot.y_label.clone(), log: plot.log_y, bars }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn marks_of_verdicts_differ_without_colour() {
        let marks: BTreeSet<_> =
            Verdict::ALL.map(sign).into_iter().map(|sign| (sign.shape, sign.hollow)).collect();
        assert_eq!(marks.len(), Verdict::ALL.len());
    }
}

//! The table of an experiment: a line for each setting, with median, quartiles and state.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::paper::paper_value;
use crate::experiment::Experiment;
use crate::judge::{by_number, show};
use crate::plot::escaped;
use crate::quiet::Disturbances;
use crate::rows::{Row, State};
use crate::statistics;

/// Rows grouped by setting, sorted by candidate and by parameters.
pub(super) fn settings<'r>(experiment: &Experiment, rows: &[&'r Row]) -> Vec<Vec<&'r Row>> {
    let place = |row: &Row| experiment.candidates.iter().position(|c| c.name == row.candidate);
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| {
        let pairs = a.parameters.iter().zip(&b.parameters);
        let mut unequal = pairs.map(|((m, x), (n, y))| m.cmp(n).then_with(|| by_number(x, y)));
        place(a).cmp(&place(b)).then_with(|| {
            unequal
                .find(|order| order.is_ne())
                .unwrap_or(a.parameters.len().cmp(&b.parameters.len()))
        })
    });
    let same = |a: &&Row, b: &&Row| a.candidate == b.candidate && a.parameters == b.parameters;
    sorted.chunk_by(same).map(<[_]>::to_vec).collect()
}

/// Parameters that differ between settings of one candidate.
pub(super) fn varying<'r>(experiment: &Experiment, rows: &[&'r Row]) -> Vec<&'r str> {
    let mut names = BTreeSet::new();
    for candidate in &experiment.candidates {
        let of: Vec<_> = rows.iter().filter(|row| row.candidate == candidate.name).collect();
        let Some(first) = of.first() else { continue };
        for (name, value) in &first.parameters {
            if of.iter().any(|row| row.parameters.get(name) != Some(value)) {
                names.insert(name.as_str());
            }
        }
    }
    names.into_iter().collect()
}

/// The table as HTML.
pub(super) fn html(experiment: &Experiment, rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().collect();
    let names = varying(experiment, &rows);
    let mut quantities: Vec<(&str, &str)> = rows
        .iter()
        .filter(|r| r.value.is_some())
        .map(|r| (r.quantity.as_str(), r.unit.as_str()))
        .collect();
    quantities.sort_unstable();
    quantities.dedup();
    let mut html = String::from("<div class=\"wide\"><table><thead><tr><th></th>");
    for name in &names {
        let _ = write!(html, "<th>{}</th>", escaped(name));
    }
    for (quantity, unit) in &quantities {
        let _ = write!(html, "<th>{}, {}</th>", escaped(quantity), escaped(unit));
        if experiment.paper_values.iter().any(|value| value.quantity == *quantity) {
            html += "<th>paper</th>";
        }
    }
    // Rows of early runs have no CPU time.
    let has_cpu = rows.iter().any(|row| row.cpu_seconds.is_some());
    if has_cpu {
        html += "<th>CPU time / time</th>";
    }
    html += "<th>trials</th></tr></thead><tbody>";
    for group in settings(experiment, &rows) {
        let first = group[0];
        let _ = write!(html, "<tr><td>{}</td>", escaped(&first.candidate));
        for name in &names {
            let value = first.parameters.get(*name).map_or("", String::as_str);
            let _ = write!(html, "<td>{}</td>", escaped(value));
        }
        for (quantity, _) in &quantities {
            html += &cells(experiment, &group, quantity);
        }
        if has_cpu {
            let counted = group.iter().filter(|row| row.state.has_value());
            let used: Vec<f64> =
                counted.filter_map(|row| Some(row.cpu_seconds? / row.seconds?)).collect();
            let used = statistics::median(&used).map_or("–".into(), |used| show(used, ""));
            let _ = write!(html, "<td class=\"number\">{used}</td>");
        }
        let _ = write!(html, "<td>{}</td></tr>", escaped(&trials(&group)));
    }
    html + "</tbody></table></div>"
}

fn cells(experiment: &Experiment, group: &[&Row], quantity: &str) -> String {
    let values: Vec<f64> = group
        .iter()
        .filter(|row| row.quantity == quantity && row.state.has_value())
        .filter_map(|row| row.value)
        .collect();
    let mut cells = match statistics::summary(&values) {
        Some(s) if values.len() == 1 => {
            format!("<td class=\"number\">{}</td>", show(s.median, ""))
        }
        Some(s) => format!(
            "<td class=\"number\">{} <small>({}–{})</small></td>",
            show(s.median, ""),
            show(s.low, ""),
            show(s.high, "")
        ),
        None => "<td class=\"number\">–</td>".into(),
    };
    if experiment.paper_values.iter().any(|value| value.quantity == quantity) {
        let paper = paper_value(experiment, group[0], quantity);
        let paper = paper.map_or("–".into(), |value| show(value, ""));
        let _ = write!(cells, "<td class=\"number\">{paper}</td>");
    }
    cells
}

/// The number of trials with a value, of disturbed ones, and state and reason of the first other one.
fn trials(group: &[&Row]) -> String {
    let good: BTreeSet<u32> =
        group.iter().filter(|row| row.state.has_value()).map(|row| row.trial).collect();
    let mut text = good.len().to_string();
    let left = Disturbances::of(group.iter().copied()).left();
    if left > 0 {
        let _ = write!(text, "; {left} disturbed");
    }
    let is_bad = |row: &&&Row| !matches!(row.state, State::Ok | State::Disturbed);
    if let Some(row) = group.iter().find(is_bad) {
        let _ = write!(text, "; {}: {}", row.state, row.reason);
    }
    text
}

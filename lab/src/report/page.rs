//! The report page: one HTML file with embedded styles and figures and without scripts, for screen,
//! phone and print.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::chapter::{Chapter, Section};
use super::table;
use crate::experiment::ClaimKind;
use crate::judge::{self, Judgement, count_verdicts};
use crate::plot::{FIGURES, escaped};
use crate::quiet::Disturbances;
use crate::rows::State;
use crate::run_folder::Facts;
use crate::settings::{Context, settings};
use crate::verdict::Verdict;
use crate::{prediction, runner, traffic};

const STYLE: &str = include_str!("style.css");

/// The page of a run: its summary, and the experiments of all papers by their verdicts.
pub(super) fn index(facts: &Facts, papers: &[Chapter], overview: &str) -> String {
    let content = format!(
        "<h1>The papers’ figures, measured again</h1>\n<figure>{overview}</figure>{}",
        summary(facts, papers)
    );
    whole("ringtap-lab: the papers' figures, measured again", &content)
}

/// The page of a paper.
pub(super) fn of_paper(facts: &Facts, (paper, sections): &Chapter) -> String {
    let mut content = format!(
        "<p><a href=\"report.html\">All papers</a></p><h1>{}</h1><p class=\"soft\">{}. {}</p><p>{}</p>\
         <p class=\"soft\">The paper’s machine: {}. This run’s: {}.</p>\n",
        escaped(&paper.title),
        escaped(&paper.authors),
        escaped(&paper.venue),
        escaped(&paper.introduction),
        escaped(&paper.machine),
        escaped(&facts.machine.describe())
    );
    for section in sections {
        content += &experiment(section, facts);
    }
    whole(&format!("ringtap-lab: {}", escaped(&paper.title)), &content)
}

/// The name of the page of a paper.
pub(super) fn file(sections: &[Section]) -> String {
    let name = sections.first().map_or("paper", |section| section.experiment.paper.as_str());
    format!("{name}.html")
}

/// A page with this title and content.
fn whole(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
         <style>{STYLE}{FIGURES}</style></head><body><main>\n{content}</main></body></html>\n"
    )
}

fn summary(facts: &Facts, papers: &[Chapter]) -> String {
    let sections = || papers.iter().flat_map(|(_, sections)| sections);
    let all = || sections().flat_map(|section| &section.judgements);
    let of_kind = |kind| all().filter(move |judgement| judgement.kind == kind).count();
    let measured = of_kind(ClaimKind::Measured);
    let mut html = format!("<p>{measured} measured claims of {} papers: ", papers.len());
    for (verdict, count) in count_verdicts(all(), &[ClaimKind::Measured]) {
        let _ = write!(html, "{} {count} ", badge(verdict));
    }
    if measured < all().count() {
        let others = all().count() - measured;
        let _ = write!(html, "</p>\n<p>Counted separately, {others} claims:</p><ul>");
        for kind in ClaimKind::ALL.into_iter().filter(|kind| *kind != ClaimKind::Measured) {
            let _ = write!(html, "<li>{} {}: ", of_kind(kind), words(kind));
            let counts = count_verdicts(all(), &[kind]);
            for (verdict, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                let _ = write!(html, "{} {count} ", badge(verdict));
            }
            let _ = write!(html, "<span class=\"soft\">({})</span></li>", escaped(kind.about()));
        }
        html += "</ul>\n<p>";
    }
    let effort = if facts.quick {
        "This was a quick run with few rounds and little traffic; a full run decides more claims."
    } else {
        "This was a full run."
    };
    let rows = || sections().flat_map(|section| &section.rows);
    let quiet = match facts.gate {
        Some(true) => format!(" {}.", Disturbances::of(rows())),
        Some(false) => " The gate for a quiet machine was off (<code>--no-gate</code>).".into(),
        None => String::new(),
    };
    let has_further =
        |section: &Section| judge::has_further_rounds(&section.experiment, section.rows.iter());
    let further = match sections().any(has_further) {
        true => " Claims that got further rounds have 99 %.",
        false => "",
    };
    let _ = write!(
        html,
        "</p><p>Measured {} at commit {} on: {}. {effort}{quiet}</p>\n\
         <p class=\"soft\">Each figure is the median of interleaved rounds. The interval in brackets contains \
         the true median with 95 % confidence; with fewer than six rounds it is the range of all values.{further} A \
         claim is decided only if its whole interval lies on one side of each bound. Half of the paper’s gain \
         or reduction is reproduced, twice that gain is stronger, less than half is weaker, and none or the \
         opposite is contradicted; other claims state their bounds. Vertical bars in figures and brackets \
         in tables are quartiles.</p>\n",
        escaped(&facts.date),
        escaped(&facts.commit),
        escaped(&facts.machine.describe())
    );
    for (paper, sections) in papers {
        let page = file(sections);
        let _ = write!(html, "<h2><a href=\"{page}\">{}</a></h2><nav><ul>", escaped(&paper.title));
        for section in sections {
            html += &entry(section, &page);
        }
        html += "</ul></nav>\n";
    }
    html
}

/// An experiment in the list of its paper, with a mark for each claim.
fn entry(section: &Section, page: &str) -> String {
    let Section { experiment, judgements, .. } = section;
    let anchor = experiment.file_name();
    let mut html = format!("<li><a href=\"{page}#{anchor}\">{}</a>", escaped(&experiment.id));
    let is_measured = |judgement: &&Judgement| judgement.kind == ClaimKind::Measured;
    let (measured, others): (Vec<_>, Vec<_>) = judgements.iter().partition(is_measured);
    for judgement in &measured {
        let _ = write!(html, " {}", dot(judgement.verdict));
    }
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(|judgement| dot(judgement.verdict)).collect();
        let _ = write!(html, " <span class=\"soft\">other kinds: {}</span>", others.join(" "));
    }
    html + "</li>"
}

fn experiment(section: &Section, facts: &Facts) -> String {
    let Section { experiment, rows, judgements, svg, .. } = section;
    let mut html = format!(
        "<article id=\"{}\"><h2>{}: {}</h2>\n",
        experiment.file_name(),
        escaped(&experiment.figure),
        escaped(&experiment.title)
    );
    if let Some(svg) = svg {
        let _ = writeln!(html, "<figure>{svg}</figure>");
    }
    html += &absent(section);
    if !judgements.is_empty() {
        html += "<table class=\"claims\"><thead><tr><th>verdict</th><th>claim</th><th>paper</th>\
                 <th>here</th></tr></thead><tbody>\n";
        judgements.iter().for_each(|judgement| html += &claim(judgement));
        html += "</tbody></table>\n";
    }
    let _ = writeln!(html, "<p>{}</p>", escaped(&experiment.about));
    if rows.is_empty() {
        html += "<p class=\"none\">Not measured in this run.</p>";
    } else {
        html += &predictions(section);
        let flag = if facts.quick { " --quick" } else { "" };
        let _ = write!(
            html,
            "<p class=\"soft\">Repeat: <code>ringtap-lab run {}{flag}</code>",
            escaped(&experiment.id)
        );
        let commands = trial_commands(section, facts);
        if !commands.is_empty() {
            let commands: Vec<_> = commands
                .iter()
                .map(|command| format!("<code>{}</code>", escaped(command)))
                .collect();
            let _ = write!(html, "; one trial: {}", commands.join(", then "));
        }
        let _ = write!(
            html,
            "</p><details><summary>All figures</summary>{}</details>",
            table::html(experiment, rows)
        );
    }
    html + "</article>\n"
}

/// What was predicted from trials on one core, beside what was measured.
fn predictions(section: &Section) -> String {
    let Section { experiment, points, predicted, .. } = section;
    let Some(prediction) = experiment.prediction.as_ref().filter(|_| !points.is_empty()) else {
        return String::new();
    };
    let checked = points.iter().filter(|point| point.measured.is_some()).count();
    let outcome = match prediction::worst(points) {
        None => "none of them was measured".into(),
        Some(error) => format!(
            "{checked} of them measured, at most {:.0} % off{}",
            error.abs() * 100.0,
            if prediction::is_withdrawn(points) { ": the model is withdrawn" } else { "" }
        ),
    };
    let names = table::varying(experiment, &predicted.iter().collect::<Vec<_>>());
    let mut html = format!(
        "<details><summary>Predicted from one core: {} points, {outcome}</summary><p>{}</p>\
         <div class=\"wide\"><table><thead><tr><th></th>",
        points.len(),
        escaped(&prediction.text)
    );
    for name in &names {
        let _ = write!(html, "<th>{}</th>", escaped(name));
    }
    let unit = escaped(&prediction.reading.unit);
    let _ = write!(
        html,
        "<th>predicted, {unit}</th><th>measured, {unit}</th><th>off</th></tr></thead><tbody>"
    );
    for point in points {
        let _ = write!(html, "<tr><td>{}</td>", escaped(&point.setting.candidate));
        for name in &names {
            let value = point.setting.parameters.get(*name).map_or("", String::as_str);
            let _ = write!(html, "<td>{}</td>", escaped(value));
        }
        let measured = point.measured.map_or(judge::NONE.into(), |value| judge::show(value, ""));
        let off = point.error();
        let off = off.map_or(judge::NONE.into(), percent);
        let _ = write!(
            html,
            "<td class=\"number\">{}</td><td class=\"number\">{measured}</td>\
             <td class=\"number\">{off}</td></tr>",
            judge::show(point.predicted, "")
        );
    }
    html + "</tbody></table></div></details>"
}

/// The commands of today's programs that repeat the first trial with a value, in an empty folder: those
/// that generate its traffic, and its own. Empty if the experiment no longer has that setting.
fn trial_commands(section: &Section, facts: &Facts) -> Vec<String> {
    let Section { experiment, rows, .. } = section;
    let commands = || {
        let row = rows.iter().find(|row| row.state.has_value())?;
        let all = settings(experiment, facts.quick).ok()?;
        let setting =
            all.iter().find(|s| s.candidate == row.candidate && s.parameters == row.parameters)?;
        let cores = setting.placement(&facts.machine).ok()?.cores;
        let context = Context { cores: &cores, seed: row.seed, traffic: ".", scratch: "." };
        let mut commands = traffic::commands(experiment, facts.quick, Path::new(".")).ok()?;
        commands.push(setting.words(&context).ok()?);
        Some(commands)
    };
    commands().unwrap_or_default().iter().map(|words| runner::command(words)).collect()
}

/// A row of the table of claims.
fn claim(judgement: &Judgement) -> String {
    let Judgement {
        id, claim, kind, source, paper, ours, verdict, reason, judged, predicted, ..
    } = judgement;
    let apart = match kind {
        ClaimKind::Measured => String::new(),
        kind => format!("; counted separately: {}", words(*kind)),
    };
    let [reason, predicted] = [("", reason), ("predicted ", predicted)].map(|(what, text)| {
        if text.is_empty() {
            String::new()
        } else {
            format!("<br><small>{what}{}</small>", escaped(text))
        }
    });
    format!(
        "<tr id=\"{id}\"><td>{}</td><td>{} <small>({}{apart}; {})</small></td><td>{}</td>\
         <td>{}{reason}{predicted}</td></tr>\n",
        badge(*verdict),
        escaped(claim),
        escaped(source),
        escaped(judged),
        escaped(paper),
        escaped(ours)
    )
}

/// A share with its sign, as a percentage.
fn percent(share: f64) -> String {
    format!("{:+.0} %", share * 100.0).replace('-', "−")
}

/// The candidates that a figure lacks, by reason.
fn absent(section: &Section) -> String {
    let mut reasons: BTreeMap<(State, &str), BTreeSet<&str>> = BTreeMap::new();
    let settings: BTreeSet<_> = section
        .rows
        .iter()
        .filter(|row| row.state.has_value())
        .map(|row| (&row.candidate, &row.parameters))
        .collect();
    for row in section.rows.iter().filter(|row| !row.state.has_value()) {
        let reason = match row.state {
            State::Disturbed if settings.contains(&(&row.candidate, &row.parameters)) => continue,
            State::Disturbed => "all trials of a setting",
            _ => &row.reason,
        };
        reasons.entry((row.state, reason)).or_default().insert(&row.candidate);
    }
    let mut html = String::new();
    for ((state, reason), lacking) in reasons {
        let all = section.experiment.candidates.iter().map(|own| own.name.as_str());
        let lacking: Vec<_> = all.filter(|name| lacking.contains(name)).collect();
        let is_in_part = settings.iter().any(|(name, _)| lacking.contains(&name.as_str()));
        let part = if is_in_part { "some settings of " } else { "" };
        let names = escaped(&lacking.join("; "));
        let _ = write!(html, "<p class=\"none\">{state}: {}: {part}{names}</p>", escaped(reason));
    }
    html
}

fn words(kind: ClaimKind) -> String {
    kind.name().replace('-', " ")
}

fn badge(verdict: Verdict) -> String {
    format!("<span class=\"badge {0}\">{1}</span>", verdict, verdict.name().replace('-', " "))
}

/// A one-letter badge. Its sign and its title state the verdict, too, not only its colour.
fn dot(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Stronger => "↑",
        Verdict::Reproduced => "✓",
        Verdict::Weaker => "↓",
        Verdict::Contradicted => "✗",
        Verdict::Inconclusive => "?",
        Verdict::NotPossibleHere => "–",
    };
    format!("<span class=\"dot {verdict}\" title=\"{verdict}\">{sign}</span>")
}

//! The page: HTML with its style and figures within, no script, readable on paper and on a phone.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Chapter, Section, table};
use crate::experiment::ClaimKind;
use crate::judge::{Judgement, Verdict, tally};
use crate::plot::escaped;
use crate::rows::State;
use crate::run_folder::Facts;

const STYLE: &str = include_str!("style.css");
/// The figures' classes are those of their files.
const FIGURES: &str = include_str!("../plot/style.css");

pub(super) fn html(facts: &Facts, papers: &[Chapter]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>ringtap-lab: the papers' figures, measured again</title>\
         <style>{STYLE}{FIGURES}</style></head><body><main>\n\
         <h1>The papers’ figures, measured again</h1>\n"
    );
    html += &summary(facts, papers);
    for (paper, sections) in papers {
        let _ = write!(
            html,
            "<section><h2>{}</h2><p class=\"soft\">{}. {}</p><p>{}</p>\
             <p class=\"soft\">The paper’s machine: {}</p>",
            escaped(&paper.title),
            escaped(&paper.authors),
            escaped(&paper.venue),
            escaped(&paper.introduction),
            escaped(&paper.machine)
        );
        for section in sections {
            html += &experiment(section, facts.quick);
        }
        html += "</section>\n";
    }
    html + "</main></body></html>\n"
}

fn summary(facts: &Facts, papers: &[Chapter]) -> String {
    let sections = || papers.iter().flat_map(|(_, sections)| sections);
    let all = || sections().flat_map(|section| &section.judgements);
    let of_kind = |kind| all().filter(move |judgement| judgement.kind == kind).count();
    let measured = of_kind(ClaimKind::Measured);
    let mut html = format!("<p>{measured} measured claims of {} papers: ", papers.len());
    for (verdict, count) in tally(all(), &[ClaimKind::Measured]) {
        let _ = write!(html, "{} {count} ", badge(verdict));
    }
    if measured < all().count() {
        let _ =
            write!(html, "</p>\n<p>Counted apart, {} claims:</p><ul>", all().count() - measured);
        for kind in ClaimKind::ALL.into_iter().filter(|kind| *kind != ClaimKind::Measured) {
            let _ = write!(html, "<li>{} {}: ", of_kind(kind), words(kind));
            for (verdict, count) in tally(all(), &[kind]).into_iter().filter(|(_, n)| *n > 0) {
                let _ = write!(html, "{} {count} ", badge(verdict));
            }
            let _ = write!(html, "<span class=\"soft\">({})</span></li>", escaped(kind.about()));
        }
        html += "</ul>\n<p>";
    }
    let effort = if facts.quick {
        "This was a quick run: few rounds and little traffic, so more claims than need be are undecided."
    } else {
        "This was a full run."
    };
    let _ = write!(
        html,
        "</p><p>Measured {} at commit {} on: {}. {effort}</p>\n\
         <p class=\"soft\">A figure is the median of interleaved rounds, in brackets the interval in which \
         the true median lies (with 95 % confidence from six rounds on; of fewer rounds, all they cover). A claim \
         is judged only if that whole interval lies on one side of the bound. In figures, bars through points \
         and in tables brackets are quartiles.</p>\n<nav><ul>",
        escaped(&facts.date),
        escaped(&facts.commit),
        escaped(&facts.machine.describe())
    );
    for section in sections() {
        let id = &section.experiment.id;
        let anchor = section.experiment.file_name();
        let _ = write!(html, "<li><a href=\"#{anchor}\">{}</a>", escaped(id));
        let is_measured = |judgement: &&Judgement| judgement.kind == ClaimKind::Measured;
        let (measured, apart): (Vec<_>, Vec<_>) = section.judgements.iter().partition(is_measured);
        for judgement in &measured {
            let _ = write!(html, " {}", dot(judgement.verdict));
        }
        if !apart.is_empty() {
            let apart: Vec<_> = apart.iter().map(|judgement| dot(judgement.verdict)).collect();
            let _ = write!(html, " <span class=\"soft\">apart: {}</span>", apart.join(" "));
        }
        html += "</li>";
    }
    html + "</ul></nav>\n"
}

fn experiment(section: &Section, quick: bool) -> String {
    let Section { experiment, rows, judgements, svg } = section;
    let mut html = format!(
        "<article id=\"{}\"><h3>{}: {}</h3><p>{}</p>\n",
        experiment.file_name(),
        escaped(&experiment.figure),
        escaped(&experiment.title),
        escaped(&experiment.about)
    );
    for judgement in judgements {
        html += &claim(judgement);
    }
    if rows.is_empty() {
        html += "<p class=\"none\">Not measured in this run.</p>";
    } else {
        let _ = write!(html, "<figure>{svg}</figure>\n{}", absent(section));
        if let Some(model) = &experiment.model {
            let _ = write!(html, "<p class=\"soft\">The model: {}</p>", escaped(&model.text));
        }
        let flag = if quick { " --quick" } else { "" };
        let _ = write!(
            html,
            "<p class=\"soft\">Again: <code>ringtap-lab run {}{flag}</code>",
            escaped(&experiment.id)
        );
        if let Some(row) = rows.iter().find(|row| row.state.has_value()) {
            let _ = write!(html, "; one trial: <code>{}</code>", escaped(&row.command));
        }
        let _ = write!(
            html,
            "</p><details><summary>All figures</summary>{}</details>",
            table::html(experiment, rows)
        );
    }
    html + "</article>\n"
}

fn claim(judgement: &Judgement) -> String {
    let Judgement { claim, kind, source, paper, ours, verdict, reason, judged, .. } = judgement;
    let apart = match kind {
        ClaimKind::Measured => String::new(),
        kind => format!(
            "<p class=\"soft\">Counted apart ({}): {}</p>",
            words(*kind),
            escaped(kind.about())
        ),
    };
    // What has no figure has a dash already.
    let reason = match (reason.as_str(), ours.as_str()) {
        ("", _) => String::new(),
        (reason, "–") => format!(" {}", escaped(reason)),
        (reason, _) => format!(" – {}", escaped(reason)),
    };
    format!(
        "<div class=\"claim\"><p>{} {} <span class=\"soft\">({})</span></p>\
         <p><b>paper</b> {} <b>here</b> {}{reason}</p><p class=\"soft\">{}</p>{apart}</div>\n",
        badge(*verdict),
        escaped(claim),
        escaped(source),
        escaped(paper),
        escaped(ours),
        escaped(judged)
    )
}

/// What is missing from a figure, each reason once.
fn absent(section: &Section) -> String {
    let mut reasons: BTreeMap<(State, &str), Vec<&str>> = BTreeMap::new();
    for row in section.rows.iter().filter(|row| !row.state.has_value()) {
        let who = reasons.entry((row.state, &row.reason)).or_default();
        if !who.contains(&row.candidate.as_str()) {
            who.push(&row.candidate);
        }
    }
    let mut html = String::new();
    for ((state, reason), who) in reasons {
        let _ = write!(
            html,
            "<p class=\"none\">{}: {}: {}</p>",
            escaped(&who.join(", ")),
            state,
            escaped(reason)
        );
    }
    html
}

fn words(kind: ClaimKind) -> String {
    kind.name().replace('-', " ")
}

fn badge(verdict: Verdict) -> String {
    format!("<span class=\"badge {0}\">{1}</span>", verdict, verdict.name().replace('-', " "))
}

/// A badge as small as a letter; its sign and its words say what its colour says.
fn dot(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Reproduced => "✓",
        Verdict::NotReproduced => "✗",
        Verdict::NotPossibleHere => "–",
        Verdict::Inconclusive => "?",
    };
    format!("<span class=\"dot {verdict}\" title=\"{verdict}\">{sign}</span>")
}

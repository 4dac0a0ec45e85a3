//! `ringtap verify`: what is missing in a store.

use std::process::ExitCode;

use anyhow::Context;
use ringtap_base::civil;
use ringtap_base::text::shown;
use ringtap_program::json::json;
use ringtap_store::verify::{Gap, Probe, Request, Verified, verify};
use ringtap_terminal::console;
use ringtap_terminal::numbers::{bytes, count};

use crate::args::{Form, VerifyArgs};

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let request = Request {
        store: args.store.clone(),
        against: args.against.clone(),
        expected: args.expect_line.clone(),
    };
    let verified =
        verify(&request).with_context(|| format!("verifying {}", args.store.display()))?;
    let text = match args.report {
        Form::Text => text(&verified),
        Form::Json => json(&verified)?,
    };
    console::print(&text)?;
    let is_whole = verified.gaps.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(verified: &Verified) -> String {
    let mut text = String::new();
    for probe in &verified.probes {
        text += &of_probe(probe);
    }
    if let Some(arrived) = &verified.arrived {
        let fields = if arrived.all_fields { "all fields" } else { "the fields of NetFlow" };
        text += &format!(
            "arrived: {} in {}, compared by {fields}\n",
            number(arrived.records, "record"),
            number(arrived.intervals, "interval"),
        );
        if arrived.skipped > 0 {
            text +=
                &format!("arrived: {} of other kinds, not read\n", number(arrived.skipped, "file"));
        }
    }
    for gap in &verified.gaps {
        text += &of_gap(gap);
    }
    text += &match verified.gaps.len() as u64 {
        0 => "whole: no gaps\n".to_owned(),
        gaps => format!("{}\n", number(gaps, "gap")),
    };
    text
}

fn of_probe(probe: &Probe) -> String {
    let Probe { name, runs, files, octets, flow_records, removed, head, .. } = probe;
    let times = probe
        .times
        .map_or_else(String::new, |[first, last]| format!(", {} to {}", time(first), time(last)));
    let removed =
        if *removed > 0 { format!(", {} removed", count(*removed)) } else { String::new() };
    let now = if probe.running { ", running" } else { "" };
    format!(
        "probe {name}: {}, {} ({}){removed}, {}{times}{now}\n  last line {head}\n",
        number(*runs, "run"),
        number(*files, "file"),
        bytes(*octets),
        number(*flow_records, "flow record"),
    )
}

fn of_gap(gap: &Gap) -> String {
    let mut words = vec!["gap".to_owned()];
    words.extend((!gap.probe.is_empty()).then(|| gap.probe.clone()));
    words.extend(gap.interval.map(|[begin, end]| format!("{} to {}", time(begin), time(end))));
    words.extend(gap.file.clone().or_else(|| gap.output.clone()));
    format!("{}: {}\n", shown(&words.join(", ")), shown(&gap.text))
}

fn number(number: u64, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{} {noun}{end}", count(number))
}

/// A time in UTC.
fn time(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let [hour, minute, second] = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60];
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

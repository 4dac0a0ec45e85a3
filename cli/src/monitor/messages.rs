//! What a finished run prints, and its exit code.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ringtap_engine::{ClockChanges, INTERRUPTED};
use ringtap_io::capture::{Notice, Severity};
use ringtap_monitor::Outcome;
use ringtap_terminal::console::{self, print_message};
use ringtap_terminal::html::html;

use crate::args::{MonitorArgs, ReportForm};
use crate::{exit, source, text};

/// Most sources in the title of a page.
const TITLED: usize = 3;

/// The errors and warnings of a finished run, as kind and text. Removes notices of a requested stop.
pub(crate) fn messages(outcome: &mut Outcome) -> Vec<(&'static str, String)> {
    outcome.run.notices.retain(|notice| !source::is_stop(notice));
    let kind = |notice: &Notice| match notice.severity {
        Severity::Error => "error",
        _ => "warning",
    };
    let mut all: Vec<_> =
        outcome.run.notices.iter().map(|notice| (kind(notice), notice.to_string())).collect();
    // On interfaces, clock changes were reported during the run.
    let clock = match outcome.plan.options.live {
        true => ClockChanges { set: 0, ..outcome.run.clock },
        false => outcome.run.clock,
    };
    let warning = |text| ("warning", text);
    all.extend(outcome.run.interrupted.then(|| warning(INTERRUPTED.to_owned())));
    all.extend(clock.notices().into_iter().map(warning));
    all.extend(outcome.run.failure.iter().map(|failure| ("error", failure.to_string())));
    all.extend(outcome.warnings().into_iter().map(warning));
    all
}

/// The title of a page.
fn page_title(args: &MonitorArgs) -> String {
    let file = |path: &PathBuf| {
        path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy().into_owned())
    };
    let mut names: Vec<_> =
        args.inputs.read.iter().map(file).chain(args.interface.clone()).collect();
    let further = names.len().saturating_sub(TITLED);
    names.truncate(TITLED);
    let further = if further > 0 { format!(" and {further} more") } else { String::new() };
    format!("ringtap: {}{further}", names.join(", "))
}

/// Prints the report to stdout, or to stderr if records use stdout.
pub(super) fn print(
    args: &MonitorArgs,
    outcome: &Outcome,
    stdout_is_taken: bool,
) -> anyhow::Result<()> {
    let report = match args.report {
        ReportForm::Text => text::report(outcome).text(),
        ReportForm::Json => outcome.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
        ReportForm::Html => html(&text::report(outcome), &page_title(args), &text::about()),
    };
    if stdout_is_taken {
        // If stderr is closed, ignore the error.
        let _ = console::stderr().write_all(report.as_bytes());
        return Ok(());
    }
    console::print(&report)
}

/// The exit code; prints losses with `--fail-on-drop`.
pub(super) fn exit_code(args: &MonitorArgs, outcome: &Outcome) -> ExitCode {
    let (failed, interrupted) = (has_failed(outcome), outcome.run.interrupted);
    let losses = if failed || interrupted { Vec::new() } else { losses(args, outcome) };
    losses.iter().for_each(|loss| print_message("error", loss));
    exit::code(failed, interrupted, !losses.is_empty())
}

/// Returns true if reading, writing or exporting failed.
pub(crate) fn has_failed(outcome: &Outcome) -> bool {
    let mut outputs = outcome.export.iter().chain(&outcome.write);
    outcome.run.notices.iter().any(|notice| notice.severity == Severity::Error)
        || outcome.run.failure.is_some()
        || outputs.any(|one| one.failure.is_some())
}

/// The losses that fail the run with `--fail-on-drop`.
pub(crate) fn losses(args: &MonitorArgs, outcome: &Outcome) -> Vec<String> {
    let losses = if args.fail_on_drop { outcome.losses() } else { Vec::new() };
    losses.into_iter().map(|(what, count)| format!("{what}: {count}")).collect()
}

pub(super) fn print_all(messages: Vec<(&'static str, String)>) {
    messages.iter().for_each(|(kind, text)| print_message(kind, text));
}

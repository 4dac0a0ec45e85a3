//! `ringtap merge`: one report over the states of several monitors; or one measurement of several.

use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use ringtap_engine::{INTERRUPTED, Watch};
use ringtap_monitor::state::{Choices, MAGIC, MergeError, Merged, merge_states, report};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, print_message};
use ringtap_terminal::html::html;

use crate::args::{MergeArgs, ReportForm};
use crate::states::{BUFFER, EXTENSION as STATE, check_path, write_state};
use crate::{measure, monitor, signals, source, text};
use ringtap_program::atomic_file::{AtomicFile, Existing};
use ringtap_program::roles::Roles;
use ringtap_program::{open_files, sandbox};

static WATCH: Watch = Watch::new();

pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let result = signals::stoppable(&WATCH, || run_all(args)).context("handling signals")?;
    signals::or_interrupted(WATCH.stopped(), result)
}

fn run_all(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let files = args.files.iter().map(|path| files(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let args = &MergeArgs { files: files.concat(), ..args.clone() };
    source::check(&args.files)?;
    let states =
        args.files.iter().map(|path| is_state(path)).collect::<anyhow::Result<Vec<_>>>()?;
    if states.iter().all(|state| !state) {
        let of_states = [
            ("--state", args.state.is_some()),
            ("--digest", args.digest),
            ("--scan-threshold", args.scan_threshold.is_some()),
            ("--udp-scan-threshold", args.udp_scan_threshold.is_some()),
            ("--names", args.names.is_some()),
            ("--port-labels", args.port_labels.is_some()),
            ("--memory", args.memory.is_some()),
        ];
        refuse(&of_states, "measurements")?;
        refuse(&[("--report html", args.report == Some(ReportForm::Html))], "measurements")?;
        return measure::merge(args, &WATCH);
    }
    if let Some(at) = states.iter().position(|state| !state) {
        let path = args.files[at].display();
        return Err(Usage::of(format!("{path} is not a state, but other files are")));
    }
    check(args)?;
    merge(args)
}

/// Checks that the flags are those for states.
pub(crate) fn check(args: &MergeArgs) -> anyhow::Result<()> {
    let of_measurements =
        [("--threshold", args.threshold.is_some()), ("--write", !args.write.is_empty())];
    refuse(&of_measurements, "states")
}

fn refuse(flags: &[(&str, bool)], with: &str) -> anyhow::Result<()> {
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Usage::of(format!("{flag} cannot be used with {with}"))),
        None => Ok(()),
    }
}

/// The file, or the states in a folder.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let reading = || format!("reading {}", path.display());
    let mut all = Vec::new();
    for entry in fs::read_dir(path).with_context(reading)? {
        all.push(entry.with_context(reading)?.path());
    }
    let is_named = |path: &PathBuf| path.extension().is_some_and(|extension| extension == STATE);
    all.retain(|path| is_named(path) && path.is_file());
    all.sort();
    if all.is_empty() {
        return Err(Usage::of(format!("{} has no files *.{STATE}", path.display())));
    }
    for path in &all {
        if !is_state(path)? {
            return Err(Usage::of(format!("{} is not a state", path.display())));
        }
    }
    Ok(all)
}

/// Whether a file begins as a state does.
fn is_state(path: &Path) -> anyhow::Result<bool> {
    let mut magic = Vec::new();
    let file = source::open(path, &WATCH);
    file.and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut magic))
        .with_context(|| format!("reading {}", path.display()))?;
    Ok(magic == MAGIC)
}

/// Opens all files. They are read side by side, so the limit of open files is raised as far as the system permits.
fn open(files: &[PathBuf]) -> anyhow::Result<Vec<impl Read>> {
    open_files::raise_limit();
    let open = |path: &PathBuf| {
        let file = source::open(path, &WATCH);
        let file = file.with_context(|| format!("reading {}", path.display()))?;
        // Many files share the memory of sixteen.
        let buffer = (16 * BUFFER / files.len().max(1)).clamp(8 << 10, BUFFER);
        Ok(BufReader::with_capacity(buffer, file))
    };
    files.iter().map(open).collect()
}

fn merge(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let existing = Existing::of(args.force, false);
    let mut roles = Roles::default();
    roles.reads("the input", &args.files).reads("--names", &args.names);
    roles.reads("--port-labels", &args.port_labels);
    roles.writes("--state", &args.state).check(existing)?;
    sandbox::enter(args.state.iter().map(AsRef::as_ref), false)?;
    let has_report = args.state.is_none() || args.report.is_some() || args.digest;
    if !has_report {
        let of_reports = [
            ("--scan-threshold", args.scan_threshold.is_some()),
            ("--udp-scan-threshold", args.udp_scan_threshold.is_some()),
            ("--top", args.top.is_some()),
            ("--names", args.names.is_some()),
            ("--port-labels", args.port_labels.is_some()),
            ("--memory", args.memory.is_some()),
        ];
        refuse(&of_reports, "--state alone: add --report")?;
    }
    let inputs = if has_report { open(&args.files)? } else { Vec::new() };
    if let Some(path) = &args.state {
        check_path(path)?;
        let states = open(&args.files)?;
        let doing = || format!("writing {}", path.display());
        let file = AtomicFile::claim(path.clone(), existing).with_context(doing)?;
        let mut interrupted = false;
        write_state(file, |out| {
            let header = merge_states(states, out).map_err(|error| failed(error, &args.files))?;
            interrupted = header.is_interrupted();
            Ok(())
        })?;
        // The report says it, too.
        if interrupted && !has_report {
            print_message("warning", INTERRUPTED);
        }
    }
    if !has_report {
        return Ok(ExitCode::SUCCESS);
    }
    let merged = merged(args, inputs)?;
    warnings(args, &merged).iter().for_each(|text| print_message("warning", text));
    console::print(&match args.report.unwrap_or(ReportForm::Text) {
        ReportForm::Text => text::merged(&merged).text(),
        ReportForm::Json => merged.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
        ReportForm::Html => {
            let states = ringtap_terminal::numbers::of(args.files.len() as u64, "state");
            html(&text::merged(&merged), &format!("ringtap: {states}"), &text::about())
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The report over states, as the flags choose.
pub(crate) fn merged<R: Read>(args: &MergeArgs, states: Vec<R>) -> anyhow::Result<Merged> {
    let defaults = ringtap_monitor::Options::default();
    let choices = Choices {
        scan_threshold: args.scan_threshold.unwrap_or(defaults.scan_threshold),
        udp_scan_threshold: args.udp_scan_threshold.unwrap_or(defaults.udp_scan_threshold),
        top: args.top.unwrap_or(defaults.top),
        digest: args.digest,
        names: monitor::names(args.names.as_deref(), args.port_labels.as_deref())?,
        memory_bytes: args.memory,
    };
    // States in memory have no paths.
    let files = if states.len() == args.files.len() { &args.files[..] } else { &[] };
    report(states, &choices).map_err(|error| failed(error, files))
}

/// The error of a merge, with the path of the state that is the cause.
pub(crate) fn failed(error: MergeError, files: &[PathBuf]) -> anyhow::Error {
    match error {
        MergeError::Plan(error) => Usage::of(error),
        MergeError::Input { input, probe, error } if input < files.len() => {
            let of = if probe.is_empty() { String::new() } else { format!(" of {probe}") };
            let context = format!("merging {}{of}", files[input].display());
            anyhow::Error::from(*error).context(context)
        }
        other => anyhow::Error::from(other).context("merging"),
    }
}

/// Warnings that a run was interrupted, and why there is no digest, if one was requested.
pub(crate) fn warnings(args: &MergeArgs, merged: &Merged) -> Vec<String> {
    let interrupted = merged.header.is_interrupted().then(|| INTERRUPTED.to_owned());
    let inexact = if args.digest { merged.inexact() } else { Default::default() };
    let text =
        |(what, number)| format!("no digest, because the merge is not exact: {what}: {number}");
    interrupted.into_iter().chain(inexact.into_iter().map(text)).collect()
}

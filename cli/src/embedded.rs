//! `monitor` and `merge` as functions of other programs: the same flags, messages and report, the
//! flow records as Arrow record batches, and states as bytes.
//!
//! Unlike the command, a run handles no signals, restricts no access to files and prints nothing
//! itself; flags for the terminal have no effect. Several runs can be active at the same time.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use clap::{CommandFactory, Parser};
use ringtap_base::text::shown;
use ringtap_engine::Watch;
use ringtap_export::{Batches, Output, Prepared};
use ringtap_monitor::state::Earlier;
use ringtap_terminal::{Usage, message};

use crate::args::{Cli, Command};
use crate::config;
use crate::outputs::{self, Control, Outputs};
use crate::{merge, monitor, source};
use ringtap_program::atomic_file::Existing;

pub use toml::{Table, Value};

/// The result of a run.
#[derive(Debug)]
pub struct Finished {
    /// The report in JSON, as the command prints it with `--report json`.
    pub report: String,
    /// The state, if requested and if the flags leave what it needs.
    pub state: Option<Vec<u8>>,
    /// The flow records, if requested: at least one batch, perhaps without rows. `None` if they failed.
    pub flows: Option<Vec<RecordBatch>>,
    /// Messages that the command prints as warnings.
    pub warnings: Vec<String>,
    /// Messages with which the command fails; it prints the report all the same.
    pub errors: Vec<String>,
}

/// A run that could not start or did not finish: the command's message.
#[derive(Debug)]
pub struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Stops a run from another thread.
#[derive(Clone)]
pub struct Stop {
    watch: Arc<Watch>,
    outputs: Arc<OnceLock<Control>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { watch: Watch::shared(), outputs: Arc::default() }
    }
}

impl Stop {
    /// Ends reading, and the waiting for outputs that accept nothing. The run finishes as after an
    /// interrupt of the command.
    pub fn request(&self) {
        self.watch.stop();
        if let Some(outputs) = self.outputs.get() {
            outputs.interrupt();
        }
    }

    fn connect(&self, outputs: Control) {
        let outputs = self.outputs.get_or_init(|| outputs);
        // If the request came before, it did not reach the outputs.
        if self.watch.stopped() {
            outputs.interrupt();
        }
    }
}

/// What a run keeps in memory beside the report.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// The flow records.
    pub flows: bool,
    /// The state.
    pub state: bool,
}

/// Runs `monitor` over `files`, in order, with the values of `flags` by their long names. `stop` is
/// of this run alone.
///
/// # Errors
/// An invalid flag, an output that cannot be opened, a thread that failed.
pub fn monitor(
    files: &[OsString],
    flags: &Table,
    kept: Kept,
    stop: &Stop,
) -> Result<Finished, Failure> {
    run(files, flags, kept, stop).map_err(|error| Failure(message(&error)))
}

/// Merges states, with the values of the flags of `merge` by their long names.
///
/// # Errors
/// An invalid flag; a state that is damaged, or does not belong to the others; a stop.
pub fn merge(states: &[Vec<u8>], flags: &Table, stop: &Stop) -> Result<Finished, Failure> {
    merge_all(states, flags, stop).map_err(|error| Failure(message(&error)))
}

/// Bytes that are read until a stop.
struct Stoppable<'a> {
    bytes: &'a [u8],
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.watch.stopped() {
            return Err(io::Error::other("the merge was stopped"));
        }
        self.bytes.read(into)
    }
}

fn merge_all(states: &[Vec<u8>], flags: &Table, stop: &Stop) -> anyhow::Result<Finished> {
    // The parser wants a file.
    let Command::Merge(args) = parse("merge", flags, ["-".into()])? else {
        return Err(Usage::of("the flags do not belong to merge"));
    };
    merge::check(&args)?;
    let mut state = Vec::new();
    let inputs = states.iter().map(|bytes| Stoppable { bytes, stop }).collect();
    ringtap_monitor::state::merge_states(inputs, &mut state)
        .map_err(|error| merge::failed(error, &[]))?;
    let args = crate::args::MergeArgs { files: Vec::new(), ..args };
    let merged = merge::merged(&args, vec![Stoppable { bytes: &state, stop }])?;
    Ok(Finished {
        report: merged.to_json(env!("CARGO_PKG_VERSION"))?,
        state: Some(state),
        flows: None,
        warnings: shown_all(merge::warnings(&args, &merged)),
        errors: Vec::new(),
    })
}

fn run(files: &[OsString], flags: &Table, kept: Kept, stop: &Stop) -> anyhow::Result<Finished> {
    let read = |file: &OsString| [OsStr::new("--read="), file].into_iter().collect::<OsString>();
    let Command::Monitor(args) = parse("monitor", flags, files.iter().map(read))? else {
        return Err(Usage::of("the flags do not belong to monitor"));
    };
    if outputs::takes_states(&args.export) {
        return Err(Usage::of("states are exported by the command: use the state of the run"));
    }
    if !args.alert_to.is_empty() {
        return Err(Usage::of("alerts are sent by the command: the report has all scans"));
    }
    if args.store.is_some() {
        return Err(Usage::of("a store is written by the command: use the flows of the run"));
    }
    source::check(&args.inputs.read)?;
    // Without flows there are no records.
    let has_flows = args.analyses.is_none_or(|on| on.flows);
    let batches = (kept.flows && has_flows).then(Batches::default);
    let named = monitor::outputs(&args, batches.clone().map(Output::Batches))?;
    let existing = Existing::of(args.force, false);
    monitor::roles(&args, &named)?.check(existing)?;
    let plan = monitor::plan(&args, &[], &named, kept.state)?;
    let settings = monitor::settings(&args, &plan, &[], Arc::clone(&stop.watch));
    let prepared = Prepared::new(&named, settings)?;
    let (workers, rules) = (plan.arrangement.workers, monitor::file_rules(&args, existing));
    let (outputs, sinks) = Outputs::start(&named, prepared, workers, &args.export, rules, None)?;
    stop.connect(outputs.control());
    let files = source::reader(&args.inputs.read, Arc::clone(&stop.watch))
        .with_window_max(source::window_bytes(args.memory));
    let sinks = ringtap_monitor::Outputs { sinks, ..ringtap_monitor::Outputs::default() };
    let mut outcome = ringtap_monitor::run(&plan, files, sinks, &stop.watch)?;
    (outcome.export, outcome.write) = outputs.finish();

    let mut messages = monitor::messages::messages(&mut outcome);
    messages.extend(outputs::messages(&outcome.export));
    messages.extend(outputs::messages(&outcome.write));
    let (errors, warnings): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|(kind, _)| *kind == "error");
    let text = |(_, text)| text;
    let mut errors: Vec<_> = errors.into_iter().map(text).collect();
    errors.extend(monitor::messages::losses(&args, &outcome));
    if batches.is_some() {
        // The batches are the last output, which the command does not have.
        outcome.write.pop();
    }
    Ok(Finished {
        report: outcome.to_json(env!("CARGO_PKG_VERSION"))?,
        state: outcome
            .report()
            .state
            .is_some()
            .then(|| outcome.write_state(&mut Earlier::default(), Vec::new()))
            .transpose()?,
        flows: batches.map(|batches| batches.take()).filter(|batches| !batches.is_empty()),
        warnings: shown_all(warnings.into_iter().map(text).collect()),
        errors: shown_all(errors),
    })
}

/// Messages for people.
fn shown_all(messages: Vec<String>) -> Vec<String> {
    messages.iter().map(|message| shown(message).into_owned()).collect()
}

/// Parses the flags and further words as those of a command line.
fn parse(
    name: &str,
    flags: &Table,
    further: impl IntoIterator<Item = OsString>,
) -> anyhow::Result<Command> {
    let command = Cli::command();
    let command = command.find_subcommand(name);
    let mut words: Vec<OsString> = vec!["ringtap".into(), name.into()];
    for (key, value) in flags {
        let mut known = command.into_iter().flat_map(clap::Command::get_arguments);
        match known.find(|arg| arg.get_long() == Some(key)) {
            Some(arg) => words.extend(config::words(key, arg, value).map_err(Usage::of)?),
            // The parser's error names similar flags.
            None => words.push(format!("--{key}").into()),
        }
    }
    words.extend(further);
    Cli::try_parse_from(words)?.command.ok_or_else(|| Usage::of("no command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_a_merge() {
        let stop = Stop::default();
        let error = |stop| merge(&[vec![0; 100]], &Table::new(), stop).unwrap_err().to_string();
        assert_eq!(error(&stop), "merging: state 1: this is not a state");
        stop.request();
        assert_eq!(error(&stop), "merging: state 1: the merge was stopped");
    }
}

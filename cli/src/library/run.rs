//! `monitor` in the process of another program: the same flags, messages and report.
//!
//! Unlike the command, a run handles no signals, restricts no access to files and prints nothing itself; flags for the
//! terminal have no effect. Several runs can be active at the same time.

use std::ffi::OsString;
use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use ringtap_base::text::shown;
use ringtap_engine::{Plan, Watch};
use ringtap_export::{Output, Prepared};
use ringtap_monitor::Outcome;
use ringtap_program::atomic_file::Existing;
use ringtap_query::{Filter, Matcher};
use ringtap_terminal::{Usage, message};
use toml::Table;

use crate::args::{Cli, Command, MonitorArgs};
use crate::outputs::{self, Control, Outputs};
use crate::{config, live, monitor, source};

/// A run that could not start or did not finish: the command's message.
#[derive(Debug)]
pub struct Failure(pub(crate) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self(message(&error))
    }
}

/// Stops a run from another thread.
#[derive(Clone)]
pub struct Stop {
    pub(crate) watch: Arc<Watch>,
    outputs: Arc<OnceLock<Control>>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { watch: Watch::shared(), outputs: Arc::default() }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("requested", &self.watch.stopped()).finish()
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

/// A run that has ended.
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    /// Messages that the command prints as warnings.
    pub(crate) warnings: Vec<String>,
    /// Messages with which the command fails; it prints the report all the same.
    pub(crate) errors: Vec<String>,
}

/// A filter of flow records, in the language of `query`.
pub(crate) fn matcher(expression: &str) -> anyhow::Result<Matcher> {
    let named = || format!("the expression {expression:?}");
    let filter = Filter::new(expression).map_err(Usage::of).with_context(named)?;
    Matcher::new(&filter).map_err(Usage::of).with_context(named)
}

/// The plan of a run with these flags.
pub(crate) fn plan(args: &MonitorArgs) -> anyhow::Result<Plan<ringtap_monitor::Options>> {
    let interfaces = live::interfaces(args)?;
    source::check(&args.inputs.read)?;
    monitor::plan(args, &interfaces, &monitor::outputs(args, None)?, false)
}

/// Runs `monitor` with these flags, and an output besides theirs. `keep_state`: the outcome has a state, if the flags leave
/// what it needs.
pub(crate) fn run(
    args: &MonitorArgs,
    further: Option<Output>,
    keep_state: bool,
    stop: &Stop,
) -> anyhow::Result<Ended> {
    if outputs::takes_states(&args.export) {
        return Err(Usage::of("states are exported by the command: use the state of the run"));
    }
    if !args.alert_to.is_empty() {
        return Err(Usage::of("alerts are sent by the command: the report has all scans"));
    }
    if args.store.is_some() {
        return Err(Usage::of("a store is written by the command: use the flows of the run"));
    }
    let interfaces = live::interfaces(args)?;
    source::check(&args.inputs.read)?;
    // The report has an output that is read while the run goes on.
    let is_hidden = further.as_ref().is_some_and(|own| !own.is_read());
    let named = monitor::outputs(args, further)?;
    let existing = Existing::of(args.force, !interfaces.is_empty());
    monitor::roles(args, &named)?.check(existing)?;
    let plan = monitor::plan(args, &interfaces, &named, keep_state)?;
    let numbered = live::numbered(&interfaces, args)?;
    let settings = monitor::settings(args, &plan, &numbered, Arc::clone(&stop.watch));
    let prepared = Prepared::new(&named, settings)?;
    let receivers = live::open(&interfaces, args, &plan)?;
    let (workers, rules) = (plan.arrangement.workers, monitor::file_rules(args, existing));
    let (outputs, sinks) = Outputs::start(&named, prepared, workers, &args.export, rules, None)?;
    stop.connect(outputs.control());
    let sinks = ringtap_monitor::Outputs { sinks, ..ringtap_monitor::Outputs::default() };
    let duration = args.inputs.duration.map(Duration::from_nanos);
    let mut outcome = until(duration, stop, || {
        if !interfaces.is_empty() {
            return Ok(ringtap_monitor::run_live(&plan, receivers, sinks, &stop.watch)?);
        }
        let files = source::reader(&args.inputs.read, Arc::clone(&stop.watch));
        let files = files.with_window_max(source::window_bytes(args.memory));
        Ok(ringtap_monitor::run(&plan, files, sinks, &stop.watch)?)
    })?;
    (outcome.export, outcome.write) = outputs.finish();

    let mut messages = monitor::messages::messages(&mut outcome);
    messages.extend(outputs::messages(&outcome.export));
    messages.extend(outputs::messages(&outcome.write));
    let (errors, warnings): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|(kind, _)| *kind == "error");
    let text = |(_, text)| text;
    let mut errors: Vec<_> = errors.into_iter().map(text).collect();
    errors.extend(monitor::messages::losses(args, &outcome));
    if is_hidden {
        // The last output, which the command does not have.
        outcome.write.pop();
    }
    let warnings = warnings.into_iter().map(text).collect();
    Ok(Ended { outcome, warnings: shown_all(warnings), errors: shown_all(errors) })
}

/// Runs `work`, and ends reading after the duration, if there is one.
fn until(
    duration: Option<Duration>,
    stop: &Stop,
    work: impl FnOnce() -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    std::thread::scope(|scope| {
        // Dropping it ends the waiting.
        let (_running, ends) = mpsc::sync_channel::<()>(1);
        if let Some(duration) = duration {
            let wait = move || {
                if ends.recv_timeout(duration) == Err(RecvTimeoutError::Timeout) {
                    stop.watch.stop();
                }
            };
            let clock = std::thread::Builder::new().name("duration".into());
            clock.spawn_scoped(scope, wait).context("a thread for the duration")?;
        }
        work()
    })
}

/// Messages for people.
pub(crate) fn shown_all(messages: Vec<String>) -> Vec<String> {
    messages.iter().map(|message| shown(message).into_owned()).collect()
}

/// Parses the flags and further words as those of a command line.
pub(crate) fn parse(
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

/// The flags of `monitor` with these values over `files`.
pub(crate) fn parse_monitor(files: &[OsString], flags: &Table) -> anyhow::Result<MonitorArgs> {
    let read = |file: &OsString| [OsString::from("--read="), file.clone()].into_iter().collect();
    match parse("monitor", flags, files.iter().map(read))? {
        Command::Monitor(args) => Ok(*args),
        _ => Err(Usage::of("the flags do not belong to monitor")),
    }
}

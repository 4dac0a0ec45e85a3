//! `monitor` and `merge` as functions of other programs: the same flags, messages and report, the
//! flow records as Arrow record batches, and states as bytes.

mod tables;

use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use ringtap_export::{Chosen, Only, Output, Summary};
use ringtap_monitor::state::Earlier;
use ringtap_terminal::Usage;

use crate::args::{Command, MonitorArgs};
use crate::library::REFUSED;
use crate::library::run::{self, Ended};
use crate::{live, merge, source};

pub use self::tables::{table, tables};
pub use crate::library::run::{Failure, Stop};
pub use ringtap_export::{Batches, NextBatch};
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
    /// Flow records that the reader of a stream did not get.
    pub lost: u64,
}

/// What a run keeps in memory beside the report.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Flow records: all that these batches select.
    pub flows: Option<Batches>,
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
    Ok(run_monitor(files, flags, kept, stop)?)
}

/// Checks what can be wrong with a call of [`stream`] before it opens interfaces and outputs: flags, and files that cannot be
/// read.
///
/// # Errors
/// What is wrong.
pub fn check(files: &[OsString], flags: &Table) -> Result<(), Failure> {
    if let Some((flag, _)) = REFUSED.iter().find(|(flag, _)| flags.contains_key(*flag)) {
        return Err(Failure(format!("{flag}: only the command has it")));
    }
    let args = stream_args(files, flags)?;
    live::interfaces(&args)?;
    Ok(source::check(&args.inputs.read).map_err(anyhow::Error::from)?)
}

/// Runs `monitor` over `files` or over the interfaces of `flags`, with a reader of its flow records: those of a filter in
/// the language of `query`, if `batches` have one.
///
/// # Errors
/// As those of [`monitor()`].
pub fn stream(
    files: &[OsString],
    flags: &Table,
    batches: &Batches,
    stop: &Stop,
) -> Result<Finished, Failure> {
    // However the run ends, also by a panic.
    struct End<'a>(&'a Batches);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.end();
        }
    }
    let _end = End(batches);
    Ok(run_stream(files, flags, batches, stop)?)
}

/// Batches of the flow records that a filter selects: for a reader, for whom at most as many wait, or without a number all
/// of a run. A reader's batches have the columns of these names, or all; names that are no fields are ignored.
///
/// # Errors
/// An invalid filter.
pub fn batches(
    waiting: Option<usize>,
    filter: Option<&str>,
    columns: Option<&[String]>,
) -> Result<Batches, Failure> {
    let matcher = filter.map(run::matcher).transpose()?;
    let only = matcher.map(|matcher| Only(Arc::new(move |record| matcher.matches(record))));
    Ok(match waiting {
        Some(most) => Batches::for_reader(most, only, columns.map(Chosen::named)),
        None => Batches::kept(only),
    })
}

/// Merges states, with the values of the flags of `merge` by their long names.
///
/// # Errors
/// An invalid flag; a state that is damaged, or does not belong to the others; a stop.
pub fn merge(states: &[Vec<u8>], flags: &Table, stop: &Stop) -> Result<Finished, Failure> {
    Ok(merge_all(states, flags, stop)?)
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
    let Command::Merge(args) = run::parse("merge", flags, ["-".into()])? else {
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
        warnings: run::shown_all(merge::warnings(&args, &merged)),
        errors: Vec::new(),
        lost: 0,
    })
}

/// The flags of a stream, which has flow records.
fn stream_args(files: &[OsString], flags: &Table) -> anyhow::Result<MonitorArgs> {
    let args = run::parse_monitor(files, flags)?;
    if args.analyses.is_some_and(|on| !on.flows) {
        return Err(Usage::of("a stream has flow records: add flows to --analyses"));
    }
    Ok(args)
}

fn run_stream(
    files: &[OsString],
    flags: &Table,
    batches: &Batches,
    stop: &Stop,
) -> anyhow::Result<Finished> {
    let args = stream_args(files, flags)?;
    let further = Output::Batches(batches.clone());
    let Ended { outcome, warnings, errors } = run::run(&args, Some(further), false, stop)?;
    let report = outcome.to_json(env!("CARGO_PKG_VERSION"))?;
    // The last output is the reader's.
    let lost = outcome.write.last().map_or(0, Summary::lost);
    Ok(Finished { report, state: None, flows: None, warnings, errors, lost })
}

fn run_monitor(
    files: &[OsString],
    flags: &Table,
    kept: Kept,
    stop: &Stop,
) -> anyhow::Result<Finished> {
    let args = run::parse_monitor(files, flags)?;
    // Without flows there are no records.
    let has_flows = args.analyses.is_none_or(|on| on.flows);
    let batches = kept.flows.filter(|_| has_flows);
    let further = batches.clone().map(Output::Batches);
    let Ended { outcome, warnings, errors } = run::run(&args, further, kept.state, stop)?;
    Ok(Finished {
        report: outcome.to_json(env!("CARGO_PKG_VERSION"))?,
        state: outcome
            .report()
            .state
            .is_some()
            .then(|| outcome.write_state(&mut Earlier::default(), Vec::new()))
            .transpose()?,
        flows: batches.map(|batches| batches.take()).filter(|batches| !batches.is_empty()),
        warnings,
        errors,
        lost: 0,
    })
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

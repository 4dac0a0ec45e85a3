//! `ringtap merge`: one report over the states of several monitors; or one measurement of several.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use ringtap_monitor::state::{Choices, MAGIC, MergeError, merge_states, report};
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, print_message};

use crate::args::{Form, MergeArgs};
use crate::atomic_file::AtomicFile;
use crate::{measure, monitor, sandbox, text};

pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let states =
        args.files.iter().map(|path| is_state(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let of_states = [
        ("--state", args.state.is_some()),
        ("--digest", args.digest),
        ("--scan-threshold", args.scan_threshold.is_some()),
        ("--top", args.top.is_some()),
        ("--names", args.names.is_some()),
        ("--memory", args.memory.is_some()),
    ];
    let of_measurements =
        [("--threshold", args.threshold.is_some()), ("--write", !args.write.is_empty())];
    let given = |flags: &[(&str, bool)], what| match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Usage::of(format!("{flag} cannot be used with {what}"))),
        None => Ok(()),
    };
    if states.iter().all(|state| !state) {
        given(&of_states, "measurements")?;
        return measure::merge(args);
    }
    if let Some(at) = states.iter().position(|state| !state) {
        let path = args.files[at].display();
        return Err(Usage::of(format!("{path} is not a state, but other files are")));
    }
    given(&of_measurements, "states")?;
    merge(args)
}

/// Whether a file begins as a state does.
fn is_state(path: &Path) -> anyhow::Result<bool> {
    let mut magic = Vec::new();
    let file = File::open(path);
    file.and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut magic))
        .with_context(|| format!("reading {}", path.display()))?;
    Ok(magic == MAGIC)
}

fn open(args: &MergeArgs) -> anyhow::Result<Vec<BufReader<File>>> {
    let open = |path: &std::path::PathBuf| {
        let file = File::open(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(BufReader::new(file))
    };
    args.files.iter().map(open).collect()
}

fn merge(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    sandbox::enter(args.state.iter().map(AsRef::as_ref))?;
    let names = monitor::names(args.names.as_deref())?;
    if let Some(path) = &args.state {
        write_state(path, |out| merge_states(open(args)?, out).context("merging").map(drop))?;
        if args.report.is_none() && !args.digest {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let defaults = ringtap_monitor::Options::default();
    let choices = Choices {
        scan_threshold: args.scan_threshold.unwrap_or(defaults.scan_threshold),
        top: args.top.unwrap_or(defaults.top),
        digest: args.digest,
        names,
        memory_bytes: args.memory,
    };
    let merged = report(open(args)?, &choices).map_err(|error| match error {
        MergeError::Plan(error) => Usage::of(error),
        other => anyhow::Error::from(other).context("merging"),
    })?;
    if args.digest {
        for (what, number) in merged.inexact() {
            print_message(
                "warning",
                &format!("no digest, because the merge is not exact: {what}: {number}"),
            );
        }
    }
    console::print(&match args.report.unwrap_or(Form::Text) {
        Form::Text => text::merged(&merged),
        Form::Json => merged.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a state to a file, which is renamed when complete.
pub(crate) fn write_state(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let doing = || format!("writing {}", path.display());
    let mut file = AtomicFile::new(path.to_owned());
    let mut out = BufWriter::new(file.begin().with_context(doing)?);
    write(&mut out)?;
    out.flush().with_context(doing)?;
    drop(out);
    file.finish().with_context(doing).map(drop)
}

//! The process that answers the page's questions to the store. It starts before the run restricts itself, because that run
//! may not start programs; it reads questions from a socket and nothing else, and ends with the run.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use clap::Args;
use ringtap_program::privileges;
use ringtap_query::moment::Zone;
use ringtap_query::{Format, Question, Script};
use ringtap_terminal::console;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{engine, sources, table};
use crate::web::Answer;

/// The name of the subcommand.
pub(crate) const NAME: &str = "answer-for-page";

/// Memory of the engine, bytes.
const MEMORY: u64 = 256 << 20;

/// Most bytes of a reply.
pub(crate) const MOST_REPLY: usize = 8 << 20;

#[derive(Args)]
pub(crate) struct HelperArgs {
    #[arg(long)]
    user: Option<String>,
    #[arg(long)]
    probe: String,
    store: PathBuf,
}

/// A question. Times are in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) question: String,
    pub(crate) window: [Option<i64>; 2],
    /// The period that is compared with.
    pub(crate) before: Option<[Option<i64>; 2]>,
    /// Most rows.
    pub(crate) rows: u64,
}

/// A reply.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reply {
    Answer(Answer),
    Error(String),
}

/// Starts the process, which answers from the records of a probe; returns the connection to it. With `user`, it reads the
/// store as that user.
///
/// # Errors
/// It cannot be started.
pub(crate) fn start(store: &Path, probe: &str, user: Option<&str>) -> anyhow::Result<UnixStream> {
    if let Err(missing) = engine::check() {
        console::note(&format!("the page shows nothing of the store: {missing}"));
    }
    let context = || format!("starting a process that reads the store {}", store.display());
    let (ours, its) = UnixStream::pair().with_context(context)?;
    let output = OwnedFd::from(its.try_clone().with_context(context)?);
    let mut command = Command::new("/proc/self/exe");
    command.arg(NAME).arg(format!("--probe={probe}"));
    if let Some(user) = user {
        command.arg("--user").arg(user);
    }
    // Not in the terminal's group: an interrupt of the run is none of this process.
    command.arg("--").arg(store).stdin(OwnedFd::from(its)).stdout(output).process_group(0);
    for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"] {
        command.env_remove(name);
    }
    command.spawn().with_context(context)?;
    Ok(ours)
}

/// The process.
pub(crate) fn run(args: &HelperArgs) -> anyhow::Result<ExitCode> {
    if let Some(user) = &args.user {
        privileges::become_user(&privileges::user(user)?)?;
    }
    privileges::forbid_new();
    // Packets go first.
    let _ = rustix::process::nice(19);
    // The run ends this process by closing the connection, after it has handled its signals.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let stream =
        UnixStream::from(io::stdin().as_fd().try_clone_to_owned().context("the connection")?);
    let mut output = stream.try_clone().context("the connection")?;
    for line in BufReader::new(stream).lines() {
        let reply = match answer(args, &line.context("the connection")?, output.as_fd()) {
            Ok(answer) => Reply::Answer(answer),
            Err(error) => Reply::Error(format!("{error:#}")),
        };
        let mut line = serde_json::to_string(&reply).context("writing the answer")?;
        if line.len() >= MOST_REPLY {
            let error = Reply::Error("the answer is too long: ask for fewer rows".into());
            line = serde_json::to_string(&error).context("writing the answer")?;
        }
        if output.write_all((line + "\n").as_bytes()).is_err() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(args: &HelperArgs, line: &str, asker: BorrowedFd<'_>) -> anyhow::Result<Answer> {
    let ask: Ask = serde_json::from_str(line).context("reading the question")?;
    let Ask { question, window, before, rows } = ask;
    let question = Question::new(&question)?;
    if question.compares() && before.is_none() {
        bail!("no period to compare with");
    }
    let sql = question.sql(Some(rows), true);
    let paths = [args.store.clone()];
    let source = sources::find(&paths, Some(&args.probe), window, before, question.needs_store())?;
    let window_before = before.unwrap_or_default();
    let script = Script { sql, source, window, window_before, zone: Zone::Utc };
    let mut bytes = Vec::new();
    engine::run(&script, Format::Json, MEMORY, Some(&mut bytes), Some(asker))?;
    table::rows(&bytes).context("reading the answer of the engine")
}

//! The process that answers the page's questions to the store. It starts before the run restricts itself, because that run
//! may not start programs; it reads questions from a socket and nothing else, and ends with the run.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use ringtap_program::privileges;
use ringtap_query::moment::Zone;
use ringtap_query::{Format, Question, Script};
use ringtap_terminal::console;
use serde::{Deserialize, Serialize};

use super::{engine, sources, table};
use crate::helper;
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
    let mut command = helper::command(NAME);
    command.arg(format!("--probe={probe}"));
    if let Some(user) = user {
        command.arg("--user").arg(user);
    }
    command.arg("--").arg(store);
    helper::start(command).with_context(context)
}

/// The process.
pub(crate) fn run(args: &HelperArgs) -> anyhow::Result<ExitCode> {
    if let Some(user) = &args.user {
        privileges::become_user(&privileges::user(user)?)?;
    }
    privileges::forbid_new();
    // Packets go first.
    let _ = rustix::process::nice(19);
    let stream = helper::connection().context("the connection")?;
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

//! The engine: the program `duckdb`, with a script on its standard input.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use ringtap_base::Clock;
use ringtap_query::{Format, Limits, Script};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::alerts::find_program;

/// The variable with the path of the program.
const VARIABLE: &str = "RINGTAP_DUCKDB";

/// Most bytes of an error.
const MOST_ERROR: u64 = 64 << 10;

/// Most time for the answer to another process.
const LIMIT: Duration = Duration::from_secs(60);

/// The program: a path, or a name to be found in PATH.
fn program() -> OsString {
    let program = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    program.unwrap_or_else(|| "duckdb".into())
}

fn missing(program: &OsStr) -> String {
    format!(
        "the program {} is missing: install it with 'pip install duckdb-cli', or set {VARIABLE} to its path",
        program.display()
    )
}

/// What is missing, if the program is.
pub(super) fn check() -> Result<(), String> {
    let program = program();
    find_program(Path::new(&program)).map(drop).map_err(|_| missing(&program))
}

/// Runs the script; rows go to `answer`, or to the standard output of this process. `asker` is the connection to the process
/// that asks, if it is another one: the engine is ended when it is closed.
pub(super) fn run(
    script: &Script,
    format: Format,
    memory: u64,
    answer: Option<&mut Vec<u8>>,
    asker: Option<BorrowedFd<'_>>,
) -> anyhow::Result<()> {
    let spill = tempfile::Builder::new().prefix("ringtap-query.").tempdir();
    let spill = spill.context("making a folder for what does not fit into memory")?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let limits = Limits { memory, threads, spill: spill.path().to_owned() };
    let text = script.text(format, &limits)?;
    let program = program();
    let mut command = Command::new(&program);
    if asker.is_some() {
        // It is ended with all that it started.
        command.process_group(0);
    }
    let started = command
        .args(["-batch", "-bail", "-init", "/dev/null"])
        .stdin(Stdio::piped())
        // Not ours: the engine opens its own by name, which would empty a file.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut engine = match started {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(missing(&program)),
        other => other.with_context(|| format!("starting {}", program.display()))?,
    };
    let (input, output, errors) = (engine.stdin.take(), engine.stdout.take(), engine.stderr.take());
    let engine_id = Pid::from_child(&engine);
    let passed = thread::scope(|scope| {
        let (ended, end) = UnixStream::pair().context("a pair of sockets")?;
        let guard = asker.map(|asker| scope.spawn(move || end_late(engine_id, asker, &end, LIMIT)));
        // An engine that ends early says why on its standard error.
        scope.spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
        let fault = scope.spawn(move || {
            let mut fault = Vec::new();
            if let Some(mut errors) = errors {
                let _ = errors.by_ref().take(MOST_ERROR).read_to_end(&mut fault);
                let _ = io::copy(&mut errors, &mut io::sink());
            }
            fault
        });
        if let Some(output) = output {
            pass(output, answer).context("passing on the answer of the engine")?;
        }
        let fault = fault.join().map_err(|_| anyhow!("reading the errors of the engine"))?;
        drop(ended);
        let is_late = guard.is_some_and(|guard| guard.join().unwrap_or(false));
        anyhow::Ok((fault, is_late))
    });
    if passed.is_err() {
        let _ = engine.kill();
    }
    let status = engine.wait().context("waiting for the engine")?;
    let (fault, is_late) = passed?;
    if is_late {
        bail!("no answer within {LIMIT:?}: ask about a shorter time, or use ringtap query");
    }
    if status.success() || was_closed(status) {
        return Ok(());
    }
    let fault = String::from_utf8_lossy(&fault);
    let fault = fault.trim();
    if fault.is_empty() {
        bail!("{} ended with {status}", program.display());
    }
    bail!("{}", explained(fault));
}

/// Kills the engine with all that it started when the time is over, or the asker's connection is closed, unless the other
/// end of `end` is closed before. Returns whether it was killed.
fn end_late(engine: Pid, asker: BorrowedFd<'_>, end: &UnixStream, limit: Duration) -> bool {
    let clock = Clock::start();
    let mut events =
        [PollFd::from_borrowed_fd(asker, PollFlags::RDHUP), PollFd::new(end, PollFlags::IN)];
    let polled = loop {
        let left = limit.saturating_sub(Duration::from_nanos(clock.now_ns()));
        let left =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut events, Some(&left)) {
            Err(Errno::INTR) => continue,
            other => break other,
        }
    };
    // Without polls there is no limit.
    let is_over = polled.is_err() || !events[1].revents().is_empty();
    // The process was not waited for, so its number is its own.
    if !is_over {
        let _ = kill_process_group(engine, Signal::KILL);
    }
    !is_over
}

/// Reads the answer; without `answer` it goes to the standard output of this process, until that is closed.
fn pass(mut output: ChildStdout, answer: Option<&mut Vec<u8>>) -> io::Result<()> {
    let passed = match answer {
        Some(answer) => output.read_to_end(answer).map(|_| ()),
        None => {
            let mut own = io::stdout().lock();
            io::copy(&mut output, &mut own).and_then(|_| own.flush())
        }
    };
    match passed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Whether the reader of stdout closed it early, which is not a failure. A shell or Python that starts the program ends
/// with a code for its signal.
fn was_closed(status: ExitStatus) -> bool {
    let pipe = Signal::PIPE.as_raw();
    status.signal() == Some(pipe) || [128 + pipe, 256 - pipe].map(Some).contains(&status.code())
}

/// The message of the engine, without the text of the script.
fn explained(fault: &str) -> String {
    let message = fault.split("\n\nLINE ").next().unwrap_or(fault);
    let message = message.split("\nLINE ").next().unwrap_or(message);
    // A query that fails while it runs.
    let message =
        message.rsplit_once("unsuccessful query result\nError: ").map_or(message, |(_, own)| own);
    // A fault of the engine itself.
    let message = message.split("\n\nStack Trace").next().unwrap_or(message);
    message.trim().replace('\n', " ").replace("json_execute_serialized_sql expects", "--sql takes")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    /// Whether the engine was killed, and how a shell with a child of its own ended, which never answers.
    fn ended(limit: Duration, before: impl FnOnce(&mut Option<UnixStream>)) -> (bool, ExitStatus) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600; true"]).process_group(0).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let id = Pid::from_child(&shell);
        let (asker, other) = UnixStream::pair().unwrap();
        let (ended, end) = UnixStream::pair().unwrap();
        let mut other = Some(other);
        before(&mut other);
        // If the asker has gone nothing else ends the wait.
        let is_over = other.is_some() && limit > Duration::from_secs(1);
        let killed = thread::scope(|scope| {
            let wait = scope.spawn(|| end_late(id, asker.as_fd(), &end, limit));
            if is_over {
                drop(ended);
            }
            wait.join().unwrap()
        });
        if !killed {
            kill_process_group(id, Signal::TERM).unwrap();
        }
        // Until all that have the pipe have ended.
        shell.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        (killed, shell.wait().unwrap())
    }

    #[test]
    fn an_engine_ends_with_its_asker_and_its_time_and_not_before() {
        let long = Duration::from_secs(600);
        let (killed, status) = ended(long, |asker| drop(asker.take()));
        assert_eq!((killed, status.signal()), (true, Some(Signal::KILL.as_raw())));
        let (killed, status) = ended(Duration::from_millis(10), |_| {});
        assert_eq!((killed, status.signal()), (true, Some(Signal::KILL.as_raw())));
        let (killed, status) = ended(long, |_| {});
        assert_eq!((killed, status.signal()), (false, Some(Signal::TERM.as_raw())));
    }
}

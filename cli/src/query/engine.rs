//! The engine: the program `duckdb`, with a script on its standard input.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context as _, anyhow, bail};
use ringtap_query::{Format, Limits, Script};
use rustix::process::Signal;

/// The variable with the path of the program.
const VARIABLE: &str = "RINGTAP_DUCKDB";

/// Most bytes of an error.
const MOST_ERROR: u64 = 64 << 10;

/// Runs the script; rows go to `answer`, or to the standard output of this process.
pub(super) fn run(
    script: &Script,
    format: Format,
    memory: u64,
    answer: Option<&mut Vec<u8>>,
) -> anyhow::Result<()> {
    let spill = tempfile::Builder::new().prefix("ringtap-query.").tempdir();
    let spill = spill.context("making a folder for what does not fit into memory")?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let limits = Limits { memory, threads, spill: spill.path().to_owned() };
    let text = script.text(format, &limits)?;
    let program = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let program = program.unwrap_or_else(|| "duckdb".into());
    let started = Command::new(&program)
        .args(["-batch", "-bail", "-init", "/dev/null"])
        .stdin(Stdio::piped())
        // Not ours: the engine opens its own by name, which would empty a file.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut engine = match started {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "the program {} is missing: install it with 'pip install duckdb-cli', or set {VARIABLE} to its path",
            program.display()
        ),
        other => other.with_context(|| format!("starting {}", program.display()))?,
    };
    let (input, output, errors) = (engine.stdin.take(), engine.stdout.take(), engine.stderr.take());
    let fault = thread::scope(|scope| {
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
        fault.join().map_err(|_| anyhow!("reading the errors of the engine"))
    })?;
    let status = engine.wait().context("waiting for the engine")?;
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

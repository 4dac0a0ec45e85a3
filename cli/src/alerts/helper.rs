//! The process that runs a program for alerts. It starts before the run restricts itself, because that run may not start
//! programs; it reads requests from a socket and nothing else.
//!
//! A program gets the JSON object on its standard input and the fields as variables `RINGTAP_ALERT_…`; its output is
//! discarded, its errors are those of the run. It has [`RUN_TIME`], then it is killed with all that it started.
//! The helper ends with the run, and kills what still runs.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use ringtap_export::{MOST_RUNNING, Reply, Request};
use ringtap_terminal::Usage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::privileges;

/// The name of the subcommand.
pub(crate) const NAME: &str = "run-for-alerts";

/// Longest run of a program.
const RUN_TIME: Duration = Duration::from_secs(10);

/// How often running programs are checked.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

#[derive(Args)]
pub(crate) struct HelperArgs {
    #[arg(long)]
    user: Option<String>,
    program: PathBuf,
}

/// Starts a helper; returns the connection to it.
pub(crate) fn start(program: &Path, user: Option<&str>) -> anyhow::Result<UnixStream> {
    let found = find(program)?;
    let context = || format!("starting a helper for exec:{}", program.display());
    let (ours, its) = UnixStream::pair().with_context(context)?;
    let output = OwnedFd::from(its.try_clone().with_context(context)?);
    let mut command = Command::new("/proc/self/exe");
    command.arg(NAME);
    if let Some(user) = user {
        command.arg("--user").arg(user);
    }
    // Not in the terminal's group: an interrupt of the run is none of its programs.
    command.arg("--").arg(found).stdin(OwnedFd::from(its)).stdout(output).process_group(0);
    for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"] {
        command.env_remove(name);
    }
    command.spawn().with_context(context)?;
    Ok(ours)
}

/// The path of a program, which is searched for in `PATH` if it is a name alone.
fn find(program: &Path) -> anyhow::Result<PathBuf> {
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let mut candidates = vec![program.to_owned()];
    if !program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        candidates = std::env::split_paths(&folders).map(|folder| folder.join(program)).collect();
    }
    let found = candidates.into_iter().find(|path| is_program(path));
    let missing = || {
        let program = program.display();
        Usage::of(format!("--alert-to exec:{program}: no program that can be run: use its path"))
    };
    std::path::absolute(found.ok_or_else(missing)?).context("the current folder")
}

/// The helper.
pub(crate) fn run(args: &HelperArgs) -> anyhow::Result<ExitCode> {
    if let Some(user) = &args.user {
        privileges::become_user(&privileges::user(user)?)?;
    }
    // The run ends the helper by closing the connection, after it has handled its signals.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let stream = io::stdin().as_fd().try_clone_to_owned().context("the connection")?;
    serve(&UnixStream::from(stream), &args.program, RUN_TIME).context("the connection")?;
    Ok(ExitCode::SUCCESS)
}

/// A program that runs.
struct Running {
    child: Child,
    since: Instant,
}

impl Running {
    /// Starts the program for a request.
    fn start(program: &OsStr, request: &Request) -> io::Result<Self> {
        let variables = request.variables.iter().filter_map(|text| text.split_once('='));
        let mut child = Command::new(program)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // The object fits the buffer of a pipe. A program need not read it.
            let _ = input.write_all(request.json.as_bytes()).and_then(|()| input.write_all(b"\n"));
        }
        Ok(Self { child, since: now() })
    }

    /// The result, once it has ended.
    fn check(&mut self, limit: Duration) -> Option<Reply> {
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() => Some(Reply(Ok(()))),
            Ok(Some(status)) => Some(Reply(Err(status.to_string()))),
            Ok(None) if self.since.elapsed() < limit => None,
            Ok(None) => {
                self.kill();
                let seconds = limit.as_secs_f64();
                Some(Reply(Err(format!("it ran for more than {seconds} s and was killed"))))
            }
            Err(error) => Some(Reply(Err(error.to_string()))),
        }
    }

    fn kill(&mut self) {
        // It may have ended meanwhile.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Serves requests until the connection is closed.
fn serve(mut stream: &UnixStream, program: &Path, limit: Duration) -> io::Result<()> {
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut sockets = [PollFd::new(stream, PollFlags::IN)];
        let step = (!running.is_empty()).then_some(&STEP);
        match poll(&mut sockets, step) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => match stream.read(&mut piece)? {
                0 => break,
                octets => received.extend_from_slice(&piece[..octets]),
            },
            Err(error) => return Err(error.into()),
        }
        let mut replies = Vec::new();
        while running.len() < MOST_RUNNING
            && let Some(request) = Request::take(&mut received)
        {
            match Running::start(program.as_os_str(), &request) {
                Ok(one) => running.push(one),
                Err(error) => replies.push(Reply(Err(error.to_string()))),
            }
        }
        running.retain_mut(|one| {
            let reply = one.check(limit);
            let runs = reply.is_none();
            replies.extend(reply);
            runs
        });
        for reply in replies {
            stream.write_all(reply.encode().as_bytes())?;
        }
    }
    running.iter_mut().for_each(Running::kill);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "how long a program runs is not packet time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A shell script in a new folder.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_program_gets_an_alert_and_its_result_is_the_reply() {
        let text = "cat > $(dirname $0)/$RINGTAP_ALERT_ID; exit $RINGTAP_ALERT_ID";
        let (folder, path) = script(text);
        let (mut ours, its) = UnixStream::pair().unwrap();
        let helper = std::thread::Builder::new();
        let helper = helper.spawn(move || serve(&its, &path, Duration::from_secs(60))).unwrap();
        let mut replies = BufReader::new(ours.try_clone().unwrap());
        for (id, reply) in [("0", "\n"), ("3", "exit status: 3\n")] {
            let variables = vec![format!("RINGTAP_ALERT_ID={id}")];
            let request = Request { json: format!("{{\"id\":{id}}}"), variables };
            ours.write_all(&request.encode()).unwrap();
            let mut line = String::new();
            replies.read_line(&mut line).unwrap();
            assert_eq!(line, reply);
            let read = std::fs::read_to_string(folder.path().join(id)).unwrap();
            assert_eq!(read, format!("{{\"id\":{id}}}\n"));
        }
        drop((ours, replies));
        helper.join().unwrap().unwrap();
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let (folder, path) = script("sleep 600 & echo $! > $(dirname $0)/child; sleep 600");
        let (mut ours, its) = UnixStream::pair().unwrap();
        let helper = std::thread::Builder::new();
        let helper = helper.spawn(move || serve(&its, &path, Duration::from_millis(500))).unwrap();
        ours.write_all(&Request::default().encode()).unwrap();
        let mut line = String::new();
        BufReader::new(ours.try_clone().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "it ran for more than 0.5 s and was killed\n");
        drop(ours);
        helper.join().unwrap().unwrap();
        let Ok(child) = std::fs::read_to_string(folder.path().join("child")) else { return };
        // It may still be a zombie, without a command line.
        let command = std::fs::read(format!("/proc/{}/cmdline", child.trim()));
        assert!(
            command.is_ok_and(|line| line.is_empty())
                || !Path::new("/proc").join(child.trim()).exists()
        );
    }

    #[test]
    fn a_name_is_searched_for_and_a_file_must_be_executable() {
        assert!(find(Path::new("sh")).unwrap().ends_with("sh"));
        let (folder, path) = script("");
        assert_eq!(find(&path).unwrap(), path);
        for wrong in ["no-such-program", "./no-such-program", "/dev/null", "/"] {
            let error = find(Path::new(wrong)).unwrap_err().to_string();
            assert!(error.contains("exec:") && error.contains("use its path"), "{error}");
        }
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        assert!(find(&plain).is_err());
    }
}

//! The process that runs a program for alerts. It starts before the run restricts itself, because that run may not start
//! programs; it reads requests from a socket and nothing else.
//!
//! A program has [`RUN_TIME`], then it is killed. The helper ends with the run, and kills what still runs.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ringtap_export::{MOST_RUNNING, Reply, Request};
use ringtap_terminal::Usage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};

use super::running::Running;
use crate::helper;
use ringtap_program::privileges;

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
    let mut command = helper::command(NAME);
    if let Some(user) = user {
        command.arg("--user").arg(user);
    }
    command.arg("--").arg(found);
    helper::start(command).with_context(context)
}

/// The path of a program, which is searched for in `PATH` if it is a name alone.
///
/// # Errors
/// There is none that may be run.
pub(crate) fn find(program: &Path) -> anyhow::Result<PathBuf> {
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
    let stream = helper::connection().context("the connection")?;
    serve(&stream, &args.program, RUN_TIME).context("the connection")?;
    Ok(ExitCode::SUCCESS)
}

/// Serves requests until the connection is closed. Kills what still runs then.
fn serve(stream: &UnixStream, program: &Path, limit: Duration) -> io::Result<()> {
    let mut running = Vec::new();
    let result = serve_with(&mut running, stream, program, limit);
    for one in &mut running {
        // Its result is of no use any more.
        let _ = one.kill();
    }
    result
}

fn serve_with(
    running: &mut Vec<Running>,
    mut stream: &UnixStream,
    program: &Path,
    limit: Duration,
) -> io::Result<()> {
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        // The run sends no more requests than may run. The end of the connection is always reported.
        let events = if running.len() < MOST_RUNNING { PollFlags::IN } else { PollFlags::empty() };
        let mut sockets = [PollFd::new(stream, events)];
        let step = (!running.is_empty()).then_some(&STEP);
        match poll(&mut sockets, step) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => match stream.read(&mut piece)? {
                0 => return Ok(()),
                octets => received.extend_from_slice(&piece[..octets]),
            },
            Err(error) => return Err(error.into()),
        }
        let mut replies = Vec::new();
        while running.len() < MOST_RUNNING
            && let Some(request) = Request::take(&mut received)?
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
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::thread::JoinHandle;

    use super::*;

    /// A shell script in a new folder.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    /// A helper that serves a program.
    struct Asked {
        ours: Option<UnixStream>,
        helper: Option<JoinHandle<io::Result<()>>>,
    }

    impl Asked {
        fn new(path: &Path, limit: Duration) -> Self {
            let (ours, its) = UnixStream::pair().unwrap();
            let path = path.to_owned();
            let helper = std::thread::Builder::new().spawn(move || serve(&its, &path, limit));
            Self { ours: Some(ours), helper: Some(helper.unwrap()) }
        }

        /// Sends a request; returns the reply.
        fn ask(&mut self, request: &Request) -> String {
            let ours = self.ours.as_mut().unwrap();
            ours.write_all(&request.encode()).unwrap();
            let mut line = String::new();
            BufReader::new(ours).read_line(&mut line).unwrap();
            line
        }
    }

    impl Drop for Asked {
        fn drop(&mut self) {
            self.ours = None;
            self.helper.take().unwrap().join().unwrap().unwrap();
        }
    }

    /// Waits until a process has been killed. It may remain as a zombie, without a command line.
    fn wait_for_end(pid: &str) {
        let ended = (0..1_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty())
                || !Path::new("/proc").join(pid).exists()
        });
        assert!(ended, "{pid} still runs");
    }

    #[test]
    fn a_program_gets_an_alert_and_its_result_is_the_reply() {
        let text = "cat > $(dirname $0)/$RINGTAP_ALERT_ID; exit $RINGTAP_ALERT_ID";
        let (folder, path) = script(text);
        let mut asked = Asked::new(&path, Duration::from_secs(60));
        for (id, reply) in [("0", "\n"), ("3", "exit status: 3\n")] {
            let variables = vec![format!("RINGTAP_ALERT_ID={id}")];
            let request = Request { json: format!("{{\"id\":{id}}}"), variables };
            assert_eq!(asked.ask(&request), reply);
            let read = std::fs::read_to_string(folder.path().join(id)).unwrap();
            assert_eq!(read, format!("{{\"id\":{id}}}\n"));
        }
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let (folder, path) = script("sleep 600 & echo $! > $(dirname $0)/child; sleep 600");
        let reply = Asked::new(&path, Duration::from_secs(3)).ask(&Request::default());
        assert_eq!(reply, "it ran for more than 3 s and was killed\n");
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        wait_for_end(child.trim());
    }

    #[test]
    fn what_a_program_leaves_behind_is_killed() {
        let (folder, path) = script("sleep 600 & echo $! > $(dirname $0)/child");
        let mut asked = Asked::new(&path, Duration::from_secs(60));
        assert_eq!(asked.ask(&Request::default()), "\n");
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        wait_for_end(child.trim());
    }

    #[test]
    fn a_program_need_not_read_and_may_read_slowly() {
        let json = "x".repeat(1 << 20);
        let request = Request { json, variables: Vec::new() };
        let (_folder, path) = script("exit 0");
        assert_eq!(Asked::new(&path, Duration::from_secs(60)).ask(&request), "\n");
        let (folder, path) = script("sleep 0.1; wc -c > $(dirname $0)/count");
        assert_eq!(Asked::new(&path, Duration::from_secs(60)).ask(&request), "\n");
        let count = std::fs::read_to_string(folder.path().join("count")).unwrap();
        assert_eq!(count.trim(), "1048577");
        let (_folder, path) = script("exec sleep 600");
        let reply = Asked::new(&path, Duration::from_millis(200)).ask(&request);
        assert_eq!(reply, "it ran for more than 0.2 s and was killed\n");
    }

    #[test]
    fn only_variables_of_alerts_are_set() {
        let text = "env > $(dirname $0)/env";
        let (folder, path) = script(text);
        let variables = [
            "RINGTAP_ALERT_ID=7",
            "LD_PRELOAD=/x",
            "PATH=/x",
            "RINGTAP_ALERT_=1",
            "RINGTAP_ALERT_x=1",
            "RINGTAP_ALERT_NONE",
        ];
        let variables = variables.map(String::from).to_vec();
        let request = Request { json: "{}".into(), variables };
        assert_eq!(Asked::new(&path, Duration::from_secs(60)).ask(&request), "\n");
        let got = std::fs::read_to_string(folder.path().join("env")).unwrap();
        assert!(got.contains("RINGTAP_ALERT_ID=7\n") && !got.contains("LD_PRELOAD"), "{got}");
        assert!(!got.contains("PATH=/x"), "{got}");
        assert_eq!(got.matches("RINGTAP_ALERT_").count(), 1, "{got}");
    }

    #[test]
    fn the_end_of_the_errors_is_in_the_reply() {
        let (_folder, path) =
            script("yes 2>/dev/null | head -c 100000 >&2; printf 'no\\033 host\\n' >&2; exit 3");
        let reply = Asked::new(&path, Duration::from_secs(60)).ask(&Request::default());
        assert!(
            reply.starts_with("exit status: 3: ") && reply.ends_with("no\\u{1b} host\n"),
            "{reply}"
        );
        assert!(reply.len() <= "exit status: 3: \\u{1b}".len() + 200, "{reply}");
    }

    #[test]
    fn a_request_that_is_too_long_ends_the_helper() {
        let (mut ours, its) = UnixStream::pair().unwrap();
        ours.write_all(&u32::MAX.to_le_bytes()).unwrap();
        let error = serve(&its, Path::new("/bin/true"), Duration::from_secs(60)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a request of 4294967295 octets: at most 4194304 are allowed"
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

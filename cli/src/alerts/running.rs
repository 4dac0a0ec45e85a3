//! A program that runs for an alert.
//!
//! It gets the JSON object on its standard input and the fields as variables `RINGTAP_ALERT_…`; its output is discarded.
//! The end of its errors is in the reply, if it fails. No call waits for it, whether it reads or not.
//! When it ends, or runs too long, its process group is killed.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ringtap_base::text::shown;
use ringtap_export::{Reply, Request};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The beginning of the names of all variables.
const VARIABLE: &str = "RINGTAP_ALERT_";

/// Most bytes of a program's errors in a reply.
const SHOWN: usize = 200;

/// Most reads of errors in one step, so that a program that always writes does not stop the helper.
const READS: usize = 16;

pub(super) struct Running {
    child: Child,
    since: Instant,
    /// Closed when all is written.
    input: Option<ChildStdin>,
    /// What is left to write, from this position.
    object: Vec<u8>,
    written: usize,
    errors: Option<ChildStderr>,
    /// The end of the errors.
    last: Vec<u8>,
}

impl Running {
    /// Starts the program for a request.
    pub(super) fn start(program: &OsStr, request: &Request) -> io::Result<Self> {
        let variables = request.variables.iter().filter_map(|text| text.split_once('='));
        let mut child = Command::new(program)
            .envs(variables.filter(|(name, _)| is_of_alerts(name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (input, errors) = (child.stdin.take(), child.stderr.take());
        let object = format!("{}\n", request.json).into_bytes();
        let last = Vec::new();
        let mut started = Self { child, since: now(), input, object, written: 0, errors, last };
        if let Err(error) = started.do_not_wait() {
            let _ = started.kill();
            return Err(error);
        }
        started.write();
        Ok(started)
    }

    /// Makes reads and writes at our ends of the pipes return at once.
    fn do_not_wait(&self) -> io::Result<()> {
        let pipes = [self.input.as_ref().map(AsFd::as_fd), self.errors.as_ref().map(AsFd::as_fd)];
        pipes.into_iter().flatten().try_for_each(|pipe| {
            let flags = fcntl_getfl(pipe)?;
            Ok(fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
        })
    }

    /// Continues its input and errors. Returns the result, once it has ended.
    pub(super) fn check(&mut self, limit: Duration) -> Option<Reply> {
        self.write();
        self.read();
        // Its number must not be free before its group is killed.
        let id = WaitId::Pid(Pid::from_child(&self.child));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(id, options) {
            Ok(Some(_)) => {
                // Once more: what it wrote last.
                self.read();
                Some(Reply(self.kill().map_err(|error| error.to_string()).and_then(|status| {
                    if status.success() { Ok(()) } else { Err(self.failure(status)) }
                })))
            }
            Ok(None) | Err(rustix::io::Errno::INTR) if self.since.elapsed() < limit => None,
            Ok(None) | Err(rustix::io::Errno::INTR) => {
                let killed = self.kill();
                let seconds = limit.as_secs_f64();
                let text = format!("it ran for more than {seconds} s and was killed");
                Some(Reply(Err(killed.map_or_else(|error| error.to_string(), |_| text))))
            }
            Err(error) => {
                let _ = self.kill();
                Some(Reply(Err(error.to_string())))
            }
        }
    }

    /// Kills its process group; returns its status.
    pub(super) fn kill(&mut self) -> io::Result<ExitStatus> {
        // The group may have no process left.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait()
    }

    /// Writes as much of the object as the pipe takes. A program need not read it.
    fn write(&mut self) {
        while let Some(input) = &mut self.input {
            match input.write(&self.object[self.written..]) {
                Ok(octets) if octets > 0 => self.written += octets,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => self.input = None,
            }
        }
    }

    /// Reads errors, and keeps the last ones.
    fn read(&mut self) {
        let mut piece = [0; 4096];
        for _ in 0..READS {
            let Some(errors) = &mut self.errors else { return };
            match errors.read(&mut piece) {
                Ok(octets) if octets > 0 => {
                    self.last.extend_from_slice(&piece[..octets]);
                    self.last.drain(..self.last.len().saturating_sub(SHOWN));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => self.errors = None,
            }
        }
    }

    /// Why it failed.
    fn failure(&self, status: ExitStatus) -> String {
        let errors = String::from_utf8_lossy(&self.last).replace(char::is_whitespace, " ");
        match errors.trim() {
            "" => status.to_string(),
            errors => format!("{status}: {}", shown(errors)),
        }
    }
}

/// Whether a variable is one for alerts; others would change the program or its libraries.
fn is_of_alerts(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.strip_prefix(VARIABLE).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_valid))
}

#[expect(clippy::disallowed_methods, reason = "how long a program runs is not packet time")]
fn now() -> Instant {
    Instant::now()
}

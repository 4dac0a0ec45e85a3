//! Helpers to run programs in the network namespaces of a test, and to read and write small
//! captures.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) use ringtap_testkit::{End, Left, Net, Right};

/// Methods of [`Net`] that run `ringtap`.
pub(crate) trait NetCommands {
    /// The command in the namespace of an end.
    fn ringtap(&self, end: End, flags: &[&str]) -> Command;
    /// Runs the command and returns stdout, stderr and the exit code.
    fn run(&self, end: End, flags: &[&str]) -> (String, String, i32);
}

impl NetCommands for Net {
    fn ringtap(&self, end: End, flags: &[&str]) -> Command {
        let mut command = self.program(end, env!("CARGO_BIN_EXE_ringtap"));
        command.args(flags);
        command
    }

    fn run(&self, end: End, flags: &[&str]) -> (String, String, i32) {
        let output = self.ringtap(end, flags).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    }
}

/// A process that runs in the background of a test. Drop kills it.
pub(crate) struct Background {
    pub(crate) child: Child,
    errors: BufReader<ChildStderr>,
}

/// A process that has not ended this long after [`Background::end`] was called is killed.
const LONGEST: Duration = Duration::from_secs(60);

impl Background {
    /// Starts the command and waits for a line on stderr with `words`.
    pub(crate) fn start(command: Command, words: &str) -> Self {
        let mut process = Self::without_words(command);
        process.wait_for(words);
        process
    }

    /// Starts the command.
    pub(crate) fn without_words(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors }
    }

    /// The next line on stderr with `words`; panics if the process ends before.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let mut seen = Vec::new();
        for line in self.errors.by_ref().lines().map_while(Result::ok) {
            if line.contains(words) {
                return line;
            }
            seen.push(line);
        }
        panic!("the process ended without a line with {words:?}: {seen:?}")
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGINT.
    pub(crate) fn interrupt(&self) {
        self.send(Signal::INT);
    }

    /// Waits for the end and returns stdout, the rest of stderr and the exit code.
    pub(crate) fn end(mut self) -> (Vec<u8>, String, i32) {
        let id = Pid::from_child(&self.child);
        let (done, waiting) = std::sync::mpsc::sync_channel::<()>(1);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if waiting.recv_timeout(LONGEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    let _ = kill_process(id, Signal::KILL);
                }
            });
            let (mut out, mut errors) = (Vec::new(), String::new());
            // A test may have taken stdout to read it.
            if let Some(mut stdout) = self.child.stdout.take() {
                stdout.read_to_end(&mut out).unwrap();
            }
            self.errors.read_to_string(&mut errors).unwrap();
            drop(done);
            let code = self.child.wait().unwrap().code();
            (out, errors, code.expect("no signal ended it"))
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The frames of a plain little-endian pcap file.
pub(crate) fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &bytes[24..];
    let mut frames = Vec::new();
    while let Some((header, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(after[..len].to_vec());
        rest = &after[len..];
    }
    frames
}

/// Writes a capture of these frames, a millisecond apart.
pub(crate) fn capture(path: &std::path::Path, frames: &[Vec<u8>]) {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for (number, frame) in (0_u32..).zip(frames) {
        for field in
            [number / 1_000, number % 1_000 * 1_000, frame.len() as u32, frame.len() as u32]
        {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(frame);
    }
    fs::write(path, bytes).unwrap();
}

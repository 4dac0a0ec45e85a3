//! Programs in the network namespaces of a test, the command above all, and small captures.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) use ringtap_testkit::{End, Left, Net, Right};

/// The command in the namespaces of a test.
pub(crate) trait Within {
    /// The command in the namespace of an end.
    fn ringtap(&self, end: End, flags: &[&str]) -> Command;
    /// The same until it ends: stdout, stderr, exit code.
    fn run(&self, end: End, flags: &[&str]) -> (String, String, i32);
}

impl Within for Net {
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

/// A command that goes on beside the test and does not outlive it.
pub(crate) struct Beside {
    pub(crate) child: Child,
    errors: BufReader<ChildStderr>,
}

/// If a test hangs nevertheless, its children end after so long.
const LONGEST: Duration = Duration::from_secs(60);

impl Beside {
    /// Starts it, and waits until it says these words on stderr.
    pub(crate) fn start(mut command: Command, words: &str) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut beside = Self { child, errors };
        beside.wait_for(words);
        beside
    }

    /// The next line on stderr with these words.
    pub(crate) fn wait_for(&mut self, words: &str) -> String {
        let mut seen = Vec::new();
        for line in self.errors.by_ref().lines().map_while(Result::ok) {
            if line.contains(words) {
                return line;
            }
            seen.push(line);
        }
        panic!("it ended and said {seen:?}, never {words:?}")
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to end.
    pub(crate) fn interrupt(&self) {
        self.send(Signal::INT);
    }

    /// Waits for its end: stdout, what else came on stderr, exit code.
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
            // Somebody else may read it.
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

impl Drop for Beside {
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

/// A capture of these frames, a millisecond apart.
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

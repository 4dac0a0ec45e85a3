//! Two network namespaces joined by a veth pair, and the command within them.
//!
//! ```text
//!  namespace a: left ─── right :namespace b        no IPv6, no addresses: nobody else sends
//! ```

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::have;

/// An end of the pair.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Left,
    Right,
}
pub(crate) use End::{Left, Right};

/// See the module. Dropping it deletes everything.
pub(crate) struct Net {
    names: [String; 2],
}

impl Net {
    /// A pair with one queue each way; `None`, loudly, where that cannot be.
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: network namespaces need root");
            return None;
        }
        if !have("ip") {
            return None;
        }
        let (id, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let net = Self { names: ["a", "b"].map(|end| format!("ringtap-cli-{id}-{number}-{end}")) };
        let [a, b] = &net.names;
        for name in [a, b] {
            if !ip(&format!("netns add {name}")) {
                eprintln!("SKIPPED: the system makes no network namespaces");
                return None;
            }
        }
        for end in [Left, Right] {
            // Else the kernel sends frames of its own.
            let off = "for f in /proc/sys/net/ipv6/conf/{all,default}/disable_ipv6; do \
                       [ ! -e $f ] || echo 1 > $f; done";
            assert!(net.inside(end, "bash").args(["-c", off]).status().unwrap().success());
        }
        assert!(ip(&format!("link add left netns {a} type veth peer name right netns {b}")));
        for (name, link) in [(a, "left"), (a, "lo"), (b, "right"), (b, "lo")] {
            assert!(ip(&format!("-n {name} link set {link} up")));
        }
        Some(net)
    }

    /// A program in the namespace of an end.
    pub(crate) fn inside(&self, end: End, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end as usize], program]).env("NO_COLOR", "1");
        command
    }

    /// The command in the namespace of an end.
    pub(crate) fn ringtap(&self, end: End, flags: &[&str]) -> Command {
        let mut command = self.inside(end, env!("CARGO_BIN_EXE_ringtap"));
        command.args(flags);
        command
    }

    /// The same until it ends: stdout, stderr, exit code.
    pub(crate) fn run(&self, end: End, flags: &[&str]) -> (String, String, i32) {
        let output = self.ringtap(end, flags).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    }

    /// `ip ARGUMENTS` in the namespace of an end.
    pub(crate) fn ip(&self, end: End, arguments: &str) {
        assert!(ip(&format!("-n {} {arguments}", self.names[end as usize])), "ip {arguments}");
    }

    /// What the kernel has counted at the right end.
    pub(crate) fn arrived(&self) -> u64 {
        let arguments = ["-n", &self.names[1], "-j", "-s", "link", "show", "right"];
        let shown = Command::new("ip").args(arguments).output().unwrap();
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().is_ok_and(|it| it.status.success())
}

/// A command that goes on beside the test and does not outlive it.
pub(crate) struct Beside {
    child: Child,
    errors: BufReader<ChildStderr>,
}

/// If a test hangs nevertheless, its children end after so long.
const LONGEST: Duration = Duration::from_secs(60);

impl Beside {
    /// Starts it, and waits until it says these words on stderr.
    pub(crate) fn start(mut command: Command, words: &str) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let more = errors.read_line(&mut line).unwrap() > 0;
            if !more {
                let _ = child.wait();
            }
            assert!(more, "it ended before it said {words:?}");
        }
        Self { child, errors }
    }

    /// Asks it to end.
    pub(crate) fn interrupt(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    }

    /// Waits for its end: stdout, what else came on stderr, exit code.
    pub(crate) fn end(mut self) -> (Vec<u8>, String, i32) {
        let id = rustix::process::Pid::from_child(&self.child);
        let (done, waiting) = std::sync::mpsc::sync_channel::<()>(1);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if waiting.recv_timeout(LONGEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
                }
            });
            let (mut out, mut errors) = (Vec::new(), String::new());
            self.child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
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

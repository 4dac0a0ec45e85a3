//! Programs that tests run.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Runs the command and returns stdout, stderr and the exit code.
pub fn output_of(command: &mut assert_cmd::Command) -> (String, String, i32) {
    let output = command.output().unwrap();
    // Some kernels lack it, and the command says so.
    let is_of_kernel = |line: &&str| !line.contains("this kernel has no Landlock");
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.split_inclusive('\n').filter(is_of_kernel).collect::<String>()
    };
    (text(&output.stdout), text(&output.stderr), output.status.code().expect("no signal ended it"))
}

/// Whether the tool is installed; prints a `SKIPPED` line if not.
pub fn have(tool: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&paths).collect::<Vec<_>>();
    folders.push("/usr/sbin".into());
    let found = folders.iter().any(|folder| folder.join(tool).is_file());
    if !found {
        eprintln!("SKIPPED: {tool} is not installed");
    }
    found
}

/// A process that runs in the background of a test. Drop kills it.
pub struct Background {
    pub child: Child,
    errors: BufReader<ChildStderr>,
}

/// A process that has not ended this long after [`Background::end`] was called is killed.
const LONGEST: Duration = Duration::from_secs(60);
/// A process that has not written a line this long after [`Background::wait_for`] was called is killed.
const LONGEST_WAIT: Duration = Duration::from_secs(180);

impl Background {
    /// Starts the command and waits for a line on stderr with `words`.
    pub fn start(command: Command, words: &str) -> Self {
        let mut process = Self::without_words(command);
        process.wait_for(words);
        process
    }

    /// Starts the command.
    pub fn without_words(mut command: Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors }
    }

    /// The next line on stderr with `words`; panics if the process ends before, or is killed because it writes none.
    pub fn wait_for(&mut self, words: &str) -> String {
        let id = Pid::from_child(&self.child);
        let mut seen = Vec::new();
        let found = or_killed(id, LONGEST_WAIT, || {
            let mut lines = self.errors.by_ref().lines().map_while(Result::ok);
            lines.find(|line| {
                let found = line.contains(words);
                seen.extend((!found).then(|| line.clone()));
                found
            })
        });
        found.unwrap_or_else(|| {
            panic!("the process ended without a line with {words:?}: {seen:?}");
        })
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGINT.
    pub fn interrupt(&self) {
        self.send(Signal::INT);
    }

    /// Waits for the end and returns stdout, the rest of stderr and the exit code.
    pub fn end(mut self) -> (Vec<u8>, String, i32) {
        let id = Pid::from_child(&self.child);
        or_killed(id, LONGEST, || {
            let (mut out, mut errors) = (Vec::new(), String::new());
            // A test may have taken stdout to read it.
            if let Some(mut stdout) = self.child.stdout.take() {
                stdout.read_to_end(&mut out).unwrap();
            }
            self.errors.read_to_string(&mut errors).unwrap();
            let code = self.child.wait().unwrap().code();
            (out, errors, code.expect("no signal ended it"))
        })
    }
}

/// Does `work`, and kills a process if that takes longer.
fn or_killed<T>(id: Pid, longest: Duration, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = std::sync::mpsc::sync_channel::<()>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(longest) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(id, Signal::KILL);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

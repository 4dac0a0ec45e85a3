//! Programs of ndnd, an NDN implementation in Go: pings, objects of many segments, and queries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::relay::support::{Background, output_text, until};

/// The programs of ndnd, and the folder of their logs.
pub(crate) struct Tools {
    program: PathBuf,
    folder: PathBuf,
}

impl Tools {
    /// Built by the test set-up, or installed in PATH. Prints a `SKIPPED` line if ndnd is missing.
    pub(crate) fn find(folder: &Path) -> Option<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/ndnd");
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let installed = std::env::split_paths(&paths).map(|folder| folder.join("ndnd"));
        let found = std::iter::once(built).chain(installed).find(|path| path.is_file());
        if found.is_none() {
            eprintln!("SKIPPED: ndnd is not installed (scripts/setup-test.sh builds it, with Go)");
        }
        Some(Self { program: found?, folder: folder.to_owned() })
    }

    /// A program that connects to a forwarder's socket.
    pub(crate) fn program(&self, socket: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env("NDN_CLIENT_TRANSPORT", format!("unix://{}", socket.display()));
        command
    }

    /// Starts a program in the background; its output goes to the file `log`.
    pub(crate) fn background(&self, socket: &Path, words: &[&str], log: &str) -> Background {
        Background::start(&mut self.program(socket, words), &self.folder.join(log))
    }

    /// The output of a program, which must succeed.
    pub(crate) fn output(&self, socket: &Path, words: &[&str]) -> String {
        let output = self.program(socket, words).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output_text(&output));
        output_text(&output)
    }

    /// Repeats a ping until five of five Interests are answered: servers need time to register, and
    /// routing daemons to announce their prefixes.
    pub(crate) fn ping(&self, socket: &Path, prefix: &str) {
        let words = ["ping", prefix, "-c", "5", "-i", "20", "-t", "1000"];
        until("five pings are answered", || {
            let output = self.output(socket, &words);
            if output.contains("5 received, 0% lost") { Ok(()) } else { Err(output) }
        });
    }

    /// Serves an object of many segments at the socket `to`, fetches it from `from`, and compares
    /// it.
    pub(crate) fn fetch(&self, from: &Path, to: &Path, name: &str) {
        let object = self.folder.join("object");
        let bytes: Vec<u8> = (0..300_000_u64).map(|n| ((n * n) >> 7) as u8).collect();
        fs::write(&object, &bytes).unwrap();
        let mut put = self.program(to, &["put", name]);
        let mut put = put.stdin(fs::File::open(&object).unwrap());
        let log = fs::File::create(self.folder.join("put.log")).unwrap();
        put = put.stdout(Stdio::null()).stderr(log);
        let mut serving = put.spawn().unwrap();
        let mut fetched = Vec::new();
        until("the object is fetched", || {
            let output = self.program(from, &["cat", name]).output().unwrap();
            fetched.clone_from(&output.stdout);
            if output.status.success() { Ok(()) } else { Err(output_text(&output)) }
        });
        let _ = serving.kill();
        let _ = serving.wait();
        assert!(fetched == bytes, "{} bytes of {}", fetched.len(), bytes.len());
    }
}

//! Together with ndnd, a forwarder and its programs in Go: pings and objects of many segments through both, either
//! way round.
//!
//! ```text
//!  ping ─▶ ringtap ─ UDP ─▶ ndnd ─▶ ping server         ping ─▶ ndnd ─ UDP ─▶ ringtap ─▶ ping server
//! ```

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::relay::support::{Beside, Ours, free_address, told, until};

/// The program: as the test set-up builds it, or wherever it is installed.
fn ndnd() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/ndnd");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&paths).map(|folder| folder.join("ndnd"));
    let found = std::iter::once(built).chain(installed).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: ndnd is not here (scripts/setup-test.sh builds it, with Go)");
    }
    found
}

/// ndnd's forwarder.
struct Theirs {
    program: PathBuf,
    udp: SocketAddr,
    socket: PathBuf,
    folder: PathBuf,
    _running: Beside,
}

impl Theirs {
    fn start(program: &Path, folder: &Path) -> Self {
        let (udp, socket) = (free_address(), folder.join("ndnd.sock"));
        let config = folder.join("ndnd.yml");
        let text = format!(
            "core:\n  log_level: WARN\n\
             faces:\n  udp:\n    enabled_multicast: false\n    port_unicast: {}\n\
             \x20 tcp:\n    enabled: false\n  websocket:\n    enabled: false\n\
             \x20 unix:\n    socket_path: {}\nfw:\n  threads: 2\n",
            udp.port(),
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        let log = folder.join("ndnd.log");
        let running = Beside::start(command.args(["fw", "run"]).arg(&config), &log);
        until("does ndnd listen", || match socket.exists() {
            true => Ok(()),
            false => Err(fs::read_to_string(&log).unwrap_or_default()),
        });
        let (program, folder) = (program.to_owned(), folder.to_owned());
        Self { program, udp, socket, folder, _running: running }
    }

    /// A program of ndnd at a forwarder's socket.
    fn program(&self, socket: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env("NDN_CLIENT_TRANSPORT", format!("unix://{}", socket.display()));
        command
    }

    fn beside(&self, socket: &Path, words: &[&str]) -> Beside {
        let log = self.folder.join(format!("{}.log", words[0]));
        Beside::start(&mut self.program(socket, words), &log)
    }

    /// What it said, once it has ended well.
    fn said(&self, socket: &Path, words: &[&str]) -> String {
        let output = self.program(socket, words).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", told(&output));
        told(&output)
    }

    /// Pings until five of five come back; the server may need a moment to announce itself.
    fn ping(&self, socket: &Path, prefix: &str) {
        let words = ["ping", prefix, "-c", "5", "-i", "20", "-t", "1000"];
        until("are there five answers", || {
            let said = self.said(socket, &words);
            if said.contains("5 received, 0% lost") { Ok(()) } else { Err(said) }
        });
    }

    /// Fetches an object of many segments, and compares it.
    fn fetch(&self, from: &Path, to: &Path, name: &str) {
        let object = self.folder.join("object");
        let bytes: Vec<u8> = (0..300_000_u64).map(|n| ((n * n) >> 7) as u8).collect();
        fs::write(&object, &bytes).unwrap();
        let mut put = self.program(to, &["put", name]);
        let mut put = put.stdin(fs::File::open(&object).unwrap());
        let log = fs::File::create(self.folder.join("put.log")).unwrap();
        put = put.stdout(Stdio::null()).stderr(log);
        let mut serving = put.spawn().unwrap();
        let mut fetched = Vec::new();
        until("is the object there", || {
            let output = self.program(from, &["cat", name]).output().unwrap();
            fetched.clone_from(&output.stdout);
            if output.status.success() { Ok(()) } else { Err(told(&output)) }
        });
        let _ = serving.kill();
        let _ = serving.wait();
        assert!(fetched == bytes, "{} bytes of {}", fetched.len(), bytes.len());
    }
}

#[test]
fn asked_at_ringtap_and_answered_behind_ndnd() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let theirs = Theirs::start(&program, folder.path());
    let ours = Ours::start(folder.path(), &[("/behind", theirs.udp)]);
    let _server = theirs.beside(&theirs.socket, &["pingserver", "/behind/them"]);
    theirs.ping(&ours.socket, "/behind/them");
    theirs.fetch(&ours.socket, &theirs.socket, "/behind/object");
    let report = ours.end();
    assert!(report.forwarder.interests_out > 35 && report.forwarder.data_in > 35, "{report:?}");
    // It gives our tokens back.
    assert!(report.forwarder.tokens_right > 35, "{report:?}");
}

#[test]
fn asked_at_ndnd_and_answered_behind_ringtap() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let theirs = Theirs::start(&program, folder.path());
    let ours = Ours::start(folder.path(), &[]);
    let route = format!("face=udp4://{}", ours.udp);
    theirs.said(&theirs.socket, &["fw", "route-add", "prefix=/behind", &route]);
    // It announces its prefix to ringtap.
    let _server = theirs.beside(&ours.socket, &["pingserver", "/behind/us"]);
    theirs.ping(&theirs.socket, "/behind/us");
    theirs.fetch(&theirs.socket, &ours.socket, "/behind/object");
    let report = ours.end();
    assert!(report.forwarder.data_out > 35 && report.managed() >= 2, "{report:?}");
}

#[test]
fn the_tools_of_ndnd_ask_and_change_ringtap() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let theirs = Theirs::start(&program, folder.path());
    let ours = Ours::start(folder.path(), &[("/a", theirs.udp)]);
    let said = |words: &[&str]| theirs.said(&ours.socket, &[&["fw"], words].concat());
    assert!(said(&["status"]).contains("ringtap test"), "{}", said(&["status"]));
    assert!(said(&["face-list"]).contains(&format!("udp4://{}", theirs.udp)));
    assert!(said(&["route-list"]).contains("/a"), "{}", said(&["route-list"]));
    let made = said(&["route-add", "prefix=/b", "face=udp4://127.0.0.1:9", "cost=7"]);
    assert!(made.contains("Status=200"), "{made}");
    assert!(said(&["fib-list"]).contains("/b"), "{}", said(&["fib-list"]));
    assert!(said(&["strategy-list"]).contains("best-route"), "{}", said(&["strategy-list"]));
    said(&["strategy-set", "prefix=/b", "strategy=/localhost/nfd/strategy/multicast/v=1"]);
    assert!(said(&["strategy-list"]).contains("multicast"));
    said(&["strategy-unset", "prefix=/b"]);
    assert!(said(&["cs-info"]).contains("65536"), "{}", said(&["cs-info"]));
    let removed = said(&["route-remove", "prefix=/b", "face=udp4://127.0.0.1:9"]);
    assert!(removed.contains("Status=200"), "{removed}");
    ours.end();
}

//! Tests with ndnd, a forwarder with programs in Go: pings and objects of many segments through
//! both forwarders, in both directions.
//!
//! ```text
//!  ping ─▶ ringtap ─ UDP ─▶ ndnd ─▶ ping server         ping ─▶ ndnd ─ UDP ─▶ ringtap ─▶ ping server
//! ```

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringtap_ndn::faces::Remote;
use ringtap_ndn::relay::FaceReport;

use crate::relay::support::{
    Background, Ringtap, free_address, free_tcp_address, output_text, until,
};

/// The path of the program ndnd: built by the test set-up, or installed in PATH. Prints a `SKIPPED`
/// line if it is missing.
fn ndnd() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/ndnd");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&paths).map(|folder| folder.join("ndnd"));
    let found = std::iter::once(built).chain(installed).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: ndnd is not installed (scripts/setup-test.sh builds it, with Go)");
    }
    found
}

/// A running forwarder of ndnd.
struct Ndnd {
    program: PathBuf,
    udp: SocketAddr,
    tcp: SocketAddr,
    socket: PathBuf,
    folder: PathBuf,
    _running: Background,
}

impl Ndnd {
    fn start(program: &Path, folder: &Path) -> Self {
        let (udp, tcp) = (free_address(), free_tcp_address());
        let socket = folder.join("ndnd.sock");
        let config = folder.join("ndnd.yml");
        let text = format!(
            "core:\n  log_level: WARN\n\
             faces:\n  udp:\n    enabled_multicast: false\n    port_unicast: {}\n\
             \x20 tcp:\n    port_unicast: {}\n  websocket:\n    enabled: false\n\
             \x20 unix:\n    socket_path: {}\nfw:\n  threads: 2\n",
            udp.port(),
            tcp.port(),
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        let log = folder.join("ndnd.log");
        let running = Background::start(command.args(["fw", "run"]).arg(&config), &log);
        until("ndnd listens", || match socket.exists() {
            true => Ok(()),
            false => Err(fs::read_to_string(&log).unwrap_or_default()),
        });
        let (program, folder) = (program.to_owned(), folder.to_owned());
        Self { program, udp, tcp, socket, folder, _running: running }
    }

    /// A program of ndnd that connects to a forwarder's socket.
    fn program(&self, socket: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).env("NDN_CLIENT_TRANSPORT", format!("unix://{}", socket.display()));
        command
    }

    /// Starts a program of ndnd in the background.
    fn background(&self, socket: &Path, words: &[&str]) -> Background {
        let log = self.folder.join(format!("{}.log", words[0]));
        Background::start(&mut self.program(socket, words), &log)
    }

    /// The output of a program of ndnd, which must succeed.
    fn output(&self, socket: &Path, words: &[&str]) -> String {
        let output = self.program(socket, words).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output_text(&output));
        output_text(&output)
    }

    /// Repeats a ping until five of five Interests are answered: the server needs time to register.
    fn ping(&self, socket: &Path, prefix: &str) {
        let words = ["ping", prefix, "-c", "5", "-i", "20", "-t", "1000"];
        until("five pings are answered", || {
            let output = self.output(socket, &words);
            if output.contains("5 received, 0% lost") { Ok(()) } else { Err(output) }
        });
    }

    /// Serves an object of many segments at the socket `to`, fetches it from `from`, and compares
    /// it.
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

#[test]
fn ringtap_reaches_producers_behind_ndnd() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ndnd_node = Ndnd::start(&program, folder.path());
    // The prefix is one component long, the names are longer: all workers get some.
    let ringtap = Ringtap::with_workers(folder.path(), &[("/behind", ndnd_node.udp)], 3);
    let _server = ndnd_node.background(&ndnd_node.socket, &["pingserver", "/behind/them"]);
    ndnd_node.ping(&ringtap.socket, "/behind/them");
    ndnd_node.fetch(&ringtap.socket, &ndnd_node.socket, "/behind/object");
    let report = ringtap.end();
    assert!(report.forwarder.interests_out > 35 && report.forwarder.data_in > 35, "{report:?}");
    // ndnd returns our PIT tokens.
    assert!(report.forwarder.tokens_right > 35, "{report:?}");
}

#[test]
fn ndnd_reaches_producers_behind_ringtap() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ndnd_node = Ndnd::start(&program, folder.path());
    let ringtap = Ringtap::with_workers(folder.path(), &[], 2);
    let route = format!("face=udp4://{}", ringtap.udp);
    ndnd_node.output(&ndnd_node.socket, &["fw", "route-add", "prefix=/behind", &route]);
    // The server registers its prefix at ringtap.
    let _server = ndnd_node.background(&ringtap.socket, &["pingserver", "/behind/us"]);
    ndnd_node.ping(&ndnd_node.socket, "/behind/us");
    ndnd_node.fetch(&ndnd_node.socket, &ringtap.socket, "/behind/object");
    let report = ringtap.end();
    assert!(report.forwarder.data_out > 35 && report.managed() >= 2, "{report:?}");
}

#[test]
fn both_forwarders_reach_each_other_over_tcp() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ndnd_node = Ndnd::start(&program, folder.path());
    let routes = vec![("/there", Remote::Tcp(ndnd_node.tcp))];
    let ringtap = Ringtap::with_neighbours(folder.path(), routes, 2);
    let route = format!("face=tcp4://{}", ringtap.tcp);
    ndnd_node.output(&ndnd_node.socket, &["fw", "route-add", "prefix=/here", &route]);
    let _there = ndnd_node.background(&ndnd_node.socket, &["pingserver", "/there/ping"]);
    ndnd_node.ping(&ringtap.socket, "/there/ping");
    ndnd_node.fetch(&ringtap.socket, &ndnd_node.socket, "/there/object");
    let _here = ndnd_node.background(&ringtap.socket, &["pingserver", "/here/ping"]);
    ndnd_node.ping(&ndnd_node.socket, "/here/ping");
    ndnd_node.fetch(&ndnd_node.socket, &ringtap.socket, "/here/object");
    let report = ringtap.end();
    let is_tcp = |face: &FaceReport| face.remote.starts_with("tcp4://");
    let data: Vec<_> =
        report.faces.iter().filter(|face| is_tcp(face)).map(|face| face.counters).collect();
    assert_eq!(data.len(), 2, "{report:?}");
    assert!(data.iter().any(|face| face.data_in > 35), "{report:?}");
    assert!(data.iter().any(|face| face.data_out > 35), "{report:?}");
}

#[test]
fn ndnd_tools_query_and_configure_ringtap() {
    let Some(program) = ndnd() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ndnd_node = Ndnd::start(&program, folder.path());
    let ringtap = Ringtap::start(folder.path(), &[("/a", ndnd_node.udp)]);
    let output = |words: &[&str]| ndnd_node.output(&ringtap.socket, &[&["fw"], words].concat());
    assert!(output(&["status"]).contains("ringtap test"), "{}", output(&["status"]));
    assert!(output(&["face-list"]).contains(&format!("udp4://{}", ndnd_node.udp)));
    assert!(output(&["route-list"]).contains("/a"), "{}", output(&["route-list"]));
    let made = output(&["route-add", "prefix=/b", "face=udp4://127.0.0.1:9", "cost=7"]);
    assert!(made.contains("Status=200"), "{made}");
    assert!(output(&["fib-list"]).contains("/b"), "{}", output(&["fib-list"]));
    assert!(output(&["strategy-list"]).contains("best-route"), "{}", output(&["strategy-list"]));
    output(&["strategy-set", "prefix=/b", "strategy=/localhost/nfd/strategy/multicast/v=1"]);
    assert!(output(&["strategy-list"]).contains("multicast"));
    output(&["strategy-unset", "prefix=/b"]);
    assert!(output(&["cs-info"]).contains("65536"), "{}", output(&["cs-info"]));
    let removed = output(&["route-remove", "prefix=/b", "face=udp4://127.0.0.1:9"]);
    assert!(removed.contains("Status=200"), "{removed}");
    ringtap.end();
}

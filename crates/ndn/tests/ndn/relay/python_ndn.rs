//! A producer and a consumer with python-ndn, an NDN library in Python, at a relay's socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::relay::client::Client;
use crate::relay::support::{Background, Ringtap, output_text, plans, until};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ndn/relay/python_ndn.py");

/// What the consumer prints while the producer runs.
const EXPECTED: &str = "\
/py/text/1: /py/text/1 4 b'text'
/py/longer: /py/longer/newest 6 b'newest'
/py/longer/exactly: timeout
/py/count/1: /py/count/1 1 b'1'
/py/count/1: /py/count/1 1 b'1'
/py/count/1: /py/count/1 1 b'2'
/py/count/1: /py/count/1 1 b'2'
/py/silent/1: timeout
/elsewhere: Nack 150
object: 125 segments True
";

/// A Python with python-ndn. Prints a `SKIPPED` line if it is missing.
fn python() -> Option<PathBuf> {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-tools/venv/bin/python");
    let has_ndn = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", "import ndn.appv2"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let found = Some(PathBuf::from(python)).filter(has_ndn);
    if found.is_none() {
        eprintln!("SKIPPED: no python-ndn for Python (scripts/setup-test.sh fetches it)");
    }
    found
}

/// A command that runs a role of the script, for at most a minute.
fn role(python: &Path, role: &str, socket: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg("60").arg(python).arg(SCRIPT).arg(role).arg(socket);
    command
}

#[test]
fn python_ndn_programs_exchange_packets() {
    let Some(python) = python() else { return };
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let relay = Ringtap::with(folder.path(), plan);
        let log = folder.path().join("producer.log");
        let producer = Background::start(&mut role(&python, "producer", &relay.socket), &log);
        until("the producer has registered", || {
            let text = fs::read_to_string(&log).unwrap();
            if text.contains("ready\n") { Ok(()) } else { Err(text) }
        });
        let output = role(&python, "consumer", &relay.socket).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), EXPECTED, "{}", output_text(&output));
        drop(producer);
        let mut client = Client::unix(&relay.socket);
        until("the routes are removed", || match client.routes() {
            routes if routes.is_empty() => Ok(()),
            routes => Err(format!("{routes:?}")),
        });
        let report = relay.end();
        assert!(report.managed() >= 5 && report.forwarder.nacks_out == 1, "{report:?}");
        // The Data with the longer name is unsolicited.
        assert_eq!(report.dropped(), [("no-route", 1), ("unsolicited", 1)], "{report:?}");
    }
}

//! One minute of the soak test: a live run with all kinds of failures at once. A separate test
//! program, so that no other test runs in parallel. `scripts/soak.sh` takes half an hour by
//! default.
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

use std::path::Path;
use std::process::Command;

#[test]
fn a_minute_of_failures_leaves_no_packet_or_record_unaccounted_for() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for tool in ["ip", "python3", "mount"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return eprintln!("SKIPPED: {tool} is not installed");
        }
    }
    let name = format!("soak-test-{}", std::process::id());
    let namespace = |verb| Command::new("ip").args(["netns", verb, &name]).output();
    if !namespace("add").is_ok_and(|output| output.status.success()) {
        return eprintln!("SKIPPED: network namespaces need root");
    }
    let _ = namespace("del");
    let mut soak = Command::new(folder.join("scripts/soak.sh"));
    let output = soak.arg("60").env("RINGTAP", env!("CARGO_BIN_EXE_ringtap")).output();
    let output = output.expect("bash runs the script");
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{out}");
    assert!(output.status.success(), "{out}{errors}");
}

//! A minute of the soak: everything that goes wrong in a live run, at once. In a program of its own, so that no other test
//! runs beside it; `scripts/soak.sh` alone takes half an hour.
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use std::path::Path;
use std::process::Command;

#[test]
fn a_minute_of_everything_that_goes_wrong_loses_nothing_unnamed() {
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

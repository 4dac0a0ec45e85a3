//! Half a minute of mutated captures under random arrangements and flags (ten minutes with
//! RINGTAP_FULL=1): `scripts/mutate.py` describes the cases. A separate test program, so that no other test runs
//! in parallel.
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

use std::path::Path;
use std::process::Command;

#[test]
fn mutated_captures_have_one_answer_and_bounded_memory() {
    if Command::new("python3").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: python3 is not installed");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/mutate.py");
    // The long run has cases of its own.
    let (seconds, seed) = match std::env::var("RINGTAP_FULL") {
        Ok(value) if value == "1" => ("600", "1000000"),
        _ => ("30", "1"),
    };
    let output = Command::new("python3")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_ringtap"))
        .args(["--seconds", seconds, "--seed", seed])
        .output()
        .expect("python3 runs the script");
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{out}");
    assert!(output.status.success(), "{out}{errors}");
}

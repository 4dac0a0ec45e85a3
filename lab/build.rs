//! Tells the lab which commit it is built from: each row of its results says so.

use std::process::Command;

fn main() {
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changes| !changes.is_empty());
    println!("cargo:rustc-env=RINGTAP_COMMIT={commit}{}", if changed { "-changed" } else { "" });
    // The head moves with each commit, and its log with it.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=../experiments");
    println!("cargo:rerun-if-changed=src");
}

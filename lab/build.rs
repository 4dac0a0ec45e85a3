//! Build script: passes the commit to the program, which records it in each row of results.

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
    // Each commit changes HEAD, and git appends a line to its log.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=../experiments");
    println!("cargo:rerun-if-changed=src");
}

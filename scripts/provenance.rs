// Included by the build scripts of the programs: passes commit, profile, features, target and compiler
// to the program, which prints them with `--version`.
//
// Builds of the profile `dev` have no commit: otherwise each commit would build all tests anew. A source
// archive has no commit either, unless RINGTAP_COMMIT names it.

use std::path::Path;
use std::process::Command;

/// Sets RINGTAP_COMMIT, RINGTAP_PROFILE, RINGTAP_FEATURES, RINGTAP_TARGET and RINGTAP_COMPILER.
fn record_build() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // OUT_DIR is target/PROFILE/build/PACKAGE-HASH/out.
    let out = variable("OUT_DIR");
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.map_or("unknown".into(), |name| name.to_string_lossy().into_owned());
    let commit = if profile == "debug" { "development".to_owned() } else { commit() };
    let mut features: Vec<_> = std::env::vars()
        .filter_map(|(name, _)| Some(name.strip_prefix("CARGO_FEATURE_")?.to_lowercase()))
        .filter(|name| name != "default")
        .collect();
    features.sort_unstable();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(",") };
    let compiler = output(&variable("RUSTC"), &["--version"]).unwrap_or_else(|| "unknown".into());
    for (name, value) in [
        ("COMMIT", commit),
        ("PROFILE", profile),
        ("FEATURES", features),
        ("TARGET", variable("TARGET")),
        ("COMPILER", compiler),
    ] {
        println!("cargo:rustc-env=RINGTAP_{name}={value}");
    }
}

/// RINGTAP_COMMIT if it is set, else the commit, with `-changed` if tracked files differ from it.
fn commit() -> String {
    println!("cargo:rerun-if-env-changed=RINGTAP_COMMIT");
    if let Ok(commit) = std::env::var("RINGTAP_COMMIT") {
        return commit;
    }
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut roots = folders.filter(|folder| folder.join("Cargo.lock").exists());
    let Some(root) = roots.next().and_then(Path::to_str) else { return "unknown".into() };
    // A source archive may lie within another repository.
    if !Path::new(root).join(".git").exists() {
        return "unknown".into();
    }
    let git = |words: &[&str]| output("git", &[&["-C", root][..], words].concat());
    // Each commit changes HEAD, and git appends a line to its log.
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    for part in ["Cargo.lock", "Cargo.toml", "apps", "cli", "crates", "experiments", "lab", "programs"] {
        println!("cargo:rerun-if-changed={root}/{part}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|changes| !changes.is_empty());
    commit + if changed { "-changed" } else { "" }
}

fn output(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

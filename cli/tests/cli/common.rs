//! Helpers of all tests: the command, the bundled capture and small file systems.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
pub(crate) use ringtap_testkit::{have, output_of};
use serde_json::Value;

/// The command under test, without colours and log settings of the environment.
pub(crate) fn ringtap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    command.env_remove("RINGTAP_LOG").env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1");
    command
}

/// The path of a file in the folder `examples`.
pub(crate) fn example(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    assert!(file.is_file(), "{} is missing from the repository", file.display());
    file
}

pub(crate) fn office() -> PathBuf {
    example("office.pcap")
}

/// The folder of captures of real traffic, if there is one next to the project.
pub(crate) fn real_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces");
    folder.join("MANIFEST.tsv").exists().then_some(folder)
}

/// The bundled capture, and captures of real traffic if `shared/traces` exists.
pub(crate) fn captures() -> Vec<PathBuf> {
    let mut all = vec![office()];
    let Some(folder) = real_folder() else {
        eprintln!("SKIPPED: no folder of real captures next to the project (shared/traces)");
        return all;
    };
    let found = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.extend(found.filter(|path| {
        let is_capture = path.file_name().unwrap().to_string_lossy().starts_with("o0");
        is_capture && path.metadata().is_ok_and(|data| data.len() < 4 << 20)
    }));
    all[1..].sort();
    all
}

/// Runs `monitor -r FILE --report json` with `flags` and returns the report.
pub(crate) fn json(file: &Path, flags: &[&str]) -> Value {
    let output =
        ringtap().args(["monitor", "--report", "json", "-r"]).arg(file).args(flags).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether the process may use cores 0 and 1; prints a `SKIPPED` line if not.
pub(crate) fn have_two_cores() -> bool {
    let both = ringtap_engine::Machine::this().check_cores(&[0, 1]).is_ok();
    if !both {
        eprintln!("SKIPPED: cores 0 and 1 are not both available here");
    }
    both
}

/// Runs the command in a tmpfs of `kib` KiB. Returns stderr, the exit code and the names of the
/// files that it left, which are copied to `folder/left`. Prints a `SKIPPED` line and returns
/// `None` if no tmpfs can be mounted.
pub(crate) fn on_small_disk(
    kib: u32,
    folder: &Path,
    flags: &[&str],
) -> Option<(String, i32, Vec<String>)> {
    on_filled_disk(kib, &[], folder, flags)
}

/// As [`on_small_disk`], with old files of these KiB, the oldest first.
pub(crate) fn on_filled_disk(
    kib: u32,
    old: &[(&str, u32)],
    folder: &Path,
    flags: &[&str],
) -> Option<(String, i32, Vec<String>)> {
    if !rustix::process::geteuid().is_root() || !have("unshare") {
        eprintln!(
            "SKIPPED: a small disk is mounted as root, by unshare (Debian package util-linux)"
        );
        return None;
    }
    let (disk, left) = (folder.join("disk"), folder.join("left"));
    std::fs::create_dir_all(&disk).unwrap();
    let _ = std::fs::remove_dir_all(&left);
    let fill = |(at, (name, kib)): (usize, &(&str, u32))| {
        format!("head -c {kib}k /dev/zero > {name}; touch -d @{} {name}\n", 1_000 + at)
    };
    let fill: String = old.iter().enumerate().map(fill).collect();
    let script = format!(
        "mount -t tmpfs -o size=${{1}}k tmpfs \"$2\" || exit 77; cd \"$2\" || exit 77; to=$3; shift 3
         {fill}\"$@\"; code=$?; cp -a . \"$to\"; exit $code"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh", &kib.to_string()]).arg(&disk).arg(&left);
    command.arg(env!("CARGO_BIN_EXE_ringtap")).args(flags).env("NO_COLOR", "1");
    let (_, errors, code) = output_of(&mut command);
    if code == 77 {
        eprintln!("SKIPPED: the system mounts no small disk: {errors}");
        return None;
    }
    let files = std::fs::read_dir(&left).unwrap();
    let mut files: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    Some((errors, code, files))
}

//! `--memory` is a promise: a flood of more flows than there is room for, down a pipe.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const RINGTAP: &str = env!("CARGO_BIN_EXE_ringtap");

/// Packets of a flood, each a flow of its own. RINGTAP_FLOOD sets another number, say 20000000.
fn packets() -> u64 {
    let asked = std::env::var("RINGTAP_FLOOD").ok();
    asked.map_or(3_000_000, |text| text.parse().expect("RINGTAP_FLOOD is a number"))
}

/// Lets the monitor meter a flood with so much memory, and checks what holds whatever the flags.
fn flood(profile: &Path, mebibytes: u64, flags: &[&str]) {
    let packets = packets();
    let mut source = Command::new(RINGTAP)
        .args(["generate", "-w", "-", "--packets", &packets.to_string(), "--profile"])
        .arg(profile)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    // The flood ends by itself, and so does the monitor: at the end of the pipe.
    let status = Command::new(RINGTAP)
        .args(["monitor", "-r", "-", "--report", "json", "--quiet"])
        .args(["--memory", &format!("{mebibytes}M")])
        .args(flags)
        .stdin(source.stdout.take().unwrap())
        .stdout(File::create(&report).unwrap())
        .status()
        .unwrap();
    assert!(source.wait().unwrap().success() && status.success(), "{flags:?}");
    let report: Value = serde_json::from_reader(File::open(&report).unwrap()).unwrap();
    let number = |path: &str| report.pointer(path).unwrap().as_u64().unwrap();

    assert_eq!(number("/packets/handled"), packets, "{flags:?}");
    assert_eq!(number("/ledger/residual"), 0, "{flags:?}");
    assert_eq!(number("/flows/records"), packets, "{flags:?}: every packet is in a record");
    let peak = number("/performance/peak_rss_bytes");
    let room = number("/plan/max_flows");
    assert!(peak <= mebibytes << 20, "{flags:?}: {peak} bytes for {room} flows");
    // Nor is it so careful that most of the memory lies idle.
    assert!(peak >= mebibytes << 19, "{flags:?}: {peak} bytes for {room} flows");
    // Each worker has its part of the room, rounded up.
    let early = number("/flows/end_reasons/lack_of_resources");
    let stayed = packets - early;
    assert!(early > 0 && stayed.abs_diff(room) < 10, "{flags:?}: {early} early, room for {room}");
}

#[test]
fn a_flood_of_flows_stays_within_the_memory_and_is_metered_to_the_last_packet() {
    let named = Path::new("flood");
    let flows = ["--analyses", "flows", "--write", "csv:/dev/null"];
    flood(named, 256, &[&flows[..], &["--sequential"]].concat());
    flood(named, 256, &[&flows[..], &["-w", "2"]].concat());
}

#[test]
fn so_does_one_of_ipv6() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flood6.toml");
    let flood6 = "flows = 0\nsize = 64\npackets_per_second = 1000000\n\
                  [[floods]]\nsources = 2000000\nshare = 1.0\nipv6 = true\n";
    std::fs::write(&file, flood6).unwrap();
    flood(&file, 256, &["--analyses", "flows", "--sequential"]);
}

#[test]
fn so_does_one_that_all_analyses_look_at() {
    flood(Path::new("flood"), 256, &["--sequential"]);
    flood(Path::new("flood"), 256, &["-w", "2"]);
}

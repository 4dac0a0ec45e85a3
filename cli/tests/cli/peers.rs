//! A test beside other probes: their flow records and ours over the same captures.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{captures, have};
use crate::merge::real;

/// `compare/conformance` finds every value of its cases in ringtap's records, except those of fields that records do not have.
#[test]
fn records_have_the_values_of_the_cases() {
    if !have("python3") {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compare/conformance");
    let mut command = Command::new("python3");
    command.arg(script).args(["--program", env!("CARGO_BIN_EXE_ringtap")]);
    let output = command.env("SUBJECT", "ringtap").output().unwrap();
    let (table, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{table}");
    assert!(output.status.success(), "{table}{errors}");
}

/// `compare/peers.py` finds an equal record, or a reason in the packets, for each record of softflowd, pmacctd, nfpcapd and
/// ringtap.
#[test]
fn records_are_those_of_softflowd_pmacctd_and_nfpcapd_or_differ_for_a_reason() {
    if !["tshark", "tcpdump", "nfcapd", "nfdump"].into_iter().all(have) {
        return;
    }
    let is_full = std::env::var_os("RINGTAP_FULL").is_some();
    // With padding, ICMP, SCTP and fragments.
    let is_small = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["office", "o003", "o050"].iter().any(|&begin| name.starts_with(begin))
    };
    let (files, least) = match is_full {
        true => (real(), "98"),
        false => (captures().into_iter().filter(is_small).collect(), "99"),
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compare/peers.py");
    let mut command = Command::new("python3");
    command.arg(script).args(["--least", least, env!("CARGO_BIN_EXE_ringtap")]).args(files);
    let output = command.output().unwrap();
    let (table, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for line in errors.lines().filter(|line| line.starts_with("SKIPPED")) {
        eprintln!("{line}");
    }
    println!("{table}");
    assert!(output.status.success(), "{table}{errors}");
}

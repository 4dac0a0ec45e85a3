//! `ringtap extract`: the packets of chosen flows.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ringtap_testkit::soon;
use serde_json::Value;

use crate::common::{captures, have, office, on_filled_disk, on_small_disk, output_of, ringtap};
use crate::formats::tool;

/// The records of a capture: Community ID and packets of both directions.
fn flows(folder: &Path, capture: &Path) -> Vec<(String, u64)> {
    let records = folder.join("records.json");
    let mut command = ringtap();
    command
        .args(["monitor", "-q", "--force", "--write"])
        .arg(format!("json:{}", records.display()));
    let (_, errors, code) = output_of(command.arg("-r").arg(capture));
    assert_eq!(code, 0, "{errors}");
    let text = fs::read_to_string(records).unwrap();
    let record = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let count = |name: &str| record[name].as_u64().unwrap_or(0);
        let packets = count("packetDeltaCount") + count("reversePacketDeltaCount");
        (record["communityId"].as_str().unwrap().to_owned(), packets)
    };
    text.lines().map(record).collect()
}

#[test]
fn the_packets_of_a_flow_are_those_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for capture in captures() {
        let all = flows(folder, &capture);
        let mut ids: Vec<_> = all.iter().map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids.dedup();
        if ids.is_empty() {
            continue;
        }
        // Some of them, and together.
        let some: Vec<_> = ids.iter().step_by(ids.len() / 3 + 1).cloned().collect();
        let out = folder.join("flows.pcapng");
        let mut command = ringtap();
        command.arg("extract").arg(&capture).args(["--force", "--flow", &some.join(","), "-w"]);
        let (_, errors, code) = output_of(command.arg(&out));
        assert!(code <= 1, "{}: {errors}", capture.display());
        let of = |all: &[(String, u64)]| -> u64 {
            all.iter().filter(|(id, _)| some.contains(id)).map(|(_, packets)| packets).sum()
        };
        let (expected, seen) = (of(&all), of(&flows(folder, &out)));
        // A flow of ICMP has the id of its first message. Fragments before their first one are in no flow with ports.
        let name = capture.file_name().unwrap().to_str().unwrap();
        assert!(seen <= expected, "{name}: {seen} of {expected}");
        println!("{name}: {seen} of {expected} packets");
        if capture == office() {
            assert_eq!(seen, expected);
        }
    }
}

#[test]
fn tshark_reads_the_packets_with_their_comments() {
    if !have("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = flows(folder, &office());
    let [(one, packets), (other, more)] = [&all[0], &all[all.len() / 2]];
    let out = folder.join("flows.pcapng");
    let mut command = ringtap();
    command.arg("extract").arg(office()).args(["--flow", one, "--flow", other, "-w"]);
    let (_, errors, code) = output_of(command.arg(&out));
    assert_eq!((code, errors.lines().count()), (0, 1), "{errors}");
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&out).args([
        "-T",
        "fields",
        "-e",
        "frame.comment",
        "-e",
        "_ws.malformed",
    ]);
    let rows = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let of = |id: &str| rows.lines().filter(|row| row.trim() == id).count() as u64;
    let expected = |id: &str| all.iter().filter(|(own, _)| own == id).map(|(_, count)| count).sum();
    let sums: [u64; 2] = [expected(one), expected(other)];
    assert_eq!([of(one), of(other)], sums, "{packets} {more} {rows}");
    assert_eq!(rows.lines().count() as u64, sums.iter().sum::<u64>());
    // A file that exists stays.
    let before = fs::read(&out).unwrap();
    let mut command = ringtap();
    command.arg("extract").arg(office()).args(["--flow", one, "-w"]);
    let (_, errors, code) = output_of(command.arg(&out));
    assert!(code == 2 && errors.contains("--force"), "{errors}");
    assert_eq!(fs::read(&out).unwrap(), before);
}

/// The packets of flows that an expression selects are those of the records that SQL selects with the same expression.
#[test]
fn an_expression_selects_the_flows_that_a_query_selects() {
    let Some(engine) = tool("venv/bin/duckdb") else { return };
    let engine = fs::canonicalize(engine).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut command = ringtap();
    command.current_dir(folder).args(["monitor", "-q", "--store", "s", "-r"]).arg(office());
    command.args(["--idle-timeout", "15m", "--active-timeout", "0"]);
    let (_, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{errors}");
    let (mut some, mut none) = (0, 0);
    for filter in EXPRESSIONS {
        let mut command = ringtap();
        command.current_dir(folder).env("RINGTAP_DUCKDB", &engine);
        command.args([
            "query",
            "s",
            &format!("flows where {filter}"),
            "--limit",
            "1000000",
            "--output",
            "json",
        ]);
        let (rows, errors, code) = output_of(&mut command);
        assert_eq!(code, 0, "{filter}: {errors}");
        let number = |row: &Value, name: &str| row[name].as_u64().unwrap_or(0);
        let packets: u64 = rows
            .lines()
            .map(|line| {
                let row: Value = serde_json::from_str(line).unwrap();
                number(&row, "packetDeltaCount") + number(&row, "reversePacketDeltaCount")
            })
            .sum();
        let out = folder.join("flows.pcapng");
        let mut command = ringtap();
        command.arg("extract").arg(office()).args(["--force", "--where", filter, "-w"]).arg(&out);
        let (_, errors, code) = output_of(&mut command);
        assert_eq!(code, 0, "{filter}: {errors}");
        let written = format!("wrote {packets} of ");
        assert!(errors.replace(',', "").contains(&written), "{filter}: {packets}: {errors}");
        if packets > 0 { some += 1 } else { none += 1 }
    }
    // Expressions that select nothing prove little.
    assert!(some > 3 * none, "{some} {none}");
}

const EXPRESSIONS: [&str; 20] = [
    "tcp",
    "tcp port 443",
    "not tcp",
    "udp and (dst port 53 or src portrange 1000-60000)",
    "net 10.0.0.0/8 or net 192.168.0.0/16",
    "src net 0.0.0.0/0",
    "ip6",
    "octets >= 10k",
    "packets < 4 and not udp",
    "duration > 1s",
    "name ~ \"[.]com$\"",
    "name !~ e",
    "app = dns",
    "app != DNS",
    "minimumTTL < 64",
    "failed or refused",
    "tlsServerName > m",
    "rcode 3 or status >= 400",
    "mac = 00:00:00:00:00:00",
    "flowStartMilliseconds > 1971-01-01T00:00:00Z",
];

#[test]
fn faults_have_a_remedy() {
    let id = "1:LQU9qZlK+B5F3KDmev6m5PMibrg=";
    for (flags, words) in [
        (&["--flow", "1:x", "-w", "-"][..], "use 1: and 28 characters"),
        (&["--flow", id], "--write"),
        (&["-w", "-"], "--flow"),
        (&["--where", "tcp", "--flow", id, "-w", "-"], "cannot be used with"),
        (&["--where", "tcp prot 80", "-w", "-"], "expected"),
        (&["--where", "name ~ '('", "-w", "-"], "invalid pattern"),
    ] {
        let (_, errors, code) = output_of(ringtap().arg("extract").arg(office()).args(flags));
        assert!(code == 2 && errors.contains(words), "{flags:?}: {errors}");
    }
    let (_, errors, code) =
        output_of(ringtap().args(["extract", "missing.pcap", "--flow", id, "-w", "-"]));
    assert!(code == 1 && errors.contains("missing.pcap"), "{errors}");
    // No packet: a file without packets, and the numbers.
    let (out, errors, code) =
        output_of(ringtap().arg("extract").arg(office()).args(["--flow", id, "-w", "/dev/null"]));
    assert_eq!((out.as_str(), code), ("", 0));
    assert!(errors.contains("wrote 0 of "), "{errors}");
}

/// The flow of the bundled capture with most packets, and how many.
fn largest(folder: &Path) -> (String, u64) {
    let mut sums = BTreeMap::<String, u64>::new();
    for (id, packets) in flows(folder, &office()) {
        *sums.entry(id).or_default() += packets;
    }
    sums.into_iter().max_by_key(|(_, packets)| *packets).unwrap()
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (id, _) = largest(folder);
    let capture = office();
    let capture = capture.to_str().unwrap();
    let flags = ["extract", capture, "--flow", &id, "-w", "flows.pcapng"];
    let Some((errors, code, files)) = on_small_disk(4, folder, &flags) else { return };
    assert_eq!((code, files), (1, Vec::<String>::new()), "{errors}");
    assert!(errors.contains("writing flows.pcapng: No space left"), "{errors}");
    assert!(!errors.contains("wrote"), "{errors}");
    // The file that is to be replaced stays.
    let flags = [&flags[..], &["--force"]].concat();
    let old = [("flows.pcapng", 1)];
    let (errors, code, files) = on_filled_disk(8, &old, folder, &flags).unwrap();
    assert_eq!((code, &files[..]), (1, &["flows.pcapng".to_owned()][..]), "{errors}");
    assert_eq!(fs::read(folder.join("left/flows.pcapng")).unwrap(), [0; 1_024]);
    // A device that is full.
    let mut command = ringtap();
    command.arg("extract").arg(office()).args(["--flow", &id, "-w", "/dev/full"]);
    let (_, errors, code) = output_of(&mut command);
    assert!(code == 1 && errors.contains("/dev/full"), "{errors}");
}

#[test]
fn a_run_that_is_killed_leaves_no_file_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (id, packets) = largest(folder);
    let out = folder.join("flows.pcapng");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    command.args(["extract", "-", "--flow", &id, "-w"]).arg(&out).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let bytes = fs::read(office()).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It waits for the rest, with a part of the packets written.
    stdin.write_all(&bytes[..bytes.len() / 2]).unwrap();
    let parts = || -> Vec<_> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().ends_with(".part")).collect()
    };
    assert!(soon(|| parts().iter().any(|part| part.metadata().unwrap().len() > 0)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!out.exists() && parts().len() == 1, "{:?}", parts());
    // The next one has the name, and all packets; a part without a lock is no obstacle.
    let mut command = ringtap();
    let (_, errors, code) =
        output_of(command.arg("extract").arg(office()).args(["--flow", &id, "-w"]).arg(&out));
    assert_eq!(code, 0, "{errors}");
    let of = |all: Vec<(String, u64)>| -> u64 {
        all.iter().filter(|(own, _)| *own == id).map(|(_, packets)| packets).sum()
    };
    assert_eq!(of(flows(folder, &out)), packets);
}

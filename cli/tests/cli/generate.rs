//! Tests of `generate` to files: the monitor's report equals the truth file.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{json, office, on_small_disk, output_of, ringtap};

fn generate(folder: &Path, flags: &[&str]) -> Value {
    let mut command = ringtap();
    command.current_dir(folder).args(["generate", "--force", "-w", "t.pcap", "--truth", "t.json"]);
    command.args(flags);
    let (out, errors, code) = output_of(&mut command);
    assert_eq!((out.as_str(), code), ("", 0), "{errors}");
    assert!(errors.contains(" packets, ") && errors.contains("packets/s"), "{errors}");
    serde_json::from_slice(&fs::read(folder.join("t.json")).unwrap()).unwrap()
}

#[test]
fn the_report_of_the_monitor_equals_the_truth_file() {
    for flags in [
        &["--profile", "scans"][..],
        &["--profile", "mix", "--packets", "60k", "--flows", "3k", "--seed", "7"],
        &[
            "--profile",
            "w2",
            "--packets",
            "50k",
            "--flows",
            "9k",
            "--zipf",
            "1.2",
            "--size",
            "imix",
        ],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let truth = generate(folder.path(), flags);
        for arrangement in [&["--sequential"][..], &["-w", "3"]] {
            let report = json(&folder.path().join("t.pcap"), arrangement);
            let place = format!("{flags:?} {arrangement:?}");
            assert_eq!(report["packets"]["received"], truth["packets"], "{place}");
            for kind in ["ipv4", "ipv6", "non_ip", "fragments", "truncated"] {
                assert_eq!(report["packets"][kind], truth[kind], "{place} {kind}");
            }
            for layer in ["wire", "captured", "ip"] {
                assert_eq!(report["octets"][layer], truth["octets"][layer], "{place} {layer}");
            }
            for protocol in ["tcp", "udp"] {
                let found = &report["conversations"][protocol];
                assert_eq!(found, &truth["conversations"][protocol], "{place} {protocol}");
            }
            let (flows, records) = (&report["flows"], &truth["records"]);
            assert_eq!(flows["records"], records["records"], "{place}");
            for (reason, count) in records["end_reasons"].as_object().unwrap() {
                assert_eq!(&flows["end_reasons"][reason], count, "{place} {reason}");
            }
            for (kind, names) in [
                ("vertical", ["source", "target", "ports"]),
                ("horizontal", ["source", "port", "targets"]),
            ] {
                let rows = |scans: &Value| -> Vec<[Value; 3]> {
                    let rows = scans["scans"][kind].as_array().unwrap();
                    rows.iter().map(|row| names.map(|name| row[name].clone())).collect()
                };
                assert_eq!(rows(&report), rows(&truth), "{place} {kind}");
            }
        }
    }
}

#[test]
fn the_rate_is_in_packets_per_second_of_packet_time() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--profile", "flood", "--packets", "5k", "--rate", "1k"];
    let truth = generate(folder.path(), &flags);
    assert_eq!(truth["records"]["records"], 5_000, "every packet is a flow");
    let report = json(&folder.path().join("t.pcap"), &["--interval", "1s", "--sequential"]);
    let packets = |row: &Value| row["packets"]["handled"].as_u64().unwrap();
    let seconds: Vec<u64> = report["intervals"].as_array().unwrap().iter().map(packets).collect();
    assert_eq!(seconds, [1_000; 5]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_a_file_and_on_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--packets", "5k", "--flows", "500", "--seed", "3"];
    generate(folder.path(), &flags);
    let file = fs::read(folder.path().join("t.pcap")).unwrap();
    let pipe =
        |flags: &[&str]| ringtap().args(["generate", "-w", "-"]).args(flags).output().unwrap();
    let piped = pipe(&flags);
    assert!(piped.status.success() && piped.stdout == file);
    let other = pipe(&["--packets", "5k", "--flows", "500", "--seed", "4"]);
    assert!(other.stdout.len() > 5_000 * 60 && other.stdout != file);
}

#[test]
fn a_profile_can_be_a_toml_or_json_file() {
    let folder = tempfile::tempdir().unwrap();
    let toml = "packets = 2000\nflows = 100\nsize = \"imix\"\n[[scans]]\nports = 50\n";
    let json = r#"{"packets": 2000, "flows": 100, "size": "imix", "scans": [{"ports": 50}]}"#;
    fs::write(folder.path().join("p.toml"), toml).unwrap();
    fs::write(folder.path().join("p.json"), json).unwrap();
    let truth = generate(folder.path(), &["--profile", "p.toml"]);
    assert_eq!(truth["packets"], 2_000);
    assert_eq!(truth["scans"]["vertical"][0]["ports"], 50);
    let first = fs::read(folder.path().join("t.pcap")).unwrap();
    generate(folder.path(), &["--profile", "p.json"]);
    assert_eq!(fs::read(folder.path().join("t.pcap")).unwrap(), first);

    fs::write(folder.path().join("wrong.toml"), "packet = 5\n").unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["generate", "-w", "x", "--profile", "wrong.toml"]);
    let (_, errors, code) = output_of(&mut command);
    assert!(code == 2 && errors.contains("wrong.toml") && errors.contains("`packet`"), "{errors}");
    assert!(!folder.path().join("x").exists());
}

/// An incomplete file never gets its final name.
#[test]
fn a_full_disk_leaves_no_incomplete_file() {
    let folder = tempfile::tempdir().unwrap();
    let office = office();
    let office = office.to_str().unwrap();
    let many = ["--profile", "mix", "--packets", "60k"];
    for flags in [
        [&["generate", "-w", "a.pcap"], &many[..]].concat(),
        vec!["filter", "-r", office, "-w", "a.pcap", "--default", "allow"],
        vec!["filter", "-r", office, "--drops", "a.pcap", "--default", "deny", "--sequential"],
        vec!["measure", "-r", office, "--write", "sketch:a.sketch"],
    ] {
        let Some((errors, code, left)) = on_small_disk(64, folder.path(), &flags) else { return };
        assert_eq!((code, &left[..]), (1, &[][..]), "{flags:?}: {errors}");
        assert!(errors.contains("No space left on device"), "{flags:?}: {errors}");
    }
    // Files that fit are complete.
    let flags = ["generate", "-w", "a.pcap", "--truth", "a.json", "--profile", "mix"];
    let flags = [&flags[..], &["--packets", "10"]].concat();
    let (errors, code, left) = on_small_disk(64, folder.path(), &flags).unwrap();
    assert_eq!((code, &left[..]), (0, &["a.json".into(), "a.pcap".into()][..]), "{errors}");
    let (_, errors, code) = output_of(ringtap().args([
        "generate",
        "-w",
        "/dev/full",
        "--profile",
        "mix",
        "--packets",
        "9",
    ]));
    assert!(code == 1 && errors.contains("/dev/full: No space left"), "{errors}");
    let flags = ["generate", "-w", "/dev/null", "--truth", "/dev/full", "--profile", "mix"];
    let (_, errors, code) = output_of(ringtap().args(flags).args(["--packets", "9"]));
    assert!(code == 1 && errors.contains("/dev/full: No space left"), "{errors}");
}

#[test]
fn an_interrupted_run_leaves_the_existing_file_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), &["--profile", "mix", "--packets", "10"]);
    let before = fs::read(folder.path().join("t.pcap")).unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["generate", "--force", "-w", "t.pcap", "--profile", "mix", "--packets", "1G"])
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The run has started when its temporary file exists.
    let names = || fs::read_dir(&folder).unwrap().count();
    while names() < 3 {
        std::thread::sleep(Duration::from_millis(5));
        assert!(child.try_wait().unwrap().is_none());
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(errors.contains("writing t.pcap: interrupted after "), "{errors}");
    assert_eq!((names(), fs::read(folder.path().join("t.pcap")).unwrap()), (2, before));
}

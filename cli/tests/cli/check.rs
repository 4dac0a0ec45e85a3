//! Tests of `check`, which counts stamped frames that are lost, duplicated, reordered or corrupted.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{output_of, ringtap};
use crate::net::{Background, Left, Net, NetCommands, Right, capture, frames};

fn checker(net: &Net, flags: &[&str]) -> Background {
    let flags = [&["check", "-i", "right", "--report", "json"], flags].concat();
    Background::start(net.ringtap(Right, &flags), "listening: right")
}

fn found(checker: Background) -> (Value, i32) {
    let (out, errors, code) = checker.end();
    let found = serde_json::from_slice(&out);
    (found.unwrap_or_else(|error| panic!("{error}: {errors}")), code)
}

/// Writes a profile of datagrams that are long enough for a stamp, and returns its path.
fn datagrams(folder: &Path) -> String {
    let profile = folder.join("datagrams.toml");
    fs::write(&profile, "flows = 20\ntcp_share = 0.0\nsize = 200\n").unwrap();
    profile.to_str().unwrap().to_owned()
}

/// Generates `count` stamped datagrams in a file and reads them.
fn stamped(count: usize) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (profile, file) = (datagrams(folder.path()), folder.path().join("t.pcap"));
    let mut command = ringtap();
    command.args(["generate", "--stamp", "--packets", &count.to_string(), "--profile", &profile]);
    let (_, errors, code) = output_of(command.arg("-w").arg(&file));
    assert_eq!(code, 0, "{errors}");
    assert!(!errors.contains("without a stamp"), "{errors}");
    let frames = frames(&fs::read(&file).unwrap());
    assert_eq!(frames.len(), count);
    frames
}

#[test]
fn a_profile_arrives_completely_by_every_method() {
    for (send, receive) in
        [("af-packet", "af-packet"), ("af-xdp", "af-xdp"), ("af-packet", "af-xdp")]
    {
        let Some(net) = Net::new(1) else { return };
        let checker = checker(&net, &["--method", receive, "--idle-stop", "3s"]);
        let (out, errors, code) = net.run(
            Left,
            &[
                "generate",
                "-i",
                "left",
                "--method",
                send,
                "--stamp",
                "--report",
                "json",
                "--packets",
                "20k",
                "--flows",
                "1k",
                "--rate",
                "50k",
            ],
        );
        assert_eq!(code, 0, "{errors}");
        let counts: Value = serde_json::from_str(&out).unwrap();
        let number = |name: &str| counts["stamps"][name].as_u64().unwrap();
        assert_eq!(number("stamped") + number("without_room"), 20_000);
        assert!(number("stamped") > 2_000 && number("without_room") > 1_000, "{counts}");
        let without = format!("{},", number("without_room") / 1_000);
        assert!(errors.contains(&without) && errors.contains("without a stamp"), "{errors}");

        let (found, code) = found(checker);
        assert_eq!(found["received"], counts["stamps"]["stamped"], "{send} {receive}: {found}");
        assert_eq!(found["unstamped"], counts["stamps"]["without_room"]);
        for wrong in ["lost", "duplicated", "reordered", "stale", "corrupted", "other_streams"] {
            assert_eq!(found[wrong], 0, "{send} {receive} {wrong}: {found}");
        }
        let stream = &found["streams"][0];
        assert_eq!((&stream["run"], &stream["before_sent"]), (&counts["stamps"]["run"], &0.into()));
        let latency = |name: &str| stream["latency_ns"][name].as_u64().unwrap();
        assert!(latency("min") > 0 && latency("min") <= latency("p50"));
        assert!(latency("p50") <= latency("p99") && latency("p99") <= latency("max"));
        assert_eq!(code, 0);
    }
}

#[test]
fn injected_faults_are_counted() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("planted.pcap");
    let mut planted = stamped(1_000);
    // From the end to the start, so that smaller indices stay valid.
    let copy = planted[900].clone();
    planted.insert(950, copy.clone());
    planted.insert(960, copy);
    planted.swap(800, 801);
    let late = planted.remove(600);
    planted.insert(650, late);
    let last = planted[500].len() - 1;
    planted[500][last] ^= 0xff;
    for lost in [400, 300, 299, 0] {
        planted.remove(lost);
    }
    capture(&file, &planted);
    for (flags, lost) in [(&[][..], 5), (&["--count", "1000"], 5), (&["--count", "1010"], 15)] {
        let checker = checker(&net, &[&["--idle-stop", "2s"], flags].concat());
        let flags = ["generate", "-i", "left", "-r", file.to_str().unwrap()];
        assert_eq!(net.run(Left, &flags).2, 0);
        let (found, code) = found(checker);
        assert_eq!(found["received"], 995, "{found}");
        // The sequence number of a corrupted frame is ignored, so the frame also counts as lost.
        assert_eq!((&found["corrupted"], &found["lost"]), (&1.into(), &lost.into()), "{found}");
        assert_eq!((&found["duplicated"], &found["reordered"]), (&2.into(), &2.into()), "{found}");
        assert_eq!(
            found["streams"][0]["latency_ns"],
            Value::Null,
            "no latency for stamps from a file"
        );
        assert_eq!(code, 3);
    }
}

#[test]
fn the_text_report_lists_the_counts() {
    let Some(net) = Net::new(1) else { return };
    let checker = net.ringtap(Right, &["check", "-i", "right", "--idle-stop", "2s"]);
    let checker = Background::start(checker, "listening: right");
    let folder = tempfile::tempdir().unwrap();
    let profile = datagrams(folder.path());
    let sent = ["generate", "-i", "left", "--stamp", "--packets", "2k", "--profile", &profile];
    let (_, errors, code) = net.run(Left, &sent);
    assert!(code == 0 && errors.contains("stamped ") && errors.contains(" as run "), "{errors}");
    let (out, _, code) = checker.end();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(code, 0, "{out}");
    for words in ["received", "lost            0  0.000 %", "corrupted       0", "latency min"] {
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn without_frames_an_interrupt_ends_the_run_with_code_3() {
    let Some(net) = Net::new(1) else { return };
    let checker = checker(&net, &[]);
    checker.interrupt();
    let (found, code) = found(checker);
    assert_eq!((&found["received"], &found["frames"], code), (&0.into(), &0.into(), 3));
    let (_, errors, code) = net.run(Right, &["check", "-i", "nowhere"]);
    assert!(code == 1 && errors.contains("unknown interface"), "{errors}");
}

#[test]
fn a_deleted_interface_ends_the_run_with_code_1() {
    let Some(net) = Net::new(1) else { return };
    let checker = checker(&net, &[]);
    net.ip(Left, "link del left");
    let (out, errors, code) = checker.end();
    assert!(code == 1 && errors.contains("right is gone"), "{errors}");
    assert!(!out.is_empty(), "the report is still printed");
}

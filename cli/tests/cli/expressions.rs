//! Tests of filter expressions: `-f 'tcp port 80'`.

use std::process::Command as System;

use serde_json::Value;

use crate::common::{captures, have, json, office, output_of, real_folder, ringtap};

const HTTP: &str = "tcp port 80 and not net fd20::/16";

/// Whether libpcap can be loaded; prints a `SKIPPED` line if not.
pub(crate) fn have_libpcap() -> bool {
    let mut command = ringtap();
    command.args(["monitor", "--dry-run", "-r", "no-such.pcap", "-f", "ip"]);
    let (_, errors, code) = output_of(&mut command);
    let missing = errors.contains("libpcap, which cannot be loaded");
    if missing {
        eprintln!("SKIPPED: {errors}");
    }
    // Other errors fail the test.
    assert!(missing || code == 0, "{errors}");
    !missing
}

/// The parts of a report that depend only on the packets that pass the filter. End reasons of flows
/// are left out: filtered packets advance the time, too.
fn content(report: &Value) -> Value {
    let mut content = report.clone();
    let all = content.as_object_mut().unwrap();
    all.retain(|key, _| {
        ["talkers", "protocols", "scans", "conversations", "packets"].contains(&key.as_str())
    });
    let packets = all["packets"].as_object_mut().unwrap();
    packets.retain(|key, _| key != "received" && key != "dropped");
    all.insert("records".into(), report["flows"]["records"].clone());
    content
}

#[test]
fn the_expression_selects_the_same_packets_as_tcpdump() {
    if !have("tcpdump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left.pcap");
    let mut compared = 0;
    let all = ["tcp", "udp port 53 or vlan", "ip[6:2] & 0x1fff = 0 and less 200", HTTP];
    let step = if std::env::var_os("RINGTAP_FULL").is_some() { 1 } else { all.len() };
    for (number, capture) in captures().into_iter().enumerate() {
        for expression in all.into_iter().skip(number % step).step_by(step) {
            let mut tcpdump = System::new("tcpdump");
            tcpdump.arg("-r").arg(&capture).arg("-w").arg(&left).arg(expression);
            // tcpdump refuses damaged captures, several link types, and `vlan` on link types
            // without VLANs.
            if !tcpdump.output().unwrap().status.success() {
                continue;
            }
            let expected = content(&json(&left, &["-q"]));
            for arrangement in ["1", "2"] {
                let flags = ["-q", "-f", expression, "--queues", arrangement];
                let found = content(&json(&capture, &flags));
                assert_eq!(found, expected, "{} {expression}", capture.display());
            }
            compared += 1;
        }
    }
    let least = if real_folder().is_some() { 4 } else { 1 };
    assert!(compared >= least, "{compared}");
}

#[test]
fn an_expression_is_a_flag_or_arguments_and_filtered_packets_are_no_loss() {
    if !have_libpcap() {
        return;
    }
    let flags = ["--digest", "--fail-on-drop", "-f", HTTP];
    let report = json(&office(), &flags);
    let packets = &report["packets"];
    let handled = packets["handled"].as_u64().unwrap();
    assert!((1..8_192).contains(&handled), "{packets}");
    assert_eq!(packets["received"], 8_192);
    assert_eq!(packets["dropped"]["filtered"], 8_192 - handled);
    assert_eq!(report["plan"]["filter"], HTTP);

    let mut words = vec!["--digest", "--queues", "3", "-w", "2", "--"];
    words.extend(HTTP.split(' '));
    assert_eq!(json(&office(), &words)["digest"], report["digest"]);

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("monitor.toml");
    std::fs::write(&config, format!("filter = {HTTP:?}\n")).unwrap();
    let configured = json(&office(), &["--digest", "--config", config.to_str().unwrap()]);
    assert_eq!(configured["digest"], report["digest"]);
    let mut flags = vec!["--digest", "--config", config.to_str().unwrap(), "--"];
    assert_ne!(json(&office(), &[&flags[..], &["udp"]].concat())["digest"], report["digest"]);
    flags.extend(HTTP.split(' '));
    assert_eq!(json(&office(), &flags)["digest"], report["digest"]);

    let mut command = ringtap();
    let (text, _, code) =
        output_of(command.args(["monitor", "-q", "-f", HTTP, "-r"]).arg(office()));
    assert_eq!(code, 0);
    assert!(text.contains("filter \"tcp port 80 and not net fd20::/16\": "), "{text}");
}

#[test]
fn frames_of_a_link_type_that_the_expression_does_not_support_are_counted_as_a_loss() {
    if !have_libpcap() {
        return;
    }
    // Raw IP: a link type that has no VLANs.
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    capture.extend(101_u32.to_le_bytes());
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([3, 232, 0, 53, 0, 8, 0, 0]);
    capture.extend([0; 8]);
    capture.extend([28, 0, 0, 0, 28, 0, 0, 0]);
    capture.extend(packet);
    let mut run = ringtap();
    run.args(["monitor", "-q", "--report", "json", "--fail-on-drop", "-f", "vlan 7", "-r", "-"]);
    let output = run.write_stdin(capture).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["packets"]["dropped"]["unfilterable"], 1);
}

#[test]
fn errors_of_libpcap_are_reported() {
    if !have_libpcap() {
        return;
    }
    for (flags, words) in [
        (vec!["-f", "tcp prt 80"], "invalid filter expression \"tcp prt 80\": can't parse"),
        (vec!["-f", "ip and ip6"], "no frame can match"),
        (vec!["-f", "tcp", "--", "udp"], "cannot be used with"),
    ] {
        let mut command = ringtap();
        command.arg("monitor").arg("-r").arg(office()).args(&flags);
        let (report, errors, code) = output_of(&mut command);
        assert_eq!((report.as_str(), code), ("", 2), "{errors}");
        assert!(errors.contains(words), "{flags:?}: {errors}");
    }
}

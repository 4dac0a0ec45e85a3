//! Tests of the report of `monitor`: the counts of the bundled capture, the fields of JSON, the
//! text.

use serde_json::{Value, json};

use crate::common::{example, json, office, output_of, ringtap};

#[test]
fn the_report_on_the_bundled_capture_equals_the_counts_of_tshark() {
    let truth: Value =
        serde_json::from_slice(&std::fs::read(example("office.expected.json")).unwrap()).unwrap();
    for flags in [&["--sequential"][..], &["-w", "1"], &["-w", "3", "--ring", "lamport"]] {
        let report = json(&office(), flags);
        let part = |part: &str, names: &[&str]| -> Value {
            names.iter().map(|&name| (name.to_string(), report[part][name].clone())).collect()
        };
        let kinds = ["received", "ipv4", "ipv6", "non_ip", "fragments", "truncated"];
        assert_eq!(part("packets", &kinds), truth["packets"]);
        assert_eq!(part("octets", &["wire", "captured", "ip"]), truth["octets"]);
        assert_eq!(part("conversations", &["tcp", "udp"]), truth["conversations"]);
        let rows = |kind: &str, names: &[&str]| -> Value {
            let row = |scan: &Value| -> Value {
                names.iter().map(|&name| (name.to_string(), scan[name].clone())).collect()
            };
            report["scans"][kind].as_array().unwrap().iter().map(row).collect()
        };
        assert_eq!(rows("vertical", &["source", "target", "ports"]), truth["scans"]["vertical"]);
        assert_eq!(
            rows("horizontal", &["source", "port", "targets"]),
            truth["scans"]["horizontal"]
        );
        assert_eq!(report["ledger"]["residual"], 0);
    }
}

#[test]
fn the_json_report_has_the_documented_fields() {
    let report = json(&office(), &["--digest", "-w", "2"]);
    let expected = json!({
        "version": "", "plan": {}, "intervals": [],
        "packets": {"received": 0, "handled": 0, "dropped": {}, "ipv4": 0, "ipv6": 0, "non_ip": 0,
                    "fragments": 0, "truncated": 0},
        "octets": {"wire": 0, "captured": 0, "ip": 0},
        "conversations": {"tcp": 0, "udp": 0, "exact": true},
        "flows": {"records": 0, "active_peak": 0, "end_reasons": {"idle": 0, "active": 0,
                  "end_detected": 0, "forced": 0, "lack_of_resources": 0}},
        "scans": {
            "vertical": [{"source": "", "target": "", "ports": 0, "first": "", "last": "",
                          "sample": []}],
            "horizontal": [{"source": "", "port": 0, "protocol": "tcp", "targets": 0, "first": "",
                            "last": "", "sample": []}]},
        "talkers": {"by_octets": {"source": [], "destination": [], "pair": [], "port": []},
                    "by_packets": {"source": [], "destination": [], "pair": [], "port": []},
                    "error_bound": 0},
        "applications": {"rows": [{"application": "", "flows": 0, "packets": 0, "octets": 0}],
                         "unlabelled": {"flows": 0, "packets": 0, "octets": 0}},
        "ledger": {"residual": 0, "stages": [{"stage": "", "in": 0, "out": 0, "dropped": {}}]},
        "performance": {"seconds": 0.0, "packets_per_second": 0, "cpu_seconds": 0.0,
                        "peak_rss_bytes": 0},
        "digest": "",
    });
    has_shape(&report, &expected, "report");
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["digest"].as_str().unwrap().starts_with("sha256:"));
}

/// Checks that `value` has every key of `shape`, with a value of the same type.
fn has_shape(value: &Value, shape: &Value, place: &str) {
    match (value, shape) {
        (Value::Object(have), Value::Object(want)) => {
            for (key, shape) in want {
                let value = have.get(key).unwrap_or_else(|| panic!("{place}.{key} is missing"));
                has_shape(value, shape, &format!("{place}.{key}"));
            }
        }
        (Value::Array(have), Value::Array(want)) => {
            if let (Some(value), Some(shape)) = (have.first(), want.first()) {
                has_shape(value, shape, &format!("{place}[0]"));
            }
        }
        _ => assert_eq!(
            std::mem::discriminant(value),
            std::mem::discriminant(shape),
            "{place} is {value}"
        ),
    }
}

#[test]
fn the_text_report_equals_the_golden_file() {
    let flags = ["--sequential", "--seed", "1", "--digest", "--top", "3", "-q"];
    let (text, errors, code) =
        output_of(ringtap().arg("monitor").args(flags).arg("-r").arg(office()));
    assert_eq!((errors.as_str(), code), ("", 0));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let golden = include_str!("../golden/office.txt");
    // Times differ from run to run.
    let steady = |text: &str| -> Vec<String> {
        let line = |line: &str| if line.contains(" of CPU") { "TIMES" } else { line }.to_string();
        text.lines().map(line).collect()
    };
    assert_eq!(steady(&text), steady(golden), "\n{text}");
}

#[test]
fn the_interval_flag_lists_intervals() {
    let (text, _, _) =
        output_of(ringtap().args(["monitor", "--interval", "2s", "-r"]).arg(office()));
    let rows = text.lines().skip_while(|line| *line != "Intervals").skip(2);
    let packets: u64 = rows
        .take_while(|line| !line.is_empty())
        .map(|line| {
            line.split_whitespace().nth(1).unwrap().replace(',', "").parse::<u64>().unwrap()
        })
        .sum();
    assert_eq!(packets, 8_192, "{text}");
}

#[test]
fn colours_are_off_unless_forced() {
    let run = |color: bool| {
        let mut command = ringtap();
        if color {
            command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
        }
        output_of(command.args(["monitor", "-r"]).arg(office())).0
    };
    assert!(run(true).contains("\x1b[") && !run(false).contains('\x1b'));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["monitor", "-q", "-r"])
        .arg(office())
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut errors).unwrap();
    assert!(child.wait().unwrap().success() && errors.is_empty(), "{errors}");
}

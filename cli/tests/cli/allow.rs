//! Tests of `--allow`: what is suppressed is counted by rule and not reported, and the rest is as without rules.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{office, output_of, ringtap};

/// The alerts of a run with rules, its report and stderr.
fn run(capture: &Path, rules: Option<&str>, flags: &[&str]) -> (Vec<Value>, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = ringtap();
    command.current_dir(&folder).args(["monitor", "--report=json", "--alert-to=json:alerts", "-r"]);
    command.arg(capture).args(flags);
    if let Some(rules) = rules {
        fs::write(folder.path().join("rules"), rules).unwrap();
        command.arg("--allow=rules");
    }
    let (report, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{errors}");
    let text = fs::read_to_string(folder.path().join("alerts")).unwrap_or_default();
    let alerts = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (alerts.collect(), serde_json::from_str(&report).unwrap(), errors)
}

/// State, kind and text of each change.
fn changes(alerts: &[Value]) -> Vec<Value> {
    alerts.iter().map(|alert| json!([alert["state"], alert["kind"], alert["text"]])).collect()
}

const ARRANGEMENTS: [&[&str]; 4] = [
    &["--sequential"],
    &["--queues=3"],
    &["--skeleton=farm", "-w=3"],
    &["--skeleton=pipeline", "-w=3"],
];

#[test]
fn suppressed_alerts_are_counted_by_rule_and_the_others_are_reported() {
    let rules = "# known\n10.20.0.200 *  # our scanner\nfd20::/16 vertical_scan 2020-01-01\n\n10.20.0.0/16 flood\n";
    for more in ARRANGEMENTS {
        let (all, report, _) = run(&office(), None, more);
        assert_eq!((all.len(), &report["suppressed_alerts"]), (8, &Value::Null));
        let (own, report, _) = run(&office(), Some(rules), more);
        let of_others = |alert: &&Value| alert["source"] != "10.20.0.200";
        let others: Vec<_> = all.iter().filter(of_others).cloned().collect();
        assert_eq!(changes(&own), changes(&others), "{more:?}");
        assert_eq!(json!([own[0]["id"], own[1]["id"]]), json!([1, 2]), "{more:?}");
        let expected = json!([{"line": 2, "network": "10.20.0.200", "kind": "*", "alerts": 2}]);
        assert_eq!(report["suppressed_alerts"], expected, "{more:?}");
        assert_eq!(report["plan"]["allow"], 3);
        // Scans are in the report in any case.
        assert_eq!(report["scans"]["vertical"][0]["source"], "10.20.0.200");
    }
    let text = |rules: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rules"), rules).unwrap();
        let mut command = ringtap();
        command.current_dir(&folder).args(["monitor", "--allow=rules", "-r"]).arg(office());
        let (text, errors, code) = output_of(&mut command);
        assert_eq!(code, 0, "{errors}");
        let lines = text.lines().skip_while(|line| *line != "Suppressed alerts").skip(1);
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let expected = [
        "  rule                                                            alerts  line",
        "  10.20.0.200 vertical_scan until 2100-01-01T00:00:00.000000000Z       1     1",
    ];
    assert_eq!(text("10.20.0.200 vertical_scan 2100-01-01\n"), expected);
    assert_eq!(text("10.20.0.200 spread\n"), ["  none"]);
}

/// A capture of SYNs from 10.0.0.1 to 10.0.0.2, one every two seconds, to rising ports.
fn slow_scan(folder: &Path) -> PathBuf {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        capture.extend(word.to_le_bytes());
    }
    for number in 0..150_u16 {
        for word in [1_700_000_000 + 2 * u32::from(number), 0, 54, 54] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        capture.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        capture.extend([1_000, 1 + number].map(u16::to_be_bytes).concat());
        capture.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 4, 0, 0, 0, 0, 0]);
    }
    let path = folder.join("slow.pcap");
    fs::write(&path, capture).unwrap();
    path
}

#[test]
fn a_scan_that_goes_on_after_its_rule_ends_is_an_alert() {
    let folder = tempfile::tempdir().unwrap();
    let capture = slow_scan(folder.path());
    // 1,700,000,000 is 2023-11-14T22:13:20Z.
    let rules = "10.0.0.0/8 vertical_scan 2023-11-14T22:16:40Z\n";
    for more in ARRANGEMENTS {
        let (alerts, report, _) = run(&capture, Some(rules), more);
        let [begins, ends] = &alerts[..] else { panic!("{more:?}: {alerts:?}") };
        assert_eq!(json!([begins["state"], ends["state"]]), json!(["begins", "ends"]));
        let number = begins["number"].as_u64().unwrap();
        assert!((101..120).contains(&number), "{more:?}: {begins}");
        assert!(begins["time"].as_str().unwrap() >= "2023-11-14T22:16:40", "{begins}");
        assert_eq!((&ends["number"], &ends["id"]), (&json!(150), &json!(1)));
        assert_eq!(report["suppressed_alerts"][0]["alerts"], 1);
    }
}

#[test]
fn hosts_of_a_watched_entry_count_apart() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list"), "10.20.0.53\n").unwrap();
    let watch = format!("--watch={}", folder.path().join("list").display());
    let last = |rules: Option<&str>, more: &[&str]| {
        let (alerts, report, _) = run(&office(), rules, &[&[&*watch], more].concat());
        let is_own = |alert: &&Value| alert["kind"] == "watched" && alert["state"] == "ends";
        let last = alerts.iter().rfind(is_own).cloned().unwrap_or_default();
        let rule = report["suppressed_alerts"][0]["alerts"].as_u64();
        (last["number"].as_u64().unwrap_or(0), last["hosts"].clone(), last["hits"].clone(), rule)
    };
    let (all, hosts, hits, _) = last(None, &["--sequential"]);
    let second = hosts[1].as_str().unwrap();
    assert!(all > 2, "{hosts}");
    let rules = format!("{second} watched\n");
    for more in ARRANGEMENTS {
        let (number, others, own_hits, suppressed) = last(Some(&rules), more);
        assert_eq!((number, suppressed, &own_hits), (all - 1, Some(1), &hits), "{more:?}");
        assert_eq!(json!([others[0], others[1]]), json!([hosts[0], hosts[2]]), "{more:?}");
    }
    let (number, _, _, suppressed) = last(Some("10.0.0.0/8 *\nfd20::/16 *\n"), &["--sequential"]);
    assert_eq!((number, suppressed.is_some()), (0, true));
}

#[test]
fn wrong_rules_are_usage_errors_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    for (rules, words) in [
        ("10.0.0.1 *\nhost *\n", "line 2: use an address or a network"),
        ("\n10.0.0.1 scan\n", "line 2: unknown kind of alerts: use vertical_scan"),
        ("10.0.0.1 * 2023-02-29\n", "line 1: invalid time: use 2027-01-01T00:00:00Z"),
        ("10.0.0.1/8 *\n", "line 1: bits behind the network's are not 0"),
    ] {
        fs::write(folder.path().join("rules"), rules).unwrap();
        let mut command = ringtap();
        command.current_dir(&folder).args(["monitor", "--allow=rules", "-r"]).arg(office());
        let (out, errors, code) = output_of(&mut command);
        assert_eq!((&*out, code), ("", 2), "{errors}");
        assert!(
            errors.contains("reading the rules in rules: ") && errors.contains(words),
            "{errors}"
        );
    }
    let mut command = ringtap();
    let (_, errors, code) =
        output_of(command.args(["monitor", "--allow=no-such-file", "-r"]).arg(office()));
    assert!(code == 2 && errors.contains("reading the rules in no-such-file"), "{errors}");
}

#[test]
fn the_addresses_of_rules_are_anonymised_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, [9; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let anonymise = format!("--anonymise={}", key.display());
    let (alerts, report, _) = run(&office(), Some("10.20.0.200 vertical_scan\n"), &[&anonymise]);
    let rule = &report["suppressed_alerts"][0];
    assert_eq!((&rule["alerts"], rule["network"] == "10.20.0.200"), (&json!(1), false));
    // It is the address that the scanner has in alerts of another kind.
    assert!(alerts.iter().any(|alert| alert["source"] == rule["network"]), "{report}");
    for alert in &alerts {
        let query = alert["query"].as_str().unwrap();
        let source = alert["source"].as_str().unwrap();
        assert!(
            query.contains(&format!("src host {source} ")) && !query.contains("10.20.0."),
            "{query}"
        );
    }
}

//! Tests of `filter` on captures: rules, reports, errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{have, office, output_of, ringtap};
use crate::net::frames;

fn rules(folder: &Path, text: &str) -> String {
    let path = folder.join("rules.txt");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs `filter --report json` with `flags` and returns the report.
fn filtered(flags: &[&str]) -> Value {
    let (out, errors, code) = output_of(ringtap().args(["filter", "--report", "json"]).args(flags));
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn the_filter_passes_the_packets_that_tshark_selects_by_the_same_rules() {
    if !have("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    // Of each frame the outermost source address, and time and length.
    let seen = |path: &Path| -> Vec<(String, String)> {
        let mut command = Command::new("tshark");
        command.args(["-n", "-r"]).arg(path).args(["-T", "fields", "-E", "occurrence=f"]);
        command.args(["-e", "ip.src", "-e", "frame.time_epoch", "-e", "frame.len"]);
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let line = |line: &str| {
            let (source, rest) = line.split_once('\t').unwrap();
            let (time, len) = rest.split_once('\t').unwrap();
            (source.to_owned(), format!("{} {len}", time.trim_end_matches('0')))
        };
        out.lines().map(line).collect()
    };
    let frames = seen(&capture);
    let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
    for (source, _) in frames.iter().filter(|(source, _)| !source.is_empty()) {
        *sources.entry(source).or_default() += 1;
    }
    let mut busiest: Vec<_> = sources.into_iter().collect();
    busiest.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
    let [(banned, banned_packets), (denied, denied_packets)] = [busiest[0], busiest[1]];
    let text = format!("default allow\ndeny from {denied}/32 to any\nban {banned}\n");
    let path = rules(folder.path(), &text);
    let passed = folder.path().join("passed.pcap");
    let drops = folder.path().join("drops.pcap");
    let report = filtered(&[
        "-r",
        capture.to_str().unwrap(),
        "-w",
        passed.to_str().unwrap(),
        "--drops",
        drops.to_str().unwrap(),
        "--rules",
        &path,
    ]);
    let refused = |frame: &&(String, String)| [banned, denied].contains(&frame.0.as_str());
    assert!(seen(&drops).iter().eq(frames.iter().filter(refused)), "other packets were dropped");
    let expected = frames.iter().filter(|frame| !refused(frame));
    assert!(seen(&passed).iter().eq(expected), "other packets passed");
    assert_eq!(report["packets"]["passed"], frames.len() - banned_packets - denied_packets);
    let dropped = &report["packets"]["dropped"];
    assert_eq!([&dropped["banned"], &dropped["rule"]], [banned_packets, denied_packets]);
    assert_eq!(report["rules"]["counters"][0]["packets"], denied_packets);
    assert_eq!(report["ledger"]["residual"], 0);
}

#[test]
fn the_arrangement_does_not_change_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = rules(folder.path(), "default allow\ndeny to 224.0.0.0/4\ndeny from fe80::/10\n");
    let capture = office();
    let run = |name: &str, flags: &[&str]| {
        let out = folder.path().join(name);
        let base = ["-r", capture.to_str().unwrap(), "-w", out.to_str().unwrap(), "--rules", &path];
        let report = filtered(&[&base[..], &["--digest"], flags].concat());
        (fs::read(out).unwrap(), report["verdicts_sha256"].clone(), report["packets"].clone())
    };
    let reference = run("reference.pcap", &["--sequential"]);
    for workers in ["1", "2", "5"] {
        assert!(run(&format!("{workers}.pcap"), &["--workers", workers]) == reference, "{workers}");
    }
    assert!(!frames(&reference.0).is_empty());
    // With the capture on stdout, the report goes to stderr.
    let output = ringtap()
        .args(["filter", "-r", capture.to_str().unwrap(), "-w", "-", "--rules", &path])
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout == reference.0);
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(report.contains(" passed, ") && report.contains("0 unaccounted for"), "{report}");
}

#[test]
fn verdicts_are_explained_and_rules_checked_without_packets() {
    let folder = tempfile::tempdir().unwrap();
    let path = rules(folder.path(), "allow from 192.0.2.0/24\nban 192.0.2.7\n");
    let explain = |from: &str, to: &str| {
        output_of(ringtap().args(["filter", "--rules", &path, "--explain", from, to]))
    };
    let banned = explain("192.0.2.7", "10.0.0.1");
    assert_eq!(explain("::ffff:192.0.2.7", "::ffff:10.0.0.1"), banned);
    assert_eq!(banned.0, "dropped: 192.0.2.7 banned at revision 1\n");
    assert_eq!(
        explain("192.0.2.8", "10.0.0.1").0,
        "accepted: rule 1 of revision 1: allow from 192.0.2.0/24 to any\n"
    );
    assert_eq!(explain("::1", "::2").0, "dropped: no rule from ::1 to ::2, default deny\n");
    let dry = ["filter", "-r", "none.pcap", "-w", "none", "--rules", &path, "--dry-run"];
    let (plan, _, code) = output_of(ringtap().args(dry));
    assert!(code == 0 && plan.contains("rules: 1 rule, 1 ban, default deny"), "{plan}");
    assert!(!plan.contains("buffers"), "{plan}");
}

#[test]
fn a_plan_between_interfaces_has_the_memory_for_frames() {
    for (flags, workers, shown, mebibytes) in [
        (&[][..], "1 worker", ["64.0", "16.0", "8.00"], [64_u64, 16, 8]),
        (&["--queues", "3"], "3 workers", ["64.0", "48.0", "24.0"], [64, 48, 24]),
        (&["--queues", "3", "--both-ways"], "6 workers", ["128", "96.0", "48.0"], [128, 96, 48]),
        (&["--send", "af-xdp", "--both-ways"], "2 workers", ["128", "32.0", "8.00"], [128, 32, 8]),
    ] {
        let plan = |form: &[&str]| {
            let dry = ["filter", "-i", "in", "-o", "out", "--dry-run"];
            let (plan, errors, code) = output_of(ringtap().args(dry).args(flags).args(form));
            assert_eq!(code, 0, "{errors}");
            plan
        };
        let [received, passed, sent] = shown;
        let text = format!(
            "{workers}\nbuffers: {received} MiB for received frames, {passed} MiB for passed ones, {sent} MiB to send"
        );
        let shown = plan(&[]);
        assert!(shown.contains(&text), "{shown}");
        let [received, passed, sent] = mebibytes.map(|mebibytes| mebibytes << 20);
        let plan: Value = serde_json::from_str(&plan(&["--report", "json"])).unwrap();
        assert_eq!(
            plan["buffers"],
            json!({ "received": received, "passed": passed, "sent": sent })
        );
    }
}

#[test]
fn errors_name_the_line_the_flag_or_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = rules(folder.path(), "default deny\n\nallow from 192.0.2.7/24\n");
    let wrong = |flags: &[&str]| {
        let (_, errors, code) = output_of(ringtap().arg("filter").args(flags));
        (code, errors)
    };
    let (code, errors) = wrong(&["--rules", &path, "-r", "x", "-w", "y"]);
    assert!(code == 2 && errors.contains("rules.txt: line 3: "), "{errors}");
    assert!(errors.contains("use 192.0.2.0/24"), "{errors}");
    let (code, errors) = wrong(&[]);
    assert!(code == 2 && errors.contains("-r trace.pcap"), "{errors}");
    let (code, errors) = wrong(&["-i", "lo"]);
    assert!(code == 2 && errors.contains("--output"), "{errors}");
    let (code, errors) = wrong(&["-r", "x", "-w", "same", "--drops", "same"]);
    assert!(code == 2 && errors.contains("same file"), "{errors}");
    let (code, errors) = wrong(&["--rules", "no-such-rules", "-r", "x"]);
    assert!(code == 1 && errors.contains("no-such-rules"), "{errors}");
    let (code, errors) = wrong(&["-r", "no-such.pcap", "-w", "/dev/null"]);
    assert!(code == 1 && errors.contains("no-such.pcap"), "{errors}");
    let (code, errors) = wrong(&["ctl", "no-such-socket", "list"]);
    assert!(code == 1 && errors.contains("no filter listens at no-such-socket"), "{errors}");
    // A failed run leaves an existing output file unchanged.
    let out = folder.path().join("out.pcap");
    fs::write(&out, "as it was").unwrap();
    let many = format!("{}", out.display());
    let (code, _) = wrong(&["-r", "x", "-w", &many, "--rules", &path]);
    assert_eq!((code, fs::read(&out).unwrap()), (2, b"as it was".to_vec()));
}

//! Tests of `ringtap measure` and `ringtap merge`: designs, results, sketch files and their other
//! readers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{office, output_of, ringtap};

/// Runs `measure -r office.pcap --report json` with `flags` and returns the report.
fn measured(flags: &str) -> Value {
    measured_of(&office(), flags)
}

fn measured_of(file: &Path, flags: &str) -> Value {
    let mut command = ringtap();
    command.args(["measure", "--report", "json", "--seed", "5", "-r"]).arg(file);
    let (report, errors, code) = output_of(command.args(flags.split_whitespace()));
    assert_eq!(code, 0, "{flags}: {errors}");
    serde_json::from_str(&report).unwrap()
}

#[test]
fn every_design_runs_and_its_residual_is_zero() {
    let exact = measured("--structure exact --design sequential --threshold 0.01");
    for design in ["sync", "async", "rss"] {
        for state in ["separate", "shared"] {
            for structure in ["cms", "sht", "rs"] {
                let memory = if structure == "rs" { "--memory 16M" } else { "" };
                let flags = format!(
                    "--design {design} --state {state} --structure {structure} -w 3 --check --threshold 0.01 {memory}"
                );
                let report = measured(&flags);
                let plan = &report["plan"];
                assert_eq!(
                    [&plan["design"], &plan["state"], &plan["structure"]],
                    [design, state, structure]
                );
                assert_eq!(report["ledger"]["residual"], 0, "{flags}");
                assert_eq!(report["packet_drop_rate"], 0.0);
                assert_eq!(report["total"], exact["total"], "{flags}");
                assert_eq!(report["packets"]["received"], exact["packets"]["received"]);
                assert!(
                    report["accuracy"]["recall"].as_f64().unwrap() > 0.9,
                    "{flags}: {}",
                    report["accuracy"]
                );
                assert!(report["processing_ns_mean"].as_f64().unwrap() > 0.0);
                let delay = |name: &str| report["delay_ns"][name].as_u64().unwrap();
                assert!(delay("p50") <= delay("p99") && delay("p99") <= delay("p999"));
            }
        }
    }
}

#[test]
fn heavy_keys_equal_the_top_talkers_of_the_monitor() {
    let mut command = ringtap();
    command.args(["monitor", "--report", "json", "--top", "5", "-r"]).arg(office());
    let (report, _, _) = output_of(&mut command);
    let monitor: Value = serde_json::from_str(&report).unwrap();
    let talkers = monitor["talkers"]["by_octets"]["source"].as_array().unwrap();
    for structure in ["mg", "mv", "cms-keys", "exact"] {
        let report =
            measured(&format!("--key source --weight octets --structure {structure} -w 2"));
        let (found, ip) = (report["heavy"].as_array().unwrap(), &monitor["octets"]["ip"]);
        assert_eq!(&report["total"], ip, "{structure}");
        let octets = |row: &Value| row["octets"].as_u64().unwrap();
        for (row, talker) in found.iter().zip(talkers) {
            assert_eq!(row["estimate"], octets(talker), "{structure}: {row}, {talker}");
        }
    }
}

#[test]
fn two_measurements_merge_into_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let one = measured(&format!("--key source --write sketch:{}", path("a").display()));
    measured(&format!("--key source --write sketch:{}", path("b").display()));
    let mut command = ringtap();
    command
        .args(["merge", "--report", "json", "--write"])
        .arg(format!("sketch:{}", path("both").display()));
    let (both, errors, code) = output_of(command.args([path("a"), path("b")]));
    assert_eq!(code, 0, "{errors}");
    let both: Value = serde_json::from_str(&both).unwrap();
    assert_eq!(both["total"].as_u64(), one["total"].as_u64().map(|total| 2 * total));
    for (row, half) in
        both["heavy"].as_array().unwrap().iter().zip(one["heavy"].as_array().unwrap())
    {
        assert_eq!(row["key"], half["key"]);
        assert_eq!(row["estimate"].as_u64(), half["estimate"].as_u64().map(|count| 2 * count));
    }
    // A merged measurement can be merged again. A measurement by another key, a capture and a
    // missing file are errors.
    let (text, _, code) = output_of(ringtap().arg("merge").args([path("both"), path("a")]));
    assert!(code == 0 && text.contains("2 measurements merged"), "{text}");
    measured(&format!("--key destination --write sketch:{}", path("other").display()));
    let refused = [
        (path("other"), "the key differs: source and destination"),
        (office(), "not a measurement"),
        (path("none"), "no such file"),
    ];
    for (file, words) in refused {
        let (_, errors, code) = output_of(ringtap().arg("merge").args([path("a"), file]));
        assert!(code == 1 && errors.contains(words), "{errors}");
    }
}

#[test]
fn datasketches_reads_the_sketches_with_the_same_results() {
    const SCRIPT: &str = "
import datasketches as ds, json, sys
items = ds.frequent_strings_sketch.deserialize(open(sys.argv[1], 'rb').read())
hll = ds.hll_sketch.deserialize(open(sys.argv[2], 'rb').read())
found = items.get_frequent_items(ds.frequent_items_error_type.NO_FALSE_NEGATIVES)
print(json.dumps({'total': items.total_weight, 'distinct': hll.get_estimate(),
    'items': {row[0]: [row[1], row[2], row[3]] for row in found}}))
";
    let folder = tempfile::tempdir().unwrap();
    let (items, hll) = (folder.path().join("items"), folder.path().join("hll"));
    let flags =
        format!("--key source --write apache:{} --write hll:{}", items.display(), hll.display());
    let report = measured(&flags);
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-tools/venv/bin/python");
    let has = python.exists()
        && Command::new(&python)
            .args(["-c", "import datasketches"])
            .output()
            .unwrap()
            .status
            .success();
    if !has {
        eprintln!("SKIPPED: no datasketches for Python; scripts/setup-test.sh fetches it");
        return;
    }
    let output = Command::new(python).args(["-c", SCRIPT]).args([items, hll]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["total"], report["total"]);
    assert!(!report["heavy"].as_array().unwrap().is_empty());
    for row in report["heavy"].as_array().unwrap() {
        let [_, lower, upper] =
            [0, 1, 2].map(|at| &found["items"][row["key"].as_str().unwrap()][at]);
        assert_eq!([&row["lower"], &row["upper"]], [lower, upper], "{row}");
    }
    let distinct = report["distinct"]["value"].as_f64().unwrap();
    assert!((found["distinct"].as_f64().unwrap() - distinct).abs() <= 0.5, "{found}");
}

#[test]
fn packets_above_the_capacity_are_dropped_and_counted() {
    let flags = "--rate 1G --packets 3M --structure cms --design async -w 1";
    let report = measured(flags);
    assert_eq!(report["packets"]["received"], 3_000_000);
    let dropped = report["packets"]["dropped"]["ring_full"].as_u64().unwrap();
    let measured_packets = report["measured"].as_u64().unwrap();
    let others: u64 =
        report["not_measured"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(dropped + measured_packets + others, 3_000_000);
    assert!(dropped > 0 && report["packet_drop_rate"].as_f64().unwrap() > 0.0);
    assert_eq!(report["ledger"]["residual"], 0);
    let (_, errors, code) = output_of(
        ringtap()
            .args(["measure", "--fail-on-drop", "-r"])
            .arg(office())
            .args(flags.split_whitespace()),
    );
    assert!(code == 3 && errors.contains("packets dropped"), "{errors}");
}

#[test]
fn invalid_flags_are_usage_errors() {
    for (flags, words) in [
        ("--structure mg --state shared", "no shared form"),
        ("--structure rs-modular", "single IPv4 addresses"),
        ("--structure frob", ": use cms, cms-cu"),
        ("--key prefix:129", "prefix:N"),
        ("--threshold 0", "more than 0 and at most 1"),
        ("--memory 3", "use at least 384 bytes"),
        ("--memory 100T", "for mg: use less"),
        ("--rate 0", "use 1 or more"),
        ("--packets 5", "needs --rate"),
        ("--design rss --queues 2 -w 3", "rss has one worker a queue"),
        ("--structure cms --write apache:x", "use --structure mg"),
        ("--write x", "sketch:PATH"),
        ("--design fast", ": use sync, async, rss"),
    ] {
        let mut command = ringtap();
        command.args(["measure", "-r"]).arg(office()).args(flags.split_whitespace());
        let (out, errors, code) = output_of(&mut command);
        assert!(code == 2 && out.is_empty() && errors.contains(words), "{flags}: {code}, {errors}");
    }
    let (_, errors, code) = output_of(ringtap().arg("measure"));
    assert!(code == 2 && errors.contains("--read"), "{errors}");
}

#[test]
fn advise_recommends_one_of_the_designs_tried() {
    let report = measured("--advise --key source --structure sht -w 2");
    let tried = report["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 6, "three designs, two states");
    assert!(
        report["recommended"].as_u64().unwrap() < 6
            && !report["reasons"].as_array().unwrap().is_empty()
    );
}

#[test]
fn a_dry_run_prints_the_plan_and_reads_nothing() {
    let mut command = ringtap();
    command.args(["measure", "--dry-run", "--seed", "3", "-w", "2", "-r", "nowhere.pcap"]);
    let (text, errors, code) = output_of(&mut command);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(text.contains("rss, separate, mg of 1.00 MiB; packets by five-tuple"), "{text}");
    assert!(text.contains("multi-queue: queue 0"), "{text}");
}

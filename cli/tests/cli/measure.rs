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
    let exact = measured("--structure exact --design sequential");
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
        let flags = format!("--key source --weight octets --structure {structure} -w 2 --top 5");
        let report = measured(&flags);
        assert_eq!(report["heavy"].as_array().unwrap().len(), 5);
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
    // Without a choice the keys are those of the first file.
    assert_eq!((&both["top"], both["heavy"].as_array().unwrap().len()), (&10.into(), 10));
    for (flags, listed) in [("--top 3", 3), ("--threshold 0.1", 2), ("--threshold 0.1 --top 1", 1)]
    {
        let mut command = ringtap();
        command.args(["merge", "--report", "json"]).args(flags.split(' '));
        let (text, errors, code) = output_of(command.args([path("a"), path("b")]));
        assert_eq!(code, 0, "{errors}");
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["heavy"].as_array().unwrap().len(), listed, "{flags}: {report}");
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
        ("--top x", "--top"),
        ("--top 100001", "use 0 to 100000"),
        ("--interval 0", "--interval"),
        ("--interval 5x", "use 30, 30s, 500ms or 1h30m"),
        ("--interval 60s --rate 9", "cannot be used with"),
        ("--interval 60s --packets 9", "cannot be used with"),
        ("--interval 60s --write sketch:x", "cannot be used with"),
        ("--interval 60s --structure cms --state shared", "--state separate"),
        ("--interval 60s --structure exact --memory 40G", "use less --memory"),
        ("--report html", "possible values: text, json, csv"),
        ("--report csv --check", "use text or json"),
        ("--report csv --distinct", "use text or json"),
        ("--report csv --structure cms", "cms stores no keys"),
        ("--interval 0.5ms", "invalid interval of 0.5 ms: use 1ms or more"),
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

/// With so little memory sht lacks most keys, though it has the heaviest.
#[test]
fn sht_is_not_advised_where_it_lacks_keys() {
    let flags = "--advise --design rss --state separate -w 1 --memory 4K";
    let report = measured(flags);
    let tried = report["tried"].as_array().unwrap();
    let sht = tried.iter().find(|one| one["structure"] == "sht").unwrap();
    assert!(sht["listed"].as_f64().unwrap() < 0.5, "{sht}");
    let recommended = &tried[report["recommended"].as_u64().unwrap() as usize];
    assert_ne!(recommended["structure"], "sht", "{report}");
}

/// Runs `measure -r office.pcap` with `flags` and returns stdout.
fn printed(flags: &str) -> String {
    let mut command = ringtap();
    command.args(["measure", "--seed", "5", "-r"]).arg(office()).args(flags.split_whitespace());
    let (out, errors, code) = output_of(&mut command);
    assert_eq!((code, errors.as_str()), (0, ""), "{flags}");
    out
}

#[test]
fn intervals_are_lines_of_json_with_the_numbers_of_the_monitor() {
    let mut command = ringtap();
    command.args(["monitor", "--report", "json", "--interval", "1s", "-r"]).arg(office());
    let monitor: Value = serde_json::from_str(&output_of(&mut command).0).unwrap();
    let rows = monitor["intervals"].as_array().unwrap();
    assert!(rows.len() > 5, "{}", rows.len());
    let key = "--key src --weight octets --top 3 --interval 1s";
    let mut reports = Vec::new();
    for design in ["sequential", "sync -w 3", "async -w 2", "rss -w 4"] {
        let flags = format!("{key} --report json --structure exact --design {design}");
        let lines: Vec<Value> = printed(&flags)
            .lines()
            .map(|line| {
                let mut line: Value = serde_json::from_str(line).unwrap();
                line.as_object_mut().unwrap().remove("memory_bytes").unwrap();
                line
            })
            .collect();
        assert_eq!(lines.len(), rows.len(), "{design}");
        for (line, row) in lines.iter().zip(rows) {
            assert_eq!([&line["start"], &line["end"]], [&row["start"], &row["end"]]);
            assert_eq!(line["total"], row["octets"]["ip"], "{line}, {row}");
            let heavy = line["heavy"].as_array().unwrap();
            assert!((1..=3).contains(&heavy.len()), "{line}");
            assert!(heavy.iter().all(|key| key["lower"] == key["upper"]), "{line}");
        }
        reports.push(lines);
    }
    assert!(reports.iter().all(|lines| *lines == reports[0]));
}

#[test]
fn csv_has_a_row_for_each_key_and_interval() {
    let flags = "--key source --top 4 --interval 1s --structure exact --report";
    let json = printed(&format!("{flags} json"));
    let mut expected = String::from("start,end,key,estimate,lower,upper,total\n");
    for line in json.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        for row in line["heavy"].as_array().unwrap() {
            let numbers = [&row["estimate"], &row["lower"], &row["upper"], &line["total"]];
            let numbers = numbers.map(ToString::to_string).join(",");
            let [start, end] = [&line["start"], &line["end"]].map(text);
            expected += &format!("{start},{end},{},{numbers}\n", text(&row["key"]));
        }
    }
    assert_eq!(printed(&format!("{flags} csv")), expected);
    // The whole run has no times.
    let whole = printed("--key five-tuple --top 2 --report csv");
    let lines: Vec<_> = whole.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "key,estimate,lower,upper,total"), "{whole}");
    assert!(lines.iter().all(|line| line.split(',').count() == 5), "{whole}");
    // A table that is too small is a warning.
    let mut command = ringtap();
    command.args(["measure", "--structure", "exact", "--memory", "1K", "--report", "csv"]);
    let (_, errors, code) = output_of(command.arg("-r").arg(office()));
    assert!(code == 0 && errors.contains("raise --memory"), "{errors}");
}

#[test]
fn the_text_says_which_keys_are_listed() {
    for (flags, words) in [
        ("", "Heavy keys: 10, each "),
        ("--top 12", "or more (top 12)\n"),
        ("--threshold 0.01", "or more (from 0.01 of all)\n"),
        ("--top 2 --threshold 0.01", "or more (top 2 from 0.01 of all)\n"),
        ("--threshold 0.0001", "shows all)"),
        ("--top 0", "Heavy keys: 0, each 1 or more (top 0)\n"),
    ] {
        let text = printed(flags);
        assert!(text.contains(words), "{flags}: {text}");
    }
    let rows = |text: &str| text.lines().filter(|line| line.contains(" > ")).count();
    assert_eq!(rows(&printed("--top 30")), 30);
    let text = printed("--interval 1s --top 2");
    assert!(text.contains("packets by five-tuple, top 2, every 1 s\n"), "{text}");
    let intervals = text.matches("Heavy keys: 2, each ").count();
    assert!(intervals > 5 && text.matches(".000000000Z to ").count() == intervals, "{text}");
    assert!(text.trim_end().lines().last().unwrap().contains("8,192 packets received"), "{text}");
}

#[test]
fn a_reader_that_leaves_ends_the_run_and_a_full_disk_is_an_error() {
    let run = |flags: &str, to: &str| {
        let script = format!("\"$0\" measure -r \"$1\" {flags} {to}");
        let mut command = assert_cmd::Command::new("bash");
        command.args(["-o", "pipefail", "-c", &script, env!("CARGO_BIN_EXE_ringtap")]);
        output_of(command.arg(office()))
    };
    let short = "--interval 10ms --top 1000 --report json";
    let (out, errors, code) = run(short, "| head -n 1");
    assert_eq!((out.lines().count(), errors.as_str(), code), (1, "", 0));
    // Also where only the end finds no reader.
    let (out, errors, code) = run("--interval 1h", "| true");
    assert_eq!((out.as_str(), errors.as_str(), code), ("", "", 0));
    let (_, errors, code) = run(short, "> /dev/full");
    assert!(code == 1 && errors.contains("writing to stdout: No space left"), "{errors}");
}

/// Each command of the page with its output, in which `…` stands for more.
#[test]
fn the_output_that_the_page_shows_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/SKETCHES.md")).unwrap();
    let block = page.split("```").find(|block| block.contains("\nHeavy keys: ")).unwrap();
    let mut count = 0;
    for shown in block.split("ringtap measure -r trace.pcap ").skip(1) {
        let (flags, output) = shown.split_once('\n').unwrap();
        let printed = printed(flags);
        let mut rest = &printed[..];
        for part in output.trim_end().split('…') {
            let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part}: {printed}"));
            rest = after;
        }
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn a_dry_run_prints_the_plan_and_reads_nothing() {
    let mut command = ringtap();
    command.args(["measure", "--dry-run", "--seed", "3", "-w", "2", "-r", "nowhere.pcap"]);
    let (text, errors, code) = output_of(&mut command);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(text.contains("packets by five-tuple, top 10\n"), "{text}");
    assert!(text.contains("rss, separate, mg of 1.00 MiB, up to 4 (4.00 MiB)\n"), "{text}");
    assert!(text.contains("multi-queue: queue 0"), "{text}");
    // With intervals there is a queue of them, too.
    for (report, words) in [
        ("text", "up to 12 (12.0 MiB), and 4.25 MiB to print intervals\n"),
        ("json", "\"printing_bytes\": 4456448"),
    ] {
        let mut command = ringtap();
        command.args(["measure", "--dry-run", "--interval", "1s", "-w", "2", "-r", "nowhere.pcap"]);
        let (text, errors, code) = output_of(command.args(["--report", report]));
        assert_eq!((code, errors.as_str()), (0, ""));
        assert!(text.contains(words), "{text}");
    }
}

//! Tests of `monitor` on captures: plans, configuration, digests, alerts.

use std::fs;

use ringtap_engine::Machine;
use ringtap_ring::Kind as Ring;
use serde_json::Value;

use crate::common::{have_two_cores, json, office, output_of, ringtap};

#[test]
fn every_arrangement_has_the_same_digest() {
    let on_one_core = match Machine::this().allowed_cores.first() {
        Some(core) => format!("--queues 7 --cores {core}"),
        None => "--queues 7".to_owned(),
    };
    let digest =
        |flags: &[&str]| json(&office(), &[flags, &["--digest"]].concat())["digest"].clone();
    let expected = digest(&["--sequential", "--seed", "1"]);
    for ring in Ring::ALL.map(Ring::name) {
        for workers in ["1", "3"] {
            let flags =
                ["-w", workers, "--ring", ring, "--ring-capacity", "64", "--ring-batch", "8"];
            assert_eq!(digest(&flags), expected, "{flags:?}");
        }
    }
    for arrangement in [
        "--skeleton pipeline -w 1",
        "--skeleton pipeline -w 3",
        "--skeleton pipeline --queues 2 -w 2",
        "--skeleton shared-pipeline --queues 2 -w 2",
        "--skeleton shared-pipeline",
        "--skeleton farm --queues 3 -w 2",
        "--skeleton multi-queue",
        "--queues 1",
        "--queues 2",
        &on_one_core,
        "--queues 2 -w 2",
        "",
    ] {
        let flags: Vec<_> = arrangement.split_whitespace().collect();
        assert_eq!(digest(&flags), expected, "{flags:?}");
    }
    assert_ne!(digest(&["--idle-timeout", "1s"]), expected);
}

#[test]
fn a_dry_run_prints_the_plan_and_reads_nothing() {
    if !have_two_cores() {
        return;
    }
    let flags = [
        "monitor",
        "--dry-run",
        "-r",
        "no-such.pcap",
        "-w",
        "3",
        "--ring",
        "lamport",
        "--idle-timeout",
        "1m30s",
        "--seed",
        "7",
        "--cores",
        "0-1",
        "--tunnels",
        "both",
    ];
    let (text, errors, code) = output_of(ringtap().args(flags));
    assert_eq!((errors.as_str(), code), ("", 0));
    for words in ["farm", "worker 2", "lamport", "90 s idle", "no-such.pcap", "core 1"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (plan, _, _) = output_of(ringtap().args(flags).args(["--report", "json"]));
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!((&plan["workers"], &plan["ring"]), (&3.into(), &"lamport".into()));
    assert_eq!(plan["tunnels"], "both");
    assert_eq!(
        (&plan["seed"], &plan["timeouts"]["idle_ns"]),
        (&7.into(), &90_000_000_000_u64.into())
    );
}

#[test]
fn the_plan_lists_the_threads_of_each_queue() {
    if !have_two_cores() {
        return;
    }
    let plan = |flags: &str| {
        let mut command = ringtap();
        command.args(["monitor", "--dry-run", "-r", "no-such.pcap", "--cores", "0,1"]);
        output_of(command.args(flags.split_whitespace()))
    };
    for (flags, words) in [
        ("", ["multi-queue", "queue 0 + merger (core 0) | queue 1 + merger (core 1)"]),
        ("--queues 2 -w 2", ["farm", "dispatcher 0 + worker 0 + worker 1 + merger (core 0) | "]),
        (
            "--skeleton shared-pipeline --queues 2 -w 1",
            ["2, workers of each: 1", "worker 0 + worker 1"],
        ),
        ("--sample 1:1k", ["sample", "1:1000"]),
    ] {
        let (text, errors, code) = plan(flags);
        assert_eq!((errors.as_str(), code), ("", 0));
        assert!(words.iter().all(|words| text.contains(words)), "{flags}: {text}");
    }
    for (flags, words) in [
        ("--queues 0", "invalid number of queues 0: use 1 to 64"),
        ("--queues 2 --sequential", "one thread"),
        ("--skeleton multi-queue -w 2", "one worker a queue"),
        ("--sample 2:3", "use 1:100"),
    ] {
        let (_, errors, code) = plan(flags);
        assert!(code == 2 && errors.contains(words), "{flags}: {errors}");
    }
}

#[test]
fn a_sample_is_marked_in_the_report_and_is_no_loss() {
    let flags = ["--sample", "1:10", "--fail-on-drop", "--digest"];
    let report = json(&office(), &flags);
    let packets = &report["packets"];
    let handled = packets["handled"].as_u64().unwrap();
    assert!((500..1_200).contains(&handled), "{packets}");
    assert_eq!(packets["received"], 8_192);
    assert_eq!(packets["dropped"]["not_sampled"], 8_192 - handled);
    assert_eq!((&report["ledger"]["residual"], &report["plan"]["sample"]), (&0.into(), &10.into()));
    let alone = json(&office(), &[&flags[..], &["--sequential"]].concat());
    assert_eq!(alone["digest"], report["digest"]);
    let (text, _, _) = output_of(ringtap().args(["monitor", "--sample", "10", "-r"]).arg(office()));
    assert!(text.contains("sampled 1:10"), "{text}");
}

#[test]
fn flags_have_priority_over_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("ringtap.toml");
    let office = office();
    let text = format!(
        "read = [{:?}]\nworkers = 3\nring = \"lamport\"\nskeleton = \"farm\"\ndigest = true\n\
         analyses = [\"flows\", \"scans\"]\nidle-timeout = 15\nfail-on-drop = false\n",
        office.to_str().unwrap()
    );
    fs::write(&config, text).unwrap();
    let plan = |flags: &[&str]| -> Value {
        let mut command = ringtap();
        command.args(["monitor", "--dry-run", "--report", "json", "--config"]).arg(&config);
        let (plan, errors, _) = output_of(command.args(flags));
        serde_json::from_str(&plan).unwrap_or_else(|_| panic!("{errors}"))
    };
    let plain = plan(&[]);
    assert_eq!((&plain["workers"], &plain["ring"]), (&3.into(), &"lamport".into()));
    assert_eq!(
        (&plain["digest"], &plain["timeouts"]["idle_ns"]),
        (&true.into(), &15_000_000_000_u64.into())
    );
    assert_eq!(plain["analyses"], serde_json::json!(["flows", "scans"]));
    assert_eq!(plain["source"].as_array().unwrap().len(), 1);
    let changed = plan(&["--ring", "lock", "-w", "2", "-r", "other.pcap"]);
    assert_eq!((&changed["workers"], &changed["ring"]), (&2.into(), &"lock".into()));
    assert_eq!(changed["source"], serde_json::json!(["other.pcap"]));
}

#[test]
fn an_invalid_configuration_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("wrong.toml");
    for (text, words) in [
        ("worker = 3", "unknown key \"worker\": a similar key is \"workers\""),
        ("colour = 3", "unknown key \"colour\": use read, "),
        ("workers = \"many\"", "'many'"),
        ("ring = \"foo\"", ": use lock"),
        ("digest = 1", "invalid digest: use true or false"),
        ("config = \"other.toml\"", "unknown key \"config\""),
        ("workers = ", "wrong.toml"),
    ] {
        fs::write(&config, text).unwrap();
        let mut command = ringtap();
        command.args(["monitor", "-r"]).arg(office()).arg("--config").arg(&config);
        let (_, errors, code) = output_of(&mut command);
        assert!(
            code == 2 && errors.contains("wrong.toml") && errors.contains(words),
            "{text}: {errors}"
        );
    }
}

#[test]
fn losses_change_the_exit_code_only_with_fail_on_drop() {
    let run = |flags: &[&str]| {
        output_of(ringtap().args(["monitor", "-q", "-r"]).arg(office()).args(flags))
    };
    assert_eq!(run(&["--fail-on-drop"]).2, 0);
    let few = ["--max-flows", "50", "-w", "1"];
    assert_eq!(run(&few).2, 0);
    let (text, errors, code) = run(&[&few[..], &["--fail-on-drop"]].concat());
    assert_eq!(code, 3, "{errors}");
    assert!(errors.contains("flows ended early for lack of memory"), "{errors}");
    assert!(text.contains("Flows"), "the report is still printed: {text}");
}

#[test]
fn scans_of_files_are_printed_once_with_begin_and_end_unless_quiet() {
    let errors =
        |flag: &[&str]| output_of(ringtap().args(["monitor", "-r"]).arg(office()).args(flag)).1;
    let alerts = errors(&[]);
    let lines: Vec<_> = alerts.lines().collect();
    assert!(lines.len() == 4, "{alerts}");
    for line in &lines {
        let (since, rest) = line.strip_prefix("alert: ").unwrap().split_once(" to ").unwrap();
        let (time, text) = rest.split_once(": ").unwrap();
        assert!(since < time && since.starts_with("2026-"), "{line}");
        assert!(text.ends_with(" (medium)") && text.contains(" failed"), "{line}");
    }
    assert!(alerts.contains(": 10.20.0.102 scans port 22/tcp: 21 targets failed"), "{alerts}");
    assert_eq!(errors(&["-q"]), "");
}

#[test]
fn scans_of_a_pipe_are_printed_as_they_are_found() {
    let mut command = ringtap();
    let capture = fs::read(office()).unwrap();
    let (_, alerts, _) = output_of(command.args(["monitor", "-r", "-"]).write_stdin(capture));
    for state in ["begins", "ends"] {
        let is_one = |line: &&str| {
            line.starts_with("alert: 2026-") && line.contains(&format!("Z {state}: "))
        };
        assert_eq!(alerts.lines().filter(is_one).count(), 4, "{alerts}");
    }
    assert!(alerts.contains("begins: 10.20.0.102 scans port 22/tcp"), "{alerts}");
}

#[test]
fn the_stats_flag_prints_lines() {
    let (_, errors, _) =
        output_of(ringtap().args(["monitor", "--stats", "1ns", "-q", "-r"]).arg(office()));
    assert!(
        errors.starts_with("stats: ") && errors.contains(" packets, ") && errors.contains("/s, "),
        "{errors}"
    );
}

#[test]
fn an_invalid_list_of_names_is_a_usage_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("names.txt");
    fs::write(&list, "# names\nexample.org example extra\n").unwrap();
    let mut command = ringtap();
    command.args(["monitor", "-r"]).arg(office()).arg("--names").arg(&list);
    let (_, errors, code) = output_of(&mut command);
    let expected = format!("error: reading the names in {}: line 2: ", list.display());
    assert_eq!((code, errors.starts_with(&expected)), (2, true), "{errors}");
    assert!(errors.contains("write a line such as"), "{errors}");
}

#[test]
fn omitted_analyses_are_not_in_the_report() {
    let report = json(&office(), &["--analyses", "scans"]);
    for absent in ["applications", "flows", "talkers", "conversations", "intervals"] {
        assert!(report.get(absent).is_none(), "{absent}");
    }
    assert_eq!(report["scans"]["vertical"].as_array().unwrap().len(), 2);
    let (text, _, _) =
        output_of(ringtap().args(["monitor", "--analyses", "scans", "-r"]).arg(office()));
    assert!(text.contains("Vertical scans") && !text.contains("Top sources"), "{text}");
}

#[test]
fn the_activity_is_the_same_in_every_arrangement_while_the_tables_have_room() {
    let activity = |flags: &[&str]| {
        let flags = [&["--analyses", "all,activity", "--interval", "10s"], flags].concat();
        json(&office(), &flags)["activity"].clone()
    };
    let one = activity(&["--sequential"]);
    let lists = ["senders", "receivers", "sending_networks", "targets", "changers"];
    for flags in [["--skeleton", "farm", "-w", "3"], ["--skeleton", "multi-queue", "--queues", "2"]]
    {
        let other = activity(&flags);
        for (interval, list) in (0..2).flat_map(|interval| lists.map(|list| (interval, list))) {
            assert_eq!(one[interval][list], other[interval][list], "{flags:?} {interval} {list}");
        }
    }
    // Checked with tshark: ip.src == 10.20.0.10, from 02:08:10 on.
    let talkers = &json(&office(), &["--analyses", "talkers"])["talkers"]["by_octets"]["source"][0];
    assert_eq!(one[1]["senders"][0]["address"], talkers["address"]);
    assert_eq!(one[1]["senders"][0]["lower"], talkers["octets"]);
    assert_eq!(json(&office(), &[]).get("activity"), None);
}

#[test]
fn an_alert_names_the_host_that_reaches_a_limit() {
    let file = office().display().to_string();
    let flags = ["monitor", "-r", &file, "--interval", "10s", "--alert", "src-peers=1k"];
    let (_, errors, code) = output_of(ringtap().args(flags));
    assert_eq!(code, 0);
    assert!(errors.contains("begins: 10.20.0.10 sent to 1,20"), "{errors}");
    assert!(errors.contains("ends: 10.20.0.10 sent to 1,20"), "{errors}");
    assert_eq!(errors.matches(" sent to ").count(), 2, "{errors}");
    for wrong in
        ["src-peers", "pps=3", "dst-pps=x", "new-device=0s", "new-server-port=x", "volume-change=0"]
    {
        let (_, errors, code) =
            output_of(ringtap().args(["monitor", "-r", &file, "--alert", wrong]));
        assert!(code == 2 && errors.contains("--alert"), "{errors}");
    }
}

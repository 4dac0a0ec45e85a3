//! Tests of the commands of `ringtap-lab`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use ringtap_engine::Machine;
use ringtap_lab::exclusion::locked::Sharing;
use ringtap_testkit::printed_commands;
use serde_json::Value;

fn lab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap-lab"));
    command.env_remove("RINGTAP_LOG").env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1");
    command
}

/// Standard output, standard error and exit code of a command.
fn output(command: &mut Command) -> (String, String, i32) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().expect("an exit code"))
}

/// The JSON report of a command that must succeed.
fn report(words: &[&str]) -> Value {
    let (out, errors, code) = output(lab().args(words).args(["--report", "json"]));
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&out).unwrap()
}

/// IDs that documents and scripts use.
const IDS: [&str; 23] = [
    "rings/element-size",
    "rings/capacity",
    "rings/fastforward",
    "rings/cache-misses",
    "monitor/workers",
    "skeletons/microbenchmarks",
    "probe/arrangements",
    "probe/grain",
    "probe/peers",
    "pit/cas",
    "pit/cores",
    "filter/workers",
    "filter/cache-size",
    "filter/random",
    "filter/small-caches",
    "measure/rss-table",
    "measure/non-rss-table",
    "measure/sketch-size",
    "measure/pool-size",
    "measure/cores",
    "measure/packet-size",
    "measure/choose",
    "measure/accuracy",
];

#[test]
fn all_experiments_are_listed_with_their_figures() {
    let (list, errors, code) = output(lab().arg("list"));
    assert_eq!((errors.as_str(), code), ("", 0));
    for id in IDS {
        assert!(list.contains(&format!("  {id} ")), "{id}");
    }
    assert!(list.contains("(Figure 13)") && list.contains("Takemasa"), "{list}");
}

#[test]
fn a_run_measures_judges_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = lab();
        command.current_dir(&folder).args(["run", "rings/cache-misses", "--quick", "--no-gate"]);
        output(command.args(["--report", "json"]))
    };
    let (out, errors, code) = run();
    assert_eq!(code, 0, "{errors}");
    let judgements: Value = serde_json::from_str(&out).unwrap();
    let judgements = judgements.as_array().unwrap();
    assert_eq!(judgements.len(), 4, "{out}");
    let all =
        ["stronger", "reproduced", "weaker", "contradicted", "inconclusive", "not-possible-here"];
    for judgement in judgements {
        let (claim, verdict) =
            (judgement["claim"].as_str().unwrap(), judgement["verdict"].as_str());
        // The machine may lack counters; the simulation runs everywhere.
        let wanted: &[_] = if claim.contains("simulation") { &all[..4] } else { &all };
        assert!(wanted.contains(&verdict.unwrap()), "{judgement}");
    }
    assert!(errors.contains("report.html"), "{errors}");
    let runs: Vec<_> = fs::read_dir(folder.path().join("runs")).unwrap().flatten().collect();
    assert_eq!(runs.len(), 1);
    let rows = fs::read_to_string(runs[0].path().join("rings-cache-misses.csv")).unwrap();
    assert!(rows.lines().count() > 15 && rows.contains(",simulation,"), "{rows}");
    // A second run measures nothing again, and the page can be rebuilt from the rows.
    assert_eq!(run().0, out);
    assert_eq!(fs::read_to_string(runs[0].path().join("rings-cache-misses.csv")).unwrap(), rows);
    let (page, _, code) = output(lab().current_dir(&folder).arg("report"));
    assert!(code == 0 && folder.path().join(Path::new(page.trim())).is_file(), "{page}");
}

#[test]
fn a_run_is_checked_against_a_kept_one() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/runs");
    let [xeon, epyc] =
        ["2026-11-22-xeon-2c-47df368b9138-full", "2026-11-29-epyc-2c-56888abccb9d-full"]
            .map(|name| kept.join(name));
    let check =
        |paths: [&Path; 2], flags: &[&str]| output(lab().arg("check").args(paths).args(flags));
    // A run agrees with itself.
    let (out, _, code) = check([&xeon, &xeon], &[]);
    assert!(code == 0 && out.contains("measured claims: differs: 0, near: 0, agrees: "), "{out}");
    // Only the experiments of both are compared.
    let (out, errors, _) = check([&xeon, &epyc], &["--report", "json"]);
    let comparison: Value = serde_json::from_str(&out).unwrap();
    let pairs = comparison["pairs"].as_array().unwrap();
    let left_out = comparison["left_out"].as_array().unwrap();
    assert!(left_out.contains(&"probe/grain".into()), "{out}");
    let is_of_both = |pair: &Value| !left_out.contains(&pair["here"]["experiment"]);
    assert!(!pairs.is_empty() && pairs.iter().all(is_of_both), "{out}");
    assert!(errors.contains("expected: ") && errors.contains("here: "), "{errors}");

    // Another candidate's rows under a name: the verdict changes sides.
    let folder = tempfile::tempdir().unwrap();
    let planted = folder.path().join("planted");
    fs::create_dir(&planted).unwrap();
    fs::copy(xeon.join("machine.json"), planted.join("machine.json")).unwrap();
    let rows = fs::read_to_string(xeon.join("pit-cas.csv")).unwrap();
    let [one, other] = [",naive,", ",prefetched,"];
    let swapped = rows.replace(one, ",X,").replace(other, one).replace(",X,", other);
    assert_ne!(swapped, rows);
    fs::write(planted.join("pit-cas.csv"), swapped).unwrap();
    let (out, _, code) = check([&xeon, &planted], &[]);
    assert!(code == 3 && out.contains("differs    pit/cas: Prefetching makes"), "{out}");
    assert!(out.contains("expected ") && out.contains("here contradicted, "), "{out}");

    for (words, error) in [
        (vec!["check"], "EXPECTED"),
        (vec!["check", "/nowhere"], "/nowhere"),
        (vec!["check", xeon.to_str().unwrap(), "/nowhere"], "/nowhere"),
    ] {
        let (out, errors, code) = output(lab().args(words));
        assert!(out.is_empty() && code != 0 && errors.contains(error), "{errors}");
    }
}

#[test]
fn a_workload_prints_its_numbers() {
    let words = "trial ring kind=mcring bytes=64 capacity=100 batch=10 mode=burst items=50k cores=";
    let (out, errors, code) = output(lab().args(words.split(' ')));
    assert_eq!((errors.as_str(), code), ("", 0));
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["items"] == 50_000 && found["items_per_second"].as_f64().unwrap() > 0.0, "{out}");
}

#[test]
fn usage_errors_name_the_mistake() {
    for (words, wanted) in [
        ("run rings/colour", "ringtap-lab list"),
        ("run", "ID"),
        ("run --paper 5", "use 0 to 4"),
        ("run rings --paper 0", "cannot be used with"),
        ("run rings --cores 0", "use 1 to 1024"),
        ("trial rope", "cache-misses"),
        ("trial ring kind=mcring", "missing"),
        ("compare", "REV"),
        ("filter --mix 9 --packets 10", "mixes 1 to 8"),
        ("filter --work java", "serial, interleaved, simd, jump or off"),
        ("ndn cas --cores 1023", "core 1023 is not available"),
        ("ndn pit --cores 1023", "core 1023 is not available"),
        ("ndn pit --mode free", "buckets-naive, global, buckets-owned or buckets-elided"),
        ("ndn pit --workers 0", "from 1 to 256"),
        ("ndn model --cores-max 0", "from 1 to 1024"),
    ] {
        let (_, errors, code) = output(lab().args(words.split(' ')));
        assert!(code == 2 && errors.contains(wanted), "{words}: {code} {errors}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, errors, code) = output(lab().current_dir(&folder).arg("report"));
    assert!(code == 1 && errors.contains("ringtap-lab run"), "{errors}");
}

#[test]
fn the_commands_on_kept_pages_are_valid() {
    let commands = printed_commands("ringtap-lab");
    assert!(commands.len() > 20, "{commands:?}");
    for words in commands {
        // With --help the flags are parsed, and nothing runs.
        let (_, errors, code) = output(lab().args(&words).arg("--help"));
        assert_eq!((errors.as_str(), code), ("", 0), "{words:?}");
    }
}

#[test]
fn a_full_disk_leaves_no_incomplete_file_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, left) = (folder.path().join("disk"), folder.path().join("left"));
    fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=36k tmpfs \"$1\" || exit 77; cd \"$1\" || exit 77
                  \"$3\" run rings/cache-misses --quick --no-gate; code=$?; cp -a . \"$2\"; exit $code";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).args([&disk, &left]);
    let (_, errors, code) =
        output(command.arg(env!("CARGO_BIN_EXE_ringtap-lab")).env("NO_COLOR", "1"));
    if code == 77 || errors.starts_with("unshare: ") {
        return eprintln!("SKIPPED: mounting a small disk needs root and unshare: {errors}");
    }
    assert!(code == 1 && errors.contains("No space left on device"), "{code}: {errors}");
    let mut folders = vec![left];
    let mut files = 0;
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let is_ended = text.ends_with('\n');
            let text = text.trim_end();
            let whole = match path.extension().and_then(|end| end.to_str()) {
                Some("svg") => text.ends_with("</svg>"),
                Some("html") => text.ends_with("</html>"),
                Some("json") => serde_json::from_str::<Value>(text).is_ok(),
                Some("csv") => {
                    let fields = text.lines().map(|line| line.split(',').count());
                    is_ended && fields.min() > Some(1)
                }
                _ => false,
            };
            assert!(whole, "{name}: {text}");
            files += 1;
        }
    }
    assert!(files > 1);
}

#[test]
fn all_designs_of_the_benchmark_have_the_same_outcome() {
    let bench = |flags: &[&str]| -> Value {
        report(&[&["filter", "--mix", "1", "--packets", "20k"], flags].concat())
    };
    let oracle = bench(&["--design", "oracle", "--work", "jump"]);
    assert_eq!(oracle["packets"], 20_000);
    assert!(oracle["packets_per_second"].as_u64().unwrap() > 0);
    for flags in [
        &["--design", "sharded", "-w", "1"][..],
        &["--design", "sharded", "-w", "2"],
        &["--design", "sharded", "-w", "2", "--distribution", "random"],
        &["--design", "paper", "-w", "1", "--cache", "16"],
        &["--design", "paper", "-w", "3", "--distribution", "random"],
    ] {
        let own = bench(&[flags, &["--work", "interleaved"]].concat());
        for what in ["accepted", "refused", "verdicts_sha256", "histogram_sha256"] {
            assert_eq!(own[what], oracle[what], "{flags:?} {what}");
        }
    }
    let allow = bench(&["--default", "allow", "--work", "off"]);
    assert!(allow["accepted"].as_u64() > oracle["accepted"].as_u64());
}

#[test]
fn the_benchmarks_print_a_flat_object_for_each_trial() {
    let flat = |trial: &Value| trial.as_object().unwrap().values().all(|value| !value.is_object());
    let pit = [
        "ndn",
        "pit",
        "-w",
        "1,2",
        "--exchanges",
        "2k",
        "--pending",
        "500",
        "--trials",
        "1",
        "--population",
        "1k",
    ];
    let found = report(&pit);
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 36, "{found}");
    for trial in trials {
        assert!(flat(trial) && trial["exchanges_per_second"].as_f64().unwrap() > 0.0, "{trial}");
        assert!(
            trial["exchanges"] == 2_000 && trial["cycles_per_exchange"].as_f64().unwrap() > 0.0,
            "{trial}"
        );
        let alone =
            trial["workers"] == 1 || trial["mode"] == "shards" && trial["names"] == "one-hot";
        assert_eq!(trial["share_of_busiest"] == 1.0, alone, "{trial}");
    }
    let allowed = Machine::this().allowed_cores;
    let core = allowed.first().map_or_else(|| "0".to_owned(), usize::to_string);
    let cas =
        ["ndn", "cas", "--cores", &core, "--lines", "1000", "--samples", "1k", "--trials", "1"];
    let found = report(&cas);
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4, "{found}");
    let modes: Vec<_> = trials.iter().map(|trial| trial["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["naive", "prefetched", "uncontended", "evicted"]);
    assert!(trials.iter().all(|trial| flat(trial) && trial["samples"] == 1_000), "{found}");
}

#[test]
fn the_published_model_yields_the_published_loss() {
    let found = report(&["ndn", "model", "--published"]);
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 120);
    let relative = |model: &str, cores: u64| {
        let found = trials.iter().find(|trial| trial["model"] == model && trial["cores"] == cores);
        (found.unwrap()["relative"].as_f64().unwrap() * 100.0).round()
    };
    assert_eq!([relative("paper", 1), relative("paper", 20)], [100.0, 58.0]);
    assert_eq!(relative("line-prefetched", 20), 100.0);
    assert!(relative("line-naive", 20) < 90.0);
    let (out, _, _) = output(lab().args(["ndn", "model", "--published"]));
    assert!(out.contains("With 20 cores the published model loses 42 % by exclusion."), "{out}");
}

/// The forwarder with own and with shared tables answers all Interests.
#[test]
fn exchanges_through_a_running_forwarder_are_measured_in_all_modes() {
    if !Path::new(env!("CARGO_BIN_EXE_ringtap-lab")).with_file_name("ringtap-ndn").exists() {
        eprintln!("SKIPPED: ringtap-ndn is not built (cargo build --workspace)");
        return;
    }
    let found = report(&["ndn", "live", "--workers", "2", "--duration", "200ms", "--trials", "1"]);
    let trials = found["trials"].as_array().unwrap();
    let modes: Vec<_> = trials.iter().map(|trial| trial["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, Sharing::ALL.map(Sharing::name));
    for trial in trials {
        assert!(trial["exchanges"].as_u64().unwrap() > 0, "{trial}");
    }
}

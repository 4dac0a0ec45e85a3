//! Tests of the store: files by time, the manifest, its verification, and what remains of killed runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use ringtap_testkit::soon;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{captures, have, office, on_small_disk, output_of, ringtap};
use crate::formats::python;
use crate::merge::real;
use crate::net::{Net, NetCommands, Right};
use crate::rotate::capture;
use crate::signals::Waiting;

/// Flags of a store with files of two seconds.
pub(crate) const FLAGS: [&str; 8] =
    ["--store", "store", "--probe", "edge", "--rotate", "2s", "--cut", "1s"];

/// Runs the command in a folder; returns stdout, stderr and the exit code.
pub(crate) fn run(folder: &Path, command: &str, flags: &[&str]) -> (String, String, i32) {
    output_of(ringtap().current_dir(folder).arg(command).args(flags))
}

/// Stores the bundled capture.
pub(crate) fn office_in(folder: &Path, flags: &[&str]) -> String {
    let capture = office();
    let read = ["-r", capture.to_str().unwrap()];
    let (_, errors, code) = run(folder, "monitor", &[&read, &FLAGS[..], flags].concat());
    assert_eq!(code, 0, "{errors}");
    errors
}

/// Verifies the store of a folder: the result and the exit code.
pub(crate) fn verify(folder: &Path, flags: &[&str]) -> (Value, i32) {
    let flags = [&["store", "--report", "json"], flags].concat();
    let (out, errors, code) = run(folder, "verify", &flags);
    let result = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {errors}"));
    (result, code)
}

/// The kinds of gaps in the store of a folder, each with its file if it has one.
pub(crate) fn gaps(folder: &Path) -> Vec<(String, String)> {
    let (result, code) = verify(folder, &[]);
    let gaps = result["gaps"].as_array().unwrap();
    assert_eq!(code, i32::from(!gaps.is_empty()));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    gaps.iter().map(|gap| (text(&gap["kind"]), text(&gap["file"]))).collect()
}

/// All files below a folder that are not hidden, by their path in it, with their bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop().filter(|next| next.exists()) {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !entry.file_name().to_str().unwrap().starts_with('.') {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                all.insert(name, fs::read(path).unwrap());
            }
        }
    }
    all
}

/// The names of files in a store below one of its folders.
pub(crate) fn names(folder: &Path, kind: &str) -> Vec<String> {
    let names = files(&folder.join("store")).into_keys();
    names.filter(|name| name.starts_with(kind)).collect()
}

/// The lines of a store's files below one of its folders, in the order of names.
pub(crate) fn lines(folder: &Path, kind: &str) -> Vec<Value> {
    let all = files(&folder.join("store")).into_iter().filter(|(name, _)| name.starts_with(kind));
    let text: String = all.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The only manifest of a store.
fn manifest(folder: &Path) -> PathBuf {
    let names = names(folder, "manifest/");
    assert_eq!(names.len(), 1, "{names:?}");
    folder.join("store").join(&names[0])
}

/// Flow records of a Parquet file.
fn rows(path: &Path) -> i64 {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    file.metadata().file_metadata().num_rows()
}

#[test]
fn a_store_has_all_records_in_files_by_time_and_is_whole_in_every_arrangement() {
    let mut first: Option<BTreeSet<String>> = None;
    for arrangement in
        [&["--sequential"][..], &["--skeleton", "farm", "-w", "3"], &["--queues", "2"]]
    {
        let folder = tempfile::tempdir().unwrap();
        let flags = ["--write", "json:all.json", "--report", "json", "--memory", "512M"];
        office_in(folder.path(), &[&flags, arrangement].concat());
        let flows = names(folder.path(), "flows/");
        assert!(flows.len() > 3, "{flows:?}");
        let is_of_probe = |name: &String| name.ends_with("-edge.parquet");
        assert!(flows.iter().all(is_of_probe), "{flows:?}");
        let total: i64 =
            flows.iter().map(|name| rows(&folder.path().join("store").join(name))).sum();
        let copies = files(folder.path()).into_iter().filter(|(name, _)| name.starts_with("all"));
        let copied = copies.map(|(_, bytes)| bytes.iter().filter(|byte| **byte == b'\n').count());
        assert_eq!(total, copied.sum::<usize>() as i64);
        assert!(!names(folder.path(), "events/").is_empty());
        // Scans of the capture.
        assert!(lines(folder.path(), "alerts/").len() >= 4);
        // The last line of an interval counts.
        let totals = lines(folder.path(), "totals/").into_iter();
        let totals: BTreeMap<_, _> = totals.map(|line| (line["start"].to_string(), line)).collect();
        let handled = totals.values().map(|line| line["packets"]["handled"].as_u64().unwrap());
        assert_eq!(handled.sum::<u64>(), 8_192);
        let (result, code) = verify(folder.path(), &[]);
        assert_eq!(code, 0, "{result}");
        assert_eq!(result["probes"][0]["flow_records"], total);
        assert_eq!(result["probes"][0]["runs"], 1);
        let flows: BTreeSet<_> = flows.into_iter().collect();
        assert_eq!(first.get_or_insert_with(|| flows.clone()), &flows, "{arrangement:?}");
    }
}

#[test]
fn sums_by_minute_and_application_are_those_of_the_packets() {
    const SCRIPT: &str = include_str!("store_truth.py");
    if !have("tshark") {
        eprintln!("SKIPPED: packets are read by tshark (Debian package tshark)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Traffic with pauses, bursts, and short and long flows.
    let generated = folder.path().join("generated.pcap");
    let profile = folder.path().join("mix.toml");
    fs::write(&profile, "flows = 500\nduration_ns = 400_000_000_000\n").unwrap();
    let mut command = ringtap();
    command.args(["generate", "--packets", "20k", "--seed", "7", "--profile"]).arg(&profile);
    let (_, errors, code) = output_of(command.arg("-w").arg(&generated));
    assert_eq!(code, 0, "{errors}");
    let (mut minutes, mut labels, mut all) = (0, 0, captures());
    let every = if std::env::var_os("RINGTAP_FULL").is_some() { 1 } else { 4 };
    let is_of_application = |path: &PathBuf| path.to_string_lossy().contains("/applications/");
    all.extend(real().into_iter().filter(is_of_application).step_by(every));
    // A damaged header is read differently.
    all.retain(|path| {
        !["fuzz", "malformed"].iter().any(|&name| path.to_string_lossy().contains(name))
    });
    all.push(generated);
    for (turn, capture) in all.iter().enumerate() {
        let probe = format!("p{turn}");
        let (arrangement, cut, flows) = [
            (&["--sequential"][..], "60s", &["--rotate", "5m"][..]),
            (&["--skeleton", "farm", "-w", "3"], "20s", &["--rotate", "1m"]),
            (&["--queues", "2"], "1s", &["--rotate", "1h", "--active-timeout", "0"]),
            (&["--skeleton", "pipeline"], "30s", &["--rotate", "7m", "--idle-timeout", "5s"]),
            (&["--skeleton", "shared-pipeline", "-w", "2"], "5s", &["--rotate", "1s"]),
        ][turn % 5];
        let store = ["--store", "store", "--probe", &probe, "--cut", cut];
        // Without parts.
        let whole = format!("json:{probe}-%s.json");
        let whole = ["--sequential", "--write", &whole];
        for outputs in [[&store[..], arrangement].concat(), whole.to_vec()] {
            let flags = ["-r", capture.to_str().unwrap(), "--tunnels", "outer", "--memory", "512M"];
            let flags = [&flags[..], &["-q"], flows, &outputs].concat();
            let (_, errors, code) = run(folder.path(), "monitor", &flags);
            assert_eq!(code, 0, "{errors}");
        }
        let whole = format!("{probe}-*.json");
        let arguments = [capture.as_path(), Path::new("store"), Path::new(&probe), whole.as_ref()];
        let Some(found) = python(SCRIPT, folder.path(), &arguments) else { return };
        assert_eq!(found["wrong"], Value::Array(Vec::new()), "{}", capture.display());
        minutes += u32::from(found["seconds"].as_f64().unwrap() > 60.0);
        labels += found["labels"].as_u64().unwrap();
    }
    assert!(minutes > all.len() as u32 / 8, "{minutes} captures are longer than a minute");
    assert!(labels > all.len() as u64, "{labels} labels");
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!(code, 0, "{result}");
}

#[test]
fn a_long_capture_loses_no_totals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.pcap");
    let minutes: Vec<_> = (0..8_000).map(|minute| (1_795_687_500 + 60 * minute, 1)).collect();
    capture(&path, &minutes);
    let read = ["-r", path.to_str().unwrap(), "--store", "store", "--probe", "edge"];
    let (_, errors, code) =
        run(folder.path(), "monitor", &[&read[..], &["--rotate", "5m"]].concat());
    assert_eq!(code, 0, "{errors}");
    assert_eq!(lines(folder.path(), "totals/").len(), minutes.len());
    assert_eq!(gaps(folder.path()), []);
}

#[test]
fn nothing_is_replaced_by_further_runs_and_probes() {
    let folder = tempfile::tempdir().unwrap();
    office_in(folder.path(), &[]);
    let before = files(&folder.path().join("store"));
    office_in(folder.path(), &["--force"]);
    office_in(folder.path(), &["--probe", "other"]);
    let after = files(&folder.path().join("store"));
    for (name, bytes) in &before {
        let now = &after[name];
        // Manifests are appended to.
        let kept = if name.starts_with("manifest/") { &now[..bytes.len()] } else { now };
        assert_eq!(kept, bytes, "{name}");
    }
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!(code, 0, "{result}");
    let probes = result["probes"].as_array().unwrap();
    assert_eq!(probes.len(), 2);
    assert_eq!([&probes[0]["runs"], &probes[1]["runs"]], [2, 1]);
    assert_eq!(
        probes[0]["flow_records"].as_u64(),
        probes[1]["flow_records"].as_u64().map(|n| 2 * n)
    );
    // One probe alone.
    let other = after.keys().find(|name| name.ends_with("-other.jsonl")).unwrap();
    let (out, errors, code) = run(folder.path(), "verify", &[&format!("store/{other}")]);
    assert!(
        code == 0 && out.contains("probe other") && !out.contains("probe edge"),
        "{out}{errors}"
    );
}

#[test]
fn a_second_process_of_a_probe_is_an_error_that_names_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let monitor = Waiting::new(folder.path(), &FLAGS);
    let capture = office();
    let read = ["-r", capture.to_str().unwrap()];
    let (_, errors, code) = run(folder.path(), "monitor", &[&read, &FLAGS[..]].concat());
    assert_eq!(code, 1, "{errors}");
    let first = format!("process {} writes the files of the probe edge", monitor.child.id());
    assert!(errors.contains(&first) && errors.contains("use another --probe"), "{errors}");
    office_in(folder.path(), &["--probe", "other"]);
    // What is written now is no gap.
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!((code, &result["probes"][0]["running"]), (0, &Value::Bool(true)), "{result}");
    monitor.send(Signal::TERM);
    monitor.end();
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!((code, &result["probes"][0]["running"]), (0, &Value::Bool(false)), "{result}");
}

#[test]
fn usage_errors_have_advice() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let capture = office();
    for (flags, code, advice) in [
        (&["--store", "s", "--probe", "a/b"][..], 2, "use --probe NAME"),
        (&["--store", "file", "--probe", "a"], 2, "it is not a folder"),
        (&["--store", "file/s", "--probe", "a"], 1, "creating the store file/s"),
    ] {
        let read = ["-r", capture.to_str().unwrap()];
        let (_, errors, got) = run(folder.path(), "monitor", &[&read, flags].concat());
        assert!(got == code && errors.contains(advice), "{flags:?}: {got} {errors}");
    }
    let (_, errors, code) = run(folder.path(), "verify", &["s", "--expect-line", "12"]);
    assert!(code == 2 && errors.contains("use the 64 hexadecimal digits"), "{errors}");
    for (path, advice) in
        [("no", "No such file"), (".", "is not a store"), ("file", "is not a store")]
    {
        let (_, errors, code) = run(folder.path(), "verify", &[path]);
        assert!(code == 1 && errors.contains(advice), "{path}: {code} {errors}");
    }
    let dry = ["-r", capture.to_str().unwrap(), "--store", "s", "--dry-run"];
    assert_eq!(run(folder.path(), "monitor", &dry).2, 0);
    assert!(!folder.path().join("s").exists());
}

#[test]
fn steps_of_the_clock_days_without_packets_and_time_zones_change_no_name() {
    // 2026-11-26T10:05.
    const TIME: u32 = 1_795_687_500;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    capture(
        &path,
        &[(TIME, 100), (TIME + 3 * 86_400, 100), (TIME - 7_200, 100), (5, 100), (TIME, 100)],
    );
    let mut first: Option<BTreeMap<String, Vec<u8>>> = None;
    for zone in ["Asia/Tokyo", "America/New_York"] {
        let own = tempfile::tempdir().unwrap();
        let mut command = ringtap();
        command
            .current_dir(&own)
            .env("TZ", zone)
            .args(["monitor", "--sequential", "-r"])
            .arg(&path);
        let (_, errors, code) = output_of(command.args(["--store", "store", "--probe", "edge"]));
        assert_eq!(code, 0, "{errors}");
        let (result, code) = verify(own.path(), &[]);
        assert_eq!(code, 0, "{result}");
        let mut files = files(&own.path().join("store"));
        files.retain(|name, _| name.starts_with("flows/"));
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "flows/1970/01/01/0000-edge.parquet",
                "flows/2026/11/26/0805-edge.parquet",
                "flows/2026/11/26/1005-edge.1.parquet",
                "flows/2026/11/26/1005-edge.parquet",
                "flows/2026/11/29/1005-edge.parquet",
            ]
        );
        assert!(*first.get_or_insert_with(|| files.clone()) == files, "{zone}");
    }
}

/// A change of a store, and the gaps that it makes: kinds, and whether they have the file.
struct Fault {
    name: &'static str,
    make: fn(&Path, &[String]),
    found: &'static [&'static str],
}

/// Changes the lines of the manifest.
fn edit(store: &Path, change: impl Fn(&mut Vec<String>)) {
    let path = manifest(store.parent().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

const FAULTS: [Fault; 18] = [
    Fault {
        name: "a file is cut",
        make: |store, flows| {
            let file = File::options().write(true).open(store.join(&flows[1])).unwrap();
            file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        },
        found: &["file-changed"],
    },
    Fault {
        name: "a byte is changed",
        make: |store, flows| {
            let path = store.join(&flows[1]);
            let mut bytes = fs::read(&path).unwrap();
            bytes[100] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        found: &["file-changed"],
    },
    Fault {
        name: "a record is removed",
        make: |store, _| {
            let events = names(store.parent().unwrap(), "events/");
            let path = store.join(&events[0]);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.split_once('\n').unwrap().1).unwrap();
        },
        found: &["file-changed"],
    },
    Fault {
        name: "a file is replaced by an empty one",
        make: |store, flows| fs::write(store.join(&flows[1]), "").unwrap(),
        found: &["file-changed"],
    },
    Fault {
        name: "two files are swapped",
        make: |store, flows| {
            let [one, other] = [&flows[1], &flows[2]].map(|name| store.join(name));
            let bytes = fs::read(&one).unwrap();
            fs::copy(&other, &one).unwrap();
            fs::write(other, bytes).unwrap();
        },
        found: &["file-changed", "file-changed"],
    },
    Fault {
        name: "a file is renamed",
        make: |store, flows| {
            let to = flows[1].replace("-edge.", "-edge.9.");
            fs::rename(store.join(&flows[1]), store.join(to)).unwrap();
        },
        found: &["file-renamed"],
    },
    Fault {
        name: "a file is deleted",
        make: |store, flows| fs::remove_file(store.join(&flows[1])).unwrap(),
        found: &["file-missing"],
    },
    Fault {
        name: "a file is added",
        make: |store, flows| {
            let to = flows[1].replace("-edge.", "-foreign.");
            fs::copy(store.join(&flows[1]), store.join(to)).map(drop).unwrap();
        },
        found: &["file-unlisted"],
    },
    Fault {
        name: "a file is a link",
        make: |store, flows| {
            let path = store.join(&flows[1]);
            let to = store.join("elsewhere");
            fs::rename(&path, &to).unwrap();
            std::os::unix::fs::symlink(to, path).unwrap();
        },
        found: &["file-changed"],
    },
    Fault {
        name: "a line is changed",
        make: |store, _| {
            edit(store, |lines| lines[2] = lines[2].replacen("\"rows\":", "\"rows\": ", 1))
        },
        found: &["line-changed"],
    },
    Fault {
        name: "a number in a line is changed",
        make: |store, _| {
            edit(store, |lines| lines[2] = lines[2].replacen("\"rows\":", "\"rows\":9", 1));
        },
        found: &["line-changed", "ledger-open", "file-changed"],
    },
    Fault {
        name: "a line is removed",
        make: |store, _| edit(store, |lines| drop(lines.remove(2))),
        found: &["line-missing", "ledger-open", "file-unlisted"],
    },
    Fault {
        name: "two lines are swapped",
        make: |store, _| edit(store, |lines| lines.swap(2, 3)),
        found: &["line-missing", "line-missing", "line-missing"],
    },
    Fault {
        name: "a line is doubled",
        make: |store, _| edit(store, |lines| lines.insert(3, lines[2].clone())),
        found: &["line-missing", "file-twice", "ledger-open"],
    },
    Fault {
        name: "the last line is removed",
        make: |store, _| edit(store, |lines| drop(lines.pop())),
        found: &["run-ended-early"],
    },
    Fault {
        name: "the first line is removed",
        make: |store, _| edit(store, |lines| drop(lines.remove(0))),
        found: &["line-missing"],
    },
    Fault {
        name: "a line is no JSON",
        make: |store, _| edit(store, |lines| lines[2] = "{}".into()),
        found: &["line-damaged", "line-missing", "ledger-open", "file-unlisted"],
    },
    Fault {
        name: "the last line is torn",
        make: |store, _| {
            let path = manifest(store.parent().unwrap());
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() - 3).unwrap();
        },
        found: &["line-damaged", "run-ended-early"],
    },
];

#[test]
fn each_planted_fault_is_found_and_nothing_else() {
    let whole = tempfile::tempdir().unwrap();
    office_in(whole.path(), &[]);
    let original = files(&whole.path().join("store"));
    assert_eq!(gaps(whole.path()), []);
    for Fault { name, make, found } in FAULTS {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        for (file, bytes) in &original {
            fs::create_dir_all(store.join(file).parent().unwrap()).unwrap();
            fs::write(store.join(file), bytes).unwrap();
        }
        make(&store, &names(folder.path(), "flows/"));
        let gaps = gaps(folder.path());
        let mut kinds: Vec<_> = gaps.iter().map(|(kind, _)| &kind[..]).collect();
        if name == "two lines are swapped" {
            // Swapped lines of different seconds are also a step of the clock.
            kinds.retain(|kind| *kind != "clock");
        }
        let mut found = found.to_vec();
        kinds.sort_unstable();
        found.sort_unstable();
        assert_eq!(kinds, found, "{name}: {gaps:?}");
    }
}

/// The gaps between the store of a folder and a copy of its records.
fn gaps_against(folder: &Path, copy: &str) -> Vec<(String, u64)> {
    let (result, code) = verify(folder, &["--against", copy]);
    let gaps = result["gaps"].as_array().unwrap();
    assert_eq!(code, i32::from(!gaps.is_empty()), "{result}");
    let of =
        |gap: &Value| (gap["kind"].as_str().unwrap().to_owned(), gap["count"].as_u64().unwrap());
    gaps.iter().map(of).collect()
}

#[test]
fn a_copy_is_compared_by_interval_in_any_format_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("copy")).unwrap();
    let writes = ["json", "csv", "parquet"].map(|format| format!("{format}:copy/all.{format}"));
    let mut flags = Vec::new();
    writes.iter().for_each(|write| flags.extend(["--write", write]));
    office_in(folder.path(), &flags);
    for format in ["json", "csv", "parquet"] {
        // With rotation, a folder of files.
        fs::create_dir(path(format)).unwrap();
        for entry in fs::read_dir(path("copy")).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|extension| extension == format) {
                fs::rename(entry.path(), path(format).join(entry.file_name())).unwrap();
            }
        }
        assert_eq!(gaps_against(folder.path(), format), [], "{format}");
    }
    let lines: Vec<String> = files(&path("json"))
        .into_values()
        .flat_map(|bytes| {
            String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let check = |lines: &[String], found: &[(&str, u64)]| {
        fs::write(path("changed.json"), lines.join("\n") + "\n").unwrap();
        let gaps = gaps_against(folder.path(), "changed.json");
        let gaps: Vec<_> = gaps.iter().map(|(kind, count)| (&kind[..], *count)).collect();
        assert_eq!(gaps, found);
    };
    let mut changed = lines.clone();
    changed.reverse();
    check(&changed, &[]);
    // Lost and doubled messages.
    let lost = changed.pop().unwrap();
    check(&changed, &[("not-arrived", 1)]);
    changed.extend([lost.clone(), lost.clone(), lost]);
    check(&changed, &[("arrived-twice", 2)]);
    let mut changed = lines.clone();
    changed[5] = changed[5].replacen("\"octetDeltaCount\":", "\"octetDeltaCount\":1", 1);
    let (result, _) = {
        fs::write(path("changed.json"), changed.join("\n") + "\n").unwrap();
        verify(folder.path(), &["--against", "changed.json"])
    };
    assert_eq!(result["gaps"][0]["kind"], "arrived-changed");
    assert_eq!(result["gaps"].as_array().unwrap().len(), 1);
    let interval = result["gaps"][0]["interval"].as_array().unwrap();
    assert_eq!(interval[1].as_u64().unwrap() - interval[0].as_u64().unwrap(), 2);
    // As a consumer of Kafka gives them.
    let mut command = ringtap();
    command.current_dir(&folder).args(["verify", "store", "--against", "-"]);
    let (out, errors, code) = output_of(command.write_stdin(lines.join("\n")));
    assert!(code == 0 && out.contains("compared by all fields"), "{out}{errors}");
    let (_, errors, code) = run(folder.path(), "verify", &["store", "--against", "no"]);
    assert!(code == 1 && errors.contains("no: No such file"), "{errors}");
}

#[test]
fn old_files_are_removed_oldest_first_and_the_manifest_says_so() {
    let folder = tempfile::tempdir().unwrap();
    office_in(folder.path(), &[]);
    let store = folder.path().join("store");
    let before = files(&store);
    let old = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let flows = names(folder.path(), "flows/");
    for name in &flows[..2] {
        File::options().write(true).open(store.join(name)).unwrap().set_modified(old).unwrap();
    }
    let errors = office_in(folder.path(), &["--keep", "1h"]);
    assert!(errors.contains("removed 2 old files"), "{errors}");
    // Their names are free for the same records.
    let is_old = |name: &String| {
        store.join(name).metadata().is_ok_and(|data| data.modified().unwrap() == old)
    };
    assert!(!flows.iter().any(is_old));
    assert!(
        before
            .keys()
            .filter(|name| !flows[..2].contains(name))
            .all(|name| store.join(name).exists())
    );
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!((code, &result["probes"][0]["removed"]), (0, &2.into()), "{result}");
    // By size: the largest part of the files of a run.
    let errors = office_in(folder.path(), &["--keep-size", "100k"]);
    assert!(errors.contains("removed "), "{errors}");
    let data = files(&store).into_iter().filter(|(name, _)| !name.starts_with("manifest/"));
    let total: usize = data.map(|(_, bytes)| bytes.len()).sum();
    assert!(total <= 100 << 10, "{total}");
    assert_eq!(gaps(folder.path()), []);
}

#[test]
fn a_full_disk_loses_what_it_counts_and_the_next_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let flags = [&["monitor", "-r", capture.to_str().unwrap()], &FLAGS[..]].concat();
    let Some((errors, code, _)) = on_small_disk(96, folder.path(), &flags) else { return };
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("No space left"), "{errors}");
    let left = folder.path().join("left");
    // On a disk with room.
    office_in(&left, &[]);
    let (result, code) = verify(&left, &[]);
    assert_eq!(code, 1);
    for gap in result["gaps"].as_array().unwrap() {
        let kind = gap["kind"].as_str().unwrap();
        assert!(["run-ended-early", "records-lost"].contains(&kind), "{gap}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    office_in(folder.path(), &[]);
    let before = files(&folder.path().join("store"));
    if !rustix::process::geteuid().is_root() || !have("unshare") {
        eprintln!("SKIPPED: a read-only folder is mounted as root, by unshare");
        return;
    }
    let script =
        "mount --bind store store && mount -o remount,bind,ro store || exit 77; exec \"$@\"";
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_ringtap"), "monitor", "-r"]);
    let (_, errors, code) = output_of(command.arg(office()).args(FLAGS).current_dir(&folder));
    if code == 77 {
        eprintln!("SKIPPED: the system mounts no folder: {errors}");
        return;
    }
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("opening the store store") && errors.contains("Read-only"), "{errors}");
    assert_eq!(files(&folder.path().join("store")), before);
}

/// The number of the user `nobody`, who is unprivileged.
const UNPRIVILEGED: u32 = 65_534;

/// Runs the monitor as a user of the system, in a folder; returns stderr and the exit code.
fn run_as(user: u32, folder: &Path, flags: &[&str]) -> (String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    command.arg("monitor").args(flags).args(FLAGS).current_dir(folder).uid(user).gid(user);
    end_of(&mut command)
}

/// Stderr and the exit code of a command.
fn end_of(command: &mut Command) -> (String, i32) {
    let output = command.env("NO_COLOR", "1").stdin(Stdio::null()).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap_or(-1))
}

/// Starts a monitor of an interface as root, which becomes the unprivileged user; returns stderr and the exit code.
fn run_with_user(net: &Net, folder: &Path, flags: &[&str]) -> (String, i32) {
    let own = ["monitor", "-q", "-i", "right", "--user", "nobody", "--duration", "1s"];
    let flags = [&own[..], &FLAGS, flags].concat();
    end_of(net.ringtap(Right, &flags).current_dir(folder))
}

/// A folder that every user may enter, with the bundled capture.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    fs::copy(office(), folder.path().join("office.pcap")).unwrap();
    folder
}

#[test]
fn a_store_that_the_user_cannot_use_is_an_error_with_the_user_and_the_path() {
    let Some(net) = Net::new(1) else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_ringtap"));
    let is_open = |folder: &Path| folder.metadata().unwrap().permissions().mode() & 1 > 0;
    if !program.ancestors().all(is_open) {
        eprintln!("SKIPPED: other users cannot run {}", program.display());
        return;
    }
    let folder = open_folder();
    let flags = ["-q", "-r", "office.pcap"];
    // As root that becomes this user, and as this user from the start.
    let both = |what: &str| {
        for (errors, code) in
            [run_with_user(&net, folder.path(), &[]), run_as(UNPRIVILEGED, folder.path(), &flags)]
        {
            let expected = format!(
                "error: --store store: user nobody cannot {what}: Permission denied (os error 13)\n"
            );
            assert!(code == 1 && errors.ends_with(&expected), "{what}: {code} {errors}");
        }
    };
    let (errors, code) = run_as(UNPRIVILEGED, folder.path(), &flags);
    let error = "error: --store store: user nobody cannot write to .: Permission denied";
    assert!(code == 1 && errors.contains(error), "{errors}");
    // Root creates it for this user.
    let (errors, code) = run_with_user(&net, folder.path(), &[]);
    assert_eq!(code, 0, "{errors}");
    let (errors, code) = run_as(UNPRIVILEGED, folder.path(), &flags);
    assert_eq!(code, 0, "{errors}");
    let mut paths: Vec<_> =
        ["store", "store/manifest", "store/.edge.lock"].map(PathBuf::from).into();
    paths.extend(["flows", "events", "alerts", "totals"].map(|kind| Path::new("store").join(kind)));
    paths.push(manifest(folder.path()).strip_prefix(folder.path()).unwrap().to_owned());
    for name in paths {
        let path = folder.path().join(&name);
        let mode = path.metadata().unwrap().permissions().mode();
        chown(&path, Some(0), Some(0)).unwrap();
        both(&format!("write to {}", name.display()));
        fs::set_permissions(&path, Permissions::from_mode(mode | 0o007)).unwrap();
        let (errors, code) = run_as(UNPRIVILEGED, folder.path(), &flags);
        assert_eq!(code, 0, "{}: {errors}", name.display());
        fs::set_permissions(&path, Permissions::from_mode(0o733 & (mode | 0o007))).unwrap();
        both(&format!("read {}", name.display()));
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
    // What failed left no line, and root may use what belongs to others.
    let (errors, code) = run_as(0, folder.path(), &flags);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(gaps(folder.path()), []);
}

#[test]
fn a_start_that_fails_leaves_no_empty_store() {
    let folder = open_folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    fs::write(folder.path().join("file"), "").unwrap();
    let mut starts: Vec<(&[&str], &str)> = vec![
        (&["-r", "office.pcap", "--write", "json:no/flows.json"], "No such file"),
        (&["-r", "office.pcap", "--write", "json:file/flows.json"], "Not a directory"),
        (&["-r", "office.pcap", "--alert-to", "json:no/alerts.json"], "No such file"),
        (&["-r", "office.pcap", "--export", "ipfix://no.invalid"], "no.invalid"),
        (&["-i", "no-such-interface"], "no-such-interface"),
    ];
    let [page, metrics] = ["--web", "--metrics"].map(|flag| ["-r", "office.pcap", flag, &address]);
    starts.extend([(&page[..], "in use"), (&metrics[..], "in use")]);
    let names = || files(folder.path()).into_keys().collect::<Vec<_>>();
    let before = names();
    // The folder of the store is not there, is there and empty, and is a folder of other files.
    for (root, file) in
        [("store", None), ("above/store", None), ("empty", None), ("other", Some("other/a"))]
    {
        let is_there = !root.ends_with("store");
        let root = folder.path().join(root);
        if is_there {
            fs::create_dir(&root).unwrap();
        }
        if let Some(file) = file {
            fs::write(folder.path().join(file), "").unwrap();
        }
        for (flags, error) in &starts {
            let store = ["monitor", "-q", "--probe", "edge", "--store", root.to_str().unwrap()];
            let (_, errors, code) =
                output_of(ringtap().current_dir(&folder).args(store).args(*flags));
            assert!([1, 2].contains(&code) && errors.contains(error), "{flags:?}: {code} {errors}");
            assert_eq!(root.exists(), is_there, "{flags:?}: {errors}");
            let left =
                fs::read_dir(&root).into_iter().flatten().map(|entry| entry.unwrap().file_name());
            assert_eq!(left.count(), usize::from(file.is_some()), "{flags:?}: {errors}");
        }
    }
    assert!(!folder.path().join("above").exists());
    let after: Vec<_> = names().into_iter().filter(|name| name != "other/a").collect();
    assert_eq!(after, before);
    // A store with records stays as it is.
    office_in(folder.path(), &[]);
    let before = files(&folder.path().join("store"));
    for (flags, _) in &starts {
        let (_, errors, code) = run(folder.path(), "monitor", &[flags, &FLAGS[..]].concat());
        assert!([1, 2].contains(&code), "{errors}");
        assert!(files(&folder.path().join("store")) == before, "{flags:?}");
    }
    assert_eq!(gaps(folder.path()), []);
    // As another user, who may remove what was created.
    let Some(net) = Net::new(1) else { return };
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    let (errors, code) = run_with_user(&net, &shared, &["--write", "json:/flows.json"]);
    assert!(code == 1 && errors.contains("as the user nobody"), "{errors}");
    assert_eq!(fs::read_dir(&shared).unwrap().count(), 0);
}

/// A frame of a flow of its own: a datagram from 10.x.x.x.
fn frame(number: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    let [_, a, b, c] = number.to_be_bytes();
    let header = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, a, b, c, 10, 0, 0, 2];
    frame[14..34].copy_from_slice(&header);
    frame[34..42].copy_from_slice(&[4, 0, 0, 53, 0, 26, 0, 0]);
    frame
}

/// Starts a monitor that reads stdin and writes a store with files of a second, and further `flags`.
fn reading(folder: &Path, flags: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["monitor", "-r", "-", "-q", "--idle-timeout", "1s", "--memory", "320M"])
        .args(["--store", "store", "--probe", "edge", "--rotate", "1s", "--cut", "1s"])
        .args(flags)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Writes a capture of packets from this number on, each 100 µs of packet time after the one before, from
/// 2026-11-26T10:05 on, until nothing reads them or `go_on` is false. Returns the next number.
pub(crate) fn feed(mut to: ChildStdin, mut number: u32, go_on: impl Fn() -> bool) -> u32 {
    let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let mut sent = to.write_all(&header);
    while sent.is_ok() && number < (1 << 24) - 1 && go_on() {
        let us = number * 100;
        let mut packet = Vec::with_capacity(76);
        let (seconds, frame) = (1_795_687_500 + us / 1_000_000, frame(number));
        for field in [seconds, us % 1_000_000, 60, 60] {
            packet.extend(field.to_le_bytes());
        }
        packet.extend(frame);
        number += 1;
        sent = to.write_all(&packet);
    }
    number
}

#[test]
fn a_store_is_whole_while_it_is_written_and_old_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = reading(folder.path(), &["--keep-size", "1M"]);
    let to = child.stdin.take().unwrap();
    let goes_on = Arc::new(AtomicBool::new(true));
    let go_on = Arc::clone(&goes_on);
    let sender = std::thread::spawn(move || feed(to, 0, || go_on.load(Ordering::Relaxed)));
    let manifests = || files(&folder.path().join("store/manifest"));
    assert!(soon(|| manifests().values().any(|lines| !lines.is_empty())));
    for _ in 0..15 {
        assert_eq!(gaps(folder.path()), []);
    }
    let removed = |result: &Value| result["probes"][0]["removed"].as_u64() > Some(0);
    assert!(soon(|| removed(&verify(folder.path(), &[]).0)));
    goes_on.store(false, Ordering::Relaxed);
    sender.join().unwrap();
    assert!(child.wait().unwrap().success());
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!(code, 0, "{result}");
    assert!(removed(&result), "{result}");
}

/// Kills runs that write a store, events and an open file. Returns how many rows and lines were kept.
fn kill_runs(kills: u32) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let random = RandomState::new();
    let mut number = 0_u32;
    let mut kept = BTreeMap::<String, Vec<u8>>::new();
    let begun = || {
        let all = files(&folder.path().join("store/manifest")).into_values();
        let text: String = all.map(|bytes| String::from_utf8(bytes).unwrap()).collect();
        text.matches("\"kind\":\"start\"").count()
    };
    for kill in 0..kills {
        let before = begun();
        let mut child = reading(folder.path(), &["--write", "json:open.json,open", "--force"]);
        let to = child.stdin.take().unwrap();
        let sender = std::thread::spawn(move || feed(to, number, || true));
        // Some are killed before they begin.
        assert!(kill % 4 == 0 || (0..20).any(|_| soon(|| begun() > before)));
        let wait = random.hash_one(kill) % 300;
        std::thread::sleep(Duration::from_millis(wait));
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        number = sender.join().unwrap();
        // Whatever is finished stays as it is.
        let now = files(&folder.path().join("store"));
        for (name, bytes) in &kept {
            let same = if name.starts_with("manifest/") {
                // A torn line is removed by the next start.
                let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                now[name].starts_with(&bytes[..end])
            } else {
                now[name] == *bytes
            };
            assert!(same, "{name} was changed");
        }
        kept = now;
    }
    // A run that ends by itself completes what was left.
    office_in(folder.path(), &[]);
    let (result, code) = verify(folder.path(), &[]);
    assert_eq!(code, 1);
    let mut early = 0;
    for gap in result["gaps"].as_array().unwrap() {
        assert_eq!(gap["kind"], "run-ended-early", "{gap}");
        early += u32::from(gap["file"].is_null());
    }
    // Those killed before they began leave nothing.
    assert!(early <= kills && early > kills / 2, "{early} of {kills}");
    // Each datagram is a flow, with one record at most that has its packet.
    let mut seen = BTreeSet::new();
    for name in names(folder.path(), "flows/") {
        let path = folder.path().join("store").join(&name);
        let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        for row in file.get_row_iter(None).unwrap().map(Result::unwrap) {
            let column =
                |name: &str| row.get_column_iter().position(|(own, _)| own == name).unwrap();
            let packets = row.get_ulong(column("packetDeltaCount")).unwrap();
            let port = row.get_ushort(column("sourceTransportPort")).unwrap_or(0);
            let source = row.get_string(column("sourceIPAddress")).unwrap();
            if port == 1024 && packets > 0 && source.starts_with("10.") {
                assert!(seen.insert(source.clone()), "{source} twice in {name}");
            }
        }
    }
    let mut lines = 0;
    for (name, bytes) in files(folder.path()) {
        if name.starts_with("open") {
            let text = String::from_utf8(bytes).unwrap();
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            for line in whole {
                serde_json::from_str::<Value>(line).unwrap();
                lines += 1;
            }
        }
    }
    (seen.len() as u64, lines)
}

#[test]
fn killed_runs_leave_whole_rows_and_lines_and_replace_nothing() {
    // On a busy machine all may be killed before their first row.
    let has_any = (0..5).map(|_| kill_runs(12)).any(|(rows, lines)| rows > 0 && lines > 0);
    assert!(has_any, "no rows, or no lines");
}

#[test]
#[ignore = "two minutes: in `make test-all`"]
fn many_killed_runs_leave_whole_rows_and_lines_and_replace_nothing() {
    let (rows, lines) = kill_runs(200);
    assert!(rows > 0 && lines > 0, "{rows} {lines}");
}

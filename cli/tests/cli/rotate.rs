//! Tests of files with names by time, of rotation, and of what remains.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{office, output_of, ringtap};

const SECONDS: u64 = 2;

/// Runs `monitor` in a folder; returns stderr and the exit code.
fn monitor(folder: &Path, flags: &[&str]) -> (String, i32) {
    let mut command = ringtap();
    let (_, errors, code) = output_of(command.current_dir(folder).arg("monitor").args(flags));
    (errors, code)
}

/// Monitors the bundled capture.
fn office_in(folder: &Path, flags: &[&str]) -> String {
    let capture = office();
    let read = ["-r", capture.to_str().unwrap(), "--report", "json"];
    let (errors, code) = monitor(folder, &[&read, flags].concat());
    assert_eq!(code, 0, "{errors}");
    errors
}

/// The sorted lines of all files, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        (entry.file_name().into_string().unwrap(), lines)
    };
    entries.map(file).collect()
}

#[test]
fn each_file_has_the_records_of_its_period_in_every_arrangement() {
    let cut = [&format!("--cut={SECONDS}s")[..], "--idle-timeout", "2s", "--memory", "512M"];
    let whole = tempfile::tempdir().unwrap();
    office_in(whole.path(), &[&cut[..], &["--write", "json:all"]].concat());
    let whole = files(whole.path()).remove("all").unwrap();
    let mut first = None;
    for arrangement in [
        &["--sequential"][..],
        &["--skeleton", "farm", "-w", "3"],
        &["--skeleton", "multi-queue", "--queues", "3"],
        &["--skeleton", "pipeline"],
        &["--skeleton", "sync", "-w", "2"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rotate = format!("--rotate={SECONDS}s");
        let flags = [&cut[..], &["--write", "json:%s.json", &rotate], arrangement].concat();
        office_in(folder.path(), &flags);
        let files = files(folder.path());
        assert!(files.len() > 3, "{:?}", files.keys());
        let mut all: Vec<_> = files.values().flatten().cloned().collect();
        all.sort();
        assert_eq!(all, whole, "{arrangement:?}");
        for (name, lines) in &files {
            let begin: u64 = name.strip_suffix(".json").unwrap().parse().unwrap();
            assert_eq!(begin % SECONDS, 0);
            assert!(!lines.is_empty(), "{name}");
            for line in lines {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                // A flow that ends in a later period than its last packet has a last part without packets.
                let has_packets = |name: &str| record[name] != 0;
                if !has_packets("packetDeltaCount") && !has_packets("reversePacketDeltaCount") {
                    continue;
                }
                let end = record["flowEndMilliseconds"].as_u64().unwrap() / 1_000;
                assert!((begin..begin + SECONDS).contains(&end), "{name}: {line}");
            }
        }
        assert_eq!(first.get_or_insert_with(|| files.clone()), &files, "{arrangement:?}");
    }
}

#[test]
fn all_formats_rotate_and_names_without_fields_get_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let formats = ["csv", "eve", "zeek", "parquet"];
    let writes = formats.map(|format| format!("--write={format}:flows.{format}"));
    let mut flags: Vec<_> = writes.iter().map(String::as_str).collect();
    flags.extend(["--rotate", "2s", "--idle-timeout", "1s", "--export", "ipfix-file:flows.ipfix"]);
    flags.extend(["--events", "json:events.json"]);
    office_in(folder.path(), &flags);
    let names: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|name| name.unwrap().file_name()).collect();
    for name in
        ["flows.csv", "flows.eve", "flows.zeek", "flows.parquet", "flows.ipfix", "events.json"]
    {
        let (stem, extension) = name.split_once('.').unwrap();
        for number in 1..3 {
            let next = format!("{stem}.{number}.{extension}");
            assert!(names.iter().any(|name| *name == *next), "{next} in {names:?}");
        }
    }
    let heads: Vec<_> = ["flows.csv", "flows.1.csv"]
        .map(|name| {
            fs::read_to_string(folder.path().join(name)).unwrap().lines().next().unwrap().to_owned()
        })
        .to_vec();
    assert_eq!(heads[0], heads[1]);
}

#[test]
fn files_of_one_name_do_not_replace_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let flags =
        ["--write", "json:flows-%Y.json", "--rotate", "2s", "--idle-timeout", "1s", "--force"];
    office_in(folder.path(), &flags);
    let first = files(folder.path());
    let year = first.keys().find(|name| name.split('.').count() == 2).unwrap().clone();
    let second = year.replace(".json", ".1.json");
    assert!(first.contains_key(&second), "{:?}", first.keys());
    // Not even with --force, in another run.
    office_in(folder.path(), &flags);
    let both = files(folder.path());
    assert_eq!(both.len(), 2 * first.len());
    assert!(first.iter().all(|(name, lines)| both[name] == *lines));
}

#[test]
fn a_percent_sign_is_written_twice_and_unknown_fields_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    office_in(folder.path(), &["--write", "json:100%%.json"]);
    assert!(folder.path().join("100%.json").exists());
    let capture = office();
    for (flags, advice) in [
        (&["--write", "json:a-%Q.json"][..], "unknown field %Q"),
        (&["--events", "json:a%"], "%% for a percent sign"),
        (&["--export", "ipfix-file:%Y/a"], "use fields in the name of the file"),
        (&["--rotate", "5m"], "--rotate has no effect: it needs a file"),
        (&["--rotate", "5m", "--write", "json:-"], "--rotate has no effect"),
        (&["--rotate", "1500ms", "--write", "json:a"], "use whole seconds, as in 5m"),
    ] {
        let read = ["-r", capture.to_str().unwrap()];
        let (errors, code) = monitor(folder.path(), &[&read, flags].concat());
        assert_eq!(code, 2, "{flags:?}: {errors}");
        assert!(errors.contains(advice), "{flags:?}: {errors}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

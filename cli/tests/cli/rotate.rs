//! Tests of files with names by time, of rotation, and of what remains.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::process::Signal;

use crate::common::{office, output_of, ringtap};
use crate::live::datagrams;
use crate::signals::Waiting;

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

/// The bytes of regular files in a folder.
fn total(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    entries.filter(fs::Metadata::is_file).map(|data| data.len()).sum()
}

#[test]
fn old_files_are_removed_after_a_rotation_and_nothing_else() {
    let flags = ["--write", "json:%s.json", "--rotate", "2s", "--idle-timeout", "1s"];
    let all = tempfile::tempdir().unwrap();
    office_in(all.path(), &flags);
    let (before, size) = (files(all.path()), total(all.path()));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("notes.json"), "").unwrap();
    symlink("notes.json", path("1.json")).unwrap();
    let keep = (size - 1).to_string();
    let errors = office_in(folder.path(), &[&flags[..], &["--keep-size", &keep]].concat());
    assert!(errors.contains("%s.json: removed "), "{errors}");
    assert!(path("1.json").exists() && path("notes.json").exists());
    fs::remove_file(path("1.json")).unwrap();
    fs::remove_file(path("notes.json")).unwrap();
    let after = files(folder.path());
    assert!(before.len() > 2);
    assert!(after.iter().eq(before.iter().skip(1)), "not the oldest: {:?}", after.keys());
    // Files are as old as their last write: these are new.
    let errors = office_in(folder.path(), &[&flags[..], &["--keep", "1h"]].concat());
    assert!(!errors.contains("removed"), "{errors}");
    let old = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for name in files(folder.path()).keys() {
        fs::File::options().write(true).open(path(name)).unwrap().set_modified(old).unwrap();
    }
    office_in(folder.path(), &[&flags[..], &["--keep", "1h"]].concat());
    // The first one was finished before the old ones were removed.
    assert!(files(folder.path()).values().eq(before.values()));
}

#[test]
fn what_a_killed_run_left_gets_a_name_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--write=json:%s.json", "--rotate=2s", "--idle-timeout=1s"];
    let monitor = Waiting::new(folder.path(), &flags);
    monitor.send(Signal::KILL);
    assert_eq!(monitor.end().0, None, "a signal ended it");
    let left = files(folder.path());
    let errors = office_in(folder.path(), &flags);
    let after = files(folder.path());
    assert!(after.keys().all(|name| name.ends_with(".json")), "{:?}", after.keys());
    for (name, lines) in left {
        if !name.starts_with('.') {
            assert_eq!(after[&name], lines);
        } else if !lines.is_empty() {
            assert!(errors.contains("which ended early; renamed to "), "{errors}");
        }
    }
}

/// Writes a capture: for each time in seconds, that many frames, a millisecond apart.
fn capture(path: &Path, times: &[(u32, u16)]) {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for &(seconds, count) in times {
        for (number, frame) in (0_u32..).zip(datagrams(count)) {
            for field in [seconds, number * 1_000, frame.len() as u32, frame.len() as u32] {
                bytes.extend(field.to_le_bytes());
            }
            bytes.extend(frame);
        }
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_clock_that_is_set_back_begins_a_file_and_a_step_ahead_no_empty_ones() {
    let folder = tempfile::tempdir().unwrap();
    let records = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    capture(&path, &[(7_200, 100), (3_600, 100), (9_000, 100)]);
    let write = format!("json:{}/%s.json", records.path().display());
    for arrangement in [&["--sequential"][..], &["-w", "3"]] {
        let read = ["-r", path.to_str().unwrap(), "--write", &write, "--rotate", "1m"];
        let (errors, code) = monitor(folder.path(), &[&read, arrangement].concat());
        assert_eq!(code, 0, "{errors}");
        let files = files(records.path());
        assert_eq!(files.keys().collect::<Vec<_>>(), ["3600.json", "7200.json", "9000.json"]);
        let packets = |line: &String| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record["packetDeltaCount"].as_u64().unwrap()
        };
        assert_eq!(files.values().flatten().map(packets).sum::<u64>(), 300);
        files.keys().for_each(|name| fs::remove_file(records.path().join(name)).unwrap());
    }
}

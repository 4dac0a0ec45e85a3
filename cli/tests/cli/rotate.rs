//! Tests of files with names by time, of rotation, and of what remains.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use ringtap_io::live::SendOptions;
use ringtap_testkit::{send_all, soon};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, office, on_filled_disk, on_small_disk, output_of, ringtap};
use crate::live::datagrams;
use crate::net::{Background, Net, NetCommands, Right};
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
                let record: Value = serde_json::from_str(line).unwrap();
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
fn folders_with_fields_are_created() {
    let folder = tempfile::tempdir().unwrap();
    let events = ["--events", "json:events/%F,open", "--rotate", "1h"];
    fs::create_dir(folder.path().join("events")).unwrap();
    office_in(folder.path(), &[&["--write", "json:%Y/%m/%d.json"], &events[..]].concat());
    let created = |path: &Path| {
        let mut names = fs::read_dir(path).unwrap().map(|name| name.unwrap().path());
        let only = names.next().unwrap();
        assert!(names.next().is_none(), "{}", path.display());
        only
    };
    assert!(created(&folder.path().join("events")).is_file());
    fs::remove_dir_all(folder.path().join("events")).unwrap();
    let file = created(&created(&created(folder.path())));
    assert!(file.is_file() && file.extension().unwrap() == "json", "{}", file.display());
}

#[test]
fn a_percent_sign_is_written_twice_and_unknown_fields_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    office_in(folder.path(), &["--write", "json:100%%.json", "--alert-to", "json:%%"]);
    assert!(folder.path().join("100%.json").exists() && folder.path().join("%").exists());
    let capture = office();
    for (flags, advice) in [
        (&["--write", "json:a-%Q.json"][..], "unknown field %Q"),
        (&["--events", "json:a%"], "%% for a percent sign"),
        (&["--rotate", "5m"], "--rotate has no effect: it needs a file"),
        (&["--rotate", "5m", "--write", "json:-"], "--rotate has no effect"),
        (&["--rotate", "5m", "--export", "netflow5://h:1"], "--rotate has no effect"),
        (&["--keep", "5m", "--alert-to", "json:-"], "--keep has no effect"),
        (&["--keep-free", "5%", "--write", "json:-"], "--keep-free has no effect"),
        (&["--keep-free", "100%", "--write", "json:a"], "use a share below 100%"),
        (&["--keep-free", "0%", "--write", "json:a"], "use a share below 100%"),
        (&["--keep-free", "x", "--write", "json:a"], "or a size, as in 10G"),
        (&["--alert-to", "json:a-%Q"], "unknown field %Q"),
        (&["--rotate", "1500ms", "--write", "json:a"], "use whole seconds, as in 5m"),
    ] {
        let read = ["-r", capture.to_str().unwrap()];
        let (errors, code) = monitor(folder.path(), &[&read, flags].concat());
        assert_eq!(code, 2, "{flags:?}: {errors}");
        assert!(errors.contains(advice), "{flags:?}: {errors}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
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
pub(crate) fn capture(path: &Path, times: &[(u32, u16)]) {
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
            let record: Value = serde_json::from_str(line).unwrap();
            record["packetDeltaCount"].as_u64().unwrap()
        };
        assert_eq!(files.values().flatten().map(packets).sum::<u64>(), 300);
        files.keys().for_each(|name| fs::remove_file(records.path().join(name)).unwrap());
    }
}

#[test]
fn an_open_file_has_its_name_and_whole_lines_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--write=json:f-%Y.json,open", "--events=json:e.json,open", "--idle-timeout=1s"];
    let monitor_of_pipe = Waiting::new(folder.path(), &flags);
    assert!(folder.path().join("e.json").exists());
    monitor_of_pipe.send(Signal::KILL);
    assert_eq!(monitor_of_pipe.end().0, None, "a signal ended it");
    let left = files(folder.path());
    assert!(left.keys().all(|name| !name.starts_with('.')), "{:?}", left.keys());
    // Over files the command does not start if the file exists, also with --force it stays.
    let capture = office();
    let read = ["-r", capture.to_str().unwrap()];
    let (errors, code) = monitor(folder.path(), &[&read, &flags[..]].concat());
    assert_eq!(code, 2, "{errors}");
    office_in(folder.path(), &[&flags[..], &["--force"]].concat());
    let after = files(folder.path());
    assert!(left.iter().all(|(name, lines)| after[name] == *lines));
    assert!(after.contains_key("e.1.json"), "{:?}", after.keys());
    let is_new = |name: &str| name.starts_with("f-") && !left.contains_key(name);
    let records = after.iter().find(|(name, _)| is_new(name)).unwrap().1;
    assert!(!records.is_empty());
    assert!(records.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn open_files_have_the_contents_of_others() {
    let [open, closed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for format in ["json", "csv", "eve", "zeek"] {
        for (folder, end) in [(&open, ",open"), (&closed, "")] {
            let write = format!("{format}:%s.{format}{end}");
            let flags = ["--rotate", "2s", "--idle-timeout", "1s", "--sequential"];
            office_in(folder.path(), &[&flags[..], &["--write", &write]].concat());
        }
    }
    // The time when a file of Zeek was begun is that of its packets.
    assert_eq!(files(open.path()), files(closed.path()));
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--write", "json:f.json,open", "--rotate", "2s", "--idle-timeout", "1s"];
    office_in(folder.path(), &flags);
    let numbered: Vec<_> = files(folder.path()).into_values().map(|lines| lines.len()).collect();
    let others = files(closed.path());
    let others = others.iter().filter(|(name, _)| name.ends_with(".json"));
    assert_eq!(numbered.len(), others.clone().count());
    let lines: usize = others.map(|(_, lines)| lines.len()).sum();
    assert_eq!(numbered.iter().sum::<usize>(), lines);
}

#[test]
fn only_files_of_lines_can_be_open() {
    let capture = office();
    let folder = tempfile::tempdir().unwrap();
    for (output, code, advice) in [
        ("parquet:a,open", 2, "parquet cannot be read before its end: omit ,open"),
        ("json:-,open", 2, "stdout is written at once: omit ,open"),
        ("json:/dev/null,open", 1, "it is not a file: omit ,open"),
        ("json:no/folder/a-%H,open", 1, "No such file"),
    ] {
        let flags = ["-r", capture.to_str().unwrap(), "--write", output];
        let (errors, got) = monitor(folder.path(), &flags);
        assert!(got == code && errors.contains(advice), "{output}: {got} {errors}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn an_open_file_on_a_full_disk_has_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let flags = ["monitor", "-r", capture.to_str().unwrap(), "--write", "json:f.json,open"];
    let Some((errors, code, names)) = on_small_disk(64, folder.path(), &flags) else { return };
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("No space left"), "{errors}");
    assert_eq!(names, ["f.json"]);
    let text = fs::read_to_string(folder.path().join("left/f.json")).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn a_file_can_be_followed_over_rotations_of_a_live_run() {
    let Some(net) = Net::new(1) else { return };
    if !have("tail") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = format!("json:{},open", path("f.json").display());
    let flags =
        ["monitor", "-i", "right", "--report", "json", "--duration", "100s", "--write", &write];
    let flags =
        [&flags[..], &["--rotate", "1s", "--active-timeout", "1s", "--keep", "1h"]].concat();
    let mut monitor = Background::start(net.ringtap(Right, &flags), "listening: ");
    monitor.wait_for("listening: ");
    let followed = fs::File::create(path("followed")).unwrap();
    let mut tail = Command::new("tail");
    tail.args(["-n", "+1", "-F"]).arg(path("f.json")).stdout(followed).stderr(Stdio::null());
    let mut tail = tail.spawn().unwrap();
    let mut sender = net.sender(&SendOptions::default());
    let frames = datagrams(200);
    for _ in 0..600 {
        send_all(&mut sender, &frames);
        if path("f.3.json").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    monitor.interrupt();
    let (out, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    assert!(path("f.3.json").exists(), "{errors}");
    let report: Value = serde_json::from_slice(&out).unwrap();
    let records = report["flows"]["records"].as_u64().unwrap() as usize;
    let lines = |text: &str| text.lines().count();
    let is_read = || lines(&fs::read_to_string(path("followed")).unwrap()) >= records;
    let read = soon(is_read);
    tail.kill().unwrap();
    tail.wait().unwrap();
    let text = fs::read_to_string(path("followed")).unwrap();
    assert!(read, "{} of {records} lines", lines(&text));
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let mut followed: Vec<_> = text.lines().map(str::to_owned).collect();
    followed.sort();
    fs::remove_file(path("followed")).unwrap();
    let mut all: Vec<_> = files(folder.path()).into_values().flatten().collect();
    all.sort();
    assert_eq!(all, followed);
    assert_eq!(all.len(), records);
}

#[test]
fn old_files_are_removed_before_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let flags = ["monitor", "-r", capture.to_str().unwrap(), "--write", "json:%s.json"];
    let flags = [&flags[..], &["--rotate=1s", "--idle-timeout=1s"]].concat();
    // The run writes 1.6 MB.
    let old = [("notes.json", 500), ("1.json", 1_000), ("2.json", 1_000)];
    let on_disk =
        |more: &[&str]| on_filled_disk(4_000, &old, folder.path(), &[&flags[..], more].concat());
    let Some((errors, code, _)) = on_disk(&[]) else { return };
    assert!(code == 1 && errors.contains("No space left"), "{errors}");
    let (errors, code, names) = on_disk(&["--keep-free", "10%"]).unwrap();
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("%s.json: removed 1 old file, 1000 KiB"), "{errors}");
    assert!(!errors.contains("No space left") && !errors.contains("disk has"), "{errors}");
    assert!(["2.json", "notes.json"].iter().all(|name| names.iter().any(|own| own == name)));
    assert!(names.len() > 5 && !names.contains(&"1.json".into()), "{names:?}");
    // As a size: the old ones are removed at the start.
    let (errors, code, names) = on_disk(&["--keep-free", "3M"]).unwrap();
    assert_eq!(code, 0, "{errors}");
    assert!(!names.contains(&"2.json".into()) && names.contains(&"notes.json".into()), "{names:?}");
}

#[test]
fn a_disk_that_is_almost_full_is_a_warning_before_it_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let flags = ["monitor", "-r", capture.to_str().unwrap(), "--write", "json:f-%s.json"];
    let on_disk = |old: &[(&str, u32)], more: &[&str]| {
        on_filled_disk(4_000, old, folder.path(), &[&flags[..], more].concat())
    };
    let [other, own] = [("other", 3_900), ("f-1.json", 50)];
    let Some((errors, code, names)) = on_disk(&[other], &[]) else { return };
    assert_eq!(code, 1, "{errors}");
    let disk = folder.path().join("disk").canonicalize().unwrap();
    let low = format!("warning: {}: its disk has ", disk.display());
    let [warning, error] = [&low[..], "error: writing to json:f-"]
        .map(|text| errors.find(text).unwrap_or_else(|| panic!("no {text:?}: {errors}")));
    assert!(warning < error && errors.contains("or use --keep-free"), "{errors}");
    assert_eq!(errors.matches("its disk has").count(), 1, "{errors}");
    assert!(names.contains(&"other".into()));
    let (errors, code, names) = on_disk(&[other, own], &["--keep-free", "20%"]).unwrap();
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("removed 1 old file") && !names.contains(&own.0.into()), "{errors}");
    assert!(errors.contains("no old file is left that --keep-free may remove"), "{errors}");
    // There is enough.
    let (errors, code, _) = on_disk(&[], &[]).unwrap();
    assert!(code == 0 && !errors.contains("its disk has"), "{errors}");
    // Folders by time are below the one that is named.
    let write = ["--write", "json:%Y/%m/f-%s.json", "--rotate", "1s", "--keep-free", "99%"];
    let store = ["--store", "store", "--probe", "edge"];
    let flags = [&["monitor", "-r", capture.to_str().unwrap()], &write[..], &store].concat();
    let (errors, ..) = on_filled_disk(9_000, &[other], folder.path(), &flags).unwrap();
    for shown in [".: removed ", "store/events: removed "] {
        assert!(errors.lines().any(|line| line.starts_with(shown)), "{shown}: {errors}");
    }
    assert!(errors.contains(&low), "{errors}");
    assert!(!errors.contains("%Y"), "{errors}");
}

/// Alerts of the bundled capture in each of these files.
fn alert_files(flags: &[&str]) -> BTreeMap<String, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let scans = ["--scan-threshold=5", "--interval=1s", "--alert=dst-pps=50", "--seed=5"];
    office_in(folder.path(), &[&scans[..], flags].concat());
    files(folder.path())
}

#[test]
fn alerts_are_in_the_file_of_their_period() {
    let whole = alert_files(&["--alert-to", "json:all"]).remove("all").unwrap();
    let rotate = format!("--rotate={SECONDS}s");
    let by_time = alert_files(&["--alert-to", "json:%s.json", &rotate]);
    assert!(by_time.len() > 2, "{:?}", by_time.keys());
    let mut all: Vec<_> = by_time.values().flatten().cloned().collect();
    all.sort();
    assert_eq!(all, whole);
    let mut in_period = 0;
    for (name, lines) in &by_time {
        let begin: u64 = name.strip_suffix(".json").unwrap().parse().unwrap();
        for line in lines {
            let alert: Value = serde_json::from_str(line).unwrap();
            let time = alert["time"].as_str().unwrap();
            let second: u64 = time[17..19].parse().unwrap();
            let minute: u64 = time[14..16].parse().unwrap();
            let since_hour = minute * 60 + second;
            // What is found late is in the current file.
            assert!(since_hour < begin % 3_600 + SECONDS, "{name}: {line}");
            in_period += u32::from(since_hour >= begin % 3_600);
        }
    }
    assert!(in_period > 8, "{in_period}");
    // Without fields, the newest file has the name, and the others have numbers.
    let numbered = alert_files(&["--alert-to", "json:alerts.json", &rotate]);
    assert_eq!(numbered.len(), by_time.len());
    assert_eq!(numbered["alerts.json"], *by_time.values().next_back().unwrap());
    assert_eq!(numbered["alerts.1.json"], *by_time.values().next().unwrap());
    // What remains.
    let keep = ["--alert-to", "json:%s.json", &rotate, "--keep-size", "1"];
    let kept = alert_files(&keep);
    assert_eq!(kept.keys().collect::<Vec<_>>(), [by_time.keys().next_back().unwrap()]);
    // Without these flags the file is continued, and those beside it stay.
    let folder = tempfile::tempdir().unwrap();
    for name in ["alerts.json", "alerts.1.json"] {
        fs::write(folder.path().join(name), "before\n").unwrap();
    }
    let flags = ["--alert-to=json:alerts.json", "--write=json:f.json", "--keep-size=1"];
    office_in(folder.path(), &flags);
    let after = files(folder.path());
    assert_eq!(after["alerts.1.json"], ["before"]);
    assert!(after["alerts.json"].len() > 1 && after["alerts.json"].contains(&"before".into()));
}

/// A SYN to an address that ends with this octet.
fn syn(target: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, target]);
    frame.extend([0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 4, 0, 0, 0, 0, 0]);
    frame
}

#[test]
fn an_alert_file_can_be_followed_over_rotations_and_loses_no_line() {
    if !have("tail") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("list"), "192.0.2.1\n192.0.2.2\n192.0.2.3\n192.0.2.4\n").unwrap();
    capture(&path("head"), &[]);
    let flags = ["monitor", "-r", "-", "--watch", "list", "--rotate", "1m"];
    let mut monitor = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    monitor.args(flags).args(["--alert-to", "json:alerts.json"]).current_dir(&folder);
    let mut monitor = monitor.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut input = monitor.stdin.take().unwrap();
    input.write_all(&fs::read(path("head")).unwrap()).unwrap();
    let followed = fs::File::create(path("followed")).unwrap();
    let mut tail = Command::new("tail");
    tail.args(["-n", "+1", "-F"]).arg(path("alerts.json")).stdout(followed).stderr(Stdio::null());
    let mut tail = tail.spawn().unwrap();
    let lines = || fs::read_to_string(path("followed")).unwrap();
    let has = |count: usize| (0..10).any(|_| soon(|| lines().lines().count() >= count));
    let mut is_read = true;
    for number in 1..=4_u32 {
        // The second packet is behind the mark at which the first one's alert is sent.
        for (seconds, target) in [(60 * number, number as u8), (60 * number + 9, 99)] {
            let frame = syn(target);
            for field in [seconds, 0, frame.len() as u32, frame.len() as u32] {
                input.write_all(&field.to_le_bytes()).unwrap();
            }
            input.write_all(&frame).unwrap();
        }
        input.flush().unwrap();
        // An alert comes when more is read.
        is_read &= has(number as usize - 1);
    }
    drop(input);
    assert!(monitor.wait().unwrap().success());
    is_read &= has(8);
    tail.kill().unwrap();
    tail.wait().unwrap();
    assert!(is_read, "{}", lines());
    let entry = |line: &str| serde_json::from_str::<Value>(line).unwrap()["entry"].clone();
    // Each begins in its period, and all end with the run.
    let entries = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"].repeat(2);
    assert_eq!(lines().lines().map(entry).collect::<Vec<_>>(), entries);
    for (name, entry) in [("alerts.1.json", 1), ("alerts.2.json", 2), ("alerts.3.json", 3)] {
        let text = fs::read_to_string(path(name)).unwrap();
        assert!(text.contains(&format!("192.0.2.{entry}")), "{name}: {text}");
    }
}

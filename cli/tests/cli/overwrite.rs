//! Tests of what happens to files: no file that exists is replaced without `--force`, no file that a command uses is
//! its output, what a killed process leaves is finished or reported, and rights are given up.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{office, output_of, ringtap};
use crate::formats::records;
use crate::net::{Background, Net, NetCommands, Right};
use crate::signals::Waiting;

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut all: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

/// Runs the command in a folder; returns stderr and the exit code.
fn run_in(folder: &Path, words: &str) -> (String, i32) {
    let mut command = ringtap();
    let (_, errors, code) = output_of(command.current_dir(folder).args(words.split(' ')));
    (errors, code)
}

/// A folder with a copy of the bundled capture, links to it, and a key.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::copy(office(), path("in.pcap")).unwrap();
    fs::hard_link(path("in.pcap"), path("hard")).unwrap();
    symlink("in.pcap", path("soft")).unwrap();
    fs::write(path("key.bin"), [7; 32]).unwrap();
    fs::write(path("rules"), "default allow\n").unwrap();
    fs::write(path("watch"), "example.org\n").unwrap();
    fs::write(path("run.toml"), "digest = true\n").unwrap();
    fs::write(path("w.toml"), "name = \"w1\"\n").unwrap();
    folder
}

#[test]
fn no_output_is_a_file_that_the_command_uses() {
    let folder = folder();
    let (errors, code) = run_in(folder.path(), "monitor -q -r in.pcap --state a.state");
    assert_eq!(code, 0, "{errors}");
    let (errors, code) =
        run_in(folder.path(), "measure -r in.pcap --write sketch:a.sketch --seed 1");
    assert_eq!(code, 0, "{errors}");
    let before = names(folder.path());
    let contents = || before.iter().map(|name| fs::read(folder.path().join(name)).unwrap());
    let all: Vec<_> = contents().collect();
    for words in [
        "monitor -r in.pcap --write json:in.pcap",
        "monitor -r in.pcap --write json:./in.pcap",
        "monitor -r in.pcap --write json:hard",
        "monitor -r in.pcap --write json:soft",
        "monitor -r in.pcap --export ipfix-file:in.pcap",
        "monitor -r in.pcap --events json:in.pcap",
        "monitor -r in.pcap --alert-to json:in.pcap",
        "monitor -r in.pcap --state in.pcap",
        "monitor -r in.pcap --anonymise key.bin --write json:key.bin",
        "monitor -r in.pcap --watch watch --write csv:watch",
        "monitor -r in.pcap --config run.toml --write csv:run.toml",
        "monitor -r in.pcap --write json:z --state z",
        "monitor -r in.pcap --write json:z --write csv:./z",
        "generate -w t --truth t",
        "generate -w w.toml --profile w.toml",
        "filter -r in.pcap -w in.pcap --default allow",
        "filter -r in.pcap -w z --drops z --default allow",
        "filter -r in.pcap --drops rules --rules rules",
        "measure -r in.pcap --write sketch:in.pcap",
        "measure -r in.pcap --write sketch:z --write sketch:./z",
        "merge a.state --state a.state",
        "merge a.sketch --write sketch:a.sketch",
    ] {
        for force in ["", " --force"] {
            let (errors, code) = run_in(folder.path(), &format!("{words}{force}"));
            assert!(code == 2 && errors.contains("name the same file"), "{words}{force}: {errors}");
        }
    }
    assert_eq!(names(folder.path()), before);
    assert!(contents().eq(all));
}

#[test]
fn a_file_that_exists_is_replaced_only_on_request() {
    let folder = folder();
    run_in(folder.path(), "monitor -q -r in.pcap --state a.state");
    run_in(folder.path(), "measure -r in.pcap --write sketch:a.sketch --seed 1");
    for words in [
        "monitor -q -r in.pcap --write json:out",
        "monitor -q -r in.pcap --write parquet:out",
        "monitor -q -r in.pcap --events json:out",
        "monitor -q -r in.pcap --export ipfix-file:out",
        "monitor -q -r in.pcap --state out",
        "generate -w out --packets 100",
        "generate -w /dev/null --truth out --packets 100",
        "filter -r in.pcap -w out --default allow",
        "filter -r in.pcap --drops out --default deny",
        "measure -r in.pcap --write sketch:out",
        "merge a.state --state out",
        "merge a.sketch --write sketch:out",
    ] {
        let out = folder.path().join("out");
        fs::write(&out, "of another program").unwrap();
        let (errors, code) = run_in(folder.path(), words);
        let advice = "out: the file exists: use another name, or --force to replace it";
        assert!(code == 2 && errors.contains(advice), "{words}: {errors}");
        assert_eq!(fs::read_to_string(&out).unwrap(), "of another program");
        let (errors, code) = run_in(folder.path(), &format!("{words} --force"));
        assert_eq!(code, 0, "{words}: {errors}");
        assert_ne!(fs::read(&out).unwrap(), b"of another program", "{words}");
        fs::remove_file(out).unwrap();
    }
    assert!(names(folder.path()).iter().all(|name| !name.ends_with(".part")));
}

#[test]
fn a_second_process_with_the_same_output_is_refused_by_the_first_ones_number() {
    let folder = folder();
    let monitor = Waiting::new(folder.path(), &["--write=json:flows.json", "--state=a.state"]);
    let first = format!("process {} is writing it", monitor.child.id());
    for words in [
        "monitor -q -r in.pcap --write json:./flows.json",
        "monitor -q -r in.pcap --write parquet:flows.json --force",
        "monitor -q -r in.pcap --state a.state",
        "filter -r in.pcap -w flows.json",
    ] {
        let (errors, code) = run_in(folder.path(), words);
        assert!(code == 1 && errors.contains(&first), "{words}: {errors}");
    }
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    // The capture did not reach its end.
    assert_eq!(code, Some(130), "{errors}");
    assert_eq!(records("json", &folder.path().join("flows.json")), 1_921);
}

const FORMATS: [&str; 5] = ["csv", "json", "eve", "zeek", "parquet"];

/// Kills a run once every output has records in its temporary file.
fn kill_one(folder: &Path) {
    let mut flags: Vec<_> =
        FORMATS.map(|format| format!("--write={format}:flows.{format}")).to_vec();
    flags.push("--export=ipfix-file:flows.ipfix".into());
    flags.push("--events=json:events.json".into());
    flags.push("--state=a.state".into());
    let flags: Vec<_> =
        flags.iter().map(String::as_str).chain(["--sequential", "--idle-timeout=1s"]).collect();
    let monitor = Waiting::new(folder, &flags);
    let outputs = flags.iter().filter(|flag| flag.contains(':')).count();
    let is_written = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".part") && path.metadata().is_ok_and(|data| data.len() > 1_000)
    };
    while fs::read_dir(folder)
        .unwrap()
        .filter(|entry| is_written(entry.as_ref().unwrap().path()))
        .count()
        < outputs
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    monitor.send(Signal::KILL);
    assert_eq!(monitor.end().0, None, "a signal ended it");
}

#[test]
fn what_a_killed_run_leaves_is_finished_by_the_next() {
    let folder = folder();
    kill_one(folder.path());
    let parts = || names(folder.path()).into_iter().filter(|name| name.ends_with(".part"));
    assert_eq!(parts().count(), FORMATS.len() + 3);
    // Lines and messages are cut within the last one.
    for name in parts().filter(|name| !name.contains("parquet") && !name.contains("state")) {
        let path = folder.path().join(name);
        let len = path.metadata().unwrap().len();
        fs::File::options().write(true).open(path).unwrap().set_len(len - 3).unwrap();
    }
    let mut words = "monitor -q -r in.pcap --state a.state --events json:events.json".to_owned();
    words += " --export ipfix-file:flows.ipfix";
    FORMATS.iter().for_each(|format| words += &format!(" --write {format}:flows.{format}"));
    let (errors, code) = run_in(folder.path(), &words);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(parts().count(), 0, "{errors}");
    assert_eq!(errors.matches("; renamed to ").count(), FORMATS.len() + 2, "{errors}");
    assert_eq!(errors.matches("without its last").count(), FORMATS.len() + 1, "{errors}");
    for format in FORMATS {
        let [left, whole] = ["", ".1"].map(|number| {
            let path = folder.path().join(format!("flows{number}.{format}"));
            match (format, number) {
                // Without its last line.
                ("zeek", "") => {
                    let text = fs::read_to_string(path).unwrap();
                    text.lines().filter(|line| !line.starts_with('#')).count() as u64
                }
                _ => records(format, &path),
            }
        });
        assert!(left > 0 && left < 1_921, "{format}: {left}");
        assert_eq!(whole, 1_921, "{format}");
    }
}

#[test]
fn what_cannot_be_finished_is_reported() {
    let folder = folder();
    fs::write(folder.path().join(".t.pcap.1-abc.part"), "packets").unwrap();
    fs::write(folder.path().join(".t.pcap.x.part"), "of another program").unwrap();
    for _ in 0..2 {
        let (errors, code) = run_in(folder.path(), "generate -w t.pcap --force --packets 10");
        assert_eq!(code, 0, "{errors}");
        assert!(errors.contains(".t.pcap.1-abc.part: incomplete, left by process 1"), "{errors}");
        assert_eq!(errors.matches(".part").count(), 1, "{errors}");
    }
}

#[test]
fn a_live_run_takes_the_next_free_name_and_gives_up_its_rights() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.json");
    fs::write(&path, "of the run before").unwrap();
    let write = format!("json:{}", path.display());
    let flags = ["monitor", "-i", "right", "--duration", "60s", "--write", &write];
    let mut monitor = Background::without_words(net.ringtap(Right, &flags));
    let said = monitor.wait_for("the file exists");
    assert!(said.contains("this run writes") && said.ends_with("flows.1.json"), "{said}");
    monitor.wait_for("listening: ");
    for thread in fs::read_dir(format!("/proc/{}/task", monitor.child.id())).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let rights = ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:", "NoNewPrivs:"].map(value);
        assert_eq!(rights, [0, 0, 0, 0, 1], "{status}");
    }
    monitor.send(Signal::HUP);
    while !folder.path().join("flows.1.json").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    monitor.interrupt();
    let (_, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    assert_eq!(names(folder.path()), ["flows.1.json", "flows.json"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "of the run before");
}

#[test]
fn outputs_in_the_folder_of_another_user_keep_one_capability_and_the_run_says_so() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root has capabilities to drop");
        return;
    }
    let folder = folder();
    std::os::unix::fs::chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
    let (errors, code) = run_in(folder.path(), "monitor -q -r in.pcap --write json:flows.json");
    assert!(code == 0 && errors.contains("capabilities: keeps DAC_OVERRIDE"), "{errors}");
    assert_eq!(records("json", &folder.path().join("flows.json")), 1_921);
    let to_stdout = Command::new(env!("CARGO_BIN_EXE_ringtap"))
        .args(["monitor", "-q", "--write", "json:-", "-r"])
        .arg(office())
        .output()
        .unwrap();
    let errors = String::from_utf8(to_stdout.stderr).unwrap();
    assert!(!errors.contains("capabilities"), "{errors}");
}

//! Tests of live runs with outputs that are slow, full or down: no frame is lost, every record is
//! counted, and the problem is reported during the run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::have;
use crate::live::datagrams;
use crate::net::{Background, Net, NetCommands, Right};
use ringtap_io::live::SendOptions;
use ringtap_testkit::send_all;

const FLOWS: u64 = 20_000;

/// Starts a monitor of the right end with two queues.
fn monitor(net: &Net, flags: &[&str]) -> Background {
    let bounded = ["--report", "json", "--interval", "1s", "--idle-timeout", "1s"];
    let bounded = [&bounded[..], &["--duration", "50s", "--queues", "2"]].concat();
    let flags = [&["monitor", "-i", "right"][..], &bounded, flags].concat();
    let mut monitor = Background::start(net.ringtap(Right, &flags), "listening: ");
    monitor.wait_for("listening: ");
    monitor
}

/// Sends [`FLOWS`] datagrams, each a separate flow.
fn send(net: &Net) {
    let frames = datagrams(FLOWS as u16);
    let mut sender = net.sender(&SendOptions::default());
    // About 5,000 per second, the rate of an office.
    for some in frames.chunks(250) {
        send_all(&mut sender, some);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn report(bytes: &[u8], errors: &str) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn check_frames(report: &Value) {
    assert_eq!(report["packets"]["handled"], FLOWS, "{report:#}");
    assert_eq!(report["ledger"]["residual"], 0);
    assert_eq!(report["flows"]["records"], FLOWS);
}

#[test]
fn a_collector_that_is_down_is_reported_at_once_and_no_frame_is_lost() {
    let Some(net) = Net::new(2) else { return };
    let mut monitor = monitor(&net, &["--export", "ipfix+tcp://127.0.0.1:9"]);
    // The exporter connects when it has something to send.
    send(&net);
    let line = monitor.wait_for("warning: ipfix+tcp://127.0.0.1:9: ");
    assert!(line.contains("refused") && line.contains("trying again"), "{line}");
    monitor.interrupt();
    let (out, errors, code) = monitor.end();
    let report = report(&out, &errors);
    check_frames(&report);
    assert_eq!(code, 1, "{errors}");
    let export = &report["export"][0];
    assert_eq!(
        (&export["sent"]["records"], &export["not_sent"]["too_late"]["records"]),
        (&Value::from(0), &Value::from(FLOWS))
    );
}

#[test]
fn with_a_blocked_reader_no_frame_is_lost_and_each_record_is_written_or_counted_as_lost() {
    let Some(net) = Net::new(2) else { return };
    let monitor = monitor(&net, &["--write", "json:-"]);
    // The test reads stdout only after all frames are sent.
    send(&net);
    monitor.interrupt();
    let (records, errors, code) = monitor.end();
    let start = errors.find("{\n").unwrap_or_else(|| panic!("no report: {errors}"));
    let report = report(&errors.as_bytes()[start..], &errors);
    check_frames(&report);
    let lines = records.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let written = &report["write"][0];
    assert_eq!(written["output"], "json:-");
    let lost = written["not_written"].as_object().unwrap().values();
    let lost: u64 = lost.map(|lost| lost.as_u64().unwrap()).sum();
    assert_eq!((written["records"].as_u64().unwrap() + lost, code), (FLOWS, i32::from(lost > 0)));
    assert!(lines >= written["records"].as_u64().unwrap(), "{lines} lines, {written}");
}

/// A tmpfs of 64 KiB, unmounted on drop.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k,mode=0777", "tmpfs"]).arg(folder.path());
        let mounted = mount.status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("SKIPPED: a small disk needs the right to mount one");
        }
        mounted.then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn a_full_disk_is_reported_at_once_and_again_when_it_has_room() {
    let Some(net) = Net::new(2) else { return };
    let Some(disk) = SmallDisk::new() else { return };
    fs::write(disk.path().join("ballast"), vec![0; 40 << 10]).unwrap();
    let write = format!("csv:{}", disk.path().join("flows.csv").display());
    let mut monitor = monitor(&net, &["--write", &write]);
    send(&net);
    let line = monitor.wait_for(&format!("warning: {write}: "));
    assert!(line.contains("No space left"), "{line}");
    let remount =
        Command::new("mount").args(["-o", "remount,size=64m"]).arg(disk.path()).status().unwrap();
    assert!(remount.success());
    monitor.wait_for(&format!("{write}: works again"));
    monitor.interrupt();
    let (out, errors, code) = monitor.end();
    let report = report(&out, &errors);
    check_frames(&report);
    let csv = fs::read_to_string(disk.path().join("flows.csv")).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "a line is incomplete");
    let written = report["write"][0]["records"].as_u64().unwrap();
    assert_eq!(csv.lines().count() as u64, written + 1);
    assert_eq!((written, code), (FLOWS, 0), "records wait in memory: {errors}");
}

#[test]
fn with_another_user_outputs_are_writable_and_rotate_or_the_run_does_not_start() {
    let Some(net) = Net::new(2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let write = format!("json:{}", folder.path().join("flows.json").display());
    let export = format!("ipfix-file:{}", folder.path().join("flows.ipfix").display());
    let flags = ["monitor", "-i", "right", "--user", "nobody", "--duration", "1s"];
    for output in [["--write", &write], ["--export", &export]] {
        let (out, errors, code) = net.run(Right, &[&flags[..], &output].concat());
        assert_eq!((out.as_str(), code), ("", 1), "{errors}");
        assert!(errors.contains("as the user nobody"), "{errors}");
        assert!(errors.contains("Permission denied"), "{errors}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    if !have("chown") {
        return;
    }
    assert!(Command::new("chown").arg("nobody").arg(folder.path()).status().unwrap().success());
    let monitor = monitor(&net, &["--user", "nobody", "--write", &write, "--export", &export]);
    send(&net);
    monitor.send(Signal::HUP);
    monitor.interrupt();
    let (out, errors, code) = monitor.end();
    check_frames(&report(&out, &errors));
    assert_eq!(code, 0, "{errors}");
    let lines = ["flows.json", "flows.1.json"].map(|name| folder.path().join(name));
    let lines = lines.iter().filter_map(|file| fs::read_to_string(file).ok());
    assert_eq!(lines.map(|text| text.lines().count() as u64).sum::<u64>(), FLOWS);
    assert!(folder.path().join("flows.ipfix").exists());
}

//! Tests of `monitor --capture dpdk`: the report on frames from virtual DPDK devices equals the
//! report on the capture file.
//!
//! A separate test program, because it needs the feature `dpdk`.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

#[allow(dead_code, reason = "shared with the other tests")]
mod common;
#[allow(dead_code, unused_imports, reason = "shared with the other tests")]
mod net;

use std::path::{Path, PathBuf};
use std::process::Command;

use ringtap_io::live::SendOptions;
use ringtap_wire::{HashKey, LinkType, TunnelPorts, pair_hash};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{json, office, output_of, ringtap};
use crate::net::{Background, Net, NetCommands, Right, capture, frames};
use ringtap_testkit::send_all;

/// Flags that let flows end only with the run: a replay has other times than the capture.
const TIMELESS: [&str; 4] = ["--idle-timeout", "1h", "--active-timeout", "1h"];

/// Generates a capture file of the profile and returns its path.
fn generated(folder: &TempDir, profile: &str, packets: u32) -> PathBuf {
    let file = folder.path().join(format!("{profile}.pcap"));
    let packets = packets.to_string();
    let made = ringtap()
        .args(["generate", "--profile", profile, "--packets", &packets, "--flows", "500", "-w"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file
}

/// Monitors the device until it has received `packets` packets, and returns the report.
fn report(mut command: Command, device: &str, packets: u64, flags: &[&str]) -> Value {
    command.args(["monitor", "--capture", "dpdk", "-i", device, "--report", "json"]);
    // The duration ends a test that hangs.
    command.args(["--interval", "1h", "--stats", "50ms", "--duration", "60s"]);
    command.args(TIMELESS).args(flags);
    let mut monitor = Background::start(command, "listening: ");
    seen(&mut monitor, packets);
    end(monitor)
}

/// Waits for a `stats` line with at least this number of packets.
fn seen(monitor: &mut Background, packets: u64) {
    loop {
        let line = monitor.wait_for(" packets, ");
        let (_, rest) = line.split_once(" s, ").unwrap();
        let count: String = rest.split(" packets").next().unwrap().replace([',', ' '], "");
        if count.parse::<u64>().unwrap_or_else(|_| panic!("{line}")) >= packets {
            return;
        }
    }
}

fn end(monitor: Background) -> Value {
    monitor.interrupt();
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    serde_json::from_slice(&report).unwrap()
}

/// The report without times and without fields that depend on the source of the packets.
fn timeless(mut report: Value) -> Value {
    fn strip(value: &mut Value) {
        if let Some(map) = value.as_object_mut() {
            for time in ["first", "last", "active_peak"] {
                map.remove(time);
            }
            map.values_mut().for_each(strip);
        } else if let Some(list) = value.as_array_mut() {
            list.iter_mut().for_each(strip);
        }
    }
    let map = report.as_object_mut().unwrap();
    let arranged = ["plan", "performance", "interfaces", "ledger", "pairs_checked"];
    for own in arranged.into_iter().chain(["digest", "intervals", "notices"]) {
        map.remove(own);
    }
    strip(&mut report);
    report
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    command.env("NO_COLOR", "1");
    command
}

fn device(files: &[&Path]) -> String {
    let files: Vec<String> =
        files.iter().map(|file| format!(",rx_pcap={}", file.display())).collect();
    format!("net_pcap0{}", files.concat())
}

#[test]
fn a_replay_through_dpdk_gives_the_same_report_as_the_capture() {
    let folder = TempDir::new().unwrap();
    // The driver does not report the original length of frames that the snap length cut.
    let cut = folder.path().join("office.pcap");
    capture(&cut, &frames(&std::fs::read(office()).unwrap()));
    let captures = [cut, generated(&folder, "mix", 20_000), generated(&folder, "scans", 20_000)];
    for file in captures {
        let wanted = json(&file, &TIMELESS);
        let packets = wanted["packets"]["received"].as_u64().unwrap();
        assert!(packets > 1_000);
        for flags in [&["--sequential"][..], &["--skeleton", "farm", "--workers", "2"]] {
            let report = report(command(), &device(&[&file]), packets, flags);
            assert_eq!(report["ledger"]["residual"], 0);
            assert_eq!(report["ledger"]["stages"][0]["stage"], "interface");
            assert!(timeless(report) == timeless(wanted.clone()), "{} {flags:?}", file.display());
        }
    }
}

#[test]
fn two_queues_give_the_same_report_as_the_capture() {
    let folder = TempDir::new().unwrap();
    let whole = generated(&folder, "mix", 20_000);
    let wanted = json(&whole, &TIMELESS);
    // Split by RSS hash, as a network card does.
    let key = HashKey::from_seed(7);
    let mut shares = [Vec::new(), Vec::new()];
    for frame in frames(&std::fs::read(&whole).unwrap()) {
        let hash =
            pair_hash(&key, &TunnelPorts::default(), LinkType::ETHERNET, &frame, 0).unwrap_or(0);
        shares[(hash >> 31) as usize].push(frame);
    }
    assert!(shares.iter().all(|share| share.len() > 1_000));
    let files = ["a.pcap", "b.pcap"].map(|name| folder.path().join(name));
    files.iter().zip(&shares).for_each(|(file, frames)| capture(file, frames));
    let device = device(&[&files[0], &files[1]]);
    let seen = report(command(), &device, 20_000, &["--fail-on-drop"]);
    assert_eq!(seen["plan"]["queues"], 2, "by default as many as the device has");
    assert!(timeless(seen) == timeless(wanted));
}

#[test]
fn dpdk_receives_the_frames_of_an_interface() {
    let folder = TempDir::new().unwrap();
    let sent = frames(&std::fs::read(generated(&folder, "mix", 5_000)).unwrap());
    let Some(net) = Net::new(1) else { return };
    let file = folder.path().join("sent.pcap");
    capture(&file, &sent);
    let flags = ["monitor", "--capture", "dpdk", "-i", "net_af_packet0,iface=right,framecnt=8192"];
    let mut listening = net.ringtap(Right, &flags);
    listening.args([
        "--report",
        "json",
        "--interval",
        "1h",
        "--stats",
        "50ms",
        "--duration",
        "60s",
    ]);
    listening.args(TIMELESS).arg("--sequential");
    let mut monitor = Background::start(listening, "listening: net_af_packet0");
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    seen(&mut monitor, sent.len() as u64);
    assert!(timeless(end(monitor)) == timeless(json(&file, &TIMELESS)));
}

#[test]
fn an_endless_device_can_be_interrupted_and_every_packet_is_accounted_for() {
    let device = "net_null0,size=64";
    let report =
        report(command(), device, 100_000, &["--sequential", "--dpdk-args", "--no-huge -m 64"]);
    let packets = &report["packets"];
    assert!(packets["received"].as_u64().unwrap() >= 100_000);
    assert_eq!(
        (&packets["received"], &report["ledger"]["residual"]),
        (&packets["handled"], &0.into())
    );
}

#[test]
fn wrong_devices_and_arguments_are_errors() {
    let wrong = |device: &str, flags: &[&str]| {
        let (_, errors, code) =
            output_of(ringtap().args(["monitor", "--capture", "dpdk", "-i", device]).args(flags));
        assert_eq!(code, 1, "{errors}");
        errors
    };
    assert!(wrong("eth0", &[]).contains("eth0"));
    let errors = wrong("net_pcap0,rx_pcap=/no/such/file", &[]);
    assert!(errors.contains("/no/such/file"), "{errors}");
    let errors = wrong("net_null0", &["--dpdk-args", "--no-such-argument"]);
    assert!(errors.contains("DPDK does not start") && errors.contains("no-such"), "{errors}");
}

//! `monitor -i`, over veth pairs in network namespaces of their own.

use std::fs;
use std::io::{BufRead, BufReader};

use ringtap_io::live::{Method, SendOptions};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, ringtap, said};
use crate::expressions::readable;
use crate::net::{Beside, Left, Net, Right, Within};
use ringtap_testkit::send_all;

/// A monitor of the right end that listens by all queues.
fn monitor(net: &Net, queues: usize, flags: &[&str]) -> Beside {
    // Whatever a test waits for, it does not wait for ever.
    let bounded = ["--report", "json", "--idle-timeout", "2s", "--duration", "30s"];
    let flags = [&["monitor", "-i", "right"][..], &bounded, flags].concat();
    let mut monitor = Beside::start(net.ringtap(Right, &flags), "listening: ");
    (1..queues).for_each(|_| drop(monitor.wait_for("listening: ")));
    monitor
}

/// The exit code and the report.
fn end(monitor: Beside) -> (i32, Value) {
    let (report, errors, code) = monitor.end();
    let report = serde_json::from_slice(&report);
    (code, report.unwrap_or_else(|error| panic!("{error}: {errors}")))
}

/// UDP datagrams between two hosts, of so many flows.
pub(crate) fn datagrams(flows: u16) -> Vec<Vec<u8>> {
    let frame = |flow: u16| {
        let mut frame = vec![0; 60];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        let header = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        frame[14..34].copy_from_slice(&header);
        frame[34..36].copy_from_slice(&(1000 + flow).to_be_bytes());
        frame[36..42].copy_from_slice(&[0, 53, 0, 26, 0, 0]);
        frame
    };
    (0..flows).map(frame).collect()
}

fn send(net: &Net, method: Method, frames: &[Vec<u8>]) {
    send_all(&mut net.sender(&SendOptions { method, ..SendOptions::default() }), frames);
}

#[test]
fn an_interrupt_ends_it_with_the_report_of_all_that_came() {
    for (capture, queues) in [("af-packet", 2), ("af-xdp", 2)] {
        let Some(net) = Net::new(2) else { return };
        let monitor = monitor(&net, queues, &["--queues", "2", "--capture", capture]);
        send(&net, Method::Packet, &datagrams(500));
        monitor.interrupt();
        let (code, report) = end(monitor);
        assert_eq!(code, 0);
        assert_eq!(report["packets"]["received"], 500, "{capture}");
        assert_eq!(report["flows"]["records"], 500);
        assert_eq!(report["ledger"]["residual"], 0);
        assert_eq!(report["ledger"]["stages"][0]["stage"], "interface");
        assert_eq!(report["plan"]["queues"], 2);
    }
}

#[test]
fn only_what_is_selected_counts() {
    for capture in ["af-packet", "af-xdp"] {
        let Some(net) = Net::new(1) else { return };
        if !readable() {
            return;
        }
        let words = ["udp", "src", "portrange", "1000-1099", "and", "host", "10.0.0.2"];
        let flags = [&["--capture", capture, "--fail-on-drop"][..], &words].concat();
        let monitor = monitor(&net, 1, &flags);
        send(&net, Method::Packet, &datagrams(500));
        monitor.interrupt();
        let (code, report) = end(monitor);
        let packets = &report["packets"];
        assert_eq!((code, &packets["received"]), (0, &Value::from(500)), "{capture}");
        assert_eq!(
            (&packets["handled"], &packets["dropped"]["filtered"]),
            (&100.into(), &400.into())
        );
        assert_eq!(report["flows"]["records"], 100);
    }
}

#[test]
fn on_a_quiet_link_flows_end_in_time_and_their_records_are_shown() {
    let Some(net) = Net::new(1) else { return };
    let mut monitor = monitor(&net, 2, &["--queues", "2", "--write", "json:-"]);
    send(&net, Method::Packet, &datagrams(3));
    // Nothing comes any more, and nobody stops it: the clock alone ends the flows.
    let mut lines = BufReader::new(monitor.child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let record: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(record["flowEndReason"], 1, "{record}");
    }
    monitor.interrupt();
    assert_eq!(lines.count(), 0);
}

#[test]
fn it_becomes_another_user_once_everything_is_open() {
    for capture in ["af-packet", "af-xdp"] {
        let Some(net) = Net::new(1) else { return };
        let flags = ["--sequential", "--capture", capture, "--user", "nobody"];
        let monitor = monitor(&net, 1, &flags);
        let status = fs::read_to_string(format!("/proc/{}/status", monitor.child.id())).unwrap();
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert!(line("Uid:").split_whitespace().all(|id| id == "65534"), "{status}");
        assert!(line("Gid:").split_whitespace().all(|id| id != "0"), "{status}");
        assert_eq!(line("CapEff:").trim(), "0000000000000000", "{status}");
        send(&net, Method::Packet, &datagrams(10));
        monitor.interrupt();
        let (code, report) = end(monitor);
        assert_eq!((code, &report["packets"]["received"]), (0, &Value::from(10)), "{capture}");
    }
    let (_, errors, code) = said(ringtap().args(["monitor", "-i", "lo", "--user", "no-such-user"]));
    assert!(code == 2 && errors.contains("no user no-such-user"), "{errors}");
}

#[test]
fn intervals_are_told_as_they_end_also_on_a_quiet_link() {
    let Some(net) = Net::new(1) else { return };
    let mut monitor = monitor(&net, 2, &["--queues", "2", "--interval", "1s"]);
    send(&net, Method::Packet, &datagrams(3));
    let mut packets = 0;
    // They may have come in two of them.
    while packets < 3 {
        let line = monitor.wait_for(" UDP conversations, ");
        let (_, told) = line.split_once(" s: ").unwrap();
        packets += told.split(' ').next().unwrap().parse::<u32>().unwrap();
    }
    monitor.interrupt();
    let (code, report) = end(monitor);
    assert_eq!((packets, code), (3, 0));
    let rows = report["intervals"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["packets"]["handled"].as_u64().unwrap()).sum::<u64>(), 3);
}

#[test]
fn it_stops_by_itself_after_its_duration() {
    let Some(net) = Net::new(1) else { return };
    let monitor = monitor(&net, 1, &["--sequential", "--duration", "100ms"]);
    let (code, report) = end(monitor);
    assert_eq!((code, &report["packets"]["received"]), (0, &Value::from(0)));
}

#[test]
fn an_interface_may_go_down_and_come_back() {
    let Some(net) = Net::new(1) else { return };
    let monitor = monitor(&net, 1, &["--sequential"]);
    send(&net, Method::Packet, &datagrams(10));
    net.ip(Right, "link set right down");
    net.ip(Right, "link set right up");
    send(&net, Method::Packet, &datagrams(20));
    monitor.interrupt();
    let (code, report) = end(monitor);
    assert_eq!((code, &report["packets"]["received"]), (0, &Value::from(30)));
}

#[test]
fn an_interface_that_is_deleted_ends_the_run_with_its_report_and_an_error() {
    for capture in ["af-packet", "af-xdp"] {
        let Some(net) = Net::new(1) else { return };
        let mut monitor = monitor(&net, 1, &["--queues", "1", "--capture", capture]);
        send(&net, Method::Packet, &datagrams(10));
        net.ip(Right, "link del right");
        monitor.wait_for("the interface right is gone");
        let (code, report) = end(monitor);
        assert_eq!((code, &report["ledger"]["residual"]), (1, &Value::from(0)), "{capture}");
    }
}

#[test]
fn after_it_was_killed_the_next_one_starts() {
    for capture in ["af-packet", "af-xdp"] {
        let Some(net) = Net::new(2) else { return };
        for _ in 0..3 {
            let monitor = monitor(&net, 2, &["--queues", "2", "--capture", capture]);
            monitor.send(Signal::KILL);
        }
        let monitor = monitor(&net, 2, &["--queues", "2", "--capture", capture]);
        send(&net, Method::Packet, &datagrams(10));
        monitor.interrupt();
        let (code, report) = end(monitor);
        assert_eq!((code, &report["packets"]["received"]), (0, &Value::from(10)), "{capture}");
    }
}

#[test]
fn what_is_dropped_is_said_and_counted_among_the_losses() {
    let Some(net) = Net::new(1) else { return };
    // Stopped, it reads nothing: its buffers are full soon.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.ipfix");
    let export = format!("ipfix-file:{}", file.display());
    let flags = ["--sequential", "--memory", "48M", "--fail-on-drop", "--export", &export];
    let mut monitor = monitor(&net, 1, &flags);
    monitor.send(Signal::STOP);
    let frames = datagrams(1_000);
    let mut sender = net.sender(&SendOptions::default());
    (0..300).for_each(|_| send_all(&mut sender, &frames));
    monitor.send(Signal::CONT);
    monitor.interrupt();
    let complaint = monitor.wait_for("packets dropped: ");
    let (code, report) = end(monitor);
    let dropped = report["packets"]["dropped"]["ring_full"].as_u64().unwrap();
    assert!(complaint.ends_with(&format!(": {dropped}")), "{complaint}, {dropped}");
    assert_eq!((code, &report["packets"]["received"]), (3, &Value::from(300_000)));
    assert_eq!(report["packets"]["handled"], 300_000 - dropped);
    // Collectors hear of it, too (RFC 5101, section 4.2).
    if have("tshark") {
        let mut tshark = std::process::Command::new("tshark");
        let output = tshark
            .arg("-r")
            .arg(&file)
            .args(["-T", "fields", "-e", "cflow.ignore_packets"])
            .output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let last = text.split([',', '\n']).rfind(|number| !number.is_empty());
        assert_eq!(last, Some(dropped.to_string().as_str()), "{text}");
    }
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let (_, errors, code) = said(ringtap().args(["monitor", "-i", "no-such-interface"]));
    assert!(code != 0 && errors.contains("no-such-interface") && errors.contains("lo"), "{errors}");
    let both = ["monitor", "-i", "lo", "-r", "x.pcap"];
    let (_, errors, code) = said(ringtap().args(both));
    assert!(code == 2 && errors.contains("--read"), "{errors}");
    let (_, errors, code) = said(ringtap().args(["monitor", "-r", "x.pcap", "--duration", "1s"]));
    assert!(code == 2 && errors.contains("--duration"), "{errors}");
    if cfg!(not(feature = "dpdk")) {
        let dpdk = ["monitor", "-i", "net_null0", "--capture", "dpdk"];
        let (_, errors, code) = said(ringtap().args(dpdk));
        assert!(code == 1 && errors.contains("--features dpdk"), "{errors}");
    }
    let Some(net) = Net::new(2) else { return };
    let wrong = net.inside(Left, || {
        said(ringtap().args(["monitor", "-i", "left", "--capture", "af-xdp", "--queues", "1"]))
    });
    assert!(wrong.2 != 0 && wrong.1.contains('2'), "{wrong:?}");
    if have("setpriv") {
        // Root without any power.
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(["--bounding-set", "-all", "--inh-caps", "-all"]);
        command.arg(env!("CARGO_BIN_EXE_ringtap")).args(["monitor", "-i", "lo"]);
        let (_, errors, code) = said(&mut command);
        assert!(code == 1 && errors.contains("CAP_NET_RAW"), "{errors}");
        assert!(errors.contains("setcap cap_net_raw"), "{errors}");
    }
}

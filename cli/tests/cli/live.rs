//! Tests of `monitor -i` over veth pairs in new network namespaces.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use ringtap_io::live::{Method, SendOptions};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, output_of, ringtap};
use crate::expressions::have_libpcap;
use crate::net::{Background, Left, Net, NetCommands, Right};
use ringtap_testkit::send_all;

/// Starts a monitor of the right end and waits until it listens on all queues.
fn monitor(net: &Net, queues: usize, flags: &[&str]) -> Background {
    // The duration ends a test that hangs.
    let bounded = ["--report", "json", "--idle-timeout", "2s", "--duration", "30s"];
    let flags = [&["monitor", "-i", "right"][..], &bounded, flags].concat();
    let mut monitor = Background::start(net.ringtap(Right, &flags), "listening: ");
    (1..queues).for_each(|_| drop(monitor.wait_for("listening: ")));
    monitor
}

/// Waits for the end and returns the exit code and the report.
fn end(monitor: Background) -> (i32, Value) {
    let (report, errors, code) = monitor.end();
    let report = serde_json::from_slice(&report);
    (code, report.unwrap_or_else(|error| panic!("{error}: {errors}")))
}

/// UDP datagrams between two hosts, one for each of `flows` flows.
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
fn an_interrupt_ends_the_run_and_the_report_has_all_packets() {
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
fn only_packets_that_match_the_expression_are_handled() {
    for capture in ["af-packet", "af-xdp"] {
        let Some(net) = Net::new(1) else { return };
        if !have_libpcap() {
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
fn on_a_quiet_link_flows_end_by_the_clock_and_their_records_are_written() {
    let Some(net) = Net::new(1) else { return };
    let mut monitor = monitor(&net, 2, &["--queues", "2", "--write", "json:-"]);
    send(&net, Method::Packet, &datagrams(3));
    // No packets and no interrupt: only the clock ends the flows.
    let mut lines = BufReader::new(monitor.child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let record: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(record["flowEndReason"], 1, "{record}");
    }
    monitor.interrupt();
    assert_eq!(lines.count(), 0);
}

#[test]
fn the_monitor_changes_its_user_after_it_has_opened_everything() {
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
    let (_, errors, code) =
        output_of(ringtap().args(["monitor", "-i", "lo", "--user", "no-such-user"]));
    assert!(code == 2 && errors.contains("unknown user no-such-user"), "{errors}");
}

#[test]
fn intervals_are_printed_as_they_end_also_on_a_quiet_link() {
    let Some(net) = Net::new(1) else { return };
    let mut monitor = monitor(&net, 2, &["--queues", "2", "--interval", "1s"]);
    send(&net, Method::Packet, &datagrams(3));
    let mut packets = 0;
    // The packets may arrive in two intervals.
    while packets < 3 {
        let line = monitor.wait_for(" UDP conversations, ");
        let (_, counts) = line.split_once(" s: ").unwrap();
        packets += counts.split(' ').next().unwrap().parse::<u32>().unwrap();
    }
    monitor.interrupt();
    let (code, report) = end(monitor);
    assert_eq!((packets, code), (3, 0));
    let rows = report["intervals"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["packets"]["handled"].as_u64().unwrap()).sum::<u64>(), 3);
}

/// Frames and bytes that the kernel has received at the right end.
fn received_by_kernel(net: &Net) -> [u64; 2] {
    let show = ["-n", net.name(Right), "-j", "-s", "link", "show", "right"];
    let shown = Command::new("ip").args(show).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    ["packets", "bytes"].map(|name| shown[0]["stats64"]["rx"][name].as_u64().unwrap())
}

/// The kernel passes TCP in frames of up to 185,000 bytes, beyond what the length field of IPv6 holds.
#[test]
fn ipv6_frames_beyond_64_kib_are_counted_with_all_their_octets() {
    const SENT: usize = 42_000_000;
    const ETHERNET: u64 = 14;
    // IPv6 and TCP, without options.
    const HEADERS: u64 = 60;
    let Some(net) = Net::new(1) else { return };
    for (end, name, address) in [(Left, "left", "fd00::1"), (Right, "right", "fd00::2")] {
        let sizes = ["link", "set", name, "gso_max_size", "185000", "gro_max_size", "185000"];
        let set = Command::new("ip").args(["-n", net.name(end)]).args(sizes).output().unwrap();
        let has_ipv6 = net.inside(end, || {
            let _ = fs::write("/proc/sys/net/ipv4/tcp_timestamps", "0");
            fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0").is_ok()
        });
        if !set.status.success() || !has_ipv6 {
            eprintln!(
                "SKIPPED: no frames beyond 64 KiB: kernel or iproute2 is too old, or without IPv6"
            );
            return;
        }
        net.ip(end, &format!("-6 addr add {address}/64 dev {name} nodad"));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows");
    let write = format!("json:{}", path.display());
    let before = received_by_kernel(&net);
    let flags = ["monitor", "-i", "right", "--queues", "1", "--report", "json", "--write", &write];
    let command = net.ringtap(Right, &[&flags[..], &["--duration", "300s"]].concat());
    let monitor = Background::start(command, "listening: ");
    let listener = net.inside(Right, || TcpListener::bind("[fd00::2]:5001").unwrap());
    let mut sender = net.inside(Left, || TcpStream::connect("[fd00::2]:5001").unwrap());
    let (mut receiver, _) = listener.accept().unwrap();
    let sending =
        std::thread::Builder::new().spawn(move || sender.write_all(&vec![7; SENT])).unwrap();
    assert_eq!(std::io::copy(&mut receiver, &mut std::io::sink()).unwrap(), SENT as u64);
    sending.join().unwrap().unwrap();
    drop(receiver);
    monitor.interrupt();
    let (code, report) = end(monitor);
    let [packets, bytes] = received_by_kernel(&net);
    assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)));
    let flows = fs::read_to_string(&path).unwrap();
    let flows: Vec<Value> = flows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_own = |flow: &&Value| flow["destinationTransportPort"] == 5001;
    let numbers = |name: &str| {
        let of = |flow: &Value| flow[name].as_u64().unwrap();
        flows.iter().filter(is_own).map(of).collect::<Vec<_>>()
    };
    if numbers("maximumIpTotalLength").iter().max() != Some(&u16::MAX.into()) {
        eprintln!("SKIPPED: this kernel sends no frames beyond 64 KiB");
        return;
    }
    let [octets, own]: [u64; 2] =
        ["octetDeltaCount", "packetDeltaCount"].map(|name| numbers(name).iter().sum());
    assert!(octets >= SENT as u64 + HEADERS * own, "{octets} in {own} packets");
    // What else the kernel received are some packets of ICMPv6.
    let all = (bytes - before[1]) - ETHERNET * (packets - before[0]);
    assert!((octets..octets + 20_000).contains(&all), "{octets} of {all}");
    assert_eq!(report["packets"]["truncated"], 0);
}

#[test]
fn the_run_ends_after_its_duration() {
    let Some(net) = Net::new(1) else { return };
    let monitor = monitor(&net, 1, &["--sequential", "--duration", "100ms"]);
    let (code, report) = end(monitor);
    assert_eq!((code, &report["packets"]["received"]), (0, &Value::from(0)));
}

#[test]
fn the_run_continues_after_the_interface_was_down() {
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
fn a_deleted_interface_ends_the_run_with_a_report_and_an_error() {
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
fn a_killed_monitor_does_not_block_the_next_one() {
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
fn dropped_packets_are_reported_and_count_as_losses() {
    let Some(net) = Net::new(1) else { return };
    // A stopped monitor reads nothing, so its buffers overflow.
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
    let notice = monitor.wait_for("packets dropped: ");
    let (code, report) = end(monitor);
    let dropped = report["packets"]["dropped"]["ring_full"].as_u64().unwrap();
    assert!(notice.ends_with(&format!(": {dropped}")), "{notice}, {dropped}");
    assert_eq!((code, &report["packets"]["received"]), (3, &Value::from(300_000)));
    assert_eq!(report["packets"]["handled"], 300_000 - dropped);
    // The count is also exported to collectors (RFC 5101, section 4.2).
    if have("tshark") {
        let mut tshark = Command::new("tshark");
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
fn wrong_flags_and_missing_rights_are_errors_with_a_remedy() {
    let (_, errors, code) = output_of(ringtap().args(["monitor", "-i", "no-such-interface"]));
    assert!(code != 0 && errors.contains("no-such-interface") && errors.contains("lo"), "{errors}");
    let both = ["monitor", "-i", "lo", "-r", "x.pcap"];
    let (_, errors, code) = output_of(ringtap().args(both));
    assert!(code == 2 && errors.contains("--read"), "{errors}");
    let (_, errors, code) =
        output_of(ringtap().args(["monitor", "-r", "x.pcap", "--duration", "1s"]));
    assert!(code == 2 && errors.contains("--duration"), "{errors}");
    if cfg!(not(feature = "dpdk")) {
        let dpdk = ["monitor", "-i", "net_null0", "--capture", "dpdk"];
        let (_, errors, code) = output_of(ringtap().args(dpdk));
        assert!(code == 1 && errors.contains("--features dpdk"), "{errors}");
    }
    let Some(net) = Net::new(2) else { return };
    let wrong = net.inside(Left, || {
        output_of(ringtap().args(["monitor", "-i", "left", "--capture", "af-xdp", "--queues", "1"]))
    });
    assert!(wrong.2 != 0 && wrong.1.contains('2'), "{wrong:?}");
    if have("setpriv") {
        // Root without capabilities.
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(["--bounding-set", "-all", "--inh-caps", "-all"]);
        command.arg(env!("CARGO_BIN_EXE_ringtap")).args(["monitor", "-i", "lo"]);
        let (_, errors, code) = output_of(&mut command);
        assert!(code == 1 && errors.contains("CAP_NET_RAW"), "{errors}");
        assert!(errors.contains("setcap cap_net_raw"), "{errors}");
    }
}

//! Tests of `monitor` on several interfaces, and of commands that accept only one.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use ringtap_io::live::{SendOptions, Sender};
use serde_json::Value;

use crate::common::{have, output_of, ringtap};
use crate::live::datagrams;
use crate::net::{Background, Left, Net, NetCommands, Right};
use ringtap_testkit::send_all;

/// Two links between the ends: `left` to `right`, `left2` to `right2`.
fn two_links(queues: u32) -> Option<Net> {
    let net = Net::new(queues)?;
    let shape = format!("numtxqueues {queues} numrxqueues {queues}");
    let peer = format!("peer name right2 netns {} {shape}", net.name(Right));
    net.ip(Left, &format!("link add left2 {shape} type veth {peer}"));
    net.ip(Left, "link set left2 up");
    net.ip(Right, "link set right2 up");
    Some(net)
}

/// The index of an interface at the right end.
fn index(net: &Net, name: &str) -> u64 {
    let arguments = ["-n", net.name(Right), "-o", "link", "show", name];
    let output = Command::new("ip").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(':').next().unwrap().trim().parse().unwrap()
}

/// Starts a monitor of the right end and waits until it has opened `opened` queues.
fn monitor(net: &Net, opened: usize, flags: &[&str]) -> Background {
    let bounded = ["--idle-timeout", "60s", "--duration", "40s"];
    let flags = [&["monitor"][..], &bounded, flags].concat();
    let mut monitor = Background::start(net.ringtap(Right, &flags), "listening: ");
    (1..opened).for_each(|_| drop(monitor.wait_for("listening: ")));
    monitor
}

fn json(monitor: Background) -> (Value, String, i32) {
    let (report, errors, code) = monitor.end();
    let report = serde_json::from_slice(&report);
    (report.unwrap_or_else(|error| panic!("{error}: {errors}")), errors, code)
}

/// The reply to each datagram: addresses and ports swapped.
fn replies(requests: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let swapped = |frame: &Vec<u8>| {
        let mut reply = frame.clone();
        for (here, there, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
            reply[here..here + len].copy_from_slice(&frame[there..there + len]);
            reply[there..there + len].copy_from_slice(&frame[here..here + len]);
        }
        reply
    };
    requests.iter().map(swapped).collect()
}

/// Sends a request over the first link and its reply over the second, for each flow.
fn send_pairs(net: &Net, flows: u16) {
    let open = |name| net.inside(Left, || Sender::open(name, &SendOptions::default()).unwrap());
    let mut senders = ["left", "left2"].map(open);
    let requests = datagrams(flows);
    for (request, reply) in requests.iter().zip(replies(&requests)) {
        send_all(&mut senders[0], std::slice::from_ref(request));
        send_all(&mut senders[1], &[reply]);
    }
}

#[test]
fn two_interfaces_give_one_stream_with_counts_per_interface() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    for (flags, queues) in [
        (&["-i", "right,right2", "--sequential"][..], 1),
        (&["-i", "right", "-i", "right2", "--queues", "2"], 2),
        (&["-i", "right,right2", "--capture", "af-xdp"], 2),
    ] {
        let Some(net) = two_links(2) else { return };
        net.ip(Right, "link set right alias uplink");
        let (flows, csv, eve) = (file("flows.json"), file("flows.csv"), file("eve.json"));
        let writes = [format!("json:{flows}"), format!("csv:{csv}"), format!("eve:{eve}")];
        let export = format!("ipfix-file:{}", file("flows.ipfix"));
        let mut words = [flags, &["--report", "json", "--export", &export]].concat();
        words.extend(writes.iter().flat_map(|to| ["--write", to]));
        let monitor = monitor(&net, 2 * queues, &words);
        send_pairs(&net, 300);
        monitor.interrupt();
        let (report, errors, code) = json(monitor);
        assert_eq!(code, 0, "{errors}");
        assert_eq!(report["packets"]["received"], 600, "{flags:?}");
        assert_eq!(
            (&report["flows"]["records"], &report["ledger"]["residual"]),
            (&300.into(), &0.into())
        );
        let interfaces = report["interfaces"].as_array().unwrap();
        for (one, name) in interfaces.iter().zip(["right", "right2"]) {
            assert_eq!((&one["name"], &one["index"]), (&name.into(), &index(&net, name).into()));
            assert_eq!((&one["packets"], &one["captured_octets"]), (&300.into(), &18_000.into()));
            assert_eq!((&one["dropped"], &one["gone"]), (&serde_json::json!({}), &Value::Null));
        }
        assert_eq!(interfaces.len(), 2);
        let source = report["plan"]["source"].as_array().unwrap();
        assert!(source.len() == 2 && source[1].as_str().unwrap().starts_with("right2 by "));

        // A record has both directions of a flow and the interface of the request. AF_XDP stamps
        // whole bursts, so the reply may come first.
        let by = index(&net, "right");
        let exact = !flags.contains(&"af-xdp");
        let lines = fs::read_to_string(&flows).unwrap();
        assert_eq!(lines.lines().count(), 300);
        for line in lines.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(
                (&record["packetDeltaCount"], &record["reversePacketDeltaCount"]),
                (&1.into(), &1.into())
            );
            assert!(!exact || record["ingressInterface"] == by, "{line}");
            assert!(!exact || record["ingressInterfaceName"] == "right", "{line}");
            assert!(record["ingressInterface"].as_u64().unwrap() > 0, "{line}");
        }
        let lines = fs::read_to_string(&csv).unwrap();
        let place =
            lines.lines().next().unwrap().split(',').position(|own| own == "ingressInterface");
        let of = |line: &str| line.split(',').nth(place.unwrap()).map(str::to_owned);
        let all = lines.lines().skip(1).all(|line| of(line) == Some(by.to_string()));
        assert!(all || !exact, "{lines}");
        let lines = fs::read_to_string(&eve).unwrap();
        let all = lines.lines().all(|line| line.contains("\"in_iface\":\"right\""));
        assert!(all || !exact, "{lines}");
        if have("tshark") && exact {
            let mut tshark = Command::new("tshark");
            tshark.args(["-r", &file("flows.ipfix"), "-T", "fields", "-e", "cflow.inputint"]);
            let text = String::from_utf8(tshark.output().unwrap().stdout).unwrap();
            let count = text.split([',', '\n']).filter(|word| *word == by.to_string()).count();
            // Also that of its name: in the scope, and behind it.
            assert_eq!(count, 302, "{text}");
            let mut tshark = Command::new("tshark");
            tshark.args(["-r", &file("flows.ipfix"), "-V"]);
            let text = String::from_utf8_lossy(&tshark.output().unwrap().stdout).into_owned();
            for name in ["IfName: right", "IfDescr: uplink", "IfName: right2", "IfDescr: right2"] {
                assert!(text.lines().any(|line| line.trim() == name), "{name}");
            }
        }
    }
}

#[test]
fn stats_metrics_and_report_have_counts_per_interface() {
    let Some(net) = two_links(1) else { return };
    let flags = ["-i", "right,right2", "--queues", "1", "--stats", "200ms", "--metrics", "9464"];
    let mut monitor = monitor(&net, 2, &flags);
    send_pairs(&net, 50);
    monitor.wait_for("100 packets, ");
    let line = monitor.wait_for("(right 50, right2 50)");
    assert!(line.starts_with("stats: "), "{line}");
    let answer = net.inside(Right, || {
        let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    for wanted in [
        "\nringtap_packets_total{interface=\"right\",queue=\"0\"} 50\n",
        "\nringtap_packets_total{interface=\"right2\",queue=\"0\"} 50\n",
        "\nringtap_bytes_total{interface=\"right2\"} 3000\n",
        "\nringtap_dropped_packets_total{interface=\"right2\"} 0\n",
        "\nringtap_interface_gone{interface=\"right\"} 0\n",
        "\nringtap_interface_up{interface=\"right2\"} 1\n",
    ] {
        assert!(answer.contains(wanted), "{wanted:?} is not in {answer}");
    }
    monitor.interrupt();
    let (report, errors, code) = monitor.end();
    let report = String::from_utf8(report).unwrap();
    assert_eq!(code, 0, "{errors}");
    let (_, interfaces) = report.split_once("\nInterfaces\n").expect("a section");
    let rows: Vec<Vec<_>> =
        interfaces.lines().take(3).map(|row| row.split_whitespace().collect()).collect();
    let head = vec!["interface", "packets", "share", "dropped"];
    let wanted = |name| vec![name, "50", "50.0", "%", "0"];
    assert_eq!(rows, [head, wanted("right"), wanted("right2")]);
}

#[test]
fn changes_of_an_interface_are_reported_and_counted_and_the_run_goes_on() {
    for (capture, queues) in [("af-packet", 1), ("af-packet", 2), ("af-xdp", 1)] {
        let Some(net) = Net::new(1) else { return };
        let queue = queues.to_string();
        let flags = ["-i", "right", "--capture", capture, "--queues", &queue, "--report", "json"];
        let mut monitor = monitor(&net, queues, &flags);
        let mut expected = 0;
        let mut send = |frames: &[Vec<u8>]| {
            net.wait_until_up(Left, "left");
            let sender = || Sender::open("left", &SendOptions::default()).unwrap();
            send_all(&mut net.inside(Left, sender), frames);
            expected += frames.len();
        };
        send(&datagrams(10));
        net.ip(Right, "link set right down");
        monitor.wait_for("warning: right is down");
        net.ip(Right, "link set right up");
        monitor.wait_for("warning: right is up");
        send(&datagrams(20));
        net.ip(Right, "link set right down");
        net.ip(Right, "link set right name other");
        monitor.wait_for("warning: right was renamed to other");
        net.ip(Right, "link set other up");
        monitor.wait_for("warning: right is up");
        send(&datagrams(30));
        net.ip(Left, "link set left mtu 3000");
        net.ip(Right, "link set other mtu 3000");
        let line = monitor.wait_for("warning: the MTU of right is 3000 now, it was 1500");
        let drops = capture == "af-xdp";
        assert_eq!(line.contains("more than 1792 bytes are dropped"), drops, "{line}");
        let long = [&datagrams(1)[0][..], &[0; 2_000]].concat();
        send(&[long]);
        if !drops {
            net.ip(Right, "link set other mtu 65535");
            let line = monitor.wait_for("warning: the MTU of right is 65535 now, it was 3000");
            assert!(line.contains("bytes may be truncated"), "{line}");
        }
        monitor.interrupt();
        let (report, errors, code) = json(monitor);
        assert_eq!(code, 0, "{errors}");
        assert_eq!(report["packets"]["received"], expected, "{capture}");
        let dropped =
            if drops { serde_json::json!({ "too_long": 1 }) } else { serde_json::json!({}) };
        assert_eq!(report["packets"]["dropped"], dropped);
        assert_eq!(report["ledger"]["residual"], 0);
        let interface = &report["interfaces"][0];
        let mtu_changes = if drops { 1 } else { 2 };
        assert_eq!(
            [&interface["times_down"], &interface["name_changes"], &interface["mtu_changes"]],
            [2, 1, mtu_changes],
            "{capture}, {queues} queues"
        );
        assert_eq!(interface["name"], "right");
    }
}

#[test]
fn a_deleted_interface_is_reported_at_once_and_the_others_continue() {
    for capture in ["af-packet", "af-xdp"] {
        let Some(net) = two_links(1) else { return };
        let flags = ["-i", "right,right2", "--capture", capture, "--report", "json"];
        let flags = [&flags[..], &["--queues", "1"]].concat();
        let mut monitor = monitor(&net, 2, &flags);
        send_pairs(&net, 10);
        net.ip(Right, "link del right");
        let line = monitor.wait_for("the interface right is gone");
        assert!(line.starts_with("error: ") && line.contains("others"), "{line}");
        net.ip(Right, "link add right type veth peer name other");
        monitor.wait_for("there is an interface right again, which is not read");
        let mut sender =
            net.inside(Left, || Sender::open("left2", &SendOptions::default()).unwrap());
        send_all(&mut sender, &datagrams(30));
        monitor.interrupt();
        let (report, errors, code) = json(monitor);
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("error: the interface right is gone\n"), "{errors}");
        assert_eq!(report["ledger"]["residual"], 0);
        let interfaces = &report["interfaces"];
        assert_eq!((&interfaces[0]["gone"], &interfaces[1]["gone"]), (&true.into(), &Value::Null));
        assert_eq!(interfaces[1]["packets"], 40, "{capture}");
    }
    // Without interfaces the run ends.
    let Some(net) = two_links(1) else { return };
    let mut monitor = monitor(&net, 2, &["-i", "right,right2", "--queues", "1"]);
    net.ip(Right, "link del right");
    net.ip(Right, "link del right2");
    monitor.wait_for("the interfaces right, right2 are gone");
    assert_eq!(monitor.end().2, 1);
}

#[test]
fn invalid_lists_of_interfaces_are_usage_errors() {
    let many: Vec<_> = (0..17).map(|number| format!("eth{number}")).collect();
    let many = many.join(",");
    for (flags, words) in [
        (&["monitor", "-i", "lo", "-i", "lo"][..], "-i names lo twice"),
        (&["monitor", "-i", "lo,eth9,lo"], "-i names lo twice"),
        (&["monitor", "-i", "lo,"], "missing name"),
        (&["monitor", "-i", ""], "a value is required for '--interface <IFACE>'"),
        (&["monitor", "-i", &many], "-i names 17 interfaces: use at most 16"),
        (&["monitor", "-i", "lo", "-i", "x", "-r", "y"], "cannot be used with"),
        (&["monitor", "--capture", "dpdk", "-i", "a", "-i", "b"], "-i is given 2 times (a, b)"),
        (&["monitor", "-i", "a,b", "--capture", "af-xdp", "--queues", "2"], "one reader takes all"),
        (&["measure", "-i", "a", "-i", "b"], "measure reads one interface"),
        (&["check", "-i", "a", "-i", "b"], "check receives from one interface"),
        (&["filter", "-i", "a", "-i", "b", "-o", "c"], "filter receives from one interface"),
        (&["filter", "-i", "a", "-o", "b", "-o", "c"], "-o is given 2 times (b, c)"),
        (&["generate", "-i", "a", "-i", "b"], "generate sends on one interface"),
    ] {
        let (out, errors, code) = output_of(ringtap().args(flags));
        assert!(errors.contains(words), "{flags:?}: {errors}");
        assert_eq!((out.as_str(), code), ("", 2), "{flags:?}: {errors}");
    }
}

#[test]
fn the_plan_lists_all_interfaces_and_the_configuration_can_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("monitor.toml");
    fs::write(&file, "interface = [\"lo\", \"eth7\"]\nqueues = 1\n").unwrap();
    let plan = |flags: &[&str]| {
        let mut command = ringtap();
        command.args(["monitor", "--dry-run", "--config"]).arg(&file).args(flags);
        let (text, errors, code) = output_of(&mut command);
        assert_eq!((errors.as_str(), code), ("", 0));
        text
    };
    assert!(plan(&[]).contains("lo by AF_PACKET, eth7 by AF_PACKET"), "{}", plan(&[]));
    let plan: Value = serde_json::from_str(&plan(&["-i", "eth8", "--report", "json"])).unwrap();
    assert_eq!(plan["source"], serde_json::json!(["eth8 by AF_PACKET"]), "flags have priority");
}

//! Tests of `--alert-to`: files, syslog, webhooks and programs, and the states of alerts in any arrangement.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{captures, have, office, output_of, real_folder, ringtap};
use crate::net::{Background, Left, Net, NetCommands, Right};

/// Runs over a capture with these flags; returns stdout, stderr and the exit code.
fn run(capture: &Path, flags: &[&str]) -> (String, String, i32) {
    output_of(ringtap().args(["monitor", "-r"]).arg(capture).args(flags))
}

/// The alerts in a file, and the run's other output and exit code.
fn alerts(capture: &Path, flags: &[&str]) -> (Vec<Value>, String, i32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alerts");
    let place = format!("json:{}", path.display());
    let (_, errors, code) = run(capture, &[flags, &["--alert-to", &place]].concat());
    let text = fs::read_to_string(&path).unwrap();
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    (text.lines().map(parse).collect(), errors, code)
}

#[test]
fn a_file_gets_each_change_as_a_line() {
    let (all, errors, code) = alerts(&office(), &[]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let states: Vec<_> = all.iter().map(|alert| (&alert["id"], &alert["state"])).collect();
    let [begins, ends] = [json!("begins"), json!("ends")];
    let ids = [1, 2, 3, 4].map(|id| json!(id));
    let expected: Vec<_> =
        ids.iter().map(|id| (id, &begins)).chain(ids.iter().map(|id| (id, &ends))).collect();
    assert_eq!(states, expected);
    assert_eq!(all[0]["kind"], "vertical_scan");
    assert_eq!(all[0]["text"], "10.20.0.200 scans 10.20.0.10: 399 ports failed so far");
    assert_eq!((&all[7]["port"], &all[7]["number"]), (&json!(22), &json!(21)));
    // In addition to stderr, if that is given: a line for each scan of a file.
    let (_, errors, _) = alerts(&office(), &["--alert-to", "stderr"]);
    assert_eq!(errors.matches("alert: ").count(), 4, "{errors}");
    let (all, errors, _) = alerts(&office(), &["--alert-to", "stderr", "-q"]);
    assert_eq!((all.len(), errors.as_str()), (8, ""));
    // On stdout, the report goes to stderr.
    let (text, errors, code) = run(&office(), &["--alert-to=json:-"]);
    assert_eq!((text.lines().count(), code), (8, 0));
    assert!(errors.contains("Vertical scans"), "{errors}");
}

#[test]
fn the_report_counts_the_alerts_of_each_output() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("json:{}", folder.path().join("alerts").display());
    let (report, ..) = run(&office(), &["--report=json", "--alert-to", &place]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let written = &report["write"][0];
    assert_eq!(written["output"], format!("alerts to {place}"));
    assert_eq!((&written["records"], &written["not_written"]), (&json!(8), &json!({})));
}

/// Kinds of alerts whose changes are equal in every arrangement.
const EQUAL: [&str; 4] = ["watched", "new_device", "new_server_port", "volume_change"];

/// The changes of alerts of these kinds, without the numbers of the alerts, which scans share.
fn equal(all: &[Value]) -> Vec<Value> {
    let own = all.iter().filter(|alert| EQUAL.iter().any(|kind| alert["kind"] == *kind)).cloned();
    own.map(|mut alert| {
        alert.as_object_mut().unwrap().remove("id");
        alert
    })
    .collect()
}

/// The last state, number and sample of the scans of each source and kind. Only the marks at which they change may differ between arrangements; and floods are
/// bounds.
fn last_states(all: &[Value]) -> BTreeMap<String, (String, u64, Value)> {
    let subject = |alert: &Value| ["kind", "source"].map(|name| alert[name].to_string()).join(" ");
    let last = |alert: &Value| {
        let fields = ["target", "targets", "port", "ports", "sample"].map(|name| &alert[name]);
        (alert["state"].to_string(), alert["number"].as_u64().unwrap(), json!(fields))
    };
    let is_scan =
        |alert: &&Value| alert["kind"].as_str().is_some_and(|kind| kind.ends_with("_scan"));
    let scans = all.iter().filter(is_scan);
    scans.map(|alert| (subject(alert), last(alert))).collect()
}

#[test]
fn alerts_are_equal_in_every_arrangement() {
    let (mut scans, mut changes) = (0, BTreeMap::<String, u32>::new());
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    fs::write(&list, "10.0.0.0/8\n192.168.0.0/16\n0.0.0.0/0\nexample.com\n").unwrap();
    let watch = format!("--watch={}", list.display());
    let own = folder.path().join("own");
    fs::write(&own, "0.0.0.0/0 all\n::/0 all\n").unwrap();
    let networks = format!("--networks={}", own.display());
    let own = ["new-device=1s", "new-server-port=1s", "volume-change=2", "volume-floor=500"];
    let own = own.map(|limit| format!("--alert={limit}"));
    for capture in captures().into_iter().take(20) {
        // The sources of a flood are counted by a hash.
        let flags = ["-q", "--scan-threshold=5", "--alert=dst-pps=50", "--interval=1s", "--seed=5"];
        let flags =
            [&flags[..], &[&watch, &networks], &own.each_ref().map(|flag| &flag[..])].concat();
        let of = |more: &[&str]| alerts(&capture, &[&flags[..], more].concat()).0;
        let reference = of(&["--sequential"]);
        assert_eq!(of(&["--sequential"]), reference, "{}", capture.display());
        // The first is the same sequence of marks for one worker.
        assert_eq!(of(&["--skeleton=farm", "-w=1"]), reference, "{}", capture.display());
        scans += last_states(&reference).len();
        for alert in equal(&reference) {
            *changes.entry(alert["kind"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        for more in
            [&["--queues=3"][..], &["--skeleton=farm", "-w=3"], &["--skeleton=pipeline", "-w=3"]]
        {
            let others = of(more);
            assert_eq!(equal(&others), equal(&reference), "{}", capture.display());
            assert_eq!(last_states(&others), last_states(&reference), "{}", capture.display());
        }
    }
    let is_often = |kind| changes.get(kind).is_some_and(|number| *number >= 8);
    // The bundled capture alone has few.
    let few = real_folder().is_none();
    assert!(few || scans >= 4 && EQUAL.into_iter().all(is_often), "{scans}, {changes:?}");
}

#[test]
fn syslog_receivers_get_messages() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let local = UnixDatagram::bind(&path).unwrap();
    let places = [
        format!("syslog:127.0.0.1:{}", udp.local_addr().unwrap().port()),
        format!("syslog:{}", path.display()),
    ];
    let flags = ["--alert-to", &places[0], "--alert-to", &places[1]];
    let (_, errors, code) = run(&office(), &flags);
    assert_eq!((errors.as_str(), code), ("", 0));
    let mut bytes = [0; 4096];
    for number in 0..8 {
        let length = udp.recv(&mut bytes).unwrap();
        let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
        let priority = if number < 4 { "<28>1 " } else { "<30>1 " };
        assert!(text.starts_with(priority) && text.contains(" ringtap "), "{text}");
        assert!(text.contains("[ringtap@32473 id=\"") && text.contains(" scans "), "{text}");
        let length = local.recv(&mut bytes).unwrap();
        assert!(bytes[..length].starts_with(priority.as_bytes()));
    }
}

#[test]
fn a_stream_of_syslog_messages_has_their_lengths() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("syslog+tcp://{}", listener.local_addr().unwrap());
    let reader = thread::Builder::new().spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    let (_, errors, code) = run(&office(), &["--alert-to", &place]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let text = reader.unwrap().join().unwrap();
    let (mut rest, mut messages) = (&text[..], 0);
    while !rest.is_empty() {
        let (length, after) = rest.split_once(' ').unwrap();
        let (message, next) = after.split_at(length.parse().unwrap());
        assert!(message.starts_with('<'), "{message}");
        (rest, messages) = (next, messages + 1);
    }
    assert_eq!(messages, 8);
}

/// Reads a request from a connection; returns its body.
fn request(stream: &mut impl Read) -> Option<String> {
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    loop {
        let octets = stream.read(&mut piece).ok().filter(|octets| *octets > 0)?;
        text += std::str::from_utf8(&piece[..octets]).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("Content-Length: ").nth(1).unwrap();
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if body.len() == length {
                return Some(body.to_owned());
            }
        }
    }
}

#[test]
fn a_webhook_that_fails_at_first_gets_each_alert_once_in_order() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}/hook", listener.local_addr().unwrap());
    let server = thread::Builder::new().spawn(move || {
        // Connections that are closed without an answer.
        (0..3).for_each(|_| drop(listener.accept().unwrap()));
        let mut bodies = Vec::new();
        while bodies.len() < 8 {
            let (mut stream, _) = listener.accept().unwrap();
            let body = request(&mut stream).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            bodies.push(serde_json::from_str::<Value>(&body).unwrap());
        }
        bodies
    });
    let (_, errors, code) = run(&office(), &["--alert-to", &place]);
    assert_eq!(code, 0, "{errors}");
    assert!(!errors.contains("lost"), "{errors}");
    assert_eq!(server.unwrap().join().unwrap(), alerts(&office(), &[]).0);
}

#[test]
fn outputs_that_never_work_are_counted_and_fail_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "syslog+tcp"] {
        let place = format!("{scheme}://{address}");
        let (report, errors, code) = run(&office(), &["--alert-to", &place]);
        assert!(report.contains("Vertical scans"), "{report}");
        assert_eq!(code, 1, "{errors}");
        let lost = ": 8 alerts lost: the output accepted nothing more at the end of the run";
        assert!(errors.contains(lost), "{errors}");
        assert!(errors.contains("error: writing to alerts to "), "{errors}");
    }
    // A UDP receiver that refuses datagrams is no failure.
    let place = format!("syslog:{address}");
    let (_, errors, code) = run(&office(), &["--alert-to", &place]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("alerts lost: the collector's port is closed"), "{errors}");
    let (_, errors, code) = run(&office(), &["--alert-to", "json:/no/such/folder/alerts"]);
    assert!(code == 1 && errors.contains("opening the output alerts to json:/no"), "{errors}");
}

/// A shell script in this folder, as a value of `--alert-to`.
fn script(folder: &Path, text: &str) -> String {
    let path = folder.join("notify");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("exec:{}", path.display())
}

/// Although the run itself may not start programs or write files outside of its outputs' folders.
#[test]
fn a_program_gets_each_alert() {
    let folder = tempfile::tempdir().unwrap();
    let text = "mkdir -p $0.d; out=$0.d/$RINGTAP_ALERT_ID.$RINGTAP_ALERT_STATE; cat > $out; env > $out.env";
    let place = script(folder.path(), text);
    let (_, errors, code) = run(&office(), &["--alert-to", &place]);
    assert_eq!((errors.as_str(), code), ("", 0));
    for alert in alerts(&office(), &[]).0 {
        let name = format!("notify.d/{}.{}", alert["id"], alert["state"].as_str().unwrap());
        let got = fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&got).unwrap(), alert);
    }
    let variables = fs::read_to_string(folder.path().join("notify.d/1.begins.env")).unwrap();
    assert!(variables.contains("RINGTAP_ALERT_KIND=vertical_scan\n"), "{variables}");
    assert!(variables.contains("RINGTAP_ALERT_TEXT=10.20.0.200 scans "));
}

#[test]
fn programs_that_fail_or_hang_are_counted_and_fail_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = script(folder.path(), "exit 3");
    let (_, errors, code) = run(&office(), &["--alert-to", &place]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("8 alerts lost") && errors.contains("exit status: 3"), "{errors}");
    let place = script(folder.path(), "echo $$ >> \"$0.pids\"; exec sleep 600");
    let (_, errors, code) = run(&office(), &["--alert-to", &place]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("8 alerts lost"), "{errors}");
    // The helper ends with the run, and kills them.
    let pids = fs::read_to_string(folder.path().join("notify.pids")).unwrap();
    assert_eq!(pids.lines().count(), 4);
    for pid in pids.lines() {
        let command = || fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let ended = (0..1_000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !command().starts_with(b"sleep")
        });
        assert!(ended, "{pid} still runs");
    }
}

#[test]
fn invalid_places_are_usage_errors() {
    for (place, advice) in [
        ("stdout", "use stderr, json:PATH"),
        ("json:", "json:alerts.json"),
        ("syslog:h:port", "syslog:HOST"),
        ("https://user@h", "without a user"),
        ("exec:/no/such/program", "no program that can be run"),
    ] {
        let (_, errors, code) = run(&office(), &["--alert-to", place]);
        assert!(code == 2 && errors.contains(advice), "{place}: {errors}");
    }
    let twice = ["--alert-to", "json:a", "--alert-to", "json:a"];
    let (_, errors, code) = run(&office(), &twice);
    assert!(code == 2 && errors.contains("is given twice"), "{errors}");
    let same = ["--alert-to", "json:a", "--write", "json:./a"];
    let (_, errors, code) = run(&office(), &same);
    assert!(code == 2 && errors.contains("name the same file"), "{errors}");
}

#[test]
fn a_place_that_is_written_in_two_ways_is_a_usage_error() {
    for (one, other, problem) in [
        ("syslog:", "syslog:/dev/log", "are the same place"),
        ("syslog:127.0.0.1", "syslog:127.0.0.1:514", "are the same place"),
        ("exec:/bin/true", "exec:/bin/../bin/true", "are the same place"),
        ("json:-", "json:/dev/stdout", "name the same file"),
    ] {
        let (_, errors, code) = run(&office(), &["--alert-to", one, "--alert-to", other]);
        assert!(code == 2 && errors.contains(problem), "{one} {other}: {errors}");
    }
}

/// A capture of SYNs: source and target in 10.0.0.0/8, port.
fn syns(all: impl Iterator<Item = (u32, u32, u16)>) -> Vec<u8> {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        capture.extend(word.to_le_bytes());
    }
    for (number, (source, target, port)) in (0..).zip(all) {
        for word in [1_700_000_000_u32, number, 54, 54] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        capture.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        capture.extend([source, target].map(|host| (0x0a00_0000 + host).to_be_bytes()).concat());
        capture.extend([1_000_u16, port].map(u16::to_be_bytes).concat());
        capture.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 4, 0, 0, 0, 0, 0]);
    }
    capture
}

#[test]
fn a_source_that_scans_many_hosts_makes_one_alert_of_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scanner.pcap");
    let scanner = (0..30).flat_map(|host| (0..40).map(move |port| (1, 100 + host, 1 + port)));
    fs::write(&path, syns(scanner.chain((0..21).map(|port| (2, 100, 1 + port))))).unwrap();
    for more in [&["--sequential"][..], &["--queues=3"], &["--skeleton=farm", "-w=3"]] {
        let (all, errors, code) = alerts(&path, more);
        assert_eq!((errors.as_str(), code), ("", 0));
        let begins = all.iter().filter(|alert| alert["state"] == "begins");
        let texts: Vec<_> = begins.map(|alert| alert["text"].as_str().unwrap()).collect();
        let expected = [
            "10.0.0.1 scans 30 hosts, first 10.0.0.100: 1,200 attempts failed so far",
            "10.0.0.1 scans 40 ports, first port 1/tcp: 1,200 attempts failed so far",
            "10.0.0.2 scans 10.0.0.100: 21 ports failed so far",
        ];
        assert_eq!(texts, expected, "{more:?}");
        let fields = ["target", "targets", "port", "ports", "sample"];
        let of = |at: usize| json!(fields.map(|name| &all[at][name]));
        let lowest = (0..8).map(|host| format!("10.0.0.{}", 100 + host)).collect::<Vec<_>>();
        assert_eq!(of(0), json!([null, 30, null, null, lowest]));
        assert_eq!(of(1), json!([null, null, null, 40, [1, 2, 3, 4, 5, 6, 7, 8]]));
        assert_eq!(of(2), json!(["10.0.0.100", 1, null, null, ["10.0.0.100"]]));
        assert_eq!(all.len(), 6);
    }
}

/// What nmap sends, and the kernel's ICMP messages.
#[test]
fn a_udp_scan_and_a_sweep_by_nmap_are_found() {
    if !have("nmap") {
        return;
    }
    let Some(net) = Net::new(1) else { return };
    net.ip(Left, "addr add 10.9.0.1/24 dev left");
    net.ip(Right, "addr add 10.9.0.2/24 dev right");
    // All of them are the right end.
    net.ip(Left, "route add 10.9.1.0/26 via 10.9.0.2");
    net.ip(Right, "route add local 10.9.1.0/26 dev lo");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alerts");
    let place = format!("json:{}", path.display());
    let flags = ["monitor", "-i", "right", "--report", "json", "--alert-to", &place];
    let monitor = Background::start(net.ringtap(Right, &flags), "listening: ");
    let scan = |flags: &[&str]| {
        let all = ["-sU", "-n", "-Pn", "--max-retries", "0", "--min-rate", "500"];
        let status = net.program(Left, "nmap").args(all).args(flags).output().unwrap().status;
        assert!(status.success());
    };
    scan(&["-p", "2000-2049", "10.9.0.2"]);
    scan(&["-p", "5060", "10.9.1.0/26"]);
    monitor.interrupt();
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_slice(&report).unwrap();
    let scans = &report["udp_scans"];
    let (down, across) = (&scans["vertical"][0], &scans["horizontal"][0]);
    let names = ["source", "target", "ports"].map(|name| &down[name]);
    assert_eq!(json!(names), json!(["10.9.0.1", "10.9.0.2", 50]));
    let names = ["source", "port", "protocol", "targets"].map(|name| &across[name]);
    assert_eq!(json!(names), json!(["10.9.0.1", 5060, "udp", 64]));
    let icmp = report["protocols"]["1"]["packets"].as_u64();
    assert!(icmp > Some(0), "the right end said that ports are closed: {report}");
    let text = fs::read_to_string(&path).unwrap();
    for kind in ["udp_vertical_scan", "udp_horizontal_scan"] {
        assert!(text.contains(&format!("\"begins\",\"kind\":\"{kind}\"")), "{text}");
    }
}

#[test]
fn alerts_without_room_are_in_the_report_and_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scanners.pcap");
    let scanners = (0..65_536 + 9).flat_map(|host| [1, 2].map(|port| (host, 0xff_ffff, port)));
    fs::write(&path, syns(scanners)).unwrap();
    let flags = ["-q", "--scan-threshold=1", "--report=json"];
    let (report, errors, code) = run(&path, &flags);
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["alerts_without_room"], 9);
    let notices = report["notices"].to_string();
    assert!(notices.contains("9 alerts were not reported"), "{notices}");
    let (_, errors, code) = run(&path, &[&flags[..], &["--fail-on-drop"]].concat());
    assert!(code == 3 && errors.contains("alerts without room: 9"), "{errors}");
}

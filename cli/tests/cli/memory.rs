//! Tests that `--memory` bounds the resident memory: floods of flows through a pipe, many
//! intervals, many fragments.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ringtap_io::live::SendOptions;
use serde_json::Value;

use crate::common::{have, output_of, ringtap};
use crate::live::datagrams;
use crate::net::{Background, Net, NetCommands, Right, capture};
use ringtap_testkit::send_all;

const RINGTAP: &str = env!("CARGO_BIN_EXE_ringtap");

/// The number of packets of a flood, each a separate flow: RINGTAP_FLOOD, or 3,000,000.
fn packets() -> u64 {
    let number = std::env::var("RINGTAP_FLOOD").ok();
    number.map_or(3_000_000, |text| text.parse().expect("RINGTAP_FLOOD is a number"))
}

/// Monitors a flood with `--memory` of `mebibytes` MiB and checks what must hold for all flags.
fn flood(profile: &Path, mebibytes: u64, flags: &[&str]) {
    let packets = packets();
    let mut source = Command::new(RINGTAP)
        .args(["generate", "-w", "-", "--packets", &packets.to_string(), "--profile"])
        .arg(profile)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    // The monitor ends when the generator closes the pipe.
    let status = Command::new(RINGTAP)
        .args(["monitor", "-r", "-", "--report", "json", "--quiet"])
        .args(["--memory", &format!("{mebibytes}M")])
        .args(flags)
        .stdin(source.stdout.take().unwrap())
        .stdout(File::create(&report).unwrap())
        .status()
        .unwrap();
    assert!(source.wait().unwrap().success() && status.success(), "{flags:?}");
    let report: Value = serde_json::from_reader(File::open(&report).unwrap()).unwrap();
    let number = |path: &str| report.pointer(path).unwrap().as_u64().unwrap();

    assert_eq!(number("/packets/handled"), packets, "{flags:?}");
    assert_eq!(number("/ledger/residual"), 0, "{flags:?}");
    assert_eq!(number("/flows/records"), packets, "{flags:?}: every packet is in a record");
    let peak = number("/performance/peak_rss_bytes");
    let room = number("/plan/max_flows");
    assert!(peak <= mebibytes << 20, "{flags:?}: {peak} bytes for {room} flows");
    // At least 40 % of the memory is used; IPv6 would need half as much again.
    assert!(peak * 5 >= (mebibytes << 20) * 2, "{flags:?}: {peak} bytes for {room} flows");
    // The room is split between the workers, rounded up.
    let early = number("/flows/end_reasons/lack_of_resources");
    let stayed = packets - early;
    assert!(early > 0 && stayed.abs_diff(room) < 10, "{flags:?}: {early} early, room for {room}");
}

#[test]
fn a_flood_of_flows_stays_within_the_memory_and_every_packet_is_metered() {
    let named = Path::new("flood");
    let flows = ["--analyses", "flows", "--write", "csv:/dev/null"];
    flood(named, 256, &[&flows[..], &["--sequential"]].concat());
    flood(named, 256, &[&flows[..], &["-w", "2"]].concat());
}

#[test]
fn a_flood_of_ipv6_flows_stays_within_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flood6.toml");
    let flood6 = "flows = 0\nsize = 64\npackets_per_second = 1000000\n\
                  [[floods]]\nsources = 2000000\nshare = 1.0\nipv6 = true\n";
    std::fs::write(&file, flood6).unwrap();
    flood(&file, 256, &["--analyses", "flows", "--sequential"]);
}

#[test]
fn a_flood_with_all_analyses_stays_within_the_memory() {
    flood(Path::new("flood"), 256, &["--sequential"]);
    flood(Path::new("flood"), 256, &["-w", "2"]);
}

/// Ten million keys with RINGTAP_FULL=1, otherwise 300,000.
#[test]
fn measurements_of_many_keys_stay_within_their_memory() {
    let is_full = std::env::var_os("RINGTAP_FULL").is_some_and(|value| value == "1");
    let packets = if is_full { "10M" } else { "300k" };
    for structure in ["cms", "cms-cu", "cms-keys", "sht", "rs", "mv", "mg", "ss", "exact"] {
        let mut source = Command::new(RINGTAP)
            .args(["generate", "-w", "-", "--packets", packets, "--profile", "flood"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let flags = ["measure", "-r", "-", "--report", "json", "-w", "2", "--memory", "4M"];
        let mut measuring = Command::new(RINGTAP);
        measuring.args(flags).args(["--structure", structure]);
        let output = measuring.stdin(source.stdout.take().unwrap()).output().unwrap();
        assert!(source.wait().unwrap().success() && output.status.success(), "{structure}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |path: &str| report.pointer(path).map_or(0, |number| number.as_u64().unwrap());
        assert_eq!(
            (number("/total"), number("/ledger/residual")),
            (number("/packets/received"), 0)
        );
        // Each of two workers has a structure, and the result has an image.
        let (bytes, peak) = (number("/memory_bytes"), number("/performance/peak_rss_bytes"));
        assert!(bytes <= 8 << 20 && peak <= 44 << 20, "{structure}: {bytes}, {peak}");
        // All keys have a packet.
        let is_table = ["exact", "sht"].contains(&structure);
        assert_eq!(number("/lost") > 0, is_table, "{structure}");
        for row in report["heavy"].as_array().unwrap() {
            assert!(row["lower"].as_u64() <= Some(1) && row["upper"].as_u64() >= Some(1), "{row}");
        }
    }
}

/// Writes a capture of `packets` frames, `step_us` microseconds apart, with `protocols` IP protocol
/// numbers in turn.
fn in_intervals(path: &Path, packets: u32, step_us: u64, protocols: u8) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    file.write_all(&[0, 0, 4, 0, 1, 0, 0, 0]).unwrap();
    let mut frame = datagrams(1).remove(0);
    for number in 0..packets {
        let time_us = u64::from(number) * step_us;
        let time = [1_700_000_000 + time_us / 1_000_000, time_us % 1_000_000];
        frame[23] = 17 + (number % u32::from(protocols)) as u8;
        for field in [time[0] as u32, time[1] as u32, 60, 60] {
            file.write_all(&field.to_le_bytes()).unwrap();
        }
        file.write_all(&frame).unwrap();
    }
    file.flush().unwrap();
}

/// Monitors a capture; returns stdout, stderr and the peak resident set of the process in MiB.
fn measured(capture: &Path, flags: &[&str]) -> (String, String, u64) {
    let mut command = Command::new(RINGTAP);
    command.args(["monitor", "-q", "-r"]).arg(capture).args(flags).env("NO_COLOR", "1");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    let peak = std::thread::spawn(move || {
        let peak = || {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        let mut most = 0;
        // The status of a zombie process has no VmHWM line.
        while let Some(now) = peak() {
            most = now;
            std::thread::sleep(Duration::from_millis(2));
        }
        most / 1024
    });
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), peak.join().unwrap())
}

#[test]
fn intervals_stay_within_the_memory_and_omitted_ones_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("intervals.pcap");
    for (protocols, step_us) in [(1, 1_000), (200, 50)] {
        in_intervals(&file, 100_000, step_us, protocols);
        for flags in [&["--sequential"][..], &["-w", "2"], &["--queues", "3"]] {
            let bounded = ["--memory", "48M", "--interval", "1ms"];
            let flags = [&bounded[..], flags].concat();
            let (report, errors, peak) =
                measured(&file, &[&flags[..], &["--report", "json"]].concat());
            let report: Value = serde_json::from_str(&report).unwrap();
            let further = report["packets_in_further_intervals"].as_u64().unwrap();
            let listed = report["intervals"].as_array().unwrap();
            let handled = |row: &Value| row["packets"]["handled"].as_u64().unwrap();
            assert_eq!(listed.iter().map(handled).sum::<u64>() + further, 100_000);
            let units = report["plan"]["interval_units"].as_u64().unwrap();
            let needed = |row: &Value| 8 + row["protocols"].as_object().unwrap().len() as u64;
            let used: u64 = listed.iter().map(needed).sum();
            assert!(used <= units && used + 8 + 200 > units, "{used} of {units}");
            assert!((1..=48).contains(&peak), "{flags:?}: {peak} MiB");
            let warning = format!("{further} packets are in intervals beyond those");
            assert!(errors.contains(&warning), "{errors}");
            assert!(report["notices"][0].as_str().unwrap().starts_with(&warning), "{report}");
            let (_, errors, peak) = measured(&file, &flags);
            assert!((1..=48).contains(&peak) && errors.contains(&warning), "{flags:?}: {peak} MiB");
            let (_, _, code) = output_of(
                ringtap().args(["monitor", "-q", "--fail-on-drop", "-r"]).arg(&file).args(&flags),
            );
            assert_eq!(code, 3);
        }
    }
}

#[test]
fn the_activity_of_many_intervals_stays_within_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("intervals.pcap");
    in_intervals(&file, 50_000, 1_000_000, 1);
    // A worker without packets is ahead of the other one.
    for workers in [["-w", "1"], ["-w", "2"], ["--queues", "2"], ["--queues", "4"]] {
        let bounded = ["--memory", "96M", "--interval", "1s", "--analyses", "activity"];
        let flags = [&bounded[..], &workers].concat();
        let (report, errors, peak) = measured(&file, &[&flags[..], &["--report", "json"]].concat());
        let report: Value = serde_json::from_str(&report).unwrap();
        let listed = report["activity"].as_array().unwrap().len() as u64;
        let further = report["activity_in_further_intervals"].as_u64().unwrap();
        assert_eq!(listed, report["plan"]["max_activities"].as_u64().unwrap());
        assert_eq!(listed + further, 50_000);
        assert!((1..=96).contains(&peak), "{peak} MiB for {listed} intervals");
        assert!(errors.contains(&format!("the report lacks the activity of {further} intervals")));
    }
}

/// A frame with a payload from a client of its own.
fn payload_frame(client: u32, protocol: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let header = if protocol == 6 { 20 } else { 8 };
    let length = (20 + header + payload.len()) as u16;
    let mut frame = [&[2; 12][..], &[8, 0, 0x45, 0]].concat();
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10]);
    frame.extend(&client.to_be_bytes()[1..]);
    frame.extend([192, 0, 2, 1, 0x9c, 0x40]);
    frame.extend(port.to_be_bytes());
    if protocol == 6 {
        frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 4, 0, 0, 0, 0, 0]);
    } else {
        frame.extend((length - 20).to_be_bytes());
        frame.extend([0, 0]);
    }
    frame.extend_from_slice(payload);
    frame
}

/// Hellos and requests that never end, QUIC Initials that cannot be decrypted, and DNS messages that point to themselves or
/// announce more than they have.
fn unfinished(frames: u32) -> Vec<Vec<u8>> {
    let hello = [&[0x16, 3, 1, 6, 0xa0, 1, 0, 6, 0x9c, 3, 3][..], &[7; 600]].concat();
    let request = [b"GET /".as_slice(), &[b'x'; 600]].concat();
    let initial = [&[0xc3, 0, 0, 0, 1, 8][..], &[9; 8], &[0, 0, 0x44, 0x80], &[5; 1_180]].concat();
    let dns = |counts: [u8; 8], rest: &[u8]| [&[0, 7, 0x81, 0x80][..], &counts, rest].concat();
    let circle = dns([0, 1, 0, 0, 0, 0, 0, 0], &[0xc0, 0x0c, 0, 1, 0, 1]);
    let answers = dns([0, 1, 0xff, 0xff, 0, 0, 0, 0], &[1, b'a', 0, 0, 1, 0, 1, 0xc0, 0x0c]);
    let kinds: [(u8, u16, &[u8]); 5] = [
        (6, 443, &hello),
        (6, 80, &request),
        (17, 443, &initial),
        (17, 53, &circle),
        (17, 53, &answers),
    ];
    let frame = |number| {
        let (protocol, port, payload) = kinds[number as usize % kinds.len()];
        payload_frame(number, protocol, port, payload)
    };
    (0..frames).map(frame).collect()
}

#[test]
fn floods_of_unfinished_messages_stay_within_the_memory_and_are_counted() {
    const FRAMES: u32 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unfinished.pcap");
    capture(&file, &unfinished(FRAMES));
    for flags in [&["--sequential"][..], &["--queues", "2"]] {
        let bounded = ["--memory", "64M", "--analyses", "all,tcp", "--report", "json"];
        let (report, errors, peak) = measured(&file, &[&bounded[..], flags].concat());
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["packets"]["handled"], FRAMES);
        assert_eq!(report["ledger"]["residual"], 0);
        assert!((1..=64).contains(&peak), "{flags:?}: {peak} MiB");
        let unread = &report["unread_payloads"];
        let numbers = unread.as_object().unwrap().values().map(|number| number.as_u64().unwrap());
        assert_eq!(numbers.sum::<u64>(), u64::from(FRAMES), "{unread}");
        assert!(report.get("payload_messages").is_none());
        for reason in ["tls no_room", "http no_room", "quic malformed", "dns malformed"] {
            assert!(unread[reason].as_u64() > Some(10_000), "{flags:?}: {unread}");
        }
        assert!(errors.contains("raise --memory"), "{errors}");
    }
}

/// Messages that begin, one after another, in one connection, behind one that stays incomplete; with `rest` they are read to
/// their ends.
fn openings(path: &Path, messages: u32, rest: bool) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    file.write_all(&[0, 0, 4, 0, 1, 0, 0, 0]).unwrap();
    let mut write = |client, sequence: u32, payload: &[u8]| {
        let mut frame = payload_frame(client, 6, 80, payload);
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        let len = frame.len() as u32;
        for field in [1_700_000_000, 0, len, len] {
            file.write_all(&field.to_le_bytes()).unwrap();
        }
        file.write_all(&frame).unwrap();
    };
    let (begin, end) = (b"GET / HTTP/1.1\r\nHo", b"st: a\r\n\r\n");
    write(1, 0, begin);
    for message in 0..messages {
        write(2, message << 20, begin);
        if rest {
            write(2, (message << 20) + begin.len() as u32, end);
        }
    }
    file.flush().unwrap();
}

#[test]
fn many_openings_take_no_more_memory_than_few() {
    const MESSAGES: u32 = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openings.pcap");
    for rest in [false, true] {
        openings(&file, MESSAGES, rest);
        let flags = ["--memory", "64M", "--report", "json", "--sequential"];
        let (report, _, peak) = measured(&file, &flags);
        let report: Value = serde_json::from_str(&report).unwrap();
        let unread = &report["unread_payloads"]["http incomplete"];
        let read = &report["payload_messages"]["http"];
        if rest {
            assert_eq!((read, unread), (&MESSAGES.into(), &1.into()));
        } else {
            assert_eq!((read, unread), (&Value::Null, &(MESSAGES + 1).into()));
        }
        assert!((1..=64).contains(&peak), "{rest}: {peak} MiB");
    }
}

#[test]
fn the_plan_lists_the_limits_that_follow_from_the_memory() {
    let plan = |flags: &[&str]| {
        let command = ["monitor", "-r", "x.pcap", "--dry-run", "--memory", "64M"];
        output_of(ringtap().args(command).args(flags)).0
    };
    let text = plan(&["--interval", "1s"]);
    assert!(text.contains(" datagrams in progress"), "{text}");
    assert!(text.contains("1 s, room for about "), "{text}");
    let json: Value = serde_json::from_str(&plan(&["--report", "json"])).unwrap();
    assert_eq!(json["max_datagrams"], (64 << 20) / 64 / 76);
    assert!(json["interval_units"].as_u64().unwrap() > 256);
}

/// First fragments of `datagrams` UDP datagrams between the same two hosts, then the second
/// fragment of each.
fn in_fragments(datagrams: u16) -> Vec<Vec<u8>> {
    let frame = |number: u16, place: [u8; 2], payload: [u8; 16]| {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 36]);
        frame.extend(number.to_be_bytes());
        frame.extend([place[0], place[1], 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(payload);
        frame
    };
    let first = |number: u16| {
        let [high, low] = (10_000 + number).to_be_bytes();
        let udp = [high, low, 0, 53, 0, 32, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
        frame(number, [0x20, 0], udp)
    };
    let later = |number| frame(number, [0, 2], [7; 16]);
    (0..datagrams).map(first).chain((0..datagrams).map(later)).collect()
}

#[test]
fn eight_datagrams_between_two_hosts_keep_their_ports_whatever_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fragments.pcap");
    capture(&file, &in_fragments(8));
    let digest = |seed: u32| {
        let seed = seed.to_string();
        let report = crate::common::json(&file, &["--digest", "--seed", &seed]);
        assert_eq!(report["flows"]["records"], 8, "seed {seed}");
        report["digest"].clone()
    };
    let first = digest(0);
    (1..10).for_each(|seed| assert_eq!(digest(seed), first));
}

#[test]
fn fragments_beyond_the_memory_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fragments.pcap");
    capture(&file, &in_fragments(20_000));
    let mut command = ringtap();
    command.args(["monitor", "-q", "--sequential", "--memory", "64M", "--report", "json"]);
    let (report, errors, code) = output_of(command.args(["--fail-on-drop", "-r"]).arg(&file));
    let report: Value = serde_json::from_str(&report).unwrap();
    let evicted = 20_000 - report["plan"]["max_datagrams"].as_u64().unwrap();
    assert_eq!((&report["fragments_forgotten"], code), (&Value::from(evicted), 3));
    assert!(
        errors.contains(&format!("warning: {evicted} first fragments were evicted")),
        "{errors}"
    );
    assert!(errors.contains(&format!("error: fragments forgotten for lack of memory: {evicted}")));
    assert!(report["notices"][0].as_str().unwrap().contains("raise --memory"), "{report}");
    let (text, _, _) =
        output_of(ringtap().args(["monitor", "-q", "--memory", "64M", "-r"]).arg(&file));
    assert!(text.contains("first fragments, for lack of memory"), "{text}");
}

/// Full tables show in the lines of intervals, the metrics, the notices and the exit code.
#[test]
fn a_live_run_with_full_tables_reports_it() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Right, "link set lo up");
    let flags = ["monitor", "-i", "right", "--sequential", "--interval", "1s", "--max-flows", "50"];
    let more = ["--report", "json", "--fail-on-drop", "--duration", "40s", "--metrics"];
    // In a new network namespace every port is free.
    let place = "127.0.0.1:9464";
    let command = net.ringtap(Right, &[&flags[..], &more, &[place]].concat());
    let mut monitor = Background::start(command, "listening: ");
    send_all(&mut net.sender(&SendOptions::default()), &datagrams(500));
    // The line of the last interval with packets has the full count. The warning comes before or
    // after it.
    let mut lines = String::new();
    while !lines.contains(", 450 flows ended early") {
        lines += &monitor.wait_for(" flows ended early");
        lines.push('\n');
    }
    assert!(lines.contains("about ") && lines.contains("dropped so far, "), "{lines}");
    if have("curl") {
        let mut curl = net.program(Right, "curl");
        let output = curl.args(["-s", &format!("http://{place}/metrics")]).output().unwrap();
        let metrics = String::from_utf8(output.stdout).unwrap();
        assert!(metrics.contains("\nringtap_flows_ended_early_total 450\n"), "{metrics}");
        assert!(metrics.contains("\nringtap_conversations_estimated 1\n"), "{metrics}");
        assert!(metrics.contains("\nringtap_forgotten_fragments_total 0\n"), "{metrics}");
    }
    monitor.interrupt();
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 3, "{errors}");
    assert!((lines + &errors).contains("warning: out of memory"), "{errors}");
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["flows"]["end_reasons"]["lack_of_resources"], 450);
    let notices = report["notices"].to_string();
    assert!(notices.contains("450 flows ended early"), "{notices}");
    assert!(notices.contains("conversations are estimates"), "{notices}");
    assert!(errors.contains("warning: 450 flows ended early"), "{errors}");
}

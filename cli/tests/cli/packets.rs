//! Tests of `--alert-to packets:FOLDER`: the packets of alerts, from memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringtap_io::capture::{Files, Input};
use ringtap_io::live::SendOptions;
use ringtap_testkit::{send_all, soon};
use serde_json::Value;

use crate::common::{have, office, on_small_disk, output_of, ringtap};
use crate::net::{Background, Net, NetCommands, Right, capture, frames};

/// Runs over a capture, with the packets of alerts in a folder; returns stdout, stderr and the exit code.
fn run(capture: &Path, folder: &Path, flags: &[&str]) -> (String, String, i32) {
    let place = format!("packets:{}", folder.display());
    let mut command = ringtap();
    command.args(["monitor", "-q", "--alert-to", &place]).args(flags).arg("-r").arg(capture);
    output_of(&mut command)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    all.sort();
    all
}

fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files(folder).into_iter().map(name).collect()
}

/// The packets of a file.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let mut files = Files::new(vec![Input::Path(path.to_owned())]);
    let mut all = Vec::new();
    while files.burst(256, |frame| all.push(frame.data.to_vec())) > 0 {}
    let notices = files.take_notices();
    assert!(notices.is_empty(), "{}: {:?}", path.display(), notices);
    all
}

/// Whether an IPv4 packet over Ethernet has both addresses.
fn is_between(frame: &[u8], ends: [[u8; 4]; 2]) -> bool {
    let has = |end: &[u8; 4]| frame.len() >= 34 && (frame[26..30] == *end || frame[30..34] == *end);
    frame[12..14] == [8, 0] && ends.iter().all(has)
}

const SCANNER: [u8; 4] = [10, 20, 0, 200];
const SCANNED: [u8; 4] = [10, 20, 0, 10];

/// What tshark shows of the packets that it selects.
fn rows(path: &Path, filter: &str) -> String {
    let fields = ["frame.time_epoch", "ip.src", "ip.dst", "ip.id", "frame.len", "frame.cap_len"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-Y", filter, "-T", "fields"]);
    fields.iter().for_each(|field| _ = command.args(["-e", field]));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// The frames of the office around its scan.
fn scan() -> Vec<Vec<u8>> {
    frames(&fs::read(office()).unwrap())[4_400..5_300].to_vec()
}

/// A capture of them, shorter than a second: all alerts begin at the end of the run.
fn short(folder: &Path) -> PathBuf {
    let path = folder.join("short.pcap");
    capture(&path, &scan());
    path
}

#[test]
fn the_packets_of_an_alert_are_those_that_tshark_selects() {
    let folder = tempfile::tempdir().unwrap();
    let short = short(folder.path());
    let flags = ["--scan-threshold=5", "--report=json", "--digest", "--memory=128M"];
    let (plain, ..) =
        output_of(ringtap().args(["monitor", "-q"]).args(flags).arg("-r").arg(&short));
    let digest = |report: &str| {
        let report: Value = serde_json::from_str(report).unwrap();
        report["digest"].as_str().unwrap().to_owned()
    };
    for (at, more) in [&["--sequential"][..], &["--queues=3"], &["--skeleton=farm", "-w=3"]]
        .into_iter()
        .enumerate()
    {
        let folder = folder.path().join(at.to_string());
        fs::create_dir(&folder).unwrap();
        let (report, errors, code) = run(&short, &folder, &[&flags[..], more].concat());
        assert_eq!((errors.as_str(), code), ("", 0));
        assert_eq!(digest(&report), digest(&plain), "{more:?}");
        let report: Value = serde_json::from_str(&report).unwrap();
        // A quarter of the memory.
        assert_eq!(report["plan"]["recent_bytes"], 32 << 20);
        assert_eq!(report["write"][0]["not_written"], serde_json::json!({}));
        assert!(!files(&folder).is_empty());
        for file in files(&folder) {
            if !have("tshark") {
                continue;
            }
            let mut command = Command::new("capinfos");
            let about = String::from_utf8(command.arg(&file).output().unwrap().stdout).unwrap();
            let (_, hosts) = about.split_once("; packets of ").unwrap();
            let (hosts, since) = hosts.split_once(", from ").unwrap();
            assert!(since.starts_with("the start of the run on"), "{about}");
            let tests = hosts.split(" and ").map(|host| format!("ip.addr == {host}"));
            let expected = rows(&short, &tests.collect::<Vec<_>>().join(" && "));
            assert!(!expected.is_empty());
            assert_eq!(rows(&file, "frame"), expected, "{}", file.display());
        }
    }
}

#[test]
fn each_packet_has_the_id_of_its_flow_and_no_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let short = short(folder.path());
    let folder = folder.path().join("packets");
    fs::create_dir(&folder).unwrap();
    let threshold = ["--scan-threshold=5"];
    assert_eq!(run(&short, &folder, &threshold).2, 0);
    let first = files(&folder);
    let all = names(&folder);
    let name = all.iter().find(|name| name.contains("-vertical_scan-")).unwrap();
    assert!(name.starts_with("19700101T000000Z-") && name.ends_with(".pcapng"), "{name}");
    let before = first.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    assert_eq!(run(&short, &folder, &threshold).2, 0);
    assert_eq!(first.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>(), before);
    assert_eq!(files(&folder).len(), 2 * first.len());
    assert!(names(&folder).contains(&name.replace(".pcapng", ".1.pcapng")));
    if have("tshark") {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&first[0]).args(["--enable-protocol", "communityid"]);
        command.args(["-T", "fields", "-e", "frame.comment", "-e", "communityid"]);
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(!text.is_empty());
        for row in text.lines() {
            let (comment, id) = row.split_once('\t').unwrap();
            assert!(comment.starts_with("1:") && (id.is_empty() || comment == id), "{row}");
        }
    }
}

/// The file has what was read until it was written.
#[test]
fn an_alert_in_the_middle_of_a_capture_has_the_packets_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, errors, code) = run(&office(), folder.path(), &["--recent=8M"]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let all = frames(&fs::read(office()).unwrap());
    let of_pair: Vec<_> =
        all.into_iter().filter(|frame| is_between(frame, [SCANNER, SCANNED])).collect();
    let names = names(folder.path());
    assert_eq!(names.len(), 4, "{names:?}");
    let scan = files(folder.path())
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("-vertical_scan-"));
    let packets = packets(&scan.unwrap());
    assert!(packets.len() >= 399 && packets[..] == of_pair[..packets.len()], "{}", packets.len());
}

#[test]
fn packets_without_room_are_overwritten_and_the_file_says_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.pcap");
    let short = scan();
    let large = vec![short[0].iter().copied().chain([0; 1_400]).collect::<Vec<_>>(); 3_000];
    capture(&path, &[large, short].concat());
    let packets_of = folder.path().join("packets");
    fs::create_dir(&packets_of).unwrap();
    let flags = ["--scan-threshold=5", "--recent=1M", "--fail-on-drop", "--sequential"];
    let (_, errors, code) = run(&path, &packets_of, &flags);
    assert_eq!((errors.as_str(), code), ("", 0), "what is overwritten is no loss");
    let bytes = fs::read(&files(&packets_of)[0]).unwrap();
    assert!(bytes.windows(20).any(|text| text == b", from 1970-01-01T00"));
}

#[test]
fn a_full_disk_and_what_a_killed_run_left_are_reported_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let flags = ["monitor", "-q", "--alert-to=packets:.", "-r", capture.to_str().unwrap()];
    if let Some((errors, code, left)) = on_small_disk(16, folder.path(), &flags) {
        assert_eq!(code, 1, "{errors}");
        assert!(errors.contains("No space left"), "{errors}");
        assert!(errors.contains("lost: they could not be written"), "{errors}");
        assert!(left.iter().all(|name| name.ends_with(".pcapng") && !name.starts_with('.')));
        left.iter().for_each(|name| _ = packets(&folder.path().join("left").join(name)));
    }
    let packets_of = folder.path().join("packets");
    fs::create_dir(&packets_of).unwrap();
    let part = packets_of.join(".alert.pcapng.4711-abcdefghij.part");
    fs::write(&part, "a part").unwrap();
    let (_, errors, code) = run(&capture, &packets_of, &[]);
    assert!(code == 0 && errors.contains("left by process 4711"), "{errors}");
    assert!(!part.exists() && files(&packets_of).len() == 4);
}

#[test]
fn more_than_a_minute_allows_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scanners.pcap");
    let first = frames(&fs::read(office()).unwrap());
    let syn = first.iter().find(|frame| is_between(frame, [SCANNER, SCANNED])).unwrap();
    let of = |host: u8, port: u8| {
        let mut frame = syn.clone();
        (frame[29], frame[37]) = (host, port);
        frame
    };
    let all = (0..70).flat_map(|host| (1..4).map(move |port| (host, port)));
    capture(&path, &all.map(|(host, port)| of(100 + host, port)).collect::<Vec<_>>());
    let packets_of = folder.path().join("packets");
    fs::create_dir(&packets_of).unwrap();
    let flags = ["--scan-threshold=2", "--udp-scan-threshold=1000", "--fail-on-drop"];
    let (_, errors, code) = run(&path, &packets_of, &flags);
    assert_eq!(files(&packets_of).len(), 60);
    assert!(
        code == 3 && errors.contains("10 alerts lost: more alerts began in a minute"),
        "{errors}"
    );
    assert!(errors.contains("alerts not delivered: 10"), "{errors}");
}

#[test]
fn what_has_no_effect_or_cannot_be_is_refused() {
    let refused = |flags: &[&str], words: &str, expected: i32| {
        let (_, errors, code) =
            output_of(ringtap().args(["monitor", "-r"]).arg(office()).args(flags));
        assert!(code == expected && errors.contains(words), "{flags:?}: {errors}");
    };
    refused(&["--recent=8M"], "--recent has no effect", 2);
    refused(&["--alert-to=packets:"], "packets:FOLDER", 2);
    refused(&["--alert-to=packets:.", "--alert-to=packets:."], "is given twice", 2);
    let packets = "--alert-to=packets:.";
    refused(&[packets, "--queues=1", "--recent=1"], "recent packets 1: use 1M to", 2);
    refused(&[packets, "--memory=256M", "--queues=1", "--recent=129M"], "use 1M to 128M", 2);
    refused(&[packets, "--memory=256M", "--queues=9", "--recent=8M"], "use 9M to 128M", 2);
    refused(&["--alert-to=packets:/no/folder"], "opening the output alerts to packets:/no", 1);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let key = format!("--anonymise={}", key.display());
    refused(&["--alert-to=packets:.", &key], "packets have addresses", 2);
}

#[test]
fn a_live_run_writes_the_packets_while_it_goes_on() {
    let Some(net) = Net::new(2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = format!("packets:{}", folder.path().display());
    for queues in ["1", "2"] {
        let flags = ["monitor", "-i", "right", "--queues", queues, "--alert-to", &place];
        let before = names(folder.path());
        let mut run = Background::start(net.ringtap(Right, &flags), "listening: ");
        let all = frames(&fs::read(office()).unwrap());
        send_all(&mut net.sender(&SendOptions::default()), &all);
        // Alerts are also printed.
        run.wait_for("alert: ");
        let new = || {
            let mut files = files(folder.path()).into_iter();
            files.find(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.contains("-vertical_scan-")
                    && !name.starts_with('.')
                    && !before.iter().any(|own| own == name)
            })
        };
        assert!(soon(|| new().is_some()));
        let of_pair: Vec<_> =
            all.into_iter().filter(|frame| is_between(frame, [SCANNER, SCANNED])).collect();
        let file = new().unwrap();
        let packets = packets(&file);
        assert!(packets.len() >= 399 && packets[..] == of_pair[..packets.len()]);
        if have("tshark") {
            let mut command = Command::new("tshark");
            command.arg("-r").arg(&file).args(["-T", "fields", "-e", "frame.interface_name"]);
            let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
            assert_eq!(text, "right\n".repeat(packets.len()));
        }
        run.interrupt();
        let (_, errors, code) = run.end();
        assert_eq!(code, 0, "{errors}");
    }
}

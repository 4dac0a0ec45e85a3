//! `--resume`: two runs make the records of one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ringtap_io::live::SendOptions;
use ringtap_testkit::send_all;
use serde_json::Value;

use crate::common::{office, on_small_disk, output_of, ringtap};
use crate::net::{Background, Net, NetCommands, Right, frames};

/// When the bundled capture begins, milliseconds since 1970.
const FIRST_MS: u64 = 1_795_226_880_000;

/// The length of a record of a plain capture, with its header.
fn record_len(bytes: &[u8]) -> usize {
    16 + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize
}

/// Writes `all`, the capture with a packet a day later, which ends all flows; and the same in parts that begin at these shares.
fn split(folder: &Path, shares: &[usize]) {
    let bytes = fs::read(office()).unwrap();
    let (head, mut rest) = bytes.split_at(24);
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, behind) = rest.split_at(record_len(rest));
        records.push(record.to_vec());
        rest = behind;
    }
    let mut late = records[records.len() - 1].clone();
    let seconds = u32::from_le_bytes(late[..4].try_into().unwrap()) + 86_400;
    late[..4].copy_from_slice(&seconds.to_le_bytes());
    let len = records.len();
    records.push(late);
    let write = |name: &str, records: &[Vec<u8>]| {
        fs::write(folder.join(name), [head, &records.concat()].concat()).unwrap();
    };
    write("all", &records);
    let begins: Vec<_> = shares.iter().map(|share| len * share / 10).chain([len]).collect();
    let ends = begins[1..].iter().copied().chain([records.len()]);
    for (number, (begin, end)) in begins.iter().zip(ends).enumerate() {
        write(&number.to_string(), &records[*begin..end]);
    }
}

/// Runs `ringtap monitor`; returns the records of all flows but the one that is a day late, and the report.
fn monitor(folder: &Path, capture: &str, flags: &[&str]) -> (Vec<Value>, Value) {
    let mut command = ringtap();
    command.current_dir(folder).args(["monitor", "-r", capture, "--extract", "none"]);
    command.args([
        "--analyses",
        "all,tcp,statistics",
        "--report",
        "json",
        "--write",
        "json:flows.json",
        "--force",
    ]);
    let (out, errors, code) = output_of(command.args(flags));
    assert_eq!(code, 0, "{capture} {flags:?}: {errors}");
    let text = fs::read_to_string(folder.join("flows.json")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_late = |row: &Value| row["flowStartMilliseconds"].as_u64() > Some(FIRST_MS + 43_200_000);
    (records.filter(|row| !is_late(row)).collect(), serde_json::from_str(&out).unwrap())
}

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut all: Vec<_> = rows.iter().map(Value::to_string).collect();
    all.sort();
    all
}

/// Packets and octets of both directions by flow.
fn by_flow(rows: &[Value]) -> BTreeMap<String, [u64; 4]> {
    let mut sums = BTreeMap::<String, [u64; 4]>::new();
    for row in rows {
        let names = ["packetDeltaCount", "reversePacketDeltaCount", "octetDeltaCount"];
        let names = [names[0], names[1], names[2], "reverseOctetDeltaCount"];
        let own = sums.entry(row["flowId"].to_string()).or_default();
        own.iter_mut().zip(names).for_each(|(sum, name)| *sum += row[name].as_u64().unwrap_or(0));
    }
    sums
}

#[test]
fn runs_one_after_the_other_have_the_records_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    split(folder, &[0, 2, 5, 9]);
    let arrangements: [&[&str]; 5] =
        [&["--sequential"], &["-w", "3"], &["--skeleton", "shared-pipeline", "-w", "2"], &[], &[]];
    for cut in [&[][..], &["--cut", "10s"]] {
        let (whole, report) = monitor(folder, "all", cut);
        assert!(!whole.is_empty() && report["flows"]["resumed"].is_null());
        let (mut rows, mut kept) = (Vec::new(), 0);
        for (number, arrangement) in arrangements.iter().enumerate() {
            let flags = [&["--resume", "open"], cut, arrangement].concat();
            let (more, report) = monitor(folder, &number.to_string(), &flags);
            rows.extend(more);
            assert_eq!(report["flows"]["resumed"].as_u64().unwrap_or(0), kept);
            kept = report["flows"]["kept"].as_u64().unwrap();
            assert!(kept > 0 && folder.join("open").exists());
        }
        // The flow of the packet that is a day late.
        assert_eq!(kept, 1);
        if cut.is_empty() {
            assert_eq!(sorted(&rows), sorted(&whole));
        } else {
            assert_eq!(by_flow(&rows), by_flow(&whole));
            assert!(rows.len() > whole.len());
        }
        fs::remove_file(folder.join("open")).unwrap();
    }
}

#[test]
fn runs_with_other_intervals_and_cuts_continue_the_flows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    split(folder, &[0, 3, 6, 9]);
    let (whole, _) = monitor(folder, "all", &["--interval", "60s"]);
    let (mut rows, mut kept) = (Vec::new(), 0);
    for (number, interval) in ["60s", "7s", "1s", "90s", "60s"].iter().enumerate() {
        let flags = ["--resume", "open", "--interval", interval];
        let (more, report) = monitor(folder, &number.to_string(), &flags);
        rows.extend(more);
        let flows = &report["flows"];
        assert_eq!(flows["resumed"].as_u64().unwrap_or(0), kept, "{flows}");
        assert!(flows["not_continued"].is_null(), "{flows}");
        kept = flows["kept"].as_u64().unwrap();
    }
    assert_eq!(sorted(&rows), sorted(&whole));
    // The parts of both lengths are all packets.
    fs::remove_file(folder.join("open")).unwrap();
    let (whole, _) = monitor(folder, "all", &["--cut", "10s"]);
    let mut rows = Vec::new();
    for (number, cut) in ["10s", "5s", "20s", "10s", "10s"].iter().enumerate() {
        let flags = ["--resume", "open", "--cut", cut];
        let (more, report) = monitor(folder, &number.to_string(), &flags);
        assert!(report["flows"]["not_continued"].is_null(), "{}", report["flows"]);
        rows.extend(more);
    }
    assert_eq!(by_flow(&rows), by_flow(&whole));
}

#[test]
fn flows_that_cannot_be_continued_end_at_the_start_and_a_damaged_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    split(folder, &[0, 5]);
    let (_, first) = monitor(folder, "0", &["--resume", "open"]);
    let kept = first["flows"]["kept"].as_u64().unwrap();
    let good = fs::read(folder.join("open")).unwrap();
    for flags in [&["--uniflow"][..], &["--cut", "10s"], &["--max-flows", "1", "--sequential"]] {
        fs::write(folder.join("open"), &good).unwrap();
        let (_, report) = monitor(folder, "1", &[&["--resume", "open"], flags].concat());
        let flows = &report["flows"];
        let forced = flows["end_reasons"]["forced"].as_u64().unwrap();
        let resumed = flows["resumed"].as_u64().unwrap_or(0);
        assert_eq!(resumed, u64::from(flags.len() > 2), "{flags:?}: {flows}");
        assert_eq!(forced + resumed, kept, "{flags:?}: {flows}");
        assert_eq!(flows["not_continued"].as_u64(), Some(kept - resumed), "{flags:?}: {flows}");
    }
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    for bad in [&good[..good.len() - 3], &flipped, b"PAR1"] {
        fs::write(folder.join("open"), bad).unwrap();
        let mut command = ringtap();
        command.current_dir(folder).args(["monitor", "-r", "1", "--resume", "open"]);
        let (_, errors, code) = output_of(&mut command);
        assert!(code == 1 && errors.contains("reading the open flows of open"), "{errors}");
        assert_eq!(fs::read(folder.join("open")).unwrap(), bad);
    }
}

#[test]
fn a_full_disk_names_what_is_lost_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let flags = ["monitor", "-q", "-r", capture.to_str().unwrap(), "--resume", "open"];
    let Some((errors, code, files)) = on_small_disk(4, folder.path(), &flags) else { return };
    assert_eq!((code, files), (1, Vec::<String>::new()), "{errors}");
    let words = "writing the open flows to open: ";
    assert!(errors.contains(words) && errors.contains(" flows are lost"), "{errors}");
    assert!(!errors.contains(": 0 flows"), "{errors}");
}

#[test]
fn a_service_that_is_restarted_makes_one_record_of_a_connection() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [open, json] = ["open", "flows.json"].map(|name| folder.path().join(name));
    let [open, json] = [&open, &json].map(|path| path.to_str().unwrap());
    let write = format!("json:{json}");
    let begin = || {
        let flags =
            ["monitor", "-i", "right", "--resume", open, "--report", "json", "--duration", "300s"];
        let flags = [&flags[..], &["--web", "127.0.0.1:8080", "--write", &write]].concat();
        Background::start(net.ringtap(Right, &flags), "listening:")
    };
    let all = frames(&fs::read(office()).unwrap());
    let mut reports = Vec::new();
    for half in all.chunks(all.len().div_ceil(2)) {
        let run = begin();
        send_all(&mut net.sender(&SendOptions::default()), half);
        run.interrupt();
        let (out, errors, code) = run.end();
        assert_eq!(code, 0, "{errors}");
        reports.push(serde_json::from_slice::<Value>(&out).unwrap());
        send_all(&mut net.sender(&SendOptions::default()), &all[..50]);
    }
    // What passed between the runs is counted by the interface.
    assert!(reports[0]["gap"].is_null());
    let gap = &reports[1]["gap"];
    let [packets, intervals] = ["packets", "intervals"].map(|name| gap[name].as_u64().unwrap_or(0));
    assert!((50..70).contains(&packets) && (1..=2).contains(&intervals), "{gap}");
    let number = |run: usize, name: &str| reports[run]["flows"][name].as_u64().unwrap_or(0);
    assert!(number(0, "kept") > 0, "{}", reports[0]["flows"]);
    assert_eq!(number(1, "resumed"), number(0, "kept"));
    // A run that is killed has read its file, and leaves none.
    drop(begin());
    assert!(!Path::new(open).exists());
    let run = begin();
    run.interrupt();
    let (out, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
    let last: Value = serde_json::from_slice(&out).unwrap();
    assert!(last["flows"]["resumed"].is_null(), "{}", last["flows"]);
    assert!(number(1, "kept") >= number(1, "resumed").saturating_sub(number(1, "records")));
}

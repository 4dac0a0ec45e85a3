//! Packets that were captured twice.

use std::fs::File;
use std::path::Path;

use ringtap_io::capture::{Files, Input, PcapWriter};
use ringtap_wire::LinkType;
use serde_json::{Value, json};

use crate::common::{office, output_of, ringtap};

/// Writes the office capture with a copy of each IP packet `after_ns` later, as behind a router. Returns the copies.
fn twice(path: &Path, after_ns: u64) -> u64 {
    let mut files = Files::new(vec![Input::Path(office())]);
    let mut frames = Vec::new();
    while files.burst(1024, |frame| {
        assert_eq!(frame.link, LinkType::ETHERNET);
        frames.push((frame.ts_ns, frame.original_len, frame.data.to_vec()));
    }) > 0
    {}
    let mut copies = Vec::new();
    for (ts_ns, len, data) in &frames {
        let mut copy = data.clone();
        match copy[12..14] {
            [8, 0] => {
                // Time to live and checksum.
                (copy[22], copy[24]) = (copy[22].wrapping_sub(1), !copy[24]);
            }
            [0x86, 0xdd] => copy[21] = copy[21].wrapping_sub(1),
            _ => continue,
        }
        copy[..12].fill(6);
        copies.push((ts_ns + after_ns, *len, copy));
    }
    let number = copies.len() as u64;
    frames.extend(copies);
    frames.sort_by_key(|(ts_ns, ..)| *ts_ns);
    let mut writer = PcapWriter::new(File::create(path).unwrap(), LinkType::ETHERNET, u32::MAX);
    for (ts_ns, len, data) in frames {
        writer.write(ts_ns, len, &data).unwrap();
    }
    writer.flush().unwrap();
    number
}

fn monitor(path: &Path, flags: &[&str]) -> (Value, String, i32) {
    let mut command = ringtap();
    command.args(["monitor", "-q", "--report", "json", "--digest", "-r"]).arg(path).args(flags);
    let (out, errors, code) = output_of(&mut command);
    (serde_json::from_str(&out).unwrap_or_default(), errors, code)
}

#[test]
fn copies_count_once_in_every_arrangement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twice.pcap");
    let copies = twice(&path, 30_000);
    assert!(copies > 7_000);
    let flags = ["--dedup", "1ms", "--fail-on-drop"];
    // The capture itself may have copies.
    let (once, _, _) = monitor(&office(), &flags);
    let own = once["packets"]["dropped"]["duplicate"].as_u64().unwrap_or(0);
    let (report, errors, code) = monitor(&path, &flags);
    assert_eq!((errors.as_str(), code), ("", 0));
    assert_eq!(report["packets"]["dropped"], json!({"duplicate": copies + own}));
    assert_eq!(report["ledger"]["residual"], 0);
    assert_eq!(report["packets"]["handled"], once["packets"]["handled"]);
    for part in ["protocols", "conversations", "talkers", "scans", "names", "applications"] {
        assert_eq!(report[part], once[part], "{part}");
    }
    for arrangement in
        [&["--sequential"][..], &["--skeleton", "multi-queue", "--queues", "3"], &["-w", "3"]]
    {
        let (other, errors, _) = monitor(&path, &[&flags[..], arrangement].concat());
        assert_eq!(other["digest"], report["digest"], "{arrangement:?}: {errors}");
    }
    // Copies later than the window count.
    let (late, _, _) = monitor(&path, &["--dedup", "29us"]);
    assert_eq!(late["packets"]["dropped"]["duplicate"].as_u64().unwrap_or(0), 2 * own);
}

#[test]
fn packets_evicted_early_are_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w1.pcap");
    let mut generate = ringtap();
    generate.args(["generate", "--profile", "w1", "--packets", "80k", "--seed", "7", "-w"]);
    assert_eq!(output_of(generate.arg(&path)).2, 0);
    let flags = ["--dedup", "1h", "--memory", "64M", "--fail-on-drop", "--sequential"];
    let (report, errors, code) = monitor(&path, &flags);
    let most = report["plan"]["max_duplicates"].as_u64().unwrap();
    let handled = report["packets"]["handled"].as_u64().unwrap();
    assert!(code == 3 && handled > most, "{errors}");
    let loss =
        format!("packets whose duplicates may count, for lack of memory: {}", handled - most);
    assert!(
        errors.contains(&loss) && errors.contains("raise --memory or shorten --dedup"),
        "{errors}"
    );
}

//! Tests of `--extract syn`: what the SYNs of both ends say, in records of each arrangement.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{output_of, ringtap};

const SYN: u8 = 2;
const ACK: u8 = 0x10;

/// Options of Linux, and those of a server that shifts no windows.
const CLIENT: &[u8] = &[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
const SERVER: &[u8] = &[2, 4, 5, 0x3c];

/// The frame of a segment between 10.0.0.1 and 10.0.0.2, port 80.
fn frame(port: u16, from_server: bool, flags: u8, sequence: u32, options: &[u8]) -> Vec<u8> {
    let (mut ends, mut ports) = ([1, 2], [port, 80]);
    if from_server {
        ends.reverse();
        ports.reverse();
    }
    let len = 40 + options.len() as u16;
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    bytes.extend(len.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
    bytes.extend(ports.map(u16::to_be_bytes).concat());
    bytes.extend([sequence, 0].map(u32::to_be_bytes).concat());
    let offset = (5 + options.len() as u8 / 4) << 4;
    bytes.extend([offset, flags, 0xfa, 0xf0, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes
}

/// Twenty connections, the first of which repeats its SYN.
fn capture(path: &Path) {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for number in 0..20_u16 {
        let segment = |from_server, flags, sequence, options| {
            frame(2_000 + number, from_server, flags, sequence, options)
        };
        let mut frames = vec![segment(false, SYN, 7, CLIENT)];
        if number == 0 {
            frames.push(segment(false, SYN, 7, CLIENT));
        }
        frames.push(segment(true, SYN | ACK, 3_000_000_000, SERVER));
        frames.push(segment(false, ACK, 8, &[]));
        for (ms, frame) in (0..).zip(frames) {
            let len = frame.len() as u32;
            for word in [1_700_000_000 + u32::from(number), ms * 1_000, len, len] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
    }
    fs::write(path, bytes).unwrap();
}

fn records(folder: &Path, flags: &[&str]) -> Vec<Value> {
    let all = ["monitor", "-q", "--force", "--write=json:records", "-r", "syns.pcap"];
    let (_, errors, code) = output_of(ringtap().current_dir(folder).args(all).args(flags));
    assert_eq!(code, 0, "{errors}");
    let text = fs::read_to_string(folder.join("records")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The values of both SYNs: fingerprint, length, options, segment size, window scale, sequence number.
fn syns(record: &Value) -> [Value; 2] {
    let names = [
        "cpSynFingerprint",
        "cpSynLength",
        "cpSynOptions",
        "cpMaximumSegmentSize",
        "cpWindowScale",
        "cpInitialSequenceNumber",
    ];
    ["t", "reverseT"].map(|of| names.map(|name| record[format!("{of}{name}")].clone()).into())
}

#[test]
fn records_have_what_both_syns_say() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    capture(&folder.join("syns.pcap"));
    let client = json!(["60:64240:2-4-8-1-3:1460:7", 60, "2-4-8-1-3", 1_460, 7, 7]);
    let server = json!(["44:64240:2:1340:", 44, "2", 1_340, null, 3_000_000_000_u32]);
    let nothing = json!([null, null, null, null, null, null]);
    for arrangement in [&["--sequential"][..], &["-w=2"], &["--sequential", "--cut=1s"]] {
        let all = records(folder, &[&["--extract=all,syn"], arrangement].concat());
        let whole = [client.clone(), server.clone()];
        assert_eq!(all.iter().filter(|record| syns(record) == whole).count(), 20, "{all:?}");
        assert!(all.iter().all(|record| record["payloadValuesOmitted"].is_null()));
    }
    // Each end has its own record.
    let all = records(folder, &["--sequential", "--uniflow", "--extract=syn"]);
    for own in [[client, nothing.clone()], [nothing.clone(), server]] {
        assert_eq!(all.iter().filter(|record| syns(record) == own).count(), 20, "{all:?}");
    }
    let none = records(folder, &[]);
    assert!(none.iter().all(|record| syns(record) == [nothing.clone(), nothing.clone()]));
}

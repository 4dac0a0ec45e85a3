//! Tests of response times: a server that waits shows its wait, apart from the network's time, in each output.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{output_of, ringtap};

/// A TCP segment: microseconds since the start, whether the server sends it, flags, sequence and acknowledgment numbers, data.
type Segment<'a> = (u32, bool, u8, [u32; 2], &'a str);

const SYN: u8 = 2;
const PUSH: u8 = 0x18;
const ACK: u8 = 0x10;

/// The frames of a connection from 10.0.0.1 to 10.0.0.2, port 80.
fn connection(bytes: &mut Vec<u8>, start_s: u32, port: u16, segments: &[Segment<'_>]) {
    for &(us, from_server, flags, numbers, data) in segments {
        let len = 40 + data.len() as u16;
        let frame_len = u32::from(len) + 14;
        for word in [start_s + us / 1_000_000, us % 1_000_000, frame_len, frame_len] {
            bytes.extend(word.to_le_bytes());
        }
        let (mut ends, mut ports) = ([1, 2], [port, 80]);
        if from_server {
            ends.reverse();
            ports.reverse();
        }
        bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        bytes.extend(len.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, ends[0], 10, 0, 0, ends[1]]);
        bytes.extend(ports.map(u16::to_be_bytes).concat());
        bytes.extend(numbers.map(u32::to_be_bytes).concat());
        bytes.extend([0x50, flags, 4, 0, 0, 0, 0, 0]);
        bytes.extend(data.as_bytes());
    }
}

/// Twenty connections with a network of 3 ms to the server; the server answers after 200 ms, and after 1.5 s once.
fn slow_server(path: &Path) {
    let request = "GET / HTTP/1.1\r\nHost: slow.example\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for number in 0..20 {
        let wait = if number == 7 { 1_500_000 } else { 200_000 };
        let asked = 100 + request.len() as u32;
        let segments = [
            (0, false, SYN, [99, 0], ""),
            (3_000, true, SYN | ACK, [499, 100], ""),
            (3_100, false, ACK, [100, 500], ""),
            (4_000, false, PUSH, [100, 500], request),
            (7_000, true, ACK, [500, asked], ""),
            (4_000 + wait, true, PUSH, [500, asked], response),
        ];
        connection(&mut bytes, 1_700_000_000 + 3 * number, 2_000 + number as u16, &segments);
    }
    fs::write(path, bytes).unwrap();
}

fn run(folder: &Path, flags: &[&str]) -> String {
    let (out, errors, code) = output_of(ringtap().current_dir(folder).args(flags));
    assert_eq!(code, 0, "{errors}");
    out
}

fn report(folder: &Path, flags: &[&str]) -> Value {
    let all = [&["monitor", "--analyses=all,tcp", "--report=json", "-r", "slow.pcap"], flags];
    serde_json::from_str(&run(folder, &all.concat())).unwrap()
}

#[test]
fn a_slow_server_has_its_wait_and_the_network_its_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    slow_server(&folder.join("slow.pcap"));
    let within = |found: &Value, exact: u64| {
        let found = found.as_u64().unwrap();
        assert!(found.abs_diff(exact) <= exact / 64, "{found} for {exact}");
    };
    let [sequential, rest @ ..] = [
        &["--sequential"][..],
        &["--queues=3"],
        &["--skeleton=farm", "-w=3"],
        &["--skeleton=pipeline", "-w=3"],
    ]
    .map(|flags| report(folder, flags));
    let [row] = &sequential["tcp"]["slowest_responses"].as_array().unwrap()[..] else {
        panic!("{sequential}")
    };
    let exact = json!([row["server"], row["application"], row["exchange"], row["responses"]]);
    assert_eq!(exact, json!(["10.0.0.2", "http", "http", 20]));
    // 19 times 200 ms and once 1.5 s.
    assert_eq!(json!([row["mean_us"], row["longest_us"]]), json!([265_000, 1_500_000]));
    within(&row["p50_us"], 200_000);
    within(&row["p95_us"], 200_000);
    within(&row["p99_us"], 1_500_000);
    assert_eq!(row["rtt_us"], 3_000);
    for other in rest {
        assert_eq!(other["tcp"], sequential["tcp"]);
    }

    // Text, a record, and the merge of two states.
    let text = run(folder, &["monitor", "--analyses=all,tcp", "-q", "-r", "slow.pcap"]);
    let line = text.lines().skip_while(|line| *line != "Slowest responses").nth(2).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(words[..4], ["10.0.0.2", "http", "http", "20"], "{line}");
    assert!(line.contains("1500.000 ms") && line.ends_with("3.000 ms"), "{line}");
    run(folder, &["monitor", "--analyses=all,tcp", "--write=json:records", "-r", "slow.pcap"]);
    let records = fs::read_to_string(folder.join("records")).unwrap();
    let slow = records.lines().find(|line| line.contains("\"sourceTransportPort\":2007")).unwrap();
    let slow: Value = serde_json::from_str(slow).unwrap();
    assert_eq!(json!([slow["responseMicroseconds"], slow["responseCount"]]), json!([1_500_000, 1]));
    for name in ["a", "b"] {
        let state = format!("--state={name}");
        let probe = format!("--probe={name}");
        run(folder, &["monitor", "--analyses=all,tcp", "-q", &state, &probe, "-r", "slow.pcap"]);
    }
    let merged: Value =
        serde_json::from_str(&run(folder, &["merge", "--report=json", "a", "b"])).unwrap();
    let both = &merged["tcp"]["slowest_responses"][0];
    assert_eq!(json!([both["responses"], both["mean_us"]]), json!([40, 265_000]));
    assert_eq!((&both["p99_us"], &both["rtt_us"]), (&row["p99_us"], &row["rtt_us"]));
}

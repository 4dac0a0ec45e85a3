//! Tests of `--analyses statistics`: the columns of each format, states, merges and losses.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{office, output_of, ringtap};

const ON: &str = "--analyses=all,statistics";

fn run(folder: &Path, flags: &[&str]) -> String {
    let (out, errors, code) = output_of(ringtap().current_dir(folder).args(flags));
    assert_eq!(code, 0, "{flags:?}: {errors}");
    out
}

fn report(folder: &Path, flags: &[&str]) -> Value {
    let office = office();
    let all = [&["monitor", "--report=json", "-r", office.to_str().unwrap()], flags].concat();
    serde_json::from_str(&run(folder, &all)).unwrap()
}

fn records(folder: &Path, flags: &[&str]) -> Vec<Value> {
    report(folder, &[&["--sequential", "--force", "--write=json:records"], flags].concat());
    let text = fs::read_to_string(folder.join("records")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap_or(0)
}

fn list(record: &Value, name: &str) -> Vec<u64> {
    let values = record[name].as_array().map_or(&[][..], Vec::as_slice);
    values.iter().map(|value| value.as_u64().unwrap()).collect()
}

#[test]
fn records_have_lengths_gaps_and_first_packets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = records(folder, &[ON]);
    let mut bursts = 0;
    for record in &all {
        let (packets, back) =
            (number(record, "packetDeltaCount"), number(record, "reversePacketDeltaCount"));
        let octets = list(record, "firstPacketLengths");
        assert_eq!(octets.len() as u64, (packets + back).min(30), "{record}");
        for name in ["firstPacketDirections", "firstPacketMicroseconds", "firstPacketFlags"] {
            assert_eq!(list(record, name).len(), octets.len(), "{record}");
        }
        let mean = number(record, "octetDeltaCount") / packets;
        assert_eq!(record["packetLengthMean"], mean, "{record}");
        assert_eq!(record["packetLengthMinimum"], record["minimumIpTotalLength"], "{record}");
        if packets + back <= 30 {
            let own = octets.iter().zip(list(record, "firstPacketDirections"));
            let own: Vec<u64> =
                own.filter(|(_, side)| *side == 0).map(|(octets, _)| *octets).collect();
            assert_eq!(own.iter().sum::<u64>(), number(record, "octetDeltaCount"), "{record}");
            let squares = own.iter().map(|octets| octets * octets).sum::<u64>();
            assert_eq!(record["octetDeltaSumOfSquares"], squares, "{record}");
        }
        assert_eq!(record["interArrivalMicrosecondsMean"].is_null(), packets < 2, "{record}");
        let [start, end, back_start, back_end] = [
            "flowStartMilliseconds",
            "flowEndMilliseconds",
            "reverseFlowStartMilliseconds",
            "reverseFlowEndMilliseconds",
        ]
        .map(|name| record[name].as_u64());
        assert_eq!([back_start, back_end].map(|time| time.is_some()), [back > 0; 2], "{record}");
        let in_order = start <= back_start && back_start <= back_end && back_end <= end;
        assert!(back == 0 || in_order, "{record}");
        assert_eq!(record["packetLengthDeviation"].is_null(), packets < 2, "{record}");
        let own = list(record, "burstPackets");
        assert!(own.iter().all(|packets| *packets >= 3) && own.iter().sum::<u64>() <= packets);
        bursts += own.len() + list(record, "reverseBurstPackets").len();
    }
    assert!(bursts > 50, "{bursts}");
    for packets in [0, 5, 255] {
        let flag = format!("--statistics-packets={packets}");
        for (own, other) in records(folder, &[ON, &flag]).iter().zip(&all) {
            let sent = number(own, "packetDeltaCount") + number(own, "reversePacketDeltaCount");
            assert_eq!(list(own, "firstPacketLengths").len() as u64, sent.min(packets), "{own}");
            assert_eq!(own["packetLengthDeviation"], other["packetLengthDeviation"]);
        }
    }
}

#[test]
fn columns_are_there_with_the_analysis_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let header = |flags: &[&str]| {
        let found = report(folder, &[&["--force", "--write=csv:records"], flags].concat());
        let text = fs::read_to_string(folder.join("records")).unwrap();
        let line = text.lines().nth(1).unwrap().to_owned();
        (text.lines().next().unwrap().to_owned(), line, found)
    };
    let (plain, _, without) = header(&[]);
    assert!(!plain.contains("packetLength") && without["statistics"].is_null());
    let (columns, line, with) = header(&[ON]);
    // Behind those of earlier editions.
    let others: Vec<_> =
        columns.split(',').filter(|name| plain.split(',').any(|own| own == *name)).collect();
    assert_eq!(others.join(","), plain);
    assert!(columns.contains(",packetLengthMinimum,"), "{columns}");
    let place = columns.split(',').position(|name| name == "firstPacketLengths").unwrap();
    let lengths = line.split(',').nth(place).unwrap();
    assert!(lengths.split(';').all(|octets| octets.parse::<u16>().is_ok()), "{line}");
    let sums = &with["statistics"];
    assert_eq!(sums["records"], with["flows"]["records"]);
    assert_eq!(json!([sums["negative_gaps"], sums["records_cut"]]), json!([0, 0]));
    assert_eq!(with["plan"]["statistics_packets"], 30);
    let office = office();
    let text = run(folder, &["monitor", "-q", ON, "-r", office.to_str().unwrap()]);
    assert!(text.contains("Packet statistics\n"), "{text}");

    let mut command = ringtap();
    let (_, errors, code) =
        output_of(command.args(["monitor", "--statistics-packets=5", "-r"]).arg(&office));
    assert_eq!(code, 2);
    assert!(errors.contains("--statistics-packets has no effect"), "{errors}");
}

#[test]
fn states_have_the_statistics_of_live_flows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let whole = report(folder, &[ON, "--digest", "--state=whole", "--probe=a"]);
    let merge = |flags: &[&str]| -> Value {
        let all = [&["merge", "--report=json", "--digest"], flags].concat();
        serde_json::from_str(&run(folder, &all)).unwrap()
    };
    let merged = merge(&["whole"]);
    assert_eq!(
        (&merged["digest"], &merged["statistics"]),
        (&whole["digest"], &whole["statistics"])
    );
    // In parts, each with the live flows.
    fs::create_dir(folder.join("parts")).unwrap();
    report(folder, &[ON, "--digest", "--interval=60s", "--state=parts/", "--probe=a", "-w=3"]);
    let merged = merge(&["parts/"]);
    assert_eq!(merged["statistics"], whole["statistics"]);
    let digest = report(folder, &[ON, "--digest", "--interval=60s"]);
    assert_eq!(merged["digest"], digest["digest"]);
    // States with other numbers of first packets do not belong together.
    report(folder, &[ON, "--statistics-packets=5", "--state=other", "--probe=b"]);
    let (_, errors, code) =
        output_of(ringtap().current_dir(folder).args(["merge", "whole", "other"]));
    assert!(code == 1 && errors.contains("statistics_packets is 30"), "{code}: {errors}");
    // With octets of payload, too.
    let octets = "--statistics-octets=200";
    let whole = report(folder, &[ON, octets, "--digest", "--state=octets", "--probe=a"]);
    assert_eq!(merge(&["octets"])["digest"], whole["digest"]);
    let (_, errors, code) =
        output_of(ringtap().current_dir(folder).args(["merge", "whole", "octets"]));
    assert!(code == 1 && errors.contains("statistics_octets is not set"), "{code}: {errors}");
}

#[test]
fn records_have_the_entropy_of_payloads_if_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let office = office();
    let lines = |flags: &[&str]| {
        let all =
            [&["monitor", "-q", "-r", office.to_str().unwrap(), "--write=json:-"], flags].concat();
        run(folder, &all)
    };
    assert!(!lines(&[ON]).contains("Entropy"));
    let with = lines(&[ON, "--statistics-octets=64"]);
    let values = |name: &str| {
        let records = with.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter_map(|record| record[name].as_u64()).collect::<Vec<_>>()
    };
    for name in ["payloadEntropy", "reversePayloadEntropy"] {
        // 64 octets have 6 bits at most.
        let all = values(name);
        assert!(all.len() > 3 && all.iter().all(|own| *own <= 192), "{name}: {all:?}");
        assert!(all.iter().any(|own| *own > 100), "{name}: {all:?}");
    }
    let alone = lines(&[ON, "--statistics-octets=64", "--sequential"]);
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&alone), sorted(&with));
    for (flags, expected) in [
        (&["--statistics-octets=5"][..], "--statistics-octets has no effect"),
        (&[ON, "--statistics-octets=1025"], "1025"),
        (&[ON, "--statistic-octets=5"], "--statistics-octets"),
    ] {
        let mut command = ringtap();
        let (_, errors, code) = output_of(command.args(["monitor", "-r"]).arg(&office).args(flags));
        assert!(code == 2 && errors.contains(expected), "{code}: {errors}");
    }
}

/// Where the memory for lists is full, records say so, and the sums are whole.
#[test]
fn lists_without_room_are_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let generate = ["generate", "--profile=w1", "--flows=20k", "--packets=800k", "--seed=7"];
    run(folder, &[&generate[..], &["-w", "many.pcap"]].concat());
    let flags = ["--analyses=flows,statistics", "--idle-timeout=1h", "--active-timeout=1h"];
    let flags = [&flags[..], &["--report=json", "--extract=none", "--sequential"]].concat();
    let found = |more: &[&str]| -> Value {
        let all = [&["monitor", "-r", "many.pcap"], &flags[..], more].concat();
        serde_json::from_str(&run(folder, &all)).unwrap()
    };
    let whole = found(&[]);
    assert_eq!(whole["statistics"]["records_cut"], 0);
    let short = found(&["--memory=30M", "--statistics-packets=255"]);
    assert!(number(&short["statistics"], "records_cut") > 0, "{}", short["statistics"]);
    let warnings = short["notices"].to_string();
    assert!(
        warnings.contains("lack first packets, bursts or octets for lack of memory"),
        "{warnings}"
    );
    let mut command = ringtap();
    command.current_dir(folder).args(["monitor", "-r", "many.pcap"]).args(&flags);
    let short = ["--memory=30M", "--statistics-packets=255", "--fail-on-drop"];
    let (_, errors, code) = output_of(command.args(short));
    assert!(
        code == 3 && errors.contains("flow records without all first packets, bursts and octets")
    );
}

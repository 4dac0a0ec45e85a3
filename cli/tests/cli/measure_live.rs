//! Tests of `measure -i` over a veth pair.

use std::io::{BufRead, BufReader, Read};

use ringtap_io::live::{Method, SendOptions};
use serde_json::Value;

use crate::live::datagrams;
use crate::net::{Background, Net, NetCommands, Right};
use ringtap_testkit::{send_all, soon};
use rustix::io::ioctl_fionread;

#[test]
fn every_design_counts_all_packets_of_an_interface() {
    let frames = datagrams(400);
    // One host port sends as much as a hundred others.
    let frames = [&frames[..], &vec![frames[7].clone(); 100]].concat();
    let flags =
        ["measure", "-i", "right", "--duration", "30s", "--report", "json", "--threshold", "0.1"];
    for design in ["sync", "async", "rss", "sequential"] {
        for state in ["separate", "shared"] {
            let Some(net) = Net::new(2) else { return };
            let threads: &[&str] = match design {
                "rss" => &["--queues", "2"],
                "sequential" => &[],
                _ => &["-w", "2"],
            };
            let chosen = ["--design", design, "--state", state, "--structure", "sht"];
            let flags = [&flags[..], &chosen, threads].concat();
            let mut measuring = Background::start(net.ringtap(Right, &flags), "listening: ");
            let queues = if design == "rss" { 2 } else { 1 };
            (1..queues).for_each(|_| drop(measuring.wait_for("listening: ")));
            let options = SendOptions { method: Method::Packet, ..SendOptions::default() };
            send_all(&mut net.sender(&options), &frames);
            measuring.interrupt();
            let (report, errors, code) = measuring.end();
            let report: Value =
                serde_json::from_slice(&report).unwrap_or_else(|_| panic!("{errors}"));
            assert_eq!(
                (code, &report["measured"]),
                (0, &Value::from(500)),
                "{design} {state}: {errors}"
            );
            let heavy = report["heavy"].as_array().unwrap();
            assert_eq!(
                (heavy.len(), &heavy[0]["estimate"]),
                (1, &Value::from(101)),
                "{design} {state}"
            );
            assert_eq!(report["packet_drop_rate"], 0.0);
            assert_eq!(report["ledger"]["residual"], 0);
            let delay = report["delay_ns"]["p50"].as_f64().unwrap();
            // The delay since the kernel's time stamp is above zero and below the duration.
            assert!(delay > 0.0 && delay < 30e9, "{delay}");
        }
    }
}

/// An interval is printed while the run goes on.
#[test]
fn intervals_of_an_interface_are_printed_at_their_end() {
    for threads in [&["--design", "sequential"][..], &["--queues", "2"]] {
        let Some(net) = Net::new(2) else { return };
        let flags =
            ["measure", "-i", "right", "--interval", "1s", "--report", "json", "--top", "7"];
        let flags = [&flags[..], &["--structure", "exact"], threads].concat();
        let mut measuring = Background::start(net.ringtap(Right, &flags), "listening: ");
        let mut lines = BufReader::new(measuring.child.stdout.take().unwrap()).lines();
        let options = SendOptions { method: Method::Packet, ..SendOptions::default() };
        let mut sender = net.sender(&options);
        let (mut packets, mut intervals) = (0, Vec::new());
        let mut count = |line: String| {
            let line: Value = serde_json::from_str(&line).unwrap();
            packets += line["measured"].as_u64().unwrap();
            assert_eq!(line["dropped_so_far"], 0);
            assert!(line["heavy"].as_array().unwrap().len() <= 7);
            intervals.push(line["start"].as_str().unwrap().to_owned());
        };
        for _ in 0..2 {
            send_all(&mut sender, &datagrams(50));
            count(lines.next().unwrap().unwrap());
        }
        measuring.interrupt();
        lines.for_each(|line| count(line.unwrap()));
        let (_, errors, code) = measuring.end();
        assert_eq!((code, packets), (0, 100), "{errors}");
        assert!(intervals.is_sorted_by(|a, b| a < b), "{intervals:?}");
    }
}

/// Packets are read on while stdout is full, and the run ends. What a late reader did not get is counted.
#[test]
fn a_reader_that_stops_holds_no_packets() {
    for continues in [true, false] {
        let Some(net) = Net::new(1) else { return };
        let flags = ["measure", "-i", "right", "--interval", "1s", "--report", "json"];
        let flags = [&flags[..], &["--structure", "exact", "--top", "100000"]].concat();
        let mut measuring = Background::start(net.ringtap(Right, &flags), "listening: ");
        let mut stdout = measuring.child.stdout.take().unwrap();
        let options = SendOptions { method: Method::Packet, ..SendOptions::default() };
        let mut sender = net.sender(&options);
        send_all(&mut sender, &datagrams(2_000));
        let is_full = || ioctl_fionread(&stdout).unwrap() >= 1 << 16;
        assert!((0..10).any(|_| soon(is_full)), "two thousand keys fill a pipe");
        send_all(&mut sender, &datagrams(2_000));
        measuring.interrupt();
        let mut text = String::new();
        if continues {
            stdout.read_to_string(&mut text).unwrap();
        }
        let (_, errors, code) = measuring.end();
        assert_eq!(code, 0, "{errors}");
        assert_eq!(
            errors.contains("intervals not printed, because stdout was not read: "),
            !continues,
            "{errors}"
        );
        if continues {
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let packets = lines.map(|line| line["measured"].as_u64().unwrap());
            assert_eq!(packets.sum::<u64>(), 4_000, "{errors}");
        }
    }
}

//! Tests of `measure -i` over a veth pair.

use ringtap_io::live::{Method, SendOptions};
use serde_json::Value;

use crate::live::datagrams;
use crate::net::{Background, Net, NetCommands, Right};
use ringtap_testkit::send_all;

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

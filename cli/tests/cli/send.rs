//! Tests of `generate -i`: frames that are sent arrive, and frames that are not sent are reported.

use std::fs;

use serde_json::Value;

use crate::common::{have, json, office, output_of, ringtap};
use crate::net::{Background, Left, Net, NetCommands, Right, capture, frames};

/// Starts tcpdump at the right end; it ends after `count` frames.
fn tcpdump(net: &Net, count: usize) -> Background {
    let mut command = net.program(Right, "tcpdump");
    // -U flushes each frame, so that the output is complete even if fewer frames arrive.
    let flags = ["-i", "right", "-U", "-B", "65536", "-s", "0", "-w", "-", "-Z", "root", "-c"];
    command.args(flags).arg(count.to_string());
    Background::start(command, "listening on right")
}

fn report(net: &Net, flags: &[&str]) -> Value {
    let flags = [&["generate", "-i", "left", "--report", "json"], flags].concat();
    let (out, errors, code) = net.run(Left, &flags);
    assert_eq!(code, 0, "{flags:?}: {errors}");
    serde_json::from_str(&out).unwrap()
}

/// A UDP datagram in a frame of `len` bytes.
fn datagram(len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((len as u16 - 14).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 5, 0, 6]);
    frame.extend((len as u16 - 34).to_be_bytes());
    frame.resize(len, 0);
    frame
}

#[test]
fn a_capture_arrives_byte_for_byte() {
    if !have("tcpdump") {
        return;
    }
    let office = office();
    let sent = frames(&fs::read(&office).unwrap());
    for method in ["af-packet", "af-xdp"] {
        let Some(net) = Net::new(1) else { return };
        let listener = tcpdump(&net, sent.len());
        let flags = ["generate", "-i", "left", "--method", method, "--rate", "100k", "-r"];
        let flags = [&flags[..], &[office.to_str().unwrap()]].concat();
        let (out, errors, code) = net.run(Left, &flags);
        assert_eq!((out.as_str(), code), ("", 0), "{errors}");
        assert!(errors.contains("8,192 packets") && errors.contains("rate: 100 k packets/s"));
        assert!(errors.contains("2,722 frames sent truncated as captured"), "{errors}");
        let (came, _, _) = listener.end();
        assert!(frames(&came) == sent, "{method}: {} of {}", frames(&came).len(), sent.len());
    }
}

/// The same flags give the same frames and the same truth file.
#[test]
fn a_profile_is_the_same_in_a_file_and_on_the_wire() {
    if !have("tcpdump") {
        return;
    }
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let traffic = ["--packets", "5k", "--flows", "500", "--rate", "50k", "--truth"];
    let (file, truths) = (path("t.pcap"), [path("file.json"), path("wire.json")]);
    let to_file = [&["generate", "-w", &file], &traffic[..], &[&truths[0]]].concat();
    assert_eq!(output_of(ringtap().args(to_file)).2, 0);
    let listener = tcpdump(&net, 5_000);
    let counts = report(&net, &[&traffic[..], &[&truths[1]]].concat());
    assert_eq!((&counts["sent"], &counts["accepted"]), (&5_000.into(), &5_000.into()));
    let (came, _, _) = listener.end();
    assert!(frames(&came) == frames(&fs::read(&file).unwrap()));
    assert_eq!(fs::read(&truths[0]).unwrap(), fs::read(&truths[1]).unwrap());
    // The monitor's counts of the received frames equal the truth file.
    let received = folder.path().join("received.pcap");
    fs::write(&received, came).unwrap();
    let truth: Value = serde_json::from_slice(&fs::read(&truths[1]).unwrap()).unwrap();
    assert_eq!(json(&received, &[])["conversations"]["tcp"], truth["conversations"]["tcp"]);
}

#[test]
fn loops_repeat_the_capture_and_the_packet_limit_holds() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("three.pcap");
    capture(&file, &[datagram(60), datagram(61), datagram(62)]);
    let file = file.to_str().unwrap();
    for (flags, sent) in [
        (&["--loop", "5"][..], 15),
        (&["--loop", "0", "--packets", "100"], 100),
        (&["--packets", "2"], 2),
        // 14 gaps of 1 ms, ten times as fast.
        (&["--loop", "5", "--rate", "10x"], 15),
    ] {
        let before = net.arrived();
        let counts = report(&net, &[&["-r", file], flags].concat());
        assert_eq!((&counts["sent"], &counts["frames"]), (&sent.into(), &sent.into()), "{flags:?}");
        assert_eq!(net.arrived() - before, sent, "{flags:?}");
    }
}

#[test]
fn frames_that_the_interface_refuses_are_counted_and_reported() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.pcap");
    capture(&file, &[datagram(60), datagram(1514), datagram(1515), datagram(9000), vec![1; 13]]);
    let file = file.to_str().unwrap();
    for method in ["af-packet", "af-xdp"] {
        let counts = report(&net, &["--method", method, "-r", file]);
        assert_eq!((&counts["frames"], &counts["sent"]), (&5.into(), &2.into()), "{counts}");
        assert_eq!(
            (&counts["not_sent"]["too_long"], &counts["not_sent"]["too_short"]),
            (&2.into(), &1.into())
        );
    }
    let (_, errors, code) = net.run(Left, &["generate", "-i", "left", "-r", file]);
    assert!(code == 0 && errors.contains("2 frames not sent: too long for left"), "{errors}");
    // The same holds for a profile with long frames.
    let flags = ["--size", "4000", "--packets", "100", "--flows", "10", "--profile", "steady"];
    let counts = report(&net, &flags);
    let long = counts["not_sent"]["too_long"].as_u64().unwrap();
    assert!(long > 0 && long + counts["sent"].as_u64().unwrap() == 100, "{counts}");
}

#[test]
fn frames_have_the_mac_addresses_of_the_flags() {
    if !have("tcpdump") {
        return;
    }
    let Some(net) = Net::new(1) else { return };
    let macs = ["--src-mac", "02:aa:bb:cc:dd:ee", "--dst-mac", "02:11:22:33:44:55"];
    let traffic = ["--packets", "500", "--flows", "50", "--seed", "4"];
    let listener = tcpdump(&net, 500);
    report(&net, &[&traffic[..], &macs].concat());
    let (came, _, _) = listener.end();
    let came = frames(&came);
    assert_eq!(came.len(), 500);
    let addresses = [2, 0x11, 0x22, 0x33, 0x44, 0x55, 2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee];
    assert!(came.iter().all(|frame| frame[..12] == addresses));
}

#[test]
fn copies_made_in_the_kernel_all_arrive() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.pcap");
    // The first frame is not IPv4, so the second is copied.
    capture(&file, &[vec![0xff; 60], datagram(100)]);
    let receiver = net.ringtap(Right, &["check", "-i", "right", "--method", "af-xdp"]);
    let receiver = Background::start(receiver, "listening: right");
    let mut sent = 0;
    for (flags, octets) in [
        (&["--packets", "20k"][..], 60),
        (&["--packets", "3k", "--rate", "1M", "--flows", "16", "--size", "1518"], 1514),
        (&["--packets", "500", "-r", file.to_str().unwrap()], 100),
        (&["--packets", "100", "--profile", "w1", "--rate", "1Gbit"], 60),
    ] {
        let counts = report(&net, &[&["--method", "live"], flags].concat());
        let made = counts["sent"].as_u64().unwrap();
        assert_eq!(counts["accepted"], counts["sent"], "{counts}");
        assert_eq!(counts["octets"], made * octets);
        sent += made;
    }
    assert_eq!((sent, net.arrived()), (23_600, 23_600));
    receiver.interrupt();
    assert_eq!(receiver.end().2, 3, "no frame had a stamp");
}

#[test]
fn copies_that_are_not_received_are_an_error_with_a_remedy() {
    let Some(net) = Net::new(1) else { return };
    let flags = ["generate", "-i", "left", "--method", "live", "--packets", "1M"];
    let (_, errors, code) = net.run(Left, &flags);
    assert!(code == 1 && errors.contains("ethtool -K IFACE gro on"), "{errors}");
}

#[test]
fn an_interrupt_ends_the_run_with_a_report() {
    let Some(net) = Net::new(1) else { return };
    let office = office();
    let office = office.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("t.json");
    for flags in [
        &["-r", office, "--loop", "0", "--rate", "1k"][..],
        &["--packets", "1G", "--rate", "1k", "--flows", "100", "--truth", truth.to_str().unwrap()],
    ] {
        let flags = [&["generate", "-i", "left", "--report", "json"], flags].concat();
        let mut child = net.ringtap(Left, &flags);
        child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = child.spawn().unwrap();
        let before = net.arrived();
        let mut polls = 3_000;
        while net.arrived() == before && polls > 0 {
            polls -= 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(polls > 0, "no frame arrives");
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(counts["interrupted"], true);
        assert_eq!((&counts["sent"], &counts["accepted"]), (&counts["frames"], &counts["frames"]));
        if truth.exists() {
            let truth: Value = serde_json::from_slice(&fs::read(&truth).unwrap()).unwrap();
            assert_eq!(truth["packets"], counts["sent"]);
        }
    }
}

#[test]
fn unusable_interfaces_files_and_flags_are_errors_with_a_remedy() {
    let Some(net) = Net::new(1) else { return };
    let missing = ["generate", "-i", "lefft"];
    let (_, errors, code) = net.run(Left, &missing);
    assert!(
        code == 1 && errors.contains("unknown interface") && errors.contains("left"),
        "{errors}"
    );
    for method in ["af-packet", "af-xdp"] {
        let flags = ["generate", "-i", "left", "--method", method, "-r", "no-such.pcap"];
        let (_, errors, code) = net.run(Left, &flags);
        assert!(code == 1 && errors.contains("no-such.pcap: no such file"), "{errors}");
    }
    let flags = ["generate", "-i", "left", "--method", "af-xdp", "--queue", "7"];
    let (_, errors, code) = net.run(Left, &flags);
    assert!(code == 1 && errors.contains("no queue 7"), "{errors}");
    let flags = ["generate", "-i", "left", "--method", "live", "--size", "1600"];
    let (_, errors, code) = net.run(Left, &flags);
    assert!(code == 1 && errors.contains("at most 1518"), "{errors}");
    let unprivileged = net
        .program(Left, "setpriv")
        .args(["--bounding-set=-net_raw", env!("CARGO_BIN_EXE_ringtap"), "generate", "-i", "left"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&unprivileged.stderr);
    assert!(errors.contains("setcap cap_net_raw+ep"), "{errors}");
    net.ip(Right, "link set right down");
    let (_, errors, code) = net.run(Left, &["generate", "-i", "left"]);
    assert!(code == 1 && errors.contains("left has no carrier"), "{errors}");
    net.ip(Left, "link set left down");
    for method in ["af-packet", "af-xdp", "live"] {
        let (_, errors, code) = net.run(Left, &["generate", "-i", "left", "--method", method]);
        assert!(code == 1 && errors.contains("ip link set left up"), "{method}: {errors}");
    }
}

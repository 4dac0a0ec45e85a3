//! Errors of opening an interface.

use std::process::Command;

use ringtap_io::live::{LiveSender, Method, OpenError, Options, SendOptions, Sender, open};

use super::frames::{udp, v4};
use ringtap_testkit::{Left, Net, Right};

#[test]
fn a_missing_interface_is_an_error_with_the_existing_ones() {
    let Some(net) = Net::new(1) else { return };
    for method in [Method::Packet, Method::Xdp] {
        let options = Options { method, ..Options::default() };
        for name in ["none", "", "a name longer than any interface has", "right\0"] {
            let error = net.inside(Right, || open(name, &options).err().unwrap());
            let OpenError::NoInterface { available, .. } = &error else { panic!("{error}") };
            assert_eq!(available.len(), 2, "{error}");
            assert!(error.to_string().contains("right"), "{error}");
        }
    }
    assert!(net.inside(Left, || Sender::open("none", &SendOptions::default()).is_err()));
}

#[test]
fn invalid_options_are_errors() {
    let Some(net) = Net::new(1) else { return };
    let refused = |options: Options| net.inside(Right, || open("right", &options).err().unwrap());
    for queues in [0, 257] {
        let error = refused(Options { queues: Some(queues), ..Options::default() });
        assert!(matches!(error, OpenError::QueueCount { .. }), "{error}");
    }
    for method in [Method::Packet, Method::Xdp] {
        let error = refused(Options { method, memory: 0, ..Options::default() });
        assert!(matches!(error, OpenError::TooLittleMemory { .. }), "{error}");
    }
}

/// The error of a process without some capabilities: this program again, started by `setpriv`.
fn without(net: &Net, capabilities: &str, what: &str) -> Option<String> {
    let test = "live::errors::missing_capabilities_are_named";
    let output = Command::new("ip")
        .args(["netns", "exec", net.name(Right), "setpriv", "--bounding-set", capabilities])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("RINGTAP_LIVE_OPEN", what)
        .output()
        .unwrap();
    let reported = String::from_utf8(output.stdout).unwrap();
    let (_, rest) = reported.split_once("ERROR<")?;
    Some(rest.split_once(">ERROR")?.0.to_owned())
}

#[test]
fn missing_capabilities_are_named() {
    if let Ok(what) = std::env::var("RINGTAP_LIVE_OPEN") {
        let template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 1, 2, vec![]);
        let xdp = Options { method: Method::Xdp, ..Options::default() };
        let error = match what.as_str() {
            "packet" => open("right", &Options::default()).err(),
            "xdp" => open("right", &xdp).err(),
            "send" => Sender::open("right", &SendOptions::default()).err(),
            _ => LiveSender::open("right", &template, 1).err(),
        };
        println!("ERROR<{}>ERROR", error.map_or("none".to_owned(), |error| error.to_string()));
        return;
    }
    let Some(net) = Net::new(1) else { return };
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no setpriv here (Debian package util-linux)");
        return;
    }
    let all = without(&net, "+all", "packet").unwrap();
    assert_eq!(all, "none");
    let raw = "needs CAP_NET_RAW: run as root, or once: sudo setcap cap_net_raw+ep /";
    let three = "setcap cap_net_raw,cap_net_admin,cap_bpf+ep /";
    for (missing, what, texts) in [
        ("-net_raw", "packet", [raw, "AF_PACKET"]),
        ("-net_raw", "send", [raw, "AF_PACKET"]),
        ("-net_raw", "xdp", ["needs CAP_NET_RAW:", three]),
        ("-bpf,-sys_admin", "xdp", ["needs CAP_BPF:", three]),
        ("-bpf,-sys_admin,-net_admin", "xdp", ["needs CAP_NET_ADMIN and CAP_BPF:", three]),
        ("-bpf,-sys_admin", "live", ["needs CAP_BPF:", "setcap cap_net_admin,cap_bpf+ep /"]),
    ] {
        let reported = without(&net, missing, what).unwrap();
        assert!(texts.iter().all(|text| reported.contains(text)), "{missing}, {what}: {reported}");
    }
}

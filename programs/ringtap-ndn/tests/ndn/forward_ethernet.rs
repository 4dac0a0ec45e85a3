//! Tests of `ringtap-ndn forward` with neighbours on an Ethernet, in network namespaces.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{PROGRAM, ndn};
use ringtap_testkit::output_of;
use ringtap_testkit::{Background, End, Left, Net, Right};

/// Starts a forwarder with an Ethernet interface and a socket for programs.
fn forwarder(net: &Net, folder: &Path, end: End, method: &str, more: &str) -> (Background, String) {
    let interface = ["left", "right"][end as usize];
    let path = |ending: &str| folder.join(interface).with_extension(ending).display().to_string();
    let (config, socket) = (path("toml"), path("sock"));
    let text = format!(
        "[unix]\nlisten = {socket:?}\n\
         [[ethernet]]\ninterface = {interface:?}\nmethod = {method:?}\n{more}"
    );
    fs::write(&config, text).unwrap();
    let flags = ["forward", "--report", "json", "--duration", "50s", "--config", &config];
    let mut command = net.program(end, PROGRAM);
    command.args(flags);
    let mut started = Background::without_words(command);
    let announced = started.wait_for(&format!("forwarding at dev://{interface}"));
    assert_eq!(announced.ends_with("by AF_XDP, native, copy"), method == "af-xdp", "{announced}");
    started.wait_for("forwarding at unix://");
    (started, format!("unix:{socket}"))
}

fn report(forwarder: Background) -> Value {
    forwarder.interrupt();
    let (report, errors, code) = forwarder.end();
    assert_eq!(code, 0, "{errors}");
    serde_json::from_slice(&report).unwrap()
}

/// A program at one forwarder gets Data in fragments of a program at the other.
#[test]
fn programs_exchange_packets_over_an_ethernet() {
    for (left_method, right_method, workers) in
        [("af-packet", "af-packet", 1), ("af-xdp", "af-xdp", 1), ("af-xdp", "af-packet", 3)]
    {
        let Some(net) = Net::new(1) else { return };
        let folder = tempfile::tempdir().unwrap();
        let more = format!(
            "[tables]\ncontent-store = 0\n[workers]\nnumber = {workers}\nhash-components = 3\n\
             [[route]]\nprefix = \"/p\"\nto = \"ether://left\"\n"
        );
        let (right, to_right) = forwarder(&net, folder.path(), Right, right_method, "");
        let (left, to_left) = forwarder(&net, folder.path(), Left, left_method, &more);
        let mut server = Command::new(PROGRAM);
        server.args(["server", "/p", "--to", &to_right, "--payload", "8000"]);
        let _server = Background::start(server, "serving");
        let flags = ["ping", "/p", "--to", &to_left, "-c", "20", "-i", "5ms"];
        let (out, errors, code) = output_of(ndn().args(flags));
        assert_eq!(code, 0, "{out}{errors}");
        let (left, right) = (report(left), report(right));
        for report in [&left, &right] {
            assert_eq!(report["ledger"]["residual"], 0, "{report}");
            assert_eq!(report["packets"]["data_out"], 20, "{report}");
        }
        let fragments = &left["faces"][0]["frames_in"];
        assert_eq!(fragments, 20 * 6, "{left}");
    }
}

#[test]
fn an_interface_that_cannot_be_opened_is_an_error_without_another_method() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Right, "tuntap add plain mode tun");
    let folder = tempfile::tempdir().unwrap();
    let (_running, _) = forwarder(&net, folder.path(), Right, "af-xdp", "");
    let config = folder.path().join("other.toml").display().to_string();
    for (interface, words) in [
        ("right", "opening ether://right by AF_XDP: right: another XDP program"),
        ("plain", "unsupported link type"),
        ("none", "unknown interface \"none\": use "),
    ] {
        let text = format!("[[ethernet]]\ninterface = {interface:?}\nmethod = \"af-xdp\"\n");
        fs::write(&config, text).unwrap();
        let mut command = assert_cmd::Command::from_std(net.program(Right, PROGRAM));
        let (out, errors, code) = output_of(command.args(["forward", "--config", &config]));
        assert!(errors.contains(words), "{errors}");
        assert_eq!((out.as_str(), code), ("", 1), "{errors}");
    }
}

#[test]
fn missing_capabilities_are_named() {
    let Some(net) = Net::new(1) else { return };
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no setpriv here (Debian package util-linux)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("forward.toml");
    for (method, missing, words) in [
        ("af-packet", "-net_raw", "needs CAP_NET_RAW"),
        ("af-xdp", "-net_raw", "needs CAP_NET_RAW"),
        ("af-xdp", "-net_admin,-bpf,-sys_admin", "needs CAP_NET_ADMIN and CAP_BPF"),
    ] {
        let text = format!("[[ethernet]]\ninterface = \"right\"\nmethod = {method:?}\n");
        fs::write(&config, text).unwrap();
        let mut command = net.program(Right, "setpriv");
        command.args(["--bounding-set", missing, PROGRAM]);
        let output = command.args(["forward", "--config"]).arg(&config).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("ether://right") && errors.contains(words), "{errors}");
        assert_eq!(output.status.code(), Some(1));
    }
}

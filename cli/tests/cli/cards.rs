//! Tests of the settings of network cards, by `doctor` and `monitor --setup-nic`, over veth pairs in new network namespaces.

use std::fs;

use ringtap_io::live::Ethtool;
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, output_of, ringtap};
use crate::net::{Background, Net, NetCommands, Right};
use ringtap_testkit::soon;

/// The words of the right end's features: available, requested, active and fixed ones of two blocks.
fn features(net: &Net) -> Vec<u32> {
    let mut request = [0x3a, 2, 0, 0, 0, 0, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
    net.inside(Right, || Ethtool::open("right").unwrap().call(&mut request)).unwrap();
    let words = request.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
    words.skip(2).collect()
}

/// Which features of `before` are off now, as bits of the first block.
fn turned_off(net: &Net, before: &[u32]) -> u32 {
    let active = 2;
    before[active] & !features(net)[active]
}

/// The bit of the removal of VLAN tags.
const RXVLAN: u32 = 1 << 8;

#[test]
fn doctor_shows_an_interface_and_what_would_improve_it() {
    let Some(net) = Net::new(4) else { return };
    let before = features(&net);
    let (text, errors, code) = net.run(Right, &["doctor", "right"]);
    assert_eq!((errors.as_str(), code), ("", 0));
    for words in ["Card right", "veth", "rx 4 of 4", "rxvlan on", "lro off (fixed)"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let command = "ethtool -K right rxvlan off";
    assert!(text.contains(command), "{text}");
    let (json, _, _) = net.run(Right, &["doctor", "right", "--report", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["interfaces"].as_array().unwrap().len(), 1);
    let card = &json["interfaces"][0]["card"];
    assert_eq!((&card["driver"], &card["queues"]["rx"]["now"]), (&"veth".into(), &4.into()));
    let changes = json["changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["command"] == command).unwrap();
    assert_eq!(change["undo"], "ethtool -K right rxvlan on");
    let (_, errors, code) = net.run(Right, &["doctor", "no-such"]);
    assert!(code == 1 && errors.contains("use lo, right"), "{errors}");
    assert_eq!(features(&net), before);
}

#[test]
fn doctor_applies_the_advice_and_prints_how_to_undo_it() {
    let Some(net) = Net::new(2) else { return };
    let before = features(&net);
    let apply = ["doctor", "right", "--apply"];
    let (text, errors, code) = net.run(Right, &[&apply[..], &["--dry-run"]].concat());
    assert_eq!((errors.as_str(), code), ("", 0));
    assert!(text.starts_with("ethtool -K right rxvlan off ") && !text.contains("undo"), "{text}");
    assert_eq!(features(&net), before);
    let (text, errors, code) = net.run(Right, &apply);
    assert_eq!((errors.as_str(), code), ("", 0));
    assert!(text.ends_with("To undo:\nethtool -K right rxvlan on\n"), "{text}");
    assert_eq!(turned_off(&net, &before), RXVLAN);
    let (text, _, code) = net.run(Right, &apply);
    assert_eq!((text.as_str(), code), ("nothing to change\n", 0));
    let (json, _, _) = net.run(Right, &[&apply[..], &["--report", "json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), Value::Array(Vec::new()));
}

/// A monitor of the right end that has set it up.
fn monitor(net: &Net, flags: &[&str]) -> Background {
    let own = ["monitor", "-i", "right", "--setup-nic", "--report", "json", "--duration", "60s"];
    let command = net.ringtap(Right, &[&own[..], flags].concat());
    let mut monitor = Background::start(command, "right: set: ethtool -K right rxvlan off");
    monitor.wait_for("listening: ");
    monitor
}

#[test]
fn a_run_sets_up_the_card_and_undoes_it_at_its_end() {
    for flags in
        [&["--queues", "2"][..], &["--queues", "2", "--capture", "af-xdp", "--user", "daemon"]]
    {
        let Some(net) = Net::new(2) else { return };
        let before = features(&net);
        let monitor = monitor(&net, &[flags, &["--report", "text"]].concat());
        assert_eq!(turned_off(&net, &before) & RXVLAN, RXVLAN);
        monitor.interrupt();
        let (report, errors, code) = monitor.end();
        assert_eq!(code, 0, "{errors}");
        assert!(errors.contains("right: undone: ethtool -K right rxvlan on"), "{errors}");
        let report = String::from_utf8(report).unwrap();
        assert!(report.contains("queues: no address pair of the sample"), "{report}");
        assert!(!errors.contains("warning"), "{errors}");
        assert_eq!(features(&net), before, "{flags:?}");
    }
}

#[test]
fn the_settings_of_a_killed_run_are_undone() {
    let Some(net) = Net::new(1) else { return };
    let before = features(&net);
    let monitor = monitor(&net, &[]);
    assert_eq!(turned_off(&net, &before), RXVLAN);
    // The process that undoes them keeps one right.
    let own = monitor.child.id().to_string();
    let helpers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let line = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        (line("PPid:")? == own).then(|| line("CapEff:").unwrap())
    });
    assert_eq!(helpers.collect::<Vec<_>>(), ["0000000000001000"]);
    monitor.send(Signal::KILL);
    assert!(soon(|| features(&net) == before));
}

#[test]
fn a_run_that_does_not_start_leaves_the_card_as_it_was() {
    let Some(net) = Net::new(2) else { return };
    let before = features(&net);
    let run = |flags: &[&str]| {
        let all = [&["monitor", "-i", "right", "--setup-nic"], flags].concat();
        let (_, errors, code) = net.run(Right, &all);
        assert_eq!(features(&net), before, "{flags:?}: {errors}");
        (errors, code)
    };
    let (errors, code) = run(&["--capture", "af-xdp", "--queues", "3"]);
    assert!(code != 0 && errors.contains("right: undone: "), "{errors}");
    let (errors, code) = run(&["--dry-run"]);
    assert!(code == 0 && errors.contains("would run: ethtool -K right rxvlan off"), "{errors}");
    let (errors, code) = run(&["--capture", "dpdk"]);
    assert!(code == 2 && errors.contains("omit --setup-nic"), "{errors}");
    if have("setpriv") {
        let mut command = assert_cmd::Command::new("setpriv");
        command.args(["--bounding-set", "-net_admin", env!("CARGO_BIN_EXE_ringtap")]);
        let (_, errors, code) = output_of(command.args(["monitor", "-i", "lo", "--setup-nic"]));
        assert!(code == 1 && errors.contains("needs CAP_NET_ADMIN"), "{errors}");
    }
    let (_, errors, code) = output_of(ringtap().args(["monitor", "-i", "no-such", "--setup-nic"]));
    assert!(code == 1 && errors.contains("unknown interface"), "{errors}");
}

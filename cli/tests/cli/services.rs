//! Tests of commands under a service manager: their notifications, and their work under the
//! restrictions of the units in `packaging/`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ringtap_io::live::SendOptions;
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, office, output_of, ringtap};
use crate::expressions::have_libpcap;
use crate::net::{Background, Net, NetCommands, Right};
use crate::signals::frame;
use ringtap_testkit::restricted::{Place, unit, verify_unit};
use ringtap_testkit::send_all;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringtap");

fn frames() -> Vec<Vec<u8>> {
    (0..500).map(frame).collect()
}

#[test]
fn the_monitor_works_under_the_restrictions_of_its_unit() {
    let (Some(place), Some(net)) = (Place::new(PROGRAM), Net::new(1)) else { return };
    let collector = net.inside(Right, || UdpSocket::bind("127.0.0.1:4739").unwrap());
    collector.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for capture in ["af-packet", "af-xdp"] {
        let records = format!("json:{}", place.shown("flows.json"));
        let parquet = format!("parquet:{}", place.shown("flows.parquet"));
        let ipfix = format!("ipfix-file:{}", place.shown("flows.ipfix"));
        let flags = ["monitor", "-i", "right", "--capture", capture, "--duration", "300s"];
        let flags = [&flags[..], &["--queues", "1"]].concat();
        let outputs = ["--write", &records, "--write", &parquet, "--export", &ipfix];
        let sockets = ["--export", "ipfix://127.0.0.1:4739", "--metrics", "9464"];
        let rest = ["--interval", "1s", "--stats", "50ms", "--report", "json"];
        let flags = [&flags[..], &outputs, &sockets, &rest].concat();
        let command = place.restricted_in(&net, Right, &unit("ringtap@"), &flags);
        let mut monitor = Background::start(command, "listening: ");
        place.wait_for("READY=1");
        send_all(&mut net.sender(&SendOptions::default()), &frames());
        monitor.wait_for(" 500 packets");
        place.wait_for("WATCHDOG=1");
        // The action of ExecReload.
        monitor.send(Signal::HUP);
        while !place.path("flows.json").exists() || !place.path("flows.ipfix").exists() {
            monitor.wait_for("stats: ");
        }
        let metrics = net.inside(Right, || {
            let mut client = TcpStream::connect("127.0.0.1:9464").unwrap();
            client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut page = String::new();
            client.read_to_string(&mut page).unwrap();
            page
        });
        assert!(
            metrics.contains("ringtap_packets_total{interface=\"right\",queue=\"0\"} 500"),
            "{metrics}"
        );
        place.drain();
        monitor.interrupt();
        place.wait_for("STOPPING=1");
        let (report, errors, code) = monitor.end();
        assert_eq!(code, 0, "{errors}");
        assert!(collector.recv(&mut [0; 9_000]).unwrap() > 16, "a message of IPFIX");
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["packets"]["received"], 500);
        assert_eq!(place.denied(), "", "{capture}: system calls that the unit does not list");
        for name in ["flows.json", "flows.1.json", "flows.ipfix", "flows.1.ipfix", "flows.parquet"]
        {
            fs::remove_file(place.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn the_filter_works_under_the_restrictions_of_its_unit() {
    let (Some(place), Some(net)) = (Place::new(PROGRAM), Net::new(1)) else { return };
    net.add_output();
    let (rules, more) = (place.shown("rules"), place.shown("more"));
    fs::write(&rules, "allow from 10.0.0.0/24\n").unwrap();
    fs::write(&more, "ban 10.0.0.1\n").unwrap();
    for capture in ["af-packet", "af-xdp"] {
        let control = format!("unix:{}", place.shown("control"));
        let drops = place.shown("drops.pcap");
        let flags = ["filter", "-i", "right", "-o", "out", "--capture", capture];
        let more_flags = ["--duration", "300s", "--rules", &rules, "--control", &control];
        let flags = [&flags[..], &more_flags, &["--drops", &drops, "--report", "json"]].concat();
        let command = place.restricted_in(&net, Right, &unit("ringtap-filter@"), &flags);
        let filter = Background::start(command, "control: ");
        place.wait_for("READY=1");
        let ctl = |words: &[&str]| {
            let (out, errors, code) =
                output_of(ringtap().args(["filter", "ctl"]).arg(place.path("control")).args(words));
            assert_eq!(code, 0, "{words:?}: {errors}");
            out
        };
        let received = || {
            let status: Value = serde_json::from_str(&ctl(&["status"])).unwrap();
            status["packets"]["received"].as_u64().unwrap()
        };
        send_all(&mut net.sender(&SendOptions::default()), &frames());
        while received() < 500 {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The action of ExecReload.
        assert!(ctl(&["replace", &more]).contains("revision"));
        send_all(&mut net.sender(&SendOptions::default()), &frames());
        while received() < 1_000 {
            std::thread::sleep(Duration::from_millis(10));
        }
        place.wait_for("WATCHDOG=1");
        place.drain();
        filter.interrupt();
        place.wait_for("STOPPING=1");
        let (report, errors, code) = filter.end();
        assert_eq!(code, 0, "{errors}");
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["packets"]["passed"], 500, "{report}");
        assert_eq!(place.denied(), "", "{capture}: system calls that the unit does not list");
        fs::remove_file(&drops).unwrap();
    }
}

/// The tests above detect a system call that is missing in a unit.
#[test]
fn a_call_that_a_unit_does_not_list_is_denied_and_recorded() {
    let Some(place) = Place::new(PROGRAM) else { return };
    let shipped = fs::read_to_string(unit("ringtap@")).unwrap();
    let without = |words: &str| {
        let lines = shipped.lines().filter(|line| !line.contains(words));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let capture = place.shown("office.pcap");
    fs::copy(office(), &capture).unwrap();
    let run = |text: String| {
        fs::write(place.path("unit"), text).unwrap();
        let flags = ["monitor", "-r", &capture, "--report", "json"];
        let output = place.restricted(&place.path("unit"), &place.path("denied"), &flags).output();
        output.unwrap()
    };
    let output = run(without("=landlock_"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(place.denied().starts_with("landlock_create_ruleset "), "{}", place.denied());
    // Without an error number, a denied call kills the program.
    let text = without("=landlock_").replace("SystemCallErrorNumber=EPERM\n", "");
    let output = run(text);
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(31), "SIGSYS: {:?}", output.status);
}

#[test]
fn systemd_accepts_the_units() {
    for (name, instance) in [("ringtap@", "ringtap@lo"), ("ringtap-filter@", "ringtap-filter@lo")] {
        verify_unit(name, instance, PROGRAM);
    }
}

/// The words of the settings of a unit that run the program, with the values of an instance.
fn commands(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(unit(name)).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("Exec"));
    let words = |line: &str| {
        let line = line.replace("%I", "lo").replace("%i", "lo").replace("${OUTPUT}", "lo");
        line.split(' ').skip(1).map(str::to_owned).collect()
    };
    lines
        .filter_map(|line| line.split_once("=/usr/local/bin/"))
        .map(|(_, line)| words(line))
        .collect()
}

#[test]
fn the_flags_of_the_units_parse() {
    for (name, count) in [("ringtap@", 1), ("ringtap-filter@", 2)] {
        let commands = commands(name);
        assert_eq!(commands.len(), count, "{name}");
        for words in commands {
            // Help is printed only if all words before it parse.
            let (help, errors, code) = output_of(ringtap().args(&words).arg("--help"));
            assert!(code == 0 && !help.is_empty(), "{words:?}: {errors}");
        }
    }
}

#[test]
fn the_flags_of_the_containers_parse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    for name in ["compose/compose.yaml", "kubernetes/ringtap.yaml"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let start = text.find("[\"monitor\"").expect(name);
        let list = &text[start..];
        let list = &list[..=list.find(']').unwrap()];
        let words: Vec<String> = serde_json::from_str(list).expect(name);
        let words = words.iter().map(|word| word.replace("${INTERFACE:-eth0}", "eth0"));
        let (help, errors, code) = output_of(ringtap().args(words).arg("--help"));
        assert!(code == 0 && !help.is_empty(), "{name}: {errors}");
    }
}

/// The monitor reads the sample configuration, which is installed under this name.
#[test]
fn every_key_of_the_sample_configuration_is_a_flag() {
    assert!(commands("ringtap@")[0].contains(&"/etc/ringtap/ringtap.toml".to_owned()));
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/ringtap.toml");
    let text = fs::read_to_string(&sample).unwrap();
    // An option that is off: '#', a key and its value.
    let on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase()) => rest.to_owned(),
        _ => line.to_owned(),
    };
    let all: String = text.lines().map(|line| on(line) + "\n").collect();
    let keys = |text: &str| text.parse::<toml::Table>().unwrap().len();
    assert!(keys(&text) >= 4 && keys(&all) >= 15, "{all}");
    let folder = tempfile::tempdir().unwrap();
    let with_all = folder.path().join("all.toml");
    fs::write(&with_all, all).unwrap();
    // One of the options is a filter expression.
    let with_all = have_libpcap().then_some(with_all);
    for file in [Some(sample), with_all].into_iter().flatten() {
        let mut command = ringtap();
        command.args(["monitor", "-i", "lo", "--dry-run", "--config"]).arg(&file);
        let (plan, errors, code) = output_of(command.current_dir(folder.path()));
        // Of --setup-nic, if the machine's loopback is not set up as it wants.
        let other = errors.lines().find(|line| !line.starts_with("would run: "));
        assert_eq!((other, code), (None, 0), "{}", file.display());
        assert!(plan.contains("lo by AF_PACKET"), "{}: {plan}", file.display());
    }
}

/// The example of docs/LIVE.md for 'systemctl edit', which needs its empty line.
#[test]
fn systemd_accepts_other_flags() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !have("systemd-analyze") {
        return;
    }
    let page = fs::read_to_string(root.join("docs/LIVE.md")).unwrap();
    let (_, example) = page.split_once("```ini\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let program = |text: &str| text.replace("/usr/local/bin/ringtap", PROGRAM);
    let file = folder.path().join("ringtap@lo.service");
    let text = fs::read_to_string(unit("ringtap@")).unwrap();
    assert!(text.contains("StateDirectory=ringtap-%i\n"), "a folder for each instance");
    fs::write(&file, program(&text)).unwrap();
    let change = folder.path().join("ringtap@lo.service.d");
    fs::create_dir(&change).unwrap();
    let verify = |text: &str| {
        fs::write(change.join("override.conf"), program(text)).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", "--recursive-errors=no"]).arg(&file);
        let output =
            command.env("SYSTEMD_UNIT_PATH", format!("{}:", folder.path().display())).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let twice = "more than one ExecStart";
    let errors = verify(example);
    assert!(!errors.contains("ringtap@lo.service:") && !errors.contains(twice), "{errors}");
    let errors = verify(&example.replace("ExecStart=\n", ""));
    assert!(errors.contains(twice), "{errors}");
}

/// The notification socket is connected before the sandbox and the change of the user.
#[test]
fn notifications_continue_after_the_process_has_dropped_root() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let flags = ["monitor", "-i", "right", "--user", "nobody", "--duration", "300s"];
    let mut command = net.ringtap(Right, &flags);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
    let monitor = Background::start(command, "listening: ");
    let next = || {
        let mut bytes = [0; 4096];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let first = next();
    assert!(first.starts_with("READY=1\nSTATUS=monitoring right"), "{first}");
    // The watchdog is fed without packets, too.
    for _ in 0..5 {
        assert_eq!(next(), "WATCHDOG=1");
    }
    // Under a manager a hangup does not end the run, even without files of records.
    monitor.send(Signal::HUP);
    for _ in 0..3 {
        assert_eq!(next(), "WATCHDOG=1");
    }
    monitor.interrupt();
    while next() == "WATCHDOG=1" {}
    let (_, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
}

#[test]
fn the_manager_can_use_an_abstract_socket_and_a_bad_address_is_a_warning() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("ringtap-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let run = |place: &str| {
        let mut command = ringtap();
        command.args(["monitor", "-r"]).arg(office()).env("NOTIFY_SOCKET", place);
        output_of(&mut command)
    };
    let (_, errors, code) = run(&format!("@{name}"));
    assert!(code == 0 && !errors.contains("NOTIFY_SOCKET"), "{errors}");
    let mut bytes = [0; 4096];
    let length = manager.recv(&mut bytes).unwrap();
    assert!(bytes[..length].starts_with(b"READY=1\nSTATUS=monitoring "));
    for place in ["/nowhere/at/all", "vsock:2:1234", "@"] {
        let (_, errors, code) = run(place);
        assert!(code == 0 && errors.contains("warning: NOTIFY_SOCKET="), "{place}: {errors}");
    }
}

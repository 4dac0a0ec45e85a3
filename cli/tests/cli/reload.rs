//! HUP with `--config`: a run takes up its changed configuration.

use std::fs;
use std::net::{Shutdown, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ringtap_io::live::SendOptions;
use ringtap_testkit::{Killed, send_all, soon};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, office};
use crate::export;
use crate::net::{Background, Net, NetCommands, Right, frames};

/// Writes the configuration and requests a reload; returns the message with these words.
fn reload(run: &mut Background, config: &Path, text: &str, words: &str) -> String {
    fs::write(config, text).unwrap();
    run.send(Signal::HUP);
    run.wait_for(words)
}

/// The flow records of a file, or of its continuations.
fn records(folder: &Path, name: &str) -> Vec<Value> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_own =
        |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(name);
    let text = files.filter(is_own).map(|path| fs::read_to_string(path).unwrap());
    let text = text.collect::<String>();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A collector that reads until it is dropped.
struct Collector {
    url: String,
    socket: Arc<UnixDatagram>,
    reader: JoinHandle<Vec<Vec<u8>>>,
}

impl Collector {
    fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        let socket = Arc::new(UnixDatagram::bind(&path).unwrap());
        let own = Arc::clone(&socket);
        let reader = std::thread::spawn(move || {
            let (mut all, mut bytes) = (Vec::new(), [0; 65_536]);
            while let Ok(len @ 1..) = own.recv(&mut bytes) {
                all.push(bytes[..len].to_vec());
            }
            all
        });
        Self { url: format!("ipfix+local://{}", path.display()), socket, reader }
    }

    /// All datagrams.
    fn end(self) -> Vec<Vec<u8>> {
        self.socket.shutdown(Shutdown::Both).unwrap();
        self.reader.join().unwrap()
    }
}

/// The sequence numbers of messages, and the number of those with templates.
fn sequences(messages: &[Vec<u8>]) -> (Vec<u32>, usize) {
    let (mut numbers, mut templates) = (Vec::new(), 0);
    for message in messages {
        assert_eq!(message[..2], [0, 10], "not IPFIX");
        numbers.push(u32::from_be_bytes(message[8..12].try_into().unwrap()));
        let set = u16::from_be_bytes(message[16..18].try_into().unwrap());
        templates += usize::from(set == 2);
    }
    (numbers, templates)
}

/// Checks that tshark and nfcapd read from the messages of a collector what was sent, without a gap.
fn agrees(folder: &Path, messages: &[Vec<u8>], sent: &Value) {
    let expected = export::totals(&sent["sent"]);
    if have("tshark") {
        let file = folder.join("received.ipfix");
        fs::write(&file, messages.concat()).unwrap();
        // The second: gaps of sequence numbers, too.
        let fields = [
            "_ws.malformed",
            "_ws.expert",
            "cflow.no_template_found",
            "cflow.packets",
            "cflow.octets",
        ];
        let rows = export::tshark(&file, &fields);
        assert_eq!(rows.len(), messages.len());
        let mut sums = [0; 2];
        for row in &rows {
            assert_eq!(row[..3], ["", "", ""]);
            for (sum, cells) in sums.iter_mut().zip(&row[3..]) {
                let numbers = cells.split(',').filter(|cell| !cell.is_empty());
                *sum += numbers.map(|cell| cell.parse::<u64>().unwrap()).sum::<u64>();
            }
        }
        assert_eq!(sums, expected[1..]);
    }
    if have("nfcapd") && have("nfdump") {
        let (flows, port) = (folder.join("nfcapd"), export::free_port());
        fs::create_dir(&flows).unwrap();
        let mut command = Command::new("nfcapd");
        command.args([
            "-b",
            "127.0.0.1",
            "-B",
            "8000000",
            "-t",
            "86400",
            "-p",
            &port.to_string(),
            "-w",
        ]);
        let collector = export::Collector::start(command.arg(&flows), port);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for (at, message) in messages.iter().enumerate() {
            socket.send_to(message, ("127.0.0.1", port)).unwrap();
            // Fewer than its buffer holds.
            if at % 64 == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        collector.end(port);
        assert_eq!(export::nfdump(&flows), (expected, 0));
    }
}

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

#[test]
fn outputs_lists_limits_and_the_filter_change_and_the_rest_stays() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [config, watch, allow] = ["ringtap.toml", "watch", "allow"].map(|name| folder.join(name));
    let collector = Collector::new(folder, "socket");
    let stays =
        format!("export = [{:?}]\ninterval = \"60s\"\nport-labels = \"labels\"\n", collector.url);
    fs::write(folder.join("labels"), "22/tcp before\n").unwrap();
    let with = |more: &str| format!("{stays}{more}");
    fs::write(&watch, "192.0.2.77\n").unwrap();
    fs::write(&allow, "10.9.9.9 *\n").unwrap();
    let first = format!("write = [\"json:a.json\"]\nwatch = {watch:?}\n");
    fs::write(&config, with(&first)).unwrap();
    let mut command = net.ringtap(
        Right,
        &["monitor", "-i", "right", "--config", "ringtap.toml", "--report", "json"],
    );
    command.current_dir(folder);
    let mut run = Background::start(command, "listening:");
    let all = frames(&fs::read(office()).unwrap());
    let mut parts = all.chunks(all.len().div_ceil(4));
    let mut send = || send_all(&mut net.sender(&SendOptions::default()), parts.next().unwrap());
    send();

    // A file ends and another begins; the list has an address of the capture.
    fs::write(&watch, "10.0.0.0/8 own\n192.168.0.0/16\n").unwrap();
    fs::write(folder.join("labels"), "22/tcp after\n").unwrap();
    let second = format!(
        "write = [\"json:b.json\"]\nwatch = {watch:?}\nallow = {allow:?}\nscan-threshold = 7\n"
    );
    let line = reload(&mut run, &config, &with(&second), "ringtap.toml: changed:");
    assert!(line.ends_with("changed: allow, scan-threshold, write"), "{line}");
    send();

    // Faults change nothing, and say where they are.
    for (text, words) in [
        ("write = [\"json:c.json\"]\nscan-threshold = x\n", "line 5"),
        ("write = [\"json:c.json\"]\nwatch = \"missing\"\n", "reading missing"),
        (
            "write = [\"json:c.json\"]\nidle-timeout = \"5s\"\n",
            "idle-timeout needs a restart (now not set, in the file 5s); nothing was changed; \
             a restart with resume continues the open flows; the run goes on as before",
        ),
        (
            "write = [\"json:c.json\"]\ncut = \"5s\"\nuniflow = true\nrotate = \"1h\"\n",
            "cut needs a restart (now not set, in the file 5s), rotate needs a restart (now not set, \
             in the file 1h), uniflow needs a restart (now not set, in the file true); \
             nothing was changed; a restart ends the open flows, also with resume",
        ),
        ("write = [\"json:c.json\"]\n", "needs a restart"),
        ("write = [\"json:c.json\"]\nexport = [\"ipfix-tcp://h\"]", "line 5"),
        ("write = [\"json:/proc/c.json\"]\nwatch = \"watch\"\n", "/proc/c.json"),
        ("events = [\"json:e.json\"]\nwatch = \"watch\"\n", "events"),
        ("alert-to = [\"packets:.\"]\nwatch = \"watch\"\n", "alerts to packets:. needs a restart"),
        (
            "recent = \"8M\"\nwatch = \"watch\"\n",
            "recent needs a restart (now not set, in the file 8M)",
        ),
    ] {
        let line = reload(&mut run, &config, &with(text), "reload:");
        let goes_on = line.ends_with("; the run goes on as before");
        assert!(line.contains(words) && goes_on, "{text}: {line}");
    }
    assert!(!folder.join("c.json").exists());
    send();

    // Only packets of a filter are handled.
    let third = format!("{second}filter = \"arp\"\n");
    let line = reload(&mut run, &config, &with(&third), "ringtap.toml: changed:");
    assert!(line.ends_with("changed: filter"), "{line}");
    send();
    let line = reload(&mut run, &config, &with(&third), "nothing has changed");
    assert!(line.contains("lists were read again"), "{line}");

    run.interrupt();
    let (out, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_slice(&out).unwrap();
    let flows = number(&report, "/flows/records");
    let ended = ["forced", "end_detected"];
    let ended = ended.map(|name| number(&report, &format!("/flows/end_reasons/{name}")));
    assert_eq!(ended.iter().sum::<u64>(), flows, "{}", report["flows"]);
    assert_eq!(number(&report, "/reloads"), 3);
    assert_eq!(report["ledger"]["residual"], 0, "{}", report["ledger"]);
    assert_eq!(number(&report, "/ledger/stages/0/in"), all.len() as u64, "{}", report["ledger"]);
    assert!(report["ledger"].to_string().contains("filtered"), "{}", report["ledger"]);
    assert_eq!(report["plan"]["filter"], "arp");
    assert_eq!(number(&report, "/plan/scan_threshold"), 7);
    assert!(!report["watch"]["rows"].as_array().unwrap().is_empty(), "{}", report["watch"]);
    let written = ["a.", "b."].map(|name| records(folder, name).len() as u64);
    let labels: Vec<_> =
        records(folder, "b.").iter().map(|record| record["application"].clone()).collect();
    assert!(labels.contains(&"after".into()) && !labels.contains(&"before".into()), "{labels:?}");
    assert!(written[1] > 0 && written.iter().sum::<u64>() == flows, "{written:?} {flows}");
    let outputs: Vec<_> = report["write"].as_array().unwrap().iter().collect();
    assert_eq!(outputs.iter().map(|own| number(own, "/records")).sum::<u64>(), flows);
    // The connection that stayed has one run of sequence numbers, and its templates once.
    let messages = collector.end();
    agrees(folder, &messages, &report["export"][0]);
    let (numbers, templates) = sequences(&messages);
    assert!(numbers.is_sorted() && numbers[0] == 0, "{numbers:?}");
    assert_eq!(number(&report["export"][0], "/sent/records"), flows);
    assert!(templates <= 8, "{templates}");
}

#[test]
fn a_collector_changes_at_full_rate_and_no_record_is_lost() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (reloads, pause_ms) =
        if std::env::var_os("RINGTAP_FULL").is_some() { (100, 3_000) } else { (12, 300) };
    let config = folder.join("ringtap.toml");
    let collectors = ["one", "two", "three"].map(|name| Collector::new(folder, name));
    let [one, two, three] = &collectors.each_ref().map(|own| own.url.clone());
    fs::write(folder.join("watch0"), "10.0.0.1\n").unwrap();
    fs::write(folder.join("watch1"), "10.0.0.0/8\nexample.org\n").unwrap();
    let text = |turn: usize| {
        let other = if turn % 4 < 2 { two } else { three };
        let filter = if turn % 4 == 3 { "filter = \"not port 7\"\n" } else { "" };
        format!(
            "export = [{one:?}, {other:?}]\nwatch = \"watch{}\"\nscan-threshold = {}\n{filter}",
            turn % 2,
            20 + turn % 3
        )
    };
    fs::write(&config, text(0)).unwrap();
    let flags = ["monitor", "-i", "right", "--config", "ringtap.toml", "--report", "json"];
    let flags = [&flags[..], &["--idle-timeout", "1s", "-w", "2"]].concat();
    let mut command = net.ringtap(Right, &flags);
    command.current_dir(folder);
    let mut run = Background::start(command, "listening:");
    let pid = run.child.id();
    let all = frames(&fs::read(office()).unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = net.sender(&SendOptions::default());
            while !stop.load(Ordering::Relaxed) {
                send_all(&mut sender, &all);
            }
        });
        for turn in 1..=reloads {
            std::thread::sleep(Duration::from_millis(pause_ms));
            reload(&mut run, &config, &text(turn), "ringtap.toml: changed:");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(run.child.id(), pid);
    run.interrupt();
    let (out, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(number(&report, "/reloads"), reloads as u64);
    assert_eq!(report["ledger"]["residual"], 0, "{}", report["ledger"]);
    let flows = number(&report, "/flows/records");
    // The first collector got or lost each record; so did both others together.
    let of = |url: &str| {
        let export = report["export"].as_array().unwrap();
        let own = export.iter().find(|own| own["collector"] == url).unwrap();
        let lost = own["not_sent"].as_object().unwrap().values();
        number(own, "/sent/records") + lost.map(|lost| number(lost, "/records")).sum::<u64>()
    };
    assert_eq!(of(one), flows);
    assert_eq!(of(two) + of(three), flows);
    // No sequence number of the collector that stays begins anew.
    let messages = collectors.map(Collector::end);
    let export = report["export"].as_array().unwrap();
    agrees(folder, &messages[0], export.iter().find(|own| own["collector"] == **one).unwrap());
    let [one, two, three] = messages.each_ref().map(|own| sequences(own));
    assert!(one.0.is_sorted() && one.0[0] == 0, "{:?}", one.0);
    assert!(one.1 < two.1 && one.1 < three.1, "templates: {} {} {}", one.1, two.1, three.1);
}

#[test]
fn an_output_that_begins_removes_old_files_of_those_before() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = folder.join("ringtap.toml");
    let text = |write: &str| format!("keep-free = \"99.99%\"\nwrite = [{write}]\n");
    fs::write(&config, text("\"json:a-%s.json\", \"json:c.json\"")).unwrap();
    let flags = ["monitor", "-i", "right", "--config", "ringtap.toml"];
    let mut command = net.ringtap(Right, &flags);
    command.current_dir(folder);
    let mut run = Background::start(command, "listening:");
    let changed = "ringtap.toml: changed:";
    let line = reload(&mut run, &config, &text("\"json:b-%s.json\", \"json:c.json\""), changed);
    assert!(line.ends_with("changed: write"), "{line}");
    // No disk is that free, so all old files of outputs are removed when a file of one begins.
    let old = ["a-1.json", "b-2.json", "d-4.json"].map(|name| folder.join(name));
    old.iter().for_each(|path| fs::write(path, "{}\n").unwrap());
    reload(&mut run, &config, &text("\"json:b-%s.json\", \"json:e.json\""), changed);
    assert!(soon(|| !old[0].exists() && !old[1].exists()) && old[2].exists());
    run.interrupt();
    let (_, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
}

#[test]
fn a_file_of_alerts_without_an_alert_is_removed_with_its_output() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = folder.join("ringtap.toml");
    let text = |places: &str| format!("alert-to = [{places}]\n");
    fs::write(folder.join("c.json"), "").unwrap();
    fs::write(&config, text("\"json:a.json\", \"json:c.json\"")).unwrap();
    let flags = ["monitor", "-i", "right", "--config", "ringtap.toml"];
    let mut command = net.ringtap(Right, &flags);
    command.current_dir(folder);
    let mut run = Background::start(command, "listening:");
    let has = |name: &str| folder.join(name).exists();
    assert!(has("a.json"));
    let changed = "ringtap.toml: changed:";
    reload(&mut run, &config, &text("\"json:b.json\", \"json:c.json\""), changed);
    assert!(soon(|| !has("a.json")) && has("b.json"));
    // With a fault the new file is removed, and the one that stays is not.
    let line =
        reload(&mut run, &config, &text("\"json:d.json\", \"json:/proc/e.json\""), "reload:");
    assert!(line.contains("/proc/e.json"), "{line}");
    assert!(soon(|| !has("d.json")) && has("b.json") && has("c.json"));
    // One that was there before stays.
    reload(&mut run, &config, &text("\"json:f.json\""), changed);
    assert!(soon(|| !has("b.json")) && has("c.json") && has("f.json"));
    run.interrupt();
    let (_, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
    // A run that ends leaves it, as without a reload.
    assert!(has("f.json") && has("c.json") && !has("b.json"));
}

#[test]
fn certificates_that_are_renewed_under_their_paths_are_used() {
    if !have("openssl") {
        return;
    }
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    for name in ["one", "two"] {
        let mut command = Command::new("openssl");
        command.args(request.split_whitespace()).current_dir(folder);
        command.args(["-subj", &format!("/CN={name}"), "-keyout", &format!("{name}.key")]);
        let made = command.args(["-out", &format!("{name}.pem")]).output().unwrap();
        assert!(made.status.success());
    }
    let renew = |name: &str| {
        for kind in ["key", "pem"] {
            fs::copy(folder.join(format!("{name}.{kind}")), folder.join("next")).unwrap();
            fs::rename(folder.join("next"), folder.join(format!("used.{kind}"))).unwrap();
        }
    };
    let serve = |name: &str| {
        let mut command = net.program(Right, "openssl");
        command.current_dir(folder).args(["s_server", "-quiet", "-accept", "4740"]);
        command.args(["-cert", &format!("{name}.pem"), "-key", &format!("{name}.key")]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Killed(command.spawn().unwrap())
    };
    let page = || {
        let mut command = net.program(Right, "openssl");
        command.args(["s_client", "-connect", "127.0.0.1:8080"]).stdin(Stdio::null());
        let shown = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let subject = shown.lines().find_map(|line| line.strip_prefix("subject="));
        subject.unwrap_or_default().replace(' ', "")
    };
    renew("one");
    let server = serve("one");
    let config = folder.join("ringtap.toml");
    let text = "export = [\"ipfix+tls://127.0.0.1:4740\"]\nweb = \"127.0.0.1:8080\"\n\
                tls-ca = \"used.pem\"\ntls-cert = \"used.pem\"\ntls-key = \"used.key\"\n";
    fs::write(&config, text).unwrap();
    let flags = ["monitor", "-i", "right", "--config", "ringtap.toml", "--report", "json"];
    let mut command = net.ringtap(Right, &flags);
    command.current_dir(folder);
    let mut run = Background::start(command, "listening:");
    assert_eq!(page(), "CN=one");
    reload(&mut run, &config, text, "nothing has changed");
    // A file that cannot be used changes nothing, and is tried again.
    fs::write(folder.join("used.key"), "none").unwrap();
    let line = reload(&mut run, &config, text, "reload:");
    assert!(line.contains("used.key") && page() == "CN=one", "{line}");
    renew("two");
    let line = reload(&mut run, &config, text, "ringtap.toml: changed:");
    let files = ["tls-ca", "tls-cert", "tls-key"].map(|key| format!("the file of {key}"));
    assert!(line.ends_with(&format!("changed: {}", files.join(", "))), "{line}");
    assert_eq!(page(), "CN=two");
    reload(&mut run, &config, text, "nothing has changed");
    // Its certificate is that of the new authority alone.
    drop(server);
    let _server = serve("two");
    send_all(&mut net.sender(&SendOptions::default()), &frames(&fs::read(office()).unwrap()));
    run.interrupt();
    let (out, errors, code) = run.end();
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_slice(&out).unwrap();
    let flows = number(&report, "/flows/records");
    assert!(flows > 0 && number(&report["export"][0], "/sent/records") == flows, "{report}");
}

//! An hour of the working day: what happens in it is found by few alerts, by the page, and by questions to the store.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringtap_testkit::request;
use serde_json::{Value, json};

use crate::common::{output_of, ringtap};
use crate::formats::tool;
use crate::net::Background;

type Host = [u8; 4];

/// 2026-11-18T09:00:00Z.
const NINE: u64 = 1_794_992_400;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;

const DNS: Host = [10, 1, 0, 2];
const FAST: Host = [10, 1, 0, 3];
const SLOW: Host = [10, 1, 0, 4];
const FILES: Host = [10, 1, 0, 5];
const CONFUSED: Host = [10, 1, 0, 23];
const LAPTOP: Host = [10, 1, 0, 77];
const SCANNER: Host = [198, 51, 100, 7];
const CLOUD: Host = [203, 0, 113, 200];

const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 2;
const RST: u8 = 4;
const PUSH: u8 = 0x18;
const ACK: u8 = 0x10;
const FIN: u8 = 0x11;

/// Frames with their microseconds since nine, and their lengths on the wire.
struct Hour {
    frames: Vec<(u64, Vec<u8>, usize)>,
    /// Of the next random number.
    seed: u64,
    /// Of the next connection.
    port: u16,
}

impl Hour {
    /// The hour of this seed.
    fn new(seed: u64) -> Self {
        let mut hour = Self { frames: Vec::new(), seed, port: 40_000 };
        for host in 10..60 {
            hour.works([10, 1, 0, host]);
        }
        // A name that does not exist any more.
        for turn in 0..300 {
            hour.lookup(
                turn * 12 * SECOND + 5 * SECOND,
                CONFUSED,
                "updates.old-vendor.example",
                false,
            );
        }
        // The file server is not busy.
        for turn in 0..6 {
            hour.lookup(turn * 10 * MINUTE + MINUTE, FILES, "www.example", true);
        }
        // A scanner looks for file servers, from 9:20 on.
        for host in (1..=201).filter(|host| *host != LAPTOP[3]) {
            let at = 20 * MINUTE + u64::from(host) * SECOND / 10;
            hour.segment(at, (SCANNER, 54_321), ([10, 1, 0, host], 445), SYN, [1, 0], b"", 0);
        }
        // From 9:30 to 9:40 the server waits for its database.
        for turn in 0..120 {
            let at = 30 * MINUTE + turn * 5 * SECOND;
            let client = [10, 1, 0, 10 + hour.number(50) as u8];
            hour.web(at, client, SLOW, 1_500_000);
        }
        // A laptop comes at 9:42, and scans the slow server, which has a port that was not in use.
        let at = 42 * MINUTE;
        hour.lookup(at, LAPTOP, "www.example", true);
        for port in 1..=1_000 {
            let at = at + 3 * SECOND + u64::from(port) * SECOND / 100;
            if port != 222 {
                hour.segment(at, (LAPTOP, 61_000), (SLOW, port), SYN, [1, 0], b"", 0);
                continue;
            }
            hour.segment(at, (LAPTOP, 61_000), (SLOW, port), SYN, [1, 0], b"", 0);
            hour.segment(at + 300, (SLOW, port), (LAPTOP, 61_000), SYN | ACK, [9, 2], b"", 0);
            hour.segment(at + 400, (LAPTOP, 61_000), (SLOW, port), RST, [2, 0], b"", 0);
        }
        // A backup of 60 MB at 9:50, out of the house.
        hour.backup(50 * MINUTE + 2 * SECOND, FILES, CLOUD);
        hour.frames.sort_by_key(|(us, ..)| *us);
        hour
    }

    /// A number below another one (Knuth's linear congruential generator).
    fn number(&mut self, below: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn packet(
        &mut self,
        us: u64,
        protocol: u8,
        ends: [(Host, u16); 2],
        rest: &[u8],
        padding: usize,
    ) {
        let [(source, from), (destination, to)] = ends;
        let len = 24 + rest.len() + padding;
        let mut frame =
            vec![2, 0, 0, 0, 0, destination[3], 2, 0, 0, 0, 0, source[3], 8, 0, 0x45, 0];
        frame.extend((len as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend([source, destination].concat());
        frame.extend([from, to].map(u16::to_be_bytes).concat());
        frame.extend(rest);
        self.frames.push((us, frame, 14 + len));
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of a segment")]
    fn segment(
        &mut self,
        us: u64,
        from: (Host, u16),
        to: (Host, u16),
        flags: u8,
        numbers: [u32; 2],
        data: &[u8],
        padding: usize,
    ) {
        let mut rest = numbers.map(u32::to_be_bytes).concat();
        rest.extend([0x50, flags, 4, 0, 0, 0, 0, 0]);
        rest.extend(data);
        self.packet(us, TCP, [from, to], &rest, padding);
    }

    fn datagram(&mut self, us: u64, from: (Host, u16), to: (Host, u16), data: &[u8]) {
        let mut rest = (8 + data.len() as u16).to_be_bytes().to_vec();
        rest.extend([0, 0]);
        rest.extend(data);
        self.packet(us, UDP, [from, to], &rest, 0);
    }

    fn next_port(&mut self) -> u16 {
        self.port = if self.port == 60_000 { 40_000 } else { self.port + 1 };
        self.port
    }

    /// A question for an address, and its answer after a millisecond.
    fn lookup(&mut self, us: u64, host: Host, name: &str, exists: bool) {
        let (port, id) = (self.next_port(), self.number(65_536) as u16);
        let labels =
            name.split('.').flat_map(|label| [&[label.len() as u8][..], label.as_bytes()].concat());
        let question: Vec<u8> = labels.chain([0, 0, 1, 0, 1]).collect();
        let message = |flags: [u8; 2], answers: u8, rest: &[u8]| {
            let head = [&id.to_be_bytes()[..], &flags, &[0, 1, 0, answers, 0, 0, 0, 0]].concat();
            [&head, &question[..], rest].concat()
        };
        self.datagram(us, (host, port), (DNS, 53), &message([1, 0], 0, &[]));
        let address = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 10];
        let answer =
            if exists { message([0x81, 0x80], 1, &address) } else { message([0x81, 0x83], 0, &[]) };
        self.datagram(us + 1_000, (DNS, 53), (host, port), &answer);
    }

    /// A connection with a request, whose response comes after a time, and these octets of it.
    fn connection(
        &mut self,
        us: u64,
        host: Host,
        to: (Host, u16),
        texts: [&[u8]; 2],
        wait_us: u64,
        octets: usize,
    ) {
        let from = (host, self.next_port());
        let [request, response] = texts;
        let asked = 101 + request.len() as u32;
        let sent = 501 + (response.len() + octets) as u32;
        let answered = us + 700 + wait_us;
        self.segment(us, from, to, SYN, [100, 0], b"", 0);
        self.segment(us + 500, to, from, SYN | ACK, [500, 101], b"", 0);
        self.segment(us + 600, from, to, ACK, [101, 501], b"", 0);
        self.segment(us + 700, from, to, PUSH, [101, 501], request, 0);
        self.segment(answered, to, from, PUSH, [501, asked], response, octets);
        self.segment(answered + 200, from, to, FIN, [asked, sent], b"", 0);
        self.segment(answered + 700, to, from, FIN, [sent, asked + 1], b"", 0);
        self.segment(answered + 800, from, to, ACK, [asked + 1, sent + 1], b"", 0);
    }

    fn web(&mut self, us: u64, host: Host, server: Host, wait_us: u64) {
        let request = b"GET / HTTP/1.1\r\nHost: intranet.example\r\n\r\n";
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n";
        self.connection(us, host, (server, 80), [request, response], wait_us, 600);
    }

    /// An hour of a host: names, pages of the house and of others.
    fn works(&mut self, host: Host) {
        let mut at = self.number(MINUTE);
        while at < 60 * MINUTE {
            self.lookup(at, host, "www.example", true);
            let octets = 2_000 + self.number(40_000) as usize;
            let other = [203, 0, 113, 10 + self.number(20) as u8];
            self.connection(at + 2_000, host, (other, 443), [&[1; 200], &[2; 100]], 20_000, octets);
            let server = if self.number(2) == 0 { FAST } else { SLOW };
            let wait = 10_000 + self.number(20_000);
            self.web(at + 90_000, host, server, wait);
            at += 30 * SECOND + self.number(MINUTE);
        }
    }

    fn backup(&mut self, us: u64, host: Host, to: Host) {
        let (from, to) = ((host, self.next_port()), (to, 443));
        self.segment(us, from, to, SYN, [0, 0], b"", 0);
        self.segment(us + 9_000, to, from, SYN | ACK, [0, 1], b"", 0);
        let octets = 60_000;
        for number in 0..1_000_u32 {
            let at = us + 10_000 + u64::from(number) * 30_000;
            self.segment(at, from, to, ACK, [1 + number * octets, 1], b"", octets as usize);
            self.segment(at + 9_000, to, from, ACK, [1, 1 + (number + 1) * octets], b"", 0);
        }
    }

    /// The capture file; of each frame the first 400 octets.
    fn file(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 400, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for (us, frame, length) in &self.frames {
            let captured = &frame[..frame.len().min(400)];
            let words = [NINE + us / SECOND, us % SECOND, captured.len() as u64, *length as u64];
            words.into_iter().for_each(|word| bytes.extend((word as u32).to_le_bytes()));
            bytes.extend(captured);
        }
        bytes
    }
}

fn text(host: Host) -> String {
    host.map(|octet| octet.to_string()).join(".")
}

/// The flags of the walk in docs/MONITOR.md.
fn flags(page: &str) -> Vec<String> {
    let line = page
        .lines()
        .find(|line| line.starts_with("ringtap monitor") && line.contains("new-device=30m"));
    let line = line.expect("the command of the walk");
    line.split(' ').skip(4).map(str::to_owned).collect()
}

/// The rows of a table of the page.
fn api(address: SocketAddr, target: &str) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let get = format!("GET /api/{target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let answer = request(address, &get);
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let document: Value =
            serde_json::from_str(body).unwrap_or_else(|_| panic!("{target}: {answer}"));
        if document["state"] == "complete" {
            return document["rows"].as_array().unwrap().clone();
        }
        assert!(Instant::now() < deadline, "{target}: {document}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What is found in the hour.
struct Found {
    /// The last change of each alert, by kind.
    alerts: BTreeMap<String, Vec<Value>>,
}

impl Found {
    /// Of the files of this name, which are rotated as those of the store.
    fn of(folder: &Path, name: &str) -> Self {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let is_own = |path: &PathBuf| path.file_stem().is_some_and(|own| own == name);
        let mut all = Vec::<Value>::new();
        for path in files.filter(is_own) {
            let text = fs::read_to_string(path).unwrap();
            all.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
        let is_end = |alert: &Value| alert["state"] == "ends";
        all.sort_by_key(|alert| (is_end(alert), alert["time"].to_string()));
        let last: BTreeMap<_, _> =
            all.into_iter().map(|alert| (alert["id"].as_u64().unwrap(), alert)).collect();
        assert!(last.len() <= 10, "{last:?}");
        let mut alerts = BTreeMap::<String, Vec<Value>>::new();
        for alert in last.into_values() {
            alerts.entry(alert["kind"].as_str().unwrap().to_owned()).or_default().push(alert);
        }
        Self { alerts }
    }

    /// The only alert of a kind.
    fn only(&self, kind: &str) -> &Value {
        let [alert] = &self.alerts[kind][..] else { panic!("{kind}: {:?}", self.alerts) };
        alert
    }
}

#[test]
fn an_hour_has_few_alerts_and_each_is_true() {
    let Some(engine) = tool("venv/bin/duckdb").map(|path| fs::canonicalize(path).unwrap()) else {
        return;
    };
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/MONITOR.md"))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("networks.txt"), "10.1.0.0/16 office\n").unwrap();
    fs::write(path("list.txt"), format!("{}  laptop that is missing\n", text(LAPTOP))).unwrap();
    let hour = Hour::new(7);
    let program = env!("CARGO_BIN_EXE_ringtap");
    let mut command = Command::new(program);
    command.current_dir(folder.path()).env("NO_COLOR", "1").env_remove("RINGTAP_LOG");
    command.env("RINGTAP_DUCKDB", &engine).args(["monitor", "-r", "-"]).args(flags(&page));
    command.args(["--alert-to=json:alerts", "--web=0", "--report=json"]).stdin(Stdio::piped());
    let mut monitor = Background::without_words(command);
    let line = monitor.wait_for("page: ");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let mut input = monitor.child.stdin.take().unwrap();
    input.write_all(&hour.file()).unwrap();
    input.flush().unwrap();

    // By the page, while the run goes on.
    let deadline = Instant::now() + Duration::from_secs(60);
    let backup = "hosts?from=2026-11-18T09:50&until=2026-11-18T09:51&rows=10";
    while api(address, backup).first().is_none_or(|row| row["host"] != text(FILES)) {
        assert!(Instant::now() < deadline, "{:?}", api(address, backup));
        std::thread::sleep(Duration::from_millis(50));
    }
    let of = |table: &str, view: &str| {
        api(
            address,
            &format!("{table}?from=2026-11-18T09:00&until=2026-11-18T10:00&rows=1000&{view}"),
        )
    };
    let hosts = api(address, backup);
    assert!(hosts[0]["sent"].as_u64() > Some(59_000_000), "{hosts:?}");
    assert_eq!(of("failed", &format!("host={}", text(SCANNER))).len(), 200);
    let failed = of("failed", &format!("host={}", text(LAPTOP)));
    assert!(
        failed.len() == 999 && failed.iter().all(|row| row["server"] == text(SLOW)),
        "{}",
        failed.len()
    );
    let first = of("flows", &format!("host={}", text(LAPTOP)));
    let time = |row: &Value| {
        row.get("start").or(row.get("end")).and_then(Value::as_str).map(str::to_owned)
    };
    let is_late = |row: &Value| time(row).is_some_and(|time| &*time >= "2026-11-18T09:42:00");
    assert!(first.len() == 1_000 && first.iter().all(is_late), "{:?}", first.first());
    let ports = of("ports", &format!("host={}&by=flows", text(SLOW)));
    assert!(ports.iter().any(|row| row["port"] == 222), "{ports:?}");
    let names = of("names", &format!("host={}&by=flows", text(CONFUSED)));
    assert_eq!(names[0]["name"], "updates.old-vendor.example");
    let long = of("long", "port=80");
    let slow: Vec<_> = long.iter().take(100).map(|row| &row["destination"]).collect();
    assert!(slow.len() == 100 && slow.iter().all(|host| **host == json!(text(SLOW))), "{slow:?}");
    drop(input);
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");

    // By alerts.
    let found = Found::of(folder.path(), "alerts");
    let kinds: Vec<_> = found.alerts.keys().map(String::as_str).collect();
    let expected = [
        "horizontal_scan",
        "new_device",
        "new_server_port",
        "vertical_scan",
        "volume_change",
        "watched",
    ];
    assert_eq!(kinds, expected, "{:?}", found.alerts);
    let sweep = found.only("horizontal_scan");
    assert_eq!(
        json!([sweep["source"], sweep["port"], sweep["number"]]),
        json!([text(SCANNER), 445, 200])
    );
    let scan = found.only("vertical_scan");
    assert_eq!(
        json!([scan["source"], scan["target"], scan["number"]]),
        json!([text(LAPTOP), text(SLOW), 999])
    );
    let device = found.only("new_device");
    assert_eq!(
        (&device["host"], &device["since"]),
        (&json!(text(LAPTOP)), &json!("2026-11-18T09:42:00.000000000Z"))
    );
    let port = found.only("new_server_port");
    assert_eq!((&port["host"], &port["services"]), (&json!(text(SLOW)), &json!(["222/tcp"])));
    let volume = found.only("volume_change");
    assert_eq!((&volume["host"], &volume["median"]), (&json!(text(FILES)), &json!(0)));
    assert!(volume["number"].as_u64() > Some(59_000_000), "{volume}");
    assert_eq!(found.only("watched")["entry"], text(LAPTOP));

    // By the report.
    let report: Value = serde_json::from_slice(&report).unwrap();
    let slowest = &report["tcp"]["slowest_responses"][0];
    assert_eq!((&slowest["server"], &slowest["exchange"]), (&json!(text(SLOW)), &json!("http")));
    assert!(slowest["p95_us"].as_u64() > Some(1_400_000), "{slowest}");
    assert_eq!(report["names"]["dns_failed"][0]["name"], "updates.old-vendor.example");

    // By questions: those of the walk, and that of each alert.
    let ask = |question: &str| -> Vec<Value> {
        let line = format!("\"$0\" query hour {question} --output json");
        let mut shell = assert_cmd::Command::new("sh");
        shell
            .current_dir(folder.path())
            .env("RINGTAP_DUCKDB", &engine)
            .arg("-c")
            .arg(&line)
            .arg(program);
        let (out, errors, code) = output_of(&mut shell);
        assert_eq!(code, 0, "{line}: {errors}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for alert in found.alerts.values().flatten() {
        let query = alert["query"].as_str().unwrap();
        assert!(!ask(query).is_empty(), "{alert}");
    }
    let walk: Vec<_> = page.lines().filter(|line| line.contains("ringtap query hour ")).collect();
    let questions = walk
        .iter()
        .map(|line| line.split("ringtap query hour ").nth(1).unwrap().split('`').next().unwrap());
    let answers: Vec<_> = questions.map(ask).collect();
    assert_eq!(answers.len(), 7, "{walk:?}");
    let first =
        |number: usize, column: &str| answers[number].first().map(|row| row[column].clone());
    assert_eq!(first(0, "connections"), Some(json!(1)));
    assert_eq!(answers[0].len(), 200);
    assert_eq!(answers[1].len(), 999);
    assert_eq!(first(2, "flowStartMilliseconds"), Some(json!("2026-11-18T09:42:00.000Z")));
    assert_eq!(first(3, "destinationTransportPort"), Some(json!(222)));
    assert_eq!(first(4, "server"), Some(json!(text(SLOW))));
    assert_eq!(first(5, "name"), Some(json!("updates.old-vendor.example")));
    assert_eq!(first(6, "host"), Some(json!(text(FILES))));
}

/// The same seed gives the same alerts, in any arrangement.
#[test]
fn an_hour_has_the_same_alerts_in_every_arrangement() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("hour.pcap"), Hour::new(8).file()).unwrap();
    let flags = ["new-device=30m", "new-server-port=30m", "volume-change=10", "volume-floor=20M"];
    let flags = flags.map(|limit| format!("--alert={limit}"));
    let alerts = |more: &[&str]| {
        let mut command = ringtap();
        command.current_dir(folder.path()).args(["monitor", "-q", "-r", "hour.pcap"]).args(&flags);
        command.args(["--alert-to=json:-", "--report=json"]).args(more);
        let (out, errors, code) = output_of(&mut command);
        assert_eq!(code, 0, "{errors}");
        out
    };
    let expected = alerts(&["--sequential"]);
    assert_eq!(expected.lines().count(), 10, "{expected}");
    for more in
        [&["--queues=2"][..], &["--skeleton=farm", "-w=3"], &["--skeleton=pipeline", "-w=2"]]
    {
        assert_eq!(alerts(more), expected, "{more:?}");
    }
}

//! Tests of export to Kafka: with a broker if `RINGTAP_FULL` is 1, and with peers that are none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use ringtap_testkit::kafka::{Broker, PASSWORD, USER};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{office, output_of, ringtap};

/// The longest wait for a line, which fails the test.
const LONGEST: Duration = Duration::from_secs(60);

/// The report of a run over the bundled capture with these flags, stderr and the exit code.
pub(crate) fn monitor(flags: &[&str]) -> (Value, String, i32) {
    let mut command = ringtap();
    command.args(["monitor", "-q", "--report", "json", "-r"]).arg(office()).args(flags);
    let (report, errors, code) = output_of(&mut command);
    (serde_json::from_str(&report).unwrap_or_default(), errors, code)
}

/// A message: partition, key, value and headers.
pub(crate) struct Message {
    pub(crate) partition: usize,
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
    pub(crate) headers: BTreeMap<String, String>,
}

impl Message {
    fn sequence(&self) -> u64 {
        self.headers["sequence"].parse().unwrap()
    }
}

/// All messages of a topic without statistics and repetitions, as docs/OUTPUTS.md removes them: in each partition, a
/// message of a run is new if its number is above those before it. Also the number of repetitions.
pub(crate) fn messages(broker: &Broker, topic: &str) -> (Vec<Message>, usize) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (mut new, mut repeated) = (Vec::new(), 0);
    for (partition, records) in broker.read(topic).into_iter().enumerate() {
        let mut last = BTreeMap::new();
        for record in records {
            let headers = record.headers.into_iter().map(|(name, value)| (name, text(value)));
            let (key, value) = (text(record.key.unwrap()), record.value.unwrap());
            let message = Message { partition, key, value, headers: headers.collect() };
            if message.headers["format"] == "statistics" {
                continue;
            }
            let (run, number) = (message.headers["run"].clone(), message.sequence());
            if last.get(&run).is_none_or(|&last| number > last) {
                last.insert(run, number);
                new.push(message);
            } else {
                repeated += 1;
            }
        }
    }
    (new, repeated)
}

/// Checks the numbers: all are there, and one run wrote them.
fn check_numbers(messages: &[Message]) {
    let numbers: BTreeSet<u64> = messages.iter().map(Message::sequence).collect();
    assert!(numbers.into_iter().eq(0..messages.len() as u64));
    let runs: BTreeSet<_> = messages.iter().map(|message| &message.headers["run"]).collect();
    assert_eq!(runs.len(), 1);
}

fn lines(path: &Path) -> Vec<String> {
    let mut lines: Vec<_> = fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The values of JSON messages without the name of the probe, sorted.
fn values(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| {
        let text = String::from_utf8(message.value.clone()).unwrap();
        let probe =
            format!(",\"probe\":{}}}", serde_json::to_string(&message.headers["probe"]).unwrap());
        text.strip_suffix(&probe).expect(&text).to_owned() + "}"
    };
    let mut values: Vec<_> = messages.iter().map(text).collect();
    values.sort();
    values
}

/// The numbers in the fields `bytes` and `packets` of a message of protobuf after its length.
fn counts(value: &[u8]) -> [u64; 2] {
    let mut rest = value;
    let varint = |rest: &mut &[u8]| {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (first, after) = rest.split_first().unwrap();
            *rest = after;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    };
    assert_eq!(varint(&mut rest), rest.len() as u64, "the length of the message");
    let mut counts = [0; 2];
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let number = varint(&mut rest);
        match tag {
            72 => counts[0] = number,
            80 => counts[1] = number,
            _ if tag & 7 == 2 => rest = &rest[number as usize..],
            _ => {}
        }
    }
    counts
}

#[test]
fn messages_of_both_formats_are_the_records_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(folder.path()) else { return };
    broker.create("json", 4);
    broker.create("protobuf", 3);
    let file = folder.path().join("flows.json");
    let write = format!("json:{}", file.display());
    // One of two brokers is down.
    let down = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let json = format!("kafka://{down},{}/json?compression=snappy", broker.address());
    let protobuf =
        format!("kafka://{}/protobuf?format=protobuf&compression=gzip", broker.address());
    let flags = ["--write", &write, "--export", &json, "--export", &protobuf, "-w", "2"];
    let (report, errors, code) = monitor(&flags);
    assert_eq!((code, errors.as_str()), (0, ""));

    let (messages_json, repeated) = messages(&broker, "json");
    assert_eq!((values(&messages_json), repeated), (lines(&file), 0));
    check_numbers(&messages_json);
    let partitions: BTreeSet<_> = messages_json.iter().map(|one| one.partition).collect();
    assert_eq!(partitions.len(), 4);
    let mut partition_of = BTreeMap::new();
    for message in &messages_json {
        let record: Value = serde_json::from_slice(&message.value).unwrap();
        assert_eq!(record["communityId"], message.key.as_str());
        assert_eq!(message.headers["format"], "json");
        let partition = *partition_of.entry(&message.key).or_insert(message.partition);
        assert_eq!(partition, message.partition, "the messages of a key are in one partition");
    }

    let (messages_protobuf, _) = messages(&broker, "protobuf");
    check_numbers(&messages_protobuf);
    let keys = |messages: &[Message]| -> BTreeSet<String> {
        messages.iter().map(|message| message.key.clone()).collect()
    };
    assert_eq!(keys(&messages_protobuf), keys(&messages_json));
    let all = messages_protobuf.iter().map(|message| counts(&message.value));
    let sum = all.fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    let [sent_json, sent_protobuf] = [0, 1].map(|at| &report["export"][at]["sent"]);
    for sent in [sent_json, sent_protobuf] {
        assert_eq!([&sent["octets"], &sent["packets"]], [sum[0], sum[1]]);
        assert_eq!(sent["records"], sent["messages"]);
    }
    assert_eq!(sent_json["records"], report["flows"]["records"]);
    assert_eq!(sent_json["records"], messages_json.len());
    assert_eq!(sent_protobuf["records"], messages_protobuf.len());
    assert!(messages_protobuf.len() > messages_json.len());
}

#[test]
fn logins_and_certificates_are_used_and_their_errors_reported() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(folder.path()) else { return };
    broker.create("flows", 1);
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("password"), format!("{PASSWORD}\n")).unwrap();
    fs::write(path("wrong"), "battery staple").unwrap();
    let login = |mechanism: &str, password: &str| {
        let (address, file) = (broker.login_address(), path(password));
        format!("kafka://{address}/flows?sasl={mechanism}&user={USER}&password-file={file}")
    };
    let tls = format!("kafka://{}/flows?tls=true", broker.tls_address());
    let trusted = format!("{tls}&ca={}", broker.certificate().display());

    let good = [login("plain", "password"), login("scram-sha-512", "password"), trusted];
    for url in &good {
        let (report, errors, code) = monitor(&["--export", url]);
        assert_eq!((code, errors.as_str()), (0, ""), "{url}");
        assert_eq!(report["export"][0]["sent"]["records"], report["flows"]["records"]);
    }
    let (received, _) = messages(&broker, "flows");
    let (report, ..) = monitor(&[]);
    assert_eq!(received.len() as u64, 3 * report["flows"]["records"].as_u64().unwrap());

    let bad = [
        (login("plain", "wrong"), "refused the user or the password"),
        (login("scram-sha-512", "wrong"), "refused the user or the password"),
        (login("scram-sha-256", "password"), "does not support this mechanism"),
        (tls.replace("tls=true", "format=json"), "is tls=true missing"),
        (tls, "unknown authority (add the authority with ca=FILE)"),
        (format!("kafka://{}/flows", broker.login_address()), "or a login"),
        (format!("kafka://{}/none", broker.address()), "topic none does not exist"),
    ];
    let flags: Vec<_> = bad.iter().flat_map(|(url, _)| ["--export", url]).collect();
    let (report, errors, code) = monitor(&flags);
    assert_eq!(code, 1, "{errors}");
    for ((url, words), export) in bad.iter().zip(report["export"].as_array().unwrap()) {
        let line = format!("error: writing to {url}: ");
        let line = errors.lines().find(|text| text.starts_with(&line)).expect(&line);
        assert!(line.contains(words), "{line}");
        assert_eq!(export["not_sent"]["too_late"]["records"], report["flows"]["records"]);
    }
}

/// A monitor of stdin.
pub(crate) struct Fed {
    child: Child,
    /// The lines of stderr, from a thread that reads them.
    lines: Receiver<String>,
    /// The lines so far.
    errors: String,
}

impl Fed {
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
        command.args(["monitor", "-r", "-", "--report", "json", "-w", "1"]).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines, errors: String::new() }
    }

    /// Waits until a line of stderr contains `words`.
    pub(crate) fn wait_for(&mut self, words: &str) {
        let mut found = false;
        while !found {
            let line = self.lines.recv_timeout(LONGEST);
            let line = line.unwrap_or_else(|_| panic!("no line with {words:?}: {}", self.errors));
            found = line.contains(words);
            self.errors += &(line + "\n");
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Ends the input.
    pub(crate) fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends the input, and returns the report, stderr and the exit code.
    pub(crate) fn end(mut self) -> (Value, String, i32) {
        self.close();
        let output = self.child.wait_with_output().unwrap();
        let errors = self.lines.iter().fold(self.errors, |errors, line| errors + &line + "\n");
        let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (report, errors, output.status.code().unwrap())
    }
}

/// Monitors a capture while `fault` interrupts the broker, which works again afterwards. Each record must arrive once,
/// after the repetitions are removed.
fn check_fault(fault: impl FnOnce(&mut Broker, &mut Fed, &[u8])) {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut broker) = Broker::start(folder.path()) else { return };
    broker.create("flows", 3);
    let (capture, file) = (folder.path().join("many.pcap"), folder.path().join("flows.json"));
    // All records fit in the buffer, so none is lost if the broker is slow.
    let mut command = ringtap();
    command.args(["generate", "--profile", "w2", "--packets", "30k", "--flows", "10k", "-w"]);
    command.arg(&capture).assert().success();
    let bytes = fs::read(&capture).unwrap();

    let url = format!("kafka://{}/flows", broker.address());
    let write = format!("json:{}", file.display());
    // Records end throughout the capture.
    let timeouts = ["--idle-timeout", "1ms", "--active-timeout", "1ms"];
    let mut monitor = Fed::start(&[&timeouts[..], &["--export", &url, "--write", &write]].concat());
    let (begin, rest) = bytes.split_at(bytes.len() / 3);
    monitor.feed(begin);
    while messages(&broker, "flows").0.is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (middle, rest) = rest.split_at(rest.len() / 2);
    fault(&mut broker, &mut monitor, middle);
    monitor.feed(rest);
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("trying again") && errors.contains("works again"), "{errors}");

    let (received, repeated) = messages(&broker, "flows");
    eprintln!("{} messages, {repeated} repeated", received.len());
    let export = &report["export"][0];
    assert_eq!((&export["not_sent"], received.len()), (&serde_json::json!({}), lines(&file).len()));
    assert_eq!(values(&received), lines(&file));
    check_numbers(&received);
}

#[test]
fn each_record_arrives_although_the_broker_is_killed() {
    check_fault(|broker, monitor, bytes| {
        broker.kill();
        monitor.feed(bytes);
        monitor.wait_for("trying again");
        broker.restart();
    });
}

#[test]
fn each_record_arrives_although_the_broker_does_not_answer_in_time() {
    check_fault(|broker, monitor, bytes| {
        broker.signal(Signal::STOP);
        monitor.feed(bytes);
        // A request has exceeded its limit: it is repeated, and the broker may then take both.
        monitor.wait_for("trying again");
        broker.signal(Signal::CONT);
    });
}

#[test]
fn a_broker_that_stops_answering_does_not_stop_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(folder.path()) else { return };
    broker.create("flows", 1);
    broker.signal(Signal::STOP);
    let url = format!("kafka://{}/flows", broker.address());
    let (report, errors, code) = monitor(&["--export", &url]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("no broker answers"), "{errors}");
    assert_eq!(report["export"][0]["not_sent"]["too_late"]["records"], report["flows"]["records"]);
    broker.signal(Signal::CONT);
}

/// A broker over quota answers and then reads nothing for a time. Nothing is sent twice, and the reason is named.
#[test]
fn a_quota_is_an_error_if_too_little_is_sent_and_nothing_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(folder.path()) else { return };
    broker.create("flows", 1);
    broker.limit(100);
    let (report, errors, code) =
        monitor(&["--export", &format!("kafka://{}/flows", broker.address())]);
    assert_eq!(code, 1, "{errors}");
    let export = &report["export"][0];
    assert!(errors.contains("limits our rate by a quota"), "{errors} {export}");
    let lost = export["not_sent"].as_object().unwrap().values();
    let lost = lost.map(|lost| lost["records"].as_u64().unwrap()).sum::<u64>();
    assert!(lost > 0);
    assert_eq!(report["flows"]["records"], lost + export["sent"]["records"].as_u64().unwrap());
    assert_eq!(messages(&broker, "flows").1, 0);
}

/// Runs a peer for one output, and returns what the run says about it.
fn with_peer(peer: impl Fn(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("kafka://{}/flows?format=protobuf", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(&peer));
    let (report, errors, code) = monitor(&["--export", &url]);
    assert_eq!(code, 1, "{errors}");
    let export = &report["export"][0];
    assert_eq!(export["sent"]["records"], 0);
    let ip = ["ipv4", "ipv6"].map(|version| report["packets"][version].as_u64().unwrap());
    assert_eq!(export["not_sent"]["too_late"]["packets"], ip[0] + ip[1]);
    errors
}

#[test]
fn peers_that_are_no_brokers_are_errors() {
    let errors = with_peer(drop);
    assert!(errors.contains("error: writing to kafka://127.0.0.1:"), "{errors}");
    // An answer longer than any, and one that is not of the protocol.
    for answer in
        [&[0x7f, 0xff, 0xff, 0xff, 1, 2, 3][..], &[0, 0, 0, 8, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]]
    {
        with_peer(move |mut stream| {
            let _ = stream.read(&mut [0; 256]);
            let _ = stream.write_all(answer);
            std::thread::sleep(Duration::from_millis(20));
        });
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (report, errors, code) = monitor(&["--export", &format!("kafka://{free}/flows")]);
    assert_eq!(code, 1);
    assert!(errors.contains("refused"), "{errors}");
    assert_eq!(report["export"][0]["not_sent"]["too_late"]["records"], report["flows"]["records"]);
}

#[test]
fn a_password_that_cannot_be_read_is_an_error_before_the_run() {
    let url = "kafka://127.0.0.1:9/flows?sasl=plain&user=probe&password-file=/none/password";
    let (_, errors, code) = monitor(&["--export", url]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("/none/password"), "{errors}");
}

//! Tests of states as messages of a topic: with a broker of Kafka if `RINGTAP_FULL` is 1.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringtap_testkit::kafka::{Broker, PASSWORD, USER};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{office, output_of, ringtap};
use crate::kafka::{Fed, Message, messages, monitor};

/// More than a chunk and its headers.
const MESSAGE_MAX: u32 = 600_000;

/// Starts a broker with a topic that takes chunks of states.
fn broker(folder: &Path) -> Option<Broker> {
    let broker = Broker::start(folder)?;
    broker.create("states", 3);
    broker.allow("states", MESSAGE_MAX);
    Some(broker)
}

/// A state of a topic, as docs/OUTPUTS.md puts it together, with its headers.
struct Received {
    bytes: Vec<u8>,
    headers: BTreeMap<String, String>,
}

/// The complete states of a topic by run and part, and the number of incomplete ones.
fn states(messages: Vec<Message>) -> (Vec<Received>, usize) {
    let mut all: BTreeMap<_, Vec<Message>> = BTreeMap::new();
    for message in messages {
        let number = message.headers["part"].parse::<u64>().unwrap();
        let part = (message.headers["run"].clone(), number);
        all.entry(part).or_default().push(message);
    }
    let (mut complete, mut incomplete) = (Vec::new(), 0);
    for chunks in all.into_values() {
        let first = &chunks[0];
        let numbers = chunks.iter().map(|chunk| chunk.headers["chunk"].parse::<usize>().unwrap());
        assert!(numbers.eq(0..chunks.len()), "chunks are in order");
        for chunk in &chunks {
            assert_eq!((chunk.partition, &chunk.key), (first.partition, &first.key));
            assert!(chunk.value.len() <= 512 << 10);
        }
        if first.headers["chunks"] != chunks.len().to_string() {
            incomplete += 1;
            continue;
        }
        let headers = first.headers.clone();
        complete.push(Received {
            bytes: chunks.into_iter().flat_map(|one| one.value).collect(),
            headers,
        });
    }
    (complete, incomplete)
}

/// The report of an exact merge of these states.
fn merged(folder: &Path, states: &[Received]) -> Value {
    let (report, errors) = merge(folder, states);
    assert_eq!(errors, "");
    report
}

/// The report of a merge of these states, and stderr.
fn merge(folder: &Path, states: &[Received]) -> (Value, String) {
    let mut command = ringtap();
    command.args(["merge", "--digest", "--report", "json"]);
    for (number, state) in states.iter().enumerate() {
        let path = folder.join(format!("{number}.received"));
        fs::write(&path, &state.bytes).unwrap();
        command.arg(path);
    }
    let (report, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{errors}");
    (serde_json::from_str(&report).unwrap(), errors)
}

/// A capture whose state takes several chunks.
fn large(folder: &Path) -> PathBuf {
    let path = folder.join("large.pcap");
    let mut command = ringtap();
    command.args(["generate", "--profile", "w2", "--packets", "300k", "--seed", "7", "-w"]);
    command.arg(&path).assert().success();
    path
}

#[test]
fn a_state_of_a_topic_is_that_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = broker(folder.path()) else { return };
    let file = folder.path().join("state");
    let url = format!("kafka://{}/states?format=state&compression=gzip", broker.address());
    let flags = ["--export", &url, "--state", file.to_str().unwrap(), "--probe", "site a"];
    let (report, errors, code) = monitor(&flags);
    assert_eq!((code, errors.as_str()), (0, ""));
    let (received, incomplete) = states(messages(&broker, "states").0);
    assert_eq!((received.len(), incomplete), (1, 0));
    let Received { bytes, headers } = &received[0];
    assert!(*bytes == fs::read(&file).unwrap());
    let header = |name: &str| headers[name].as_str();
    assert_eq!(
        [header("format"), header("probe"), header("part"), header("last")],
        ["state", "site a", "0", "true"]
    );
    assert_eq!([header("chunk"), header("chunks")], ["0", "1"]);
    // The run is that of the state, and the times are those of its packets.
    let merged = merged(folder.path(), &received);
    assert_eq!(merged["runs"][0]["run"], header("run"));
    assert_eq!(merged["runs"][0]["probe"], "site a");
    let seconds = |name: &str| header(name).parse::<u64>().unwrap() / 1_000_000_000;
    assert_eq!((seconds("from"), seconds("until")), (1_795_226_889, 1_795_226_896));
    let export = &report["export"][0];
    assert_eq!((&export["sent"]["records"], &export["not_sent"]), (&json!(1), &json!({})));
    assert_eq!(export["sent"]["messages"], 1);

    // Logins and TLS as for flow records.
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("password"), PASSWORD).unwrap();
    let (login, tls) = (broker.login_address(), broker.tls_address());
    let authority = broker.certificate();
    for url in [
        format!(
            "{login}/states?format=state&sasl=plain&user={USER}&password-file={}",
            path("password")
        ),
        format!("{tls}/states?format=state&tls=true&ca={}", authority.display()),
    ] {
        let (_, errors, code) = monitor(&["--export", &format!("kafka://{url}")]);
        assert_eq!((code, errors.as_str()), (0, ""));
    }
    assert_eq!(states(messages(&broker, "states").0).0.len(), 3);
}

#[test]
fn a_large_state_arrives_in_chunks_although_the_broker_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut broker) = broker(folder.path()) else { return };
    let capture = fs::read(large(folder.path())).unwrap();
    let file = folder.path().join("state");
    let url = format!("kafka://{}/states?format=state", broker.address());
    let mut monitor = Fed::start(&["--export", &url, "--state", file.to_str().unwrap()]);
    let (begin, rest) = capture.split_at(capture.len() / 2);
    monitor.feed(begin);
    broker.kill();
    monitor.feed(rest);
    monitor.wait_for("trying again");
    broker.restart();
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("trying again"), "{errors}");
    let (received, incomplete) = states(messages(&broker, "states").0);
    assert_eq!((received.len(), incomplete), (1, 0));
    assert!(received[0].bytes == fs::read(&file).unwrap());
    let chunks = received[0].headers["chunks"].parse::<u64>().unwrap();
    assert!(chunks > 3, "{chunks}");
    assert_eq!(report["export"][0]["sent"]["messages"], chunks);
}

/// Interrupts the broker while a state is sent. All of it arrives, or it counts as lost.
fn check_fault(fault: impl FnOnce(&mut Broker)) {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut broker) = broker(folder.path()) else { return };
    let capture = large(folder.path());
    let file = folder.path().join("state");
    let url = format!("kafka://{}/states?format=state", broker.address());
    let mut monitor = Fed::start(&["--export", &url, "--state", file.to_str().unwrap()]);
    monitor.feed(&fs::read(capture).unwrap());
    monitor.close();
    while messages(&broker, "states").0.is_empty() && !monitor.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
    }
    fault(&mut broker);
    let (report, errors, code) = monitor.end();
    let (messages, repeated) = messages(&broker, "states");
    let (received, incomplete) = states(messages);
    eprintln!("{} states complete, {incomplete} not; {repeated} chunks repeated", received.len());
    let export = &report["export"][0];
    if code == 0 {
        assert_eq!((received.len(), incomplete), (1, 0));
        assert!(received[0].bytes == fs::read(&file).unwrap());
        assert_eq!((&export["sent"]["records"], &export["not_sent"]), (&json!(1), &json!({})));
    } else {
        assert!(errors.contains("1 state lost"), "{errors}");
        assert_eq!((code, &export["not_sent"]["too_late"]["records"]), (1, &json!(1)));
    }
}

#[test]
fn a_state_is_complete_or_counts_as_lost_if_the_broker_is_killed_meanwhile() {
    check_fault(|broker| {
        broker.kill();
        broker.restart();
    });
}

#[test]
fn a_state_is_complete_or_counts_as_lost_if_the_broker_pauses_meanwhile() {
    check_fault(|broker| {
        broker.signal(Signal::STOP);
        // Time itself: shorter than the limit of a request, so the run reports nothing.
        std::thread::sleep(Duration::from_secs(2));
        broker.signal(Signal::CONT);
    });
}

#[test]
fn a_topic_that_takes_no_chunk_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = Broker::start(folder.path()) else { return };
    broker.create("states", 1);
    broker.allow("states", 1_000);
    let url = format!("kafka://{}/states?format=state", broker.address());
    let (report, errors, code) = monitor(&["--export", &url, "--fail-on-drop"]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("the topic does not take a message of"), "{errors}");
    assert!(errors.contains("1 state lost"), "{errors}");
    assert_eq!(report["export"][0]["not_sent"]["failed"]["records"], 1);
}

#[test]
fn a_state_needs_its_analyses_and_addresses() {
    let url = "kafka://127.0.0.1:9/states?format=state";
    let key = tempfile::NamedTempFile::new().unwrap();
    fs::write(key.path(), [7; 32]).unwrap();
    let key = key.path().to_str().unwrap();
    for (flags, words) in [
        (
            &["--export", url, "--analyses", "flows"][..],
            "needs the analyses flows, volumes and talkers",
        ),
        (&["--export", url, "--anonymise", key], "--anonymise cannot be used with"),
        (
            &["--probe", "a"],
            "--probe names states, stores, messages of Kafka and domains of IPFIX: use it with",
        ),
    ] {
        let (_, errors, code) = monitor(flags);
        assert!(code == 2 && errors.contains(words), "{errors}");
    }
    // Without a broker the state is lost, and the report is printed.
    let mut command = ringtap();
    command.args(["monitor", "-q", "--export", url, "-r"]).arg(office());
    let (out, errors, code) = output_of(&mut command);
    assert!(code == 1 && out.contains("Packets"), "{out}");
    assert!(
        errors.contains("1 state lost: the output accepted nothing more at the end"),
        "{errors}"
    );
}

#[test]
fn the_states_of_all_intervals_merge_to_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let Some(broker) = broker(folder.path()) else { return };
    let url = format!("kafka://{}/states?format=state", broker.address());
    let flags = ["--export", &url, "--interval", "1s", "--digest"];
    let (report, errors, code) = monitor(&flags);
    assert_eq!((code, errors.as_str()), (0, ""));
    let (received, incomplete) = states(messages(&broker, "states").0);
    assert_eq!(incomplete, 0);
    assert!(received.len() > 3, "{}", received.len());
    assert_eq!(report["export"][0]["sent"]["records"], received.len());
    let number = |state: &Received, name: &str| state.headers[name].parse::<u64>().unwrap();
    for (place, state) in received.iter().enumerate() {
        assert_eq!(number(state, "part"), place as u64);
        assert_eq!(state.headers["last"], (place + 1 == received.len()).to_string());
        assert!(number(state, "from") <= number(state, "until"));
    }
    let whole = merged(folder.path(), &received);
    assert_eq!((&whole["digest"], &whole["exact"]), (&report["digest"], &json!(true)));
    // Without a state in the middle the report names it.
    let mut fewer = received;
    fewer.remove(1);
    let (fewer, errors) = merge(folder.path(), &fewer);
    assert!(errors.contains("no digest"), "{errors}");
    assert_eq!(fewer["runs"][0]["missing"][0]["parts"], json!([1, 1]));
}

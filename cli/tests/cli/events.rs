//! Tests of `--events`: every message found in payloads, in each format and arrangement.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{captures, have, office, output_of, ringtap};
use crate::formats::{python, tool};

/// Writes the events of a capture to `output` in a folder; returns the JSON report.
fn monitored(capture: &Path, folder: &Path, outputs: &[&str], flags: &[&str]) -> Value {
    let mut command = ringtap();
    command
        .current_dir(folder)
        .args(["monitor", "-q", "--force", "--report", "json", "-r"])
        .arg(capture);
    outputs.iter().for_each(|output| {
        command.args(["--events", output]);
    });
    let (report, errors, code) = output_of(command.args(flags));
    assert_eq!(code, 0, "{}: {errors}", capture.display());
    serde_json::from_str(&report).unwrap()
}

fn lines(file: &Path) -> Vec<String> {
    let mut lines: Vec<_> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn every_message_is_an_event_in_any_arrangement() {
    let folder = tempfile::tempdir().unwrap();
    let report = monitored(&office(), folder.path(), &["json:office.json"], &[]);
    assert_eq!(report["payload_messages"], json!({"dns": 36, "http": 44}));
    for capture in captures() {
        let outputs = ["json:all.json", "eve:all.eve"];
        let report = monitored(&capture, folder.path(), &outputs, &["--sequential"]);
        let events = lines(&folder.path().join("all.json"));
        let empty = serde_json::Map::new();
        let messages = report["payload_messages"].as_object().unwrap_or(&empty).values();
        let messages: u64 = messages.map(|number| number.as_u64().unwrap()).sum();
        assert_eq!(events.len() as u64, messages, "{}", capture.display());
        for line in &events {
            let event: Value = serde_json::from_str(line).unwrap();
            assert!(event["event"].is_string() && event["communityId"].is_string(), "{line}");
        }
        // Events alone, without flow records, and on several workers.
        let flags = ["--analyses", "volumes", "-w", "3"];
        monitored(&capture, folder.path(), &["json:few.json", "eve:few.eve"], &flags);
        assert_eq!(lines(&folder.path().join("few.json")), events, "{}", capture.display());
        let [all, few] = ["all.eve", "few.eve"].map(|name| lines(&folder.path().join(name)));
        assert_eq!(all, few, "{}", capture.display());
        // Each handshake is in one line, and no name is lost.
        let names = |lines: &[String], event: &str, name: fn(&Value) -> &Value| {
            let parsed = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let own = parsed.filter(|line| {
                let kind = line.get("event").or(line.get("event_type"));
                kind.is_some_and(|kind| kind == event || kind == &json!(format!("d{event}")))
            });
            own.filter_map(|line| name(&line).as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
        };
        let shaken = names(&all, "tls", |line| &line["tls"]["sni"]);
        assert_eq!(names(&events, "tls", |line| &line["tlsServerName"]), shaken);
        // Each message of HTTP is in one line.
        let http = |name: &str, value: &str| {
            let pair = format!("\"{name}\":\"{value}\"");
            events.iter().filter(|line| line.contains(&pair)).count()
        };
        let [requests, responses] = ["request", "response"].map(|kind| http("httpKind", kind));
        let ssdp = http("event", "ssdp");
        let exchanges = all.iter().filter(|line| line.contains("\"event_type\":\"http\"")).count();
        assert!(
            (requests.max(responses).saturating_sub(ssdp)..=requests + responses)
                .contains(&exchanges)
        );
    }
}

/// The protocol of each event, and its values by which messages differ.
fn facts_of(folder: &Path) -> Vec<String> {
    let facts = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| match &event[name] {
            Value::Array(values) => values
                .iter()
                .map(|own| own.as_str().map_or(own.to_string(), str::to_owned))
                .collect(),
            Value::String(value) => value.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let names = [
            "event",
            "httpMethod",
            "httpHost",
            "httpTarget",
            "httpStatus",
            "proxySourceAddress",
            "tlsServerName",
            "sshClient",
            "sshServer",
            "dnsKind",
            "dnsQueryName",
        ];
        let values = names.map(text).into_iter().filter(|value| !value.is_empty());
        values.collect::<Vec<_>>().join(" ")
    };
    // In the order of their times.
    lines(&folder.join("all.json")).iter().map(facts).collect()
}

#[test]
fn messages_of_difficult_connections() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces/found");
    if !captures.is_dir() {
        eprintln!(
            "SKIPPED: no folder of difficult captures next to the project (shared/traces/found)"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, events) in [
        ("retransmitted-http", &["http GET r.example /r"][..]),
        ("retransmitted-tls", &["tls r.example"]),
        ("http-split-2", &["http GET split2.example /split2"]),
        ("hello-split-1", &["tls split1.example"]),
        ("hello-split-5", &["tls split5.example"]),
        ("dns-tcp-split-1", &["dns query cut1.example", "dns answer cut1.example"]),
        ("proxy-v1-same-segment", &["proxy 203.0.113.5", "tls proxyv1.example"]),
        ("proxy-v2-same-segment", &["proxy 203.0.113.5", "tls proxyv2.example"]),
        ("http-unknown-method", &["http BREW method.example /pot", "http 418"]),
        ("http-leading-crlf", &["http GET crlf.example /crlf"]),
        ("http-body-looks-like-request", &["http POST up.example /upload", "http 200"]),
        ("http-tls-hello-in-body", &["http POST g.example /u", "http 200"]),
        ("http-upgrade-then-text", &["http GET ws.example /ws", "http 101"]),
        (
            "http-response-mid-segment",
            &["http GET g.example /1", "http GET g.example /2", "http 200", "http 302"],
        ),
        (
            "http-pipelined-behind-chunked",
            &["http GET h.example /a", "http GET h.example /b", "http 200", "http 404"],
        ),
        ("ssh-prelude-same-segment", &["ssh SSH-2.0-OpenSSH_9.6", "ssh SSH-2.0-PuTTY_0.80"]),
        ("ssh-utf8-comment", &["ssh SSH-2.0-Go", "ssh SSH-2.0-OpenSSH_8.0 caf"]),
        (
            "ssh-server-port-above-client-port",
            &["ssh SSH-2.0-ServerSoft", "ssh SSH-2.0-ClientSoft"],
        ),
    ] {
        let capture = captures.join(name).with_extension("pcap");
        for flags in [&["--sequential"][..], &["-w", "3"]] {
            let report = monitored(&capture, folder.path(), &["json:all.json"], flags);
            assert_eq!(facts_of(folder.path()), events, "{name}");
            assert_eq!(report["unread_payloads"], Value::Null, "{name}");
        }
        if name.starts_with("ssh-") {
            let all = fs::read_to_string(folder.path().join("all.json")).unwrap();
            let side = |line: &str| line.contains("\"sshServer\":\"SSH-2.0-");
            let port = |line: &str| {
                let event: Value = serde_json::from_str(line).unwrap();
                event["sourceTransportPort"].as_u64().unwrap()
            };
            assert!(all.lines().all(|line| side(line) == (port(line) != 40_000)), "{all}");
        }
    }
    let capture = captures.join("http-4-chunked-responses-in-a-segment.pcap");
    let report = monitored(&capture, folder.path(), &["json:all.json"], &[]);
    assert_eq!(report["payload_messages"], json!({"http": 8}));
}

#[test]
fn a_request_and_its_response_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    let outputs = ["zeek:logs", "eve:all.eve", "json:all.json"];
    for flags in [&["--sequential"][..], &["-w", "3"]] {
        monitored(&office(), folder.path(), &outputs, flags);
        let events = lines(&folder.path().join("all.json"));
        let times = events.iter().filter(|line| line.contains("\"httpResponseMicroseconds\":"));
        let is_http = |line: &&String| line.contains("\"event_type\":\"http\"");
        let eve = lines(&folder.path().join("all.eve"));
        let eve: Vec<_> = eve.iter().filter(is_http).collect();
        let zeek = lines(&folder.path().join("logs/http.log"));
        let zeek = zeek.iter().filter(|line| !line.starts_with('#')).count();
        // 22 requests and as many responses.
        assert_eq!((times.count(), eve.len(), zeek), (22, 22, 22));
        for line in eve {
            let http: Value = serde_json::from_str(line).unwrap();
            let http = &http["http"];
            assert!(http["http_method"].is_string() && http["status"].is_u64(), "{line}");
        }
    }
}

#[test]
fn eve_events_match_the_schema_of_suricata() {
    const SCRIPT: &str = "
import glob, json, jsonschema, sys
validator = jsonschema.Draft202012Validator(json.load(open(sys.argv[1])))
kinds, errors = {}, []
for name in glob.glob('*.eve'):
    for number, line in enumerate(open(name)):
        event = json.loads(line)
        kinds[event['event_type']] = kinds.get(event['event_type'], 0) + 1
        # Validation is slow.
        if kinds[event['event_type']] < 500:
            errors += [f'{name}: {error.message}' for error in validator.iter_errors(event)]
print(json.dumps({'kinds': kinds, 'errors': errors[:10]}))
";
    let folder = tempfile::tempdir().unwrap();
    for (number, capture) in captures().iter().enumerate() {
        monitored(capture, folder.path(), &[&format!("eve:{number}.eve")], &[]);
    }
    let Some(schema) = tool("eve-schema.json") else { return };
    let Some(found) = python(SCRIPT, folder.path(), &[&schema]) else { return };
    assert_eq!(found["errors"], json!([]));
    for kind in ["dns", "http"] {
        assert!(found["kinds"][kind].as_u64().is_some_and(|events| events > 0), "{found}");
    }
}

#[test]
fn zeek_cut_reads_the_logs() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    let report = monitored(&office(), folder.path(), &["zeek:logs", "json:all.json"], &[]);
    let logs = ["dns.log", "http.log", "ssl.log"].map(|name| folder.path().join("logs").join(name));
    assert!(logs.iter().all(|log| log.exists()), "{report}");
    let cutters = ["zeek-cut", "bro-cut"];
    let Some(cutter) = cutters.into_iter().find(|tool| have(tool)) else { return };
    let mut command = Command::new(cutter);
    command.args(["id.resp_p", "query", "qtype_name", "rcode_name"]);
    let output = command.stdin(fs::File::open(&logs[0]).unwrap()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // Each question has an answer, and both are one line.
    let all = lines(&folder.path().join("all.json"));
    let of = |kind: &str| {
        let pair = format!("\"dnsKind\":\"{kind}\"");
        all.iter().filter(|line| line.contains(&pair)).count()
    };
    let messages = ["query", "answer"].map(of);
    assert_eq!((messages, text.lines().count()), ([18, 18], 18));
    assert!(text.lines().all(|line| line.split('\t').count() == 4), "{text}");
}

#[test]
fn unusable_outputs_are_errors() {
    for (output, message) in [
        ("csv:a", "unknown event format \"csv\": use json, eve or zeek"),
        (
            "json:",
            "invalid output \"json:\": use FORMAT:PATH, as in json:events.json or zeek:FOLDER",
        ),
        ("json", "invalid output \"json\": use FORMAT:PATH, as in json:events.json or zeek:FOLDER"),
    ] {
        let mut command = ringtap();
        let (_, errors, code) =
            output_of(command.args(["monitor", "--events", output, "-r"]).arg(office()));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(message), "{errors}");
    }
    for (flags, message) in [
        (
            &["--events", "zeek:/no/such/folder"][..],
            "\"/no/such/folder\" is not a folder: create it, or use another for the files of zeek",
        ),
        (
            &["--events", "json:a", "--extract", "none"],
            "--events needs payloads: omit --extract none",
        ),
        (&["--events", "json:a", "--events", "eve:./a"], "name the same file: use a path for each"),
    ] {
        let (_, errors, code) =
            output_of(ringtap().arg("monitor").args(flags).arg("-r").arg(office()));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(message), "{errors}");
    }
}

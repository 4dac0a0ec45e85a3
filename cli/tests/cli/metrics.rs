//! `--metrics`, asked by Prometheus' own reader and by guests with worse manners.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{office, ringtap, said};
use crate::formats::python;
use crate::signals::Waiting;

/// A port that nobody listens at.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What is answered to a question.
fn ask(address: SocketAddr, question: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(question.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn prometheus_reads_how_the_run_stands() {
    const SCRIPT: &str = "
import json, sys, urllib.request
try:
    from prometheus_client.parser import text_string_to_metric_families as families
except ImportError:
    sys.exit(print('null'))
with urllib.request.urlopen(sys.argv[1]) as answer:
    assert answer.headers['Content-Type'].startswith('text/plain; version=0.0.4'), answer.headers
    read = list(families(answer.read().decode()))
assert all(family.documentation and family.type in ('counter', 'gauge') for family in read), read
samples = [sample for family in read for sample in family.samples]
names = {sample.name for sample in samples}
print(json.dumps({name: sum(s.value for s in samples if s.name == name) for name in names}))
";
    let folder = tempfile::tempdir().unwrap();
    let address = free();
    let monitor = Waiting::new(folder.path(), &["--metrics", &address.to_string()]);
    let url = format!("http://{address}/metrics");
    let found = python(SCRIPT, folder.path(), &[Path::new(&url)]);
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(0), "{errors}");
    let Some(found) = found else { return };
    if found.is_null() {
        eprintln!("SKIPPED: no prometheus_client for Python; scripts/setup-test.sh fetches it");
        return;
    }
    let value = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("no {name}: {found}"));
    assert_eq!(value("ringtap_packets_total"), 8_191.0);
    assert_eq!(value("ringtap_dropped_packets_total"), 0.0);
    assert_eq!(value("ringtap_build_info"), 1.0);
    assert!(value("ringtap_bytes_total") > 700_000.0 && value("ringtap_run_seconds") > 0.0);
}

#[test]
fn guests_with_bad_manners_hold_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let address = free();
    let monitor = Waiting::new(folder.path(), &["--metrics", &address.port().to_string()]);
    let mut silent: Vec<_> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    silent[0].write_all(b"GET /met").unwrap();
    drop(silent.pop());
    for (question, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
        ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
        ("DELETE /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
        ("\u{1}\u{2}\r\n\r\n", "HTTP/1.1 400 "),
    ] {
        let answer = ask(address, question);
        assert!(answer.starts_with(status), "{question:?}: {answer}");
    }
    let head = ask(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let answer = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.contains("ringtap_packets_total{queue=\"0\"} "), "{answer}");
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(0), "{errors}");
}

#[test]
fn a_place_that_is_taken_or_none_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let mut command = ringtap();
    let (_, errors, code) =
        said(command.args(["monitor", "-r"]).arg(office()).args(["--metrics", &place]));
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains(&format!("--metrics {place}")), "{errors}");
    let (_, errors, code) =
        said(ringtap().args(["monitor", "-r"]).arg(office()).args(["--metrics", "here"]));
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("127.0.0.1") || errors.contains("0.0.0.0:9464"), "{errors}");
}

//! Tests of `--metrics` with Prometheus' parser, and with idle, slow and malformed clients; tests of
//! the packaged rules with Prometheus' tool.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use rustix::process::Signal;

use crate::common::{have, office, output_of, ringtap};
use crate::formats::python;
use crate::signals::Waiting;
use ringtap_testkit::{SCRAPE, free_address, request, request_on};

/// Raises this process's limit of open files to the maximum, and returns it.
fn many_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    maximum.unwrap_or(u64::MAX)
}

#[test]
fn idle_connections_do_not_delay_a_scrape() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let monitor = Waiting::new(folder.path(), &["--metrics", &address.port().to_string()]);
    let most = many_files().min(1_200) as usize - 200;
    let mut idle = Vec::new();
    for count in [200.min(most), most] {
        while idle.len() < count {
            idle.push(TcpStream::connect(address).unwrap());
        }
        assert!(request(address, SCRAPE).starts_with("HTTP/1.1 200 OK\r\n"));
    }
    // Nor do clients that send a part of a request, or that never read the response.
    for (at, stream) in idle.iter_mut().enumerate() {
        let words = if at % 2 == 0 { "GET /metr" } else { SCRAPE };
        // The server may have closed the connection.
        let _ = stream.write_all(words.as_bytes());
    }
    assert!(request(address, SCRAPE).starts_with("HTTP/1.1 200 OK\r\n"));
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
}

#[test]
fn a_client_can_send_several_requests_on_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let monitor = Waiting::new(folder.path(), &["--metrics", &address.port().to_string()]);
    let mut stream = TcpStream::connect(address).unwrap();
    for _ in 0..3 {
        let answer = request_on(&mut stream, SCRAPE);
        assert!(answer.contains("\r\nConnection: keep-alive\r\n"), "{answer}");
    }
    let last = "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!(request_on(&mut stream, last).contains("\r\nConnection: close\r\n"));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed");
    monitor.send(Signal::INT);
    assert_eq!(monitor.end().0, Some(130));
}

/// With few file descriptors, the server closes idle clients to accept new ones.
#[test]
fn a_scrape_succeeds_with_few_file_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let script = "ulimit -n 40; exec \"$0\" \"$@\"";
    let monitor = Waiting::with(
        std::process::Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_ringtap")]),
        folder.path(),
        &["--metrics", &address.port().to_string()],
    );
    let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(request(address, SCRAPE).starts_with("HTTP/1.1 200 OK\r\n"));
    drop(idle);
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
}

#[test]
fn the_server_listens_at_ports_and_at_ipv4_and_ipv6_addresses() {
    let v6 = TcpListener::bind("[::1]:0").is_ok();
    if !v6 {
        eprintln!("SKIPPED: no IPv6 here");
    }
    let port = free_address().port();
    for (given, at) in [
        (format!("{port}"), format!("127.0.0.1:{port}")),
        (format!(":{port}"), format!("127.0.0.1:{port}")),
        (format!("0.0.0.0:{port}"), format!("127.0.0.1:{port}")),
        (format!("[::1]:{port}"), format!("[::1]:{port}")),
        (format!("[::]:{port}"), format!("[::1]:{port}")),
    ] {
        if given.starts_with('[') && !v6 {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let monitor = Waiting::new(folder.path(), &["--metrics", &given]);
        let answer = request(at.parse().unwrap(), SCRAPE);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{given}: {answer}");
        monitor.send(Signal::INT);
        assert_eq!(monitor.end().0, Some(130), "{given}");
    }
}

#[test]
fn the_parser_of_prometheus_reads_the_counters_of_the_run() {
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
    let address = free_address();
    let monitor = Waiting::new(folder.path(), &["--metrics", &address.to_string()]);
    let url = format!("http://{address}/metrics");
    let found = python(SCRIPT, folder.path(), &[Path::new(&url)]);
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
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
fn silent_and_malformed_clients_do_not_delay_others() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let monitor = Waiting::new(folder.path(), &["--metrics", &address.port().to_string()]);
    let mut silent: Vec<_> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    silent[0].write_all(b"GET /met").unwrap();
    drop(silent.pop());
    for (text, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
        ("GET /metrics HTTP/1.1\r\nHost: a.example\r\n\r\n", "HTTP/1.1 403 "),
        ("GET /metrics HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\n\r\n", "HTTP/1.1 403 "),
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: a.example\r\n\r\n", "HTTP/1.1 400 "),
        ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
        ("DELETE /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
        ("\u{1}\u{2}\r\n\r\n", "HTTP/1.1 400 "),
    ] {
        let answer = request(address, text);
        assert!(answer.starts_with(status), "{text:?}: {answer}");
    }
    let head = request(address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let answer = request(address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.contains("ringtap_packets_total{queue=\"0\"} "), "{answer}");
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
}

#[test]
fn an_address_in_use_or_invalid_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let mut command = ringtap();
    let (_, errors, code) =
        output_of(command.args(["monitor", "-r"]).arg(office()).args(["--metrics", &place]));
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains(&format!("--metrics {place}")), "{errors}");
    let (_, errors, code) =
        output_of(ringtap().args(["monitor", "-r"]).arg(office()).args(["--metrics", "here"]));
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("127.0.0.1") || errors.contains("0.0.0.0:9464"), "{errors}");
}

/// The file of tests loads the rules of `packaging/`.
#[test]
fn each_alert_of_the_rules_fires_in_time() {
    if !have("promtool") {
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/rules.test.yml");
    let output = std::process::Command::new("promtool").args(["test", "rules"]).arg(tests).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
}

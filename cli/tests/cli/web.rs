//! Tests of `--web` in a browser, with live traffic between namespaces, and by single requests.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringtap_io::capture::PcapWriter;
use ringtap_io::live::SendOptions;
use ringtap_testkit::browser::ADDRESSES;
use ringtap_testkit::driver::Driver;
use ringtap_testkit::send_all;
use ringtap_wire::LinkType;
use rustix::process::Signal;
use serde_json::Value;

use crate::common::{have, office, output_of, ringtap};
use crate::formats::tool;
use crate::net::{Background, Left, Net, NetCommands, Right, frames};
use crate::signals::Waiting;

const PORT: &str = "8080";
const PAGE: &str = "http://127.0.0.1:8080/";

/// A function of scripts: the exact value of a figure.
const FIGURE: &str = "const figure = (name) => {
    const found = [...document.querySelectorAll('dl div')].find((one) => one.querySelector('dt').textContent === name);
    return found ? Number(found.querySelector('data').value) : null;
};
const rows = (title) => {
    const found = [...document.querySelectorAll('section')].find((one) => one.querySelector('h2').firstChild.textContent.trim() === title);
    const text = (cell) => cell.querySelector('data') ? Number(cell.querySelector('data').value) : cell.textContent;
    return found ? [...found.querySelectorAll('tr')].slice(1).map((row) => [...row.children].map(text)) : [];
};
";

/// Starts `monitor -i right --web` with these flags.
fn start(net: &Net, flags: &[&str]) -> Background {
    let command =
        ["monitor", "-i", "right", "--web", PORT, "--report", "json", "--duration", "300s"];
    Background::start(net.ringtap(Right, &[&command[..], flags].concat()), "listening:")
}

/// The folder with the test tools.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-tools")
}

/// A TCP segment between 10.0.0.1 and 10.0.1.1, of the first if `there`; sequence and acknowledgment numbers.
fn segment(there: bool, port: u16, flags: u8, numbers: [u32; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = crate::signals::frame(0);
    frame.truncate(34);
    frame[16..18].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
    frame[23] = 6;
    let mut ports = [40_000 + port, port];
    if !there {
        let (one, other) = frame[26..34].split_at_mut(4);
        one.swap_with_slice(other);
        ports.reverse();
    }
    frame.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    frame.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
    // Five words, flags, window, checksum, no urgent data.
    frame.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A SYN from 10.0.0.1 to a port of 10.0.1.1.
fn syn(port: u16) -> Vec<u8> {
    segment(true, port, 2, [1, 0], &[])
}

/// A request of HTTP and its answer.
fn request() -> Vec<Vec<u8>> {
    let (ask, answer) =
        (b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n");
    let [asked, answered] = [2 + ask.len() as u32, 101 + answer.len() as u32];
    vec![
        segment(true, 8080, 2, [1, 0], &[]),
        segment(false, 8080, 0x12, [100, 2], &[]),
        segment(true, 8080, 0x10, [2, 101], &[]),
        segment(true, 8080, 0x18, [2, 101], ask),
        segment(false, 8080, 0x18, [101, asked], answer),
        segment(true, 8080, 0x11, [asked, answered], &[]),
        segment(false, 8080, 0x11, [answered, asked + 1], &[]),
    ]
}

/// The bundled capture and a request, as frames.
fn traffic() -> Vec<Vec<u8>> {
    [frames(&fs::read(office()).unwrap()), request()].concat()
}

#[test]
fn a_browser_shows_traffic_alerts_and_outputs_and_narrows_to_a_host() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let collector = net.inside(Right, || TcpListener::bind("127.0.0.1:0").unwrap());
    let export = format!("ipfix+tcp://{}", collector.local_addr().unwrap());
    let monitor = start(&net, &["--idle-timeout", "1s", "--export", &export]);
    let Some(browser) = Driver::start(&net, Right, folder.path(), &[]) else { return };
    let run = |script: &str| browser.run(&format!("{FIGURE} return {script};"));
    let wait = |script: &str| browser.wait_for(&format!("{FIGURE} return {script};"));
    browser.open(PAGE);
    wait(
        "document.getElementById('status').textContent.startsWith('Live, ') && figure('packets') === 0",
    );

    // Traffic appears, and names, applications and hosts of its flows.
    let sent = traffic();
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    wait(&format!("figure('packets') === {}", sent.len()));
    wait("rows('Flows').length >= 10 && rows('Names').length > 0 && rows('Hosts').length > 0");
    assert_eq!(run("document.querySelectorAll('svg').length"), 4);
    wait("rows('Outputs')[0][1] === 'works'");

    // A scan raises an alert.
    let scan: Vec<_> = (1..=60).map(syn).collect();
    send_all(&mut net.sender(&SendOptions::default()), &scan);
    wait(
        "rows('Alerts').some((row) => row[1] !== 'ends' && row[2].includes('10.0.0.1 scans 10.0.1.1: 60 ports'))",
    );

    // One click narrows everything to the scanner; the address is that of the view.
    // The button is held while the page would be updated.
    browser.click("a[href='/?host=10.0.0.1']", Duration::from_millis(2500));
    browser.wait_for("return location.search === '?host=10.0.0.1'");
    wait("figure('flows') === 61");
    assert_eq!(run("figure('packets')"), 67);
    assert_eq!(
        run("rows('Hosts').map((row) => row[0])"),
        serde_json::json!(["10.0.0.1", "10.0.1.1"])
    );
    assert_eq!(run("rows('Alerts').length"), 1);
    // By keys: a port instead.
    browser.press("/");
    assert_eq!(browser.run("return document.activeElement.id"), "host");
    browser.run("document.activeElement.select()");
    browser.press("10.0.1.1\u{e004}7\u{e007}");
    browser.wait_for("return location.search.includes('host=10.0.1.1&port=7')");
    wait("figure('flows') === 1");
    browser.press("p");
    browser.wait_for("return document.getElementById('status').textContent.startsWith('Paused')");
    browser.press("0");
    browser.wait_for("return location.search === ''");

    // A collector that ends is shown as failed once records are to be sent.
    drop(collector);
    send_all(&mut net.sender(&SendOptions::default()), &[syn(9)]);
    wait("rows('Outputs')[0][1].startsWith('failed')");

    // The end of the run is shown, with its numbers: those of the report.
    let applications = "rows('Applications').map(([name, octets, packets, flows]) => [name, octets, packets, flows])";
    monitor.interrupt();
    wait("document.getElementById('status').textContent.startsWith('The run has ended')");
    wait("rows('Alerts')[0][1].startsWith('ends')");
    let (report, errors, _) = monitor.end();
    let report: Value = serde_json::from_slice(&report).unwrap_or_else(|_| panic!("{errors}"));
    assert_eq!(run("figure('packets')"), report["packets"]["received"]);
    assert_eq!(run("figure('packets lost')"), 0);
    assert_eq!(run("figure('flows ended')"), report["flows"]["records"]);
    let scans = report["scans"]["vertical"].as_array().unwrap();
    let shown = run("rows('Alerts').map((row) => row[2])");
    assert!(
        scans.iter().all(|scan| {
            let text =
                format!("{} scans {}: {} ports", scan["source"], scan["target"], scan["ports"]);
            let text = text.replace('"', "");
            shown.as_array().unwrap().iter().any(|own| own.as_str().unwrap().contains(&text))
        }),
        "{scans:?} {shown}"
    );
    let expected: Vec<_> = report["applications"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            serde_json::json!([row["application"], row["octets"], row["packets"], row["flows"]])
        })
        .collect();
    let shown = run(applications);
    let known = |row: &&Value| row[0] != "unknown";
    let shown: Vec<_> = shown.as_array().unwrap().iter().filter(known).cloned().collect();
    assert!(shown.len() > 5, "{shown:?}");
    assert_eq!(shown[..], expected[..shown.len()]);
    let hosts = run("rows('Hosts').map(([host, , sent, received]) => [host, sent, received])");
    for (at, side) in ["source", "destination"].into_iter().enumerate() {
        let rows = report["talkers"]["by_octets"][side].as_array().unwrap();
        // Each list has its largest ones.
        let hosts = hosts.as_array().unwrap().iter();
        let shown = hosts.filter_map(|host| {
            let row = rows.iter().find(|row| row["address"] == host[0])?;
            Some((host[1 + at].clone(), row["octets"].clone()))
        });
        let (shown, expected): (Vec<_>, Vec<_>) = shown.unzip();
        assert!(shown == expected && shown.len() > 3, "{shown:?} {expected:?}");
    }
}

/// The rows of a table, once the store has answered.
fn api(net: &Net, target: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (status, answer) = net.inside(Right, || get(([127, 0, 0, 1], 8080).into(), target, ""));
        assert_eq!(status, "200 OK", "{target}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let document: Value = serde_json::from_str(body).unwrap();
        if document["state"] == "complete" {
            return document;
        }
        assert!(Instant::now() < deadline, "{target}: {document}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The answer of `ringtap query` in lines of JSON.
fn ask(store: &Path, engine: &Path, flags: &[&str]) -> Vec<Value> {
    let mut query = ringtap();
    query
        .env("RINGTAP_DUCKDB", engine)
        .arg("query")
        .arg(store)
        .args(flags)
        .args(["--output", "json"]);
    let (answer, errors, code) = output_of(&mut query);
    assert_eq!(code, 0, "{errors}");
    answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Two runs in one store: the page of the second shows both, and its rows are those of `ringtap query`.
#[test]
fn the_page_reaches_back_over_a_restart() {
    let Some(engine) = tool("venv/bin/duckdb").map(|path| fs::canonicalize(path).unwrap()) else {
        return;
    };
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("sto're");
    let flags = [
        "--idle-timeout",
        "1s",
        "--rotate",
        "5m",
        "--cut",
        "1s",
        "--store",
        store.to_str().unwrap(),
    ];
    let begin = || {
        let command =
            ["monitor", "-i", "right", "--web", PORT, "--report", "json", "--duration", "300s"];
        let mut command = net.ringtap(Right, &[&command[..], &flags].concat());
        command.env("RINGTAP_DUCKDB", &engine);
        Background::start(command, "listening:")
    };
    // The flows of this number of ports have ended.
    let are_shown = |ports: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let flows = api(&net, "/api/flows?span=1m&host=10.0.0.1&rows=200");
            let ended = flows["rows"].as_array().unwrap().iter().filter(|row| row["end"] != "live");
            if ended.map(|row| row["port"].as_u64()).collect::<BTreeSet<_>>().len() == ports {
                return;
            }
            assert!(Instant::now() < deadline, "{ports} flows are not shown: {flows}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let first = begin();
    send_all(&mut net.sender(&SendOptions::default()), &[traffic(), vec![syn(7)]].concat());
    are_shown(2);
    first.interrupt();
    let (_, errors, code) = first.end();
    assert_eq!(code, 0, "{errors}");
    let second = begin();
    send_all(&mut net.sender(&SendOptions::default()), &[request(), vec![syn(9)]].concat());
    are_shown(2);
    let tables = ["hosts", "pairs", "ports", "applications", "names"];
    // The system itself sends IPv6 at any time.
    let filters = [
        "0.0.0.0/0",
        "10.0.0.0/16",
        "10.0.1.1",
        "0.0.0.0/0&port=8080",
        "0.0.0.0/0&name=www.EXAMPLE",
    ];
    let mut shown = Vec::new();
    for (table, by) in
        tables.map(|table| (table, "octets")).into_iter().chain([("pairs", "packets")])
    {
        for filter in filters {
            let view = format!("/api/{table}?span=15m&rows=200&by={by}&host={filter}");
            shown.push((format!("top {table} by {by}"), api(&net, &view)));
        }
    }
    for word in ["failed", "long", "compare", "flows"] {
        let document = api(&net, &format!("/api/{word}?from=2026-01-01T00:00"));
        assert_ne!(document["rows"], serde_json::json!([]), "{document}");
    }
    // Both runs.
    let failed = api(&net, "/api/failed?span=1h&host=10.0.1.1");
    let ports: Vec<_> = failed["rows"].as_array().unwrap().iter().map(|row| &row["port"]).collect();
    assert!(ports.contains(&&7.into()) && ports.contains(&&9.into()), "{failed}");

    let Some(browser) = Driver::start(&net, Right, folder.path(), &[]) else { return };
    browser.open(&format!("{PAGE}?span=15m"));
    let wait = |script: &str| browser.wait_for(&format!("{FIGURE} return {script};"));
    let hosts = api(&net, "/api/hosts?span=15m")["rows"].as_array().unwrap().clone();
    wait(&format!("rows('Hosts').length === {}", hosts.len().min(10)));
    wait(&format!("rows('Hosts')[0][1] === {}", hosts[0]["octets"]));
    wait("document.querySelectorAll('svg').length === 2");
    // By the head of a column, and again the other way round.
    let head = "[...document.querySelectorAll('section')].find((one) => one.querySelector('h2').firstChild.textContent.trim() === 'Hosts')?.querySelector('th button')";
    wait(&format!("Boolean({head})"));
    browser.run(&format!("{head}.click()"));
    wait(&format!(
        "{head}?.closest('th').getAttribute('aria-sort') === 'ascending' && rows('Hosts')[0][0] === '10.20.0.10'"
    ));
    // The first half of a chart.
    browser.drag("figure[data-time] svg", [0.1, 0.5]);
    browser.wait_for("return /from=[0-9]+&until=[0-9]+/.test(location.search)");
    wait("document.getElementById('status').textContent.startsWith('From ')");
    browser.open(&format!("{PAGE}?table=compare&span=15m"));
    wait("rows('What grew most').length > 2");
    assert!(
        browser
            .run("return document.querySelector('main').innerText")
            .as_str()
            .unwrap()
            .contains("ringtap query")
    );

    second.interrupt();
    let (_, errors, code) = second.end();
    assert_eq!(code, 0, "{errors}");
    for (question, shown) in shown {
        let question = format!("{question} where {}", shown["filter"].as_str().unwrap());
        let expected = ask(&store, &engine, &[&question, "--limit", "200"]);
        let rows = shown["rows"].as_array().unwrap();
        let differs = rows.iter().zip(&expected).find(|(own, other)| own != other);
        assert!(differs.is_none() && rows.len() == expected.len(), "{question}: {differs:?}");
    }
}

/// A server that sleeps for 1.5 s between a request and its response.
#[test]
fn a_server_that_sleeps_has_its_time_on_the_page_and_in_metrics() {
    const SLEEP: Duration = Duration::from_millis(1_500);
    let Some(net) = Net::new(1) else { return };
    net.ip(Left, "addr add 10.9.0.1/24 dev left");
    net.ip(Right, "addr add 10.9.0.2/24 dev right");
    let timeouts = ["--idle-timeout", "10s", "--timeouts", "tcp.fin=1s"];
    let monitor = start(&net, &[&["--analyses", "all,tcp"], &timeouts[..]].concat());
    std::thread::scope(|scope| {
        let listener = net.inside(Left, || TcpListener::bind("10.9.0.1:80").unwrap());
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 100];
            assert!(stream.read(&mut request).unwrap() > 0);
            std::thread::sleep(SLEEP);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        });
        let (status, _) = net.inside(Right, || get(([10, 9, 0, 1], 80).into(), "/", ""));
        assert_eq!(status, "200 OK");
    });
    let deadline = Instant::now() + Duration::from_secs(60);
    let row = loop {
        let servers = api(&net, "/api/servers?host=10.9.0.1");
        if let Some(row) = servers["rows"].get(0) {
            break row.clone();
        }
        assert!(Instant::now() < deadline, "{servers}");
        std::thread::sleep(Duration::from_millis(100));
    };
    let slept_us = SLEEP.as_micros() as u64;
    let what = ["server", "port", "application", "responses"].map(|name| row[name].clone());
    assert_eq!(Value::from(what.to_vec()), serde_json::json!(["10.9.0.1", 80, "http", 1]));
    let time_us = row["mean_us"].as_u64().unwrap();
    assert!((slept_us..2 * slept_us).contains(&time_us), "{row}");
    assert_eq!(row["slowest_record_us"], time_us);
    assert!(row["rtt_median_us"].as_u64().unwrap() < slept_us, "of the network alone: {row}");
    let (_, text) = net.inside(Right, || get(([127, 0, 0, 1], 8080).into(), "/metrics", ""));
    for line in [
        "ringtap_responses_total{exchange=\"http\"} 1".into(),
        "ringtap_responses_total{exchange=\"tls\"} 0".into(),
        format!("ringtap_response_microseconds_total{{exchange=\"http\"}} {time_us}"),
    ] {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
    monitor.interrupt();
    let (report, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_slice(&report).unwrap();
    let slowest = &report["tcp"]["slowest_responses"][0];
    assert_eq!((&slowest["server"], &slowest["longest_us"]), (&row["server"], &row["mean_us"]));
}

/// A flow is shown as soon as it begins, and its volume as it goes on.
#[test]
fn a_live_flow_is_shown() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let monitor = start(&net, &[]);
    let Some(browser) = Driver::start(&net, Right, folder.path(), &[]) else { return };
    browser.open(&format!("{PAGE}?port=7"));
    send_all(&mut net.sender(&SendOptions::default()), &[syn(7)]);
    let row = "rows('Flows').find((row) => row[0] === 'live' && row[1] === '10.0.0.1')";
    browser.wait_for(&format!("{FIGURE} return Boolean({row});"));
    send_all(&mut net.sender(&SendOptions::default()), &[syn(7), syn(7)]);
    browser.wait_for(&format!("{FIGURE} const row = {row}; return row && row.at(-3) === 3;"));
    browser.wait_for(&format!("{FIGURE} return figure('packets') === 3 && figure('flows') === 1;"));
    monitor.interrupt();
    let (_, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
}

#[test]
fn all_of_the_page_can_be_read_on_desktop_and_phone_in_light_and_dark() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let monitor = start(&net, &["--idle-timeout", "1s", "--analyses", "all,tcp,activity"]);
    let Some(browser) = Driver::start(&net, Right, folder.path(), &[]) else { return };
    let sent = traffic();
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    send_all(&mut net.sender(&SendOptions::default()), &(1..=60).map(syn).collect::<Vec<_>>());
    browser.open(PAGE);
    let ready = "rows('Flows').length >= 10 && rows('Alerts').length > 0 && rows('Slowest DNS answers').length > 0";
    browser.wait_for(&format!("{FIGURE} return {ready};"));
    // A view that does not change while it is examined.
    browser.press("p");
    let script = "
        const faults = [], root = document.documentElement;
        if (root.scrollWidth > root.clientWidth) faults.push('page ' + root.scrollWidth);
        for (const one of root.querySelectorAll('body *:not(svg *)'))
            if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && !one.matches('.scroll, input, summary'))
                faults.push(one.tagName + ' ' + one.className + ' ' + one.textContent.slice(0, 40));
        ADDRESSES
        return faults;"
        .replace("ADDRESSES", ADDRESSES);
    for (width, height) in [(1280, 900), (1100, 800), (390, 844), (360, 740)] {
        for dark in [false, true] {
            browser.emulate(width, height, dark);
            assert_eq!(browser.run(&script), serde_json::json!([]), "{width} wide");
            if ![1280, 360].contains(&width) {
                continue;
            }
            let Some(faults) = browser.faults(&tools()) else { return };
            assert!(faults.is_empty(), "{width} wide, dark: {dark}: {faults:#?}");
        }
    }
    // Nothing comes from elsewhere.
    let from = browser.run(
        "return performance.getEntriesByType('resource').map((one) => new URL(one.name).host)",
    );
    assert!(from.as_array().unwrap().iter().all(|host| *host == "127.0.0.1:8080"), "{from}");
    monitor.interrupt();
    let (_, errors, code) = monitor.end();
    assert_eq!(code, 0, "{errors}");
}

/// The status and the rest of the answer to a request on a new connection.
fn get(address: SocketAddr, target: &str, fields: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (status, rest) = answer.split_once("\r\n").unwrap();
    (status.strip_prefix("HTTP/1.1 ").unwrap().to_owned(), rest.to_owned())
}

/// A loopback address with a free TCP port.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_page_of_files_has_metrics_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let monitor = Waiting::new(folder.path(), &["--web", &address.port().to_string()]);
    for (target, expected, words) in [
        ("/", "200 OK", "<h2>Packets</h2>"),
        ("/?host=10.0.0.1&span=1h", "200 OK", "value=\"10.0.0.1\""),
        ("/?host=nothing", "200 OK", "host=&quot;nothing&quot;: use an address or a network"),
        ("/metrics", "200 OK", "ringtap_packets_total"),
        ("/page.js", "200 OK", "EventSource"),
        ("/page.css", "200 OK", "prefers-color-scheme"),
        ("/flows.csv", "200 OK", "first,last,source"),
        ("/flows.csv?port=x", "400 Bad Request", "port"),
        ("/view.csv?table=Packets", "200 OK", "arrived,"),
        ("/view.csv?table=other", "404 Not Found", "other"),
        ("/other", "404 Not Found", "the page is at /"),
    ] {
        let (status, answer) = get(address, target, "");
        assert_eq!(status, expected, "{target}");
        assert!(answer.contains(words), "{target}: {answer}");
        assert!(answer.contains("Content-Security-Policy: default-src 'none'"), "{answer}");
    }
    // A page of another name that leads here is not served.
    assert_eq!(get(address, "/", "Host: other.example\r\n").0, "403 Forbidden");
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
}

/// A flow of five minutes, which the active timeout splits: the page shows the packets of each minute.
#[test]
fn each_minute_has_its_own_packets() {
    const BEGIN: u64 = 1_700_000_040;
    let address = free_address();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringtap"));
    command.args(["monitor", "-q", "-r", "-", "--web", &address.port().to_string()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let hosts = |minute: u64| {
        let until = BEGIN + 60 * (minute + 1);
        get(address, &format!("/view.csv?table=Hosts&span=1m&until={until}"), "").1
    };
    let length = |minute: u64| 100 * (minute + 1);
    let row = |minute: u64| {
        let octets = 60 * (40 + length(minute));
        format!("10.0.0.1,{octets},{octets},0,")
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    // The input stays open.
    let mut writer = PcapWriter::new(child.stdin.take().unwrap(), LinkType::ETHERNET, u32::MAX);
    for minute in 0..5 {
        for second in 60 * minute..60 * (minute + 1) {
            let payload = vec![0; length(minute) as usize];
            let frame = segment(true, 80, 0x10, [second as u32, 1], &payload);
            let ts_ns = (BEGIN + second) * 1_000_000_000 + 500_000_000;
            writer.write(ts_ns, frame.len() as u32, &frame).unwrap();
        }
        writer.flush().unwrap();
        // The packets of the minute before are on the page.
        while minute > 0
            && (TcpStream::connect(address).is_err()
                || !hosts(minute - 1).contains(&row(minute - 1)))
        {
            assert!(Instant::now() < deadline, "minute {}: {}", minute - 1, hosts(minute - 1));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    for minute in 0..4 {
        let answer = hosts(minute);
        assert!(answer.contains(&row(minute)), "minute {minute}: {}: {answer}", row(minute));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn other_machines_need_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let capture = office();
    let refused = |flags: &[&str], words: &str| {
        let command = ["monitor", "-r", capture.to_str().unwrap()];
        let (_, errors, code) = output_of(ringtap().args(command).args(flags));
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains(words), "{errors}");
    };
    refused(&["--web", "0.0.0.0:0"], "use --web-token FILE");
    refused(&["--web", "[::]:0"], "use --web-token FILE");
    refused(&["--web-token", "x"], "--web");
    let token = folder.path().join("token");
    let path = token.to_str().unwrap();
    refused(&["--web", "0", "--web-token", path], "reading the token");
    fs::write(&token, "short").unwrap();
    refused(&["--web", "0", "--web-token", path], "other users can read the token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    refused(&["--web", "0", "--web-token", path], "shorter than 16 bytes");

    fs::write(&token, "correct horse battery\n").unwrap();
    let address = free_address();
    let all = format!("0.0.0.0:{}", address.port());
    let monitor = Waiting::new(folder.path(), &["--web", &all, "--web-token", path]);
    let (status, answer) = get(address, "/metrics", "");
    assert_eq!(status, "401 Unauthorized");
    assert!(answer.contains("WWW-Authenticate: Basic "), "{answer}");
    for target in ["/", "/page.js", "/events", "/flows.csv"] {
        let (status, _) = get(address, target, "Authorization: Bearer correct horse\r\n");
        assert_eq!(status, "401 Unauthorized");
    }
    let right = "Host: other.example\r\nAuthorization: Bearer correct horse battery\r\n";
    assert_eq!(get(address, "/", right).0, "200 OK");
    let curl = Command::new("curl")
        .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-u", "me:correct horse battery"])
        .arg(format!("http://{address}/"))
        .output();
    match curl {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "200"),
        Err(_) => eprintln!("SKIPPED: curl is not installed"),
    }
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
}

#[test]
fn a_certificate_makes_the_page_encrypted() {
    if !have("openssl") || !have("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] =
        ["page.pem", "page.key"].map(|name| folder.path().join(name).display().to_string());
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let address = free_address();
    let port = address.port().to_string();
    let flags = ["--web", &port, "--tls-cert", &certificate, "--tls-key", &key];
    let monitor = Waiting::new(folder.path(), &flags);
    let curl = |more: &[&str], path: &str| {
        let mut command = Command::new("curl");
        command.args(["-s", "--max-time", "60", "--cacert", &certificate]).args(more);
        command.arg(format!("https://{address}{path}"));
        command
    };
    let answer = |mut command: Command| {
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    let page = answer(curl(&[], "/"));
    assert!(page.contains("<h2>Packets</h2>"), "{page}");
    let metrics = answer(curl(&["--tls-max", "1.2"], "/metrics"));
    assert!(metrics.contains("ringtap_packets_total"), "{metrics}");
    let mut stream = curl(&["--no-buffer"], "/events").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(stream.stdout.take().unwrap()).lines();
    let events = lines.map_while(Result::ok).filter(|line| line.starts_with("data: {"));
    assert_eq!(events.take(2).count(), 2);
    stream.kill().unwrap();
    stream.wait().unwrap();
    // Clients that are not of TLS are closed.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    monitor.send(Signal::INT);
    let (code, _, errors) = monitor.end();
    assert_eq!(code, Some(130), "{errors}");
}

//! Tests of `ringtap-ndn`: ping, load and server over loopback, registration at a forwarder.

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use ringtap_ndn::packets::{
    Element, Headers, Interest, LpPacket, NackReason, NameBuf, NewData, NewInterest, Packet,
    PitToken, write_lp,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{PROGRAM, ndn};
use ringtap_testkit::Background;
use ringtap_testkit::output_of;

/// A free UDP port.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn program(flags: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("NO_COLOR", "1").args(flags);
    command
}

/// Starts a server at a free port and returns it with its URL.
fn server(prefix: &str, flags: &[&str]) -> (Background, String) {
    let url = format!("udp://127.0.0.1:{}", free_port());
    let serving =
        program(&[&["server", prefix, "--listen", &url, "--report", "json"], flags].concat());
    (Background::start(serving, "serving"), url)
}

/// Runs `ringtap-ndn … --report json` and returns the report and the exit code.
fn report(flags: &[&str]) -> (Value, i32) {
    let (out, errors, code) = output_of(ndn().args(flags).args(["--report", "json"]));
    (serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {errors}")), code)
}

/// Interrupts a server and returns its report.
fn end(server: Background) -> Value {
    server.interrupt();
    let (out, errors, code) = server.end();
    assert_eq!(code, 0, "{errors}");
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_server_answers_pings() {
    let (server, url) = server("/test/of%20ping", &["--payload", "6000"]);
    let flags = ["ping", "/test/of%20ping/x", "--to", &url, "-c", "3", "-i", "20ms"];
    let (out, errors, code) = output_of(ndn().args(flags));
    assert_eq!(code, 0, "{errors}");
    for words in [
        "PING /test/of%20ping/x by udp://",
        "seq=3 time=",
        "3 Interests sent, 3 Data",
        "time min/avg/max/p99 = ",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (found, code) =
        report(&["ping", "/elsewhere", "--to", &url, "-c", "2", "-i", "1ms", "-W", "100ms"]);
    assert_eq!((&found["data"], &found["lost"], code), (&0.into(), &2.into(), 1), "{found}");
    let served = end(server);
    let counts =
        ["interests", "data", "elsewhere", "malformed"].map(|name| served[name].as_u64().unwrap());
    assert_eq!(counts, [5, 3, 2, 0], "{served}");
}

#[test]
fn without_a_server_all_pings_are_lost_and_the_reason_is_printed() {
    let url = format!("udp://127.0.0.1:{}", free_port());
    let flags = ["ping", "/a", "--to", &url, "-c", "2", "-i", "10ms", "-W", "50ms"];
    let (out, errors, code) = output_of(ndn().args(flags));
    assert_eq!(code, 1, "{errors}");
    assert!(out.contains("timeout of /a: seq=2") && out.contains("connection refused by"), "{out}");
    let (_, errors, code) = output_of(ndn().args(["ping", "/a", "--to", "unix:/no/such"]));
    assert!(code == 1 && errors.contains("no forwarder listens at /no/such"), "{errors}");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("udp://{}", taken.local_addr().unwrap());
    let (_, errors, code) = output_of(ndn().args(["server", "/a", "--listen", &url]));
    assert!(code == 1 && errors.contains(&format!("--to {url}")), "{errors}");
}

#[test]
fn a_load_accounts_for_every_interest_with_all_distributions_of_names() {
    let (server, url) = server("/load", &[]);
    let mut sent = 0;
    for flags in [
        &["--names", "unique"][..],
        &["--names", "uniform", "--population", "50"],
        &["--names", "zipf:1.2", "--window", "100"],
        &["--names", "one-hot", "--window", "7"],
        &["--names", "uniform", "--rate", "5k", "--must-be-fresh"],
    ] {
        let base = ["load", "/load/x", "--to", &url, "-c", "3000", "-W", "1s"];
        let (found, code) = report(&[&base, flags].concat());
        assert_eq!(code, 0, "{found}");
        let number = |name: &str| found[name].as_u64().unwrap();
        assert_eq!(number("sent"), 3_000, "{found}");
        assert_eq!(number("answered") + number("lost"), 3_000, "{flags:?}: {found}");
        // The kernel may drop some. One Data may answer several Interests of its name.
        assert!(number("answered") > 0, "{flags:?}: {found}");
        assert!(number("data") - number("surplus") <= number("answered"), "{flags:?}: {found}");
        assert_eq!(
            [number("nacks"), number("malformed"), number("under_way")],
            [0, 0, 0],
            "{found}"
        );
        let latency = |name: &str| found["latency_ns"][name].as_u64().unwrap();
        assert!(
            latency("min") > 0
                && latency("p50") <= latency("p99")
                && latency("p999") <= latency("max")
        );
        let counted: u64 = found["latency_ns"]["histogram"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[1].as_u64().unwrap())
            .sum();
        assert_eq!(counted, number("answered"));
        sent += 3_000;
    }
    let served = end(server);
    assert!(served["interests"].as_u64().unwrap() <= sent, "{served}");
    assert_eq!(served["interests"], served["data"]);
}

/// Starts a load of 100 Interests, to which the test replies. Returns the process, the producer's
/// socket, headers and names of the Interests, and the load's address.
fn start_load(timeout: &str) -> (Child, UdpSocket, Vec<(Headers, NameBuf)>, SocketAddr) {
    let producer = UdpSocket::bind("127.0.0.1:0").unwrap();
    producer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let url = format!("udp://{}", producer.local_addr().unwrap());
    let flags = ["load", "/p", "--to", &url, "-c", "100", "-w", "100", "-W", timeout];
    let mut load = program(&[&flags[..], &["--report", "json"]].concat());
    let load = load.stdout(Stdio::piped()).spawn().unwrap();
    let (mut interests, mut from) = (Vec::new(), producer.local_addr().unwrap());
    let mut bytes = [0; 2_000];
    while interests.len() < 100 {
        let (len, at) = producer.recv_from(&mut bytes).unwrap();
        let packet = LpPacket::read(&bytes[..len]).unwrap();
        let name = Interest::read(packet.payload.unwrap()).unwrap().name;
        // ndnd 1.5.3 ends at any other length.
        assert_eq!(packet.headers.token.as_bytes().len(), 6);
        interests
            .push((Headers { token: packet.headers.token, ..Headers::NONE }, NameBuf::of(name)));
        from = at;
    }
    (load, producer, interests, from)
}

fn data_of(headers: &Headers, name: &NameBuf, size: usize) -> Vec<u8> {
    let (mut data, mut wire) = (Vec::new(), Vec::new());
    let content = vec![0; size];
    NewData { name: name.as_name(), freshness_ms: None, content: &content }.write(&mut data);
    write_lp(headers, &data, &mut wire);
    wire
}

/// Waits for the end of a load and returns its report.
fn load_report(load: Child) -> Value {
    let output = load.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_load_counts_losses_at_its_own_socket_separately() {
    // While the load is stopped, its receive queue overflows; the replies come after that.
    let (load, producer, interests, to) = start_load("6s");
    let id = Pid::from_child(&load);
    kill_process(id, Signal::STOP).unwrap();
    let stat = format!("/proc/{}/stat", load.id());
    let stopped = || std::fs::read_to_string(&stat).unwrap().rsplit_once(") T").is_some();
    while !stopped() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let filler = data_of(&Headers::NONE, &"/other".parse().unwrap(), 8_000);
    for _ in 0..6_000 {
        producer.send_to(&filler, to).unwrap();
    }
    for (headers, name) in &interests {
        producer.send_to(&data_of(headers, name, 8_000), to).unwrap();
    }
    kill_process(id, Signal::CONT).unwrap();
    let found = load_report(load);
    let number = |name: &str| found[name].as_u64().unwrap_or_else(|| panic!("{name}: {found}"));
    assert_eq!([number("lost"), number("lost_here"), number("lost_elsewhere")], [100, 100, 0]);
    assert_eq!(number("dropped_here") + number("surplus"), 6_100, "{found}");
    let as_root = rustix::process::geteuid().is_root();
    assert!(number("receive_queue_bytes") >= if as_root { 8 << 20 } else { 1 }, "{found}");

    // Interests without a reply are not losses at its own socket.
    let (load, producer, interests, to) = start_load("4s");
    for (headers, name) in &interests[..90] {
        producer.send_to(&data_of(headers, name, 100), to).unwrap();
    }
    let found = load_report(load);
    assert_eq!((&found["lost_here"], &found["dropped_here"]), (&0.into(), &0.into()), "{found}");
    assert!(
        found["lost"].as_u64() >= Some(10) && found["lost"] == found["lost_elsewhere"],
        "{found}"
    );
}

#[test]
fn a_registration_that_is_refused_over_udp_is_an_error_with_remedies() {
    let forwarder = crate::forward::Running::start("");
    let url = format!("udp://{}", forwarder.udp);
    let (_, errors, code) = output_of(ndn().args(["server", "/p", "--to", &url, "--register"]));
    assert_eq!(code, 1, "{errors}");
    for words in [
        "refused to register /p: 403 no [[anchor]] for the key of this command",
        "with\n  --key and --key-name",
        "rib.localhop_security",
        "mgmt.allow_localhop: true",
        "--to unix:PATH",
        "[[route]]",
        "ringtap-ndn forward ctl SOCKET register",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
}

/// A Unix socket at which the test plays the part of a forwarder.
struct Forwarder {
    folder: tempfile::TempDir,
    listener: UnixListener,
}

impl Forwarder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("f.sock")).unwrap();
        Self { folder, listener }
    }

    /// Accepts a connection. Reads have a timeout, so that missing packets fail the test.
    fn accept(&self) -> UnixStream {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("f.sock")
    }

    fn url(&self) -> String {
        format!("unix:{}", self.path().display())
    }
}

/// The headers and the payload of the next packet, read byte by byte.
fn next(stream: &mut UnixStream) -> (Headers, Vec<u8>) {
    let mut bytes = Vec::new();
    while Element::only(&bytes).is_err() {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    let read = LpPacket::read(&bytes).unwrap();
    (read.headers, read.payload.unwrap().to_vec())
}

fn send(stream: &mut UnixStream, headers: &Headers, packet: &[u8]) {
    let mut out = Vec::new();
    write_lp(headers, packet, &mut out);
    // In two writes, because a stream may split a packet.
    let (front, back) = out.split_at(out.len() / 2);
    stream.write_all(front).unwrap();
    stream.write_all(back).unwrap();
}

/// Answers a command with this code and returns the command's name.
fn answer_command(stream: &mut UnixStream, code: u8) -> String {
    let (_, wire) = next(stream);
    let Ok(Packet::Interest(command)) = Packet::read(&wire) else { panic!("{wire:x?}") };
    let content = [0x65, 9, 0x66, 1, code, 0x67, 4, b'w', b'e', b'l', b'l'];
    let mut data = Vec::new();
    NewData { name: command.name, freshness_ms: Some(1), content: &content }.write(&mut data);
    send(stream, &Headers::NONE, &data);
    command.name.to_string()
}

#[test]
fn a_server_registers_at_a_forwarder_and_answers_what_it_sends() {
    let forwarder = Forwarder::new();
    std::thread::scope(|scope| {
        let other: ScopedJoinHandle<'_, ()> = scope.spawn(|| {
            let mut stream = forwarder.accept();
            let registered = answer_command(&mut stream, 200);
            assert!(
                registered
                    .starts_with("/localhost/nfd/rib/register/h%05%07%03%08%01p/params-sha256=")
            );
            let token = PitToken::new(b"\x01\x02\x03").unwrap();
            for number in 0..3 {
                let mut name: NameBuf = "/p".parse().unwrap();
                name.push_number(50, number);
                let mut wire = Vec::new();
                NewInterest::new(name.as_name(), 7).write(&mut wire);
                send(&mut stream, &Headers { token, ..Headers::NONE }, &wire);
            }
            for number in 0..3 {
                let (headers, wire) = next(&mut stream);
                let Ok(Packet::Data(data)) = Packet::read(&wire) else { panic!("{wire:x?}") };
                assert_eq!(
                    (data.name.to_string(), headers.token),
                    (format!("/p/seg={number}"), token)
                );
                assert_eq!((data.content.len(), data.freshness_ms), (10, 2_000));
            }
            assert!(answer_command(&mut stream, 200).starts_with("/localhost/nfd/rib/unregister/"));
        });
        let url = forwarder.url();
        let flags =
            ["server", "/p", "--to", &url, "-c", "3", "--payload", "10", "--freshness", "2s"];
        let (served, code) = report(&flags);
        assert_eq!((&served["data"], code), (&3.into(), 0), "{served}");
        other.join().unwrap();
    });
}

#[test]
fn a_forwarder_that_refuses_or_disconnects_is_an_error() {
    for (code, words) in
        [(147, "refused to register /p: 147 well"), (0, "has closed the connection")]
    {
        let forwarder = Forwarder::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = forwarder.accept();
                match code {
                    0 => drop(next(&mut stream)),
                    code => drop(answer_command(&mut stream, code)),
                }
            });
            let url = forwarder.url();
            let (_, errors, code) = output_of(ndn().args(["server", "/p", "--to", &url]));
            assert!(code == 1 && errors.contains(words), "{errors}");
        });
    }
}

#[test]
fn nacks_are_counted_with_their_reasons() {
    let forwarder = Forwarder::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = forwarder.accept();
            for _ in 0..2 {
                let (headers, wire) = next(&mut stream);
                send(&mut stream, &Headers { nack: Some(NackReason::NoRoute), ..headers }, &wire);
            }
        });
        let url = forwarder.url();
        let flags = ["ping", "/a", "--to", &url, "-c", "2", "-i", "1ms", "-W", "10s"];
        let (out, errors, code) = output_of(ndn().args(flags));
        assert_eq!(code, 1, "{errors}");
        assert!(
            out.contains("Nack from /a: seq=2 reason=NoRoute") && out.contains("2 Nacks, 0 lost"),
            "{out}"
        );
    });
}

#[test]
fn bytes_that_are_not_ndn_end_a_stream_with_an_error() {
    let forwarder = Forwarder::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = forwarder.accept();
            let _ = next(&mut stream);
            stream.write_all(&[0xff; 100]).unwrap();
        });
        let url = forwarder.url();
        let (_, errors, code) = output_of(ndn().args(["ping", "/a", "--to", &url]));
        assert!(code == 1 && errors.contains("does not carry NDN"), "{errors}");
    });
}

/// A Python with python-ndn, an independent implementation.
pub(crate) fn python() -> Option<PathBuf> {
    let python =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools/venv/bin/python");
    let has = |python: &PathBuf| {
        let found = Command::new(python).args(["-c", "import ndn.appv2"]).output();
        found.is_ok_and(|output| output.status.success())
    };
    let found = Some(python).filter(has);
    if found.is_none() {
        eprintln!("SKIPPED: no python-ndn for Python; scripts/setup-test.sh fetches it");
    }
    found
}

#[test]
fn python_ndn_reads_the_data_of_the_server() {
    const SCRIPT: &str = "
import asyncio, sys
from ndn import appv2, encoding, security
from ndn.transport.udp_face import UdpFace

async def check(name, sig, context):
    good = await security.sha256_digest_checker(name, sig)
    kind = sig.signature_info.signature_type
    return appv2.ValidResult.PASS if good and kind == 0 else appv2.ValidResult.FAIL

app = appv2.NDNApp(face=UdpFace('127.0.0.1', int(sys.argv[1])))
async def main():
    name, content, context = await app.express('/p/one', check, lifetime=5000)
    meta = context['meta_info']
    print(encoding.Name.to_str(name), len(content), meta.freshness_period)
    app.shutdown()
app.run_forever(after_start=main())
";
    let Some(python) = python() else { return };
    let (server, url) = server("/p", &["--payload", "300", "--freshness", "7s"]);
    let port = url.rsplit(':').next().unwrap();
    let output =
        Command::new("timeout").arg("20").arg(python).args(["-c", SCRIPT, port]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "/p/one 300 7000\n", "{errors}");
    assert_eq!(end(server)["data"], 1);
}

#[test]
fn python_ndn_accepts_the_registration_as_a_signed_command() {
    const SCRIPT: &str = "
import asyncio, sys
from ndn import encoding, security
from ndn.app_support.nfd_mgmt import ControlParameters

async def serve(reader, writer):
    wire = await reader.read(65536)
    name, param, app_param, sig = encoding.parse_interest(wire)
    command = ControlParameters.parse(bytes(encoding.Component.get_value(name[4])))
    good = await security.params_sha256_checker(name, sig) and await security.sha256_digest_checker(name, sig)
    print(encoding.Name.to_str(name[:4]), encoding.Name.to_str(command.cp.name), good, flush=True)
    response = b'\\x65\\x07\\x66\\x01\\xc8\\x67\\x02OK'
    writer.write(encoding.make_data(name, encoding.MetaInfo(), response, security.DigestSha256Signer()))
    await writer.drain()
    await asyncio.sleep(0.2)
    writer.close()
    done.set()

async def main():
    global done
    done = asyncio.Event()
    async with await asyncio.start_unix_server(serve, sys.argv[1]):
        print('ready', file=sys.stderr, flush=True)
        await done.wait()
asyncio.run(main())
";
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nfd.sock");
    let mut command = Command::new("timeout");
    command.arg("20").arg(python).args(["-c", SCRIPT]).arg(&path);
    let other = Background::start(command, "ready");
    let url = format!("unix:{}", path.display());
    let (_, errors, code) = output_of(ndn().args(["server", "/p/q", "--to", &url]));
    // The script closes the connection after its response.
    assert!(code == 1 && errors.contains("serving /p/q") && errors.contains("closed"), "{errors}");
    let (out, errors, _) = other.end();
    assert_eq!(
        String::from_utf8_lossy(&out),
        "/localhost/nfd/rib/register /p/q True\n",
        "{errors}"
    );
}

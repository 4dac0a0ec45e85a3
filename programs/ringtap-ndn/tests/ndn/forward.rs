//! Tests of `ringtap-ndn forward`: neighbours over UDP, programs at the Unix socket, `forward ctl`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringtap_ndn::packets::management::{ControlParameters, ControlResponse, command};
use ringtap_ndn::packets::{
    Data, Element, Headers, Interest, LpPacket, NackReason, NameBuf, NewData, NewInterest, Packet,
    PitToken, write_lp,
};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{PROGRAM, ndn};
use ringtap_testkit::Background;
use ringtap_testkit::output_of;

/// The longest wait for a packet.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A running forwarder with a Unix socket and a UDP port.
pub(crate) struct Running {
    pub(crate) folder: TempDir,
    pub(crate) udp: SocketAddr,
    process: Background,
}

impl Running {
    /// Starts a forwarder with `more` after `[udp]` and `[unix]` in its configuration.
    pub(crate) fn start(more: &str) -> Self {
        Self::with_udp("", more)
    }

    /// As [`Self::start`], with the lines `in_udp` in `[udp]`.
    pub(crate) fn with_udp(in_udp: &str, more: &str) -> Self {
        Self::with_flags(&[], in_udp, more)
    }

    /// As [`Self::with_udp`], with more flags.
    pub(crate) fn with_flags(flags: &[&str], in_udp: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let udp = free_address();
        let socket = folder.path().join("ndn.sock");
        let config = folder.path().join("forward.toml");
        let text = format!(
            "[udp]\nlisten = \"{udp}\"\n{in_udp}\n[unix]\nlisten = {:?}\n{more}",
            socket.display().to_string()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["forward", "--report", "json", "--duration", "50s", "--config"]);
        command.arg(config).args(flags).env("NO_COLOR", "1");
        let process = Background::start(command, "forwarding at unix://");
        Self { folder, udp, process }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("ndn.sock")
    }

    pub(crate) fn ctl(&self, words: &[&str]) -> (String, String, i32) {
        output_of(ndn().args(["forward", "ctl"]).arg(self.socket()).args(words))
    }

    /// The output of a `ctl` command that succeeds.
    pub(crate) fn reply(&self, words: &[&str]) -> String {
        let (out, errors, code) = self.ctl(words);
        assert_eq!(code, 0, "{words:?}: {errors}");
        out
    }

    /// Repeats a `ctl` command until `condition` holds for its output; panics with the last output
    /// after six seconds.
    pub(crate) fn wait_until(&self, words: &[&str], condition: impl Fn(&str) -> bool) {
        let mut reply = String::new();
        for _ in 0..300 {
            reply = self.reply(words);
            if condition(&reply) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{words:?}: {reply}");
    }

    /// Ends the forwarder and returns its report. Checks that every packet is accounted for.
    pub(crate) fn end(self) -> Value {
        self.process.interrupt();
        let (report, errors, code) = self.process.end();
        assert_eq!(code, 0, "{errors}");
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["ledger"]["residual"], 0, "{report}");
        report
    }
}

/// An address of the loopback interface with a port that is free for UDP and TCP.
pub(crate) fn free_address() -> SocketAddr {
    loop {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = udp.local_addr().unwrap();
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

pub(crate) fn neighbour() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

fn name(text: &str) -> NameBuf {
    text.parse().unwrap()
}

pub(crate) fn interest(text: &str, nonce: u32, token: &[u8]) -> Vec<u8> {
    let (mut bare, mut wire) = (Vec::new(), Vec::new());
    let name = name(text);
    let new = NewInterest::new(name.as_name(), nonce);
    // Longer than a test on a busy machine.
    NewInterest { lifetime_ms: Some(60_000), ..new }.write(&mut bare);
    let token = PitToken::new(token).unwrap();
    write_lp(&Headers { token, ..Headers::default() }, &bare, &mut wire);
    wire
}

/// Receives a packet: its headers, its payload and the sender's address.
pub(crate) fn received(socket: &UdpSocket) -> (Headers, Vec<u8>, SocketAddr) {
    let mut bytes = [0; 9500];
    let (len, from) = socket.recv_from(&mut bytes).unwrap();
    let packet = LpPacket::read(&bytes[..len]).unwrap();
    assert_eq!(packet.fragment.count, 1);
    (packet.headers, packet.payload.unwrap().to_vec(), from)
}

/// Answers the next Interest with Data and returns its name.
pub(crate) fn answer(socket: &UdpSocket, content: &[u8]) -> NameBuf {
    let (headers, packet, from) = received(socket);
    let interest = Interest::read(&packet).unwrap();
    let (mut bare, mut wire) = (Vec::new(), Vec::new());
    NewData { name: interest.name, freshness_ms: Some(1000), content }.write(&mut bare);
    write_lp(&Headers { token: headers.token, ..Headers::default() }, &bare, &mut wire);
    socket.send_to(&wire, from).unwrap();
    NameBuf::of(interest.name)
}

/// A connection to the forwarder's Unix socket, and the bytes that were read ahead.
struct Program(UnixStream, Vec<u8>);

impl Program {
    fn connect(running: &Running) -> Self {
        let stream = UnixStream::connect(running.socket()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self(stream, Vec::new())
    }

    fn send(&mut self, wire: &[u8]) {
        self.0.write_all(wire).unwrap();
    }

    fn received(&mut self) -> (Headers, Vec<u8>) {
        loop {
            if let Ok((_, rest)) = Element::first(&self.1) {
                let len = self.1.len() - rest.len();
                let frame: Vec<u8> = self.1.drain(..len).collect();
                let packet = LpPacket::read(&frame).unwrap();
                return (packet.headers, packet.payload.unwrap().to_vec());
            }
            let mut bytes = [0; 4096];
            let count = self.0.read(&mut bytes).unwrap();
            assert!(count > 0, "the forwarder closed the connection");
            self.1.extend_from_slice(&bytes[..count]);
        }
    }

    fn command(&mut self, verb: &str, parameters: &ControlParameters) -> ControlResponse {
        let mut wire = Vec::new();
        command("localhost", "rib", verb, parameters, 77, 1_700_000_000_000, &mut wire);
        self.send(&wire);
        let (_, data) = self.received();
        ControlResponse::read(Data::read(&data).unwrap().content).unwrap()
    }
}

fn prefix(text: &str) -> ControlParameters {
    ControlParameters { name: Some(name(text)), ..ControlParameters::default() }
}

#[test]
fn interests_follow_the_routes_and_data_return_with_the_consumers_token() {
    let (producer, consumer, other) = (neighbour(), neighbour(), neighbour());
    let running = Running::start(&format!(
        "[[route]]\nprefix = \"/far\"\nto = \"udp://{}\"\n",
        producer.local_addr().unwrap()
    ));
    consumer.send_to(&interest("/far/a", 1, &[1, 1]), running.udp).unwrap();
    other.send_to(&interest("/far/a", 2, &[2, 2, 2]), running.udp).unwrap();
    // The second Interest of the same name is aggregated: the producer receives one.
    running.wait_until(&["status"], |reply| reply.contains("in:  2 Interests"));
    assert_eq!(answer(&producer, b"there").to_string(), "/far/a");
    for (socket, token) in [(&consumer, &[1, 1][..]), (&other, &[2, 2, 2])] {
        let (headers, packet, _) = received(socket);
        assert_eq!(headers.token.as_bytes(), token);
        assert_eq!(Data::read(&packet).unwrap().content, b"there");
    }
    // Then the content store has it.
    other.send_to(&interest("/far/a", 3, &[3]), running.udp).unwrap();
    assert_eq!(received(&other).0.token.as_bytes(), [3]);
    // Without a route there is a Nack. Names under /localhost are dropped at a UDP face.
    other.send_to(&interest("/elsewhere", 4, &[4]), running.udp).unwrap();
    assert_eq!(received(&other).0.nack, Some(NackReason::NoRoute));
    other.send_to(&interest("/localhost/nfd/rib/list", 5, &[5]), running.udp).unwrap();
    other.send_to(b"no packet", running.udp).unwrap();
    other.send_to(&interest("/elsewhere", 6, &[6]), running.udp).unwrap();
    assert_eq!(received(&other).0.token.as_bytes(), [6]);
    let report = running.end();
    let packets = &report["packets"];
    assert_eq!([&packets["interests_in"], &packets["interests_out"]], [6, 1], "{report}");
    assert_eq!([&packets["data_in"], &packets["data_out"]], [1, 3]);
    assert_eq!([&packets["dropped"]["no-route"], &packets["dropped"]["scope"]], [2, 1]);
    assert_eq!(report["content_store"]["hits"], 1);
    assert_eq!(report["links"]["dropped"]["malformed"], 1);
    assert_eq!(report["tokens"], serde_json::json!({ "right": 1, "wrong": 0 }));
    assert_eq!(report["faces"].as_array().unwrap().len(), 3);
}

#[test]
fn a_program_registers_a_prefix_and_serves_it_until_it_disconnects() {
    let running = Running::start("");
    let mode = fs::metadata(running.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (mut producer, consumer) = (Program::connect(&running), neighbour());
    let response = producer.command("register", &prefix("/here"));
    assert_eq!((response.code, response.text.as_str()), (200, "OK"));
    let face = response.parameters.unwrap().face.unwrap();
    let listed = running.reply(&["routes"]);
    assert!(listed.contains("/here") && listed.contains(&face.to_string()), "{listed}");

    consumer.send_to(&interest("/here/x", 1, &[9]), running.udp).unwrap();
    let (headers, packet) = producer.received();
    let Packet::Interest(request) = Packet::read(&packet).unwrap() else { panic!() };
    let (mut bare, mut wire) = (Vec::new(), Vec::new());
    NewData { name: request.name, freshness_ms: None, content: &[7; 8000] }.write(&mut bare);
    write_lp(&Headers { token: headers.token, ..Headers::default() }, &bare, &mut wire);
    producer.send(&wire);
    let (headers, packet, _) = received(&consumer);
    assert_eq!((headers.token.as_bytes(), packet), (&[9][..], bare));

    let code = |response: ControlResponse| response.code;
    assert_eq!(code(producer.command("unregister", &prefix("/here"))), 200);
    assert!(!running.reply(&["routes"]).contains("/here"));
    // Invalid commands get an error code, and the program stays connected.
    assert_eq!(code(producer.command("register", &ControlParameters::default())), 400);
    let nowhere = ControlParameters { face: Some(9999), ..prefix("/x") };
    assert_eq!(code(producer.command("register", &nowhere)), 410);
    assert_eq!(code(producer.command("no-such", &prefix("/x"))), 501);
    let long: String = (0..65).map(|n| format!("/{n}")).collect();
    assert_eq!(code(producer.command("register", &prefix(&long))), 414);
    // One route expires, the other ends with its face.
    let short = ControlParameters { expiration_ms: Some(1), ..prefix("/short") };
    assert_eq!(code(producer.command("register", &short)), 200);
    assert_eq!(code(producer.command("register", &prefix("/long"))), 200);
    running.wait_until(&["routes"], |reply| reply.contains("/long") && !reply.contains("/short"));
    drop(producer);
    running.wait_until(&["routes"], |reply| !reply.contains("/long"));
    consumer.send_to(&interest("/long/x", 2, &[8]), running.udp).unwrap();
    assert_eq!(received(&consumer).0.nack, Some(NackReason::NoRoute));
    let socket = running.socket();
    let report = running.end();
    assert_eq!(report["routes"], 0);
    assert!(!socket.exists(), "the socket's file remains");
}

#[test]
fn routes_and_strategies_can_be_changed_during_the_run() {
    let running = Running::start("");
    let (one, two, consumer) = (neighbour(), neighbour(), neighbour());
    let to = |socket: &UdpSocket| format!("udp://{}", socket.local_addr().unwrap());
    let registered = running.reply(&["register", "/p", &to(&one), "--cost", "5"]);
    assert!(registered.starts_with("/p is routed to face "), "{registered}");
    running.reply(&["register", "/p", &to(&two), "--cost", "9"]);
    consumer.send_to(&interest("/p/a", 1, &[]), running.udp).unwrap();
    answer(&one, b"one");
    assert_eq!(Data::read(&received(&consumer).1).unwrap().content, b"one");
    running.reply(&["unregister", "/p", &to(&one)]);
    consumer.send_to(&interest("/p/b", 2, &[]), running.udp).unwrap();
    answer(&two, b"two");
    assert_eq!(Data::read(&received(&consumer).1).unwrap().content, b"two");
    // With multicast both receive the Interest.
    running.reply(&["register", "/p", &to(&one)]);
    running.reply(&["strategy", "/p", "multicast"]);
    assert!(running.reply(&["strategies"]).contains("/p  multicast"));
    consumer.send_to(&interest("/p/c", 3, &[]), running.udp).unwrap();
    for socket in [&one, &two] {
        assert_eq!(answer(socket, b"both").to_string(), "/p/c");
    }
    running.reply(&["strategy", "/p", "none"]);
    let strategies = running.reply(&["strategies"]);
    assert!(!strategies.contains("/p") && strategies.contains("best-route"), "{strategies}");

    let faces = running.reply(&["faces"]);
    let local = one.local_addr().unwrap().to_string();
    let row = faces.lines().find(|line| line.contains(&local)).unwrap();
    let face = row.split_whitespace().next().unwrap();
    running.reply(&["close", face]);
    assert!(!running.reply(&["faces"]).contains(&local));
    assert!(!running.reply(&["routes"]).contains(&local));
    let status = running.reply(&["status"]);
    assert!(status.contains("ringtap") && status.contains("in:  3 Interests"), "{status}");
    for (words, expected, code) in [
        (&["unregister", "/p", "udp://127.0.0.1:9"][..], "unknown face", 1),
        (&["register", "/p", "tcp://x"], "use udp://", 2),
        (&["register", "/p", "4000"], "410", 1),
        (&["strategy", "/p", "fast"], "best-route, multicast", 2),
        (&["register", "/p/%zz", "256"], "%zz", 2),
    ] {
        let (_, errors, ended) = running.ctl(words);
        assert!(ended == code && errors.contains(expected), "{words:?}: {errors}");
    }
    running.end();
    let (_, errors, code) = output_of(ndn().args(["forward", "ctl", "/no/such", "routes"]));
    assert!(code == 1 && errors.contains("no forwarder listens at /no/such"), "{errors}");
}

/// Sends a packet to the forwarder from each of many addresses of this machine.
pub(crate) fn from_many(to: SocketAddr, addresses: u32, packet: impl Fn(u32) -> Vec<u8>) {
    for number in 0..addresses {
        let [_, _, high, low] = number.to_be_bytes();
        // The ports differ as well.
        let socket = UdpSocket::bind(SocketAddr::from(([127, 77, high, low], 0))).unwrap();
        socket.send_to(&packet(number), to).unwrap();
    }
}

#[test]
fn a_flood_of_senders_does_not_evict_programs_and_configured_faces() {
    const SENDERS: u32 = 10_000;
    let (quiet, busy) = (neighbour(), neighbour());
    let route = |prefix: &str, to: &UdpSocket| {
        let to = to.local_addr().unwrap();
        format!("[[route]]\nprefix = \"{prefix}\"\nto = \"udp://{to}\"\n")
    };
    let running = Running::start(&(route("/quiet", &quiet) + &route("/busy", &busy)));
    let faces = |running: &Running| running.reply(&["faces"]).lines().count() - 1;
    // Malformed packets create no face. The third face is that of `forward ctl`.
    let junk = [&[100, 0][..], &[5, 0], &[6, 0], &[100, 2, 0x50, 0], &[0]];
    from_many(running.udp, SENDERS, |number| junk[number as usize % junk.len()].to_vec());
    assert_eq!(faces(&running), 3, "{}", running.reply(&["faces"]));
    // Packets create faces up to the limit, and the latest remain.
    from_many(running.udp, SENDERS, |number| interest(&format!("/busy/{number}"), number, &[]));
    running.wait_until(&["status"], |reply| reply.contains("faces evicted"));
    assert!(faces(&running) <= 3 + 3072, "{}", faces(&running));
    let listed = running.reply(&["faces"]);
    for configured in [&quiet, &busy] {
        let at = configured.local_addr().unwrap().to_string();
        assert!(listed.contains(&at), "{at} is gone");
    }
    // A program can still connect, consume and produce.
    let mut program = Program::connect(&running);
    program.send(&interest("/quiet/x", 1, &[1]));
    assert_eq!(answer(&quiet, b"there").to_string(), "/quiet/x");
    assert_eq!(Data::read(&program.received().1).unwrap().content, b"there");
    assert_eq!(program.command("register", &prefix("/here")).code, 200);
    let consumer = neighbour();
    consumer.send_to(&interest("/here/x", 2, &[9]), running.udp).unwrap();
    let (headers, packet) = program.received();
    let request = Interest::read(&packet).unwrap();
    let (mut bare, mut wire) = (Vec::new(), Vec::new());
    NewData { name: request.name, freshness_ms: None, content: b"here" }.write(&mut bare);
    write_lp(&Headers { token: headers.token, ..Headers::default() }, &bare, &mut wire);
    program.send(&wire);
    assert_eq!(Data::read(&received(&consumer).1).unwrap().content, b"here");
    let report = running.end();
    let of = |name: &str| report["faces_on_demand"][name].as_u64().unwrap();
    let lost_by_kernel = report["kernel_dropped"].as_u64().unwrap();
    assert_eq!([of("most"), of("refused_frames")], [3072, 0], "{report}");
    assert!(of("now") <= 3072, "{report}");
    let created = of("now") + of("evicted");
    assert!(created + lost_by_kernel > u64::from(SENDERS) && created <= u64::from(SENDERS) + 1);
    let junk = &report["links"]["dropped"]["malformed"];
    assert!(junk.as_u64().unwrap() + lost_by_kernel >= u64::from(SENDERS) * 4 / 5, "{report}");
}

#[test]
fn interests_above_the_share_of_a_face_are_refused_and_other_faces_are_not_affected() {
    let producer = neighbour();
    let at = producer.local_addr().unwrap();
    let running = Running::start(&format!(
        "[tables]\npit-per-face = 10\n[[route]]\nprefix = \"/p\"\nto = \"udp://{at}\"\n"
    ));
    let (greedy, modest) = (neighbour(), neighbour());
    for number in 0..15_u8 {
        let packet = interest(&format!("/p/{number}"), number.into(), &[number]);
        greedy.send_to(&packet, running.udp).unwrap();
    }
    for number in 10..15_u8 {
        let (headers, packet, _) = received(&greedy);
        let name = Interest::read(&packet).unwrap().name.to_string();
        let expected = (Some(NackReason::Congestion), format!("/p/{number}"));
        assert_eq!(
            (headers.nack, name, headers.token.as_bytes()),
            (expected.0, expected.1, &[number][..])
        );
    }
    modest.send_to(&interest("/p/modest", 99, &[7]), running.udp).unwrap();
    for number in 0..10 {
        assert_eq!(answer(&producer, b"content").to_string(), format!("/p/{number}"));
    }
    assert_eq!(answer(&producer, b"content").to_string(), "/p/modest");
    assert_eq!(received(&modest).0.token.as_bytes(), [7]);
    let status = running.reply(&["status"]);
    assert!(status.contains("Interests refused: too many pending of their face: 5"), "{status}");
    let report = running.end();
    assert_eq!(report["packets"]["dropped"]["face-share"], 5, "{report}");
    let plan = &report["plan"];
    assert_eq!([&plan["pit_per_face"], &plan["lifetime_max_ms"]], [10, 10_000], "{plan}");
}

/// Names under one prefix spread over two workers, which give the answers of one.
#[test]
fn workers_share_the_names_of_one_prefix() {
    let server_at = free_address();
    let mut server = Command::new(PROGRAM);
    server.args(["server", "/load", "--payload", "50", "--duration", "40s"]);
    server.args(["--listen", &format!("udp://{server_at}")]);
    let server = Background::start(server, "serving /load");
    let flags = ["--workers", "2"];
    let more = format!(
        "[workers]\nhash-components = 8\n[[route]]\nprefix = \"/load\"\nto = \"udp://{server_at}\"\n"
    );
    let running = Running::with_flags(&flags, "", &more);
    let to = format!("udp://{}", running.udp);
    let load = ["load", "/load", "--count", "4000", "--window", "64", "--to", &to];
    let (out, errors, code) = output_of(ndn().args(load).args(["--report", "json"]));
    assert_eq!(code, 0, "{errors}");
    let load: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(load["answered"], 4000, "{load}");
    let report = running.end();
    let workers = report["workers"].as_array().unwrap();
    let packets = |worker: &Value| {
        worker["interests_in"].as_u64().unwrap() + worker["data_in"].as_u64().unwrap()
    };
    let [first, second] = [&workers[0], &workers[1]].map(packets);
    assert_eq!(first + second, 8000, "{workers:?}");
    assert!((3200..=4800).contains(&first), "{workers:?}");
    assert_eq!(report["interests"]["satisfied"], 4000, "{report}");
    drop(server);
}

/// A program that asks for the list of 1,000 faces in a loop, and reads nothing after the first octet: packets of others
/// are forwarded meanwhile, and SIGTERM ends the run.
#[test]
fn a_program_that_asks_in_a_loop_delays_neither_packets_nor_the_end() {
    for workers in ["1", "2"] {
        let producer = neighbour();
        let routes: String = (0..1_000)
            .map(|n| {
                format!("[[route]]\nprefix = \"/n/{n}\"\nto = \"udp://127.0.0.1:{}\"\n", 20_000 + n)
            })
            .collect();
        let at = producer.local_addr().unwrap();
        let route = format!("[[route]]\nprefix = \"/p\"\nto = \"udp://{at}\"\n");
        let flags = ["--workers", workers];
        let running = Running::with_flags(&flags, "", &format!("{routes}{route}"));
        let mut program = Program::connect(&running);
        let asked: Vec<u8> =
            (0..2_000).flat_map(|n| interest("/localhost/nfd/faces/list", n, &[9])).collect();
        program.send(&interest("/localhost/nfd/faces/list", 2_000, &[9]));
        program.0.read_exact(&mut [0]).unwrap();
        let stop = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                // It ends when the forwarder does.
                while !stop.load(Ordering::Relaxed) {
                    if program.0.write_all(&asked).is_err() {
                        break;
                    }
                }
            });
            let consumer = neighbour();
            for number in 0..50 {
                let name = format!("/p/{number}");
                consumer.send_to(&interest(&name, number, &[1]), running.udp).unwrap();
                assert_eq!(answer(&producer, b"x").to_string(), name);
                assert_eq!(Data::read(&received(&consumer).1).unwrap().name.to_string(), name);
            }
            running.process.send(Signal::TERM);
            stop.store(true, Ordering::Relaxed);
            let (report, errors, code) = running.process.end();
            assert_eq!(code, 0, "{errors}");
            serde_json::from_slice::<Value>(&report).unwrap()
        });
        assert_eq!(report["ledger"]["residual"], 0, "{report}");
        assert_eq!(report["interests"]["satisfied"], 50, "{report}");
        let management = &report["management"];
        assert!(management["answered"].as_u64().unwrap() > 0, "{management}");
    }
}

#[test]
fn large_lists_and_large_packets_are_fragmented() {
    let producer = neighbour();
    let at = producer.local_addr().unwrap();
    let routes: String = (0..400)
        .map(|n| {
            format!("[[route]]\nprefix = \"/a/rather/long/prefix/{n}\"\nto = \"udp://{at}\"\n")
        })
        .collect();
    let running = Running::with_udp("mtu = 1000", &routes);
    let listed = running.reply(&["routes"]);
    assert_eq!(listed.lines().count(), 401, "{listed}");
    let consumer = neighbour();
    consumer.send_to(&interest("/a/rather/long/prefix/7/x", 1, &[1]), running.udp).unwrap();
    answer(&producer, &[3; 7_000]);
    let mut reassembler = ringtap_ndn::packets::Reassembler::new(1, u64::MAX);
    let mut bytes = [0; 9000];
    loop {
        let len = consumer.recv(&mut bytes).unwrap();
        assert!(len <= 1000, "{len}");
        let fragment = LpPacket::read(&bytes[..len]).unwrap();
        if let ringtap_ndn::packets::Reassembly::Complete(headers, whole) =
            reassembler.take(0, 0, &fragment)
        {
            assert_eq!(headers.token.as_bytes(), [1]);
            assert_eq!(Data::read(whole).unwrap().content, [3; 7_000]);
            break;
        }
    }
    let report = running.end();
    assert_eq!(
        (&report["packets"]["data_out"], report["links"]["frames_out"].as_u64() > Some(8)),
        (&1.into(), true)
    );
}

#[test]
fn a_dry_run_prints_the_plan_and_errors_name_their_cause() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("ndn.toml");
    let write = |text: &str| fs::write(&config, text).unwrap();
    write("[udp]\n[[route]]\nprefix = \"/a\"\nto = \"udp://192.0.2.1\"\ncost = 7\n");
    let (plan, errors, code) =
        output_of(ndn().args(["forward", "--dry-run", "--config"]).arg(&config));
    assert_eq!((errors.as_str(), code), ("", 0));
    assert!(plan.contains("udp://0.0.0.0:6363"), "{plan}");
    assert!(plan.contains("/a to udp4://192.0.2.1:6363, cost 7"), "{plan}");
    for (text, words, expected) in [
        ("[udp]\nport = 3\n", "line 2", 2),
        ("", "add [udp]", 2),
        ("[udp]\nlisten = \"192.0.2.77:6363\"\n", "listening at udp://192.0.2.77:6363", 1),
        ("[udp]\nlisten = \"127.0.0.1:0\"\nmtu = 10\n", "use 240 to 65535 bytes", 2),
        ("[[ethernet]]\ninterface = \"no-such\"\n", "ether://no-such", 1),
        ("[unix]\nlisten = \"/no/such/folder/x\"\n", "/no/such/folder/x", 1),
    ] {
        write(text);
        let (out, errors, code) = output_of(ndn().args(["forward", "--config"]).arg(&config));
        assert!(errors.contains(words), "{text}: {errors}");
        assert_eq!((out.as_str(), code), ("", expected), "{text}: {errors}");
    }
    let (_, errors, code) = output_of(ndn().args(["forward", "--config", "no-such.toml"]));
    assert!(code == 2 && errors.contains("no-such.toml"), "{errors}");
    let (_, errors, code) = output_of(ndn().arg("forward"));
    assert!(code == 2 && errors.contains("--config"), "{errors}");
}

/// The example of the documentation, with addresses and paths that a test may use.
#[test]
fn the_documented_configuration_runs() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (example, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ndn.sock");
    let udp = free_address();
    let text = example
        .replace("/run/ndn.sock", socket.to_str().unwrap())
        .replace("[\"0.0.0.0:6363\", \"[::]:6363\"]", &format!("[\"{udp}\"]"))
        .replace("\"eth1\"", "\"lo\"")
        .replace("ether://eth1", "ether://lo");
    assert_ne!(text, example);
    let config = folder.path().join("ndn.toml");
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: an Ethernet needs root");
        return;
    }
    fs::write(&config, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["forward", "--duration", "60s", "--config"]).arg(&config);
    let running = Background::start(command, "forwarding at unix://");
    let routes = output_of(ndn().args(["forward", "ctl"]).arg(&socket).arg("routes")).0;
    assert!(routes.contains("/example"), "{routes}");
    running.interrupt();
    let (report, errors, code) = running.end();
    assert_eq!(code, 0, "{errors}");
    assert!(String::from_utf8(report).unwrap().contains("0 unaccounted for"));
}

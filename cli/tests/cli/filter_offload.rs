//! Tests of `filter` between interfaces with the default offloads of a veth: frames with incomplete
//! checksums, and super-frames of up to 64 KiB.
//!
//! ```text
//!  namespace a: left ─── right :namespace b: filter, both ways: out ─── far :namespace c
//!  10.7.0.1, fd07::1                                                    10.7.0.2, fd07::2
//! ```

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ringtap_io::live::{Frame, Options, Receiver, Segments, complete, open};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::have;
use crate::net::{Background, End, Left, Net, NetCommands, Right};
use ringtap_testkit::Killed;

/// The longest wait for a peer.
const TIMEOUT: Duration = Duration::from_secs(30);

const MIB: usize = 1 << 20;

/// A client, a running filter and a server, connected in a row.
struct Path {
    /// The client runs in the left namespace, the filter in the right one.
    client: Net,
    /// The server runs in the left namespace. The right one is unused.
    server: Net,
    filter: Background,
    _folder: TempDir,
}

impl Path {
    fn start(flags: &[&str]) -> Option<Self> {
        let (client, server) = (Net::new(1)?, Net::new(1)?);
        let far = format!("link add far type veth peer name out netns {}", client.name(Right));
        server.ip(Left, &far);
        client.ip(Right, "link set out up");
        for (net, link, host) in [(&client, "left", 1), (&server, "far", 2)] {
            net.inside(Left, || {
                let place = format!("/proc/sys/net/ipv6/conf/{link}/disable_ipv6");
                fs::write(place, "0").unwrap();
            });
            net.ip(Left, &format!("link set {link} up"));
            net.ip(Left, &format!("addr add 10.7.0.{host}/24 dev {link}"));
            net.ip(Left, &format!("addr add fd07::{host}/64 dev {link} nodad"));
        }
        let folder = tempfile::tempdir().unwrap();
        let control = format!("unix:{}", folder.path().join("socket").display());
        let base = ["filter", "-i", "right", "-o", "out", "--both-ways", "--default", "allow"];
        let own = ["--report", "json", "--duration", "300s", "--control", &control];
        let command = client.ringtap(Right, &[&base[..], &own, flags].concat());
        let filter = Background::start(command, "control: ");
        Some(Self { client, server, filter, _folder: folder })
    }

    /// Adds VLAN 9 with the client at 10.9.0.1 and the server at 10.9.0.2; false if the kernel has
    /// no VLANs.
    fn add_vlan(&self) -> bool {
        for (net, link, host) in [(&self.client, "left", 1), (&self.server, "far", 2)] {
            let add = ["-n", net.name(Left), "link", "add", "link", link, "name", "vlan9"];
            let output = Command::new("ip").args(add).args(["type", "vlan", "id", "9"]).output();
            if !output.unwrap().status.success() {
                eprintln!("SKIPPED: this kernel has no VLAN interfaces (module 8021q)");
                return false;
            }
            net.ip(Left, "link set vlan9 up");
            net.ip(Left, &format!("addr add 10.9.0.{host}/24 dev vlan9"));
        }
        true
    }

    /// The number of frames that the interface has received.
    fn received(&self, net: &Net, end: End, link: &str) -> u64 {
        let arguments = ["-n", net.name(end), "-j", "-s", "link", "show", link];
        let shown = Command::new("ip").args(arguments).output().unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    }

    fn report(self) -> (Value, i32) {
        self.filter.interrupt();
        let (report, errors, code) = self.filter.end();
        let report = serde_json::from_slice(&report);
        (report.unwrap_or_else(|error| panic!("{error}: {errors}")), code)
    }

    /// Ends the filter and returns the report. Checks that each received packet was sent.
    fn end(self) -> Value {
        let (report, code) = self.report();
        assert_eq!(code, 0, "{report}");
        let packets = &report["packets"];
        assert_eq!(packets["received"], packets["passed"], "{report}");
        assert_eq!(report["ledger"]["residual"], 0, "{report}");
        // Losses in the kernel, before the filter, are allowed.
        for stage in report["ledger"]["stages"].as_array().unwrap() {
            if stage["stage"] != "interface" {
                assert_eq!(stage["dropped"], serde_json::json!({}), "{report}");
                assert_eq!(stage["in"], stage["out"], "{report}");
            }
        }
        report
    }
}

/// Bytes that do not repeat within any frame.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| next()).collect();
    bytes.truncate(len);
    bytes
}

/// Sends `len` bytes from the client to the server over TCP, and `len` other bytes back.
fn exchange(path: &Path, at: &str, len: usize) {
    let (request, response) = (bytes(1, len), bytes(2, len));
    let listener = path.server.inside(Left, || TcpListener::bind((at, 0)).unwrap());
    let to = listener.local_addr().unwrap();
    let (there, back) = thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            stream.write_all(&response).unwrap();
            received
        });
        let back = path.client.inside(Left, || {
            let stream = TcpStream::connect_timeout(&to, TIMEOUT);
            let Ok(mut stream) = stream else {
                // Connects from the server's namespace, so that `accept` returns.
                drop(path.server.inside(Left, || TcpStream::connect(to)));
                return Vec::new();
            };
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.set_write_timeout(Some(TIMEOUT)).unwrap();
            let _ = stream.write_all(&request);
            let _ = stream.shutdown(Shutdown::Write);
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received);
            received
        });
        (server.join().unwrap(), back)
    });
    assert!(there == request, "{at}: {} of {len} bytes there", there.len());
    assert!(back == response, "{at}: {} of {len} bytes back", back.len());
}

/// Sends datagrams from the client to the server and back. Each is sent again until it arrives,
/// because the filter's ring may overflow on a busy machine.
fn exchange_datagrams(path: &Path, at: &str, from: &str) {
    let server = path.server.inside(Left, || UdpSocket::bind((at, 0)).unwrap());
    let client = path.client.inside(Left, || UdpSocket::bind((from, 0)).unwrap());
    let (to, back) = (server.local_addr().unwrap(), client.local_addr().unwrap());
    for (number, len) in (0..).zip([1, 29, 30, 512, 1_231, 1_422]) {
        deliver(&client, &server, to, &bytes(number, len));
        deliver(&server, &client, back, &bytes(100 + number, len));
    }
}

/// Sends a datagram with these bytes until it arrives, up to 30 times.
fn deliver(from: &UdpSocket, at: &UdpSocket, to: SocketAddr, bytes: &[u8]) {
    at.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut buffer = [0; 2_000];
    for _ in 0..30 {
        from.send_to(bytes, to).unwrap();
        // Repeated datagrams may arrive late.
        while let Ok(len) = at.recv(&mut buffer) {
            if &buffer[..len] == bytes {
                return;
            }
        }
    }
    panic!("{} bytes never arrive at {to}", bytes.len());
}

/// Methods to receive and to send. AF_XDP for both would bind queue 0 of an interface twice, which
/// is refused.
const METHODS: [[&str; 4]; 3] = [
    ["--capture", "af-packet", "--send", "af-packet"],
    ["--capture", "af-packet", "--send", "af-xdp"],
    ["--capture", "af-xdp", "--send", "af-packet"],
];

#[test]
fn tcp_and_udp_from_senders_with_checksum_offload_arrive_intact() {
    for flags in METHODS {
        eprintln!("{flags:?}");
        let Some(path) = Path::start(&flags) else { return };
        exchange_datagrams(&path, "10.7.0.2", "10.7.0.1");
        exchange_datagrams(&path, "fd07::2", "fd07::1");
        exchange(&path, "10.7.0.2", 8 * MIB);
        exchange(&path, "fd07::2", 8 * MIB);
        // AF_XDP does not receive VLAN tags that are not in the frame.
        if flags[1] == "af-packet" && path.add_vlan() {
            exchange_datagrams(&path, "10.9.0.2", "10.9.0.1");
            exchange(&path, "10.9.0.2", 8 * MIB);
        }
        let arrived = path.received(&path.server, Left, "far");
        let received = path.received(&path.client, Right, "right");
        let report = path.end();
        let octets = report["packets"]["octets"].as_u64().unwrap();
        assert!(octets > 32 * MIB as u64, "{report}");
        let [whole, cut, segments] = super_frames(&report);
        // A veth takes super-frames, AF_XDP does not, and receives none.
        match (flags[1], flags[3]) {
            ("af-packet", "af-packet") => assert!(whole > 100 && segments > 2 * whole, "{report}"),
            ("af-packet", _) => {
                assert!(whole == 0 && cut > 100 && segments > 2 * cut, "{report}");
                assert!(arrived > received + received / 2, "{arrived} frames of {received}");
            }
            _ => assert_eq!([whole, cut, segments], [0; 3], "{report}"),
        }
    }
}

/// The counters of super-frames: sent whole, cut, and the segments of both.
fn super_frames(report: &Value) -> [u64; 3] {
    ["whole", "cut", "segments"].map(|name| report["super_frames"][name].as_u64().unwrap())
}

#[test]
fn an_output_that_refuses_super_frames_gets_segments() {
    let Some(path) = Path::start(&[]) else { return };
    // As a network card that cuts only shorter ones: checked when a frame is sent.
    path.client.ip(Right, "link set out gso_max_size 20000");
    exchange(&path, "10.7.0.2", 8 * MIB);
    exchange(&path, "fd07::2", 8 * MIB);
    let report = path.end();
    let [_, cut, segments] = super_frames(&report);
    assert!(cut > 50 && segments > 14 * cut, "{report}");
}

#[test]
fn a_udp_super_frame_leaves_as_its_datagrams() {
    if !have("python3") {
        return;
    }
    for flags in &METHODS[..2] {
        let Some(path) = Path::start(flags) else { return };
        for (at, family) in [("10.7.0.2", "AF_INET"), ("fd07::2", "AF_INET6")] {
            let server = path.server.inside(Left, || UdpSocket::bind((at, 0)).unwrap());
            server.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            let port = server.local_addr().unwrap().port();
            // UDP_SEGMENT: the network card cuts datagrams of 1,000 bytes.
            let script = format!(
                "import socket\ns = socket.socket(socket.{family}, socket.SOCK_DGRAM)\n\
                 s.setsockopt(17, 103, 1000)\n\
                 s.sendto(b''.join(bytes([i]) * 1000 for i in range(20)) + b'end', ('{at}', {port}))"
            );
            let mut sent: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 1_000]).collect();
            sent.push(b"end".to_vec());
            let send_and_receive = || {
                let output = path.client.program(Left, "python3").args(["-c", &script]).output();
                let output = output.unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let mut received = Vec::new();
                let mut buffer = [0; 2_000];
                while received.len() < sent.len()
                    && let Ok(len) = server.recv(&mut buffer)
                {
                    received.push(buffer[..len].to_vec());
                }
                received
            };
            // Sent again if the filter lost some on a busy machine.
            assert!((0..5).any(|_| send_and_receive() == sent), "{at}");
        }
        let report = path.end();
        let [whole, cut, segments] = super_frames(&report);
        let (mine, other) = if flags[3] == "af-packet" { (whole, cut) } else { (cut, whole) };
        assert!(mine >= 2 && other == 0 && segments == 21 * mine, "{report}");
    }
}

/// A Python script that sends frames with a virtio header each, as a virtual machine does.
const RAW: &str = "
import socket, struct, sys
def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total > 0xffff: total = (total & 0xffff) + (total >> 16)
    return total
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
s.bind(('left', 0))
payload = bytes(i * 31 >> 3 & 255 for i in range(30000))
for protocol, kind, at in [(6, 1, 16), (6, 0x81, 16), (17, 5, 6), (6, 0, 16), (17, 0, 6), (132, 0, 8)]:
    body = payload if kind else payload[:1000]
    length = len(body) + {6: 20, 17: 8, 132: 12}[protocol]
    head = struct.pack('!BBHHHBBH4s4s', 0x45, 0, length + 20, 7, 0, 64, protocol, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 1, 1]))
    head = head[:10] + struct.pack('!H', 0xffff ^ checksum(head)) + head[12:]
    pseudo = checksum(head[12:20] + struct.pack('!HH', protocol, length))
    if protocol == 17:
        transport = struct.pack('!HHHH', 5, 6, length, pseudo)
    elif protocol == 132:
        transport = struct.pack('!HHII', 5, 6, 7, 0)
    else:
        transport = struct.pack('!HHIIBBHHH', 5, 6, 1000, 2000, 0x50, 0x99, 100, pseudo, 0)
    frame = bytes.fromhex('020000000002020000000001 81000009 0800') + head + transport + body
    s.send(struct.pack('=BBHHHH', 1, kind, 18 + 20 + len(transport), 1000 if kind else 0, 38, at) + frame)
";

/// The CRC32c of the SCTP packet above, computed bit by bit.
const SCTP_CRC: [u8; 4] = [0x2f, 0x9d, 0x29, 0xb9];

/// The one's complement sum of 16-bit words.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// The number of tagged frames that arrive, and `expected` or more packets that the network card would make of them.
fn take_tagged(receiver: &mut Receiver, expected: usize) -> (usize, Vec<Vec<u8>>) {
    let (mut frames, mut all, mut idle) = (0, Vec::new(), 0);
    while idle < if all.len() < expected { 1_500 } else { 30 } {
        let taken = receiver.burst(64, |Frame { data, offload, .. }| {
            if data[12..16] != [0x81, 0, 0, 9] || data[18] != 0x45 {
                return;
            }
            frames += 1;
            let Some(segments) = Segments::of(data, offload).unwrap() else {
                let mut one = data.to_vec();
                complete(&mut one, offload).unwrap();
                return all.push(one);
            };
            for index in 0..segments.count() {
                let mut one = Vec::new();
                segments.append(data, index, &mut one);
                all.push(one);
            }
        });
        idle = if taken == 0 { idle + 1 } else { 0 };
        receiver.wait(Duration::from_millis(20));
    }
    (frames, all)
}

#[test]
fn tagged_super_frames_leave_whole_or_as_tagged_segments() {
    if !have("python3") {
        return;
    }
    for send in ["af-packet", "af-xdp"] {
        let Some(path) = Path::start(&["--send", send]) else { return };
        let options = Options { outgoing: false, offload: true, ..Options::default() };
        let mut far = path.server.inside(Left, || open("far", &options).unwrap());
        let output = path.client.program(Left, "python3").args(["-c", RAW]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (frames, received) = take_tagged(&mut far[0], 93);
        let payload: Vec<u8> = (0..30_000).map(|place| ((place * 31) >> 3) as u8).collect();
        // Two TCP super-frames and one of UDP, 30 segments each.
        assert_eq!(received.len(), 93, "{send}");
        let (segments, whole) = received.split_at(90);
        for (number, frame) in received.iter().enumerate() {
            let (head, protocol) = (&frame[18..38], frame[27]);
            assert_eq!(sum(head), 0xffff, "{send}: IPv4 header of {number}");
            let pseudo =
                [&head[12..20], &[0, protocol], &((frame.len() - 38) as u16).to_be_bytes()];
            if protocol != 132 {
                let covered = [&pseudo.concat(), &frame[38..]].concat();
                assert_eq!(sum(&covered), 0xffff, "{send}: checksum of {number}");
            }
        }
        for (one, header) in segments.chunks(30).zip([20, 20, 8]) {
            let joined: Vec<u8> =
                one.iter().flat_map(|frame| &frame[38 + header..]).copied().collect();
            assert!(joined == payload, "{send}: {} bytes", joined.len());
        }
        assert_eq!(whole.iter().map(|frame| frame[27]).collect::<Vec<_>>(), [6, 17, 132]);
        // SCTP needs its CRC32c, not the sum of the pseudo header.
        assert_eq!(whole[2][46..50], SCTP_CRC, "{send}");
        let report = path.end();
        let (expected, whole) = if send == "af-packet" { (6, 3) } else { (93, 0) };
        assert_eq!(frames, expected, "{send}");
        let counters = json!({ "whole": whole, "cut": 3 - whole, "segments": 90 });
        assert_eq!(report["super_frames"], counters, "{report}");
    }
}

#[test]
fn in_a_tunnel_checksums_are_completed_and_super_frames_are_counted_as_drops() {
    let Some(path) = Path::start(&[]) else { return };
    for (net, link, host, remote) in [(&path.client, "left", 1, 2), (&path.server, "far", 2, 1)] {
        let add = format!(
            "link add tunnel type vxlan id 5 remote 10.7.0.{remote} dstport 4789 dev {link}"
        );
        let add: Vec<&str> = ["-n", net.name(Left)].into_iter().chain(add.split(' ')).collect();
        if !Command::new("ip").args(add).output().unwrap().status.success() {
            eprintln!("SKIPPED: this kernel has no VXLAN");
            return;
        }
        net.ip(Left, "link set tunnel up");
        net.ip(Left, &format!("addr add 10.8.0.{host}/24 dev tunnel"));
    }
    exchange_datagrams(&path, "10.8.0.2", "10.8.0.1");
    let listener = path.server.inside(Left, || TcpListener::bind("10.8.0.2:0").unwrap());
    let to = listener.local_addr().unwrap();
    path.client.inside(Left, || {
        let mut stream = TcpStream::connect_timeout(&to, TIMEOUT).unwrap();
        // No wait for completion: the transfer is slow, because segments arrive only when they are
        // retransmitted.
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = stream.write_all(&bytes(3, MIB));
    });
    drop(listener);
    let (report, code) = path.report();
    assert_eq!((code, &report["ledger"]["residual"]), (0, &Value::from(0)), "{report}");
    let stages = report["ledger"]["stages"].as_array().unwrap();
    let output = stages.iter().find(|stage| stage["stage"] == "output").unwrap();
    assert!(output["dropped"]["offload"].as_u64() > Some(0), "{report}");
}

#[test]
fn iperf3_and_curl_work_through_a_filter() {
    if !have("iperf3") || !have("curl") || !have("python3") {
        return;
    }
    let Some(path) = Path::start(&[]) else { return };
    let port = free_port(&path);
    let mut server = path.server.program(Left, "iperf3");
    // Four clients connect in turn.
    server.args(["--server", "--forceflush", "--port", &port]);
    let server = Killed(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for_port(&path, &port);
    let iperf = |flags: &[&str]| -> Value {
        let mut client = path.client.program(Left, "iperf3");
        client.args(["--client", "10.7.0.2", "--json", "--port", &port]).args(flags);
        let output = client.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success() && report["error"].is_null(), "{flags:?}: {report}");
        report
    };
    for direction in [&[][..], &["--reverse"]] {
        let report = iperf(&[&["--bytes", "30M"], direction].concat());
        let received = report["end"]["sum_received"]["bytes"].as_u64().unwrap();
        // The last segments may still be in flight.
        assert!(received >= 20 * MIB as u64, "{direction:?}: {received}");
        let report = iperf(&[&["--udp", "--bitrate", "8M", "--time", "1"], direction].concat());
        let sum = &report["end"]["sum"];
        assert!(sum["packets"].as_u64().unwrap() > 100, "{sum}");
    }
    drop(server);

    let folder = tempfile::tempdir().unwrap();
    let sent = bytes(7, 20 * MIB);
    fs::write(folder.path().join("file"), &sent).unwrap();
    let port = free_port(&path);
    let mut server = path.server.program(Left, "python3");
    server.args(["-m", "http.server", &port, "--directory"]).arg(folder.path());
    let server = Killed(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for_port(&path, &port);
    let mut client = path.client.program(Left, "curl");
    client.args(["--silent", "--show-error", "--max-time", "60"]);
    let output = client.arg(format!("http://10.7.0.2:{port}/file")).output().unwrap();
    drop(server);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == sent, "{} of {} bytes", output.stdout.len(), sent.len());
    path.end();
}

/// A free port at the server.
fn free_port(path: &Path) -> String {
    let listener = path.server.inside(Left, || TcpListener::bind("10.7.0.2:0").unwrap());
    listener.local_addr().unwrap().port().to_string()
}

/// Waits until a process listens at the port.
fn wait_for_port(path: &Path, port: &str) {
    let wanted = format!(":{:04X} ", port.parse::<u16>().unwrap());
    for _ in 0..1_000 {
        let tables = path.server.inside(Left, || {
            ["tcp", "tcp6"]
                .map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")))
        });
        let listens = |line: &str| line.contains(&wanted) && line.contains(" 0A ");
        if tables.into_iter().flatten().any(|table| table.lines().any(listens)) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("no process listens at port {port}");
}

//! Frames whose sender leaves checksums and segments to the network card.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use ringtap_io::live::{Method, Offload, Options, Segments, complete};

use super::send::sum;
use ringtap_testkit::{Left, Net, Right};

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Addresses at both ends.
fn net() -> Option<Net> {
    let net = Net::new(1)?;
    for (end, link, host) in [(Left, "left", 1), (Right, "right", 2)] {
        net.inside(end, || {
            fs::write(format!("/proc/sys/net/ipv6/conf/{link}/disable_ipv6"), "0").unwrap();
        });
        net.ip(end, &format!("addr add 10.7.0.{host}/24 dev {link}"));
        net.ip(end, &format!("addr add fd07::{host}/64 dev {link} nodad"));
    }
    Some(net)
}

/// Addresses in VLAN 9, too.
fn add_vlan(net: &Net) -> bool {
    for (end, link, host) in [(Left, "left", 1), (Right, "right", 2)] {
        let add = ["-n", net.name(end), "link", "add", "link", link, "name", "vlan9"];
        let output = Command::new("ip").args(add).args(["type", "vlan", "id", "9"]).output();
        if !output.unwrap().status.success() {
            eprintln!("SKIPPED: this kernel has no VLAN interfaces (module 8021q)");
            return false;
        }
        net.ip(end, "link set vlan9 up");
        net.ip(end, &format!("addr add 10.9.0.{host}/24 dev vlan9"));
    }
    true
}

/// Returns true if the checksum of TCP or UDP is correct; `None` for other packets.
fn is_right(frame: &[u8]) -> Option<bool> {
    let ip = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    let (addresses, protocol, begin, end) = match frame[ip - 2..ip] {
        [8, 0] => {
            let total = usize::from(frame[ip + 2]) << 8 | usize::from(frame[ip + 3]);
            (ip + 12..ip + 20, frame[ip + 9], ip + 20, ip + total)
        }
        [0x86, 0xdd] => {
            let len = usize::from(frame[ip + 4]) << 8 | usize::from(frame[ip + 5]);
            (ip + 8..ip + 40, frame[ip + 6], ip + 40, ip + 40 + len)
        }
        _ => return None,
    };
    if ![6, 17].contains(&protocol) {
        return None;
    }
    let mut covered = frame[addresses].to_vec();
    covered.extend([0, protocol]);
    covered.extend(((end - begin) as u16).to_be_bytes());
    covered.extend(&frame[begin..end]);
    Some(sum(&covered) == 0xffff)
}

/// Sends 300 KB by TCP and a datagram to the right end, at each of these addresses.
fn talk(net: &Net, at: &str) {
    let listener = net.inside(Right, || TcpListener::bind((at, 0)).unwrap());
    let server = net.inside(Right, || UdpSocket::bind((at, 0)).unwrap());
    server.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    let (tcp, udp) = (listener.local_addr().unwrap(), server.local_addr().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            assert_eq!(received.len(), 300_000);
        });
        net.inside(Left, || {
            TcpStream::connect(tcp).unwrap().write_all(&vec![7; 300_000]).unwrap();
            let any = if at.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
            UdpSocket::bind(any).unwrap().send_to(b"a question", udp).unwrap();
        });
    });
    server.recv(&mut [0; 100]).unwrap();
}

#[test]
fn frames_of_a_veth_report_missing_checksums_and_are_correct_when_completed() {
    let Some(net) = net() else { return };
    let options = Options { outgoing: false, offload: true, ..Options::default() };
    let vlan = add_vlan(&net).then_some("10.9.0.2");
    for at in ["10.7.0.2", "fd07::2"].into_iter().chain(vlan) {
        let mut receivers = net.receivers(&options);
        talk(&net, at);
        let (mut wrong, mut unfinished, mut cut) = (Vec::new(), 0, 0);
        let mut idle = 0;
        while idle < 30 {
            let mut whole = Vec::new();
            let received = receivers[0].burst(64, |frame| {
                match Segments::of(frame.data, frame.offload).unwrap() {
                    Some(segments) => {
                        cut += 1;
                        for index in 0..segments.count() {
                            let mut one = Vec::new();
                            segments.append(frame.data, index, &mut one);
                            assert!(one.len() <= 1_518, "{}", one.len());
                            whole.push(one);
                        }
                    }
                    None => {
                        unfinished += usize::from(is_right(frame.data) == Some(false));
                        let mut one = frame.data.to_vec();
                        complete(&mut one, frame.offload).unwrap();
                        whole.push(one);
                    }
                }
            });
            wrong.extend(whole.into_iter().filter(|one| is_right(one) == Some(false)));
            idle = if received == 0 { idle + 1 } else { 0 };
            receivers[0].wait(Duration::from_millis(10));
        }
        assert!(wrong.is_empty(), "{at}: {} frames, as {:02x?}", wrong.len(), wrong[0]);
        // Otherwise the test has shown nothing.
        assert!(unfinished > 0 && cut > 0, "{at}: {unfinished} without a checksum, {cut} to cut");
    }
}

#[test]
fn with_af_xdp_the_frame_shows_a_missing_checksum() {
    let Some(net) = net() else { return };
    let options = Options { method: Method::Xdp, offload: true, ..Options::default() };
    // Neighbour discovery does not work, because no host answers.
    let arguments = ["-n", net.name(Right), "-o", "link", "show", "right"];
    let shown = Command::new("ip").args(arguments).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let (_, rest) = shown.split_once("link/ether ").unwrap();
    let own = rest.split(' ').next().unwrap();
    for to in ["10.7.0.2", "fd07::2"] {
        net.ip(Left, &format!("neigh add {to} lladdr {own} dev left"));
    }
    let mut receivers = net.receivers(&options);
    for (at, any) in [("10.7.0.2", "0.0.0.0:0"), ("fd07::2", "[::]:0")] {
        net.inside(Left, || {
            UdpSocket::bind(any).unwrap().send_to(b"a question", (at, 53)).unwrap();
            let to = (at.parse::<std::net::IpAddr>().unwrap(), 80).into();
            TcpStream::connect_timeout(&to, Duration::from_millis(100)).unwrap_err();
        });
        let (mut unfinished, mut idle) = (0, 0);
        while idle < 30 {
            let received = receivers[0].burst(64, |frame| {
                assert_eq!(frame.offload, Offload::Unknown);
                unfinished += usize::from(is_right(frame.data) == Some(false));
                let mut one = frame.data.to_vec();
                complete(&mut one, frame.offload).unwrap();
                assert_ne!(is_right(&one), Some(false), "{one:02x?}");
            });
            idle = if received == 0 { idle + 1 } else { 0 };
            receivers[0].wait(Duration::from_millis(10));
        }
        assert!(unfinished >= 2, "{at}: {unfinished}");
    }
}

#[test]
fn without_the_option_no_offload_is_reported() {
    let Some(net) = net() else { return };
    let mut receivers = net.receivers(&Options { outgoing: false, ..Options::default() });
    talk(&net, "10.7.0.2");
    let (mut all, mut idle) = (0, 0);
    while idle < 30 {
        let received = receivers[0].burst(64, |frame| assert_eq!(frame.offload, Offload::Done));
        all += received;
        idle = if received == 0 { idle + 1 } else { 0 };
        receivers[0].wait(Duration::from_millis(10));
    }
    assert!(all > 5, "{all}");
}

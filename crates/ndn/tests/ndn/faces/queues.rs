//! Tests of the receive queues of UDP neighbours.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};

use ringtap_ndn::faces::{Lost, Settings};
use ringtap_ndn::packets::Headers;

use crate::faces::support::{Node, interest, neighbour};

/// More datagrams than four turns of a queue.
const FLOOD: u32 = 1_000;

fn flood(from: &UdpSocket, at: SocketAddr, numbers: std::ops::Range<u32>) {
    for number in numbers {
        from.send_to(&interest("/flood", number), at).unwrap();
    }
}

/// A node with a neighbour that has filled the shared queue, and its face.
fn flooded(offload: bool) -> (Node, SocketAddr, UdpSocket, u32) {
    let settings = Settings { udp_offload: offload, ..Settings::default() };
    let (mut node, at) = Node::udp(settings);
    let hostile = neighbour();
    hostile.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    flood(&hostile, at, 0..FLOOD);
    node.until(|node| node.recorder.packets.len() == FLOOD as usize);
    let face = node.recorder.up[0];
    (node, at, hostile, face)
}

#[test]
fn a_neighbour_that_fills_the_queue_delays_no_other() {
    for offload in [true, false] {
        let (mut node, at, hostile, face) = flooded(offload);
        flood(&hostile, at, 0..FLOOD);
        let other = neighbour();
        other.send_to(&interest("/other", 1), at).unwrap();
        node.recorder.packets.clear();
        node.intake.wait(&node.faces, Duration::from_secs(1)).unwrap();
        node.intake.receive(&mut node.faces, 1, &mut node.recorder);
        // Each had one turn.
        let packets = &node.recorder.packets;
        let of_other = packets.iter().filter(|packet| packet.0 != face).count();
        assert!(of_other == 1 && packets.len() < 200, "{of_other} of {}", packets.len());
        node.until(|node| node.recorder.packets.len() == FLOOD as usize + 1);
        assert_eq!(node.recorder.up.len(), 2, "the neighbour keeps its face");
        let counters = node.faces.get(face).unwrap().counters();
        assert_eq!(counters.interests_in, 2 * u64::from(FLOOD));
    }
}

#[test]
fn a_neighbour_may_send_to_any_address_of_this_host() {
    for (all, to, from) in [
        ("0.0.0.0:0", "127.0.0.1", "127.0.0.1:0"),
        // The system itself would not send from this address.
        ("0.0.0.0:0", "127.0.0.2", "127.0.0.1:0"),
        ("[::]:0", "::1", "[::1]:0"),
    ] {
        let Ok(hostile) = UdpSocket::bind(from) else {
            return eprintln!("SKIPPED: this system has no IPv6");
        };
        let mut node =
            Node::new(Settings { udp: vec![all.parse().unwrap()], ..Settings::default() });
        let at = node.faces.listening().next().unwrap();
        let port = at.rsplit(':').next().unwrap().parse().unwrap();
        let at = SocketAddr::new(to.parse().unwrap(), port);
        flood(&hostile, at, 0..FLOOD);
        node.until(|node| node.recorder.packets.len() == FLOOD as usize);
        flood(&hostile, at, 0..FLOOD);
        UdpSocket::bind(from).unwrap().send_to(&interest("/other", 1), at).unwrap();
        node.intake.wait(&node.faces, Duration::from_secs(1)).unwrap();
        node.intake.receive(&mut node.faces, 1, &mut node.recorder);
        assert_eq!(node.recorder.up.len(), 2, "{at}: the other has a turn");
        node.until(|node| node.recorder.packets.len() == 2 * FLOOD as usize + 1);
    }
}

#[test]
fn datagrams_are_answered_from_the_same_address() {
    let (mut node, at, hostile, _) = flooded(true);
    node.recorder.echo = true;
    let packet = interest("/echo", 1);
    hostile.send_to(&packet, at).unwrap();
    node.until(|node| node.recorder.packets.len() == FLOOD as usize + 1);
    let mut received = [0; 100];
    let (len, from) = hostile.recv_from(&mut received).unwrap();
    assert_eq!((&received[..len], from), (&packet[..], at));
}

#[test]
fn datagrams_in_the_queue_of_a_closed_face_are_counted() {
    let (mut node, at, hostile, face) = flooded(true);
    flood(&hostile, at, 0..300);
    // The kernel reports at the queue that the neighbour does not listen any more: a connected
    // socket receives from its own peer alone, and keeps its port from other tests.
    hostile.connect("127.0.0.1:9").unwrap();
    node.faces.send(face, &Headers::default(), &interest("/to/it", 1));
    node.faces.flush();
    assert!(node.faces.close(face));
    node.check_counters();
    let total = node.faces.total();
    assert_eq!((total.frames_in, total.lost(Lost::NoFace)), (u64::from(FLOOD) + 300, 300));
    // Then it is an unknown neighbour again.
    flood(&hostile, at, 0..1);
    node.until(|node| node.recorder.packets.len() == FLOOD as usize + 1);
    assert_eq!(node.recorder.up.len(), 2);
}

#[test]
fn an_error_does_not_end_the_count_of_unread_datagrams() {
    let (mut node, at, hostile, face) = flooded(true);
    flood(&hostile, at, 0..300);
    // This system answers with an ICMP error, which the kernel reports on the socket of the face.
    hostile.connect("127.0.0.1:9").unwrap();
    node.faces.send(face, &Headers::NONE, &interest("/a", 1));
    node.faces.flush();
    assert!(node.faces.close(face));
    let total = node.faces.total();
    assert_eq!((total.frames_in, total.lost(Lost::NoFace)), (u64::from(FLOOD) + 300, 300));
}

#[test]
fn no_datagram_is_lost_at_the_end_of_a_queue() {
    let (mut node, at) = Node::udp(Settings { udp_offload: false, ..Settings::default() });
    let hostile = neighbour();
    let ends = Arc::new(AtomicBool::new(false));
    let sender = std::thread::Builder::new()
        .spawn({
            let (ends, hostile) = (Arc::clone(&ends), hostile.try_clone().unwrap());
            move || {
                let mut sent = 0;
                while !ends.load(Relaxed) {
                    flood(&hostile, at, 0..1);
                    sent += 1;
                }
                sent
            }
        })
        .unwrap();
    let rounds = 50;
    for _ in 0..rounds {
        flood(&hostile, at, 0..FLOOD);
        let before = node.faces.total().frames_in;
        node.until(|node| node.faces.total().frames_in >= before + u64::from(FLOOD));
        assert!(node.faces.close(*node.recorder.up.last().unwrap()));
    }
    ends.store(true, Relaxed);
    let sent: u64 = sender.join().unwrap() + rounds * u64::from(FLOOD);
    let dropped = node.faces.kernel_drops();
    node.until(|node| node.faces.total().frames_in + dropped == sent);
}

#[test]
fn what_the_kernel_drops_from_a_queue_is_counted() {
    let (mut node, at, hostile, face) = flooded(false);
    let sent = 40_000;
    flood(&hostile, at, 0..sent);
    let dropped = node.faces.kernel_drops();
    assert!(dropped > 0);
    let received = (FLOOD + sent) as usize - dropped as usize;
    node.until(|node| node.recorder.packets.len() == received);
    assert_eq!(node.faces.kernel_drops(), dropped);
    assert!(node.faces.close(face));
    assert_eq!(node.faces.kernel_drops(), dropped);
}

/// Binds a UDP socket as a program does that shares addresses.
fn bind_shared(at: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &at)?;
    Ok(socket)
}

#[test]
fn another_program_cannot_take_the_address() {
    let (mut node, at, ..) = flooded(true);
    let error = UdpSocket::bind(at).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    // Nor while a queue is opened.
    let mut received = FLOOD as usize;
    let ends = Arc::new(AtomicBool::new(false));
    let program = std::thread::Builder::new()
        .spawn({
            let ends = Arc::clone(&ends);
            move || {
                while !ends.load(Relaxed) {
                    let error = bind_shared(at).map(drop).unwrap_err();
                    assert_eq!(error, Errno::ADDRINUSE);
                }
            }
        })
        .unwrap();
    for _ in 0..30 {
        flood(&neighbour(), at, 0..FLOOD);
        received += FLOOD as usize;
        node.until(|node| node.recorder.packets.len() == received);
    }
    ends.store(true, Relaxed);
    program.join().unwrap();
}

/// The local and remote ends of all UDP sockets. The kernel writes the list page by page: if a
/// socket is opened or closed between two pages, others are missing or listed twice. So this reads
/// until two lists are equal.
fn all_sockets() -> Vec<[String; 2]> {
    // A line is `number: address:port address:port …`, first the local end.
    let ends = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        [(); 2].map(|()| words.next().unwrap_or_default().to_owned())
    };
    let list = || std::fs::read_to_string("/proc/net/udp").unwrap().lines().map(ends).collect();
    let mut last: Vec<_> = list();
    for _ in 0..1_000 {
        let next = list();
        if next == last {
            return next;
        }
        last = next;
    }
    panic!("the list of sockets does not settle");
}

/// Numbers of sockets at this port: all, and those that are connected to the neighbour.
fn sockets(at: SocketAddr, neighbour: &UdpSocket) -> [usize; 2] {
    let port = |at: SocketAddr| format!(":{:04X}", at.port());
    let (near, far) = (port(at), port(neighbour.local_addr().unwrap()));
    let mut all = all_sockets();
    all.retain(|[local, _]| local.ends_with(&near));
    [all.len(), all.iter().filter(|[_, remote]| remote.ends_with(&far)).count()]
}

#[test]
fn the_number_of_queues_is_limited() {
    let (mut node, at) = Node::udp(Settings::default());
    let flood_from = |node: &mut Node, hostile: &UdpSocket| {
        let received = node.recorder.packets.len() + FLOOD as usize;
        flood(hostile, at, 0..FLOOD);
        node.until(|node| node.recorder.packets.len() == received);
    };
    let all: Vec<UdpSocket> = (0..70).map(|_| neighbour()).collect();
    for one in &all {
        flood_from(&mut node, one);
    }
    assert_eq!(sockets(at, &all[63]), [1 + 64, 1]);
    assert_eq!(sockets(at, &all[64]), [1 + 64, 0]);
    // Later, a neighbour without a backlog makes room.
    node.now_ns += 2_000_000_000;
    flood_from(&mut node, &all[0]);
    flood_from(&mut node, &all[64]);
    assert_eq!(sockets(at, &all[64]), [1 + 64, 1]);
    assert_eq!(sockets(at, &all[0]), [1 + 64, 1]);
    assert_eq!(sockets(at, &all[1]), [1 + 64, 0]);
    assert_eq!((node.faces.len(), node.recorder.up.len()), (70, 70));
    flood_from(&mut node, &all[1]);
}

#[test]
fn many_full_queues_delay_others_by_one_turn() {
    let (mut node, at) = Node::udp(Settings::default());
    let hostile: Vec<UdpSocket> = (0..8).map(|_| neighbour()).collect();
    for (count, one) in (1..).zip(&hostile) {
        flood(one, at, 0..FLOOD);
        node.until(|node| node.recorder.packets.len() == count * FLOOD as usize);
    }
    hostile.iter().for_each(|one| flood(one, at, 0..FLOOD));
    let other = neighbour();
    other.send_to(&interest("/other", 1), at).unwrap();
    node.recorder.packets.clear();
    node.intake.wait(&node.faces, Duration::from_secs(1)).unwrap();
    node.intake.receive(&mut node.faces, 1, &mut node.recorder);
    let place = node.recorder.packets.iter().position(|packet| packet.0 == 264);
    assert!(place.is_some_and(|place| place < 100), "{place:?}");
}

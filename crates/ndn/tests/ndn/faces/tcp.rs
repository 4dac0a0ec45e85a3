//! Tests of faces over TCP, with sockets as neighbours.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use ringtap_ndn::faces::{Lost, Persistence, Remote, Settings};
use ringtap_ndn::packets::Headers;

use crate::faces::support::{Node, data, interest, with_token};

const SECOND: Duration = Duration::from_secs(1);

/// A node that listens on an unused TCP port, and its address.
fn listening(settings: Settings) -> (Node, SocketAddr) {
    let node = Node::new(Settings { tcp: vec!["127.0.0.1:0".parse().unwrap()], ..settings });
    let at = node.faces.listening().next().unwrap();
    let Ok(Remote::Tcp(at)) = at.parse() else { panic!("{at}") };
    (node, at)
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// A listener on an address of its own: when it is closed, no other test takes its port.
fn alone() -> TcpListener {
    static LAST: AtomicU8 = AtomicU8::new(0);
    let host = Ipv4Addr::new(127, 0, 1, 1 + LAST.fetch_add(1, Relaxed));
    TcpListener::bind((host, 0)).unwrap()
}

/// A neighbour that listens, and a face to it.
fn neighbour(node: &mut Node, persistence: Persistence) -> (TcpListener, u32) {
    let listener = alone();
    let remote = Remote::Tcp(listener.local_addr().unwrap());
    let (face, is_new) = node.faces.add(&remote, persistence).unwrap();
    assert!(is_new);
    assert_eq!(node.faces.add(&remote, persistence).unwrap(), (face, false));
    (listener, face)
}

fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0; 9]);
    !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn a_neighbour_that_connects_has_a_face_on_demand() {
    let (mut node, at) = listening(Settings::default());
    node.recorder.echo = true;
    let mut stream = connect(at);
    let packets = [interest("/a", 1), data("/b", 8_000), data("/c", 10)].concat();
    // Split within a packet.
    let (begin, end) = packets.split_at(interest("/a", 1).len() + 100);
    stream.write_all(begin).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    stream.write_all(end).unwrap();
    node.until(|node| node.recorder.packets.len() == 3);
    let number = node.recorder.up[0];
    let face = node.faces.get(number).unwrap();
    assert_eq!(face.remote(), &Remote::Tcp(stream.local_addr().unwrap()));
    assert_eq!(face.local(), format!("tcp4://{at}"));
    assert_eq!(face.persistence(), Persistence::OnDemand);
    assert!(!face.is_local() && !face.is_shared());
    let mut back = vec![0; packets.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, packets);
    drop(stream);
    node.until(|node| node.recorder.down == [number]);
}

#[test]
fn packets_that_arrive_together_are_delivered_together() {
    let (mut node, at) = listening(Settings::default());
    let mut streams = [connect(at), connect(at)];
    node.until(|node| node.recorder.up.len() == 2);
    let many: Vec<u8> = (0..70).flat_map(|nonce| interest("/a", nonce)).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(&many).unwrap());
    node.until(|node| node.recorder.packets.len() == 140);
    assert_eq!(node.recorder.batches, [32, 32, 6, 32, 32, 6]);
}

#[test]
fn packets_are_buffered_until_a_neighbour_is_connected() {
    let mut node = Node::new(Settings::default());
    let (listener, face) = neighbour(&mut node, Persistence::Persistent);
    let (headers, packet) = (with_token(&[1; 6]), data("/early", 3_000));
    node.faces.send(face, &headers, &packet);
    node.faces.flush();
    let (mut stream, from) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    node.until(|node| {
        node.faces.get(face).is_some_and(|face| face.local() == format!("tcp4://{from}"))
    });
    stream.write_all(&interest("/back", 1)).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    let mut read = vec![0; packet.len()];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(node.faces.total().frames_out, 1);
    // A persistent face ends with its connection, as in NFD.
    drop(stream);
    node.until(|node| node.recorder.down == [face]);
    assert!(node.recorder.links.is_empty());
}

#[test]
fn a_refused_connection_closes_a_persistent_face() {
    let mut node = Node::new(Settings::default());
    let (listener, face) = neighbour(&mut node, Persistence::Persistent);
    drop(listener);
    let free = alone().local_addr().unwrap();
    let (refused, _) = node.faces.add(&Remote::Tcp(free), Persistence::Persistent).unwrap();
    node.faces.send(refused, &Headers::default(), &interest("/a", 1));
    node.until(|node| node.recorder.down.contains(&refused) && node.recorder.down.contains(&face));
    assert_eq!(node.faces.total().lost(Lost::Disconnected), 1, "it was buffered");
}

#[test]
fn a_permanent_face_is_connected_again() {
    let mut node = Node::new(Settings::default());
    let (listener, face) = neighbour(&mut node, Persistence::Permanent);
    let at = listener.local_addr().unwrap();
    node.until(|node| node.recorder.links == [(face, true)]);
    drop(listener.accept().unwrap());
    node.until(|node| node.recorder.links == [(face, true), (face, false)]);
    // While it is not connected, packets are dropped.
    node.faces.send(face, &Headers::default(), &interest("/lost", 1));
    node.faces.flush();
    assert_eq!(node.faces.total().lost(Lost::Disconnected), 1);
    // The pauses are 1 s and, because the attempt fails, 2 s.
    drop(listener);
    node.after(SECOND / 2);
    node.until(|_| true);
    node.after(SECOND / 2);
    node.faces.send(face, &Headers::default(), &interest("/buffered", 1));
    node.until(|node| node.faces.total().lost(Lost::Disconnected) == 2);
    let listener = TcpListener::bind(at).unwrap();
    node.after(SECOND);
    node.faces.send(face, &Headers::default(), &interest("/lost", 2));
    node.until(|node| node.faces.total().lost(Lost::Disconnected) == 3);
    node.after(SECOND);
    node.faces.send(face, &Headers::default(), &interest("/sent", 3));
    node.until(|node| node.recorder.links.len() == 3);
    assert_eq!(node.recorder.links[2], (face, true));
    let (mut stream, _) = listener.accept().unwrap();
    let mut read = vec![0; interest("/sent", 3).len()];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(read, interest("/sent", 3));
    assert!(node.recorder.down.is_empty());
}

#[test]
fn an_attempt_to_connect_ends_after_ten_seconds() {
    // A listener with a full backlog does not answer.
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let full = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&full, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    listen(&full, 0).unwrap();
    let at = SocketAddr::try_from(getsockname(&full).unwrap()).unwrap();
    let _waiting = TcpStream::connect(at).unwrap();
    let mut node = Node::new(Settings::default());
    let (face, _) = node.faces.add(&Remote::Tcp(at), Persistence::Persistent).unwrap();
    node.after(SECOND);
    node.after(9 * SECOND);
    node.until(|_| true);
    assert!(node.recorder.down.is_empty());
    node.after(SECOND);
    assert_eq!(node.recorder.down, [face]);
}

#[test]
fn only_the_neighbour_that_sends_malformed_bytes_is_disconnected() {
    let (mut node, at) = listening(Settings::default());
    let (mut good, mut bad, mut half) = (connect(at), connect(at), connect(at));
    half.write_all(&data("/half", 500)[..200]).unwrap();
    bad.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    bad.write_all(&[0; 100]).unwrap();
    node.until(|node| node.recorder.down.len() == 1);
    assert!(is_closed(&mut bad));
    assert!(node.faces.total().lost(Lost::Malformed) >= 1);
    good.write_all(&interest("/a", 1)).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    half.write_all(&data("/half", 500)[200..]).unwrap();
    node.until(|node| node.recorder.packets.len() == 2);
    assert_eq!(node.recorder.packets[1].2, data("/half", 500));
}

#[test]
fn a_neighbour_that_does_not_read_loses_packets_and_delays_no_other() {
    let (mut node, at) = listening(Settings::default());
    let (mut slow, mut quick) = (connect(at), connect(at));
    node.until(|node| node.recorder.up.len() == 2);
    let [first, second] = node.recorder.up[..] else { panic!() };
    let of = |stream: &TcpStream| Remote::Tcp(stream.local_addr().unwrap());
    let is_slow = node.faces.get(first).unwrap().remote() == &of(&slow);
    let (to_slow, to_quick) = if is_slow { (first, second) } else { (second, first) };
    let packet = data("/a", 8_000);
    for _ in 0..2_000 {
        node.faces.send(to_slow, &Headers::default(), &packet);
        node.faces.flush();
    }
    node.faces.send(to_quick, &Headers::default(), &packet);
    node.faces.flush();
    let mut read = vec![0; packet.len()];
    quick.read_exact(&mut read).unwrap();
    let counters = *node.faces.get(to_slow).unwrap().counters();
    let lost = counters.lost(Lost::Congested);
    assert!(lost > 0 && counters.frames_out == 2_000, "{counters:?}");
    // All packets that were not lost arrive when the neighbour reads.
    let mut left = (2_000 - lost) as usize * packet.len();
    let mut bytes = vec![0; 1 << 16];
    while left > 0 {
        left -= slow.read(&mut bytes).unwrap();
        node.until(|_| true);
    }
}

#[test]
fn connections_are_limited_and_silent_ones_are_evicted_first() {
    let settings = Settings { on_demand_max: Some(3), faces_max: 8, ..Settings::default() };
    let (mut node, at) = listening(settings);
    let mut used = [connect(at), connect(at)];
    for stream in &mut used {
        node.now_ns += 1;
        stream.write_all(&interest("/a", 1)).unwrap();
        let packets = node.recorder.packets.len();
        node.until(|node| node.recorder.packets.len() > packets);
    }
    let mut silent: Vec<_> = (0..10).map(|_| connect(at)).collect();
    node.until(|node| node.recorder.up.len() == 12 && node.recorder.down.len() == 9);
    assert_eq!((node.faces.on_demand(), node.faces.evicted()), (3, 9));
    assert!(silent[..9].iter_mut().all(is_closed));
    assert!(!used.iter_mut().any(is_closed) && !is_closed(&mut silent[9]));
    // When all have sent something, the least recently used one is evicted.
    silent[9].set_nonblocking(false).unwrap();
    node.now_ns += 1;
    silent[9].write_all(&interest("/a", 2)).unwrap();
    node.until(|node| node.recorder.packets.len() == 3);
    let _last = connect(at);
    node.until(|node| node.recorder.down.len() == 10);
    assert!(is_closed(&mut used[0]) && !is_closed(&mut used[1]));
    // Idle faces are closed.
    node.after(Settings::default().idle + SECOND);
    assert_eq!((node.faces.len(), node.recorder.down.len()), (0, 13));
}

#[test]
fn no_neighbour_can_connect_without_faces_on_demand() {
    let (mut node, at) = listening(Settings { on_demand_max: Some(0), ..Settings::default() });
    let mut stream = connect(at);
    node.until(|node| node.faces.total().lost(Lost::NoFace) == 1);
    assert_eq!(stream.read(&mut [0; 9]).unwrap(), 0);
    assert!(node.recorder.up.is_empty());
}

#[test]
fn an_error_names_the_address() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let settings = Settings { tcp: vec![at], ..Settings::default() };
    let error = ringtap_ndn::faces::Faces::open(settings).err().unwrap().to_string();
    assert!(error.starts_with(&format!("opening tcp://{at}: ")), "{error}");
}

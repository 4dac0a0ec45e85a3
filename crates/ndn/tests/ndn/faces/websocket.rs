//! Tests of faces over WebSocket, with clients of tungstenite and bytes as neighbours.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ringtap_ndn::faces::{Lost, Persistence, Remote, Settings};
use ringtap_ndn::packets::Headers;
use tungstenite::protocol::Role;
use tungstenite::{Bytes, Message, WebSocket};

use crate::faces::support::{Node, data, interest};

const SECOND: Duration = Duration::from_secs(1);

/// A node that listens on an unused port, and its address.
fn listening(settings: Settings) -> (Node, SocketAddr) {
    let node = Node::new(Settings { websocket: vec!["127.0.0.1:0".parse().unwrap()], ..settings });
    let at = node.faces.listening().next().unwrap();
    let at = at.strip_prefix("ws://").unwrap().parse().unwrap();
    (node, at)
}

fn tcp(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(5 * SECOND)).unwrap();
    stream
}

/// A client that has completed its handshake.
fn connect(node: &mut Node, at: SocketAddr) -> WebSocket<TcpStream> {
    let before = node.recorder.up.len();
    let stream = tcp(at);
    let client = std::thread::Builder::new();
    let client =
        client.spawn(move || tungstenite::client(format!("ws://{at}/"), stream).unwrap().0);
    let client = client.unwrap();
    node.until(|node| node.recorder.up.len() > before && client.is_finished());
    client.join().unwrap()
}

#[test]
fn each_message_is_a_packet() {
    let (mut node, at) = listening(Settings::default());
    node.recorder.echo = true;
    let mut client = connect(&mut node, at);
    let packets = [interest("/a", 1), data("/b", 8_500), data("/c", 1)];
    for packet in &packets {
        client.send(Message::binary(packet.clone())).unwrap();
    }
    node.until(|node| node.recorder.packets.len() == 3);
    for packet in &packets {
        assert_eq!(client.read().unwrap(), Message::binary(packet.clone()));
    }
    let number = node.recorder.up[0];
    let face = node.faces.get(number).unwrap();
    assert_eq!(face.remote(), &Remote::WebSocket(client.get_ref().local_addr().unwrap()));
    let from = client.get_ref().local_addr().unwrap();
    assert_eq!(face.remote().to_string(), format!("wsclient://{from}"));
    assert_eq!((face.local(), face.is_local()), (format!("ws://{at}").as_str(), false));
    assert_eq!(face.persistence(), Persistence::OnDemand);
    client.close(None).unwrap();
    node.until(|node| node.recorder.down == [number]);
    // The forwarder acknowledges the end.
    assert!(matches!(client.read(), Ok(Message::Close(_))));
}

#[test]
fn fragmented_messages_and_pings_are_handled_and_text_is_malformed() {
    use tungstenite::protocol::frame::Frame;
    use tungstenite::protocol::frame::coding::{Data, OpCode};
    let (mut node, at) = listening(Settings::default());
    let mut client = connect(&mut node, at);
    client.send(Message::text("hello")).unwrap();
    client.send(Message::Ping(Bytes::from_static(b"there?"))).unwrap();
    // Two packets in one message are not one packet.
    client.send(Message::binary([interest("/a", 1), interest("/b", 2)].concat())).unwrap();
    let packet = data("/c", 300);
    let (begin, end) = packet.split_at(100);
    let begin = Frame::message(begin.to_vec(), OpCode::Data(Data::Binary), false);
    let end = Frame::message(end.to_vec(), OpCode::Data(Data::Continue), true);
    client.send(Message::Frame(begin)).unwrap();
    client.send(Message::Frame(end)).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    assert_eq!(node.recorder.packets[0].2, packet);
    assert_eq!(node.faces.total().lost(Lost::Malformed), 2);
    assert_eq!(client.read().unwrap(), Message::Pong(Bytes::from_static(b"there?")));
}

#[test]
fn large_messages_and_unmasked_frames_end_the_connection() {
    let (mut node, at) = listening(Settings::default());
    let mut large = connect(&mut node, at);
    large.send(Message::binary(vec![0; 10_000])).unwrap();
    node.until(|node| node.recorder.down.len() == 1);
    assert_eq!(node.faces.total().lost(Lost::TooLong), 1);
    // Masks protect proxies; a client without them violates the protocol.
    let client = connect(&mut node, at).get_ref().try_clone().unwrap();
    let mut unmasked = WebSocket::from_raw_socket(client, Role::Server, None);
    unmasked.send(Message::binary(interest("/a", 1))).unwrap();
    node.until(|node| node.recorder.down.len() == 2);
    assert_eq!(node.faces.total().lost(Lost::Malformed), 1);
}

#[test]
fn a_connection_without_a_handshake_is_closed() {
    let (mut node, at) = listening(Settings::default());
    let (mut wrong, mut silent) = (tcp(at), tcp(at));
    let good = connect(&mut node, at);
    wrong.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    silent.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    node.until(|node| node.recorder.up.len() == 3 && node.recorder.down.len() == 1);
    assert_eq!(wrong.read(&mut [0; 9]).unwrap_or(0), 0);
    assert_eq!(node.faces.total().lost(Lost::Malformed), 1);
    // Nothing can be sent before the handshake.
    for face in node.recorder.up.clone() {
        node.faces.send(face, &Headers::default(), &interest("/a", 1));
    }
    let total = node.faces.total();
    assert_eq!((total.lost(Lost::Disconnected), total.lost(Lost::Gone)), (1, 1));
    node.after(9 * SECOND);
    assert_eq!(node.recorder.down.len(), 1);
    node.after(SECOND);
    assert_eq!(node.recorder.down.len(), 2);
    drop(good);
    node.until(|node| node.recorder.down.len() == 3);
}

#[test]
fn a_client_that_does_not_read_uses_bounded_memory() {
    let (mut node, at) = listening(Settings::default());
    let mut client = connect(&mut node, at);
    let face = node.recorder.up[0];
    let packet = data("/a", 8_000);
    for _ in 0..2_000 {
        node.faces.send(face, &Headers::default(), &packet);
        node.faces.flush();
    }
    let lost = node.faces.total().lost(Lost::Congested);
    assert!(lost > 0, "{:?}", node.faces.total());
    // Pings are answered later, or not at all; the connection stays.
    for _ in 0..20 {
        client.send(Message::Ping(Bytes::from_static(&[1; 100]))).unwrap();
    }
    client.send(Message::binary(interest("/a", 1))).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    // All packets that were not lost arrive when the client reads.
    let mut left = 2_000 - lost;
    client.get_mut().set_nonblocking(true).unwrap();
    while left > 0 {
        match client.read() {
            Ok(Message::Binary(message)) => {
                assert!(message == packet);
                left -= 1;
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(_)) => node.until(|_| true),
            Err(error) => panic!("{error}"),
        }
    }
}

//! Test of the memory of idle connections. It measures its process, so it has its own.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(dead_code, reason = "other tests use the rest of the shared module")]

#[path = "ndn/faces/support.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ringtap_base::rss_bytes;
use ringtap_ndn::faces::Settings;
use support::{Node, data};

/// Number of connections.
const MANY: usize = 300;

/// Connects to a node that listens; returns the clients, and the growth of memory for each in bytes.
fn connect(node: &mut Node) -> (Vec<TcpStream>, u64) {
    let at = node.faces.listening().next().unwrap();
    let at: SocketAddr = at.split_once("://").unwrap().1.parse().unwrap();
    let before = rss_bytes().unwrap();
    let clients = (1..=MANY).map(|number| {
        let client = TcpStream::connect(at).unwrap();
        node.until(|node| node.recorder.up.len() == number);
        client
    });
    let clients = clients.collect();
    (clients, growth(before))
}

/// The growth of memory for each connection, in bytes.
fn growth(before: u64) -> u64 {
    rss_bytes().unwrap().saturating_sub(before) / MANY as u64
}

#[test]
fn an_idle_connection_needs_little_memory() {
    let any = || vec!["127.0.0.1:0".parse().unwrap()];
    let mut node = Node::new(Settings { tcp: any(), ..Settings::default() });
    let before = rss_bytes().unwrap();
    let (mut clients, silent) = connect(&mut node);
    assert!(silent < 4_000, "{silent} bytes");
    // The buffers of a large packet and its echo are not kept.
    node.recorder.echo = true;
    let packet = data("/a", 8_000);
    for (number, client) in (1..).zip(&mut clients) {
        let (begin, end) = packet.split_at(4_000);
        client.write_all(begin).unwrap();
        node.until(|_| true);
        client.write_all(end).unwrap();
        node.until(|node| !node.recorder.packets.is_empty());
        node.recorder.packets.clear();
        client.read_exact(&mut vec![0; packet.len()]).unwrap();
        if number % 10 == 0 {
            node.after(Duration::from_secs(1));
        }
    }
    let idle = growth(before);
    assert!(idle < 4_000, "{idle} bytes");

    #[cfg(feature = "websocket")]
    {
        let mut node = Node::new(Settings { websocket: any(), ..Settings::default() });
        let before = rss_bytes().unwrap();
        let (mut clients, silent) = connect(&mut node);
        assert!(silent < 12_000, "{silent} bytes");
        for client in &mut clients {
            let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
            client.write_all(request.as_bytes()).unwrap();
            let mut status = [0; 12];
            node.until(|_| true);
            client.read_exact(&mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 101");
        }
        let open = growth(before);
        assert!(open < 16_000, "{open} bytes");
    }
}

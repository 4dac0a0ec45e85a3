//! Test of a lack of file descriptors. It lowers the limit of its process, so it has its own.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(dead_code, reason = "other tests use the rest of the shared module")]

#[path = "ndn/faces/support.rs"]
mod support;

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use ringtap_ndn::faces::{Remote, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Node, interest};

/// Number of connections, and of those for which there are file descriptors.
const CONNECTIONS: usize = 20;
const ROOM: usize = 8;

#[test]
fn silent_connections_make_room_for_others_when_file_descriptors_run_out() {
    let settings = Settings { tcp: vec!["127.0.0.1:0".parse().unwrap()], ..Settings::default() };
    let mut node = Node::new(settings);
    let at = node.faces.listening().next().unwrap();
    let Ok(Remote::Tcp(at)) = at.parse() else { panic!("{at}") };
    // The system completes connections before they are accepted.
    let mut clients: Vec<_> = (0..=CONNECTIONS).map(|_| TcpStream::connect(at).unwrap()).collect();
    let next = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(next + ROOM as u64), ..limit }).unwrap();

    // Each further connection takes the place of the oldest.
    node.until(|node| node.recorder.up.len() == CONNECTIONS + 1);
    assert_eq!(node.faces.evicted() as usize, CONNECTIONS + 1 - ROOM);
    assert_eq!((node.faces.len(), node.recorder.down.len()), (ROOM, CONNECTIONS + 1 - ROOM));
    let open = clients.split_off(CONNECTIONS + 1 - ROOM);
    for (number, mut client) in (1..).zip(&open) {
        client.write_all(&interest("/a", number)).unwrap();
    }
    node.until(|node| node.recorder.packets.len() == ROOM);

    // Neighbours that have sent something are kept: accepting pauses until one ends.
    let kept = node.faces.iter().map(|(number, _)| number).collect::<Vec<_>>();
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut late = TcpStream::connect(at).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(next + ROOM as u64), ..limit }).unwrap();
    for _ in 0..3 {
        node.intake.wait(&node.faces, Duration::from_millis(20)).unwrap();
        node.intake.receive(&mut node.faces, node.now_ns, &mut node.recorder);
    }
    assert_eq!(node.faces.iter().map(|(number, _)| number).collect::<Vec<_>>(), kept);
    setrlimit(Resource::Nofile, limit).unwrap();
    node.after(Duration::from_secs(1));
    late.write_all(&interest("/late", 1)).unwrap();
    node.until(|node| node.recorder.packets.len() == ROOM + 1);
    assert_eq!(node.faces.len(), ROOM + 1);
}

//! Tests of faces over a Unix socket.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use ringtap_ndn::faces::{Lost, Remote, Settings};
use ringtap_ndn::packets::{Element, Headers, LpPacket, write_lp};
use tempfile::TempDir;

use crate::faces::support::{Closing, Node, data, interest};

fn node(settings: Settings) -> (Node, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ndn.sock");
    let mut node = Node::new(settings);
    let listener = UnixListener::bind(&path).unwrap();
    node.faces.listen(listener, path.to_str().unwrap()).unwrap();
    (node, folder)
}

fn connect(folder: &TempDir) -> UnixStream {
    let stream = UnixStream::connect(folder.path().join("ndn.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    stream
}

#[test]
fn a_program_has_a_local_face_until_it_disconnects() {
    let (mut node, folder) = node(Settings::default());
    node.recorder.echo = true;
    let mut program = connect(&folder);
    let headers = Headers { next_hop_face: Some(300), no_cache: true, ..Headers::default() };
    let mut wire = Vec::new();
    write_lp(&headers, &interest("/a", 1), &mut wire);
    wire.extend(data("/large", 8_500));
    // Split within a packet.
    let (begin, end) = wire.split_at(41);
    program.write_all(begin).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    program.write_all(end).unwrap();
    node.until(|node| node.recorder.packets.len() == 2);
    let face = node.recorder.up[0];
    assert!(node.faces.get(face).unwrap().is_local());
    assert_eq!(node.faces.get(face).unwrap().remote(), &Remote::Program(1));
    assert_eq!(node.recorder.packets[0].1, headers, "programs may choose the next hop");
    let mut back = vec![0; wire.len()];
    program.read_exact(&mut back).unwrap();
    assert_eq!(back, wire);
    drop(program);
    node.until(|node| node.recorder.down == [face]);
    assert_eq!(node.faces.total().frames_in, 2);
}

#[test]
fn only_the_program_that_sends_malformed_bytes_is_disconnected() {
    let (mut node, folder) = node(Settings::default());
    let (mut good, mut bad) = (connect(&folder), connect(&folder));
    good.write_all(&interest("/a", 1)).unwrap();
    bad.write_all(b"\0\0\0\0 hello").unwrap();
    node.until(|node| node.recorder.packets.len() == 1 && node.recorder.down.len() == 1);
    assert_eq!(bad.read(&mut [0; 9]).unwrap(), 0, "it is disconnected at once");
    assert_eq!(node.faces.total().lost(Lost::Malformed), 1);
    // A well-formed frame of an unknown type is only counted.
    good.write_all(&[99, 1, 0]).unwrap();
    good.write_all(&interest("/b", 2)).unwrap();
    node.until(|node| node.recorder.packets.len() == 2);
    assert_eq!(node.faces.total().lost(Lost::Malformed), 2);
    assert_eq!(node.faces.len(), 1);
}

#[test]
fn a_program_that_does_not_read_loses_packets_and_delays_no_other() {
    let (mut node, folder) = node(Settings::default());
    let mut program = connect(&folder);
    node.until(|node| node.recorder.up.len() == 1);
    let face = node.recorder.up[0];
    let packet = data("/a", 8_000);
    for _ in 0..1_000 {
        node.faces.send(face, &Headers::default(), &packet);
        node.faces.flush();
    }
    let counters = *node.faces.get(face).unwrap().counters();
    let lost = counters.lost(Lost::Congested);
    assert!(lost > 0 && counters.frames_out == 1_000, "{counters:?}");
    // All packets that were not lost arrive when the program reads.
    let mut left = (1_000 - lost) as usize * packet.len();
    let mut bytes = vec![0; 1 << 16];
    let mut rest = Vec::new();
    while left > 0 {
        let received = program.read(&mut bytes).unwrap();
        rest.extend_from_slice(&bytes[..received]);
        left -= received;
        node.until(|_| true);
    }
    let mut rest = &rest[..];
    while let Ok((element, after)) = Element::first(rest) {
        assert!(element.kind == 6 && LpPacket::read(&rest[..rest.len() - after.len()]).is_ok());
        rest = after;
    }
    assert!(rest.is_empty());
}

#[test]
fn programs_are_refused_when_all_faces_are_in_use() {
    let (mut node, folder) = node(Settings { faces_max: 2, ..Settings::default() });
    let mut programs: Vec<_> = (0..2).map(|_| connect(&folder)).collect();
    for program in &mut programs {
        program.write_all(&interest("/a", 1)).unwrap();
    }
    node.until(|node| node.recorder.packets.len() == 2);
    let mut third = connect(&folder);
    node.until(|node| node.faces.total().lost(Lost::NoFace) == 1);
    assert_eq!(node.recorder.up.len(), 2);
    assert_eq!(third.read(&mut [0; 9]).unwrap(), 0);
    programs[0].write_all(&interest("/b", 1)).unwrap();
    node.until(|node| node.recorder.packets.len() == 3);
}

#[test]
fn programs_that_sent_no_frame_are_evicted_oldest_first() {
    let (mut node, folder) = node(Settings { faces_max: 3, ..Settings::default() });
    let mut good = connect(&folder);
    good.write_all(&interest("/a", 1)).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    let mut silent: Vec<_> = (0..20).map(|_| connect(&folder)).collect();
    // An incomplete frame does not protect from eviction.
    silent[0].write_all(&interest("/b", 1)[..3]).unwrap_or_default();
    node.until(|node| node.recorder.up.len() == 21 && node.recorder.down.len() == 18);
    assert_eq!(node.faces.total().lost(Lost::NoFace), 0);
    for (at, program) in silent.iter_mut().enumerate() {
        program.set_nonblocking(true).unwrap();
        let read = program.read(&mut [0; 9]);
        let open = read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert_eq!(open, at >= 18, "program {at}");
    }
    good.write_all(&interest("/c", 1)).unwrap();
    silent[19].write_all(&interest("/d", 1)).unwrap();
    node.until(|node| node.recorder.packets.len() == 3);
}

#[test]
fn frames_after_the_end_of_their_face_are_counted() {
    let (mut node, folder) = node(Settings::default());
    let mut program = connect(&folder);
    node.until(|node| node.recorder.up.len() == 1);
    let frames: Vec<u8> = (0..100).flat_map(|nonce| interest("/a", nonce)).collect();
    program.write_all(&frames).unwrap();
    let mut closing = Closing::default();
    node.intake.wait(&node.faces, Duration::from_secs(3)).unwrap();
    node.intake.receive(&mut node.faces, 2, &mut closing);
    let total = node.faces.total();
    assert_eq!((total.frames_in, total.lost(Lost::NoFace)), (100, 100 - closing.delivered as u64));
    assert_eq!(total.residual(), 0);
}

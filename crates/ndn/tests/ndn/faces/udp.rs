//! Tests of faces over UDP.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use ringtap_ndn::faces::{Lost, Persistence, Remote, Settings, close_idle};
use ringtap_ndn::packets::{Headers, LpPacket, Reassembler, Reassembly, write_lp};

use crate::faces::support::{Closing, Node, data, interest, neighbour, with_token};

#[test]
fn a_sender_of_a_packet_gets_a_face() {
    let (mut node, at) = Node::udp(Settings::default());
    let (one, other) = (neighbour(), neighbour());
    node.recorder.echo = true;
    let packet = interest("/a/b", 7);
    let mut wire = Vec::new();
    write_lp(&with_token(&[1, 2, 3]), &packet, &mut wire);
    one.send_to(&wire, at).unwrap();
    other.send_to(&packet, at).unwrap();
    one.send_to(&packet, at).unwrap();
    node.until(|node| node.recorder.packets.len() == 3);
    let [first, second] = node.recorder.up[..] else { panic!("{:?}", node.recorder.up) };
    let faces: Vec<u32> = node.recorder.packets.iter().map(|packet| packet.0).collect();
    assert!(first >= 256 && faces == [first, second, first], "{faces:?}");
    assert_eq!(node.recorder.packets[0].1, with_token(&[1, 2, 3]));
    let mut received = [0; 9000];
    let len = one.recv(&mut received).unwrap();
    assert_eq!(received[..len], wire, "the echoed frame is identical");
    let face = node.faces.get(first).unwrap();
    assert_eq!(face.remote(), &Remote::Udp(one.local_addr().unwrap()));
    assert_eq!((face.is_local(), face.is_shared()), (false, false));
    assert_eq!((face.counters().interests_in, face.counters().interests_out), (2, 2));
}

#[test]
fn malformed_frames_are_counted_and_create_no_face() {
    let (mut node, at) = Node::udp(Settings::default());
    let unknown = neighbour();
    for frame in [&b""[..], &[0], &[5, 200, 1], &[100, 3, 0x51, 1, 0], b"GET / HTTP/1.1\r\n"] {
        unknown.send_to(frame, at).unwrap();
    }
    node.until(|node| node.faces.total().frames_in == 5);
    assert_eq!(node.faces.total().lost(Lost::Malformed), 5);
    assert!(
        node.faces.is_empty() && node.recorder.up.is_empty() && node.recorder.packets.is_empty()
    );
    // Malformed frames of a sender with a face are counted at the face.
    unknown.send_to(&interest("/a", 1), at).unwrap();
    unknown.send_to(&[9], at).unwrap();
    unknown.send_to(&data("/too/long", 9_000), at).unwrap();
    node.until(|node| node.faces.total().frames_in == 8);
    let face = node.faces.get(node.recorder.up[0]).unwrap().counters();
    assert_eq!((face.lost(Lost::Malformed), face.lost(Lost::TooLong)), (1, 1));
}

#[test]
fn a_burst_for_one_neighbour_arrives_complete_and_in_order() {
    for (receiver_offload, sender_offload) in
        [(true, true), (true, false), (false, true), (false, false)]
    {
        burst(receiver_offload, sender_offload);
    }
}

fn burst(receiver_offload: bool, sender_offload: bool) {
    let offload = |udp_offload| Settings { udp_offload, ..Settings::default() };
    let (mut node, at) = Node::udp(offload(receiver_offload));
    let (mut peer, _) = Node::udp(offload(sender_offload));
    let (face, new) = peer.faces.add(&Remote::Udp(at), Persistence::Permanent).unwrap();
    assert!(new);
    // Sizes change sometimes, so that some packets share a message and others do not.
    let packets: Vec<_> =
        (0..1_000).map(|n| data(&format!("/n/{n:04}"), 40 + n / 300 * 25 + n % 97 / 96)).collect();
    for (sent, packets) in packets.chunks(100).enumerate() {
        packets.iter().for_each(|packet| peer.faces.send(face, &Headers::default(), packet));
        peer.faces.flush();
        node.until(|node| node.recorder.packets.len() == sent * 100 + packets.len());
    }
    assert!(node.recorder.packets.iter().map(|packet| &packet.2).eq(&packets));
    let counters = peer.faces.get(face).unwrap().counters();
    assert_eq!((counters.frames_out, counters.data_out), (1_000, 1_000));
    assert_eq!(node.faces.total().frames_in, 1_000);
}

#[test]
fn packets_larger_than_a_frame_are_fragmented_in_both_directions() {
    let (mut node, at) = Node::udp(Settings { udp_mtu: Some(500), ..Settings::default() });
    let (mut peer, _) = Node::udp(Settings { udp_mtu: Some(1200), ..Settings::default() });
    let (face, _) = peer.faces.add(&Remote::Udp(at), Persistence::Permanent).unwrap();
    node.recorder.echo = true;
    let packets = [data("/large", 8_500), data("/small", 300), data("/middle", 1_500)];
    let headers = with_token(b"token");
    packets.iter().for_each(|packet| peer.faces.send(face, &headers, packet));
    peer.faces.flush();
    peer.until(|_| true);
    node.until(|node| node.recorder.packets.len() == 3);
    peer.until(|peer| peer.recorder.packets.len() == 3);
    for (received, sent) in peer.recorder.packets.iter().zip(&packets) {
        assert_eq!((&received.1, &received.2), (&headers, sent));
    }
    let counters = node.faces.total();
    assert_eq!((counters.reassembled, counters.data_in, counters.data_out), (2, 3, 3));
    assert!(counters.fragments_in == 10 && counters.frames_out > 20, "{counters:?}");
}

#[test]
fn no_frame_exceeds_the_mtu() {
    let (mut node, at) = Node::udp(Settings { udp_mtu: Some(300), ..Settings::default() });
    node.recorder.echo = true;
    let neighbour = neighbour();
    let packet = data("/large", 8_000);
    neighbour.send_to(&packet, at).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    let mut reassembler = Reassembler::new(1, 1);
    let mut received = [0; 9000];
    let mut frames = 0;
    loop {
        let len = neighbour.recv(&mut received).unwrap();
        assert!(len <= 300, "{len}");
        frames += 1;
        let lp = LpPacket::read(&received[..len]).unwrap();
        if let Reassembly::Complete(_, whole) = reassembler.take(0, 0, &lp) {
            assert_eq!(whole, packet);
            break;
        }
    }
    assert_eq!(frames, node.faces.total().frames_out);
}

#[test]
fn idle_faces_are_closed_except_configured_ones() {
    let settings = Settings { idle: Duration::from_secs(10), ..Settings::default() };
    let (mut node, at) = Node::udp(settings);
    let (idle, busy, configured) = (neighbour(), neighbour(), neighbour());
    let remote = Remote::Udp(configured.local_addr().unwrap());
    let (permanent, _) = node.faces.add(&remote, Persistence::Permanent).unwrap();
    for neighbour in [&idle, &busy] {
        neighbour.send_to(&interest("/a", 1), at).unwrap();
    }
    node.until(|node| node.recorder.packets.len() == 2);
    node.now_ns = 8_000_000_000;
    busy.send_to(&interest("/b", 2), at).unwrap();
    node.until(|node| node.recorder.packets.len() == 3);
    close_idle(&mut node.faces, 11_000_000_000, &mut node.recorder);
    assert_eq!(node.recorder.down, [node.recorder.packets[0].0]);
    assert!(node.faces.get(permanent).is_some() && node.faces.len() == 2);
    // The counters of the closed face remain. A returning neighbour gets a face with another
    // number.
    idle.send_to(&interest("/c", 3), at).unwrap();
    node.until(|node| node.recorder.packets.len() == 4);
    assert_eq!(node.faces.total().interests_in, 4);
    assert!(node.recorder.up[2] > node.recorder.up[1]);
    // A packet for a closed face is counted as lost.
    node.faces.send(node.recorder.down[0], &Headers::default(), &interest("/d", 4));
    assert_eq!(node.faces.total().lost(Lost::Gone), 1);
}

#[test]
fn the_number_of_faces_is_bounded() {
    let (mut node, at) = Node::udp(Settings { faces_max: 3, ..Settings::default() });
    let neighbours: Vec<_> = (0..5).map(|_| neighbour()).collect();
    let remote = |at: usize| Remote::Udp(neighbours[at].local_addr().unwrap());
    let (first, _) = node.faces.add(&remote(0), Persistence::Permanent).unwrap();
    for at in 1..3 {
        node.faces.add(&remote(at), Persistence::Persistent).unwrap();
    }
    let error = node.faces.add(&remote(3), Persistence::Permanent).unwrap_err();
    assert!(error.to_string().contains("all 3 faces are in use"), "{error}");
    // No configured or requested face is closed for an unknown sender.
    neighbours[3].send_to(&interest("/a", 1), at).unwrap();
    node.until(|node| node.faces.total().frames_in == 1);
    assert_eq!((node.faces.total().lost(Lost::NoFace), node.faces.evicted()), (1, 0));
    // A closed face makes room for another.
    assert!(node.faces.close(first) && !node.faces.close(first));
    assert_eq!(node.faces.add(&remote(4), Persistence::Permanent).unwrap(), (first, true));
    assert_eq!(node.faces.add(&remote(4), Persistence::OnDemand).unwrap(), (first, false));
}

#[test]
fn only_a_valid_packet_creates_a_face() {
    let (mut node, at) = Node::udp(Settings::default());
    let unknown = neighbour();
    let mut nested = vec![100, 4, 0x50, 2];
    nested.extend([5, 0]);
    let mut other_fragment = Vec::new();
    ringtap_ndn::packets::fragments(
        &Headers::default(),
        &[9; 600],
        300,
        7,
        &mut Vec::new(),
        |piece| {
            if other_fragment.is_empty() {
                other_fragment.extend_from_slice(piece);
            }
        },
    );
    // Empty link and network packets, a malformed Interest in a link packet, and the first fragment
    // of bytes that are not a packet.
    for frame in [&[100, 0][..], &[5, 0], &[6, 0], &[100, 2, 0x50, 0], &nested, &other_fragment] {
        unknown.send_to(frame, at).unwrap();
    }
    node.until(|node| node.faces.total().frames_in == 6);
    assert!(node.faces.is_empty() && node.recorder.up.is_empty(), "{:?}", node.recorder.up);
    let total = node.faces.total();
    assert_eq!((total.idle_in, total.lost(Lost::Malformed)), (1, 5), "{total:?}");
    // A fragment of a packet creates a face, and the packet arrives.
    let packet = data("/in/pieces", 600);
    ringtap_ndn::packets::fragments(
        &Headers::default(),
        &packet,
        300,
        8,
        &mut Vec::new(),
        |piece| {
            unknown.send_to(piece, at).unwrap();
        },
    );
    node.until(|node| node.recorder.packets.len() == 1);
    assert_eq!((node.faces.on_demand(), &node.recorder.packets[0].2), (1, &packet));
}

#[test]
fn the_least_recently_used_face_on_demand_is_evicted() {
    let settings = Settings { faces_max: 12, on_demand_max: Some(8), ..Settings::default() };
    let (mut node, at) = Node::udp(settings);
    let configured = neighbour();
    let remote = Remote::Udp(configured.local_addr().unwrap());
    let (permanent, _) = node.faces.add(&remote, Persistence::Permanent).unwrap();
    let neighbours: Vec<_> = (0..40).map(|_| neighbour()).collect();
    let regular = neighbour();
    let requested = neighbour();
    // Sends a packet of a neighbour; returns the number of its face.
    let mut sent = 0;
    let mut send = |node: &mut Node, from: &std::net::UdpSocket| {
        (sent, node.now_ns) = (sent + 1, node.now_ns + 1);
        from.send_to(&interest("/a", sent), at).unwrap();
        node.until(|node| node.recorder.packets.len() == sent as usize);
        node.recorder.packets.last().unwrap().0
    };
    // A face on demand that is requested later is no longer on demand.
    let kept = send(&mut node, &requested);
    let remote = Remote::Udp(requested.local_addr().unwrap());
    assert_eq!(node.faces.add(&remote, Persistence::Persistent).unwrap(), (kept, false));
    assert_eq!(node.faces.on_demand(), 0);
    let of_regular = send(&mut node, &regular);
    let mut made = Vec::new();
    for neighbour in &neighbours {
        made.push(send(&mut node, neighbour));
        assert_eq!(send(&mut node, &regular), of_regular, "a face in use is not evicted");
        assert!(node.faces.on_demand() <= 8);
    }
    // Of the eight faces on demand, one is the regular neighbour's and seven are the latest. The
    // others were evicted in order of use.
    assert_eq!((node.faces.len(), node.faces.evicted()), (10, 33));
    assert_eq!(node.recorder.down, made[..33]);
    for face in [permanent, kept, of_regular].iter().chain(&made[33..]) {
        assert!(node.faces.get(*face).is_some(), "{face}");
    }
    assert_eq!(node.faces.total().lost(Lost::NoFace), 0);
    // An evicted neighbour gets a new face.
    send(&mut node, &neighbours[0]);
    assert_eq!((node.faces.on_demand(), node.faces.evicted()), (8, 34));
}

#[test]
fn datagrams_evict_no_stream() {
    let settings = Settings {
        tcp: vec!["127.0.0.1:0".parse().unwrap()],
        on_demand_max: Some(3),
        ..Settings::default()
    };
    let (mut node, at) = Node::udp(settings);
    let tcp = node.faces.listening().find_map(|name| match name.parse() {
        Ok(Remote::Tcp(at)) => Some(at),
        _ => None,
    });
    let connect = || TcpStream::connect(tcp.unwrap()).unwrap();
    let mut streams = vec![connect(), connect()];
    for stream in &mut streams {
        stream.write_all(&interest("/a", 1)).unwrap();
    }
    node.until(|node| node.recorder.packets.len() == 2);
    let of_streams = node.recorder.up.clone();
    // The senders of datagrams take turns on the remaining face.
    for count in 1..=5 {
        node.now_ns += 1;
        neighbour().send_to(&interest("/a", count), at).unwrap();
        node.until(|node| node.recorder.packets.len() == 2 + count as usize);
    }
    assert_eq!(node.faces.evicted(), 4);
    assert!(of_streams.iter().all(|&face| node.faces.get(face).is_some()));
    // A connection may take the place of a sender of datagrams, but not the other way round.
    let last = node.recorder.packets.last().unwrap().0;
    for stream in &mut streams {
        node.now_ns += 1;
        stream.write_all(&interest("/a", 2)).unwrap();
        let packets = node.recorder.packets.len();
        node.until(|node| node.recorder.packets.len() > packets);
    }
    let mut third = connect();
    third.write_all(&interest("/a", 3)).unwrap();
    node.until(|node| node.recorder.packets.len() == 10);
    assert!(node.faces.get(last).is_none());
    neighbour().send_to(&interest("/a", 9), at).unwrap();
    node.until(|node| node.faces.total().lost(Lost::NoFace) == 1);
    assert_eq!((node.faces.on_demand(), node.faces.evicted()), (3, 5));
}

#[test]
fn a_maximum_of_0_creates_no_faces_on_demand() {
    let (mut node, at) = Node::udp(Settings { on_demand_max: Some(0), ..Settings::default() });
    neighbour().send_to(&interest("/a", 1), at).unwrap();
    node.until(|node| node.faces.total().frames_in == 1);
    assert_eq!((node.faces.len(), node.faces.total().lost(Lost::NoFace)), (0, 1));
}

#[test]
fn local_headers_of_neighbours_are_ignored() {
    let (mut node, at) = Node::udp(Settings::default());
    let headers = Headers {
        next_hop_face: Some(3),
        incoming_face: Some(4),
        no_cache: true,
        congestion_mark: 1,
        ..with_token(&[9])
    };
    let mut wire = Vec::new();
    write_lp(&headers, &interest("/a", 1), &mut wire);
    neighbour().send_to(&wire, at).unwrap();
    node.until(|node| node.recorder.packets.len() == 1);
    assert_eq!(node.recorder.packets[0].1, Headers { congestion_mark: 1, ..with_token(&[9]) });
}

#[test]
fn a_channel_that_is_closed_while_it_is_read_creates_no_faces() {
    let mut node = Node::new(Settings::default());
    let (known, other) = (neighbour(), neighbour());
    let remote = Remote::Udp(known.local_addr().unwrap());
    node.faces.add(&remote, Persistence::Persistent).unwrap();
    let at = node.faces.listening().next().unwrap();
    let port = at.rsplit(':').next().unwrap().parse().unwrap();
    for (from, nonce) in [(&known, 1), (&other, 2), (&other, 3)] {
        from.send_to(&interest("/a", nonce), ("127.0.0.1", port)).unwrap();
    }
    let mut closing = Closing::default();
    node.intake.wait(&node.faces, Duration::from_secs(3)).unwrap();
    node.intake.receive(&mut node.faces, 1, &mut closing);
    node.check_counters();
    let total = node.faces.total();
    assert_eq!((closing.delivered, node.faces.len(), node.faces.listening().count()), (1, 0, 0));
    assert_eq!((total.frames_in, total.lost(Lost::NoFace)), (3, 2));
}

//! Faces over UDP.

use std::time::Duration;

use ringtap_faces::{Lost, Persistence, Remote, Settings, tidy};
use ringtap_ndn::{Headers, LpPacket, Reassembler, Reassembly, write_lp};

use crate::support::{Node, data, interest, neighbour, with_token};

#[test]
fn who_sends_a_packet_has_a_face_from_then_on() {
    let (mut node, at) = Node::udp(Settings::default());
    let (one, other) = (neighbour(), neighbour());
    node.heard.echo = true;
    let packet = interest("/a/b", 7);
    let mut wire = Vec::new();
    write_lp(&with_token(&[1, 2, 3]), &packet, &mut wire);
    one.send_to(&wire, at).unwrap();
    other.send_to(&packet, at).unwrap();
    one.send_to(&packet, at).unwrap();
    node.until(|node| node.heard.packets.len() == 3);
    let [first, second] = node.heard.up[..] else { panic!("{:?}", node.heard.up) };
    let faces: Vec<u32> = node.heard.packets.iter().map(|packet| packet.0).collect();
    assert!(first >= 256 && faces == [first, second, first], "{faces:?}");
    assert_eq!(node.heard.packets[0].1, with_token(&[1, 2, 3]));
    let mut came = [0; 9000];
    let len = one.recv(&mut came).unwrap();
    assert_eq!(came[..len], wire, "what was said comes back as it was");
    let face = node.faces.get(first).unwrap();
    assert_eq!(face.remote(), &Remote::Udp(one.local_addr().unwrap()));
    assert_eq!((face.is_local(), face.is_shared()), (false, false));
    assert_eq!((face.counters().interests_in, face.counters().interests_out), (2, 2));
}

#[test]
fn what_is_no_packet_is_counted_and_makes_no_face() {
    let (mut node, at) = Node::udp(Settings::default());
    let stranger = neighbour();
    for junk in [&b""[..], &[0], &[5, 200, 1], &[100, 3, 0x51, 1, 0], b"GET / HTTP/1.1\r\n"] {
        stranger.send_to(junk, at).unwrap();
    }
    node.until(|node| node.faces.total().frames_in == 5);
    assert_eq!(node.faces.total().lost(Lost::Malformed), 5);
    assert!(node.faces.is_empty() && node.heard.up.is_empty() && node.heard.packets.is_empty());
    // From a face it is that face's.
    stranger.send_to(&interest("/a", 1), at).unwrap();
    stranger.send_to(&[9], at).unwrap();
    stranger.send_to(&data("/too/long", 9_000), at).unwrap();
    node.until(|node| node.faces.total().frames_in == 8);
    let face = node.faces.get(node.heard.up[0]).unwrap().counters();
    assert_eq!((face.lost(Lost::Malformed), face.lost(Lost::TooLong)), (1, 1));
}

#[test]
fn a_burst_for_one_neighbour_arrives_whole_and_in_order() {
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        burst(ours, theirs);
    }
}

fn burst(ours: bool, theirs: bool) {
    let offload = |udp_offload| Settings { udp_offload, ..Settings::default() };
    let (mut node, at) = Node::udp(offload(ours));
    let (mut far, _) = Node::udp(offload(theirs));
    let (face, new) = far.faces.add(&Remote::Udp(at), Persistence::Permanent).unwrap();
    assert!(new);
    // Sizes change now and then, so that some leave together and some alone.
    let packets: Vec<_> =
        (0..1_000).map(|n| data(&format!("/n/{n:04}"), 40 + n / 300 * 25 + n % 97 / 96)).collect();
    for (sent, packets) in packets.chunks(100).enumerate() {
        packets.iter().for_each(|packet| far.faces.send(face, &Headers::default(), packet));
        far.faces.flush();
        node.until(|node| node.heard.packets.len() == sent * 100 + packets.len());
    }
    assert!(node.heard.packets.iter().map(|packet| &packet.2).eq(&packets));
    let counters = far.faces.get(face).unwrap().counters();
    assert_eq!((counters.frames_out, counters.data_out), (1_000, 1_000));
    assert_eq!(node.faces.total().frames_in, 1_000);
}

#[test]
fn packets_larger_than_a_frame_go_in_pieces_both_ways() {
    let (mut node, at) = Node::udp(Settings { udp_mtu: Some(500), ..Settings::default() });
    let (mut far, _) = Node::udp(Settings { udp_mtu: Some(1200), ..Settings::default() });
    let (face, _) = far.faces.add(&Remote::Udp(at), Persistence::Permanent).unwrap();
    node.heard.echo = true;
    let packets = [data("/large", 8_500), data("/small", 300), data("/middle", 1_500)];
    let about = with_token(b"token");
    packets.iter().for_each(|packet| far.faces.send(face, &about, packet));
    far.faces.flush();
    far.until(|_| true);
    node.until(|node| node.heard.packets.len() == 3);
    far.until(|far| far.heard.packets.len() == 3);
    for (came, sent) in far.heard.packets.iter().zip(&packets) {
        assert_eq!((&came.1, &came.2), (&about, sent));
    }
    let counters = node.faces.total();
    assert_eq!((counters.reassembled, counters.data_in, counters.data_out), (2, 3, 3));
    assert!(counters.pieces_in == 10 && counters.frames_out > 20, "{counters:?}");
}

#[test]
fn no_frame_is_larger_than_it_may_be() {
    let (mut node, at) = Node::udp(Settings { udp_mtu: Some(300), ..Settings::default() });
    node.heard.echo = true;
    let neighbour = neighbour();
    let packet = data("/large", 8_000);
    neighbour.send_to(&packet, at).unwrap();
    node.until(|node| node.heard.packets.len() == 1);
    let mut reassembler = Reassembler::new(1, 1);
    let mut came = [0; 9000];
    let mut frames = 0;
    loop {
        let len = neighbour.recv(&mut came).unwrap();
        assert!(len <= 300, "{len}");
        frames += 1;
        let lp = LpPacket::read(&came[..len]).unwrap();
        if let Reassembly::Whole(_, whole) = reassembler.take(0, 0, &lp) {
            assert_eq!(whole, packet);
            break;
        }
    }
    assert_eq!(frames, node.faces.total().frames_out);
}

#[test]
fn faces_end_when_they_are_not_used_but_for_those_that_were_configured() {
    let settings = Settings { idle: Duration::from_secs(10), ..Settings::default() };
    let (mut node, at) = Node::udp(settings);
    let (idle, busy, configured) = (neighbour(), neighbour(), neighbour());
    let remote = Remote::Udp(configured.local_addr().unwrap());
    let (permanent, _) = node.faces.add(&remote, Persistence::Permanent).unwrap();
    for neighbour in [&idle, &busy] {
        neighbour.send_to(&interest("/a", 1), at).unwrap();
    }
    node.until(|node| node.heard.packets.len() == 2);
    node.now_ns = 8_000_000_000;
    busy.send_to(&interest("/b", 2), at).unwrap();
    node.until(|node| node.heard.packets.len() == 3);
    tidy(&mut node.faces, 11_000_000_000, &mut node.heard);
    assert_eq!(node.heard.down, [node.heard.packets[0].0]);
    assert!(node.faces.get(permanent).is_some() && node.faces.len() == 2);
    // What it counted is not forgotten, and who comes back gets another number.
    idle.send_to(&interest("/c", 3), at).unwrap();
    node.until(|node| node.heard.packets.len() == 4);
    assert_eq!(node.faces.total().interests_in, 4);
    assert!(node.heard.up[2] > node.heard.up[1]);
    // A packet for a face that is gone is counted, too.
    node.faces.send(node.heard.down[0], &Headers::default(), &interest("/d", 4));
    assert_eq!(node.faces.total().lost(Lost::Gone), 1);
}

#[test]
fn there_are_no_more_faces_than_there_may_be() {
    let (mut node, at) = Node::udp(Settings { faces_max: 3, ..Settings::default() });
    let neighbours: Vec<_> = (0..5).map(|_| neighbour()).collect();
    for neighbour in &neighbours {
        neighbour.send_to(&interest("/a", 1), at).unwrap();
    }
    node.until(|node| node.faces.total().frames_in == 5);
    assert_eq!((node.faces.len(), node.heard.packets.len()), (3, 3));
    assert_eq!(node.faces.total().lost(Lost::NoFace), 2);
    let remote = Remote::Udp(neighbours[4].local_addr().unwrap());
    let error = node.faces.add(&remote, Persistence::Permanent).unwrap_err();
    assert!(error.to_string().contains("there are 3 faces already"), "{error}");
    // There is room again where one went.
    let gone = node.heard.up[0];
    assert!(node.faces.close(gone) && !node.faces.close(gone));
    assert_eq!(node.faces.add(&remote, Persistence::Permanent).unwrap(), (gone, true));
    assert_eq!(node.faces.add(&remote, Persistence::OnDemand).unwrap(), (gone, false));
}

#[test]
fn what_neighbours_may_not_say_is_not_heard() {
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
    node.until(|node| node.heard.packets.len() == 1);
    assert_eq!(node.heard.packets[0].1, Headers { congestion_mark: 1, ..with_token(&[9]) });
}

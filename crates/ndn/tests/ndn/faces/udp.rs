//! Faces over UDP.

use std::time::Duration;

use ringtap_ndn::faces::{Lost, Persistence, Remote, Settings, tidy};
use ringtap_ndn::packets::{Headers, LpPacket, Reassembler, Reassembly, write_lp};

use crate::faces::support::{Node, data, interest, neighbour, with_token};

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
    let remote = |at: usize| Remote::Udp(neighbours[at].local_addr().unwrap());
    let (first, _) = node.faces.add(&remote(0), Persistence::Permanent).unwrap();
    for at in 1..3 {
        node.faces.add(&remote(at), Persistence::Persistent).unwrap();
    }
    let error = node.faces.add(&remote(3), Persistence::Permanent).unwrap_err();
    assert!(error.to_string().contains("there are 3 faces already"), "{error}");
    // Nothing is closed for an unknown sender that was configured or asked for.
    neighbours[3].send_to(&interest("/a", 1), at).unwrap();
    node.until(|node| node.faces.total().frames_in == 1);
    assert_eq!((node.faces.total().lost(Lost::NoFace), node.faces.evicted()), (1, 0));
    // There is room again where one went.
    assert!(node.faces.close(first) && !node.faces.close(first));
    assert_eq!(node.faces.add(&remote(4), Persistence::Permanent).unwrap(), (first, true));
    assert_eq!(node.faces.add(&remote(4), Persistence::OnDemand).unwrap(), (first, false));
}

#[test]
fn only_a_packet_makes_a_face() {
    let (mut node, at) = Node::udp(Settings::default());
    let stranger = neighbour();
    let mut nested = vec![100, 4, 0x50, 2];
    nested.extend([5, 0]);
    let mut wrong_piece = Vec::new();
    ringtap_ndn::packets::fragments(
        &Headers::default(),
        &[9; 600],
        300,
        7,
        &mut Vec::new(),
        |piece| {
            if wrong_piece.is_empty() {
                wrong_piece.extend_from_slice(piece);
            }
        },
    );
    // Empty packets of the link, and of the network; what is no Interest; the beginning of what will be none.
    for junk in [&[100, 0][..], &[5, 0], &[6, 0], &[100, 2, 0x50, 0], &nested, &wrong_piece] {
        stranger.send_to(junk, at).unwrap();
    }
    node.until(|node| node.faces.total().frames_in == 6);
    assert!(node.faces.is_empty() && node.heard.up.is_empty(), "{:?}", node.heard.up);
    let total = node.faces.total();
    assert_eq!((total.idle_in, total.lost(Lost::Malformed)), (1, 5), "{total:?}");
    // A piece of a packet does make one, and the packet arrives.
    let packet = data("/in/pieces", 600);
    ringtap_ndn::packets::fragments(
        &Headers::default(),
        &packet,
        300,
        8,
        &mut Vec::new(),
        |piece| {
            stranger.send_to(piece, at).unwrap();
        },
    );
    node.until(|node| node.heard.packets.len() == 1);
    assert_eq!((node.faces.on_demand(), &node.heard.packets[0].2), (1, &packet));
}

#[test]
fn the_least_recently_used_face_on_demand_makes_room() {
    let settings = Settings { faces_max: 12, on_demand_max: Some(8), ..Settings::default() };
    let (mut node, at) = Node::udp(settings);
    let configured = neighbour();
    let remote = Remote::Udp(configured.local_addr().unwrap());
    let (permanent, _) = node.faces.add(&remote, Persistence::Permanent).unwrap();
    let neighbours: Vec<_> = (0..40).map(|_| neighbour()).collect();
    let regular = neighbour();
    let asked_for = neighbour();
    // Faces by neighbour, in the order of their last packet.
    let mut sent = 0;
    let mut send = |node: &mut Node, from: &std::net::UdpSocket| {
        (sent, node.now_ns) = (sent + 1, node.now_ns + 1);
        from.send_to(&interest("/a", sent), at).unwrap();
        node.until(|node| node.heard.packets.len() == sent as usize);
        node.heard.packets.last().unwrap().0
    };
    // One that was made on demand and then asked for is no longer on demand.
    let kept = send(&mut node, &asked_for);
    let remote = Remote::Udp(asked_for.local_addr().unwrap());
    assert_eq!(node.faces.add(&remote, Persistence::Persistent).unwrap(), (kept, false));
    assert_eq!(node.faces.on_demand(), 0);
    let of_regular = send(&mut node, &regular);
    let mut made = Vec::new();
    for neighbour in &neighbours {
        made.push(send(&mut node, neighbour));
        assert_eq!(send(&mut node, &regular), of_regular, "it is in use");
        assert!(node.faces.on_demand() <= 8);
    }
    // One is the regular's; of the others the latest seven are left, and the others went in their order.
    assert_eq!((node.faces.len(), node.faces.evicted()), (10, 33));
    assert_eq!(node.heard.down, made[..33]);
    for face in [permanent, kept, of_regular].iter().chain(&made[33..]) {
        assert!(node.faces.get(*face).is_some(), "{face}");
    }
    assert_eq!(node.faces.total().lost(Lost::NoFace), 0);
    // An evicted one comes back with a new face.
    send(&mut node, &neighbours[0]);
    assert_eq!((node.faces.on_demand(), node.faces.evicted()), (8, 34));
}

#[test]
fn a_share_of_none_is_for_configured_faces_alone() {
    let (mut node, at) = Node::udp(Settings { on_demand_max: Some(0), ..Settings::default() });
    neighbour().send_to(&interest("/a", 1), at).unwrap();
    node.until(|node| node.faces.total().frames_in == 1);
    assert_eq!((node.faces.len(), node.faces.total().lost(Lost::NoFace)), (0, 1));
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

//! Tests of faces on Ethernet, between two network namespaces. Each runs by AF_PACKET and AF_XDP.

use std::time::Duration;

use ringtap_io::live::{Options, SendOptions, open};
use ringtap_ndn::faces::{
    EthernetMethod, EthernetSettings, Faces, Lost, Persistence, Remote, Settings,
};
use ringtap_ndn::packets::Headers;

use crate::faces::support::{Node, data, interest, with_token};
use ringtap_testkit::{End, Left, Net, Right, send_all, soon, take};

const METHODS: [EthernetMethod; 2] = [EthernetMethod::Packet, EthernetMethod::Xdp];

const LEFT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const RIGHT: [u8; 6] = [2, 0, 0, 0, 0, 2];
const GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0x00, 0x17, 0xaa];

fn settings(interface: &str, method: EthernetMethod) -> EthernetSettings {
    EthernetSettings { interface: interface.into(), method, strangers: false, mtu: None }
}

fn node(net: &Net, end: End, settings: EthernetSettings) -> Node {
    net.inside(end, || Node::new(Settings { ethernet: vec![settings], ..Settings::default() }))
}

/// Two namespaces with the addresses [`LEFT`] and [`RIGHT`].
fn net() -> Option<Net> {
    let net = Net::new(1)?;
    net.ip(Left, "link set left address 02:00:00:00:00:01");
    net.ip(Right, "link set right address 02:00:00:00:00:02");
    Some(net)
}

fn group(interface: &str) -> Remote {
    format!("ether://{interface}").parse().unwrap()
}

/// An Ethernet frame.
fn frame(to: [u8; 6], from: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &ethertype.to_be_bytes(), payload].concat()
}

#[test]
fn a_group_receives_and_large_packets_are_fragmented() {
    for method in METHODS {
        let Some(net) = Net::new(1) else { return };
        let mut left = node(&net, Left, settings("left", method));
        let mut right =
            node(&net, Right, EthernetSettings { mtu: Some(700), ..settings("right", method) });
        let (to_right, _) = left.faces.add(&group("left"), Persistence::Permanent).unwrap();
        let (to_left, _) = right.faces.add(&group("right"), Persistence::Permanent).unwrap();
        assert!(left.faces.get(to_right).unwrap().is_shared());
        right.recorder.echo = true;
        let packets = [interest("/a", 1), data("/b", 8_000), data("/c", 100)];
        let headers = with_token(&[5; 8]);
        packets.iter().for_each(|packet| left.faces.send(to_right, &headers, packet));
        left.faces.flush();
        right.until(|right| right.recorder.packets.len() == 3);
        left.until(|left| left.recorder.packets.len() == 3);
        for (received, sent) in left.recorder.packets.iter().zip(&packets) {
            assert_eq!((received.0, &received.1, &received.2), (to_right, &headers, sent));
        }
        assert_eq!(left.faces.get(to_right).unwrap().mtu(), 1500);
        let counters = right.faces.get(to_left).unwrap().counters();
        assert!(counters.fragments_in == 6 && counters.frames_out > 12, "{counters:?}");
    }
}

/// A forwarder by AF_XDP and one by AF_PACKET exchange more frames than a burst has.
#[test]
fn both_methods_send_and_receive_the_same_frames() {
    let Some(net) = Net::new(1) else { return };
    let mut left = node(&net, Left, settings("left", EthernetMethod::Packet));
    let mut right = node(&net, Right, settings("right", EthernetMethod::Xdp));
    let (to_right, _) = left.faces.add(&group("left"), Persistence::Permanent).unwrap();
    right.faces.add(&group("right"), Persistence::Permanent).unwrap();
    right.recorder.echo = true;
    let packets: Vec<_> = (0..200).map(|at| data(&format!("/a/{at}"), 40 * at)).collect();
    for (at, packet) in packets.iter().enumerate() {
        left.faces.send(to_right, &Headers::default(), packet);
        // Less than the ring of a veth holds.
        if at % 20 == 19 {
            left.faces.flush();
            right.until(|right| right.recorder.packets.len() > at);
            left.until(|left| left.recorder.packets.len() > at);
        }
    }
    assert!(left.recorder.packets.iter().map(|(_, _, packet)| packet).eq(&packets));
    assert_eq!((left.faces.kernel_drops(), right.faces.kernel_drops()), (0, 0));
}

#[test]
fn neighbours_have_faces_of_their_own() {
    for method in METHODS {
        let Some(net) = net() else { return };
        let mut left = node(&net, Left, settings("left", method));
        let mut right =
            node(&net, Right, EthernetSettings { strangers: true, ..settings("right", method) });
        let one: Remote = "ether://left/02:00:00:00:00:02".parse().unwrap();
        let (face, _) = left.faces.add(&one, Persistence::Permanent).unwrap();
        let elsewhere: Remote = "ether://left/02:00:00:00:00:99".parse().unwrap();
        let (absent, _) = left.faces.add(&elsewhere, Persistence::Permanent).unwrap();
        left.faces.send(absent, &Headers::default(), &interest("/lost", 1));
        left.faces.send(face, &Headers::default(), &interest("/a", 1));
        left.faces.flush();
        right.recorder.echo = true;
        right.until(|right| right.recorder.packets.len() == 1);
        assert_eq!(right.recorder.packets[0].2, interest("/a", 1));
        let made = right.faces.get(right.recorder.up[0]).unwrap();
        assert_eq!((made.persistence(), made.is_shared()), (Persistence::OnDemand, false));
        left.until(|left| left.recorder.packets.len() == 1);
        assert_eq!(left.recorder.packets[0].0, face);
    }
}

#[test]
fn unknown_neighbours_are_refused_and_counted() {
    for method in METHODS {
        let Some(net) = net() else { return };
        let mut right = node(&net, Right, settings("right", method));
        let frames = [
            frame(RIGHT, LEFT, 0x8624, &interest("/a", 1)),
            frame(RIGHT, LEFT, 0x8624, &[0]),
            frame(RIGHT, LEFT, 0x8624, &[0xff; 20]),
            // A group without a face.
            frame(GROUP, LEFT, 0x8624, &interest("/a", 2)),
        ];
        send_all(&mut net.sender(&SendOptions::default()), &frames);
        right.until(|right| right.faces.total().frames_in == 4);
        let total = right.faces.total();
        assert_eq!((total.lost(Lost::NoFace), total.lost(Lost::Malformed)), (2, 2));
        assert!(right.recorder.packets.is_empty() && right.faces.is_empty());
    }
}

/// A frame is written as other programs do, and read with padding.
#[test]
fn frames_have_ethernet_headers_and_padding_is_removed() {
    for method in METHODS {
        let Some(net) = net() else { return };
        let mut right = node(&net, Right, settings("right", method));
        let one: Remote = "ether://right/02:00:00:00:00:01".parse().unwrap();
        let (face, _) = right.faces.add(&one, Persistence::Permanent).unwrap();
        let (all, _) = right.faces.add(&group("right"), Persistence::Permanent).unwrap();
        let mut peer = net.inside(Left, || {
            open("left", &Options { outgoing: false, ..Options::default() }).unwrap()
        });
        let packet = interest("/a", 1);
        let padded = [&packet[..], &[0; 40]].concat();
        let frames = [
            frame(RIGHT, LEFT, 0x8624, &padded),
            frame(GROUP, LEFT, 0x8624, &padded),
            frame([0xff; 6], LEFT, 0x8624, &padded),
        ];
        send_all(&mut net.sender(&SendOptions::default()), &frames);
        right.until(|right| right.recorder.packets.len() == 3);
        let packets = right.recorder.packets.iter().map(|(face, _, packet)| (*face, packet));
        assert!(packets.eq([(face, &packet), (all, &packet), (all, &packet)]), "{method:?}");
        for face in [face, all] {
            right.faces.send(face, &Headers::default(), &packet);
        }
        right.faces.flush();
        let came = take(&mut peer, 2);
        let expected = [LEFT, GROUP].map(|to| frame(to, RIGHT, 0x8624, &packet));
        assert!(came.iter().map(|(_, frame, _)| frame).eq(&expected), "{came:?}");
    }
}

#[test]
fn frames_of_other_types_go_to_the_host_and_dropped_faces_leave_no_program() {
    for method in METHODS {
        let Some(net) = net() else { return };
        let mut right = node(&net, Right, settings("right", method));
        assert_eq!(net.has_program(), method == EthernetMethod::Xdp);
        let options = Options { outgoing: false, ..Options::default() };
        let mut host = net.inside(Right, || open("right", &options).unwrap());
        let frames = [frame(RIGHT, LEFT, 0x88b5, &[7; 60]), frame(GROUP, LEFT, 0x0806, &[8; 60])];
        send_all(&mut net.sender(&SendOptions::default()), &frames);
        let came = take(&mut host, 2);
        assert!(came.iter().map(|(_, frame, _)| frame).eq(&frames), "{came:?}");
        right.until(|right| right.faces.total().frames_in == 0);
        drop(right);
        assert!(soon(|| !net.has_program()));
    }
}

#[test]
fn frames_that_are_too_long_for_the_interface_are_refused() {
    for method in METHODS {
        let Some(net) = net() else { return };
        let mut right =
            node(&net, Right, EthernetSettings { mtu: Some(3_000), ..settings("right", method) });
        let (all, _) = right.faces.add(&group("right"), Persistence::Permanent).unwrap();
        for packet in [data("/a", 100), data("/a", 2_000), data("/a", 200)] {
            right.faces.send(all, &Headers::default(), &packet);
        }
        right.faces.flush();
        let counters = right.faces.get(all).unwrap().counters();
        assert_eq!((counters.frames_out, counters.lost(Lost::Refused)), (3, 1), "{method:?}");
    }
}

/// The group is joined on the network card, and left at the end.
#[test]
fn the_interface_receives_the_group() {
    for method in METHODS {
        let Some(net) = net() else { return };
        let joined = || {
            let shown =
                net.program(Right, "ip").args(["maddress", "show", "dev", "right"]).output();
            String::from_utf8(shown.unwrap().stdout).unwrap().contains("01:00:5e:00:17:aa")
        };
        let right = node(&net, Right, settings("right", method));
        assert!(joined());
        drop(right);
        assert!(soon(|| !joined()));
    }
}

#[test]
fn frames_without_room_are_counted() {
    let Some(net) = net() else { return };
    let mut right = node(&net, Right, settings("right", EthernetMethod::Xdp));
    // More than there are buffers.
    let frames = vec![frame(RIGHT, LEFT, 0x8624, &interest("/a", 1)); 9_000];
    send_all(&mut net.sender(&SendOptions::default()), &frames);
    right.until(|right| right.faces.total().frames_in == 8192);
    assert_eq!(right.faces.kernel_drops() + 8192, net.arrived());
    // A neighbour without a link: the device drops what is sent.
    let (all, _) = right.faces.add(&group("right"), Persistence::Permanent).unwrap();
    net.ip(Left, "link set left down");
    for nonce in 0..10 {
        right.faces.send(all, &Headers::default(), &interest("/a", nonce));
    }
    right.faces.flush();
    let counters = right.faces.get(all).unwrap().counters();
    assert_eq!((counters.frames_out, counters.lost(Lost::Congested)), (10, 10));
}

#[test]
fn the_mode_is_described_and_a_generic_one_is_a_warning() {
    let Some(net) = net() else { return };
    let mut right = node(&net, Right, settings("right", EthernetMethod::Xdp));
    let described: Vec<_> = right.faces.listening().collect();
    assert_eq!(described, ["dev://right by AF_XDP, native, copy"]);
    assert!(right.faces.take_warnings().is_empty());
    // The loopback interface has no XDP in its driver.
    let mut lo = node(&net, Right, settings("lo", EthernetMethod::Xdp));
    let described: Vec<_> = lo.faces.listening().collect();
    assert_eq!(described, ["dev://lo by AF_XDP, generic, copy"]);
    let warnings = lo.faces.take_warnings();
    assert!(warnings.iter().any(|warning| warning.contains("generic mode")), "{warnings:?}");
}

#[test]
fn an_error_names_the_interface_and_the_reason() {
    let fails = |name: &str, method, words: &str| {
        let ethernet = vec![settings(name, method)];
        let settings = Settings { ethernet, idle: Duration::ZERO, ..Settings::default() };
        let error = Faces::open(settings).err().unwrap().to_string();
        assert!(error.contains(&format!("ether://{name}")), "{error}");
        assert!(error.contains(words), "{error}");
    };
    for method in METHODS {
        fails("no-such", method, "");
    }
    fails("no-such", EthernetMethod::Xdp, "by AF_XDP: unknown interface \"no-such\": use ");
    let long = "a-name-of-16-chr";
    fails(long, EthernetMethod::Packet, "at most 15 bytes");
    fails(long, EthernetMethod::Xdp, "unknown interface");
    let settings = Settings { udp_mtu: Some(100), ..Settings::default() };
    assert!(Faces::open(settings).err().unwrap().to_string().contains("too small"));

    let Some(net) = net() else { return };
    net.ip(Right, "tuntap add plain mode tun");
    net.inside(Right, || {
        fails("plain", EthernetMethod::Packet, "not an Ethernet interface");
        fails("plain", EthernetMethod::Xdp, "unsupported link type");
    });
    let _other = node(&net, Right, self::settings("right", EthernetMethod::Xdp));
    net.inside(Right, || fails("right", EthernetMethod::Xdp, "another XDP program"));
}

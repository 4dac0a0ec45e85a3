//! Tests of faces over UDP multicast, between two network namespaces.

use std::net::{SocketAddr, UdpSocket};

use ringtap_ndn::faces::{Faces, MulticastSettings, Persistence, Remote, Settings};

use crate::faces::support::{Node, data, interest, with_token};
use ringtap_testkit::{End, Left, Net, Right};

/// Namespaces whose interfaces have addresses and accept IPv6.
fn net() -> Option<Net> {
    let net = Net::new(1)?;
    for (end, name, last) in [(Left, "left", 1), (Right, "right", 2)] {
        net.inside(end, || {
            for scope in ["all", name] {
                let key = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
                let _ = std::fs::write(key, "0");
            }
        });
        net.ip(end, &format!("address add 192.0.2.{last}/24 dev {name}"));
        // Without duplicate address detection, the address can be used at once.
        net.ip(end, &format!("address add fe80::{last}/64 dev {name} nodad"));
    }
    Some(net)
}

fn node(net: &Net, end: End, interface: &str, group: &str, mtu: Option<usize>) -> Node {
    let (interface, group) = (interface.to_owned(), group.parse().unwrap());
    net.inside(end, || {
        let multicast = vec![MulticastSettings { interface, group, mtu }];
        Node::new(Settings { multicast, ..Settings::default() })
    })
}

/// The face of the group of a node.
fn group_face(node: &mut Node, group: &str) -> u32 {
    let group: Remote = format!("udp://{group}").parse().unwrap();
    node.faces.add(&group, Persistence::Permanent).unwrap().0
}

fn exchange(net: &Net, left: &str, right: &str, group: &str, local: &str) {
    let mut left = node(net, Left, left, group, None);
    let mut right = node(net, Right, right, group, Some(700));
    let (to_right, to_left) = (group_face(&mut left, group), group_face(&mut right, group));
    let face = left.faces.get(to_right).unwrap();
    assert!(face.is_shared() && !face.is_local());
    let version = if group.starts_with('[') { 6 } else { 4 };
    assert_eq!(face.remote().to_string(), format!("udp{version}://{group}"));
    assert_eq!((face.local(), face.mtu()), (local, 1420));
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
    // No packet of its own, and no face for the sender.
    assert_eq!((right.recorder.packets.len(), right.recorder.up.len()), (3, 0));
    let counters = right.faces.get(to_left).unwrap().counters();
    assert!(counters.fragments_in == 6 && counters.frames_out > 12, "{counters:?}");
}

#[test]
fn neighbours_on_an_interface_have_one_face() {
    let Some(net) = net() else { return };
    exchange(&net, "left", "192.0.2.2", "224.0.23.170:56363", "dev://left");
    exchange(&net, "192.0.2.1", "right", "224.0.23.170:56363", "udp4://192.0.2.1:56363");
    exchange(&net, "left", "right", "[ff02::1234]:56363", "dev://left");
}

#[test]
fn fragments_of_different_neighbours_are_not_mixed() {
    let Some(net) = net() else { return };
    let group = "224.0.23.170:56363";
    let mut left = node(&net, Left, "left", group, None);
    let face = group_face(&mut left, group);
    // Both number their fragments from 0.
    let mut senders = [data("/a", 2_000), data("/b", 2_000)].map(|packet| {
        let socket = net.inside(Right, || UdpSocket::bind("192.0.2.2:0").unwrap());
        let mut frames = Vec::new();
        let headers = with_token(&[1; 6]);
        ringtap_ndn::packets::fragments(&headers, &packet, 1_000, 0, &mut Vec::new(), |frame| {
            frames.push(frame.to_vec());
        });
        (socket, frames.into_iter())
    });
    let to: SocketAddr = group.parse().unwrap();
    for _ in 0..3 {
        for (socket, frames) in &mut senders {
            socket.send_to(&frames.next().unwrap(), to).unwrap();
        }
    }
    left.until(|left| left.recorder.packets.len() == 2);
    assert_eq!(left.recorder.packets[0].2, data("/a", 2_000));
    assert_eq!(left.recorder.packets[1].2, data("/b", 2_000));
    assert_eq!(left.faces.get(face).unwrap().counters().reassembled, 2);
}

#[test]
fn a_group_on_another_interface_is_not_received() {
    let Some(net) = net() else { return };
    net.ip(Left, "link add other type veth peer name far");
    net.ip(Left, "link set other up");
    net.ip(Left, "link set far up");
    net.ip(Left, "address add 198.51.100.1/24 dev other");
    let group = "224.0.23.170:56363";
    let mut left = node(&net, Left, "left", group, None);
    let mut other = node(&net, Left, "other", group, None);
    let mut right = node(&net, Right, "right", group, None);
    let faces = [&mut left, &mut other, &mut right].map(|node| group_face(node, group));
    right.faces.send(faces[2], &with_token(&[1]), &interest("/a", 1));
    right.faces.flush();
    left.until(|left| left.recorder.packets.len() == 1);
    other.until(|_| true);
    assert!(other.recorder.packets.is_empty());
    // A route may name the interface.
    let named: Remote = format!("udp://{group}/other").parse().unwrap();
    assert_eq!(other.faces.add(&named, Persistence::Permanent).unwrap(), (faces[1], false));
}

#[test]
fn errors_name_the_group_and_the_interface() {
    let group: SocketAddr = "224.0.23.170:56363".parse().unwrap();
    let multicast = vec![MulticastSettings { interface: "no-such".into(), group, mtu: None }];
    let settings = Settings { multicast, ..Settings::default() };
    let error = Faces::open(settings).err().unwrap().to_string();
    assert!(error.contains("joining udp://224.0.23.170:56363 on no-such: "), "{error}");
    let mut faces = Faces::open(Settings::default()).unwrap();
    let remote = "udp://224.0.23.170".parse().unwrap();
    let error = faces.add(&remote, Persistence::Permanent).unwrap_err().to_string();
    assert!(error.contains("add [[multicast]]"), "{error}");
}

/// A group on the loopback interface.
fn looped(number: usize) -> Remote {
    format!("udp://224.0.23.{number}:56363/127.0.0.1").parse().unwrap()
}

#[test]
fn a_channel_that_was_opened_for_a_face_is_closed_with_it() {
    let (mut node, _) = Node::udp(Settings { faces_max: 3, ..Settings::default() });
    let sockets = |node: &Node| node.faces.listening().count();
    let (first, _) = node.faces.add(&looped(1), Persistence::Persistent).unwrap();
    for number in 2..200 {
        let (face, is_new) = node.faces.add(&looped(number), Persistence::Persistent).unwrap();
        node.faces.send(face, &with_token(&[1]), &interest("/a", 1));
        assert!(is_new && node.faces.close(face));
        assert_eq!(sockets(&node), 2);
    }
    // A channel that takes the place of a closed one receives, and so do the others.
    let (second, _) = node.faces.add(&looped(2), Persistence::Permanent).unwrap();
    let frames = node.faces.total().frames_in;
    for (face, number) in [(first, 1), (second, 2)] {
        node.faces.send(face, &with_token(&[number]), &interest("/own", 1));
    }
    node.faces.flush();
    // The loopback interface returns frames to their sender.
    node.until(|node| node.faces.total().frames_in == frames + 2);
    let received = |face, token| {
        let packets = &node.recorder.packets;
        packets.iter().any(|(from, headers, _)| (*from, headers) == (face, &with_token(&[token])))
    };
    assert!(received(first, 1) && received(second, 2), "{:?}", node.recorder.packets);
    // Without room for the face, there is no channel either.
    node.faces.add(&looped(3), Persistence::Persistent).unwrap();
    node.faces.add(&looped(4), Persistence::Persistent).unwrap_err();
    assert_eq!(sockets(&node), 4);
    // The configured channel stays.
    let numbers: Vec<u32> = node.faces.iter().map(|(number, _)| number).collect();
    numbers.into_iter().for_each(|number| assert!(node.faces.close(number)));
    assert_eq!(sockets(&node), 1);
}

#[test]
fn datagrams_that_the_kernel_dropped_are_counted_after_the_end_of_the_channel() {
    let mut node = Node::new(Settings::default());
    let (face, _) = node.faces.add(&looped(7), Persistence::Persistent).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_ip_multicast_if(&socket, &"127.0.0.1".parse().unwrap()).unwrap();
    while node.faces.kernel_drops() == 0 {
        socket.send_to(&[1; 8_000], "224.0.23.7:56363").unwrap();
    }
    let drops = node.faces.kernel_drops();
    assert!(node.faces.close(face));
    assert_eq!(node.faces.kernel_drops(), drops);
}

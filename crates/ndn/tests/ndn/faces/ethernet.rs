//! Faces on an Ethernet, between two network namespaces.

use std::time::Duration;

use ringtap_ndn::faces::{EthernetSettings, Faces, Persistence, Remote, Settings};
use ringtap_ndn::packets::Headers;

use crate::faces::support::{Node, data, interest, with_token};
use ringtap_testkit::{End, Left, Net, Right};

fn node(net: &Net, end: End, strangers: bool, mtu: Option<usize>) -> Node {
    let interface = ["left", "right"][end as usize].to_owned();
    net.inside(end, || {
        let ethernet = vec![EthernetSettings { interface, strangers, mtu }];
        Node::new(Settings { ethernet, ..Settings::default() })
    })
}

fn group(interface: &str) -> Remote {
    format!("ether://{interface}").parse().unwrap()
}

#[test]
fn a_group_hears_what_one_sends_and_large_packets_go_in_pieces() {
    let Some(net) = Net::new(1) else { return };
    let (mut left, mut right) =
        (node(&net, Left, false, None), node(&net, Right, false, Some(700)));
    let (to_right, _) = left.faces.add(&group("left"), Persistence::Permanent).unwrap();
    let (to_left, _) = right.faces.add(&group("right"), Persistence::Permanent).unwrap();
    assert!(left.faces.get(to_right).unwrap().is_shared());
    right.heard.echo = true;
    // A frame shorter than Ethernet's least is padded, and still read.
    let packets = [interest("/a", 1), data("/b", 8_000), data("/c", 100)];
    let about = with_token(&[5; 8]);
    packets.iter().for_each(|packet| left.faces.send(to_right, &about, packet));
    left.faces.flush();
    right.until(|right| right.heard.packets.len() == 3);
    left.until(|left| left.heard.packets.len() == 3);
    for (came, sent) in left.heard.packets.iter().zip(&packets) {
        assert_eq!((came.0, &came.1, &came.2), (to_right, &about, sent));
    }
    assert_eq!(left.faces.get(to_right).unwrap().mtu(), 1500);
    let counters = right.faces.get(to_left).unwrap().counters();
    assert!(counters.pieces_in == 6 && counters.frames_out > 12, "{counters:?}");
}

#[test]
fn neighbours_have_faces_of_their_own() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Right, "link set right address 02:00:00:00:00:02");
    let (mut left, mut right) = (node(&net, Left, false, None), node(&net, Right, true, None));
    let one: Remote = "ether://left/02:00:00:00:00:02".parse().unwrap();
    let (face, _) = left.faces.add(&one, Persistence::Permanent).unwrap();
    let elsewhere: Remote = "ether://left/02:00:00:00:00:99".parse().unwrap();
    let (nobody, _) = left.faces.add(&elsewhere, Persistence::Permanent).unwrap();
    left.faces.send(nobody, &Headers::default(), &interest("/lost", 1));
    left.faces.send(face, &Headers::default(), &interest("/a", 1));
    left.faces.flush();
    right.heard.echo = true;
    right.until(|right| right.heard.packets.len() == 1);
    assert_eq!(right.heard.packets[0].2, interest("/a", 1));
    let made = right.faces.get(right.heard.up[0]).unwrap();
    assert_eq!((made.persistence(), made.is_shared()), (Persistence::OnDemand, false));
    left.until(|left| left.heard.packets.len() == 1);
    assert_eq!(left.heard.packets[0].0, face);
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let ethernet =
        vec![EthernetSettings { interface: "no-such".into(), strangers: false, mtu: None }];
    let settings = Settings { ethernet, idle: Duration::ZERO, ..Settings::default() };
    let error = Faces::open(settings).err().unwrap().to_string();
    assert!(error.contains("ether://no-such"), "{error}");
    let settings = Settings { udp_mtu: Some(100), ..Settings::default() };
    assert!(Faces::open(settings).err().unwrap().to_string().contains("too small"));
}

//! Tests of faces on Ethernet, between two network namespaces.

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
fn a_group_receives_and_large_packets_are_fragmented() {
    let Some(net) = Net::new(1) else { return };
    let (mut left, mut right) =
        (node(&net, Left, false, None), node(&net, Right, false, Some(700)));
    let (to_right, _) = left.faces.add(&group("left"), Persistence::Permanent).unwrap();
    let (to_left, _) = right.faces.add(&group("right"), Persistence::Permanent).unwrap();
    assert!(left.faces.get(to_right).unwrap().is_shared());
    right.recorder.echo = true;
    // A frame shorter than Ethernet's minimum is padded, and is still parsed.
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

#[test]
fn neighbours_have_faces_of_their_own() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Right, "link set right address 02:00:00:00:00:02");
    let (mut left, mut right) = (node(&net, Left, false, None), node(&net, Right, true, None));
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

#[test]
fn an_error_names_the_missing_interface() {
    let ethernet =
        vec![EthernetSettings { interface: "no-such".into(), strangers: false, mtu: None }];
    let settings = Settings { ethernet, idle: Duration::ZERO, ..Settings::default() };
    let error = Faces::open(settings).err().unwrap().to_string();
    assert!(error.contains("ether://no-such"), "{error}");
    let settings = Settings { udp_mtu: Some(100), ..Settings::default() };
    assert!(Faces::open(settings).err().unwrap().to_string().contains("too small"));
}

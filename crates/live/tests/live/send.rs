//! Sending.

use std::collections::HashMap;

use ringtap_live::{
    LiveSender, Method, OpenError, Options, Receiver, SendError, SendOptions, Sender, State,
    TemplateError,
};

use crate::frames::{Pair, assorted, udp, v4};
use crate::net::{Left, Net, account, send_all, take};

fn by(method: Method) -> SendOptions {
    SendOptions { method, ..SendOptions::default() }
}

/// Queues are for threads to have one each.
const _: () = {
    const fn can_move<T: Send>() {}
    can_move::<Receiver>();
    can_move::<Sender>();
    can_move::<LiveSender>();
};

#[test]
fn what_is_said_to_be_sent_arrives() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&Options::default());
        let mut sender = net.sender(&by(method));
        let sent = assorted(5000);
        send_all(&mut sender, &sent);
        let counters = sender.counters();
        assert_eq!(counters.accepted + counters.dropped, 5000, "{method:?}: {counters:?}");
        assert_eq!(account(&mut receivers, counters.accepted), (counters.accepted, 0));
        assert_eq!(net.arrived(), counters.accepted);
    }
}

#[test]
fn the_bytes_are_those_given() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&Options::default());
        let sent = assorted(300);
        send_all(&mut net.sender(&by(method)), &sent);
        let came = take(&mut receivers, 300);
        assert_eq!(came.len(), 300);
        assert!(came.iter().zip(&sent).all(|((_, frame, _), sent)| frame == sent));
    }
}

#[test]
fn a_frame_of_the_wrong_length_is_an_error_and_those_before_it_are_sent() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut sender = net.sender(&by(method));
        let (good, long, short) = (&[0_u8; 60][..], &[0_u8; 1600][..], &[0_u8; 13][..]);
        assert_eq!(sender.send(&[good, good, long, good]).unwrap(), 2);
        for bad in [long, short] {
            let error = sender.send(&[bad, good]).unwrap_err();
            assert!(matches!(error, SendError::Length { len, .. } if len == bad.len()), "{error}");
        }
        assert_eq!(sender.send(&[]).unwrap(), 0);
        assert_eq!(sender.counters().accepted, 2);
    }
}

/// The kernel allows for one tag beyond the MTU, and refuses an untagged frame of that length.
#[test]
fn the_longest_frame_is_longer_with_a_tag() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&Options::default());
        let mut sender = net.sender(&by(method));
        let plain = |payload| udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, vec![1; payload]);
        let tagged =
            |payload| udp(&[(0x8100, 3)], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, vec![1; payload]);
        let sent = [plain(1472), tagged(1472)];
        assert_eq!([sent[0].len(), sent[1].len()], [1514, 1518]);
        send_all(&mut sender, &sent);
        let came = take(&mut receivers, 2);
        assert!(came.iter().map(|(_, frame, _)| frame).eq(&sent), "{method:?}");
        for bad in [plain(1473), plain(1476), tagged(1473)] {
            assert!(!sender.fits(&bad), "{} bytes", bad.len());
            let error = sender.send(&[&bad]).unwrap_err();
            let most = *sender.lengths(&bad).end();
            assert!(matches!(error, SendError::Length { most: told, .. } if told == most));
        }
    }
}

#[test]
fn by_an_interface_that_is_down_nothing_is_sent() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut sender = net.sender(&by(method));
        net.ip(Left, "link set left down");
        let frame = &[0_u8; 60][..];
        let error = sender.send(&[frame]).and_then(|_| sender.flush(std::time::Duration::ZERO));
        let error = error.unwrap_err();
        assert!(matches!(error, SendError::Interface(State::Down)), "{method:?}: {error}");
        assert_eq!(sender.counters().accepted, 0);
    }
}

#[test]
fn a_queue_that_is_not_there_or_taken_is_an_error() {
    let Some(net) = Net::new(1) else { return };
    let options = SendOptions { queue: 9, ..by(Method::Xdp) };
    let error = net.inside(Left, || Sender::open("left", &options).err().unwrap());
    assert!(matches!(error, OpenError::NoQueue { queue: 9, .. }), "{error}");
    let _first = net.sender(&by(Method::Xdp));
    let error = net.inside(Left, || Sender::open("left", &by(Method::Xdp)).err().unwrap());
    assert!(matches!(error, OpenError::QueueTaken { queue: 0, .. }), "{error}");
}

/// The one's complement sum of 16-bit words.
fn sum(bytes: &[u8]) -> u32 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// A TCP segment with some payload.
fn tcp() -> Vec<u8> {
    let mut frame =
        udp(&[(0x8100, 3)], v4([10, 0, 255, 254], [10, 9, 0, 1]), 65_530, 80, vec![0; 21]);
    frame[18 + 9] = 6;
    frame[18 + 20 + 12] = 0x50;
    frame
}

#[test]
fn copies_are_of_as_many_flows_as_asked_for_and_whole() {
    let Some(net) = Net::new(1) else { return };
    let options = Options { method: Method::Xdp, ..Options::default() };
    let mut receivers = net.receivers(&options);
    let template = tcp();
    let (made, left) = net.inside(Left, || {
        let mut sender = LiveSender::open("left", &template, 16).unwrap();
        (sender.send(1600).unwrap(), sender.left().unwrap())
    });
    assert_eq!((made, left), (1600, 1600));
    assert_eq!(net.arrived(), 1600);
    let came = take(&mut receivers, 1600);
    assert_eq!(came.len(), 1600);
    let mut flows = HashMap::new();
    for (_, frame, _) in &came {
        let ip = &frame[18..];
        assert_eq!(sum(&ip[..20]), 0xffff, "checksum of the IP header");
        let mut pseudo = ip[12..20].to_vec();
        pseudo.extend([0, 6, 0, (ip.len() - 20) as u8]);
        assert_eq!(sum(&[&pseudo, &ip[20..]].concat()), 0xffff, "checksum of TCP");
        let port = u16::from_be_bytes([ip[20], ip[21]]);
        let address = u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]]);
        assert_eq!(address - 0x0a00_fffe, u32::from(port.wrapping_sub(65_530)));
        *flows.entry((address, port)).or_insert(0) += 1;
        // The rest is the template's.
        assert_eq!(ip[22..36], template[40..54]);
    }
    assert_eq!(flows.len(), 16);
    assert!(flows.values().all(|&count| count == 100), "{flows:?}");
}

#[test]
fn copies_of_datagrams_do_without_a_checksum() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options { method: Method::Xdp, ..Options::default() });
    let mut template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, vec![1; 18]);
    template[40..42].copy_from_slice(&[0xab, 0xcd]);
    net.inside(Left, || LiveSender::open("left", &template, 1).unwrap().send(1).unwrap());
    let came = take(&mut receivers, 1);
    assert_eq!(came.len(), 1);
    let frame = &came[0].1;
    assert_eq!(sum(&frame[14..34]), 0xffff);
    assert_eq!(frame[34..38], template[34..38]);
    assert_eq!(frame[40..42], [0, 0]);
}

/// A peer without NAPI: the kernel throws all frames away, and the interface knows.
#[test]
fn frames_that_nobody_takes_are_not_said_to_have_left() {
    let Some(net) = Net::new(1) else { return };
    let template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, vec![1; 18]);
    let (made, left) = net.inside(Left, || {
        let mut sender = LiveSender::open("left", &template, 1).unwrap();
        (sender.send(100).unwrap(), sender.left().unwrap())
    });
    assert_eq!((made, left), (100, 0));
}

#[test]
fn a_template_that_is_not_fit_is_an_error() {
    let Some(net) = Net::new(1) else { return };
    let six = udp(&[], Pair::V6([1; 16], [2; 16]), 5, 6, vec![]);
    let error = net.inside(Left, || LiveSender::open("left", &six, 1).err().unwrap());
    assert!(matches!(error, OpenError::Template(TemplateError::NotIpv4)), "{error}");
}

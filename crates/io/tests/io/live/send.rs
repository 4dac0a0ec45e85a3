//! Sending.

use std::collections::HashMap;

use ringtap_io::live::{
    LiveSender, Method, OpenError, Options, Receiver, SendError, SendOptions, Sender, State,
    TemplateError,
};

use super::frames::{Pair, assorted, udp, v4};
use ringtap_testkit::{Left, Net, Right, account, send_all, take};

fn by(method: Method) -> SendOptions {
    SendOptions { method, ..SendOptions::default() }
}

/// Senders can be moved to other threads.
const _: () = {
    const fn can_move<T: Send>() {}
    can_move::<Receiver>();
    can_move::<Sender>();
    can_move::<LiveSender>();
};

#[test]
fn frames_counted_as_sent_arrive() {
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
fn the_bytes_are_unchanged() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&Options::default());
        let sent = assorted(300);
        send_all(&mut net.sender(&by(method)), &sent);
        let received = take(&mut receivers, 300);
        assert_eq!(received.len(), 300);
        assert!(received.iter().zip(&sent).all(|((_, frame, _), sent)| frame == sent));
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

/// The kernel allows one tag beyond the MTU, and rejects an untagged frame of that length.
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
        let received = take(&mut receivers, 2);
        assert!(received.iter().map(|(_, frame, _)| frame).eq(&sent), "{method:?}");
        for bad in [plain(1473), plain(1476), tagged(1473)] {
            assert!(!sender.fits(&bad), "{} bytes", bad.len());
            let error = sender.send(&[&bad]).unwrap_err();
            let most = *sender.lengths(&bad).end();
            assert!(matches!(error, SendError::Length { most: reported, .. } if reported == most));
        }
    }
}

#[test]
fn an_interface_that_is_down_sends_nothing() {
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
fn discarded_frames_are_never_sent_and_the_sender_continues() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&Options::default());
        let mut sender = net.sender(&by(method));
        net.ip(Left, "link set left down");
        let before = assorted(10);
        let before: Vec<&[u8]> = before.iter().map(Vec::as_slice).collect();
        let handed_over = sender.send(&before).unwrap_or(0) as u64;
        assert_eq!(sender.counters().pending, handed_over);
        net.inside(Left, || sender.discard().unwrap());
        let counters = sender.counters();
        assert_eq!((counters.pending, counters.discarded), (0, handed_over), "{method:?}");
        net.ip(Left, "link set left up");
        let after = vec![udp(&[], v4([10, 0, 0, 9], [10, 0, 0, 2]), 5, 6, vec![1; 30]); 3];
        send_all(&mut sender, &after);
        let received = take(&mut receivers, usize::MAX);
        assert!(
            received.iter().map(|(_, frame, _)| frame).eq(&after),
            "{method:?}: {}",
            received.len()
        );
        assert_eq!(sender.counters().accepted, 3, "{method:?}");
        // A closed sender sends nothing.
        sender.close();
        assert_eq!(sender.send(&[&after[0][..]]).is_err(), method == Method::Xdp);
    }
}

#[test]
fn a_missing_or_used_queue_is_an_error() {
    let Some(net) = Net::new(1) else { return };
    let options = SendOptions { queue: 9, ..by(Method::Xdp) };
    let error = net.inside(Left, || Sender::open("left", &options).err().unwrap());
    assert!(matches!(error, OpenError::NoQueue { queue: 9, .. }), "{error}");
    let _first = net.sender(&by(Method::Xdp));
    let error = net.inside(Left, || Sender::open("left", &by(Method::Xdp)).err().unwrap());
    assert!(matches!(error, OpenError::QueueTaken { queue: 0, .. }), "{error}");
}

/// The one's complement sum of 16-bit words.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
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
fn copies_have_the_requested_number_of_flows_and_correct_checksums() {
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
    let received = take(&mut receivers, 1600);
    assert_eq!(received.len(), 1600);
    let mut flows = HashMap::new();
    for (_, frame, _) in &received {
        let ip = &frame[18..];
        assert_eq!(sum(&ip[..20]), 0xffff, "checksum of the IP header");
        let mut pseudo = ip[12..20].to_vec();
        pseudo.extend([0, 6, 0, (ip.len() - 20) as u8]);
        assert_eq!(sum(&[&pseudo, &ip[20..]].concat()), 0xffff, "checksum of TCP");
        let port = u16::from_be_bytes([ip[20], ip[21]]);
        let address = u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]]);
        assert_eq!(address - 0x0a00_fffe, u32::from(port.wrapping_sub(65_530)));
        *flows.entry((address, port)).or_insert(0) += 1;
        // The rest is that of the template.
        assert_eq!(ip[22..36], template[40..54]);
    }
    assert_eq!(flows.len(), 16);
    assert!(flows.values().all(|&count| count == 100), "{flows:?}");
}

#[test]
fn copies_of_datagrams_have_no_checksum() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options { method: Method::Xdp, ..Options::default() });
    let mut template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, vec![1; 18]);
    template[40..42].copy_from_slice(&[0xab, 0xcd]);
    net.inside(Left, || LiveSender::open("left", &template, 1).unwrap().send(1).unwrap());
    let received = take(&mut receivers, 1);
    assert_eq!(received.len(), 1);
    let frame = &received[0].1;
    assert_eq!(sum(&frame[14..34]), 0xffff);
    assert_eq!(frame[34..38], template[34..38]);
    assert_eq!(frame[40..42], [0, 0]);
}

#[test]
fn the_longest_template_is_sent_completely() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Left, "link set left mtu 3500");
    net.ip(Right, "link set right mtu 3500");
    let mut receivers = net.receivers(&Options { method: Method::Xdp, ..Options::default() });
    let bytes = (0..3_326_u32).map(|n| ((n * n) >> 4) as u8).collect();
    let template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, bytes);
    assert_eq!(template.len(), 3_368);
    let (made, error) = net.inside(Left, || {
        let longer = [&template[..], &[0]].concat();
        let error = LiveSender::open("left", &longer, 1).err();
        (LiveSender::open("left", &template, 1).unwrap().send(200).unwrap(), error)
    });
    let most = TemplateError::TooLong { len: 3_369, most: 3_368 };
    assert!(matches!(error, Some(OpenError::Template(why)) if why == most));
    let received = take(&mut receivers, 200);
    assert_eq!((made, received.len()), (200, 200));
    assert!(received.iter().all(|(_, frame, _)| frame[42..] == template[42..]));
}

/// Turns GRO of `right` on, so that its NAPI runs and it accepts XDP frames.
const GRO_ON: &str = "
import array, fcntl, socket, struct
value = array.array('I', [0x2c, 1])
request = struct.pack('16sP16x', b'right', value.buffer_info()[0])
fcntl.ioctl(socket.socket(), 0x8946, request)
";

/// A router writes addresses, TTL and checksum into the pages in which the kernel makes later copies.
#[test]
fn all_copies_arrive_behind_a_router() {
    let Some(net) = Net::new(1) else { return };
    let far = format!("link add far type veth peer name out netns {}", net.name(Right));
    for (end, words) in [
        (Left, far.as_str()),
        (Left, "link set far up"),
        (Right, "link set right address 02:00:00:00:00:02"),
        (Right, "link set out address 02:00:00:00:00:03"),
        (Right, "link set out up"),
        (Right, "addr add 10.0.255.254/16 dev right"),
        (Right, "route add 10.9.0.0/16 dev out"),
        (Right, "neigh add 10.9.0.1 lladdr 02:00:00:00:00:04 dev out"),
    ] {
        net.ip(end, words);
    }
    let napi = net.inside(Right, || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        std::process::Command::new("python3").args(["-c", GRO_ON]).status()
    });
    if napi.is_err() {
        eprintln!("SKIPPED: no python3 here");
        return;
    }
    assert!(napi.unwrap().success());
    let options = Options { outgoing: false, memory: 16 << 20, ..Options::default() };
    let mut receivers = net.inside(Left, || ringtap_io::live::open("far", &options).unwrap());
    // Payloads of all lengths modulo the eight bytes of a store.
    for payload in 18..26 {
        let bytes = (0..payload).map(|n| n ^ 0x5a).collect();
        let pair = v4([10, 0, 0, 1], [10, 9, 0, 1]);
        let mut template = udp(&[], pair, 1_000, 9, bytes);
        template[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        template[22] = 64;
        let made = net.inside(Left, || {
            let mut sender = LiveSender::open("left", &template, 16).unwrap();
            sender.send(2_000).unwrap()
        });
        assert_eq!(made, 2_000);
        let received = take(&mut receivers, 2_000);
        assert_eq!(received.len(), 2_000);
        for (_, frame, _) in &received {
            assert_eq!(frame[..12], [2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3]);
            assert_eq!((frame[22], sum(&frame[14..34])), (63, 0xffff));
            assert_eq!((&frame[30..34], &frame[36..40]), (&template[30..34], &template[36..40]));
            assert_eq!(frame[42..], template[42..]);
        }
    }
}

/// A peer without NAPI: the kernel drops all frames, and the interface reports it.
#[test]
fn frames_without_a_receiver_are_not_counted_as_sent() {
    let Some(net) = Net::new(1) else { return };
    let template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 5, 6, vec![1; 18]);
    let (made, left) = net.inside(Left, || {
        let mut sender = LiveSender::open("left", &template, 1).unwrap();
        (sender.send(100).unwrap(), sender.left().unwrap())
    });
    assert_eq!((made, left), (100, 0));
}

#[test]
fn an_invalid_template_is_an_error() {
    let Some(net) = Net::new(1) else { return };
    let six = udp(&[], Pair::V6([1; 16], [2; 16]), 5, 6, vec![]);
    let error = net.inside(Left, || LiveSender::open("left", &six, 1).err().unwrap());
    assert!(matches!(error, OpenError::Template(TemplateError::NotIpv4)), "{error}");
}

//! Receiving and sending the frames of one EtherType.

use std::time::Duration;

use ringtap_io::live::{Attach, Options, Path, Port, SendOptions, open};

use super::frames::assorted;
use ringtap_testkit::{Left, Net, Right, send_all, soon, take};

const ETHERTYPE: u16 = 0x8624;

fn port(net: &Net, attach: Attach) -> Port {
    let options = Options { attach, memory: 4 << 20, promiscuous: false, ..Options::default() };
    net.inside(Right, || Port::open("right", ETHERTYPE, &options).unwrap())
}

/// Frames of the port's EtherType, of all lengths.
fn own(count: usize) -> Vec<Vec<u8>> {
    let frame = |at: usize| {
        let mut frame = vec![0xff; 12];
        frame.extend(ETHERTYPE.to_be_bytes());
        frame.extend((0..at % 1500).map(|byte| (byte + at) as u8));
        frame
    };
    (0..count).map(frame).collect()
}

#[test]
fn a_port_receives_its_frames_and_the_host_all_others() {
    for (attach, expected) in
        [(Attach::Auto, true), (Attach::Native, true), (Attach::Generic, false)]
    {
        let Some(net) = Net::new(1) else { return };
        let mut port = port(&net, attach);
        let path = port.receivers[0].describe().path;
        assert!(matches!(path, Path::Xdp { native, .. } if native == expected), "{path:?}");
        let options = Options { outgoing: false, ..Options::default() };
        let mut host = net.inside(Right, || open("right", &options).unwrap());
        let (own, others) = (own(200), assorted(200));
        // The shortest frame ends after its EtherType, and one that is tagged has another.
        let tagged = [&[0xff; 12][..], &[0x81, 0, 0, 1, 0x86, 0x24], &[1; 50]].concat();
        let mixed: Vec<Vec<u8>> = own.iter().chain(&others).chain([&tagged]).cloned().collect();
        send_all(&mut net.sender(&SendOptions::default()), &mixed);
        let came = take(&mut port.receivers, own.len());
        assert!(came.iter().map(|(_, frame, _)| frame).eq(&own), "{attach:?}");
        let came = take(&mut host, others.len() + 1);
        assert!(came.iter().map(|(_, frame, _)| frame).eq(others.iter().chain([&tagged])));
        assert_eq!(take(&mut port.receivers, 1), []);
    }
}

#[test]
fn a_port_sends_while_it_receives() {
    let Some(net) = Net::new(2) else { return };
    let mut port = port(&net, Attach::Auto);
    assert_eq!(port.receivers.len(), 2);
    let mut peer = net
        .inside(Left, || open("left", &Options { outgoing: false, ..Options::default() }).unwrap());
    let mut sender = net.sender(&SendOptions::default());
    // More than there are buffers to send.
    let sent = own(3000);
    let mut returned = 0;
    for part in sent.chunks(50) {
        send_all(&mut sender, part);
        let came = take(&mut port.receivers, part.len());
        let frames: Vec<&[u8]> = came.iter().map(|(_, frame, _)| frame.as_slice()).collect();
        assert_eq!(port.sender.send(&frames).unwrap(), part.len());
        let came = take(&mut peer, part.len());
        assert!(came.iter().map(|(_, frame, _)| frame).eq(part));
        returned += came.len();
    }
    assert_eq!(returned, sent.len());
    assert_eq!((port.sender.has_pending(), port.sender.take_dropped()), (false, 0));
}

#[test]
fn a_frame_that_is_too_long_is_not_sent() {
    let Some(net) = Net::new(1) else { return };
    let mut port = port(&net, Attach::Auto);
    assert_eq!(port.sender.frame_max(), 1514);
    let (good, long) = (own(2), vec![0xff; 1515]);
    assert_eq!(port.sender.send(&[&good[0], &long, &good[1]]).unwrap(), 1);
    assert!(port.sender.send(&[&long]).is_err());
    assert_eq!(port.sender.send(&[&good[1]]).unwrap(), 1);
    net.ip(Right, "link set right mtu 6000");
    drop(port);
    let port = self::port(&net, Attach::Generic);
    assert_eq!(port.sender.frame_max(), 3840);
}

#[test]
fn frames_that_the_device_drops_are_counted() {
    let Some(net) = Net::new(1) else { return };
    let mut port = port(&net, Attach::Auto);
    let frames = own(10);
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    net.ip(Left, "link set left down");
    assert_eq!(port.sender.send(&frames).unwrap(), frames.len());
    assert_eq!((port.sender.take_dropped(), port.sender.take_dropped()), (10, 0));
    assert!(!port.sender.has_pending());
}

#[test]
fn dropping_the_receivers_detaches_the_program() {
    let Some(net) = Net::new(1) else { return };
    let Port { mut receivers, mut sender } = port(&net, Attach::Auto);
    assert!(net.has_program());
    send_all(&mut net.sender(&SendOptions::default()), &own(1));
    receivers[0].wait(Duration::from_secs(3));
    drop(receivers);
    assert!(soon(|| !net.has_program()));
    // The socket sends until it is closed, too.
    assert_eq!(sender.send(&[&own(1)[0]]).unwrap(), 1);
}

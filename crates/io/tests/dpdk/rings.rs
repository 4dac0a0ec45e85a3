//! Devices that are rings, or nothing at all.

use ringtap_io::dpdk::{Options, Queues, SendError, open, queues};

use crate::frames::{assorted, small, take};

/// Options for the devices of these tests, which have 16 queues.
fn roomy() -> Options {
    Options { memory: 20 << 20, ..Options::default() }
}

#[test]
fn frames_sent_into_a_ring_are_received_from_it() {
    let (mut receivers, sender) = open("net_ring_loop", &roomy()).unwrap();
    let mut sender = sender.expect("a ring can be sent to");
    let frames = assorted(5_000);
    let (mut sent, mut received) = (0, Vec::new());
    while sent < frames.len() {
        let batch: Vec<&[u8]> = frames[sent..].iter().take(300).map(Vec::as_slice).collect();
        let taken = sender.send(&batch).unwrap();
        assert!(taken > 0, "an empty ring has room");
        sent += taken;
        received.extend(take(&mut receivers[0], taken));
    }
    assert!(received == frames);
    for other in &mut receivers[1..] {
        assert_eq!(other.burst(1, |_| ()), 0, "only the first ring is sent to");
    }
}

#[test]
fn a_ring_without_a_reader_is_full_and_loses_nothing() {
    let (mut receivers, sender) = open("net_ring_full", &roomy()).unwrap();
    let mut sender = sender.unwrap();
    let frames = assorted(20_000);
    let all: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let sent = sender.send(&all).unwrap();
    assert!(sent > 0 && sent < all.len(), "{sent}");
    assert_eq!(sender.send(&all[sent..]).unwrap(), 0);
    assert!(take(&mut receivers[0], sent) == frames[..sent]);
    assert!(sender.send(&all[sent..]).unwrap() > 0, "there is room again");
}

#[test]
fn a_frame_longer_than_a_buffer_is_an_error() {
    let (_receivers, sender) = open("net_ring_long", &roomy()).unwrap();
    let long = vec![0; 70_000];
    let short = vec![0; 60];
    let mut sender = sender.unwrap();
    for len in [3_000, 70_000] {
        let refused = sender.send(&[&long[..len]]).unwrap_err();
        assert!(
            matches!(refused, SendError::TooLong { len: reported } if reported == len),
            "{refused}"
        );
    }
    assert_eq!(sender.send(&[&short, &long]).unwrap(), 1);
}

#[test]
fn an_endless_device_is_read_in_bursts() {
    let (mut receivers, _) = open("net_null_endless,size=64", &small()).unwrap();
    for most in [1, 63, 64, 65, 1_000] {
        let mut octets = 0;
        assert_eq!(receivers[0].burst(most, |frame| octets += frame.data.len()), most);
        assert_eq!(octets, most * 64);
    }
}

#[test]
fn a_device_that_distributes_has_the_requested_queues() {
    let device = "net_null_shares,size=64";
    assert!(matches!(queues(device, &[]).unwrap(), Queues::UpTo(most) if most > 3));
    let options = Options { queues: Some(3), ..small() };
    let (mut receivers, _) = open(device, &options).unwrap();
    assert_eq!(receivers.len(), 3);
    for receiver in &mut receivers {
        assert_eq!(receiver.burst(100, |_| ()), 100);
    }
}

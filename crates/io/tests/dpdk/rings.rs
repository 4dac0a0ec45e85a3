//! Devices that are rings, or nothing at all.

use ringtap_io::dpdk::{Options, Queues, SendError, open, queues};

use crate::frames::{assorted, small, take};

/// Such a device has 16 queues.
fn roomy() -> Options {
    Options { memory: 20 << 20, ..Options::default() }
}

#[test]
fn what_is_sent_into_a_ring_comes_out_of_it() {
    let (mut receivers, sender) = open("net_ring_loop", &roomy()).unwrap();
    let mut sender = sender.expect("a ring can be sent to");
    let frames = assorted(5_000);
    let (mut sent, mut came) = (0, Vec::new());
    while sent < frames.len() {
        let batch: Vec<&[u8]> = frames[sent..].iter().take(300).map(Vec::as_slice).collect();
        let taken = sender.send(&batch).unwrap();
        assert!(taken > 0, "an empty ring has room");
        sent += taken;
        came.extend(take(&mut receivers[0], taken));
    }
    assert!(came == frames);
    for other in &mut receivers[1..] {
        assert_eq!(other.burst(1, |_| ()), 0, "only the first ring is sent to");
    }
}

#[test]
fn a_ring_that_nobody_empties_is_full_and_nothing_is_lost() {
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
fn a_frame_that_fits_no_buffer_is_refused() {
    let (_receivers, sender) = open("net_ring_long", &roomy()).unwrap();
    let long = vec![0; 70_000];
    let short = vec![0; 60];
    let mut sender = sender.unwrap();
    for len in [3_000, 70_000] {
        let refused = sender.send(&[&long[..len]]).unwrap_err();
        assert!(matches!(refused, SendError::TooLong { len: told } if told == len), "{refused}");
    }
    assert_eq!(sender.send(&[&short, &long]).unwrap(), 1);
}

#[test]
fn a_device_without_end_is_taken_in_bursts() {
    let (mut receivers, _) = open("net_null_endless,size=64", &small()).unwrap();
    for most in [1, 63, 64, 65, 1_000] {
        let mut octets = 0;
        assert_eq!(receivers[0].burst(most, |frame| octets += frame.data.len()), most);
        assert_eq!(octets, most * 64);
    }
}

#[test]
fn a_device_that_shares_out_has_as_many_queues_as_asked_for() {
    let device = "net_null_shares,size=64";
    assert!(matches!(queues(device, &[]).unwrap(), Queues::UpTo(most) if most > 3));
    let options = Options { queues: Some(3), ..small() };
    let (mut receivers, _) = open(device, &options).unwrap();
    assert_eq!(receivers.len(), 3);
    for receiver in &mut receivers {
        assert_eq!(receiver.burst(100, |_| ()), 100);
    }
}

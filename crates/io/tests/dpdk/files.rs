//! Captures read by DPDK's driver net_pcap.

use std::thread;
use std::time::Duration;

use ringtap_io::dpdk::{Counters, Queues, Receiver, State, open, queues};
use tempfile::TempDir;

use crate::frames::{assorted, capture, frame, reads, small, take};

fn opened(device: &str) -> Vec<Receiver> {
    open(device, &small()).unwrap().0
}

#[test]
fn frames_of_a_file_arrive_byte_for_byte_and_in_order() {
    let folder = TempDir::new().unwrap();
    let frames = assorted(20_000);
    let file = capture(&folder, "a.pcap", &frames);
    let mut receivers = opened(&reads("net_pcap_whole", &[&file]));
    assert_eq!(receivers.len(), 1);
    let receiver = &mut receivers[0];
    assert!(take(receiver, frames.len()) == frames);
    assert_eq!(receiver.received(), 20_000);
    assert_eq!(receiver.counters(), Counters::default());
    assert!(!receiver.wait(Duration::from_millis(1)), "the file is read to its end");
    assert_eq!(receiver.burst(64, |_| panic!("no more frames")), 0);
    assert_eq!((receiver.driver(), receiver.state()), ("net_pcap", State::Up));
}

#[test]
fn frames_longer_than_a_buffer_are_joined() {
    let folder = TempDir::new().unwrap();
    let frames: Vec<_> = [60, 2_048, 2_049, 9_018, 65_000, 61].map(|len| frame(len, len)).into();
    let file = capture(&folder, "long.pcap", &frames);
    let mut receivers = opened(&reads("net_pcap_long", &[&file]));
    assert!(take(&mut receivers[0], frames.len()) == frames);
}

#[test]
fn two_files_are_two_queues_for_two_threads() {
    let folder = TempDir::new().unwrap();
    let all = assorted(9_000);
    let (left, right) = all.split_at(4_000);
    let files = [capture(&folder, "l.pcap", left), capture(&folder, "r.pcap", right)];
    let device = reads("net_pcap_two", &[&files[0], &files[1]]);
    assert_eq!(queues(&device, &[]).unwrap(), Queues::Exactly(2));
    let mut receivers = opened(&device);
    assert_eq!(receivers.len(), 2);
    thread::scope(|scope| {
        for (receiver, frames) in receivers.iter_mut().zip([left, right]) {
            scope.spawn(move || assert!(take(receiver, frames.len()) == frames));
        }
    });
}

#[test]
fn a_shut_receiver_ends_while_frames_arrive() {
    let folder = TempDir::new().unwrap();
    let file = capture(&folder, "round.pcap", &assorted(100));
    let device = reads("net_pcap_round", &[&file]) + ",infinite_rx=1";
    let mut receivers = opened(&device);
    let receiver = &mut receivers[0];
    assert_eq!(receiver.burst(1_000, |_| ()), 1_000, "round and round");
    receiver.shut();
    let (_, room) = receiver.backlog();
    let mut rest = 0;
    while receiver.wait(Duration::from_millis(1)) {
        rest += receiver.burst(64, |_| ());
        assert!(rest <= room + 64, "{rest} frames of a ring of {room}");
    }
    assert_eq!(receiver.burst(64, |_| ()), 0);
    assert!(rest >= room);
}

#[test]
fn a_closed_device_can_be_opened_again() {
    let folder = TempDir::new().unwrap();
    let frames = assorted(200);
    let file = capture(&folder, "again.pcap", &frames);
    for _ in 0..5 {
        let mut receivers = opened(&reads("net_pcap_again", &[&file]));
        // Dropped with received frames that were not lent.
        assert_eq!(receivers[0].burst(10, |_| ()), 10);
    }
    let mut receivers = opened(&reads("net_pcap_again", &[&file]));
    assert!(take(&mut receivers[0], frames.len()) == frames);
}

#[test]
fn many_threads_start_and_end() {
    let folder = TempDir::new().unwrap();
    let file = capture(&folder, "threads.pcap", &assorted(100));
    let device = reads("net_pcap_threads", &[&file]) + ",infinite_rx=1";
    let mut receivers = opened(&device);
    // More than DPDK can register at a time.
    for _ in 0..300 {
        let receiver = &mut receivers[0];
        thread::scope(|scope| {
            scope.spawn(move || assert_eq!(receiver.burst(100, |_| ()), 100));
        });
    }
}

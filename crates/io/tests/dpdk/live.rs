//! Receiving with DPDK, with its driver over AF_PACKET at the right end of a veth pair.
//!
//! A separate program, because it needs the feature `dpdk`, and DPDK is started once in a process.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

#[allow(dead_code, reason = "made for the other tests")]
#[path = "../io/live/frames.rs"]
mod frames;

use std::time::Duration;

use ringtap_io::live::{
    Counters, Method, OpenError, Options, Path, Receiver, SendOptions, Sender, State, Wake, open,
    required_queues,
};

use frames::{assorted, udp, v4};
use ringtap_testkit::{Net, Right, account, send_all, take};

fn dpdk() -> Options {
    Options { method: Method::Dpdk, memory: 8 << 20, ..Options::default() }
}

/// Receivers at the right end; each test uses its own device name.
fn receivers(net: &Net, device: &str, arguments: &str) -> Vec<Receiver> {
    let device = format!("{device},iface=right,framecnt=4096{arguments}");
    net.inside(Right, || open(&device, &dpdk()).unwrap())
}

#[test]
fn frames_arrive_byte_for_byte_and_in_order() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = receivers(&net, "net_af_packet0", "");
    let description = receivers[0].describe();
    assert_eq!(description.path, Path::Dpdk { driver: "net_af_packet".into() });
    assert!(description.to_string().contains("DPDK, net_af_packet"), "{description}");
    assert_eq!(receivers[0].state(), State::Up);
    assert!(matches!(receivers[0].wait(Duration::from_millis(1)), Wake::Nothing(_)));
    let sent = assorted(2000);
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, sent.len());
    assert_eq!(came.len(), sent.len());
    for ((_, frame, original), sent) in came.iter().zip(&sent) {
        assert_eq!(frame, sent);
        assert_eq!(*original as usize, sent.len());
    }
    assert_eq!(receivers[0].counters(), Counters { received: 2000, ..Counters::default() });
    assert_eq!(receivers[0].missed(), Some(0));
}

#[test]
fn a_tag_that_the_kernel_removed_is_restored() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = receivers(&net, "net_af_packet1", "");
    let pair = v4([10, 0, 0, 1], [10, 0, 0, 2]);
    let sent =
        [udp(&[(0x8100, 42)], pair.clone(), 1, 2, vec![7; 60]), udp(&[], pair, 1, 2, vec![8; 60])];
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, 2);
    assert_eq!(came.len(), 2);
    for ((_, frame, original), sent) in came.iter().zip(&sent) {
        assert_eq!((frame, *original as usize), (sent, sent.len()));
    }
}

#[test]
fn two_queues_together_receive_all_frames() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = receivers(&net, "net_af_packet2", ",qpairs=2");
    assert_eq!(receivers.len(), 2);
    let frame = |host| udp(&[], v4([10, 0, 0, host], [10, 0, 1, 1]), 1, 2, vec![host; 40]);
    let sent: Vec<Vec<u8>> = (0..200).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, sent.len());
    let mut frames: Vec<&Vec<u8>> = came.iter().map(|(_, frame, _)| frame).collect();
    frames.sort();
    assert!(frames.iter().copied().eq(&sent));
    assert!(
        came.iter().any(|(queue, ..)| *queue == 0) && came.iter().any(|(queue, ..)| *queue == 1)
    );
    assert_eq!(account(&mut receivers, 200), (200, 0));
}

#[test]
fn longer_frames_are_truncated_at_the_snap_length() {
    let Some(net) = Net::new(1) else { return };
    let options = Options { snap: Some(100), ..dpdk() };
    let device = "net_af_packet3,iface=right";
    let mut receivers = net.inside(Right, || open(device, &options).unwrap());
    let sent =
        [60, 100, 900].map(|len| udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 1, 2, vec![7; len]));
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, 3);
    for ((_, frame, original), sent) in came.iter().zip(&sent) {
        assert_eq!(
            (frame.as_slice(), *original as usize),
            (&sent[..sent.len().min(100)], sent.len())
        );
    }
    assert_eq!(came.len(), 3);
}

#[test]
fn the_queues_of_a_device_are_known_before_it_is_opened() {
    let options = Options { method: Method::Dpdk, ..Options::default() };
    assert_eq!(required_queues("net_null_some", &options).unwrap(), None);
    assert_eq!(required_queues("net_ring_some", &options).unwrap(), Some(16));
}

#[test]
fn mistakes_are_errors() {
    let error = open("net_af_packet9,iface=nosuch", &dpdk()).err().unwrap();
    assert!(matches!(error, OpenError::Dpdk(_)), "{error}");
    let options = SendOptions { method: Method::Dpdk, ..SendOptions::default() };
    assert!(matches!(Sender::open("lo", &options), Err(OpenError::NotSent)));
}

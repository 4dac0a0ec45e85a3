//! Receiving and sending allocate nothing, once opened. One test, for allocations are counted over
//! the whole process.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is reported")]

use std::time::Duration;

use ringtap_io::live::{Method, Options, Receiver, SendOptions, Sender};

use ringtap_testkit::Net;

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

/// Sends `count` frames and receives what of them comes in time; returns how many.
fn pass(sender: &mut Sender, receiver: &mut Receiver, count: usize) -> usize {
    let frame = &[0x5a_u8; 100][..];
    let batch = [frame; 50];
    let (mut sent, mut came, mut idle) = (0, 0, 0);
    while came < count && idle < 1000 {
        if sent < count {
            sent += sender.send(&batch).unwrap();
        }
        receiver.wait(Duration::from_millis(10));
        let new = receiver.burst(64, |frame| assert_eq!(frame.data.len(), 100));
        idle = if new == 0 { idle + 1 } else { 0 };
        came += new;
    }
    came
}

#[test]
fn once_opened_nothing_is_allocated() {
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&Options { method, ..Options::default() });
        let mut sender = net.sender(&SendOptions { method, ..SendOptions::default() });
        assert_eq!(pass(&mut sender, &mut receivers[0], 500), 500);
        let before = ringtap_base::allocations();
        let came = pass(&mut sender, &mut receivers[0], 5000);
        let counters = receivers[0].counters();
        let state = receivers[0].state();
        let allocated = ringtap_base::allocations() - before;
        assert_eq!((came, counters.received), (5000, 5500), "{method:?}, {state:?}");
        assert!(before > 0);
        assert_eq!(allocated, 0, "{method:?}");
    }
}

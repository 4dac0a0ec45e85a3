//! Interfaces that go down, come up, and are deleted.

use std::time::Duration;

use ringtap_io::live::{
    Drain, LinkFollower, Method, Notice, Options, Receiver, SendOptions, State, Wake, open,
};

use super::frames::assorted;
use ringtap_testkit::{Net, Right, account, send_all, take};

const BOTH: [Method; 2] = [Method::Packet, Method::Xdp];

fn by(method: Method, queues: u16) -> Options {
    Options { method, queues: Some(queues), ..Options::default() }
}

/// Waits for the state, for a limited time; returns the result of the last wait.
fn wait_for(receiver: &mut Receiver, expected: State) -> Wake {
    let mut reported = Wake::Nothing(receiver.state());
    for _ in 0..1000 {
        if reported == Wake::Nothing(expected) {
            break;
        }
        reported = receiver.wait(Duration::from_millis(10));
    }
    reported
}

#[test]
fn receiving_continues_when_the_interface_is_up_again() {
    for (method, queues) in [(Method::Packet, 1), (Method::Packet, 2), (Method::Xdp, 1)] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&by(method, queues));
        send_all(&mut net.sender(&SendOptions::default()), &assorted(10));
        assert_eq!(take(&mut receivers, 10).len(), 10);
        assert_eq!((receivers[0].state(), receivers[0].missed()), (State::Up, Some(0)));
        net.ip(Right, "link set right down");
        assert_eq!(wait_for(&mut receivers[0], State::Down), Wake::Nothing(State::Down));
        net.ip(Right, "link set right up");
        assert_eq!(wait_for(&mut receivers[0], State::Up), Wake::Nothing(State::Up));
        send_all(&mut net.sender(&SendOptions::default()), &assorted(20));
        assert_eq!(account(&mut receivers, 30), (30, 0), "{method:?}, {queues} queues");
    }
}

#[test]
fn a_shut_receiver_returns_only_earlier_frames() {
    for (method, queues) in [(Method::Packet, 1), (Method::Packet, 2), (Method::Xdp, 1)] {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&by(method, queues));
        let mut sender = net.sender(&SendOptions::default());
        send_all(&mut sender, &assorted(100));
        // Only AF_PACKET has a frame as soon as it is sent.
        let taken = if method == Method::Xdp { take(&mut receivers, 100).len() } else { 0 };
        let mut drains: Vec<_> = receivers.iter_mut().map(Drain::begin).collect();
        let mut left = 0;
        for (drain, receiver) in drains.iter_mut().zip(&mut receivers) {
            loop {
                send_all(&mut sender, &assorted(10));
                drain.before_burst();
                let found = receiver.burst(7, |_| ());
                left += found;
                if drain.is_over(found, receiver) {
                    break;
                }
            }
        }
        assert_eq!(taken + left, 100, "{method:?}, {queues} queues");
    }
}

#[test]
fn a_deleted_interface_stays_gone_and_waiting_does_not_fail() {
    for method in BOTH {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&by(method, 1));
        send_all(&mut net.sender(&SendOptions::default()), &assorted(10));
        assert_eq!(receivers[0].wait(Duration::from_secs(10)), Wake::Frames);
        net.ip(Right, "link del right");
        // Earlier frames are not lost.
        assert_eq!(take(&mut receivers, 10).len(), 10, "{method:?}");
        assert_eq!(wait_for(&mut receivers[0], State::Gone), Wake::Nothing(State::Gone));
        assert_eq!(receivers[0].wait(Duration::from_millis(1)), Wake::Nothing(State::Gone));
        assert_eq!(receivers[0].burst(1, |_| panic!("a frame")), 0);
        assert_eq!(receivers[0].counters().received, 10);
        assert_eq!(receivers[0].missed(), None);
    }
}

#[test]
fn an_interface_may_be_down_when_it_is_opened() {
    for (method, queues) in [(Method::Packet, 1), (Method::Packet, 2), (Method::Xdp, 1)] {
        let Some(net) = Net::new(1) else { return };
        net.ip(Right, "link set right down");
        let mut receivers = match net.inside(Right, || open("right", &by(method, queues))) {
            Ok(receivers) => receivers,
            // Before Linux 6.13 sockets cannot form a group then.
            Err(error) => {
                assert!(queues == 2 && error.to_string().contains("is down"), "{error}");
                continue;
            }
        };
        assert_eq!(receivers[0].take_notices(), [Notice::Down { interface: "right".to_owned() }]);
        assert_eq!(receivers[0].wait(Duration::from_millis(1)), Wake::Nothing(State::Down));
        net.ip(Right, "link set right up");
        send_all(&mut net.sender(&SendOptions::default()), &assorted(20));
        assert_eq!(account(&mut receivers, 20), (20, 0), "{method:?}, {queues} queues");
    }
}

#[test]
fn a_link_without_carrier_is_reported() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    net.ip(ringtap_testkit::Left, "link set left down");
    assert_eq!(wait_for(&mut receivers[0], State::NoCarrier), Wake::Nothing(State::NoCarrier));
}

#[test]
fn changes_of_an_interface_are_followed_and_counted() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    let receiver = &mut receivers[0];
    let mut follower = net.inside(Right, move || {
        let mut follower = LinkFollower::new().unwrap();
        follower.add_receiver(3, receiver).unwrap();
        follower
    });
    let first = follower.turn().remove(0);
    assert_eq!((first.place, first.state, first.texts.len()), (3, State::Up, 0));
    // The kernel has reported a change when the command that makes it ends.
    for (change, state, counts) in [
        ("right down", State::Down, [1, 0, 0]),
        ("right mtu 3000", State::Down, [0, 1, 0]),
        ("right name other", State::Down, [0, 0, 1]),
    ] {
        net.ip(Right, &format!("link set {change}"));
        let change = follower.turn().remove(0);
        assert_eq!(change.state, state);
        assert_eq!([change.downs, change.mtu_changes, change.renames], counts, "{change:?}");
        assert_eq!(change.texts.len(), 1, "{change:?}");
    }
    net.ip(Right, "link del other");
    let gone = follower.turn().remove(0);
    assert_eq!((gone.state, gone.texts.len()), (State::Gone, 0));
    assert_eq!(follower.turn(), []);
}

#[test]
fn a_renamed_interface_is_still_received() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    net.ip(Right, "link set right down");
    net.ip(Right, "link set right name other");
    net.ip(Right, "link set other up");
    assert_eq!(wait_for(&mut receivers[0], State::Up), Wake::Nothing(State::Up));
    send_all(&mut net.sender(&SendOptions::default()), &assorted(5));
    assert_eq!(take(&mut receivers, 5).len(), 5);
}

//! Receiving by AF_XDP.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use ringtap_io::live::{
    Attach, LiveSender, Method, OpenError, Options, Path, Receiver, SendOptions, Wake, open,
};

use super::frames::{assorted, udp, v4};
use ringtap_testkit::{Killed, Left, Net, Right, account, send_all, soon, take};

fn xdp(attach: Attach) -> Options {
    Options { method: Method::Xdp, attach, memory: 16 << 20, ..Options::default() }
}

/// A sender on this queue.
fn by_queue(queue: u32) -> SendOptions {
    SendOptions { method: Method::Xdp, queue, ..SendOptions::default() }
}

#[test]
fn frames_arrive_byte_for_byte_and_in_order() {
    for (attach, expected) in
        [(Attach::Auto, true), (Attach::Native, true), (Attach::Generic, false)]
    {
        let Some(net) = Net::new(1) else { return };
        let mut receivers = net.receivers(&xdp(attach));
        let path = receivers[0].describe().path;
        assert!(matches!(path, Path::Xdp { native, .. } if native == expected), "{path:?}");
        let sent = assorted(2000);
        send_all(&mut net.sender(&SendOptions::default()), &sent);
        let came = take(&mut receivers, sent.len());
        assert_eq!(came.len(), sent.len());
        for ((_, frame, original), sent) in came.iter().zip(&sent) {
            assert_eq!(frame, sent);
            assert_eq!(*original as usize, sent.len());
        }
        assert_eq!(account(&mut receivers, 2000), (2000, 0));
    }
}

/// Native mode only: a veth does not report the queue of a frame to a generic program.
#[test]
fn every_queue_has_its_own_frames() {
    let Some(net) = Net::new(2) else { return };
    let mut receivers = net.receivers(&xdp(Attach::Native));
    assert_eq!(receivers.len(), 2);
    for (queue, count) in [(0, 700), (1, 1100)] {
        send_all(&mut net.sender(&by_queue(queue)), &assorted(count));
    }
    let came = take(&mut receivers, 1800);
    let by_queue = |which| came.iter().filter(|(queue, ..)| *queue == which).count();
    assert_eq!((by_queue(0), by_queue(1)), (700, 1100));
}

#[test]
fn missed_frames_are_counted_exactly() {
    for (attach, queues) in [(Attach::Native, 1), (Attach::Native, 2), (Attach::Generic, 1)] {
        let Some(net) = Net::new(queues) else { return };
        let options = Options { memory: 1 << 20, ..xdp(attach) };
        let mut receivers = net.receivers(&options);
        let mut accepted = 0;
        for queue in 0..queues {
            let mut sender = net.sender(&by_queue(queue));
            send_all(&mut sender, &assorted(3000));
            accepted += sender.counters().accepted;
        }
        let (received, dropped) = account(&mut receivers, accepted);
        assert_eq!(received + dropped, accepted, "{attach:?}, {queues} queues");
        assert!(received > 0 && dropped > 0, "{received} received, {dropped} dropped");
        let reasons = receivers.iter_mut().map(|one| one.counters().dropped);
        assert_eq!(reasons.map(|one| one.no_buffer).sum::<u64>(), dropped);
        // It continues afterwards.
        send_all(&mut net.sender(&by_queue(0)), &assorted(100));
        assert_eq!(account(&mut receivers, accepted + 100), (received + 100, dropped));
    }
}

#[test]
fn a_flood_is_accounted_for_to_the_last_frame() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&xdp(Attach::Native));
    let before = net.arrived();
    let template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 1, 2, vec![0; 18]);
    let made = net.inside(Left, || {
        let mut sender = LiveSender::open("left", &template, 256).unwrap();
        sender.send(300_000).unwrap()
    });
    assert_eq!(made, 300_000);
    let (received, dropped) = account(&mut receivers, made);
    assert_eq!(received + dropped, made);
    assert!(received > 0);
    assert_eq!(net.arrived() - before, made);
}

#[test]
fn long_frames_take_larger_buffers() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Left, "link set left mtu 3000");
    net.ip(Right, "link set right mtu 3000");
    let mut receivers = net.receivers(&xdp(Attach::Native));
    let sent = [udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 1, 2, vec![7; 2900])];
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, 1);
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].1, sent[0]);
}

#[test]
fn frames_longer_than_a_buffer_are_reported_and_counted() {
    let Some(net) = Net::new(1) else { return };
    net.ip(Left, "link set left mtu 6000");
    net.ip(Right, "link set right mtu 6000");
    let mut receivers = net.receivers(&xdp(Attach::Generic));
    let notices = receivers[0].take_notices();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].to_string().contains("longer than 3840"), "{}", notices[0]);
    let pair = v4([10, 0, 0, 1], [10, 0, 0, 2]);
    let sent = [5000, 100].map(|len| udp(&[], pair.clone(), 1, 2, vec![7; len]));
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, 1);
    assert_eq!(came.len(), 1);
    assert_eq!(came[0].1, sent[1]);
    assert_eq!(receivers[0].counters().dropped.too_long, 1);
}

#[test]
fn with_busy_polling_frames_arrive_too() {
    let Some(net) = Net::new(1) else { return };
    let options = Options { busy_poll: Some(Duration::from_micros(20)), ..xdp(Attach::Native) };
    let mut receivers = net.receivers(&options);
    send_all(&mut net.sender(&SendOptions::default()), &assorted(500));
    assert_eq!(take(&mut receivers, 500).len(), 500);
    assert_eq!(receivers[0].take_notices(), []);
}

#[test]
fn dropping_the_last_receiver_detaches_the_program() {
    let Some(net) = Net::new(2) else { return };
    assert!(!net.has_program());
    let mut receivers = net.receivers(&xdp(Attach::Native));
    assert!(net.has_program());
    receivers.pop();
    assert!(net.has_program());
    // The other receiver continues.
    send_all(&mut net.sender(&by_queue(0)), &assorted(10));
    assert_eq!(take(&mut receivers, 10).len(), 10);
    drop(receivers);
    // A process that another test starts holds the link until it executes its program.
    assert!(soon(|| !net.has_program()));
}

#[test]
fn the_program_of_another_process_stays_attached() {
    let Some(net) = Net::new(1) else { return };
    let mut first = net.receivers(&xdp(Attach::Native));
    for attach in [Attach::Auto, Attach::Native, Attach::Generic] {
        let error = net.inside(Right, || open("right", &xdp(attach)).err().unwrap());
        assert!(matches!(error, OpenError::ProgramInPlace { id: Some(_), .. }), "{error}");
    }
    send_all(&mut net.sender(&SendOptions::default()), &assorted(10));
    assert_eq!(take(&mut first, 10).len(), 10);
}

#[test]
fn queues_are_those_of_the_interface() {
    let Some(net) = Net::new(2) else { return };
    for (asked, good) in [(1, false), (2, true), (3, false)] {
        let options = Options { queues: Some(asked), ..xdp(Attach::Auto) };
        match net.inside(Right, || open("right", &options)) {
            Ok(receivers) => assert!(good && receivers.len() == 2),
            Err(error) => {
                assert!(!good);
                let right = matches!(error, OpenError::Queues { available: 2, .. });
                assert!(right, "{error}");
            }
        }
    }
}

/// Receives until it is killed, in a process started by the test below.
fn receive_until_killed(name: &str) {
    let mut receivers = open(name, &xdp(Attach::Native)).unwrap();
    println!("receiving");
    // It ends by itself if it is not killed.
    for _ in 0..60 {
        receivers[0].wait(Duration::from_secs(1));
        receivers[0].burst(64, |_| ());
    }
}

#[test]
fn after_a_killed_process_the_interface_is_as_before() {
    const CHILD: &str = "RINGTAP_LIVE_RECEIVE";
    if let Ok(name) = std::env::var(CHILD) {
        return receive_until_killed(&name);
    }
    let Some(net) = Net::new(1) else { return };
    let child = Command::new("ip")
        .args(["netns", "exec", net.name(Right)])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "live::xdp::after_a_killed_process_the_interface_is_as_before",
            "--nocapture",
        ])
        .env(CHILD, "right")
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Killed(child.unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("receiving")));
    assert!(net.has_program());
    drop(child);
    let mut receivers = open_again(&net);
    send_all(&mut net.sender(&SendOptions::default()), &assorted(10));
    assert_eq!(take(&mut receivers, 10).len(), 10);
}

/// The kernel may need some time to clean up after a killed process.
fn open_again(net: &Net) -> Vec<Receiver> {
    for _ in 0..500 {
        match net.inside(Right, || open("right", &xdp(Attach::Native))) {
            Ok(receivers) => return receivers,
            Err(OpenError::ProgramInPlace { .. } | OpenError::QueueTaken { .. }) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the killed process's program stays");
}

#[test]
fn waiting_ends_with_frames_or_with_nothing() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&xdp(Attach::Native));
    assert!(matches!(receivers[0].wait(Duration::from_millis(1)), Wake::Nothing(_)));
    send_all(&mut net.sender(&SendOptions::default()), &assorted(1));
    assert_eq!(receivers[0].wait(Duration::from_secs(10)), Wake::Frames);
}

//! Receiving by AF_PACKET.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use ringtap_io::live::{
    Counters, LiveSender, Lost, Notice, Options, Path, Receiver, SendOptions, Sender, open,
};
use ringtap_wire::LinkType;

use super::frames::{Pair, arp, assorted, fragment, udp, v4};
use ringtap_testkit::{Killed, Left, Net, Right, account, send_all, take};

fn two_queues() -> Options {
    Options { queues: Some(2), ..Options::default() }
}

#[test]
fn frames_arrive_byte_for_byte_and_in_order() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    let sent = assorted(2000);
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, sent.len());
    assert_eq!(came.len(), sent.len());
    for ((_, frame, original), sent) in came.iter().zip(&sent) {
        assert_eq!(frame, sent);
        assert_eq!(*original as usize, sent.len());
    }
    let counters = receivers[0].counters();
    assert_eq!(counters, Counters { received: 2000, ..Counters::default() });
}

#[test]
fn times_and_link_type_are_set() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    send_all(&mut net.sender(&SendOptions::default()), &assorted(50));
    let mut times = Vec::new();
    while times.len() < 50 {
        receivers[0].wait(std::time::Duration::from_secs(3));
        let count = receivers[0].burst(64, |frame| {
            assert_eq!(frame.link, LinkType::ETHERNET);
            times.push(frame.ts_ns);
        });
        assert!(count > 0, "frames are missing");
    }
    // After 2020, and increasing.
    assert!(times[0] > 1_577_836_800_000_000_000);
    assert!(times.is_sorted());
}

#[test]
fn without_hardware_timestamps_the_kernel_stamps_with_a_notice() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options { hardware_time: true, ..Options::default() });
    let notices = receivers[0].take_notices();
    assert!(matches!(&notices[..], [Notice::SoftwareTime { .. }]), "{notices:?}");
    assert_eq!(receivers[0].describe().path, Path::Packet { hardware_time: false });
    send_all(&mut net.sender(&SendOptions::default()), &assorted(3));
    assert_eq!(take(&mut receivers, 3).len(), 3);
}

#[test]
fn long_frames_are_truncated_at_the_snap_length() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options { snap: Some(64), ..Options::default() });
    let pair = v4([10, 0, 0, 1], [10, 0, 0, 2]);
    let long = udp(&[], pair.clone(), 1, 2, vec![5; 500]);
    let tagged = udp(&[(0x8100, 9)], pair.clone(), 1, 2, vec![5; 500]);
    let short = udp(&[], pair, 1, 2, vec![5; 18]);
    let sent = [long, tagged, short];
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, 3);
    assert_eq!(came.len(), 3);
    for ((_, frame, original), sent) in came.iter().zip(&sent) {
        assert_eq!(frame[..], sent[..sent.len().min(64)]);
        assert_eq!(*original as usize, sent.len());
    }
}

#[test]
fn tags_that_the_kernel_removes_are_restored() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    let pair = v4([10, 0, 0, 1], [10, 0, 0, 2]);
    let stacks: [&[(u16, u16)]; 5] = [
        &[(0x8100, 100)],
        &[(0x88a8, 0xe123)],
        &[(0x88a8, 7), (0x8100, 8)],
        &[(0x8100, 7), (0x8100, 8), (0x8100, 9)],
        &[],
    ];
    let sent: Vec<Vec<u8>> =
        stacks.iter().map(|tags| udp(tags, pair.clone(), 1, 2, vec![1; 60])).collect();
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, sent.len());
    assert_eq!(came.len(), sent.len());
    for ((_, frame, original), sent) in came.iter().zip(&sent) {
        assert_eq!(frame, sent);
        assert_eq!(*original as usize, sent.len());
    }
}

/// Address pairs of both IP versions.
fn pairs() -> Vec<Pair> {
    let v4 = (0..32_u8).map(|host| Pair::V4([10, 0, 0, host], [172, 16, host, 9]));
    let v6 = (0..32_u8).map(|host| {
        let (mut from, mut to) = ([0x20; 16], [0xfd; 16]);
        (from[15], to[7]) = (host, host);
        Pair::V6(from, to)
    });
    v4.chain(v6).collect()
}

const STACKS: [&[(u16, u16)]; 4] =
    [&[], &[(0x8100, 5)], &[(0x88a8, 5), (0x8100, 6)], &[(0x8100, 5), (0x8100, 6), (0x8100, 7)]];

/// Packets between two hosts: datagrams and fragments in both directions. Their last byte is the number of the pair.
fn talk(tags: &[(u16, u16)], pair: &Pair, number: u8) -> Vec<Vec<u8>> {
    let back = pair.reversed();
    vec![
        udp(tags, pair.clone(), 1000, 53, vec![number; 40]),
        udp(tags, back.clone(), 53, 1000, vec![number; 40]),
        fragment(tags, pair.clone(), 0, vec![number; 64]),
        fragment(tags, pair.clone(), 1480, vec![number; 64]),
        fragment(tags, back, 2960, vec![number; 64]),
    ]
}

/// All frames of a number arrived in one queue: the queue, by number.
fn queues_by_number(came: &[(usize, Vec<u8>, u32)]) -> HashMap<u8, usize> {
    let mut queues = HashMap::new();
    for (queue, frame, _) in came {
        let number = frame[frame.len() - 1];
        let first = *queues.entry(number).or_insert(*queue);
        assert_eq!(first, *queue, "pair {number}");
    }
    queues
}

/// All frames of a number arrived in one queue, and each of two queues has some of the numbers.
fn assert_distributed(came: &[(usize, Vec<u8>, u32)]) {
    let queues = queues_by_number(came);
    let to_first = queues.values().filter(|&&queue| queue == 0).count();
    assert!(to_first > 8 && to_first < queues.len() - 8, "{to_first} of {}", queues.len());
}

#[test]
fn all_packets_of_two_hosts_arrive_in_one_queue() {
    let Some(net) = Net::new(1) else { return };
    for tags in STACKS {
        let mut receivers = net.receivers(&two_queues());
        let sent: Vec<Vec<u8>> =
            pairs().iter().zip(0..).flat_map(|(pair, number)| talk(tags, pair, number)).collect();
        send_all(&mut net.sender(&SendOptions::default()), &sent);
        let came = take(&mut receivers, sent.len());
        assert_eq!(came.len(), sent.len(), "{tags:?}");
        assert_distributed(&came);
    }
}

/// The program sees a sent frame at another offset than a received one.
#[test]
fn sent_and_received_packets_of_a_pair_share_a_queue() {
    let Some(net) = Net::new(1) else { return };
    let slow = SendOptions { bypass: false, ..SendOptions::default() };
    for tags in STACKS {
        let mut receivers = net.receivers(&two_queues());
        let talks: Vec<Vec<u8>> =
            pairs().iter().zip(0..).flat_map(|(pair, number)| talk(tags, pair, number)).collect();
        send_all(&mut net.sender(&SendOptions::default()), &talks);
        send_all(&mut net.inside(Right, || Sender::open("right", &slow).unwrap()), &talks);
        let came = take(&mut receivers, 2 * talks.len());
        assert_eq!(came.len(), 2 * talks.len(), "{tags:?}");
        assert_distributed(&came);
    }
}

#[test]
fn frames_without_ip_arrive_in_the_first_queue() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options { queues: Some(3), seed: 77, ..Options::default() });
    let sent = vec![arp(); 20];
    send_all(&mut net.sender(&SendOptions::default()), &sent);
    let came = take(&mut receivers, 20);
    assert_eq!(came.len(), 20);
    assert!(came.iter().all(|(queue, frame, _)| *queue == 0 && *frame == sent[0]));
}

/// While the sockets of a group are opened one by one, none of them may receive frames.
#[test]
fn opened_during_traffic_no_frame_is_seen_twice_or_in_another_queue() {
    let Some(net) = Net::new(1) else { return };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = net.sender(&SendOptions::default());
            let mut serial = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                let burst: Vec<Vec<u8>> = (0..32_u8)
                    .map(|host| {
                        serial += 1;
                        let mut payload = serial.to_be_bytes().to_vec();
                        payload.extend([host; 20]);
                        let pair = v4([10, 0, 0, host], [172, 16, host, 9]);
                        udp(&[], pair, 1000, 53, payload)
                    })
                    .collect();
                send_all(&mut sender, &burst);
            }
        });
        let stopped = Stop(&stop);
        for _ in 0..10 {
            let options = Options { queues: Some(4), ..Options::default() };
            let mut receivers = net.receivers(&options);
            let came = take(&mut receivers, 500);
            let mut seen = HashSet::new();
            for (queue, frame, _) in &came {
                assert!(seen.insert(&frame[42..46]), "again, in queue {queue}: {frame:?}");
            }
            assert!(came.len() >= 500, "only {}", came.len());
            queues_by_number(&came);
        }
        drop(stopped);
    });
}

/// Stops a thread also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn two_queues_account_for_every_frame() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&two_queues());
    let mut sender = net.sender(&SendOptions::default());
    send_all(&mut sender, &assorted(20_000));
    let accepted = sender.counters().accepted;
    assert_eq!(accepted, 20_000);
    assert_eq!(account(&mut receivers, accepted), (20_000, 0));
}

/// The kernel hands a block over after 10 ms, full or not: each of these frames takes one. On any machine there are at
/// most as many blocks as frames.
#[test]
fn a_reader_that_pauses_for_seconds_misses_nothing_at_low_rates() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options { memory: 32 << 20, ..Options::default() });
    let mut sender = net.sender(&SendOptions::default());
    for _ in 0..200 {
        send_all(&mut sender, &assorted(1));
        std::thread::sleep(std::time::Duration::from_millis(16));
    }
    assert!(receivers[0].backlog() >= 2, "several blocks wait");
    assert_eq!(account(&mut receivers, 200), (200, 0));
    assert_eq!(receivers[0].backlog(), 0);
}

/// Frames that the interface lost before the receiver could see them.
fn unseen(receiver: &mut Receiver) -> u64 {
    let lost = receiver.lost().unwrap();
    lost.missed + lost.rx_dropped.saturating_sub(receiver.counted_twice())
}

/// The kernel searches for a protocol again behind a removed tag. If it finds none, it counts the frame as dropped by
/// the interface, although receivers have seen it.
#[test]
fn tagged_frames_without_a_handler_are_received_and_not_lost() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.receivers(&Options::default());
    let mut frame = assorted(1).remove(0);
    frame.truncate(12);
    frame.extend([0x81, 0, 0, 5, 0x88, 0xb5]);
    frame.resize(60, 0);
    send_all(&mut net.sender(&SendOptions::default()), &vec![frame; 100]);
    assert_eq!(take(&mut receivers, 100).len(), 100);
    assert_eq!(receivers[0].lost(), Some(Lost { missed: 0, rx_dropped: 100 }));
    assert_eq!((receivers[0].counted_twice(), unseen(&mut receivers[0])), (100, 0));
}

/// With `gro on` a veth has a ring of 256 frames, which overflows if one processor sends while another receives. These
/// frames are only in the counter `rx_dropped`, not in those of a receiver.
#[test]
fn frames_that_overflow_a_veth_are_counted() {
    const GRO_ON: &str = "import array, fcntl, socket, struct
v = array.array('B', struct.pack('II', 0x2c, 1))
fcntl.ioctl(socket.socket(), 0x8946, struct.pack('16sP8x', b'right', v.buffer_info()[0]))";
    let Some(net) = Net::new(1) else { return };
    let python = || Command::new("python3").args(["-c", GRO_ON]).status();
    if !net.inside(Right, python).is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: no python3 here to set gro on (Debian package python3)");
    }
    let mut receivers = net.receivers(&Options { memory: 1 << 20, ..Options::default() });
    let template = udp(&[], v4([10, 0, 0, 1], [10, 0, 0, 2]), 1, 2, vec![7; 18]);
    let mut senders: Vec<LiveSender> = net.inside(Left, || {
        (0..3).map(|_| LiveSender::open("left", &template, 16).unwrap()).collect()
    });
    let mut sent = 0;
    for _ in 0..50 {
        let each = |one: &mut LiveSender| one.send(20_000).unwrap();
        sent += net.inside(Left, || {
            std::thread::scope(|scope| {
                let all: Vec<_> =
                    senders.iter_mut().map(|one| scope.spawn(move || each(one))).collect();
                all.into_iter().map(|one| one.join().unwrap()).sum::<u64>()
            })
        });
        if unseen(&mut receivers[0]) > 0 {
            break;
        }
    }
    let (received, dropped) = account(&mut receivers, u64::MAX);
    let unseen = unseen(&mut receivers[0]);
    assert_eq!(received + dropped + unseen, sent, "{received}, {dropped}, {unseen}");
    if unseen == 0 {
        eprintln!("SKIPPED: the ring never overflowed on this machine");
    }
}

#[test]
fn missed_frames_are_counted_exactly() {
    let Some(net) = Net::new(1) else { return };
    for queues in [1, 2] {
        let memory = (256 << 10) * usize::from(queues);
        let options = Options { memory, queues: Some(queues), ..Options::default() };
        let mut receivers = net.receivers(&options);
        let mut sender = net.sender(&SendOptions::default());
        send_all(&mut sender, &assorted(10_000));
        let accepted = sender.counters().accepted;
        let (received, dropped) = account(&mut receivers, accepted);
        assert_eq!(received + dropped, accepted);
        assert!(received > 0 && dropped > 0, "{received} received, {dropped} dropped");
        assert!(receivers.iter_mut().any(|one| one.counters().freezes > 0));
        // It continues afterwards.
        send_all(&mut sender, &assorted(100));
        let (again, _) = account(&mut receivers, accepted + 100);
        assert_eq!(again, received + 100);
    }
}

#[test]
fn sent_frames_are_received_unless_disabled() {
    let Some(net) = Net::new(1) else { return };
    let slow = SendOptions { bypass: false, ..SendOptions::default() };
    for queues in [1, 2] {
        let both = Options { queues: Some(queues), ..Options::default() };
        let only_received = Options { outgoing: false, ..both.clone() };
        let mut seeing = net.receivers(&both);
        let mut ignoring = net.receivers(&only_received);
        send_all(&mut net.inside(Right, || Sender::open("right", &slow).unwrap()), &assorted(30));
        send_all(&mut net.sender(&SendOptions::default()), &assorted(5));
        assert_eq!(account(&mut seeing, 35), (35, 0));
        assert_eq!(account(&mut ignoring, 5), (5, 0));
    }
}

#[test]
fn on_the_loopback_interface_no_frame_is_seen_twice() {
    let Some(net) = Net::new(1) else { return };
    let mut receivers = net.inside(Left, || open("lo", &Options::default()).unwrap());
    let slow = SendOptions { bypass: false, ..SendOptions::default() };
    let sent = assorted(200);
    send_all(&mut net.inside(Left, || Sender::open("lo", &slow).unwrap()), &sent);
    let came = take(&mut receivers, 201);
    assert_eq!(came.len(), 200);
    assert!(came.iter().zip(&sent).all(|((_, frame, _), sent)| frame == sent));
}

/// A tunnel interface without link headers; a Python process holds its other end.
#[test]
fn without_link_headers_frames_begin_with_ip() {
    const FAR_END: &str = "
import fcntl, os, struct, sys
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH', b'tunnel', 0x1001))
print('open', flush=True)
for line in sys.stdin:
    os.write(tun, bytes.fromhex(line.strip()))
";
    let Some(net) = Net::new(1) else { return };
    let far = Command::new("ip")
        .args(["netns", "exec", net.name(Right), "python3", "-c", FAR_END])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut far = Killed(far.unwrap());
    let mut reported = String::new();
    BufReader::new(far.0.stdout.take().unwrap()).read_line(&mut reported).unwrap();
    if reported != "open\n" {
        eprintln!("SKIPPED: no python3 here, or no /dev/net/tun");
        return;
    }
    net.ip(Right, "link set tunnel up");
    let mut receivers = net.inside(Right, || open("tunnel", &two_queues()).unwrap());
    let talks: Vec<Vec<u8>> =
        pairs().iter().zip(0..).flat_map(|(pair, number)| talk(&[], pair, number)).collect();
    let mut input = far.0.stdin.take().unwrap();
    for frame in &talks {
        let hex: String = frame[14..].iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(input, "{hex}").unwrap();
    }
    let came = take(&mut receivers, talks.len());
    assert_eq!(came.len(), talks.len());
    assert!(receivers.iter().all(|one| one.link() == LinkType::RAW));
    assert_distributed(&came);
    let mut packets: Vec<&[u8]> = came.iter().map(|(_, frame, _)| &frame[..]).collect();
    let mut written: Vec<&[u8]> = talks.iter().map(|frame| &frame[14..]).collect();
    packets.sort_unstable();
    written.sort_unstable();
    assert_eq!(packets, written);
    drop(input);
}

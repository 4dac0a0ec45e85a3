//! Marks; and several queues give together what one gives.

use std::io::Read;

use ringtap_io::capture::PcapWriter;
use ringtap_skeleton::Skeleton;
use ringtap_stage::{Burst, Mark};
use ringtap_wire::LinkType;

use super::*;
use crate::application::tests::Toy;
use crate::{Machine, Options};

const TICK: u64 = 1_000_000_000;

fn plan(queues: usize) -> Plan<Toy> {
    let skeleton = Some(if queues == 1 { Skeleton::Farm } else { Skeleton::MultiQueue });
    let options = Options { skeleton, queues: Some(queues), seed: 7, ..Options::default() };
    let machine = Machine { cores: 1, allowed_cores: vec![0], memory_bytes: 1 << 30 };
    Plan::new(options, Toy { tick_ns: TICK }, &machine).unwrap()
}

fn feeds<'a>(queues: usize, files: Files, watch: &'a Watch) -> Vec<PacketFeed<'a>> {
    PacketFeed::all(&plan(queues), &Arc::default(), files, watch)
}

fn files(bytes: Vec<u8>) -> Files {
    Files::from_reader("test", std::io::Cursor::new(bytes))
}

fn file<'a>(frames: impl IntoIterator<Item = (u64, &'a [u8])>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType(1), 2_000);
    for (time, frame) in frames {
        writer.write(time, frame.len() as u32, frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    bytes
}

/// The output of a single queue, read with bursts of `burst`: times in tenths of a second, marks
/// negative.
fn sequence(times: &[u64], burst: usize) -> Vec<i64> {
    let nothing: &[u8] = &[0; 60];
    let bytes = file(times.iter().map(|time| (time * TICK / 100, nothing)));
    let watch = Watch::new();
    let mut feeds = feeds(1, files(bytes), &watch);
    let [feed] = feeds.as_mut_slice() else { panic!("one queue") };
    let hundredths = |ns: u64| (ns / (TICK / 100)) as i64;
    let mut out = Vec::new();
    loop {
        let mut items = Burst::with_capacity(burst);
        match feed.next(&mut items) {
            Fed::Items => out.extend(items.iter().map(|p| hundredths(p.ts_ns))),
            Fed::Mark(Mark::Tick { time_ns, .. }) => out.push(-hundredths(time_ns)),
            Fed::Mark(Mark::End { time_ns }) => {
                out.push(-1_000_000 - hundredths(time_ns));
                assert_eq!(feed.counts().packets, times.len() as u64);
                return out;
            }
            Fed::Moved | Fed::Idle => panic!("a single queue never waits for another"),
        }
    }
}

#[test]
fn marks_stand_where_packet_time_says_whatever_the_burst() {
    let times = [510, 520, 599, 600, 580, 610, 1_050, 700, 1_100, 1_100];
    let expected =
        [510, 520, 599, -600, 600, 580, 610, -1_000, 1_050, 700, -1_100, 1_100, 1_100, -1_001_100];
    for burst in 1..12 {
        assert_eq!(sequence(&times, burst), expected, "bursts of {burst}");
    }
}

/// A pcapng file counts seconds in 64 bits, and nanoseconds since 1970 end before that.
#[test]
fn the_latest_time_there_can_be_is_reached_and_passed() {
    let block = |kind: u32, body: &[u32]| {
        let len = 12 + 4 * body.len() as u32;
        let words: Vec<u32> = [kind, len].iter().chain(body).chain(&[len]).copied().collect();
        words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
    };
    let mut bytes = block(0x0a0d_0d0a, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
    // Ethernet; option 9: whole seconds.
    bytes.extend(block(1, &[1, 0, 9 | 1 << 16, 0, 0]));
    for high in [0, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1] {
        bytes.extend(block(6, &[0, high, 7, 4, 4, 0]));
    }
    for queues in [1, 2] {
        let watch = Watch::new();
        let mut feeds = feeds(queues, files(bytes.clone()), &watch);
        let (mut times, mut marks) = (Vec::new(), 0);
        while marks < 10 {
            let mut items = Burst::with_capacity(2);
            // Packets without IP belong to the first queue.
            match feeds[0].next(&mut items) {
                Fed::Mark(Mark::End { time_ns: u64::MAX }) => break,
                Fed::Mark(_) => marks += 1,
                _ => times.extend(items.iter().map(|packet| packet.ts_ns)),
            }
        }
        let (most, late) = (u64::MAX, 4_294_967_303_000_000_000);
        assert_eq!((times, marks), (vec![7_000_000_000, most, most, most, most, late], 1));
    }
}

#[test]
fn one_packet_far_ahead_stops_no_marks() {
    let year = 365 * 86_400 * 100;
    let times = [510, 560, 570 + year, 580, 610, 710];
    let expected = [510, 560, 570 + year as i64, 580, -600, 610, -700, 710, -1_000_710];
    for burst in 1..8 {
        assert_eq!(sequence(&times, burst), expected, "bursts of {burst}");
    }
    // Several in a row, as after a gap, are accepted; at the end, fewer are.
    let times = [510, 90_010, 90_020, 90_130, 90_140, 90_250, 190_000];
    let expected =
        [510, 90_010, 90_020, 90_130, -90_000, 90_140, -90_200, 90_250, 190_000, -1_190_000];
    assert_eq!(sequence(&times, 8), expected);
}

#[test]
fn where_time_is_set_back_marks_go_on_from_there() {
    let hour = 3_600 * 100;
    let times: Vec<u64> =
        (0..40).map(|n| hour + 10_050 + n * 10).chain((0..60).map(|n| 10_050 + n * 10)).collect();
    let out = sequence(&times, 7);
    let marks: Vec<i64> = out.iter().copied().filter(|&out| out < 0).collect();
    let hour = hour as i64;
    let expected = [
        -(hour + 10_100),
        -(hour + 10_200),
        -(hour + 10_300),
        -(hour + 10_400),
        // The time before, and the time after.
        -(hour + 10_440),
        -10_300,
        -10_400,
        -10_500,
        -10_600,
        -1_010_640,
    ];
    assert_eq!(marks, expected);
    // All packets up to the 32nd of the new time precede the step.
    let at = out.iter().position(|&out| out == -10_300).unwrap();
    assert_eq!(out[..at].iter().filter(|&&out| out > 0).count(), 40 + 31);
}

#[test]
fn an_empty_file_ends_at_once() {
    assert_eq!(sequence(&[], 8), [-1_000_000]);
}

/// Address pairs with some fragments, tunnel ports, packets without IP and truncated frames.
fn mixed(number: u64, pairs: u64) -> Vec<u8> {
    let pair = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % pairs;
    let [.., a, b] = pair.to_be_bytes();
    let place: u8 = if number.is_multiple_of(11) { 0x20 } else { 0 };
    let port: u16 = if number.is_multiple_of(7) { 4789 } else { 53 };
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 48, a, number as u8, place, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, a, b, 10, 1, 0, 0, 0x12, 0x34]);
    frame.extend(port.to_be_bytes());
    frame.extend([0; 24]);
    match number % 13 {
        0 => frame[12] = 0x86,
        1 => frame.truncate((number % 50) as usize),
        2 => frame[13] = 6,
        _ => {}
    }
    frame
}

/// An output of a queue: the time of a packet, or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Out {
    Packet(u32, u64),
    Mark(Mark),
}

fn out_of(fed: Fed, burst: &[PacketRecord], out: &mut Vec<Out>) {
    out.extend(burst.iter().map(|packet| Out::Packet(packet.pair_hash, packet.ts_ns)));
    if let Fed::Mark(mark) = fed {
        out.push(Out::Mark(mark));
    }
}

fn ended(out: &[Out]) -> bool {
    matches!(out.last(), Some(Out::Mark(Mark::End { .. })))
}

/// The outputs of all queues when they run in the order of `turn`, and their counters.
fn all(
    bytes: &[u8],
    queues: usize,
    mut turn: impl FnMut(&[Vec<Out>]) -> usize,
) -> (Vec<Vec<Out>>, Closed) {
    let watch = Watch::new();
    let mut feeds = feeds(queues, files(bytes.to_vec()), &watch);
    let mut out = vec![Vec::new(); queues];
    let mut idle = 0;
    while !out.iter().all(|out| ended(out)) {
        let queue = turn(&out);
        if ended(&out[queue]) {
            continue;
        }
        let mut burst = Burst::with_capacity(256);
        let fed = feeds[queue].next(&mut burst);
        idle = if fed == Fed::Idle { idle + 1 } else { 0 };
        assert!(idle < 10_000, "queues wait for each other");
        out_of(fed, &burst, &mut out[queue]);
    }
    (out, PacketFeed::close(feeds))
}

#[test]
fn queues_see_together_what_one_sees_and_marks_at_the_same_places() {
    let frames: Vec<_> = (0..40_000).map(|number| mixed(number, 300)).collect();
    let bytes = file(frames.iter().zip(0..).map(|(f, n)| (n * TICK / 3_000, f.as_slice())));
    let (one, counts) = all(&bytes, 1, |_| 0);
    assert_eq!(counts.counts.packets, 40_000);
    assert!(one[0].len() > 40_010 && counts.counts.non_ip.len() > 2);
    for queues in [2, 3, 7, 64] {
        let mut dice = 5_u64;
        let (several, closed) = all(&bytes, queues, |_| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) as usize % queues
        });
        let shards = plan(queues).shards();
        for (queue, out) in several.iter().enumerate() {
            let own = |out: &&Out| match out {
                Out::Packet(pair, _) => shards.queue(*pair) == queue,
                Out::Mark(_) => true,
            };
            let expected: Vec<_> = one[0].iter().filter(own).cloned().collect();
            assert!(*out == expected, "queue {queue} of {queues}");
        }
        assert_eq!(format!("{:?}", closed.counts), format!("{:?}", counts.counts));
        assert_eq!((closed.packets, closed.damaged), (counts.packets, counts.damaged));
    }
}

/// All packets belong to one queue: the others read for it, but only as far as free chunks allow.
#[test]
fn a_queue_that_gets_nothing_reads_no_further_than_the_other_can_hold() {
    let frames: Vec<_> =
        (0..300_000).map(|n| (n * TICK / 30_000, mixed(n * 1_001 + 3, 1))).collect();
    let bytes = file(frames.iter().filter(|(n, _)| n % 3 == 0).map(|(t, f)| (*t, f.as_slice())));
    let (one, _) = all(&bytes, 1, |_| 0);
    let Some(Out::Packet(pair, _)) = one[0].iter().find(|o| matches!(o, Out::Packet(1.., _)))
    else {
        panic!("no packet")
    };
    let busy = plan(2).shards().queue(*pair);
    let watch = Watch::new();
    let mut feeds = feeds(2, files(bytes.clone()), &watch);
    let mut burst = Burst::with_capacity(256);
    let mut marks = 0;
    let read = loop {
        match feeds[1 - busy].next(&mut burst) {
            Fed::Idle => break watch.packets.get(),
            Fed::Mark(_) => marks += 1,
            Fed::Items | Fed::Moved => burst.clear(),
        }
        assert!(marks < 1_000);
    };
    assert!((10_000..50_000).contains(&read), "{read} packets read ahead");
    // The run ends for any schedule of the queues.
    for turns in [1, 1_000] {
        let mut count = 0;
        let (both, _) = all(&bytes, 2, |out| {
            count += 1;
            if count / turns % 2 == 0 && !ended(&out[1 - busy]) { 1 - busy } else { busy }
        });
        let packets = |out: &[Out]| out.iter().filter(|o| matches!(o, Out::Packet(..))).count();
        assert_eq!(packets(&both[0]) + packets(&both[1]), packets(&one[0]));
    }
}

/// A pipe that returns one packet at a time and counts them.
struct Pipe {
    bytes: Vec<u8>,
    at: usize,
    given: Arc<std::sync::atomic::AtomicUsize>,
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let record = if self.at == 0 { 24 } else { 16 + mixed(0, 1).len() };
        let len = record.min(self.bytes.len() - self.at).min(out.len());
        out[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
        self.at += len;
        self.given.fetch_add(1, Ordering::Relaxed);
        Ok(len)
    }
}

#[test]
fn a_queue_is_a_few_marks_ahead_of_the_slowest_one_at_most() {
    let nothing: &[u8] = &[0; 60];
    let bytes = file((1..500).map(|second| (second * TICK, nothing)));
    let watch = Watch::new();
    let mut feeds = feeds(2, files(bytes), &watch);
    let mut passed = |queue: usize| {
        let mut marks = 0;
        loop {
            match feeds[queue].next(&mut Burst::with_capacity(8)) {
                Fed::Mark(_) => marks += 1,
                Fed::Idle => return marks,
                Fed::Items | Fed::Moved => {}
            }
        }
    };
    let turns = [passed(0), passed(1), passed(0), passed(0), passed(1)];
    assert_eq!(turns, [1, 2, 2, 0, 2].map(|times| times * MARKS_AHEAD));
}

#[test]
fn no_read_while_packets_are_left() {
    let frame = mixed(3, 1);
    let bytes = file((0..50).map(|n| (n, frame.as_slice())));
    for queues in [1, 2] {
        let given = Arc::default();
        let pipe = Pipe { bytes: bytes.clone(), at: 0, given: Arc::clone(&given) };
        let watch = Watch::new();
        let mut feeds = feeds(queues, Files::from_reader("pipe", pipe), &watch);
        let mut handed = 0;
        let mut burst = Burst::with_capacity(256);
        while handed < 50 {
            for feed in &mut feeds {
                if feed.next(&mut burst) == Fed::Items {
                    handed += burst.len();
                    // The file header, and each packet returned so far.
                    let read = given.load(Ordering::Relaxed);
                    assert_eq!((burst.len(), read), (1, 1 + handed));
                    burst.clear();
                }
            }
        }
    }
}

#[test]
fn a_stopped_feed_hands_out_what_was_read_and_ends() {
    let frame = mixed(3, 1);
    let bytes = file((0..100_000).map(|n| (n, frame.as_slice())));
    let watch = Watch::new();
    let mut feeds = feeds(2, files(bytes), &watch);
    let mut out = vec![Vec::new(); 2];
    while let Some(queue) = out.iter().position(|out| !ended(out)) {
        let mut burst = Burst::with_capacity(256);
        let fed = feeds[queue].next(&mut burst);
        out_of(fed, &burst, &mut out[queue]);
        watch.stop();
    }
    let closed = PacketFeed::close(feeds);
    assert_eq!(closed.packets, closed.counts.packets);
    assert!((1..100_000).contains(&closed.packets), "{}", closed.packets);
}

/// An IPv4 packet within another one, which follows it, also where a burst ends between them.
#[test]
fn what_a_tunnel_carries_follows_it_whatever_the_burst() {
    let header = |len: u8| [0x45, 0, 0, len, 0, 0, 0, 0, 64, 4, 0, 0, 10, 0, 0, len, 10, 0, 0, 1];
    let frame = [&[2; 12][..], &[8, 0], &header(40), &header(20)].concat();
    let bytes = file((0..10).map(|second| (second * TICK, frame.as_slice())));
    for (queues, burst) in (1..4).flat_map(|queues| (1..24).map(move |burst| (queues, burst))) {
        let watch = Watch::new();
        let mut feeds = feeds(queues, files(bytes.clone()), &watch);
        let mut seen = Vec::new();
        let mut ended = vec![false; queues];
        while ended.contains(&false) {
            for (feed, ended) in feeds.iter_mut().zip(&mut ended).filter(|(_, ended)| !**ended) {
                let mut items = Burst::with_capacity(burst);
                match feed.next(&mut items) {
                    Fed::Mark(Mark::End { .. }) => *ended = true,
                    _ => seen.extend(items.iter().map(|packet| (packet.ts_ns, packet.src[3]))),
                }
                // A frame needs room for two packets.
                assert!(burst == 1 || items.capacity() == burst, "room was made");
            }
        }
        let expected: Vec<_> = (0..10).flat_map(|s| [(s * TICK, 40), (s * TICK, 20)]).collect();
        if queues == 1 {
            assert_eq!(seen, expected, "bursts of {burst}");
        } else {
            let sorted = |mut all: Vec<_>| {
                all.sort();
                all
            };
            assert_eq!(sorted(seen), sorted(expected), "{queues} queues, bursts of {burst}");
        }
        let closed = PacketFeed::close(feeds);
        assert_eq!((closed.counts.packets, closed.counts.inner, closed.packets), (10, 10, 10));
    }
}

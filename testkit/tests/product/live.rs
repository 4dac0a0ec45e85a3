//! Live capture: a capture that is replayed to an interface yields the same report as the file,
//! with every method, number of queues and arrangement; under overload every frame is accounted
//! for.
//!
//! The tests use veth pairs in network namespaces, which need root.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::Plan;
use crate::common::{Capture, gather, generate, office, profile, request, run_with};
use ringtap_engine::Watch;
use ringtap_flow::{Facts, FlowRecord, Initiator, Kind, Metering, Timeouts};
use ringtap_io::capture::{Chunk, PcapWriter};
use ringtap_io::live::{
    LiveSender, MergedReceiver, Method, Options, Receiver, SendOptions, Sender, open,
};
use ringtap_monitor::{Outcome, Outputs, run_live};
use ringtap_skeleton::Skeleton;
use ringtap_testkit::{Left, Net, Right, send_all};
use ringtap_wire::{Decoder, HashKey, LinkType, PacketRecord, Path};
use serde_json::Value;

/// Capture method, skeleton, number of queues, number of workers.
type Case = (Method, Skeleton, usize, Option<usize>);

const CASES: [Case; 7] = [
    (Method::Packet, Skeleton::Reference, 1, None),
    (Method::Packet, Skeleton::Farm, 1, Some(2)),
    (Method::Packet, Skeleton::MultiQueue, 2, None),
    (Method::Packet, Skeleton::Pipeline, 2, Some(2)),
    (Method::Packet, Skeleton::SharedPipeline, 2, Some(2)),
    (Method::Xdp, Skeleton::Reference, 1, None),
    (Method::Xdp, Skeleton::MultiQueue, 2, None),
];

fn plan(case: Case) -> Plan {
    let (_, skeleton, queues, workers) = case;
    let timeouts = Timeouts::default().idle(3_600_000_000_000);
    let metering = Metering {
        timeouts: Timeouts { active_ns: 3_600_000_000_000, ..timeouts },
        ..Metering::default()
    };
    let queues = (skeleton != Skeleton::Reference).then_some(queues);
    let skeleton = Some(skeleton);
    let request = request()
        .run(|o| {
            o.live = true;
            o.skeleton = skeleton;
            o.queues = queues;
            o.workers = workers;
        })
        .app(|o| {
            o.metering = metering;
            // Round-trip times of a replay are its own.
            o.analyses.tcp = false;
        });
    let mut plan = request.plan();
    // A single interval, independent of the duration of the replay.
    plan.app.interval_ns = None;
    plan
}

/// The frames of a capture, at their captured length.
fn frames(capture: &Capture) -> Vec<Vec<u8>> {
    let (mut files, mut chunk, mut frames) = (capture.open(), Chunk::new(), Vec::new());
    while files.read(&mut chunk) > 0 {
        frames.extend(chunk.places.iter().map(|place| chunk.data(place).to_vec()));
    }
    frames
}

/// A capture of these frames with timestamps 1 µs apart.
fn recorded(frames: &[Vec<u8>]) -> Capture {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType::ETHERNET, u32::MAX);
    for (frame, number) in frames.iter().zip(0..) {
        let ts_ns = 1_700_000_000_000_000_000 + number * 1_000;
        writer.write(ts_ns, frame.len() as u32, frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    Capture::Bytes(bytes)
}

/// Outputs that collect the records of a plan's workers without their times.
fn timeless_records(plan: &Plan) -> (Outputs, Arc<Mutex<Vec<FlowRecord>>>) {
    gather(plan.arrangement.workers, timeless_record)
}

/// The record without its times, also of answers, and its interface, which differ between file and live capture.
fn timeless_record(record: &FlowRecord) -> FlowRecord {
    let without = |path: &Path| Path { ingress: 0, ..*path };
    let path = without(&record.path);
    let reverse_path = record.reverse_path.as_deref().map(|path| Box::new(without(path)));
    let mut facts = Facts::default();
    for kind in Kind::KEPT.into_iter().filter(|kind| *kind != Kind::DnsResponseTime) {
        for value in record.facts.values(kind) {
            facts.add(kind, value, usize::MAX).expect("room");
        }
    }
    FlowRecord {
        first_ns: 0,
        last_ns: 0,
        path,
        reverse_path,
        facts,
        statistics: None,
        ..record.clone()
    }
}

/// The collected records, sorted.
fn sorted(records: &Mutex<Vec<FlowRecord>>) -> Vec<FlowRecord> {
    let mut records = std::mem::take(&mut *records.lock().unwrap());
    records.sort_unstable();
    records
}

/// The report as JSON without times and sections that depend on times.
fn timeless(outcome: &Outcome) -> Value {
    fn strip(value: &mut Value) {
        if let Some(map) = value.as_object_mut() {
            for time in ["first", "last", "active_peak", "records_digest"] {
                map.remove(time);
            }
            map.values_mut().for_each(strip);
        } else if let Some(list) = value.as_array_mut() {
            list.iter_mut().for_each(strip);
        }
    }
    let mut report: Value = serde_json::from_str(&outcome.to_json("").unwrap()).unwrap();
    let report = report.as_object_mut().unwrap();
    let arranged = ["plan", "performance", "interfaces", "ledger", "pairs_checked"];
    for own in arranged.into_iter().chain(["digest", "intervals", "notices", "statistics"]) {
        report.remove(own);
    }
    let mut report = Value::Object(std::mem::take(report));
    strip(&mut report);
    report
}

/// Runs the case's plan live while `send` sends, until `count()` frames are accounted for.
fn live(
    net: &Net,
    case: Case,
    outputs: Outputs,
    send: impl FnOnce() + Send,
    count: impl Fn() -> u64,
) -> Outcome {
    let plan = plan(case);
    let receivers = net.receivers(&options(&plan, case));
    observe(&plan, receivers, outputs, send, count)
}

fn options(plan: &Plan, (method, _, queues, _): Case) -> Options {
    let memory = plan.buffers.buffer_bytes as usize;
    Options { method, queues: Some(queues as u16), memory, ..Options::default() }
}

/// Runs a plan live with these receivers while `send` sends, until `count()` frames are accounted
/// for.
fn observe(
    plan: &Plan,
    receivers: Vec<impl Into<MergedReceiver> + Send>,
    outputs: Outputs,
    send: impl FnOnce() + Send,
    count: impl Fn() -> u64,
) -> Outcome {
    let watch = Watch::new();
    let outcome = thread::scope(|scope| {
        let run = scope.spawn(|| run_live(plan, receivers, outputs, &watch));
        send();
        for _ in 0..1_000 {
            if watch.packets.get() + watch.dropped.get() >= count() || run.is_finished() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        watch.stop();
        run.join().unwrap().expect("a successful run")
    });
    assert_eq!(outcome.run.ledger.residual(), 0, "{:?}", outcome.run.ledger);
    outcome
}

/// Sends frames. With AF_XDP each goes to the queue for its addresses, as with RSS of a card.
fn send(net: &Net, case: Case, frames: &[Vec<u8>]) {
    let (method, _, queues, _) = case;
    let open = |queue| net.sender(&SendOptions { method, queue, ..SendOptions::default() });
    if method == Method::Packet {
        return send_all(&mut open(0), frames);
    }
    let mut decoder = Decoder::new(HashKey::from_seed(7), Arc::default());
    let mut queue = |frame: &Vec<u8>| {
        let mut packet = PacketRecord::EMPTY;
        decoder.decode(LinkType::ETHERNET, 0, frame, frame.len() as u32, &mut packet);
        ((u64::from(packet.pair_hash) * queues as u64) >> 32) as usize
    };
    let mut senders: Vec<Sender> = (0..queues as u32).map(open).collect();
    for (sender, own) in senders.iter_mut().zip(0..) {
        let frames: Vec<_> = frames.iter().filter(|frame| queue(frame) == own).cloned().collect();
        send_all(sender, &frames);
    }
}

#[test]
fn a_replay_yields_the_report_and_records_of_the_capture() {
    let mix = generate(&profile("mix", 20_000, 500), 3).0;
    let scans = generate(&profile("scans", 20_000, 500), 4).0;
    // With one queue, and with several.
    let mut checked = [0; 2];
    for capture in [Capture::File(office()), Capture::Bytes(mix), Capture::Bytes(scans)] {
        let frames = frames(&capture);
        assert!(frames.len() > 8_000 && frames.iter().all(|frame| frame.len() <= 1_518));
        for case in CASES {
            let Some(net) = Net::new(case.2 as u32) else { return };
            let reference = plan((Method::Packet, Skeleton::Reference, 1, None));
            let (outputs, from_file) = timeless_records(&reference);
            let wanted = run_with(&reference, &recorded(&frames), outputs);
            let count = frames.len() as u64;
            let (outputs, from_wire) = timeless_records(&plan(case));
            let seen = live(&net, case, outputs, || send(&net, case, &frames), || count);
            assert_eq!(seen.run.packets_split, 0, "{case:?}");
            checked[usize::from(case.2 > 1)] += seen.run.pairs_checked;
            let same = timeless(&seen) == timeless(&wanted);
            assert!(same, "{case:?}: {:#}\nis not\n{:#}", timeless(&seen), timeless(&wanted));
            assert!(sorted(&from_wire) == sorted(&from_file), "{case:?}: other records");
        }
    }
    assert!(checked[0] == 0 && checked[1] > 0, "{checked:?}");
}

/// Two veth pairs between the namespaces, like the two taps of a link: one for each direction.
fn taps(queues: usize) -> Option<Net> {
    let net = Net::new(queues as u32)?;
    let peer = format!("peer name right2 netns {}", net.name(Right));
    let shape = format!("numtxqueues {queues} numrxqueues {queues}");
    net.ip(Left, &format!("link add left2 {shape} type veth {peer} {shape}"));
    net.ip(Left, "link set left2 up");
    net.ip(Right, "link set right2 up");
    Some(net)
}

/// The tap of a frame: 0 if it goes from a lower address to a higher one, otherwise 1.
fn tap(frame: &[u8]) -> usize {
    let mut decoder = Decoder::new(HashKey::from_seed(7), Arc::default());
    let mut packet = PacketRecord::EMPTY;
    decoder.decode(LinkType::ETHERNET, 0, frame, frame.len() as u32, &mut packet);
    usize::from(packet.src > packet.dst)
}

#[test]
fn the_two_directions_of_a_link_on_two_interfaces_are_merged() {
    let mix = generate(&profile("mix", 20_000, 500), 3).0;
    for capture in [Capture::File(office()), Capture::Bytes(mix)] {
        let frames = frames(&capture);
        let taps_of: Vec<_> = frames.iter().map(|frame| tap(frame)).collect();
        let by_tap = [0, 1].map(|tap| taps_of.iter().filter(|&&own| own == tap).count() as u64);
        assert!(by_tap.iter().all(|&count| count > 1_000), "{by_tap:?}");
        let reference = plan((Method::Packet, Skeleton::Reference, 1, None));
        let (outputs, from_file) = timeless_records(&reference);
        let wanted = run_with(&reference, &recorded(&frames), outputs);
        let wanted_records = sorted(&from_file);
        for case in [
            (Method::Packet, Skeleton::Reference, 1, None),
            (Method::Packet, Skeleton::Farm, 1, Some(2)),
            (Method::Packet, Skeleton::MultiQueue, 2, None),
            (Method::Packet, Skeleton::Pipeline, 2, Some(2)),
        ] {
            let Some(net) = taps(1) else { return };
            let plan = plan(case);
            let interfaces: Vec<Vec<Receiver>> = net.inside(Right, || {
                let options = options(&plan, case);
                ["right", "right2"].map(|name| open(name, &options).unwrap()).into()
            });
            let indexes = [0, 1].map(|place: usize| interfaces[place][0].index());
            let receivers = MergedReceiver::distribute(interfaces, plan.arrangement.queues);
            let (outputs, from_wire) = gather(plan.arrangement.workers, |record| record.clone());
            let send = || {
                let mut senders = ["left", "left2"].map(|name| {
                    let options = SendOptions::default();
                    net.inside(Left, || Sender::open(name, &options).unwrap())
                });
                for (frame, &tap) in frames.iter().zip(&taps_of) {
                    send_all(&mut senders[tap], std::slice::from_ref(frame));
                }
            };
            let seen = observe(&plan, receivers, outputs, send, || frames.len() as u64);
            assert_eq!(seen.run.packets_split, 0, "{case:?}");
            let same = timeless(&seen) == timeless(&wanted);
            assert!(same, "{case:?}: {:#}\nis not\n{:#}", timeless(&seen), timeless(&wanted));
            let mut by_ingress = [0_u64; 2];
            let mut records = from_wire.lock().unwrap().clone();
            for one in &mut records {
                let place = indexes.iter().position(|&index| index == one.path.ingress);
                // The lower address sends through the first tap, whether it is the initiator or
                // not.
                let lower = one.key.src < one.key.dst;
                let turned = one.initiator == Initiator::SynAck;
                assert_eq!(place, Some(usize::from(lower == turned)), "{one:?}");
                by_ingress[place.unwrap()] += 1;
                *one = timeless_record(one);
            }
            records.sort_unstable();
            assert!(records == wanted_records, "{case:?}: other records");
            assert!(by_ingress.iter().all(|&records| records > 0), "{by_ingress:?}");
            // Each frame is counted at its interface, and the sum is the input of the ledger.
            let counts: Vec<_> = seen.run.interfaces.iter().map(|one| one.packets).collect();
            assert_eq!(counts, by_tap, "{case:?}");
            let dropped: u64 =
                seen.run.interfaces.iter().flat_map(|one| one.dropped.values()).sum();
            let octets: u64 = seen.run.interfaces.iter().map(|one| one.captured_octets).sum();
            assert_eq!(by_tap.iter().sum::<u64>() + dropped, seen.run.ledger.stages[0].input);
            assert_eq!(octets, seen.run.counts.captured_octets);
            let names: Vec<_> =
                seen.run.interfaces.iter().map(|one| (&*one.name, one.index)).collect();
            assert_eq!(names, [("right", indexes[0]), ("right2", indexes[1])]);
        }
    }
}

#[test]
fn cards_with_different_queue_assignments_are_merged_into_one_queue() {
    let frames = frames(&Capture::Bytes(generate(&profile("mix", 20_000, 500), 3).0));
    let case = (Method::Xdp, Skeleton::Farm, 1, Some(2));
    let Some(net) = taps(2) else { return };
    let plan = plan(case);
    let interfaces = net.inside(Right, || {
        let options = Options { queues: None, ..options(&plan, case) };
        ["right", "right2"].map(|name| open(name, &options).unwrap())
    });
    assert!(interfaces.iter().all(|queues| queues.len() == 2));
    let receivers = MergedReceiver::distribute(interfaces.into(), 1);
    // Frames use all taps and all queues in turn.
    let send = || {
        let queues = [("left", 0), ("left", 1), ("left2", 0), ("left2", 1)];
        let mut senders = queues.map(|(name, queue)| {
            let options = SendOptions { method: Method::Xdp, queue, ..SendOptions::default() };
            net.inside(Left, || Sender::open(name, &options).unwrap())
        });
        for (number, frame) in frames.iter().enumerate() {
            send_all(&mut senders[number % 4], std::slice::from_ref(frame));
        }
    };
    let seen = observe(&plan, receivers, Outputs::default(), send, || frames.len() as u64);
    let reference = self::plan((Method::Packet, Skeleton::Reference, 1, None));
    let wanted = run_with(&reference, &recorded(&frames), Outputs::default());
    assert_eq!((seen.run.packets_split, seen.run.received), (0, frames.len() as u64));
    // Values that do not depend on the order of packets. If a pair of hosts had two workers, its
    // conversations would be counted twice.
    assert_eq!(seen.run.report.conversations, wanted.run.report.conversations);
    assert_eq!(seen.run.report.protocols, wanted.run.report.protocols);
    assert_eq!(seen.run.report.octets, wanted.run.report.octets);
    let half = frames.len() as u64 / 2;
    let counts: Vec<_> = seen.run.interfaces.iter().map(|one| one.packets).collect();
    assert_eq!(counts, [half, frames.len() as u64 - half]);
}

#[test]
fn every_frame_of_a_flood_is_accounted_for() {
    const FLOOD: u64 = 400_000;
    for method in [Method::Packet, Method::Xdp] {
        let Some(net) = Net::new(1) else { return };
        let case = (method, Skeleton::Reference, 1, None);
        let mut plan = plan(case);
        plan.buffers.buffer_bytes = 1 << 20;
        let memory = plan.buffers.buffer_bytes as usize;
        let mut receivers = net.receivers(&Options { method, memory, ..Options::default() });
        let mut flood = flood(&net, method);
        // The receivers are not read yet, so most of these frames are dropped.
        let mut sent = flood(FLOOD);
        let watch = Watch::new();
        let outcome = thread::scope(|scope| {
            let receivers = std::mem::take(&mut receivers);
            let run = scope.spawn(|| run_live(&plan, receivers, Outputs::default(), &watch));
            sent += flood(FLOOD);
            watch.stop();
            run.join().unwrap().expect("a successful run")
        });
        assert_eq!(sent, 2 * FLOOD);
        assert_eq!(outcome.run.ledger.residual(), 0, "{:?}", outcome.run.ledger);
        let dropped: u64 = outcome.run.ledger.dropped().values().sum();
        assert_eq!(outcome.run.received, sent, "{method:?}: {:?}", outcome.run.ledger);
        assert!(dropped > FLOOD / 2, "{method:?}: {dropped}");
        assert_eq!(outcome.run.report.packets.handled, sent - dropped, "{method:?}");
        assert!(outcome.losses().contains(&("packets dropped", dropped)), "{:?}", outcome.losses());
    }
}

#[test]
fn flows_that_a_card_splits_between_queues_are_reported() {
    let Some(net) = Net::new(2) else { return };
    let frames = frames(&Capture::Bytes(generate(&profile("mix", 20_000, 2_000), 5).0));
    let case = (Method::Xdp, Skeleton::MultiQueue, 2, None);
    let sends = || {
        let mut senders = [0, 1].map(|queue| {
            net.sender(&SendOptions { method: Method::Xdp, queue, ..SendOptions::default() })
        });
        for (number, frame) in frames.iter().enumerate() {
            send_all(&mut senders[number % 2], std::slice::from_ref(frame));
        }
    };
    let outcome = live(&net, case, Outputs::default(), sends, || frames.len() as u64);
    assert!(outcome.run.packets_split > 0);
    let loss = ("packets in another queue than the rest of their flow", outcome.run.packets_split);
    assert!(outcome.losses().contains(&loss), "{:?}", outcome.losses());
}

/// A function that sends a number of frames at full speed and returns the number sent.
fn flood(net: &Net, method: Method) -> Box<dyn FnMut(u64) -> u64 + '_> {
    let template = template();
    if method == Method::Xdp {
        let open = || LiveSender::open("left", &template, 1 << 10).unwrap();
        let mut sender = net.inside(Left, open);
        // The kernel looks the interface up in the namespace of the calling thread.
        return Box::new(move |count| net.inside(Left, || sender.send(count).unwrap()));
    }
    // A veth accepts frames generated in the kernel only if its peer has an XDP program.
    let (mut sender, frames) = (net.sender(&SendOptions::default()), vec![template; 1_000]);
    Box::new(move |count| {
        (0..count / 1_000).for_each(|_| send_all(&mut sender, &frames));
        count
    })
}

/// A short UDP datagram.
fn template() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    let header = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    frame[14..34].copy_from_slice(&header);
    frame[34..42].copy_from_slice(&[0x30, 0x39, 0, 53, 0, 26, 0, 0]);
    frame
}

#[test]
fn an_overloaded_queue_sheds_flows_if_allowed_and_counts_them() {
    const FRAMES: u64 = 30_000;
    for shed in [false, true] {
        let Some(net) = Net::new(1) else { return };
        let mut plan = plan((Method::Xdp, Skeleton::Reference, 1, None));
        plan.options.shed = shed;
        let memory = plan.buffers.buffer_bytes as usize;
        let receivers =
            net.receivers(&Options { method: Method::Xdp, memory, ..Options::default() });
        // All frames arrive before the first is read and fill most of the buffer.
        assert_eq!(flood(&net, Method::Xdp)(FRAMES), FRAMES);
        let watch = Watch::new();
        watch.stop();
        let outcome = run_live(&plan, receivers, Outputs::default(), &watch).unwrap();
        assert_eq!(outcome.run.ledger.residual(), 0, "{:?}", outcome.run.ledger);
        assert_eq!(outcome.run.received, FRAMES);
        let dropped = outcome.run.ledger.dropped();
        assert_eq!(dropped.contains_key("shed"), shed, "{dropped:?}");
        let shed_frames = dropped.get("shed").copied().unwrap_or(0);
        assert_eq!(outcome.run.report.packets.handled, FRAMES - shed_frames);
        // About a sixteenth of the frames after the first check of the fill level.
        assert!(shed_frames < FRAMES / 8, "{shed_frames}");
        assert_eq!(outcome.losses().contains(&("packets dropped", shed_frames)), shed);
        assert_eq!(watch.shed.get(), shed_frames);
    }
}

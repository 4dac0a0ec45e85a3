//! Whatever the arrangement, the report and every flow record equal those of the single-threaded reference.
//!
//! Every skeleton runs in every shape on one ring, and every ring in one shape of each skeleton that has rings between
//! threads; which, captures take in turn. With RINGTAP_FULL=1 every ring runs in every shape.

use std::sync::Arc;

use crate::common::*;
use ringtap_engine::Watch;
use ringtap_io::bpf::{Expression, ExpressionError};
use ringtap_io::capture::{Chunk, PcapWriter};
use ringtap_monitor::Outputs;
use ringtap_monitor::{Message, Monitor, MonitorMerger, MonitorWorker, Partial, Report};
use ringtap_ring::Kind as Ring;
use ringtap_stage::{Application, Attachments, Mark, Outbox, Shard, Worker};
use ringtap_wire::Tunnels;
use ringtap_wire::{LinkType, PacketRecord};

/// Queues, and workers behind each.
const SHAPES: [(usize, usize); 8] =
    [(1, 1), (1, 2), (1, 3), (1, 7), (2, 1), (2, 3), (3, 2), (7, 1)];
/// Capacity and batch: from the tiniest to the default.
const SIZES: [(usize, usize); 4] = [(1, 1), (3, 50), (64, 8), (4096, 50)];

/// Whether a combination is tried, of skeleton, ring and shape by their numbers.
fn tried(turn: usize, skeleton: usize, ring: usize, shape: usize) -> bool {
    let full = std::env::var_os("RINGTAP_FULL").is_some_and(|value| value == "1");
    // Captures take them in turn, so that over all of them every combination is tried.
    let of_shape = ring == (turn + skeleton + shape) % Ring::ALL.len();
    let of_ring = shape == (turn + skeleton + ring) % SHAPES.len();
    full || of_shape || of_ring
}

/// Skeletons, rings and numbers of queues and workers as [`tried`] says, each with one of the sizes, in turn: which one,
/// `turn` says besides. Returns how many runs agreed.
fn agrees_everywhere(
    name: &str,
    capture: &Capture,
    request: &Request,
    sizes: &[(usize, usize)],
    turn: usize,
) -> usize {
    let expected = run(&reference(request.clone()), capture);
    let mut runs = 1;
    for (s, skeleton) in skeletons().enumerate() {
        for (r, ring) in Ring::ALL.into_iter().enumerate() {
            for (w, shape) in SHAPES.into_iter().enumerate() {
                if !tried(turn, s, r, w) {
                    continue;
                }
                let size = sizes[(turn + s + r + w / 2) % sizes.len()];
                let plan = parallel(request.clone(), skeleton, shape, ring, size);
                let outcome = run(&plan, capture);
                assert_eq!(
                    digest(&outcome),
                    digest(&expected),
                    "{name}: {skeleton}, {ring} × {shape:?}, capacity and batch {size:?}:\n\
                     {:#?}\n{:#?}",
                    outcome.run.report,
                    expected.run.report,
                );
                runs += 1;
            }
        }
    }
    // And as the plan would choose it itself.
    let auto = request.clone().plan();
    assert_eq!(digest(&run(&auto, capture)), digest(&expected), "{name}: {auto:?}");
    runs
}

#[test]
fn real_captures() {
    let Some(folder) = traces() else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with('o'));
    files.sort();
    assert!(files.len() >= 60);
    for (number, path) in files.iter().enumerate() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // All sizes over all files would take minutes.
        let capture = Capture::File(path.clone());
        let runs = agrees_everywhere(&name, &capture, &request(), &SIZES, number);
        println!("{name}: same digest under {runs} arrangements");
    }
}

#[test]
fn the_bundled_capture_in_intervals() {
    let request = request().app(|o| o.interval_ns = Some(1_000_000_000));
    agrees_everywhere("office", &Capture::File(office()), &request, &SIZES[2..], 0);
}

#[test]
fn generated_traffic_with_scans() {
    // Through rings of one and three slots every packet waits for its predecessor: a little
    // traffic for the tiny ones, more for the others.
    for (packets, sizes) in [(5_000, &SIZES[..2]), (60_000, &SIZES[2..])] {
        for (turn, (name, flows)) in [("mix", 4_000), ("scans", 1_000)].into_iter().enumerate() {
            let (bytes, _) = generate(&profile(name, packets, flows), 11);
            agrees_everywhere(name, &Capture::Bytes(bytes), &request(), sizes, turn);
        }
    }
}

#[test]
fn generated_traffic_within_tunnels() {
    let (bytes, _) = generate_tunnelled(&profile("mix", 30_000, 3_000), 7);
    let capture = Capture::Bytes(bytes);
    for tunnels in [Tunnels::Inner, Tunnels::Both] {
        let request =
            request().run(|o| o.tunnels = tunnels).app(|o| o.interval_ns = Some(1_000_000_000));
        agrees_everywhere(tunnels.name(), &capture, &request, &SIZES[2..], 0);
    }
}

#[test]
fn a_long_run_with_many_marks_and_short_timeouts() {
    let mut profile = profile("w2", 60_000, 20_000);
    profile.duration_ns = 300_000_000_000;
    let (bytes, _) = generate(&profile, 5);
    let mut request = request();
    request.app.metering.timeouts = request.app.metering.timeouts.idle(3_000_000_000);
    request.app.metering.timeouts.active_ns = 20_000_000_000;
    agrees_everywhere("w2", &Capture::Bytes(bytes), &request, &SIZES[2..], 0);
}

#[test]
fn another_seed_changes_nothing_but_the_tables() {
    let (bytes, _) = generate(&profile("mix", 40_000, 3_000), 3);
    let capture = Capture::Bytes(bytes);
    let expected = run(&reference(request()), &capture);
    for seed in [0, 1, u64::MAX] {
        let request = request().run(|o| o.seed = seed);
        assert_eq!(digest(&run(&reference(request.clone()), &capture)), digest(&expected));
        for skeleton in skeletons() {
            let plan = parallel(request.clone(), skeleton, (2, 3), Ring::default(), (64, 8));
            assert_eq!(digest(&run(&plan, &capture)), digest(&expected));
        }
    }
}

/// The capture with other times: `stamp` says them, by the number of the packet and its time.
fn restamped(bytes: &[u8], stamp: impl Fn(usize, u64) -> u64) -> Capture {
    let (mut files, mut chunk) = (Capture::Bytes(bytes.to_vec()).open(), Chunk::new());
    let (mut out, mut number) = (Vec::new(), 0);
    let mut writer = PcapWriter::new(&mut out, LinkType::ETHERNET, u32::MAX);
    while files.read(&mut chunk) > 0 {
        for place in &chunk.places {
            let ts_ns = stamp(number, place.ts_ns);
            writer.write(ts_ns, place.original_len, chunk.data(place)).unwrap();
            number += 1;
        }
    }
    writer.flush().unwrap();
    drop(writer);
    Capture::Bytes(out)
}

const HOUR: u64 = 3_600_000_000_000;

/// 300 seconds of traffic, and a request with many marks and intervals for them.
fn minutes() -> (Vec<u8>, Request) {
    let mut profile = profile("w2", 30_000, 8_000);
    profile.duration_ns = 300_000_000_000;
    let mut request = request().app(|o| o.interval_ns = Some(1_000_000_000));
    request.app.metering.timeouts = request.app.metering.timeouts.idle(3_000_000_000);
    (generate(&profile, 5).0, request)
}

#[test]
fn one_packet_a_year_ahead_moves_no_other() {
    let (bytes, request) = minutes();
    let plan = reference(request.clone());
    let before = run(&plan, &restamped(&bytes, |_, ts_ns| ts_ns));
    let capture = restamped(
        &bytes,
        |number, ts_ns| {
            if number == 15_000 { ts_ns + 8_760 * HOUR } else { ts_ns }
        },
    );
    agrees_everywhere("a year ahead", &capture, &request, &SIZES[2..], 0);
    let after = run(&plan, &capture);
    assert_eq!((after.run.clock.strays, after.run.clock.set), (1, 0));
    // Only the packet's own flow has another end: it lives on, and takes what would have been its next ones.
    let flows = [&before, &after].map(|outcome| outcome.run.report.flows.clone().unwrap());
    let [before, after] = flows.map(|flows| (flows.records, flows.active_peak));
    assert!(after.0.abs_diff(before.0) <= 20, "{after:?}, {before:?}");
    assert!(after.1.abs_diff(before.1) <= 2, "{after:?}, {before:?}");
}

#[test]
fn a_capture_that_steps_back_an_hour_goes_on_from_there() {
    let (bytes, request) = minutes();
    let capture =
        restamped(&bytes, |number, ts_ns| if number < 15_000 { ts_ns + HOUR } else { ts_ns });
    agrees_everywhere("an hour back", &capture, &request, &SIZES[2..], 0);
    let plan = reference(request);
    let outcome = run(&plan, &capture);
    assert_eq!((outcome.run.clock.set, outcome.run.clock.strays), (1, 0));
    assert!(
        outcome.run.clock.last_ns.abs_diff(-(HOUR as i64)) < HOUR / 60,
        "{:?}",
        outcome.run.clock
    );
    // As many records as the two parts have, but for those of the packets that told the step.
    let [whole, once] = [outcome, run(&plan, &restamped(&bytes, |_, ts_ns| ts_ns))]
        .map(|outcome| outcome.run.report.flows.unwrap());
    let cut = whole.end_reasons["forced"];
    assert!(whole.records.abs_diff(once.records) <= cut + 64, "{whole:?}, {once:?}");
    assert!(whole.active_peak.abs_diff(once.active_peak) <= 64, "{whole:?}, {once:?}");
    assert!(cut > 10, "{whole:?}");
}

/// The sample is the same whatever the arrangement and the seed, and what is left out is counted.
#[test]
fn a_sample_is_the_same_everywhere() {
    let (bytes, truth) = generate(&profile("mix", 60_000, 4_000), 9);
    let capture = Capture::Bytes(bytes);
    let request = request().run(|o| o.sample = 10);
    agrees_everywhere("sampled", &capture, &request, &SIZES[2..], 0);
    let outcome = run(&reference(request.clone().run(|o| o.seed = 77)), &capture);
    assert_eq!(digest(&outcome), digest(&run(&reference(request), &capture)));
    let handled = outcome.run.report.packets.handled;
    assert!((5_000..7_000).contains(&handled), "{handled}");
    assert_eq!(outcome.run.received, truth.packets);
    assert_eq!(outcome.run.ledger.dropped()["not_sampled"], truth.packets - handled);
    assert!(outcome.losses().is_empty(), "what was left out on purpose is no loss");
}

/// What an expression selects is the same whatever the arrangement, also of frames that all queues have.
#[test]
fn what_is_selected_is_the_same_everywhere() {
    let (bytes, truth) = generate_tunnelled(&profile("mix", 60_000, 4_000), 9);
    let capture = Capture::Bytes(bytes);
    let filter = match Expression::new("ip proto 41 or greater 200") {
        Err(error @ ExpressionError::NoLibrary(_)) => return eprintln!("SKIPPED: {error}"),
        made => Some(Arc::new(made.unwrap())),
    };
    let request = request().run(|o| {
        o.filter = filter;
        o.tunnels = Tunnels::Both;
    });
    agrees_everywhere("selected", &capture, &request, &SIZES[2..], 0);
    let outcome = run(&reference(request), &capture);
    let left_out = outcome.run.ledger.dropped()["filtered"];
    assert!((1_000..truth.packets - 1_000).contains(&left_out), "{left_out}");
    assert_eq!(outcome.run.received, truth.packets);
    assert!(outcome.losses().is_empty(), "what was left out on purpose is no loss");
}

/// Datagrams in two fragments between a few hosts: all first fragments before any later one. Every third is of IPv6.
fn fragments(datagrams: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType(1), u32::MAX);
    for (later, number) in
        [false, true].into_iter().flat_map(|l| (0..datagrams).map(move |n| (l, n)))
    {
        let [.., high, low] = number.to_be_bytes();
        let [port_high, port_low] = (10_000 + number as u16).to_be_bytes();
        // UDP, or what follows its header.
        let payload = if later {
            [7; 16]
        } else {
            [port_high, port_low, 0, 53, 0, 32, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
        };
        let host = (number / 8 % 3) as u8;
        let mut frame = vec![2; 12];
        if number % 3 == 2 {
            let place = if later { [0, 16] } else { [0, 1] };
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 44, 64]);
            frame.extend([[0xfd; 15].as_slice(), &[host], &[0xfe; 16]].concat());
            frame.extend([17, 0, place[0], place[1], 0, 0, high, low]);
        } else {
            let place = if later { [0, 2] } else { [0x20, 0] };
            frame.extend([8, 0, 0x45, 0, 0, 36, high, low, place[0], place[1], 64, 17, 0, 0]);
            frame.extend([10, 0, 0, host, 10, 1, 0, 0]);
        }
        frame.extend(payload);
        writer.write(u64::from(number) * 1_000, frame.len() as u32, &frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    bytes
}

#[test]
fn later_fragments_have_their_ports_whatever_the_seed_and_the_arrangement() {
    const DATAGRAMS: u32 = 3_000;
    let capture = Capture::Bytes(fragments(DATAGRAMS));
    let mut expected = None;
    for seed in 0..16 {
        let request = request().run(|o| o.seed = seed as u64);
        let outcome = run(&reference(request.clone()), &capture);
        let flows = outcome.run.report.flows.as_ref().unwrap();
        assert_eq!(
            (flows.records, outcome.run.counts.fragments_forgotten),
            (DATAGRAMS.into(), 0),
            "{seed}"
        );
        assert!(outcome.losses().is_empty() && outcome.warnings().is_empty());
        let expected = expected.get_or_insert_with(|| digest(&outcome).to_owned());
        assert_eq!(digest(&outcome), expected, "seed {seed}");
        for (turn, skeleton) in skeletons().enumerate() {
            let shape = SHAPES[(turn + seed) % SHAPES.len()];
            let ring = Ring::ALL[(turn + seed / 2) % Ring::ALL.len()];
            let plan = parallel(request.clone(), skeleton, shape, ring, SIZES[2 + seed % 2]);
            let outcome = run(&plan, &capture);
            assert_eq!(digest(&outcome), expected, "seed {seed}: {skeleton}, {shape:?}");
            assert_eq!(outcome.run.counts.fragments_forgotten, 0);
        }
    }
}

/// More datagrams under way than there is room for: which are forgotten depends on the number of queues, but each is
/// counted.
#[test]
fn fragments_that_are_forgotten_are_counted() {
    const DATAGRAMS: u32 = 30_000;
    let capture = Capture::Bytes(fragments(DATAGRAMS));
    let request = request().run(|o| o.memory_bytes = Some(64 << 20));
    let mut plans = vec![reference(request.clone())];
    for skeleton in skeletons() {
        plans.push(parallel(request.clone(), skeleton, (2, 1), Ring::default(), (4096, 50)));
    }
    for plan in plans {
        let room = plan.buffers.max_datagrams;
        assert!((10_000..20_000).contains(&room), "{room}");
        let outcome = run(&plan, &capture);
        let forgotten = outcome.run.counts.fragments_forgotten;
        let records = outcome.run.report.flows.as_ref().unwrap().records;
        // Queues have a part of the room each, rounded up, and these few pairs of addresses may not fill all of it.
        let least = u64::from(DATAGRAMS) - room;
        let several = forgotten + plan.arrangement.queues as u64 >= least;
        assert!(
            if plan.arrangement.queues == 1 { forgotten == least } else { several },
            "{plan:?}"
        );
        // Fragments without ports are of six more flows, one between each two hosts.
        assert!((1..=6).contains(&(records - u64::from(DATAGRAMS))), "{records}");
        assert!(outcome.losses().contains(&("fragments forgotten for lack of memory", forgotten)));
        let json: String = outcome.to_json("").unwrap();
        assert!(json.contains(&format!("\"fragments_forgotten\": {forgotten}")));
        assert!(
            outcome.warnings().iter().any(|warning| warning.starts_with(&forgotten.to_string()))
        );
    }
}

/// A monitor whose worker 0 never sees one of its packets.
struct Leaky(Monitor, u64);

struct LeakyWorker {
    inner: MonitorWorker,
    /// Packets until the one that is lost; `None` when it is gone, or in another worker.
    countdown: Option<u64>,
}

impl Application for Leaky {
    type Item = PacketRecord;
    type Message = Message;
    type Partial = Partial;
    type Report = Report;
    type Worker = LeakyWorker;
    type Merger = MonitorMerger;

    fn shard_key(&self, packet: &PacketRecord) -> u32 {
        self.0.shard_key(packet)
    }
    fn worker(&self, shard: Shard) -> LeakyWorker {
        let countdown = (shard.index == 0).then_some(self.1);
        LeakyWorker { inner: self.0.worker(shard), countdown }
    }
    fn merger(&self) -> MonitorMerger {
        self.0.merger()
    }
}

impl Worker for LeakyWorker {
    type Item = PacketRecord;
    type Message = Message;
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[PacketRecord],
        attachments: &Attachments,
        outbox: &mut impl Outbox<Message>,
    ) {
        match self.countdown {
            Some(n) if n < burst.len() as u64 => {
                let (before, rest) = burst.split_at(n as usize);
                self.inner.on_burst(before, Attachments::NONE, outbox);
                self.inner.on_burst(&rest[1..], Attachments::NONE, outbox);
                self.countdown = None;
            }
            _ => {
                self.countdown = self.countdown.map(|n| n - burst.len() as u64);
                self.inner.on_burst(burst, attachments, outbox);
            }
        }
    }
    fn on_mark(&mut self, mark: &Mark, outbox: &mut impl Outbox<Message>) -> Option<Partial> {
        self.inner.on_mark(mark, outbox)
    }
}

#[test]
fn a_worker_that_drops_one_packet_is_found_out() {
    let (bytes, _) = generate(&profile("mix", 40_000, 3_000), 3);
    let capture = Capture::Bytes(bytes);
    let expected = run(&reference(request()), &capture);
    for (skeleton, lost) in skeletons().flat_map(|s| [0, 17, 5_000].map(|lost| (s, lost))) {
        let plan = parallel(request(), skeleton, (2, 3), Ring::default(), (4096, 50));
        let paths = std::sync::Arc::default();
        let app = Leaky(
            Monitor::new(ringtap_monitor::Setup::of(&plan, &paths), Outputs::default()),
            lost,
        );
        let watch = Watch::new();
        let outcome =
            ringtap_monitor::run_app(&plan, &app, &paths, capture.open(), &watch).unwrap();
        assert_ne!(digest(&outcome), digest(&expected));
        assert_eq!(outcome.run.ledger.residual(), 1, "{:?}", outcome.run.ledger);
    }
}

//! The equality matrix: under every arrangement the report and every flow record equal those of the
//! single-threaded reference.
//!
//! Every skeleton runs in every shape with one ring, and with every ring in one shape. Which ring
//! and which shape depends on the number of the capture. With RINGTAP_FULL=1 every ring runs in
//! every shape.

use std::sync::Arc;

use crate::common::*;
use ringtap_engine::Watch;
use ringtap_enrich::Networks;
use ringtap_io::bpf::{Expression, ExpressionError};
use ringtap_io::capture::{Chunk, PcapWriter};
use ringtap_monitor::Outputs;
use ringtap_monitor::{ChangeLimits, Outcome};
use ringtap_monitor::{Monitor, MonitorMerger, MonitorWorker, Partial, Report};
use ringtap_ring::Kind as Ring;
use ringtap_stage::{Application, Attachments, Mark, Outbox, Shard, Worker};
use ringtap_wire::Tunnels;
use ringtap_wire::{LinkType, PacketRecord};

/// Number of queues, and of workers of each.
const SHAPES: [(usize, usize); 8] =
    [(1, 1), (1, 2), (1, 3), (1, 7), (2, 1), (2, 3), (3, 2), (7, 1)];
/// Capacity and batch of rings: from the smallest to the default.
const SIZES: [(usize, usize); 4] = [(1, 1), (3, 50), (64, 8), (4096, 50)];

/// The time between two cuts of live flows.
const CUT_NS: u64 = 5_000_000_000;

/// Whether a combination of skeleton, ring and shape (by index) is tried for capture number `turn`.
fn is_tried(turn: usize, skeleton: usize, ring: usize, shape: usize) -> bool {
    let full = std::env::var_os("RINGTAP_FULL").is_some_and(|value| value == "1");
    // `turn` shifts the selection, so that all captures together try every combination.
    let of_shape = ring == (turn + skeleton + shape) % Ring::ALL.len();
    let of_ring = shape == (turn + skeleton + ring) % SHAPES.len();
    full || of_shape || of_ring
}

/// Runs the combinations that [`is_tried`] selects, each with one of the sizes, and compares their
/// digests with the reference. Returns the number of runs.
pub(crate) fn agrees_everywhere(
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
                if !is_tried(turn, s, r, w) {
                    continue;
                }
                let size = sizes[(turn + s + r + w / 2) % sizes.len()];
                // Cuts of live flows change neither the report nor whole flows.
                let cut_ns = (turn + s + r + w).is_multiple_of(2).then_some(CUT_NS);
                let request = request.clone().app(|o| o.metering.cut_ns = cut_ns);
                let plan = parallel(request, skeleton, shape, ring, size);
                let outcome = run(&plan, capture);
                assert_eq!(
                    digest(&outcome),
                    digest(&expected),
                    "{name}: {skeleton}, {ring} × {shape:?}, capacity and batch {size:?}, cut {cut_ns:?}:\n\
                     {:#?}\n{:#?}",
                    outcome.run.report,
                    expected.run.report,
                );
                runs += 1;
            }
        }
    }
    // The default arrangement, too.
    let auto = request.clone().plan();
    assert_eq!(digest(&run(&auto, capture)), digest(&expected), "{name}: {auto:?}");
    runs
}

/// With short learning times and a low floor, so that hosts change.
fn with_changes(request: Request) -> Request {
    let second = 1_000_000_000;
    request.app(|o| {
        o.change_limits = ChangeLimits {
            new_device: Some(2 * second),
            new_server_port: Some(second),
            volume_change: Some(2),
            volume_floor: Some(500),
        };
    })
}

/// The numbers of new devices, new server ports and volume changes.
fn changes(outcome: &Outcome) -> [usize; 3] {
    let changes = outcome.run.report.sections.changes.as_ref().unwrap();
    assert_eq!(changes.ignored, 0);
    [changes.new_devices.len(), changes.new_server_ports.len(), changes.volume_changes.len()]
}

#[test]
fn changes_of_own_hosts() {
    let (bytes, request) = minutes();
    let request = with_changes(request);
    let own = b"0.0.0.0/0 all\n::/0 all\n";
    let request = request.app(|o| {
        o.enrichment.networks = Some(Arc::new(Networks::parse(own).unwrap()));
    });
    // With one clock, with one that is set back, and with one that jumps ahead.
    let clocks: [fn(usize, u64) -> u64; 3] = [
        |_, ts_ns| ts_ns,
        |number, ts_ns| if number < 15_000 { ts_ns + HOUR } else { ts_ns },
        |number, ts_ns| if number < 15_000 { ts_ns } else { ts_ns + HOUR },
    ];
    for (turn, clock) in clocks.into_iter().enumerate() {
        let capture = restamped(&bytes, clock);
        let expected = run(&reference(request.clone()), &capture);
        // Real captures try all combinations.
        for skeleton in skeletons() {
            let plan = parallel(request.clone(), skeleton, (2, 3), Ring::default(), SIZES[2]);
            assert_eq!(digest(&run(&plan, &capture)), digest(&expected), "{turn}: {skeleton}");
        }
        let found = changes(&expected);
        assert!(found.iter().all(|&rows| rows > 20), "{turn}: {found:?}");
    }
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
        // The size varies with the file; all sizes with all files would take minutes.
        let capture = Capture::File(path.clone());
        let request = if number % 2 == 0 { request() } else { with_changes(request()) };
        let runs = agrees_everywhere(&name, &capture, &request, &SIZES, number);
        println!("{name}: same digest under {runs} arrangements");
    }
}

#[test]
fn the_bundled_capture_with_intervals() {
    let request = request().app(|o| o.interval_ns = Some(1_000_000_000));
    agrees_everywhere("office", &Capture::File(office()), &request, &SIZES[2..], 0);
}

#[test]
fn generated_traffic_with_scans() {
    // Small rings (one and three slots) are slow, because each packet waits for its predecessor.
    // They get less traffic.
    for (packets, sizes) in [(5_000, &SIZES[..2]), (60_000, &SIZES[2..])] {
        for (turn, (name, flows)) in [("mix", 4_000), ("scans", 1_000)].into_iter().enumerate() {
            let (bytes, _) = generate(&profile(name, packets, flows), 11);
            agrees_everywhere(name, &Capture::Bytes(bytes), &request(), sizes, turn);
        }
    }
}

#[test]
fn generated_traffic_in_tunnels() {
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
fn the_seed_does_not_affect_results() {
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

/// The capture with other timestamps: `stamp` computes them from the number of a packet and its
/// time.
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

/// 300 seconds of traffic, and a request with short intervals and timeouts.
fn minutes() -> (Vec<u8>, Request) {
    let mut profile = profile("w2", 30_000, 8_000);
    profile.duration_ns = 300_000_000_000;
    let mut request = request().app(|o| o.interval_ns = Some(1_000_000_000));
    request.app.metering.timeouts = request.app.metering.timeouts.idle(3_000_000_000);
    (generate(&profile, 5).0, request)
}

#[test]
fn one_packet_a_year_ahead_does_not_affect_other_flows() {
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
    // Only the packet's own flow changes: it does not expire and absorbs later flows of the same
    // key.
    let flows = [&before, &after].map(|outcome| outcome.run.report.flows.clone().unwrap());
    let [before, after] = flows.map(|flows| (flows.records, flows.active_peak.unwrap()));
    assert!(after.0.abs_diff(before.0) <= 20, "{after:?}, {before:?}");
    assert!(after.1.abs_diff(before.1) <= 2, "{after:?}, {before:?}");
}

#[test]
fn after_a_step_back_of_an_hour_the_clock_continues_from_the_new_time() {
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
    // The same number of records as without the step, except for flows that the step cut and for
    // the packets by which it was detected.
    let [whole, once] = [outcome, run(&plan, &restamped(&bytes, |_, ts_ns| ts_ns))]
        .map(|outcome| outcome.run.report.flows.unwrap());
    let cut = whole.end_reasons["forced"];
    assert!(whole.records.abs_diff(once.records) <= cut + 64, "{whole:?}, {once:?}");
    assert!(
        whole.active_peak.unwrap().abs_diff(once.active_peak.unwrap()) <= 64,
        "{whole:?}, {once:?}"
    );
    assert!(cut > 10, "{whole:?}");
}

/// The sample does not depend on the arrangement or the seed, and omitted packets are counted.
#[test]
fn a_sample_is_the_same_under_every_arrangement() {
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
    assert!(outcome.losses().is_empty(), "intentionally omitted packets are not losses");
}

/// The packets that an expression selects do not depend on the arrangement, even for tunnelled
/// frames, which all queues read.
#[test]
fn a_filter_expression_selects_the_same_under_every_arrangement() {
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
    let filtered = outcome.run.ledger.dropped()["filtered"];
    assert!((1_000..truth.packets - 1_000).contains(&filtered), "{filtered}");
    assert_eq!(outcome.run.received, truth.packets);
    assert!(outcome.losses().is_empty(), "intentionally omitted packets are not losses");
}

/// Datagrams in two fragments between a few hosts; all first fragments precede all later ones.
/// Every third datagram is IPv6.
fn fragments(datagrams: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType(1), u32::MAX);
    for (later, number) in
        [false, true].into_iter().flat_map(|l| (0..datagrams).map(move |n| (l, n)))
    {
        let [.., high, low] = number.to_be_bytes();
        let [port_high, port_low] = (10_000 + number as u16).to_be_bytes();
        // The first 16 bytes with the UDP header, or the rest.
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
fn later_fragments_get_their_ports_with_every_seed_and_arrangement() {
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

/// There are more incomplete datagrams than entries. Which of them are evicted depends on the
/// number of queues, but each eviction is counted.
#[test]
fn evicted_fragment_entries_are_counted() {
    const DATAGRAMS: u32 = 30_000;
    let capture = Capture::Bytes(fragments(DATAGRAMS));
    let request = request().run(|o| o.memory_bytes = Some(84 << 20));
    // There is room for all flows.
    let request = request.app(|app| app.analyses.statistics = false);
    let mut plans = vec![reference(request.clone())];
    for skeleton in skeletons() {
        plans.push(parallel(request.clone(), skeleton, (2, 1), Ring::default(), (4096, 50)));
    }
    for plan in plans {
        let room = plan.buffers.max_datagrams;
        assert!((10_000..30_000).contains(&room), "{room}");
        let outcome = run(&plan, &capture);
        let evicted = outcome.run.counts.fragments_forgotten;
        let records = outcome.run.report.flows.as_ref().unwrap().records;
        // Each queue has a share of the entries, rounded up, and these few address pairs may not
        // fill all shares.
        let least = u64::from(DATAGRAMS) - room;
        let several = evicted + plan.arrangement.queues as u64 >= least;
        assert!(if plan.arrangement.queues == 1 { evicted == least } else { several }, "{plan:?}");
        // Fragments without ports form six more flows, one per pair of hosts.
        assert!((1..=6).contains(&(records - u64::from(DATAGRAMS))), "{records}");
        assert!(outcome.losses().contains(&("fragments forgotten for lack of memory", evicted)));
        let json: String = outcome.to_json("").unwrap();
        assert!(json.contains(&format!("\"fragments_forgotten\": {evicted}")));
        assert!(outcome.warnings().iter().any(|warning| warning.starts_with(&evicted.to_string())));
    }
}

/// A monitor with a planted bug: worker 0 loses one of its packets, the one after the first `.1`.
struct Leaky(Monitor, u64);

struct LeakyWorker {
    inner: MonitorWorker,
    /// Packets before the lost one; `None` after it, and in other workers.
    countdown: Option<u64>,
}

impl Application for Leaky {
    type Item = PacketRecord;
    type Message = ();
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
    type Message = ();
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[PacketRecord],
        attachments: &Attachments,
        outbox: &mut impl Outbox<()>,
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
    fn on_mark(&mut self, mark: &Mark, outbox: &mut impl Outbox<()>) -> Option<Partial> {
        self.inner.on_mark(mark, outbox)
    }
}

#[test]
fn a_worker_that_loses_one_packet_is_detected() {
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

//! The promise of the whole house: whatever the arrangement, the report and every flow record
//! equal those of the single-threaded reference.

use std::sync::Arc;

use ringtap_monitor::{Message, Monitor, MonitorMerger, MonitorWorker, Partial, Report};
use ringtap_plan::{Expression, ExpressionError, Outputs, Plan, Request, Ring, Tunnels, Watch};
use ringtap_stage::{Application, Mark, Outbox, Shard, Worker};
use ringtap_tests::*;
use ringtap_wire::PacketRecord;

/// Queues, and workers behind each.
const SHAPES: [(usize, usize); 8] =
    [(1, 1), (1, 2), (1, 3), (1, 7), (2, 1), (2, 3), (3, 2), (7, 1)];
/// Capacity and batch: from the tiniest to the default.
const SIZES: [(usize, usize); 4] = [(1, 1), (3, 50), (64, 8), (4096, 50)];

/// Every skeleton, ring and number of queues and workers, each with one of the sizes, in turn: which one,
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
                // Half of them in turn: every shape meets every ring in one of two captures.
                if (turn + s + r + w) % 2 == 1 {
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
                    outcome.report,
                    expected.report,
                );
                runs += 1;
            }
        }
    }
    // And as the plan would choose it itself.
    let auto = Plan::new(request.clone(), &ringtap_plan::Machine::this()).unwrap();
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
    let request = Request { interval_ns: Some(1_000_000_000), ..request() };
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
        let request = Request { tunnels, interval_ns: Some(1_000_000_000), ..request() };
        agrees_everywhere(tunnels.name(), &capture, &request, &SIZES[2..], 0);
    }
}

#[test]
fn a_long_run_with_many_marks_and_short_timeouts() {
    let mut profile = profile("w2", 60_000, 20_000);
    profile.duration_ns = 300_000_000_000;
    let (bytes, _) = generate(&profile, 5);
    let mut request = request();
    request.metering.timeouts = request.metering.timeouts.idle(3_000_000_000);
    request.metering.timeouts.active_ns = 20_000_000_000;
    agrees_everywhere("w2", &Capture::Bytes(bytes), &request, &SIZES[2..], 0);
}

#[test]
fn another_seed_changes_nothing_but_the_tables() {
    let (bytes, _) = generate(&profile("mix", 40_000, 3_000), 3);
    let capture = Capture::Bytes(bytes);
    let expected = run(&reference(request()), &capture);
    for seed in [0, 1, u64::MAX] {
        let request = Request { seed, ..request() };
        assert_eq!(digest(&run(&reference(request.clone()), &capture)), digest(&expected));
        for skeleton in skeletons() {
            let plan = parallel(request.clone(), skeleton, (2, 3), Ring::default(), (64, 8));
            assert_eq!(digest(&run(&plan, &capture)), digest(&expected));
        }
    }
}

/// The sample is the same whatever the arrangement and the seed, and what is left out is counted.
#[test]
fn a_sample_is_the_same_everywhere() {
    let (bytes, truth) = generate(&profile("mix", 60_000, 4_000), 9);
    let capture = Capture::Bytes(bytes);
    let request = Request { sample: Some(10), ..request() };
    agrees_everywhere("sampled", &capture, &request, &SIZES[2..], 0);
    let outcome = run(&reference(Request { seed: 77, ..request.clone() }), &capture);
    assert_eq!(digest(&outcome), digest(&run(&reference(request), &capture)));
    let handled = outcome.report.packets.handled;
    assert!((5_000..7_000).contains(&handled), "{handled}");
    assert_eq!(outcome.received, truth.packets);
    assert_eq!(outcome.ledger.dropped()["not_sampled"], truth.packets - handled);
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
    let request = Request { filter, tunnels: Tunnels::Both, ..request() };
    agrees_everywhere("selected", &capture, &request, &SIZES[2..], 0);
    let outcome = run(&reference(request), &capture);
    let left_out = outcome.ledger.dropped()["filtered"];
    assert!((1_000..truth.packets - 1_000).contains(&left_out), "{left_out}");
    assert_eq!(outcome.received, truth.packets);
    assert!(outcome.losses().is_empty(), "what was left out on purpose is no loss");
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

    fn on_burst(&mut self, burst: &[PacketRecord], outbox: &mut impl Outbox<Message>) {
        match self.countdown {
            Some(n) if n < burst.len() as u64 => {
                let (before, rest) = burst.split_at(n as usize);
                self.inner.on_burst(before, outbox);
                self.inner.on_burst(&rest[1..], outbox);
                self.countdown = None;
            }
            _ => {
                self.countdown = self.countdown.map(|n| n - burst.len() as u64);
                self.inner.on_burst(burst, outbox);
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
        let app = Leaky(ringtap_plan::app(&plan, &paths, Outputs::default()), lost);
        let watch = Watch::new();
        let outcome = ringtap_plan::run_app(&plan, &app, &paths, capture.open(), &watch).unwrap();
        assert_ne!(digest(&outcome), digest(&expected));
        assert_eq!(outcome.ledger.residual(), 1, "{:?}", outcome.ledger);
    }
}

//! Helpers of the product tests: captures in memory, plans, runs.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use ringtap_engine::{Machine, Watch};
use ringtap_flow::{FlowRecord, RecordSink, Sinks};
use ringtap_io::capture::{Files, Input, PcapWriter};
use ringtap_monitor::{Outcome, Outputs};
use ringtap_ring::Kind as Ring;
use ringtap_skeleton::Skeleton;
use ringtap_traffic::{FlowRules, Generator, Profile, RecordTruth, Truth};
use ringtap_wire::LinkType;

/// The folder of real captures next to the project. Prints `SKIPPED` if there is none.
pub fn traces() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/traces"));
    if folder.join("MANIFEST.tsv").exists() {
        return Some(folder);
    }
    println!("SKIPPED: no folder of real captures next to the project (shared/traces)");
    None
}

/// The bundled capture.
pub fn office() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/office.pcap"))
}

/// A named profile with this number of packets and flows.
pub fn profile(name: &str, packets: u64, flows: u64) -> Profile {
    let mut profile = Profile::named(name).expect("a named profile");
    profile.packets = packets;
    profile.flows = flows;
    profile
}

/// A generated capture in memory, and its ground truth.
pub fn generate(profile: &Profile, seed: u64) -> (Vec<u8>, Truth) {
    generate_as(profile, seed, |frame| frame.to_vec())
}

/// Like [`generate`], with every IP packet encapsulated in IP between two hosts.
pub fn generate_tunnelled(profile: &Profile, seed: u64) -> (Vec<u8>, Truth) {
    generate_as(profile, seed, |frame| {
        let (link, packet) = frame.split_at(14);
        // The length of the IP header, because padding may follow the packet.
        let length = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let (protocol, len) = match link[12..] {
            [0x08, 0x00] => (4, length(2)),
            [0x86, 0xdd] => (41, 40 + length(4)),
            _ => return frame.to_vec(),
        };
        let len = (20 + len).to_be_bytes();
        let header = [0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, protocol, 0, 0];
        [&link[..12], &[8, 0], &header, &[10, 255, 0, 1, 10, 255, 0, 2], packet].concat()
    })
}

/// Like [`generate`], with each frame replaced by `make(frame)`.
fn generate_as(profile: &Profile, seed: u64, make: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<u8>, Truth) {
    let mut generator = Generator::new(profile, seed).expect("a valid profile");
    (write(&mut generator, make), generator.truth())
}

/// A generated capture in memory, and the flow records that a meter with these rules must export.
pub fn metered(profile: &Profile, seed: u64, rules: FlowRules) -> (Vec<u8>, Vec<RecordTruth>) {
    let mut generator = Generator::new(profile, seed).expect("a valid profile");
    generator.meter(rules);
    (write(&mut generator, <[u8]>::to_vec), generator.records())
}

fn write(generator: &mut Generator, make: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType(1), u32::MAX);
    while let Some(frame) = generator.next() {
        let made = make(frame.data);
        let longer = (made.len() - frame.data.len()) as u32;
        writer.write(frame.ts_ns, frame.original_len + longer, &made).expect("memory takes it");
    }
    writer.flush().expect("memory takes it");
    drop(writer);
    bytes
}

/// A capture that can be opened repeatedly.
#[derive(Clone)]
pub enum Capture {
    /// A file.
    File(PathBuf),
    /// A capture in memory.
    Bytes(Vec<u8>),
}

impl Capture {
    /// Opens it.
    pub fn open(&self) -> Files {
        match self {
            Self::File(path) => Files::new(vec![Input::Path(path.clone())]),
            Self::Bytes(bytes) => Files::from_reader("memory", Cursor::new(bytes.clone())),
        }
    }
}

/// A plan of the monitor.
pub type Plan = ringtap_engine::Plan<ringtap_monitor::Options>;

/// The options of a run and of the monitor.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub run: ringtap_engine::Options,
    pub app: ringtap_monitor::Options,
}

impl Request {
    /// The request with changed options of the run.
    pub fn run(mut self, change: impl FnOnce(&mut ringtap_engine::Options)) -> Self {
        change(&mut self.run);
        self
    }

    /// The request with changed options of the monitor.
    pub fn app(mut self, change: impl FnOnce(&mut ringtap_monitor::Options)) -> Self {
        change(&mut self.app);
        self
    }

    /// The plan for the request on this machine.
    pub fn plan(self) -> Plan {
        Plan::new(self.run, self.app, &Machine::this()).expect("a valid request")
    }
}

/// The default request with the performance of TCP, statistics of packets, a digest and a fixed seed.
pub fn request() -> Request {
    Request::default().run(|run| run.seed = 42).app(|app| {
        app.digest = true;
        app.analyses.tcp = true;
        app.analyses.statistics = true;
        app.statistics_octets = 100;
        app.analyses.passive_dns = true;
    })
}

/// The plan of the single-threaded reference.
pub fn reference(request: Request) -> Plan {
    request.run(|run| run.skeleton = Some(Skeleton::Reference)).plan()
}

/// A plan with a given arrangement. `shape`: number of queues, and of workers of each; `size`:
/// capacity and batch of the rings. A multi-queue has one worker per queue.
pub fn parallel(
    request: Request,
    skeleton: Skeleton,
    shape: (usize, usize),
    ring: Ring,
    size: (usize, usize),
) -> Plan {
    let arrange = |run: &mut ringtap_engine::Options| {
        run.skeleton = Some(skeleton);
        run.queues = Some(shape.0);
        run.workers = (skeleton != Skeleton::MultiQueue).then_some(shape.1);
        (run.ring, run.ring_capacity, run.ring_batch) = (ring, size.0, size.1);
    };
    request.run(arrange).plan()
}

/// All skeletons but the reference.
pub fn skeletons() -> impl Iterator<Item = Skeleton> + Clone {
    Skeleton::ALL.into_iter().filter(|&skeleton| skeleton != Skeleton::Reference)
}

/// Runs a plan; panics if a packet is unaccounted for.
pub fn run(plan: &Plan, capture: &Capture) -> Outcome {
    run_with(plan, capture, Outputs::default())
}

/// Like [`run`], with sinks for records and alerts.
pub fn run_with(plan: &Plan, capture: &Capture, outputs: Outputs) -> Outcome {
    let outcome = ringtap_monitor::run(plan, capture.open(), outputs, &Watch::new())
        .expect("a successful run");
    assert_eq!(outcome.run.ledger.residual(), 0, "{:?}", outcome.run.ledger);
    outcome
}

/// Outputs that collect `make(record)` of each flow record of all `workers`, and the collection.
pub fn gather<T: Send + 'static>(
    workers: usize,
    make: impl Fn(&FlowRecord) -> T + Clone + Send + 'static,
) -> (Outputs, Arc<Mutex<Vec<T>>>) {
    struct Gather<T, F>(Arc<Mutex<Vec<T>>>, F);
    impl<T: Send, F: Fn(&FlowRecord) -> T + Send> RecordSink for Gather<T, F> {
        fn take(&mut self, record: &FlowRecord) {
            self.0.lock().expect("no test panicked").push((self.1)(record));
        }
    }
    let gathered = Arc::new(Mutex::new(Vec::new()));
    let sink = || Box::new(Gather(Arc::clone(&gathered), make.clone())) as Box<dyn RecordSink>;
    let sinks = (0..workers).map(|_| Sinks { records: Some(sink()), ..Sinks::default() }).collect();
    (Outputs { sinks, ..Outputs::default() }, gathered)
}

/// The digest of a run.
pub fn digest(outcome: &Outcome) -> &str {
    outcome.digest.as_deref().expect("a plan with a digest")
}

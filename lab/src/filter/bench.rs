//! The published benchmark: runs a mix of control and data packets through a design and measures
//! the time.
//!
//! The packets are generated before the clock starts. The warm-up packets take the same path before
//! the clock starts.

use std::sync::OnceLock;

use crate::clock;
use crate::filter::paper::{Paper, PaperSettings};
use crate::filter::sharded::Sharded;
use crate::filter::traffic::{Generator, Mix};
use crate::filter::{Outcome, Packet, Settings, oracle};
use ringtap_base::Usage;
use ringtap_filter::Policy;
use ringtap_ring::Kind;
use ringtap_skeleton::{RunError, RunOptions, Seating, ShardMap, Skeleton, free_cores, run};

use crate::filter::{Distribution, Work};

/// A design of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// The serial implementation that defines the correct result; one thread, no queues.
    Oracle,
    /// A shared table with striped locks, and LRU caches.
    Paper,
    /// Ours: no mutable state is shared.
    Sharded,
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Bench {
    /// Published mix, 1 to 8.
    pub mix: usize,
    /// Packets after the warm-up.
    pub packets: usize,
    /// Workers: 1 runs on one thread, without rings, unless there are several cores.
    pub workers: usize,
    /// The design.
    pub design: Design,
    /// How packets are assigned to workers.
    pub distribution: Distribution,
    /// Entries of each worker's cache, in the paper's design.
    pub cache: usize,
    /// Policy for packets without a rule.
    pub policy: Policy,
    /// Work for each packet that passes.
    pub work: Work,
    /// Maximum number of packets between dispatch and verdict.
    pub in_flight: usize,
    /// The core of the distributor and of each worker in turn; empty: the kernel chooses.
    pub cores: Vec<usize>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The number of the mix is not in 1 to 8.
    #[error("unknown mix {0}: use mixes 1 to 8")]
    Mix(usize),
    /// A thread failed, or the number of workers is not supported.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The result of a run.
#[derive(Debug)]
pub struct Measured {
    /// All verdicts and the histogram, including those of the warm-up.
    pub outcome: Outcome,
    /// Packets of the warm-up.
    pub warm_up: u64,
    /// Data packets whose verdict was in a cache; `None` of a design without caches.
    pub hits: Option<u64>,
    /// Processor time of the thread that used most after the warm-up; `None` of a design that does not count it.
    pub busiest_s: Option<f64>,
    /// Seconds from the first packet after the warm-up to the end.
    pub seconds: f64,
}

/// Runs the benchmark once.
pub fn measure(bench: &Bench) -> Result<Measured, BenchError> {
    let mix = Mix::published(bench.mix).ok_or(BenchError::Mix(bench.mix))?;
    let mut generator = Generator::new(mix);
    (0..mix.warm_up()).for_each(|_| {
        generator.control();
    });
    let packets: Vec<Packet> = generator.take(bench.packets).collect();
    let mut warm_up = Generator::new(mix);
    let started = OnceLock::new();
    let start = std::iter::from_fn(|| {
        started.get_or_init(|| (Usage::now().wall_s, clock::thread_ns()));
        None
    });
    let ended = OnceLock::new();
    let end = std::iter::from_fn(|| {
        ended.get_or_init(clock::thread_ns);
        None
    });
    let stream = (0..mix.warm_up())
        .map(|_| Packet::Control(warm_up.control()))
        .chain(start)
        .chain(packets.iter().copied())
        .chain(end);
    let settings = Settings {
        addresses: mix.addresses(),
        policy: bench.policy,
        work: bench.work,
        distribution: bench.distribution,
        in_flight: bench.in_flight,
    };
    let (outcome, caches) = decide(bench, settings, stream)?;
    let (began_s, began_ns) = started.get().copied().unwrap_or_default();
    let seconds = Usage::now().wall_s - began_s;
    let distributor_s = ended.get().map_or(0, |ended_ns| ended_ns - began_ns) as f64 * 1e-9;
    Ok(Measured {
        outcome,
        warm_up: mix.warm_up() as u64,
        hits: caches.map(|(hits, _)| hits),
        busiest_s: caches.map(|(_, worker_s)| worker_s.max(distributor_s)),
        seconds,
    })
}

/// The outcome; of the paper's design also the hits of its caches, and the processor time of its busiest worker.
fn decide(
    bench: &Bench,
    settings: Settings,
    stream: impl Iterator<Item = Packet> + Send,
) -> Result<(Outcome, Option<(u64, f64)>), BenchError> {
    let workers = bench.workers;
    let is_alone = workers == 1 && bench.cores.len() < 2;
    let skeleton = if is_alone { Skeleton::Reference } else { Skeleton::Farm };
    let seating = match bench.cores.len() {
        0 => Seating::beside(workers, free_cores()),
        cores => Seating { pin: bench.cores.clone(), ..Seating::apart(workers, cores) },
    };
    let options = RunOptions {
        shards: ShardMap::even(workers),
        ring: Kind::default(),
        capacity: 4096,
        batch: 1,
        report_capacity: 64,
        seating,
    };
    Ok(match bench.design {
        Design::Oracle => {
            (oracle::run(stream, settings.addresses, settings.policy, settings.work), None)
        }
        Design::Paper => {
            let paper = PaperSettings { cache: bench.cache, ..PaperSettings::default() };
            let app = Paper::new(settings, paper, None);
            let report = run(skeleton, &app, vec![app.feed(stream)], &options)?.report;
            (report, Some((app.hits(), app.busiest_s())))
        }
        Design::Sharded => {
            let app = Sharded::new(settings, None);
            (run(skeleton, &app, vec![app.feed(stream)], &options)?.report, None)
        }
    })
}

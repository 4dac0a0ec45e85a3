//! The published benchmark: a mix of control and data packets through a design, and how fast.
//!
//! The packets of a run are made before its clock starts, and the warm-up passes by the same path before it starts, too.
//! See `ringtap_filter` for what the packets, designs and outcomes are.

use std::sync::OnceLock;

use crate::filter::paper::{Paper, PaperSettings};
use crate::filter::sharded::Sharded;
use crate::filter::traffic::{Generator, Mix};
use crate::filter::{Outcome, Packet, Settings, oracle};
use ringtap_base::Usage;
use ringtap_filter::Policy;
use ringtap_ring::Kind;
use ringtap_skeleton::{RunError, RunOptions, Seating, ShardMap, Skeleton, free_cores, run};

use crate::filter::{Distribution, Work};

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// The serial reading that defines the right answer; one thread, no queues.
    Oracle,
    /// A shared table with striped locks, and caches of the least recently used.
    Paper,
    /// Ours: nothing mutable is shared.
    Sharded,
}

/// What shall run.
#[derive(Clone, Copy, Debug)]
pub struct Bench {
    /// 1 to 8.
    pub mix: usize,
    /// Packets behind the warm-up.
    pub packets: usize,
    /// Workers: 1 runs on one thread, without rings.
    pub workers: usize,
    /// Who decides.
    pub design: Design,
    /// Who gets which packet.
    pub distribution: Distribution,
    /// Entries of each worker's cache, in the paper's design.
    pub cache: usize,
    /// What happens to packets that nothing was said about.
    pub policy: Policy,
    /// What is done for packets that pass.
    pub work: Work,
    /// Packets between dispatch and verdict, at the most.
    pub in_flight: usize,
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The published mixes are eight.
    #[error("there are mixes 1 to 8, not {0}")]
    Mix(usize),
    /// A thread failed, or so many workers are not possible.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A figure.
#[derive(Debug)]
pub struct Measured {
    /// All verdicts, and the histogram; of the warm-up's packets, too.
    pub outcome: Outcome,
    /// Packets of the warm-up.
    pub warm_up: u64,
    /// From the first packet behind the warm-up to the end.
    pub seconds: f64,
}

/// Runs it once.
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
        started.get_or_init(|| Usage::now().wall_s);
        None
    });
    let stream = (0..mix.warm_up())
        .map(|_| Packet::Control(warm_up.control()))
        .chain(start)
        .chain(packets.iter().copied());
    let settings = Settings {
        addresses: mix.addresses(),
        policy: bench.policy,
        work: bench.work,
        distribution: bench.distribution,
        in_flight: bench.in_flight,
    };
    let outcome = decide(bench, settings, stream)?;
    let seconds = Usage::now().wall_s - started.get().copied().unwrap_or_default();
    Ok(Measured { outcome, warm_up: mix.warm_up() as u64, seconds })
}

fn decide(
    bench: &Bench,
    settings: Settings,
    stream: impl Iterator<Item = Packet> + Send,
) -> Result<Outcome, BenchError> {
    let workers = bench.workers;
    let skeleton = if workers == 1 { Skeleton::Reference } else { Skeleton::Farm };
    let options = RunOptions {
        shards: ShardMap::even(workers),
        ring: Kind::default(),
        capacity: 4096,
        batch: 1,
        report_capacity: 64,
        seating: Seating::beside(workers, free_cores()),
    };
    Ok(match bench.design {
        Design::Oracle => oracle::run(stream, settings.addresses, settings.policy, settings.work),
        Design::Paper => {
            let paper = PaperSettings { cache: bench.cache, ..PaperSettings::default() };
            let app = Paper::new(settings, paper, None);
            run(skeleton, &app, vec![app.feed(stream)], &options)?.report
        }
        Design::Sharded => {
            let app = Sharded::new(settings, None);
            run(skeleton, &app, vec![app.feed(stream)], &options)?.report
        }
    })
}

//! Benchmark: packets per second of each mix, for the serial oracle, the paper's design and ours.
//!
//! ```text
//! mixes [--packets N] [--rounds N] [--mixes 1,2,3] [--works off,serial] [--in-flight N] [--cache N] [--default allow]
//! ```
//!
//! Packets are generated, and warm-up packets pass, before the clock starts. Candidates take turns.
//! Each figure is the median of the rounds. Every outcome is compared with the oracle's.
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::error::Error;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ringtap_filter::Policy;
use ringtap_lab::filter::paper::{Paper, PaperSettings};
use ringtap_lab::filter::sharded::Sharded;
use ringtap_lab::filter::traffic::{Generator, Mix};
use ringtap_lab::filter::{Distribution, Outcome, Packet, Settings, Work, oracle};
use ringtap_ring::Kind;
use ringtap_skeleton::{RunOptions, Seating, ShardMap, Skeleton, run};

type Failure = Box<dyn Error>;

#[derive(Clone, Copy)]
enum Design {
    Oracle,
    Paper,
    Sharded,
}

#[derive(Clone, Copy)]
struct Candidate {
    name: &'static str,
    design: Design,
    skeleton: Skeleton,
    workers: usize,
    distribution: Distribution,
}

const CANDIDATES: [Candidate; 7] = {
    use Distribution::{Address, Random};
    use Skeleton::{Farm, Reference};
    const fn candidate(
        name: &'static str,
        design: Design,
        skeleton: Skeleton,
        workers: usize,
        distribution: Distribution,
    ) -> Candidate {
        Candidate { name, design, skeleton, workers, distribution }
    }
    [
        candidate("oracle", Design::Oracle, Reference, 1, Address),
        candidate("paper 1 core", Design::Paper, Reference, 1, Address),
        candidate("ours 1 core", Design::Sharded, Reference, 1, Address),
        candidate("paper 2 workers", Design::Paper, Farm, 2, Address),
        candidate("ours 2 workers", Design::Sharded, Farm, 2, Address),
        candidate("paper 2, random", Design::Paper, Farm, 2, Random),
        candidate("ours 2, random", Design::Sharded, Farm, 2, Random),
    ]
};

/// The packets and settings of one mix; every candidate processes them in every round.
struct Stream<'a> {
    mix: Mix,
    packets: &'a [Packet],
    settings: Settings,
    /// Entries of a worker's cache.
    cache: usize,
}

impl Candidate {
    fn run(&self, stream: &Stream<'_>) -> Result<(Duration, Outcome), Failure> {
        let started = OnceLock::new();
        let mut warm_up = Generator::new(stream.mix);
        let start = std::iter::from_fn(|| {
            #[expect(clippy::disallowed_methods, reason = "the time is what is measured")]
            started.get_or_init(Instant::now);
            None
        });
        let packets = (0..stream.mix.warm_up())
            .map(|_| Packet::Control(warm_up.control()))
            .chain(start)
            .chain(stream.packets.iter().copied());
        let settings = Settings { distribution: self.distribution, ..stream.settings };
        let cores = self.workers;
        let options = RunOptions {
            shards: ShardMap::even(self.workers),
            ring: Kind::default(),
            capacity: 4096,
            batch: 1,
            report_capacity: 64,
            seating: Seating::beside(self.workers, cores),
        };
        let outcome = match self.design {
            Design::Oracle => {
                oracle::run(packets, settings.addresses, settings.policy, settings.work)
            }
            Design::Paper => {
                let paper = PaperSettings { cache: stream.cache, ..PaperSettings::default() };
                let app = Paper::new(settings, paper, None);
                run(self.skeleton, &app, vec![app.feed(packets)], &options)?.report
            }
            Design::Sharded => {
                let app = Sharded::new(settings, None);
                run(self.skeleton, &app, vec![app.feed(packets)], &options)?.report
            }
        };
        let took = started.get().map(Instant::elapsed).ok_or("the packets were never read")?;
        Ok((took, outcome))
    }
}

struct Options {
    packets: usize,
    rounds: usize,
    mixes: Vec<usize>,
    works: Vec<Work>,
    in_flight: usize,
    cache: usize,
    policy: Policy,
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    println!("million packets/s, medians of {} rounds; ×: relative to the oracle", options.rounds);
    for work in &options.works {
        for &number in &options.mixes {
            let mix = Mix::published(number)
                .ok_or_else(|| format!("unknown mix {number}: use 1 to 8"))?;
            let mut generator = Generator::new(mix);
            (0..mix.warm_up()).for_each(|_| {
                generator.control();
            });
            // With work, the number of packets for which a serial run takes about half a second.
            let count = match work {
                Work::Serial | Work::Interleaved | Work::Simd => (3e8 / mix.work) as usize,
                Work::Jump | Work::Off => options.packets,
            };
            let packets: Vec<Packet> = generator.take(count).collect();
            let settings = Settings {
                work: *work,
                policy: options.policy,
                in_flight: options.in_flight,
                ..Settings::new(mix.addresses())
            };
            let stream = Stream { mix, packets: &packets, settings, cache: options.cache };
            let mut times = [const { Vec::new() }; CANDIDATES.len()];
            let mut expected: Option<Outcome> = None;
            for _ in 0..options.rounds {
                for (candidate, times) in CANDIDATES.iter().zip(&mut times) {
                    let (took, outcome) = candidate.run(&stream)?;
                    times.push(took);
                    if *expected.get_or_insert_with(|| outcome.clone()) != outcome {
                        return Err(format!(
                            "{}: the outcome differs from the oracle's",
                            candidate.name
                        )
                        .into());
                    }
                }
            }
            print_mix(number, *work, count, times);
        }
    }
    Ok(())
}

fn print_mix(number: usize, work: Work, count: usize, times: [Vec<Duration>; CANDIDATES.len()]) {
    let rates = times.map(|mut times| {
        times.sort_unstable();
        count as f64 / times[times.len() / 2].as_secs_f64() / 1e6
    });
    println!("mix {number}, work {work}, {count} packets");
    for (candidate, rate) in CANDIDATES.iter().zip(rates) {
        println!("  {:16} {rate:9.3}  × {:.2}", candidate.name, rate / rates[0]);
    }
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        packets: 4_000_000,
        rounds: 5,
        mixes: (1..=8).collect(),
        works: vec![Work::Off, Work::Serial],
        in_flight: 256,
        cache: 1024,
        policy: Policy::Deny,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let list = || value.split(',');
        match flag.as_str() {
            "--packets" => options.packets = value.parse()?,
            "--rounds" => options.rounds = value.parse()?,
            "--mixes" => options.mixes = list().map(str::parse).collect::<Result<_, _>>()?,
            "--works" => options.works = list().map(str::parse).collect::<Result<_, _>>()?,
            "--cache" => options.cache = value.parse()?,
            "--in-flight" => options.in_flight = value.parse()?,
            "--default" => {
                options.policy = match value.as_str() {
                    "allow" => Policy::Allow,
                    "deny" => Policy::Deny,
                    _ => {
                        return Err(
                            format!("invalid --default {value:?}: use allow or deny").into()
                        );
                    }
                };
            }
            _ => return Err(format!("unknown flag {flag}").into()),
        }
    }
    Ok(options)
}

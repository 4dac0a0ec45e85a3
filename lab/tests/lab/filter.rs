//! Tests of the packet filter's designs: with both distributions, all mixes and several numbers of
//! workers, every verdict and the histogram equal those of the serial oracle.

use std::sync::Arc;

use ringtap_filter::Policy;
use ringtap_lab::filter::history::{Event, Judgement, Recorder, check};
use ringtap_lab::filter::paper::{Paper, PaperSettings};
use ringtap_lab::filter::sharded::Sharded;
use ringtap_lab::filter::traffic::{Generator, Mix};
use ringtap_lab::filter::{Distribution, Outcome, Packet, Settings, Work};
use ringtap_lab::filter::{Permissions, oracle};
use ringtap_ring::Kind;
use ringtap_skeleton::{RunError, RunOptions, Seating, ShardMap, Skeleton, run, simulate};

const WORKERS: [usize; 4] = [1, 2, 3, 7];

#[derive(Clone, Copy, Debug)]
enum Design {
    Paper { cache: usize },
    Sharded,
}

/// Whether all cases run, which takes minutes.
fn thorough() -> bool {
    std::env::var_os("RINGTAP_FULL").is_some()
}

/// How steps of the workers are ordered.
#[derive(Clone, Copy, Debug)]
enum Steps {
    /// By real threads.
    Threads,
    /// By a simulation with a seed.
    Simulated(u64),
}

/// A design and the settings of its run.
#[derive(Clone, Debug)]
struct Case {
    design: Design,
    skeleton: Skeleton,
    workers: usize,
    steps: Steps,
    settings: Settings,
    recorder: Option<Arc<Recorder>>,
}

impl Case {
    fn run(&self, packets: impl Iterator<Item = Packet> + Send) -> Result<Outcome, RunError> {
        let (skeleton, recorder) = (self.skeleton, self.recorder.clone());
        let options = RunOptions {
            shards: ShardMap::even(self.workers),
            ring: Kind::default(),
            capacity: 64,
            batch: 1,
            report_capacity: 16,
            seating: Seating::apart(self.workers, 2),
        };
        let run = match (self.design, self.steps) {
            (Design::Paper { cache }, steps) => {
                let paper = PaperSettings { cache, stripes: 16 };
                let app = Paper::new(self.settings, paper, recorder);
                let feeds = vec![app.feed(packets)];
                match steps {
                    Steps::Threads => run(skeleton, &app, feeds, &options),
                    Steps::Simulated(seed) => simulate::run(skeleton, &app, feeds, &options, seed),
                }
            }
            (Design::Sharded, steps) => {
                let app = Sharded::new(self.settings, recorder);
                let feeds = vec![app.feed(packets)];
                match steps {
                    Steps::Threads => run(skeleton, &app, feeds, &options),
                    Steps::Simulated(seed) => simulate::run(skeleton, &app, feeds, &options, seed),
                }
            }
        };
        Ok(run?.report)
    }

    fn check(&self, mix: usize, packets: &[Packet], expected: &Outcome) {
        let found = self.run(packets.iter().copied());
        let found = found.unwrap_or_else(|error| panic!("mix {mix}, {self:?}: {error}"));
        let differs = found.first_difference(expected);
        assert_eq!(differs, None, "mix {mix}, {self:?}: a verdict");
        assert_eq!(&found, expected, "mix {mix}, {self:?}");
    }
}

fn settings(mix: usize, policy: Policy, work: Work) -> Settings {
    let addresses = Mix::published(mix).expect("a published mix").addresses();
    Settings { policy, work, ..Settings::new(addresses) }
}

/// 2,000 packets of warm-up and then data of a mix, `count` packets in all.
fn packets(mix: usize, seed: usize, count: usize) -> Vec<Packet> {
    let mut generator = Generator::new(Mix::published(mix).expect("a published mix"));
    let warm_up: Vec<_> = (0..2_000).map(|_| Packet::Control(generator.control())).collect();
    warm_up.into_iter().chain(generator.skip(997 * seed)).take(count).collect()
}

fn expected(packets: &[Packet], settings: &Settings) -> Outcome {
    let Settings { addresses, policy, work, .. } = *settings;
    oracle::run(packets.iter().copied(), addresses, policy, work)
}

/// All designs, distributions and numbers of workers.
fn all(settings: Settings, steps: Steps, mut check: impl FnMut(Case)) {
    for design in [Design::Paper { cache: 32 }, Design::Paper { cache: 16_384 }, Design::Sharded] {
        for distribution in Distribution::ALL {
            for workers in WORKERS.into_iter().filter(|workers| thorough() || *workers != 2) {
                let settings = Settings { distribution, ..settings };
                let (skeleton, recorder) = (Skeleton::Farm, None);
                check(Case { design, skeleton, workers, steps, settings, recorder });
            }
        }
    }
}

#[test]
fn with_threads_every_verdict_equals_the_oracles() {
    for mix in 1..=8 {
        let seeds = [(0, Policy::Deny), (1, Policy::Allow), (2, Policy::Deny)];
        let (first, step) = if thorough() { (0, 1) } else { (mix % seeds.len(), seeds.len()) };
        for (seed, policy) in seeds.into_iter().skip(first).step_by(step) {
            let packets = packets(mix, seed, 12_000);
            let settings = settings(mix, policy, Work::Jump);
            let expected = expected(&packets, &settings);
            all(settings, Steps::Threads, |case| case.check(mix, &packets, &expected));
        }
    }
}

#[test]
fn in_random_orders_of_steps_every_verdict_equals_the_oracles() {
    for mix in 1..=8 {
        for seed in 0..4 {
            let packets = packets(mix, seed, 5_000);
            let policy = [Policy::Deny, Policy::Allow][seed % 2];
            let in_flight = [256, 2, 30, 1_000][seed];
            let settings = Settings { in_flight, ..settings(mix, policy, Work::Off) };
            let expected = expected(&packets, &settings);
            let steps = Steps::Simulated(seed as u64);
            all(settings, steps, |case| case.check(mix, &packets, &expected));
        }
    }
}

#[test]
fn with_every_skeleton_and_work_every_verdict_equals_the_oracles() {
    let packets = packets(2, 0, 4_000);
    for skeleton in Skeleton::ALL {
        for work in Work::ALL {
            let settings = settings(2, Policy::Allow, work);
            let expected = expected(&packets, &settings);
            all(settings, Steps::Threads, |case| {
                // With a single feed these two skeletons have one worker.
                let single = matches!(skeleton, Skeleton::Reference | Skeleton::MultiQueue);
                if case.workers == 1 || !single {
                    Case { skeleton, ..case }.check(2, &packets, &expected);
                }
            });
        }
    }
}

/// Many conflicting changes: few addresses, and half of the packets are control packets.
#[test]
fn changes_of_few_addresses_take_effect_in_order() {
    let mix = Mix {
        addresses_log: 4,
        trains_log: 4,
        control_fraction: 0.5,
        banned_fraction: 0.4,
        accepting_fraction: 0.5,
        ..Mix::published(1).unwrap()
    };
    let packets: Vec<_> = Generator::new(mix).take(20_000).collect();
    let settings = Settings { work: Work::Off, ..Settings::new(mix.addresses()) };
    let expected = expected(&packets, &settings);
    assert!(expected.accepted > 1_000 && expected.refused > 1_000);
    for steps in [Steps::Threads, Steps::Simulated(1), Steps::Simulated(2)] {
        all(settings, steps, |case| case.check(0, &packets, &expected));
    }
}

#[test]
fn histories_on_threads_are_linearizable() {
    for mix in [1, 4] {
        let packets = packets(mix, 0, 6_000);
        let settings = settings(mix, Policy::Allow, Work::Jump);
        all(settings, Steps::Threads, |case| {
            let recorder = Arc::new(Recorder::new(packets.len()));
            let case = Case { recorder: Some(Arc::clone(&recorder)), ..case };
            let outcome = case.run(packets.iter().copied()).unwrap();
            let mut history =
                recorder.history(packets.iter().copied(), |number| outcome.passed(number));
            assert_eq!(history.len(), packets.len());
            let fresh = || Permissions::new(settings.addresses, settings.policy);
            let judgement = check(&history, fresh(), 100_000);
            assert!(matches!(judgement, Judgement::Linearizable(_)), "{case:?}: {judgement:?}");
            // A single inverted verdict is detected.
            let index = determined_data(&history).expect("a packet with a determined verdict");
            history[index].passed ^= true;
            let judgement = check(&history, fresh(), 100_000);
            assert!(matches!(judgement, Judgement::Wrong { .. }), "{case:?}: {judgement:?}");
        });
    }
}

/// A data packet with only one possible verdict: among it and the control packets of its addresses,
/// no two were in flight at the same time.
fn determined_data(history: &[Event]) -> Option<usize> {
    let apart =
        |one: &Event, other: &Event| one.returned < other.invoked || other.returned < one.invoked;
    (history.len() / 3..history.len()).rev().find(|&at| {
        let Packet::Data(data) = history[at].packet else { return false };
        let mut own: Vec<_> = history
            .iter()
            .filter(|event| match event.packet {
                Packet::Data(_) => false,
                Packet::Control(c) => [data.source, data.destination].contains(&c.address),
            })
            .collect();
        own.push(&history[at]);
        own.sort_by_key(|event| event.invoked);
        own.windows(2).all(|two| apart(two[0], two[1]))
    })
}

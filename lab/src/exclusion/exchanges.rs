//! Exchanges a second in memory: Interests and Data through one of three designs, by several workers.
//!
//! ```text
//!  round r:   Interests of round r and Data of round r − 1, in turns of 32 each     ─▶ all wait for all ─▶ round r + 1
//!
//!  sharded          an exchange is its owner's, by the first component of the name
//!  locked           Interest and Data are given to workers at random: another one has had the lock before
//! ```
//!
//! A name is /SITE/OBJECT: sites are drawn as [`Popularity`] says, objects are new each time. So every exchange is one
//! of its own, while exchanges of one site share a lock, or a shard: `one-hot` is the burst that no sharding spreads.

use std::sync::{Barrier, Mutex, PoisonError};

use ringtap_base::Usage;
use ringtap_ndn::forwarder::{
    Came, Counters, Face, FaceId, Forwarder, Locked, Prefetching, Settings, Sharded,
};
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewData, NewInterest};
use ringtap_skeleton::on_core;

use ringtap_base::SplitMix;
use ringtap_traffic::Popularity;

/// Packets handed over at once.
const TURN: usize = 32;

/// Rounds whose packets differ; later ones are theirs again.
const ROUNDS: usize = 4;

const ASKS: FaceId = FaceId(1);
const ANSWERS: FaceId = FaceId(2);

/// Packets have nothing said about them.
const PLAIN: Headers = Headers::NONE;

ringtap_base::choices! {
    /// Who takes a packet, and what is shared.
    pub enum Mode: "mode" {
        /// The worker that owns the name; nothing.
        Sharded = "sharded",
        /// Any worker; tables behind locks.
        Locked = "locked",
        /// The same, and locks are asked for ahead.
        LockedPrefetch = "locked-prefetch",
    }
}

/// What shall be measured.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The design.
    pub mode: Mode,
    /// Which sites are asked for how often.
    pub popularity: Popularity,
    /// How many sites there are.
    pub names: u64,
    /// Workers, 1 to 256.
    pub workers: usize,
    /// Cores that workers are pinned to, in turn; none: left to the kernel.
    pub cores: Vec<usize>,
    /// Exchanges at the least; whole rounds are done.
    pub exchanges: usize,
    /// Interests pending at a time, about; a round.
    pub pending: usize,
    /// Locks of the locked designs, 1 to 256.
    pub locks: usize,
    /// Bytes of content of a Data.
    pub payload: usize,
    /// Of names, and of who gets which packet.
    pub seed: u64,
}

/// What was found.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Exchanges done, each an Interest passed on and its Data passed back.
    pub exchanges: u64,
    /// From the first packet to the last.
    pub seconds: f64,
    /// The same by the processor's counter, if that counts cycles.
    pub ticks: u64,
    /// Exchanges of the worker that had most.
    pub most: u64,
}

/// An exchange was lost on the way: the run says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{satisfied} of {exchanges} exchanges were done")]
pub struct Lost {
    satisfied: u64,
    exchanges: u64,
}

/// An Interest and its Data.
type Exchange = (Vec<u8>, Vec<u8>);

/// By round and worker: which exchanges' packets it takes.
type Shares = Vec<Vec<Vec<u32>>>;

/// Makes the packets, and measures.
pub fn measure(trial: &Trial) -> Result<Measured, Lost> {
    let round = trial.pending.clamp(TURN, 1 << 20);
    let rounds = trial.exchanges.div_ceil(round).max(1);
    let exchanges = exchanges(trial, round * ROUNDS.min(rounds));
    // A part of the tables has room for two rounds of the busiest one, whatever the names.
    let settings = |parts: usize| Settings {
        pit_capacity: 2 * busiest(&exchanges, round, parts) * parts,
        cs_capacity: 0,
        cs_bytes: 0,
        dead_nonces: 1 << 16,
        ..Settings::default()
    };
    match trial.mode {
        Mode::Sharded => {
            let workers = trial.workers.clamp(1, 256);
            let mut sharded = Sharded::new(&settings(workers), workers);
            for face in [ASKS, ANSWERS] {
                sharded.set_face(face, Face::NEIGHBOUR);
            }
            // The empty prefix has no component, so it is not too long.
            let _ = sharded.add_route(0, &Name::EMPTY, ANSWERS, 1, &mut nobody);
            let owner = |name: &Name<'_>| sharded.shard_of(name);
            let shares = shares(&exchanges, workers, round, owner);
            let shards = sharded.into_shards().into_iter().map(Mutex::new).collect();
            let design = Design::Shards(shards);
            run(trial, &exchanges, [&shares, &shares], rounds, &design)
        }
        Mode::Locked | Mode::LockedPrefetch => {
            let prefetching = match trial.mode {
                Mode::LockedPrefetch => Prefetching::On,
                _ => Prefetching::Off,
            };
            let locks = trial.locks.clamp(1, 256);
            let locked = Locked::new(&settings(locks), locks, prefetching);
            for face in [ASKS, ANSWERS] {
                locked.set_face(face, Face::NEIGHBOUR);
            }
            let _ = locked.add_route(0, &Name::EMPTY, ANSWERS, 1, &mut nobody);
            let mut random = SplitMix::new(trial.seed ^ 0x5eed);
            let workers = trial.workers.clamp(1, 256);
            let mut any = || {
                let spray = |_: &Name<'_>| random.below(workers as u64) as usize;
                shares(&exchanges, workers, round, spray)
            };
            let (asked, answered) = (any(), any());
            run(trial, &exchanges, [&asked, &answered], rounds, &Design::Locked(locked))
        }
    }
}

fn nobody(_: FaceId, _: &Headers, _: &[u8]) {}

enum Design {
    /// A lock that only its owner takes, once for the run: it hands the shard to the thread.
    Shards(Vec<Mutex<Forwarder>>),
    Locked(Locked),
}

fn exchanges(trial: &Trial, count: usize) -> Vec<Exchange> {
    let mut draw = trial.popularity.draw(trial.names, trial.seed);
    let content = vec![7; trial.payload.min(8_000)];
    let exchange = |number: u64| {
        let mut name = NameBuf::default();
        name.push(format!("site{}", draw.number()).as_bytes());
        name.push(b"object");
        name.push(&number.to_be_bytes());
        let (mut interest, mut data) = (Vec::new(), Vec::new());
        NewInterest::new(name.as_name(), number as u32).write(&mut interest);
        NewData { name: name.as_name(), freshness_ms: None, content: &content }.write(&mut data);
        (interest, data)
    };
    (0..count as u64).map(exchange).collect()
}

/// Exchanges of a round that the busiest of so many parts has: shards and locks have names by the same hash.
fn busiest(exchanges: &[Exchange], round: usize, parts: usize) -> usize {
    let none = Settings {
        pit_capacity: 0,
        cs_capacity: 0,
        cs_bytes: 0,
        dead_nonces: 0,
        ..Settings::default()
    };
    let probe = Sharded::new(&none, parts);
    let shares = shares(exchanges, parts, round, |name| probe.shard_of(name));
    shares.iter().flatten().map(Vec::len).max().unwrap_or(0)
}

/// Shares the exchanges of each round out.
fn shares(
    exchanges: &[Exchange],
    workers: usize,
    round: usize,
    mut owner: impl FnMut(&Name<'_>) -> usize,
) -> Shares {
    let rounds = exchanges.len().div_ceil(round);
    let mut shares = vec![vec![Vec::new(); workers]; rounds];
    for (number, (interest, _)) in exchanges.iter().enumerate() {
        let read = ringtap_ndn::packets::Packet::read(interest);
        let worker = read.map_or(0, |packet| owner(packet.name()));
        shares[number / round][worker.min(workers - 1)].push(number as u32);
    }
    shares
}

/// Starts the workers, and adds up.
fn run(
    trial: &Trial,
    exchanges: &[Exchange],
    [asked, answered]: [&Shares; 2],
    rounds: usize,
    design: &Design,
) -> Result<Measured, Lost> {
    let workers = asked[0].len();
    let (start, spans) = (Barrier::new(workers), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let core = (!trial.cores.is_empty()).then(|| trial.cores[worker % trial.cores.len()]);
            let (start, spans) = (&start, &spans);
            scope.spawn(move || {
                on_core(core, || {
                    let all = Rounds { exchanges, asked, answered, rounds, worker, start };
                    let span = all.work(design);
                    spans.lock().unwrap_or_else(PoisonError::into_inner).push(span);
                });
            });
        }
    });
    let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
    let first = spans.iter().map(|span| span.start_s).fold(f64::MAX, f64::min);
    let last = spans.iter().map(|span| span.end_s).fold(0.0, f64::max);
    let ticks = spans.iter().map(|span| span.ticks).max().unwrap_or(0);
    let most = spans.iter().map(|span| span.asked).max().unwrap_or(0);
    let count: u64 = spans.iter().map(|span| span.asked).sum();
    let mut counters = Counters::default();
    match design {
        Design::Shards(shards) => {
            for shard in shards {
                let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                counters.add(&shard.counters());
            }
        }
        Design::Locked(locked) => counters = locked.counters(),
    }
    if counters.satisfied != count || counters.data_out != count {
        return Err(Lost { satisfied: counters.satisfied, exchanges: count });
    }
    Ok(Measured { exchanges: count, seconds: last - first, ticks, most })
}

/// What one worker did, when.
struct Span {
    start_s: f64,
    end_s: f64,
    ticks: u64,
    asked: u64,
}

/// The rounds of one worker.
struct Rounds<'a> {
    exchanges: &'a [Exchange],
    asked: &'a Shares,
    answered: &'a Shares,
    rounds: usize,
    worker: usize,
    start: &'a Barrier,
}

impl Rounds<'_> {
    fn work(&self, design: &Design) -> Span {
        match design {
            Design::Shards(shards) => {
                let mut own = shards[self.worker].lock().unwrap_or_else(PoisonError::into_inner);
                self.through(|now_ns, burst| own.burst(now_ns, burst, &mut nobody))
            }
            Design::Locked(locked) => {
                self.through(|now_ns, burst| locked.take(now_ns, burst, &mut nobody))
            }
        }
    }

    /// What the worker takes in a round; those that there are packets of come again and again.
    fn share<'a>(&self, shares: &'a Shares, round: Option<usize>) -> &'a [u32] {
        let round = round.filter(|&round| round < self.rounds);
        round.map_or(&[], |round| &shares[round % shares.len()][self.worker])
    }

    fn through(&self, mut take: impl FnMut(u64, &[Came<'_>])) -> Span {
        let mut burst = Vec::with_capacity(2 * TURN);
        let mut asked = 0;
        self.start.wait();
        let (start_s, begin) = (Usage::now().wall_s, ringtap_base::ticks());
        for round in 0..=self.rounds {
            let now_ns = 1 + round as u64 * 10_000_000;
            let new = self.share(self.asked, Some(round));
            let back = self.share(self.answered, round.checked_sub(1));
            asked += new.len() as u64;
            let turns = new.len().div_ceil(TURN).max(back.len().div_ceil(TURN));
            for turn in 0..turns {
                let part = |all: &[u32]| -> std::ops::Range<usize> {
                    (turn * TURN).min(all.len())..((turn + 1) * TURN).min(all.len())
                };
                burst.clear();
                let exchange = |&number: &u32| &self.exchanges[number as usize];
                burst.extend(
                    new[part(new)].iter().map(exchange).map(|(i, _)| (ASKS, &PLAIN, &i[..])),
                );
                burst.extend(
                    back[part(back)].iter().map(exchange).map(|(_, d)| (ANSWERS, &PLAIN, &d[..])),
                );
                take(now_ns, &burst);
            }
            // Data answer what another worker may have asked.
            self.start.wait();
        }
        let (end_s, end) = (Usage::now().wall_s, ringtap_base::ticks());
        Span { start_s, end_s, ticks: end - begin, asked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(mode: Mode, popularity: Popularity, workers: usize) -> Trial {
        Trial {
            mode,
            popularity,
            names: 1 << 12,
            workers,
            cores: Vec::new(),
            exchanges: 5_000,
            pending: 500,
            locks: 16,
            payload: 100,
            seed: 1,
        }
    }

    #[test]
    fn every_design_does_all_exchanges_whatever_the_names() {
        for mode in Mode::ALL {
            for popularity in [Popularity::Uniform, Popularity::Zipf(1.0), Popularity::OneHot] {
                for workers in [1, 2, 3] {
                    let trial = trial(mode, popularity, workers);
                    let found = measure(&trial).unwrap();
                    assert_eq!(found.exchanges, 5_000, "{trial:?}");
                    assert!(found.seconds > 0.0 && found.ticks > 0);
                    let alone =
                        workers == 1 || mode == Mode::Sharded && popularity == Popularity::OneHot;
                    assert_eq!(found.most == 5_000, alone, "{trial:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn modes_are_read_back() {
        assert!(Mode::ALL.iter().all(|mode| mode.name().parse() == Ok(*mode)));
        assert!("lock".parse::<Mode>().unwrap_err().to_string().contains("locked-prefetch"));
    }
}

//! Measures exchanges per second in memory: Interests and Data through one of three designs, with
//! several workers.
//!
//! ```text
//!  round r:   Interests of round r and Data of round r − 1, 32 of each in turn   ─▶ barrier ─▶ round r + 1
//!
//!  shards                  the name selects the worker of an exchange
//!  buckets-owned           the same, in the tables of `buckets`: each worker owns its buckets
//!  buckets-elided          the same as `buckets-owned`, compiled without the locks
//!  buckets, buckets-naive  Interest and Data go to random workers, which share the tables:
//!  global                  often another worker held the lock before
//! ```
//!
//! So `buckets-owned` over `buckets-elided` is the cost of the lock alone, with the same tables and the same packets for
//! each worker. `buckets` over `buckets-owned` is the cost of lines that another core wrote last.
//!
//! A name is /SITE/object/NUMBER. Sites are drawn from [`Popularity`], objects are new each time. So
//! each exchange has a name of its own, and exchanges of one site share a shard. With `one-hot` all
//! exchanges have the same site, which shards by the first component cannot spread.

use std::sync::{Barrier, Mutex, PoisonError};

use ringtap_base::Usage;
use ringtap_ndn::forwarder::design::Access;
use ringtap_ndn::forwarder::{
    Counters, Dispatch, Face, FaceId, Forwarder, Parallel, Received, Settings,
};
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewData, NewInterest};
use ringtap_skeleton::on_core;

use super::locked::{Locked, Sharing};

use ringtap_base::SplitMix;
use ringtap_traffic::Popularity;

/// Packets of each kind per burst.
const TURN: usize = 32;

/// Rounds with different packets; later rounds use the same packets again.
const ROUNDS: usize = 4;

/// Components of a name.
const COMPONENTS: usize = 3;

/// Face of the Interests.
const CONSUMER: FaceId = FaceId(1);
/// Face of the Data.
const PRODUCER: FaceId = FaceId(2);

/// Packets have no link-layer headers.
const PLAIN: Headers = Headers::NONE;

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How the workers share the tables.
    pub mode: Sharing,
    /// Distribution of the sites.
    pub popularity: Popularity,
    /// Number of sites.
    pub names: u64,
    /// Workers, 1 to 256.
    pub workers: usize,
    /// Cores that workers are pinned to, in turn; if empty, workers are not pinned.
    pub cores: Vec<usize>,
    /// Minimum number of exchanges; rounded up to whole rounds.
    pub exchanges: usize,
    /// Interests of a round, and so the approximate number pending at a time.
    pub pending: usize,
    /// Buckets in all, if the tables have buckets.
    pub locks: usize,
    /// Bytes of content of a Data.
    pub payload: usize,
    /// Seed of the names and of the assignment of packets to workers.
    pub seed: u64,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Exchanges done: each an Interest forwarded and its Data returned.
    pub exchanges: u64,
    /// Seconds from the first packet to the last.
    pub seconds: f64,
    /// Ticks of the processor's counter of the slowest worker.
    pub ticks: u64,
    /// Exchanges of the worker that had most.
    pub most: u64,
    /// Locks that another worker held.
    pub waits: u64,
}

/// Some exchanges were lost, so the run yields no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("only {satisfied} of {exchanges} exchanges completed")]
pub struct Lost {
    satisfied: u64,
    exchanges: u64,
}

/// An Interest and its Data.
type Exchange = (Vec<u8>, Vec<u8>);

/// By round and worker: the indices of its exchanges.
type Shares = Vec<Vec<Vec<u32>>>;

/// Builds the packets and runs the trial.
pub fn measure(trial: &Trial) -> Result<Measured, Lost> {
    let round = trial.pending.clamp(TURN, 1 << 20);
    let rounds = trial.exchanges.div_ceil(round).max(1);
    let exchanges = exchanges(trial, round * ROUNDS.min(rounds));
    let workers = trial.workers.clamp(1, 256);
    let mut settings =
        Settings { pit_capacity: 0, cs_bytes: 0, dead_nonces: 1 << 16, ..Settings::default() };
    let (interests, data) = match trial.mode {
        mode if mode.is_owned() => {
            // Shards by the first component, as in the product; buckets by the whole name.
            settings.dispatch_components = if mode == Sharing::Shards { 1 } else { COMPONENTS };
            let dispatch = Dispatch::by_name(&settings, workers);
            let owner = |interest: &[u8]| dispatch.worker_of(CONSUMER, interest);
            let owned = shares(&exchanges, workers, round, owner);
            (owned.clone(), owned)
        }
        _ => {
            let mut random = SplitMix::new(trial.seed ^ 0x5eed);
            let mut shares = || {
                let worker = |_: &[u8]| random.below(workers as u64) as usize;
                shares(&exchanges, workers, round, worker)
            };
            (shares(), shares())
        }
    };
    // Each part of the tables has room for two rounds of the busiest part.
    let busiest = interests.iter().flatten().map(Vec::len).max().unwrap_or(0);
    settings.pit_capacity = 2 * busiest * workers;
    let work = Work { exchanges: &exchanges, interests: &interests, data: &data, rounds };
    match trial.mode {
        Sharing::Shards => work.done_by(trial, Parallel::new(&settings, workers)),
        mode => {
            let (parallel, waits) = Locked::workers(&settings, workers, mode, trial.locks);
            let measured = work.done_by(trial, parallel)?;
            Ok(Measured { waits: waits.sum(), ..measured })
        }
    }
}

/// Discards a packet that the forwarder sends.
fn discard(_: FaceId, _: &Headers, _: &[u8]) {}

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

/// Assigns the exchanges of each round to workers.
fn shares(
    exchanges: &[Exchange],
    workers: usize,
    round: usize,
    mut owner: impl FnMut(&[u8]) -> usize,
) -> Shares {
    let rounds = exchanges.len().div_ceil(round);
    let mut shares = vec![vec![Vec::new(); workers]; rounds];
    for (number, (interest, _)) in exchanges.iter().enumerate() {
        shares[number / round][owner(interest).min(workers - 1)].push(number as u32);
    }
    shares
}

/// The work of a trial.
struct Work<'a> {
    exchanges: &'a [Exchange],
    /// By round and worker, of the Interests and of the Data.
    interests: &'a Shares,
    data: &'a Shares,
    rounds: usize,
}

impl Work<'_> {
    /// Runs the workers and adds up their results.
    fn done_by<A: Access>(
        &self,
        trial: &Trial,
        mut parallel: Parallel<A>,
    ) -> Result<Measured, Lost> {
        for face in [CONSUMER, PRODUCER] {
            parallel.set_face(face, Face::NEIGHBOUR);
        }
        // The only error is a prefix that is too long; the empty prefix is not.
        let _ = parallel.add_route(0, &Name::EMPTY, PRODUCER, 1, &mut discard);
        // A mutex is locked once per run, by its worker; it only moves the worker to the thread.
        let forwarders: Vec<_> = parallel.into_workers().into_iter().map(Mutex::new).collect();
        let Self { exchanges, interests, data, rounds } = *self;
        let workers = interests[0].len();
        let (start, spans) = (Barrier::new(workers), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for (worker, forwarder) in forwarders.iter().enumerate() {
                let core =
                    (!trial.cores.is_empty()).then(|| trial.cores[worker % trial.cores.len()]);
                let (start, spans) = (&start, &spans);
                scope.spawn(move || {
                    on_core(core, || {
                        let all = Rounds { exchanges, interests, data, rounds, worker, start };
                        let span = all.work(forwarder);
                        spans.lock().unwrap_or_else(PoisonError::into_inner).push(span);
                    });
                });
            }
        });
        let spans = spans.into_inner().unwrap_or_else(PoisonError::into_inner);
        let first = spans.iter().map(|span| span.start_s).fold(f64::MAX, f64::min);
        let last = spans.iter().map(|span| span.end_s).fold(0.0, f64::max);
        let ticks = spans.iter().map(|span| span.ticks).max().unwrap_or(0);
        let most = spans.iter().map(|span| span.interests).max().unwrap_or(0);
        let count: u64 = spans.iter().map(|span| span.interests).sum();
        let mut counters = Counters::default();
        for forwarder in forwarders {
            let forwarder = forwarder.lock().unwrap_or_else(PoisonError::into_inner);
            counters.add(&forwarder.counters());
        }
        if counters.satisfied != count || counters.data_out != count {
            return Err(Lost { satisfied: counters.satisfied, exchanges: count });
        }
        Ok(Measured { exchanges: count, seconds: last - first, ticks, most, waits: 0 })
    }
}

/// Start, end and number of Interests of one worker.
struct Span {
    start_s: f64,
    end_s: f64,
    ticks: u64,
    interests: u64,
}

/// The rounds of one worker.
struct Rounds<'a> {
    exchanges: &'a [Exchange],
    interests: &'a Shares,
    data: &'a Shares,
    rounds: usize,
    worker: usize,
    start: &'a Barrier,
}

impl Rounds<'_> {
    fn work(&self, forwarder: &Mutex<Forwarder<impl Access>>) -> Span {
        let mut own = forwarder.lock().unwrap_or_else(PoisonError::into_inner);
        self.run(|now_ns, burst| own.burst(now_ns, burst, &mut discard))
    }

    /// The worker's exchanges of a round; empty for no round and beyond the last. Packets of the
    /// first rounds are reused.
    fn share<'a>(&self, shares: &'a Shares, round: Option<usize>) -> &'a [u32] {
        let round = round.filter(|&round| round < self.rounds);
        round.map_or(&[], |round| &shares[round % shares.len()][self.worker])
    }

    fn run(&self, mut handle: impl FnMut(u64, &[Received<'_>])) -> Span {
        let mut burst = Vec::with_capacity(2 * TURN);
        let mut interests = 0;
        self.start.wait();
        let (start_s, begin) = (Usage::now().wall_s, ringtap_base::ticks());
        for round in 0..=self.rounds {
            let now_ns = 1 + round as u64 * 10_000_000;
            let new = self.share(self.interests, Some(round));
            let back = self.share(self.data, round.checked_sub(1));
            interests += new.len() as u64;
            let turns = new.len().div_ceil(TURN).max(back.len().div_ceil(TURN));
            for turn in 0..turns {
                let part = |all: &[u32]| -> std::ops::Range<usize> {
                    (turn * TURN).min(all.len())..((turn + 1) * TURN).min(all.len())
                };
                burst.clear();
                let exchange = |&number: &u32| &self.exchanges[number as usize];
                burst.extend(
                    new[part(new)].iter().map(exchange).map(|(i, _)| (CONSUMER, &PLAIN, &i[..])),
                );
                burst.extend(
                    back[part(back)].iter().map(exchange).map(|(_, d)| (PRODUCER, &PLAIN, &d[..])),
                );
                handle(now_ns, &burst);
            }
            // Another worker may have forwarded the Interests of the next round's Data.
            self.start.wait();
        }
        let (end_s, end) = (Usage::now().wall_s, ringtap_base::ticks());
        Span { start_s, end_s, ticks: end - begin, interests }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(mode: Sharing, popularity: Popularity, workers: usize) -> Trial {
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
    fn every_design_completes_all_exchanges_for_every_distribution_of_names() {
        for mode in Sharing::ALL {
            for popularity in [Popularity::Uniform, Popularity::Zipf(1.0), Popularity::OneHot] {
                for workers in [1, 2, 3] {
                    let trial = trial(mode, popularity, workers);
                    let found = measure(&trial).unwrap();
                    assert_eq!(found.exchanges, 5_000, "{trial:?}");
                    assert!(found.seconds > 0.0 && found.ticks > 0);
                    let alone =
                        workers == 1 || mode == Sharing::Shards && popularity == Popularity::OneHot;
                    assert_eq!(found.most == 5_000, alone, "{trial:?}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn a_table_without_locks_gets_the_same_exchanges_for_each_worker() {
        for workers in [1, 2, 3] {
            let [locked, elided] = [Sharing::BucketsOwned, Sharing::BucketsElided]
                .map(|mode| measure(&trial(mode, Popularity::Uniform, workers)).unwrap());
            assert_eq!((locked.exchanges, locked.most), (elided.exchanges, elided.most));
            // No other worker uses the buckets.
            assert_eq!((locked.waits, elided.waits), (0, 0));
        }
    }
}

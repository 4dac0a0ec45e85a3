//! Latency of single items, and CPU time of a waiting consumer.
//!
//! ```text
//! ping-pong   a ──item──▶ b ──item──▶ a     half of the round trip; the next one follows at once
//! one way     a ──item──▶ b                 an item every 20 µs; b is already waiting
//! idle        b waits 100 ms for an item    CPU seconds per second
//! ```
//!
//! Times are those of the CPUs' time-stamp counters. Their offset is derived from the ping-pong, on
//! the assumption that the fastest trips in both directions take the same time.

use crate::{
    candidates::{Candidate, Mode, Origin},
    ends::wait_if,
    rounds::Plan,
    trial::{SpinBarrier, on_two_cpus, stolen, timed},
};
use beside::{Random, Rate, child, markdown, quantile};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Bytes per item and capacity in items.
const SHAPE: [usize; 2] = [64, 2_048];
const TRIPS: u64 = 20_000;
/// Trips of blocking candidates, whose ends may sleep at each trip.
const BLOCKING_TRIPS: u64 = 2_000;
/// Items of the one-way measurement.
const ONE_WAY_ITEMS: u64 = 5_000;
const PERIOD: Duration = Duration::from_micros(20);
const IDLE: Duration = Duration::from_millis(100);

/// The measures, in the order in which a child process prints them.
pub const MEASURES: [&str; 5] = [
    "round_trip_half_p50_ns",
    "round_trip_half_p99_ns",
    "one_way_p50_ns",
    "one_way_p99_ns",
    "idle_cpu",
];

/// The figures of one candidate, a row for each round.
pub struct Latency {
    pub candidate: usize,
    pub rounds: Vec<[f64; MEASURES.len()]>,
    /// Why a round has no figures.
    failure: Option<String>,
}

impl Latency {
    fn median(&self, measure: usize) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().map(|round| round[measure]).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, 0.5)
    }
}

/// Measures all candidates with one item per call, except for the paper's ring, which publishes an
/// item only when a batch is full.
pub fn measure(candidates: &[Candidate], plan: &Plan) -> Result<Vec<Latency>, String> {
    let chosen = candidates.iter().enumerate().filter(|(_, c)| {
        matches!(c.mode, Mode::Single | Mode::Blocking) && c.origin != Origin::Paper
    });
    let mut all: Vec<Latency> = chosen
        .map(|(candidate, _)| Latency { candidate, rounds: Vec::new(), failure: None })
        .collect();
    let mut random = Random(plan.seed);
    let mut order: Vec<usize> = (0..all.len()).collect();
    for _ in 0..plan.rounds.div_ceil(2) {
        random.shuffle(&mut order);
        for &index in &order {
            let latency = &mut all[index];
            let [a, b] = plan.cpus.map(|cpu| cpu as u64);
            match child("latency", &[latency.candidate as u64, a, b])
                .and_then(|line| figures(&line))
            {
                Ok(figures) => latency.rounds.push(figures),
                Err(why) => {
                    eprintln!("rings: {}: {why}", candidates[latency.candidate].label());
                    latency.failure = Some(why);
                }
            }
        }
    }
    eprintln!("rings: latency of single items is measured");
    Ok(all)
}

fn figures(line: &str) -> Result<[f64; MEASURES.len()], String> {
    let figures: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    figures.try_into().map_err(|_| format!("invalid latency figures: \"{line}\""))
}

/// A table with a row for each candidate, the fastest first.
pub fn table(candidates: &[Candidate], latencies: &[Latency]) -> String {
    let header =
        ["candidate", "half p50", "half p99", "one way p50", "one way p99", "CPU s/s waiting"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut sorted: Vec<&Latency> = latencies.iter().collect();
    sorted.sort_by(|a, b| a.median(0).total_cmp(&b.median(0)));
    for latency in sorted {
        let mut row = vec![candidates[latency.candidate].heading()];
        row.extend((0..4).map(|measure| format!("{:.0}", latency.median(measure))));
        row.push(Rate(latency.median(4)).to_string());
        rows.push(row);
    }
    let mut text = markdown(&rows);
    for latency in latencies {
        if let Some(why) = &latency.failure {
            let label = candidates[latency.candidate].label();
            text += &format!("\n**{label} failed in a round: {why}**\n");
        }
    }
    text
}

/// Measures one candidate, in this process.
pub fn run(candidate: &Candidate, cpus: [usize; 2]) -> Result<String, String> {
    let stolen_before = stolen(cpus)?;
    let clock = (Instant::now(), ticks());
    let (half, skew) = ping_pong(candidate, cpus)?;
    let one_way = one_way(candidate, cpus, skew)?;
    let nanoseconds = clock.0.elapsed().as_nanos() as f64 / (ticks() - clock.1) as f64;
    let mut figures = Vec::new();
    for mut times in [half, one_way] {
        times.sort_by(f64::total_cmp);
        figures.extend([0.5, 0.99].map(|share| quantile(&times, share) * nanoseconds));
    }
    figures.push(idle(candidate, cpus)?);
    if stolen(cpus)? != stolen_before {
        eprintln!("rings: {}: disturbed by CPU steal time", candidate.label());
    }
    Ok(figures.iter().map(f64::to_string).collect::<Vec<_>>().join(" "))
}

/// Halves of the round trips in ticks, and the offset of the second CPU's counter.
fn ping_pong(candidate: &Candidate, cpus: [usize; 2]) -> Result<(Vec<f64>, f64), String> {
    let [bytes, capacity] = SHAPE;
    let (mut send_there, mut receive_there) = candidate.ends(bytes, capacity, 1);
    let trips = if candidate.mode == Mode::Blocking { BLOCKING_TRIPS } else { TRIPS };
    let (mut send_back, mut receive_back) = candidate.ends(bytes, capacity, 1);
    let [first, second] = on_two_cpus(
        cpus,
        move || {
            let trip = |trip| {
                let start = ticks();
                send_there.send(trip, trip + 1);
                let wrong = receive_back.receive(trip, trip + 1);
                (start, ticks(), wrong)
            };
            (0..trips).map(trip).collect::<Vec<_>>()
        },
        move || {
            let trip = |trip| {
                let wrong = receive_there.receive(trip, trip + 1);
                let here = ticks();
                send_back.send(trip, trip + 1);
                (here, here, wrong)
            };
            (0..trips).map(trip).collect::<Vec<_>>()
        },
    )?;
    if first.iter().chain(&second).any(|trip| trip.2 != 0) {
        return Err("wrong items".to_owned());
    }
    let both = || first.iter().zip(&second);
    let there = both().map(|(a, b)| b.0.wrapping_sub(a.0) as i64).min().unwrap_or(0);
    let back = both().map(|(a, b)| a.1.wrapping_sub(b.0) as i64).min().unwrap_or(0);
    let half = first.iter().map(|trip| (trip.1 - trip.0) as f64 / 2.0).collect();
    Ok((half, (there - back) as f64 / 2.0))
}

/// Ticks from before an item is sent to after it has been read.
fn one_way(candidate: &Candidate, cpus: [usize; 2], skew: f64) -> Result<Vec<f64>, String> {
    let (mut sender, mut receiver) = candidate.ends(SHAPE[0], SHAPE[1], 1);
    let barrier = SpinBarrier::default();
    let other = barrier.clone();
    let [sent, received] = on_two_cpus(
        cpus,
        move || {
            barrier.wait();
            let start = Instant::now();
            let send = |item| {
                let mut idle = 0;
                while start.elapsed() < PERIOD * (item as u32 + 1) {
                    wait_if(true, &mut idle);
                }
                let now = ticks();
                sender.send(item, item + 1);
                (now, 0)
            };
            (0..ONE_WAY_ITEMS).map(send).collect::<Vec<_>>()
        },
        move || {
            other.wait();
            let receive = |item| {
                let wrong = receiver.receive(item, item + 1);
                (ticks(), wrong)
            };
            (0..ONE_WAY_ITEMS).map(receive).collect::<Vec<_>>()
        },
    )?;
    if received.iter().any(|item| item.1 != 0) {
        return Err("wrong items".to_owned());
    }
    let ticks = sent.iter().zip(&received).map(|(s, r)| r.0.wrapping_sub(s.0) as i64 as f64 - skew);
    Ok(ticks.collect())
}

/// CPU seconds per second of a consumer that waits for an item.
fn idle(candidate: &Candidate, cpus: [usize; 2]) -> Result<f64, String> {
    let (mut sender, mut receiver) = candidate.ends(SHAPE[0], SHAPE[1], 1);
    let [_, waited] = on_two_cpus(
        cpus,
        move || {
            timed(|| {
                thread::sleep(IDLE);
                sender.send(0, 1);
                0
            })
        },
        move || timed(|| receiver.receive(0, 1)),
    )?;
    Ok(waited.cpu / waited.wall)
}

/// A counter with the same rate on both CPUs.
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it only reads a counter, which every CPU of this architecture has.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

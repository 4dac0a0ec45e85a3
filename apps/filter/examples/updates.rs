//! Measures a filter whose rules change while it judges packets: verdicts per second, and the time
//! until a change takes effect.
//!
//! ```text
//! updates [--rules N] [--bans N] [--seconds N]
//!
//! single    first, without packets: transactions of one ban, one rule or one removal each
//! data      one thread judges bursts of 256 packets and takes the newest rules between bursts
//! control   the other makes a transaction of bans and unbans every 10 ms, or when the last one is done
//! latency   from the call until the data thread uses the new revision
//! ```
//!
//! A share is statements / (statements + packets): 0 to 24 %, as in the published mixes. Each of
//! three rounds runs every share for `--seconds` (3); figures are medians. With `--seconds 0` only
//! single bans are measured.
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringtap_filter::{Limits, Policy, Reader, RulePublisher, RuleSet};

const BURST: usize = 256;
/// Time from one transaction to the next.
const PERIOD: Duration = Duration::from_millis(10);
const SHARES: [f64; 6] = [0.0, 0.01, 0.04, 0.08, 0.16, 0.24];
const ROUNDS: usize = 3;
/// Transactions of one ban.
const SINGLES: u32 = 201;
/// Addresses that are alternately banned and unbanned.
const POOL: u32 = 50_000;

/// The results of one share in one round.
#[derive(Clone, Default)]
struct Round {
    packets_per_s: f64,
    statements_per_s: f64,
    /// The share that was reached.
    share: f64,
    latencies: Vec<Duration>,
}

fn main() {
    let (rules, bans, seconds) = options();
    // Knuth's MMIX generator of random numbers.
    let mut state = 1_u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let text: String = (0..rules)
        .map(|_| {
            let (from, to) = (draw() & 0xffff_ff00, draw() & 0xffff_0000);
            format!(
                "allow from {}/24 to {}/16\n",
                Ipv4Addr::from_bits(from),
                Ipv4Addr::from_bits(to)
            )
        })
        .collect();
    // Networks of 256 addresses, each once: an odd factor permutes them.
    let networks = (0..bans).map(|n| n.wrapping_mul(0x9e_3779) << 8);
    let banned: String =
        networks.map(|first| format!("ban {}/24\n", Ipv4Addr::from_bits(first))).collect();
    let set = RuleSet::new(Policy::Deny, Limits::default());
    let start = now();
    let set = set.transact(&(text.clone() + &banned)).expect("rules and bans");
    let (took, memory) = (start.elapsed().as_secs_f64(), set.memory_bytes() >> 20);
    println!("{rules} rules, {bans} bans: built in {took:.2} s, {memory} MiB for look-ups");
    singles(&set, &text);
    let packets: Vec<(IpAddr, IpAddr)> = (0..1 << 16)
        .map(|_| (Ipv4Addr::from_bits(draw()).into(), Ipv4Addr::from_bits(draw()).into()))
        .collect();
    if seconds == 0 {
        return;
    }
    let mut found = vec![Vec::new(); SHARES.len()];
    for _ in 0..ROUNDS {
        for (share, found) in SHARES.iter().zip(&mut found) {
            found.push(round(set.clone(), &packets, *share, seconds));
        }
    }
    println!("{rules} rules, one data thread, medians of {ROUNDS} rounds of {seconds} s");
    println!(
        "share requested, reached | statements/s | transactions/s | p50 ms | p99 ms | packets/s | relative to idle"
    );
    let idle = median(found[0].iter().map(|round| round.packets_per_s));
    for (share, rounds) in SHARES.iter().zip(found) {
        let mut latencies: Vec<_> = rounds.iter().flat_map(|round| &round.latencies).collect();
        latencies.sort_unstable();
        let at = |part: f64| {
            let place = (latencies.len() as f64 * part) as usize;
            latencies
                .get(place.min(latencies.len().saturating_sub(1)))
                .map_or(0.0, |one| one.as_secs_f64() * 1e3)
        };
        let rate = median(rounds.iter().map(|round| round.packets_per_s));
        println!(
            "{:>4.0} % {:>5.1} % | {:>9.0} | {:>6.0} | {:>7.2} | {:>7.2} | {:>6.2} M | {:.2}",
            share * 100.0,
            median(rounds.iter().map(|round| round.share)) * 100.0,
            median(rounds.iter().map(|round| round.statements_per_s)),
            median(rounds.iter().map(|round| round.latencies.len() as f64 / seconds as f64)),
            at(0.5),
            at(0.99),
            rate / 1e6,
            rate / idle,
        );
    }
}

/// Prints quantiles of the time of a transaction of one ban, of one rule, and of the removal of one rule of
/// `text`; and the peak of memory.
fn singles(set: &RuleSet, text: &str) {
    for (name, statement) in [("bans", "ban"), ("rules", "deny from")] {
        let one =
            |n: u32| format!("{statement} {}", Ipv4Addr::from_bits(n.wrapping_mul(0x9e37_79b1)));
        singles_of(set, name, (0..SINGLES).map(one));
    }
    let rules: Vec<&str> = text.lines().collect();
    let one =
        |n: usize| Some(format!("remove {}", rules.get(n * (rules.len() / SINGLES as usize))?));
    let peak = ringtap_base::Usage::now().peak_rss_bytes;
    singles_of(set, "removals", (0..SINGLES as usize).filter_map(one));
    let after = ringtap_base::Usage::now().peak_rss_bytes;
    println!(
        "peak of memory: {} MB, and {} MB after the removals",
        peak / 1_000_000,
        after / 1_000_000
    );
}

fn singles_of(set: &RuleSet, name: &str, statements: impl Iterator<Item = String>) {
    let publisher = RulePublisher::new(set.clone(), 0);
    let mut times: Vec<_> = statements
        .map(|text| {
            let start = now();
            publisher.transact(|set| set.transact(&text)).expect("a change");
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    if times.is_empty() {
        return;
    }
    let at = |part: usize| times[part * (times.len() - 1) / 100];
    println!("single {name}: p50 {:.3} ms, p90 {:.3} ms, p99 {:.3} ms", at(50), at(90), at(99));
}

/// Judges packets in one thread and changes bans in this one, for `seconds`.
fn round(set: RuleSet, packets: &[(IpAddr, IpAddr)], share: f64, seconds: u64) -> Round {
    let publisher = RulePublisher::new(set, 1);
    let (judged, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut found = Round::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = Reader::new(&publisher, 0);
            let mut passed = 0_u64;
            for burst in packets.chunks(BURST).cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                drop(reader.renew(&publisher));
                let rules = reader.rules();
                let verdicts = burst.iter().map(|&(from, to)| rules.verdict(from, to).passed);
                passed += verdicts.filter(|&passed| passed).count() as u64;
                judged.fetch_add(burst.len() as u64, Ordering::Relaxed);
            }
            std::hint::black_box(passed);
        });
        let start = now();
        let (mut statements, mut before, mut next) = (0_u64, 0, 0_u32);
        while start.elapsed().as_secs() < seconds {
            let turn = now();
            let packets = judged.load(Ordering::Relaxed);
            let due = ((packets - before) as f64 * share / (1.0 - share)) as u32;
            before = packets;
            if due > 0 {
                let text: String = (0..due.min(POOL))
                    .map(|n| {
                        let place = (next + n) % (2 * POOL);
                        let word = if place < POOL { "ban" } else { "unban" };
                        format!("{word} {}\n", Ipv4Addr::from_bits(0x0a00_0000 + place % POOL * 7))
                    })
                    .collect();
                next = (next + due.min(POOL)) % (2 * POOL);
                let requested = now();
                let revision = publisher.transact(|set| set.transact(&text)).expect("a change");
                while publisher.passed() < revision {
                    thread::yield_now();
                }
                found.latencies.push(requested.elapsed());
                statements += u64::from(due.min(POOL));
            }
            thread::sleep(PERIOD.saturating_sub(turn.elapsed()));
        }
        let took = start.elapsed().as_secs_f64();
        let packets = judged.load(Ordering::Relaxed) as f64;
        done.store(true, Ordering::Relaxed);
        found.packets_per_s = packets / took;
        found.statements_per_s = statements as f64 / took;
        found.share = statements as f64 / (statements as f64 + packets);
    });
    found
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "it measures time")]
fn now() -> Instant {
    Instant::now()
}

fn options() -> (u32, u32, u64) {
    let (mut rules, mut bans, mut seconds) = (10_000, 0, 3);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (flag.as_str(), value) {
            ("--rules", Some(value)) => rules = value as u32,
            ("--bans", Some(value)) => bans = value as u32,
            ("--seconds", Some(value)) => seconds = value,
            _ => panic!("use --rules N, --bans N or --seconds N"),
        }
    }
    (rules, bans, seconds)
}

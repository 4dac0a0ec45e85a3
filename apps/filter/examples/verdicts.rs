//! Verdicts a second with a million rules, their memory, and the time to build them.
//!
//! ```text
//! verdicts [RULES]        default: 1,000,000
//! ```
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::error::Error;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use ringtap_filter::{Limits, Policy, Rule, RuleSet, Span, Statement};

const LOOK_UPS: usize = 1 << 20;
const ROUNDS: usize = 5;

/// Makes the statement of a number.
type Make = fn(u64) -> Statement;

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse())?;
    println!("{count} rules; medians of {ROUNDS} rounds of {LOOK_UPS} look-ups");
    let kinds: [(&str, bool, Make); 6] = [
        ("IPv4 bans", false, |n| Statement::Ban(v4(mix(n), 8))),
        ("IPv4 source ranges to any", false, |n| allow(v4(mix(n), 8), Span::Any)),
        ("IPv4 any to address", false, |n| allow(Span::Any, v4(mix(n), 0))),
        ("IPv4 prefix to prefix", false, |n| allow(v4(mix(n), 12), v4(mix(!n), 12))),
        ("IPv6 source ranges to any", true, |n| allow(v6(mix(n), 72), Span::Any)),
        ("IPv6 prefix to prefix", true, |n| allow(v6(mix(n), 72), v6(mix(!n), 72))),
    ];
    for (name, is_v6, make) in kinds {
        let mut seen = std::collections::HashSet::new();
        let statements: Vec<_> = (0..count)
            .map(make)
            .filter(|statement| seen.insert(statement.to_string()))
            .map(|statement| (1, statement))
            .collect();
        let limits = Limits { memory_bytes: 4 << 30, ..Limits::default() };
        let empty = RuleSet::new(Policy::Deny, limits);
        let start = now();
        let set = empty.apply(&statements)?;
        let build = start.elapsed();
        let pairs: Vec<_> = (0..LOOK_UPS as u64).map(|n| addresses(is_v6, n % count, n)).collect();
        let mut times: Vec<Duration> = Vec::new();
        let mut passed = 0;
        for _ in 0..ROUNDS {
            let start = now();
            passed = pairs.iter().filter(|(from, to)| set.verdict(*from, *to).passed).count();
            times.push(start.elapsed());
            black_box(passed);
        }
        times.sort_unstable();
        let rate = LOOK_UPS as f64 / times[ROUNDS / 2].as_secs_f64() / 1e6;
        let memory = set.memory_bytes() >> 20;
        println!(
            "  {name:26} {:7} built in {:5.2} s, {memory:4} MiB, {rate:6.2} M verdicts/s, {passed} pass",
            statements.len(),
            build.as_secs_f64(),
        );
    }
    Ok(())
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the time is what is measured")]
    Instant::now()
}

fn allow(from: Span, to: Span) -> Statement {
    Statement::Add(Rule { allow: true, from, to })
}

/// A prefix with `hosts` host bits.
fn v4(random: u64, hosts: u32) -> Span {
    let first = (random as u32) >> hosts << hosts;
    Span::V4(first.into(), (first | ((1 << hosts) - 1)).into())
}

/// A prefix in 2000::/3 with `hosts` host bits.
fn v6(random: u64, hosts: u32) -> Span {
    let first = (1 << 125 | u128::from(random) << 61) >> hosts << hosts;
    Span::V6(Ipv6Addr::from_bits(first), Ipv6Addr::from_bits(first | ((1 << hosts) - 1)))
}

/// Within rule `n` in every second turn, elsewhere otherwise.
fn addresses(is_v6: bool, n: u64, turn: u64) -> (IpAddr, IpAddr) {
    let (from, to) =
        if turn.is_multiple_of(2) { (mix(n), mix(!n)) } else { (mix(turn + 7), mix(turn)) };
    let address = |random: u64| -> IpAddr {
        if is_v6 {
            Ipv6Addr::from_bits(1 << 125 | u128::from(random) << 61).into()
        } else {
            Ipv4Addr::from_bits(random as u32).into()
        }
    };
    (address(from), address(to))
}

/// SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

//! `ringtap-ndn load`: sends many Interests, by a window or at a rate, and measures the answers.
//!
//! ```text
//!  names ─▶ Interest with its number as token ─▶ … ─▶ Data with the token ─▶ latency ─▶ Times
//!  window: bounds the Interests in flight     rate: latency counts from an Interest's due time
//! ```

mod pending;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewInterest, Packet, PitToken};
use ringtap_traffic::Draw;

use super::common::{POLL_INTERVAL, fresh_number, lifetime_ms};
use crate::args::{LoadArgs, Names};
use crate::link::Link;
use crate::run::RUN;
use pending::Pending;
use report::Results;
use ringtap_base::Clock;
use ringtap_terminal::Usage;

/// Default windows without and with `--rate`, and the largest window, in Interests.
const WINDOW: usize = 64;
const WINDOW_WITH_RATE: usize = 1 << 16;
const WINDOW_MOST: usize = 1 << 22;

/// The default duration.
const DURATION_NS: u64 = 10_000_000_000;

/// Most Interests sent before answers are read.
const TURN: usize = 32;

struct LoadGenerator<'a> {
    args: &'a LoadArgs,
    window: usize,
    clock: Clock,
    draw: Option<Draw>,
    /// The number of the first name, with unique names.
    base: u64,
    pending: Pending,
    results: Results,
    name: NameBuf,
    wire: Vec<u8>,
}

pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    let window = args.window.unwrap_or(if args.rate.is_some() { WINDOW_WITH_RATE } else { WINDOW });
    if !(1..=WINDOW_MOST).contains(&window) || args.rate == Some(0) || args.population == 0 {
        return Err(Usage::of(
            "invalid --window, --rate or --population: use a window of 1 to 4M, and at least 1 for the others",
        ));
    }
    let mut link = Link::connect(&args.to)?;
    let draw = match args.names {
        Names::Unique => None,
        Names::Drawn(popularity) => Some(popularity.draw(args.population, args.seed)),
    };
    let mut load = LoadGenerator {
        args,
        window,
        clock: Clock::start(),
        draw,
        base: fresh_number(),
        pending: Pending::default(),
        results: Results::default(),
        name: args.prefix.clone(),
        wire: Vec::new(),
    };
    let is_connected = load.send_and_receive(&mut link)?;
    load.results.seconds = load.clock.seconds();
    load.results.dropped_here = link.dropped_here();
    // After an interrupt, Interests in flight count neither as answered nor as lost.
    report::print(args, window, &load.results, &link)?;
    if !is_connected {
        bail!("the forwarder at {} has closed the connection", args.to);
    }
    Ok(if load.results.data > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl LoadGenerator<'_> {
    /// Sends and receives until the end; returns whether the other side is still connected.
    fn send_and_receive(&mut self, link: &mut Link) -> anyhow::Result<bool> {
        let duration = self.args.duration.unwrap_or(match self.args.count {
            Some(_) => u64::MAX,
            None => DURATION_NS,
        });
        while !RUN.ends() {
            let now_ns = self.clock.now_ns();
            self.results.lost += match now_ns.checked_sub(self.args.timeout) {
                Some(before_ns) => self.pending.expire(before_ns),
                None => 0,
            };
            let more =
                now_ns < duration && self.args.count.is_none_or(|count| self.results.sent < count);
            if !more && self.pending.len() == 0 {
                break;
            }
            let next_ns = if more { self.send_due(link, now_ns)? } else { u64::MAX };
            let oldest = self.pending.oldest_ns().map(|at| at.saturating_add(self.args.timeout));
            let until = next_ns.min(oldest.unwrap_or(u64::MAX));
            let timeout = Duration::from_nanos(until.saturating_sub(self.clock.now_ns()));
            if !self.receive(link, timeout.min(POLL_INTERVAL))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends Interests that are due while the window has room. Returns the next due time, or
    /// `u64::MAX` if the window is full or the count is reached.
    fn send_due(&mut self, link: &mut Link, now_ns: u64) -> anyhow::Result<u64> {
        for _ in 0..TURN {
            if self.pending.len() >= self.window {
                return Ok(u64::MAX);
            }
            if self.args.count.is_some_and(|count| self.results.sent >= count) {
                return Ok(u64::MAX);
            }
            let due_ns = match self.args.rate {
                Some(rate) => {
                    (u128::from(self.results.sent) * 1_000_000_000 / u128::from(rate)) as u64
                }
                None => self.clock.now_ns(),
            };
            if self.args.rate.is_some() && due_ns > now_ns {
                return Ok(due_ns);
            }
            self.send(link, due_ns)?;
        }
        Ok(now_ns)
    }

    fn send(&mut self, link: &mut Link, due_ns: u64) -> anyhow::Result<()> {
        let number = self.pending.next();
        let name = match &mut self.draw {
            Some(draw) => draw.number(),
            None => self.base + self.results.sent,
        };
        self.name.truncate(self.args.prefix.as_bytes().len());
        self.name.push(name.to_string().as_bytes());
        self.wire.clear();
        NewInterest {
            must_be_fresh: self.args.must_be_fresh,
            lifetime_ms: lifetime_ms(self.args.timeout),
            // A different nonce for each Interest, and a different sequence in each run.
            ..NewInterest::new(
                self.name.as_name(),
                (self.base ^ number).wrapping_mul(0x9e37_79b1) as u32,
            )
        }
        .write(&mut self.wire);
        let token = token_of(number);
        self.pending.add(name, due_ns);
        self.results.sent += 1;
        link.send(&Headers { token, ..Headers::NONE }, &self.wire)?;
        self.results.sending_s = self.clock.seconds();
        Ok(())
    }

    fn receive(&mut self, link: &mut Link, timeout: Duration) -> anyhow::Result<bool> {
        let Self { args, clock, pending, results, .. } = self;
        link.receive(clock.now_ns(), timeout, |headers, packet, _| {
            let name = number_of(packet.name(), &args.prefix.as_name());
            let token = number_in(&headers.token);
            let now_ns = clock.now_ns();
            match (packet, headers.nack) {
                (Packet::Data(data), _) => {
                    results.data += 1;
                    results.bytes += data.wire.len() as u64;
                    results.marked += u64::from(headers.congestion_mark > 0);
                    let times = &mut results.times;
                    let answered = name.map_or(0, |name| {
                        pending.answer(name, token, |at| times.add(now_ns.saturating_sub(at)))
                    });
                    results.answered += answered;
                    results.surplus += u64::from(answered == 0);
                }
                (Packet::Interest(_), Some(_)) => {
                    results.nacks += name.map_or(0, |name| pending.answer(name, token, |_| ()));
                }
                (Packet::Interest(_), None) => {}
            }
        })
    }
}

/// The token of an Interest with this number: its lower six bytes. ndnd 1.5.3 ends at any other length.
fn token_of(number: u64) -> PitToken {
    PitToken::new(&number.to_be_bytes()[2..]).unwrap_or_default()
}

/// The number in the token of an answer; `None` if we sent no such token.
fn number_in(token: &PitToken) -> Option<u64> {
    let &[a, b, c, d, e, f] = token.as_bytes() else { return None };
    Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

/// The number at the end of a name after the prefix.
fn number_of(name: &Name<'_>, prefix: &Name<'_>) -> Option<u64> {
    if !prefix.is_prefix_of(name) {
        return None;
    }
    let last = name.components().nth(prefix.components().count())?;
    std::str::from_utf8(last.value).ok()?.parse().ok()
}

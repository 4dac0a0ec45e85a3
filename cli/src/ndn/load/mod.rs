//! `ringtap ndn load`: many Interests at a time, by a window or at a rate.
//!
//! ```text
//!  names ─▶ Interest with a token that is its number ─▶ … ─▶ Data with the token ─▶ when was it sent? ─▶ Times
//!  window: so many are on their way        rate: each has its time, and its answer is timed from then on
//! ```

mod pending;
mod report;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewInterest, Packet, PitToken};
use ringtap_traffic::Draw;

use super::link::Link;
use super::times::Times;
use super::{LOOK, WATCH, fresh_number, lifetime_ms};
use crate::args::{LoadArgs, Names};
use pending::Pending;
use ringtap_base::Clock;
use ringtap_terminal::Usage;

/// Interests on their way at the most.
const WINDOW: usize = 64;
const WINDOW_WITH_RATE: usize = 1 << 16;
const WINDOW_MOST: usize = 1 << 22;

/// How long it goes on if nobody says.
const DURATION_NS: u64 = 10_000_000_000;

/// Interests sent before it looks what has come.
const TURN: usize = 32;

struct Load<'a> {
    args: &'a LoadArgs,
    window: usize,
    clock: Clock,
    draw: Option<Draw>,
    /// The number of the first name, where each has its own.
    base: u64,
    pending: Pending,
    found: Found,
    name: NameBuf,
    wire: Vec<u8>,
}

/// What came of it.
#[derive(Default)]
struct Found {
    sent: u64,
    /// Interests that were answered, and Data that came; a Data may answer several.
    answered: u64,
    data: u64,
    nacks: u64,
    lost: u64,
    /// Datagrams that our own socket had no room for.
    dropped_here: u64,
    /// Data that nobody waited for, or no longer.
    surplus: u64,
    marked: u64,
    bytes: u64,
    times: Times,
    /// Until the last Interest was sent, and until the end.
    sending_s: f64,
    seconds: f64,
}

impl Found {
    /// Lost Interests that our own socket may account for, and those that it cannot.
    fn lost_here_and_elsewhere(&self) -> (u64, u64) {
        let here = self.lost.min(self.dropped_here);
        (here, self.lost - here)
    }
}

pub(super) fn run(args: &LoadArgs) -> anyhow::Result<ExitCode> {
    let window = args.window.unwrap_or(if args.rate.is_some() { WINDOW_WITH_RATE } else { WINDOW });
    if !(1..=WINDOW_MOST).contains(&window) || args.rate == Some(0) || args.population == 0 {
        return Err(Usage::of("--window is from 1 to 4M, --rate and --population are at least 1"));
    }
    let mut link = Link::connect(&args.to)?;
    let draw = match args.names {
        Names::Unique => None,
        Names::Drawn(popularity) => Some(popularity.draw(args.population, args.seed)),
    };
    let mut load = Load {
        args,
        window,
        clock: Clock::start(),
        draw,
        base: fresh_number(),
        pending: Pending::default(),
        found: Found::default(),
        name: args.prefix.clone(),
        wire: Vec::new(),
    };
    let there = load.all(&mut link)?;
    load.found.seconds = load.clock.seconds();
    load.found.dropped_here = link.dropped_here();
    // Who stops does not wait: what is under way is neither answered nor lost.
    report::print(args, window, &load.found, &link)?;
    if !there {
        bail!("the forwarder at {} has closed the connection", args.to);
    }
    Ok(if load.found.data > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Load<'_> {
    /// Sends and receives until it is over; whether the other side is still there.
    fn all(&mut self, link: &mut Link) -> anyhow::Result<bool> {
        let duration = self.args.duration.unwrap_or(match self.args.count {
            Some(_) => u64::MAX,
            None => DURATION_NS,
        });
        while !WATCH.stopped() {
            let now_ns = self.clock.now_ns();
            self.found.lost += match now_ns.checked_sub(self.args.timeout) {
                Some(before_ns) => self.pending.give_up(before_ns),
                None => 0,
            };
            let more =
                now_ns < duration && self.args.count.is_none_or(|count| self.found.sent < count);
            if !more && self.pending.len() == 0 {
                break;
            }
            let next_ns = if more { self.send_due(link, now_ns)? } else { u64::MAX };
            let oldest = self.pending.oldest_ns().map(|at| at.saturating_add(self.args.timeout));
            let until = next_ns.min(oldest.unwrap_or(u64::MAX));
            let patience = Duration::from_nanos(until.saturating_sub(self.clock.now_ns()));
            if !self.receive(link, patience.min(LOOK))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends what is due and has room; when the next one is due, if there is room for it.
    fn send_due(&mut self, link: &mut Link, now_ns: u64) -> anyhow::Result<u64> {
        for _ in 0..TURN {
            if self.pending.len() >= self.window {
                return Ok(u64::MAX);
            }
            if self.args.count.is_some_and(|count| self.found.sent >= count) {
                return Ok(u64::MAX);
            }
            let due_ns = match self.args.rate {
                Some(rate) => {
                    (u128::from(self.found.sent) * 1_000_000_000 / u128::from(rate)) as u64
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
            None => self.base + self.found.sent,
        };
        self.name.truncate(self.args.prefix.as_bytes().len());
        self.name.push(name.to_string().as_bytes());
        self.wire.clear();
        NewInterest {
            must_be_fresh: self.args.must_be_fresh,
            lifetime_ms: lifetime_ms(self.args.timeout),
            // Another one for each, in no order that others might repeat.
            ..NewInterest::new(
                self.name.as_name(),
                (self.base ^ number).wrapping_mul(0x9e37_79b1) as u32,
            )
        }
        .write(&mut self.wire);
        let token = PitToken::new(&number.to_be_bytes()).unwrap_or_default();
        self.pending.add(name, due_ns);
        self.found.sent += 1;
        link.send(&Headers { token, ..Headers::NONE }, &self.wire)?;
        self.found.sending_s = self.clock.seconds();
        Ok(())
    }

    fn receive(&mut self, link: &mut Link, patience: Duration) -> anyhow::Result<bool> {
        let Self { args, clock, pending, found, .. } = self;
        link.receive(clock.now_ns(), patience, |headers, packet, _| {
            let name = number_of(packet.name(), &args.prefix.as_name());
            let token = headers.token.as_bytes().try_into().map(u64::from_be_bytes).ok();
            let now_ns = clock.now_ns();
            match (packet, headers.nack) {
                (Packet::Data(data), _) => {
                    found.data += 1;
                    found.bytes += data.wire.len() as u64;
                    found.marked += u64::from(headers.congestion_mark > 0);
                    let times = &mut found.times;
                    let answered = name.map_or(0, |name| {
                        pending.answer(name, token, |at| times.add(now_ns.saturating_sub(at)))
                    });
                    found.answered += answered;
                    found.surplus += u64::from(answered == 0);
                }
                (Packet::Interest(_), Some(_)) => {
                    found.nacks += name.map_or(0, |name| pending.answer(name, token, |_| ()));
                }
                (Packet::Interest(_), None) => {}
            }
        })
    }
}

/// The number that a name ends with, behind the prefix.
fn number_of(name: &Name<'_>, prefix: &Name<'_>) -> Option<u64> {
    if !prefix.is_prefix_of(name) {
        return None;
    }
    let last = name.components().nth(prefix.components().count())?;
    std::str::from_utf8(last.value).ok()?.parse().ok()
}

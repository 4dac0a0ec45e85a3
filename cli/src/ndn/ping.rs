//! `ringtap ndn ping`: one Interest after the other, as ping(8) does. The names are those of ndnping: NAME/ping/NUMBER.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewInterest, Packet};
use serde_json::json;

use super::link::Link;
use super::times::{Times, ms};
use super::{LOOK, WATCH, fresh_number, lifetime_ms};
use crate::args::{Form, PingArgs};
use ringtap_base::Clock;
use ringtap_terminal::console;
use ringtap_terminal::numbers::of;

/// What was sent and not answered yet: its number, and when.
type Sent = (u64, u64);

/// Waiting for more answers than this, none is sent.
const WAITING_MOST: usize = 1 << 16;

struct Ping<'a> {
    args: &'a PingArgs,
    clock: Clock,
    /// The number in the first name.
    base: u64,
    sent: u64,
    data: u64,
    nacks: u64,
    /// Answers to what nobody waits for any more.
    late: u64,
    waiting: VecDeque<Sent>,
    times: Times,
}

pub(super) fn run(args: &PingArgs) -> anyhow::Result<ExitCode> {
    let mut link = Link::connect(&args.to)?;
    let mut ping = Ping {
        args,
        clock: Clock::start(),
        base: fresh_number(),
        sent: 0,
        data: 0,
        nacks: 0,
        late: 0,
        waiting: VecDeque::new(),
        times: Times::default(),
    };
    ping.say(|| format!("PING {} by {}\n", args.name, args.to))?;
    let there = ping.all(&mut link)?;
    ping.report(&link)?;
    if !there {
        bail!("the forwarder at {} has closed the connection", args.to);
    }
    Ok(if ping.data > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Ping<'_> {
    /// Sends and waits until it is over; whether the other side is still there.
    fn all(&mut self, link: &mut Link) -> anyhow::Result<bool> {
        let mut due_ns = 0;
        while !WATCH.stopped() {
            let now_ns = self.clock.now_ns();
            self.give_up(now_ns)?;
            let more = self.args.count.is_none_or(|count| self.sent < count);
            if more && now_ns >= due_ns && self.waiting.len() < WAITING_MOST {
                self.send(link)?;
                // What could not be sent in time is not made up for.
                due_ns = due_ns.saturating_add(self.args.interval).max(now_ns);
            } else if !more && self.waiting.is_empty() {
                break;
            }
            let oldest = self.waiting.front().map(|&(_, at)| at.saturating_add(self.args.timeout));
            let next = oldest.into_iter().chain(more.then_some(due_ns)).min().unwrap_or(u64::MAX);
            let patience = Duration::from_nanos(next.saturating_sub(self.clock.now_ns()));
            if !self.receive(link, patience.min(LOOK))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn name(&self, number: u64) -> NameBuf {
        let mut name = self.args.name.clone();
        name.push(b"ping");
        name.push((self.base + number).to_string().as_bytes());
        name
    }

    fn send(&mut self, link: &mut Link) -> anyhow::Result<()> {
        self.sent += 1;
        let name = self.name(self.sent);
        let mut wire = Vec::new();
        NewInterest {
            must_be_fresh: true,
            lifetime_ms: lifetime_ms(self.args.timeout),
            ..NewInterest::new(name.as_name(), fresh_number() as u32)
        }
        .write(&mut wire);
        self.waiting.push_back((self.sent, self.clock.now_ns()));
        link.send(&Headers::NONE, &wire)
    }

    fn receive(&mut self, link: &mut Link, patience: Duration) -> anyhow::Result<bool> {
        let mut lines = String::new();
        let there = link.receive(self.clock.now_ns(), patience, |headers, packet, _| {
            let now_ns = self.clock.now_ns();
            let nacked = matches!(packet, Packet::Interest(_)).then_some(headers.nack).flatten();
            if nacked.is_none() && matches!(packet, Packet::Interest(_)) {
                return;
            }
            let Some(at) = self.waiting_for(packet.name()) else {
                self.late += 1;
                return;
            };
            let Some((number, sent_ns)) = self.waiting.remove(at) else { return };
            let took = now_ns - sent_ns;
            let name = &self.args.name;
            match nacked {
                Some(reason) => {
                    self.nacks += 1;
                    lines += &format!("Nack from {name}: seq={number} reason={reason:?}\n");
                }
                None => {
                    self.data += 1;
                    self.times.add(took);
                    lines += &format!("content from {name}: seq={number} time={}\n", ms(took));
                }
            }
        })?;
        self.say(|| lines)?;
        Ok(there)
    }

    fn waiting_for(&self, name: &Name<'_>) -> Option<usize> {
        // The answer to the latest is the most likely one.
        self.waiting.iter().rposition(|&(number, _)| self.name(number).as_name() == *name)
    }

    /// Answers that take too long are lost.
    fn give_up(&mut self, now_ns: u64) -> anyhow::Result<()> {
        while let Some(&(number, sent_ns)) = self.waiting.front()
            && now_ns.saturating_sub(sent_ns) >= self.args.timeout
        {
            self.waiting.pop_front();
            self.say(|| format!("timeout of {}: seq={number}\n", self.args.name))?;
        }
        Ok(())
    }

    fn say(&self, lines: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.args.quiet || self.args.output.report == Form::Json {
            return Ok(());
        }
        console::print(&lines())
    }

    fn report(&self, link: &Link) -> anyhow::Result<()> {
        let lost = self.sent - self.data - self.nacks;
        let share = lost as f64 / self.sent.max(1) as f64;
        let summary = self.times.summary();
        let text = match self.args.output.report {
            Form::Json => {
                let report = json!({
                    "version": env!("CARGO_PKG_VERSION"),
                    "name": self.args.name.to_string(),
                    "to": self.args.to.to_string(),
                    "sent": self.sent,
                    "data": self.data,
                    "nacks": self.nacks,
                    "lost": lost,
                    "loss": share,
                    "late": self.late,
                    "malformed": link.malformed,
                    "refused": link.refused,
                    "time_ns": summary,
                });
                serde_json::to_string_pretty(&report)? + "\n"
            }
            Form::Text => {
                let mut text = format!(
                    "--- {} ping statistics ---\n{} sent, {} Data, {}, {lost} lost ({:.1} %)\n",
                    self.args.name,
                    of(self.sent, "Interest"),
                    self.data,
                    of(self.nacks, "Nack"),
                    100.0 * share,
                );
                if let Some(times) = summary {
                    let all = [times.min, times.mean, times.max, times.p99];
                    let [min, mean, max, p99] = all.map(|ns| format!("{:.3}", ns as f64 / 1e6));
                    text += &format!("time min/avg/max/p99 = {min}/{mean}/{max}/{p99} ms\n");
                }
                if link.refused > 0 {
                    text += &format!("nobody listens at {}\n", self.args.to);
                }
                text
            }
        };
        console::print(&text)
    }
}

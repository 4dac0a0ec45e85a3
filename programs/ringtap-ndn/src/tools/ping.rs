//! `ringtap-ndn ping`: sends one Interest at a time, like ping(8). Names are those of ndnping:
//! NAME/ping/NUMBER.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use ringtap_ndn::packets::{Headers, Name, NameBuf, NewInterest, Packet};
use serde_json::json;

use super::common::{POLL_INTERVAL, fresh_number, lifetime_ms};
use super::times::{Times, ms};
use crate::args::{Form, PingArgs};
use crate::link::Link;
use crate::run::RUN;
use ringtap_base::Clock;
use ringtap_program::json::json;
use ringtap_terminal::console;
use ringtap_terminal::numbers::of;

/// Number and send time of an unanswered Interest.
type Sent = (u64, u64);

/// No Interest is sent while more than this many are unanswered.
const PENDING_MOST: usize = 1 << 16;

struct Ping<'a> {
    args: &'a PingArgs,
    clock: Clock,
    /// The base of the numbers in names.
    base: u64,
    sent: u64,
    data: u64,
    nacks: u64,
    /// Answers that match no pending Interest.
    late: u64,
    pending: VecDeque<Sent>,
    times: Times,
}

pub(crate) fn run(args: &PingArgs) -> anyhow::Result<ExitCode> {
    let mut link = Link::connect(&args.to)?;
    let mut ping = Ping {
        args,
        clock: Clock::start(),
        base: fresh_number(),
        sent: 0,
        data: 0,
        nacks: 0,
        late: 0,
        pending: VecDeque::new(),
        times: Times::default(),
    };
    ping.print(|| format!("PING {} by {}\n", args.name, args.to))?;
    let is_connected = ping.send_and_receive(&mut link)?;
    ping.report(&link)?;
    if !is_connected {
        bail!("the forwarder at {} has closed the connection", args.to);
    }
    Ok(if ping.data > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Ping<'_> {
    /// Sends and waits until the end; returns whether the other side is still connected.
    fn send_and_receive(&mut self, link: &mut Link) -> anyhow::Result<bool> {
        let mut due_ns = 0;
        while !RUN.ends() {
            let now_ns = self.clock.now_ns();
            self.expire(now_ns)?;
            let more = self.args.count.is_none_or(|count| self.sent < count);
            if more && now_ns >= due_ns && self.pending.len() < PENDING_MOST {
                self.send(link)?;
                // Missed send times are skipped.
                due_ns = due_ns.saturating_add(self.args.interval).max(now_ns);
            } else if !more && self.pending.is_empty() {
                break;
            }
            let oldest = self.pending.front().map(|&(_, at)| at.saturating_add(self.args.timeout));
            let next = oldest.into_iter().chain(more.then_some(due_ns)).min().unwrap_or(u64::MAX);
            let timeout = Duration::from_nanos(next.saturating_sub(self.clock.now_ns()));
            if !self.receive(link, timeout.min(POLL_INTERVAL))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// NAME/ping/NUMBER.
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
        self.pending.push_back((self.sent, self.clock.now_ns()));
        link.send(&Headers::NONE, &wire)
    }

    fn receive(&mut self, link: &mut Link, timeout: Duration) -> anyhow::Result<bool> {
        let mut lines = String::new();
        let is_connected = link.receive(self.clock.now_ns(), timeout, |headers, packet, _| {
            let now_ns = self.clock.now_ns();
            let nacked = matches!(packet, Packet::Interest(_)).then_some(headers.nack).flatten();
            if nacked.is_none() && matches!(packet, Packet::Interest(_)) {
                return;
            }
            let Some(at) = self.find_pending(packet.name()) else {
                self.late += 1;
                return;
            };
            let Some((number, sent_ns)) = self.pending.remove(at) else { return };
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
        self.print(|| lines)?;
        Ok(is_connected)
    }

    /// The position of the pending Interest with this name.
    fn find_pending(&self, name: &Name<'_>) -> Option<usize> {
        // Backwards, because the latest is the most likely match.
        self.pending.iter().rposition(|&(number, _)| self.name(number).as_name() == *name)
    }

    /// Removes Interests whose timeout is over; they count as lost.
    fn expire(&mut self, now_ns: u64) -> anyhow::Result<()> {
        while let Some(&(number, sent_ns)) = self.pending.front()
            && now_ns.saturating_sub(sent_ns) >= self.args.timeout
        {
            self.pending.pop_front();
            self.print(|| format!("timeout of {}: seq={number}\n", self.args.name))?;
        }
        Ok(())
    }

    /// Prints lines, except with `--quiet` or a JSON report.
    fn print(&self, lines: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.args.quiet || self.args.output.report == Form::Json {
            return Ok(());
        }
        console::print_plain(&lines())
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
                json(&report)?
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
                    text += &format!("connection refused by {}\n", self.args.to);
                }
                text
            }
        };
        console::print_plain(&text)
    }
}

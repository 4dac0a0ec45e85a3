//! Frames from memory to an interface, when they are due.
//!
//! ```text
//!  source ─▶ fits? due? ─▶ batch ─▶ MAC addresses, stamps ─▶ Sender ─▶ interface
//!                  └ not yet: what is gathered leaves, then sleep
//! ```
//!
//! Invariants: every frame of the source is sent or counted under a reason. No wait is without end:
//! an interface that takes nothing ends the run.

use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_base::now_ns;
use ringtap_engine::Watch;
use ringtap_io::live::{SendError, SendOptions, Sender, State};

use super::counts::{Counts, Met};
use super::frames::{Batch, Frames};
use super::mac::Macs;
use super::rate::Rate;
use super::stamps::Stamps;
use ringtap_base::Clock;
use ringtap_terminal::console::complain;
use ringtap_terminal::numbers::count;

/// Frames of a batch.
const BATCH: usize = 256;

/// The longest sleep, so that a signal is heard soon.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So often in a row an interface may take nothing, a millisecond each.
const PATIENCE: u32 = 5_000;

/// For what is on its way when all is sent.
const FLUSH: Duration = Duration::from_secs(1);

/// A wait that nobody expects.
const LONG_NS: u64 = 60_000_000_000;

/// What is done to frames on their way, and when they leave.
pub(super) struct Treatment {
    pub(super) rate: Option<Rate>,
    pub(super) macs: Macs,
    pub(super) stamps: Option<Stamps>,
}

/// A sender by the interface called `name`, if it is up.
pub(super) fn open(name: &str, options: &SendOptions) -> anyhow::Result<Sender> {
    let sender = Sender::open(name, options)?;
    ready(name, sender.state())?;
    Ok(sender)
}

/// An error unless frames can leave.
pub(super) fn ready(name: &str, state: State) -> anyhow::Result<()> {
    match state {
        State::Up => Ok(()),
        State::NoCarrier => {
            bail!("{name} has no carrier: its cable is out, or its other end is down")
        }
        State::Down => bail!("{name} is down (ip link set {name} up)"),
        State::Gone => bail!("{name} is gone"),
    }
}

/// Sends all frames, or until asked to stop. What happened is in `counts`, whatever is returned.
pub(super) fn send(
    frames: &mut Frames,
    sender: Sender,
    treatment: Treatment,
    watch: &Watch,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let Treatment { rate, macs, stamps } = treatment;
    let mut outbox = Outbox { sender, batch: Batch::default(), stamps, watch, counts };
    let mut pace = Rate::pace(rate);
    let clock = Clock::start();
    let mut hint = Hint::default();
    let mut now = 0_u64;
    let mut result = Ok(());
    while result.is_ok() && !watch.stopped() {
        let Some(given) = frames.next() else { break };
        if !outbox.admits(given.data) {
            continue;
        }
        outbox.counts.cut += u64::from(given.cut);
        let due = now.saturating_add(pace.due(now, given.ts_ns, given.data.len()));
        if due > now {
            now = clock.now_ns();
        }
        if due > now {
            hint.at(due - now);
            result = outbox.empty();
            now = sleep_until(due, &clock, watch);
        }
        // Also if asked to stop meanwhile: what has been generated is sent, and so the truth true.
        macs.rewrite(outbox.batch.push(given.data));
        if outbox.batch.len() == BATCH {
            result = result.and_then(|()| outbox.empty());
            now = clock.now_ns();
        }
    }
    result = result.and_then(|()| outbox.empty());
    outbox.close(result.is_ok());
    counts.not_sent.not_ethernet = frames.not_ethernet();
    counts.frames += frames.not_ethernet();
    let met = |rate: Rate| Met { asked: rate.to_string(), latest_ms: pace.late_ns() as f64 / 1e6 };
    counts.rate = rate.map(met);
    counts.close(clock.seconds());
    result
}

/// Says, once, that it is long until the next frame: in a capture whose times jump that may be years.
#[derive(Default)]
struct Hint {
    given: bool,
}

impl Hint {
    fn at(&mut self, wait_ns: u64) {
        if wait_ns >= LONG_NS && !std::mem::replace(&mut self.given, true) {
            let seconds = count(wait_ns / 1_000_000_000);
            complain(
                "warning",
                &format!("the next frame is due in {seconds} s, by its time and --rate"),
            );
        }
    }
}

/// Returns when it is.
pub(super) fn sleep_until(due_ns: u64, clock: &Clock, watch: &Watch) -> u64 {
    loop {
        let now = clock.now_ns();
        if now >= due_ns || watch.stopped() {
            return now;
        }
        std::thread::sleep(Duration::from_nanos(due_ns - now).min(LOOK_EVERY));
    }
}

struct Outbox<'a> {
    sender: Sender,
    batch: Batch,
    stamps: Option<Stamps>,
    watch: &'a Watch,
    counts: &'a mut Counts,
}

impl Outbox<'_> {
    /// Counts a frame of the source; whether the interface takes its like.
    fn admits(&mut self, frame: &[u8]) -> bool {
        self.counts.frames += 1;
        let lengths = self.sender.lengths(frame);
        let not_sent = &mut self.counts.not_sent;
        not_sent.too_long += u64::from(frame.len() > *lengths.end());
        not_sent.too_short += u64::from(frame.len() < *lengths.start());
        lengths.contains(&frame.len())
    }

    /// Sends what is gathered.
    fn empty(&mut self) -> anyhow::Result<()> {
        if let Some(stamps) = &mut self.stamps {
            let sent_ns = now_ns();
            self.batch.each(|frame| stamps.stamp(frame, Some(sent_ns)));
        }
        let frames = self.batch.slices();
        let mut rest = &frames[..];
        let mut idle = 0;
        let mut result = Ok(());
        while result.is_ok() && !rest.is_empty() {
            match self.sender.send(rest) {
                Ok(0) if idle == PATIENCE => {
                    result = Err(anyhow::anyhow!("it takes no frame any more"))
                }
                Ok(0) if idle > 0 && self.watch.stopped() => break,
                Ok(0) => {
                    idle += 1;
                    result = ready(&self.counts.interface, self.sender.state());
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(count) => {
                    idle = 0;
                    let (sent, later) = rest.split_at(count);
                    self.counts.sent += count as u64;
                    self.counts.octets += sent.iter().map(|frame| frame.len() as u64).sum::<u64>();
                    rest = later;
                }
                Err(SendError::Interface(state)) => result = ready(&self.counts.interface, state),
                Err(error) => result = Err(error.into()),
            }
        }
        self.counts.not_sent.left_over += rest.len() as u64;
        self.batch.clear();
        result.with_context(|| format!("sending by {}", self.counts.interface))
    }

    /// Sees what is on its way off, and asks what became of all.
    fn close(&mut self, well: bool) {
        self.counts.not_sent.left_over += self.batch.len() as u64;
        if well {
            // What stays pending is counted as that.
            let _ = self.sender.flush(FLUSH);
        }
        let sent = self.sender.counters();
        self.counts.accepted = sent.accepted;
        self.counts.dropped = sent.dropped;
        self.counts.pending = sent.pending;
        self.counts.refused = sent.refused;
        self.counts.stamps = self.stamps;
    }
}

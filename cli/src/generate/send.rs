//! Sends frames on an interface when they are due.
//!
//! ```text
//!  source ─▶ fits? due? ─▶ batch ─▶ MAC addresses, stamps ─▶ Sender ─▶ interface
//!                  └ not yet: send the batch, then sleep
//! ```
//!
//! Invariants: every frame of the source is sent or counted under a reason. Every wait is bounded:
//! an interface that accepts nothing ends the run.

use std::time::Duration;

use anyhow::{Context, bail};
use ringtap_base::now_ns;
use ringtap_engine::Watch;
use ringtap_io::live::{SendError, SendOptions, Sender, State};

use super::counts::{Counts, Pacing};
use super::frames::{Batch, Frames};
use super::mac::Macs;
use super::rate::Rate;
use super::stamps::Stamps;
use ringtap_base::Clock;
use ringtap_terminal::console::print_message;
use ringtap_terminal::numbers::count;

/// Most frames of a batch.
const BATCH: usize = 256;

/// The longest sleep, so that signals are handled soon.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Most consecutive attempts, a millisecond apart, in which an interface accepts nothing.
const IDLE_ATTEMPTS_MOST: u32 = 5_000;

/// Longest wait for frames in flight at the end.
const FLUSH: Duration = Duration::from_secs(1);

/// A wait of this length is reported.
const LONG_NS: u64 = 60_000_000_000;

/// Changes to frames, and their pacing.
pub(super) struct Treatment {
    pub(super) rate: Option<Rate>,
    pub(super) macs: Macs,
    pub(super) stamps: Option<Stamps>,
}

/// Opens a sender on the interface `name`, which must be up.
pub(super) fn open(name: &str, options: &SendOptions) -> anyhow::Result<Sender> {
    let sender = Sender::open(name, options)?;
    ready(name, sender.state())?;
    Ok(sender)
}

/// Returns an error unless the interface is up.
pub(super) fn ready(name: &str, state: State) -> anyhow::Result<()> {
    match state {
        State::Up => Ok(()),
        State::NoCarrier => {
            bail!("{name} has no carrier: plug in its cable, or set its peer up")
        }
        State::Down => bail!("{name} is down: use ip link set {name} up"),
        State::Gone => bail!("{name} is gone"),
    }
}

/// Sends all frames, or until a stop is requested. `counts` is also valid after an error.
pub(super) fn send(
    frames: &mut Frames,
    sender: Sender,
    treatment: Treatment,
    watch: &Watch,
    counts: &mut Counts,
) -> anyhow::Result<()> {
    let Treatment { rate, macs, stamps } = treatment;
    let mut output = Output { sender, batch: Batch::default(), stamps, watch, counts };
    let mut pace = Rate::pace(rate);
    let clock = Clock::start();
    let mut long_wait = LongWaitWarning::default();
    let mut now = 0_u64;
    let mut result = Ok(());
    while result.is_ok() && !watch.stopped() {
        let Some(frame) = frames.next() else { break };
        if !output.accepts(frame.data) {
            continue;
        }
        output.counts.cut += u64::from(frame.cut);
        let due = now.saturating_add(pace.due(now, frame.ts_ns, frame.data.len()));
        if due > now {
            now = clock.now_ns();
        }
        if due > now {
            long_wait.check(due - now);
            result = output.send_batch();
            now = sleep_until(due, &clock, watch);
        }
        // Generated frames are sent even after a stop, so that the ground truth is right.
        macs.rewrite(output.batch.push(frame.data));
        if output.batch.len() == BATCH {
            result = result.and_then(|()| output.send_batch());
            now = clock.now_ns();
        }
    }
    result = result.and_then(|()| output.send_batch());
    output.close(result.is_ok());
    counts.not_sent.not_ethernet = frames.not_ethernet();
    counts.frames += frames.not_ethernet();
    let pacing =
        |rate: Rate| Pacing { requested: rate.to_string(), latest_ms: pace.late_ns() as f64 / 1e6 };
    counts.rate = rate.map(pacing);
    counts.close(clock.seconds());
    result
}

/// Warns once that the next frame is due late: timestamps of a capture may jump by years.
#[derive(Default)]
struct LongWaitWarning {
    printed: bool,
}

impl LongWaitWarning {
    fn check(&mut self, wait_ns: u64) {
        if wait_ns >= LONG_NS && !std::mem::replace(&mut self.printed, true) {
            let seconds = count(wait_ns / 1_000_000_000);
            print_message(
                "warning",
                &format!(
                    "the next frame is due in {seconds} s, according to its timestamp and --rate"
                ),
            );
        }
    }
}

/// Waits until `due_ns`; returns the current time.
pub(super) fn sleep_until(due_ns: u64, clock: &Clock, watch: &Watch) -> u64 {
    loop {
        let now = clock.now_ns();
        if now >= due_ns || watch.stopped() {
            return now;
        }
        std::thread::sleep(Duration::from_nanos(due_ns - now).min(POLL_INTERVAL));
    }
}

/// The sender, the current batch and the counters.
struct Output<'a> {
    sender: Sender,
    batch: Batch,
    stamps: Option<Stamps>,
    watch: &'a Watch,
    counts: &'a mut Counts,
}

impl Output<'_> {
    /// Counts a frame of the source; returns whether the interface accepts its length.
    fn accepts(&mut self, frame: &[u8]) -> bool {
        self.counts.frames += 1;
        let lengths = self.sender.lengths(frame);
        let not_sent = &mut self.counts.not_sent;
        not_sent.too_long += u64::from(frame.len() > *lengths.end());
        not_sent.too_short += u64::from(frame.len() < *lengths.start());
        lengths.contains(&frame.len())
    }

    /// Sends the batch.
    fn send_batch(&mut self) -> anyhow::Result<()> {
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
                Ok(0) if idle == IDLE_ATTEMPTS_MOST => {
                    result = Err(anyhow::anyhow!("the interface accepts no more frames"))
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
        result.with_context(|| format!("sending on {}", self.counts.interface))
    }

    /// With `flush`, waits for frames in flight; reads the final counters.
    fn close(&mut self, flush: bool) {
        self.counts.not_sent.left_over += self.batch.len() as u64;
        if flush {
            // Frames that remain are counted as pending.
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

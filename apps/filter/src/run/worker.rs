//! A worker between interfaces.
//!
//! ```text
//! burst ─▶ judge ─▶ batch ─▶ send ─▶ all of it has left ─▶ is there a newer revision? ─▶ use it
//!            └ refused ─▶ ring ─▶ the writer of drops
//! ```
//!
//! **When a change takes effect.** A worker switches to a revision only when the kernel has taken
//! all frames that it judged by an older one. So once every worker uses it
//! ([`RulePublisher::passed`]), no packet leaves that only older rules allow. A control packet
//! takes effect at its place in its queue: later packets there are judged at least by its revision.
//!
//! Invariant: a worker waits only for a control packet's transaction. Frames that the output does
//! not accept in [`ATTEMPTS_MAX`] attempts are dropped and counted.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Reader, RulePublisher};
use ringtap_base::now_ns;
use ringtap_io::live::{Drain, Receiver, SendError, Sender, State};
use ringtap_ring::Producer;
use ringtap_skeleton::{Node, Step};

use super::batch::{BURST, Batch, Progress, SuperFrames};
use super::control::{ControlAuth, ControlFrame};
use super::counters::{Changes, PacketCounters};
use super::drops::Dropped;
use super::judge::{Judge, Judged, NotIp};
use super::snapshot::StatsSnapshot;
use ringtap_engine::Watch;

/// Most consecutive attempts at which the output accepts nothing: some milliseconds.
const ATTEMPTS_MAX: u32 = 200;

/// Longest wait for AF_XDP's frames to leave before a revision is used.
const FLUSH: Duration = Duration::from_millis(100);

/// Interval at which an idle worker checks its interface.
const CHECK_NS: u64 = 100_000_000;

/// A path: from a queue to an interface.
pub struct Path {
    /// The source of frames.
    pub receiver: Receiver,
    /// The destination of passed frames.
    pub sender: Sender,
}

/// Shared by all workers.
pub(super) struct Shared<'a> {
    pub(super) publisher: &'a RulePublisher,
    pub(super) snapshot: &'a StatsSnapshot,
    pub(super) watch: &'a Watch,
    /// Counters of each worker that has ended.
    pub(super) ends: &'a Mutex<Vec<(PacketCounters, Changes, LinkCounters)>>,
    pub(super) not_ip: NotIp,
}

/// Counters of frames before and after a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkCounters {
    pub(super) interface: String,
    pub(super) sent: u64,
    pub(super) super_frames: SuperFrames,
    pub(super) not_sent: BTreeMap<&'static str, u64>,
    /// Dropped by the kernel before they could be read.
    pub(super) lost: BTreeMap<&'static str, u64>,
    pub(super) missed: u64,
    pub(super) failure: Option<String>,
}

pub(super) struct Worker<'a> {
    index: usize,
    shared: &'a Shared<'a>,
    receiver: Receiver,
    sender: Sender,
    reader: Reader,
    judge: Judge,
    auth: Option<ControlAuth>,
    to_drops: Option<Producer<Dropped>>,
    batch: Batch,
    /// Consecutive attempts at which the output accepted nothing.
    refused: u32,
    counters: PacketCounters,
    changes: Changes,
    link: LinkCounters,
    /// The last snapshot request that was answered.
    answered: u64,
    /// Present once the receiver was closed.
    drain: Option<Drain>,
    drained: bool,
    checked_ns: u64,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        index: usize,
        path: Path,
        shared: &'a Shared<'a>,
        auth: Option<ControlAuth>,
        to_drops: Option<Producer<Dropped>>,
    ) -> Self {
        let reader = Reader::new(shared.publisher, index);
        let interface = path.receiver.describe().interface;
        Self {
            index,
            shared,
            receiver: path.receiver,
            batch: Batch::new(&path.sender),
            sender: path.sender,
            counters: PacketCounters::new(Arc::clone(reader.shared())),
            reader,
            judge: Judge::new(shared.not_ip),
            auth,
            to_drops,
            refused: 0,
            changes: Changes::default(),
            link: LinkCounters { interface, ..LinkCounters::default() },
            answered: 0,
            drain: None,
            drained: false,
            checked_ns: 0,
        }
    }

    /// Takes waiting frames, up to a burst; returns their number.
    fn take(&mut self) -> usize {
        let Self {
            receiver, sender, judge, batch, counters, to_drops, auth, changes, link, ..
        } = self;
        let publisher = self.shared.publisher;
        let mut octets = 0;
        let frames = receiver.burst(BURST, |frame| {
            octets += frame.data.len() as u64;
            let judged = match auth.as_ref().map_or(ControlFrame::No, |one| one.check(frame.data)) {
                ControlFrame::Statements(text) => {
                    let made = publisher.transact(|set| set.transact(text));
                    if changes.note(made).is_some() {
                        // From the next frame on; acknowledged when earlier frames have left.
                        counters.change(&publisher.newest());
                    }
                    Judged::Control
                }
                other => {
                    changes.forged += u64::from(other == ControlFrame::Forged);
                    judge.judge(&counters.rules, frame.link, frame.data, frame.original_len)
                }
            };
            counters.count(&judged, frame.original_len);
            if judged.passed() {
                if let Err(reason) = batch.push(&frame, sender) {
                    *link.not_sent.entry(reason).or_default() += 1;
                }
            } else if judged != Judged::Control
                && let Some(to_drops) = to_drops
            {
                counters.drops_not_written +=
                    u64::from(to_drops.push(Dropped::of(&frame)).is_err());
            }
        });
        if let Some(to_drops) = to_drops {
            to_drops.flush();
        }
        let watch = self.shared.watch;
        watch.packets.add(self.index, frames as u64);
        watch.bytes.add(self.index, octets);
        frames
    }

    /// Sends as much of the batch as possible. Afterwards it is empty, or must be retried.
    fn send(&mut self) -> Step {
        let left = self.batch.left() as u64;
        let lost = match self.batch.send(&mut self.sender) {
            Ok(Progress { taken: 0, .. }) if self.refused == ATTEMPTS_MAX => "output_full",
            Ok(Progress { taken: 0, .. }) => {
                self.refused += 1;
                return Step::Idle;
            }
            Ok(Progress { frames, .. }) => {
                self.refused = 0;
                self.link.sent += frames as u64;
                if self.batch.left() == 0 {
                    self.batch.clear();
                }
                return Step::Worked;
            }
            Err(SendError::Interface(State::Gone)) => {
                self.link.failure = Some("the output is gone".into());
                "output_gone"
            }
            Err(SendError::Interface(_)) => "output_down",
            Err(error) => {
                self.link.failure.get_or_insert_with(|| error.to_string());
                "output_error"
            }
        };
        self.refused = 0;
        *self.link.not_sent.entry(lost).or_default() += left;
        self.batch.clear();
        Step::Worked
    }

    /// Switches to newer rules and answers a request for counters, between two bursts, when nothing
    /// is left to send. Returns whether the next burst may be judged.
    fn check_updates(&mut self) -> bool {
        let Shared { publisher, snapshot, .. } = *self.shared;
        let settled = !self.reader.is_behind(publisher) || self.settle();
        if settled && self.reader.renew(publisher).is_some() {
            self.counters.change(self.reader.shared());
        }
        if let Some(request) = snapshot.pending(self.answered) {
            self.answered = request;
            snapshot.store(self.index, request, &self.counters, &self.changes);
        }
        settled
    }

    /// Waits until frames judged by the current rules have left, and discards those that do not
    /// leave, because these rules are not the newest. Returns whether nothing is in flight.
    fn settle(&mut self) -> bool {
        let before = self.sender.counters().pending;
        match self.sender.flush(FLUSH) {
            Ok(true) => return true,
            // Some have left. No further burst is judged until all have.
            Ok(false) if self.sender.counters().pending < before => return false,
            // None leaves: the link is down, or accepts none.
            Ok(false) | Err(_) => {}
        }
        if let Err(error) = self.sender.discard() {
            self.link.failure = Some(format!("reopening the output: {error}"));
            self.shared.watch.stop();
        }
        true
    }

    /// No frame arrived. Returns whether the run is over.
    fn is_over(&mut self) -> bool {
        let now_ns = now_ns();
        if now_ns.abs_diff(self.checked_ns) < CHECK_NS {
            return false;
        }
        self.checked_ns = now_ns;
        if self.receiver.state() == State::Gone {
            self.link.failure = Some(format!("the interface {} is gone", self.link.interface));
            // Frames in the kernel's buffers are read first.
            self.shared.watch.stop();
            return false;
        }
        self.link.failure.is_some()
    }

    /// Stores its counters and marks itself as ended.
    fn end(&mut self) -> Step {
        let Shared { publisher, snapshot, watch, ends, .. } = *self.shared;
        let _ = self.sender.flush(FLUSH);
        let superseded = self.sender.counters().discarded;
        // A worker that has ended counts as using all revisions, so nothing may leave afterwards.
        self.sender.close();
        let sent = self.sender.counters();
        let not_taken = sent.dropped + (sent.discarded - superseded);
        // The sender counts segments: several may belong to one frame.
        let not_taken = not_taken.min(self.link.sent);
        self.link.sent -= not_taken;
        let superseded = superseded.min(self.link.sent);
        self.link.sent -= superseded;
        self.link.not_sent.insert("not_taken", not_taken);
        self.link.not_sent.insert("superseded", superseded);
        self.link.lost = self.receiver.counters().dropped.by_reason().into();
        self.link.missed = self.receiver.missed().unwrap_or(0);
        self.link.super_frames = self.batch.counters();
        // If one has failed, all end.
        if self.link.failure.is_some() {
            watch.stop();
        }
        snapshot.store(self.index, u64::MAX, &self.counters, &self.changes);
        self.reader.retire(publisher);
        let own = (self.counters.clone(), mem::take(&mut self.changes), mem::take(&mut self.link));
        ends.lock().unwrap_or_else(PoisonError::into_inner).push(own);
        Step::Done
    }
}

impl Node for Worker<'_> {
    fn step(&mut self) -> Step {
        self.shared.watch.beats.add(self.index, 1);
        if self.batch.left() > 0 {
            return self.send();
        }
        let settled = self.check_updates();
        if self.drained {
            return self.end();
        }
        if !settled && !self.shared.watch.stopped() {
            return Step::Worked;
        }
        if self.drain.is_none() && self.shared.watch.stopped() {
            self.drain = Some(Drain::begin(&mut self.receiver));
        }
        if let Some(drain) = &mut self.drain {
            drain.before_burst();
        }
        let taken = self.take();
        if let Some(drain) = &mut self.drain {
            self.drained = drain.is_over(taken, &mut self.receiver);
        }
        match taken {
            0 if self.drained || self.is_over() => self.end(),
            0 => Step::Idle,
            _ => Step::Worked,
        }
    }

    fn name(&self) -> String {
        format!("queue {}", self.index)
    }
}

//! The writer of an output: one thread that takes the blocks of all workers and does all input and output.

use std::sync::Arc;
use std::thread::park_timeout;
use std::time::Duration;

use crate::block::{Block, Inbox, Payload};
use crate::periods::Period;
use crate::shared::{Shared, now};
use crate::store::Store;

/// Range of the writer's sleep while there is nothing to write. Workers do not wake it, because that is a system call.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(16);

/// How often workers are requested to hand over their blocks.
const ROUND: Duration = Duration::from_secs(1);

/// The consumer of blocks.
pub(crate) trait Sink: Send + 'static {
    /// The contents of the blocks.
    type Payload: Payload;

    /// Writes a block, and counts its records as sent or lost.
    fn write(&mut self, block: &mut Block<Self::Payload>, shared: &Shared);

    /// Waits, up to this time, while there is nothing to write. Returns true if all that was written is done.
    fn rest(&mut self, time: Duration, _shared: &Shared) -> bool {
        park_timeout(time);
        true
    }

    /// Called once a second.
    fn tick(&mut self, _shared: &Shared) {}

    /// The file, if there is one.
    fn store(&mut self) -> Option<&mut dyn Store> {
        None
    }

    /// Finishes a file and starts another one.
    fn renew(&mut self, shared: &Shared);

    /// A period ends, in which blocks were `written` or not.
    fn end_period(&mut self, written: bool, shared: &Shared) {
        // A period without records has no file.
        if written {
            self.renew(shared);
        }
    }

    /// Finishes everything; the last call.
    fn finish(&mut self, shared: &Shared);
}

/// The periods of packet time in which an output writes.
pub(crate) struct Rotation {
    every_ns: Option<u64>,
    live: bool,
    /// The current period.
    now: Period,
}

impl Rotation {
    pub(crate) fn new(every_ns: Option<u64>, live: bool) -> Self {
        Self { every_ns, live, now: Period::NONE }
    }

    /// The period that may be written next: on interfaces that of the first worker, over files that of the last one.
    /// `reached` was read of each inbox, before its blocks were taken.
    fn next<P: Payload>(&self, inboxes: &[Inbox<P>], reached: &[Option<Period>]) -> Option<Period> {
        let each = inboxes.iter().zip(reached);
        let periods = each.filter_map(|(inbox, reached)| inbox.held().or(*reached));
        if self.live { periods.max() } else { periods.min() }.filter(|next| *next > self.now)
    }
}

/// The thread of an output.
struct Writer<S: Sink> {
    sink: S,
    inboxes: Vec<Inbox<S::Payload>>,
    shared: Arc<Shared>,
    rotation: Rotation,
    /// The current period or file has blocks.
    written: bool,
}

/// The writer's thread: runs until all workers have finished. If the run is cancelled, the sink is dropped.
pub(crate) fn run<S: Sink>(
    sink: S,
    inboxes: Vec<Inbox<S::Payload>>,
    shared: Arc<Shared>,
    rotation: Rotation,
) {
    let mut writer = Writer { sink, inboxes, shared, rotation, written: false };
    if writer.run() {
        writer.sink.finish(&writer.shared);
        writer.note_store();
    }
}

impl<S: Sink> Writer<S> {
    /// Returns false if the run was cancelled.
    fn run(&mut self) -> bool {
        let (mut nap, mut round) = (NAP_MIN, now());
        self.note_store();
        loop {
            if self.shared.is_cancelled() {
                return false;
            }
            self.rotate();
            if self.shared.take_renewal() {
                // Blocks handed over before belong to the previous file.
                self.drain();
                self.renew();
            }
            if round.elapsed() >= ROUND {
                round = now();
                self.shared.next_round();
                self.sink.tick(&self.shared);
                if let Some(store) = self.sink.store() {
                    store.check_space();
                }
                self.note_store();
            }
            let closed = self.inboxes.iter().all(Inbox::is_closed);
            let mut moved = false;
            for at in 0..self.inboxes.len() {
                moved |= self.write_one(at);
            }
            if moved {
                nap = NAP_MIN;
            } else if closed && self.inboxes.iter().all(|inbox| inbox.held().is_none()) {
                return true;
            } else {
                if self.sink.rest(nap, &self.shared) && !self.shared.is_failing() {
                    self.shared.note_progress();
                }
                if nap < NAP_MAX {
                    nap = (nap * 2).min(NAP_MAX);
                    if nap == NAP_MAX {
                        // Nothing to do: request the blocks of all workers.
                        self.shared.next_round();
                    }
                }
            }
        }
    }

    /// Ends the period if the next one begins.
    fn rotate(&mut self) {
        let Some(every_ns) = self.rotation.every_ns else { return };
        // Most often no worker has reached another period.
        if self.inboxes.iter().all(|inbox| inbox.reached() <= self.rotation.now) {
            return;
        }
        // `None`: the worker has ended.
        let reached = |inbox: &Inbox<_>| (!inbox.is_closed()).then(|| inbox.reached());
        let reached: Vec<_> = self.inboxes.iter().map(reached).collect();
        self.drain();
        let Some(next) = self.rotation.next(&self.inboxes, &reached) else { return };
        if self.rotation.now != Period::NONE || self.written {
            self.sink.end_period(self.written, &self.shared);
            self.written = false;
            self.note_store();
        }
        self.rotation.now = next;
        if let Some(store) = self.sink.store() {
            store.begins(next.begin(every_ns));
        }
    }

    fn renew(&mut self) {
        self.sink.renew(&self.shared);
        self.written = false;
        self.note_store();
    }

    fn note_store(&mut self) {
        if let Some(store) = self.sink.store() {
            self.shared.note_store(store.removed(), store.space());
        }
    }

    /// Writes all blocks that wait, up to the current period.
    fn drain(&mut self) {
        for at in 0..self.inboxes.len() {
            for _ in 0..self.inboxes[at].capacity() {
                if !self.write_one(at) {
                    break;
                }
            }
        }
    }

    /// Writes a block of an inbox. Returns false if none waits.
    fn write_one(&mut self, at: usize) -> bool {
        let inbox = &mut self.inboxes[at];
        let Some(mut block) = inbox.take(self.rotation.now) else { return false };
        self.sink.write(&mut block, &self.shared);
        inbox.give_back(block, &self.shared);
        self.written = true;
        true
    }
}

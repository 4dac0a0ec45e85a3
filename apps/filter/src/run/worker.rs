//! A worker between interfaces.
//!
//! ```text
//! burst ─▶ judge ─▶ batch ─▶ send ─▶ all of it has left ─▶ is there a newer revision? ─▶ take it
//!            └ refused ─▶ ring ─▶ the writer of drops
//! ```
//!
//! **When a change holds.** A worker takes a revision only when all that it judged by an older one is with the kernel. So
//! once every worker has taken it ([`Board::passed`]), no packet is sent that only older rules let pass. A control packet
//! takes effect at its place in its queue: the packets behind it there are judged by what it made, at the least.
//!
//! Invariant: nothing waits here but for a control packet's transaction. What the output does not take in [`PATIENCE`]
//! tries is dropped and counted.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{Board, Reader};
use ringtap_base::now_ns;
use ringtap_io::live::{Drain, Receiver, SendError, Sender, State};
use ringtap_ring::Producer;
use ringtap_skeleton::{Node, Step};

use super::batch::{BURST, Batch, Progress};
use super::census::Census;
use super::control::{Heard, Knock};
use super::drops::Dropped;
use super::judge::{Judge, Judged, NotIp};
use super::tally::{Changes, Tally};
use ringtap_engine::Watch;

/// So often in a row the output may take nothing: some milliseconds.
const PATIENCE: u32 = 200;

/// What AF_XDP still has is given so long to leave before a revision is taken.
const FLUSH: Duration = Duration::from_millis(100);

/// How often a quiet worker looks whether its interface is there.
const LOOK_NS: u64 = 100_000_000;

/// One way: from a queue to an interface.
pub struct Way {
    /// Where frames come from.
    pub receiver: Receiver,
    /// Where those that pass go.
    pub sender: Sender,
}

/// What all workers have in common.
pub(super) struct Shared<'a> {
    pub(super) board: &'a Board,
    pub(super) census: &'a Census,
    pub(super) watch: &'a Watch,
    /// What each has done, when it has ended.
    pub(super) ends: &'a Mutex<Vec<(Tally, Changes, Books)>>,
    pub(super) not_ip: NotIp,
}

/// What became of frames before and behind a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    pub(super) interface: String,
    pub(super) sent: u64,
    pub(super) not_sent: BTreeMap<&'static str, u64>,
    /// By the kernel, before we saw them.
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
    knock: Option<Knock>,
    to_drops: Option<Producer<Dropped>>,
    batch: Batch,
    /// So often the output has taken nothing.
    refused: u32,
    tally: Tally,
    changes: Changes,
    books: Books,
    /// The question of the census that was answered last.
    answered: u64,
    /// Once the receiver was shut, and once nothing is left of it.
    drain: Option<Drain>,
    drained: bool,
    looked_ns: u64,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        index: usize,
        way: Way,
        shared: &'a Shared<'a>,
        knock: Option<Knock>,
        to_drops: Option<Producer<Dropped>>,
    ) -> Self {
        let reader = Reader::new(shared.board, index);
        let interface = way.receiver.describe().interface;
        Self {
            index,
            shared,
            receiver: way.receiver,
            sender: way.sender,
            tally: Tally::new(Arc::clone(reader.shared())),
            reader,
            judge: Judge::new(shared.not_ip),
            knock,
            to_drops,
            batch: Batch::default(),
            refused: 0,
            changes: Changes::default(),
            books: Books { interface, ..Books::default() },
            answered: 0,
            drain: None,
            drained: false,
            looked_ns: 0,
        }
    }

    /// Takes what waits, up to a burst; how many frames.
    fn take(&mut self) -> usize {
        let Self { receiver, sender, judge, batch, tally, to_drops, knock, changes, books, .. } =
            self;
        let board = self.shared.board;
        let mut octets = 0;
        let frames = receiver.burst(BURST, |frame| {
            octets += frame.data.len() as u64;
            let judged = match knock.as_ref().map_or(Heard::Nothing, |one| one.hear(frame.data)) {
                Heard::Statements(text) => {
                    let made = board.transact(|set| set.transact(text));
                    if changes.note(made).is_some() {
                        // From the next frame on; the board hears of it when those before have left.
                        tally.change(&board.newest());
                    }
                    Judged::Control
                }
                heard => {
                    changes.forged += u64::from(heard == Heard::Forged);
                    judge.judge(&tally.rules, frame.link, frame.data, frame.original_len)
                }
            };
            tally.count(&judged, frame.original_len);
            if judged.passed() {
                if let Err(reason) = batch.push(&frame, sender) {
                    *books.not_sent.entry(reason).or_default() += 1;
                }
            } else if judged != Judged::Control
                && let Some(to_drops) = to_drops
            {
                tally.drops_not_written += u64::from(to_drops.push(Dropped::of(&frame)).is_err());
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

    /// Sends what it can of the batch. It is empty afterwards, or to be tried again.
    fn send(&mut self) -> Step {
        let left = self.batch.left() as u64;
        let lost = match self.batch.send(&mut self.sender) {
            Ok(Progress { taken: 0, .. }) if self.refused == PATIENCE => "output_full",
            Ok(Progress { taken: 0, .. }) => {
                self.refused += 1;
                return Step::Idle;
            }
            Ok(Progress { frames, .. }) => {
                self.refused = 0;
                self.books.sent += frames as u64;
                if self.batch.left() == 0 {
                    self.batch.clear();
                }
                return Step::Worked;
            }
            Err(SendError::Interface(State::Gone)) => {
                self.books.failure = Some("the output is gone".into());
                "output_gone"
            }
            Err(SendError::Interface(_)) => "output_down",
            Err(error) => {
                self.books.failure.get_or_insert_with(|| error.to_string());
                "output_error"
            }
        };
        self.refused = 0;
        *self.books.not_sent.entry(lost).or_default() += left;
        self.batch.clear();
        Step::Worked
    }

    /// Between two bursts, when nothing is left to be sent. Whether the next burst may be judged.
    fn look_around(&mut self) -> bool {
        let Shared { board, census, .. } = *self.shared;
        let settled = !self.reader.is_behind(board) || self.settle();
        if settled && self.reader.renew(board).is_some() {
            self.tally.change(self.reader.shared());
        }
        if let Some(question) = census.open(self.answered) {
            self.answered = question;
            census.tell(self.index, question, &self.tally, &self.changes);
        }
        settled
    }

    /// Waits for frames that were judged by the rules in use to leave, and discards those that do not: these rules are not
    /// the newest. Returns whether nothing is on its way.
    fn settle(&mut self) -> bool {
        let before = self.sender.counters().pending;
        match self.sender.flush(FLUSH) {
            Ok(true) => return true,
            // Some have left. No further burst is judged until all have.
            Ok(false) if self.sender.counters().pending < before => return false,
            // None leaves: the link is down, or takes none.
            Ok(false) | Err(_) => {}
        }
        if let Err(error) = self.sender.discard() {
            self.books.failure = Some(format!("opening the output again: {error}"));
            self.shared.watch.stop();
        }
        true
    }

    /// Nothing came. Whether it is over.
    fn is_over(&mut self) -> bool {
        let now_ns = now_ns();
        if now_ns.abs_diff(self.looked_ns) < LOOK_NS {
            return false;
        }
        self.looked_ns = now_ns;
        if self.receiver.state() == State::Gone {
            self.books.failure = Some(format!("the interface {} is gone", self.books.interface));
            // What the kernel still has is read first.
            self.shared.watch.stop();
            return false;
        }
        self.books.failure.is_some()
    }

    /// Leaves its books behind; nobody waits for it any more.
    fn end(&mut self) -> Step {
        let Shared { board, census, watch, ends, .. } = *self.shared;
        let _ = self.sender.flush(FLUSH);
        let superseded = self.sender.counters().discarded;
        // A worker that has ended has passed all revisions, so nothing may leave afterwards.
        self.sender.close();
        let sent = self.sender.counters();
        let not_taken = sent.dropped + (sent.discarded - superseded);
        // The sender counts segments: several may be of one frame.
        let not_taken = not_taken.min(self.books.sent);
        self.books.sent -= not_taken;
        let superseded = superseded.min(self.books.sent);
        self.books.sent -= superseded;
        self.books.not_sent.insert("not_taken", not_taken);
        self.books.not_sent.insert("superseded", superseded);
        self.books.lost = self.receiver.counters().dropped.by_reason().into();
        self.books.missed = self.receiver.missed().unwrap_or(0);
        // If one has failed, all end.
        if self.books.failure.is_some() {
            watch.stop();
        }
        census.tell(self.index, u64::MAX, &self.tally, &self.changes);
        self.reader.retire(board);
        let own = (self.tally.clone(), mem::take(&mut self.changes), mem::take(&mut self.books));
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
        let settled = self.look_around();
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
            drain.look();
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

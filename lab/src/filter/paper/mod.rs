//! The paper's design: a shared table with striped locks, and a cache of verdicts for each worker.
//!
//! ```text
//!                       ┌─ cache ─ worker 0 ─┐
//! distributor ══ FIFO ══╪═ cache ═ worker 1 ═╪═▶ shared table, locked by stripes
//!   by address / random └─ cache ─ worker 2 ─┘   obsolete marks for all caches
//! ```
//!
//! As in the paper: one distributor and a queue per worker; packets are distributed by address or
//! at random. A worker that reads a verdict from the table puts it into its bounded LRU cache. A
//! worker that handles a control packet marks the packet's address obsolete for each worker.
//!
//! The paper does not state how a packet keeps its place when workers differ in speed. Here the
//! distributor stamps each packet with the last changes of its addresses before it. A packet
//! - waits in its worker's queue (see [`Worker::resume`]) until these changes have been made,
//! - and reads the table as of its own place, without later changes.
//!
//! So each packet takes effect at its place in the stream: the filter is linearizable, in the order
//! of dispatch. There is no deadlock: a packet waits for earlier ones only, so the earliest does
//! not wait.

mod cache;
mod table;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ringtap_stage::{Application, Attachments, Mark, Outbox, Resumed, Shard, Worker};

use self::cache::{Cache, Cached};
use self::table::Table;
use crate::clock;
use crate::filter::history::Recorder;
use crate::filter::outcome::{Outcome, OutcomeMerger, Partial, WorkerOutcome};
use crate::filter::packet::{Data, Packet};
use crate::filter::settings::Settings;
use crate::filter::window::{Dispatch, Stamp, Window};

/// Settings of the paper's design only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperSettings {
    /// Maximum number of address pairs in a worker's cache. The paper: 16 to 65,536.
    pub cache: usize,
    /// Number of locks of the table.
    pub stripes: usize,
}

impl Default for PaperSettings {
    fn default() -> Self {
        Self { cache: 1024, stripes: 256 }
    }
}

/// The application. A value is good for one run.
#[derive(Debug)]
pub struct Paper {
    settings: Settings,
    paper: PaperSettings,
    shared: OnceLock<Arc<Shared>>,
    window: Arc<Window>,
    recorder: Option<Arc<Recorder>>,
    #[cfg(test)]
    omits_marks: bool,
}

/// The state that all workers share.
#[derive(Debug)]
struct Shared {
    table: Table,
    window: Arc<Window>,
    /// Verdicts that the caches of workers that have ended had.
    hits: AtomicU64,
    /// Processor time of the worker that used most, of those that have ended, from its first data packet; nanoseconds.
    busiest_ns: AtomicU64,
}

/// A packet with its stamp, as sent to a worker.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Number of the packet plus one.
    revision: u64,
    packet: Packet,
    /// Revisions of the last changes before it: of source and destination for data, of the address
    /// for control.
    needs: [u64; 2],
}

impl Paper {
    /// An application; with a recorder it records its history.
    pub fn new(settings: Settings, paper: PaperSettings, recorder: Option<Arc<Recorder>>) -> Self {
        Self {
            settings,
            paper,
            shared: OnceLock::new(),
            window: Arc::new(Window::new(settings.in_flight)),
            recorder,
            #[cfg(test)]
            omits_marks: false,
        }
    }

    /// The feed of the run: `packets` with their stamps.
    pub fn feed<P: Iterator<Item = Packet>>(&self, packets: P) -> Dispatch<'_, P, Latest> {
        let latest = Latest(vec![0; self.settings.addresses]);
        Dispatch::new(packets, latest, &self.window, self.recorder.as_deref())
    }

    fn share(&self, workers: usize) -> Shared {
        let Settings { addresses, policy, .. } = self.settings;
        #[cfg_attr(not(test), expect(unused_mut, reason = "tests plant a bug"))]
        let mut table = Table::new(addresses, policy, self.paper.stripes, workers);
        #[cfg(test)]
        {
            table.omits_marks = self.omits_marks;
        }
        Shared {
            table,
            window: Arc::clone(&self.window),
            hits: AtomicU64::new(0),
            busiest_ns: AtomicU64::new(0),
        }
    }

    /// Data packets whose verdict was in their worker's cache, and still valid. Complete at the end of the run.
    pub fn hits(&self) -> u64 {
        // Relaxed: read after the workers were joined.
        self.shared.get().map_or(0, |shared| shared.hits.load(Ordering::Relaxed))
    }

    /// Seconds of processor time that the busiest worker used from its first data packet to its end.
    pub fn busiest_s(&self) -> f64 {
        // Relaxed: as above.
        let ns = self.shared.get().map_or(0, |shared| shared.busiest_ns.load(Ordering::Relaxed));
        ns as f64 * 1e-9
    }
}

impl Application for Paper {
    type Item = Item;
    type Message = std::convert::Infallible;
    type Partial = Partial;
    type Report = Outcome;
    type Worker = PaperWorker;
    type Merger = OutcomeMerger;

    fn shard_key(&self, item: &Item) -> u32 {
        let address = match &item.packet {
            Packet::Control(control) => control.address,
            Packet::Data(data) => data.destination,
        };
        self.settings.distribution.key(item.revision, address)
    }

    fn worker(&self, shard: Shard) -> PaperWorker {
        self.window.set_workers(shard.count);
        let shared = self.shared.get_or_init(|| Arc::new(self.share(shard.count)));
        PaperWorker {
            index: shard.index,
            cache: Cache::new(self.paper.cache),
            waiting: VecDeque::new(),
            hits: 0,
            began_ns: None,
            outcome: WorkerOutcome::new(self.settings.work, self.recorder.clone()),
            shared: Arc::clone(shared),
        }
    }

    fn merger(&self) -> OutcomeMerger {
        OutcomeMerger::default()
    }
}

/// The distributor's state: by address, the revision of the last change.
#[derive(Debug)]
pub struct Latest(Vec<u64>);

impl Stamp for Latest {
    type Item = Item;

    #[inline]
    fn stamp(&mut self, number: u64, packet: Packet) -> Item {
        let revision = number + 1;
        let needs = match &packet {
            Packet::Control(control) => {
                let before = &mut self.0[usize::from(control.address)];
                [std::mem::replace(before, revision), 0]
            }
            Packet::Data(data) => {
                [data.source, data.destination].map(|address| self.0[usize::from(address)])
            }
        };
        Item { revision, packet, needs }
    }
}

/// A worker of the paper's design.
#[derive(Debug)]
pub struct PaperWorker {
    index: usize,
    cache: Cache,
    /// Items that wait for earlier changes, and those received after them.
    waiting: VecDeque<Item>,
    hits: u64,
    /// Processor time of its thread before the first data packet.
    began_ns: Option<u64>,
    outcome: WorkerOutcome,
    shared: Arc<Shared>,
}

impl PaperWorker {
    /// Handles an item; returns false, without effect, if it has to wait for a change.
    fn handle(&mut self, item: &Item) -> bool {
        let Item { revision, packet, needs } = item;
        let table = &self.shared.table;
        match packet {
            Packet::Control(control) => {
                if !table.has(control.address, needs[0]) {
                    return false;
                }
                let settled = self.shared.window.settled(revision - 1);
                table.change(control, *revision, settled);
                self.outcome.control(revision - 1);
            }
            Packet::Data(data) => {
                if !table.has(data.source, needs[0]) || !table.has(data.destination, needs[1]) {
                    return false;
                }
                let passed = self.pass(data, *revision);
                self.outcome.data(revision - 1, data.job(), passed);
            }
        }
        true
    }

    fn pass(&mut self, data: &Data, revision: u64) -> bool {
        let table = &self.shared.table;
        let cached = self.cache.get(data.source, data.destination);
        if let Some(cached) = &cached
            && !table.is_obsolete(self.index, data, cached.at)
        {
            self.hits += 1;
            return cached.passed;
        }
        let fresh = Cached { passed: table.pass(data, revision), at: revision };
        match cached {
            Some(cached) => *cached = fresh,
            None => self.cache.put(data.source, data.destination, fresh),
        }
        fresh.passed
    }
}

impl Worker for PaperWorker {
    type Item = Item;
    type Message = std::convert::Infallible;
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[Item],
        _: &Attachments,
        _outbox: &mut impl Outbox<Self::Message>,
    ) {
        if self.began_ns.is_none()
            && burst.iter().any(|item| matches!(item.packet, Packet::Data(_)))
        {
            self.began_ns = Some(clock::thread_ns());
        }
        let handled = burst.iter().take_while(|item| self.handle(item)).count();
        self.waiting.extend(&burst[handled..]);
        self.outcome.run_jobs();
    }

    fn resume(&mut self, _outbox: &mut impl Outbox<Self::Message>) -> Resumed {
        let Some(first) = self.waiting.pop_front() else { return Resumed::Done };
        if !self.handle(&first) {
            self.waiting.push_front(first);
            return Resumed::Waiting;
        }
        while let Some(item) = self.waiting.pop_front() {
            if !self.handle(&item) {
                self.waiting.push_front(item);
                break;
            }
        }
        self.outcome.run_jobs();
        Resumed::Moved
    }

    fn on_mark(
        &mut self,
        mark: &Mark,
        _outbox: &mut impl Outbox<Self::Message>,
    ) -> Option<Partial> {
        Some(match mark {
            Mark::Tick { number, .. } => {
                self.shared.window.pass(self.index, *number);
                None
            }
            Mark::End { .. } => {
                self.shared.hits.fetch_add(self.hits, Ordering::Relaxed);
                let used_ns = self.began_ns.map_or(0, |began_ns| clock::thread_ns() - began_ns);
                self.shared.busiest_ns.fetch_max(used_ns, Ordering::Relaxed);
                Some(Box::new(self.outcome.close()))
            }
        })
    }
}

#[cfg(test)]
mod tests;

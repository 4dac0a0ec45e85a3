//! Our design: no mutable state is shared.
//!
//! ```text
//!                by address                          random
//! dispatcher     owns the bans, stamps them          owns bans and ranges, stamps the verdict
//! worker         owns the ranges of its addresses    owns nothing; does the work
//! ```
//!
//! The verdict of a data packet depends on two facts: whether its source is banned, and whether its
//! destination accepts its source. Packets are sharded by destination, so one worker handles, in
//! the order of the stream, all packets that read or change the ranges of an address. Bans would be
//! written by one worker and read by all. So the dispatcher, which handles all packets in order,
//! keeps them and stamps each data packet with the ban of its source. When a worker decides a
//! packet, exactly the changes before the packet have been made. So the design is linearizable by
//! construction, without locks, versions or caches.
//!
//! With random distribution a packet does not reach the worker with the ranges of its destination.
//! Then the dispatcher decides every packet, and only the work is distributed.

use std::sync::Arc;

use ringtap_base::prefetch;
use ringtap_stage::{Application, Attachments, Mark, Outbox, Shard, Worker};

use crate::filter::accepting::Accepting;
use crate::filter::history::Recorder;
use crate::filter::outcome::{Outcome, OutcomeMerger, Partial, WorkerOutcome};
use crate::filter::packet::{Address, Control, Data, Packet};
use crate::filter::permissions::Permissions;
use crate::filter::settings::{Distribution, Settings};
use crate::filter::window::{Dispatch, Stamp, Window};
use crate::filter::work::Job;

/// Packets whose memory is prefetched together.
const GROUP: usize = 32;

/// The application. A value is good for one run.
#[derive(Debug)]
pub struct Sharded {
    settings: Settings,
    window: Arc<Window>,
    recorder: Option<Arc<Recorder>>,
}

/// A packet as sent to a worker: the fields that the worker needs, in 24 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    number: u64,
    /// The address whose ranges it changes or reads.
    address: Address,
    task: Task,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    /// A control packet that the dispatcher has applied.
    Done,
    Change {
        begin: Address,
        end: Address,
        accepting: bool,
    },
    Verdict {
        source: Address,
        stamped: Stamped,
        job: Job,
    },
}

/// The dispatcher's part of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamped {
    /// The worker decides by the destination's ranges.
    Open,
    Passed,
    Refused,
}

impl Sharded {
    /// An application; with a recorder it records its history.
    pub fn new(settings: Settings, recorder: Option<Arc<Recorder>>) -> Self {
        Self { settings, window: Arc::new(Window::new(settings.in_flight)), recorder }
    }

    /// The feed of the run: `packets` with their stamps.
    pub fn feed<P: Iterator<Item = Packet>>(&self, packets: P) -> Dispatch<'_, P, Stamper> {
        let stamper = Stamper::new(&self.settings);
        Dispatch::new(packets, stamper, &self.window, self.recorder.as_deref())
    }
}

impl Application for Sharded {
    type Item = Item;
    type Message = std::convert::Infallible;
    type Partial = Partial;
    type Report = Outcome;
    type Worker = ShardedWorker;
    type Merger = OutcomeMerger;

    fn shard_key(&self, item: &Item) -> u32 {
        self.settings.distribution.key(item.number, item.address)
    }

    fn worker(&self, shard: Shard) -> ShardedWorker {
        self.window.set_workers(shard.count);
        let Settings { addresses, policy, work, distribution, .. } = self.settings;
        let owns = if distribution == Distribution::Address { addresses } else { 0 };
        ShardedWorker {
            index: shard.index,
            accepting: vec![Accepting::new(policy); owns],
            outcome: WorkerOutcome::new(work, self.recorder.clone()),
            window: Arc::clone(&self.window),
        }
    }

    fn merger(&self) -> OutcomeMerger {
        OutcomeMerger::default()
    }
}

/// The dispatcher's state.
#[derive(Debug)]
pub enum Stamper {
    /// With distribution by address: whether each address is banned.
    Bans(Vec<bool>),
    /// With random distribution: all permissions.
    All(Permissions),
}

impl Stamper {
    fn new(settings: &Settings) -> Self {
        match settings.distribution {
            Distribution::Address => Self::Bans(vec![false; settings.addresses]),
            Distribution::Random => {
                Self::All(Permissions::new(settings.addresses, settings.policy))
            }
        }
    }
}

impl Stamp for Stamper {
    type Item = Item;

    #[inline]
    fn stamp(&mut self, number: u64, packet: Packet) -> Item {
        let stamped = |data: &Data, stamped| {
            let job = data.job();
            (data.destination, Task::Verdict { source: data.source, stamped, job })
        };
        let (address, task) = match (self, &packet) {
            (Self::Bans(banned), &Packet::Control(control)) => {
                let Control { address, begin, end, accepting, .. } = control;
                banned[usize::from(address)] = control.banned;
                (address, Task::Change { begin, end, accepting })
            }
            (Self::Bans(banned), Packet::Data(data)) => {
                let banned = banned[usize::from(data.source)];
                stamped(data, if banned { Stamped::Refused } else { Stamped::Open })
            }
            (Self::All(permissions), Packet::Control(control)) => {
                permissions.change(control);
                (control.address, Task::Done)
            }
            (Self::All(permissions), Packet::Data(data)) => {
                let passes = permissions.pass(data);
                stamped(data, if passes { Stamped::Passed } else { Stamped::Refused })
            }
        };
        Item { number, address, task }
    }
}

/// A worker; it owns the ranges of its addresses.
#[derive(Debug)]
pub struct ShardedWorker {
    index: usize,
    /// Ranges by address; those of other workers are unused. Empty with random distribution.
    accepting: Vec<Accepting>,
    outcome: WorkerOutcome,
    window: Arc<Window>,
}

impl ShardedWorker {
    /// Prefetches the memory of all packets of a group, so that the cache misses overlap.
    fn prefetch(&self, group: &[Item]) {
        let ranges = |item: &Item| self.accepting.get(usize::from(item.address));
        group.iter().filter_map(ranges).for_each(prefetch);
        group.iter().filter_map(ranges).for_each(Accepting::prefetch);
    }

    #[inline]
    fn handle(&mut self, item: &Item) {
        let Item { number, address, task } = *item;
        let address = usize::from(address);
        match task {
            Task::Done => self.outcome.control(number),
            Task::Change { begin, end, accepting } => {
                self.accepting[address].set(begin, end, accepting);
                self.outcome.control(number);
            }
            Task::Verdict { source, stamped, job } => {
                let passed = match stamped {
                    Stamped::Passed => true,
                    Stamped::Refused => false,
                    Stamped::Open => self.accepting[address].contains(source),
                };
                self.outcome.data(number, job, passed);
            }
        }
    }
}

impl Worker for ShardedWorker {
    type Item = Item;
    type Message = std::convert::Infallible;
    type Partial = Partial;

    fn on_burst(
        &mut self,
        burst: &[Item],
        _: &Attachments,
        _outbox: &mut impl Outbox<Self::Message>,
    ) {
        for group in burst.chunks(GROUP) {
            self.prefetch(group);
            group.iter().for_each(|item| self.handle(item));
        }
        self.outcome.run_jobs();
    }

    fn on_mark(
        &mut self,
        mark: &Mark,
        _outbox: &mut impl Outbox<Self::Message>,
    ) -> Option<Partial> {
        Some(match mark {
            Mark::Tick { number, .. } => {
                self.window.pass(self.index, *number);
                None
            }
            Mark::End { .. } => Some(Box::new(self.outcome.close())),
        })
    }
}

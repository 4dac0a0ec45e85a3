//! Our design: nothing mutable is shared.
//!
//! ```text
//!                by address                          by lot
//! dispatcher     owns the bans, stamps them          owns bans and ranges, stamps the verdict
//! worker         owns the ranges of its addresses    owns nothing; does the work
//! ```
//!
//! A data packet asks two things: is its source banned, and does its destination accept its source?
//! Sharded by destination, all that reads or writes the ranges of an address meets in one worker, in
//! the order of the stream. Bans would be written in one worker and read in all of them; so the
//! dispatcher keeps them, which sees all packets in order anyway, and tells each data packet on its
//! way whether its source was banned. Everything takes effect at its place in the stream, because
//! whoever decides has seen exactly what stands before: linearizable by construction, without a lock,
//! a version or a cache.
//!
//! Packets distributed by lot cannot meet the ranges of their destination, so then the dispatcher
//! decides all, and what is distributed is the work.

use std::sync::Arc;

use ringtap_base::prefetch;
use ringtap_stage::{Application, Attachments, Mark, Outbox, Shard, Worker};

use crate::filter::accepting::Accepting;
use crate::filter::history::Recorder;
use crate::filter::outcome::{Outcome, OutcomeMerger, Partial, Tally};
use crate::filter::packet::{Address, Control, Data, Packet};
use crate::filter::permissions::Permissions;
use crate::filter::settings::{Distribution, Settings};
use crate::filter::window::{Dispatch, Stamp, Window};
use crate::filter::work::Job;

/// Packets whose memory is fetched at once.
const GROUP: usize = 32;

/// The application. A value serves one run.
#[derive(Debug)]
pub struct Sharded {
    settings: Settings,
    window: Arc<Window>,
    recorder: Option<Arc<Recorder>>,
}

/// A packet on its way to a worker: what the worker needs of it, in 24 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    number: u64,
    /// Whose ranges it is about.
    address: Address,
    asks: Asks,
}

#[derive(Clone, Copy, Debug)]
enum Asks {
    /// Nothing any more: the dispatcher has done all of it.
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

/// A verdict, as far as the dispatcher could tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamped {
    /// The destination's ranges decide.
    Open,
    Passed,
    Refused,
}

impl Sharded {
    /// Without a recorder nothing is recorded.
    pub fn new(settings: Settings, recorder: Option<Arc<Recorder>>) -> Self {
        Self { settings, window: Arc::new(Window::new(settings.in_flight)), recorder }
    }

    /// The feed of its run.
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
        self.window.expect(shard.count);
        let Settings { addresses, policy, work, distribution, .. } = self.settings;
        let owns = if distribution == Distribution::Address { addresses } else { 0 };
        ShardedWorker {
            index: shard.index,
            accepting: vec![Accepting::new(policy); owns],
            tally: Tally::new(work, self.recorder.clone()),
            window: Arc::clone(&self.window),
        }
    }

    fn merger(&self) -> OutcomeMerger {
        OutcomeMerger::default()
    }
}

/// The dispatcher's part.
#[derive(Debug)]
pub enum Stamper {
    /// By address: whether each address is banned.
    Bans(Vec<bool>),
    /// By lot: all there is to know.
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
            (data.destination, Asks::Verdict { source: data.source, stamped, job })
        };
        let (address, asks) = match (self, &packet) {
            (Self::Bans(banned), &Packet::Control(control)) => {
                let Control { address, begin, end, accepting, .. } = control;
                banned[usize::from(address)] = control.banned;
                (address, Asks::Change { begin, end, accepting })
            }
            (Self::Bans(banned), Packet::Data(data)) => {
                let banned = banned[usize::from(data.source)];
                stamped(data, if banned { Stamped::Refused } else { Stamped::Open })
            }
            (Self::All(permissions), Packet::Control(control)) => {
                permissions.change(control);
                (control.address, Asks::Done)
            }
            (Self::All(permissions), Packet::Data(data)) => {
                let passes = permissions.pass(data);
                stamped(data, if passes { Stamped::Passed } else { Stamped::Refused })
            }
        };
        Item { number, address, asks }
    }
}

/// Owns the ranges of its addresses.
#[derive(Debug)]
pub struct ShardedWorker {
    index: usize,
    /// By address; those of other workers stay as they were made. Empty if packets come by lot.
    accepting: Vec<Accepting>,
    tally: Tally,
    window: Arc<Window>,
}

impl ShardedWorker {
    /// Looks up all of a group at once: the memory of each is on its way while the others' is.
    fn fetch(&self, group: &[Item]) {
        let ranges = |item: &Item| self.accepting.get(usize::from(item.address));
        group.iter().filter_map(ranges).for_each(prefetch);
        group.iter().filter_map(ranges).for_each(Accepting::prefetch);
    }

    #[inline]
    fn handle(&mut self, item: &Item) {
        let Item { number, address, asks } = *item;
        let address = usize::from(address);
        match asks {
            Asks::Done => self.tally.control(number),
            Asks::Change { begin, end, accepting } => {
                self.accepting[address].set(begin, end, accepting);
                self.tally.control(number);
            }
            Asks::Verdict { source, stamped, job } => {
                let passed = match stamped {
                    Stamped::Passed => true,
                    Stamped::Refused => false,
                    Stamped::Open => self.accepting[address].contains(source),
                };
                self.tally.data(number, job, passed);
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
            self.fetch(group);
            group.iter().for_each(|item| self.handle(item));
        }
        self.tally.work_off();
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
            Mark::End { .. } => Some(Box::new(self.tally.close())),
        })
    }
}

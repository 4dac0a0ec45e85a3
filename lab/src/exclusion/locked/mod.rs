//! Tables that the workers of a forwarder share, behind locks, and the same tables without the locks.
//!
//! | tables | a packet goes to | locks |
//! |---|---|---|
//! | [`Sharing::Shards`] | the worker that owns its name | none: the design of the product |
//! | [`Sharing::Buckets`] | the worker of the face that received it | one for each bucket of the PIT |
//! | [`Sharing::BucketsOwned`] | the worker that owns its bucket | one for each bucket of the PIT |
//! | [`Sharing::BucketsElided`] | the worker that owns its bucket | none: the same code, compiled without them |
//! | [`Sharing::Global`] | the worker of the face that received it | one for all tables |
//!
//! [`Locked`] is the design of all but the first, behind the forwarder's trait [`Access`].
//!
//! Without its lock a table of buckets is correct only if one thread uses each bucket. So each worker owns a part of the
//! buckets, which the compiler checks: an `Elided` bucket cannot be shared. Its counterpart with locks has
//! the same parts, so the two differ by the lock alone.

mod buckets;
mod lock;

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ringtap_ndn::forwarder::design::{Access, Context, OwnTables, Pipelines, Prefixes, TableUse};
use ringtap_ndn::forwarder::{Dispatch, FaceId, Forwarder, Outbox, Parallel, Received, Settings};
use ringtap_ndn::packets::{Name, Packet};

use buckets::{Buckets, Chain, Held, LocalPart};
use lock::{Elided, Lock, lock};

ringtap_base::choices! {
    /// How the workers share the tables that packets change.
    #[derive(Default)]
    pub enum Sharing: "tables" {
        /// Not at all: each worker owns the names of its shard.
        #[default]
        Shards = "shards",
        /// With a lock for each bucket, whose line is prefetched (the paper's ideal).
        Buckets = "buckets",
        /// With a lock for each bucket (the paper's naive variant).
        BucketsNaive = "buckets-naive",
        /// With one lock.
        Global = "global",
        /// With a lock for each bucket, whose line is prefetched; each worker owns a part of the buckets.
        BucketsOwned = "buckets-owned",
        /// Without locks; each worker owns a part of the buckets.
        BucketsElided = "buckets-elided",
    }
}

impl Sharing {
    /// Whether a name belongs to one worker.
    pub fn is_owned(self) -> bool {
        matches!(self, Self::Shards | Self::BucketsOwned | Self::BucketsElided)
    }
}

/// Locks that another worker held, by worker.
#[derive(Clone, Debug)]
pub struct Waits(Arc<Vec<WorkerWaits>>);

/// On a cache line of its own, written by the worker alone.
#[derive(Debug, Default)]
#[repr(align(64))]
struct WorkerWaits(AtomicU64);

impl Waits {
    /// The number so far, of all workers.
    pub fn sum(&self) -> u64 {
        // Relaxed: it carries no data.
        self.0.iter().map(|waits| waits.0.load(Ordering::Relaxed)).sum()
    }
}

/// A worker's access to tables that it shares.
#[derive(Debug)]
pub struct Locked {
    worker: usize,
    tables: Shared,
    /// Locks that another worker held.
    waits: u64,
    shown: Waits,
    /// Expired entries of a bucket, while they are removed.
    found: Vec<u32>,
}

#[derive(Debug)]
enum Shared {
    /// Behind one lock.
    Global(Arc<Mutex<OwnTables>>),
    /// With a lock for each bucket of the PIT.
    Buckets(Bucketed<Arc<Buckets<Mutex<Chain>>>>),
    /// With a lock for each bucket of the worker's part of the PIT.
    Owned(Bucketed<Box<Buckets<Mutex<Chain>>>>),
    /// The worker's part of the buckets of the PIT, without locks.
    Elided(Bucketed<Box<Buckets<Elided<Chain>>>>),
}

/// A worker's access to buckets.
#[derive(Debug)]
struct Bucketed<P> {
    table: P,
    local: Box<LocalPart>,
    /// Whether the lines of the buckets are prefetched.
    is_prefetched: bool,
}

/// Evaluates an expression with `$bucketed`, of whatever type, or another one for the single lock.
macro_rules! by_table {
    ($tables:expr, $global:ident => $one:expr, $bucketed:ident => $each:expr) => {
        match $tables {
            Shared::Global($global) => $one,
            Shared::Buckets($bucketed) => $each,
            Shared::Owned($bucketed) => $each,
            Shared::Elided($bucketed) => $each,
        }
    };
}

impl Locked {
    /// `workers` workers, 1 to 256, that share tables; with `locks` buckets in all, rounded up to a power of two for each
    /// part, unless one lock is for all.
    pub fn workers(
        settings: &Settings,
        workers: usize,
        sharing: Sharing,
        locks: usize,
    ) -> (Parallel<Self>, Waits) {
        let count = workers.clamp(1, 256);
        let waits = Waits(Arc::new((0..count).map(|_| WorkerWaits::default()).collect()));
        let worker = |worker, tables| {
            let shown = waits.clone();
            let own = Self { worker, tables, waits: 0, shown, found: Vec::new() };
            Forwarder::with(settings.clone(), own)
        };
        let part = part_of(settings, count);
        let locks_of_part = locks.div_ceil(count);
        let forwarders = match sharing {
            Sharing::Global => {
                let tables = Arc::new(Mutex::new(OwnTables::new(settings)));
                (0..count).map(|at| worker(at, Shared::Global(Arc::clone(&tables)))).collect()
            }
            Sharing::BucketsOwned => {
                let own = || Bucketed::new(Box::new(Buckets::new(&part, 1, locks_of_part)), 0);
                (0..count).map(|at| worker(at, Shared::Owned(own()))).collect()
            }
            Sharing::BucketsElided => {
                let own = || Bucketed::new(Box::new(Buckets::new(&part, 1, locks_of_part)), 0);
                (0..count).map(|at| worker(at, Shared::Elided(own()))).collect()
            }
            Sharing::Shards | Sharing::Buckets | Sharing::BucketsNaive => {
                let tables = Arc::new(Buckets::new(settings, count, locks));
                let is_prefetched = sharing != Sharing::BucketsNaive;
                let of = |at| {
                    let bucketed = Bucketed::new(Arc::clone(&tables), at);
                    worker(at, Shared::Buckets(Bucketed { is_prefetched, ..bucketed }))
                };
                (0..count).map(of).collect()
            }
        };
        let dispatch = match sharing.is_owned() {
            true => Dispatch::by_name(settings, count),
            false => Dispatch::by_face(settings, count),
        };
        (Parallel::of(forwarders, dispatch), waits)
    }

    /// The number of the latest entry of this worker, in tables with buckets.
    pub fn latest(&self) -> Option<u64> {
        by_table!(&self.tables, _global => None, bucketed => Some(bucketed.local.latest()))
    }

    /// Entries that this worker creates from now on are younger than this one, also at the same time.
    pub fn set_latest(&mut self, latest: u64) {
        by_table!(&mut self.tables, _global => (), bucketed => bucketed.local.set_latest(latest));
    }

    /// Whether another worker does what one of those that share a table must do.
    fn is_represented(&self) -> bool {
        self.worker > 0 && matches!(self.tables, Shared::Global(_) | Shared::Buckets(_))
    }

    fn show_waits(&self) {
        let waits =
            by_table!(&self.tables, _global => self.waits, bucketed => bucketed.local.waits());
        self.shown.0[self.worker].0.store(waits, Ordering::Relaxed);
    }
}

/// The settings of a part of the tables.
fn part_of(settings: &Settings, count: usize) -> Settings {
    let part = |whole: usize| whole.div_ceil(count);
    Settings {
        pit_capacity: part(settings.pit_capacity),
        pit_per_face: settings.pit_per_face.map(part),
        cs_bytes: part(settings.cs_bytes),
        dead_nonces: part(settings.dead_nonces),
        ..settings.clone()
    }
}

impl<C: Lock<Chain>, P: Deref<Target = Buckets<C>>> Bucketed<P> {
    /// The access of the worker with this number among those of the table.
    fn new(table: P, worker: usize) -> Self {
        let local = Box::new(LocalPart::new(&table, worker));
        Self { table, local, is_prefetched: true }
    }

    fn expire(&mut self, context: &mut Context, now_ns: u64, found: &mut Vec<u32>) {
        self.local.set_time(now_ns);
        while let Some(bucket) = self.local.due(now_ns) {
            let mut held = self.table.hold_bucket(&mut self.local, bucket);
            expire_held(context, &mut held, found, now_ns);
            held.pit().reschedule();
        }
    }

    fn handle(
        &mut self,
        context: &mut Context,
        (now_ns, found): (u64, &mut Vec<u32>),
        packets: &[Received<'_>],
        read: &[Option<Packet<'_>>],
        prefixes: &[Prefixes],
        out: &mut impl Outbox,
    ) {
        let Self { table, local, is_prefetched } = self;
        if *is_prefetched {
            let named = read.iter().zip(prefixes).filter(|(read, _)| read.is_some());
            named.for_each(|(_, prefixes)| table.prefetch(prefixes.full()));
        }
        for ((received, read), prefixes) in packets.iter().zip(read).zip(prefixes) {
            let mut held = match read {
                Some(Packet::Data(data)) => {
                    table.hold_for_data(local, context.key(), data, prefixes)
                }
                Some(Packet::Interest(_)) => table.hold(local, prefixes),
                // Without a name, any bucket will do; it is not changed.
                None => table.hold_bucket(local, 0),
            };
            // Another worker may not have noticed an expiry yet.
            expire_held(context, &mut held, found, now_ns);
            let mut pipelines = Pipelines::new(context, &mut held);
            pipelines.handle(now_ns, *received, read.as_ref(), prefixes, out);
        }
    }

    fn new_next_hop(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        prefix: &Name<'_>,
        to: FaceId,
        out: &mut impl Outbox,
    ) {
        let mut all = Vec::new();
        for bucket in self.table.numbers() {
            let mut held = self.table.hold_bucket(&mut self.local, bucket);
            held.pit().all(&mut all);
            let mut pipelines = Pipelines::new(context, &mut held);
            pipelines.new_next_hop(now_ns, prefix, to, &all, out);
            all.clear();
        }
    }
}

/// Removes the expired entries of a held bucket.
fn expire_held<C: Lock<Chain>>(
    context: &mut Context,
    held: &mut Held<'_, C>,
    found: &mut Vec<u32>,
    now_ns: u64,
) {
    found.clear();
    held.pit().expired(now_ns, found);
    for at in found.drain(..) {
        Pipelines::new(context, held).expire(now_ns, at);
    }
}

impl Access for Locked {
    fn add_face(&mut self, face: FaceId) {
        if let Shared::Global(shared) = &self.tables {
            lock(shared, &mut 0).add_face(face);
        }
    }

    fn remove_face(&mut self, face: FaceId, had_routes: bool) {
        if self.is_represented() {
            return;
        }
        by_table!(&self.tables,
            shared => lock(shared, &mut 0).remove_face(face, had_routes),
            bucketed => bucketed.table.remove_face(face, had_routes));
    }

    fn expire(&mut self, context: &mut Context, now_ns: u64) {
        by_table!(&mut self.tables,
            shared => lock(shared, &mut self.waits).expire(context, now_ns),
            bucketed => bucketed.expire(context, now_ns, &mut self.found));
    }

    fn handle(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        packets: &[Received<'_>],
        read: &[Option<Packet<'_>>],
        prefixes: &[Prefixes],
        out: &mut impl Outbox,
    ) {
        by_table!(&mut self.tables,
        shared => for at in 0..packets.len() {
            let one = at..at + 1;
            let mut tables = lock(shared, &mut self.waits);
            let (packets, read) = (&packets[one.clone()], &read[one.clone()]);
            tables.handle(context, now_ns, packets, read, &prefixes[one], out);
        },
        bucketed => {
            let at = (now_ns, &mut self.found);
            bucketed.handle(context, at, packets, read, prefixes, out);
        });
        self.show_waits();
    }

    fn new_next_hop(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        prefix: &Name<'_>,
        to: FaceId,
        out: &mut impl Outbox,
    ) {
        if self.is_represented() {
            return;
        }
        by_table!(&mut self.tables,
            shared => lock(shared, &mut 0).new_next_hop(context, now_ns, prefix, to, out),
            bucketed => bucketed.new_next_hop(context, now_ns, prefix, to, out));
    }

    fn usage(&self) -> TableUse {
        if self.is_represented() {
            return TableUse::default();
        }
        by_table!(&self.tables, shared => lock(shared, &mut 0).usage(), bucketed => bucketed.table.usage())
    }

    fn pending_of(&self, face: FaceId) -> usize {
        if self.is_represented() {
            return 0;
        }
        by_table!(&self.tables,
            shared => lock(shared, &mut 0).pending_of(face),
            bucketed => bucketed.table.pending_of(face))
    }
}

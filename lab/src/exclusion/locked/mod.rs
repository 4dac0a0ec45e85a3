//! Tables that the workers of a forwarder share, behind locks.
//!
//! | tables | a packet goes to | locks |
//! |---|---|---|
//! | [`Sharing::Shards`] | the worker that owns its name | none: the design of the product |
//! | [`Sharing::Buckets`] | the worker of the face that received it | one for each bucket of the PIT |
//! | [`Sharing::Global`] | the worker of the face that received it | one for all tables |
//!
//! [`Locked`] is the design of the last two, behind the forwarder's trait [`Access`].

mod buckets;
mod lock;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ringtap_ndn::forwarder::design::{Access, Context, OwnTables, Pipelines, Prefixes, TableUse};
use ringtap_ndn::forwarder::{Dispatch, FaceId, Forwarder, Outbox, Parallel, Received, Settings};
use ringtap_ndn::packets::{Name, Packet};

use buckets::{Buckets, Held, LocalPart};
use lock::lock;

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
    /// With a lock for each bucket of the PIT; whether the locks are prefetched.
    Buckets(Arc<Buckets>, Box<LocalPart>, bool),
}

impl Locked {
    /// `workers` workers, 1 to 256, that share tables; with `locks` buckets, rounded up to a power of two, unless one
    /// lock is for all.
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
        let forwarders = if sharing == Sharing::Global {
            let tables = Arc::new(Mutex::new(OwnTables::new(settings)));
            (0..count).map(|at| worker(at, Shared::Global(Arc::clone(&tables)))).collect()
        } else {
            let tables = Arc::new(Buckets::new(settings, count, locks));
            let is_prefetched = sharing == Sharing::Buckets;
            let of = |at| {
                let local = Box::new(LocalPart::new(&tables, at));
                worker(at, Shared::Buckets(Arc::clone(&tables), local, is_prefetched))
            };
            (0..count).map(of).collect()
        };
        (Parallel::of(forwarders, Dispatch::by_face(settings, count)), waits)
    }

    /// The number of the latest entry of this worker, in tables with a lock for each bucket.
    pub fn latest(&self) -> Option<u64> {
        match &self.tables {
            Shared::Global(_) => None,
            Shared::Buckets(_, local, _) => Some(local.latest()),
        }
    }

    /// Entries that this worker creates from now on are younger than this one, also at the same time.
    pub fn set_latest(&mut self, latest: u64) {
        if let Shared::Buckets(_, local, _) = &mut self.tables {
            local.set_latest(latest);
        }
    }

    /// Whether it is the first of the workers, which does what one of them must do.
    fn is_first(&self) -> bool {
        self.worker == 0
    }

    fn show_waits(&self) {
        let waits = match &self.tables {
            Shared::Global(_) => self.waits,
            Shared::Buckets(_, local, _) => local.waits(),
        };
        self.shown.0[self.worker].0.store(waits, Ordering::Relaxed);
    }
}

/// Removes the expired entries of a held bucket.
fn expire_held(context: &mut Context, held: &mut Held<'_>, found: &mut Vec<u32>, now_ns: u64) {
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
        match &self.tables {
            _ if !self.is_first() => {}
            Shared::Global(shared) => lock(shared, &mut 0).remove_face(face, had_routes),
            Shared::Buckets(shared, ..) => shared.remove_face(face, had_routes),
        }
    }

    fn expire(&mut self, context: &mut Context, now_ns: u64) {
        match &mut self.tables {
            Shared::Global(shared) => lock(shared, &mut self.waits).expire(context, now_ns),
            Shared::Buckets(shared, local, _) => {
                local.set_time(now_ns);
                while let Some(bucket) = local.due(now_ns) {
                    let mut held = shared.hold_bucket(local, bucket);
                    expire_held(context, &mut held, &mut self.found, now_ns);
                    held.pit().reschedule();
                }
            }
        }
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
        match &mut self.tables {
            Shared::Global(shared) => {
                for at in 0..packets.len() {
                    let one = at..at + 1;
                    let mut tables = lock(shared, &mut self.waits);
                    let (packets, read) = (&packets[one.clone()], &read[one.clone()]);
                    tables.handle(context, now_ns, packets, read, &prefixes[one], out);
                }
            }
            Shared::Buckets(shared, local, prefetch) => {
                if *prefetch {
                    let named = read.iter().zip(prefixes).filter(|(read, _)| read.is_some());
                    named.for_each(|(_, prefixes)| shared.prefetch(prefixes.full()));
                }
                for ((received, read), prefixes) in packets.iter().zip(read).zip(prefixes) {
                    let mut held = match read {
                        Some(Packet::Data(data)) => {
                            shared.hold_for_data(local, context.key(), data, prefixes)
                        }
                        Some(Packet::Interest(_)) => shared.hold(local, prefixes),
                        // Without a name, any bucket will do; it is not changed.
                        None => shared.hold_bucket(local, 0),
                    };
                    // Another worker may not have noticed an expiry yet.
                    expire_held(context, &mut held, &mut self.found, now_ns);
                    let mut pipelines = Pipelines::new(context, &mut held);
                    pipelines.handle(now_ns, *received, read.as_ref(), prefixes, out);
                }
            }
        }
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
        let is_first = self.is_first();
        match &mut self.tables {
            _ if !is_first => {}
            Shared::Global(shared) => {
                lock(shared, &mut 0).new_next_hop(context, now_ns, prefix, to, out);
            }
            Shared::Buckets(shared, local, _) => {
                let mut all = Vec::new();
                for bucket in shared.numbers() {
                    let mut held = shared.hold_bucket(local, bucket);
                    held.pit().all(&mut all);
                    let mut pipelines = Pipelines::new(context, &mut held);
                    pipelines.new_next_hop(now_ns, prefix, to, &all, out);
                    all.clear();
                }
            }
        }
    }

    fn usage(&self) -> TableUse {
        match &self.tables {
            _ if !self.is_first() => TableUse::default(),
            Shared::Global(shared) => lock(shared, &mut 0).usage(),
            Shared::Buckets(shared, ..) => shared.usage(),
        }
    }

    fn pending_of(&self, face: FaceId) -> usize {
        match &self.tables {
            _ if !self.is_first() => 0,
            Shared::Global(shared) => lock(shared, &mut 0).pending_of(face),
            Shared::Buckets(shared, ..) => shared.pending_of(face),
        }
    }
}

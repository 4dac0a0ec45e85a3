//! Several workers that are one forwarder together, for one thread each.
//!
//! | tables | a packet goes to | locks |
//! |---|---|---|
//! | [`Sharing::Shards`] | the worker that owns its name | none |
//! | [`Sharing::Buckets`] | the worker of the face that received it | one for each of 2^20 buckets of the PIT |
//! | [`Sharing::Global`] | the worker of the face that received it | one for all tables |
//!
//! The last two are for comparison (J. Takemasa, Y. Koizumi, T. Hasegawa, *Analysis of Mutual
//! Exclusion Overhead of NDN Packet Forwarding on Multi-core Software Router*, ICN 2018). Every
//! worker has a copy of the FIB, the strategies and the faces.

use std::sync::{Arc, Mutex};

use crate::packets::{Headers, Name};

use crate::forwarder::counters::Counters;
use crate::forwarder::dispatch::Dispatch;
use crate::forwarder::face::{Face, FaceId, FaceUse};
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Access, Forwarder, Outbox, TooLong};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::{Buckets, LocalPart, OwnTables};

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

/// Workers, run by one thread. They send the same packets as a single forwarder while no table is
/// full.
#[derive(Debug)]
pub struct Parallel {
    workers: Vec<Forwarder>,
    dispatch: Dispatch,
}

impl Parallel {
    /// Creates `workers` workers, 1 to 256. Shards divide the capacities equally.
    pub fn new(settings: &Settings, workers: usize, sharing: Sharing) -> Self {
        let count = workers.clamp(1, 256);
        let dispatch = Dispatch::new(settings, count, sharing);
        let workers = match sharing {
            Sharing::Shards => shards(settings, count),
            Sharing::Global => {
                let tables = Arc::new(Mutex::new(OwnTables::new(settings)));
                let worker = |_| {
                    Forwarder::with(settings.clone(), 0, 0, Access::Global(Arc::clone(&tables)))
                };
                (0..count).map(worker).collect()
            }
            Sharing::Buckets | Sharing::BucketsNaive => {
                let tables = Arc::new(Buckets::new(settings, count));
                let is_prefetched = sharing == Sharing::Buckets;
                let worker = |number| {
                    let local = Box::new(LocalPart::new(&tables, number));
                    let access = Access::Buckets(Arc::clone(&tables), local, is_prefetched);
                    Forwarder::with(settings.clone(), 0, 0, access)
                };
                (0..count).map(worker).collect()
            }
        };
        let mut workers: Vec<Forwarder> = workers;
        if sharing != Sharing::Shards {
            workers.iter_mut().skip(1).for_each(|worker| worker.context.is_first = false);
        }
        Self { workers, dispatch }
    }

    /// The assignment of packets to the workers.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Returns the workers, for one thread each.
    pub fn into_workers(self) -> Vec<Forwarder> {
        self.workers
    }

    /// Handles a packet received on the face `from`, in its worker. `now_ns` must not decrease from
    /// call to call.
    pub fn take(
        &mut self,
        now_ns: u64,
        from: FaceId,
        headers: &Headers,
        packet: &[u8],
        out: &mut impl Outbox,
    ) {
        let number = self.dispatch.worker_of(from, packet);
        self.workers[number].take(now_ns, from, headers, packet, out);
        self.order_entries(number);
        for notice in self.workers[number].take_notices() {
            let others = self.workers.iter_mut().enumerate().filter(|(at, _)| *at != number);
            others.for_each(|(_, other)| other.notice(&notice, out));
        }
    }

    /// Entries that other workers create later are younger, also at the same time.
    fn order_entries(&mut self, number: usize) {
        let Access::Buckets(_, local, _) = &self.workers[number].access else { return };
        let latest = local.latest();
        for worker in &mut self.workers {
            if let Access::Buckets(_, local, _) = &mut worker.access {
                local.set_latest(latest);
            }
        }
    }

    /// Removes expired entries.
    pub fn advance(&mut self, now_ns: u64) {
        self.workers.iter_mut().for_each(|worker| worker.advance(now_ns));
    }

    /// Adds or changes a face in all workers. Numbers from 65,536 on are ignored.
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        self.workers.iter_mut().for_each(|worker| worker.set_face(id, face));
    }

    /// Removes a face from all workers. Returns whether it had routes.
    pub fn remove_face(&mut self, id: FaceId) -> bool {
        let had_routes = |worker: &mut Forwarder| worker.remove_face(id);
        self.workers.iter_mut().map(had_routes).fold(false, |any, one| any | one)
    }

    /// Adds a route to all workers, or changes its cost. If the next hop is new, matching pending
    /// Interests of the multicast strategy are sent to it.
    pub fn add_route(
        &mut self,
        now_ns: u64,
        prefix: &Name<'_>,
        face: FaceId,
        cost: u64,
        out: &mut impl Outbox,
    ) -> Result<(), TooLong> {
        self.workers
            .iter_mut()
            .try_for_each(|worker| worker.add_route(now_ns, prefix, face, cost, out))
    }

    /// Removes a route from all workers; returns false if there was none.
    pub fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool {
        let removed = |worker: &mut Forwarder| worker.remove_route(prefix, face);
        self.workers.iter_mut().map(removed).fold(false, |any, one| any | one)
    }

    /// Sets the strategy of a prefix, and of all longer prefixes without their own.
    pub fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        self.workers.iter_mut().try_for_each(|worker| worker.set_strategy(prefix, strategy))
    }

    /// The sum of the counters of all workers.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.workers.iter().for_each(|worker| sum.add(&worker.counters()));
        sum
    }

    /// Number of pending Interests.
    pub fn pending(&self) -> usize {
        self.workers.iter().map(Forwarder::pending).sum()
    }

    /// Use of the tables by a face.
    pub fn face_use(&self, id: FaceId) -> FaceUse {
        let mut sum = FaceUse::default();
        self.workers.iter().for_each(|worker| sum.add(&worker.face_use(id)));
        sum
    }

    /// Number of stored Data.
    pub fn stored(&self) -> usize {
        self.workers.iter().map(Forwarder::stored).sum()
    }
}

fn shards(settings: &Settings, count: usize) -> Vec<Forwarder> {
    let part = |whole: usize| whole.div_ceil(count);
    let settings = Settings {
        pit_capacity: part(settings.pit_capacity),
        pit_per_face: settings.pit_per_face.map(part),
        cs_bytes: part(settings.cs_bytes),
        dead_nonces: part(settings.dead_nonces),
        ..settings.clone()
    };
    let short_below = if count > 1 { settings.dispatch_components.max(1) } else { 0 };
    let shard = |number| {
        let tables = Box::new(OwnTables::new(&settings));
        Forwarder::with(settings.clone(), number as u8, short_below, Access::Own(tables))
    };
    (0..count).map(shard).collect()
}

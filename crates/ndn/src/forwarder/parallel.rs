//! Several workers that are one forwarder together, for one thread each. A packet goes to the worker that owns its name.
//! Every worker has a copy of the FIB, the strategies and the faces.

use crate::packets::{Headers, Name};

use crate::forwarder::access::Access;
use crate::forwarder::counters::Counters;
use crate::forwarder::dispatch::Dispatch;
use crate::forwarder::face::{Face, FaceId, FaceUse};
use crate::forwarder::outbox::Outbox;
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Forwarder, TooLong};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::OwnTables;

/// Workers, run by one thread. They send the same packets as a single forwarder while no table is
/// full.
#[derive(Debug)]
pub struct Parallel<A = OwnTables> {
    workers: Vec<Forwarder<A>>,
    dispatch: Dispatch,
}

impl Parallel {
    /// Creates `workers` workers with a shard each, 1 to 256. They divide the capacities equally.
    pub fn new(settings: &Settings, workers: usize) -> Self {
        let count = workers.clamp(1, 256);
        Self::of(shards(settings, count), Dispatch::by_name(settings, count))
    }
}

impl<A: Access> Parallel<A> {
    /// A forwarder of these workers, at least one, with packets assigned by `dispatch`.
    pub fn of(workers: Vec<Forwarder<A>>, dispatch: Dispatch) -> Self {
        assert!(!workers.is_empty(), "a forwarder has a worker");
        Self { workers, dispatch }
    }

    /// The workers.
    pub fn workers_mut(&mut self) -> &mut [Forwarder<A>] {
        &mut self.workers
    }

    /// The assignment of packets to the workers.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Returns the workers, for one thread each.
    pub fn into_workers(self) -> Vec<Forwarder<A>> {
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
        for notice in self.workers[number].take_notices() {
            let others = self.workers.iter_mut().enumerate().filter(|(at, _)| *at != number);
            others.for_each(|(_, other)| other.notice(&notice, out));
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
        let had_routes = |worker: &mut Forwarder<A>| worker.remove_face(id);
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
        let removed = |worker: &mut Forwarder<A>| worker.remove_route(prefix, face);
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
        let mut shard = Forwarder::new(settings.clone());
        shard.context.shard = number as u8;
        shard.context.short_below = short_below;
        shard
    };
    (0..count).map(shard).collect()
}

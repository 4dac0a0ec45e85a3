//! The state machine of a forwarder: its tables and their operations. The forwarding rules are in
//! the [pipelines](crate::forwarder::pipelines).

use crate::packets::{Headers, Interest, Name};

use std::sync::{Arc, Mutex};

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceCounts, FaceId, FaceUse, Faces};
use crate::forwarder::lock::lock;
use crate::forwarder::notice::Notice;
use crate::forwarder::pipelines::Pipelines;
use crate::forwarder::scratch::Scratch;
use crate::forwarder::settings::Settings;
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::{
    Buckets, ContentStore, DeadNonces, Held, LocalPart, NameKey, NextHop, OwnTables,
    PendingInterests, Pit, PrefixTable, Prefixes,
};
use crate::forwarder::token::Token;

/// A forwarder, or one of several workers that are one forwarder together.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) context: Context,
    pub(crate) access: Access,
}

/// What a worker has of its own in any case.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    /// Number of the shard; 0 if the tables are shared.
    pub(crate) shard: u8,
    /// Whether it is the first of the workers that share tables.
    pub(crate) is_first: bool,
    /// Interests with CanBePrefix and fewer components are short prefixes; 0 without other shards.
    pub(crate) short_below: usize,
    pub(crate) notices: Vec<Notice>,
    pub(crate) key: NameKey,
    pub(crate) faces: Faces,
    pub(crate) fib: PrefixTable<Vec<NextHop>>,
    pub(crate) strategies: PrefixTable<Strategy>,
    pub(crate) counters: Counters,
    pub(crate) scratch: Scratch,
}

/// The tables that packets change.
#[derive(Debug)]
pub(crate) enum Access {
    /// The worker's own.
    Own(Box<OwnTables>),
    /// Shared behind one lock.
    Global(Arc<Mutex<OwnTables>>),
    /// Shared with a lock for each bucket of the PIT; whether the locks are prefetched.
    Buckets(Arc<Buckets>, Box<LocalPart>, bool),
}

/// Receives packets to send.
pub trait Outbox {
    /// Sends a packet on a face, with link headers.
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]);

    /// Sends a packet whose answers may reach another shard: after the notices so far were
    /// delivered to all shards.
    fn send_after_notices(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        self.send(face, headers, packet);
    }
}

impl<F: FnMut(FaceId, &Headers, &[u8])> Outbox for F {
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        self(face, headers, packet);
    }
}

/// A received packet: its face, link headers and bytes.
pub type Received<'a> = (FaceId, &'a Headers, &'a [u8]);

/// A prefix with more than [`COMPONENTS_MAX`](crate::forwarder::COMPONENTS_MAX) components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prefix too long: use at most {} components", crate::forwarder::COMPONENTS_MAX)]
pub struct TooLong;

impl OwnTables {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            pit: Pit::new(settings.pit_capacity.min(Token::ENTRIES_MAX)),
            content: ContentStore::new(settings.cs_bytes),
            dead: DeadNonces::new(settings.dead_nonces),
        }
    }
}

impl Forwarder {
    /// A forwarder without faces and routes.
    pub fn new(settings: Settings) -> Self {
        let tables = OwnTables::new(&settings);
        Self::with(settings, 0, 0, Access::Own(Box::new(tables)))
    }

    pub(crate) fn with(settings: Settings, shard: u8, short_below: usize, access: Access) -> Self {
        let context = Context {
            shard,
            is_first: true,
            short_below,
            notices: Vec::new(),
            key: NameKey::from_seed(settings.seed),
            faces: Faces::default(),
            fib: PrefixTable::new(),
            strategies: PrefixTable::new(),
            counters: Counters::default(),
            scratch: Scratch::new(settings.pit_capacity),
            settings,
        };
        Self { context, access }
    }

    /// Removes expired PIT entries. Every received packet also does this, so a call is needed only
    /// while no packets arrive.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        let Self { context, access } = self;
        match access {
            Access::Own(tables) => expire_due(context, tables, now_ns),
            Access::Global(shared) => {
                let mut tables = lock(shared, &mut context.counters.lock_waits);
                expire_due(context, &mut tables, now_ns);
            }
            Access::Buckets(shared, local, _) => {
                local.set_time(now_ns);
                while let Some(bucket) = local.due(now_ns) {
                    let mut held = shared.hold_bucket(local, bucket);
                    expire_held(context, &mut held, now_ns);
                    held.pit().reschedule();
                }
            }
        }
    }

    /// Adds or changes a face. Numbers from 65,536 on are ignored.
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        let Self { context, access } = self;
        context.faces.set(id, Some(face));
        if id.0 >= Faces::MAX {
            return;
        }
        match access {
            Access::Own(tables) => tables.pit.add_face(id),
            Access::Global(shared) => lock(shared, &mut 0).pit.add_face(id),
            Access::Buckets(..) => {}
        }
        let last_data = &mut context.scratch.last_data;
        if last_data.len() <= id.0 as usize {
            last_data.resize(id.0 as usize + 1, 0);
        }
    }

    /// Removes a face, its routes and its pending Interests. Returns whether it had routes. If the
    /// face has no routes and no out-records, the cost is independent of the table sizes.
    pub fn remove_face(&mut self, id: FaceId) -> bool {
        let is_first = self.is_first();
        let Self { context, access } = self;
        context.faces.set(id, None);
        let had_routes = context.faces.has_routes(id);
        match access {
            Access::Own(tables) => tables.pit.remove_face(id),
            Access::Global(shared) if is_first => lock(shared, &mut 0).pit.remove_face(id),
            Access::Buckets(shared, ..) if is_first => shared.remove_face(id, had_routes),
            _ => {}
        }
        if had_routes {
            context.faces.count_routes(id, |_| 0);
            context.fib.retain(|hops| {
                hops.retain(|hop| hop.face != id);
                !hops.is_empty()
            });
        }
        had_routes
    }

    /// Adds a route, or changes its cost. If the next hop is new, matching pending Interests of the
    /// multicast strategy are sent to it.
    pub fn add_route(
        &mut self,
        now_ns: u64,
        prefix: &Name<'_>,
        face: FaceId,
        cost: u64,
        out: &mut impl Outbox,
    ) -> Result<(), TooLong> {
        self.advance(now_ns);
        let context = &mut self.context;
        let hops = context.fib.entry(&context.key, prefix, Vec::new).ok_or(TooLong)?;
        let is_new = !hops.iter().any(|hop| hop.face == face);
        hops.retain(|hop| hop.face != face);
        hops.push(NextHop { face, cost });
        hops.sort_unstable_by_key(|hop| (hop.cost, hop.face));
        let room = hops.len();
        context.scratch.hops.reserve(room);
        context.scratch.chosen.reserve(room);
        if is_new {
            context.faces.count_routes(face, |count| count + 1);
            self.new_next_hop(now_ns, prefix, face, out);
        }
        Ok(())
    }

    /// Sends the pending Interests of the multicast strategy to a new next hop.
    fn new_next_hop(&mut self, now_ns: u64, prefix: &Name<'_>, to: FaceId, out: &mut impl Outbox) {
        let is_first = self.is_first();
        let Self { context, access } = self;
        if !context.strategies.any(|strategy| *strategy == Strategy::Multicast) {
            return;
        }
        match access {
            Access::Own(tables) => {
                let all: Vec<u32> = tables.pit.pending().collect();
                let mut pipelines = Pipelines::new(context, &mut **tables);
                pipelines.new_next_hop(now_ns, prefix, to, &all, out);
            }
            Access::Global(shared) if is_first => {
                let mut tables = lock(shared, &mut 0);
                let all: Vec<u32> = tables.pit.pending().collect();
                let mut pipelines = Pipelines::new(context, &mut *tables);
                pipelines.new_next_hop(now_ns, prefix, to, &all, out);
            }
            Access::Buckets(shared, local, _) if is_first => {
                let mut all = Vec::new();
                for bucket in shared.numbers() {
                    let mut held = shared.hold_bucket(local, bucket);
                    held.pit().all(&mut all);
                    let mut pipelines = Pipelines::new(context, &mut held);
                    pipelines.new_next_hop(now_ns, prefix, to, &all, out);
                    all.clear();
                }
            }
            _ => {}
        }
    }

    /// Removes a route; returns false if there was none.
    pub fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool {
        let Context { fib, key, faces, .. } = &mut self.context;
        let Some(hops) = fib.remove(key, prefix) else { return false };
        let left: Vec<_> = hops.iter().copied().filter(|hop| hop.face != face).collect();
        let removed = left.len() < hops.len();
        if removed {
            faces.count_routes(face, |count| count.saturating_sub(1));
        }
        if !left.is_empty() {
            fib.entry(key, prefix, || left);
        }
        removed
    }

    /// Sets the strategy of a prefix and of all longer prefixes without their own.
    pub fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        let Context { strategies, key, .. } = &mut self.context;
        *strategies.entry(key, prefix, || strategy).ok_or(TooLong)? = strategy;
        Ok(())
    }

    /// Removes the strategy of a prefix: that of the next shorter prefix applies. Returns false if
    /// the prefix had none.
    pub fn unset_strategy(&mut self, prefix: &Name<'_>) -> bool {
        let Context { strategies, key, .. } = &mut self.context;
        strategies.remove(key, prefix).is_some()
    }

    /// The counters so far. Those of shared tables are the first worker's.
    pub fn counters(&self) -> Counters {
        let mut counters = self.context.counters;
        (counters.cs_evicted, counters.nonces_evicted) = match &self.access {
            Access::Own(tables) => (tables.content.evicted(), tables.dead.evicted()),
            Access::Global(shared) if self.is_first() => {
                let tables = lock(shared, &mut 0);
                (tables.content.evicted(), tables.dead.evicted())
            }
            Access::Buckets(shared, ..) if self.is_first() => shared.evicted(),
            _ => (0, 0),
        };
        if let Access::Buckets(_, local, _) = &self.access {
            counters.lock_waits += local.waits();
        }
        counters
    }

    /// Number of pending Interests. Those of other shards are not counted; those of shared tables
    /// only by the first worker.
    pub fn pending(&self) -> usize {
        match &self.access {
            Access::Own(tables) => tables.pit.len(),
            Access::Global(shared) if self.is_first() => lock(shared, &mut 0).pit.len(),
            Access::Buckets(shared, ..) if self.is_first() => shared.len(),
            _ => 0,
        }
    }

    /// Use of the tables by a face; zeros if it does not exist. Pending Interests are counted as in
    /// [`Forwarder::pending`].
    pub fn face_use(&self, id: FaceId) -> FaceUse {
        let FaceCounts { exchanges, cs_hits, .. } = self.context.faces.counts(id);
        let exists = self.context.faces.get(id).is_some();
        let pending = match &self.access {
            Access::Own(tables) if exists => tables.pit.pending_of(id),
            Access::Global(shared) if exists && self.is_first() => {
                lock(shared, &mut 0).pit.pending_of(id)
            }
            Access::Buckets(shared, ..) if exists && self.is_first() => shared.pending_of(id),
            _ => 0,
        };
        FaceUse { exchanges, cs_hits, pending: pending as u64 }
    }

    /// Number of stored Data, counted as in [`Forwarder::pending`].
    pub fn stored(&self) -> usize {
        match &self.access {
            Access::Own(tables) => tables.content.len(),
            Access::Global(shared) if self.is_first() => lock(shared, &mut 0).content.len(),
            Access::Buckets(shared, ..) if self.is_first() => shared.stored()[0],
            _ => 0,
        }
    }

    /// Number of bytes that the stored Data need, counted as in [`Forwarder::pending`].
    pub fn stored_bytes(&self) -> usize {
        match &self.access {
            Access::Own(tables) => tables.content.bytes(),
            Access::Global(shared) if self.is_first() => lock(shared, &mut 0).content.bytes(),
            Access::Buckets(shared, ..) if self.is_first() => shared.stored()[1],
            _ => 0,
        }
    }

    /// Whether it is the first of the workers that share tables.
    fn is_first(&self) -> bool {
        self.context.is_first
    }
}

/// Removes the expired entries of tables that a thread has for itself.
#[inline]
pub(crate) fn expire_due(context: &mut Context, tables: &mut OwnTables, now_ns: u64) {
    while let Some(at) = tables.pit.due(now_ns) {
        Pipelines::new(context, tables).expire(now_ns, at);
    }
}

/// Removes the expired entries of a held bucket.
pub(crate) fn expire_held(context: &mut Context, held: &mut Held<'_>, now_ns: u64) {
    let mut found = std::mem::take(&mut context.scratch.satisfied);
    found.clear();
    held.pit().expired(now_ns, &mut found);
    for at in found.drain(..) {
        Pipelines::new(context, held).expire(now_ns, at);
    }
    context.scratch.satisfied = found;
}

impl Context {
    /// Counts whether a packet's token is that of an entry for which `is_of` returns true. For a
    /// token of another shard, `is_elsewhere` decides.
    pub(crate) fn check_token(
        &mut self,
        headers: &Headers,
        is_elsewhere: bool,
        is_of: impl Fn((u32, u16)) -> bool,
    ) {
        if headers.token.as_bytes().is_empty() {
            return;
        }
        let right = Token::read(&headers.token)
            .filter(|token| token.shard == self.shard)
            .map_or(is_elsewhere, |token| is_of((token.entry, token.generation)));
        self.counters.tokens_right += u64::from(right);
        self.counters.tokens_wrong += u64::from(!right);
    }

    /// Sets `scratch.hops` to the next hops of an Interest for which `allowed` returns true: those
    /// of its name, or of the first name of its hint that has a route.
    pub(crate) fn look_up_hops(
        &mut self,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        without_hint: bool,
        allowed: impl Fn(&Faces, FaceId) -> bool,
    ) {
        let Self { fib, key, scratch, faces, .. } = self;
        let allowed = |hop: &&NextHop| allowed(faces, hop.face);
        scratch.hops.clear();
        if interest.hint.is_empty() || without_hint {
            let hops = fib.longest(&interest.name, prefixes).map_or(&[][..], |(_, hops)| hops);
            scratch.hops.extend(hops.iter().filter(allowed));
            return;
        }
        for name in interest.delegations() {
            if scratch.hint.set(key, &name)
                && let Some((_, hops)) = fib.longest(&name, &scratch.hint)
            {
                scratch.hops.extend(hops.iter().filter(allowed));
                return;
            }
        }
    }
}

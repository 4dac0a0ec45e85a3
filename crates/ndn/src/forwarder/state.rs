//! The state machine of a forwarder: its tables and their operations. The forwarding rules are in
//! the [pipelines](crate::forwarder::pipelines).

use crate::packets::Name;

use crate::forwarder::access::{Access, TableUse};
use crate::forwarder::context::Context;
use crate::forwarder::counters::Counters;
use crate::forwarder::face::{FACES_MAX, Face, FaceCounts, FaceId, FaceUse, Faces};
use crate::forwarder::outbox::Outbox;
use crate::forwarder::scratch::Scratch;
use crate::forwarder::settings::Settings;
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::{NameKey, NextHop, OwnTables, PrefixTable};

/// A forwarder, or one of several workers that are one forwarder together.
#[derive(Debug)]
pub struct Forwarder<A = OwnTables> {
    pub(crate) context: Context,
    pub(crate) tables: Box<A>,
}

/// A prefix with more than [`COMPONENTS_MAX`](crate::forwarder::COMPONENTS_MAX) components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prefix too long: use at most {} components", crate::forwarder::COMPONENTS_MAX)]
pub struct TooLong;

impl Forwarder {
    /// A forwarder without faces and routes.
    pub fn new(settings: Settings) -> Self {
        let tables = OwnTables::new(&settings);
        Self::with(settings, tables)
    }
}

impl<A: Access> Forwarder<A> {
    /// A worker with these tables, without faces and routes.
    pub fn with(settings: Settings, tables: A) -> Self {
        let context = Context {
            shard: 0,
            short_below: 0,
            notices: Vec::new(),
            key: NameKey::from_seed(settings.seed),
            faces: Faces::default(),
            fib: PrefixTable::new(),
            strategies: PrefixTable::new(),
            counters: Counters::default(),
            scratch: Scratch::new(settings.pit_capacity),
            settings,
        };
        Self { context, tables: Box::new(tables) }
    }

    /// Its tables.
    pub fn tables_mut(&mut self) -> &mut A {
        &mut self.tables
    }

    /// Removes expired PIT entries. Every received packet also does this, so a call is needed only
    /// while no packets arrive.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        self.tables.expire(&mut self.context, now_ns);
    }

    /// Adds or changes a face. Numbers from 65,536 on are ignored.
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        let Self { context, tables } = self;
        context.faces.set(id, Some(face));
        if id.0 >= FACES_MAX {
            return;
        }
        tables.add_face(id);
        let last_data = &mut context.scratch.last_data;
        if last_data.len() <= id.0 as usize {
            last_data.resize(id.0 as usize + 1, 0);
        }
    }

    /// Removes a face, its routes and its pending Interests. Returns whether it had routes. If the
    /// face has no routes and no out-records, the cost is independent of the table sizes.
    pub fn remove_face(&mut self, id: FaceId) -> bool {
        let Self { context, tables } = self;
        context.faces.set(id, None);
        let had_routes = context.faces.has_routes(id);
        tables.remove_face(id, had_routes);
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
        let Self { context, tables } = self;
        if context.strategies.any(|strategy| *strategy == Strategy::Multicast) {
            tables.new_next_hop(context, now_ns, prefix, to, out);
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

    /// The counters so far. Those of shared tables are one worker's.
    pub fn counters(&self) -> Counters {
        let TableUse { cs_evicted, nonces_evicted, .. } = self.tables.usage();
        let mut counters = self.context.counters;
        (counters.cs_evicted, counters.nonces_evicted) = (cs_evicted, nonces_evicted);
        counters
    }

    /// Number of pending Interests. Those of other shards are not counted; those of shared tables
    /// only by one worker.
    pub fn pending(&self) -> usize {
        self.tables.usage().pending
    }

    /// Use of the tables by a face; zeros if it does not exist. Pending Interests are counted as in
    /// [`Forwarder::pending`].
    pub fn face_use(&self, id: FaceId) -> FaceUse {
        let FaceCounts { exchanges, cs_hits, .. } = self.context.faces.counts(id);
        let exists = self.context.faces.get(id).is_some();
        let pending = if exists { self.tables.pending_of(id) } else { 0 };
        FaceUse { exchanges, cs_hits, pending: pending as u64 }
    }

    /// Number of stored Data, counted as in [`Forwarder::pending`].
    pub fn stored(&self) -> usize {
        self.tables.usage().stored
    }

    /// Number of bytes that the stored Data need, counted as in [`Forwarder::pending`].
    pub fn stored_bytes(&self) -> usize {
        self.tables.usage().stored_bytes
    }
}

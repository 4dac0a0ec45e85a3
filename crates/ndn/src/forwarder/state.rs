//! The state machine of a forwarder: its tables and their operations. The forwarding rules are in
//! the [pipelines](crate::forwarder::pipelines).

use crate::packets::{Headers, Interest, Name};

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceCounts, FaceId, FaceUse, Faces};
use crate::forwarder::scratch::Scratch;
use crate::forwarder::settings::Settings;
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::{
    ContentStore, DeadNonces, NameKey, NextHop, Pit, PrefixTable, Prefixes,
};
use crate::forwarder::token::Token;

/// A forwarder, or a shard of one.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) settings: Settings,
    pub(crate) shard: u8,
    pub(crate) key: NameKey,
    pub(crate) faces: Faces,
    pub(crate) fib: PrefixTable<Vec<NextHop>>,
    pub(crate) strategies: PrefixTable<Strategy>,
    pub(crate) pit: Pit,
    pub(crate) content: ContentStore,
    pub(crate) dead: DeadNonces,
    pub(crate) counters: Counters,
    pub(crate) scratch: Scratch,
}

/// Receives packets to send.
pub trait Outbox {
    /// Sends a packet on a face, with link headers.
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]);
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

impl Forwarder {
    /// A forwarder without faces and routes.
    pub fn new(settings: Settings) -> Self {
        Self::shard(settings, 0)
    }

    pub(crate) fn shard(settings: Settings, shard: u8) -> Self {
        Self {
            shard,
            key: NameKey::from_seed(settings.seed),
            faces: Faces::default(),
            fib: PrefixTable::new(),
            strategies: PrefixTable::new(),
            pit: Pit::new(settings.pit_capacity.min(Token::ENTRIES_MAX)),
            content: ContentStore::new(settings.cs_bytes),
            dead: DeadNonces::new(settings.dead_nonces),
            counters: Counters::default(),
            scratch: Scratch::new(settings.pit_capacity),
            settings,
        }
    }

    /// Removes expired PIT entries. Every received packet also does this, so a call is needed only
    /// while no packets arrive.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(at) = self.pit.due(now_ns) {
            self.expire(now_ns, at);
        }
    }

    /// Adds or changes a face. Numbers from 65,536 on are ignored.
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        self.faces.set(id, Some(face));
        if id.0 < Faces::MAX {
            self.pit.add_face(id);
        }
        if id.0 < Faces::MAX && self.scratch.last_data.len() <= id.0 as usize {
            self.scratch.last_data.resize(id.0 as usize + 1, 0);
        }
    }

    /// Removes a face, its routes and its pending Interests. Returns whether it had routes. If the
    /// face has no routes and no out-records, the cost is independent of the table sizes.
    pub fn remove_face(&mut self, id: FaceId) -> bool {
        self.faces.set(id, None);
        self.pit.remove_face(id);
        let had_routes = self.faces.has_routes(id);
        if had_routes {
            self.faces.count_routes(id, |_| 0);
            self.fib.retain(|hops| {
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
        let hops = self.fib.entry(&self.key, prefix, Vec::new).ok_or(TooLong)?;
        let is_new = !hops.iter().any(|hop| hop.face == face);
        hops.retain(|hop| hop.face != face);
        hops.push(NextHop { face, cost });
        hops.sort_unstable_by_key(|hop| (hop.cost, hop.face));
        let room = hops.len();
        self.scratch.hops.reserve(room);
        self.scratch.chosen.reserve(room);
        if is_new {
            self.faces.count_routes(face, |count| count + 1);
            self.new_next_hop(now_ns, prefix, face, out);
        }
        Ok(())
    }

    /// Removes a route; returns false if there was none.
    pub fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool {
        let Some(hops) = self.fib.remove(&self.key, prefix) else { return false };
        let left: Vec<_> = hops.iter().copied().filter(|hop| hop.face != face).collect();
        let removed = left.len() < hops.len();
        if removed {
            self.faces.count_routes(face, |count| count.saturating_sub(1));
        }
        if !left.is_empty() {
            self.fib.entry(&self.key, prefix, || left);
        }
        removed
    }

    /// Sets the strategy of a prefix and of all longer prefixes without their own.
    pub fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        let entry = self.strategies.entry(&self.key, prefix, || strategy).ok_or(TooLong)?;
        *entry = strategy;
        Ok(())
    }

    /// Removes the strategy of a prefix: that of the next shorter prefix applies. Returns false if
    /// the prefix had none.
    pub fn unset_strategy(&mut self, prefix: &Name<'_>) -> bool {
        self.strategies.remove(&self.key, prefix).is_some()
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.cs_evicted = self.content.evicted();
        counters.nonces_evicted = self.dead.evicted();
        counters
    }

    /// Number of pending Interests.
    pub fn pending(&self) -> usize {
        self.pit.len()
    }

    /// Use of the tables by a face; zeros if it does not exist.
    pub fn face_use(&self, id: FaceId) -> FaceUse {
        let FaceCounts { exchanges, cs_hits } = self.faces.counts(id);
        let pending = self.faces.get(id).map_or(0, |_| self.pit.pending_of(id) as u64);
        FaceUse { exchanges, cs_hits, pending }
    }

    /// Number of stored Data.
    pub fn stored(&self) -> usize {
        self.content.len()
    }

    /// Number of bytes that the stored Data need in the content store.
    pub fn stored_bytes(&self) -> usize {
        self.content.bytes()
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

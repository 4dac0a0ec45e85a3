//! The state machine: tables, and what may be asked of it. The [pipelines](crate::forwarder::pipelines) are its rules.

use crate::packets::{Headers, Interest, Name};

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceId, Faces};
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

/// Where packets go that leave.
pub trait Outbox {
    /// Sends a packet by a face, with what is to be said about it.
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]);
}

impl<F: FnMut(FaceId, &Headers, &[u8])> Outbox for F {
    fn send(&mut self, face: FaceId, headers: &Headers, packet: &[u8]) {
        self(face, headers, packet);
    }
}

/// A packet that came by a face.
pub type Came<'a> = (FaceId, &'a Headers, &'a [u8]);

/// A prefix with more than [`COMPONENTS_MAX`](crate::forwarder::COMPONENTS_MAX) components.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a prefix has more than {} components", crate::forwarder::COMPONENTS_MAX)]
pub struct TooLong;

impl Forwarder {
    /// Without faces and routes.
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
            content: ContentStore::new(settings.cs_capacity, settings.cs_bytes),
            dead: DeadNonces::new(settings.dead_nonces),
            counters: Counters::default(),
            scratch: Scratch::new(settings.pit_capacity),
            settings,
        }
    }

    /// Ends what is no longer pending. Packets do so too; this is for when none come.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(at) = self.pit.due(now_ns) {
            self.expire(now_ns, at);
        }
    }

    /// Adds a face, or changes it. Numbers from 65,536 on are no faces.
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        self.faces.set(id, Some(face));
        if id.0 < Faces::MAX {
            self.pit.add_face(id);
        }
        if id.0 < Faces::MAX && self.scratch.served.len() <= id.0 as usize {
            self.scratch.served.resize(id.0 as usize + 1, 0);
        }
    }

    /// A face is gone, with all routes to it and all that was pending there; whether there were routes. Without routes
    /// this costs the same however full the tables are.
    pub fn remove_face(&mut self, id: FaceId) -> bool {
        self.faces.set(id, None);
        self.pit.forget_face(id);
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

    /// Adds a route, or changes its cost. Interests that are pending and go to all next hops go to this one, too.
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

    /// Takes a route out; false if there was none.
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

    /// Chooses the strategy of a prefix and all below it that have none of their own.
    pub fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        let entry = self.strategies.entry(&self.key, prefix, || strategy).ok_or(TooLong)?;
        *entry = strategy;
        Ok(())
    }

    /// The strategy of the next shorter prefix counts again; false if the prefix had none of its own.
    pub fn unset_strategy(&mut self, prefix: &Name<'_>) -> bool {
        self.strategies.remove(&self.key, prefix).is_some()
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.cs_evicted = self.content.evicted();
        counters.nonces_evicted = self.dead.evicted();
        counters
    }

    /// How many Interests are pending.
    pub fn pending(&self) -> usize {
        self.pit.len()
    }

    /// How many Data are kept.
    pub fn kept(&self) -> usize {
        self.content.len()
    }

    /// Fills in the next hops of an Interest that `may` be taken: of its name, or of the first usable name of its hint.
    pub(crate) fn look_up_hops(
        &mut self,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        without_hint: bool,
        may: impl Fn(&Faces, FaceId) -> bool,
    ) {
        let Self { fib, key, scratch, faces, .. } = self;
        let may = |hop: &&NextHop| may(faces, hop.face);
        scratch.hops.clear();
        if interest.hint.is_empty() || without_hint {
            let hops = fib.longest(&interest.name, prefixes).map_or(&[][..], |(_, hops)| hops);
            scratch.hops.extend(hops.iter().filter(may));
            return;
        }
        for name in interest.delegations() {
            if scratch.hint.set(key, &name)
                && let Some((_, hops)) = fib.longest(&name, &scratch.hint)
            {
                scratch.hops.extend(hops.iter().filter(may));
                return;
            }
        }
    }
}

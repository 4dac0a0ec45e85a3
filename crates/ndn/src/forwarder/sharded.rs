//! Shards by name: each shard has its own tables, and nothing is shared.
//!
//! ```text
//!  Interest, Data, Nack ─▶ first components of the name ─▶ shard ── notices ─▶ all other shards
//! ```
//!
//! [`Sharded`] runs the shards in one thread. The relay runs each in a thread of its own.

use crate::packets::{Headers, Name};

use crate::forwarder::counters::Counters;
use crate::forwarder::dispatch::Dispatch;
use crate::forwarder::face::{Face, FaceId};
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Forwarder, Outbox, TooLong};
use crate::forwarder::strategy::Strategy;

/// Several forwarders, each for a part of the names. They send the same packets as a single one
/// while no table is full.
#[derive(Debug)]
pub struct Sharded {
    shards: Vec<Forwarder>,
    dispatch: Dispatch,
}

impl Sharded {
    /// Creates `shards` shards, 1 to 256, which divide the capacities equally.
    pub fn new(settings: &Settings, shards: usize) -> Self {
        let count = shards.clamp(1, 256);
        let part = |whole: usize| whole.div_ceil(count);
        let settings = Settings {
            pit_capacity: part(settings.pit_capacity),
            pit_per_face: settings.pit_per_face.map(part),
            cs_capacity: part(settings.cs_capacity),
            cs_bytes: part(settings.cs_bytes),
            dead_nonces: part(settings.dead_nonces),
            ..settings.clone()
        };
        let dispatch = Dispatch::new(&settings, count);
        let shard = |number| Forwarder::shard(settings.clone(), number as u8, count);
        Self { shards: (0..count).map(shard).collect(), dispatch }
    }

    /// The assignment of packets to the shards.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Returns the shards, for one thread each.
    pub fn into_shards(self) -> Vec<Forwarder> {
        self.shards
    }

    /// Handles a packet received on the face `from`, in the shard of its name. `now_ns` must not
    /// decrease from call to call.
    pub fn take(
        &mut self,
        now_ns: u64,
        from: FaceId,
        headers: &Headers,
        packet: &[u8],
        out: &mut impl Outbox,
    ) {
        let shard = self.dispatch.shard_of_packet(packet);
        self.shards[shard].take(now_ns, from, headers, packet, out);
        for notice in self.shards[shard].take_notices() {
            let others = self.shards.iter_mut().enumerate().filter(|(at, _)| *at != shard);
            others.for_each(|(_, other)| other.notice(&notice));
        }
    }

    /// Removes expired entries of all shards.
    pub fn advance(&mut self, now_ns: u64) {
        self.shards.iter_mut().for_each(|shard| shard.advance(now_ns));
    }

    /// Adds or changes a face in all shards. Numbers from 65,536 on are ignored.
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        self.shards.iter_mut().for_each(|shard| shard.set_face(id, face));
    }

    /// Adds a route to all shards, or changes its cost. If the next hop is new, matching pending
    /// Interests of the multicast strategy are sent to it.
    pub fn add_route(
        &mut self,
        now_ns: u64,
        prefix: &Name<'_>,
        face: FaceId,
        cost: u64,
        out: &mut impl Outbox,
    ) -> Result<(), TooLong> {
        self.shards
            .iter_mut()
            .try_for_each(|shard| shard.add_route(now_ns, prefix, face, cost, out))
    }

    /// Sets the strategy of a prefix, and of all longer prefixes without their own, in all shards.
    pub fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        self.shards.iter_mut().try_for_each(|shard| shard.set_strategy(prefix, strategy))
    }

    /// The sum of the counters of all shards.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.shards.iter().for_each(|shard| sum.add(&shard.counters()));
        sum
    }
}

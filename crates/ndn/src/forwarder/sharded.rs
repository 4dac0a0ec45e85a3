//! Shards by name: each shard has its own tables, and nothing is shared.
//!
//! ```text
//!  Interest, Data, Nack ─▶ first component of the name ─▶ shard
//! ```
//!
//! An Interest with CanBePrefix has at least one component, and all matching Data begin with it. So
//! an Interest, its Data and its Nack have the same first component. The cost: one core handles all
//! names with the same first component. In any design without locks, one core handles a burst for
//! one name.

use crate::packets::{Headers, Name, Packet};

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceId};
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Forwarder, Outbox, TooLong};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::NameKey;

/// Several forwarders, each for a part of the names. They send the same packets as a single one
/// while no table is full.
#[derive(Debug)]
pub struct Sharded {
    shards: Vec<Forwarder>,
    key: NameKey,
}

impl Sharded {
    /// Creates `shards` shards, 1 to 256, which divide the capacities equally.
    pub fn new(settings: &Settings, shards: usize) -> Self {
        let count = shards.clamp(1, 256);
        let part = |whole: usize| whole.div_ceil(count);
        let settings = Settings {
            pit_capacity: part(settings.pit_capacity),
            pit_per_face: settings.pit_per_face.map(part),
            cs_bytes: part(settings.cs_bytes),
            dead_nonces: part(settings.dead_nonces),
            ..settings.clone()
        };
        let shard = |number| Forwarder::shard(settings.clone(), number as u8);
        Self { shards: (0..count).map(shard).collect(), key: NameKey::from_seed(settings.seed) }
    }

    /// The index of the shard of a name.
    #[inline]
    pub fn shard_of(&self, name: &Name<'_>) -> usize {
        let spread = u128::from(self.key.first_component(name)) * self.shards.len() as u128;
        (spread >> 64) as usize
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
        let shard = match Packet::read(packet) {
            Ok(packet) => self.shard_of(packet.name()),
            // The shard counts the malformed packet; any shard will do.
            Err(_) => 0,
        };
        self.shards[shard].take(now_ns, from, headers, packet, out);
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

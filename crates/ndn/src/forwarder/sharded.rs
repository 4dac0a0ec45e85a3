//! Shards by name: each has its own tables, and nothing is shared.
//!
//! ```text
//!  Interest ─ first component ─▶ shard      Data, Nack ─ token, else first component ─▶ shard
//! ```
//!
//! An Interest with CanBePrefix has a component at least, and all Data that may answer it begin with that: by the
//! first component all meet that concern each other. The price is that names under one first component have one
//! core. A burst for one name has one core in any design without locks.

use crate::packets::{Headers, Name, Packet};

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceId};
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Forwarder, Outbox, TooLong};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::NameKey;

/// Several forwarders that share names out. What they do together one would do alone, while none has to evict.
#[derive(Debug)]
pub struct Sharded {
    shards: Vec<Forwarder>,
    key: NameKey,
}

impl Sharded {
    /// So many shards, 1 to 256, which divide capacities among them.
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
        let shard = |number| Forwarder::shard(settings.clone(), number as u8);
        Self { shards: (0..count).map(shard).collect(), key: NameKey::from_seed(settings.seed) }
    }

    /// The shard that a packet belongs to.
    #[inline]
    pub fn shard_of(&self, name: &Name<'_>) -> usize {
        let spread = u128::from(self.key.first_component(name)) * self.shards.len() as u128;
        (spread >> 64) as usize
    }

    /// The shards, to be given to threads.
    pub fn into_shards(self) -> Vec<Forwarder> {
        self.shards
    }

    /// As [`Forwarder::take`].
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
            // Whoever counts it.
            Err(_) => 0,
        };
        self.shards[shard].take(now_ns, from, headers, packet, out);
    }

    /// As [`Forwarder::set_face`].
    pub fn set_face(&mut self, id: FaceId, face: Face) {
        self.shards.iter_mut().for_each(|shard| shard.set_face(id, face));
    }

    /// As [`Forwarder::add_route`].
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

    /// As [`Forwarder::set_strategy`].
    pub fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        self.shards.iter_mut().try_for_each(|shard| shard.set_strategy(prefix, strategy))
    }

    /// The sum over all shards.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.shards.iter().for_each(|shard| sum.add(&shard.counters()));
        sum
    }
}

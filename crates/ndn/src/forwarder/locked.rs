//! Shared tables: any thread takes any packet, under the lock of the bucket that its name belongs to.
//!
//! ```text
//!  buckets:  | lock, tables | lock, tables | lock, tables | …      a line begins with each lock
//!  packet i: take lock of i … │ meanwhile the lock's line of packet i + 8 comes near
//! ```
//!
//! The lock is one compare-and-swap of 0 by 1, as the paper has it; who finds it taken tries again, and yields after a
//! while, for its holder may have lost its core. Packets belong to a bucket by the first component of their names, as in
//! [`Sharded`](crate::forwarder::Sharded) and for the same reason.

use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::packets::{Name, Packet};
use ringtap_base::prefetch;

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceId};
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Came, Forwarder, Outbox, TooLong};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::NameKey;

/// Packets that a lock's line is asked for ahead of its use.
const AHEAD: usize = 8;

/// Tries before a thread that waits lets others run.
const SPINS: u32 = 256;

/// Whether locks are brought near before they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetching {
    /// The paper's naive way.
    Off,
    /// The paper's ideal way.
    On,
}

/// Forwarders behind locks, for threads that share them.
#[derive(Debug)]
pub struct Locked {
    buckets: Vec<Bucket>,
    key: NameKey,
    prefetching: Prefetching,
}

/// No two locks share a line.
#[derive(Debug)]
#[repr(align(128))]
struct Bucket(Mutex<Forwarder>);

impl Bucket {
    fn lock(&self) -> MutexGuard<'_, Forwarder> {
        let mut tries = 0;
        loop {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                // A thread panicked with the lock: the run is over anyway, what is left may be read.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if tries < SPINS => std::hint::spin_loop(),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
            tries += 1;
        }
    }
}

impl Locked {
    /// So many buckets, 1 to 256, which divide capacities among them.
    pub fn new(settings: &Settings, buckets: usize, prefetching: Prefetching) -> Self {
        let count = buckets.clamp(1, 256);
        // Some buckets have more than their part, so all may.
        let part = |whole: usize| (whole.div_ceil(count) * 2).min(whole);
        let settings = Settings {
            pit_capacity: part(settings.pit_capacity),
            pit_per_face: settings.pit_per_face.map(part),
            cs_capacity: part(settings.cs_capacity),
            cs_bytes: part(settings.cs_bytes),
            dead_nonces: part(settings.dead_nonces),
            ..settings.clone()
        };
        // Numbered, so that no two give out the same token.
        let bucket = |number| Bucket(Mutex::new(Forwarder::shard(settings.clone(), number as u8)));
        let key = NameKey::from_seed(settings.seed);
        Self { buckets: (0..count).map(bucket).collect(), key, prefetching }
    }

    fn bucket(&self, packet: &[u8]) -> &Bucket {
        let read = Packet::read(packet);
        let name = read.as_ref().map_or(&Name::EMPTY, Packet::name);
        let spread = u128::from(self.key.first_component(name)) * self.buckets.len() as u128;
        &self.buckets[(spread >> 64) as usize]
    }

    /// As [`Forwarder::take`], for packets that came together. Any thread may.
    pub fn take(&self, now_ns: u64, packets: &[Came<'_>], out: &mut impl Outbox) {
        let mut ahead = [&self.buckets[0]; AHEAD];
        for (at, &(_, _, packet)) in packets.iter().take(AHEAD).enumerate() {
            ahead[at] = self.near(packet);
        }
        for (at, (from, headers, packet)) in packets.iter().enumerate() {
            let bucket = ahead[at % AHEAD];
            if let Some((_, _, later)) = packets.get(at + AHEAD) {
                ahead[at % AHEAD] = self.near(later);
            }
            bucket.lock().take(now_ns, *from, headers, packet, out);
        }
    }

    fn near(&self, packet: &[u8]) -> &Bucket {
        let bucket = self.bucket(packet);
        if self.prefetching == Prefetching::On {
            prefetch(bucket);
        }
        bucket
    }

    /// As [`Forwarder::advance`].
    pub fn advance(&self, now_ns: u64) {
        self.buckets.iter().for_each(|bucket| bucket.lock().advance(now_ns));
    }

    /// As [`Forwarder::set_face`].
    pub fn set_face(&self, id: FaceId, face: Face) {
        self.buckets.iter().for_each(|bucket| bucket.lock().set_face(id, face));
    }

    /// As [`Forwarder::add_route`].
    pub fn add_route(
        &self,
        now_ns: u64,
        prefix: &Name<'_>,
        face: FaceId,
        cost: u64,
        out: &mut impl Outbox,
    ) -> Result<(), TooLong> {
        self.buckets
            .iter()
            .try_for_each(|bucket| bucket.lock().add_route(now_ns, prefix, face, cost, out))
    }

    /// As [`Forwarder::set_strategy`].
    pub fn set_strategy(&self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        self.buckets.iter().try_for_each(|bucket| bucket.lock().set_strategy(prefix, strategy))
    }

    /// The sum over all buckets.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.buckets.iter().for_each(|bucket| sum.add(&bucket.lock().counters()));
        sum
    }
}

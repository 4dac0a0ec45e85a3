//! Shared tables behind locks: any thread handles any packet under the lock of its name's bucket.
//!
//! ```text
//!  buckets:  | lock, tables | lock, tables | lock, tables | …      each lock begins a cache line
//!  packet i: take lock of i … │ prefetch the line of the lock of packet i + 8
//! ```
//!
//! Locking is one compare-and-swap of 0 by 1, as in the paper. A thread that finds the lock taken
//! retries. After a while it yields, because the holder may not be running. The first component of
//! its name selects a packet's bucket, as in [`Sharded`](crate::forwarder::Sharded) and for the
//! same reason.

use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::packets::{Name, Packet};
use ringtap_base::prefetch;

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{Face, FaceId};
use crate::forwarder::settings::Settings;
use crate::forwarder::state::{Forwarder, Outbox, Received, TooLong};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::NameKey;

/// Distance, in packets, at which the line of a lock is prefetched.
const AHEAD: usize = 8;

/// Retries before a waiting thread yields.
const SPINS: u32 = 256;

/// Whether the lines of locks are prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetching {
    /// The paper's naive variant.
    Off,
    /// The paper's ideal variant.
    On,
}

/// Forwarders behind locks, shared by any number of threads.
#[derive(Debug)]
pub struct Locked {
    buckets: Vec<Bucket>,
    key: NameKey,
    prefetching: Prefetching,
}

/// A forwarder and its lock, aligned so that no two locks share a cache line.
#[derive(Debug)]
#[repr(align(128))]
struct Bucket(Mutex<Forwarder>);

impl Bucket {
    fn lock(&self) -> MutexGuard<'_, Forwarder> {
        let mut tries = 0;
        loop {
            match self.0.try_lock() {
                Ok(guard) => return guard,
                // A thread panicked while it held the lock. That panic fails the run; the tables
                // may still be read.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if tries < SPINS => std::hint::spin_loop(),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
            tries += 1;
        }
    }
}

impl Locked {
    /// Creates `buckets` buckets, 1 to 256. Each has up to twice its part of the capacities.
    pub fn new(settings: &Settings, buckets: usize, prefetching: Prefetching) -> Self {
        let count = buckets.clamp(1, 256);
        // The load differs between buckets, so each may use twice its part.
        let part = |whole: usize| (whole.div_ceil(count) * 2).min(whole);
        let settings = Settings {
            pit_capacity: part(settings.pit_capacity),
            pit_per_face: settings.pit_per_face.map(part),
            cs_bytes: part(settings.cs_bytes),
            dead_nonces: part(settings.dead_nonces),
            ..settings.clone()
        };
        // Each bucket is a shard with its own number, so that PIT tokens differ.
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

    /// Handles packets that arrived together, in order, each under the lock of its bucket. Any
    /// thread may call it. `now_ns` must not decrease from call to call.
    pub fn take(&self, now_ns: u64, packets: &[Received<'_>], out: &mut impl Outbox) {
        let mut ahead = [&self.buckets[0]; AHEAD];
        for (at, &(_, _, packet)) in packets.iter().take(AHEAD).enumerate() {
            ahead[at] = self.find_bucket(packet);
        }
        for (at, (from, headers, packet)) in packets.iter().enumerate() {
            let bucket = ahead[at % AHEAD];
            if let Some((_, _, later)) = packets.get(at + AHEAD) {
                ahead[at % AHEAD] = self.find_bucket(later);
            }
            bucket.lock().take(now_ns, *from, headers, packet, out);
        }
    }

    /// The bucket of a packet; prefetches its lock if configured.
    fn find_bucket(&self, packet: &[u8]) -> &Bucket {
        let bucket = self.bucket(packet);
        if self.prefetching == Prefetching::On {
            prefetch(bucket);
        }
        bucket
    }

    /// Removes expired PIT entries of all buckets. A received packet does this only in its own
    /// bucket.
    pub fn advance(&self, now_ns: u64) {
        self.buckets.iter().for_each(|bucket| bucket.lock().advance(now_ns));
    }

    /// Adds or changes a face in all buckets. Numbers from 65,536 on are ignored.
    pub fn set_face(&self, id: FaceId, face: Face) {
        self.buckets.iter().for_each(|bucket| bucket.lock().set_face(id, face));
    }

    /// Adds a route to all buckets, or changes its cost. If the next hop is new, matching pending
    /// Interests of the multicast strategy are sent to it.
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

    /// Sets the strategy of a prefix, and of all longer prefixes without their own, in all buckets.
    pub fn set_strategy(&self, prefix: &Name<'_>, strategy: Strategy) -> Result<(), TooLong> {
        self.buckets.iter().try_for_each(|bucket| bucket.lock().set_strategy(prefix, strategy))
    }

    /// The sum of the counters of all buckets.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.buckets.iter().for_each(|bucket| sum.add(&bucket.lock().counters()));
        sum
    }
}

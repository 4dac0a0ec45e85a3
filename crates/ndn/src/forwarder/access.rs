//! Where a worker has the tables that packets change: for itself ([`OwnTables`]), or shared with others.
//!
//! The product has one design, own tables. Others implement [`Access`] for comparison.

use std::fmt::Debug;

use crate::packets::{Name, Packet};

use crate::forwarder::context::Context;
use crate::forwarder::face::FaceId;
use crate::forwarder::outbox::{Outbox, Received};
use crate::forwarder::pipelines::Pipelines;
use crate::forwarder::scratch::PREFETCH_LAG;
use crate::forwarder::tables::{OwnTables, PendingInterests, Prefixes};

/// The tables of a worker.
pub trait Access: Debug + Send + 'static {
    /// Prepares for a face.
    fn add_face(&mut self, face: FaceId);

    /// Removes the records of a face. `had_routes` is false if it has no out-records.
    fn remove_face(&mut self, face: FaceId, had_routes: bool);

    /// Removes expired entries.
    fn expire(&mut self, context: &mut Context, now_ns: u64);

    /// Reads packets that arrived together, and hashes their names.
    fn read<'a>(
        &self,
        context: &Context,
        packets: &[Received<'a>],
        read: &mut [Option<Packet<'a>>],
        prefixes: &mut [Prefixes],
    ) {
        for (at, (_, _, packet)) in packets.iter().enumerate() {
            read[at] = context.read(packet, &mut prefixes[at]);
        }
    }

    /// Handles packets, which were read, in order.
    fn handle(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        packets: &[Received<'_>],
        read: &[Option<Packet<'_>>],
        prefixes: &[Prefixes],
        out: &mut impl Outbox,
    );

    /// Sends the pending Interests of the multicast strategy to a new next hop of a prefix.
    fn new_next_hop(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        prefix: &Name<'_>,
        to: FaceId,
        out: &mut impl Outbox,
    );

    /// The tables, if the worker has them for itself: those of its shard, to which notices of other shards apply.
    fn own(&mut self) -> Option<&mut OwnTables> {
        None
    }

    /// The use of the tables; of shared ones in one worker alone, so that a sum counts them once.
    fn usage(&self) -> TableUse;

    /// Number of pending Interests of a face, counted as in [`Access::usage`].
    fn pending_of(&self, face: FaceId) -> usize;
}

/// The use of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUse {
    /// Number of pending Interests.
    pub pending: usize,
    /// Number of stored Data, and of the bytes that they need.
    pub stored: usize,
    /// Bytes that the stored Data need.
    pub stored_bytes: usize,
    /// Data evicted from the content store.
    pub cs_evicted: u64,
    /// Nonces evicted before their time.
    pub nonces_evicted: u64,
}

impl Access for OwnTables {
    fn add_face(&mut self, face: FaceId) {
        self.pit.add_face(face);
    }

    fn remove_face(&mut self, face: FaceId, _had_routes: bool) {
        self.pit.remove_face(face);
    }

    #[inline]
    fn expire(&mut self, context: &mut Context, now_ns: u64) {
        while let Some(at) = self.pit.due(now_ns) {
            Pipelines::new(context, self).expire(now_ns, at);
        }
    }

    /// Reads packets and prefetches their table entries in steps. Each step reads what an earlier step
    /// has prefetched while the packets between were read.
    #[inline]
    fn read<'a>(
        &self,
        context: &Context,
        packets: &[Received<'a>],
        read: &mut [Option<Packet<'a>>],
        prefixes: &mut [Prefixes],
    ) {
        if let [(_, _, packet)] = packets {
            read[0] = context.read(packet, &mut prefixes[0]);
            return;
        }
        let Self { pit, dead, content } = self;
        let (mut new, stores) = (0, !content.is_empty());
        for step in 0..packets.len() + PREFETCH_LAG {
            if let Some((_, _, packet)) = packets.get(step) {
                read[step] = context.read(packet, &mut prefixes[step]);
                let hash = prefixes[step].full();
                pit.prefetch_bucket(hash);
                if stores {
                    content.prefetch(hash);
                }
                if let Some(Packet::Interest(interest)) = &read[step] {
                    dead.prefetch(context.key.with(hash, interest.nonce.unwrap_or(0).into()));
                    pit.prefetch_free(new);
                    new += 1;
                }
            }
            if let Some(before) = step.checked_sub(PREFETCH_LAG) {
                let hash = prefixes[before].full();
                pit.prefetch_entries(hash);
                if stores {
                    content.prefetch_node(hash);
                }
            }
        }
    }

    #[inline]
    fn handle(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        packets: &[Received<'_>],
        read: &[Option<Packet<'_>>],
        prefixes: &[Prefixes],
        out: &mut impl Outbox,
    ) {
        let mut pipelines = Pipelines::new(context, self);
        for ((received, read), prefixes) in packets.iter().zip(read).zip(prefixes) {
            pipelines.handle(now_ns, *received, read.as_ref(), prefixes, out);
        }
    }

    fn new_next_hop(
        &mut self,
        context: &mut Context,
        now_ns: u64,
        prefix: &Name<'_>,
        to: FaceId,
        out: &mut impl Outbox,
    ) {
        let all: Vec<u32> = self.pit.pending().collect();
        Pipelines::new(context, self).new_next_hop(now_ns, prefix, to, &all, out);
    }

    fn own(&mut self) -> Option<&mut OwnTables> {
        Some(self)
    }

    fn usage(&self) -> TableUse {
        TableUse {
            pending: self.pit.len(),
            stored: self.content.len(),
            stored_bytes: self.content.bytes(),
            cs_evicted: self.content.evicted(),
            nonces_evicted: self.dead.evicted(),
        }
    }

    fn pending_of(&self, face: FaceId) -> usize {
        self.pit.pending_of(face)
    }
}

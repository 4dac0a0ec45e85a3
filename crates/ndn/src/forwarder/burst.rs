//! Handling of packets that arrive together: prefetches overlap their cache misses.
//!
//! ```text
//!  read packet 9, hash ─▶ prefetch its index bucket, dead nonces
//!                      ─▶ prefetch the entries of packet 1, whose bucket has arrived
//!  read packet 10, …                                      then handle all in order
//! ```
//!
//! A worker that shares tables prefetches locks only: what is behind them may change.
//!
//! Invariant: the output equals that of one [`Forwarder::take`] per packet. Only prefetches run
//! ahead.

use crate::packets::{Headers, Packet};

use crate::forwarder::face::FaceId;
use crate::forwarder::lock::lock;
use crate::forwarder::pipelines::Pipelines;
use crate::forwarder::scratch::{GROUP, PREFETCH_LAG};
use crate::forwarder::state::{Access, Context, Forwarder, Outbox, Received, expire_held};
use crate::forwarder::tables::{OwnTables, Prefixes};

impl Forwarder {
    /// Handles a packet received on the face `from`; passes the resulting packets to `out`.
    /// `now_ns` must not decrease from call to call.
    pub fn take(
        &mut self,
        now_ns: u64,
        from: FaceId,
        headers: &Headers,
        packet: &[u8],
        out: &mut impl Outbox,
    ) {
        self.burst(now_ns, &[(from, headers, packet)], out);
    }

    /// Handles packets that arrived together. The result is that of one [`Forwarder::take`] per
    /// packet, in order.
    pub fn burst(&mut self, now_ns: u64, packets: &[Received<'_>], out: &mut impl Outbox) {
        self.advance(now_ns);
        let Self { context, access } = self;
        let mut prefixes = std::mem::take(&mut context.scratch.prefixes);
        for group in packets.chunks(GROUP) {
            let mut read = [None; GROUP];
            if group.len() > 1 {
                group.iter().for_each(|(_, _, packet)| prefetch_packet(packet));
            }
            match access {
                Access::Own(tables) if group.len() > 1 => {
                    read_and_prefetch(context, tables, group, &mut read, &mut prefixes);
                }
                _ => {
                    for (at, (_, _, packet)) in group.iter().enumerate() {
                        read[at] = context.read(packet, &mut prefixes[at]);
                    }
                }
            }
            let read = &read[..group.len()];
            let packets = group.iter().zip(read).zip(&prefixes);
            match access {
                Access::Own(tables) => {
                    let mut pipelines = Pipelines::new(context, &mut **tables);
                    for ((received, read), prefixes) in packets {
                        pipelines.handle(now_ns, *received, read.as_ref(), prefixes, out);
                    }
                }
                Access::Global(shared) => {
                    for ((received, read), prefixes) in packets {
                        let mut tables = lock(shared, &mut context.counters.lock_waits);
                        let mut pipelines = Pipelines::new(context, &mut *tables);
                        pipelines.handle(now_ns, *received, read.as_ref(), prefixes, out);
                    }
                }
                Access::Buckets(shared, local, prefetch) => {
                    if *prefetch {
                        let named = read.iter().zip(&prefixes).filter(|(read, _)| read.is_some());
                        named.for_each(|(_, prefixes)| shared.prefetch(prefixes.full()));
                    }
                    for ((received, read), prefixes) in packets {
                        let mut held = match read {
                            Some(Packet::Data(data)) => {
                                shared.hold_for_data(local, &context.key, data, prefixes)
                            }
                            Some(Packet::Interest(_)) => shared.hold(local, prefixes),
                            // Without a name, any bucket will do; it is not changed.
                            None => shared.hold_bucket(local, 0),
                        };
                        // Another worker may not have noticed an expiry yet.
                        expire_held(context, &mut held, now_ns);
                        let mut pipelines = Pipelines::new(context, &mut held);
                        pipelines.handle(now_ns, *received, read.as_ref(), prefixes, out);
                    }
                }
            }
        }
        context.scratch.prefixes = prefixes;
    }
}

impl Context {
    #[inline]
    fn read<'a>(&self, packet: &'a [u8], prefixes: &mut Prefixes) -> Option<Packet<'a>> {
        let read =
            Packet::read(packet).ok().filter(|_| packet.len() <= crate::packets::PACKET_MAX)?;
        prefixes.set(&self.key, read.name());
        Some(read)
    }
}

/// Reads packets and prefetches their table entries in steps. Each step reads what an earlier step
/// has prefetched while the packets between were read.
fn read_and_prefetch<'a>(
    context: &Context,
    tables: &OwnTables,
    packets: &[Received<'a>],
    read: &mut [Option<Packet<'a>>],
    prefixes: &mut [Prefixes],
) {
    let OwnTables { pit, dead, content } = tables;
    let (mut new, stores) = (0, content.len() > 0);
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

/// Prefetches the first two cache lines of a packet, which contain nearly all names.
#[inline]
fn prefetch_packet(packet: &[u8]) {
    for at in [0, 64] {
        if let Some(byte) = packet.get(at) {
            ringtap_base::prefetch(byte);
        }
    }
}

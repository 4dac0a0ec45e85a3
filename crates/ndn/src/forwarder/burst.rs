//! Handling of packets that arrive together: prefetches overlap their cache misses.
//!
//! ```text
//!  read packet 9, hash ─▶ prefetch its index bucket, dead nonces
//!                      ─▶ prefetch the entries of packet 1, whose bucket has arrived
//!  read packet 10, …                                      then handle all in order
//! ```
//!
//! Invariant: the output equals that of one [`Forwarder::take`] per packet. Only prefetches run
//! ahead.

use crate::packets::Headers;

use crate::forwarder::access::Access;
use crate::forwarder::face::FaceId;
use crate::forwarder::outbox::{Outbox, Received};
use crate::forwarder::scratch::GROUP;
use crate::forwarder::state::Forwarder;

impl<A: Access> Forwarder<A> {
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
        let Self { context, tables } = self;
        let mut prefixes = std::mem::take(&mut context.scratch.prefixes);
        for group in packets.chunks(GROUP) {
            let mut read = [None; GROUP];
            if group.len() > 1 {
                group.iter().for_each(|(_, _, packet)| prefetch_packet(packet));
            }
            tables.read(context, group, &mut read, &mut prefixes);
            tables.handle(context, now_ns, group, &read[..group.len()], &prefixes, out);
        }
        context.scratch.prefixes = prefixes;
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

//! Handling of packets that arrive together: prefetches overlap their cache misses.
//!
//! ```text
//!  parse, hash ─▶ index buckets, dead nonces ─▶ entries ─▶ records, Interests ─▶ handle in order
//!                 └─────────────────────── prefetched ──────────────────────┘
//! ```
//!
//! Invariant: the output equals that of one [`Forwarder::take`] per packet. Only prefetches run
//! ahead.

use crate::packets::{Headers, Packet};

use crate::forwarder::counters::Drop;
use crate::forwarder::face::FaceId;
use crate::forwarder::pipelines::Arrival;
use crate::forwarder::scratch::GROUP;
use crate::forwarder::state::{Forwarder, Outbox, Received};
use crate::forwarder::tables::Prefixes;

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
        let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
        for group in packets.chunks(GROUP) {
            let mut read = [None; GROUP];
            if group.len() > 1 {
                group.iter().for_each(|(_, _, packet)| prefetch_packet(packet));
            }
            for ((&(_, _, packet), read), prefixes) in
                group.iter().zip(&mut read).zip(&mut prefixes)
            {
                *read = self.read(packet, prefixes);
            }
            if group.len() > 1 {
                self.prefetch_tables(&read[..group.len()], &prefixes);
            }
            for ((received, read), prefixes) in group.iter().zip(&read).zip(&prefixes) {
                if let Err(reason) = self.dispatch(now_ns, *received, read.as_ref(), prefixes, out)
                {
                    self.counters.drop(reason);
                }
            }
        }
        self.scratch.prefixes = prefixes;
    }

    #[inline]
    fn read<'a>(&self, packet: &'a [u8], prefixes: &mut Prefixes) -> Option<Packet<'a>> {
        let read =
            Packet::read(packet).ok().filter(|_| packet.len() <= crate::packets::PACKET_MAX)?;
        prefixes.set(&self.key, read.name());
        Some(read)
    }

    /// Prefetches the table entries of the packets in steps; each step reads what the previous step
    /// has prefetched.
    fn prefetch_tables(&self, read: &[Option<Packet<'_>>], prefixes: &[Prefixes]) {
        let (mut new, stores) = (0, self.content.len() > 0);
        for (packet, prefixes) in read.iter().zip(prefixes) {
            let hash = prefixes.full();
            self.pit.prefetch_bucket(hash);
            if stores {
                self.content.prefetch(hash);
            }
            if let Some(Packet::Interest(interest)) = packet {
                self.dead.prefetch(self.key.with(hash, interest.nonce.unwrap_or(0).into()));
                self.pit.prefetch_free(new);
                new += 1;
            }
        }
        for prefixes in &prefixes[..read.len()] {
            self.pit.prefetch_entries(prefixes.full());
            if stores {
                self.content.prefetch_node(prefixes.full());
            }
        }
        for prefixes in &prefixes[..read.len()] {
            self.pit.prefetch_records(prefixes.full());
        }
    }

    fn dispatch(
        &mut self,
        now_ns: u64,
        (from, headers, _): (FaceId, &Headers, &[u8]),
        read: Option<&Packet<'_>>,
        prefixes: &Prefixes,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let via = self.faces.get(from).ok_or(Drop::NoFace)?;
        let arrival = Arrival { now_ns, from, via, headers, prefixes };
        match (read.ok_or(Drop::Malformed)?, headers.nack) {
            (Packet::Interest(interest), None) => self.interest(&arrival, interest, out),
            (Packet::Interest(interest), Some(reason)) => {
                self.nack(&arrival, reason, interest, out)
            }
            (Packet::Data(data), None) => self.data(&arrival, data, out),
            (Packet::Data(_), Some(_)) => Err(Drop::Malformed),
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

//! Packets that come together: their misses of the cache overlap.
//!
//! ```text
//!  read and hash all ─▶ index buckets, dead nonces ─▶ entries ─▶ records, Interests ─▶ one after the other, as they came
//!                       └──────────────── asked for, not waited for ───────────────┘
//! ```
//!
//! Invariant: what comes out is what [`Forwarder::take`] gives for each in turn. Only hints go ahead of the order.

use crate::packets::{Headers, Packet};

use crate::forwarder::counters::Drop;
use crate::forwarder::face::FaceId;
use crate::forwarder::pipelines::Arrival;
use crate::forwarder::scratch::GROUP;
use crate::forwarder::state::{Came, Forwarder, Outbox};
use crate::forwarder::tables::Prefixes;

impl Forwarder {
    /// Takes a packet that came by a face. Time does not go back.
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

    /// Takes packets that came together, as [`Forwarder::take`] would one after the other.
    pub fn burst(&mut self, now_ns: u64, packets: &[Came<'_>], out: &mut impl Outbox) {
        self.advance(now_ns);
        let mut prefixes = std::mem::take(&mut self.scratch.prefixes);
        for group in packets.chunks(GROUP) {
            let mut read = [None; GROUP];
            if group.len() > 1 {
                group.iter().for_each(|(_, _, packet)| bring_packet(packet));
            }
            for ((&(_, _, packet), read), prefixes) in
                group.iter().zip(&mut read).zip(&mut prefixes)
            {
                *read = self.read(packet, prefixes);
            }
            if group.len() > 1 {
                self.bring_near(&read[..group.len()], &prefixes);
            }
            for ((came, read), prefixes) in group.iter().zip(&read).zip(&prefixes) {
                if let Err(reason) = self.judge(now_ns, *came, read.as_ref(), prefixes, out) {
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

    /// Asks for what the packets will need, step by step: each step reads what the one before has asked for.
    fn bring_near(&self, read: &[Option<Packet<'_>>], prefixes: &[Prefixes]) {
        let mut new = 0;
        for (packet, prefixes) in read.iter().zip(prefixes) {
            let hash = prefixes.full();
            self.pit.near_bucket(hash);
            if let Some(Packet::Interest(interest)) = packet {
                self.dead.near(self.key.with(hash, interest.nonce.unwrap_or(0).into()));
                self.pit.near_free(new);
                new += 1;
            }
        }
        for prefixes in &prefixes[..read.len()] {
            self.pit.near_entry(prefixes.full());
        }
        for prefixes in &prefixes[..read.len()] {
            self.pit.near_records(prefixes.full());
        }
    }

    fn judge(
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

/// The lines that nearly all names lie in.
#[inline]
fn bring_packet(packet: &[u8]) {
    for at in [0, 64] {
        if let Some(byte) = packet.get(at) {
            ringtap_base::prefetch(byte);
        }
    }
}

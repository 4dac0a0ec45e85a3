//! The forwarding rules for Interests, Data, Nacks and expired entries, as in NFD, the reference
//! implementation of NDN forwarding.

mod data;
mod interest;
mod nack;

use crate::packets::{Headers, Interest, NackReason, Name, Packet, Rewrite};

use crate::forwarder::context::Context;
use crate::forwarder::counters::Drop;
use crate::forwarder::face::{Face, FaceId, LinkKind};
use crate::forwarder::outbox::{Outbox, Received};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::{NonceList, PendingInterests, Prefixes, Tables};
use crate::forwarder::token::Token;

/// Whether the scope of a name is this machine.
fn is_localhost(name: &Name<'_>) -> bool {
    name.as_bytes().starts_with(b"\x08\x09localhost")
}

/// Whether the scope of a name is this machine and its direct neighbours.
fn is_localhop(name: &Name<'_>) -> bool {
    name.as_bytes().starts_with(b"\x08\x08localhop")
}

/// Whether an Interest received on the face `from`, with properties `via`, may be sent on the face
/// `to`, with properties `face`.
fn may_forward(name: &Name<'_>, from: FaceId, via: Face, to: FaceId, face: Face) -> bool {
    if from == to && face.link != LinkKind::AdHoc {
        return false;
    }
    face.local || !is_localhost(name) && (via.local || !is_localhop(name))
}

/// Time, receiving face, headers and name prefixes of a received packet.
pub(crate) struct Arrival<'a> {
    pub(crate) now_ns: u64,
    pub(crate) from: FaceId,
    /// Properties of the receiving face.
    pub(crate) via: Face,
    pub(crate) headers: &'a Headers,
    pub(crate) prefixes: &'a Prefixes,
}

/// The pipelines of one forwarder, with the tables that it uses for the current packet.
pub struct Pipelines<'a, T: Tables> {
    pub(crate) context: &'a mut Context,
    pub(crate) pit: &'a mut T::Pit,
    pub(crate) content: &'a mut T::Content,
    pub(crate) dead: &'a mut T::Dead,
}

/// An Interest to send.
struct Outgoing<'a> {
    interest: &'a Interest<'a>,
    /// The face that received it.
    from: FaceId,
    nonce: u32,
    strip_hint: bool,
    congestion_mark: u64,
}

impl<'a, T: Tables> Pipelines<'a, T> {
    /// The pipelines over these tables.
    pub fn new(context: &'a mut Context, tables: &'a mut T) -> Self {
        let (pit, content, dead) = tables.parts();
        Self { context, pit, content, dead }
    }

    /// Handles a received packet. `read` is `None` if it is malformed.
    #[inline]
    pub fn handle(
        &mut self,
        now_ns: u64,
        (from, headers, _): Received<'_>,
        read: Option<&Packet<'_>>,
        prefixes: &Prefixes,
        out: &mut impl Outbox,
    ) {
        let via = self.context.faces.get(from);
        let result = match (via, read) {
            (None, _) => Err(Drop::NoFace),
            (_, None) => Err(Drop::Malformed),
            (Some(via), Some(packet)) => {
                let arrival = Arrival { now_ns, from, via, headers, prefixes };
                match (packet, headers.nack) {
                    (Packet::Interest(interest), None) => self.interest(&arrival, interest, out),
                    (Packet::Interest(interest), Some(reason)) => {
                        self.nack(&arrival, reason, interest, out)
                    }
                    (Packet::Data(data), None) => self.data(&arrival, data, out),
                    (Packet::Data(_), Some(_)) => Err(Drop::Malformed),
                }
            }
        };
        if let Err(reason) = result {
            self.context.counters.drop(reason);
        }
    }

    /// Removes an entry that has no route or that all upstream faces refused.
    fn reject(&mut self, now_ns: u64, at: u32) {
        self.notify_done(now_ns, at, None);
        self.expire(now_ns, at);
    }

    /// Removes an entry without a Data. Stores its nonces in the dead nonce list.
    pub fn expire(&mut self, now_ns: u64, at: u32) {
        self.context.counters.unsatisfied += u64::from(!self.pit.state(at).shadow);
        // The nonces count from the expiry, even if it is handled later.
        self.store_dead_nonces(now_ns.min(self.pit.state(at).expiry_ns), at);
        self.pit.remove(at);
    }

    /// Stores the nonces of an entry's out-records in the dead nonce list.
    fn store_dead_nonces(&mut self, now_ns: u64, at: u32) {
        let hash = self.pit.hash(at);
        for record in self.pit.out_records(at) {
            self.dead.put(now_ns, self.context.key.with(hash, record.nonce.into()));
        }
    }

    /// Sends the Interest of an entry on the chosen faces.
    fn send_chosen(
        &mut self,
        now_ns: u64,
        at: u32,
        outgoing: &Outgoing<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let mut wire = std::mem::take(&mut self.context.scratch.wire);
        wire.clear();
        let hop_limit = outgoing.interest.hop_limit.map(|hops| hops.saturating_sub(1));
        let Outgoing { nonce, strip_hint, congestion_mark, .. } = *outgoing;
        outgoing.interest.rewrite(&Rewrite { hop_limit, nonce, strip_hint }, &mut wire);
        let expiry_ns = now_ns.saturating_add(self.lifetime_ns(outgoing.interest));
        let (entry, generation) = self.pit.token(at);
        let token = Token { shard: self.context.shard, entry, generation };
        let mut headers = Headers { token: token.write(), congestion_mark, ..Headers::default() };
        let mut result = Ok(());
        for index in 0..self.context.scratch.chosen.len() {
            let face = self.context.scratch.chosen[index];
            let is_local = self.context.faces.get(face).is_some_and(|face| face.local);
            headers.incoming_face = is_local.then_some(outgoing.from.0.into());
            if hop_limit == Some(0) && !is_local {
                result = Err(Drop::HopLimit);
            } else if !self.pit.set_out_record(at, face, nonce, now_ns, expiry_ns) {
                result = Err(Drop::RecordsFull);
            } else {
                self.context.counters.interests_out += 1;
                match self.pit.state(at).short {
                    true => out.send_after_notices(face, &headers, &wire),
                    false => out.send(face, &headers, &wire),
                }
            }
        }
        self.context.scratch.wire = wire;
        result
    }

    fn lifetime_ns(&self, interest: &Interest<'_>) -> u64 {
        interest.lifetime_ms.min(self.context.settings.lifetime_max_ms).saturating_mul(1_000_000)
    }

    /// Removes the in-record of a downstream face; sends it a Nack if it is point-to-point.
    fn nack_downstream(
        &mut self,
        now_ns: u64,
        at: u32,
        face: FaceId,
        reason: NackReason,
        out: &mut impl Outbox,
    ) {
        let Some((nonce, token)) = self.pit.remove_in_record(at, face) else { return };
        // A record that has expired gets no Data.
        self.notify_pending(now_ns, at, face, 0, token);
        if self.context.faces.get(face).is_none_or(|face| face.link != LinkKind::PointToPoint) {
            return;
        }
        let Self { pit, context: Context { scratch, counters, .. }, .. } = self;
        pit.interest(at, &mut scratch.stored_interest);
        let Ok(interest) = Interest::read(&scratch.stored_interest) else { return };
        scratch.wire.clear();
        let same = Rewrite { hop_limit: interest.hop_limit, nonce, strip_hint: false };
        interest.rewrite(&same, &mut scratch.wire);
        counters.nacks_out += 1;
        let headers = Headers { token, nack: Some(reason), ..Headers::default() };
        out.send(face, &headers, &scratch.wire);
    }

    /// Handles a new next hop of a prefix: sends it the pending Interests `all` of the multicast
    /// strategy to which it applies.
    pub fn new_next_hop(
        &mut self,
        now_ns: u64,
        prefix: &Name<'_>,
        to: FaceId,
        all: &[u32],
        out: &mut impl Outbox,
    ) {
        let Some(face) = self.context.faces.get(to) else { return };
        let components = prefix.components().count();
        let (mut wire, mut prefixes) = (Vec::new(), Prefixes::new());
        for &at in all {
            self.pit.interest(at, &mut wire);
            let Ok(interest) = Interest::read(&wire) else { continue };
            let Some(nonce) = interest.nonce else { continue };
            if !prefix.is_prefix_of(&interest.name)
                || !interest.hint.is_empty()
                || !prefixes.set(&self.context.key, &interest.name)
            {
                continue;
            }
            let longest = |(length, _)| length == components;
            let is_longest =
                self.context.fib.longest(&interest.name, &prefixes).is_some_and(longest);
            let strategy = self.context.strategies.longest(&interest.name, &prefixes);
            let is_multicast =
                strategy.is_some_and(|(_, &strategy)| strategy == Strategy::Multicast);
            let already_sent = self.pit.out_records(at).any(|record| record.face == to);
            let from_elsewhere = self.pit.in_records(at).find(|record| {
                let via = self.context.faces.get(record.face);
                record.expiry_ns > now_ns
                    && via
                        .is_some_and(|via| may_forward(&interest.name, record.face, via, to, face))
            });
            let from_elsewhere = from_elsewhere.map(|record| record.face);
            if is_longest
                && is_multicast
                && !already_sent
                && let Some(from) = from_elsewhere
            {
                self.context.scratch.chosen.clear();
                self.context.scratch.chosen.push(to);
                let outgoing = Outgoing {
                    interest: &interest,
                    from,
                    nonce,
                    strip_hint: false,
                    congestion_mark: 0,
                };
                if let Err(reason) = self.send_chosen(now_ns, at, &outgoing, out) {
                    self.context.counters.drop(reason);
                }
            }
        }
    }
}

//! The Interest pipeline.

use crate::packets::{Headers, Interest, NackReason, Rewrite};

use super::{Arrival, Outgoing, Pipelines, is_localhost, may_forward};
use crate::forwarder::context::Context;
use crate::forwarder::counters::Drop;
use crate::forwarder::face::{Face, FaceId, LinkKind};
use crate::forwarder::outbox::Outbox;
use crate::forwarder::strategy::Choice;
use crate::forwarder::tables::{Contents, NonceList, PendingInterests, PitKey, Tables};

impl<T: Tables> Pipelines<'_, T> {
    pub(crate) fn interest(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let Arrival { now_ns, from, via, headers, prefixes } = *arrival;
        self.context.counters.interests_in += 1;
        if interest.hop_limit == Some(0) {
            return Err(Drop::HopLimit);
        }
        if !via.local && is_localhost(&interest.name) {
            return Err(Drop::Scope);
        }
        if !prefixes.fits() {
            return Err(Drop::NameTooLong);
        }
        let hash = prefixes.full();
        // A missing nonce is derived from name, time and face, so that runs are repeatable.
        let derived =
            || self.context.key.with(self.context.key.with(hash, now_ns), from.0.into()) as u32;
        let nonce = interest.nonce.unwrap_or_else(derived);
        if self.dead.has(now_ns, self.context.key.with(hash, nonce.into())) {
            return self.reject_loop(arrival, interest, nonce, out);
        }

        let strip_hint = !interest.hint.is_empty() && self.is_in_region(interest);
        let hint = if strip_hint { &[] } else { interest.hint };
        let key = PitKey { hint, ..PitKey::of(interest, prefixes) };
        let mut found = self.pit.find(&key);
        if let Some(at) = found.take_if(|at| self.pit.state(*at).expiry_ns <= now_ns) {
            self.expire(now_ns, at);
        }
        if found.is_some_and(|at| self.is_duplicate(at, from, via, nonce)) {
            return self.reject_loop(arrival, interest, nonce, out);
        }

        let is_pending = found.is_some_and(|at| self.pit.in_records(at).next().is_some());
        if !is_pending && self.answer_from_store(arrival, interest, out) {
            if let Some(at) = found {
                self.context.counters.satisfied += 1;
                self.notify_done(now_ns, at, None);
                self.pit.remove(at);
            }
            return Ok(());
        }

        let limit = self.context.settings.pit_per_face.unwrap_or(usize::MAX);
        if self.pit.pending_of(from) >= limit
            && !found.is_some_and(|at| self.pit.has_in_record(at, from))
        {
            let counts = self.context.faces.counts_mut(from);
            if counts.is_some_and(|counts| counts.answers_refusal(now_ns)) {
                self.nack_sender(arrival, interest, nonce, NackReason::Congestion, out);
            }
            return Err(Drop::FaceShare);
        }

        let at = match found {
            Some(at) => at,
            None => self.insert(arrival, &key, interest, nonce, strip_hint).ok_or(Drop::PitFull)?,
        };
        let expiry_ns = now_ns.saturating_add(self.lifetime_ns(interest));
        if !self.pit.set_in_record(at, from, nonce, expiry_ns, headers.token) {
            if found.is_none() {
                self.pit.remove(at);
            }
            return Err(Drop::RecordsFull);
        }
        self.notify_pending(now_ns, at, from, expiry_ns, headers.token);
        let congestion_mark = headers.congestion_mark;
        let outgoing = Outgoing { interest, from, nonce, strip_hint, congestion_mark };
        self.forward(arrival, at, &outgoing, out)
    }

    fn forward(
        &mut self,
        arrival: &Arrival<'_>,
        at: u32,
        outgoing: &Outgoing<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let Arrival { now_ns, from, via, headers, prefixes } = *arrival;
        if let Some(face) = headers.next_hop_face.filter(|_| via.local) {
            self.context.scratch.chosen.clear();
            let to = u32::try_from(face).ok().map(FaceId);
            self.context
                .scratch
                .chosen
                .extend(to.filter(|&to| self.context.faces.get(to).is_some()));
            if self.context.scratch.chosen.is_empty() {
                return Err(Drop::NoRoute);
            }
            return self.send_chosen(now_ns, at, outgoing, out);
        }
        let name = &outgoing.interest.name;
        self.context.look_up_hops(outgoing.interest, prefixes, outgoing.strip_hint, |faces, to| {
            faces.get(to).is_some_and(|face| may_forward(name, from, via, to, face))
        });
        let Context { scratch, strategies, .. } = &mut *self.context;
        let strategy =
            strategies.longest(name, prefixes).map_or_else(Default::default, |(_, &s)| s);
        match strategy.choose(self.pit, at, &scratch.hops, now_ns, &mut scratch.chosen) {
            Choice::Send => self.send_chosen(now_ns, at, outgoing, out),
            Choice::Suppressed => Err(Drop::Suppressed),
            Choice::Wait => Ok(()),
            Choice::NoRoute => {
                self.nack_downstream(now_ns, at, from, NackReason::NoRoute, out);
                self.reject(now_ns, at);
                Err(Drop::NoRoute)
            }
        }
    }

    fn insert(
        &mut self,
        arrival: &Arrival<'_>,
        key: &PitKey<'_>,
        interest: &Interest<'_>,
        nonce: u32,
        strip_hint: bool,
    ) -> Option<u32> {
        let components = arrival.prefixes.components();
        let short = self.context.is_short(interest, components);
        let Self { pit, context: Context { scratch, .. }, .. } = self;
        let at = if interest.nonce.is_some() && !strip_hint {
            pit.insert(key, components, interest)?
        } else {
            scratch.stored_interest.clear();
            interest.rewrite(
                &Rewrite { hop_limit: interest.hop_limit, nonce, strip_hint },
                &mut scratch.stored_interest,
            );
            pit.insert(key, components, &Interest::read(&scratch.stored_interest).ok()?)?
        };
        pit.state_mut(at).short = short;
        Some(at)
    }

    /// Whether this nonce was received on another face or sent on any face. From the same
    /// point-to-point face it is a retransmission, not a loop.
    fn is_duplicate(&self, at: u32, from: FaceId, via: Face, nonce: u32) -> bool {
        let is_retransmission = |face| face == from && via.link == LinkKind::PointToPoint;
        self.pit
            .in_records(at)
            .any(|record| record.nonce == nonce && !is_retransmission(record.face))
            || self.pit.out_records(at).any(|record| record.nonce == nonce)
    }

    fn reject_loop(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        nonce: u32,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        self.nack_sender(arrival, interest, nonce, NackReason::Duplicate, out);
        Err(Drop::Loop)
    }

    /// Answers a refused Interest with a Nack, if its face is point-to-point.
    fn nack_sender(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        nonce: u32,
        reason: NackReason,
        out: &mut impl Outbox,
    ) {
        let Arrival { from, via, headers, .. } = *arrival;
        if via.link != LinkKind::PointToPoint {
            return;
        }
        let Context { scratch, counters, .. } = &mut *self.context;
        scratch.wire.clear();
        let same = Rewrite { hop_limit: interest.hop_limit, nonce, strip_hint: false };
        interest.rewrite(&same, &mut scratch.wire);
        counters.nacks_out += 1;
        let nack = Some(reason);
        out.send(
            from,
            &Headers { token: headers.token, nack, ..Headers::default() },
            &scratch.wire,
        );
    }

    /// Answers from the content store; returns false if it has no match.
    fn answer_from_store(
        &mut self,
        arrival: &Arrival<'_>,
        interest: &Interest<'_>,
        out: &mut impl Outbox,
    ) -> bool {
        let Arrival { now_ns, from, headers, prefixes, .. } = *arrival;
        let Self { content, context: Context { scratch, counters, faces, .. }, .. } = self;
        if !content.look_up(now_ns, interest, prefixes, &mut scratch.wire) {
            counters.cs_misses += 1;
            return false;
        }
        counters.cs_hits += 1;
        if let Some(counts) = faces.counts_mut(from) {
            counts.cs_hits += 1;
        }
        counters.data_out += 1;
        out.send(from, &Headers { token: headers.token, ..Headers::default() }, &scratch.wire);
        true
    }

    fn is_in_region(&self, interest: &Interest<'_>) -> bool {
        let regions = &self.context.settings.regions;
        interest
            .delegations()
            .any(|name| regions.iter().any(|region| name.is_prefix_of(&region.as_name())))
    }
}

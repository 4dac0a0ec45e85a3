//! The rules: what becomes of an Interest, a Data, a Nack, and of what is pending too long. As in NFD, the reference
//! implementation of NDN forwarding.

mod data;
mod interest;
mod nack;

use crate::packets::{Headers, Interest, NackReason, Name, Rewrite};

use crate::forwarder::counters::Drop;
use crate::forwarder::face::{Face, FaceId, LinkKind};
use crate::forwarder::state::{Forwarder, Outbox};
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::Prefixes;
use crate::forwarder::token::Token;

/// Names of this machine alone.
fn is_localhost(name: &Name<'_>) -> bool {
    name.as_bytes().starts_with(b"\x08\x09localhost")
}

/// Names of this machine and its neighbours.
fn is_localhop(name: &Name<'_>) -> bool {
    name.as_bytes().starts_with(b"\x08\x08localhop")
}

/// Whether an Interest may go from one face to the other.
fn may_go(name: &Name<'_>, from: FaceId, via: Face, to: FaceId, face: Face) -> bool {
    if from == to && face.link != LinkKind::AdHoc {
        return false;
    }
    face.local || !is_localhost(name) && (via.local || !is_localhop(name))
}

/// How a packet came.
pub(crate) struct Arrival<'a> {
    pub(crate) now_ns: u64,
    pub(crate) from: FaceId,
    pub(crate) via: Face,
    pub(crate) headers: &'a Headers,
    pub(crate) prefixes: &'a Prefixes,
}

/// An Interest on its way out.
struct Leaving<'a> {
    interest: &'a Interest<'a>,
    nonce: u32,
    strip_hint: bool,
    congestion_mark: u64,
}

impl Forwarder {
    /// Nobody was answered in time.
    pub(crate) fn expire(&mut self, now_ns: u64, at: u32) {
        self.counters.unsatisfied += 1;
        // It ended when its time was over, however much later that is noticed.
        self.bury(now_ns.min(self.pit.entry(at).expiry_ns), at);
        self.pit.remove(at);
    }

    /// Remembers the nonces that were sent.
    fn bury(&mut self, now_ns: u64, at: u32) {
        let hash = self.pit.hash(at);
        for record in self.pit.outs(at) {
            self.dead.put(now_ns, self.key.with(hash, record.nonce.into()));
        }
    }

    /// Sends the Interest of an entry by the faces that were chosen.
    fn send_chosen(
        &mut self,
        now_ns: u64,
        at: u32,
        leaving: &Leaving<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let mut wire = std::mem::take(&mut self.scratch.wire);
        wire.clear();
        let hop_limit = leaving.interest.hop_limit.map(|hops| hops.saturating_sub(1));
        let Leaving { nonce, strip_hint, congestion_mark, .. } = *leaving;
        leaving.interest.rewrite(&Rewrite { hop_limit, nonce, strip_hint }, &mut wire);
        let expiry_ns = now_ns.saturating_add(self.lifetime_ns(leaving.interest));
        let token = Token { shard: self.shard, entry: at, generation: self.pit.generation(at) };
        let headers = Headers { token: token.write(), congestion_mark, ..Headers::default() };
        let mut result = Ok(());
        for at_face in 0..self.scratch.chosen.len() {
            let face = self.scratch.chosen[at_face];
            if hop_limit == Some(0) && !self.faces.get(face).is_some_and(|face| face.local) {
                result = Err(Drop::HopLimit);
            } else if !self.pit.sent(at, face, nonce, now_ns, expiry_ns) {
                result = Err(Drop::RecordsFull);
            } else {
                self.counters.interests_out += 1;
                out.send(face, &headers, &wire);
            }
        }
        self.scratch.wire = wire;
        result
    }

    fn lifetime_ns(&self, interest: &Interest<'_>) -> u64 {
        interest.lifetime_ms.min(self.settings.lifetime_max_ms).saturating_mul(1_000_000)
    }

    /// Tells a face that asks that nothing will come, and takes out that it asked.
    fn refuse(&mut self, at: u32, face: FaceId, reason: NackReason, out: &mut impl Outbox) {
        let Some((nonce, token)) = self.pit.unask(at, face) else { return };
        if self.faces.get(face).is_none_or(|face| face.link != LinkKind::PointToPoint) {
            return;
        }
        let Self { pit, scratch, counters, .. } = self;
        pit.interest(at, &mut scratch.kept);
        let Ok(interest) = Interest::read(&scratch.kept) else { return };
        scratch.wire.clear();
        let same = Rewrite { hop_limit: interest.hop_limit, nonce, strip_hint: false };
        interest.rewrite(&same, &mut scratch.wire);
        counters.nacks_out += 1;
        let headers = Headers { token, nack: Some(reason), ..Headers::default() };
        out.send(face, &headers, &scratch.wire);
    }

    /// A new next hop: Interests that go to all of them go there, too.
    pub(crate) fn new_next_hop(
        &mut self,
        now_ns: u64,
        prefix: &Name<'_>,
        to: FaceId,
        out: &mut impl Outbox,
    ) {
        let Some(face) = self.faces.get(to) else { return };
        let components = prefix.components().count();
        let (mut wire, mut prefixes) = (Vec::new(), Prefixes::new());
        for at in self.pit.pending().collect::<Vec<_>>() {
            self.pit.interest(at, &mut wire);
            let Ok(interest) = Interest::read(&wire) else { continue };
            let Some(nonce) = interest.nonce else { continue };
            if !prefix.is_prefix_of(&interest.name)
                || !interest.hint.is_empty()
                || !prefixes.set(&self.key, &interest.name)
            {
                continue;
            }
            let longest = |(length, _)| length == components;
            let served = self.fib.longest(&interest.name, &prefixes).is_some_and(longest);
            let strategy = self.strategies.longest(&interest.name, &prefixes);
            let asks_all = strategy.is_some_and(|(_, &strategy)| strategy == Strategy::Multicast);
            let asked = self.pit.outs(at).any(|record| record.face == to);
            let from_elsewhere = self.pit.ins(at).any(|record| {
                let via = self.faces.get(record.face);
                record.expiry_ns > now_ns
                    && via.is_some_and(|via| may_go(&interest.name, record.face, via, to, face))
            });
            if served && asks_all && !asked && from_elsewhere {
                self.scratch.chosen.clear();
                self.scratch.chosen.push(to);
                let leaving =
                    Leaving { interest: &interest, nonce, strip_hint: false, congestion_mark: 0 };
                if let Err(reason) = self.send_chosen(now_ns, at, &leaving, out) {
                    self.counters.drop(reason);
                }
            }
        }
    }
}

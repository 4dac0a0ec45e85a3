//! The Data pipeline.

use crate::packets::{Data, Headers};

use super::{Arrival, Pipelines, is_localhost};
use crate::forwarder::context::Context;
use crate::forwarder::counters::Drop;
use crate::forwarder::face::{FaceId, LinkKind};
use crate::forwarder::notice::Answer;
use crate::forwarder::outbox::Outbox;
use crate::forwarder::settings::Unsolicited;
use crate::forwarder::tables::{Contents, NONCE_LIFE_NS, PendingInterests, Tables};

impl<T: Tables> Pipelines<'_, T> {
    pub(crate) fn data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let Arrival { now_ns, via, headers, prefixes, .. } = *arrival;
        self.context.counters.data_in += 1;
        if !via.local && is_localhost(&data.name) {
            return Err(Drop::Scope);
        }
        if !prefixes.fits() {
            return Err(Drop::NameTooLong);
        }
        let mut satisfied = std::mem::take(&mut self.context.scratch.satisfied);
        satisfied.clear();
        self.pit.satisfied_by(&self.context.key, data, prefixes, &mut satisfied);
        // A token is only a hint: its entry must be among those that the Data satisfies. That of a
        // shadow is in another shard.
        let has_shadow = satisfied.iter().any(|&at| self.pit.state(at).shadow);
        let is_of = |token| satisfied.iter().any(|&at| self.pit.token(at) == token);
        self.context.check_token(headers, has_shadow, is_of);
        satisfied.retain(|&at| {
            let is_expired = self.pit.state(at).expiry_ns <= now_ns;
            if is_expired {
                self.expire(now_ns, at);
            }
            !is_expired
        });
        let result = if satisfied.is_empty() {
            if via.local && self.context.settings.unsolicited == Unsolicited::KeepLocal {
                self.store(arrival, data);
            }
            Err(Drop::Unsolicited)
        } else {
            self.store(arrival, data);
            self.satisfy(arrival, data, &mut satisfied, out);
            Ok(())
        };
        self.context.scratch.satisfied = satisfied;
        result
    }

    /// Puts a Data into the content store, unless its headers forbid it.
    fn store(&mut self, arrival: &Arrival<'_>, data: &Data<'_>) {
        if !arrival.headers.no_cache {
            self.content.put(arrival.now_ns, data, arrival.prefixes);
        }
    }

    /// Sends the Data once to each downstream face of the satisfied entries, and removes the
    /// entries.
    fn satisfy(
        &mut self,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        satisfied: &mut [u32],
        out: &mut impl Outbox,
    ) {
        let Arrival { now_ns, from, headers, .. } = *arrival;
        // Oldest first, so that a face with several Interests gets the token of the same one in
        // every run.
        satisfied.sort_unstable_by_key(|&at| self.pit.state(at).number);
        let Self { pit, context: Context { faces, scratch, counters, .. }, .. } = self;
        scratch.data_number += 1;
        // Another shard has the entry, or shadows of it. A receiver's next Interest must not arrive
        // there before the notice.
        let is_short = satisfied.iter().any(|&at| pit.state(at).short);
        for &at in &*satisfied {
            for record in pit.in_records(at) {
                let Some(face) = faces.get(record.face) else { continue };
                let is_sender = record.face == from && face.link != LinkKind::AdHoc;
                if record.expiry_ns <= now_ns || is_sender {
                    continue;
                }
                counters.exchanges += 1;
                if let Some(counts) = faces.counts_mut(record.face) {
                    counts.exchanges += 1;
                }
                let last_data = &mut scratch.last_data[record.face.0 as usize];
                if *last_data == scratch.data_number {
                    continue;
                }
                *last_data = scratch.data_number;
                counters.data_out += 1;
                let headers = Headers {
                    token: record.token,
                    incoming_face: face.local.then_some(from.0.into()),
                    congestion_mark: headers.congestion_mark,
                    ..Headers::default()
                };
                match is_short {
                    true => out.send_after_notices(record.face, &headers, data.wire),
                    false => out.send(record.face, &headers, data.wire),
                }
            }
        }
        let faces = if is_short { self.faces_of_data(satisfied) } else { Vec::new() };
        for &at in &*satisfied {
            self.store_nonces_of_satisfied(now_ns, at, data);
            self.context.counters.satisfied += 1;
            if is_short {
                self.notify_done(now_ns, at, Some(Answer::new(arrival, data, &faces)));
            }
            self.pit.remove(at);
        }
    }

    /// The faces of these entries to which the current Data was sent.
    fn faces_of_data(&self, satisfied: &[u32]) -> Vec<FaceId> {
        let Context { scratch, .. } = &*self.context;
        let records = satisfied.iter().flat_map(|&at| self.pit.in_records(at));
        let sent =
            |face: &FaceId| scratch.last_data.get(face.0 as usize) == Some(&scratch.data_number);
        records.map(|record| record.face).filter(sent).collect()
    }

    /// Stores the nonces of an entry that a Data satisfied, if a duplicate of its Interest would be
    /// forwarded again.
    pub(crate) fn store_nonces_of_satisfied(&mut self, now_ns: u64, at: u32, data: &Data<'_>) {
        let stale_soon = data.freshness_ms.saturating_mul(1_000_000) < NONCE_LIFE_NS;
        if stale_soon && self.pit.state(at).must_be_fresh {
            self.store_dead_nonces(now_ns, at);
        }
    }
}

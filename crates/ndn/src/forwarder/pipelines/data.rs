//! The Data pipeline.

use crate::packets::{Data, Headers};

use super::{Arrival, is_localhost};
use crate::forwarder::counters::Drop;
use crate::forwarder::face::LinkKind;
use crate::forwarder::settings::Unsolicited;
use crate::forwarder::state::{Forwarder, Outbox};
use crate::forwarder::tables::DeadNonces;

impl Forwarder {
    pub(crate) fn data(
        &mut self,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let Arrival { now_ns, via, headers, prefixes, .. } = *arrival;
        self.counters.data_in += 1;
        if !via.local && is_localhost(&data.name) {
            return Err(Drop::Scope);
        }
        if !prefixes.fits() {
            return Err(Drop::NameTooLong);
        }
        let mut satisfied = std::mem::take(&mut self.scratch.satisfied);
        satisfied.clear();
        self.pit.satisfied_by(&self.key, data, prefixes, &mut satisfied);
        // A token is only a hint: its entry must be among those that the Data satisfies.
        self.check_token(headers, |at| satisfied.contains(&at));
        satisfied.retain(|&at| {
            let is_expired = self.pit.entry(at).expiry_ns <= now_ns;
            if is_expired {
                self.expire(now_ns, at);
            }
            !is_expired
        });
        let result = if satisfied.is_empty() {
            if via.local && self.settings.unsolicited == Unsolicited::KeepLocal {
                self.store(arrival, data);
            }
            Err(Drop::Unsolicited)
        } else {
            self.store(arrival, data);
            self.satisfy(arrival, data, &mut satisfied, out);
            Ok(())
        };
        self.scratch.satisfied = satisfied;
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
        satisfied.sort_unstable_by_key(|&at| self.pit.entry(at).number);
        let Self { pit, faces, scratch, counters, .. } = self;
        scratch.data_number += 1;
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
                let congestion_mark = headers.congestion_mark;
                let headers =
                    Headers { token: record.token, congestion_mark, ..Headers::default() };
                out.send(record.face, &headers, data.wire);
            }
        }
        // A nonce of a satisfied Interest is stored only if a duplicate would be forwarded again.
        let stale_soon = data.freshness_ms.saturating_mul(1_000_000) < DeadNonces::LIFE_NS;
        for &at in &*satisfied {
            if stale_soon && self.pit.entry(at).must_be_fresh {
                self.store_dead_nonces(now_ns, at);
            }
            self.counters.satisfied += 1;
            self.pit.remove(at);
        }
    }
}

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
        let mut answered = std::mem::take(&mut self.scratch.answered);
        answered.clear();
        self.pit.answered_by(&self.key, data, prefixes, &mut answered);
        // A token alone proves nothing: what it leads to must be among those that the name leads to.
        self.check_token(headers, |at| answered.contains(&at));
        answered.retain(|&at| {
            let too_late = self.pit.entry(at).expiry_ns <= now_ns;
            if too_late {
                self.expire(now_ns, at);
            }
            !too_late
        });
        let result = if answered.is_empty() {
            if via.local && self.settings.unsolicited == Unsolicited::KeepLocal {
                self.keep(arrival, data);
            }
            Err(Drop::Unsolicited)
        } else {
            self.keep(arrival, data);
            self.serve(arrival, data, &mut answered, out);
            Ok(())
        };
        self.scratch.answered = answered;
        result
    }

    fn keep(&mut self, arrival: &Arrival<'_>, data: &Data<'_>) {
        if !arrival.headers.no_cache {
            self.content.put(arrival.now_ns, data, arrival.prefixes);
        }
    }

    /// Sends the Data to all who asked, each once, and ends what was pending.
    fn serve(
        &mut self,
        arrival: &Arrival<'_>,
        data: &Data<'_>,
        answered: &mut [u32],
        out: &mut impl Outbox,
    ) {
        let Arrival { now_ns, from, headers, .. } = *arrival;
        // Oldest first, so that a face with several Interests gets the token of the same one in every run.
        answered.sort_unstable_by_key(|&at| self.pit.entry(at).number);
        let Self { pit, faces, scratch, counters, .. } = self;
        scratch.serving += 1;
        for &at in &*answered {
            for record in pit.ins(at) {
                let Some(face) = faces.get(record.face) else { continue };
                let back = record.face == from && face.link != LinkKind::AdHoc;
                let served = &mut scratch.served[record.face.0 as usize];
                if record.expiry_ns <= now_ns || back || *served == scratch.serving {
                    continue;
                }
                *served = scratch.serving;
                counters.data_out += 1;
                let congestion_mark = headers.congestion_mark;
                let about = Headers { token: record.token, congestion_mark, ..Headers::default() };
                out.send(record.face, &about, data.wire);
            }
        }
        // A nonce of an answered Interest is only worth remembering if the same one would be forwarded again.
        let stale_soon = data.freshness_ms.saturating_mul(1_000_000) < DeadNonces::LIFE_NS;
        for &at in &*answered {
            if stale_soon && self.pit.entry(at).must_be_fresh {
                self.bury(now_ns, at);
            }
            self.counters.satisfied += 1;
            self.pit.remove(at);
        }
    }
}

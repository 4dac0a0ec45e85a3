//! The Nack pipeline.

use crate::packets::{Interest, NackReason};

use super::{Arrival, Pipelines};
use crate::forwarder::counters::Drop;
use crate::forwarder::face::LinkKind;
use crate::forwarder::outbox::Outbox;
use crate::forwarder::tables::{PendingInterests, PitKey, Tables};

impl<T: Tables> Pipelines<'_, T> {
    pub(crate) fn nack(
        &mut self,
        arrival: &Arrival<'_>,
        reason: NackReason,
        interest: &Interest<'_>,
        out: &mut impl Outbox,
    ) -> Result<(), Drop> {
        let Arrival { now_ns, from, via, prefixes, .. } = *arrival;
        self.context.counters.nacks_in += 1;
        if via.link != LinkKind::PointToPoint {
            return Err(Drop::StrayNack);
        }
        if !prefixes.fits() {
            return Err(Drop::NameTooLong);
        }
        let key = PitKey::of(interest, prefixes);
        let at = self.pit.find(&key).ok_or(Drop::StrayNack)?;
        if self.pit.state(at).expiry_ns <= now_ns {
            self.expire(now_ns, at);
            return Err(Drop::StrayNack);
        }
        let record = self.pit.out_mut(at, from).ok_or(Drop::StrayNack)?;
        if Some(record.nonce) != interest.nonce {
            return Err(Drop::StrayNack);
        }
        record.nack = Some(reason);

        let unanswered = || self.pit.out_records(at).filter(|record| record.nack.is_none());
        let (one, more) =
            (unanswered().next().map(|record| record.face), unanswered().nth(1).is_some());
        let least_severe =
            self.pit.out_records(at).filter_map(|record| record.nack).min().unwrap_or(reason);
        match one {
            None => {
                // All upstream faces have refused.
                loop {
                    let downstream = self.pit.in_records(at).next().map(|record| record.face);
                    let Some(face) = downstream else { break };
                    self.nack_downstream(now_ns, at, face, least_severe, out);
                }
                self.reject(now_ns, at);
            }
            // Only one upstream face may still answer. If it is also downstream, it gets the Nack
            // and can try another route.
            Some(face) if !more => self.nack_downstream(now_ns, at, face, least_severe, out),
            Some(_) => {}
        }
        Ok(())
    }
}

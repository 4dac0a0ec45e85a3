//! Short prefixes: Interests with CanBePrefix and fewer components than the dispatch hashes. Their
//! Data may reach any shard, so all shards have them.
//!
//! ```text
//!  Interest /a ─▶ its shard: the entry, forwarded upstream   ── pending ─▶ all others: shadows
//!  Data /a/b   ─▶ shard of /a/b: finds the shadow, answers   ── done ────▶ all others: remove it
//! ```
//!
//! A shadow has the downstream faces of its entry. It is never forwarded and expires by itself. A
//! notice must be delivered before the packets of [`Outbox::send_after_notices`] are sent. The owner
//! of an entry answers faces that joined it too late for the shadow. Two Data that arrive in two
//! shards at the same time may both answer one Interest.
//!
//! Only the entry's own shard looks into its content store for a short prefix. So that store may
//! miss a Data that another shard has; Data that satisfied a shadow are stored there, too.

use crate::packets::{Data, Headers, Interest, PitToken};

use crate::forwarder::access::Access;
use crate::forwarder::context::Context;
use crate::forwarder::counters::Drop;
use crate::forwarder::face::{FaceId, LinkKind};
use crate::forwarder::notice::{Answer, Change, Notice};
use crate::forwarder::outbox::Outbox;
use crate::forwarder::pipelines::{Arrival, Pipelines};
use crate::forwarder::state::Forwarder;
use crate::forwarder::tables::{Contents, OwnTables, PendingInterests, PitKey, Prefixes, Tables};

impl Answer {
    pub(crate) fn new(arrival: &Arrival<'_>, data: &Data<'_>, faces: &[FaceId]) -> Self {
        Self {
            data: data.wire.to_vec(),
            from: arrival.from,
            congestion_mark: arrival.headers.congestion_mark,
            may_store: !arrival.headers.no_cache,
            faces: faces.to_vec(),
        }
    }
}

impl<A: Access> Forwarder<A> {
    /// The notices since the last call. Each must be passed to [`Forwarder::notice`] of all other
    /// shards.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.context.notices)
    }

    /// Whether there are notices to take.
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.context.notices.is_empty()
    }

    /// Applies a notice of another shard.
    pub fn notice(&mut self, notice: &Notice, out: &mut impl Outbox) {
        self.advance(notice.now_ns);
        if let Some(tables) = self.tables.own() {
            apply(notice, &mut self.context, tables, out);
        }
    }
}

fn apply(notice: &Notice, context: &mut Context, tables: &mut OwnTables, out: &mut impl Outbox) {
    let now_ns = notice.now_ns;
    let Ok(interest) = Interest::read(&notice.interest) else { return };
    let mut prefixes = Prefixes::new();
    prefixes.set(&context.key, &interest.name);
    let key = PitKey::of(&interest, &prefixes);
    let found = tables.pit.find(&key);
    match &notice.change {
        &Change::Pending { from, epoch, expiry_ns, token } => {
            let pit = &mut tables.pit;
            if context.faces.get(from).is_none() || pit.epoch(from) != epoch {
                // The face was removed in the meantime.
                return;
            }
            // As an Interest does, a notice ends an expired entry.
            let expired = found.filter(|&at| pit.state(at).expiry_ns <= now_ns);
            expired.iter().for_each(|&at| pit.remove(at));
            let found = found.filter(|_| expired.is_none());
            let at = found.or_else(|| pit.insert_shadow(&key, prefixes.components(), &interest));
            let Some(at) = at else { return context.counters.drop(Drop::ShadowFull) };
            if !pit.set_in_record(at, from, 0, expiry_ns, token) {
                context.counters.drop(Drop::ShadowFull);
                if found.is_none() {
                    pit.remove(at);
                }
            }
        }
        Change::Done(answer) => {
            let Some(at) = found else { return };
            if let Some(answer) = answer.as_ref().filter(|_| !tables.pit.state(at).shadow) {
                Pipelines::new(context, tables).answer_the_rest(now_ns, at, answer, out);
            }
            tables.pit.remove(at);
        }
    }
}

impl Context {
    /// Whether an Interest with this many components is a short prefix.
    #[inline]
    pub(crate) fn is_short(&self, interest: &Interest<'_>, components: usize) -> bool {
        interest.can_be_prefix
            && components < self.short_below
            && interest.name.split_digest().is_none()
    }
}

impl<T: Tables> Pipelines<'_, T> {
    /// Notifies the other shards that an entry, if it is a short prefix, is pending for a face.
    pub(crate) fn notify_pending(
        &mut self,
        now_ns: u64,
        at: u32,
        from: FaceId,
        expiry_ns: u64,
        token: PitToken,
    ) {
        if self.pit.state(at).short {
            let epoch = self.pit.epoch(from);
            self.push_notice(now_ns, at, Change::Pending { from, epoch, expiry_ns, token });
        }
    }

    /// Notifies the other shards that an entry, if it is a short prefix, is about to be removed; with
    /// the Data that satisfied it.
    pub(crate) fn notify_done(&mut self, now_ns: u64, at: u32, answer: Option<Answer>) {
        if self.pit.state(at).short {
            self.push_notice(now_ns, at, Change::Done(answer));
        }
    }

    /// Sends a Data that another shard received to the downstream faces of an entry that had not
    /// reached that shard.
    fn answer_the_rest(&mut self, now_ns: u64, at: u32, answer: &Answer, out: &mut impl Outbox) {
        let Ok(data) = Data::read(&answer.data) else { return };
        let Context { faces, counters, .. } = &mut *self.context;
        for record in self.pit.in_records(at) {
            let Some(face) = faces.get(record.face) else { continue };
            let is_sender = record.face == answer.from && face.link != LinkKind::AdHoc;
            if record.expiry_ns <= now_ns || is_sender || answer.faces.contains(&record.face) {
                continue;
            }
            counters.exchanges += 1;
            counters.data_out += 1;
            if let Some(counts) = faces.counts_mut(record.face) {
                counts.exchanges += 1;
            }
            let headers = Headers {
                token: record.token,
                incoming_face: face.local.then_some(answer.from.0.into()),
                congestion_mark: answer.congestion_mark,
                ..Headers::default()
            };
            out.send(record.face, &headers, data.wire);
        }
        self.store_nonces_of_satisfied(now_ns, at, &data);
        let mut prefixes = Prefixes::new();
        if answer.may_store && prefixes.set(&self.context.key, &data.name) {
            self.content.put(now_ns, &data, &prefixes);
        }
    }

    fn push_notice(&mut self, now_ns: u64, at: u32, change: Change) {
        let mut interest = Vec::new();
        self.pit.interest(at, &mut interest);
        self.context.notices.push(Notice { now_ns, interest, change });
    }
}

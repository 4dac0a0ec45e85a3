//! Short prefixes: Interests with CanBePrefix and fewer components than the dispatch hashes. Their
//! Data may reach any shard, so all shards know them.
//!
//! ```text
//!  Interest /a ─▶ its shard: the entry, forwarded upstream   ── pending ─▶ all others: shadows
//!  Data /a/b   ─▶ shard of /a/b: finds the shadow, answers   ── done ────▶ all others: remove it
//! ```
//!
//! A shadow has the downstream faces of its entry. It is never forwarded and expires by itself. A
//! notice must be delivered before the packets that were sent with it are answered.
//!
//! Only the entry's own shard looks into its content store for a short prefix. So that store may
//! miss a Data that another shard has; Data that satisfied a shadow are stored there, too.

use crate::packets::{Data, Interest, PitToken};

use crate::forwarder::counters::Drop;
use crate::forwarder::face::FaceId;
use crate::forwarder::state::Forwarder;
use crate::forwarder::tables::{PitKey, Prefixes};

/// A change of a short prefix, for all other shards.
#[derive(Clone, Debug)]
pub struct Notice {
    /// When the change was made.
    now_ns: u64,
    /// The Interest of the entry.
    interest: Vec<u8>,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    /// The Interest is pending for a downstream face.
    Pending { from: FaceId, expiry_ns: u64, token: PitToken },
    /// The entry was removed; with the Data that satisfied it, and whether it may be stored.
    Done { data: Option<Vec<u8>>, may_store: bool },
}

impl Forwarder {
    /// The notices since the last call. Each must be passed to [`Forwarder::notice`] of all other
    /// shards.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Whether there are notices to take.
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Whether an Interest with this many components is a short prefix.
    #[inline]
    pub(crate) fn is_short(&self, interest: &Interest<'_>, components: usize) -> bool {
        interest.can_be_prefix
            && components < self.short_below
            && interest.name.split_digest().is_none()
    }

    /// Tells the other shards that an entry, if it is a short prefix, is pending for a face.
    pub(crate) fn notify_pending(
        &mut self,
        now_ns: u64,
        at: u32,
        from: FaceId,
        expiry_ns: u64,
        token: PitToken,
    ) {
        if self.pit.entry(at).short {
            self.push_notice(now_ns, at, Change::Pending { from, expiry_ns, token });
        }
    }

    /// Tells the other shards that an entry, if it is a short prefix, is about to be removed; with
    /// the Data that satisfied it, and whether it may be stored.
    pub(crate) fn notify_done(&mut self, now_ns: u64, at: u32, data: Option<(&[u8], bool)>) {
        if self.pit.entry(at).short {
            let may_store = data.is_some_and(|(_, may_store)| may_store);
            let data = data.map(|(wire, _)| wire.to_vec());
            self.push_notice(now_ns, at, Change::Done { data, may_store });
        }
    }

    fn push_notice(&mut self, now_ns: u64, at: u32, change: Change) {
        let mut interest = Vec::new();
        self.pit.interest(at, &mut interest);
        self.notices.push(Notice { now_ns, interest, change });
    }

    /// Applies a notice of another shard.
    pub fn notice(&mut self, notice: &Notice) {
        let now_ns = notice.now_ns;
        self.advance(now_ns);
        let Ok(interest) = Interest::read(&notice.interest) else { return };
        let mut prefixes = Prefixes::new();
        prefixes.set(&self.key, &interest.name);
        let key = PitKey {
            hash: prefixes.full(),
            name: interest.name.as_bytes(),
            hint: interest.hint,
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
        };
        let found = self.pit.find(&key);
        match &notice.change {
            &Change::Pending { from, expiry_ns, token } => {
                let inserted = || self.pit.insert_shadow(&key, prefixes.components(), &interest);
                // The face may have been removed in the meantime.
                let has_room = self.faces.get(from).is_none()
                    || found
                        .or_else(inserted)
                        .is_some_and(|at| self.pit.set_in_record(at, from, 0, expiry_ns, token));
                if !has_room {
                    self.counters.drop(Drop::PitFull);
                }
            }
            Change::Done { data, may_store } => {
                let Some(at) = found else { return };
                let data = data.as_deref().and_then(|data| Data::read(data).ok());
                if let Some(data) = data.filter(|_| !self.pit.entry(at).shadow) {
                    prefixes.set(&self.key, &data.name);
                    if *may_store {
                        self.content.put(now_ns, &data, &prefixes);
                    }
                    self.store_nonces_of_satisfied(now_ns, at, &data);
                }
                self.pit.remove(at);
            }
        }
    }
}

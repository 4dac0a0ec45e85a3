//! The Pending Interest Table (PIT): entries with their downstream and upstream faces.
//!
//! ```text
//!  index ─▶
//!  wheel ─▶ entry, 256 bytes: | hash, state | Interest | out-record | in-record |
//!  token ─▶                                   └▶ its end └▶ others    └▶ others     in pools
//! ```
//!
//! An in-record is a downstream face: its nonce, expiry and token. An out-record is an upstream
//! face: its nonce, time and Nack. Most entries have one of each and a short Interest, so they need
//! only four adjacent cache lines, which are prefetched together.
//!
//! The key of an entry is the name, CanBePrefix, MustBeFresh and the forwarding hint. The index is
//! by name only, so that a look-up for a Data finds all entries that it satisfies.

use crate::packets::{Data, Interest, PitToken, component};

use super::access::PendingInterests;
use super::entry::{EntryState, INTERVAL_NS, InRecord, OutRecord, PitKey};
use super::index::Index;
use super::pool::Pool;
use super::prefixes::{COMPONENTS_MAX, NameKey, Prefixes};
use super::records::{List, Records};
use super::store::{Store, Stored};
use super::wheel::Wheel;
use crate::forwarder::face::FaceId;

/// The PIT of one thread.
#[derive(Debug)]
pub struct Pit {
    entries: Pool<Entry>,
    in_records: Records<InRecord>,
    out_records: Records<OutRecord>,
    index: Index,
    wheel: Wheel,
    interests: Store,
    /// By face number: its records.
    faces: Vec<FaceLoad>,
    /// Number of entries ever created.
    created: u64,
    /// Number of pending entries, and of the shadows among them.
    live: usize,
    shadows: usize,
    /// Number of pending entries with CanBePrefix, by the number of name components.
    prefixes: [u32; COMPONENTS_MAX + 1],
    /// Number of pending entries whose name ends in an implicit digest.
    digests: u32,
}

/// A PIT entry; four cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
struct Entry {
    hash: u64,
    state: EntryState,
    name_at: u16,
    name_len: u16,
    hint_at: u16,
    hint_len: u16,
    components: u8,
    live: bool,
    /// Whether the name ends in an implicit digest.
    digest: bool,
    wire: Stored,
    out_records: List<OutRecord>,
    in_records: List<InRecord>,
}

const _: () = assert!(size_of::<Entry>() == 256);

/// The records of one face.
#[derive(Clone, Debug, Default)]
struct FaceLoad {
    /// Incremented when the face is removed; in-records of earlier epochs are void.
    epoch: u32,
    /// Number of valid in-records.
    in_records: u32,
    /// Number of out-records.
    out_records: u32,
}

impl Entry {
    const UNUSED: Self = Self {
        hash: 0,
        state: EntryState::NEW,
        name_at: 0,
        name_len: 0,
        hint_at: 0,
        hint_len: 0,
        components: 0,
        live: false,
        digest: false,
        wire: Stored::EMPTY,
        out_records: List::EMPTY,
        in_records: List::EMPTY,
    };
}

impl Pit {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: Pool::new(capacity),
            // On average, an entry may have a second record of each kind, and one chunk.
            in_records: Records::new(capacity),
            out_records: Records::new(capacity),
            index: Index::new(capacity),
            wheel: Wheel::new(capacity),
            interests: Store::new(capacity),
            faces: Vec::new(),
            created: 0,
            live: 0,
            shadows: 0,
            prefixes: [0; COMPONENTS_MAX + 1],
            digests: 0,
        }
    }

    /// Number of pending entries; shadows are not counted.
    pub(crate) fn len(&self) -> usize {
        self.live - self.shadows
    }

    /// Creates the counters of a face; the caller must call it before the face's first record.
    pub(crate) fn add_face(&mut self, face: FaceId) {
        let at = face.0 as usize;
        if self.faces.len() <= at {
            self.faces.resize(at + 1, FaceLoad::default());
        }
    }

    /// Prefetches the index bucket of a name.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Prefetches the entries of a name; its bucket must be loaded.
    #[inline]
    pub(crate) fn prefetch_entries(&self, hash: u64) {
        self.index.candidates(hash).for_each(|at| self.entries.prefetch(at));
    }

    /// Prefetches the slot for a new entry, after those for `others` other new entries.
    #[inline]
    pub(crate) fn prefetch_free(&self, others: usize) {
        if let Some(at) = self.entries.prefetch_free(others) {
            self.wheel.prefetch(at);
        }
    }

    /// All pending entries except shadows, in no particular order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.entries.used())
            .filter(|&at| self.entries[at].live && !self.entries[at].state.shadow)
    }

    fn has_name(&self, entry: &Entry, name: &[u8]) -> bool {
        usize::from(entry.name_len) == name.len()
            && self.interests.has(&entry.wire, entry.name_at.into(), name)
    }

    /// Inserts the shadow of another shard's entry; as [`Pit::insert`].
    pub(crate) fn insert_shadow(
        &mut self,
        key: &PitKey<'_>,
        components: usize,
        interest: &Interest<'_>,
    ) -> Option<u32> {
        let at = self.insert(key, components, interest)?;
        let entry = &mut self.entries[at].state;
        (entry.short, entry.shadow) = (true, true);
        self.shadows += 1;
        Some(at)
    }

    /// Appends to `found` the entries with this hash for which `matches` returns true.
    #[inline]
    fn collect(&self, hash: u64, matches: impl Fn(&Entry) -> bool, found: &mut Vec<u32>) {
        let candidates = self.index.candidates(hash);
        found.extend(
            candidates.filter(|&at| self.entries[at].hash == hash && matches(&self.entries[at])),
        );
    }

    /// Returns an expired entry; `None` if there is no other.
    #[inline]
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<u32> {
        while let Some(at) = self.wheel.pop(now_ns) {
            let Some(entry) = self.entries.get(at).filter(|entry| entry.live) else { continue };
            if entry.state.expiry_ns <= now_ns {
                return Some(at);
            }
            self.wheel.put(at, entry.state.expiry_ns);
        }
        None
    }

    /// Removes the records of a face. In-records become void without a walk through the table, so
    /// that a sender that creates many faces cannot make removals expensive. Out-records are
    /// searched for in the whole table; only faces that Interests were sent on have any.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        let Some(load) = self.faces.get_mut(face.0 as usize) else { return };
        load.epoch = load.epoch.wrapping_add(1);
        load.in_records = 0;
        if load.out_records == 0 {
            return;
        }
        for at in 0..self.entries.used() {
            let records = &mut self.entries[at].out_records;
            let removed = self.out_records.remove(records, |record| record.face == face);
            load.out_records -= u32::from(removed.is_some());
        }
    }
}

impl PendingInterests for Pit {
    #[inline]
    fn find(&mut self, key: &PitKey<'_>) -> Option<u32> {
        self.index.candidates(key.hash).find(|&at| {
            let entry = &self.entries[at];
            entry.hash == key.hash
                && entry.state.can_be_prefix == key.can_be_prefix
                && entry.state.must_be_fresh == key.must_be_fresh
                && usize::from(entry.hint_len) == key.hint.len()
                && self.has_name(entry, key.name)
                && self.interests.has(&entry.wire, entry.hint_at.into(), key.hint)
        })
    }

    fn insert(
        &mut self,
        key: &PitKey<'_>,
        components: usize,
        interest: &Interest<'_>,
    ) -> Option<u32> {
        let at = self.entries.take(|| Entry::UNUSED)?;
        let entry = &mut self.entries[at];
        if !self.interests.put(&mut entry.wire, interest.wire) {
            self.entries.free(at);
            return None;
        }
        entry.hash = key.hash;
        entry.state = EntryState {
            number: self.created,
            can_be_prefix: key.can_be_prefix,
            must_be_fresh: key.must_be_fresh,
            ..EntryState::NEW
        };
        (entry.name_at, entry.name_len) = (interest.name_at() as u16, key.name.len() as u16);
        (entry.hint_at, entry.hint_len) = (interest.hint_at() as u16, key.hint.len() as u16);
        let last = interest.name.components().last();
        entry.digest = last.is_some_and(|last| last.kind == component::IMPLICIT_DIGEST);
        (entry.components, entry.live) = (components as u8, true);
        self.prefixes[components] += u32::from(key.can_be_prefix);
        self.digests += u32::from(entry.digest);
        self.created += 1;
        self.live += 1;
        self.index.insert(key.hash, at);
        Some(at)
    }

    fn remove(&mut self, at: u32) {
        let entry = &mut self.entries[at];
        if !std::mem::replace(&mut entry.live, false) {
            return;
        }
        self.live -= 1;
        let is_shadow = entry.state.shadow;
        self.shadows -= usize::from(is_shadow);
        self.prefixes[usize::from(entry.components)] -= u32::from(entry.state.can_be_prefix);
        self.digests -= u32::from(entry.digest);
        self.index.remove(entry.hash, at);
        self.interests.free(&entry.wire);
        while let Some(record) = self.in_records.remove(&mut entry.in_records, |_| true) {
            let load = &mut self.faces[record.face.0 as usize];
            load.in_records -= u32::from(load.epoch == record.epoch && !is_shadow);
        }
        while let Some(record) = self.out_records.remove(&mut entry.out_records, |_| true) {
            self.faces[record.face.0 as usize].out_records -= 1;
        }
        self.entries.free(at);
    }

    #[inline]
    fn satisfied_by(
        &mut self,
        key: &NameKey,
        data: &Data<'_>,
        prefixes: &Prefixes,
        found: &mut Vec<u32>,
    ) {
        let name = data.name.as_bytes();
        for components in 1..prefixes.components() {
            if self.prefixes[components] > 0 {
                let prefix = &name[..prefixes.end(components)];
                let matches =
                    |entry: &Entry| entry.state.can_be_prefix && self.has_name(entry, prefix);
                self.collect(prefixes.hash(components), matches, found);
            }
        }
        self.collect(prefixes.full(), |entry| self.has_name(entry, name), found);
        if self.digests > 0 {
            let mut last = [0; 34];
            last[..2].copy_from_slice(&[1, 32]);
            last[2..].copy_from_slice(&data.digest());
            let matches = |entry: &Entry| {
                usize::from(entry.name_len) == name.len() + last.len()
                    && self.interests.has(&entry.wire, entry.name_at.into(), name)
                    && self.interests.has(
                        &entry.wire,
                        usize::from(entry.name_at) + name.len(),
                        &last,
                    )
            };
            self.collect(key.append(prefixes.full(), &last), matches, found);
        }
    }

    #[inline]
    fn state(&self, at: u32) -> &EntryState {
        &self.entries[at].state
    }

    #[inline]
    fn state_mut(&mut self, at: u32) -> &mut EntryState {
        &mut self.entries[at].state
    }

    fn hash(&self, at: u32) -> u64 {
        self.entries[at].hash
    }

    #[inline]
    fn token(&self, at: u32) -> (u32, u16) {
        (at, self.entries[at].state.number as u16)
    }

    fn interest(&self, at: u32, out: &mut Vec<u8>) {
        self.interests.read(&self.entries[at].wire, out);
    }

    fn epoch(&self, face: FaceId) -> u32 {
        self.faces.get(face.0 as usize).map_or(0, |load| load.epoch)
    }

    #[inline]
    fn pending_of(&self, face: FaceId) -> usize {
        self.faces[face.0 as usize].in_records as usize
    }

    fn in_records(&self, at: u32) -> impl Iterator<Item = &InRecord> {
        let all = self.in_records.iter(&self.entries[at].in_records);
        all.filter(|record| is_valid(&self.faces, record))
    }

    fn out_records(&self, at: u32) -> impl Iterator<Item = &OutRecord> {
        self.out_records.iter(&self.entries[at].out_records)
    }

    fn set_in_record(
        &mut self,
        at: u32,
        face: FaceId,
        nonce: u32,
        expiry_ns: u64,
        token: PitToken,
    ) -> bool {
        let Self { entries, in_records, faces, .. } = self;
        let entry = &mut entries[at];
        // Void records are freed here, so the list has at most one record per face.
        while in_records.remove(&mut entry.in_records, |record| !is_valid(faces, record)).is_some()
        {
        }
        let same = |record: &InRecord| record.face == face;
        if let Some(record) = in_records.find_mut(&mut entry.in_records, same) {
            (record.nonce, record.expiry_ns, record.token) = (nonce, expiry_ns, token);
        } else {
            let load = &mut faces[face.0 as usize];
            let record = InRecord { face, nonce, expiry_ns, token, epoch: load.epoch };
            if !in_records.push_back(&mut entry.in_records, record) {
                return false;
            }
            load.in_records += u32::from(!entry.state.shadow);
        }
        let latest_ns = in_records.iter(&entry.in_records).map(|record| record.expiry_ns).max();
        entry.state.expiry_ns = latest_ns.unwrap_or(0);
        self.wheel.put(at, entry.state.expiry_ns);
        true
    }

    fn remove_in_record(&mut self, at: u32, face: FaceId) -> Option<(u32, PitToken)> {
        let Self { entries, in_records, faces, .. } = self;
        let entry = &mut entries[at];
        let same = |record: &InRecord| record.face == face && is_valid(faces, record);
        let record = in_records.remove(&mut entry.in_records, same)?;
        faces[face.0 as usize].in_records -= u32::from(!entry.state.shadow);
        Some((record.nonce, record.token))
    }

    fn out_mut(&mut self, at: u32, face: FaceId) -> Option<&mut OutRecord> {
        let list = &mut self.entries[at].out_records;
        self.out_records.find_mut(list, |record| record.face == face)
    }

    fn set_out_record(
        &mut self,
        at: u32,
        face: FaceId,
        nonce: u32,
        now_ns: u64,
        expiry_ns: u64,
    ) -> bool {
        if let Some(record) = self.out_mut(at, face) {
            (record.nonce, record.sent_ns, record.expiry_ns) = (nonce, now_ns, expiry_ns);
            record.nack = None;
            return true;
        }
        let interval_ns = INTERVAL_NS;
        let record = OutRecord { face, nonce, sent_ns: now_ns, expiry_ns, interval_ns, nack: None };
        let is_new = self.out_records.push_front(&mut self.entries[at].out_records, record);
        self.faces[face.0 as usize].out_records += u32::from(is_new);
        is_new
    }
}

/// Whether an in-record is valid: its face was not removed since.
#[inline]
fn is_valid(faces: &[FaceLoad], record: &InRecord) -> bool {
    faces[record.face.0 as usize].epoch == record.epoch
}

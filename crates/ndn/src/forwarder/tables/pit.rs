//! The Pending Interest Table: what was asked for, by whom, and whom we asked.
//!
//! ```text
//!  index ─▶ entry ─┬▶ in-record ─▶ in-record      who asks: face, nonce, until when, its token
//!  wheel ─▶        ├▶ out-record                  whom we asked: face, nonce, when, its Nack
//!  token ─▶        └▶ the Interest, in chunks
//! ```
//!
//! An entry is of a name *and* CanBePrefix, MustBeFresh and forwarding hint. The index is by name alone, so that a Data
//! finds all that it answers.

use crate::packets::{Data, Interest, NackReason, PitToken, component};

use super::NONE;
use super::index::Index;
use super::pool::Pool;
use super::prefixes::{COMPONENTS_MAX, NameKey, Prefixes};
use super::store::{Kept, Store};
use super::wheel::Wheel;
use crate::forwarder::face::FaceId;

/// Chunks of the store that Interests have, for each entry.
const CHUNKS_PER_ENTRY: usize = 2;
/// In- and out-records, for each entry.
const RECORDS_PER_ENTRY: usize = 2;

#[derive(Debug)]
pub(crate) struct Pit {
    entries: Pool<Entry>,
    ins: Pool<InRecord>,
    outs: Pool<OutRecord>,
    index: Index,
    wheel: Wheel,
    interests: Store,
    /// By number: what is pending at each face.
    faces: Vec<FaceLoad>,
    made: u64,
    live: usize,
    /// Pending with CanBePrefix, by the length of the name.
    prefixes: [u32; COMPONENTS_MAX + 1],
    /// Pending for a Data of this very digest.
    digests: u32,
}

/// A cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Entry {
    hash: u64,
    /// The latest of its in-records.
    pub(crate) expiry_ns: u64,
    /// Entries are numbered as they are made.
    pub(crate) number: u64,
    /// Best-route: repetitions within this time of the last one sent are held back.
    pub(crate) interval_ns: u32,
    wire: Kept,
    name_at: u16,
    name_len: u16,
    hint_at: u16,
    hint_len: u16,
    first_in: u32,
    first_out: u32,
    components: u8,
    live: bool,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    digest: bool,
}

const _: () = assert!(size_of::<Entry>() == 64);
const _: () = assert!(size_of::<InRecord>() == 64);
const _: () = assert!(size_of::<OutRecord>() == 64);

/// Who asks.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct InRecord {
    pub(crate) face: FaceId,
    pub(crate) nonce: u32,
    pub(crate) expiry_ns: u64,
    pub(crate) token: PitToken,
    /// The face's epoch when the record was made.
    epoch: u32,
    next: u32,
}

/// The records of one face.
#[derive(Clone, Debug, Default)]
struct FaceLoad {
    /// Rises when the face is removed: in-records of earlier epochs are void.
    epoch: u32,
    ins: u32,
    outs: u32,
}

/// Whom we asked.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct OutRecord {
    pub(crate) face: FaceId,
    pub(crate) nonce: u32,
    pub(crate) sent_ns: u64,
    pub(crate) expiry_ns: u64,
    /// Multicast: as the entry's, for this face alone.
    pub(crate) interval_ns: u32,
    pub(crate) nack: Option<NackReason>,
    next: u32,
}

/// Repetitions are held back for so long at first.
pub(crate) const INTERVAL_NS: u32 = 10_000_000;

/// What an entry is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PitKey<'a> {
    pub(crate) hash: u64,
    pub(crate) name: &'a [u8],
    pub(crate) hint: &'a [u8],
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
}

impl Entry {
    /// Another one than those before it in its place had.
    fn generation(&self) -> u16 {
        self.number as u16
    }
}

impl Pit {
    pub(crate) fn new(capacity: usize) -> Self {
        let records = capacity * RECORDS_PER_ENTRY;
        Self {
            entries: Pool::new(capacity),
            ins: Pool::new(records),
            outs: Pool::new(records),
            index: Index::new(capacity),
            wheel: Wheel::new(capacity),
            interests: Store::new(capacity * CHUNKS_PER_ENTRY),
            faces: Vec::new(),
            made: 0,
            live: 0,
            prefixes: [0; COMPONENTS_MAX + 1],
            digests: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Makes room for the counts of a face; none may ask or be asked before.
    pub(crate) fn add_face(&mut self, face: FaceId) {
        let at = face.0 as usize;
        if self.faces.len() <= at {
            self.faces.resize(at + 1, FaceLoad::default());
        }
    }

    /// Interests that a face has pending.
    #[inline]
    pub(crate) fn asked_by(&self, face: FaceId) -> usize {
        self.faces[face.0 as usize].ins as usize
    }

    #[inline]
    pub(crate) fn entry(&self, at: u32) -> &Entry {
        &self.entries[at]
    }

    #[inline]
    pub(crate) fn entry_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.entries[at]
    }

    /// Brings the index bucket of a name near.
    #[inline]
    pub(crate) fn near_bucket(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Brings the entries of a name near; its bucket is.
    #[inline]
    pub(crate) fn near_entry(&self, hash: u64) {
        self.index.candidates(hash).for_each(|at| self.entries.prefetch(at));
    }

    /// Brings near what belongs to the entries of a name, which are.
    #[inline]
    pub(crate) fn near_records(&self, hash: u64) {
        for at in self.index.candidates(hash) {
            let entry = &self.entries[at];
            self.ins.prefetch(entry.first_in);
            self.outs.prefetch(entry.first_out);
            self.interests.prefetch(entry.wire);
        }
    }

    /// Brings near what the entry will have that is made after so many others.
    #[inline]
    pub(crate) fn near_free(&self, others: usize) {
        if let Some(at) = self.entries.prefetch_free(others) {
            self.wheel.prefetch(at);
        }
        self.ins.prefetch_free(others);
        self.outs.prefetch_free(others);
        self.interests.prefetch_free(others);
    }

    /// All that are pending, in no order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.entries.used()).filter(|&at| self.entries[at].live)
    }

    #[inline]
    pub(crate) fn find(&self, key: &PitKey<'_>) -> Option<u32> {
        self.index.candidates(key.hash).find(|&at| {
            let entry = &self.entries[at];
            entry.hash == key.hash
                && entry.can_be_prefix == key.can_be_prefix
                && entry.must_be_fresh == key.must_be_fresh
                && usize::from(entry.hint_len) == key.hint.len()
                && self.is_named(entry, key.name)
                && self.interests.has(entry.wire, entry.hint_at.into(), key.hint)
        })
    }

    fn is_named(&self, entry: &Entry, name: &[u8]) -> bool {
        usize::from(entry.name_len) == name.len()
            && self.interests.has(entry.wire, entry.name_at.into(), name)
    }

    /// The entry that a token led to, if it still is the same one.
    #[inline]
    pub(crate) fn by_token(&self, at: u32, generation: u16) -> Option<u32> {
        let entry = self.entries.get(at)?;
        (entry.live && entry.generation() == generation).then_some(at)
    }

    /// The hash of its name.
    pub(crate) fn hash(&self, at: u32) -> u64 {
        self.entries[at].hash
    }

    pub(crate) fn generation(&self, at: u32) -> u16 {
        self.entries[at].generation()
    }

    /// Adds what is not there. `interest` is kept as it stands, but for its nonce.
    pub(crate) fn insert(
        &mut self,
        key: &PitKey<'_>,
        components: usize,
        interest: &Interest<'_>,
    ) -> Option<u32> {
        if self.entries.room() == 0 {
            return None;
        }
        let wire = self.interests.put(interest.wire)?;
        let last = interest.name.components().last();
        let digest = last.is_some_and(|last| last.kind == component::IMPLICIT_DIGEST);
        let entry = Entry {
            hash: key.hash,
            expiry_ns: 0,
            number: self.made,
            interval_ns: INTERVAL_NS,
            wire,
            name_at: interest.name_at() as u16,
            name_len: key.name.len() as u16,
            hint_at: interest.hint_at() as u16,
            hint_len: key.hint.len() as u16,
            first_in: NONE,
            first_out: NONE,
            components: components as u8,
            live: true,
            can_be_prefix: key.can_be_prefix,
            must_be_fresh: key.must_be_fresh,
            digest,
        };
        let at = self.entries.put(entry)?;
        self.made += 1;
        self.live += 1;
        self.index.insert(key.hash, at);
        self.prefixes[components] += u32::from(key.can_be_prefix);
        self.digests += u32::from(digest);
        Some(at)
    }

    pub(crate) fn remove(&mut self, at: u32) {
        let entry = &mut self.entries[at];
        if !std::mem::replace(&mut entry.live, false) {
            return;
        }
        self.live -= 1;
        self.prefixes[usize::from(entry.components)] -= u32::from(entry.can_be_prefix);
        self.digests -= u32::from(entry.digest);
        self.index.remove(entry.hash, at);
        self.interests.free(entry.wire);
        let (mut record, mut out) = (entry.first_in, entry.first_out);
        while record != NONE {
            self.ins.free(record);
            let InRecord { face, epoch, next, .. } = self.ins[record];
            let load = &mut self.faces[face.0 as usize];
            load.ins -= u32::from(load.epoch == epoch);
            record = next;
        }
        while out != NONE {
            self.outs.free(out);
            let OutRecord { face, next, .. } = self.outs[out];
            self.faces[face.0 as usize].outs -= 1;
            out = next;
        }
        self.entries.free(at);
    }

    /// Finds all that this Data answers: its very name, each prefix for which longer names will do, its digest.
    #[inline]
    pub(crate) fn answered_by(
        &self,
        key: &NameKey,
        data: &Data<'_>,
        prefixes: &Prefixes,
        found: &mut Vec<u32>,
    ) {
        let name = data.name.as_bytes();
        for components in 1..prefixes.components() {
            if self.prefixes[components] > 0 {
                let prefix = &name[..prefixes.end(components)];
                let asks = |entry: &Entry| entry.can_be_prefix && self.is_named(entry, prefix);
                self.collect(prefixes.hash(components), asks, found);
            }
        }
        self.collect(prefixes.full(), |entry| self.is_named(entry, name), found);
        if self.digests > 0 {
            let mut last = [0; 34];
            last[..2].copy_from_slice(&[1, 32]);
            last[2..].copy_from_slice(&data.digest());
            let asks = |entry: &Entry| {
                usize::from(entry.name_len) == name.len() + last.len()
                    && self.interests.has(entry.wire, entry.name_at.into(), name)
                    && self.interests.has(
                        entry.wire,
                        usize::from(entry.name_at) + name.len(),
                        &last,
                    )
            };
            self.collect(key.append(prefixes.full(), &last), asks, found);
        }
    }

    #[inline]
    fn collect(&self, hash: u64, asks: impl Fn(&Entry) -> bool, found: &mut Vec<u32>) {
        let candidates = self.index.candidates(hash);
        found.extend(
            candidates.filter(|&at| self.entries[at].hash == hash && asks(&self.entries[at])),
        );
    }

    /// The Interest of an entry.
    pub(crate) fn interest(&self, at: u32, out: &mut Vec<u8>) {
        self.interests.read(self.entries[at].wire, out);
    }

    /// An entry that may be due.
    #[inline]
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<u32> {
        while let Some(at) = self.wheel.pop(now_ns) {
            let Some(entry) = self.entries.get(at).filter(|entry| entry.live) else { continue };
            if entry.expiry_ns <= now_ns {
                return Some(at);
            }
            self.wheel.put(at, entry.expiry_ns);
        }
        None
    }

    pub(crate) fn ins(&self, at: u32) -> impl Iterator<Item = &InRecord> {
        let mut next = self.entries[at].first_in;
        let all = std::iter::from_fn(move || {
            let record = (next != NONE).then(|| &self.ins[next])?;
            next = record.next;
            Some(record)
        });
        all.filter(|record| self.is_valid(record))
    }

    /// Whether the face of an in-record is still the one that asked.
    #[inline]
    fn is_valid(&self, record: &InRecord) -> bool {
        self.faces[record.face.0 as usize].epoch == record.epoch
    }

    pub(crate) fn outs(&self, at: u32) -> impl Iterator<Item = &OutRecord> {
        let mut next = self.entries[at].first_out;
        std::iter::from_fn(move || {
            let record = (next != NONE).then(|| &self.outs[next])?;
            next = record.next;
            Some(record)
        })
    }

    /// Somebody asks, or asks again; false if there is no room.
    pub(crate) fn ask(
        &mut self,
        at: u32,
        face: FaceId,
        nonce: u32,
        expiry_ns: u64,
        token: PitToken,
    ) -> bool {
        let (mut last, mut next) = (NONE, self.entries[at].first_in);
        while next != NONE {
            let after = self.ins[next].next;
            if !self.is_valid(&self.ins[next]) {
                // Void records are freed here, so the list is no longer than there are faces.
                self.link_in(at, last, after);
                self.ins.free(next);
            } else if self.ins[next].face == face {
                break;
            } else {
                last = next;
            }
            next = after;
        }
        if next == NONE {
            let load = &mut self.faces[face.0 as usize];
            let record = InRecord { face, nonce, expiry_ns, token, epoch: load.epoch, next: NONE };
            let Some(new) = self.ins.put(record) else { return false };
            load.ins += 1;
            self.link_in(at, last, new);
        } else {
            let record = &mut self.ins[next];
            (record.nonce, record.expiry_ns, record.token) = (nonce, expiry_ns, token);
        }
        let expiry_ns = self.ins(at).map(|record| record.expiry_ns).max().unwrap_or(0);
        self.entries[at].expiry_ns = expiry_ns;
        self.wheel.put(at, expiry_ns);
        true
    }

    /// The face that asked does so no longer; the nonce of its Interest.
    pub(crate) fn unask(&mut self, at: u32, face: FaceId) -> Option<(u32, PitToken)> {
        let (mut last, mut next) = (NONE, self.entries[at].first_in);
        while next != NONE && !(self.ins[next].face == face && self.is_valid(&self.ins[next])) {
            (last, next) = (next, self.ins[next].next);
        }
        let record = (next != NONE).then(|| &self.ins[next])?;
        let (after, told) = (record.next, (record.nonce, record.token));
        self.link_in(at, last, after);
        self.ins.free(next);
        self.faces[face.0 as usize].ins -= 1;
        Some(told)
    }

    /// Makes `next` the in-record behind `last`, or the first one.
    #[inline]
    fn link_in(&mut self, at: u32, last: u32, next: u32) {
        match last {
            NONE => self.entries[at].first_in = next,
            last => self.ins[last].next = next,
        }
    }

    /// Whether a face has an in-record here.
    #[inline]
    pub(crate) fn asks(&self, at: u32, face: FaceId) -> bool {
        self.ins(at).any(|record| record.face == face)
    }

    /// The record of whom we asked.
    pub(crate) fn out_mut(&mut self, at: u32, face: FaceId) -> Option<&mut OutRecord> {
        let mut next = self.entries[at].first_out;
        while next != NONE && self.outs[next].face != face {
            next = self.outs[next].next;
        }
        (next != NONE).then(|| &mut self.outs[next])
    }

    /// We ask somebody, or ask again; false if there is no room.
    pub(crate) fn sent(
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
        let next = self.entries[at].first_out;
        let interval_ns = INTERVAL_NS;
        let record =
            OutRecord { face, nonce, sent_ns: now_ns, expiry_ns, interval_ns, nack: None, next };
        let Some(new) = self.outs.put(record) else { return false };
        self.entries[at].first_out = new;
        self.faces[face.0 as usize].outs += 1;
        true
    }

    /// Removes the records of a face. Its in-records become void without a walk through the table: a sender that
    /// makes many faces must not make each removal expensive. Out-records, which need a route, are searched for.
    pub(crate) fn forget_face(&mut self, face: FaceId) {
        let Some(load) = self.faces.get_mut(face.0 as usize) else { return };
        load.epoch = load.epoch.wrapping_add(1);
        load.ins = 0;
        if load.outs == 0 {
            return;
        }
        for at in 0..self.entries.used() {
            if !self.entries[at].live {
                continue;
            }
            let (mut last, mut next) = (NONE, self.entries[at].first_out);
            while next != NONE && self.outs[next].face != face {
                (last, next) = (next, self.outs[next].next);
            }
            if next == NONE {
                continue;
            }
            let after = self.outs[next].next;
            match last {
                NONE => self.entries[at].first_out = after,
                last => self.outs[last].next = after,
            }
            self.outs.free(next);
            self.faces[face.0 as usize].outs -= 1;
        }
    }
}

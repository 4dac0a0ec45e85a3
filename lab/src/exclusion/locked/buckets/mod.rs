//! Tables that threads share, with a lock for each bucket of the PIT, as in the paper (J. Takemasa,
//! Y. Koizumi, T. Hasegawa, ICN 2018).
//!
//! ```text
//!  2^20 buckets of a cache line:   | lock | entry | entry | entry | entry | more |
//!                                           └ name, records: allocated
//!  an Interest or a Nack locks the bucket of its name; a Data also those of its prefixes for which
//!  Interests with CanBePrefix are pending, in order of their numbers
//! ```
//!
//! The content store has one lock, and the dead nonce list a few. What guards a bucket is a type parameter: a
//! [`Mutex`], or [`Elided`] in a table of one worker, so that both have the same code and the same layout.
//!
//! Invariant: locks are taken in the order buckets, content store, dead nonces, so no thread waits
//! for another in a circle.

mod held;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use ringtap_ndn::forwarder::design::{
    ContentStore, DeadNonces, EntryState, FACES_MAX, InRecord, OutRecord, TableUse, Wheel,
};
use ringtap_ndn::forwarder::{COMPONENTS_MAX, FaceId, Settings};
use ringtap_ndn::packets::Data;

pub(crate) use held::Held;

use super::lock::{Elided, Lock, lock};

/// Entries in the line of a bucket.
const WAYS: usize = 4;

/// Locks of the dead nonce list.
const NONCE_LOCKS: usize = 64;

/// The shared tables.
#[derive(Debug)]
pub(crate) struct Buckets<C> {
    buckets: Vec<Bucket<C>>,
    /// Number of pending entries with CanBePrefix, by the number of name components.
    prefixes: Vec<AtomicU32>,
    /// Number of pending entries whose name ends in an implicit digest.
    digests: AtomicU32,
    faces: Vec<FaceLoad>,
    /// Whether pending Interests are counted by face.
    counts_faces: bool,
    /// Pending entries: those that each worker inserted, less those that it removed.
    live: Vec<Live>,
    capacity: i64,
    content: Mutex<ContentStore>,
    has_content: bool,
    dead: Vec<Mutex<DeadNonces>>,
    /// Whether any nonce was ever stored: without one no lock is needed.
    has_nonces: AtomicBool,
}

/// A bucket of the PIT and its lock; one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket<C>(C);

const _: () = assert!(size_of::<Bucket<Mutex<Chain>>>() == 64);
const _: () = assert!(size_of::<Bucket<Elided<Chain>>>() == 64);

/// The entries of a bucket. An entry keeps its place until it is removed.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    ways: [Option<Box<SharedEntry>>; WAYS],
    more: Vec<Option<Box<SharedEntry>>>,
}

/// A PIT entry.
#[derive(Debug)]
struct SharedEntry {
    hash: u64,
    state: EntryState,
    /// The Interest.
    wire: Vec<u8>,
    name_at: u16,
    name_len: u16,
    hint_at: u16,
    hint_len: u16,
    components: u8,
    /// The tick at which a wheel of single entries would return it.
    due: u64,
    /// Distinguishes the entry from earlier ones in the same bucket.
    generation: u16,
    /// Whether the name ends in an implicit digest.
    digest: bool,
    in_records: Vec<InRecord>,
    out_records: Vec<OutRecord>,
}

/// The records of one face: its epoch in the upper half, which is incremented when the face is
/// removed, and the number of its in-records. In-records of earlier epochs are void.
#[derive(Debug, Default)]
struct FaceLoad(AtomicU64);

impl FaceLoad {
    fn epoch(&self) -> u32 {
        // Relaxed: a face that is removed at the same time may be used before or after.
        (self.0.load(Ordering::Relaxed) >> 32) as u32
    }

    fn in_records(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }

    /// Begins the next epoch, without in-records.
    fn remove(&self) {
        let next = |load: u64| Some(((load >> 32).wrapping_add(1) & 0xffff_ffff) << 32);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Counts an in-record of this epoch.
    fn count(&self, epoch: u32, change: i32) {
        let counted = |load: u64| {
            ((load >> 32) as u32 == epoch).then(|| {
                (load & !0xffff_ffff) | u64::from((load as u32).wrapping_add_signed(change))
            })
        };
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
    }
}

/// A counter that one worker changes; on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Live(AtomicI64);

/// A worker's own part.
#[derive(Debug)]
pub(crate) struct LocalPart {
    worker: usize,
    /// Buckets by the earliest expiry of the entries that this worker changed.
    wheel: Wheel,
    #[expect(clippy::vec_box, reason = "the boxes go into the buckets")]
    spare: Vec<Box<SharedEntry>>,
    /// Time of the current packets.
    now_ns: u64,
    /// The number of the latest entry.
    latest: u64,
    inserted: u32,
    is_full: bool,
    /// Locks that another thread held.
    waits: u64,
}

impl<C: Lock<Chain>> Buckets<C> {
    /// Tables for `workers` workers.
    pub(crate) fn new(settings: &Settings, workers: usize, locks: usize) -> Self {
        let buckets = locks.clamp(1, 1 << 30).next_power_of_two();
        let nonces = || Mutex::new(DeadNonces::new(settings.dead_nonces / NONCE_LOCKS));
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            prefixes: (0..=COMPONENTS_MAX).map(|_| AtomicU32::new(0)).collect(),
            digests: AtomicU32::new(0),
            faces: (0..FACES_MAX).map(|_| FaceLoad::default()).collect(),
            counts_faces: settings.pit_per_face.is_some(),
            live: (0..workers).map(|_| Live::default()).collect(),
            capacity: i64::try_from(settings.pit_capacity).unwrap_or(i64::MAX),
            content: Mutex::new(ContentStore::new(settings.cs_bytes)),
            has_content: settings.cs_bytes > 0,
            dead: (0..NONCE_LOCKS).map(|_| nonces()).collect(),
            has_nonces: AtomicBool::new(false),
        }
    }

    #[inline]
    fn bucket_of(&self, hash: u64) -> u32 {
        (hash & (self.buckets.len() as u64 - 1)) as u32
    }

    /// Prefetches the line of a name's bucket, for its lock.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        ringtap_base::prefetch_write(&self.buckets[self.bucket_of(hash) as usize]);
    }

    /// Number of pending entries.
    pub(crate) fn len(&self) -> usize {
        let sum: i64 = self.live.iter().map(|live| live.0.load(Ordering::Relaxed)).sum();
        usize::try_from(sum).unwrap_or(0)
    }

    /// Its use.
    pub(crate) fn usage(&self) -> TableUse {
        let nonces_evicted = self.dead.iter().map(|dead| lock(dead, &mut 0).evicted()).sum();
        let content = lock(&self.content, &mut 0);
        TableUse {
            pending: self.len(),
            stored: content.len(),
            stored_bytes: content.bytes(),
            cs_evicted: content.evicted(),
            nonces_evicted,
        }
    }

    /// Number of pending Interests of a face; 0 if they are not counted by face.
    pub(crate) fn pending_of(&self, face: FaceId) -> usize {
        let load = self.faces.get(face.0 as usize);
        load.map_or(0, |load| load.in_records() as usize)
    }

    /// Removes the in-records of a face and, with `had_routes`, its out-records.
    pub(crate) fn remove_face(&self, face: FaceId, had_routes: bool) {
        let Some(load) = self.faces.get(face.0 as usize) else { return };
        load.remove();
        for bucket in self.buckets.iter().filter(|_| had_routes) {
            let mut chain = bucket.0.hold(&mut 0);
            for entry in chain.entries_mut() {
                entry.out_records.retain(|record| record.face != face);
            }
        }
    }

    /// The buckets of all entries, for a walk through the table.
    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.buckets.len() as u32
    }
}

/// The component of a Data's implicit digest, as in its full name.
fn digest_component(data: &Data<'_>) -> [u8; 34] {
    let mut component = [0; 34];
    component[..2].copy_from_slice(&[1, 32]);
    component[2..].copy_from_slice(&data.digest());
    component
}

impl LocalPart {
    /// The part of the worker with this number.
    pub(crate) fn new<C>(table: &Buckets<C>, worker: usize) -> Self {
        Self {
            worker,
            wheel: Wheel::new(table.buckets.len()),
            spare: Vec::new(),
            now_ns: 0,
            latest: 0,
            inserted: 0,
            is_full: false,
            waits: 0,
        }
    }

    /// Sets the time of the next packets.
    pub(crate) fn set_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The number of the latest entry. Entries of different workers are ordered by their time.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    pub(crate) fn set_latest(&mut self, latest: u64) {
        self.latest = latest;
    }

    /// Locks that another thread held.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    /// A bucket that may have an expired entry.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<u32> {
        self.wheel.pop(now_ns)
    }
}

impl Chain {
    #[inline]
    fn places(&self) -> impl Iterator<Item = &Option<Box<SharedEntry>>> {
        self.ways.iter().chain(&self.more)
    }

    /// The entries and their places.
    #[inline]
    fn entries(&self) -> impl Iterator<Item = (u32, &SharedEntry)> {
        (0..).zip(self.places()).filter_map(|(place, entry)| Some((place, entry.as_deref()?)))
    }

    fn entries_mut(&mut self) -> impl Iterator<Item = &mut SharedEntry> {
        self.ways.iter_mut().chain(&mut self.more).filter_map(Option::as_deref_mut)
    }

    #[inline]
    fn place(&mut self, place: u32) -> &mut Option<Box<SharedEntry>> {
        let place = place as usize;
        if place < WAYS { &mut self.ways[place] } else { &mut self.more[place - WAYS] }
    }

    /// Adds an entry; returns its place.
    fn put(&mut self, entry: Box<SharedEntry>) -> u32 {
        let free = self.places().position(Option::is_none);
        let place = free.unwrap_or(WAYS + self.more.len());
        if free.is_none() {
            self.more.push(None);
        }
        *self.place(place as u32) = Some(entry);
        place as u32
    }
}

impl SharedEntry {
    fn new() -> Box<Self> {
        Box::new(Self {
            hash: 0,
            state: EntryState::NEW,
            wire: Vec::new(),
            name_at: 0,
            name_len: 0,
            hint_at: 0,
            hint_len: 0,
            components: 0,
            due: 0,
            generation: 0,
            digest: false,
            in_records: Vec::new(),
            out_records: Vec::new(),
        })
    }

    fn name(&self) -> &[u8] {
        let at = usize::from(self.name_at);
        &self.wire[at..at + usize::from(self.name_len)]
    }

    fn hint(&self) -> &[u8] {
        let at = usize::from(self.hint_at);
        &self.wire[at..at + usize::from(self.hint_len)]
    }
}

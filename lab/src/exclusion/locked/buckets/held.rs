//! The tables of a worker while it holds the locks of some buckets.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering};

use ringtap_ndn::forwarder::design::{
    Contents, DeadNonces, EntryState, INTERVAL_NS, InRecord, NameKey, NonceList, OutRecord,
    PendingInterests, PitKey, Prefixes, TICK_NS, Tables,
};
use ringtap_ndn::forwarder::{COMPONENTS_MAX, FaceId};
use ringtap_ndn::packets::{Data, Interest, PitToken, component};

use super::{Buckets, Chain, LocalPart, NONCE_LOCKS, SharedEntry, WAYS, digest_component};
use crate::exclusion::locked::lock::{Lock, lock};

/// Insertions of a worker between two checks of the capacity.
const CHECK_EVERY: u32 = 64;

/// Removed entries that a worker keeps for reuse.
const SPARE_MAX: usize = 1 << 16;

/// In-records, and out-records, of one entry.
const RECORDS_MAX: usize = 1 << 12;

/// The tables of a worker while it holds the locks of some buckets.
#[derive(Debug)]
pub(crate) struct Held<'a, C: Lock<Chain>> {
    pit: HeldPit<'a, C>,
    content: SharedContent<'a, C>,
    dead: SharedNonces<'a, C>,
}

#[derive(Debug)]
pub(crate) struct HeldPit<'a, C: Lock<Chain>> {
    table: &'a Buckets<C>,
    local: &'a mut LocalPart,
    first: Option<(u32, C::Guard<'a>)>,
    others: Vec<(u32, C::Guard<'a>)>,
}

#[derive(Debug)]
pub(crate) struct SharedContent<'a, C: Lock<Chain>>(&'a Buckets<C>);

#[derive(Debug)]
pub(crate) struct SharedNonces<'a, C: Lock<Chain>>(&'a Buckets<C>);

/// An entry's number: which of the held buckets, and the place in it.
const PLACE_BITS: u32 = 24;

impl<C: Lock<Chain>> HeldPit<'_, C> {
    /// The number of the held bucket for a hash.
    #[inline]
    fn held(&self, hash: u64) -> Option<u32> {
        let bucket = self.table.bucket_of(hash);
        let all = self.first.iter().chain(&self.others);
        (0..).zip(all).find(|(_, held)| held.0 == bucket).map(|(at, _)| at)
    }

    #[inline]
    fn chain(&self, held: u32) -> &Chain {
        match (held.checked_sub(1), &self.first) {
            (None, Some((_, chain))) => chain,
            (at, _) => &self.others[at.unwrap_or(0) as usize].1,
        }
    }

    #[inline]
    fn chain_mut(&mut self, held: u32) -> &mut Chain {
        match (held.checked_sub(1), &mut self.first) {
            (None, Some((_, chain))) => chain,
            (at, _) => &mut self.others[at.unwrap_or(0) as usize].1,
        }
    }

    #[inline]
    fn entry(&self, at: u32) -> &SharedEntry {
        let (held, place) = (at >> PLACE_BITS, (at & ((1 << PLACE_BITS) - 1)) as usize);
        let chain = self.chain(held);
        let entry = chain.ways.get(place).or_else(|| chain.more.get(place.wrapping_sub(WAYS)));
        match entry.and_then(Option::as_deref) {
            Some(entry) => entry,
            None => unreachable!("entries are not used after their removal"),
        }
    }

    #[inline]
    fn entry_mut(&mut self, at: u32) -> &mut SharedEntry {
        let (held, place) = (at >> PLACE_BITS, at & ((1 << PLACE_BITS) - 1));
        match self.chain_mut(held).place(place).as_deref_mut() {
            Some(entry) => entry,
            None => unreachable!("entries are not used after their removal"),
        }
    }

    /// Appends the entries with this hash for which `matches` returns true.
    fn collect(&self, hash: u64, found: &mut Vec<u32>, matches: impl Fn(&SharedEntry) -> bool) {
        let Some(held) = self.held(hash) else { return };
        let same = |(_, entry): &(u32, &SharedEntry)| entry.hash == hash && matches(entry);
        let number = |(place, _)| held << PLACE_BITS | place;
        found.extend(self.chain(held).entries().filter(same).map(number));
    }

    /// The entries of the first held bucket that a wheel of single entries would return by now.
    pub(crate) fn expired(&self, now_ns: u64, found: &mut Vec<u32>) {
        let now = now_ns / TICK_NS;
        let is_expired = |(_, entry): &(u32, &SharedEntry)| entry.due <= now;
        found.extend(self.chain(0).entries().filter(is_expired).map(|(place, _)| place));
    }

    /// The entries of the first held bucket.
    pub(crate) fn all(&self, found: &mut Vec<u32>) {
        found.extend(self.chain(0).entries().map(|(place, _)| place));
    }

    /// Schedules the earliest expiry of the entries in the first held bucket.
    pub(crate) fn reschedule(&mut self) {
        let earliest = self.chain(0).entries().map(|(_, entry)| entry.due).min();
        if let (Some(due), Some((bucket, _))) = (earliest, &self.first) {
            self.local.wheel.put(*bucket, due.saturating_mul(TICK_NS));
        }
    }

    fn count_live(&self, change: i64) {
        let live = &self.table.live[self.local.worker].0;
        // Only this worker changes it.
        live.store(live.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }

    /// Changes the counters of entries that a Data finds by other names than its own.
    fn count_special(&self, entry: &SharedEntry, change: impl Fn(&AtomicU32)) {
        if entry.state.can_be_prefix {
            change(&self.table.prefixes[usize::from(entry.components)]);
        }
        if entry.digest {
            change(&self.table.digests);
        }
    }

    /// Whether the tables have room; exact to some entries a worker.
    fn has_room(&mut self) -> bool {
        self.local.inserted = self.local.inserted.wrapping_add(1);
        if self.local.is_full || self.local.inserted.is_multiple_of(CHECK_EVERY) {
            self.local.is_full = self.table.len() as i64 >= self.table.capacity;
        }
        !self.local.is_full
    }
}

impl<C: Lock<Chain>> PendingInterests for HeldPit<'_, C> {
    fn find(&mut self, key: &PitKey<'_>) -> Option<u32> {
        let held = self.held(key.hash)?;
        let same = |(_, entry): &(u32, &SharedEntry)| {
            entry.hash == key.hash
                && entry.state.can_be_prefix == key.can_be_prefix
                && entry.state.must_be_fresh == key.must_be_fresh
                && entry.name() == key.name
                && entry.hint() == key.hint
        };
        self.chain(held).entries().find(same).map(|(place, _)| held << PLACE_BITS | place)
    }

    fn insert(
        &mut self,
        key: &PitKey<'_>,
        components: usize,
        interest: &Interest<'_>,
    ) -> Option<u32> {
        let held = self.held(key.hash)?;
        if !self.has_room() {
            return None;
        }
        let mut entry = self.local.spare.pop().unwrap_or_else(SharedEntry::new);
        self.local.latest = self.local.now_ns.max(self.local.latest + 1);
        let last = interest.name.components().last();
        entry.hash = key.hash;
        entry.state = EntryState {
            number: self.local.latest,
            can_be_prefix: key.can_be_prefix,
            must_be_fresh: key.must_be_fresh,
            ..EntryState::NEW
        };
        entry.wire.clear();
        entry.wire.extend_from_slice(interest.wire);
        (entry.name_at, entry.name_len) = (interest.name_at() as u16, key.name.len() as u16);
        (entry.hint_at, entry.hint_len) = (interest.hint_at() as u16, key.hint.len() as u16);
        (entry.components, entry.due) = (components as u8, u64::MAX);
        let created = self.local.inserted as usize * self.table.live.len() + self.local.worker;
        entry.generation = created as u16;
        entry.digest = last.is_some_and(|last| last.kind == component::IMPLICIT_DIGEST);
        self.count_live(1);
        self.count_special(&entry, |count| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let place = self.chain_mut(held).put(entry);
        Some(held << PLACE_BITS | place)
    }

    fn remove(&mut self, at: u32) {
        let (held, place) = (at >> PLACE_BITS, at & ((1 << PLACE_BITS) - 1));
        let Some(mut entry) = self.chain_mut(held).place(place).take() else { return };
        self.count_live(-1);
        self.count_special(&entry, |count| {
            count.fetch_sub(1, Ordering::Relaxed);
        });
        if self.table.counts_faces {
            for record in &entry.in_records {
                self.table.faces[record.face.0 as usize].count(record.epoch, -1);
            }
        }
        entry.in_records.clear();
        entry.out_records.clear();
        if self.local.spare.len() < SPARE_MAX {
            self.local.spare.push(entry);
        }
    }

    fn satisfied_by(
        &mut self,
        key: &NameKey,
        data: &Data<'_>,
        prefixes: &Prefixes,
        found: &mut Vec<u32>,
    ) {
        let name = data.name.as_bytes();
        for components in 1..prefixes.components() {
            if self.table.prefixes[components].load(Ordering::Relaxed) > 0 {
                let prefix = &name[..prefixes.end(components)];
                self.collect(prefixes.hash(components), found, |entry| {
                    entry.state.can_be_prefix && entry.name() == prefix
                });
            }
        }
        self.collect(prefixes.full(), found, |entry| entry.name() == name);
        if self.table.digests.load(Ordering::Relaxed) > 0 {
            let last = digest_component(data);
            self.collect(key.append(prefixes.full(), &last), found, |entry| {
                entry.name().strip_prefix(name) == Some(&last[..])
            });
        }
    }

    fn state(&self, at: u32) -> &EntryState {
        &self.entry(at).state
    }

    fn state_mut(&mut self, at: u32) -> &mut EntryState {
        &mut self.entry_mut(at).state
    }

    fn hash(&self, at: u32) -> u64 {
        self.entry(at).hash
    }

    fn token(&self, at: u32) -> (u32, u16) {
        let entry = self.entry(at);
        (self.table.bucket_of(entry.hash) & 0xff_ffff, entry.generation)
    }

    fn interest(&self, at: u32, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.entry(at).wire);
    }

    fn epoch(&self, face: FaceId) -> u32 {
        self.table.faces[face.0 as usize].epoch()
    }

    fn pending_of(&self, face: FaceId) -> usize {
        self.table.pending_of(face)
    }

    fn in_records(&self, at: u32) -> impl Iterator<Item = &InRecord> {
        let is_valid = |record: &&InRecord| self.epoch(record.face) == record.epoch;
        self.entry(at).in_records.iter().filter(is_valid)
    }

    fn out_records(&self, at: u32) -> impl Iterator<Item = &OutRecord> {
        self.entry(at).out_records.iter()
    }

    fn set_in_record(
        &mut self,
        at: u32,
        face: FaceId,
        nonce: u32,
        expiry_ns: u64,
        token: PitToken,
    ) -> bool {
        let table = self.table;
        let valid = |record: &InRecord| table.faces[record.face.0 as usize].epoch() == record.epoch;
        let (epoch, now_ns) = (self.epoch(face), self.local.now_ns);
        let bucket = table.bucket_of(self.entry(at).hash);
        let entry = self.entry_mut(at);
        entry.in_records.retain(valid);
        let has_room = entry.in_records.len() < RECORDS_MAX;
        match entry.in_records.iter_mut().find(|record| record.face == face) {
            Some(record) => {
                (record.nonce, record.expiry_ns, record.token) = (nonce, expiry_ns, token);
            }
            None if !has_room => return false,
            None => {
                let record = InRecord { face, nonce, expiry_ns, token, epoch };
                entry.in_records.push(record);
                if table.counts_faces {
                    table.faces[face.0 as usize].count(epoch, 1);
                }
            }
        }
        let latest_ns = entry.in_records.iter().map(|record| record.expiry_ns).max();
        let expiry_ns = latest_ns.unwrap_or(0);
        entry.state.expiry_ns = expiry_ns;
        entry.due = expiry_ns.div_ceil(TICK_NS).max(now_ns / TICK_NS + 1);
        self.local.wheel.put(bucket, expiry_ns);
        true
    }

    fn remove_in_record(&mut self, at: u32, face: FaceId) -> Option<(u32, PitToken)> {
        let epoch = self.epoch(face);
        let entry = self.entry_mut(at);
        let same = |record: &InRecord| record.face == face && record.epoch == epoch;
        let place = entry.in_records.iter().position(same)?;
        let record = entry.in_records.remove(place);
        if self.table.counts_faces {
            self.table.faces[face.0 as usize].count(epoch, -1);
        }
        Some((record.nonce, record.token))
    }

    fn out_mut(&mut self, at: u32, face: FaceId) -> Option<&mut OutRecord> {
        self.entry_mut(at).out_records.iter_mut().find(|record| record.face == face)
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
        let entry = self.entry_mut(at);
        if entry.out_records.len() >= RECORDS_MAX {
            return false;
        }
        let interval_ns = INTERVAL_NS;
        let record = OutRecord { face, nonce, sent_ns: now_ns, expiry_ns, interval_ns, nack: None };
        // The latest first, as in a PIT of one thread.
        entry.out_records.insert(0, record);
        true
    }
}

impl<C: Lock<Chain>> Buckets<C> {
    /// Locks one bucket.
    #[inline]
    pub(crate) fn hold_bucket<'a>(&'a self, local: &'a mut LocalPart, bucket: u32) -> Held<'a, C> {
        let chain = self.buckets[bucket as usize].0.hold(&mut local.waits);
        Held::new(self, local, bucket, chain)
    }

    /// Locks the bucket of a name.
    #[inline]
    pub(crate) fn hold<'a>(&'a self, local: &'a mut LocalPart, prefixes: &Prefixes) -> Held<'a, C> {
        let bucket = self.bucket_of(prefixes.full());
        self.hold_bucket(local, bucket)
    }

    /// Locks the buckets of all entries that a Data may satisfy.
    pub(crate) fn hold_for_data<'a>(
        &'a self,
        local: &'a mut LocalPart,
        key: &NameKey,
        data: &Data<'_>,
        prefixes: &Prefixes,
    ) -> Held<'a, C> {
        let mut wanted = [0; COMPONENTS_MAX + 2];
        wanted[0] = self.bucket_of(prefixes.full());
        let mut count = 1;
        for components in 1..prefixes.components() {
            // Relaxed: an Interest that arrives at the same time may come before or after.
            if self.prefixes[components].load(Ordering::Relaxed) > 0 {
                wanted[count] = self.bucket_of(prefixes.hash(components));
                count += 1;
            }
        }
        if self.digests.load(Ordering::Relaxed) > 0 {
            wanted[count] = self.bucket_of(key.append(prefixes.full(), &digest_component(data)));
            count += 1;
        }
        if count == 1 {
            return self.hold_bucket(local, wanted[0]);
        }
        let wanted = &mut wanted[..count];
        wanted.sort_unstable();
        let mut held = self.hold_bucket(local, wanted[0]);
        for pair in wanted.windows(2).filter(|pair| pair[0] != pair[1]) {
            held.add(pair[1]);
        }
        held
    }
}

impl<'a, C: Lock<Chain>> Held<'a, C> {
    /// The tables with one held bucket.
    #[inline]
    pub(super) fn new(
        table: &'a Buckets<C>,
        local: &'a mut LocalPart,
        bucket: u32,
        chain: C::Guard<'a>,
    ) -> Self {
        let (first, others) = (Some((bucket, chain)), Vec::new());
        Self {
            pit: HeldPit { table, local, first, others },
            content: SharedContent(table),
            dead: SharedNonces(table),
        }
    }

    /// Locks another bucket. Its number must be higher than those of the held ones.
    pub(super) fn add(&mut self, bucket: u32) {
        let HeldPit { table, local, others, .. } = &mut self.pit;
        let chain = table.buckets[bucket as usize].0.hold(&mut local.waits);
        others.push((bucket, chain));
    }

    /// The pending Interests of the held buckets.
    pub(crate) fn pit(&mut self) -> &mut HeldPit<'a, C> {
        &mut self.pit
    }
}

impl<'a, C: Lock<Chain>> Tables for Held<'a, C> {
    type Pit = HeldPit<'a, C>;
    type Content = SharedContent<'a, C>;
    type Dead = SharedNonces<'a, C>;

    #[inline]
    fn parts(
        &mut self,
    ) -> (&mut HeldPit<'a, C>, &mut SharedContent<'a, C>, &mut SharedNonces<'a, C>) {
        (&mut self.pit, &mut self.content, &mut self.dead)
    }
}

impl<C: Lock<Chain>> Contents for SharedContent<'_, C> {
    fn put(&mut self, now_ns: u64, data: &Data<'_>, prefixes: &Prefixes) {
        if self.0.has_content {
            lock(&self.0.content, &mut 0).put(now_ns, data, prefixes);
        }
    }

    fn look_up(
        &mut self,
        now_ns: u64,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        out: &mut Vec<u8>,
    ) -> bool {
        self.0.has_content && lock(&self.0.content, &mut 0).look_up(now_ns, interest, prefixes, out)
    }
}

impl<C: Lock<Chain>> SharedNonces<'_, C> {
    #[inline]
    fn part(&self, hash: u64) -> MutexGuard<'_, DeadNonces> {
        lock(&self.0.dead[(hash >> 58) as usize % NONCE_LOCKS], &mut 0)
    }
}

impl<C: Lock<Chain>> NonceList for SharedNonces<'_, C> {
    fn has(&self, now_ns: u64, hash: u64) -> bool {
        // Relaxed: a nonce that is stored at the same time may be found or not.
        self.0.has_nonces.load(Ordering::Relaxed) && self.part(hash).has(now_ns, hash)
    }

    fn put(&mut self, now_ns: u64, hash: u64) {
        if !self.0.has_nonces.load(Ordering::Relaxed) {
            self.0.has_nonces.store(true, Ordering::Relaxed);
        }
        self.part(hash).put(now_ns, hash);
    }
}

//! The PIT and the content store without the rest of the forwarder, for benchmarks: they measure the
//! cost of a table without the pipelines and the parsers.

use crate::packets::{Data, Interest, PitToken};

use super::{ContentStore, Contents, NameKey, PendingInterests, Pit, PitKey, Prefixes};
use crate::forwarder::face::FaceId;
use crate::forwarder::scratch::PREFETCH_LAG;

const DOWNSTREAM: FaceId = FaceId(1);
const UPSTREAM: FaceId = FaceId(2);

/// The Pending Interest Table without the rest of the forwarder, for benchmarks.
#[doc(hidden)]
#[derive(Debug)]
pub struct PitAlone {
    pit: Pit,
    key: NameKey,
    prefixes: Vec<Prefixes>,
    found: Vec<u32>,
}

impl PitAlone {
    /// A PIT with room for `capacity` Interests, and for bursts of at most `burst` packets.
    pub fn new(capacity: usize, burst: usize) -> Self {
        let mut pit = Pit::new(capacity);
        [DOWNSTREAM, UPSTREAM].into_iter().for_each(|face| pit.add_face(face));
        Self {
            pit,
            key: NameKey::from_seed(1),
            prefixes: vec![Prefixes::new(); burst],
            found: Vec::with_capacity(capacity),
        }
    }

    /// Number of pending Interests.
    pub fn len(&self) -> usize {
        self.pit.len()
    }

    /// Whether no Interests are pending.
    pub fn is_empty(&self) -> bool {
        self.pit.len() == 0
    }

    /// Handles Interests: look-up, insertion, in- and out-record. Returns the number of Interests
    /// for which there was room.
    pub fn add_interests(&mut self, now_ns: u64, interests: &[Interest<'_>]) -> usize {
        for (others, (interest, prefixes)) in interests.iter().zip(&mut self.prefixes).enumerate() {
            prefixes.set(&self.key, &interest.name);
            self.pit.prefetch_bucket(prefixes.full());
            self.pit.prefetch_free(others);
        }
        let Self { pit, prefixes, .. } = self;
        let put = |(interest, prefixes): (&Interest<'_>, &Prefixes)| {
            let key = PitKey::of(interest, prefixes);
            let at = match pit.find(&key) {
                Some(at) => at,
                None => pit.insert(&key, prefixes.components(), interest)?,
            };
            let (nonce, until_ns) = (interest.nonce?, now_ns + 4_000_000_000);
            let has_room = pit.set_in_record(at, DOWNSTREAM, nonce, until_ns, PitToken::default());
            (has_room && pit.set_out_record(at, UPSTREAM, nonce, now_ns, until_ns)).then_some(())
        };
        interests.iter().zip(&*prefixes).filter_map(put).count()
    }

    /// Handles Data: looks up the satisfied entries by name and removes them. Returns the number of
    /// removed entries.
    pub fn satisfy(&mut self, data: &[Data<'_>]) -> usize {
        let Self { pit, prefixes, found, key } = self;
        for step in 0..data.len() + PREFETCH_LAG {
            if let Some(data) = data.get(step) {
                prefixes[step].set(key, &data.name);
                pit.prefetch_bucket(prefixes[step].full());
            }
            if let Some(before) = step.checked_sub(PREFETCH_LAG) {
                pit.prefetch_entries(prefixes[before].full());
            }
        }
        let mut satisfied = 0;
        for (data, prefixes) in data.iter().zip(&*prefixes) {
            found.clear();
            pit.satisfied_by(key, data, prefixes, found);
            satisfied += found.len();
            found.iter().for_each(|&at| pit.remove(at));
        }
        satisfied
    }
}

/// The content store without the rest of the forwarder, for benchmarks.
#[doc(hidden)]
#[derive(Debug)]
pub struct ContentAlone {
    content: ContentStore,
    key: NameKey,
    prefixes: Prefixes,
}

impl ContentAlone {
    /// A content store of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let (key, prefixes) = (NameKey::from_seed(1), Prefixes::new());
        Self { content: ContentStore::new(bytes), key, prefixes }
    }

    /// Number of stored Data.
    pub fn len(&self) -> usize {
        self.content.len()
    }

    /// Whether no Data are stored.
    pub fn is_empty(&self) -> bool {
        self.content.len() == 0
    }

    /// Number of used bytes.
    pub fn bytes(&self) -> usize {
        self.content.bytes()
    }

    /// Stores a Data, as the forwarder does.
    pub fn put(&mut self, now_ns: u64, data: &Data<'_>) {
        if self.prefixes.set(&self.key, &data.name) {
            self.content.put(now_ns, data, &self.prefixes);
        }
    }

    /// Looks up an Interest, as the forwarder does; writes the Data to `out`, and returns false if
    /// there is none.
    pub fn look_up(&mut self, now_ns: u64, interest: &Interest<'_>, out: &mut Vec<u8>) -> bool {
        self.prefixes.set(&self.key, &interest.name)
            && self.content.look_up(now_ns, interest, &self.prefixes, out)
    }
}

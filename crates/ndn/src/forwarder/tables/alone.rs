//! The PIT alone, for its benchmark: what a pending Interest costs without the rules and the packets around it.

use crate::packets::{Data, Interest, PitToken};

use super::{NameKey, Pit, PitKey, Prefixes};
use crate::forwarder::face::FaceId;

const ASKS: FaceId = FaceId(1);
const ASKED: FaceId = FaceId(2);

/// The pending-interest table without the rest of the forwarder, for benchmarks.
#[doc(hidden)]
#[derive(Debug)]
pub struct PitAlone {
    pit: Pit,
    key: NameKey,
    prefixes: Vec<Prefixes>,
    found: Vec<u32>,
}

impl PitAlone {
    /// With room for so many Interests, and for `burst` packets at a time.
    pub fn new(capacity: usize, burst: usize) -> Self {
        let mut pit = Pit::new(capacity);
        [ASKS, ASKED].into_iter().for_each(|face| pit.add_face(face));
        Self {
            pit,
            key: NameKey::from_seed(1),
            prefixes: vec![Prefixes::new(); burst],
            found: Vec::with_capacity(capacity),
        }
    }

    /// How many are pending.
    pub fn len(&self) -> usize {
        self.pit.len()
    }

    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.pit.len() == 0
    }

    /// Interests come: looked up, put in, with who asks and whom is asked. How many had room.
    pub fn ask(&mut self, now_ns: u64, interests: &[Interest<'_>]) -> usize {
        for (others, (interest, prefixes)) in interests.iter().zip(&mut self.prefixes).enumerate() {
            prefixes.set(&self.key, &interest.name);
            self.pit.near_bucket(prefixes.full());
            self.pit.near_free(others);
        }
        let Self { pit, prefixes, .. } = self;
        let put = |(interest, prefixes): (&Interest<'_>, &Prefixes)| {
            let key = PitKey {
                hash: prefixes.full(),
                name: interest.name.as_bytes(),
                hint: interest.hint,
                can_be_prefix: interest.can_be_prefix,
                must_be_fresh: interest.must_be_fresh,
            };
            let at = match pit.find(&key) {
                Some(at) => at,
                None => pit.insert(&key, prefixes.components(), interest)?,
            };
            let (nonce, until_ns) = (interest.nonce?, now_ns + 4_000_000_000);
            let asked = pit.ask(at, ASKS, nonce, until_ns, PitToken::default());
            (asked && pit.sent(at, ASKED, nonce, now_ns, until_ns)).then_some(())
        };
        interests.iter().zip(&*prefixes).filter_map(put).count()
    }

    /// Data come: what they answer is looked up by name and taken out. How many that are.
    pub fn answer(&mut self, data: &[Data<'_>]) -> usize {
        for (data, prefixes) in data.iter().zip(&mut self.prefixes) {
            prefixes.set(&self.key, &data.name);
            self.pit.near_bucket(prefixes.full());
        }
        let Self { pit, prefixes, found, key } = self;
        let prefixes = &prefixes[..data.len()];
        prefixes.iter().for_each(|prefixes| pit.near_entry(prefixes.full()));
        prefixes.iter().for_each(|prefixes| pit.near_records(prefixes.full()));
        let mut answered = 0;
        for (data, prefixes) in data.iter().zip(prefixes) {
            found.clear();
            pit.answered_by(key, data, prefixes, found);
            answered += found.len();
            found.iter().for_each(|&at| pit.remove(at));
        }
        answered
    }
}

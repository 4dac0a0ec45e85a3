//! A structure of any kind, for keys of one length: owned by a worker in the separate designs, and
//! the result of every design.

use ringtap_sketch::{
    CandidateCountMin, Collision, ConservativeCountMin, CountMin, Estimate, Exact, HashTable,
    Heavy, HeavyKeys, ImageError, Key, Mismatch, MisraGries, MvSketch, Reversible,
    ReversibleModular, SearchBudgetExceeded, Sketch, SpaceSaving,
};

use crate::settings::{Kind, Settings};
use crate::size::{Size, size};

/// Step budget of a search for keys in [`Reversible`], about a second: a step visits many entries.
const SET_STEPS: u64 = 200_000;
/// Step budget of a search for keys in [`ReversibleModular`].
const MODULAR_STEPS: u64 = 20_000_000;

#[derive(Clone, Debug)]
pub(crate) enum Structure<K: Key> {
    Cms(CountMin<K, u64>),
    CmsCu(ConservativeCountMin<K, u64>),
    CmsKeys(CandidateCountMin<K>),
    Sht(HashTable<K>),
    Rs(Reversible<K>),
    /// For keys of four bytes.
    RsModular(ReversibleModular),
    Mv(MvSketch<K>),
    Mg(MisraGries<K>),
    Ss(SpaceSaving<K>),
    Exact(Exact<K>),
}

/// Runs a block on any structure except the modular one, whose keys have another type.
macro_rules! with_sketch {
    ($structure:expr, $sketch:ident => $body:expr, $modular:ident => $other:expr) => {
        match $structure {
            Structure::Cms($sketch) => $body,
            Structure::CmsCu($sketch) => $body,
            Structure::CmsKeys($sketch) => $body,
            Structure::Sht($sketch) => $body,
            Structure::Rs($sketch) => $body,
            Structure::RsModular($modular) => $other,
            Structure::Mv($sketch) => $body,
            Structure::Mg($sketch) => $body,
            Structure::Ss($sketch) => $body,
            Structure::Exact($sketch) => $body,
        }
    };
}

/// A key of four bytes.
fn four<K: Key>(key: &K) -> Option<[u8; 4]> {
    key.bytes().try_into().ok()
}

/// The message of an impossible error: [`Settings::check`] refuses such settings.
const FITS: &str = "the settings were checked";

impl<K: Key> Structure<K> {
    /// Whether a structure of this kind supports such keys.
    pub(crate) fn can_count(kind: Kind) -> bool {
        kind != Kind::RsModular || K::BYTES == 4
    }

    /// An empty structure. The settings have been checked.
    pub(crate) fn new(settings: &Settings) -> Self {
        let seed = settings.seed;
        match (settings.structure, size::<K>(settings).expect(FITS)) {
            (Kind::Cms, Size::Grid(shape, _)) => Self::Cms(CountMin::new(shape, seed)),
            (Kind::CmsCu, Size::Grid(shape, _)) => {
                Self::CmsCu(ConservativeCountMin::new(shape, seed))
            }
            (Kind::CmsKeys, Size::Grid(shape, keys)) => {
                Self::CmsKeys(CandidateCountMin::new(shape, keys, seed).expect(FITS))
            }
            (Kind::Rs, Size::Grid(shape, _)) => Self::Rs(Reversible::new(shape, seed)),
            (Kind::RsModular, Size::Grid(shape, _)) => {
                Self::RsModular(ReversibleModular::new(shape, seed))
            }
            (Kind::Mv, Size::Grid(shape, _)) => Self::Mv(MvSketch::new(shape, seed)),
            (Kind::Sht, Size::Entries(n)) => {
                Self::Sht(HashTable::new(n, Collision::KeepFirst, seed).expect(FITS))
            }
            (Kind::Mg, Size::Entries(n)) => Self::Mg(MisraGries::new(n, seed).expect(FITS)),
            (Kind::Ss, Size::Entries(n)) => Self::Ss(SpaceSaving::new(n, seed).expect(FITS)),
            (Kind::Exact, Size::Entries(n)) => Self::Exact(Exact::new(n, seed).expect(FITS)),
            (kind, size) => unreachable!("{kind} of {size:?}"),
        }
    }

    pub(crate) fn update(&mut self, items: &[(K, u64)]) {
        with_sketch!(self, sketch => sketch.update_burst(items), modular => {
            for (key, weight) in items {
                if let Some(key) = four(key) {
                    modular.update(&key, *weight);
                }
            }
        });
    }

    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        match (self, other) {
            (Self::Cms(own), Self::Cms(other)) => own.merge(other),
            (Self::CmsCu(own), Self::CmsCu(other)) => own.merge(other),
            (Self::CmsKeys(own), Self::CmsKeys(other)) => own.merge(other),
            (Self::Sht(own), Self::Sht(other)) => own.merge(other),
            (Self::Rs(own), Self::Rs(other)) => own.merge(other),
            (Self::RsModular(own), Self::RsModular(other)) => own.merge(other),
            (Self::Mv(own), Self::Mv(other)) => own.merge(other),
            (Self::Mg(own), Self::Mg(other)) => own.merge(other),
            (Self::Ss(own), Self::Ss(other)) => own.merge(other),
            (Self::Exact(own), Self::Exact(other)) => own.merge(other),
            _ => Err(Mismatch::Parameters),
        }
    }

    pub(crate) fn estimate(&self, key: &K) -> Estimate {
        with_sketch!(self, sketch => sketch.estimate(key), modular => {
            let key = four(key).expect("a modular sketch has keys of four bytes");
            modular.estimate(&key)
        })
    }

    /// Its keys from the threshold, heaviest first, at most `most`; none if it stores no keys. With
    /// the error, keys may be missing.
    pub(crate) fn heaviest(
        &self,
        threshold: u64,
        most: usize,
    ) -> (Vec<Heavy<K>>, Option<SearchBudgetExceeded>) {
        let found = match self {
            Self::Cms(_) | Self::CmsCu(_) => Vec::new(),
            Self::CmsKeys(sketch) => sketch.heaviest(threshold, most),
            Self::Sht(sketch) => sketch.heaviest(threshold, most),
            Self::Mv(sketch) => sketch.heaviest(threshold, most),
            Self::Mg(sketch) => sketch.heaviest(threshold, most),
            Self::Ss(sketch) => sketch.heaviest(threshold, most),
            Self::Exact(sketch) => sketch.heaviest(threshold, most),
            Self::Rs(sketch) => {
                let recover = |threshold| sketch.recover(threshold, SET_STEPS);
                return search(recover, sketch.total(), threshold, most);
            }
            Self::RsModular(sketch) => {
                let own = |heavy: Heavy<[u8; 4]>| {
                    let key = K::from_bytes(&heavy.key)?;
                    Some(Heavy { key, estimate: heavy.estimate })
                };
                let recover = |threshold| sketch.recover(threshold, MODULAR_STEPS);
                let (found, missing) = search(recover, sketch.total(), threshold, most);
                return (found.into_iter().filter_map(own).collect(), missing);
            }
        };
        (found, None)
    }

    /// The weight of keys without room.
    pub(crate) fn lost(&self) -> u64 {
        match self {
            Self::Sht(table) => table.lost(),
            Self::Exact(table) => table.missed(),
            _ => 0,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        with_sketch!(self, sketch => sketch.total(), modular => modular.total())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        with_sketch!(self, sketch => sketch.memory_bytes(), modular => modular.memory_bytes())
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        with_sketch!(self, sketch => sketch.to_bytes(), modular => modular.to_bytes())
    }

    pub(crate) fn from_bytes(kind: Kind, bytes: &[u8]) -> Result<Self, ImageError> {
        Ok(match kind {
            Kind::Cms => Self::Cms(CountMin::from_bytes(bytes)?),
            Kind::CmsCu => Self::CmsCu(ConservativeCountMin::from_bytes(bytes)?),
            Kind::CmsKeys => Self::CmsKeys(CandidateCountMin::from_bytes(bytes)?),
            Kind::Sht => Self::Sht(HashTable::from_bytes(bytes)?),
            Kind::Rs => Self::Rs(Reversible::from_bytes(bytes)?),
            Kind::RsModular if K::BYTES != 4 => {
                return Err(ImageError::KeyLength { found: K::BYTES, expected: 4 });
            }
            Kind::RsModular => Self::RsModular(ReversibleModular::from_bytes(bytes)?),
            Kind::Mv => Self::Mv(MvSketch::from_bytes(bytes)?),
            Kind::Mg => Self::Mg(MisraGries::from_bytes(bytes)?),
            Kind::Ss => Self::Ss(SpaceSaving::from_bytes(bytes)?),
            Kind::Exact => Self::Exact(Exact::from_bytes(bytes)?),
        })
    }
}

/// Searches for the `most` heaviest keys from `least` on. A search by a low weight exceeds its
/// budget, so the weight is halved until there are enough.
fn search<K>(
    recover: impl Fn(u64) -> Result<Vec<Heavy<K>>, SearchBudgetExceeded>,
    total: u64,
    least: u64,
    most: usize,
) -> (Vec<Heavy<K>>, Option<SearchBudgetExceeded>) {
    let mut weight = if most == usize::MAX { least } else { (total / 2).max(least) };
    let mut found = Vec::new();
    loop {
        match recover(weight) {
            Err(error) => return (found, Some(error)),
            Ok(keys) => found = keys,
        }
        if found.len() >= most || weight <= least {
            found.truncate(most);
            return (found, None);
        }
        weight = (weight / 2).max(least);
    }
}

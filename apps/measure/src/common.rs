//! A structure that all workers update: the shared designs.

use std::sync::OnceLock;

use ringtap_sketch::{
    Collision, Key, SharedCountMin, SharedHashTable, SharedReversible, SharedSketch,
};

use crate::keys::Keys;
use crate::settings::{Kind, Settings};
use crate::size::{Size, size};
use crate::structure::Structure;

/// One for each IP version; allocated at its first packet, by any worker.
pub(crate) struct Both<V: Keys> {
    pub(crate) v4: OnceLock<Common<V::V4>>,
    pub(crate) v6: OnceLock<Common<V::V6>>,
}

impl<V: Keys> Both<V> {
    pub(crate) fn new() -> Self {
        Self { v4: OnceLock::new(), v6: OnceLock::new() }
    }
}

/// For keys of one length.
pub(crate) enum Common<K: Key> {
    Cms(SharedCountMin<K>),
    Sht(SharedHashTable<K>),
    Rs(SharedReversible<K>),
}

impl<K: Key> Common<K> {
    /// Empty. The settings have been checked.
    pub(crate) fn new(settings: &Settings) -> Self {
        let seed = settings.seed;
        match (settings.structure, size::<K>(settings)) {
            (Kind::Cms, Ok(Size::Grid(shape, _))) => Self::Cms(SharedCountMin::new(shape, seed)),
            (Kind::Rs, Ok(Size::Grid(shape, _))) => Self::Rs(SharedReversible::new(shape, seed)),
            (Kind::Sht, Ok(Size::Entries(n))) => {
                let table = SharedHashTable::new(n, Collision::KeepFirst, seed);
                Self::Sht(table.expect("the settings were checked"))
            }
            (kind, size) => unreachable!("a shared {kind} of {size:?}"),
        }
    }

    pub(crate) fn update(&self, items: &[(K, u64)]) {
        match self {
            Self::Cms(sketch) => sketch.update_burst(items),
            Self::Sht(sketch) => sketch.update_burst(items),
            Self::Rs(sketch) => sketch.update_burst(items),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Cms(sketch) => sketch.memory_bytes(),
            Self::Sht(sketch) => sketch.memory_bytes(),
            Self::Rs(sketch) => sketch.memory_bytes(),
        }
    }

    pub(crate) fn into_separate(self) -> Structure<K> {
        match self {
            Self::Cms(sketch) => Structure::Cms(sketch.into_separate()),
            Self::Sht(sketch) => Structure::Sht(sketch.into_separate()),
            Self::Rs(sketch) => Structure::Rs(sketch.into_separate()),
        }
    }
}

//! Checks settings, and computes the sizes that fit their memory.

use ringtap_sketch::{Key, Shape};

use crate::keys::{CountBy, Keys};
use crate::settings::{Kind, Settings, SettingsError, State};

/// Rows of counters: the error's probability is e⁻⁴.
const ROWS: usize = 4;
/// Rows of MV-Sketch.
const VOTES: usize = 2;
/// Five rows of 4,096 counters, and the tables that find them.
const MODULAR_BYTES: u64 = 5 * 4096 * 8 + 4 * 256 * 8;
/// Keys in a bucket of SpaceSaving.
const BUCKET: u64 = 8;
/// Most entries of a structure.
const MOST: u64 = 1 << 31;

/// The size of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Rows of counters, and the number of candidate keys.
    Grid(Shape, usize),
    Entries(usize),
}

impl Settings {
    /// Whether the settings are possible.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.state == State::Shared && !Kind::SHARED.contains(&self.structure) {
            return Err(SettingsError::NotShared(self.structure));
        }
        if self.structure == Kind::RsModular
            && matches!(self.by, CountBy::FiveTuple | CountBy::Pair)
        {
            return Err(SettingsError::OneAddress(self.by));
        }
        if let Some(share) = self.threshold.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            return Err(SettingsError::Threshold(share));
        }
        if let Some(ns) = self.interval_ns {
            if self.state == State::Shared {
                return Err(SettingsError::SharedIntervals);
            }
            if ns < Self::LEAST_INTERVAL_NS {
                return Err(SettingsError::Interval(ns));
            }
        }
        crate::with_keys!(self.by, V => {
            size::<<V as Keys>::V4>(self)?;
            size::<<V as Keys>::V6>(self)?;
        });
        Ok(())
    }
}

/// The largest size of a structure within the given memory.
pub(crate) fn size<K: Key>(settings: &Settings) -> Result<Size, SettingsError> {
    let &Settings { structure, memory_bytes: given, .. } = settings;
    // A key with its count, as tables store it.
    let slot = size_of::<(K, u64)>() as u64;
    let (rows, cell, before) = match structure {
        Kind::Cms | Kind::CmsCu => (ROWS, 8, 0),
        Kind::CmsKeys => (ROWS, 8, 0),
        Kind::Rs => (ROWS, 8 + 32 * K::BYTES as u64, 0),
        Kind::RsModular => (ROWS, 8, MODULAR_BYTES),
        Kind::Mv => (VOTES, size_of::<(K, u64, u64)>() as u64, 0),
        // A key, its count and error, a byte of its hash.
        Kind::Ss => (1, size_of::<K>() as u64 + 17, 0),
        Kind::Sht | Kind::Mg | Kind::Exact => (1, slot, 0),
    };
    let least_entries = match structure {
        // Half for the keys, four in a bucket.
        Kind::CmsKeys => 2 * (rows as u64).max(slot.div_ceil(2)),
        Kind::Mg | Kind::Exact => 16,
        Kind::Ss => BUCKET,
        _ => rows as u64,
    };
    let least = before + least_entries * cell;
    if given < least {
        return Err(SettingsError::TooLittleMemory { structure, given, least });
    }
    let entries = (given - before) / cell;
    if entries > MOST {
        return Err(SettingsError::TooMuchMemory { structure, given });
    }
    let grid = |entries: u64| {
        let width = floor_power(entries / rows as u64);
        Shape::new(rows, width).map_err(|_| SettingsError::TooMuchMemory { structure, given })
    };
    Ok(match structure {
        Kind::Cms | Kind::CmsCu | Kind::Rs | Kind::RsModular | Kind::Mv => {
            Size::Grid(grid(entries)?, 0)
        }
        Kind::CmsKeys => Size::Grid(grid(entries / 2)?, floor_power(given / 2 / slot).max(4)),
        Kind::Sht => Size::Entries(entries as usize),
        Kind::Ss => Size::Entries((entries / BUCKET * BUCKET) as usize),
        // Tables of keys are full at 3/4 of a power of two.
        Kind::Mg | Kind::Exact => Size::Entries(floor_power(entries) / 4 * 3),
    })
}

/// The largest power of two up to `n`.
fn floor_power(n: u64) -> usize {
    1 << n.max(1).ilog2()
}

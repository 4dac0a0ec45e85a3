//! Misra–Gries counters in the binary format of Apache DataSketches' frequent items, with strings as items.
//!
//! ```text
//! 0          1         2        3        4        5       6        8          12       16      24
//! │ longs: 4 │ version │ family │ lg max │ lg cur │ flags │ unused │ items: n │ unused │ total │ offset │
//! │ n counts of 8 bytes │ n strings: length in 4 bytes, UTF-8 │                  little endian throughout
//! ```
//!
//! Empty: the first 8 bytes, with 1 for the longs and 5 for the flags. Druid, Spark and the libraries for Java, C++ and
//! Rust read and merge this format. The bounds are the same: count ≤ true ≤ count + offset. They purge at 3/4 of a
//! power of two, so the number of counters is rounded up to that.

use crate::{hash::word, key::Key, misra_gries::MisraGries, table::Slot, table::Table};

const LONGS_EMPTY: u8 = 1;
const LONGS: u8 = 4;
const VERSION: u8 = 1;
const FAMILY: u8 = 10;
const FLAGS_EMPTY: u8 = 5;
const LG_MIN: u32 = 3;
const LG_MAX: u32 = 30;

/// Why bytes cannot be read as frequent items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApacheError {
    /// Another format or version.
    #[error("not frequent items of Apache DataSketches, version 1")]
    NotFrequentItems,
    /// The bytes are incomplete.
    #[error("the bytes end too early")]
    Truncated,
    /// The item at this position is not a valid key.
    #[error("item {0} is not a key of this sketch")]
    Item(usize),
    /// Invalid contents.
    #[error("invalid contents: {0}")]
    Impossible(&'static str),
}

fn capacity(lg: u32) -> usize {
    (1 << lg) / 4 * 3
}

/// The logarithm of the smallest map that holds this many items, up to the largest possible.
fn lg_for(items: usize) -> u8 {
    (LG_MIN..LG_MAX).find(|&lg| capacity(lg) >= items).unwrap_or(LG_MAX) as u8
}

/// Frequent items of counters of one or several kinds of keys without common keys: IPv4 and IPv6, for example. The
/// total is the sum of the kinds, the offset the largest.
#[derive(Clone, Debug, Default)]
pub struct FrequentItems {
    items: Vec<(u64, String)>,
    counters: usize,
    total: u64,
    offset: u64,
}

impl FrequentItems {
    /// Adds the keys of counters; `text` converts a key to a string.
    #[must_use]
    pub fn with<K: Key>(mut self, counters: &MisraGries<K>, text: impl Fn(&K) -> String) -> Self {
        let mut slots: Vec<Slot<K>> = counters.table.iter().collect();
        slots.sort_unstable_by_key(|slot| slot.key);
        self.items.extend(slots.iter().map(|slot| (slot.count, text(&slot.key))));
        self.counters += counters.counters;
        self.total = self.total.saturating_add(counters.total);
        self.offset = self.offset.max(counters.offset);
        self
    }

    /// The bytes in the format of DataSketches' frequent items of strings.
    pub fn to_apache(&self) -> Vec<u8> {
        let (lg_max, lg_cur) = (lg_for(self.counters), lg_for(self.items.len()));
        if self.total == 0 {
            return vec![LONGS_EMPTY, VERSION, FAMILY, lg_max, lg_cur, FLAGS_EMPTY, 0, 0];
        }
        let mut bytes = vec![LONGS, VERSION, FAMILY, lg_max, lg_cur, 0, 0, 0];
        bytes.extend((self.items.len() as u64).to_le_bytes());
        bytes.extend(self.total.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        for (count, _) in &self.items {
            bytes.extend(count.to_le_bytes());
        }
        for (_, text) in &self.items {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }
}

impl<K: Key> MisraGries<K> {
    /// The bytes of frequent items whose strings are the keys converted by `text`.
    pub fn to_apache(&self, text: impl Fn(&K) -> String) -> Vec<u8> {
        FrequentItems::default().with(self, text).to_apache()
    }

    /// Reads frequent items; `key` converts strings to keys. The sketch gets at most as many counters as the image has.
    pub fn from_apache(
        bytes: &[u8],
        seed: u64,
        key: impl Fn(&str) -> Option<K>,
    ) -> Result<Self, ApacheError> {
        let mut rest = bytes;
        let &[longs, version, family, lg_max, lg_cur, flags, _, _] = take(&mut rest, 8)? else {
            return Err(ApacheError::Truncated);
        };
        let empty = longs & 0x3f == LONGS_EMPTY;
        if version != VERSION || family != FAMILY || !(empty || longs & 0x3f == LONGS) {
            return Err(ApacheError::NotFrequentItems);
        }
        let (lg_max, lg_cur) = (u32::from(lg_max), u32::from(lg_cur));
        if !(LG_MIN..=LG_MAX).contains(&lg_max) || lg_cur > lg_max {
            return Err(ApacheError::Impossible("a size of the map"));
        }
        if (flags & FLAGS_EMPTY != 0) != empty {
            return Err(ApacheError::Impossible("empty, or not"));
        }
        let mut table = Table::new(seed);
        if empty {
            return Ok(Self::of(table, capacity(lg_max), 0, 0));
        }
        let items = word(take(&mut rest, 8)?, 0) as u32 as usize;
        let total = word(take(&mut rest, 8)?, 0);
        let offset = word(take(&mut rest, 8)?, 0);
        if items > capacity(lg_max) {
            return Err(ApacheError::Impossible("more items than there is room for"));
        }
        let counts = take(&mut rest, items * 8)?;
        table.reserve(items);
        let mut sum = 0u64;
        for item in 0..items {
            let count = word(counts, item * 8);
            sum = sum.saturating_add(count);
            let length = take(&mut rest, 4)?;
            let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            let text = take(&mut rest, length as usize)?;
            let key = std::str::from_utf8(text).ok().and_then(&key);
            let key = key.ok_or(ApacheError::Item(item))?;
            let hash = table.hasher.hash(&key);
            let slot = table.seek(&key, hash);
            if slot.count > 0 || count == 0 {
                return Err(ApacheError::Impossible("an item twice, or without a count"));
            }
            *slot = Slot { key, count };
            table.grown();
        }
        if sum > total || offset > total {
            return Err(ApacheError::Impossible("counts above the total"));
        }
        Ok(Self::of(table, capacity(lg_max), total, offset))
    }
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Result<&'a [u8], ApacheError> {
    let (taken, left) = rest.split_at_checked(n).ok_or(ApacheError::Truncated)?;
    *rest = left;
    Ok(taken)
}

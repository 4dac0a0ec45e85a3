//! The PIT token that leaves with our Interests and comes back with their Data.
//!
//! ```text
//!  | shard: 1 | entry: 3 | generation: 2 |
//! ```
//!
//! Six bytes: ndnd, which the specification would have carry up to 32, panics at any other length.
//!
//! Invariant: a hint where to look, never a proof. The name is compared all the same.

use crate::packets::PitToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) shard: u8,
    /// 24 bits.
    pub(crate) entry: u32,
    /// 16 bits: how often the entry's place was used before.
    pub(crate) generation: u16,
}

impl Token {
    /// Entries that tokens can tell apart.
    pub(crate) const ENTRIES_MAX: usize = 1 << 24;

    #[inline]
    pub(crate) fn write(self) -> PitToken {
        let word = u64::from(self.shard) << 40
            | u64::from(self.entry & 0xff_ffff) << 16
            | u64::from(self.generation);
        PitToken::new(&word.to_be_bytes()[2..]).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn read(token: &PitToken) -> Option<Self> {
        let &[shard, a, b, c, d, e] = token.as_bytes() else { return None };
        Some(Self {
            shard,
            entry: u32::from_be_bytes([0, a, b, c]),
            generation: u16::from_be_bytes([d, e]),
        })
    }
}

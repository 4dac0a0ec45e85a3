//! The PIT token of Interests that this forwarder sends. Their Data carry it back.
//!
//! ```text
//!  | shard: 1 | entry: 3 | generation: 2 |
//! ```
//!
//! Six bytes: ndnd panics at any other length, although the specification allows up to 32.
//!
//! Invariant: a token is only a hint. The name is always compared.

use crate::packets::PitToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) shard: u8,
    /// The entry's slot in the PIT, 24 bits.
    pub(crate) entry: u32,
    /// The lower 16 bits of the entry's creation number.
    pub(crate) generation: u16,
}

impl Token {
    /// Maximum number of entries that tokens can identify.
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

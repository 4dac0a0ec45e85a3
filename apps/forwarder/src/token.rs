//! The PIT token that leaves with our Interests and comes back with their Data.
//!
//! ```text
//!  | shard: 1 | entry: 4 | generation: 3 |
//! ```
//!
//! Invariant: a hint where to look, never a proof. The name is compared all the same.

use ringtap_ndn::PitToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) shard: u8,
    pub(crate) entry: u32,
    /// 24 bits: how often the entry's place was used before.
    pub(crate) generation: u32,
}

impl Token {
    #[inline]
    pub(crate) fn write(self) -> PitToken {
        let word = u64::from(self.shard) << 56
            | u64::from(self.entry) << 24
            | u64::from(self.generation & 0xff_ffff);
        PitToken::new(&word.to_be_bytes()).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn read(token: &PitToken) -> Option<Self> {
        let word = u64::from_be_bytes(token.as_bytes().try_into().ok()?);
        Some(Self {
            shard: (word >> 56) as u8,
            entry: (word >> 24) as u32,
            generation: word as u32 & 0xff_ffff,
        })
    }
}

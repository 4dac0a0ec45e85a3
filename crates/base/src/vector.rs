//! Sixteen bytes in a register.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128i, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_unpackhi_epi8, _mm_unpackhi_epi64,
    _mm_unpacklo_epi8,
};

/// Sixteen bytes.
#[derive(Clone, Copy)]
pub struct Bytes16(
    #[cfg(target_arch = "x86_64")] __m128i,
    #[cfg(not(target_arch = "x86_64"))] [u8; 16],
);

// SAFETY of all instructions: each processor of the architecture has them, and they touch no memory.
// JUSTIFICATION: docs/NETWORK.md, "What it costs"; with arrays the compiler may move each byte alone.
#[cfg(target_arch = "x86_64")]
impl Bytes16 {
    /// The bytes of two words, the first one's first.
    #[inline(always)]
    pub fn new([one, other]: [[u8; 8]; 2]) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm_set_epi64x(i64::from_le_bytes(other), i64::from_le_bytes(one)) })
    }

    /// The two words.
    #[inline(always)]
    pub fn halves(self) -> [[u8; 8]; 2] {
        // SAFETY: see above.
        let words = unsafe {
            [_mm_cvtsi128_si64(self.0), _mm_cvtsi128_si64(_mm_unpackhi_epi64(self.0, self.0))]
        };
        words.map(i64::to_le_bytes)
    }

    /// The first halves of both, byte by byte in turn.
    #[inline(always)]
    pub fn low(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm_unpacklo_epi8(self.0, other.0) })
    }

    /// The second halves of both, byte by byte in turn.
    #[inline(always)]
    pub fn high(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm_unpackhi_epi8(self.0, other.0) })
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Bytes16 {
    /// The bytes of two words, the first one's first.
    #[inline(always)]
    pub fn new(words: [[u8; 8]; 2]) -> Self {
        Self(std::array::from_fn(|at| words[at / 8][at % 8]))
    }

    /// The two words.
    #[inline(always)]
    pub fn halves(self) -> [[u8; 8]; 2] {
        std::array::from_fn(|word| std::array::from_fn(|at| self.0[8 * word + at]))
    }

    /// The first halves of both, byte by byte in turn.
    #[inline(always)]
    pub fn low(self, other: Self) -> Self {
        let both = [self.0, other.0];
        Self(std::array::from_fn(|at| both[at % 2][at / 2]))
    }

    /// The second halves of both, byte by byte in turn.
    #[inline(always)]
    pub fn high(self, other: Self) -> Self {
        let both = [self.0, other.0];
        Self(std::array::from_fn(|at| both[at % 2][8 + at / 2]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_taken_in_turn() {
        let words: [[u8; 8]; 4] =
            std::array::from_fn(|word| std::array::from_fn(|at| (8 * word + at) as u8));
        let (one, other) = (Bytes16::new([words[0], words[1]]), Bytes16::new([words[2], words[3]]));
        assert_eq!(one.halves(), [words[0], words[1]]);
        let in_turn = |word: usize| {
            let of = |at: usize| words[word + 2 * (at % 2)][at / 2];
            [0, 8].map(|begin| std::array::from_fn::<u8, 8, _>(|at| of(begin + at)))
        };
        assert_eq!(one.low(other).halves(), in_turn(0));
        assert_eq!(one.high(other).halves(), in_turn(1));
    }
}

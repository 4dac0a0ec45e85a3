//! The fields of a stored record.

/// Reads fields of fixed lengths; beyond the end there are zeros.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().map_or(([0; N], &[][..]), |(a, b)| (*a, b));
        self.0 = rest;
        taken
    }

    pub(crate) fn words<const N: usize>(&mut self) -> [u16; N] {
        std::array::from_fn(|_| u16::from_le_bytes(self.take()))
    }
}

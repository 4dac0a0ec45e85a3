//! The tails of rows, one after the other.

/// Most rows have none, so nothing is stored until one has.
#[derive(Default)]
pub(crate) struct Tails {
    bytes: Vec<u8>,
    /// Where the tail of each row ends; empty while all tails are.
    ends: Vec<usize>,
}

impl Tails {
    /// Bytes of all tails.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds the tail of row `at`, after those of all rows before it.
    #[inline]
    pub(crate) fn push(&mut self, at: usize, tail: &[u8]) {
        if !tail.is_empty() || !self.ends.is_empty() {
            self.ends.resize(at, self.bytes.len());
            self.bytes.extend_from_slice(tail);
            self.ends.push(self.bytes.len());
        }
    }

    /// The tail of a row.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        match self.ends.get(at) {
            Some(&end) => &self.bytes[at.checked_sub(1).map_or(0, |before| self.ends[before])..end],
            None => &[],
        }
    }
}

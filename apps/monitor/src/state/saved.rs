//! What the end of a run hands over for its state.

/// The parts of a run's state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedParts {
    /// An image of each worker and of the merger, or why there is none.
    pub(crate) images: Vec<Result<Vec<u8>, String>>,
    /// The number of parts before.
    pub(crate) part: u64,
    /// The times at the end of the part before and at the end, nanoseconds.
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    /// Conversations without room.
    pub(crate) conversations_lost: u64,
    /// Slices that count in an earlier part.
    pub(crate) early_lost: u64,
}

impl SavedParts {
    /// The number of the last part.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// When it began and ended, in packet time, nanoseconds since 1970.
    pub fn times_ns(&self) -> [u64; 2] {
        [self.from_ns, self.until_ns]
    }
}

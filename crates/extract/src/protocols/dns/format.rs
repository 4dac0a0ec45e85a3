//! What every reader of a message needs: the length of its header, and why a part cannot be read.

/// Length of the header.
pub(super) const HEADER: usize = 12;

/// Why a part of a message could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes end.
    Short,
    /// The bytes contradict the format.
    Wrong,
}

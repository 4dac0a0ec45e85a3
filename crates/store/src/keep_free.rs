//! `--keep-free`: how much of a file system stays free.

/// What stays free on the file systems of outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepFree {
    /// A share of the file system, in parts of a million.
    Share(u32),
    /// Bytes.
    Bytes(u64),
}

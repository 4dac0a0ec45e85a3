//! How much room the file system of an output has.

use std::path::Path;
use std::sync::Arc;

/// The space of the file system of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The folder of the output's files.
    pub folder: Arc<Path>,
    /// Which file system: its device number.
    pub device: u64,
    /// Free bytes, for this user.
    pub free: u64,
    /// Free bytes and those of all files.
    pub total: u64,
    /// Less is free than should be, and no old file is left that may be removed.
    pub is_low: bool,
    /// Old files are removed when less is free.
    pub removes: bool,
}

//! The format of an image. All numbers are little-endian, except those in rows.
//!
//! ```text
//! magic            12 bytes
//! version           4
//! length, CRC-32    4, 4    of the header
//! header                    any bytes; the caller's
//! tables            1       their number
//!   length, name    1, …    of each; the tables follow in this order
//! blocks:
//!   table           1       its position; never lower than that of the block before
//!   rows            2       1 to 4096
//!   length, CRC-32  4, 4    of the body
//!   body                    see block.rs; rows ascend by key and tail, over all blocks of the table
//! end:
//!   255             1
//!   rows            8       of all tables
//!   CRC-32          4       over the eight bytes before
//! ```

use std::io;

/// The first bytes of an image.
pub const MAGIC: [u8; 12] = *b"ringtapstate";

/// The version that is written. Older ones are read.
pub const VERSION: u16 = 4;

/// Most rows of a block.
pub(crate) const MOST_ROWS: usize = 4096;
/// Rows of a block that is written: few enough that the blocks of many images stay in the cache.
pub(crate) const BLOCK_ROWS: usize = 1024;
/// A block with tails of this size takes no further row.
pub(crate) const BLOCK_TAILS: usize = 1 << 20;
/// Most bytes of a tail, of a body, and of the tails in one.
pub(crate) const MOST_TAIL: usize = 16 << 20;
pub(crate) const MOST_BODY: usize = 64 << 20;
/// Most bytes of a header.
pub(crate) const MOST_HEADER: usize = 16 << 20;
/// The position that marks the end.
pub(crate) const END: u8 = u8::MAX;

/// Why an image cannot be read, written or merged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The image does not begin with [`MAGIC`].
    #[error("this is not a state")]
    NotAState,
    /// A later version.
    #[error(
        "the state has version {0}, and only versions up to {VERSION} are known: use a later ringtap"
    )]
    Version(u16),
    /// The image has a table that the reader does not know.
    #[error("the state has an unknown table {0:?}")]
    UnknownTable(String),
    /// The image ends early.
    #[error("the state is truncated")]
    Truncated,
    /// A checksum differs, or a length or a row is impossible.
    #[error("the state is damaged: {0}")]
    Damaged(&'static str),
    /// A row is longer than the format allows.
    #[error("a row is too long for a state")]
    TooLong,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Io(error),
        }
    }
}

/// An error of one of several images.
#[derive(Debug)]
pub struct ImageError {
    /// The position of the image.
    pub image: usize,
    /// The error.
    pub error: Error,
}

impl From<ImageError> for Error {
    fn from(error: ImageError) -> Self {
        error.error
    }
}

/// The CRC-32 of bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The next bytes of a body.
pub(crate) fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], Error> {
    let (taken, rest) =
        from.split_at_checked(length).ok_or(Error::Damaged("a block that is too short"))?;
    *from = rest;
    Ok(taken)
}

//! The bytes of a sketch on disk and on the wire, little endian throughout.
//!
//! ```text
//! 0      4         5      6            8      16                          n−8        n
//! │ RTSK │ version │ kind │ key length │ seed │ parameters and counts … │ checksum │
//! ```
//!
//! The checksum covers all bytes before it: 16 bytes at a time, multiplied and folded. It detects damage, not forgery.
//! So all contents are validated, and a length in an image is used only after checking that the bytes exist.

use crate::{
    hash::{fold, word},
    key::Key,
};

const MAGIC: [u8; 4] = *b"RTSK";
const VERSION: u8 = 1;
const HEAD: usize = 16;
const CHECKSUM: usize = 8;

/// The type of the sketch in an image. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageKind {
    Exact = 1,
    CountMin32 = 2,
    CountMin64 = 3,
    Conservative32 = 4,
    Conservative64 = 5,
    Candidates = 6,
    MisraGries = 7,
    MvSketch = 8,
    HashTable = 9,
    Reversible = 10,
    ReversibleModular = 11,
    SpaceSaving = 12,
}

/// Why bytes cannot be read as a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Not the format of a sketch.
    #[error("not a sketch")]
    NotASketch,
    /// Another version of the format.
    #[error("unsupported version {0}: use version 1")]
    Version(u8),
    /// Another type of sketch.
    #[error("another type of sketch ({0})")]
    Kind(u8),
    /// The length of keys differs.
    #[error("keys of {found} bytes instead of {expected}")]
    KeyLength {
        /// Length in the image, bytes.
        found: usize,
        /// Length of this key type, bytes.
        expected: usize,
    },
    /// The checksum is wrong.
    #[error("damaged: the checksum is wrong")]
    Checksum,
    /// The image is incomplete.
    #[error("the image ends too early")]
    Truncated,
    /// There are bytes behind the end.
    #[error("there are bytes behind the end of the image")]
    Trailing,
    /// Invalid contents.
    #[error("invalid contents: {0}")]
    Impossible(&'static str),
}

/// Writes an image.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new<K: Key>(kind: ImageKind, seed: u64) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, kind as u8]);
        bytes.extend((K::BYTES as u16).to_le_bytes());
        bytes.extend(seed.to_le_bytes());
        Self(bytes)
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = checksum(&self.0);
        self.u64(checksum);
        self.0
    }
}

/// Reads an image whose checksum is correct.
pub(crate) struct Reader<'a> {
    pub(crate) seed: u64,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn open<K: Key>(bytes: &'a [u8], kind: ImageKind) -> Result<Self, ImageError> {
        if bytes.get(..4) != Some(&MAGIC) {
            return Err(ImageError::NotASketch);
        }
        if bytes.len() < HEAD + CHECKSUM {
            return Err(ImageError::Truncated);
        }
        let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM);
        if body[4] != VERSION {
            return Err(ImageError::Version(body[4]));
        }
        if checksum(body) != word(sum, 0) {
            return Err(ImageError::Checksum);
        }
        if body[5] != kind as u8 {
            return Err(ImageError::Kind(body[5]));
        }
        let found = usize::from(u16::from_le_bytes([body[6], body[7]]));
        if found != K::BYTES {
            return Err(ImageError::KeyLength { found, expected: K::BYTES });
        }
        Ok(Self { seed: word(body, 8), rest: &body[HEAD..] })
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], ImageError> {
        let (bytes, rest) = self.rest.split_at_checked(n).ok_or(ImageError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// `n` pieces of `bytes` bytes each.
    pub(crate) fn pieces(
        &mut self,
        n: usize,
        bytes: usize,
    ) -> Result<std::slice::ChunksExact<'a, u8>, ImageError> {
        let whole = n.checked_mul(bytes).ok_or(ImageError::Truncated)?;
        Ok(self.bytes(whole)?.chunks_exact(bytes))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ImageError> {
        Ok(self.bytes(1)?[0])
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ImageError> {
        Ok(word(self.bytes(8)?, 0))
    }

    /// A number of elements that use at least a byte of the image each, or that the caller limits.
    pub(crate) fn count(&mut self) -> Result<usize, ImageError> {
        usize::try_from(self.u64()?).map_err(|_| ImageError::Impossible("a size"))
    }

    pub(crate) fn finish(self) -> Result<(), ImageError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ImageError::Trailing) }
    }
}

/// The key at the start of a piece.
pub(crate) fn key<K: Key>(piece: &[u8]) -> Result<K, ImageError> {
    K::from_bytes(&piece[..K::BYTES]).ok_or(ImageError::Impossible("a key"))
}

fn checksum(bytes: &[u8]) -> u64 {
    const K: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
    let (blocks, rest) = bytes.as_chunks::<16>();
    let mut last = [0; 16];
    last[..rest.len()].copy_from_slice(rest);
    let step = |sum: u64, block: &[u8; 16]| {
        // Rotated, so that equal blocks do not cancel each other.
        fold(word(block, 0) ^ K[0] ^ sum.rotate_left(23), word(block, 8) ^ K[1]) ^ sum
    };
    let sum = blocks.iter().fold(bytes.len() as u64, step);
    step(sum, &last)
}

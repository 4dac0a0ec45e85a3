//! Searches a file from its end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes read at once.
pub(crate) const PIECE: u64 = 1 << 16;

/// The position of the last `pattern` in the first `len` bytes for which `is_end` returns true.
pub(crate) fn rfind(
    file: &mut File,
    len: u64,
    pattern: &[u8],
    mut is_end: impl FnMut(&mut File, u64) -> io::Result<bool>,
) -> io::Result<Option<u64>> {
    let overlap = pattern.len() as u64 - 1;
    let mut piece = Vec::new();
    let mut end = len;
    while end > 0 {
        let from = end.saturating_sub(PIECE);
        piece.clear();
        file.seek(SeekFrom::Start(from))?;
        // The pattern may continue behind the piece.
        file.by_ref().take((end + overlap).min(len) - from).read_to_end(&mut piece)?;
        for at in (0..piece.len()).rev() {
            if piece[at..].starts_with(pattern) && is_end(file, from + at as u64)? {
                return Ok(Some(from + at as u64));
            }
        }
        end = from;
    }
    Ok(None)
}

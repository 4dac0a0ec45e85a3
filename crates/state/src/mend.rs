//! Makes the checksums of an image right, so that fuzzers reach what is behind them.

use crate::format::{END, MAGIC, VERSION, checksum};

/// The bytes with right checksums, as far as they have the form of an image; `None` if they are too short.
pub fn mend(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = bytes.to_vec();
    out.get_mut(..12)?.copy_from_slice(&MAGIC);
    out.get_mut(12..14)?.copy_from_slice(&VERSION.to_le_bytes());
    let mut at = checked(&mut out, 14)?;
    let tables = *out.get(at)?;
    at += 1;
    for _ in 0..tables {
        at += 1 + usize::from(*out.get(at)?);
    }
    let mut rows = 0_u64;
    while let Some(&table) = out.get(at) {
        if table == END {
            let count = rows.to_le_bytes();
            out.get_mut(at + 1..at + 9)?.copy_from_slice(&count);
            out.get_mut(at + 9..at + 13)?.copy_from_slice(&checksum(&count).to_le_bytes());
            break;
        }
        let number = out.get(at + 1..at + 3)?;
        rows += u64::from(u16::from_le_bytes([number[0], number[1]]));
        at = checked(&mut out, at + 3)?;
    }
    Some(out)
}

/// Mends the checksum of the bytes whose length is at this position. Returns where they end.
fn checked(out: &mut [u8], at: usize) -> Option<usize> {
    let length = u32::from_le_bytes(out.get(at..at + 4)?.try_into().ok()?) as usize;
    let end = (at + 8).checked_add(length)?;
    let sum = checksum(out.get(at + 8..end)?);
    out[at + 4..at + 8].copy_from_slice(&sum.to_le_bytes());
    Some(end)
}

//! A byte column of a block's rows, in the shortest of four forms.
//!
//! ```text
//! 0, byte                     all rows have this byte
//! 1, bytes                    a byte for each row
//! 2, runs (2), (byte, length (2)) …
//!                             bytes with the number of rows in a row that have them
//! 3, number, bytes, codes     the different bytes, up to 16, and the position of each row's among them:
//!                             1, 2 or 4 bits each, the first row in the lowest ones
//! ```
//!
//! Rows are sorted, so the first columns of keys have runs; those of counters have few different bytes, and the lowest
//! bytes of addresses and times hardly compress at all. These forms cost a few instructions a byte.

use crate::format::{Error, take};
use crate::transpose::{BYTES, Word};

const CONSTANT: u8 = 0;
const RAW: u8 = 1;
const RUNS: u8 = 2;
const CODES: u8 = 3;

/// Most different bytes of [`CODES`].
const MOST_CODES: usize = 16;

/// Bits of a code for this number of different bytes.
fn bits(different: usize) -> usize {
    match different {
        0..=2 => 1,
        3..=4 => 2,
        _ => 4,
    }
}

/// The number of runs of equal bytes.
fn count_runs(column: &[u8]) -> usize {
    /// The sum over this many rows is a byte, so the compiler adds many at a time.
    const ROWS: usize = 128;
    let changes = |before: &[u8], after: &[u8]| {
        let pairs = before.iter().zip(after);
        usize::from(pairs.fold(0_u8, |sum, (one, other)| sum + u8::from(one != other)))
    };
    let (before, last) = column[..column.len() - 1].as_chunks::<ROWS>();
    let (after, behind) = column[1..].as_chunks::<ROWS>();
    let whole = before.iter().zip(after).map(|(before, after)| changes(before, after));
    1 + whole.sum::<usize>() + changes(last, behind)
}

/// Appends a column in which all rows have this byte.
#[inline]
pub(crate) fn encode_constant(byte: u8, into: &mut Vec<u8>) {
    into.extend_from_slice(&[CONSTANT, byte]);
}

/// Appends a column of 2 to 65,535 bytes that are not all equal.
pub(crate) fn encode(column: &[u8], into: &mut Vec<u8>) {
    let runs = count_runs(column);
    let length_of_runs = 2 + 3 * runs;
    // The codes of a column take at least a bit a row.
    let shortest = column.len().div_ceil(8);
    let different = if length_of_runs > shortest { different(column) } else { None };
    let length_of_codes = different.as_ref().map_or(usize::MAX, |bytes| {
        1 + bytes.len() + (column.len() * bits(bytes.len())).div_ceil(8)
    });
    if column.len() <= length_of_runs.min(length_of_codes) {
        into.push(RAW);
        into.extend_from_slice(column);
    } else if length_of_runs <= length_of_codes {
        into.push(RUNS);
        into.extend_from_slice(&(runs as u16).to_le_bytes());
        for run in column.chunk_by(|one, other| one == other) {
            into.push(run[0]);
            into.extend_from_slice(&(run.len() as u16).to_le_bytes());
        }
    } else if let Some(different) = different {
        into.extend_from_slice(&[CODES, different.len() as u8]);
        into.extend_from_slice(&different);
        let mut codes = [0; 256];
        (0..).zip(&different).for_each(|(code, &byte)| codes[usize::from(byte)] = code);
        match bits(different.len()) {
            1 => pack::<8>(column, &codes, into),
            2 => pack::<4>(column, &codes, into),
            _ => pack::<2>(column, &codes, into),
        }
    }
}

/// The different bytes of a column, in order; `None` if they are more than [`MOST_CODES`].
fn different(column: &[u8]) -> Option<Vec<u8>> {
    let mut seen = [0_u8; 256];
    let mut rest = column;
    let mut next = 64;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(next));
        piece.iter().for_each(|&byte| seen[usize::from(byte)] = 1);
        if seen.iter().map(|&seen| u16::from(seen)).sum::<u16>() > MOST_CODES as u16 {
            return None;
        }
        (rest, next) = (behind, 4 * next);
    }
    let mut different = Vec::with_capacity(MOST_CODES);
    for (first, seen) in (0..=u8::MAX).step_by(8).zip(seen.as_chunks::<8>().0) {
        if u64::from_ne_bytes(*seen) > 0 {
            let seen = (first..=first + 7).zip(seen).filter(|(_, seen)| **seen > 0);
            different.extend(seen.map(|(byte, _)| byte));
        }
    }
    Some(different)
}

/// Appends the codes of bytes, this number in a byte.
fn pack<const IN_BYTE: usize>(column: &[u8], of: &[u8; 256], into: &mut Vec<u8>) {
    let one = |bytes: &[u8]| {
        let codes = bytes.iter().zip((0..8).step_by(8 / IN_BYTE));
        codes.fold(0, |all, (&byte, at)| all | of[usize::from(byte)] << at)
    };
    let (whole, rest) = column.as_chunks::<IN_BYTE>();
    into.extend(whole.iter().map(|bytes| one(bytes)));
    if !rest.is_empty() {
        into.push(one(rest));
    }
}

/// Reads codes, this number in a byte, and their bytes; returns the highest code, or a higher number if bits behind the last one
/// are not zero.
fn unpack<const IN_BYTE: usize>(codes: &[u8], bytes: &[u8; MOST_CODES], column: &mut [u8]) -> u8 {
    let bits = 8 / IN_BYTE;
    let of = |several: u8, at: usize| several >> (at * bits) & (u8::MAX >> (8 - bits));
    let mut most = 0;
    let mut read = |column: &mut [u8], several: u8| {
        for (at, byte) in column.iter_mut().enumerate() {
            let code = of(several, at);
            *byte = bytes[usize::from(code) % MOST_CODES];
            most = most.max(code);
        }
    };
    let (whole, rest) = column.as_chunks_mut::<IN_BYTE>();
    whole.iter_mut().zip(codes).for_each(|(column, &several)| read(column, several));
    if let (false, Some(&several)) = (rest.is_empty(), codes.last()) {
        read(rest, several);
        // Bits behind the last code are zero.
        if several >> (rest.len() * bits) != 0 {
            most = u8::MAX;
        }
    }
    most
}

/// The bytes of the next columns, at most [`BYTES`], if each is the same in all rows; else the body is left as it is.
#[inline]
pub(crate) fn take_constants(body: &mut &[u8], columns: usize) -> Option<Word> {
    let (constants, rest) = body.split_at_checked(2 * columns)?;
    let mut word = [0; BYTES];
    for ([form, byte], to) in constants.as_chunks().0.iter().zip(&mut word) {
        if *form != CONSTANT {
            return None;
        }
        *to = *byte;
    }
    *body = rest;
    Some(word)
}

/// Reads a column.
pub(crate) fn decode(body: &mut &[u8], column: &mut [u8]) -> Result<(), Error> {
    const RUNS_DIFFER: Error = Error::Damaged("the runs of a column");
    const CODES_DIFFER: Error = Error::Damaged("the codes of a column");
    match take(body, 1)?[0] {
        CONSTANT => column.fill(take(body, 1)?[0]),
        RAW => column.copy_from_slice(take(body, column.len())?),
        RUNS => {
            let number = take(body, 2)?;
            let runs = take(body, 3 * usize::from(u16::from_le_bytes([number[0], number[1]])))?;
            let mut rest = column;
            for run in runs.as_chunks::<3>().0 {
                let length = usize::from(u16::from_le_bytes([run[1], run[2]]));
                // Most runs are short: bytes behind the run are written again.
                match rest.first_chunk_mut::<16>() {
                    Some(several) if length <= several.len() => *several = [run[0]; 16],
                    _ => rest.get_mut(..length).ok_or(RUNS_DIFFER)?.fill(run[0]),
                }
                rest = &mut rest[length..];
            }
            if !rest.is_empty() {
                return Err(RUNS_DIFFER);
            }
        }
        CODES => {
            let different = usize::from(take(body, 1)?[0]);
            if different > MOST_CODES {
                return Err(CODES_DIFFER);
            }
            let mut bytes = [0; MOST_CODES];
            bytes[..different].copy_from_slice(take(body, different)?);
            let bits = bits(different);
            let codes = take(body, (column.len() * bits).div_ceil(8))?;
            let most = match bits {
                1 => unpack::<8>(codes, &bytes, column),
                2 => unpack::<4>(codes, &bytes, column),
                _ => unpack::<2>(codes, &bytes, column),
            };
            if usize::from(most) >= different {
                return Err(CODES_DIFFER);
            }
        }
        _ => return Err(Error::Damaged("a column of an unknown kind")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of a column, which is read again.
    fn form(column: &[u8]) -> u8 {
        let mut body = Vec::new();
        match column.iter().all(|&byte| byte == column[0]) {
            true => encode_constant(column[0], &mut body),
            false => encode(column, &mut body),
        }
        assert!(body.len() <= column.len() + 1, "{} > {}", body.len(), column.len());
        let mut read = vec![1; column.len()];
        let mut rest = &body[..];
        decode(&mut rest, &mut read).unwrap();
        assert_eq!((&read[..], rest), (column, &[][..]));
        assert!(decode(&mut &body[..body.len() - 1], &mut read).is_err());
        body[0]
    }

    #[test]
    fn columns_take_the_shortest_form() {
        let of = |length: u32, byte: fn(u32) -> u32| -> Vec<u8> {
            (0..length).map(|row| byte(row) as u8).collect()
        };
        assert_eq!(form(&of(4096, |_| 255)), CONSTANT);
        assert_eq!(form(&[1, 2]), RAW);
        assert_eq!(form(&of(4096, |row| row * 37)), RAW);
        assert_eq!(form(&of(4096, |row| row / 50)), RUNS);
        for different in [2, 3, 4, 5, 16] {
            let column: Vec<u8> = (0..4095).map(|row| (row % different * 3) as u8).collect();
            assert_eq!(form(&column), CODES, "{different}");
        }
        assert_eq!(form(&of(4096, |row| row % 17)), RAW);
    }

    #[test]
    fn damaged_columns_are_errors() {
        for body in [
            &[9, 0][..],
            &[RUNS, 1, 0, 5, 4, 0],
            &[RUNS, 1, 0, 5, 2, 0],
            &[CODES, 17, 0, 0],
            &[CODES, 3, 1, 2, 3, 0b11_00_00],
            &[CODES, 0, 0],
            &[CODES, 2, 1, 2, 0b1000],
            &[CONSTANT],
        ] {
            assert!(decode(&mut &body[..], &mut [0; 3]).is_err(), "{body:?}");
        }
    }
}

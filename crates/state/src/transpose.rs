//! Rows of bytes into columns and back. A row has words of 8 bytes, which make up the columns in groups of 8; a column has
//! a piece of 16 bytes for every 16 rows.

use ringtap_base::Bytes16;

/// 8 bytes of a row.
pub(crate) type Word = [u8; BYTES];

/// 16 bytes of a column.
pub(crate) type Piece = [u8; SIDE];

/// Bytes of a word.
pub(crate) const BYTES: usize = 8;

/// Rows of a piece.
pub(crate) const SIDE: usize = 16;

/// Words of a fixed part of this width.
pub(crate) fn words(width: usize) -> usize {
    width.div_ceil(BYTES)
}

/// Squares of rows that are done together, so that they stay in the cache: their part of a column is a cache line.
const TILE: usize = 4;

/// A word of 16 rows, two rows in a piece; or 8 columns of them.
type Square = [Bytes16; BYTES];

/// Rotates the seven bits of each byte's place, three of its piece and four within it: the highest one becomes the lowest.
#[inline(always)]
fn pass(from: Square) -> Square {
    let half = BYTES / 2;
    std::array::from_fn(|at| {
        let (one, other) = (from[at / 2], from[at / 2 + half]);
        if at % 2 == 0 { one.low(other) } else { one.high(other) }
    })
}

/// For each of the `width` words of rows, the bits that differ between rows.
pub(crate) fn differences(rows: &[Word], width: usize) -> Vec<u64> {
    /// Words that are compared at a time: of a row they are often one cache line.
    const WORDS: usize = 8;
    let word = |at: usize| rows.get(at).map_or(0, |word| u64::from_ne_bytes(*word));
    let several = |begin: usize| {
        let first: [u64; WORDS] = std::array::from_fn(|at| word(begin + at));
        let mut differences = [0; WORDS];
        let mut add = |row: &[Word]| {
            for ((differences, word), first) in differences.iter_mut().zip(row).zip(first) {
                *differences |= u64::from_ne_bytes(*word) ^ first;
            }
        };
        // The last of the words may be of the next row.
        let mut rest = &rows[begin..];
        while let Some(row) = rest.first_chunk::<WORDS>() {
            add(row);
            rest = rest.get(width..).unwrap_or_default();
        }
        rest.chunks(width).for_each(add);
        differences
    };
    let mut differences: Vec<_> = (0..width).step_by(WORDS).flat_map(several).collect();
    differences.truncate(width);
    differences
}

/// Calls `each` with the number of a group of columns, and of a square of rows.
#[inline]
fn tiles(groups: usize, squares: usize, mut each: impl FnMut(usize, usize)) {
    for first in (0..squares).step_by(TILE) {
        for group in 0..groups {
            (first..squares.min(first + TILE)).for_each(|square| each(group, square));
        }
    }
}

/// Copies some of the `width` words of rows into columns, one after the other. The number of rows is a multiple of [`SIDE`].
pub(crate) fn into_columns(rows: &[Word], width: usize, some: &[usize], columns: &mut [Piece]) {
    let squares = rows.len() / width / SIDE;
    tiles(some.len(), squares, |group, square| {
        let rows = &rows[square * SIDE * width..(square + 1) * SIDE * width];
        let word = |row: usize| rows[row * width + some[group]];
        let pairs = std::array::from_fn(|at| Bytes16::new([word(2 * at), word(2 * at + 1)]));
        // The four bits of the row go behind the three of the column.
        for (column, piece) in pass(pass(pass(pass(pairs)))).into_iter().enumerate() {
            let to = &mut columns[(group * BYTES + column) * squares + square];
            to.as_chunks_mut().0.copy_from_slice(&piece.halves());
        }
    });
}

/// Copies columns back to these words of rows.
pub(crate) fn into_rows(columns: &[Piece], rows: &mut [Word], width: usize, some: &[usize]) {
    let squares = rows.len() / width / SIDE;
    tiles(some.len(), squares, |group, square| {
        let pieces = std::array::from_fn(|column| {
            let piece = &columns[(group * BYTES + column) * squares + square];
            let [one, other] = [0, BYTES].map(|at| std::array::from_fn(|byte| piece[at + byte]));
            Bytes16::new([one, other])
        });
        let rows = &mut rows[square * SIDE * width..(square + 1) * SIDE * width];
        // The three bits of the column go behind the four of the row.
        for (at, pair) in pass(pass(pass(pieces))).into_iter().enumerate() {
            for (row, word) in (2 * at..).zip(pair.halves()) {
                rows[row * width + some[group]] = word;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_rows() {
        for (width, squares) in [(1, 1), (3, 5), (9, 9), (2, 4)] {
            let byte = |row: usize, column: usize| (row * 31 + column * 7) as u8;
            let word = |at: usize| {
                std::array::from_fn(|column| byte(at / width, at % width * BYTES + column))
            };
            let rows: Vec<Word> = (0..width * squares * SIDE).map(word).collect();
            let all: Vec<usize> = (0..width).collect();
            let mut columns = vec![[0; SIDE]; width * BYTES * squares];
            into_columns(&rows, width, &all, &mut columns);
            for (column, bytes) in columns.as_flattened().chunks(squares * SIDE).enumerate() {
                assert!((0..squares * SIDE).all(|row| bytes[row] == byte(row, column)));
            }
            let mut again = vec![[0; BYTES]; rows.len()];
            into_rows(&columns, &mut again, width, &all);
            assert_eq!(again, rows);
            // Some of the words, and the others stay.
            let some: Vec<usize> = (0..width).step_by(2).collect();
            into_columns(&rows, width, &some, &mut columns);
            again.fill([7; BYTES]);
            into_rows(&columns, &mut again, width, &some);
            for (at, (word, own)) in again.iter().zip(&rows).enumerate() {
                let expected = if at % width % 2 == 0 { own } else { &[7; BYTES] };
                assert_eq!(word, expected);
            }
            let differ = differences(&rows, width);
            let expected = (0..width).map(|word| {
                let of = |row: &[Word]| u64::from_ne_bytes(row[word]);
                rows.chunks(width).fold(0, |all, row| all | of(row) ^ of(&rows))
            });
            assert!(differ.into_iter().eq(expected));
        }
    }
}

//! Rows of bytes into columns and back. Both are words of 16 bytes: a row has several, which make up the columns in groups
//! of 16, and a column has one for every 16 rows.

/// 16 bytes of a row or of a column.
pub(crate) type Word = [u8; SIDE];

/// Bytes of a word.
pub(crate) const SIDE: usize = 16;

/// Words of a fixed part of this width.
pub(crate) fn words(width: usize) -> usize {
    width.div_ceil(SIDE)
}

/// Squares of rows that are done together, so that they stay in the cache: their part of a column is a cache line.
const TILE: usize = 4;

/// 16 words: rows, or columns.
type Square = [Word; SIDE];

/// The first halves of two words, byte by byte in turn. The compiler makes an instruction of this form.
#[inline(always)]
#[rustfmt::skip]
fn low(a: Word, b: Word) -> Word {
    [a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3], a[4], b[4], a[5], b[5], a[6], b[6], a[7], b[7]]
}

/// The second halves.
#[inline(always)]
#[rustfmt::skip]
fn high(a: Word, b: Word) -> Word {
    [a[8], b[8], a[9], b[9], a[10], b[10], a[11], b[11], a[12], b[12], a[13], b[13], a[14], b[14], a[15], b[15]]
}

/// Moves the highest bit of each byte's row number to its column number, as the lowest one.
#[inline(always)]
fn pass(from: &Square, to: &mut Square) {
    for at in 0..SIDE / 2 {
        to[2 * at] = low(from[at], from[at + SIDE / 2]);
        to[2 * at + 1] = high(from[at], from[at + SIDE / 2]);
    }
}

/// Exchanges rows and columns. It is a function of its own because the compiler loses the vector instructions elsewhere.
#[inline(never)]
fn transpose(square: &mut Square) {
    let mut other = [[0; SIDE]; SIDE];
    pass(square, &mut other);
    pass(&other, square);
    pass(square, &mut other);
    pass(&other, square);
}

/// The bits of a row's words that are not the same in all rows, which have `width` words.
pub(crate) fn differences(rows: &[Word], width: usize) -> Vec<Word> {
    /// Words that are compared at a time: of a row they are often one cache line.
    const WORDS: usize = 4;
    let word = |at: usize| rows.get(at).map_or(0, |word| u128::from_ne_bytes(*word));
    let several = |begin: usize| {
        let first: [u128; WORDS] = std::array::from_fn(|at| word(begin + at));
        let mut differences = [0; WORDS];
        for row in rows[begin..].chunks(width) {
            // The last of the words may be of the next row.
            for ((differences, word), first) in differences.iter_mut().zip(row).zip(first) {
                *differences |= u128::from_ne_bytes(*word) ^ first;
            }
        }
        differences
    };
    let mut differences: Vec<_> =
        (0..width).step_by(WORDS).flat_map(several).map(u128::to_ne_bytes).collect();
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
pub(crate) fn into_columns(rows: &[Word], width: usize, some: &[usize], columns: &mut [Word]) {
    let squares = rows.len() / width / SIDE;
    let mut words = [[0; SIDE]; SIDE];
    tiles(some.len(), squares, |group, square| {
        for (row, word) in words.iter_mut().enumerate() {
            *word = rows[(square * SIDE + row) * width + some[group]];
        }
        transpose(&mut words);
        for (column, word) in words.iter().enumerate() {
            columns[(group * SIDE + column) * squares + square] = *word;
        }
    });
}

/// Copies columns back to these words of rows.
pub(crate) fn into_rows(columns: &[Word], rows: &mut [Word], width: usize, some: &[usize]) {
    let squares = rows.len() / width / SIDE;
    let mut words = [[0; SIDE]; SIDE];
    tiles(some.len(), squares, |group, square| {
        for (column, word) in words.iter_mut().enumerate() {
            *word = columns[(group * SIDE + column) * squares + square];
        }
        transpose(&mut words);
        for (row, word) in words.iter().enumerate() {
            rows[(square * SIDE + row) * width + some[group]] = *word;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_rows() {
        for (width, squares) in [(1, 1), (3, 5), (2, 9), (2, 4)] {
            let byte = |row: usize, column: usize| (row * 31 + column * 7) as u8;
            let word = |at: usize| {
                std::array::from_fn(|column| byte(at / width, at % width * SIDE + column))
            };
            let rows: Vec<Word> = (0..width * squares * SIDE).map(word).collect();
            let all: Vec<usize> = (0..width).collect();
            let mut columns = vec![[0; SIDE]; rows.len()];
            into_columns(&rows, width, &all, &mut columns);
            for (column, bytes) in columns.as_flattened().chunks(squares * SIDE).enumerate() {
                assert!((0..squares * SIDE).all(|row| bytes[row] == byte(row, column)));
            }
            let mut again = vec![[0; SIDE]; rows.len()];
            into_rows(&columns, &mut again, width, &all);
            assert_eq!(again, rows);
        }
    }
}

//! Rows in memory, before they are sorted and written.

use std::cmp::Ordering;
use std::io::Write;

use crate::format::Error;
use crate::row::{Row, combine};
use crate::tails::Tails;
use crate::transpose::{BYTES, words};
use crate::{Schema, Writer};

/// The rows of a table, in any order.
pub struct Rows {
    schema: &'static Schema,
    /// Fixed parts, each filled up to a whole word.
    fixed: Vec<u8>,
    tails: Tails,
}

impl Rows {
    /// No row.
    pub fn new(schema: &'static Schema) -> Self {
        Self { schema, fixed: Vec::new(), tails: Tails::default() }
    }

    /// Whether they are of this table.
    pub fn is_of(&self, schema: &Schema) -> bool {
        self.schema == schema
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.fixed.len() / self.bytes()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.fixed.is_empty()
    }

    /// Adds a row: the parts of its key, its numbers and its tail.
    ///
    /// # Panics
    /// If the key or the numbers are not those of the table's rows.
    pub fn push(&mut self, key: &[&[u8]], numbers: &[u64], tail: &[u8]) {
        let start = self.fixed.len();
        key.iter().for_each(|part| self.fixed.extend_from_slice(part));
        assert_eq!(self.fixed.len() - start, self.schema.key, "key of {}", self.schema.name);
        assert_eq!(numbers.len(), self.schema.numbers.len(), "numbers of {}", self.schema.name);
        numbers.iter().for_each(|number| self.fixed.extend_from_slice(&number.to_be_bytes()));
        self.fixed.resize(start + self.bytes(), 0);
        self.tails.push(start / self.bytes(), tail);
    }

    /// Bytes of a fixed part.
    fn bytes(&self) -> usize {
        words(self.schema.width()) * BYTES
    }

    fn row(&self, at: usize) -> Row<'_> {
        let bytes = self.bytes();
        Row {
            fixed: self.fixed[at * bytes..(at + 1) * bytes].as_chunks().0,
            key: self.schema.key,
            tail: self.tails.get(at),
        }
    }

    /// The positions of the rows in order.
    fn order(&self) -> Vec<u32> {
        // Most comparisons are of the first bytes that are not the same in all rows.
        let mut rows = self.fixed.chunks_exact(self.bytes()).map(|row| &row[..self.schema.key]);
        let first = rows.next().unwrap_or_default();
        let mut differ = vec![0; first.len()];
        for row in rows {
            differ.iter_mut().zip(row).zip(first).for_each(|((differ, a), b)| *differ |= a ^ b);
        }
        let columns = (0..differ.len()).filter(|&column| differ[column] != 0);
        let columns: Vec<usize> = columns.take(size_of::<u128>()).collect();
        let prefix = |at: u32| {
            let row = self.row(at as usize).key();
            columns.iter().fold(0, |all, &column| all << 8 | u128::from(row[column]))
        };
        let mut order: Vec<(u128, u32)> =
            (0..self.len() as u32).map(|at| (prefix(at), at)).collect();
        order.sort_unstable_by(|(one, a), (other, b)| {
            one.cmp(other).then_with(|| self.row(*a as usize).order(&self.row(*b as usize)))
        });
        order.into_iter().map(|(_, at)| at).collect()
    }

    /// Writes the rows in order; those with equal keys are combined.
    ///
    /// # Errors
    /// If writing fails or a tail is too long.
    pub fn write<W: Write>(&self, to: &mut Writer<W>) -> Result<(), Error> {
        let mut sum = Vec::new();
        let mut order = self.order().into_iter().peekable();
        while let Some(first) = order.next() {
            let row = self.row(first as usize);
            sum.clear();
            sum.extend_from_slice(row.fixed);
            while !self.schema.many
                && let Some(same) =
                    order.next_if(|&next| self.row(next as usize).order(&row) == Ordering::Equal)
            {
                let more = self.row(same as usize).fixed;
                combine(self.schema, &mut sum, more);
            }
            to.push(&Row { fixed: &sum, ..row })?;
        }
        Ok(())
    }
}

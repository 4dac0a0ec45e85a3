//! Images of sorted tables: compact, checked, and merged without being loaded.
//!
//! A table is a set of rows: a key, numbers, and a tail of any length. Two rows with equal keys are one row whose
//! numbers are combined, each by its own [`Op`]; all of these are commutative and associative, so images may be merged
//! in any order and nesting, and an image without rows changes nothing.
//!
//! ```text
//! Rows ──sort──▶ Writer ──▶ image ──▶ Reader ─┐
//!                             image ──▶ Reader ┼─▶ merge ──▶ rows in order ──▶ Writer, or a report
//!                             image ──▶ Reader ─┘
//! ```
//!
//! A reader holds one block of rows, so the memory of a merge depends on the number of images and not on their size.
//! The format is described in `format.rs`. Images are untrusted: whatever their bytes are, reading them ends in rows in
//! order or in an [`Error`], in memory that the format bounds.
//!
//! Invariant: no packets, threads or clocks.
#![forbid(unsafe_code)]

mod block;
mod column;
mod format;
#[cfg(any(test, feature = "fuzz"))]
mod mend;
mod merge;
mod prefix;
mod reader;
mod row;
mod rows;
mod tails;
mod transpose;
mod writer;

pub use format::{Error, ImageError, MAGIC, VERSION};
#[cfg(any(test, feature = "fuzz"))]
pub use mend::mend;
pub use merge::merge;
pub use reader::Reader;
pub use row::Row;
pub use rows::Rows;
pub use writer::Writer;

/// How the numbers of rows with equal keys are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The sum, modulo 2⁶⁴.
    Add,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// All bits.
    Or,
}

impl Op {
    /// Combines two numbers.
    pub const fn of(self, own: u64, more: u64) -> u64 {
        match self {
            Self::Add => own.wrapping_add(more),
            Self::Min => {
                if own < more {
                    own
                } else {
                    more
                }
            }
            Self::Max => {
                if own > more {
                    own
                } else {
                    more
                }
            }
            Self::Or => own | more,
        }
    }
}

/// The form of a table's rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Schema {
    /// Its name in images.
    pub name: &'static str,
    /// Bytes of the key, without the tail.
    pub key: usize,
    /// The numbers of a row.
    pub numbers: &'static [Op],
    /// Whether the table is a multiset: equal rows stay apart.
    pub many: bool,
}

impl Schema {
    /// A table of rows with different keys.
    pub const fn new(name: &'static str, key: usize, numbers: &'static [Op]) -> Self {
        assert!(key + numbers.len() > 0, "a row has at least a byte");
        Self { name, key, numbers, many: false }
    }

    /// A multiset of keys.
    pub const fn many(name: &'static str, key: usize) -> Self {
        Self { name, key, numbers: &[], many: true }
    }

    /// Bytes of a row without its tail.
    pub const fn width(&self) -> usize {
        self.key + 8 * self.numbers.len()
    }
}

#[cfg(test)]
mod tests;

//! Writes an image.

use std::io::Write;

use crate::block::Block;
use crate::format::{
    BLOCK_ROWS, BLOCK_TAILS, END, Error, MAGIC, MOST_HEADER, MOST_TAIL, VERSION, checksum,
};
use crate::{Row, Schema};

/// Writes the tables of an image one after the other, each with its rows in order.
pub struct Writer<W> {
    out: W,
    tables: Vec<&'static Schema>,
    table: usize,
    block: Block,
    body: Vec<u8>,
    rows: u64,
}

impl<W: Write> Writer<W> {
    /// Begins an image with the caller's header and these tables.
    ///
    /// # Errors
    /// If writing fails, or the header is too long.
    pub fn new(
        mut out: W,
        header: &[u8],
        tables: impl IntoIterator<Item = &'static Schema>,
    ) -> Result<Self, Error> {
        let tables: Vec<_> = tables.into_iter().collect();
        if header.len() > MOST_HEADER || tables.len() >= usize::from(END) {
            return Err(Error::TooLong);
        }
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&(header.len() as u32).to_le_bytes())?;
        out.write_all(&checksum(header).to_le_bytes())?;
        out.write_all(header)?;
        out.write_all(&[tables.len() as u8])?;
        for table in &tables {
            out.write_all(&[table.name.len() as u8])?;
            out.write_all(table.name.as_bytes())?;
        }
        Ok(Self { out, tables, table: 0, block: Block::default(), body: Vec::new(), rows: 0 })
    }

    /// Adds a row to the current table. Rows come in ascending order of key and tail.
    ///
    /// # Errors
    /// If writing fails, or the tail is too long.
    pub fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        if row.tail.len() > MOST_TAIL {
            return Err(Error::TooLong);
        }
        self.block.push(row);
        if self.block.len() == BLOCK_ROWS || self.block.tails() >= BLOCK_TAILS {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the current table; rows belong to the next one.
    ///
    /// # Errors
    /// If writing fails.
    pub fn end_table(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.table += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = self.block.len();
        if rows == 0 {
            return Ok(());
        }
        self.body.clear();
        self.block.encode(self.tables[self.table].width(), &mut self.body)?;
        self.out.write_all(&[self.table as u8])?;
        self.out.write_all(&(rows as u16).to_le_bytes())?;
        self.out.write_all(&(self.body.len() as u32).to_le_bytes())?;
        self.out.write_all(&checksum(&self.body).to_le_bytes())?;
        self.out.write_all(&self.body)?;
        self.rows += rows as u64;
        self.block.clear();
        Ok(())
    }

    /// Ends the image.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush()?;
        let rows = self.rows.to_le_bytes();
        self.out.write_all(&[END])?;
        self.out.write_all(&rows)?;
        self.out.write_all(&checksum(&rows).to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

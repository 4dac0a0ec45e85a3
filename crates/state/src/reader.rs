//! Reads an image, one block at a time.

use std::cmp::Ordering;
use std::io::Read;

use crate::block::Block;
use crate::format::{END, Error, MAGIC, MOST_BODY, MOST_HEADER, MOST_ROWS, VERSION, checksum};
use crate::prefix::prefix;
use crate::transpose::Word;
use crate::{Row, Schema};

/// Reads the tables of an image one after the other, each in order of its rows.
pub struct Reader<R> {
    input: R,
    header: Vec<u8>,
    tables: Vec<&'static Schema>,
    /// The table of the block, or the number of tables at the end.
    table: usize,
    block: Block,
    /// The first bytes of the block's keys.
    prefixes: Vec<u128>,
    /// The next row of the block.
    next: usize,
    /// The last row of the block before.
    last: Option<(Vec<Word>, Vec<u8>)>,
    body: Vec<u8>,
    rows: u64,
}

fn number<const N: usize>(input: &mut impl Read) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Reads bytes in pieces, so that a wrong length takes no memory.
fn read_bytes(input: &mut impl Read, length: usize, into: &mut Vec<u8>) -> Result<(), Error> {
    into.clear();
    let read = input.by_ref().take(length as u64).read_to_end(into)?;
    if read == length { Ok(()) } else { Err(Error::Truncated) }
}

/// Whether a row may be followed by the other.
fn is_before(schema: &Schema, row: &Row<'_>, other: &Row<'_>) -> bool {
    match row.order(other) {
        Ordering::Less => true,
        Ordering::Equal => schema.many,
        Ordering::Greater => false,
    }
}

impl<R: Read> Reader<R> {
    /// Opens an image whose tables are among the known ones.
    ///
    /// # Errors
    /// If it cannot be read, or is no valid image.
    pub fn open(mut input: R, known: &[&'static Schema]) -> Result<Self, Error> {
        let magic = number(&mut input).map_err(|error| match error {
            Error::Truncated => Error::NotAState,
            other => other,
        })?;
        if magic != MAGIC {
            return Err(Error::NotAState);
        }
        let version = u16::from_le_bytes(number(&mut input)?);
        if version == 0 || version > VERSION {
            return Err(Error::Version(version));
        }
        let length = u32::from_le_bytes(number(&mut input)?) as usize;
        let crc = u32::from_le_bytes(number(&mut input)?);
        if length > MOST_HEADER {
            return Err(Error::Damaged("the length of its header"));
        }
        let mut header = Vec::new();
        read_bytes(&mut input, length, &mut header)?;
        if checksum(&header) != crc {
            return Err(Error::Damaged("the checksum of its header"));
        }
        let mut tables = Vec::new();
        let mut name = Vec::new();
        for _ in 0..number::<1>(&mut input)?[0] {
            let length = usize::from(number::<1>(&mut input)?[0]);
            read_bytes(&mut input, length, &mut name)?;
            let table = known.iter().find(|table| table.name.as_bytes() == name);
            let unknown = || Error::UnknownTable(String::from_utf8_lossy(&name).into_owned());
            let table = table.copied().ok_or_else(unknown)?;
            if tables.contains(&table) {
                return Err(Error::Damaged("a table that is there twice"));
            }
            tables.push(table);
        }
        let block = Block::default();
        let mut reader = Self {
            input,
            header,
            tables,
            table: 0,
            block,
            prefixes: Vec::new(),
            next: 0,
            last: None,
            body: Vec::new(),
            rows: 0,
        };
        reader.read_block()?;
        Ok(reader)
    }

    /// The caller's header.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The tables, in order.
    pub fn tables(&self) -> &[&'static Schema] {
        &self.tables
    }

    /// The next row of a table; `None` at its end. A table cannot be read after a later one.
    #[inline]
    pub fn row(&self, table: usize) -> Option<Row<'_>> {
        if self.table != table {
            return None;
        }
        let schema = self.tables.get(table)?;
        let fixed = self.block.fixed(self.next);
        Some(Row { fixed, key: schema.key, tail: self.block.tail(self.next) })
    }

    /// The first bytes of the next row's key; `None` at the end of the table.
    #[inline]
    pub(crate) fn prefix(&self, table: usize) -> Option<u128> {
        if self.table == table { self.prefixes.get(self.next).copied() } else { None }
    }

    /// Goes on to the next row.
    ///
    /// # Errors
    /// If the image cannot be read or is damaged.
    #[inline]
    pub fn advance(&mut self) -> Result<(), Error> {
        self.next += 1;
        if self.next >= self.block.len() { self.read_block() } else { Ok(()) }
    }

    fn read_block(&mut self) -> Result<(), Error> {
        let before = self.table;
        if let Some(row) =
            self.block.len().checked_sub(1).filter(|_| self.table < self.tables.len())
        {
            let (fixed, tail) = self.last.get_or_insert_default();
            fixed.clear();
            fixed.extend_from_slice(self.block.fixed(row));
            tail.clear();
            tail.extend_from_slice(self.block.tail(row));
        }
        self.next = 0;
        self.block.end();
        let table = number::<1>(&mut self.input)?[0];
        if table == END {
            return self.read_end();
        }
        let table = usize::from(table);
        if table >= self.tables.len() || table < before {
            return Err(Error::Damaged("a block of an impossible table"));
        }
        let rows = usize::from(u16::from_le_bytes(number(&mut self.input)?));
        let length = u32::from_le_bytes(number(&mut self.input)?) as usize;
        let crc = u32::from_le_bytes(number(&mut self.input)?);
        if rows == 0 || rows > MOST_ROWS || length > MOST_BODY {
            return Err(Error::Damaged("the size of a block"));
        }
        read_bytes(&mut self.input, length, &mut self.body)?;
        if checksum(&self.body) != crc {
            return Err(Error::Damaged("the checksum of a block"));
        }
        self.block.decode(&self.body, self.tables[table].width(), rows)?;
        self.rows += rows as u64;
        if table != before {
            self.last = None;
        }
        self.table = table;
        let schema = self.tables[table];
        let keys = (0..rows).map(|at| &self.block.fixed(at).as_flattened()[..schema.key]);
        self.prefixes.clear();
        self.prefixes.extend(keys.map(prefix));
        self.check_order()
    }

    /// Whether the rows of the block ascend.
    fn check_order(&self) -> Result<(), Error> {
        let schema = self.tables[self.table];
        let row = |at: usize| Row {
            fixed: self.block.fixed(at),
            key: schema.key,
            tail: self.block.tail(at),
        };
        let prefixes = &self.prefixes;
        let ascends = |at: usize| match prefixes[at - 1].cmp(&prefixes[at]) {
            Ordering::Equal => is_before(schema, &row(at - 1), &row(at)),
            order => order.is_lt(),
        };
        let begins = self.last.as_ref().is_none_or(|(fixed, tail)| {
            is_before(schema, &Row { fixed, key: schema.key, tail }, &row(0))
        });
        if begins && (1..self.block.len()).all(ascends) {
            Ok(())
        } else {
            Err(Error::Damaged("rows out of order"))
        }
    }

    fn read_end(&mut self) -> Result<(), Error> {
        let rows = number::<8>(&mut self.input)?;
        let crc = u32::from_le_bytes(number(&mut self.input)?);
        if checksum(&rows) != crc || u64::from_le_bytes(rows) != self.rows {
            return Err(Error::Damaged("the number of its rows"));
        }
        if self.input.read(&mut [0])? > 0 {
            return Err(Error::Damaged("bytes behind its end"));
        }
        self.table = self.tables.len();
        Ok(())
    }
}

//! Parquet: workers collect rows, and the writer makes row groups of them.

use std::io;

use crate::fields::Chosen;
use crate::formats::{Columns, GROUP_BYTES, GROUP_ROWS, GROUPS_MOST, ParquetFile, Rows};
use ringtap_flow::FlowRecord;

use crate::block::{Block, Encode, Payload};
use crate::encode::as_biflow;
use crate::shared::Shared;
use crate::store::{Retry, Store, Unwritten, finish, persist, tick};
use crate::sums::{RowSum, Sums};
use crate::writer::Sink;
use crate::{Reason, RecordTotals, Sent};

/// Approximate memory of a row without facts in bytes: 30 numbers, 11 texts and the levels of all. IPv4 takes 260, the rest
/// is for what encodes a column.
const ROW_BYTES: usize = 448;

/// True if the rows are a whole row group: by their number, or by the memory of their facts.
fn is_group(rows: &Rows) -> bool {
    rows.len() >= GROUP_ROWS || rows.fact_bytes() >= GROUP_ROWS * ROW_BYTES
}

/// Memory of the writer of a Parquet file besides the blocks: a row group with as much memory of facts, whose encoded form
/// is much smaller; and the metadata of written groups.
pub(crate) const FILE_BYTES: usize = GROUP_ROWS * ROW_BYTES * 2 + GROUPS_MOST * GROUP_BYTES;

/// Memory for the rows of the current file of a store, with their facts.
pub(crate) const KEPT_BYTES: usize = GROUP_ROWS * ROW_BYTES * 2;

/// Seconds after which rows become a row group of a file, though it is a small one: a process that is killed loses no
/// more records.
const SECONDS: u32 = 5;

/// Rows, and their sums if they are asked for.
pub(crate) struct SummedRows {
    pub(crate) rows: Rows,
    sums: Sums,
}

impl SummedRows {
    fn new(columns: Columns, chosen: Chosen) -> Self {
        Self { rows: Rows::choosing(columns, chosen), sums: Sums::default() }
    }
}

impl Payload for SummedRows {
    fn len(&self) -> usize {
        self.rows.len() * ROW_BYTES + self.rows.fact_bytes()
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.sums = Sums::default();
    }
}

pub(crate) struct RowEncoder {
    columns: Columns,
    chosen: Chosen,
    /// Seconds of the intervals of sums.
    sums_s: Option<u64>,
    buffer: Vec<u8>,
}

impl RowEncoder {
    pub(crate) fn new(columns: Columns, sums_s: Option<u64>) -> Self {
        Self { columns, chosen: Chosen::ALL, sums_s, buffer: Vec::new() }
    }

    /// The encoder of rows with these columns only.
    #[cfg(feature = "arrow")]
    pub(crate) fn choosing(columns: Columns, chosen: Chosen) -> Self {
        Self { chosen, ..Self::new(columns, None) }
    }
}

impl Encode for RowEncoder {
    type Item = FlowRecord;
    type Payload = SummedRows;

    fn payload(&self, _: usize) -> SummedRows {
        SummedRows::new(self.columns, self.chosen)
    }

    #[inline]
    fn add(
        &mut self,
        record: &FlowRecord,
        SummedRows { rows, sums }: &mut SummedRows,
        flows: &mut RecordTotals,
    ) -> Result<(), Reason> {
        rows.push(record);
        if let Some(interval_s) = self.sums_s {
            sums.add(&RowSum::of(record, self.columns, &mut self.buffer), interval_s);
        }
        *flows += self.counts_of(record);
        Ok(())
    }

    fn counts_of(&self, record: &FlowRecord) -> RecordTotals {
        as_biflow(record)
    }
}

/// Writes Parquet files: after [`GROUPS_MOST`] row groups another one is begun. A row group counts as sent when it is written, and as lost if the file does not get its
/// footer, because the file cannot be read without it.
pub(crate) struct RowSink {
    columns: Columns,
    store: Box<dyn Store>,
    /// The current file; `None` before its first row group.
    file: Option<ParquetFile>,
    rows: Rows,
    /// The sums of `rows`.
    sums: Sums,
    /// Whether the store gets sums, and no file without rows.
    is_summed: bool,
    /// All rows of the current file of a store, as long as they fit into a row group.
    kept: Option<Rows>,
    /// The counts of `rows`.
    flows: RecordTotals,
    /// The counts of the row groups in the current file.
    in_file: RecordTotals,
    /// Seconds since the last row group.
    seconds: u32,
    /// The file is complete, but could not be renamed.
    unnamed: bool,
    /// The store failed at the last second.
    ticks_failed: bool,
    /// Why nothing is written any more.
    over: Option<Reason>,
}

impl RowSink {
    pub(crate) fn new(columns: Columns, is_summed: bool, store: Box<dyn Store>) -> Self {
        Self {
            columns,
            store,
            file: None,
            rows: Rows::new(columns),
            sums: Sums::default(),
            is_summed,
            kept: None,
            flows: RecordTotals::default(),
            in_file: RecordTotals::default(),
            seconds: 0,
            unnamed: false,
            ticks_failed: false,
            over: None,
        }
    }

    /// Writes the rows as a row group.
    fn group(&mut self, shared: &Shared) -> Result<(), Reason> {
        self.name(shared)?;
        let failed = |error: io::Error| failed(&error, shared);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = ParquetFile::new(self.columns).map_err(failed)?;
                none.insert(if self.store.is_regular() { file.with_trailers() } else { file })
            }
        };
        if self.is_summed && file.groups() == 0 {
            self.kept = Some(Rows::new(self.columns));
        }
        if let Some(kept) = &mut self.kept {
            kept.append(&self.rows);
            if is_group(kept) {
                self.kept = None;
            }
        }
        let bytes = file.group(&mut self.rows).map_err(failed)?;
        self.persist(&bytes, shared)?;
        if self.is_summed {
            self.store.rows(&std::mem::take(&mut self.sums));
        }
        let flows = std::mem::take(&mut self.flows);
        self.in_file += flows;
        self.seconds = 0;
        shared.send(Sent { flows, messages: 1, message_octets: bytes.len() as u64 });
        Ok(())
    }

    /// Writes the rows as a row group. Begins another file if this one has as many as it may have; in a pipe, that is
    /// the end.
    fn next_group(&mut self, shared: &Shared) -> Result<(), Reason> {
        self.group(shared)?;
        if self.file.as_ref().is_some_and(|file| file.groups() < GROUPS_MOST) {
            return Ok(());
        }
        self.end(shared)?;
        if !self.store.is_regular() {
            self.over = Some(Reason::Failed);
            shared.set_failure(format!("a pipe takes {GROUPS_MOST} row groups: write to a file"));
        }
        Ok(())
    }

    /// Writes the remaining rows and the footer, and finishes the file.
    fn end(&mut self, shared: &Shared) -> Result<(), Reason> {
        if self.is_summed && self.file.is_none() && self.rows.is_empty() {
            return Ok(());
        }
        self.group(shared)?;
        let Some(file) = self.file.take() else { return Ok(()) };
        if let Some(kept) = self.kept.take().filter(|_| file.groups() > 1)
            && self.compact(kept).is_ok()
        {
            (self.unnamed, self.in_file) = (true, RecordTotals::default());
            let _ = self.name(shared);
            return Ok(());
        }
        let bytes = file.end().map_err(|error| failed(&error, shared))?;
        self.persist(&bytes, shared)?;
        shared.send(Sent { message_octets: bytes.len() as u64, ..Sent::default() });
        (self.unnamed, self.in_file) = (true, RecordTotals::default());
        // If that fails it is tried again before anything else is written.
        let _ = self.name(shared);
        Ok(())
    }

    /// Replaces the small row groups of a file by one. If that fails, the file is as before.
    fn compact(&mut self, mut rows: Rows) -> io::Result<()> {
        let mut file = ParquetFile::new(self.columns)?;
        let mut bytes = file.group(&mut rows)?;
        bytes.extend(file.end()?);
        self.store.rewrite(&bytes)
    }

    /// A file without its footer is unusable: the next one does not start before this one can be written again.
    fn persist(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), Reason> {
        persist(&mut *self.store, bytes, shared, Retry::UntilEnd).map_err(|unwritten| {
            match unwritten {
                Unwritten::Lost(reason) => reason,
                Unwritten::Renewal => Reason::Failed,
            }
        })
    }

    /// Renames a complete file.
    fn name(&mut self, shared: &Shared) -> Result<(), Reason> {
        if self.unnamed {
            let was_failing = shared.is_failing();
            finish(shared, || self.store.finish())?;
            self.unnamed = false;
            if was_failing {
                shared.works();
            }
        }
        Ok(())
    }

    /// The current file cannot be completed: all of its records are lost.
    fn give_up(&mut self, reason: Reason, shared: &Shared) {
        self.over = Some(reason);
        shared.take_back(reason, std::mem::take(&mut self.in_file));
        shared.lose(reason, std::mem::take(&mut self.flows));
        if reason != Reason::ReaderGone {
            shared.set_failure(shared.last_error().unwrap_or_default());
        }
    }
}

impl Sink for RowSink {
    type Payload = SummedRows;

    fn write(&mut self, block: &mut Block<SummedRows>, shared: &Shared) {
        if let Some(reason) = self.over {
            return shared.lose(reason, block.flows);
        }
        if is_group(&self.rows) && self.name(shared).is_err() {
            // There is no file to write to yet, and no more memory.
            return shared.lose(Reason::Failed, block.flows);
        }
        self.rows.append(&block.payload.rows);
        self.sums.merge(&block.payload.sums);
        self.flows += block.flows;
        if is_group(&self.rows)
            && self.name(shared).is_ok()
            && let Err(reason) = self.next_group(shared)
        {
            self.give_up(reason, shared);
        }
    }

    fn tick(&mut self, shared: &Shared) {
        tick(&mut *self.store, &mut self.ticks_failed, shared);
        self.seconds += 1;
        if self.seconds >= SECONDS
            && !self.rows.is_empty()
            && self.over.is_none()
            && self.store.is_regular()
            && self.name(shared).is_ok()
            && let Err(reason) = self.next_group(shared)
        {
            self.give_up(reason, shared);
        }
    }

    fn store(&mut self) -> Option<&mut dyn Store> {
        Some(&mut *self.store)
    }

    fn renew(&mut self, shared: &Shared) {
        if self.store.is_regular()
            && self.over.is_none()
            && self.name(shared).is_ok()
            && let Err(reason) = self.end(shared)
        {
            self.give_up(reason, shared);
        }
    }

    fn finish(&mut self, shared: &Shared) {
        if self.over.is_some() {
            return;
        }
        let ended = self.end(shared);
        if let Err(reason) = ended.and_then(|()| self.name(shared)) {
            self.give_up(reason, shared);
        } else {
            shared.judge();
        }
    }
}

fn failed(error: &io::Error, shared: &Shared) -> Reason {
    shared.fails(error);
    Reason::Failed
}

//! Flow records in memory, as Arrow record batches: workers collect rows, and the writer makes batches of them. All of a run
//! are kept for its end, or a reader takes them while the run goes on.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;

use crate::RecordTotals;
use ringtap_flow::FlowRecord;

use crate::block::{Block, Encode};
use crate::fields::Chosen;
use crate::formats::{Columns, GROUP_ROWS, GrowingBatch};
use crate::launch::Ready;
use crate::place::Place;
use crate::rows::{RowEncoder, SummedRows};
use crate::settings::Settings;
use crate::shared::{Shared, WaitPolicy};
use crate::summary::{Reason, Sent};
use crate::writer::Sink;

/// Rows of the first batch; each further one may have twice as many, up to [`MOST_ROWS`]. The arrays of large batches
/// are in huge pages, and few batches are faster to read.
const FIRST_ROWS: usize = GROUP_ROWS;
const MOST_ROWS: usize = 16 * FIRST_ROWS;

/// Bytes of facts after which a batch ends, because the offsets of texts have 31 bits.
const MOST_FACT_BYTES: usize = 1 << 30;

/// Rows of a batch for a reader, bytes of its facts, and of all together, at most.
const READER_ROWS: usize = 1 << 13;
const READER_FACT_BYTES: usize = 4 << 20;
const READER_BYTES: u64 = 12 << 20;
/// Batches that may wait for a reader.
const MOST_WAITING: usize = 1_000;

/// How long the writer waits for a reader before it sees whether the run is cancelled.
const WAIT: Duration = Duration::from_millis(50);

/// The flow records of a run; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Batches(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    list: Mutex<List>,
    /// A batch was added or taken, or the list has changed its state.
    changed: Condvar,
    /// Batches that wait for a reader, at most; `None`: all are kept.
    most: Option<usize>,
    only: Option<Only>,
    /// The columns; `None`: all.
    chosen: Option<Chosen>,
}

/// Which flow records a reader gets.
#[derive(Clone)]
pub struct Only(pub Arc<dyn Fn(&FlowRecord) -> bool + Send + Sync>);

impl fmt::Debug for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Only")
    }
}

/// Encodes the records that a reader gets.
struct Selected {
    encoder: RowEncoder,
    only: Option<Only>,
}

impl Selected {
    fn has(&self, record: &FlowRecord) -> bool {
        self.only.as_ref().is_none_or(|only| only.0(record))
    }
}

impl Encode for Selected {
    type Item = FlowRecord;
    type Payload = SummedRows;

    fn payload(&self, bytes: usize) -> SummedRows {
        self.encoder.payload(bytes)
    }

    fn add(
        &mut self,
        record: &FlowRecord,
        rows: &mut SummedRows,
        flows: &mut RecordTotals,
    ) -> Result<(), Reason> {
        if self.has(record) { self.encoder.add(record, rows, flows) } else { Ok(()) }
    }

    fn counts_of(&self, record: &FlowRecord) -> RecordTotals {
        if self.has(record) { self.encoder.counts_of(record) } else { RecordTotals::default() }
    }
}

#[derive(Debug, Default)]
struct List {
    batches: VecDeque<RecordBatch>,
    /// No more batches follow.
    ended: bool,
    /// The reader takes no more.
    closed: bool,
}

/// What a reader gets.
#[derive(Debug)]
pub enum Next {
    /// A batch.
    Batch(RecordBatch),
    /// None yet.
    None,
    /// No more follow.
    End,
}

impl Batches {
    /// Batches of these records for a reader who takes them while the run goes on: at most as many wait for it, and if they
    /// do, the output accepts no records. Without a reader all are kept, and memory grows with the number of records. The
    /// batches have the chosen columns, or all.
    pub fn for_reader(most: usize, only: Option<Only>, chosen: Option<Chosen>) -> Self {
        let most = Some(most.clamp(1, MOST_WAITING));
        Self(Arc::new(Held { most, only, chosen, ..Held::default() }))
    }

    /// Batches of these records, which are all kept for the end of the run.
    pub fn kept(only: Option<Only>) -> Self {
        Self(Arc::new(Held { only, ..Held::default() }))
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, list: MutexGuard<'a, List>, time: Duration) -> MutexGuard<'a, List> {
        self.0.changed.wait_timeout(list, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Removes all batches and returns them. After a run there is at least one, perhaps without rows, unless the
    /// output failed.
    pub fn take(&self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.list().batches).into()
    }

    /// The next batch, for which the reader waits up to this time.
    pub fn next(&self, wait: Duration) -> Next {
        let mut list = self.list();
        if list.batches.is_empty() && !list.ended {
            list = self.wait(list, wait);
        }
        match list.batches.pop_front() {
            Some(batch) => {
                self.0.changed.notify_all();
                Next::Batch(batch)
            }
            None if list.ended => Next::End,
            None => Next::None,
        }
    }

    /// The reader takes no more: what follows is lost.
    pub fn close(&self) {
        let mut list = self.list();
        list.closed = true;
        list.batches.clear();
        self.0.changed.notify_all();
    }

    /// The run has ended, whether or not its output finished.
    pub fn end(&self) {
        self.list().ended = true;
        self.0.changed.notify_all();
    }

    /// Waits while too many batches wait for the reader. Returns whether it has taken the batch.
    fn push(&self, batch: RecordBatch, shared: &Shared) -> bool {
        let mut list = self.list();
        while !list.closed && self.0.most.is_some_and(|most| list.batches.len() >= most) {
            if shared.over() {
                return false;
            }
            list = self.wait(list, WAIT);
        }
        if list.closed || list.ended {
            return false;
        }
        list.batches.push_back(batch);
        self.0.changed.notify_all();
        true
    }
}

/// Equal if they are the same list.
impl PartialEq for Batches {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Batches {}

impl fmt::Display for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flow records in memory")
    }
}

impl Place for Batches {
    fn is_read(&self) -> bool {
        self.0.most.is_some()
    }

    fn fixed_bytes(&self) -> u64 {
        // Besides those that wait: one that grows, and one of the reader.
        self.0.most.map_or(0, |most| (most as u64 + 2) * READER_BYTES)
    }

    fn prepare(&self, settings: &Settings) -> io::Result<Ready> {
        let (batches, columns) = (self.clone(), settings.interfaces.columns());
        let (has_periods, only) = (settings.rotate_ns.is_some(), self.0.only.clone());
        let chosen = self.0.chosen.unwrap_or(Chosen::ALL);
        Ok(Box::new(move |launch| {
            let sink = BatchSink::new(columns, batches, has_periods);
            let encoder =
                || Selected { encoder: RowEncoder::choosing(columns, chosen), only: only.clone() };
            launch.records(WaitPolicy::File, encoder, sink)
        }))
    }
}

/// Makes record batches.
pub(crate) struct BatchSink {
    batches: Batches,
    batch: GrowingBatch,
    /// The counts of `batch`.
    flows: RecordTotals,
    /// Rows of a complete batch.
    rows: usize,
    /// Whether the reader's batches end with periods.
    has_periods: bool,
}

impl BatchSink {
    pub(crate) fn new(columns: Columns, batches: Batches, has_periods: bool) -> Self {
        let has_reader = batches.0.most.is_some();
        let rows = if has_reader { READER_ROWS } else { FIRST_ROWS };
        let chosen = batches.0.chosen.unwrap_or(Chosen::ALL);
        let batch = GrowingBatch::new(columns, chosen, rows);
        let flows = RecordTotals::default();
        Self { batches, batch, flows, rows, has_periods }
    }

    fn most_fact_bytes(&self) -> usize {
        if self.has_reader() { READER_FACT_BYTES } else { MOST_FACT_BYTES }
    }

    fn has_reader(&self) -> bool {
        self.batches.0.most.is_some()
    }

    /// Hands the rows to a reader, if there is one.
    fn hand_on(&mut self, shared: &Shared) {
        if self.has_reader() && self.batch.len() > 0 {
            self.end(shared);
        }
    }

    fn end(&mut self, shared: &Shared) {
        if !self.has_reader() {
            self.rows = (self.rows * 2).min(MOST_ROWS);
        }
        let flows = std::mem::take(&mut self.flows);
        match self.batch.take(self.rows) {
            Ok(batch) => {
                if self.batches.push(batch, shared) {
                    shared.send(Sent { flows, messages: 1, message_octets: 0 });
                } else {
                    shared.lose(Reason::ReaderGone, flows);
                }
            }
            Err(error) => {
                shared.fails(&error);
                shared.lose(Reason::Failed, flows);
                shared.set_failure(error.to_string());
            }
        }
    }
}

impl Sink for BatchSink {
    type Payload = SummedRows;

    fn write(&mut self, block: &mut Block<SummedRows>, shared: &Shared) {
        self.batch.append(&block.payload.rows);
        self.flows += block.flows;
        if self.batch.len() >= self.rows || self.batch.fact_bytes() >= self.most_fact_bytes() {
            self.end(shared);
        }
    }

    /// Without periods, a reader gets the rows of each second.
    fn tick(&mut self, shared: &Shared) {
        if !self.has_periods {
            self.hand_on(shared);
        }
    }

    /// Batches that are kept belong to the run: there is no other list to start.
    fn renew(&mut self, shared: &Shared) {
        self.hand_on(shared);
    }

    fn finish(&mut self, shared: &Shared) {
        // A table has at least one batch.
        if self.batch.len() > 0 || self.rows == FIRST_ROWS && !self.has_reader() {
            self.end(shared);
        }
        self.batches.end();
        shared.judge();
    }
}

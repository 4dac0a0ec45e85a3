//! Flow records in memory, as Arrow record batches: workers collect rows, and the writer makes batches of them.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use crate::RecordTotals;
use crate::block::Block;
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

/// The flow records of a run; clones share them. Memory grows with the number of records.
#[derive(Clone, Debug, Default)]
pub struct Batches(Arc<Mutex<Vec<RecordBatch>>>);

impl Batches {
    /// Removes all batches and returns them. After a run there is at least one, perhaps without rows, unless the
    /// output failed.
    pub fn take(&self) -> Vec<RecordBatch> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, batch: RecordBatch) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
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
    fn prepare(&self, settings: &Settings) -> io::Result<Ready> {
        let (batches, columns) = (self.clone(), settings.interfaces.columns());
        Ok(Box::new(move |launch| {
            let sink = BatchSink::new(columns, batches);
            launch.records(WaitPolicy::File, || RowEncoder::new(columns, None), sink)
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
}

impl BatchSink {
    pub(crate) fn new(columns: Columns, batches: Batches) -> Self {
        let batch = GrowingBatch::new(columns, FIRST_ROWS);
        Self { batches, batch, flows: RecordTotals::default(), rows: FIRST_ROWS }
    }

    fn end(&mut self, shared: &Shared) {
        self.rows = (self.rows * 2).min(MOST_ROWS);
        let flows = std::mem::take(&mut self.flows);
        match self.batch.take(self.rows) {
            Ok(batch) => {
                self.batches.push(batch);
                shared.send(Sent { flows, messages: 1, message_octets: 0 });
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
        if self.batch.len() >= self.rows || self.batch.fact_bytes() >= MOST_FACT_BYTES {
            self.end(shared);
        }
    }

    /// Batches belong to the run: there is no other list to start.
    fn renew(&mut self, _: &Shared) {}

    fn finish(&mut self, shared: &Shared) {
        // A table has at least one batch.
        if self.batch.len() > 0 || self.rows == FIRST_ROWS {
            self.end(shared);
        }
        shared.judge();
    }
}

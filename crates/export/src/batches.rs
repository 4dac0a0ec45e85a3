//! Flow records in memory, as Arrow record batches: workers collect rows, and the writer makes batches of them.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use crate::block::Block;
use crate::formats::{Columns, Rows};
use crate::rows::is_group;
use crate::shared::Shared;
use crate::writer::Sink;
use crate::{Reason, RecordTotals, Sent};

/// The flow records of a run; clones share them. Memory grows with the number of records.
#[derive(Clone, Debug, Default)]
pub struct Batches(Arc<Mutex<Vec<RecordBatch>>>);

impl Batches {
    /// Removes all batches and returns them. After a run there is at least one, perhaps without rows.
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

/// Makes record batches. A batch has as many rows as a row group of Parquet.
pub(crate) struct BatchSink {
    batches: Batches,
    rows: Rows,
    /// The counts of `rows`.
    flows: RecordTotals,
}

impl BatchSink {
    pub(crate) fn new(columns: Columns, batches: Batches) -> Self {
        Self { batches, rows: Rows::new(columns), flows: RecordTotals::default() }
    }

    fn batch(&mut self, shared: &Shared) {
        let batch = self.rows.batch();
        self.rows.clear();
        let flows = std::mem::take(&mut self.flows);
        match batch {
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
    type Payload = Rows;

    fn write(&mut self, block: &mut Block<Rows>, shared: &Shared) {
        self.rows.append(&block.payload);
        self.flows += block.flows;
        if is_group(&self.rows) {
            self.batch(shared);
        }
    }

    /// Batches belong to the run: there is no other list to start.
    fn renew(&mut self, _: &Shared) {}

    fn finish(&mut self, shared: &Shared) {
        self.batch(shared);
        shared.judge();
    }
}

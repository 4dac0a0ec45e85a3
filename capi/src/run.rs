//! A run in a thread of its own, and the reader of its records.

use std::ffi::{CString, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use ringtap::embedded::{self, Batches, Failure, Finished, NextBatch, Stop};

use crate::flow::{Cell, Flow, Table, c_text};
use crate::options::Options;

/// Batches that may wait for the program.
const WAITING: usize = 4;

/// The longest wait for a batch before the reader looks again.
const WAIT: Duration = Duration::from_secs(1);

const PANICKED: &str = "the run panicked; please report its message on stderr";

/// A run that goes on until its packets end or it is stopped.
pub struct Run {
    batches: Batches,
    stop: Stop,
    reader: Mutex<Reader>,
}

/// What the calls of a reader share.
struct Reader {
    thread: Option<JoinHandle<Result<Finished, Failure>>>,
    /// The batch that is read.
    table: Option<Table>,
    /// What the current record points to.
    application: CString,
    /// What `ringtap_error` points to.
    error: CString,
    /// Once the run has ended: its report, and records that were not handed over.
    report: Option<CString>,
    lost: u64,
    /// Why the run failed, once it has ended.
    failure: Option<String>,
}

impl Run {
    /// Starts a run.
    ///
    /// # Errors
    /// Invalid options, a file that cannot be read, a thread that cannot start.
    pub(crate) fn open(options: Options) -> Result<Self, String> {
        let Options { files, flags, flows } = options;
        embedded::check(&files, &flags).map_err(|error| error.to_string())?;
        let batches = embedded::batches(Some(WAITING), flows.as_deref(), None);
        let batches = batches.map_err(|error| error.to_string())?;
        let stop = Stop::default();
        let (own, own_stop) = (batches.clone(), stop.clone());
        let work = move || embedded::stream(&files, &flags, &own, &own_stop);
        let thread = Builder::new().name("ringtap".into()).spawn(work);
        let thread = thread.map_err(|error| format!("a thread for the run: {error}"))?;
        let reader = Mutex::new(Reader {
            thread: Some(thread),
            table: None,
            application: CString::default(),
            error: CString::default(),
            report: None,
            lost: 0,
            failure: None,
        });
        Ok(Self { batches, stop, reader })
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next record; `None` at the end.
    ///
    /// # Errors
    /// Why the run failed, after its last record.
    pub(crate) fn next(&self) -> Result<Option<Flow>, String> {
        let reader = &mut *self.reader();
        loop {
            if let Some(table) = &mut reader.table
                && table.advance()
            {
                return Ok(Some(table.flow(&mut reader.application)));
            }
            reader.table = None;
            match self.batches.next(WAIT) {
                NextBatch::Batch(batch) => reader.table = Some(Table::new(batch)),
                NextBatch::None => {}
                NextBatch::End => {
                    reader.end();
                    return reader.failure.clone().map_or(Ok(None), Err);
                }
            }
        }
    }

    /// Calls `read` with a value of the current record.
    ///
    /// # Errors
    /// No current record, no such field, and those of `read`.
    pub(crate) fn value<T>(
        &self,
        name: &str,
        index: usize,
        read: impl FnOnce(Option<Cell<'_>>) -> Result<T, String>,
    ) -> Result<T, String> {
        let reader = self.reader();
        let table = reader.table.as_ref().ok_or("there is no record: call ringtap_next first")?;
        read(table.value(name, index)?)
    }

    /// Ends reading; the records of the open flows follow.
    pub(crate) fn stop(&self) {
        self.stop.request();
    }

    /// Keeps the message of an error.
    pub(crate) fn fail(&self, error: &str) {
        self.reader().error = c_text(error);
    }

    /// The message of the last error.
    pub(crate) fn error(&self) -> *const c_char {
        self.reader().error.as_ptr()
    }

    /// The report, once the run has ended.
    pub(crate) fn report(&self) -> Option<*const c_char> {
        self.reader().report.as_ref().map(|report| report.as_ptr())
    }

    /// Records that were not handed over, once the run has ended.
    pub(crate) fn lost(&self) -> u64 {
        self.reader().lost
    }
}

impl Reader {
    /// Waits for the end of the run, and keeps its results.
    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        match thread.join() {
            Ok(Ok(finished)) => {
                self.report = Some(c_text(&finished.report));
                self.lost = finished.lost;
                let errors = finished.errors.join("\n");
                self.failure = Some(errors).filter(|errors| !errors.is_empty());
            }
            Ok(Err(failure)) => self.failure = Some(failure.to_string()),
            Err(_) => self.failure = Some(PANICKED.into()),
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.batches.close();
        self.stop.request();
        self.reader().end();
    }
}

//! `ringtap.stream`: flow records while the run goes on.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use ringtap::embedded::{self, Batches, Failure, Finished, NextBatch, Stop, Value};

use crate::run::{POLL_INTERVAL, Run, failed};
use crate::table::{self, Table};
use crate::{Error, flags};

/// The thread of a run.
type Thread = JoinHandle<Result<Finished, Failure>>;

/// Flow records while the run goes on: an iterator of tables.
///
/// `close()`, the end of a `with` block and the deletion of the stream stop the run. After the last batch, `run` has the
/// report.
#[pyclass(frozen, module = "ringtap")]
pub(crate) struct Stream {
    batches: Batches,
    stop: Stop,
    thread: Mutex<Option<Thread>>,
    run: Mutex<Option<Py<Run>>>,
    columns: Option<Vec<String>>,
    views: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.batches.close();
        self.stop.request();
    }
}

impl Stream {
    /// Waits for the end of the run, and keeps its report. An error has it as `run`.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        let finished = py.detach(|| thread.join());
        let finished = finished
            .map_err(|_| Error::new_err("the run panicked; please report its message on stderr"))?;
        let (run, errors) = Run::new(py, finished.map_err(failed)?, false)?;
        let run = Py::new(py, run)?;
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone_ref(py));
        if errors.is_empty() {
            return Ok(());
        }
        let error = Error::new_err(errors.join("\n"));
        error.value(py).setattr("run", run)?;
        Err(error)
    }

    /// The table of a batch, with the chosen columns in their order.
    fn table(&self, batch: RecordBatch) -> Result<Table, ArrowError> {
        let batch = match &self.columns {
            Some(names) => {
                let schema = batch.schema();
                let places: Result<Vec<_>, _> =
                    names.iter().map(|name| schema.index_of(name)).collect();
                batch.project(&places?)?
            }
            None => batch,
        };
        let batches = if self.views { table::with_views(vec![batch])? } else { vec![batch] };
        Ok(Table::new(batches))
    }
}

#[pymethods]
impl Stream {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Table> {
        loop {
            match py.detach(|| self.batches.next(POLL_INTERVAL)) {
                NextBatch::Batch(batch) => {
                    let table = self.table(batch);
                    return table.map_err(|error| Error::new_err(error.to_string()));
                }
                NextBatch::End => {
                    self.end(py)?;
                    return Err(PyStopIteration::new_err(()));
                }
                NextBatch::None => {}
            }
            if let Err(interrupt) = py.check_signals() {
                self.close(py)?;
                return Err(interrupt);
            }
        }
    }

    /// Stops the run, and waits for its end. The batches that were not read are lost.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.batches.close();
        self.stop.request();
        self.end(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// The report of the run, once it has ended: a `Run` without flows.
    #[getter]
    fn run(&self, py: Python<'_>) -> Option<Py<Run>> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        run.as_ref().map(|run| run.clone_ref(py))
    }
}

/// The name of an interface, if it is one and no file has the name.
fn interface(source: &Bound<'_, PyAny>) -> Option<String> {
    let name: String = source.extract().ok()?;
    let is_name = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let exists = is_name && Path::new("/sys/class/net").join(&name).exists();
    (exists && !PathBuf::from(&name).exists()).then_some(name)
}

/// Iterate over the flow records of captures or of an interface while they are read.
///
/// `source` is the name of an interface, or as for `ringtap.monitor`. `every="10s"` gives batches that end with periods of
/// packet time; otherwise a batch ends after a second, or when it is full. `flows` is an expression in the language of
/// `ringtap query`, such as "tcp port 443", that selects the records. `columns` are the names of the columns to keep.
/// At most `waiting` batches wait for you: over captures the run then waits, too; on an interface records are lost, which
/// the report counts. The other arguments are flags of `ringtap monitor`.
///
/// Returns a `Stream`: an iterator of tables. Errors are those of `ringtap.monitor`, after the last batch. An interrupt
/// (Ctrl-C) ends the run and raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (source, *, every=None, flows=None, columns=None, waiting=4, strings="plain", **flags))]
pub(crate) fn stream(
    source: &Bound<'_, PyAny>,
    every: Option<String>,
    flows: Option<String>,
    columns: Option<Vec<String>>,
    waiting: usize,
    strings: &str,
    flags: Option<&Bound<'_, PyDict>>,
) -> PyResult<Stream> {
    let interface = interface(source);
    let mut table = flags::table(flags, interface.is_some())?;
    let files = match interface {
        Some(name) => {
            table.insert("interface".into(), Value::Array(vec![name.into()]));
            Vec::new()
        }
        None => flags::files(source)?,
    };
    if let Some(every) = every {
        table.insert("rotate".into(), every.into());
    }
    let views = flags::has_views(strings)?;
    let batches = embedded::batches(Some(waiting), flows.as_deref(), columns.as_deref());
    let batches = batches.map_err(failed)?;
    let stop = Stop::default();
    let (own, own_stop) = (batches.clone(), stop.clone());
    let work = move || embedded::stream(&files, &table, &own, &own_stop);
    let thread = Mutex::new(Some(Builder::new().name("ringtap".into()).spawn(work)?));
    Ok(Stream { batches, stop, thread, run: Mutex::new(None), columns, views })
}

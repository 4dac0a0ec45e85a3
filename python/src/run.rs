//! `ringtap.monitor` and its result.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyType};
use ringtap::embedded::{self, Batches, Failure, Finished, Kept, Stop};

use crate::table::{self, Table};
use crate::{Error, flags};

/// How often a waiting call checks for interrupts.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a run.
#[pyclass(frozen, module = "ringtap")]
pub(crate) struct Run {
    /// The report, as in the JSON of `ringtap monitor --report json`.
    #[pyo3(get)]
    report: Py<PyDict>,
    /// The flow records as an Arrow table; None with `flows=False`.
    #[pyo3(get)]
    flows: Option<Py<Table>>,
    /// The state as bytes, for `ringtap.merge`; None with `state=False`, and if `analyses` or `anonymise` leave it
    /// incomplete.
    #[pyo3(get)]
    state: Option<Py<PyBytes>>,
    /// The messages that the command prints as warnings, a list of texts.
    #[pyo3(get)]
    warnings: Py<PyList>,
}

/// What [`Run::from_parts`] takes.
type Parts<'py> = (
    Bound<'py, PyDict>,
    Option<Bound<'py, Table>>,
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyList>,
);

#[pymethods]
impl Run {
    /// A run of its parts, for pickle.
    #[new]
    fn from_parts(
        report: Py<PyDict>,
        flows: Option<Py<Table>>,
        state: Option<Py<PyBytes>>,
        warnings: Py<PyList>,
    ) -> Self {
        Self { report, flows, state, warnings }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Parts<'py>) {
        let (py, run) = (slf.py(), slf.get());
        let flows = run.flows.as_ref().map(|flows| flows.bind(py).clone());
        let state = run.state.as_ref().map(|state| state.bind(py).clone());
        let parts = (run.report.bind(py).clone(), flows, state, run.warnings.bind(py).clone());
        (slf.get_type(), parts)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let packets = self.report.bind(py).get_item("packets")?;
        let received = packets.map(|packets| packets.get_item("received")).transpose()?;
        let received = received.map_or(Ok(0), |received| received.extract::<u64>())?;
        Ok(format!("<ringtap.Run: {received} packets>"))
    }
}

impl Run {
    /// Also returns the messages of the run's errors.
    pub(crate) fn new(
        py: Python<'_>,
        finished: Finished,
        views: bool,
    ) -> PyResult<(Self, Vec<String>)> {
        let warnings = finished.warnings.iter().map(|text| flags::by_arguments(text));
        let report = py.import("json")?.call_method1("loads", (finished.report,))?;
        let text = |batches| if views { table::with_views(batches) } else { Ok(batches) };
        let batches = finished.flows.map(text).transpose();
        let batches = batches.map_err(|error| Error::new_err(error.to_string()))?;
        let flows = batches.map(|batches| Py::new(py, Table::new(batches))).transpose()?;
        let run = Self {
            report: report.cast_into::<PyDict>()?.unbind(),
            flows,
            state: finished.state.map(|state| PyBytes::new(py, &state).unbind()),
            warnings: PyList::new(py, warnings.collect::<Vec<_>>())?.unbind(),
        };
        let errors = finished.errors.iter().map(|text| flags::by_arguments(text)).collect();
        Ok((run, errors))
    }
}

/// Which flow records a run keeps.
#[derive(FromPyObject)]
pub(crate) enum Wanted {
    /// All or none.
    All(bool),
    /// What an expression selects.
    Of(String),
}

impl Wanted {
    /// The batches for them.
    fn batches(wanted: Option<Self>) -> PyResult<Option<Batches>> {
        let filter = match &wanted {
            Some(Self::All(false)) => return Ok(None),
            Some(Self::All(true)) | None => None,
            Some(Self::Of(filter)) => Some(&**filter),
        };
        embedded::batches(None, filter, None).map(Some).map_err(failed)
    }
}

/// Report flows, port scans, top talkers and traffic volumes of capture files.
///
/// `source` is the path of a capture (pcap or pcapng, also compressed), or a list of paths, which are read in order.
/// The keyword arguments are the flags of the command `ringtap monitor`, with underscores: `interval="60s"`, `top=5`,
/// `digest=True`, `write=["json:flows.json", "csv:flows.csv"]`. `ringtap monitor --help` lists them. `flows` is an
/// expression in the language of `ringtap query`, such as "tcp port 443", that selects the flow records to keep; with False
/// there are none. `state=False` keeps no state. `strings="view"` gives the flow records text of the type
/// `string_view`, which Polars shares; with `"plain"`, the default, it copies text.
///
/// Returns a `Run`. Raises `ringtap.Error` with the command's message if an argument is invalid, or if reading or writing
/// fails; then its attribute `run` has the results so far. An interrupt (Ctrl-C) ends the run and raises
/// KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (source, *, flows=None, state=true, strings="plain", **flags))]
pub(crate) fn monitor(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    flows: Option<Wanted>,
    state: bool,
    strings: &str,
    flags: Option<&Bound<'_, PyDict>>,
) -> PyResult<Run> {
    let (files, flags) = (flags::files(source)?, flags::table(flags, false)?);
    if files.is_empty() {
        return Err(Error::new_err("nothing to read: the list of captures is empty"));
    }
    let views = flags::has_views(strings)?;
    let kept = Kept { flows: Wanted::batches(flows)?, state };
    let stop = Stop::default();
    let own = stop.clone();
    let finished = attended(py, &stop, move || embedded::monitor(&files, &flags, kept, &own))?;
    let finished = finished.map_err(failed)?;
    let (run, errors) = Run::new(py, finished, views)?;
    if errors.is_empty() {
        return Ok(run);
    }
    let error = Error::new_err(errors.join("\n"));
    error.value(py).setattr("run", run)?;
    Err(error)
}

/// Merge states into one report.
///
/// `states` is a list of states: bytes, or runs that have a state. The keyword arguments are those flags of the command
/// `ringtap merge` that concern a report: `digest=True`, `top`, `scan_threshold`,
/// `udp_scan_threshold`, `names`, `memory`.
///
/// Returns a `Run` without flows, whose state can be merged again. Raises `ringtap.Error` if a state is damaged or does not
/// belong to the others. An interrupt (Ctrl-C) ends the merge and raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (states, **flags))]
pub(crate) fn merge(
    py: Python<'_>,
    states: &Bound<'_, PyAny>,
    flags: Option<&Bound<'_, PyDict>>,
) -> PyResult<Run> {
    let state = |one: PyResult<Bound<'_, PyAny>>| {
        let one = one?;
        match one.cast::<Run>() {
            Ok(run) => match &run.get().state {
                Some(state) => Ok(state.bind(py).as_bytes().to_vec()),
                None => Err(Error::new_err("a run without a state cannot be merged")),
            },
            Err(_) => Ok(one.extract::<Vec<u8>>()?),
        }
    };
    let states: Vec<Vec<u8>> = states.try_iter()?.map(state).collect::<PyResult<_>>()?;
    let flags = flags::table(flags, false)?;
    let stop = Stop::default();
    let own = stop.clone();
    let finished = attended(py, &stop, move || embedded::merge(&states, &flags, &own))?;
    let finished = finished.map_err(failed)?;
    Ok(Run::new(py, finished, false)?.0)
}

/// The exception of a run that did not finish.
pub(crate) fn failed(failure: Failure) -> PyErr {
    Error::new_err(flags::by_arguments(&failure.to_string()))
}

/// Runs `work` in a thread. The calling thread waits without the interpreter's lock; after an interrupt it requests a
/// stop, waits for the end, and returns the interrupt's exception.
pub(crate) fn attended<T: Send + 'static>(
    py: Python<'_>,
    stop: &Stop,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<Result<T, Failure>> {
    let (done, result) = sync_channel(1);
    let run = move || {
        // The receiver exists until the thread has ended.
        let _ = done.send(work());
    };
    let thread = Builder::new().name("ringtap".into()).spawn(run)?;
    // The waiting closure must be able to change threads.
    let result = Mutex::new(result);
    let wait = || result.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL_INTERVAL);
    let mut interrupt = None;
    let finished = loop {
        match py.detach(wait) {
            Ok(finished) => break Some(finished),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(exception) = py.check_signals() {
            stop.request();
            interrupt.get_or_insert(exception);
        }
    };
    let panicked = thread.join().is_err();
    match (interrupt, finished) {
        (Some(exception), _) => Err(exception),
        (None, Some(finished)) if !panicked => Ok(finished),
        _ => Err(Error::new_err("the run panicked; please report its message on stderr")),
    }
}

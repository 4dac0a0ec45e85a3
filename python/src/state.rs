//! The tables of a state, for `ringtap.state`.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use ringtap::embedded::{self, Stop};

use crate::run::{attended, failed};
use crate::table::Table;

/// The names of the tables of a state.
#[pyfunction]
pub(crate) fn state_tables(state: &[u8]) -> PyResult<Vec<&'static str>> {
    embedded::tables(state).map_err(failed)
}

/// A table of a state. An interrupt (Ctrl-C) raises KeyboardInterrupt.
#[pyfunction]
pub(crate) fn state_table(py: Python<'_>, state: Vec<u8>, name: String) -> PyResult<Table> {
    let stop = Stop::default();
    let (own, of) = (stop.clone(), name.clone());
    let found = attended(py, &stop, move || embedded::table(&state, &of, &own))?;
    let batches = found.map_err(failed)?;
    batches.map(Table::new).ok_or_else(|| PyKeyError::new_err(name))
}

//! The Python package `ringtap`: `ringtap monitor` and `ringtap merge` as functions.
//!
//! ```text
//! keyword arguments ─▶ flags.rs ─▶ flags of the command ─▶ ringtap::embedded ─┬▶ Run: report, flows, warnings
//!                                                                              └▶ Stream: batches while the run goes on
//! ```
//!
//! Flags are parsed, checked and explained by the command's own parser, so this crate has no list of them, except of
//! those that only a terminal or an interface needs. A run has its own thread; the calling one waits without the
//! interpreter's lock and passes interrupts on.

mod flags;
mod run;
mod state;
mod stream;
mod table;

use pyo3::prelude::*;

pyo3::create_exception!(
    ringtap,
    Error,
    pyo3::exceptions::PyException,
    "A run that could not start, or that failed: the message of the command `ringtap monitor`, with the names of arguments.\n\n\
     `run` has the results if the run finished with errors, else None."
);

/// Large blocks get huge pages, as in the command.
#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

#[pymodule]
fn _ringtap(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let error = module.py().get_type::<Error>();
    error.setattr("run", module.py().None())?;
    module.add("Error", error)?;
    module.add_class::<run::Run>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<stream::Stream>()?;
    module.add_function(wrap_pyfunction!(state::state_table, module)?)?;
    module.add_function(wrap_pyfunction!(state::state_tables, module)?)?;
    module.add_function(wrap_pyfunction!(stream::stream, module)?)?;
    module.add_function(wrap_pyfunction!(run::monitor, module)?)?;
    module.add_function(wrap_pyfunction!(run::merge, module)?)
}

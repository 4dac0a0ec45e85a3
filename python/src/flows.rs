//! Flow records as an Arrow table, by the Arrow PyCapsule interface. Consumers share the memory.

use std::ffi::CStr;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::Error;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// The flow records of a run, in the order in which flows ended at each worker.
///
/// A table for every library that reads Arrow streams: `pyarrow.table(flows)`, `polars.DataFrame(flows)`, or in DuckDB
/// `select … from flows`. The columns are those of `--write parquet:PATH`.
#[pyclass(frozen, module = "ringtap")]
pub(crate) struct Flows {
    /// At least one.
    batches: Vec<RecordBatch>,
}

impl Flows {
    pub(crate) const fn new(batches: Vec<RecordBatch>) -> Self {
        Self { batches }
    }
}

#[pymethods]
impl Flows {
    /// The table as a capsule with a C stream of record batches; can be called again and again.
    ///
    /// The stream has its own types, whatever `requested_schema` is; the interface allows that.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.batches[0].schema();
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = Box::new(RecordBatchIterator::new(batches, schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
    }

    /// The names and types of the columns as a capsule with a C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.batches[0].schema());
        let schema = schema.map_err(|error| Error::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        let columns = self.batches[0].num_columns();
        format!("<ringtap.Flows: {} rows, {columns} columns>", self.__len__())
    }
}

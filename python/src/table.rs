//! Flow records, and the rows of states, as Arrow tables by the Arrow PyCapsule interface. Consumers share the memory.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, RecordBatchIterator, StringViewArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyType};

use crate::Error;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// A table for every library that reads Arrow streams: `pyarrow.table(flows)`, `polars.DataFrame(flows)`, or in DuckDB
/// `select … from flows`.
///
/// Flow records are in the order in which flows ended at each worker, with the columns of `--write parquet:PATH`.
#[pyclass(frozen, module = "ringtap")]
pub(crate) struct Table {
    /// At least one.
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) const fn new(batches: Vec<RecordBatch>) -> Self {
        Self { batches }
    }
}

/// The batches with text as `string_view`, whose values are views of the same bytes.
pub(crate) fn with_views(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, ArrowError> {
    let viewed = |batch: RecordBatch| {
        let columns: Vec<_> = batch.columns().iter().map(views).collect();
        let fields = batch
            .schema()
            .fields()
            .iter()
            .zip(&columns)
            .map(|(field, column)| of_type(field, column))
            .collect::<Vec<_>>();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    };
    batches.into_iter().map(viewed).collect()
}

/// The field with the type of `column`.
fn of_type(field: &Field, column: &ArrayRef) -> Field {
    field.clone().with_data_type(column.data_type().clone())
}

fn views(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8 => Arc::new(StringViewArray::from(column.as_string::<i32>())),
        DataType::List(_) => {
            let (field, offsets, values, nulls) = column.as_list::<i32>().clone().into_parts();
            let values = views(&values);
            Arc::new(ListArray::new(Arc::new(of_type(&field, &values)), offsets, values, nulls))
        }
        _ => Arc::clone(column),
    }
}

/// The error of a table that cannot be written or read as bytes.
fn failed(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(format!("a pickled table: {error}"))
}

#[pymethods]
impl Table {
    /// A table of the bytes of an Arrow IPC stream, for pickle.
    #[new]
    fn from_ipc(bytes: &[u8]) -> PyResult<Self> {
        let reader = StreamReader::try_new(bytes, None).map_err(failed)?;
        let schema = reader.schema();
        let mut batches = reader.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema));
        }
        Ok(Self { batches })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyBytes>,))> {
        let batches = &slf.get().batches;
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batches[0].schema()).map_err(failed)?;
        for batch in batches {
            writer.write(batch).map_err(failed)?;
        }
        writer.finish().map_err(failed)?;
        drop(writer);
        Ok((slf.get_type(), (PyBytes::new(slf.py(), &bytes),)))
    }

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
        format!("<ringtap.Table: {} rows, {columns} columns>", self.__len__())
    }
}

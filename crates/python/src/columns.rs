//! Result tables as Arrow columns, shared without copying.

use crate::table::TableBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyFloat, PyIterator, PyList, PyTuple};
use std::ffi::CStr;

/// Capsule names of the Arrow PyCapsule interface.
const ARROW_SCHEMA_CAPSULE: &CStr = c"arrow_schema";
const ARROW_STREAM_CAPSULE: &CStr = c"arrow_array_stream";

/// Largest number of rows of a table in a notebook; pandas shows as many.
const SHOWN_ROWS_MAX: usize = 60;

/// Table of results: named columns of equal length.
///
/// pandas, polars, pyarrow, DuckDB and other libraries with the Arrow PyCapsule interface read it
/// without copying.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Columns {
    batch: RecordBatch,
}

impl Columns {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }

    fn column_values<'py>(
        &self,
        py: Python<'py>,
        column: usize,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let array = self.batch.column(column);
        (0..array.len())
            .map(|row| cell_value(py, array, row))
            .collect()
    }

    fn first_rows<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        let schema = self.batch.schema();
        for number in 0..self.batch.num_rows().min(count) {
            let row = PyDict::new(py);
            for (field, column) in schema.fields().iter().zip(self.batch.columns()) {
                row.set_item(field.name(), cell_value(py, column, number)?)?;
            }
            rows.append(row)?;
        }
        Ok(rows)
    }
}

#[pymethods]
impl Columns {
    /// Returns the names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.batch.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// Returns the Arrow type of each column by name: `int64`, `uint64`, `double`, `string` or
    /// `bool`.
    #[getter]
    fn types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let types = PyDict::new(py);
        for field in self.batch.schema().fields() {
            types.set_item(field.name(), arrow_type_name(field.data_type()))?;
        }
        Ok(types)
    }

    /// Returns the number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns a column as a list of Python values; unknown values are `None`.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match self.batch.schema().index_of(name) {
            Ok(column) => self.column_values(py, column),
            Err(_) => Err(PyKeyError::new_err(format!(
                "there is no column `{name}`; there are {}",
                self.column_names().join(", ")
            ))),
        }
    }

    fn __contains__(&self, name: &str) -> bool {
        self.batch.schema().index_of(name).is_ok()
    }

    /// Iterates over the rows, each a dict by column name.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.to_pylist(py)?.try_iter()
    }

    /// Returns the rows as a list of dicts.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.first_rows(py, usize::MAX)
    }

    /// Returns the columns as a dict of lists.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (number, name) in self.column_names().into_iter().enumerate() {
            columns.set_item(name, self.column_values(py, number)?)?;
        }
        Ok(columns)
    }

    /// Creates columns from types and values: the reverse of `to_pydict` and `types`.
    #[staticmethod]
    fn from_pydict(
        columns: &Bound<'_, PyDict>,
        types: std::collections::HashMap<String, String>,
    ) -> PyResult<Self> {
        let mut table = TableBuilder::default();
        let mut rows = None;
        for (name, values) in columns {
            let name: String = name.extract()?;
            let of = types.get(&name).map_or("", String::as_str);
            let length = values.len()?;
            if *rows.get_or_insert(length) != length {
                return Err(PyValueError::new_err(format!(
                    "column `{name}` has {length} values, and the first column another number"
                )));
            }
            table = add_column(table, &name, of, &values)?;
        }
        Ok(table.into_columns())
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Self>().getattr("from_pydict")?;
        let arguments = (self.to_pydict(py)?, self.types(py)?);
        Ok((make, arguments.into_pyobject(py)?))
    }

    /// Returns the schema, for the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, ARROW_SCHEMA_CAPSULE)
    }

    /// Returns the columns as a stream of one batch, for the Arrow PyCapsule interface. A requested
    /// schema other than their own is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface leaves it to whoever gives whether to follow.
        let _ = requested_schema;
        let batches = [Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(reader)),
            ARROW_STREAM_CAPSULE,
        )
    }

    fn __repr__(&self) -> String {
        let rows = match self.batch.num_rows() {
            1 => "1 row".to_owned(),
            rows => format!("{rows} rows"),
        };
        format!("<Columns of {rows}: {}>", self.column_names().join(", "))
    }

    /// Renders the first rows as HTML, for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let cells = |tag: &str, cells: Vec<String>| {
            let cells = cells
                .iter()
                .map(|cell| format!("<{tag}>{}</{tag}>", escape_html(cell)));
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let mut text = format!("<table>{}", cells("th", self.column_names()));
        for row in self.first_rows(py, SHOWN_ROWS_MAX)? {
            let values = row.cast::<PyDict>()?.values();
            let shown = values.iter().map(|value| {
                Ok(match value.is_none() {
                    true => String::new(),
                    // As many digits as anybody reads; the columns have them all.
                    false if value.is_instance_of::<PyFloat>() => {
                        value.call_method1("__format__", (".6g",))?.to_string()
                    }
                    false => value.str()?.to_string(),
                })
            });
            text += &cells("td", shown.collect::<PyResult<_>>()?);
        }
        text += "</table>";
        if self.batch.num_rows() > SHOWN_ROWS_MAX {
            text += &format!("<p>{} rows in all</p>", self.batch.num_rows());
        }
        Ok(text)
    }
}

fn escape_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

fn arrow_type_name(of: &DataType) -> &'static str {
    match of {
        DataType::Int64 => "int64",
        DataType::UInt64 => "uint64",
        DataType::Float64 => "double",
        DataType::Utf8 => "string",
        DataType::Boolean => "bool",
        other => unreachable!("no column is of {other}"),
    }
}

fn cell_value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::UInt64 => array
            .as_primitive::<UInt64Type>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Utf8 => array
            .as_string::<i32>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Boolean => array
            .as_boolean()
            .value(row)
            .into_pyobject(py)?
            .to_owned()
            .into_any(),
        other => unreachable!("no column is of {other}"),
    })
}

fn add_column(
    table: TableBuilder,
    name: &str,
    of: &str,
    values: &Bound<'_, PyAny>,
) -> PyResult<TableBuilder> {
    Ok(match of {
        "int64" => table.integer_column(name, values.extract::<Vec<Option<i64>>>()?.into_iter()),
        "uint64" => table.seed_column(name, values.extract::<Vec<Option<u64>>>()?.into_iter()),
        "double" => table.number_column(name, values.extract::<Vec<Option<f64>>>()?.into_iter()),
        "bool" => table.flag_column(name, values.extract::<Vec<Option<bool>>>()?.into_iter()),
        "string" => {
            let values = values.extract::<Vec<Option<String>>>()?;
            table.text_column(name, values.iter().map(Option::as_deref))
        }
        other => {
            return Err(PyValueError::new_err(format!(
                "column `{name}` has no type, or one of another kind: `{other}`; there are int64, uint64, double, string and bool"
            )));
        }
    })
}

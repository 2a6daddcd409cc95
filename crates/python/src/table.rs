//! Builder of Arrow columns.

use crate::columns::Columns;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use std::sync::Arc;

/// Columns under construction. All are nullable, so that a table has the same types whatever its
/// contents.
#[derive(Default)]
pub(crate) struct TableBuilder {
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl TableBuilder {
    pub(crate) fn text_column<'a, T: Into<Option<&'a str>>>(
        self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        let array: StringArray = values.map(Into::into).collect();
        self.add_column(name, DataType::Utf8, Arc::new(array))
    }

    /// Adds a column of integers. Counts and times are signed, so that differences may be negative.
    pub(crate) fn integer_column<T: Into<Option<i64>>>(
        self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        let array: Int64Array = values.map(Into::into).collect();
        self.add_column(name, DataType::Int64, Arc::new(array))
    }

    /// Adds a column of unsigned integers of 64 bits, for seeds.
    pub(crate) fn seed_column<T: Into<Option<u64>>>(
        self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        let array: UInt64Array = values.map(Into::into).collect();
        self.add_column(name, DataType::UInt64, Arc::new(array))
    }

    pub(crate) fn number_column<T: Into<Option<f64>>>(
        self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        let array: Float64Array = values.map(Into::into).collect();
        self.add_column(name, DataType::Float64, Arc::new(array))
    }

    pub(crate) fn flag_column<T: Into<Option<bool>>>(
        self,
        name: &str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        let array: BooleanArray = values.map(Into::into).collect();
        self.add_column(name, DataType::Boolean, Arc::new(array))
    }

    fn add_column(mut self, name: &str, of: DataType, column: ArrayRef) -> Self {
        self.fields.push(Field::new(name, of, true));
        self.columns.push(column);
        self
    }

    /// Returns the columns.
    ///
    /// # Panics
    ///
    /// If the columns have different lengths.
    pub(crate) fn into_columns(self) -> Columns {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema, self.columns);
        Columns::new(batch.expect("columns of one length"))
    }
}

/// Converts a count or nanoseconds for a column. No value exceeds 2^63.
pub(crate) fn to_signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

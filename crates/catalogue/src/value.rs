//! TOML values with their places in the file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use diskperf_diagnostics::Problem;
use diskperf_diagnostics::{SourceSpan, Text};

#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) value_content: ValueContent,
    pub(crate) span: SourceSpan,
}

/// Content of a TOML value, by type.
#[derive(Debug, Clone)]
pub(crate) enum ValueContent {
    Text(String),
    /// Whole number, saturated if it does not fit; no parameter is that large.
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Date,
    List(Vec<Value>),
    Table(Table),
}

impl ValueContent {
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            ValueContent::Text(_) => "text",
            ValueContent::Integer(_) => "a whole number",
            ValueContent::Float(_) => "a number",
            ValueContent::Boolean(_) => "a flag",
            ValueContent::Date => "a date",
            ValueContent::List(_) => "a list",
            ValueContent::Table(_) => "a table",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TableEntry {
    pub(crate) key_span: SourceSpan,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub(crate) entries: BTreeMap<String, TableEntry>,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&TableEntry> {
        self.entries.get(key)
    }

    /// Returns the text of a key; `None` if the key is absent or has another type.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value.value_content {
            ValueContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the table of a key; `None` if the key is absent or has another type.
    pub(crate) fn table(&self, key: &str) -> Option<&Table> {
        match &self.get(key)?.value.value_content {
            ValueContent::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// Maximum number of reported syntax problems of a file. After the first few, the parser has lost
/// track.
const SYNTAX_PROBLEMS_MAX: usize = 4;

pub(crate) fn parse(text: &Arc<Text>) -> Result<Table, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text.content());
    if errors.is_empty() {
        return Ok(convert_table(table.into_inner(), text, 0));
    }
    let problems = errors.iter().take(SYNTAX_PROBLEMS_MAX).map(|error| {
        let problem = Problem::error(format!("not a valid TOML file: {}", error.message()));
        let place = SourceSpan::new(text, error.span().unwrap_or(0..0));
        problem.at(&place, "")
    });
    Err(problems.collect())
}

/// Parses the value of a setting, which starts at `offset` of its text. Text that is not a TOML
/// value counts as an unquoted string, because users of a shell omit quotes.
pub(crate) fn parse_setting_value(text: &Arc<Text>, offset: usize) -> Value {
    let written = &text.content()[offset..];
    let place = SourceSpan::new(text, offset..text.content().len());
    let plain = || Value {
        value_content: ValueContent::Text(written.to_string()),
        span: place.clone(),
    };
    match DeValue::parse(written) {
        Ok(value) => {
            let content = convert_content(value.into_inner(), text, offset);
            match content {
                ValueContent::Date => plain(),
                content => Value {
                    value_content: content,
                    span: place,
                },
            }
        }
        Err(_) => plain(),
    }
}

fn shift_span(span: Range<usize>, offset: usize) -> Range<usize> {
    span.start + offset..span.end + offset
}

fn convert_table(table: DeTable<'_>, text: &Arc<Text>, offset: usize) -> Table {
    let entries = table
        .into_iter()
        .map(|(key, value)| {
            let place = SourceSpan::new(text, shift_span(key.span(), offset));
            let value = convert_value(value, text, offset);
            (
                key.into_inner().into_owned(),
                TableEntry {
                    key_span: place,
                    value,
                },
            )
        })
        .collect();
    Table { entries }
}

fn convert_value(value: Spanned<DeValue<'_>>, text: &Arc<Text>, offset: usize) -> Value {
    let place = SourceSpan::new(text, shift_span(value.span(), offset));
    Value {
        value_content: convert_content(value.into_inner(), text, offset),
        span: place,
    }
}

fn convert_content(value: DeValue<'_>, text: &Arc<Text>, offset: usize) -> ValueContent {
    match value {
        DeValue::String(string) => ValueContent::Text(string.into_owned()),
        DeValue::Integer(integer) => {
            let parsed = i128::from_str_radix(integer.as_str(), integer.radix());
            let negative = integer.as_str().starts_with('-');
            let saturated = if negative { i128::MIN } else { i128::MAX };
            ValueContent::Integer(parsed.unwrap_or(saturated))
        }
        DeValue::Float(float) => ValueContent::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => ValueContent::Boolean(flag),
        DeValue::Datetime(_) => ValueContent::Date,
        DeValue::Array(items) => ValueContent::List(
            items
                .into_iter()
                .map(|item| convert_value(item, text, offset))
                .collect(),
        ),
        DeValue::Table(table) => ValueContent::Table(convert_table(table, text, offset)),
    }
}

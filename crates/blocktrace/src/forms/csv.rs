//! Parser of tables with named columns, separated by commas, semicolons, tabs or blanks.

use super::block_layer::RwbsFlags;
use super::{LineMeaning, ParseContext, parse_bytes, parse_time_ns, unexpected_field};
use crate::columns::CsvColumns;
use crate::record::{TraceRecord, TracedOperation};

const COLUMNS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Character(u8),
    Whitespace,
}

impl Separator {
    /// Chooses the separator from the first line: of the characters that it contains, the one that
    /// is least likely in a value.
    fn detect(line: &[u8]) -> Self {
        let found = [b',', b'\t', b';']
            .into_iter()
            .find(|byte| line.contains(byte));
        found.map_or(Self::Whitespace, Self::Character)
    }

    /// Splits a line into its columns, as far as `found` has room, and returns the number of all
    /// columns.
    #[inline]
    fn split_columns<'l>(self, line: &'l [u8], found: &mut [&'l [u8]; COLUMNS_MAX]) -> usize {
        let mut count = 0;
        let mut take = |field: &'l [u8]| {
            if count < COLUMNS_MAX {
                found[count] = strip_quotes(field);
            }
            count += 1;
        };
        match self {
            Self::Character(byte) => line.split(|one| *one == byte).for_each(&mut take),
            Self::Whitespace => line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
                .for_each(&mut take),
        }
        count
    }
}

#[inline]
fn strip_quotes(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    match field {
        [b'"', inner @ .., b'"'] => inner,
        field => field,
    }
}

/// Parser of a table with named columns.
#[derive(Clone, Debug)]
pub(crate) struct CsvParser {
    /// Positions of the table's columns, from 0.
    columns: CsvColumns<usize>,
    separator: Separator,
    last_column: usize,
    has_begun: bool,
    /// Whether the first line is a heading. It is one if a column is given by its name.
    has_heading: bool,
}

impl CsvParser {
    /// Creates the parser from the columns and the first line of a table.
    ///
    /// # Errors
    ///
    /// Fails for a column name that is missing in the first line.
    pub(crate) fn new(columns: &CsvColumns, first: &[u8]) -> Result<Self, String> {
        let separator = Separator::detect(first);
        let has_heading = columns.needs_heading();
        let columns = columns.resolve_indices(&split_heading(first))?;
        let all = [
            Some(columns.time.column),
            Some(columns.operation),
            Some(columns.offset.column),
            Some(columns.length.column),
            columns.response.as_ref().map(|response| response.column),
            columns.device,
        ];
        Ok(Self {
            last_column: all.into_iter().flatten().max().unwrap_or(0),
            columns,
            separator,
            has_begun: false,
            has_heading,
        })
    }

    /// Returns the columns if the first line is a heading with usual names.
    pub(crate) fn parse_heading(first: &[u8]) -> Option<CsvColumns> {
        CsvColumns::from_heading(&split_heading(first))
    }

    /// Parses a line of the table. The first line may be a heading.
    #[inline]
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if line.starts_with(b"#") || (is_first && self.has_heading) {
            return Ok(LineMeaning::Heading);
        }
        let mut found = [&line[..0]; COLUMNS_MAX];
        let count = self.separator.split_columns(line, &mut found);
        if count <= self.last_column || self.last_column >= COLUMNS_MAX {
            return Err(format!(
                "the line has {count} columns, and column {} is required",
                self.last_column + 1
            ));
        }
        let columns = &self.columns;
        let at = found[columns.time.column];
        let issued = parse_time_ns("a time", at, columns.time.unit.nanosecond_digits());
        if is_first && issued.is_err() && !at.iter().any(u8::is_ascii_digit) {
            return Ok(LineMeaning::Heading);
        }
        let issued_ns = issued?;
        let response_ns = match &columns.response {
            // Not every request of a table need have an answer.
            Some(response) if found[response.column].is_empty() => None,
            Some(response) => Some(parse_time_ns(
                "a response time",
                found[response.column],
                response.unit.nanosecond_digits(),
            )?),
            None => None,
        };
        let device = columns.device.map_or(&b"0"[..], |column| found[column]);
        let (offset, length) = (&columns.offset, &columns.length);
        Ok(LineMeaning::Request(TraceRecord {
            completed_ns: response_ns.and_then(|response| issued_ns.checked_add(response)),
            operation: parse_operation(found[columns.operation])?,
            device: context.device_index(device),
            offset_bytes: parse_bytes("an address", found[offset.column], offset.unit)?,
            length_bytes: parse_bytes("a length", found[length.column], length.unit)?,
            ..TraceRecord::issued_at(issued_ns)
        }))
    }
}

/// Returns the column names of a heading as text.
fn split_heading(first: &[u8]) -> Vec<&str> {
    let mut found = [&first[..0]; COLUMNS_MAX];
    let count = Separator::detect(first).split_columns(first, &mut found);
    let named = found[..count.min(COLUMNS_MAX)].iter();
    named
        .map(|name| std::str::from_utf8(name).unwrap_or_default())
        .collect()
}

/// Parses an operation as a word, as a letter, or as RWBS letters.
#[inline]
fn parse_operation(word: &[u8]) -> Result<TracedOperation, String> {
    Ok(match word {
        b"R" | b"r" => TracedOperation::Read,
        b"W" | b"w" => TracedOperation::Write,
        _ => match word.to_ascii_lowercase().as_slice() {
            b"read" | b"rd" => TracedOperation::Read,
            b"write" | b"wr" => TracedOperation::Write,
            b"f" | b"flush" | b"sync" | b"fsync" => TracedOperation::Flush,
            b"d" | b"discard" | b"trim" | b"unmap" => TracedOperation::Discard,
            b"z" | b"zeroes" | b"write_zeroes" | b"writezeroes" => TracedOperation::WriteZeroes,
            _ => RwbsFlags::from_rwbs(word)
                .ok()
                .and_then(|asked| asked.operation)
                .ok_or_else(|| {
                    unexpected_field("read, write, flush, discard or write_zeroes", word)
                })?,
        },
    })
}

//! Parser of tables with named columns, separated by commas, semicolons, tabs or blanks.

use super::block_layer::Asked;
use super::{Context, Said, bytes, time, wrong};
use crate::columns::Columns;
use crate::record::{Operation, Record};

const MOST: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Byte(u8),
    Blanks,
}

impl Separator {
    /// Chooses the separator from the first line: of the characters that it contains, the one that
    /// is least likely in a value.
    fn of(line: &[u8]) -> Self {
        let found = [b',', b'\t', b';']
            .into_iter()
            .find(|byte| line.contains(byte));
        found.map_or(Self::Blanks, Self::Byte)
    }

    /// Splits a line into its columns, as far as `found` has room, and returns the number of all
    /// columns.
    #[inline]
    fn columns<'l>(self, line: &'l [u8], found: &mut [&'l [u8]; MOST]) -> usize {
        let mut count = 0;
        let mut take = |field: &'l [u8]| {
            if count < MOST {
                found[count] = plain(field);
            }
            count += 1;
        };
        match self {
            Self::Byte(byte) => line.split(|one| *one == byte).for_each(&mut take),
            Self::Blanks => line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty())
                .for_each(&mut take),
        }
        count
    }
}

/// Strips blanks and quotes around a value.
#[inline]
fn plain(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    match field {
        [b'"', inner @ .., b'"'] => inner,
        field => field,
    }
}

/// Parser of a table with named columns.
#[derive(Clone, Debug)]
pub(crate) struct Csv {
    /// Positions of the table's columns, from 0.
    columns: Columns<usize>,
    separator: Separator,
    last: usize,
    began: bool,
    /// Whether the first line is a heading. It is one if a column is given by its name.
    has_heading: bool,
}

impl Csv {
    /// Creates the parser from the columns and the first line of a table.
    ///
    /// # Errors
    ///
    /// Fails for a column name that is missing in the first line.
    pub(crate) fn new(columns: &Columns, first: &[u8]) -> Result<Self, String> {
        let separator = Separator::of(first);
        let has_heading = columns.have_names();
        let columns = columns.numbers(&names(first))?;
        let all = [
            Some(columns.time.column),
            Some(columns.operation),
            Some(columns.offset.column),
            Some(columns.length.column),
            columns.response.as_ref().map(|response| response.column),
            columns.device,
        ];
        Ok(Self {
            last: all.into_iter().flatten().max().unwrap_or(0),
            columns,
            separator,
            began: false,
            has_heading,
        })
    }

    /// Returns the columns if the first line is a heading with usual names.
    pub(crate) fn heading(first: &[u8]) -> Option<Columns> {
        Columns::of_heading(&names(first))
    }

    /// Parses a line of the table. The first line may be a heading.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        let is_first = !std::mem::replace(&mut self.began, true);
        if line.starts_with(b"#") || (is_first && self.has_heading) {
            return Ok(Said::Aside);
        }
        let mut found = [&line[..0]; MOST];
        let count = self.separator.columns(line, &mut found);
        if count <= self.last || self.last >= MOST {
            return Err(format!(
                "{count} columns, and column {} is wanted",
                self.last + 1
            ));
        }
        let columns = &self.columns;
        let at = found[columns.time.column];
        let issued = time("a time", at, columns.time.unit.digits_of_ns());
        if is_first && issued.is_err() && !at.iter().any(u8::is_ascii_digit) {
            return Ok(Said::Aside);
        }
        let issued_ns = issued?;
        let response_ns = match &columns.response {
            // Not every request of a table need have an answer.
            Some(response) if found[response.column].is_empty() => None,
            Some(response) => Some(time(
                "a response time",
                found[response.column],
                response.unit.digits_of_ns(),
            )?),
            None => None,
        };
        let device = columns.device.map_or(&b"0"[..], |column| found[column]);
        let (offset, length) = (&columns.offset, &columns.length);
        Ok(Said::Request(Record {
            completed_ns: response_ns.and_then(|response| issued_ns.checked_add(response)),
            operation: operation(found[columns.operation])?,
            device: context.device(device),
            offset_bytes: bytes("an address", found[offset.column], offset.unit)?,
            length_bytes: bytes("a length", found[length.column], length.unit)?,
            ..Record::at(issued_ns)
        }))
    }
}

/// Returns the column names of a heading as text.
fn names(first: &[u8]) -> Vec<&str> {
    let mut found = [&first[..0]; MOST];
    let count = Separator::of(first).columns(first, &mut found);
    let named = found[..count.min(MOST)].iter();
    named
        .map(|name| std::str::from_utf8(name).unwrap_or_default())
        .collect()
}

/// Parses an operation as a word, as a letter, or as RWBS letters.
#[inline]
fn operation(word: &[u8]) -> Result<Operation, String> {
    Ok(match word {
        b"R" | b"r" => Operation::Read,
        b"W" | b"w" => Operation::Write,
        _ => match word.to_ascii_lowercase().as_slice() {
            b"read" | b"rd" => Operation::Read,
            b"write" | b"wr" => Operation::Write,
            b"f" | b"flush" | b"sync" | b"fsync" => Operation::Flush,
            b"d" | b"discard" | b"trim" | b"unmap" => Operation::Discard,
            b"z" | b"zeroes" | b"write_zeroes" | b"writezeroes" => Operation::WriteZeroes,
            _ => Asked::of_letters(word)
                .ok()
                .and_then(|asked| asked.operation)
                .ok_or_else(|| wrong("read, write, flush, discard or write_zeroes", word))?,
        },
    })
}

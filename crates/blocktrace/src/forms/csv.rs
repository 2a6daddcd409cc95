//! Comma-separated values with columns that somebody named.

use super::{Context, Said, bytes, time, wrong};
use crate::form::Columns;
use crate::record::{Operation, Record};

/// Named columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Csv {
    columns: Columns,
    last: usize,
    began: bool,
}

impl Csv {
    pub(crate) fn new(columns: Columns) -> Self {
        let of = [
            Some(columns.time.0),
            Some(columns.operation),
            Some(columns.offset.0),
            Some(columns.length.0),
            columns.response.map(|(column, _)| column),
            columns.device,
        ];
        Self {
            columns,
            last: of.into_iter().flatten().max().unwrap_or(1),
            began: false,
        }
    }

    /// What a line says; the first may be a heading.
    #[inline]
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        const MOST: usize = 64;
        let mut found = [&line[..0]; MOST];
        let mut count = 0;
        for field in line.split(|byte| *byte == b',') {
            if count < MOST {
                found[count] = field.trim_ascii();
            }
            count += 1;
        }
        if count < self.last || self.last > MOST {
            return Err(format!(
                "{count} columns, and column {} is wanted",
                self.last
            ));
        }
        let of = |column: usize| found[column - 1];
        let is_first = !std::mem::replace(&mut self.began, true);
        let (column, unit) = self.columns.time;
        let issued = time("a time", of(column), unit.digits_of_ns());
        if is_first && issued.is_err() && !of(column).iter().any(u8::is_ascii_digit) {
            return Ok(Said::Other);
        }
        let issued_ns = issued?;
        let response_ns = match self.columns.response {
            Some((column, unit)) => Some(time("a response time", of(column), unit.digits_of_ns())?),
            None => None,
        };
        let (offset, length) = (self.columns.offset, self.columns.length);
        let device = self.columns.device.map_or(&b"0"[..], of);
        Ok(Said::Request(Record {
            completed_ns: response_ns.and_then(|response| issued_ns.checked_add(response)),
            operation: operation(of(self.columns.operation))?,
            device: context.device(device),
            offset_bytes: bytes("an address", of(offset.0), offset.1)?,
            length_bytes: bytes("a length", of(length.0), length.1)?,
            ..Record::at(issued_ns)
        }))
    }
}

/// As people write it.
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
            _ => return Err(wrong("read, write, flush or discard", word)),
        },
    })
}

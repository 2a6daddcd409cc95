//! Parser of fio's iologs, versions 2 and 3.

use super::{
    LineMeaning, ParseContext, parse_number, parse_time_ns, split_words, unexpected_field,
};
use crate::record::{TraceRecord, TracedOperation};

/// Parser of an iolog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IologParser {
    has_timestamps: bool,
    /// Time reached by `wait` lines of version 2, in nanoseconds.
    elapsed_ns: u64,
    has_begun: bool,
}

impl IologParser {
    /// Creates the parser for version 3 if `has_times` is set, else for version 2.
    pub(crate) fn new(has_times: bool) -> Self {
        Self {
            has_timestamps: has_times,
            ..Self::default()
        }
    }

    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        if line.starts_with(b"fio version ") {
            if self.has_begun {
                return Err(
                    "a second header: fio appended to an existing log; split the file before this \
                     line"
                        .to_owned(),
                );
            }
            self.has_begun = true;
            return Ok(LineMeaning::Heading);
        }
        let (found, count) = split_words::<5>(line);
        let (at_ns, [file, what, offset, length]) = match self.has_timestamps {
            true => (
                Some(parse_time_ns("a time in microseconds", found[0], 3)?),
                [found[1], found[2], found[3], found[4]],
            ),
            false => (None, [found[0], found[1], found[2], found[3]]),
        };
        let wanted = usize::from(self.has_timestamps);
        let operation = match (what, count - wanted.min(count)) {
            (b"add" | b"open" | b"close", 2) => return Ok(LineMeaning::Heading),
            (b"wait", 3 | 4) if !self.has_timestamps => {
                // Documented as us since the last one; fio sleeps until so many ms from its
                // start.
                let until_ns = super::parse_bytes("a time in ms", offset, 1_000_000)?;
                self.elapsed_ns = self.elapsed_ns.max(until_ns);
                return Ok(LineMeaning::Heading);
            }
            (b"read", 4) => TracedOperation::Read,
            (b"write", 4) => TracedOperation::Write,
            (b"sync" | b"datasync" | b"sync_file_range", 2..=4) => TracedOperation::Flush,
            (b"trim", 4) => TracedOperation::Discard,
            (b"read" | b"write" | b"trim", count) => {
                return Err(format!(
                    "the line has {count} words instead of FILE {} OFFSET LENGTH, without blanks \
                     in FILE",
                    String::from_utf8_lossy(what)
                ));
            }
            _ => {
                return Err(unexpected_field(
                    "add, open, close, read, write, sync, datasync, sync_file_range, trim or wait",
                    what,
                ));
            }
        };
        let is_flush = operation == TracedOperation::Flush;
        let of = |what, word: &[u8]| match is_flush {
            true => Ok(0),
            false => parse_number(what, word),
        };
        Ok(LineMeaning::Request(TraceRecord {
            operation,
            device: context.device_index(file),
            offset_bytes: of("an offset in bytes", offset)?,
            length_bytes: of("a length in bytes", length)?,
            ..TraceRecord::issued_at(at_ns.unwrap_or(self.elapsed_ns))
        }))
    }
}

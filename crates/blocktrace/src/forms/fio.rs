//! Parser of fio's iologs, versions 2 and 3.

use super::{LineMeaning, ParseContext, parse_number, parse_time_ns, split_words, unexpected_word};
use crate::record::{Operation, Record};

/// Parser of an iolog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FioIolog {
    has_times: bool,
    /// Time reached by `wait` lines of version 2, in nanoseconds.
    wait_ns_total: u64,
    has_begun: bool,
}

impl FioIolog {
    /// Creates the parser for version 3 if `has_times` is set, else for version 2.
    pub(crate) fn new(has_times: bool) -> Self {
        Self {
            has_times,
            ..Self::default()
        }
    }

    /// Parses a line of an iolog.
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
            return Ok(LineMeaning::NoRequest);
        }
        let (found, count) = split_words::<5>(line);
        let (at_ns, [file, what, offset, length]) = match self.has_times {
            true => (
                Some(parse_time_ns("a time in microseconds", found[0], 3)?),
                [found[1], found[2], found[3], found[4]],
            ),
            false => (None, [found[0], found[1], found[2], found[3]]),
        };
        let wanted = usize::from(self.has_times);
        let operation = match (what, count - wanted.min(count)) {
            (b"add" | b"open" | b"close", 2) => return Ok(LineMeaning::NoRequest),
            (b"wait", 3 | 4) if !self.has_times => {
                // Documented as us since the last one; fio sleeps until so many ms from its
                // start.
                let until_ns = super::parse_bytes("a time in ms", offset, 1_000_000)?;
                self.wait_ns_total = self.wait_ns_total.max(until_ns);
                return Ok(LineMeaning::NoRequest);
            }
            (b"read", 4) => Operation::Read,
            (b"write", 4) => Operation::Write,
            (b"sync" | b"datasync" | b"sync_file_range", 2..=4) => Operation::Flush,
            (b"trim", 4) => Operation::Discard,
            (b"read" | b"write" | b"trim", count) => {
                return Err(format!(
                    "the line has {count} words instead of FILE {} OFFSET LENGTH, without blanks \
                     in FILE",
                    String::from_utf8_lossy(what)
                ));
            }
            _ => {
                return Err(unexpected_word(
                    "add, open, close, read, write, sync, datasync, sync_file_range, trim or wait",
                    what,
                ));
            }
        };
        let is_flush = operation == Operation::Flush;
        let of = |what, word: &[u8]| match is_flush {
            true => Ok(0),
            false => parse_number(what, word),
        };
        Ok(LineMeaning::Request(Record {
            operation,
            device: context.device_index(file),
            offset_bytes: of("an offset in bytes", offset)?,
            length_bytes: of("a length in bytes", length)?,
            ..Record::new_at(at_ns.unwrap_or(self.wait_ns_total))
        }))
    }
}

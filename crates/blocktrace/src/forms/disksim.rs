//! Parsers of DiskSim's ASCII format, of MQSim's format with the same columns, and of DiskSim's
//! `validate` format.

use super::{
    LineMeaning, ParseContext, SECTOR_BYTES, parse_bytes, parse_number, parse_time_ns, split_words,
    unexpected_field,
};
use crate::form::TimeUnit;
use crate::number::parse_hexadecimal;
use crate::record::{TraceRecord, TracedOperation};

/// Position of the pause that a line of a `validate` trace gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkPosition {
    /// Pause between the request of the line and the next request.
    AfterCompletion,
    /// Pause between the previous request and the request of the line.
    BeforeIssue,
}

/// Parser of a DiskSim or MQSim trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskSimParser {
    /// Lines with time, device, block, block count and flags. Times are in this unit.
    OpenTrace(TimeUnit),
    /// Lines of `validate` with operation, mark, block, block count, service time and pause in
    /// microseconds, for one request at a time.
    ValidateTrace(ValidateParser),
}

impl DiskSimParser {
    pub(crate) fn new_validate(pause: ThinkPosition) -> Self {
        Self::ValidateTrace(ValidateParser {
            think_position: pause,
            next_issue_ns: 0,
            think_ns: None,
        })
    }

    /// Parses a line of DiskSim or MQSim.
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        match self {
            Self::OpenTrace(unit) => parse_open_line(line, *unit, context),
            Self::ValidateTrace(validate) => validate.parse_line(line, context),
        }
    }
}

/// Parser of a `validate` trace, with its progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidateParser {
    think_position: ThinkPosition,
    /// Time of issue of the next request in nanoseconds, without its own pause.
    next_issue_ns: u64,
    /// Pause of the previous line in nanoseconds. `None` before the first line.
    think_ns: Option<u64>,
}

/// Parses an open-loop line such as `12.345 0 70336 16 1`.
fn parse_open_line(
    line: &[u8],
    unit: TimeUnit,
    context: &mut ParseContext,
) -> Result<LineMeaning, String> {
    let ([at, device, block, blocks, flags], count) = split_words::<5>(line);
    if count != 5 {
        return Err(format!(
            "the line has {count} columns instead of time, device, block, blocks and flags"
        ));
    }
    let flags =
        parse_hexadecimal(flags).ok_or_else(|| unexpected_field("hexadecimal flags", flags))?;
    let operation = match flags & 1 {
        1 => TracedOperation::Read,
        _ => TracedOperation::Write,
    };
    Ok(LineMeaning::Request(TraceRecord {
        operation,
        device: context.device_index(device),
        offset_bytes: parse_bytes("a block", block, SECTOR_BYTES)?,
        length_bytes: parse_bytes("a number of blocks", blocks, SECTOR_BYTES)?,
        ..TraceRecord::issued_at(parse_time_ns("a time", at, unit.nanosecond_digits())?)
    }))
}

impl ValidateParser {
    /// Parses a `validate` line such as `R Miss 70336 16 12500.0 8000.0`.
    fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let ([what, _, block, blocks, service, pause], count) = split_words::<6>(line);
        if count != 6 {
            return Err(format!(
                "the line has {count} columns instead of operation, mark, block, blocks, service \
                 time and pause"
            ));
        }
        let operation = match what {
            b"R" => TracedOperation::Read,
            b"W" => TracedOperation::Write,
            _ => return Err(unexpected_field("R or W", what)),
        };
        let service_ns = parse_time_ns("a service time in microseconds", service, 3)?;
        let pause_ns = parse_time_ns("a pause in microseconds", pause, 3)?;
        let (issued_ns, think_ns) = self.next_issue(service_ns, pause_ns)?;
        Ok(LineMeaning::Request(TraceRecord {
            operation,
            completed_ns: Some(issued_ns + service_ns),
            think_ns,
            device: context.device_index(b"0"),
            offset_bytes: parse_bytes("a block", block, SECTOR_BYTES)?,
            length_bytes: parse_number("a number of blocks", blocks)?
                .checked_mul(SECTOR_BYTES)
                .ok_or("a length beyond 2^64 bytes")?,
            ..TraceRecord::issued_at(issued_ns)
        }))
    }

    /// Returns the time of issue of a request, and the pause before it, which is `None` for the
    /// first request.
    fn next_issue(&mut self, service_ns: u64, pause_ns: u64) -> Result<(u64, Option<u64>), String> {
        let is_first = self.think_ns.is_none();
        let think_ns = match self.think_position {
            ThinkPosition::AfterCompletion => self.think_ns,
            ThinkPosition::BeforeIssue => (!is_first).then_some(pause_ns),
        };
        self.think_ns = Some(pause_ns);
        let (before_ns, after_ns) = match self.think_position {
            ThinkPosition::AfterCompletion => (0, pause_ns),
            ThinkPosition::BeforeIssue => (think_ns.unwrap_or(0), 0),
        };
        let issued_ns = self.next_issue_ns.checked_add(before_ns);
        let completed_ns = issued_ns.and_then(|at| at.checked_add(service_ns));
        let next_ns = completed_ns.and_then(|at| at.checked_add(after_ns));
        const TIMES_TOO_LONG: &str = "the times add up to more than 584 years";
        self.next_issue_ns = next_ns.ok_or(TIMES_TOO_LONG)?;
        Ok((issued_ns.ok_or(TIMES_TOO_LONG)?, think_ns))
    }
}

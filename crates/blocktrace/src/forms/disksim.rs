//! Parsers of DiskSim's ASCII format, of MQSim's format with the same columns, and of DiskSim's
//! `validate` format.

use super::{Context, SECTOR_BYTES, Said, bytes, number, time, words, wrong};
use crate::form::TimeUnit;
use crate::number::hexadecimal;
use crate::record::{Operation, Record};

/// Position of the pause that a line of a `validate` trace gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Pause between the request of the line and the next request.
    After,
    /// Pause between the previous request and the request of the line.
    Before,
}

/// Parser of a DiskSim or MQSim trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskSim {
    /// Lines with time, device, block, block count and flags. Times are in this unit.
    Open(TimeUnit),
    /// Lines of `validate` with operation, mark, block, block count, service time and pause in
    /// microseconds, for one request at a time.
    Validate(Validate),
}

impl DiskSim {
    /// Creates the parser of a `validate` trace.
    pub(crate) fn validate(pause: Pause) -> Self {
        Self::Validate(Validate {
            pause,
            next_ns: 0,
            think_ns: None,
        })
    }

    /// Parses a line of DiskSim or MQSim.
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        match self {
            Self::Open(unit) => open(line, *unit, context),
            Self::Validate(validate) => validate.line(line, context),
        }
    }
}

/// Parser of a `validate` trace, with its progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validate {
    pause: Pause,
    /// Time of issue of the next request in nanoseconds, without its own pause.
    next_ns: u64,
    /// Pause of the previous line in nanoseconds. `None` before the first line.
    think_ns: Option<u64>,
}

/// Parses an open-loop line such as `12.345 0 70336 16 1`.
fn open(line: &[u8], unit: TimeUnit, context: &mut Context) -> Result<Said, String> {
    let ([at, device, block, blocks, flags], count) = words::<5>(line);
    if count != 5 {
        return Err(format!(
            "{count} columns; time, device, block, blocks and flags are wanted"
        ));
    }
    let flags = hexadecimal(flags).ok_or_else(|| wrong("hexadecimal flags", flags))?;
    let operation = match flags & 1 {
        1 => Operation::Read,
        _ => Operation::Write,
    };
    Ok(Said::Request(Record {
        operation,
        device: context.device(device),
        offset_bytes: bytes("a block", block, SECTOR_BYTES)?,
        length_bytes: bytes("a number of blocks", blocks, SECTOR_BYTES)?,
        ..Record::at(time("a time", at, unit.digits_of_ns())?)
    }))
}

impl Validate {
    /// Parses a `validate` line such as `R Miss 70336 16 12500.0 8000.0`.
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        let ([what, _, block, blocks, service, pause], count) = words::<6>(line);
        if count != 6 {
            return Err(format!(
                "{count} columns; what, mark, block, blocks, service and pause are wanted"
            ));
        }
        let operation = match what {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            _ => return Err(wrong("R or W", what)),
        };
        let service_ns = time("a service time in microseconds", service, 3)?;
        let pause_ns = time("a pause in microseconds", pause, 3)?;
        let (issued_ns, think_ns) = self.issue(service_ns, pause_ns)?;
        Ok(Said::Request(Record {
            operation,
            completed_ns: Some(issued_ns + service_ns),
            think_ns,
            device: context.device(b"0"),
            offset_bytes: bytes("a block", block, SECTOR_BYTES)?,
            length_bytes: number("a number of blocks", blocks)?
                .checked_mul(SECTOR_BYTES)
                .ok_or("a length beyond 2^64 bytes")?,
            ..Record::at(issued_ns)
        }))
    }

    /// Returns the time of issue of a request, and the pause before it, which is `None` for the
    /// first request.
    fn issue(&mut self, service_ns: u64, pause_ns: u64) -> Result<(u64, Option<u64>), String> {
        let is_first = self.think_ns.is_none();
        let think_ns = match self.pause {
            Pause::After => self.think_ns,
            Pause::Before => (!is_first).then_some(pause_ns),
        };
        self.think_ns = Some(pause_ns);
        let (before_ns, after_ns) = match self.pause {
            Pause::After => (0, pause_ns),
            Pause::Before => (think_ns.unwrap_or(0), 0),
        };
        let issued_ns = self.next_ns.checked_add(before_ns);
        let completed_ns = issued_ns.and_then(|at| at.checked_add(service_ns));
        let next_ns = completed_ns.and_then(|at| at.checked_add(after_ns));
        const TOO_LONG: &str = "the times come to more than 584 years";
        self.next_ns = next_ns.ok_or(TOO_LONG)?;
        Ok((issued_ns.ok_or(TOO_LONG)?, think_ns))
    }
}

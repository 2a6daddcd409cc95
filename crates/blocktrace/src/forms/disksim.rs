//! DiskSim's ASCII form, MQSim's, which has the same columns, and DiskSim's `validate`.

use super::{Context, SECTOR_BYTES, Said, bytes, number, time, words, wrong};
use crate::form::TimeUnit;
use crate::number::hexadecimal;
use crate::record::{Operation, Record};

/// Where the pause of a line of `validate` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Between the request and the next one.
    After,
    /// Between the one before and the request.
    Before,
}

/// One of these forms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskSim {
    /// Time, device, block, blocks, flags, with times in this unit.
    Open(TimeUnit),
    /// What, mark, block, blocks, service and pause in us: one request at a time.
    Validate(Validate),
}

impl DiskSim {
    /// `validate`, at its beginning.
    pub(crate) fn validate(pause: Pause) -> Self {
        Self::Validate(Validate {
            pause,
            next_ns: 0,
            think_ns: None,
        })
    }

    /// What a line says.
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        match self {
            Self::Open(unit) => open(line, *unit, context),
            Self::Validate(validate) => validate.line(line, context),
        }
    }
}

/// How far a trace of `validate` has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validate {
    pause: Pause,
    /// When the next request is issued, but for a pause of its own.
    next_ns: u64,
    /// The pause of the line before; nothing before the first line.
    think_ns: Option<u64>,
}

/// `12.345 0 70336 16 1`.
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
    /// `R Miss 70336 16 12500.0 8000.0`.
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

    /// When a request is issued, and the pause before it: none before the first.
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

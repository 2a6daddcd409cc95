//! DiskSim's ASCII form, MQSim's, which has the same columns, and DiskSim's `validate`.

use super::{Context, SECTOR_BYTES, Said, bytes, number, time, words, wrong};
use crate::form::TimeUnit;
use crate::number::hexadecimal;
use crate::record::{Operation, Record};

/// One of these forms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskSim {
    /// Time, device, block, blocks, flags, with times in this unit.
    Open(TimeUnit),
    /// What, mark, block, blocks, service and pause in us: one request at a time.
    Validate {
        /// When the next request is issued.
        next_ns: u64,
        /// The pause before it.
        think_ns: Option<u64>,
    },
}

impl DiskSim {
    /// `validate`, at its beginning.
    pub(crate) const VALIDATE: Self = Self::Validate {
        next_ns: 0,
        think_ns: None,
    };

    /// What a line says.
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        match self {
            Self::Open(unit) => open(line, *unit, context),
            Self::Validate { next_ns, think_ns } => validate(line, (next_ns, think_ns), context),
        }
    }
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

/// `R Miss 70336 16 12500.0 8000.0`.
fn validate(
    line: &[u8],
    (next_ns, think_ns): (&mut u64, &mut Option<u64>),
    context: &mut Context,
) -> Result<Said, String> {
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
    let issued_ns = *next_ns;
    let completed_ns = issued_ns.checked_add(service_ns);
    let next = completed_ns.and_then(|at| at.checked_add(pause_ns));
    *next_ns = next.ok_or("the times come to more than 584 years")?;
    let record = Record {
        operation,
        completed_ns,
        think_ns: *think_ns,
        device: context.device(b"0"),
        offset_bytes: bytes("a block", block, SECTOR_BYTES)?,
        length_bytes: number("a number of blocks", blocks)?
            .checked_mul(SECTOR_BYTES)
            .ok_or("a length beyond 2^64 bytes")?,
        ..Record::at(issued_ns)
    };
    *think_ns = Some(pause_ns);
    Ok(Said::Request(record))
}

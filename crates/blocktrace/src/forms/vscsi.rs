//! Parsers of CloudPhysics' traces of VMware's vscsiStats: binary, versions 1 and 2, and as text.

use super::{
    LineMeaning, ParseContext, SECTOR_BYTES, parse_bytes, parse_number, parse_time_ns,
    split_fields, unexpected_field,
};
use crate::number::parse_hexadecimal;
use crate::record::{TraceRecord, TracedOperation};

/// Parser of a binary vscsiStats trace of version 1 or 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VscsiParser {
    is_second_version: bool,
}

impl VscsiParser {
    /// Creates the parser from the first two records, which show the version. Returns `None` if
    /// they fit neither.
    pub(crate) fn from_head(head: &[u8]) -> Option<Self> {
        let version = |bytes: &[u8], at: usize| bytes.get(at + 1).copied();
        let is_io = |bytes: &[u8], at: usize| {
            let command = bytes
                .get(at..at + 2)
                .map(|two| u16::from_le_bytes([two[0], two[1]]));
            command.is_some_and(|command| parse_command(u64::from(command)).is_some())
        };
        let second = version(head, 2) == Some(2) && version(head, 42).is_none_or(|of| of == 2);
        if second && is_io(head, 0) {
            return Some(Self {
                is_second_version: true,
            });
        }
        let first = version(head, 14) == Some(1) && version(head, 46).is_none_or(|of| of == 1);
        (first && is_io(head, 12)).then_some(Self {
            is_second_version: false,
        })
    }

    /// Returns the bytes of a vscsiStats record.
    pub(crate) fn record_bytes(self) -> usize {
        if self.is_second_version { 40 } else { 32 }
    }

    pub(crate) fn parse_record(
        self,
        record: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let u16_at = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|of| record[at + of]));
        let u64_at =
            |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|of| record[at + of]));
        let (command, version, length, block, us, response_us) = match self.is_second_version {
            true => (
                u16_at(0),
                u16_at(2),
                u32_at(8),
                u64_at(16),
                u64_at(24),
                Some(u64_at(32)),
            ),
            false => (
                u16_at(12),
                u16_at(14),
                u32_at(4),
                u64_at(16),
                u64_at(24),
                None,
            ),
        };
        if version >> 8 != if self.is_second_version { 2 } else { 1 } {
            return Err(format!(
                "the record has version {}, unlike the records before it",
                version >> 8
            ));
        }
        let Some(operation) = parse_command(u64::from(command)) else {
            return Ok(context.ignore_line("a command that moves no data"));
        };
        let ns = |us: u64| us.checked_mul(1000).ok_or("the time exceeds 584 years");
        let issued_ns = ns(us)?;
        let response_ns = response_us.map(ns).transpose()?;
        let offset = block.checked_mul(SECTOR_BYTES);
        Ok(LineMeaning::Request(TraceRecord {
            operation,
            completed_ns: response_ns.and_then(|response| issued_ns.checked_add(response)),
            device: context.device_index(b"0"),
            offset_bytes: offset.ok_or_else(|| {
                format!(
                    "block {block} is beyond the end of any \
            disk"
                )
            })?,
            length_bytes: u64::from(length),
            ..TraceRecord::issued_at(issued_ns)
        }))
    }
}

/// Returns the operation of a SCSI command: READ and WRITE of 6, 10, 12 and 16 bytes. `None` for
/// other commands.
fn parse_command(command: u64) -> Option<TracedOperation> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(TracedOperation::Read),
        0x0a | 0x2a | 0xaa | 0x8a => Some(TracedOperation::Write),
        _ => None,
    }
}

/// Parser of vscsiStats text, `version,time,op,size,lbn`, with the operation in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VscsiCsvParser;

impl VscsiCsvParser {
    pub(crate) fn parse_line(
        self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let [version, us, command, length, block] = split_fields(line)?;
        if version == b"version" {
            return Ok(LineMeaning::Heading);
        }
        if !matches!(version, b"1" | b"2") {
            return Err(unexpected_field("version 1 or 2", version));
        }
        let command =
            parse_hexadecimal(command).ok_or_else(|| unexpected_field("a command", command))?;
        let Some(operation) = parse_command(command) else {
            return Ok(context.ignore_line("a command that moves no data"));
        };
        Ok(LineMeaning::Request(TraceRecord {
            operation,
            device: context.device_index(b"0"),
            offset_bytes: parse_bytes("a block", block, SECTOR_BYTES)?,
            length_bytes: parse_number("a length in bytes", length)?,
            ..TraceRecord::issued_at(parse_time_ns("a time in microseconds", us, 3)?)
        }))
    }
}

//! Parser of the table of `biosnoop`, from bcc or its libbpf tools, with one line for each
//! completion.

use super::block_layer::RwbsFlags;
use super::{
    LineMeaning, ParseContext, SECTOR_BYTES, parse_bytes, parse_number, parse_time_ns,
    unexpected_field,
};
use crate::record::{TraceRecord, TracedOperation};

/// Parser of a biosnoop table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BiosnoopParser {
    columns: Option<HeadingColumns>,
}

/// Positions of the table's columns, counted from the right, because the name of a process may
/// contain blanks.
#[derive(Clone, Copy, Debug)]
struct HeadingColumns {
    disk: usize,
    operation: usize,
    sector: usize,
    bytes: usize,
    queued_time: Option<usize>,
    latency: usize,
    /// Number of columns in the heading, one word each.
    column_count: usize,
}

/// Offset that is added to all times of a table, so that requests issued before the tracer started
/// have positive times.
const START_NS: u64 = 3600 * 1_000_000_000;

const WORDS_MAX: usize = 32;

impl HeadingColumns {
    /// Finds the columns in the table's heading.
    ///
    /// # Errors
    ///
    /// Fails if a column that a request needs is missing.
    fn from_heading(names: &[&[u8]]) -> Result<Self, String> {
        let at = |name: &[u8]| {
            let from_left = names.iter().position(|one| *one == name);
            from_left.map(|at| names.len() - 1 - at)
        };
        let wanted = |name: &'static str| {
            at(name.as_bytes()).ok_or_else(|| {
                format!(
                    "the table has no column {name}, which the requests need: bpftrace's biosnoop \
                     does not print it; record with biosnoop of bcc, or with `diskperf record`"
                )
            })
        };
        Ok(Self {
            sector: wanted("SECTOR")?,
            bytes: wanted("BYTES")?,
            operation: wanted("T")?,
            disk: wanted("DISK")?,
            latency: wanted("LAT(ms)")?,
            queued_time: at(b"QUE(ms)"),
            column_count: names.len(),
        })
    }
}

impl BiosnoopParser {
    /// Parses a line of the table: the heading or a request.
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let all = line.split(u8::is_ascii_whitespace);
        let mut found = [&line[..0]; WORDS_MAX];
        let mut count = 0;
        for word in all.filter(|word| !word.is_empty()) {
            let place = found.get_mut(count).ok_or("the line has too many words")?;
            *place = word;
            count += 1;
        }
        let found = &found[..count];
        if let [b"TIME(s)" | b"TIME(ms)", ..] = found {
            self.columns = Some(HeadingColumns::from_heading(found)?);
            return match found[0] {
                b"TIME(s)" => Ok(LineMeaning::Heading),
                _ => Err("its times are in ms: record with biosnoop of bcc".to_owned()),
            };
        }
        if [&b"Tracing "[..], b"Attaching ", b"Possibly lost "]
            .iter()
            .any(|said| line.starts_with(said))
        {
            return Ok(LineMeaning::Heading);
        }
        let columns = self.columns.ok_or(
            "the line has no heading `TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)` before \
            it",
        )?;
        if count < columns.column_count {
            let wanted = columns.column_count;
            return Err(format!(
                "the line has {count} columns, and the heading has {wanted}"
            ));
        }
        let of = |from_right: usize| found[count - 1 - from_right];
        let ms = |what, column| parse_time_ns(what, of(column), 6);
        let completed_ns = parse_time_ns("a time in seconds", found[0], 9)?;
        let took_ns = ms("a latency in ms", columns.latency)?;
        let queued_ns = columns
            .queued_time
            .map_or(Ok(0), |column| ms("a time in the queue in ms", column))?;
        let asked = RwbsFlags::from_rwbs(of(columns.operation))?;
        let length_bytes = parse_number("a number of bytes", of(columns.bytes))?;
        let operation = match asked.operation {
            Some(TracedOperation::Write) if length_bytes == 0 => TracedOperation::Flush,
            Some(operation) if length_bytes > 0 || operation == TracedOperation::Flush => operation,
            _ => return Ok(context.ignore_line(super::block_layer::NO_DATA_TRANSFER)),
        };
        let offset_bytes = match operation {
            TracedOperation::Flush => 0,
            _ => parse_bytes("a sector", of(columns.sector), SECTOR_BYTES)?,
        };
        let completed_ns = completed_ns.checked_add(START_NS);
        let issued_ns = completed_ns.and_then(|at| at.checked_sub(took_ns)?.checked_sub(queued_ns));
        let issued_ns = issued_ns.ok_or_else(|| unexpected_field("a latency that fits", line))?;
        Ok(LineMeaning::Request(TraceRecord {
            completed_ns,
            operation,
            fua: asked.fua,
            sync: asked.sync,
            device: context.device_index(of(columns.disk)),
            offset_bytes,
            length_bytes,
            ..TraceRecord::issued_at(issued_ns)
        }))
    }
}

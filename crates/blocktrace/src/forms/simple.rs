//! Parsers of formats with one independent line per request: MSR, SPC, Systor '17, Alibaba and
//! Tencent.

use super::{
    LineMeaning, ParseContext, SECTOR_BYTES, parse_bytes, parse_number, parse_time_ns,
    split_fields, unexpected_field,
};
use crate::form::Form;
use crate::record::{TraceRecord, TracedOperation};

/// Parser of a trace with one independent line per request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CsvLineParser {
    form: Form,
    /// Whether a request was read already. A heading can only precede all requests.
    has_begun: bool,
}

/// Tick of the Windows clock, in nanoseconds.
const FILETIME_TICK_NS: u64 = 100;
/// Ticks of the Windows clock from 1601, its origin, to 1970.
const FILETIME_TICKS_TO_1970: u64 = 116_444_736_000_000_000;

impl CsvLineParser {
    pub(crate) fn new(form: Form) -> Self {
        let has_begun = false;
        Self { form, has_begun }
    }

    /// Parses a line of a trace of MSR, SPC, Systor '17, Alibaba or Tencent.
    #[inline]
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        if !self.has_begun && is_heading(line) {
            return self.parse_heading(line);
        }
        let said = match self.form {
            Form::Msr => parse_msr_line(line, context),
            Form::Spc => parse_spc_line(line, context),
            Form::Systor17 => parse_systor17_line(line, context),
            Form::Alibaba => parse_alibaba_line(line, context),
            _ => parse_tencent_line(line, context),
        }?;
        self.has_begun = true;
        Ok(said)
    }

    /// Handles a heading. It is ignored, unless its time column is elsewhere than in the format,
    /// which is an error.
    fn parse_heading(self, line: &[u8]) -> Result<LineMeaning, String> {
        let columns = line.split(|byte| *byte == b',');
        let mut times = columns
            .zip(1..)
            .filter(|(name, _)| is_time_column(name))
            .peekable();
        let column = match self.form {
            Form::Spc | Form::Alibaba => 5,
            _ => 1,
        };
        let has_none = times.peek().is_none();
        match has_none || times.any(|(_, number)| number == column) {
            true => Ok(LineMeaning::Heading),
            false => Err(format!(
                "the heading has its time in a column other than {column}, unlike {}",
                self.form
            )),
        }
    }
}

/// Reports whether a column holds the time of issue, by its name: `Timestamp` does, `ResponseTime`
/// does not.
fn is_time_column(name: &[u8]) -> bool {
    let name = name.trim_ascii().to_ascii_lowercase();
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part == word);
    has(b"time")
        && ![&b"response"[..], b"latency", b"service"]
            .into_iter()
            .any(has)
}

/// Reports whether a line is a heading: it has several columns and no digit.
fn is_heading(line: &[u8]) -> bool {
    line.contains(&b',') && !line.iter().any(u8::is_ascii_digit)
}

fn parse_operation(word: &[u8]) -> Result<TracedOperation, String> {
    match word {
        b"R" | b"r" | b"Read" | b"read" => Ok(TracedOperation::Read),
        b"W" | b"w" | b"Write" | b"write" => Ok(TracedOperation::Write),
        _ => Err(unexpected_field("a read or a write", word)),
    }
}

/// Parses a line of MSR, such as `128166400000000000,web,0,Write,8192,4096,1500`: ticks, host,
/// disk, operation, offset and length in bytes, response time in ticks.
fn parse_msr_line(line: &[u8], context: &mut ParseContext) -> Result<LineMeaning, String> {
    let [ticks, host, disk, what, offset, length, response] = split_fields(line)?;
    let ticks = parse_number("a time in ticks of 100 ns", ticks)?;
    let since_1970 = ticks
        .checked_sub(FILETIME_TICKS_TO_1970)
        .ok_or("the time is before 1970: Windows counts ticks of 100 ns from 1601")?;
    let issued_ns = since_1970
        .checked_mul(FILETIME_TICK_NS)
        .ok_or("the time is after the year 2554")?;
    let response_ns = parse_bytes("a response time in ticks", response, FILETIME_TICK_NS)?;
    let name = [host, b".", disk].concat();
    Ok(LineMeaning::Request(TraceRecord {
        completed_ns: issued_ns.checked_add(response_ns),
        device: context.device_index(&name),
        operation: parse_operation(what)?,
        offset_bytes: parse_number("an offset in bytes", offset)?,
        length_bytes: parse_number("a length in bytes", length)?,
        ..TraceRecord::issued_at(issued_ns)
    }))
}

/// Parses a line of SPC, such as `0,20941264,8192,W,0.551706`: unit, sector, length in bytes,
/// operation, seconds.
fn parse_spc_line(line: &[u8], context: &mut ParseContext) -> Result<LineMeaning, String> {
    let [unit, sector, length, what, seconds] = split_fields(line)?;
    Ok(LineMeaning::Request(TraceRecord {
        device: context.device_index(unit),
        operation: parse_operation(what)?,
        offset_bytes: parse_bytes("a sector", sector, SECTOR_BYTES)?,
        length_bytes: parse_number("a length in bytes", length)?,
        ..TraceRecord::issued_at(parse_time_ns("a time in seconds", seconds, 9)?)
    }))
}

/// Parses a line of Systor '17, `Timestamp,Response,IOType,LUN,Offset,Size`: seconds, response time
/// in seconds, operation, LUN, offset and length in bytes.
fn parse_systor17_line(line: &[u8], context: &mut ParseContext) -> Result<LineMeaning, String> {
    let [seconds, response, what, lun, offset, length] = split_fields(line)?;
    if what.is_empty() {
        return Ok(context.ignore_line("without an answer, and so without what it was"));
    }
    let issued_ns = parse_time_ns("a time in seconds", seconds, 9)?;
    let response_ns = match response {
        b"" => None,
        word => Some(parse_time_ns("a response time in seconds", word, 9)?),
    };
    Ok(LineMeaning::Request(TraceRecord {
        completed_ns: response_ns.and_then(|response| issued_ns.checked_add(response)),
        device: context.device_index(lun),
        operation: parse_operation(what)?,
        offset_bytes: parse_number("an offset in bytes", offset)?,
        length_bytes: parse_number("a length in bytes", length)?,
        ..TraceRecord::issued_at(issued_ns)
    }))
}

/// Parses a line of Alibaba, such as `12,W,126976,4096,1577808000000411`: device, operation, offset
/// and length in bytes, microseconds.
fn parse_alibaba_line(line: &[u8], context: &mut ParseContext) -> Result<LineMeaning, String> {
    let [device, what, offset, length, us] = split_fields(line)?;
    Ok(LineMeaning::Request(TraceRecord {
        device: context.device_index(device),
        operation: parse_operation(what)?,
        offset_bytes: parse_number("an offset in bytes", offset)?,
        length_bytes: parse_number("a length in bytes", length)?,
        ..TraceRecord::issued_at(parse_time_ns("a time in microseconds", us, 3)?)
    }))
}

/// Parses a line of Tencent, such as `1538323200,4096,8,1,1283`: seconds, sector, sectors, 0 for a
/// read or 1 for a write, volume.
fn parse_tencent_line(line: &[u8], context: &mut ParseContext) -> Result<LineMeaning, String> {
    let [seconds, sector, sectors, what, volume] = split_fields(line)?;
    let operation = match what {
        b"0" => TracedOperation::Read,
        b"1" => TracedOperation::Write,
        _ => return Err(unexpected_field("0 for a read or 1 for a write", what)),
    };
    Ok(LineMeaning::Request(TraceRecord {
        device: context.device_index(volume),
        operation,
        offset_bytes: parse_bytes("a sector", sector, SECTOR_BYTES)?,
        length_bytes: parse_bytes("a number of sectors", sectors, SECTOR_BYTES)?,
        ..TraceRecord::issued_at(parse_time_ns("a time in whole seconds", seconds, 9)?)
    }))
}

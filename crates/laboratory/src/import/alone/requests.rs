//! Reader for requests in any trace format that has their issue and completion times.

use diskperf_blocktrace::{ReadOptions, TraceReader, TracedOperation};
use diskperf_diskspecs::trace::{self, ValidationRequest};
use std::path::Path;

const BLOCK_BYTES: u64 = 512;
/// Maximum share of requests that may be issued before the previous one completes. A drive with
/// several requests in flight shows no service times.
const OVERLAPPING_SHARE_MAX: f64 = 0.01;

/// Reports whether a file is a trace, by its name. Files of drives have other names.
pub(in super::super) fn is_trace(file: &Path) -> bool {
    let extension = file
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    ["trace", "blkparse", "blktrace", "csv", "dpt", "log"].contains(&extension.as_str())
}

/// Reads the requests of a trace file.
pub(super) fn read(file: &Path) -> Result<Vec<ValidationRequest>, String> {
    let name = file.display().to_string();
    let refused = |why: String| format!("{name}: {why}");
    let input = diskperf_diagnostics::input::open(file);
    let content = input.and_then(|mut input| {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut input, &mut bytes)?;
        Ok(bytes)
    });
    let content = content.map_err(|error| refused(error.to_string()))?;
    match String::from_utf8(content) {
        Ok(text) if is_validate_format(&text) => {
            trace::parse(&name, &text).map_err(|errors| errors.to_string())
        }
        Ok(text) => read_recording(&name, text.into_bytes()),
        Err(error) => read_recording(&name, error.into_bytes()),
    }
}

/// Reports whether the first line has the closed-loop format: an operation, a word, and numbers.
fn is_validate_format(text: &str) -> bool {
    let fields: Vec<&str> = text
        .lines()
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let is_number = |field: &&str| field.parse::<f64>().is_ok();
    fields.len() == 6
        && ["R", "W"].contains(&fields[0])
        && fields[2..].iter().filter(|field| is_number(field)).count() == 4
}

fn read_recording(name: &str, content: Vec<u8>) -> Result<Vec<ValidationRequest>, String> {
    let input = Box::new(std::io::Cursor::new(content));
    let refused = |why: &str| format!("{name}: {why}");
    let reader = TraceReader::open(name, input, &ReadOptions::default());
    let mut reader = reader.map_err(|error| error.to_string())?;
    let (mut requests, mut overlapping, mut completed_ns) = (Vec::new(), 0, 0);
    while let Some(record) = reader.next() {
        let record = record.map_err(|error| error.to_string())?;
        let operation = match record.operation {
            TracedOperation::Read => trace::ValidationOperation::Read,
            TracedOperation::Write => trace::ValidationOperation::Write,
            _ => continue,
        };
        let Some(done_ns) = record.completed_ns else {
            return Err(refused(
                "the trace has no completions, so it has no service times: record one with diskperf record, blktrace or fio's --write_lat_log",
            ));
        };
        if reader.devices().len() > 1 {
            return Err(refused(
                "the trace has several devices: record one device alone",
            ));
        }
        overlapping += usize::from(record.issued_ns < completed_ns);
        requests.push(ValidationRequest {
            operation,
            first_block: record.offset_bytes / BLOCK_BYTES,
            block_count: u32::try_from(record.length_bytes.div_ceil(BLOCK_BYTES))
                .unwrap_or(u32::MAX)
                .max(1),
            service_us: done_ns.saturating_sub(record.issued_ns) as f64 / 1e3,
            think_us: record.issued_ns.saturating_sub(completed_ns) as f64 / 1e3,
        });
        completed_ns = done_ns.max(completed_ns);
    }
    if overlapping as f64 > OVERLAPPING_SHARE_MAX * requests.len() as f64 {
        return Err(refused(
            "its requests overlap, and only single requests show service times: record a job with iodepth 1",
        ));
    }
    match requests.is_empty() {
        true => Err(refused("the trace has no reads and writes")),
        false => Ok(requests),
    }
}

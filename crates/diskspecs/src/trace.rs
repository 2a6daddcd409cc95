//! Traces in the closed-loop `validate` format: requests to a drive with one request in flight, and
//! their service times.

use diskperf_diagnostics::{Errors, Problem, SourceSpan, Text};
use std::sync::Arc;

use crate::keys::PROBLEMS_MAX;
use crate::text::shorten_text;

/// Kind of a request: read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValidationOperation {
    /// Read request, `R` in the trace.
    Read,
    /// Write request, `W` in the trace.
    Write,
}

/// Request on one line of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValidationRequest {
    /// Kind of the request: read or write.
    pub operation: ValidationOperation,
    /// First logical block of the request; blocks have 512 bytes.
    pub first_block: u64,
    /// Length of the request in blocks; at least 1.
    pub block_count: u32,
    /// Measured time from issue to completion, in microseconds.
    pub service_us: f64,
    /// Pause in microseconds before or after this request. The format does not define which;
    /// [`crate::phase`] determines it.
    pub think_us: f64,
}

/// Maximum length of a request in blocks: 2^24 blocks are 8 GiB.
const BLOCKS_MAX: u32 = 1 << 24;
/// Longest time in a trace, in microseconds: twelve days.
const TIME_US_MAX: f64 = 1e12;
/// Highest valid block number, 2^60.
const BLOCK_MAX: u64 = 1 << 60;

/// Reads a trace. The second field may be any word and is ignored: `Hit` and `Miss` have a meaning
/// in only a few traces, and other traces use other words.
///
/// # Errors
///
/// Every line that is not a single request, with its number; a file without requests.
pub fn parse(name: &str, content: &str) -> Result<Vec<ValidationRequest>, Errors> {
    let text = Arc::new(Text::new(name.to_owned(), content.to_owned()));
    let mut requests = Vec::new();
    let mut problems = Vec::new();
    let mut start = 0;
    for line in content.split_inclusive('\n') {
        let from = start;
        start += line.len();
        if line.trim().is_empty() {
            continue;
        }
        match parse_request(line) {
            Ok(request) => requests.push(request),
            Err((field, why)) => {
                // The field is a part of the line.
                let at = from + (field.as_ptr() as usize - line.as_ptr() as usize);
                let place = SourceSpan::new(&text, at..at + field.len());
                let title = format!("`{}` is not a request", shorten_text(line.trim()));
                let help = "write `R|W WORD FIRST-BLOCK BLOCKS SERVICE-US THINK-US`; `Hit`, `Miss` and any other WORD are the same";
                problems.push(Problem::error(title).at(&place, why).help(help));
            }
        }
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    if requests.is_empty() && problems.is_empty() {
        let problem = Problem::error("the trace has no requests");
        problems.push(problem.at(&SourceSpan::start(&text), "the file is empty"));
    }
    Errors::fail_if_any(problems)?;
    Ok(requests)
}

/// Parses the request of a line, or returns the wrong field with the reason.
fn parse_request(line: &str) -> Result<ValidationRequest, (&str, &'static str)> {
    let end = &line[line.trim_end().len()..];
    let mut fields = line.split_whitespace();
    let mut next = || fields.next().ok_or((&end[..0], "the line ends too early"));
    let operation = match next()? {
        "R" => ValidationOperation::Read,
        "W" => ValidationOperation::Write,
        field => return Err((field, "neither `R` nor `W`")),
    };
    let _hit_or_miss = next()?;
    let field = next()?;
    let first_block = field.parse().ok().filter(|&block: &u64| block < BLOCK_MAX);
    let first_block = first_block.ok_or((field, "not a block number"))?;
    let field = next()?;
    let blocks = field.parse().ok();
    let blocks = blocks.filter(|blocks| (1..=BLOCKS_MAX).contains(blocks));
    let blocks = blocks.ok_or((field, "not a number of blocks"))?;
    let mut microseconds = || {
        let field = next()?;
        let time = field.parse::<f64>().ok();
        let time = time.filter(|time| (0.0..=TIME_US_MAX).contains(time));
        time.ok_or((field, "not a number of microseconds"))
    };
    let service_us = microseconds()?;
    let think_us = microseconds()?;
    match fields.next() {
        Some(field) => Err((field, "the line has too many fields")),
        None => Ok(ValidationRequest {
            operation,
            first_block,
            block_count: blocks,
            service_us,
            think_us,
        }),
    }
}

//! Parser of the Linux kernel's block events as text, such as `block_rq_issue` and
//! `block_rq_complete`, from tracefs, `trace-cmd report` or `perf script`.

use super::block_layer::{BlockLayerEvent, BlockLayerStep, IssueStep, RwbsFlags};
use super::{
    LineMeaning, ParseContext, SECTOR_BYTES, parse_bytes, parse_time_ns, split_words,
    unexpected_field,
};
use crate::record::TraceRecord;

/// Parser of lines from tracefs, `trace-cmd report` or `perf script`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FtraceParser;

/// Sector number that the kernel prints for a flush, which has no sector.
const NO_SECTOR: &[u8] = b"18446744073709551615";

const EVENT_STEPS: [(&[u8], BlockLayerStep); 4] = [
    (b"block_rq_issue: ", BlockLayerStep::Issue),
    (b"block_rq_complete: ", BlockLayerStep::Complete),
    (b"block_rq_requeue: ", BlockLayerStep::Requeue),
    (b"block_rq_merge: ", BlockLayerStep::Merge),
];

impl FtraceParser {
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        if is_header_line(line) {
            return Ok(LineMeaning::Heading);
        }
        if find_bytes(line, b" EVENTS]").is_some() && find_bytes(line, b"[LOST ").is_some() {
            return Ok(context.ignore_line("notes of events that the tracer lost"));
        }
        let found = EVENT_STEPS.iter().find_map(|(name, step)| {
            let at = find_bytes(line, name)?;
            Some((&line[..at], &line[at + name.len()..], *step))
        });
        let Some((before, event, step)) = found else {
            return match is_event(line) {
                true => Ok(context.ignore_line("other events")),
                false => Err(unexpected_field("an event of the kernel", line)),
            };
        };
        let at_ns = parse_event_time_ns(before)?;
        // `7,1 WS 8192 () 0 + 16 be,0,4 [prog]`, or without the bytes: `7,1 WS () 0 + 16 [0]`.
        let (found, count) = split_words::<24>(event);
        let found = &found[..count.min(24)];
        let plus = found.iter().position(|word| *word == b"+");
        let (Some(plus), [device, rwbs, ..]) = (plus.filter(|at| *at >= 2), found) else {
            return Err("the event has no `SECTOR + SECTORS`".to_owned());
        };
        let (sector, sectors) = (found[plus - 1], found.get(plus + 1).copied().unwrap_or(b""));
        let offset_bytes = match sector {
            NO_SECTOR => 0,
            sector => parse_bytes("a sector", sector, SECTOR_BYTES)?,
        };
        let event = BlockLayerEvent {
            layer_step: step,
            rwbs: RwbsFlags::from_rwbs(rwbs)?,
            record: TraceRecord {
                device: context.device_index(device),
                offset_bytes,
                length_bytes: parse_bytes("a number of sectors", sectors, SECTOR_BYTES)?,
                ..TraceRecord::issued_at(at_ns)
            },
            errno: parse_errno(found),
        };
        Ok(event.apply_event(IssueStep::Issue, context))
    }
}

/// Reports whether a line comes from the tool instead of the kernel: a comment, the first lines of
/// `trace-cmd report`, or a stack of `perf script -g`.
fn is_header_line(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let is_indented = text.len() < line.len();
    let first = text.split(u8::is_ascii_whitespace).next();
    let first = first.unwrap_or_default();
    let is_address = first.len() >= 8 && first.iter().all(u8::is_ascii_hexdigit);
    text.starts_with(b"#")
        || text.starts_with(b"cpus=")
        || text.starts_with(b"version =")
        || (text.starts_with(b"CPU ") && text.ends_with(b" is empty"))
        || (is_indented && is_address)
}

/// Reports whether a line has a time and the name of an event, each with a colon.
fn is_event(line: &[u8]) -> bool {
    let times = |word: &[u8]| {
        let number = word.strip_suffix(b":");
        number.is_some_and(|number| parse_time_ns("a time", number, 9).is_ok())
    };
    line.split(u8::is_ascii_whitespace).any(times)
}

fn parse_errno(words: &[&[u8]]) -> u16 {
    let last = words.last().copied().unwrap_or_default();
    let inside = last
        .strip_prefix(b"[")
        .and_then(|word| word.strip_suffix(b"]"));
    let digits = inside.map(|word| word.strip_prefix(b"-").unwrap_or(word));
    digits.and_then(crate::number::parse_decimal).unwrap_or(0) as u16
}

fn find_bytes(line: &[u8], what: &[u8]) -> Option<usize> {
    line.windows(what.len()).position(|window| window == what)
}

/// Parses the time before an event, in seconds: the last word, without its colon. `perf script`
/// prints the name of the event group after the time.
fn parse_event_time_ns(before: &[u8]) -> Result<u64, String> {
    let trimmed = before.strip_suffix(b"block:").unwrap_or(before);
    let trimmed = trimmed.trim_ascii_end();
    let trimmed = trimmed.strip_suffix(b":").unwrap_or(trimmed);
    let word = trimmed
        .rsplit(u8::is_ascii_whitespace)
        .next()
        .unwrap_or_default();
    parse_time_ns("a time in seconds", word, 9)
}

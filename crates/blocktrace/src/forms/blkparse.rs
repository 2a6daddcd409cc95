//! Parser of the text output of `blkparse`.

use super::block_layer::{
    BlockLayerEvent, BlockLayerStep, IssueStep, MESSAGE_RECORD, NO_DATA_TRANSFER, OTHER_LAYER_STEP,
    RwbsFlags, SUMMARY_RECORD,
};
use super::{LineMeaning, ParseContext, SECTOR_BYTES, parse_number, parse_time_ns, split_words};
use crate::record::{TraceRecord, TracedOperation};

/// Parser of blkparse lines, which matches issues with completions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlkparseParser {
    pub(crate) issue_step: IssueStep,
}

impl BlkparseParser {
    pub(crate) fn parse_line(
        &mut self,
        line: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let (found, count) = split_words::<12>(line);
        let [
            device,
            cpu,
            _,
            at,
            _,
            action,
            rwbs,
            sector,
            plus,
            sectors,
            ..,
        ] = found;
        if !is_device_number(device) || !cpu.iter().all(u8::is_ascii_digit) {
            return Ok(context.ignore_line(match is_summary_line(line) {
                true => SUMMARY_RECORD,
                false => MESSAGE_RECORD,
            }));
        }
        if count < 7 {
            return Err(format!(
                "an event has at least 7 words, and this one has {count}"
            ));
        }
        let at_ns = parse_time_ns("a time in seconds", at, 9)?;
        let step = match action {
            b"Q" => BlockLayerStep::Queue,
            b"M" | b"F" => BlockLayerStep::Merge,
            b"R" => BlockLayerStep::Requeue,
            b"D" => BlockLayerStep::Issue,
            b"C" => BlockLayerStep::Complete,
            _ => return Ok(context.ignore_line(OTHER_LAYER_STEP)),
        };
        let asked = RwbsFlags::from_rwbs(rwbs)?;
        let is_whole = |word: &&[u8]| matches!(*word, [b'+', ..] | [b'[', ..] | [b'(', ..]);
        if !found.iter().any(is_whole) {
            return Err("the event ends before its length and its process".to_owned());
        }
        // Without `+` there may be a sector, of what ends a flush sequence.
        let (offset_bytes, length_bytes) = match plus == b"+" {
            true => (
                super::parse_bytes("a sector", sector, SECTOR_BYTES)?,
                super::parse_bytes("a number of sectors", sectors, SECTOR_BYTES)?,
            ),
            false if asked.operation == Some(TracedOperation::Read) => {
                return Ok(context.ignore_line(NO_DATA_TRANSFER));
            }
            false => (
                super::parse_bytes("a sector", sector, SECTOR_BYTES).unwrap_or(0),
                0,
            ),
        };
        let record = TraceRecord {
            device: context.device_index(device),
            offset_bytes,
            length_bytes,
            ..TraceRecord::issued_at(at_ns)
        };
        let errno = found.iter().find_map(|word| parse_errno(word)).unwrap_or(0);
        let event = BlockLayerEvent {
            layer_step: step,
            rwbs: asked,
            record,
            errno,
        };
        Ok(event.apply_event(self.issue_step, context))
    }
}

/// Reports whether a word is a device number, such as `8,16` for major and minor number.
fn is_device_number(word: &[u8]) -> bool {
    let mut numbers = word.split(|byte| *byte == b',');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    numbers
        .by_ref()
        .take(2)
        .filter(|part| is_number(part))
        .count()
        == 2
        && numbers.next().is_none()
}

/// Reports whether a line belongs to the statistics that blkparse prints after the events, or names
/// its input.
fn is_summary_line(line: &[u8]) -> bool {
    const SUMMARY_PREFIXES: [&[u8]; 7] = [
        b"CPU",
        b"Total (",
        b"Throughput (",
        b"Events (",
        b"Skips: ",
        b"Input file ",
        b"=====",
    ];
    let is_count = line.first().is_some_and(u8::is_ascii_whitespace) && line.contains(&b':');
    let text = line.trim_ascii();
    is_count || text.is_empty() || SUMMARY_PREFIXES.iter().any(|begin| text.starts_with(begin))
}

/// Parses an error number such as `[65531]`, which is printed as an unsigned 16-bit number.
fn parse_errno(word: &[u8]) -> Option<u16> {
    let inside = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let code = parse_number("an error", inside).ok()? as u16;
    Some(code.wrapping_neg().min(code))
}

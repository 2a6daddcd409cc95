//! The kernel's block events as text: `block_rq_issue` and `block_rq_complete`.

use super::{Context, SECTOR_BYTES, Said, blkparse, bytes, time, words, wrong};
use crate::record::{Operation, Record};

/// Lines of tracefs, `trace-cmd report` or `perf script`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ftrace;

/// The sector of a flush, which has none.
const NO_SECTOR: &[u8] = b"18446744073709551615";

impl Ftrace {
    /// What a line says.
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        if line.starts_with(b"#") {
            return Ok(Said::Other);
        }
        let issues = find(line, b"block_rq_issue: ");
        let completes = find(line, b"block_rq_complete: ");
        let (at, is_end) = match (issues, completes) {
            (Some(at), _) => (at, false),
            (None, Some(at)) => (at, true),
            (None, None) if line.contains(&b':') => return Ok(context.drop("another event")),
            (None, None) => return Err(wrong("an event", line)),
        };
        let at_ns = moment(&line[..at])?;
        // `7,1 WS 8192 () 0 + 16 be,0,4 [prog]`, or without the bytes: `7,1 WS () 0 + 16 [0]`.
        let name = if is_end {
            &b"block_rq_complete: "[..]
        } else {
            &b"block_rq_issue: "[..]
        };
        let (found, count) = words::<12>(&line[at + name.len()..]);
        let found = &found[..count.min(12)];
        let plus = found.iter().position(|word| *word == b"+");
        let (Some(plus), [device, rwbs, ..]) = (plus.filter(|at| *at >= 2), found) else {
            return Err("the event has no `SECTOR + SECTORS`".to_owned());
        };
        let Some((operation, fua, sync)) = blkparse::operation(rwbs)? else {
            return Ok(context.drop("no request: an event of no operation"));
        };
        let (sector, sectors) = (found[plus - 1], found.get(plus + 1).copied().unwrap_or(b""));
        let offset_bytes = match sector {
            NO_SECTOR => 0,
            sector => bytes("a sector", sector, SECTOR_BYTES)?,
        };
        let length_bytes = bytes("a number of sectors", sectors, SECTOR_BYTES)?;
        let operation = match (operation, length_bytes) {
            (Operation::Write, 0) if rwbs.starts_with(b"F") => Operation::Flush,
            (operation, _) => operation,
        };
        let record = Record {
            operation,
            fua,
            sync,
            device: context.device(device),
            offset_bytes: if operation == Operation::Flush {
                0
            } else {
                offset_bytes
            },
            length_bytes,
            ..Record::at(at_ns)
        };
        match is_end {
            true => context.order.complete(&record, at_ns, errno(found)),
            false => context.order.issue(record),
        }
        Ok(Said::Other)
    }
}

fn errno(words: &[&[u8]]) -> u16 {
    let last = words.last().copied().unwrap_or_default();
    let inside = last
        .strip_prefix(b"[")
        .and_then(|word| word.strip_suffix(b"]"));
    let digits = inside.map(|word| word.strip_prefix(b"-").unwrap_or(word));
    digits.and_then(crate::number::whole).unwrap_or(0) as u16
}

fn find(line: &[u8], what: &[u8]) -> Option<usize> {
    line.windows(what.len()).position(|window| window == what)
}

/// The seconds before the event: the last word, but for its colon.
fn moment(before: &[u8]) -> Result<u64, String> {
    let trimmed = before.trim_ascii_end();
    let trimmed = trimmed.strip_suffix(b":").unwrap_or(trimmed);
    let word = trimmed
        .rsplit(u8::is_ascii_whitespace)
        .next()
        .unwrap_or_default();
    time("a time in seconds", word, 9)
}

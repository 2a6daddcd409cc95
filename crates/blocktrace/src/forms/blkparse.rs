//! What `blkparse` prints.

use super::{Context, SECTOR_BYTES, Said, number, time, words, wrong};
use crate::record::{Operation, Record};

/// Lines of blkparse, whose issues and completions are matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blkparse {
    /// Whether requests count from when they are queued (Q), as whoever asked sees them;
    /// from the issue to the device (D) where there are no Q.
    pub(crate) from_queue: bool,
}

impl Blkparse {
    /// What a line says.
    pub(crate) fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Said, String> {
        let (found, count) = words::<12>(line);
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
        let is_event = device.contains(&b',') && device[0].is_ascii_digit() && count >= 7;
        if !is_event || !cpu.iter().all(u8::is_ascii_digit) {
            return Ok(context.drop("no event: the summary of blkparse"));
        }
        let at_ns = time("a time in seconds", at, 9)?;
        let begins = if self.from_queue { b"Q" } else { b"D" };
        if action != begins && action != b"C" {
            return Ok(Said::Other);
        }
        let Some((operation, fua, sync)) = operation(rwbs)? else {
            return Ok(context.drop("no request: an event of no operation"));
        };
        let has_range = plus == b"+";
        // `FW` of nothing is a flush.
        let operation = match has_range || !rwbs.starts_with(b"F") {
            true => operation,
            false => Operation::Flush,
        };
        let (mut offset, mut length) = (0, 0);
        if has_range {
            offset = super::bytes("a sector", sector, SECTOR_BYTES)?;
            length = super::bytes("a number of sectors", sectors, SECTOR_BYTES)?;
        } else if operation != Operation::Flush {
            return Ok(context.drop("a request without a range"));
        }
        let record = Record {
            operation,
            fua,
            sync,
            device: context.device(device),
            offset_bytes: offset,
            length_bytes: length,
            ..Record::at(at_ns)
        };
        if action == b"C" {
            let errno = found.iter().find_map(|word| errno(word)).unwrap_or(0);
            context.order.complete(&record, at_ns, errno);
        } else {
            context.order.issue(record);
        }
        Ok(Said::Other)
    }
}

/// `[65531]`: an error as 16 bits without a sign.
fn errno(word: &[u8]) -> Option<u16> {
    let inside = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let code = number("an error", inside).ok()? as u16;
    Some(code.wrapping_neg().min(code))
}

/// What `FWFS` and the like ask, whether durable, and whether somebody waits; none of what
/// asks nothing.
pub(super) fn operation(rwbs: &[u8]) -> Result<Option<(Operation, bool, bool)>, String> {
    let body = rwbs.strip_prefix(b"F").unwrap_or(rwbs);
    let is_flush_first = rwbs.starts_with(b"F");
    let sync = rwbs.contains(&b'S');
    let operation = match body.first() {
        Some(b'R') => Operation::Read,
        Some(b'W') => Operation::Write,
        Some(b'D') => Operation::Discard,
        Some(b'N') => return Ok(None),
        // `FF`, or a flush that has nothing to write.
        Some(b'F' | b'S') | None if is_flush_first => Operation::Flush,
        _ => return Err(wrong("what a request asks, as R, WS or FF", rwbs)),
    };
    let fua = body.len() > 1 && body[1..].contains(&b'F');
    Ok(Some((operation, fua, sync)))
}

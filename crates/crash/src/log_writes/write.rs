//! Writer of logs of dm-log-writes.

use super::{
    BEGIN_MARK, ENTRY_BYTES, FLAG_DISCARD, FLAG_FLUSH, FLAG_FUA, FLAG_MARK, MAGIC, VERSION,
};
use crate::{Entry, Log, RequestKind};
use std::io::{self, Write};

const SECTOR_BYTES: usize = 512;

/// Entry of the file.
enum WrittenEntry {
    Request { index: usize, flags: u64 },
    Flush,
    Mark(String),
}

/// Writes a log in the form of dm-log-writes, with sectors of 512 bytes. Flushes that the drive
/// ignored are left out, and writes that never completed, too.
///
/// # Errors
///
/// The output cannot be written.
pub fn write(log: &Log, output: &mut dyn Write) -> io::Result<()> {
    let items = items(log);
    let mut header = [0; SECTOR_BYTES];
    header[..8].copy_from_slice(&MAGIC.to_le_bytes());
    header[8..16].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&(items.len() as u64).to_le_bytes());
    header[24..28].copy_from_slice(&(SECTOR_BYTES as u32).to_le_bytes());
    output.write_all(&header)?;
    for item in &items {
        match item {
            WrittenEntry::Flush => write_entry(output, [0, 0, FLAG_FLUSH, 0], b"")?,
            WrittenEntry::Mark(name) => {
                let text = name.as_bytes();
                let text = &text[..text.len().min(SECTOR_BYTES - ENTRY_BYTES)];
                write_entry(output, [0, 0, FLAG_MARK, text.len() as u64], text)?;
            }
            WrittenEntry::Request { index, flags } => write_request(log, *index, *flags, output)?,
        }
    }
    Ok(())
}

fn write_entry(output: &mut dyn Write, numbers: [u64; 4], text: &[u8]) -> io::Result<()> {
    let mut sector = [0; SECTOR_BYTES];
    for (at, number) in numbers.into_iter().enumerate() {
        sector[8 * at..8 * at + 8].copy_from_slice(&number.to_le_bytes());
    }
    sector[ENTRY_BYTES..ENTRY_BYTES + text.len()].copy_from_slice(text);
    output.write_all(&sector)
}

fn write_request(log: &Log, index: usize, flags: u64, output: &mut dyn Write) -> io::Result<()> {
    let request = &log.requests[index];
    let unit_sectors = u64::from(log.unit_bytes) / SECTOR_BYTES as u64;
    let sectors = (request.units.end - request.units.start) * unit_sectors;
    let numbers = [request.units.start * unit_sectors, sectors, flags, 0];
    write_entry(output, numbers, b"")?;
    match request.kind {
        RequestKind::Write => output.write_all(&request.data),
        RequestKind::WriteZeroes => {
            (0..sectors).try_for_each(|_| output.write_all(&[0; SECTOR_BYTES]))
        }
        RequestKind::Trim | RequestKind::Flush => Ok(()),
        RequestKind::FileChange => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "changes of files are no requests of a drive: record the program on one",
        )),
    }
}

/// Entries in the order of dm-log-writes, so far.
struct Items<'l> {
    log: &'l Log,
    items: Vec<WrittenEntry>,
    /// Completed changes that are not among the items yet, oldest first.
    pending: Vec<usize>,
}

impl Items<'_> {
    fn push_change(&mut self, index: usize, fua: u64) {
        let discard = match self.log.requests[index].kind {
            RequestKind::Trim => FLAG_DISCARD,
            _ => 0,
        };
        let flags = discard | fua;
        self.items.push(WrittenEntry::Request { index, flags });
    }

    fn push_pending(&mut self) {
        for index in std::mem::take(&mut self.pending) {
            self.push_change(index, 0);
        }
    }

    /// Adds a change that is durable at its completion.
    fn push_fua(&mut self, index: usize) {
        let requests = &self.log.requests;
        let units = &requests[index].units;
        let overlaps = |of: &usize| {
            let other = &requests[*of].units;
            other.start < units.end && units.start < other.end
        };
        // Older writes of the same place must not come after it.
        if self.pending.iter().any(overlaps) {
            self.push_pending();
        }
        self.push_change(index, FLAG_FUA);
    }

    fn push_flush(&mut self, submitted: usize) {
        let requests = &self.log.requests;
        let pending = std::mem::take(&mut self.pending).into_iter();
        let is_covered = |index: &usize| requests[*index].is_completed_at(submitted);
        let (covered, left) = pending.partition::<Vec<usize>, _>(is_covered);
        for index in covered {
            self.push_change(index, 0);
        }
        self.pending = left;
        self.items.push(WrittenEntry::Flush);
    }
}

fn items(log: &Log) -> Vec<WrittenEntry> {
    let mut items = Items {
        log,
        items: Vec::new(),
        pending: Vec::new(),
    };
    for (position, entry) in log.entries[..log.end].iter().enumerate() {
        if position == log.begin {
            // What was there before the workload is durable.
            items.push_pending();
            let begin = WrittenEntry::Mark(BEGIN_MARK.to_owned());
            items.items.extend([WrittenEntry::Flush, begin]);
        }
        match *entry {
            Entry::Submit(_) => {}
            Entry::Mark(mark) => {
                let text = format!("durable {}", log.marks[mark].name);
                items.items.push(WrittenEntry::Mark(text));
            }
            Entry::Complete(index) => match &log.requests[index] {
                request if request.durable == Some(position) => items.push_fua(index),
                request if request.is_change() => items.pending.push(index),
                flush if !flush.is_ignored => items.push_flush(flush.submitted),
                _ => {}
            },
        }
    }
    items.push_pending();
    items.items
}

//! Reader of logs of dm-log-writes.

use super::{ENTRY_BYTES, FLAG_DISCARD, FLAG_FLUSH, FLAG_FUA, FLAG_MARK, MAGIC, VERSION};
use crate::{Log, LyingFlush, Recording, RequestKind};
use diskperf_device::WriteCache;
use std::io::{self, Read};

/// Largest sector of a log, in bytes.
const SECTOR_BYTES_MAX: u32 = 4096;

/// Largest device of a log, in bytes.
const DEVICE_BYTES_MAX: u64 = 1 << 60;

/// Size to which the device of a log is rounded up where nobody knows it.
const DEVICE_ROUND_BYTES: u64 = 1 << 30;

/// Unit that a drive writes atomically, if all requests are made of it.
const UNIT_BYTES: u64 = 4096;

/// Marks with which a workload begins: that of [`super::write`], and that of xfstests.
const BEGIN_MARKS: [&str; 2] = [super::BEGIN_MARK, "mkfs"];

/// Reason why a log of dm-log-writes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogWritesError {
    /// Input that is no log of dm-log-writes.
    #[error("is no log of dm-log-writes: it begins with {0:#x}, and a log with {MAGIC:#x}")]
    Magic(u64),
    /// Version that this reader does not know.
    #[error("is a log of version {0}; version {VERSION} can be read")]
    Version(u64),
    /// Sector size that no device has.
    #[error("has sectors of {0} bytes; a log has 512, 1024, 2048 or 4096")]
    SectorBytes(u32),
    /// Log that ends within an entry.
    #[error("ends within entry {entry} of {entries}: copy the whole log device")]
    Short {
        /// Number of the entry, from 1.
        entry: u64,
        /// Number of entries that the header announces.
        entries: u64,
    },
    /// Entry beyond any device, or beyond the size that the user gave.
    #[error(
        "entry {entry} ends beyond the device, at {end_bytes} of {size_bytes} bytes: give a larger --size"
    )]
    Beyond {
        /// Number of the entry, from 1.
        entry: u64,
        /// End of the entry's range, in bytes; the largest number if it has no end.
        end_bytes: u64,
        /// Size of the device, in bytes.
        size_bytes: u64,
    },
    /// Any other failure to read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Entry of a log, with its data.
struct ReadEntry {
    offset: u64,
    bytes: u64,
    flags: u64,
    /// Data of a write, or text of a mark.
    data: Vec<u8>,
}

/// Reads a log of dm-log-writes. The drive has a volatile cache: a write is durable at the next
/// flush, or at once with force unit access. A mark `durable NAME` has the name `NAME`. The
/// workload begins at a mark `begin` or `mkfs`, else with the log. Without a size the device
/// ends at the next GiB after all that was written.
///
/// # Errors
///
/// The input is no such log, is cut short, or writes beyond the device.
pub fn read(input: &mut dyn Read, size_bytes: Option<u64>) -> Result<Log, LogWritesError> {
    let items = read_items(input)?;
    let ends = items.iter().map(|item| item.offset + item.bytes);
    let end_bytes = ends.clone().max().unwrap_or(0);
    let rounded = end_bytes.max(1).next_multiple_of(DEVICE_ROUND_BYTES);
    let size_bytes = size_bytes.unwrap_or(rounded);
    if let Some(entry) = ends.clone().position(|end| end > size_bytes) {
        return Err(LogWritesError::Beyond {
            entry: entry as u64 + 1,
            end_bytes,
            size_bytes,
        });
    }
    let is_whole = |item: &ReadEntry| {
        item.offset.is_multiple_of(UNIT_BYTES) && item.bytes.is_multiple_of(UNIT_BYTES)
    };
    let unit_bytes = match items.iter().all(is_whole) && size_bytes.is_multiple_of(UNIT_BYTES) {
        true => UNIT_BYTES,
        false => 512,
    };
    let lying = LyingFlush::default();
    let mut recording = Recording::new(unit_bytes as u32, size_bytes, WriteCache::Volatile, lying);
    for (entry, item) in (1..).zip(&items) {
        let recorded = record(&mut recording, item);
        recorded.map_err(|_| LogWritesError::Beyond {
            entry,
            end_bytes: item.offset + item.bytes,
            size_bytes,
        })?;
    }
    Ok(recording.finish())
}

fn record(recording: &mut Recording, item: &ReadEntry) -> Result<(), crate::OutOfRange> {
    if item.flags & FLAG_MARK != 0 {
        let text = String::from_utf8_lossy(&item.data);
        let text = text.trim_end_matches('\0').trim();
        if BEGIN_MARKS.contains(&text) {
            recording.begin();
            return Ok(());
        }
        recording.mark(text.strip_prefix("durable ").unwrap_or(text));
        return Ok(());
    }
    if item.flags & FLAG_FLUSH != 0 {
        let flush = recording.submit_flush();
        recording.complete(flush);
    }
    let fua = item.flags & FLAG_FUA != 0;
    let request = match item.flags & FLAG_DISCARD {
        _ if item.bytes == 0 => return Ok(()),
        0 => recording.submit_write(item.offset, &item.data, fua)?,
        _ => recording.submit_zeroes(RequestKind::Trim, item.offset, item.bytes, fua)?,
    };
    recording.complete(request);
    Ok(())
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes[8 * at..8 * at + 8].try_into();
    u64::from_le_bytes(bytes.expect("eight bytes"))
}

fn read_items(input: &mut dyn Read) -> Result<Vec<ReadEntry>, LogWritesError> {
    let mut header = [0; 512];
    input.read_exact(&mut header)?;
    match (number(&header, 0), number(&header, 1)) {
        (MAGIC, VERSION) => {}
        (MAGIC, version) => return Err(LogWritesError::Version(version)),
        (magic, _) => return Err(LogWritesError::Magic(magic)),
    }
    let entries = number(&header, 2);
    let sector_bytes = number(&header, 3) as u32;
    if !sector_bytes.is_power_of_two() || !(512..=SECTOR_BYTES_MAX).contains(&sector_bytes) {
        return Err(LogWritesError::SectorBytes(sector_bytes));
    }
    let mut sector = vec![0; sector_bytes as usize];
    input.read_exact(&mut sector[512..])?;
    let mut items = Vec::new();
    for entry in 1..=entries {
        let short = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => LogWritesError::Short { entry, entries },
            _ => LogWritesError::Io(error),
        };
        input.read_exact(&mut sector).map_err(short)?;
        let scaled = |at: usize| number(&sector, at).checked_mul(u64::from(sector_bytes));
        let (offset, bytes) = (scaled(0), scaled(1));
        let end = offset.and_then(|offset| offset.checked_add(bytes?));
        let (Some(offset), Some(bytes), Some(..=DEVICE_BYTES_MAX)) = (offset, bytes, end) else {
            return Err(LogWritesError::Beyond {
                entry,
                end_bytes: end.unwrap_or(u64::MAX),
                size_bytes: DEVICE_BYTES_MAX,
            });
        };
        let (flags, text_bytes) = (number(&sector, 2), number(&sector, 3));
        let mut data = Vec::new();
        if flags & FLAG_MARK != 0 {
            let text = &sector[ENTRY_BYTES..];
            let text_bytes = text_bytes.min(text.len() as u64) as usize;
            data.extend_from_slice(&text[..text_bytes]);
        } else if flags & FLAG_DISCARD == 0 {
            // Grows with what is there, whatever the entry announces.
            (&mut *input).take(bytes).read_to_end(&mut data)?;
            if data.len() as u64 != bytes {
                return Err(LogWritesError::Short { entry, entries });
            }
        }
        let is_mark = flags & FLAG_MARK != 0;
        items.push(ReadEntry {
            offset: if is_mark { 0 } else { offset },
            bytes: if is_mark { 0 } else { bytes },
            flags,
            data,
        });
    }
    Ok(items)
}

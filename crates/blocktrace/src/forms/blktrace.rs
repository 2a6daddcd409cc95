//! The binary files of `blktrace`, versions 7 and 8.

use super::{Context, SECTOR_BYTES, Said};
use crate::record::{Operation, Record};

const MAGIC: u32 = 0x6561_7400;
/// The longest text or data behind an event.
const LONGEST_DATA: usize = 1 << 16;

const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;

/// A file while it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blktrace {
    is_big: bool,
    version: u8,
    pub(crate) from_queue: bool,
}

impl Blktrace {
    /// By the first bytes of a file.
    ///
    /// # Errors
    ///
    /// A version that is not known.
    pub(crate) fn of(head: &[u8]) -> Option<Result<Self, String>> {
        let first: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let (little, big) = (u32::from_le_bytes(first), u32::from_be_bytes(first));
        let (magic, is_big) = match (little & !0xff, big & !0xff) {
            (MAGIC, _) => (little, false),
            (_, MAGIC) => (big, true),
            _ => return None,
        };
        let version = magic as u8;
        Some(match version {
            7 | 8 => Ok(Self {
                is_big,
                version,
                from_queue: true,
            }),
            _ => Err(format!("version {version} of blktrace; 7 and 8 are known")),
        })
    }

    /// Bytes of an event, without what is behind it.
    pub(crate) fn event_bytes(&self) -> usize {
        match self.version {
            7 => 48,
            _ => 64,
        }
    }

    fn u16(&self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        if self.is_big {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        }
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        let four = [0, 1, 2, 3].map(|of| bytes[at + of]);
        if self.is_big {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    }

    fn u64(&self, bytes: &[u8], at: usize) -> u64 {
        let eight = [0, 1, 2, 3, 4, 5, 6, 7].map(|of| bytes[at + of]);
        if self.is_big {
            u64::from_be_bytes(eight)
        } else {
            u64::from_le_bytes(eight)
        }
    }

    /// When an event was.
    pub(crate) fn time(&self, event: &[u8]) -> u64 {
        self.u64(event, 8)
    }

    /// Bytes behind an event.
    ///
    /// # Errors
    ///
    /// What is no event.
    pub(crate) fn data_bytes(&self, event: &[u8]) -> Result<usize, String> {
        let magic = self.u32(event, 0);
        if magic != MAGIC | u32::from(self.version) {
            return Err(format!("{magic:#010x} begins no event of this file"));
        }
        let at = if self.version == 7 { 46 } else { 50 };
        match usize::from(self.u16(event, at)) {
            bytes if bytes <= LONGEST_DATA => Ok(bytes),
            bytes => Err(format!("{bytes} bytes behind an event")),
        }
    }

    /// What an event says.
    pub(crate) fn event(&self, event: &[u8], context: &mut Context) -> Result<Said, String> {
        let at_ns = self.u64(event, 8);
        let (action, flags, device, error) = match self.version {
            7 => {
                let action = self.u32(event, 28);
                (
                    action & 0xffff,
                    action >> 16,
                    self.u32(event, 36),
                    self.u16(event, 44),
                )
            }
            _ => {
                let action = self.u64(event, 32);
                let (low, high) = ((action & 0xffff) as u32, (action >> 16) as u32);
                (low, high, self.u32(event, 40), self.u16(event, 48))
            }
        };
        let begins = if self.from_queue { QUEUE } else { ISSUE };
        let has = |bit: u32| flags & (1 << bit) != 0;
        if has(10) || (action != begins && action != COMPLETE) {
            return Ok(Said::Other);
        }
        let length_bytes = u64::from(self.u32(event, 24));
        let operation = match () {
            () if has(13) => Operation::Discard,
            () if length_bytes == 0 && has(2) => Operation::Flush,
            () if has(1) => Operation::Write,
            () if has(0) => Operation::Read,
            () => return Ok(context.drop("no request: an event of no operation")),
        };
        let sector = self.u64(event, 16);
        let offset = sector.checked_mul(SECTOR_BYTES);
        let offset_bytes = match operation {
            Operation::Flush => 0,
            _ => offset.ok_or_else(|| format!("sector {sector}, which no device has"))?,
        };
        let name = format!("{},{}", device >> 20, device & 0xf_ffff);
        let record = Record {
            operation,
            fua: has(15),
            sync: has(3),
            device: context.device(name.as_bytes()),
            offset_bytes,
            length_bytes,
            ..Record::at(at_ns)
        };
        match action == COMPLETE {
            true => {
                let errno = error.wrapping_neg().min(error);
                context.order.complete(&record, at_ns, errno);
            }
            false => context.order.issue(record),
        }
        Ok(Said::Other)
    }
}

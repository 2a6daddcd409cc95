//! Parser of the binary files of `blktrace`, versions 7 and 8.

use super::block_layer::{BlockLayerEvent, BlockLayerStep, IssueStep, OTHER_LAYER_STEP, RwbsFlags};
use super::{LineMeaning, ParseContext, SECTOR_BYTES};
use crate::record::{TraceRecord, TracedOperation};

const MAGIC: u32 = 0x6561_7400;
/// Maximum length of the text or data after an event, in bytes.
const DATA_BYTES_MAX: usize = 1 << 16;

const QUEUE_ACTION: u32 = 1;

/// Bits that describe the request of an event, above its action.
mod bit {
    pub(super) const READ: u32 = 0;
    pub(super) const WRITE: u32 = 1;
    pub(super) const FLUSH: u32 = 2;
    pub(super) const SYNC: u32 = 3;
    pub(super) const NOTIFY: u32 = 10;
    pub(super) const DISCARD: u32 = 13;
    pub(super) const FUA: u32 = 15;
    /// First of the bits for zone operations, which only version 8 has.
    pub(super) const ZONE_APPEND: u32 = 16;
    pub(super) const ZONE_CLOSE: u32 = 21;
    /// Bit of a write of zeroes, which only version 8 has. In version 7 it is a plain write.
    pub(super) const WRITE_ZEROES: u32 = 22;
}

/// Parser of a blktrace file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlktraceParser {
    is_big_endian: bool,
    version: u8,
    pub(crate) issue_step: IssueStep,
}

impl BlktraceParser {
    /// Creates the parser from the first bytes of a file. Returns `None` if the file is not a
    /// blktrace file.
    ///
    /// # Errors
    ///
    /// Fails for an unknown version.
    pub(crate) fn from_head(head: &[u8]) -> Option<Result<Self, String>> {
        let first: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let (little, big) = (u32::from_le_bytes(first), u32::from_be_bytes(first));
        let (magic, is_big) = match (little & !0xff, big & !0xff) {
            (MAGIC, _) => (little, false),
            (_, MAGIC) => (big, true),
            _ => return None,
        };
        let version = magic as u8;
        Some(match version {
            7 | 8 => {
                let mut of = Self {
                    is_big_endian: is_big,
                    version,
                    issue_step: IssueStep::Issue,
                };
                if of.has_queue_events(head) {
                    of.issue_step = IssueStep::Queue;
                }
                Ok(of)
            }
            _ => Err(format!(
                "version {version} of blktrace is unknown; known versions are 7 and \
            8"
            )),
        })
    }

    /// Reports whether the beginning of a file has events of queued requests.
    fn has_queue_events(&self, mut head: &[u8]) -> bool {
        while head.len() >= self.event_bytes() {
            let Ok(behind) = self.data_bytes(head) else {
                return false;
            };
            let (action, bits) = self.action_and_category(head);
            if action == QUEUE_ACTION && bits & (1 << bit::NOTIFY) == 0 {
                return true;
            }
            head = head.get(self.event_bytes() + behind..).unwrap_or_default();
        }
        false
    }

    /// Returns the action of an event and the bits that describe its request.
    fn action_and_category(&self, event: &[u8]) -> (u32, u32) {
        match self.version {
            7 => {
                let action = self.read_u32(event, 28);
                (action & 0xffff, action >> 16)
            }
            _ => {
                let action = self.read_u64(event, 32);
                ((action & 0xffff) as u32, (action >> 16) as u32)
            }
        }
    }

    /// Returns the bytes of an event, without the data after it.
    pub(crate) fn event_bytes(&self) -> usize {
        match self.version {
            7 => 48,
            _ => 64,
        }
    }

    fn read_u16(&self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        if self.is_big_endian {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        }
    }

    fn read_u32(&self, bytes: &[u8], at: usize) -> u32 {
        let four = [0, 1, 2, 3].map(|of| bytes[at + of]);
        if self.is_big_endian {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        }
    }

    fn read_u64(&self, bytes: &[u8], at: usize) -> u64 {
        let eight = [0, 1, 2, 3, 4, 5, 6, 7].map(|of| bytes[at + of]);
        if self.is_big_endian {
            u64::from_be_bytes(eight)
        } else {
            u64::from_le_bytes(eight)
        }
    }

    /// Returns the time of an event, in nanoseconds.
    pub(crate) fn event_time_ns(&self, event: &[u8]) -> u64 {
        self.read_u64(event, 8)
    }

    /// Returns the bytes of data after an event.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not an event.
    pub(crate) fn data_bytes(&self, event: &[u8]) -> Result<usize, String> {
        let magic = self.read_u32(event, 0);
        if magic != MAGIC | u32::from(self.version) {
            return Err(format!("{magic:#010x} is not the magic number of an event"));
        }
        let at = if self.version == 7 { 46 } else { 50 };
        match usize::from(self.read_u16(event, at)) {
            bytes if bytes <= DATA_BYTES_MAX => Ok(bytes),
            bytes => Err(format!("an event with {bytes} bytes of data is too long")),
        }
    }

    pub(crate) fn parse_event(
        &self,
        event: &[u8],
        context: &mut ParseContext,
    ) -> Result<LineMeaning, String> {
        let at_ns = self.read_u64(event, 8);
        let (action, bits) = self.action_and_category(event);
        let (device, error) = match self.version {
            7 => (self.read_u32(event, 36), self.read_u16(event, 44)),
            _ => (self.read_u32(event, 40), self.read_u16(event, 48)),
        };
        let has = |bit: u32| bits & (1 << bit) != 0;
        if has(bit::NOTIFY) {
            return Ok(LineMeaning::Heading);
        }
        let step = match action {
            QUEUE_ACTION => BlockLayerStep::Queue,
            2 | 3 => BlockLayerStep::Merge,
            6 => BlockLayerStep::Requeue,
            7 => BlockLayerStep::Issue,
            8 => BlockLayerStep::Complete,
            _ => return Ok(context.ignore_line(OTHER_LAYER_STEP)),
        };
        let is_of_zones = (bit::ZONE_APPEND..=bit::ZONE_CLOSE).any(has);
        let operation = match () {
            () if is_of_zones => None,
            () if has(bit::WRITE_ZEROES) => Some(TracedOperation::WriteZeroes),
            () if has(bit::DISCARD) => Some(TracedOperation::Discard),
            () if has(bit::FLUSH) && !has(bit::WRITE) => Some(TracedOperation::Flush),
            () if has(bit::WRITE) => Some(TracedOperation::Write),
            () if has(bit::READ) => Some(TracedOperation::Read),
            () => None,
        };
        let sector = self.read_u64(event, 16);
        let length_bytes = u64::from(self.read_u32(event, 24));
        let offset = sector.checked_mul(SECTOR_BYTES);
        let offset_bytes = match length_bytes {
            0 => offset.unwrap_or(0),
            _ => {
                offset.ok_or_else(|| format!("sector {sector} is beyond the end of any device"))?
            }
        };
        let name = format!("{},{}", device >> 20, device & 0xf_ffff);
        let event = BlockLayerEvent {
            layer_step: step,
            rwbs: RwbsFlags {
                operation,
                fua: has(bit::FUA),
                sync: has(bit::SYNC),
                has_preflush: has(bit::FLUSH),
            },
            record: TraceRecord {
                device: context.device_index(name.as_bytes()),
                offset_bytes,
                length_bytes,
                ..TraceRecord::issued_at(at_ns)
            },
            errno: error.wrapping_neg().min(error),
        };
        Ok(event.apply_event(self.issue_step, context))
    }
}

//! Parser of blocks of diskperf's trace format into issues and completions.

use super::item::{TraceItem, read_u32, read_u64};
use super::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, CHECKSUMMED_HEADER_BYTES, HEADER_BYTES, LAST_BLOCK_FLAG,
    MAGIC, PAYLOAD_BYTES_MAX, VERSION, checksum,
};
use crate::forms::ParseContext;
use crate::record::DeviceIndex;
use std::collections::BTreeMap;

/// Parser of a trace of diskperf's format, with its progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFormatParser {
    has_begun: bool,
    block_count: u64,
    has_ended: bool,
    /// Map from the device indices of the trace to those of the reader.
    devices: BTreeMap<u32, DeviceIndex>,
}

impl OwnFormatParser {
    /// Creates a parser from the first bytes of a trace. Returns `None` for another format.
    ///
    /// # Errors
    ///
    /// Fails for an unknown version or a damaged header.
    pub(crate) fn from_head(head: &[u8]) -> Option<Result<Self, String>> {
        if !head.starts_with(MAGIC) {
            return None;
        }
        let Some(header) = head.get(..HEADER_BYTES) else {
            return Some(Err("the trace ends within its header".to_owned()));
        };
        let version = read_u32(header, 8);
        if crc32fast::hash(&header[..12]) != read_u32(header, 12) {
            return Some(Err("its header is damaged: the checksum differs".to_owned()));
        }
        Some(match version {
            VERSION => Ok(Self::default()),
            _ => Err(format!(
                "it has version {version} of diskperf's format, and this diskperf reads version \
                 {VERSION}"
            )),
        })
    }

    /// Reports whether the trace header was read.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Records that the trace header was read.
    pub(crate) fn skip_header(&mut self) {
        self.has_begun = true;
    }

    /// Reports whether the last block was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the payload length of a block, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the header is not that of the next block.
    pub(crate) fn payload_bytes(&self, header: &[u8]) -> Result<usize, String> {
        if read_u32(header, 0) != BLOCK_MAGIC || read_u64(header, 8) != self.block_count {
            return Err("a block header is expected here".to_owned());
        }
        let bytes = read_u32(header, 4) as usize;
        match bytes <= PAYLOAD_BYTES_MAX {
            true => Ok(bytes),
            false => Err(format!("a block of {bytes} bytes is too long")),
        }
    }

    pub(crate) fn is_checksum_correct(block: &[u8]) -> bool {
        let (header, payload) = block.split_at(BLOCK_HEADER_BYTES);
        checksum(header, payload) == read_u32(header, CHECKSUMMED_HEADER_BYTES)
    }

    /// Applies the items of a complete block.
    ///
    /// # Errors
    ///
    /// Fails for items that no recorder writes.
    pub(crate) fn parse_block(
        &mut self,
        block: &[u8],
        context: &mut ParseContext,
    ) -> Result<(), String> {
        let (header, mut payload) = block.split_at(BLOCK_HEADER_BYTES);
        while !payload.is_empty() {
            let item = TraceItem::decode_next(&mut payload)?;
            self.apply_item(item, context)?;
        }
        self.block_count += 1;
        self.has_ended = read_u32(header, 16) & LAST_BLOCK_FLAG != 0;
        Ok(())
    }

    fn apply_item(&mut self, item: TraceItem, context: &mut ParseContext) -> Result<(), String> {
        match item {
            TraceItem::Device { number, name } => {
                let known = context.device_index(&name);
                self.devices.insert(number, known);
            }
            TraceItem::Issue(mut record) => {
                let device = self.devices.get(&record.device.0);
                record.device =
                    *device.ok_or_else(|| format!("device {} has no name", record.device.0))?;
                record.validate()?;
                context.open_requests.append_issue(record);
                context.information.count_request();
            }
            TraceItem::Completion {
                number,
                at_ns,
                errno,
            } => context
                .open_requests
                .complete_numbered(number, at_ns, errno)?,
            TraceItem::LostEvents(events) => {
                let lost = context
                    .dropped_counts
                    .entry("events that the recorder lost");
                let lost = lost.or_default();
                *lost = lost.saturating_add(events);
            }
            TraceItem::PartStart { at_ns, name } => {
                if !context.information.begin_part(at_ns, &name) {
                    context.ignore_line("parts beyond those that are kept in memory");
                }
            }
            TraceItem::PartEnd { at_ns, counts } => context.information.end_part(at_ns, counts),
            TraceItem::Information { name, value } => {
                if !context.information.add_fact(&name, &value) {
                    context.ignore_line("remarks beyond those that are kept in memory");
                }
            }
        }
        Ok(())
    }
}

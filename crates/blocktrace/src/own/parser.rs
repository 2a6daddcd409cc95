//! Parser of blocks of diskperf's trace format into issues and completions.

use super::item::{Item, long, word};
use super::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, CHECKED_BYTES, HEADER_BYTES, IS_LAST, LONGEST_PAYLOAD, MAGIC,
    VERSION, checksum,
};
use crate::forms::Context;
use crate::record::DeviceIndex;
use std::collections::BTreeMap;

/// Parser of a trace of diskperf's format, with its progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own {
    has_begun: bool,
    blocks: u64,
    has_ended: bool,
    /// Map from the device indices of the trace to those of the reader.
    devices: BTreeMap<u32, DeviceIndex>,
}

impl Own {
    /// Creates a parser from the first bytes of a trace. Returns `None` for another format.
    ///
    /// # Errors
    ///
    /// Fails for an unknown version or a damaged header.
    pub(crate) fn of(head: &[u8]) -> Option<Result<Self, String>> {
        if !head.starts_with(MAGIC) {
            return None;
        }
        let Some(header) = head.get(..HEADER_BYTES) else {
            return Some(Err("the trace ends inside its header".to_owned()));
        };
        let version = word(header, 8);
        if crc32fast::hash(&header[..12]) != word(header, 12) {
            return Some(Err("its header is damaged: the checksum differs".to_owned()));
        }
        Some(match version {
            VERSION => Ok(Self::default()),
            _ => Err(format!(
                "it is of version {version} of diskperf's form, and this diskperf reads {VERSION}"
            )),
        })
    }

    /// Reports whether the trace header was read.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Records that the trace header was read.
    pub(crate) fn begin(&mut self) {
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
        if word(header, 0) != BLOCK_MAGIC || long(header, 8) != self.blocks {
            return Err("no block begins here".to_owned());
        }
        let bytes = word(header, 4) as usize;
        match bytes <= LONGEST_PAYLOAD {
            true => Ok(bytes),
            false => Err(format!("a block of {bytes} bytes")),
        }
    }

    /// Reports whether the checksum of a block is correct.
    pub(crate) fn is_whole(block: &[u8]) -> bool {
        let (header, payload) = block.split_at(BLOCK_HEADER_BYTES);
        checksum(header, payload) == word(header, CHECKED_BYTES)
    }

    /// Applies the items of a complete block.
    ///
    /// # Errors
    ///
    /// Fails for items that no recorder writes.
    pub(crate) fn block(&mut self, block: &[u8], context: &mut Context) -> Result<(), String> {
        let (header, mut payload) = block.split_at(BLOCK_HEADER_BYTES);
        while !payload.is_empty() {
            let item = Item::take(&mut payload)?;
            self.item(item, context)?;
        }
        self.blocks += 1;
        self.has_ended = word(header, 16) & IS_LAST != 0;
        Ok(())
    }

    fn item(&mut self, item: Item, context: &mut Context) -> Result<(), String> {
        match item {
            Item::Device { number, name } => {
                let known = context.device(&name);
                self.devices.insert(number, known);
            }
            Item::Issue(mut record) => {
                let device = self.devices.get(&record.device.0);
                record.device =
                    *device.ok_or_else(|| format!("device {} was not named", record.device.0))?;
                record.validate()?;
                context.order.push(record);
                context.said.request();
            }
            Item::Completion {
                number,
                at_ns,
                errno,
            } => context.order.end(number, at_ns, errno)?,
            Item::Lost(events) => {
                let lost = context.dropped.entry("events that the recorder lost");
                let lost = lost.or_default();
                *lost = lost.saturating_add(events);
            }
            Item::PartBegins { at_ns, name } => {
                if !context.said.begin(at_ns, &name) {
                    context.drop("parts beyond those that are kept in memory");
                }
            }
            Item::PartEnds { at_ns, counts } => context.said.end(at_ns, counts),
            Item::About { name, value } => {
                if !context.said.say(&name, &value) {
                    context.drop("remarks beyond those that are kept in memory");
                }
            }
        }
        Ok(())
    }
}

//! Encoder of issues and completions into blocks of diskperf's trace format.

use super::item::{ITEM_BYTES_MAX, NAME_BYTES_MAX, TraceItem};
use super::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, CHECKSUMMED_HEADER_BYTES, HEADER_BYTES, MAGIC, VERSION,
    checksum,
};
use crate::record::{DeviceIndex, TraceRecord};

/// Payload length from which a block is written, in bytes. It holds a few hundred requests.
const FULL_PAYLOAD_BYTES: usize = 32 << 10;

pub(crate) fn encode_header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Encoder with the block that is being filled, and the counts over all blocks.
pub(crate) struct TraceEncoder {
    /// Space for the block header, followed by the payload.
    block: Vec<u8>,
    is_closed: bool,
    block_count: u64,
    issued_count: u64,
    device_count: u32,
}

impl Default for TraceEncoder {
    fn default() -> Self {
        let mut block =
            Vec::with_capacity(BLOCK_HEADER_BYTES + FULL_PAYLOAD_BYTES + ITEM_BYTES_MAX);
        block.resize(BLOCK_HEADER_BYTES, 0);
        Self {
            block,
            is_closed: false,
            block_count: 0,
            issued_count: 0,
            device_count: 0,
        }
    }
}

impl TraceEncoder {
    pub(crate) fn add_device(&mut self, name: &str) -> DeviceIndex {
        let number = self.device_count;
        self.device_count += 1;
        let name = truncate_name(name);
        self.append_item(&TraceItem::Device { number, name });
        DeviceIndex(number)
    }

    pub(crate) fn begin_part(&mut self, at_ns: u64, name: &str) {
        let name = truncate_name(name);
        self.append_item(&TraceItem::PartStart { at_ns, name });
    }

    pub(crate) fn end_part(&mut self, at_ns: u64, counts: bool) {
        self.append_item(&TraceItem::PartEnd { at_ns, counts });
    }

    /// Adds information on the whole trace, as a name and a value.
    pub(crate) fn add_information(&mut self, name: &str, value: &str) {
        let (name, value) = (truncate_name(name), truncate_name(value));
        self.append_item(&TraceItem::Information { name, value });
    }

    pub(crate) fn add_issue(&mut self, record: &TraceRecord) -> u64 {
        assert!(record.device.0 < self.device_count, "the device has a name");
        self.append_item(&TraceItem::Issue(*record));
        self.issued_count += 1;
        self.issued_count - 1
    }

    pub(crate) fn add_completion(&mut self, number: u64, at_ns: u64, errno: u16) {
        self.append_item(&TraceItem::Completion {
            number,
            at_ns,
            errno,
        });
    }

    pub(crate) fn add_lost_events(&mut self, events: u64) {
        self.append_item(&TraceItem::LostEvents(events));
    }

    fn append_item(&mut self, item: &TraceItem) {
        if self.is_closed {
            self.block.truncate(BLOCK_HEADER_BYTES);
            self.is_closed = false;
        }
        item.encode_into(&mut self.block);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_closed || self.block.len() == BLOCK_HEADER_BYTES
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.is_closed && self.block.len() >= BLOCK_HEADER_BYTES + FULL_PAYLOAD_BYTES
    }

    /// Completes the block and returns its bytes. The next item begins a new block.
    pub(crate) fn take_block(&mut self, flags: u32) -> &[u8] {
        if self.is_closed {
            self.block.truncate(BLOCK_HEADER_BYTES);
        }
        let (header, payload) = self.block.split_at_mut(BLOCK_HEADER_BYTES);
        header[..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[8..16].copy_from_slice(&self.block_count.to_le_bytes());
        header[16..20].copy_from_slice(&flags.to_le_bytes());
        let sum = checksum(header, payload);
        header[CHECKSUMMED_HEADER_BYTES..].copy_from_slice(&sum.to_le_bytes());
        self.block_count += 1;
        self.is_closed = true;
        &self.block
    }
}

/// Truncates a name to the maximum length, at a character boundary.
fn truncate_name(name: &str) -> Vec<u8> {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.as_bytes()[..end].to_vec()
}

//! Encoder of issues and completions into blocks of diskperf's trace format.

use super::item::{Item, LONGEST, LONGEST_NAME};
use super::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, CHECKED_BYTES, HEADER_BYTES, MAGIC, VERSION, checksum,
};
use crate::record::{DeviceIndex, Record};

/// Payload length from which a block is written, in bytes. It holds a few hundred requests.
const FULL_BYTES: usize = 32 << 10;

/// Returns the header of a trace.
pub(crate) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Encoder with the block that is being filled, and the counts over all blocks.
pub(crate) struct Encoder {
    /// Space for the block header, followed by the payload.
    block: Vec<u8>,
    is_closed: bool,
    blocks: u64,
    issued: u64,
    devices: u32,
}

impl Default for Encoder {
    fn default() -> Self {
        let mut block = Vec::with_capacity(BLOCK_HEADER_BYTES + FULL_BYTES + LONGEST);
        block.resize(BLOCK_HEADER_BYTES, 0);
        Self {
            block,
            is_closed: false,
            blocks: 0,
            issued: 0,
            devices: 0,
        }
    }
}

impl Encoder {
    /// Adds a device by its name and returns its index.
    pub(crate) fn device(&mut self, name: &str) -> DeviceIndex {
        let number = self.devices;
        self.devices += 1;
        let name = short_enough(name);
        self.put(&Item::Device { number, name });
        DeviceIndex(number)
    }

    /// Begins a part of the trace.
    pub(crate) fn begin_part(&mut self, at_ns: u64, name: &str) {
        let name = short_enough(name);
        self.put(&Item::PartBegins { at_ns, name });
    }

    /// Ends the latest part of the trace.
    pub(crate) fn end_part(&mut self, at_ns: u64, counts: bool) {
        self.put(&Item::PartEnds { at_ns, counts });
    }

    /// Adds information on the whole trace, as a name and a value.
    pub(crate) fn about(&mut self, name: &str, value: &str) {
        let (name, value) = (short_enough(name), short_enough(value));
        self.put(&Item::About { name, value });
    }

    /// Adds the issue of the next request and returns its number.
    pub(crate) fn issue(&mut self, record: &Record) -> u64 {
        assert!(record.device.0 < self.devices, "the device has a name");
        self.put(&Item::Issue(*record));
        self.issued += 1;
        self.issued - 1
    }

    pub(crate) fn complete(&mut self, number: u64, at_ns: u64, errno: u16) {
        self.put(&Item::Completion {
            number,
            at_ns,
            errno,
        });
    }

    pub(crate) fn lost(&mut self, events: u64) {
        self.put(&Item::Lost(events));
    }

    fn put(&mut self, item: &Item) {
        if self.is_closed {
            self.block.truncate(BLOCK_HEADER_BYTES);
            self.is_closed = false;
        }
        item.put(&mut self.block);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.is_closed || self.block.len() == BLOCK_HEADER_BYTES
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.is_closed && self.block.len() >= BLOCK_HEADER_BYTES + FULL_BYTES
    }

    /// Completes the block and returns its bytes. The next item begins a new block.
    pub(crate) fn close(&mut self, flags: u32) -> &[u8] {
        if self.is_closed {
            self.block.truncate(BLOCK_HEADER_BYTES);
        }
        let (header, payload) = self.block.split_at_mut(BLOCK_HEADER_BYTES);
        header[..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[8..16].copy_from_slice(&self.blocks.to_le_bytes());
        header[16..20].copy_from_slice(&flags.to_le_bytes());
        let sum = checksum(header, payload);
        header[CHECKED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        self.blocks += 1;
        self.is_closed = true;
        &self.block
    }
}

/// Truncates a name to the maximum length, at a character boundary.
fn short_enough(name: &str) -> Vec<u8> {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.as_bytes()[..end].to_vec()
}

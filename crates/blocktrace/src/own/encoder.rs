//! From issues and completions to blocks.

use super::item::{Item, LONGEST, LONGEST_NAME};
use super::{
    BLOCK_HEADER_BYTES, BLOCK_MAGIC, CHECKED_BYTES, HEADER_BYTES, MAGIC, VERSION, checksum,
};
use crate::record::{DeviceIndex, Record};

/// Above this a block is written: a few hundred requests.
const FULL_BYTES: usize = 32 << 10;

/// What a trace begins with.
pub(crate) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let sum = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The block that is filled, and what is counted over all of them.
pub(crate) struct Encoder {
    /// Room for the header, then the payload.
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
    /// The next device has this name.
    pub(crate) fn device(&mut self, name: &str) -> DeviceIndex {
        let number = self.devices;
        self.devices += 1;
        let name = short_enough(name);
        self.put(&Item::Device { number, name });
        DeviceIndex(number)
    }

    /// A part begins.
    pub(crate) fn begin_part(&mut self, at_ns: u64, name: &str) {
        let name = short_enough(name);
        self.put(&Item::PartBegins { at_ns, name });
    }

    /// The part has ended.
    pub(crate) fn end_part(&mut self, at_ns: u64, counts: bool) {
        self.put(&Item::PartEnds { at_ns, counts });
    }

    /// Something is so of the whole trace.
    pub(crate) fn about(&mut self, name: &str, value: &str) {
        let (name, value) = (short_enough(name), short_enough(value));
        self.put(&Item::About { name, value });
    }

    /// The next request is issued; its number.
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

    /// The block, whole; what comes next begins another.
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

/// The bytes of a name, as many as one may have.
fn short_enough(name: &str) -> Vec<u8> {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.as_bytes()[..end].to_vec()
}

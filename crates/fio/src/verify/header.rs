//! Verification header before the data of a block: fio's `struct verify_header`.

use super::checksum::crc32c;

/// Size of a verification header in bytes, without the checksum of the data.
pub const HEADER_BYTES: usize = 40;

/// First two bytes of every verification header.
pub const MAGIC: u16 = 0xacca;

/// Byte offset of the header's own checksum, which covers all preceding bytes of the header.
const CHECKSUM_OFFSET: usize = 36;

/// Fields of a verification header, except the magic number and the header's own checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// fio's number for the verification method.
    pub verification_kind: u16,
    /// Bytes from this header to the next one.
    pub block_bytes: u32,
    /// Seed of the data of the whole I/O; 0 if the data is a pattern.
    pub seed: u64,
    /// Offset in the file of the block that the header describes, in bytes.
    pub offset_bytes: u64,
    /// Time of the write in ns, relative to an arbitrary origin.
    pub time_ns: u64,
    /// Index of the worker in the job file, clones counted, from 1.
    pub worker_number: u16,
    /// Number of writes that the job issued before this one.
    pub write_number: u16,
}

impl BlockHeader {
    /// Encodes the header with its magic number and its checksum.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let (seconds, rest_ns) = (self.time_ns / NS_PER_S, self.time_ns % NS_PER_S);
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.verification_kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.block_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&(seconds as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&(rest_ns as u32).to_le_bytes());
        bytes[32..34].copy_from_slice(&self.worker_number.to_le_bytes());
        bytes[34..36].copy_from_slice(&self.write_number.to_le_bytes());
        let checksum = crc32c(&bytes[..CHECKSUM_OFFSET]);
        bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a header without checking its magic number or checksum.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> DecodedHeader {
        let checksum = u32_at(bytes, CHECKSUM_OFFSET);
        let seconds = u64::from(u32_at(bytes, 24));
        DecodedHeader {
            magic: u16_at(bytes, 0),
            header: BlockHeader {
                verification_kind: u16_at(bytes, 2),
                block_bytes: u32_at(bytes, 4),
                seed: u64_at(bytes, 8),
                offset_bytes: u64_at(bytes, 16),
                time_ns: seconds * NS_PER_S + u64::from(u32_at(bytes, 28)),
                worker_number: u16_at(bytes, 32),
                write_number: u16_at(bytes, 34),
            },
            checksum,
            checksum_expected: crc32c(&bytes[..CHECKSUM_OFFSET]),
        }
    }
}

/// Verification header as read from storage, with its checksum as stored and as computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedHeader {
    /// Magic number; equals [`MAGIC`] in a valid header.
    pub magic: u16,
    /// Fields of the decoded header.
    pub header: BlockHeader,
    /// Checksum of the header as stored in it.
    pub checksum: u32,
    /// Checksum computed from the header's bytes.
    pub checksum_expected: u32,
}

const NS_PER_S: u64 = 1_000_000_000;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

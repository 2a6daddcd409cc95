//! Header in front of the data of a block: fio's `struct verify_header`.

use super::checksum::crc32c;

/// Bytes of a header, without the checksum of the data behind it.
pub const HEADER_BYTES: usize = 40;

/// First two bytes of every header.
pub const MAGIC: u16 = 0xacca;

/// Offset of the header's own checksum, which is of all that stands before it.
const CHECKSUM_AT: usize = 36;

/// Fields of a header, but for its magic and its own checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number that fio gives the kind of verification.
    pub kind: u16,
    /// Bytes from this header to the next.
    pub length_bytes: u32,
    /// Seed that the data of the whole I/O is made from; 0 where it is a pattern.
    pub seed: u64,
    /// Offset in the file of what the header is of.
    pub offset_bytes: u64,
    /// Time of the write, since any moment.
    pub time_ns: u64,
    /// Number of the job in its file, clones counted, from 1.
    pub thread: u16,
    /// Writes that the job issued before this one.
    pub number: u16,
}

impl Header {
    /// Encodes the header with its magic and its checksum.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let (seconds, rest_ns) = (self.time_ns / NS_PER_S, self.time_ns % NS_PER_S);
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&(seconds as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&(rest_ns as u32).to_le_bytes());
        bytes[32..34].copy_from_slice(&self.thread.to_le_bytes());
        bytes[34..36].copy_from_slice(&self.number.to_le_bytes());
        let checksum = crc32c(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a header, whatever its magic and its checksum are.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> DecodedHeader {
        let checksum = u32_at(bytes, CHECKSUM_AT);
        let seconds = u64::from(u32_at(bytes, 24));
        DecodedHeader {
            magic: u16_at(bytes, 0),
            header: Header {
                kind: u16_at(bytes, 2),
                length_bytes: u32_at(bytes, 4),
                seed: u64_at(bytes, 8),
                offset_bytes: u64_at(bytes, 16),
                time_ns: seconds * NS_PER_S + u64::from(u32_at(bytes, 28)),
                thread: u16_at(bytes, 32),
                number: u16_at(bytes, 34),
            },
            checksum,
            checksum_expected: crc32c(&bytes[..CHECKSUM_AT]),
        }
    }
}

/// Header as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedHeader {
    /// [`MAGIC`], where it is a header.
    pub magic: u16,
    /// Its fields.
    pub header: Header,
    /// Checksum that it carries of itself.
    pub checksum: u32,
    /// Checksum that its bytes have.
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

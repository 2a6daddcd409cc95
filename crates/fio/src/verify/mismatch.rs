//! Difference between a block that was read and the data expected in it.

use super::Checksum;
use std::fmt::{self, Display, Formatter};

/// Part of a block that has an unexpected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockField {
    /// Magic number, the first two bytes of every verification header.
    Magic,
    /// Checksum that the header carries of itself.
    HeaderChecksum,
    /// Bytes from a verification header to the next one.
    Length,
    /// Offset of the block. A different value means a block that was written to another offset.
    Offset,
    /// Verification method stored in the header.
    Kind,
    /// Number of the write. A different value means data of another write to the same offset.
    Number,
    /// Seed of the data. A different value means data of another run or job.
    Seed,
    /// Time of the write, in nanoseconds. A different value means data of an earlier pass or run.
    Time,
    /// Checksum of the data after a verification header.
    Checksum(Checksum),
    /// Data of the block; the text names the verification method.
    Data(&'static str),
}

/// First byte of a block that differs from the expected data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferingByte {
    /// Offset of the byte in the file.
    pub offset_bytes: u64,
    /// Value of the byte that was written.
    pub expected: u8,
    /// Value of the byte that was read.
    pub actual: u8,
}

/// First difference between a block and the data written to its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Part of the block that differs.
    pub block_field: BlockField,
    /// Offset in the file of the block with the header, or of the differing byte if only that is
    /// known.
    pub offset_bytes: u64,
    /// Expected value of the differing part, as text.
    pub expected: String,
    /// Value of the differing part that was read, as text.
    pub actual: String,
    /// First differing byte of the data, if it is known.
    pub differing_byte: Option<DifferingByte>,
}

impl DifferingByte {
    pub(super) fn shift_offset(self, bytes: u64) -> Self {
        Self {
            offset_bytes: self.offset_bytes + bytes,
            ..self
        }
    }
}

/// Finds the first byte that differs between two slices of equal length.
pub(super) fn find_first_difference(expected: &[u8], got: &[u8]) -> Option<DifferingByte> {
    let mut pairs = expected.iter().zip(got);
    let at = pairs.position(|(expected, got)| expected != got)?;
    Some(DifferingByte {
        offset_bytes: at as u64,
        expected: expected[at],
        actual: got[at],
    })
}

impl Mismatch {
    pub(super) fn for_field(
        field: BlockField,
        offset_bytes: u64,
        (expected, got): (u64, u64),
    ) -> Self {
        let show = |value: u64| match field {
            BlockField::Offset
            | BlockField::Length
            | BlockField::Number
            | BlockField::Kind
            | BlockField::Time => value.to_string(),
            BlockField::Magic | BlockField::HeaderChecksum | BlockField::Seed => {
                format!("0x{value:x}")
            }
            BlockField::Checksum(_) | BlockField::Data(_) => {
                unreachable!("these are no fields of numbers")
            }
        };
        Self {
            block_field: field,
            offset_bytes,
            expected: show(expected),
            actual: show(got),
            differing_byte: None,
        }
    }

    pub(super) fn for_checksum(
        checksum: Checksum,
        offset_bytes: u64,
        (stored, computed): (&[u8], &[u8]),
        byte: Option<DifferingByte>,
    ) -> Self {
        Self {
            block_field: BlockField::Checksum(checksum),
            offset_bytes,
            expected: to_hexadecimal(stored),
            actual: to_hexadecimal(computed),
            differing_byte: byte,
        }
    }

    pub(super) fn for_data(kind: &'static str, byte: DifferingByte) -> Self {
        Self {
            block_field: BlockField::Data(kind),
            offset_bytes: byte.offset_bytes,
            expected: format!("0x{:02x}", byte.expected),
            actual: format!("0x{:02x}", byte.actual),
            differing_byte: Some(byte),
        }
    }
}

/// Formats bytes as hexadecimal digits in the order on the medium.
fn to_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Display for Mismatch {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            block_field: field,
            offset_bytes,
            expected,
            actual: got,
            differing_byte: byte,
        } = self;
        write!(to, "byte {offset_bytes}: ")?;
        match field {
            BlockField::Magic => write!(to, "no header")?,
            BlockField::HeaderChecksum => write!(to, "the crc32c of the header")?,
            BlockField::Length => write!(to, "the length in the header")?,
            BlockField::Offset => write!(to, "block written at another offset; its offset")?,
            BlockField::Kind => write!(to, "other verification method; its number")?,
            BlockField::Number => write!(to, "block of another write; its write number")?,
            BlockField::Seed => write!(to, "block of another run; its seed")?,
            BlockField::Time => write!(to, "block of an earlier write; its time in ns")?,
            BlockField::Checksum(checksum) => write!(to, "{} of the data", checksum.name())?,
            BlockField::Data(kind) => write!(to, "the data ({kind})")?,
        }
        write!(to, ": expected {expected}, got {got}")?;
        match (field, byte) {
            (BlockField::Checksum(_), Some(byte)) => write!(
                to,
                "; first differing byte {}: expected 0x{:02x}, got 0x{:02x}",
                byte.offset_bytes, byte.expected, byte.actual
            ),
            _ => Ok(()),
        }
    }
}

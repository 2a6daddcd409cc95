//! Difference between a block that was read and the data expected in it.

use super::Checksum;
use std::fmt::{self, Display, Formatter};

/// Part of a block that has an unexpected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
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
    pub got: u8,
}

/// First difference between a block and the data written to its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Part of the block that differs.
    pub field: Field,
    /// Offset in the file of the block with the header, or of the differing byte if only that is
    /// known.
    pub offset_bytes: u64,
    /// Expected value of the differing part, as text.
    pub expected: String,
    /// Value of the differing part that was read, as text.
    pub got: String,
    /// First differing byte of the data, if it is known.
    pub byte: Option<DifferingByte>,
}

impl DifferingByte {
    pub(super) fn shifted_by(self, bytes: u64) -> Self {
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
        got: got[at],
    })
}

impl Mismatch {
    pub(super) fn for_field(field: Field, offset_bytes: u64, (expected, got): (u64, u64)) -> Self {
        let show = |value: u64| match field {
            Field::Offset | Field::Length | Field::Number | Field::Kind | Field::Time => {
                value.to_string()
            }
            Field::Magic | Field::HeaderChecksum | Field::Seed => format!("0x{value:x}"),
            Field::Checksum(_) | Field::Data(_) => unreachable!("these are no fields of numbers"),
        };
        Self {
            field,
            offset_bytes,
            expected: show(expected),
            got: show(got),
            byte: None,
        }
    }

    pub(super) fn of_checksum(
        checksum: Checksum,
        offset_bytes: u64,
        (stored, computed): (&[u8], &[u8]),
        byte: Option<DifferingByte>,
    ) -> Self {
        Self {
            field: Field::Checksum(checksum),
            offset_bytes,
            expected: to_hexadecimal(stored),
            got: to_hexadecimal(computed),
            byte,
        }
    }

    pub(super) fn for_data(kind: &'static str, byte: DifferingByte) -> Self {
        Self {
            field: Field::Data(kind),
            offset_bytes: byte.offset_bytes,
            expected: format!("0x{:02x}", byte.expected),
            got: format!("0x{:02x}", byte.got),
            byte: Some(byte),
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
            field,
            offset_bytes,
            expected,
            got,
            byte,
        } = self;
        write!(to, "byte {offset_bytes}: ")?;
        match field {
            Field::Magic => write!(to, "no header")?,
            Field::HeaderChecksum => write!(to, "the header's own crc32c")?,
            Field::Length => write!(to, "the length in the header")?,
            Field::Offset => write!(to, "a block that was written elsewhere; its offset")?,
            Field::Kind => write!(to, "another kind of verification; its number")?,
            Field::Number => write!(to, "a block of another write; the write's number")?,
            Field::Seed => write!(to, "a block of another run; its seed")?,
            Field::Time => write!(to, "a block of an earlier write; its time in ns")?,
            Field::Checksum(checksum) => write!(to, "{} of the data", checksum.name())?,
            Field::Data(kind) => write!(to, "the data ({kind})")?,
        }
        write!(to, ": expected {expected}, got {got}")?;
        match (field, byte) {
            (Field::Checksum(_), Some(byte)) => write!(
                to,
                "; first differing byte {}: expected 0x{:02x}, got 0x{:02x}",
                byte.offset_bytes, byte.expected, byte.got
            ),
            _ => Ok(()),
        }
    }
}

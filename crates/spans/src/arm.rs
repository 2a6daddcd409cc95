//! Background work of a disk actuator, which belongs to no host request.

use crate::{DiskPosition, Nanoseconds, Span, Stage, with_starts};

/// Kind of actuator work that belongs to no host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ArmWork {
    /// Destage: the drive writes data from its write-back cache to the media.
    Destage,
    /// Cleaning: the drive rewrites a band of shingled tracks.
    Cleaning,
    /// Read-ahead: the drive continues to read after a host read.
    ReadAhead,
}

/// Recorded background operation of a disk actuator: destage, cleaning or read-ahead.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracedArm {
    /// Number of the drive.
    pub drive: u32,
    /// Kind of background work.
    pub work: ArmWork,
    /// First sector of the operation, counted from the start of the drive.
    pub sector: u64,
    /// Length of the operation, in sectors.
    pub sectors: u32,
    /// Position of the first sector on the platters.
    pub position: DiskPosition,
    /// Start of the background operation.
    pub from: Nanoseconds,
    /// Stages of the background operation in order of time, without gaps.
    pub spans: Vec<Span>,
}

impl TracedArm {
    /// Returns the end of the background operation.
    pub fn until(&self) -> Nanoseconds {
        self.spans.last().map_or(self.from, |span| span.until)
    }

    /// Returns each stage of the background operation with its start and end.
    pub fn parts(&self) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
        with_starts(self.from, &self.spans)
    }

    /// Returns the memory that this record of an actuator operation occupies, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&self.spans[..])
    }
}

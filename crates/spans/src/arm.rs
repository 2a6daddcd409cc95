//! Background work of a disk actuator, which belongs to no host request.

use crate::{DiskPosition, Nanoseconds, Span, StageInterval, stage_intervals};

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
    #[cfg_attr(feature = "serde", serde(rename = "drive"))]
    pub drive_index: u32,
    /// Kind of background work.
    #[cfg_attr(feature = "serde", serde(rename = "work"))]
    pub arm_work: ArmWork,
    /// First sector of the operation, counted from the start of the drive.
    pub sector: u64,
    /// Length of the operation, in sectors.
    #[cfg_attr(feature = "serde", serde(rename = "sectors"))]
    pub sector_count: u32,
    /// Position of the first sector on the platters.
    #[cfg_attr(feature = "serde", serde(rename = "position"))]
    pub arm_position: DiskPosition,
    /// Start of the background operation.
    #[cfg_attr(feature = "serde", serde(rename = "from"))]
    pub work_start: Nanoseconds,
    /// Stages of the background operation in order of time, without gaps.
    pub spans: Vec<Span>,
}

impl TracedArm {
    /// Returns the end of the background operation.
    pub fn work_end(&self) -> Nanoseconds {
        self.spans
            .last()
            .map_or(self.work_start, |span| span.stage_end)
    }

    /// Returns each stage of the background operation with its start and end.
    pub fn stage_intervals(&self) -> impl Iterator<Item = StageInterval> + '_ {
        stage_intervals(self.work_start, &self.spans)
    }

    /// Returns the memory that this record of an actuator operation occupies, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&self.spans[..])
    }
}

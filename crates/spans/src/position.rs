//! Physical position of a request on a drive.

/// Physical position of a request on a device: on a disk or in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Position {
    /// Position of the first sector of a request on a disk.
    Disk(DiskPosition),
    /// Position of the first page of a request in flash.
    Flash {
        /// Channel of the die, which other dies share.
        channel: u32,
        /// Index of the die among the dies of its channel.
        die: u32,
    },
}

/// Physical position on the platters of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DiskPosition {
    /// Cylinder of the sector.
    pub cylinder: u32,
    /// Head of the sector, which selects the track within the cylinder.
    pub head: u32,
    /// Angular slot of the sector, including track and cylinder skew, of the [`Self::slots`] that
    /// divide the track.
    pub slot: u32,
    /// Number of slots that divide the track.
    pub slots: u32,
}

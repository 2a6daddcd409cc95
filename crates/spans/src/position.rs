//! Where on a drive something is.

/// Where on a device a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Position {
    /// Place of the first sector of a request, on a disk.
    Disk(DiskPosition),
    /// Place of the first page of a request, in flash.
    Flash {
        /// The way to the die, which others share.
        channel: u32,
        /// The die, of all that the channel has.
        die: u32,
    },
}

/// A place on the platters of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DiskPosition {
    /// The cylinder.
    pub cylinder: u32,
    /// The head.
    pub head: u32,
    /// The slot, of [`Self::slots`] that its track is divided into, as turned
    /// by the skews.
    pub slot: u32,
    /// How many slots that track has.
    pub slots: u32,
}

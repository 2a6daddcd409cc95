//! What the arm of a disk does of its own accord.

use crate::{DiskPosition, Nanoseconds, Span, Stage, with_starts};

/// What an arm does for no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ArmWork {
    /// It writes what the buffer took.
    Destage,
    /// It writes a band of shingled tracks anew.
    Cleaning,
    /// It reads on behind a read.
    ReadAhead,
}

/// One piece of such work.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracedArm {
    /// The drive.
    pub drive: u32,
    /// What it is.
    pub work: ArmWork,
    /// Its first sector, from the start of the drive.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// Where that is.
    pub position: DiskPosition,
    /// When it began.
    pub from: Nanoseconds,
    /// What its time went to, without gap.
    pub spans: Vec<Span>,
}

impl TracedArm {
    /// When it ended.
    pub fn until(&self) -> Nanoseconds {
        self.spans.last().map_or(self.from, |span| span.until)
    }

    /// Its spans with their starts.
    pub fn parts(&self) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
        with_starts(self.from, &self.spans)
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&self.spans[..])
    }
}

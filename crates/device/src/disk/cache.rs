//! The buffer of a disk: segments that hold what was read and what lies behind it, and
//! sectors that were taken from the host and are not on the medium.

mod segments;
mod written;

pub use segments::{Found, Segments};
pub use written::{Extent, Written};

use super::layout::Layout;

/// How a disk keeps what it reads.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ReadCacheSpecification {
    /// Segments, each with a run of sectors; 0 keeps nothing.
    pub segments: u32,
    /// Sectors of the medium that a segment holds.
    pub segment_sectors: u32,
    /// How far it reads on after a read.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_ahead: ReadAhead,
    /// After which reads.
    #[cfg_attr(feature = "serde", serde(default))]
    pub read_ahead_after: ReadAheadAfter,
    /// What the limit is counted from.
    #[cfg_attr(feature = "serde", serde(default))]
    pub limit_from: LimitFrom,
    /// The most sectors that it reads on; those of a segment if absent, which is the most
    /// in any case.
    #[cfg_attr(feature = "serde", serde(default))]
    pub most_ahead_sectors: Option<u32>,
    /// So many sectors it reads on even when another request waits.
    #[cfg_attr(feature = "serde", serde(default))]
    pub least_ahead_sectors: u32,
    /// Whether sectors of the same track that pass before the wanted ones are kept.
    #[cfg_attr(feature = "serde", serde(default))]
    pub keep_passing_sectors: bool,
    /// What remains in a segment once it was read from there.
    #[cfg_attr(feature = "serde", serde(default))]
    pub after_read: AfterRead,
    /// What a write does to segments.
    #[cfg_attr(feature = "serde", serde(default))]
    pub after_write: AfterWrite,
    /// Whether it goes on reading ahead behind a read that the buffer answered: DiskSim's
    /// `Read-ahead on idle hit`.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub read_ahead_after_hit: bool,
    /// Whether a segment is taken for what is written, which can be read from there.
    #[cfg_attr(feature = "serde", serde(default))]
    pub keep_written: bool,
}

/// How far a disk reads on: DiskSim's `Buffer continuous read`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ReadAhead {
    /// Not at all (0).
    #[default]
    None,
    /// To the end of the track (1).
    TrackEnd,
    /// All of the track, which takes a revolution.
    WholeTrack,
    /// To the end of the cylinder (2).
    CylinderEnd,
    /// To the limit, over heads and cylinders (3).
    Limit,
    /// To the end of the track that the next sector is on, and of one more where the
    /// segment began before that track; without limit (4).
    NextTrackEnd,
}

/// After which reads a disk reads on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ReadAheadAfter {
    /// After each.
    #[default]
    AnyRead,
    /// After one that goes on where a segment ended.
    SequentialRead,
}

/// Where the limit of reading on is counted from: DiskSim's `Read-ahead over requested`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum LimitFrom {
    /// The end of the request.
    #[default]
    RequestEnd,
    /// Its first sector.
    RequestStart,
}

/// What remains of a segment once it was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum AfterRead {
    /// All.
    #[default]
    All,
    /// Only what lies ahead.
    Ahead,
}

/// What a write does to segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum AfterWrite {
    /// Those that have some of its sectors are dropped.
    #[default]
    DropsOverlapping,
    /// All are dropped.
    DropsAll,
    /// They take the new contents.
    Updates,
}

/// How a disk keeps what is written.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct WriteCacheSpecification {
    /// The most sectors, as the host counts them, that wait to be written.
    pub most_sectors: u64,
    /// The most runs of neighbouring sectors that they make.
    pub most_extents: u32,
    /// The share of either from which on they are written even when reads wait.
    pub high_water_share: f64,
    /// How long the arm must have had nothing to do before they are written, in ms.
    #[cfg_attr(feature = "serde", serde(default))]
    pub idle_ms: f64,
    /// The most sectors that are written at once, before another choice is made.
    pub most_destaged_sectors: u32,
    /// Whether reads find them.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub read_hits: bool,
    /// Whether only a write that finds nothing waiting, or goes on where what waits ends, is
    /// done early; others go to the medium: DiskSim's `Fast write level` 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub appending_only: bool,
}

#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}

impl ReadCacheSpecification {
    /// The sector behind the last one that is read on after a read of sectors `first` to
    /// `end`, whose segment begins at `segment_first`.
    #[inline(always)]
    pub fn ahead_until(
        &self,
        layout: &Layout,
        (first, end): (u64, u64),
        segment_first: u64,
    ) -> u64 {
        if self.segments == 0 || end >= layout.sectors() {
            return end;
        }
        // What a segment does not hold would be read for nothing.
        let held = u64::from(self.segment_sectors);
        let most = self.most_ahead_sectors.map_or(held, u64::from).min(held);
        let limit = match self.limit_from {
            LimitFrom::RequestEnd => end + most,
            LimitFrom::RequestStart => first + most,
        };
        let until = match self.read_ahead {
            ReadAhead::None => end,
            ReadAhead::TrackEnd => layout.end_of_track(end - 1).min(limit),
            ReadAhead::WholeTrack => layout.end_of_track(end - 1),
            ReadAhead::CylinderEnd => layout.end_of_cylinder(end - 1).min(limit),
            ReadAhead::Limit => limit,
            ReadAhead::NextTrackEnd => {
                let track_end = layout.end_of_track(end);
                let before = !layout.locate(segment_first).same_track(&layout.locate(end));
                match before && track_end < layout.sectors() {
                    true => layout.end_of_track(track_end),
                    false => track_end,
                }
            }
        };
        until.clamp(end, layout.sectors())
    }
}

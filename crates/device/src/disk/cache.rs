//! Disk buffer: read-cache segments with prefetched sectors, and the write-back cache with sectors
//! that are not yet on the medium.

mod segments;
mod written;

pub use segments::{SegmentCache, SegmentHit};
pub use written::{SectorExtent, WriteBackCache};

use super::layout::Layout;

/// Settings of a disk's read cache and its read-ahead.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ReadCacheSpecification {
    /// Number of segments, each of which holds one run of contiguous sectors. 0 disables the read
    /// cache.
    pub segments: u32,
    /// Capacity of one segment, in sectors of the medium.
    pub segment_sectors: u32,
    /// Point up to which the disk prefetches after a read.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "read_ahead"))]
    pub read_ahead_scope: ReadAheadScope,
    /// Reads that start a read-ahead: all, or sequential ones only.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "read_ahead_after"))]
    pub read_ahead_trigger: ReadAheadTrigger,
    /// Sector from which the read-ahead limit is counted: the start or the end of the request.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "limit_from"))]
    pub limit_reference: LimitReference,
    /// Maximum length of a read-ahead, in sectors. Defaults to the size of a segment, and is never
    /// more than that.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "most_ahead_sectors"))]
    pub read_ahead_sectors_max: Option<u32>,
    /// Minimum length of a read-ahead, in sectors. The disk reads at least this far even when
    /// another request is pending.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "least_ahead_sectors"))]
    pub read_ahead_sectors_min: u32,
    /// Whether the cache keeps sectors that pass under the head on the same track before the
    /// requested ones.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "keep_passing_sectors"))]
    pub keeps_passing_sectors: bool,
    /// Part of a segment that stays cached after a read hit.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "after_read"))]
    pub keep_after_read: KeepAfterRead,
    /// Effect of a write on cached segments.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "after_write"))]
    pub keep_after_write: KeepAfterWrite,
    /// Whether read-ahead continues after a read that hits the cache: DiskSim's `Read-ahead on idle
    /// hit`.
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    #[cfg_attr(feature = "serde", serde(rename = "read_ahead_after_hit"))]
    pub resumes_after_hit: bool,
    /// Whether a read whose first sectors are in the buffer reads only the others from the medium.
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    #[cfg_attr(feature = "serde", serde(rename = "use_partial_hits"))]
    pub uses_partial_hits: bool,
    /// Whether a read of sectors that the read-ahead has yet to reach waits for it. Otherwise the
    /// read interrupts a read-ahead that has not come to its first sector.
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    #[cfg_attr(feature = "serde", serde(rename = "join_unread_sectors"))]
    pub joins_unread_sectors: bool,
    /// Whether written sectors also go into a read-cache segment, so that later reads hit them.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "keep_written"))]
    pub keeps_written_sectors: bool,
}

/// Extent of the read-ahead behind a read: DiskSim's `Buffer continuous read`, whose number is in
/// parentheses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ReadAheadScope {
    /// The disk never prefetches (0).
    #[default]
    None,
    /// Read-ahead to the end of the track (1).
    TrackEnd,
    /// Read of the full track, which takes one revolution.
    WholeTrack,
    /// Read-ahead to the end of the cylinder (2).
    CylinderEnd,
    /// Read-ahead to the configured limit, across heads and cylinders (3).
    Limit,
    /// Read-ahead to the end of the track that holds the next sector, and of one more track if the
    /// segment began before that track; without limit (4).
    NextTrackEnd,
}

/// Condition for a read to start a read-ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ReadAheadTrigger {
    /// Every read of the disk starts a read-ahead.
    #[default]
    AnyRead,
    /// Only a read that begins where a cached segment ends starts a read-ahead.
    SequentialRead,
}

/// Origin of the read-ahead limit: DiskSim's `Read-ahead over requested`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum LimitReference {
    /// The limit counts from the end of the request.
    #[default]
    RequestEnd,
    /// The limit counts from the first sector of the request.
    RequestStart,
}

/// Part of a cache segment that survives a read hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum KeepAfterRead {
    /// All sectors of the segment stay cached.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "all"))]
    WholeSegment,
    /// Only sectors behind the end of the read stay cached.
    #[cfg_attr(feature = "serde", serde(rename = "ahead"))]
    ReadAheadOnly,
}

/// Effect of a write on the segments of the read cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum KeepAfterWrite {
    /// The write drops segments that overlap its sectors.
    #[default]
    DropsOverlapping,
    /// A write drops all segments of the read cache.
    DropsAll,
    /// Segments take over the new contents of written sectors.
    Updates,
}

/// Settings of a disk's write-back cache.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct WriteCacheSpecification {
    /// Capacity of the write-back cache, in sectors as the host counts them.
    #[cfg_attr(feature = "serde", serde(rename = "most_sectors"))]
    pub sectors_max: u64,
    /// Maximum number of extents (runs of contiguous sectors) in the write-back cache.
    #[cfg_attr(feature = "serde", serde(rename = "most_extents"))]
    pub extents_max: u32,
    /// High-water mark as a share of either capacity, from 0 to 1. From this fill level on, the
    /// drive destages even while reads are pending.
    pub high_water_share: f64,
    /// Idle time of the actuator before the drive starts to destage, in ms.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "idle_ms"))]
    pub destage_idle_ms: f64,
    /// Maximum number of sectors of one destage operation, before the drive chooses its next work.
    #[cfg_attr(feature = "serde", serde(rename = "most_destaged_sectors"))]
    pub destage_sectors_max: u32,
    /// Whether reads can hit sectors in the write-back cache.
    #[cfg_attr(feature = "serde", serde(default = "default_true"))]
    #[cfg_attr(feature = "serde", serde(rename = "read_hits"))]
    pub serves_reads: bool,
    /// Whether the cache accepts only writes that find it empty or that continue an extent in it.
    /// Other writes go to the medium before they complete: DiskSim's `Fast write level` 1.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "appending_only"))]
    pub accepts_appends_only: bool,
    /// Whether an extent occupies its place among `extents_max` until its destage ends. With one
    /// extent, a write that does not continue the last one waits for the medium: DiskSim's `Fast
    /// write level` 2. The destage starts when all its data are in the cache. Otherwise a destage
    /// that has begun leaves room for another extent, and overlaps the transfer over the link.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "holds_destaged"))]
    pub holds_destaged_extent: bool,
    /// Whether the firmware takes up a write only when there is room for it and the arm is idle: the
    /// command's overhead then elapses after the end of a destage, or of the seek or sector of a
    /// read-ahead, instead of during that wait.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "overhead_after_wait"))]
    pub repeats_overhead_after_wait: bool,
}

#[cfg(feature = "serde")]
fn default_true() -> bool {
    true
}

impl ReadCacheSpecification {
    /// Returns the end (exclusive) of the read-ahead after a read of sectors `first` to `end`. The
    /// read's cache segment begins at sector `segment_first`.
    #[inline(always)]
    pub fn read_ahead_end(
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
        let most = self
            .read_ahead_sectors_max
            .map_or(held, u64::from)
            .min(held);
        let limit = match self.limit_reference {
            LimitReference::RequestEnd => end + most,
            LimitReference::RequestStart => first + most,
        };
        let until = match self.read_ahead_scope {
            ReadAheadScope::None => end,
            ReadAheadScope::TrackEnd => layout.track_end(end - 1).min(limit),
            ReadAheadScope::WholeTrack => layout.track_end(end - 1),
            ReadAheadScope::CylinderEnd => layout.cylinder_end(end - 1).min(limit),
            ReadAheadScope::Limit => limit,
            ReadAheadScope::NextTrackEnd => {
                let track_end = layout.track_end(end);
                let before = !layout
                    .position_of(segment_first)
                    .is_on_same_track(&layout.position_of(end));
                match before && track_end < layout.sectors() {
                    true => layout.track_end(track_end),
                    false => track_end,
                }
            }
        };
        until.clamp(end, layout.sectors())
    }
}

//! DiskSim block `disksim_disk`: overheads, bus use, cache and queue of a drive.

use crate::keys::{ImportFindings, KeyReader};
use crate::text::ParameterBlock;

/// Overheads of one kind of request by the type of the preceding request, in milliseconds before
/// the time scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OverheadsMs {
    /// Overhead after a read, in milliseconds.
    pub read: f64,
    /// Overhead after a write, in milliseconds.
    pub write: f64,
}

/// Extent of read-ahead after a request (DiskSim's `Buffer continuous read`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAheadExtent {
    /// No read-ahead after the request (0).
    #[default]
    None,
    /// Read-ahead to the end of the track (1).
    TrackEnd,
    /// Read-ahead to the end of the cylinder (2).
    CylinderEnd,
    /// Read-ahead until the segment is full, across heads and cylinders (3).
    SegmentSize,
    /// Read-ahead to the end of the track with the next block, and one more track if the segment
    /// started before that track (4).
    NextTrackEnd,
}

/// Early completion of writes (DiskSim's `Fast write level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FastWriteSupport {
    /// No early completion: a write is complete when it is on the medium (0).
    #[default]
    None,
    /// Early completion of writes that append to the dirty segment (1).
    AppendingToSegment,
    /// Early completion also of such writes mixed with other requests (2).
    Mixed,
}

/// Buffer cache of a drive and its rules, as in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriveBuffer {
    /// Whether the buffer caches data (`Enable caching in buffer`).
    pub is_enabled: bool,
    /// Number of buffer segments (`Number of buffer segments`).
    pub segments: u32,
    /// Maximum number of segments with written data (`Maximum number of write segments`).
    pub write_segments: u32,
    /// Whether writes have a segment of their own (`Use separate write segment`).
    pub has_separate_write_segment: bool,
    /// Segment size in blocks of 512 bytes (`Segment size (in blks)`).
    pub segment_blocks: u32,
    /// Blocks to read before the drive acquires the bus (`High (read) water mark`).
    pub read_water_mark: f64,
    /// Whether the water mark is a share of the request size (`Set watermark by reqsize`).
    pub read_water_mark_is_share: bool,
    /// Extent of read-ahead (`Buffer continuous read`).
    pub read_ahead_extent: ReadAheadExtent,
    /// Minimum read-ahead in blocks, which other requests cannot preempt (`Minimum read-ahead
    /// (blks)`).
    pub read_ahead_blocks_min: u32,
    /// Maximum read-ahead in blocks (`Maximum read-ahead (blks)`); 0 means no limit.
    pub read_ahead_blocks_max: u32,
    /// Whether the segment length for read-ahead counts from the end of the request (`Read-ahead
    /// over requested`).
    pub read_ahead_counts_from_end: bool,
    /// Whether a cache hit on an idle drive starts read-ahead (`Read-ahead on idle hit`).
    pub reads_ahead_on_idle_hit: bool,
    /// Whether the drive uses rotational latency to read earlier blocks of the track (`Read any
    /// free blocks`).
    pub reads_blocks_while_waiting: bool,
    /// Early completion of writes (`Fast write level`).
    pub fast_write: FastWriteSupport,
    /// Whether reads can hit written data in the buffer (`Allow read hits on write data`).
    pub written_data_serves_reads: bool,
}

/// Electronics of a drive as in the file: overheads, bus use, cache and queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Firmware {
    /// Factor applied to all overheads (`Time scale for overheads`).
    pub overhead_scale: f64,
    /// Overhead per request in milliseconds (`Per-request overhead time`).
    pub request_overhead_ms: f64,
    /// Transfer time of a sector between drive and bus, in milliseconds (`Bulk sector transfer
    /// time`).
    pub sector_transfer_ms: f64,
    /// Overheads of a read that hits the cache (`Read hit over.`).
    pub read_hit_ms: OverheadsMs,
    /// Overheads of a read that misses the cache (`Read miss over.`).
    pub read_miss_ms: OverheadsMs,
    /// Overheads of a write that hits the cache (`Write hit over.`).
    pub write_hit_ms: OverheadsMs,
    /// Overheads of a write that misses the cache (`Write miss over.`).
    pub write_miss_ms: OverheadsMs,
    /// Overhead at the completion of a read, in milliseconds (`Read completion overhead`).
    pub read_completion_ms: f64,
    /// Overhead at the completion of a write, in milliseconds (`Write completion overhead`).
    pub write_completion_ms: f64,
    /// Overhead to prepare data for transfer, in milliseconds (`Data preparation overhead`).
    pub write_data_preparation_ms: f64,
    /// Overhead of the first reselection, in milliseconds (`First reselect overhead`).
    pub first_reselection_ms: f64,
    /// Whether the drive holds the bus during an entire read transfer (`Hold bus entire read
    /// xfer`).
    pub holds_bus_during_read: bool,
    /// Whether the drive holds the bus during an entire write transfer (`Hold bus entire write
    /// xfer`).
    pub holds_bus_during_write: bool,
    /// Whether the drive never disconnects from the bus (`Never disconnect`).
    pub never_disconnects: bool,
    /// Zero-latency reading: a read starts at any of its sectors (`Immediate buffer read`).
    pub has_zero_latency_reads: bool,
    /// Zero-latency writing: a write starts at any of its sectors (`Immediate buffer write`).
    pub has_zero_latency_writes: bool,
    /// Maximum length of the drive's queue (`Max queue length`).
    pub queue_depth_max: u32,
    /// Buffer cache of the drive and its rules.
    pub buffer: DriveBuffer,
    /// Scheduling policy of the drive's queue.
    pub scheduler: Scheduler,
}

/// Scheduling of the drive's queue (DiskSim block `disksim_ioqueue`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scheduler {
    /// Number of the policy in DiskSim (`Scheduling policy`); 1 is first come, first served.
    pub policy_number: u32,
    /// Weight of age in aged policies (`Timeout time/weight`).
    pub age_weight: f64,
}

/// Reads the electronics from a `disksim_disk` block, and returns the nested block of the drive's
/// model.
pub(crate) fn parse_firmware<'b>(
    block: &'b ParameterBlock,
    findings: &'b ImportFindings,
) -> (Firmware, Option<&'b ParameterBlock>) {
    let keys = KeyReader::new(block, findings);
    let after = |key: &str| OverheadsMs {
        read: keys.read_ms(&format!("{key} after read")),
        write: keys.read_ms(&format!("{key} after write")),
    };
    let firmware = Firmware {
        overhead_scale: keys.read_ms("Time scale for overheads"),
        request_overhead_ms: keys.read_ms("Per-request overhead time"),
        sector_transfer_ms: keys.read_ms("Bulk sector transfer time"),
        read_hit_ms: after("Read hit over."),
        read_miss_ms: after("Read miss over."),
        write_hit_ms: after("Write hit over."),
        write_miss_ms: after("Write miss over."),
        read_completion_ms: keys.read_ms("Read completion overhead"),
        write_completion_ms: keys.read_ms("Write completion overhead"),
        write_data_preparation_ms: keys.read_ms("Data preparation overhead"),
        first_reselection_ms: keys.read_ms("First reselect overhead"),
        holds_bus_during_read: keys.read_flag("Hold bus entire read xfer"),
        holds_bus_during_write: keys.read_flag("Hold bus entire write xfer"),
        never_disconnects: keys.read_flag("Never disconnect"),
        has_zero_latency_reads: keys.read_count_or_zero("Immediate buffer read") > 0,
        has_zero_latency_writes: keys.read_count_or_zero("Immediate buffer write") > 0,
        queue_depth_max: keys.read_count_or_zero("Max queue length"),
        buffer: parse_cache(&keys),
        scheduler: keys
            .read_block("Scheduler", "disksim_ioqueue")
            .map_or_else(Scheduler::default, |(_, block)| {
                parse_scheduler(block, findings)
            }),
    };
    let model = keys.read_block("Model", "").map(|(_, model)| model);
    (firmware, model)
}

fn parse_cache(keys: &KeyReader<'_>) -> DriveBuffer {
    DriveBuffer {
        // 2 is written for a cache too.
        is_enabled: keys.read_count_or_zero("Enable caching in buffer") > 0,
        segments: keys.read_count_or_zero("Number of buffer segments"),
        write_segments: keys.read_count_or_zero("Maximum number of write segments"),
        has_separate_write_segment: keys.read_flag("Use separate write segment"),
        segment_blocks: keys.read_count_or_zero("Segment size (in blks)"),
        read_water_mark: keys.read_number("High (read) water mark").unwrap_or(0.0),
        read_water_mark_is_share: keys.read_flag("Set watermark by reqsize"),
        read_ahead_extent: match keys.read_count_or_zero("Buffer continuous read") {
            0 => ReadAheadExtent::None,
            1 => ReadAheadExtent::TrackEnd,
            2 => ReadAheadExtent::CylinderEnd,
            3 => ReadAheadExtent::SegmentSize,
            _ => ReadAheadExtent::NextTrackEnd,
        },
        read_ahead_blocks_min: keys.read_count_or_zero("Minimum read-ahead (blks)"),
        read_ahead_blocks_max: keys.read_count_or_zero("Maximum read-ahead (blks)"),
        read_ahead_counts_from_end: keys.read_number("Read-ahead over requested") == Some(1.0),
        reads_ahead_on_idle_hit: keys.read_flag("Read-ahead on idle hit"),
        reads_blocks_while_waiting: keys.read_flag("Read any free blocks"),
        fast_write: match keys.read_count_or_zero("Fast write level") {
            0 => FastWriteSupport::None,
            1 => FastWriteSupport::AppendingToSegment,
            _ => FastWriteSupport::Mixed,
        },
        written_data_serves_reads: keys.read_flag("Allow read hits on write data"),
    }
}

/// Numbers of the scheduling policies to which DiskSim's `Timeout time/weight` applies.
const AGE_WEIGHTED_POLICIES: std::ops::RangeInclusive<u32> = 14..=18;

fn parse_scheduler(block: &ParameterBlock, findings: &ImportFindings) -> Scheduler {
    let keys = KeyReader::new(block, findings);
    let policy = keys.read_count_or_zero("Scheduling policy");
    let weight = "Timeout time/weight";
    if !AGE_WEIGHTED_POLICIES.contains(&policy) {
        keys.ignore_keys(&[weight], "this scheduling policy has no weight");
    }
    Scheduler {
        policy_number: policy,
        age_weight: keys.read_ms(weight),
    }
}

//! `disksim_disk`: overheads, the bus, the cache and the queue.

use crate::keys::{Findings, Keys};
use crate::text::Block;

/// Overheads of one kind of request, by what was completed before it, in milliseconds
/// before the time scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AfterMs {
    /// After a read.
    pub read: f64,
    /// After a write.
    pub write: f64,
}

/// `Buffer continuous read`: how far a read goes on beyond its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// 0: not at all.
    #[default]
    None,
    /// 1: to the end of the track.
    Track,
    /// 2: to the end of the cylinder.
    Cylinder,
    /// 3: until the segment is full, over heads and cylinders.
    Segment,
    /// 4: to the end of the track with the next block, and one more track if the segment
    /// began before it.
    NextTrack,
}

/// `Fast write level`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FastWrite {
    /// 0: a write is complete when it is on the medium.
    #[default]
    None,
    /// 1: early, for writes that append to the dirty segment.
    Appending,
    /// 2: early also when mixed with others.
    Mixed,
}

/// The cache and its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cache {
    /// `Enable caching in buffer`.
    pub is_enabled: bool,
    /// `Number of buffer segments`.
    pub segments: u32,
    /// `Maximum number of write segments`.
    pub write_segments: u32,
    /// `Use separate write segment`.
    pub has_separate_write_segment: bool,
    /// `Segment size (in blks)`.
    pub segment_blocks: u32,
    /// `High (read) water mark`: blocks that are read before the bus is taken.
    pub read_water_mark: f64,
    /// `Set watermark by reqsize`: the mark is a share of the request.
    pub mark_is_share: bool,
    /// `Buffer continuous read`.
    pub read_ahead: ReadAhead,
    /// `Minimum read-ahead (blks)`, which cannot be preempted.
    pub read_ahead_least_blocks: u32,
    /// `Maximum read-ahead (blks)`; 0 sets no limit.
    pub read_ahead_most_blocks: u32,
    /// `Read-ahead over requested`: a segment's length counts from the request's end.
    pub read_ahead_from_end: bool,
    /// `Read-ahead on idle hit`.
    pub read_ahead_on_idle_hit: bool,
    /// `Read any free blocks`: latency is spent on the track's earlier blocks.
    pub reads_free_blocks: bool,
    /// `Fast write level`.
    pub fast_write: FastWrite,
    /// `Allow read hits on write data`.
    pub read_hits_written: bool,
}

/// A drive's electronics, as the file has them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Firmware {
    /// `Time scale for overheads`: all overheads are times this.
    pub overhead_scale: f64,
    /// `Per-request overhead time`, in milliseconds.
    pub per_request_ms: f64,
    /// `Bulk sector transfer time`: of a sector between drive and bus, in milliseconds.
    pub sector_transfer_ms: f64,
    /// `Read hit over.`
    pub read_hit: AfterMs,
    /// `Read miss over.`
    pub read_miss: AfterMs,
    /// `Write hit over.`
    pub write_hit: AfterMs,
    /// `Write miss over.`
    pub write_miss: AfterMs,
    /// `Read completion overhead`, in milliseconds.
    pub read_completion_ms: f64,
    /// `Write completion overhead`, in milliseconds.
    pub write_completion_ms: f64,
    /// `Data preparation overhead`, in milliseconds.
    pub data_preparation_ms: f64,
    /// `First reselect overhead`, in milliseconds.
    pub first_reselect_ms: f64,
    /// `Hold bus entire read xfer`.
    pub holds_bus_reading: bool,
    /// `Hold bus entire write xfer`.
    pub holds_bus_writing: bool,
    /// `Never disconnect`.
    pub never_disconnects: bool,
    /// `Immediate buffer read`: zero-latency reading.
    pub zero_latency_read: bool,
    /// `Immediate buffer write`: zero-latency writing.
    pub zero_latency_write: bool,
    /// `Max queue length`.
    pub queue_length: u32,
    /// The cache.
    pub cache: Cache,
    /// The queue's order.
    pub scheduler: Scheduler,
}

/// `disksim_ioqueue`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scheduler {
    /// `Scheduling policy`, by DiskSim's number: 1 is first come, first served.
    pub policy: u32,
    /// `Timeout time/weight`: the weight of the aged policies.
    pub weight: f64,
}

/// What a `disksim_disk` says of its electronics, and the block of its model.
pub(crate) fn read<'b>(block: &'b Block, findings: &'b Findings) -> (Firmware, Option<&'b Block>) {
    let keys = Keys::new(block, findings);
    let after = |key: &str| AfterMs {
        read: keys.milliseconds(&format!("{key} after read")),
        write: keys.milliseconds(&format!("{key} after write")),
    };
    let firmware = Firmware {
        overhead_scale: keys.milliseconds("Time scale for overheads"),
        per_request_ms: keys.milliseconds("Per-request overhead time"),
        sector_transfer_ms: keys.milliseconds("Bulk sector transfer time"),
        read_hit: after("Read hit over."),
        read_miss: after("Read miss over."),
        write_hit: after("Write hit over."),
        write_miss: after("Write miss over."),
        read_completion_ms: keys.milliseconds("Read completion overhead"),
        write_completion_ms: keys.milliseconds("Write completion overhead"),
        data_preparation_ms: keys.milliseconds("Data preparation overhead"),
        first_reselect_ms: keys.milliseconds("First reselect overhead"),
        holds_bus_reading: keys.flag("Hold bus entire read xfer"),
        holds_bus_writing: keys.flag("Hold bus entire write xfer"),
        never_disconnects: keys.flag("Never disconnect"),
        zero_latency_read: keys.count_or_zero("Immediate buffer read") > 0,
        zero_latency_write: keys.count_or_zero("Immediate buffer write") > 0,
        queue_length: keys.count_or_zero("Max queue length"),
        cache: cache(&keys),
        scheduler: keys
            .block("Scheduler", "disksim_ioqueue")
            .map_or_else(Scheduler::default, |(_, block)| scheduler(block, findings)),
    };
    let model = keys.block("Model", "").map(|(_, model)| model);
    (firmware, model)
}

fn cache(keys: &Keys<'_>) -> Cache {
    Cache {
        // 2 is written for a cache too.
        is_enabled: keys.count_or_zero("Enable caching in buffer") > 0,
        segments: keys.count_or_zero("Number of buffer segments"),
        write_segments: keys.count_or_zero("Maximum number of write segments"),
        has_separate_write_segment: keys.flag("Use separate write segment"),
        segment_blocks: keys.count_or_zero("Segment size (in blks)"),
        read_water_mark: keys.real("High (read) water mark").unwrap_or(0.0),
        mark_is_share: keys.flag("Set watermark by reqsize"),
        read_ahead: match keys.count_or_zero("Buffer continuous read") {
            0 => ReadAhead::None,
            1 => ReadAhead::Track,
            2 => ReadAhead::Cylinder,
            3 => ReadAhead::Segment,
            _ => ReadAhead::NextTrack,
        },
        read_ahead_least_blocks: keys.count_or_zero("Minimum read-ahead (blks)"),
        read_ahead_most_blocks: keys.count_or_zero("Maximum read-ahead (blks)"),
        read_ahead_from_end: keys.real("Read-ahead over requested") == Some(1.0),
        read_ahead_on_idle_hit: keys.flag("Read-ahead on idle hit"),
        reads_free_blocks: keys.flag("Read any free blocks"),
        fast_write: match keys.count_or_zero("Fast write level") {
            0 => FastWrite::None,
            1 => FastWrite::Appending,
            _ => FastWrite::Mixed,
        },
        read_hits_written: keys.flag("Allow read hits on write data"),
    }
}

/// Policies that DiskSim's `Timeout time/weight` is the weight of.
const WEIGHTED: std::ops::RangeInclusive<u32> = 14..=18;

/// The keys of `disksim_ioqueue`.
fn scheduler(block: &Block, findings: &Findings) -> Scheduler {
    let keys = Keys::new(block, findings);
    let policy = keys.count_or_zero("Scheduling policy");
    let weight = "Timeout time/weight";
    if !WEIGHTED.contains(&policy) {
        keys.ignore(&[weight], "no weight of this scheduling policy");
    }
    Scheduler {
        policy,
        weight: keys.milliseconds(weight),
    }
}

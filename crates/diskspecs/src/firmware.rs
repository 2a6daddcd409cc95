//! `disksim_disk`: overheads, the bus, the cache and the queue.

use crate::keys::{Findings, Keys, Missing};
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
    /// `Low (write) water mark`: dirty blocks left before more are asked for.
    pub write_water_mark: f64,
    /// `High (read) water mark`: blocks that are read before the bus is taken.
    pub read_water_mark: f64,
    /// `Set watermark by reqsize`: the marks are shares of the request.
    pub marks_are_shares: bool,
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
    /// `Combine seq writes`.
    pub combines_writes: bool,
    /// `Stop prefetch in sector`: preempted at once, and not at the sector's end.
    pub stops_in_sector: bool,
    /// `Write hit stop prefetch`.
    pub write_hit_stops_prefetch: bool,
    /// `Immed transfer partial hit`: the mark is not waited for.
    pub partial_hit_at_once: bool,
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
    /// `Other reselect overhead`, in milliseconds.
    pub other_reselect_ms: f64,
    /// `Read disconnect afterread|afterwrite`.
    pub read_disconnect: AfterMs,
    /// `Write disconnect overhead`, in milliseconds.
    pub write_disconnect_ms: f64,
    /// `Extra write disconnect` and its times, in milliseconds: command, disconnect,
    /// between disconnects, second disconnect.
    pub extra_write_disconnect_ms: Option<[f64; 4]>,
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
    /// `Preseeking level`: 0 to 2.
    pub preseeking: u32,
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
    /// `Cylinder mapping strategy`, by DiskSim's number.
    pub cylinder_mapping: u32,
    /// `Read initiation delay`, in milliseconds.
    pub read_initiation_ms: f64,
    /// `Write initiation delay`, in milliseconds.
    pub write_initiation_ms: f64,
    /// `Timeout time/weight`: the weight of the aged policies.
    pub weight: f64,
}

/// The last of the numbers that DiskSim has for policies.
const LAST_POLICY: u64 = 28;

const NO_DRIVE: &str = "0 in every drive that was measured";

/// What a `disksim_disk` says of its electronics, and the block of its model.
pub(crate) fn read<'b>(block: &'b Block, findings: &'b Findings) -> (Firmware, Option<&'b Block>) {
    // DiskSim names a key that is missing, and goes on with 0.
    let keys = Keys::new(block, findings, Missing::Zero);
    let after = |key: &str| AfterMs {
        read: keys.milliseconds(&format!("{key} after read")),
        write: keys.milliseconds(&format!("{key} after write")),
    };
    let firmware = Firmware {
        overhead_scale: keys.real_or_zero("Time scale for overheads", 0.0..=1e6),
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
        other_reselect_ms: keys.milliseconds("Other reselect overhead"),
        read_disconnect: AfterMs {
            read: keys.milliseconds("Read disconnect afterread"),
            write: keys.milliseconds("Read disconnect afterwrite"),
        },
        write_disconnect_ms: keys.milliseconds("Write disconnect overhead"),
        extra_write_disconnect_ms: extra_disconnect(&keys),
        holds_bus_reading: keys.flag("Hold bus entire read xfer"),
        holds_bus_writing: keys.flag("Hold bus entire write xfer"),
        never_disconnects: keys.flag("Never disconnect"),
        zero_latency_read: keys.count_or_zero("Immediate buffer read", 2) > 0,
        zero_latency_write: keys.count_or_zero("Immediate buffer write", 2) > 0,
        preseeking: keys.count_or_zero("Preseeking level", 2) as u32,
        queue_length: keys.count_or_zero("Max queue length", 1 << 20) as u32,
        cache: cache(&keys),
        scheduler: keys
            .block("Scheduler")
            .map_or_else(Scheduler::default, |(_, block)| scheduler(block, findings)),
    };
    let model = keys.block("Model").map(|(_, model)| model);
    without_effect(&keys);
    keys.finish();
    (firmware, model)
}

fn extra_disconnect(keys: &Keys<'_>) -> Option<[f64; 4]> {
    let times = [
        "Extradisc command overhead",
        "Extradisc disconnect overhead",
        "Extradisc inter-disconnect delay",
        "Extradisc 2nd disconnect overhead",
    ];
    let times = times.map(|key| keys.milliseconds(key));
    keys.flag("Extra write disconnect").then_some(times)
}

fn cache(keys: &Keys<'_>) -> Cache {
    let blocks = |key: &str| keys.count_or_zero(key, 1 << 30) as u32;
    Cache {
        // 2 is written for a cache too.
        is_enabled: keys.count_or_zero("Enable caching in buffer", 2) > 0,
        segments: blocks("Number of buffer segments"),
        write_segments: blocks("Maximum number of write segments"),
        has_separate_write_segment: keys.flag("Use separate write segment"),
        segment_blocks: blocks("Segment size (in blks)"),
        write_water_mark: keys.real_or_zero("Low (write) water mark", 0.0..=1e9),
        read_water_mark: keys.real_or_zero("High (read) water mark", 0.0..=1e9),
        marks_are_shares: keys.flag("Set watermark by reqsize"),
        read_ahead: match keys.count_or_zero("Buffer continuous read", 4) {
            0 => ReadAhead::None,
            1 => ReadAhead::Track,
            2 => ReadAhead::Cylinder,
            3 => ReadAhead::Segment,
            _ => ReadAhead::NextTrack,
        },
        read_ahead_least_blocks: blocks("Minimum read-ahead (blks)"),
        read_ahead_most_blocks: blocks("Maximum read-ahead (blks)"),
        read_ahead_from_end: keys.real_or_zero("Read-ahead over requested", -1.0..=1.0) > 0.0,
        read_ahead_on_idle_hit: keys.flag("Read-ahead on idle hit"),
        reads_free_blocks: keys.flag("Read any free blocks"),
        fast_write: match keys.count_or_zero("Fast write level", 2) {
            0 => FastWrite::None,
            1 => FastWrite::Appending,
            _ => FastWrite::Mixed,
        },
        combines_writes: keys.flag("Combine seq writes"),
        stops_in_sector: keys.flag("Stop prefetch in sector"),
        write_hit_stops_prefetch: keys.flag("Write hit stop prefetch"),
        partial_hit_at_once: keys.flag("Immed transfer partial hit"),
        read_hits_written: keys.flag("Allow read hits on write data"),
    }
}

const SNEAKY: [&str; 4] = [
    "Allow almost read hits",
    "Allow sneaky full read hits",
    "Allow sneaky partial read hits",
    "Allow sneaky intermediate read hits",
];

fn without_effect(keys: &Keys<'_>) {
    keys.ignore(&SNEAKY, "no drive that was measured has such hits");
    keys.ignore(&["Print stats"], "of DiskSim's own output");
    let unused = "no service time depends on it";
    keys.ignore(
        &["Avg sectors per cylinder", "Calc sector by sector"],
        unused,
    );
    keys.ignore(
        &["Minimum seek delay", "Extradisc seek delta"],
        "DiskSim does not use it",
    );
    keys.only("Allow write prebuffering", 0, NO_DRIVE);
    keys.only("Disconnect write if seek", 0, NO_DRIVE);
    keys.only(
        "Read directly to buffer",
        1,
        "1 in every drive that was measured",
    );
}

/// The keys of `disksim_ioqueue`.
fn scheduler(block: &Block, findings: &Findings) -> Scheduler {
    let keys = Keys::new(block, findings, Missing::Zero);
    let scheduler = Scheduler {
        policy: keys.count_or_zero("Scheduling policy", LAST_POLICY) as u32,
        cylinder_mapping: keys.count_or_zero("Cylinder mapping strategy", 6) as u32,
        read_initiation_ms: keys.milliseconds("Read initiation delay"),
        write_initiation_ms: keys.milliseconds("Write initiation delay"),
        weight: keys.real_or_zero("Timeout time/weight", 0.0..=1e9),
    };
    let schemes = [
        "Sequential stream scheme",
        "Overlapping request scheme",
        "Scheduling timeout scheme",
        "Scheduling priority scheme",
    ];
    for key in schemes {
        keys.only(key, 0, "requests are neither joined nor timed out");
    }
    let of_schemes = [
        "Maximum concat size",
        "Sequential stream diff maximum",
        "Timeout scheduling",
        "Priority scheduling",
    ];
    keys.ignore(&of_schemes, "of a scheme that is not used");
    keys.finish();
    scheduler
}

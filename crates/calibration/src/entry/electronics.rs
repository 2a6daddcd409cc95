//! Firmware overheads, buffer and queue of a catalogue entry.

use super::EntryWriter;
use super::geometry::BLOCK_BYTES;
use diskperf_diskspecs::{
    DriveBuffer, FastWriteSupport, Firmware, ReadAheadExtent, Scheduler, SpecifiedDrive,
};

/// Link rate of an entry for a drive whose files give none, in bytes per second: the maximum.
const UNLIMITED_LINK_BYTES_PER_S: u64 = 1_000_000_000_000;

/// Writes the electronics of an entry, and notes where the modelled drive differs from the files.
pub(super) fn write_electronics(
    entry: &mut EntryWriter,
    drive: &SpecifiedDrive,
    differs: &mut Vec<String>,
) {
    if drive.firmware.is_none() {
        differs.push(
            "a .model file has no electronics: no overheads, no buffer, one command at a time, and a link of no time"
                .to_owned(),
        );
    }
    let firmware = drive.firmware.unwrap_or_default();
    entry.write_flag("zero_latency_reads", firmware.has_zero_latency_reads);
    entry.write_flag("zero_latency_writes", firmware.has_zero_latency_writes);
    entry.blank_line();
    write_queue(entry, &firmware, differs);
    entry.blank_line();
    write_overheads(entry, &firmware);
    write_link(entry, drive, &firmware);
    entry.blank_line();
    write_read_cache(entry, &firmware.buffer);
    write_write_cache(entry, &firmware.buffer);
    entry.write_word("flush", "drains");
    differs.extend(unsupported_settings(&firmware));
}

fn write_queue(entry: &mut EntryWriter, firmware: &Firmware, differs: &mut Vec<String>) {
    entry.write_integer("queue_depth", u64::from(firmware.queue_depth_max.max(1)));
    let policy = translate_policy(&firmware.scheduler);
    entry.write_word("queue_policy", policy.name);
    if policy.is_by_sector {
        entry.write_word("queue_distance", "sector");
    }
    if policy.name == "aged_sptf" {
        entry.write_number("aged_sptf_ms_per_s", firmware.scheduler.age_weight);
    }
    if policy.name == "v_scan" {
        entry.write_number(
            "v_scan_share",
            firmware.scheduler.age_weight.clamp(0.0, 1.0),
        );
    }
    // One command at a time has no order.
    if firmware.queue_depth_max > 1 {
        differs.extend(policy.difference.map(|difference| {
            let number = firmware.scheduler.policy_number;
            let name = policy.name;
            format!("Scheduling policy {number}: {difference}; taken as {name}")
        }));
    }
}

/// Scheduling policy of the catalogue for one of DiskSim.
struct SchedulingPolicy {
    name: &'static str,
    /// Whether the policy measures distances in sectors; otherwise in cylinders.
    is_by_sector: bool,
    /// Difference from DiskSim's policy; `None` if the policies are equal.
    difference: Option<&'static str>,
}

/// Translates a scheduling policy of DiskSim.
fn translate_policy(scheduler: &Scheduler) -> SchedulingPolicy {
    let (name, difference) = match scheduler.policy_number {
        2 | 5 => ("look", None),
        3 | 6 => ("c_look", None),
        4 | 7 => ("sstf", None),
        8 => ("sptf", None),
        9 => ("sptf", Some("DiskSim serves buffer hits first")),
        10 => ("sptf", Some("DiskSim includes the transfer time")),
        11..=13 => (
            "sptf",
            Some("DiskSim weights positioning time by waiting time"),
        ),
        14 => ("aged_sptf", None),
        15 | 16 => (
            "aged_sptf",
            Some("DiskSim includes buffer hits or transfer times"),
        ),
        17 | 18 => ("v_scan", None),
        19..=21 => (
            "fcfs",
            Some("DiskSim uses priorities, which requests do not have here"),
        ),
        24..=26 => ("sptf", Some("DiskSim weights rotation or seek time")),
        28 => ("fcfs", Some("DiskSim serves requests in batches")),
        0 | 1 => ("fcfs", None),
        _ => ("fcfs", Some("DiskSim has no policy with this number")),
    };
    SchedulingPolicy {
        name,
        is_by_sector: matches!(scheduler.policy_number, 2..=4 | 17),
        difference,
    }
}

fn write_overheads(entry: &mut EntryWriter, firmware: &Firmware) {
    let scaled = |ms: f64| (firmware.request_overhead_ms + ms) * firmware.overhead_scale;
    let is_early = firmware.buffer.fast_write != FastWriteSupport::None;
    let write = match is_early {
        true => firmware.write_hit_ms,
        false => firmware.write_miss_ms,
    };
    for (key, after_write, times) in [
        (
            "read_hit_ms",
            "read_hit_after_write_ms",
            firmware.read_hit_ms,
        ),
        (
            "read_miss_ms",
            "read_miss_after_write_ms",
            firmware.read_miss_ms,
        ),
        ("write_ms", "write_after_write_ms", write),
    ] {
        entry.write_number(key, scaled(times.read));
        entry.write_number(after_write, scaled(times.write));
    }
    let end = |ms: f64| ms * firmware.overhead_scale;
    entry.write_number("read_completion_ms", end(firmware.read_completion_ms));
    entry.write_number("write_completion_ms", end(firmware.write_completion_ms));
}

fn write_link(entry: &mut EntryWriter, drive: &SpecifiedDrive, firmware: &Firmware) {
    let rate = |sector_ms: f64| {
        let bytes_per_s = match sector_ms > 0.0 {
            true => (BLOCK_BYTES as f64 * 1e3 / sector_ms).round() as u64,
            false => UNLIMITED_LINK_BYTES_PER_S,
        };
        bytes_per_s.clamp(1000, UNLIMITED_LINK_BYTES_PER_S)
    };
    let slowest = "the slowest of drive, bus and controller for a block";
    for (key, sector_ms) in [
        ("link_bytes_per_s", drive.read_sector_ms()),
        ("link_write_bytes_per_s", drive.write_sector_ms()),
    ] {
        entry.write_integer(key, rate(sector_ms));
        entry.write_source(key, slowest);
    }
    let scaled = |ms: f64| ms * firmware.overhead_scale;
    entry.write_number(
        "link_overhead_ms",
        scaled(firmware.write_data_preparation_ms),
    );
    entry.write_source("link_overhead_ms", "Data preparation overhead");
    if drive.firmware.is_none() {
        return;
    }
    let arbitration_ms = drive.data_path.map_or(0.0, |path| path.bus.arbitration_ms);
    let reselect_ms = scaled(firmware.first_reselection_ms) + arbitration_ms;
    entry.write_number("link_reconnect_ms", reselect_ms);
    entry.write_source(
        "link_reconnect_ms",
        "First reselect overhead, Arbitration time",
    );
    let holds = |reads_or_writes: bool| reads_or_writes || firmware.never_disconnects;
    entry.write_flag("link_holds_writes", holds(firmware.holds_bus_during_write));
    match holds(firmware.holds_bus_during_read) {
        true => entry.write_word("link_reads", "held"),
        false => {
            entry.write_word("link_reads", "reconnected");
            let share = match firmware.buffer.read_water_mark_is_share {
                true => firmware.buffer.read_water_mark,
                // At most a block of every read.
                false => 0.0,
            };
            entry.write_number("link_read_share", share);
            entry.write_source("link_read_share", "High (read) water mark");
        }
    }
}

fn write_read_cache(entry: &mut EntryWriter, cache: &DriveBuffer) {
    let segments = match (cache.is_enabled, cache.has_separate_write_segment) {
        (true, false) => cache.segments,
        // One of them is for writes alone.
        (true, true) => cache.segments.saturating_sub(1),
        (false, _) => 0,
    };
    let bytes = |blocks: u32| u64::from(blocks) * BLOCK_BYTES;
    entry.write_integer("cache_segments", u64::from(segments));
    entry.write_integer("segment_bytes", bytes(cache.segment_blocks));
    entry.write_word(
        "read_ahead",
        match (cache.is_enabled, cache.read_ahead_extent) {
            (false, _) | (_, ReadAheadExtent::None) => "none",
            (true, ReadAheadExtent::TrackEnd) => "track_end",
            (true, ReadAheadExtent::CylinderEnd) => "cylinder_end",
            (true, ReadAheadExtent::SegmentSize) => "limit",
            (true, ReadAheadExtent::NextTrackEnd) => "next_track_end",
        },
    );
    entry.write_word("read_ahead_after", "any_read");
    let (most, from) = match cache.read_ahead_blocks_max {
        0 if cache.read_ahead_counts_from_end => (cache.segment_blocks, "request_end"),
        0 => (cache.segment_blocks, "request_start"),
        most => (most, "request_end"),
    };
    entry.write_integer("read_ahead_bytes", bytes(most));
    entry.write_word("read_ahead_from", from);
    let least = bytes(cache.read_ahead_blocks_min);
    entry.write_integer("read_ahead_least_bytes", least);
    entry.write_flag("keep_passing_sectors", cache.reads_blocks_while_waiting);
    entry.write_flag("read_ahead_after_hit", cache.reads_ahead_on_idle_hit);
}

fn write_write_cache(entry: &mut EntryWriter, cache: &DriveBuffer) {
    let is_on = cache.is_enabled && cache.fast_write != FastWriteSupport::None;
    let segment_bytes = (u64::from(cache.segment_blocks) * BLOCK_BYTES).max(BLOCK_BYTES);
    let segments = match cache.has_separate_write_segment {
        true => 1,
        false => u64::from(cache.write_segments.max(1)),
    };
    entry.write_flag("write_cache", is_on);
    entry.write_integer("write_cache_bytes", segment_bytes * segments);
    entry.write_integer("write_cache_extents", segments);
    entry.write_number("write_cache_high_share", 0.0);
    entry.write_source(
        "write_cache_high_share",
        "DiskSim destages as soon as possible",
    );
    entry.write_integer("destage_bytes", segment_bytes);
    entry.write_number("destage_idle_ms", 0.0);
    entry.write_flag("write_cache_read_hits", cache.written_data_serves_reads);
    entry.write_flag(
        "write_cache_appending_only",
        cache.fast_write == FastWriteSupport::AppendingToSegment,
    );
    entry.write_flag(
        "write_cache_holds_destaged",
        cache.fast_write == FastWriteSupport::Mixed,
    );
}

/// Lists the bus behaviours in the files that the modelled bus implements differently.
fn unsupported_settings(firmware: &Firmware) -> Vec<String> {
    let free = "a write has no reselection time, and the modelled bus is free for other drives until the write data is transferred";
    let used = [
        (
            firmware.holds_bus_during_write,
            "Hold bus entire write xfer",
        ),
        (firmware.never_disconnects, "Never disconnect"),
    ];
    let used = used.into_iter().filter(|(is_used, _)| *is_used);
    used.map(|(_, key)| format!("{key}: {free}")).collect()
}

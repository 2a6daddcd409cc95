//! Catalogue entry of a drive that was identified from a trace.

use super::{Alone, AloneZone};
use crate::entry::{BLOCK_BYTES, Entry, ZONE_COLUMNS};

/// Link rate of a drive whose platter limits the transfer rate of reads, in bytes per second.
const FAST_LINK_BYTES_PER_S: u64 = 1_000_000_000_000;
/// Source of parameters that no trace reveals.
const CHOSEN: &str = "not determined by the trace";
/// Numbers of buffer segments that are tried.
const SEGMENTS: [u64; 3] = [1, 4, 16];

/// Buffer of a modelled drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    segments: u64,
    read_ahead: &'static str,
    after_write: &'static str,
}

impl Buffer {
    /// Buffer without segments, for a drive without a buffer.
    pub const NONE: Self = Self {
        segments: 0,
        read_ahead: "none",
        after_write: "drops_overlapping",
    };
}

/// Returns the candidate buffers of an identified drive.
pub fn buffers(found: &Alone) -> Vec<Buffer> {
    let mut all = vec![Buffer::NONE];
    if found.read_hit_us.is_none() {
        return all;
    }
    for segments in SEGMENTS {
        for read_ahead in ["none", "track_end", "limit"] {
            for after_write in ["drops_overlapping", "drops_all"] {
                all.push(Buffer {
                    segments,
                    read_ahead,
                    after_write,
                });
            }
        }
    }
    all
}

/// Returns the text of the catalogue entry.
pub fn text(label: &str, found: &Alone, capacity: u64, buffer: &Buffer) -> String {
    let source = format!("the first {} requests of the trace {label}", found.requests);
    let mut entry = Entry::of_drive(&format!("The drive that the trace {label} shows."), &source);
    let rows = zone_rows(&found.zones, capacity);
    let cylinders = rows.last().map_or(1, |row| row[1] as u64 + 1);
    entry.integer("sector_bytes", BLOCK_BYTES);
    entry.integer("medium_sector_bytes", BLOCK_BYTES);
    entry.integer("heads", 1);
    entry.source("heads", CHOSEN);
    entry.integer("cylinders", cylinders);
    entry.word("track_order", "cylinders");
    entry.word("sparing", "zone");
    entry.rows("zone_table", ZONE_COLUMNS, &rows);
    entry.gap();
    let base_us = found
        .arrivals
        .first()
        .map_or(0.0, |first| first.time_us.max(0.0));
    entry.rows("seek_table", "tracks, ms", &seek_rows(found, base_us));
    entry.number("head_switch_ms", 0.0);
    entry.number("write_settle_ms", 0.0);
    entry.number("spindle_rpm", 60e6 / found.period_us.value);
    entry.flag("zero_latency_reads", false);
    entry.source("zero_latency_reads", CHOSEN);
    entry.flag("zero_latency_writes", false);
    entry.source("zero_latency_writes", CHOSEN);
    entry.gap();
    write_electronics(&mut entry, found, base_us / 1e3);
    write_buffer(&mut entry, found, buffer);
    entry.text()
}

/// Returns the zones of a drive with one surface, so that each track is a cylinder.
fn zone_rows(zones: &[AloneZone], capacity: u64) -> Vec<Vec<f64>> {
    let firsts: Vec<i64> = zones
        .iter()
        .map(|zone| zone.first_block.value as i64)
        .collect();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut cylinder = 0.0;
    for (number, zone) in zones.iter().enumerate() {
        let end = firsts.get(number + 1).copied().unwrap_or(capacity as i64);
        let length = i64::from(zone.modelled_sectors);
        let blocks = (end - firsts[number]).max(1);
        let dead = (firsts[number] - zone.begin_block).rem_euclid(length);
        let tracks = (dead + blocks + length - 1) / length;
        let before = (firsts[number] - dead - zone.begin_block) / length;
        let origin = zone.begin_angle + before as f64 * zone.modelled_skew;
        rows.push(vec![
            cylinder,
            cylinder + tracks as f64 - 1.0,
            length as f64,
            origin.rem_euclid(1.0),
            0.0,
            zone.modelled_skew,
            0.0,
            dead as f64,
            (tracks * length - dead - blocks) as f64,
        ]);
        cylinder += tracks as f64;
    }
    rows
}

/// Returns the seek times beyond that of the shortest distance.
fn seek_rows(found: &Alone, base_us: f64) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for arrival in &found.arrivals {
        let tracks = arrival.tracks.round().max(1.0);
        let ms = ((arrival.time_us - base_us) / 1e3).max(0.0);
        if rows.last().is_none_or(|last| tracks > last[0]) {
            rows.push(vec![tracks, ms]);
        }
    }
    if rows.is_empty() {
        rows.push(vec![1.0, 0.0]);
    }
    rows
}

fn write_electronics(entry: &mut Entry, found: &Alone, base_ms: f64) {
    entry.integer("queue_depth", 1);
    entry.source("queue_depth", CHOSEN);
    entry.word("queue_policy", "fcfs");
    entry.gap();
    let hit_ms = found
        .read_hit_us
        .as_ref()
        .map_or(base_ms, |us| us.value / 1e3);
    let write_ms = found
        .early_write_us
        .as_ref()
        .map_or(base_ms, |us| us.value / 1e3);
    entry.number("read_hit_ms", hit_ms.max(0.0));
    entry.number("read_miss_ms", base_ms);
    entry.number("write_ms", write_ms.max(0.0));
    entry.number("read_completion_ms", 0.0);
    entry.number("write_completion_ms", 0.0);
    let rate = found
        .crossing_us
        .as_ref()
        .map_or(FAST_LINK_BYTES_PER_S, |us| {
            ((BLOCK_BYTES as f64 * 1e6 / us.value).round() as u64)
                .clamp(1000, FAST_LINK_BYTES_PER_S)
        });
    entry.integer("link_bytes_per_s", rate);
    entry.number("link_overhead_ms", 0.0);
    entry.word("link_reads", "reconnected");
    entry.number("link_read_share", 0.0);
    entry.gap();
}

fn write_buffer(entry: &mut Entry, found: &Alone, buffer: &Buffer) {
    let longest = found
        .zones
        .iter()
        .map(|zone| u64::from(zone.modelled_sectors))
        .max();
    let segment_bytes = longest.unwrap_or(64).max(64) * BLOCK_BYTES;
    entry.integer("cache_segments", buffer.segments);
    entry.source("cache_segments", CHOSEN);
    entry.integer("segment_bytes", segment_bytes);
    entry.word("read_ahead", buffer.read_ahead);
    entry.source("read_ahead", CHOSEN);
    entry.word("read_ahead_after", "any_read");
    entry.integer("read_ahead_bytes", segment_bytes);
    entry.word("read_ahead_from", "request_end");
    entry.integer("read_ahead_least_bytes", 0);
    entry.flag("keep_passing_sectors", false);
    entry.flag("read_ahead_after_hit", false);
    entry.word("segment_after_write", buffer.after_write);
    let is_early = found.early_write_us.is_some();
    entry.flag("write_cache", is_early);
    entry.integer("write_cache_bytes", segment_bytes);
    entry.integer("write_cache_extents", 1);
    entry.number("write_cache_high_share", 0.0);
    entry.integer("destage_bytes", segment_bytes);
    entry.number("destage_idle_ms", 0.0);
    entry.flag("write_cache_appending_only", false);
    entry.word("flush", "drains");
}

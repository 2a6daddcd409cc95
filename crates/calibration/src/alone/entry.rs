//! Catalogue entry of a drive that was identified from a trace.

use super::{IdentifiedDrive, IdentifiedZone};
use crate::entry::{BLOCK_BYTES, EntryWriter, ZONE_COLUMNS};

/// Link rate of a drive whose platter limits the transfer rate of reads, in bytes per second.
const UNLIMITED_LINK_BYTES_PER_S: u64 = 1_000_000_000_000;
/// Source of parameters that no trace reveals.
const NOT_DETERMINED_SOURCE: &str = "not determined by the trace";
const SEGMENT_COUNTS: [u64; 3] = [1, 4, 16];

/// Buffer of a modelled drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferCandidate {
    segment_count: u64,
    read_ahead_rule: &'static str,
    after_write_rule: &'static str,
}

impl BufferCandidate {
    /// Buffer without segments, for a drive without a buffer.
    pub const NONE: Self = Self {
        segment_count: 0,
        read_ahead_rule: "none",
        after_write_rule: "drops_overlapping",
    };
}

/// Returns the candidate buffers of an identified drive.
pub fn buffer_candidates(identified: &IdentifiedDrive) -> Vec<BufferCandidate> {
    let mut all = vec![BufferCandidate::NONE];
    if identified.read_hit_us.is_none() {
        return all;
    }
    for segments in SEGMENT_COUNTS {
        for read_ahead in ["none", "track_end", "limit"] {
            for after_write in ["drops_overlapping", "drops_all"] {
                all.push(BufferCandidate {
                    segment_count: segments,
                    read_ahead_rule: read_ahead,
                    after_write_rule: after_write,
                });
            }
        }
    }
    all
}

/// Returns the text of the catalogue entry.
pub fn render_entry(
    label: &str,
    identified: &IdentifiedDrive,
    capacity: u64,
    buffer: &BufferCandidate,
) -> String {
    let source = format!(
        "the first {} requests of the trace {label}",
        identified.request_count
    );
    let mut entry =
        EntryWriter::for_drive(&format!("The drive that the trace {label} shows."), &source);
    let rows = zone_rows(&identified.zones, capacity);
    let cylinders = rows.last().map_or(1, |row| row[1] as u64 + 1);
    entry.write_integer("sector_bytes", BLOCK_BYTES);
    entry.write_integer("medium_sector_bytes", BLOCK_BYTES);
    entry.write_integer("heads", 1);
    entry.write_source("heads", NOT_DETERMINED_SOURCE);
    entry.write_integer("cylinders", cylinders);
    entry.write_word("track_order", "cylinders");
    entry.write_word("sparing", "zone");
    entry.write_rows("zone_table", ZONE_COLUMNS, &rows);
    entry.blank_line();
    let base_us = identified
        .seek_arrivals
        .first()
        .map_or(0.0, |first| first.arrival_us.max(0.0));
    entry.write_rows("seek_table", "tracks, ms", &seek_rows(identified, base_us));
    entry.write_number("head_switch_ms", 0.0);
    entry.write_number("write_settle_ms", 0.0);
    entry.write_number("spindle_rpm", 60e6 / identified.period_us.value);
    entry.write_flag("zero_latency_reads", false);
    entry.write_source("zero_latency_reads", NOT_DETERMINED_SOURCE);
    entry.write_flag("zero_latency_writes", false);
    entry.write_source("zero_latency_writes", NOT_DETERMINED_SOURCE);
    entry.blank_line();
    write_electronics(&mut entry, identified, base_us / 1e3);
    write_buffer(&mut entry, identified, buffer);
    entry.into_text()
}

/// Returns the zones of a drive with one surface, so that each track is a cylinder.
fn zone_rows(zones: &[IdentifiedZone], capacity: u64) -> Vec<Vec<f64>> {
    let firsts: Vec<i64> = zones
        .iter()
        .map(|zone| zone.first_block.value as i64)
        .collect();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    let mut cylinder = 0.0;
    for (number, zone) in zones.iter().enumerate() {
        let end = firsts.get(number + 1).copied().unwrap_or(capacity as i64);
        let length = i64::from(zone.modelled_sectors_per_track);
        let blocks = (end - firsts[number]).max(1);
        let dead = (firsts[number] - zone.track_start_block).rem_euclid(length);
        let tracks = (dead + blocks + length - 1) / length;
        let before = (firsts[number] - dead - zone.track_start_block) / length;
        let origin = zone.track_start_angle + before as f64 * zone.modelled_skew_mean;
        rows.push(vec![
            cylinder,
            cylinder + tracks as f64 - 1.0,
            length as f64,
            origin.rem_euclid(1.0),
            0.0,
            zone.modelled_skew_mean,
            0.0,
            dead as f64,
            (tracks * length - dead - blocks) as f64,
        ]);
        cylinder += tracks as f64;
    }
    rows
}

/// Returns the seek times beyond that of the shortest distance.
fn seek_rows(identified: &IdentifiedDrive, base_us: f64) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for arrival in &identified.seek_arrivals {
        let tracks = arrival.track_distance.round().max(1.0);
        let ms = ((arrival.arrival_us - base_us) / 1e3).max(0.0);
        if rows.last().is_none_or(|last| tracks > last[0]) {
            rows.push(vec![tracks, ms]);
        }
    }
    if rows.is_empty() {
        rows.push(vec![1.0, 0.0]);
    }
    rows
}

fn write_electronics(entry: &mut EntryWriter, identified: &IdentifiedDrive, base_ms: f64) {
    entry.write_integer("queue_depth", 1);
    entry.write_source("queue_depth", NOT_DETERMINED_SOURCE);
    entry.write_word("queue_policy", "fcfs");
    entry.blank_line();
    let hit_ms = identified
        .read_hit_us
        .as_ref()
        .map_or(base_ms, |us| us.value / 1e3);
    let write_ms = identified
        .early_write_us
        .as_ref()
        .map_or(base_ms, |us| us.value / 1e3);
    entry.write_number("read_hit_ms", hit_ms.max(0.0));
    entry.write_number("read_miss_ms", base_ms);
    entry.write_number("write_ms", write_ms.max(0.0));
    entry.write_number("read_completion_ms", 0.0);
    entry.write_number("write_completion_ms", 0.0);
    let rate = identified
        .link_sector_us
        .as_ref()
        .map_or(UNLIMITED_LINK_BYTES_PER_S, |us| {
            ((BLOCK_BYTES as f64 * 1e6 / us.value).round() as u64)
                .clamp(1000, UNLIMITED_LINK_BYTES_PER_S)
        });
    entry.write_integer("link_bytes_per_s", rate);
    entry.write_number("link_overhead_ms", 0.0);
    entry.write_word("link_reads", "reconnected");
    entry.write_number("link_read_share", 0.0);
    entry.blank_line();
}

fn write_buffer(entry: &mut EntryWriter, identified: &IdentifiedDrive, buffer: &BufferCandidate) {
    let longest = identified
        .zones
        .iter()
        .map(|zone| u64::from(zone.modelled_sectors_per_track))
        .max();
    let segment_bytes = longest.unwrap_or(64).max(64) * BLOCK_BYTES;
    entry.write_integer("cache_segments", buffer.segment_count);
    entry.write_source("cache_segments", NOT_DETERMINED_SOURCE);
    entry.write_integer("segment_bytes", segment_bytes);
    entry.write_word("read_ahead", buffer.read_ahead_rule);
    entry.write_source("read_ahead", NOT_DETERMINED_SOURCE);
    entry.write_word("read_ahead_after", "any_read");
    entry.write_integer("read_ahead_bytes", segment_bytes);
    entry.write_word("read_ahead_from", "request_end");
    entry.write_integer("read_ahead_least_bytes", 0);
    entry.write_flag("keep_passing_sectors", false);
    entry.write_flag("read_ahead_after_hit", false);
    entry.write_word("segment_after_write", buffer.after_write_rule);
    let is_early = identified.early_write_us.is_some();
    entry.write_flag("write_cache", is_early);
    entry.write_integer("write_cache_bytes", segment_bytes);
    entry.write_integer("write_cache_extents", 1);
    entry.write_number("write_cache_high_share", 0.0);
    entry.write_integer("destage_bytes", segment_bytes);
    entry.write_number("destage_idle_ms", 0.0);
    entry.write_flag("write_cache_appending_only", false);
    entry.write_flag("write_cache_holds_destaged", true);
    entry.write_word("flush", "drains");
}

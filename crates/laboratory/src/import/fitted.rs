//! What a trace shows of a drive, as a layer over what its files say.

mod arrivals;
mod numbers;

use super::entry::Entry;
use super::geometry::{BLOCK_BYTES, rows_of, write_zones};
use arrivals::Arrivals;
use diskperf_calibration::Calibration;
use diskperf_diskspecs::layout::Layout;
use diskperf_diskspecs::{Drive, FastWrite, Firmware};
use numbers::Numbers;

/// Columns of `zone_table`.
const SECTORS_PER_TRACK: usize = 2;
const ORIGIN: usize = 3;
const TRACK_SKEW: usize = 4;
const CYLINDER_SKEW: usize = 5;
const RANGE_SKEW: usize = 6;

/// The layer over the drive `name`: spindle, angles, arm, link, buffer, firmware. And what
/// was fitted and is not in it, each with the reason.
pub(super) fn layer(drive: &Drive, name: &str, found: &Calibration) -> (String, Vec<String>) {
    let numbers = Numbers::new(&found.parameters);
    let source = format!(
        "fitted on the first {} of {} requests of its trace",
        found.fitted_requests, found.requests
    );
    let description = format!("{name}, with what its trace shows of it.");
    let mut entry = Entry::over(name, &description, &source);
    if let Some(period_us) = numbers.get("spindle.period_us") {
        entry.number("spindle_rpm", 60e6 / period_us);
    }
    write_angles(&mut entry, drive, &numbers);
    if let Some(block_us) = numbers.get("bus.read_block_us") {
        let bytes_per_s = BLOCK_BYTES as f64 * 1e6 / block_us;
        entry.integer("link_bytes_per_s", bytes_per_s.round() as u64);
        if !numbers.has("arrival.write.constant_us") {
            entry.integer("link_write_bytes_per_s", bytes_per_s.round() as u64);
        }
        // The fit has data cross from the first block on.
        if comes_back(drive) {
            entry.number("link_read_share", 0.0);
        }
    }
    let period_us = numbers.get("spindle.period_us");
    let sector_us = period_us.unwrap_or(found.nominal_period_us) / mean_sectors_per_track(drive);
    Arrivals::of(drive, &numbers, sector_us).write(&mut entry);
    write_cache(&mut entry, drive, &numbers);
    let mut left = numbers.left();
    if numbers
        .get("cache.tracks")
        .is_some_and(|tracks| tracks > 1.0)
    {
        left.push(
            "cache.tracks: the modelled drive reads on to the end of the next track, and has nothing of the front of the first one"
                .to_owned(),
        );
    }
    (entry.text(), left)
}

/// Whether reads of the files' drive leave the bus and come back to it.
fn comes_back(drive: &Drive) -> bool {
    let stays = |of: &Firmware| of.holds_bus_reading || of.never_disconnects;
    drive.firmware.as_ref().is_some_and(|of| !stays(of))
}

/// Sectors of the largest track.
fn most_sectors_per_track(drive: &Drive) -> f64 {
    let Layout::Zoned(zoned) = &drive.model.layout else {
        return mean_sectors_per_track(drive);
    };
    let all = zoned.zones().iter().map(|zone| zone.sectors_per_track);
    f64::from(all.max().unwrap_or(1))
}

/// Sectors of a track, by the tracks that there are of each kind.
fn mean_sectors_per_track(drive: &Drive) -> f64 {
    let layout = &drive.model.layout;
    let Layout::Zoned(zoned) = layout else {
        let first = layout.spot(0).map_or(1, |spot| spot.sectors_per_track);
        return f64::from(first.max(1));
    };
    let (mut sectors, mut cylinders) = (0.0, 0.0);
    for zone in zoned.zones() {
        let count = f64::from(zone.last_cylinder) - f64::from(zone.first_cylinder) + 1.0;
        sectors += count * f64::from(zone.sectors_per_track);
        cylinders += count;
    }
    (sectors / cylinders).max(1.0)
}

/// Skews as angles, and the origins of zones. The fit has a sector where its data begin to
/// cross the link, which is when it has passed: the platter's angle is a sector less, and
/// that is another angle in each zone.
fn write_angles(entry: &mut Entry, drive: &Drive, numbers: &Numbers<'_>) {
    let Layout::Zoned(layout) = &drive.model.layout else {
        return;
    };
    let skews = (
        numbers.get("angles.track_skew_rev"),
        numbers.get("angles.cylinder_skew_rev"),
    );
    if skews == (None, None) && !numbers.has("arrival.read.constant_us") {
        return;
    }
    let mut rows = rows_of(layout);
    for (number, row) in rows.iter_mut().enumerate() {
        if let (Some(track), Some(cylinder)) = skews {
            row[TRACK_SKEW] = track;
            // From a cylinder's last track to the next one's first; the fit counts from
            // the first.
            let across = cylinder - f64::from(layout.surfaces() - 1) * track;
            row[CYLINDER_SKEW] = across.rem_euclid(1.0);
        }
        let of_zone = |what: &str| numbers.get(&format!("angles.zone_{number}.{what}"));
        if let Some(origin) = of_zone("origin_rev") {
            row[ORIGIN] = origin;
        }
        if let Some(step) = of_zone("range_step_rev") {
            row[RANGE_SKEW] = step;
        }
        row[ORIGIN] -= 1.0 / row[SECTORS_PER_TRACK];
    }
    write_zones(entry, layout, &rows);
}

/// The rules of the buffer.
fn write_cache(entry: &mut Entry, drive: &Drive, numbers: &Numbers<'_>) {
    let flag = |name: &str| numbers.get(name).map(|value| value != 0.0);
    if let Some(segments) = numbers.get("cache.segments") {
        entry.integer("cache_segments", segments as u64);
    }
    if let Some(blocks) = numbers.get("cache.read_ahead_blocks") {
        entry.integer("read_ahead_bytes", blocks as u64 * BLOCK_BYTES);
        entry.word("read_ahead", if blocks > 0.0 { "limit" } else { "none" });
        entry.word("read_ahead_from", "request_end");
    }
    // A segment has room for what is read ahead, and for whole tracks where these are read.
    let ahead = numbers.get("cache.read_ahead_blocks");
    let tracks = numbers.get("cache.tracks").map(|tracks| tracks.min(2.0));
    let tracks = tracks.map(|tracks| tracks * most_sectors_per_track(drive));
    if let Some(needed) = ahead.into_iter().chain(tracks).reduce(f64::max) {
        let firmware = drive.firmware.unwrap_or_default();
        let segment = f64::from(firmware.cache.segment_blocks).max(needed);
        entry.integer("segment_bytes", segment.ceil() as u64 * BLOCK_BYTES);
    }
    if let Some(tracks) = numbers.get("cache.tracks") {
        let until = if tracks > 1.0 {
            "next_track_end"
        } else {
            "whole_track"
        };
        entry.word("read_ahead", until);
    }
    if let Some(keeps) = flag("cache.keeps_behind") {
        entry.word("segment_after_read", if keeps { "all" } else { "ahead" });
    }
    if let Some(clears) = flag("cache.write_clears_all") {
        // To the fit a drive that keeps what is written has it in its segments.
        let what = match (clears, flag("cache.keeps_written")) {
            (true, _) => "drops_all",
            (false, Some(true)) => "updates",
            (false, _) => "drops_overlapping",
        };
        entry.word("segment_after_write", what);
    }
    if let Some(keeps) = flag("cache.keeps_written") {
        entry.flag("keep_written", keeps);
    }
    if let Some(goes_on) = flag("cache.goes_on") {
        entry.flag("read_ahead_after_hit", goes_on);
    }
    if let Some(only) = flag("cache.only_contiguous") {
        let after = if only { "sequential_read" } else { "any_read" };
        entry.word("read_ahead_after", after);
    }
    let is_early = drive
        .firmware
        .is_some_and(|of| of.cache.fast_write != FastWrite::None);
    if is_early && numbers.has_any("early_write.") {
        entry.flag("write_cache_appending_only", false);
    }
}

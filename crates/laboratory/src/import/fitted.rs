//! What a trace shows of a drive, as a layer over what its files say.

use super::entry::Entry;
use super::geometry::{BLOCK_BYTES, rows_of, write_zones};
use diskperf_calibration::Calibration;
use diskperf_diskspecs::Drive;
use diskperf_diskspecs::layout::Layout;
use std::collections::BTreeMap;

/// Columns of `zone_table`.
const ORIGIN: usize = 3;
const TRACK_SKEW: usize = 4;
const CYLINDER_SKEW: usize = 5;
const RANGE_SKEW: usize = 6;

/// The layer over the drive `name`: spindle, angles, link, buffer and its overheads. The
/// seek curve and the overheads of the medium are fitted together by terms that no entry
/// has, and stay those of the files.
pub(super) fn layer(drive: &Drive, name: &str, found: &Calibration) -> Result<String, String> {
    let fitted: BTreeMap<&str, f64> = found
        .parameters
        .iter()
        .map(|one| (one.name.as_str(), one.value))
        .collect();
    let source = format!(
        "fitted on the first {} of {} requests of its trace",
        found.fitted_requests, found.requests
    );
    let description = format!("{name}, with what its trace shows of it.");
    let mut entry = Entry::over(name, &description, &source);
    if let Some(period_us) = fitted.get("spindle.period_us") {
        entry.number("spindle_rpm", 60e6 / period_us);
    }
    write_angles(&mut entry, drive, &fitted);
    if let Some(block_us) = fitted.get("bus.read_block_us") {
        let bytes_per_s = BLOCK_BYTES as f64 * 1e6 / block_us;
        entry.integer("link_bytes_per_s", bytes_per_s.round() as u64);
    }
    write_overheads(&mut entry, &fitted);
    write_cache(&mut entry, &fitted);
    Ok(entry.text())
}

/// Skews as angles, and the origins of zones.
fn write_angles(entry: &mut Entry, drive: &Drive, fitted: &BTreeMap<&str, f64>) {
    let Layout::Zoned(layout) = &drive.model.layout else {
        return;
    };
    let (Some(track), Some(cylinder)) = (
        fitted.get("angles.track_skew_rev"),
        fitted.get("angles.cylinder_skew_rev"),
    ) else {
        return;
    };
    // From a cylinder's last track to the next one's first; the fit counts from the first.
    let across = cylinder - f64::from(layout.surfaces() - 1) * track;
    let mut rows = rows_of(layout);
    for (number, row) in rows.iter_mut().enumerate() {
        row[TRACK_SKEW] = *track;
        row[CYLINDER_SKEW] = across.rem_euclid(1.0);
        let of_zone = |what: &str| fitted.get(format!("angles.zone_{number}.{what}").as_str());
        if let Some(origin) = of_zone("origin_rev") {
            row[ORIGIN] = *origin;
        }
        if let Some(step) = of_zone("range_step_rev") {
            row[RANGE_SKEW] = *step;
        }
    }
    write_zones(entry, layout, &rows);
}

/// Overheads of what the buffer answers.
fn write_overheads(entry: &mut Entry, fitted: &BTreeMap<&str, f64>) {
    for (key, name) in [
        ("read_hit_ms", "buffer.after_read.fixed_us"),
        ("read_hit_after_write_ms", "buffer.after_write.fixed_us"),
        ("write_ms", "early_write.after_read.fixed_us"),
        ("write_after_write_ms", "early_write.after_write.fixed_us"),
    ] {
        if let Some(us) = fitted.get(name).filter(|us| **us >= 0.0) {
            entry.number(key, us / 1e3);
        }
    }
    // The fit's time of a request is all of it.
    if fitted.contains_key("buffer.after_read.fixed_us") {
        entry.number("read_completion_ms", 0.0);
    }
    if fitted.contains_key("early_write.after_read.fixed_us") {
        entry.number("write_completion_ms", 0.0);
    }
}

/// The rules of the buffer.
fn write_cache(entry: &mut Entry, fitted: &BTreeMap<&str, f64>) {
    let flag = |name: &str| fitted.get(name).map(|value| *value != 0.0);
    if let Some(segments) = fitted.get("cache.segments") {
        entry.integer("cache_segments", *segments as u64);
    }
    if let Some(blocks) = fitted.get("cache.read_ahead_blocks") {
        entry.integer("read_ahead_bytes", *blocks as u64 * BLOCK_BYTES);
        entry.word("read_ahead_from", "request_end");
    }
    if let Some(keeps) = flag("cache.keeps_behind") {
        entry.word("segment_after_read", if keeps { "all" } else { "ahead" });
    }
    if let Some(clears) = flag("cache.write_clears_all") {
        let what = if clears {
            "drops_all"
        } else {
            "drops_overlapping"
        };
        entry.word("segment_after_write", what);
    }
    if let Some(only) = flag("cache.only_contiguous") {
        let after = if only { "sequential_read" } else { "any_read" };
        entry.word("read_ahead_after", after);
    }
}

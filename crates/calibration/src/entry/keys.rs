//! Mapping between catalogue keys and DiskSim parameters, with the ranges of a modelled drive.

use diskperf_device::disk::layout::CYLINDERS_MAX;
use std::ops::RangeInclusive;

/// DiskSim parameters from which each catalogue key is derived. The first one that a file contains
/// applies.
#[rustfmt::skip]
const SOURCE_KEYS: [(&str, &[&str]); 38] = [
    ("heads", &["Number of data surfaces"]),
    ("cylinders", &["Number of cylinders"]),
    ("sparing_range_cylinders", &["Rangesize for sparing"]),
    ("zone_table", &["Zones"]),
    ("slip_table", &["slips"]),
    ("defect_table", &["defects"]),
    ("extent_table", &["Remaps", "IDX", "Layout Model"]),
    ("spindle_rpm", &["Rotation speed (in rpms)"]),
    ("seek_constant_ms", &["Constant seek time"]),
    ("seek_minimum_ms", &["Single cylinder seek time"]),
    ("seek_average_ms", &["Average seek time"]),
    ("seek_maximum_ms", &["Full strobe seek time"]),
    ("seek_hpl", &["HPL seek equation values"]),
    ("seek_table", &["Full seek curve", "First ten seek times"]),
    ("head_switch_ms", &["Head switch time"]),
    ("write_settle_ms", &["Add. write settling delay"]),
    ("queue_depth", &["Max queue length"]),
    ("aged_sptf_ms_per_s", &["Timeout time/weight"]),
    ("read_hit_ms", &["Read hit over. after read"]),
    ("read_hit_after_write_ms", &["Read hit over. after write"]),
    ("read_miss_ms", &["Read miss over. after read"]),
    ("read_miss_after_write_ms", &["Read miss over. after write"]),
    ("write_ms", &["Write hit over. after read"]),
    ("write_after_write_ms", &["Write hit over. after write"]),
    ("read_completion_ms", &["Read completion overhead"]),
    ("write_completion_ms", &["Write completion overhead"]),
    ("link_bytes_per_s", &["Bulk sector transfer time"]),
    ("link_write_bytes_per_s", &["Bulk sector transfer time"]),
    ("link_overhead_ms", &["Data preparation overhead"]),
    ("link_reconnect_ms", &["First reselect overhead"]),
    ("cache_segments", &["Number of buffer segments"]),
    ("segment_bytes", &["Segment size (in blks)"]),
    ("read_ahead_bytes", &["Maximum read-ahead (blks)", "Segment size (in blks)"]),
    ("read_ahead_least_bytes", &["Minimum read-ahead (blks)"]),
    ("write_cache_bytes", &["Maximum number of write segments", "Segment size (in blks)"]),
    ("write_cache_extents", &["Maximum number of write segments"]),
    ("destage_bytes", &["Segment size (in blks)"]),
    ("write_cache_read_hits", &["Allow read hits on write data"]),
];

/// Returns the DiskSim parameters from which a catalogue key is derived.
pub fn source_keys(key: &str) -> &'static [&'static str] {
    let found = SOURCE_KEYS.iter().find(|(name, _)| *name == key);
    found.map_or(&[], |(_, keys)| keys)
}

/// Longest duration of any phase of a modelled drive, in milliseconds.
const TIME_MS_MAX: f64 = 1000.0;
const BUFFER_BYTES_MAX: f64 = 1e12;

/// Value ranges of a modelled drive, for keys where DiskSim accepts a wider range.
const KEY_RANGES: [(&str, RangeInclusive<f64>); 25] = [
    ("cylinders", 1.0..=CYLINDERS_MAX as f64),
    ("spindle_rpm", 60.0..=30_000.0),
    ("seek_constant_ms", 0.0..=TIME_MS_MAX),
    ("seek_minimum_ms", 0.0..=TIME_MS_MAX),
    ("seek_average_ms", 0.0..=TIME_MS_MAX),
    ("seek_maximum_ms", 0.0..=TIME_MS_MAX),
    ("head_switch_ms", 0.0..=TIME_MS_MAX),
    ("write_settle_ms", -TIME_MS_MAX..=TIME_MS_MAX),
    ("read_hit_ms", 0.0..=TIME_MS_MAX),
    ("read_hit_after_write_ms", 0.0..=TIME_MS_MAX),
    ("read_miss_ms", 0.0..=TIME_MS_MAX),
    ("read_miss_after_write_ms", 0.0..=TIME_MS_MAX),
    ("write_ms", 0.0..=TIME_MS_MAX),
    ("write_after_write_ms", 0.0..=TIME_MS_MAX),
    ("read_completion_ms", 0.0..=TIME_MS_MAX),
    ("write_completion_ms", 0.0..=TIME_MS_MAX),
    ("link_overhead_ms", 0.0..=TIME_MS_MAX),
    ("link_reconnect_ms", 0.0..=TIME_MS_MAX),
    ("aged_sptf_ms_per_s", 0.0..=1e9),
    ("queue_depth", 1.0..=65_536.0),
    ("cache_segments", 0.0..=65_536.0),
    ("segment_bytes", 0.0..=BUFFER_BYTES_MAX),
    ("write_cache_bytes", 512.0..=BUFFER_BYTES_MAX),
    ("write_cache_extents", 1.0..=1e7),
    ("destage_bytes", 512.0..=BUFFER_BYTES_MAX),
];

/// Returns the range of a key in a modelled drive, if it is narrower than DiskSim's.
pub(super) fn key_range(key: &str) -> Option<&'static RangeInclusive<f64>> {
    let found = KEY_RANGES.iter().find(|(name, _)| *name == key);
    found.map(|(_, range)| range)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No key is listed that an entry has not, or twice.
    #[test]
    fn the_keys_of_entries_are_those_that_are_written() {
        let written = [include_str!("geometry.rs"), include_str!("electronics.rs")];
        for (number, (key, _)) in SOURCE_KEYS.iter().enumerate() {
            let quoted = format!("\"{key}\"");
            assert!(written.iter().any(|text| text.contains(&quoted)), "{key}");
            assert!(
                SOURCE_KEYS[..number].iter().all(|(other, _)| other != key),
                "{key}"
            );
        }
    }
}

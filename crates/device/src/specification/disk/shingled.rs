//! Reader of shingled tracks from the catalogue.

use crate::disk::shingled::ShingledSpecification;
use diskperf_catalogue::Reader;

/// Reads the bands and the media cache of a shingled drive; `None` for other drives.
pub(super) fn read_shingled(
    reader: &mut Reader<'_>,
    medium_bytes: u32,
) -> Option<ShingledSpecification> {
    if !reader.is_readable("band_bytes") {
        return None;
    }
    let medium = u64::from(medium_bytes);
    let mut sectors = |key, least_bytes, most_bytes, doc| {
        reader.integer(key, least_bytes..=most_bytes, doc) / medium
    };
    let band_sectors = sectors(
        "band_bytes",
        1 << 20,
        1 << 32,
        "size of a band: shingled tracks that the drive can only rewrite together",
    );
    let cache_sectors = sectors(
        "media_cache_bytes",
        1 << 26,
        1 << 40,
        "size of the media cache: hidden tracks at the outer edge that take random writes",
    );
    let stream_sectors = sectors(
        "band_stream_bytes",
        4096,
        1 << 32,
        "length at which sequential writes bypass the media cache and go directly to their bands",
    );
    let step_sectors = sectors(
        "clean_step_bytes",
        65_536,
        1 << 32,
        "amount that cleaning reads or writes before it lets waiting commands run",
    );
    let map_extents = reader.integer(
        "media_cache_extents",
        4..=100_000_000,
        "maximum number of extents in the map of the media cache",
    );
    let idle_ms = reader.milliseconds(
        "clean_idle_ms",
        0.0..=1e6,
        "idle time of the arm before the drive cleans bands",
    ) as f64
        / 1e6;
    Some(ShingledSpecification {
        band_sectors: band_sectors as u32,
        media_cache_sectors: cache_sectors,
        map_extents_max: map_extents as u32,
        cleaning_idle_ms: idle_ms,
        stream_sectors_min: stream_sectors as u32,
        cleaning_step_sectors: step_sectors as u32,
    })
}

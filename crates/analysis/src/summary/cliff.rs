//! Cache cliff: the point at which the write cache of a modelled drive was full.

use diskperf_timeline::{ProgramResult, Repetition};
use serde::Serialize;

/// Size of a flash drive's mapping unit in bytes.
pub(crate) const FLASH_UNIT_BYTES: u64 = 4096;

/// Cache of a drive that accepts writes faster than its media do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CliffCache {
    /// SLC cache: flash cells used with one bit each.
    Slc,
    /// Media cache: tracks of a shingled disk that are not shingled, with their map.
    Media,
}

impl CliffCache {
    /// Returns the name of the cache in tables for programs: `slc`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slc => "slc",
            Self::Media => "media",
        }
    }
}

/// Point at which the write rate fell, because a cache was full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheCliff {
    /// Write cache of the drive that was full.
    pub cache: CliffCache,
    /// Bytes that the program had written by then, including repetitions that do not count; 0 where
    /// the cache was full from the start.
    #[serde(rename = "at_bytes")]
    pub written_bytes_at_cliff: u64,
    /// Share of the written bytes that came after the cliff, in the repetitions that count.
    #[serde(rename = "past_share")]
    pub past_cache_share: f64,
}

/// Bytes that a repetition wrote to drives of one kind.
#[derive(Clone, Copy, Default)]
struct WrittenBytes {
    bytes: u64,
    /// Bytes that were written while the cache was full.
    past_cache_bytes: u64,
}

impl CacheCliff {
    /// Returns the cache cliff of a result, if one was crossed.
    pub fn from_result(result: &ProgramResult) -> Option<Self> {
        let slc = Self::find_cliff(result, CliffCache::Slc, |one| {
            let each = one.flash_traffic.iter().map(|one| WrittenBytes {
                bytes: one.host_units * FLASH_UNIT_BYTES,
                past_cache_bytes: one.past_cache_units * FLASH_UNIT_BYTES,
            });
            WrittenBytes::sum_of(each)
        });
        let media = || {
            Self::find_cliff(result, CliffCache::Media, |one| {
                let each = one.media_caches.iter().map(|one| WrittenBytes {
                    bytes: one.cached_bytes + one.streamed_bytes,
                    past_cache_bytes: one.direct_write_bytes,
                });
                WrittenBytes::sum_of(each)
            })
        };
        slc.or_else(media)
    }

    fn find_cliff(
        result: &ProgramResult,
        cache: CliffCache,
        written: impl Fn(&Repetition) -> WrittenBytes,
    ) -> Option<Self> {
        let mut at_bytes = 0;
        let full = result.repetitions.iter().map(&written).find(|one| {
            at_bytes += one.bytes.saturating_sub(one.past_cache_bytes);
            one.past_cache_bytes > 0
        });
        full?;
        let counted = WrittenBytes::sum_of(result.kept_repetitions().map(&written));
        Some(Self {
            cache,
            written_bytes_at_cliff: at_bytes,
            past_cache_share: counted.past_cache_bytes as f64 / counted.bytes.max(1) as f64,
        })
    }
}

impl WrittenBytes {
    fn sum_of(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            bytes: sum.bytes + one.bytes,
            past_cache_bytes: sum.past_cache_bytes + one.past_cache_bytes,
        })
    }
}

//! The cache of a modelled drive that filled up while a program wrote.

use diskperf_timeline::{ProgramResult, Repetition};
use serde::Serialize;

/// Bytes of a unit of a flash drive.
pub(crate) const FLASH_UNIT_BYTES: u64 = 4096;

/// A cache of a drive that takes writes faster than its media do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteCache {
    /// Flash cells of one bit.
    Slc,
    /// Tracks of a shingled disk that are not shingled, with their map.
    Media,
}

impl WriteCache {
    /// The name in tables for programs: `slc`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slc => "slc",
            Self::Media => "media",
        }
    }
}

/// Where the rate of writes fell, because a cache was full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheCliff {
    /// The cache.
    pub cache: WriteCache,
    /// Bytes that the program had written by then, in repetitions that do not count too; 0
    /// where the cache was full from the start.
    pub at_bytes: u64,
    /// Share of the bytes written that came after, in the repetitions that count.
    pub past_share: f64,
}

/// Bytes that a repetition wrote to one kind of drive.
#[derive(Clone, Copy, Default)]
struct Written {
    bytes: u64,
    /// Of these, those that came while the cache was full.
    past_bytes: u64,
}

impl CacheCliff {
    /// The cliff of a result, if one was crossed.
    pub fn of(result: &ProgramResult) -> Option<Self> {
        let slc = Self::crossed(result, WriteCache::Slc, |one| {
            let each = one.flash.iter().map(|one| Written {
                bytes: one.host_units * FLASH_UNIT_BYTES,
                past_bytes: one.past_cache_units * FLASH_UNIT_BYTES,
            });
            Written::sum(each)
        });
        let media = || {
            Self::crossed(result, WriteCache::Media, |one| {
                let each = one.media_caches.iter().map(|one| Written {
                    bytes: one.cached_bytes + one.streamed_bytes,
                    past_bytes: one.past_cache_bytes,
                });
                Written::sum(each)
            })
        };
        slc.or_else(media)
    }

    fn crossed(
        result: &ProgramResult,
        cache: WriteCache,
        written: impl Fn(&Repetition) -> Written,
    ) -> Option<Self> {
        let mut at_bytes = 0;
        let full = result.repetitions.iter().map(&written).find(|one| {
            at_bytes += one.bytes.saturating_sub(one.past_bytes);
            one.past_bytes > 0
        });
        full?;
        let counted = Written::sum(result.kept().map(&written));
        Some(Self {
            cache,
            at_bytes,
            past_share: counted.past_bytes as f64 / counted.bytes.max(1) as f64,
        })
    }
}

impl Written {
    fn sum(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            bytes: sum.bytes + one.bytes,
            past_bytes: sum.past_bytes + one.past_bytes,
        })
    }
}

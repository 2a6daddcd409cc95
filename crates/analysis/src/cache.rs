//! Verdict on the source of a read's bytes: memory or storage, as the cache mode requires.

use crate::layers::ReadLayer;
use diskperf_timeline::{CacheMode, ProgramResult, Repetition, Residency, WorkerMeasure};
use serde::{Serialize, Serializer};

/// Share of a cold file that may be in memory: a page-sized header, or data that the file system
/// read along with its own.
const COLD_RESIDENT_SHARE_MAX: f64 = 0.05;

/// Share of a warm file that must be in memory; at most the rest may come from storage. It is below
/// 1 because residency is counted in pages and files end within one.
const WARM_RESIDENT_SHARE_MIN: f64 = 0.99;

/// Share of the expected storage reads below which storage counts as unaccounted. Either a cache
/// that the page cache does not know served the program, or the kernel does not account the path,
/// as for FUSE and virtiofs. The figures cannot distinguish the two.
const STORAGE_SHARE_MIN: f64 = 0.01;

/// Minimum share of a cache-bypassing read that must come from storage. The rest allows for data
/// that a file system keeps inline with its metadata.
const DIRECT_STORAGE_SHARE_MIN: f64 = 0.95;

/// Verdict on the source of a program's read bytes, memory or storage, against the cache mode of
/// the run. In ascending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheVerdict {
    /// The program read nothing, or nothing that storage holds.
    NotApplicable,
    /// The bytes came from the source that the cache mode requires.
    AsRequested,
    /// The source of the bytes is unknown: the system accounts no storage reads and reports no
    /// residency, or its figures leave the question open.
    Unknown,
    /// The file should have been warm, but part of it was not in memory.
    WarmButNotResident,
    /// The read should have bypassed the cache, but memory served it.
    DirectButCached,
    /// The file should have been cold, but part of it was in memory.
    ColdButCached,
}

impl CacheVerdict {
    /// Returns the name of the verdict in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotApplicable => "not_applicable",
            Self::AsRequested => "as_asked",
            Self::Unknown => "unknown",
            Self::WarmButNotResident => "warm_but_not_resident",
            Self::DirectButCached => "direct_but_cached",
            Self::ColdButCached => "cold_but_cached",
        }
    }

    /// Tests whether the bytes certainly came from the wrong source, so that the figure does not
    /// measure the program's intent.
    pub fn is_fault(self) -> bool {
        match self {
            Self::NotApplicable | Self::AsRequested | Self::Unknown => false,
            Self::WarmButNotResident | Self::DirectButCached | Self::ColdButCached => true,
        }
    }

    /// Returns the mark for a table figure whose bytes came from the wrong source; empty where the
    /// verdict is no fault.
    pub fn table_mark(self) -> &'static str {
        match self {
            Self::NotApplicable | Self::AsRequested => "",
            Self::Unknown => "?",
            Self::WarmButNotResident => "†",
            Self::DirectButCached => "‡",
            Self::ColdButCached => "*",
        }
    }

    /// Returns the explanation of the mark that a table shows for the verdict.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NotApplicable => "nothing was read from storage",
            Self::AsRequested => "cached as requested",
            Self::Unknown => "the kernel does not report whether the bytes came from the device",
            Self::WarmButNotResident => {
                "meant to be warm, but part of the file was not in memory: \
                 this figure includes the device"
            }
            Self::DirectButCached => {
                "meant to bypass the cache, but served from memory: \
                 this is not the device's speed"
            }
            Self::ColdButCached => {
                "meant to be cold, but found in memory: this is not the device's speed"
            }
        }
    }

    /// Returns the worst verdict of the kept repetitions. A single repetition with bytes from the
    /// wrong source invalidates the figure of all.
    pub fn from_result(result: &ProgramResult) -> Self {
        if ReadLayer::from_result(result).is_some_and(|layer| !layer.has_storage()) {
            return Self::NotApplicable;
        }
        result
            .kept_repetitions()
            .map(|repetition| Self::from_repetition(repetition, result.cache_mode))
            .max()
            .unwrap_or(Self::NotApplicable)
    }

    /// Returns the verdict on one repetition with the cache mode `mode`.
    ///
    /// A cold read may hit data that the run itself has read (several readers of one area, random
    /// reads of one block). For it the residency *before* the run counts, and a low share from
    /// storage alone is no fault.
    pub fn from_repetition(repetition: &Repetition, mode: CacheMode) -> Self {
        let read_bytes = repetition.sum_over_workers(|worker| worker.read_bytes);
        if read_bytes == 0 {
            return Self::NotApplicable;
        }
        let residency = repetition.residency.filter(|found| found.file_bytes > 0);
        let storage = storage_bytes(repetition);
        if residency.is_none() && storage.is_none() {
            return Self::Unknown;
        }
        let from_storage = storage.map(|bytes| bytes as f64 / read_bytes as f64);
        let was_resident =
            residency.is_some_and(|found| resident_share_before(found) > COLD_RESIDENT_SHARE_MAX);
        match mode {
            CacheMode::Cold => {
                let distinct = residency.map_or(read_bytes, |found| found.file_bytes);
                let least = STORAGE_SHARE_MIN * read_bytes.min(distinct) as f64;
                if was_resident {
                    Self::ColdButCached
                } else if storage.is_some_and(|bytes| (bytes as f64) < least) {
                    Self::Unknown
                } else {
                    Self::AsRequested
                }
            }
            CacheMode::Warm => {
                let absent = residency.is_some_and(|found| {
                    resident_share_before(found).min(resident_share_after(found))
                        < WARM_RESIDENT_SHARE_MIN
                });
                let fetched =
                    from_storage.is_some_and(|share| share > 1.0 - WARM_RESIDENT_SHARE_MIN);
                Self::fault_or_as_requested(absent || fetched, Self::WarmButNotResident)
            }
            CacheMode::Direct => match from_storage {
                Some(share) if share < STORAGE_SHARE_MIN && !was_resident => Self::Unknown,
                Some(share) => Self::fault_or_as_requested(
                    share < DIRECT_STORAGE_SHARE_MIN,
                    Self::DirectButCached,
                ),
                // Residency alone cannot show a cache that was bypassed.
                None => Self::Unknown,
            },
        }
    }

    fn fault_or_as_requested(is_one: bool, fault: Self) -> Self {
        if is_one { fault } else { Self::AsRequested }
    }
}

impl Serialize for CacheVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

fn resident_share_before(residency: Residency) -> f64 {
    residency.resident_before_bytes as f64 / residency.file_bytes as f64
}

fn resident_share_after(residency: Residency) -> f64 {
    residency.resident_after_bytes as f64 / residency.file_bytes as f64
}

/// Returns the bytes that storage delivered for all workers; `None` unless the kernel accounts them
/// for each worker.
fn storage_bytes(repetition: &Repetition) -> Option<u64> {
    repetition
        .workers
        .iter()
        .map(|worker: &WorkerMeasure| worker.storage_read_bytes)
        .sum()
}

/// Returns the share (0 to 1) of one repetition's read bytes that came from the device, from kernel
/// accounting, else from the share that was not resident before. Read-ahead beyond the requested
/// bytes counts as 1. `None` where nothing was read or the system reports neither figure.
pub fn device_share(repetition: &Repetition) -> Option<f64> {
    let read_bytes = repetition.sum_over_workers(|worker| worker.read_bytes);
    if read_bytes == 0 {
        return None;
    }
    let share = match storage_bytes(repetition) {
        Some(bytes) => bytes as f64 / read_bytes as f64,
        None => {
            let residency = repetition.residency.filter(|found| found.file_bytes > 0)?;
            1.0 - resident_share_before(residency)
        }
    };
    Some(share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;

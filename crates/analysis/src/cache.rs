//! Where the bytes of a read came from, and whether that is what was asked.

use crate::layers::Layer;
use diskperf_timeline::{CacheMode, ProgramResult, Repetition, Residency, WorkerMeasure};
use serde::{Serialize, Serializer};

/// A cold file may have this share of itself in memory: a page-sized header,
/// or what the file system read along with its own data.
const COLD_RESIDENT: f64 = 0.05;

/// Of a warm file this share must be in memory, and at most the rest may come
/// from storage: residency is counted in pages, files end within one.
const WARM_RESIDENT: f64 = 0.99;

/// Below this share of what storage must have delivered at least, it accounts
/// nothing: either a cache served the program that the page cache does not
/// know, or the bytes came by a way that the kernel does not account, as those
/// of FUSE and virtiofs do. Nobody can tell which.
const FROM_STORAGE: f64 = 0.01;

/// Of a read around the cache, this share must come from storage; the rest is
/// room for what a file system keeps inline with its own data.
const DIRECT_FROM_STORAGE: f64 = 0.95;

/// Whether a program's reads found their bytes where they were meant to. In
/// ascending order of how much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheVerdict {
    /// Nothing was read, or nothing that storage holds.
    NotApplicable,
    /// The bytes came from where they were meant to.
    AsAsked,
    /// The system neither accounts storage reads nor tells residency, or what
    /// it tells leaves it open where the bytes came from.
    Unknown,
    /// Meant to be warm, but part of the file was not in memory.
    WarmButNotResident,
    /// Meant to bypass the cache, but served from memory.
    DirectButCached,
    /// Meant to be cold, but found in memory.
    ColdButCached,
}

impl CacheVerdict {
    /// The word for it in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotApplicable => "not_applicable",
            Self::AsAsked => "as_asked",
            Self::Unknown => "unknown",
            Self::WarmButNotResident => "warm_but_not_resident",
            Self::DirectButCached => "direct_but_cached",
            Self::ColdButCached => "cold_but_cached",
        }
    }

    /// Whether the bytes are known to have come from elsewhere, so that the
    /// figure is not what its program is meant to measure.
    pub fn is_fault(self) -> bool {
        match self {
            Self::NotApplicable | Self::AsAsked | Self::Unknown => false,
            Self::WarmButNotResident | Self::DirectButCached | Self::ColdButCached => true,
        }
    }

    /// The mark behind a figure in a table; empty where all is well.
    pub fn mark(self) -> &'static str {
        match self {
            Self::NotApplicable | Self::AsAsked => "",
            Self::Unknown => "?",
            Self::WarmButNotResident => "†",
            Self::DirectButCached => "‡",
            Self::ColdButCached => "*",
        }
    }

    /// What the mark means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NotApplicable => "nothing was read from storage",
            Self::AsAsked => "cached as asked",
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

    /// The worst verdict of the kept repetitions: one that was cached spoils
    /// the figure of all.
    pub fn of(result: &ProgramResult) -> Self {
        if Layer::of(result).is_some_and(|layer| !layer.has_storage()) {
            return Self::NotApplicable;
        }
        result
            .kept()
            .map(|repetition| Self::of_repetition(repetition, result.cache))
            .max()
            .unwrap_or(Self::NotApplicable)
    }

    /// The verdict on one repetition that asked for `mode`.
    ///
    /// A cold read may find again what it has read itself (several readers of
    /// one area, random reads of one block), so there it is the residency
    /// *before* that counts, and a low share from storage alone is no fault.
    pub fn of_repetition(repetition: &Repetition, mode: CacheMode) -> Self {
        let read_bytes = repetition.total(|worker| worker.read_bytes);
        if read_bytes == 0 {
            return Self::NotApplicable;
        }
        let residency = repetition.residency.filter(|found| found.file_bytes > 0);
        let storage = storage_bytes(repetition);
        if residency.is_none() && storage.is_none() {
            return Self::Unknown;
        }
        let from_storage = storage.map(|bytes| bytes as f64 / read_bytes as f64);
        let was_resident = residency.is_some_and(|found| before(found) > COLD_RESIDENT);
        match mode {
            CacheMode::Cold => {
                let distinct = residency.map_or(read_bytes, |found| found.file_bytes);
                let least = FROM_STORAGE * read_bytes.min(distinct) as f64;
                if was_resident {
                    Self::ColdButCached
                } else if storage.is_some_and(|bytes| (bytes as f64) < least) {
                    Self::Unknown
                } else {
                    Self::AsAsked
                }
            }
            CacheMode::Warm => {
                let absent =
                    residency.is_some_and(|found| before(found).min(after(found)) < WARM_RESIDENT);
                let fetched = from_storage.is_some_and(|share| share > 1.0 - WARM_RESIDENT);
                Self::fault(absent || fetched, Self::WarmButNotResident)
            }
            CacheMode::Direct => match from_storage {
                Some(share) if share < FROM_STORAGE && !was_resident => Self::Unknown,
                Some(share) => Self::fault(share < DIRECT_FROM_STORAGE, Self::DirectButCached),
                // Residency alone cannot show a cache that was bypassed.
                None => Self::Unknown,
            },
        }
    }

    fn fault(is_one: bool, fault: Self) -> Self {
        if is_one { fault } else { Self::AsAsked }
    }
}

impl Serialize for CacheVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

fn before(residency: Residency) -> f64 {
    residency.before_bytes as f64 / residency.file_bytes as f64
}

fn after(residency: Residency) -> f64 {
    residency.after_bytes as f64 / residency.file_bytes as f64
}

/// What storage delivered on behalf of the workers; `None` unless it is
/// accounted for each of them.
fn storage_bytes(repetition: &Repetition) -> Option<u64> {
    repetition
        .workers
        .iter()
        .map(|worker: &WorkerMeasure| worker.storage_read_bytes)
        .sum()
}

/// The share (0 to 1) of one repetition's read bytes that came from the
/// device: as the kernel accounts them, else what was not resident before.
/// Read-ahead beyond what was asked counts as 1. `None` where nothing was
/// read, or nobody can tell.
pub fn device_share(repetition: &Repetition) -> Option<f64> {
    let read_bytes = repetition.total(|worker| worker.read_bytes);
    if read_bytes == 0 {
        return None;
    }
    let share = match storage_bytes(repetition) {
        Some(bytes) => bytes as f64 / read_bytes as f64,
        None => {
            let residency = repetition.residency.filter(|found| found.file_bytes > 0)?;
            1.0 - before(residency)
        }
    };
    Some(share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests;

//! What is measured of a drive: the figures that files of `expected/` may name.

use crate::names;
use serde::Deserialize;
use std::fmt;

/// What is measured of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Figure {
    /// Of a disk with firmware.
    Disk(DiskFigure),
    /// Of a flash drive.
    Flash(FlashFigure),
}

/// What is measured of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFigure {
    /// 4 KiB at random, the mean time between completions.
    RandomReadMs,
    /// Reads of a mebibyte, one behind the other, at the outside.
    SequentialReadOuterMbPerS,
    /// The same inside.
    SequentialReadInnerMbPerS,
    /// The same of writes, in the steady state.
    SequentialWriteMbPerS,
    /// 4 KiB behind the last ones, each followed by a flush.
    AppendedSyncMs,
    /// 4 KiB anywhere, each followed by a flush.
    RandomSyncMs,
    /// 4 KiB written at random after idle: the first hundred, each.
    WriteAfterIdleMs,
    /// 4 KiB written at random when the map of the media cache is full.
    WriteMapFullMs,
}

/// What is measured of a flash drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashFigure {
    /// 4 KiB reads at random of a drive that was filled at random, the mean latency.
    RandomReadUs,
    /// How many of them in a second.
    RandomReadIops,
    /// The same of a gibibyte just written: of the cache of one bit a cell, if there is one.
    CachedReadUs,
    /// How many of them in a second.
    CachedReadIops,
    /// 4 KiB writes at random to a drive that was idle, the mean latency.
    RandomWriteUs,
    /// 4 KiB writes at random to a full drive in its steady state.
    SteadyWriteIops,
    /// How much is programmed for a byte of them.
    SteadyAmplification,
    /// 128 KiB reads, one behind the other, of what was written so.
    SequentialReadMbPerS,
    /// 128 KiB writes, one behind the other, to a drive that was never written.
    SequentialWriteMbPerS,
    /// The same when the cache of one bit a cell is full.
    WritePastCacheMbPerS,
    /// 4 KiB writes, each followed by a flush where the drive needs one.
    SyncedWritesPerS,
    /// 70 % reads and 30 % writes of 4 KiB at random, on a full drive in its steady state.
    MixedIops,
    /// The 99th percentile of the latency of the reads among them.
    MixedReadP99Us,
}

impl Figure {
    /// Every figure.
    pub fn all() -> impl Iterator<Item = Figure> + Clone {
        let disk = DiskFigure::ALL.into_iter().map(Figure::Disk);
        disk.chain(FlashFigure::ALL.into_iter().map(Figure::Flash))
    }

    /// As files of `expected/` have it.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Disk(figure) => figure.text().0,
            Figure::Flash(figure) => figure.text().0,
        }
    }

    /// In words, and its unit.
    pub fn words(self) -> (&'static str, &'static str) {
        let (_, words, unit) = match self {
            Figure::Disk(figure) => figure.text(),
            Figure::Flash(figure) => figure.text(),
        };
        (words, unit)
    }
}

impl TryFrom<String> for Figure {
    type Error = UnknownFigure;

    fn try_from(name: String) -> Result<Self, UnknownFigure> {
        Figure::all()
            .find(|figure| figure.name() == name)
            .ok_or(UnknownFigure(name))
    }
}

/// A name that no figure has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFigure(String);

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = names::suggestion(&self.0, Figure::all().map(Figure::name));
        write!(f, "there is no figure `{}`: {near}", self.0)
    }
}

impl std::error::Error for UnknownFigure {}

impl DiskFigure {
    /// All of them.
    pub const ALL: [DiskFigure; 8] = [
        DiskFigure::RandomReadMs,
        DiskFigure::SequentialReadOuterMbPerS,
        DiskFigure::SequentialReadInnerMbPerS,
        DiskFigure::SequentialWriteMbPerS,
        DiskFigure::AppendedSyncMs,
        DiskFigure::RandomSyncMs,
        DiskFigure::WriteAfterIdleMs,
        DiskFigure::WriteMapFullMs,
    ];

    /// Its name, words and unit.
    fn text(self) -> (&'static str, &'static str, &'static str) {
        match self {
            DiskFigure::RandomReadMs => ("random_read_ms", "random reads of 4 KiB, each", "ms"),
            DiskFigure::SequentialReadOuterMbPerS => (
                "sequential_read_outer_mb_per_s",
                "sequential reads, outside",
                "MB/s",
            ),
            DiskFigure::SequentialReadInnerMbPerS => (
                "sequential_read_inner_mb_per_s",
                "sequential reads, inside",
                "MB/s",
            ),
            DiskFigure::SequentialWriteMbPerS => (
                "sequential_write_mb_per_s",
                "sequential writes, outside",
                "MB/s",
            ),
            DiskFigure::AppendedSyncMs => {
                ("appended_sync_ms", "4 KiB appended and synced, each", "ms")
            }
            DiskFigure::RandomSyncMs => ("random_sync_ms", "4 KiB anywhere and synced, each", "ms"),
            DiskFigure::WriteAfterIdleMs => (
                "write_after_idle_ms",
                "random writes of 4 KiB after idle, each",
                "ms",
            ),
            DiskFigure::WriteMapFullMs => (
                "write_map_full_ms",
                "random writes of 4 KiB, map full, each",
                "ms",
            ),
        }
    }
}

impl FlashFigure {
    /// All of them.
    pub const ALL: [FlashFigure; 13] = [
        FlashFigure::RandomReadUs,
        FlashFigure::RandomReadIops,
        FlashFigure::CachedReadUs,
        FlashFigure::CachedReadIops,
        FlashFigure::RandomWriteUs,
        FlashFigure::SteadyWriteIops,
        FlashFigure::SteadyAmplification,
        FlashFigure::SequentialReadMbPerS,
        FlashFigure::SequentialWriteMbPerS,
        FlashFigure::WritePastCacheMbPerS,
        FlashFigure::SyncedWritesPerS,
        FlashFigure::MixedIops,
        FlashFigure::MixedReadP99Us,
    ];

    /// Keys of the drive, with the values that it is measured with: its past, and no cache
    /// of one bit a cell where what a full one leaves is measured.
    pub fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            FlashFigure::RandomReadUs
            | FlashFigure::RandomReadIops
            | FlashFigure::SteadyWriteIops
            | FlashFigure::SteadyAmplification
            | FlashFigure::MixedIops
            | FlashFigure::MixedReadP99Us => &[("past", "random")],
            FlashFigure::WritePastCacheMbPerS => &[
                ("past", "fresh"),
                ("slc_fixed_bytes", "0"),
                ("slc_dynamic_bytes", "0"),
            ],
            FlashFigure::CachedReadUs
            | FlashFigure::CachedReadIops
            | FlashFigure::RandomWriteUs
            | FlashFigure::SequentialReadMbPerS
            | FlashFigure::SequentialWriteMbPerS
            | FlashFigure::SyncedWritesPerS => &[("past", "fresh")],
        }
    }

    /// Its name, words and unit.
    fn text(self) -> (&'static str, &'static str, &'static str) {
        match self {
            FlashFigure::RandomReadUs => ("random_read_us", "random reads of 4 KiB, each", "µs"),
            FlashFigure::RandomReadIops => ("random_read_iops", "random reads of 4 KiB", "1/s"),
            FlashFigure::CachedReadUs => (
                "cached_read_us",
                "random reads of 4 KiB just written, each",
                "µs",
            ),
            FlashFigure::CachedReadIops => (
                "cached_read_iops",
                "random reads of 4 KiB just written",
                "1/s",
            ),
            FlashFigure::RandomWriteUs => (
                "random_write_us",
                "random writes of 4 KiB, fresh, each",
                "µs",
            ),
            FlashFigure::SteadyWriteIops => {
                ("steady_write_iops", "random writes of 4 KiB, steady", "1/s")
            }
            FlashFigure::SteadyAmplification => (
                "steady_amplification",
                "write amplification of these",
                "times",
            ),
            FlashFigure::SequentialReadMbPerS => (
                "sequential_read_128k_mb_per_s",
                "sequential reads of 128 KiB",
                "MB/s",
            ),
            FlashFigure::SequentialWriteMbPerS => (
                "sequential_write_128k_mb_per_s",
                "sequential writes of 128 KiB, fresh",
                "MB/s",
            ),
            FlashFigure::WritePastCacheMbPerS => (
                "write_past_cache_mb_per_s",
                "sequential writes past the pSLC cache",
                "MB/s",
            ),
            FlashFigure::SyncedWritesPerS => (
                "synced_writes_per_s",
                "writes of 4 KiB, each durable",
                "1/s",
            ),
            FlashFigure::MixedIops => ("mixed_iops", "70 % reads, 30 % writes, steady", "1/s"),
            FlashFigure::MixedReadP99Us => {
                ("mixed_read_p99_us", "99 % of the reads among them", "µs")
            }
        }
    }
}

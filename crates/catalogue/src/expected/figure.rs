//! Performance figures of a drive that files of `expected/` may name.

use crate::names;
use serde::Deserialize;
use std::fmt;

/// Performance figure of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Figure {
    /// Performance figure of a disk with firmware.
    Disk(DiskFigure),
    /// Performance figure of a flash drive.
    Flash(FlashFigure),
}

/// Performance figure of a disk drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFigure {
    /// Mean time between completions of random 4 KiB reads, in milliseconds.
    RandomReadMs,
    /// Throughput of sequential 1 MiB reads on the outer tracks, in MB/s.
    SequentialReadOuterMbPerS,
    /// Throughput of sequential 1 MiB reads on the inner tracks, in MB/s.
    SequentialReadInnerMbPerS,
    /// Throughput of sequential 1 MiB writes in the steady state, in MB/s.
    SequentialWriteMbPerS,
    /// Time of an appended 4 KiB write followed by a flush, in milliseconds.
    AppendedSyncMs,
    /// Time of a random 4 KiB write followed by a flush, in milliseconds.
    RandomSyncMs,
    /// Time of each of the first hundred random 4 KiB writes after an idle period, in milliseconds.
    WriteAfterIdleMs,
    /// Time of a random 4 KiB write when the map of the media cache is full, in milliseconds.
    WriteMapFullMs,
}

/// Performance figure of a flash drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashFigure {
    /// Mean latency of random 4 KiB reads from a drive that was filled by random writes, in
    /// microseconds.
    RandomReadUs,
    /// Rate of random 4 KiB reads from a drive that was filled by random writes, in I/Os per
    /// second.
    RandomReadIops,
    /// Mean latency of random 4 KiB reads from a gibibyte written just before, in microseconds.
    /// These data are in the SLC cache, if there is one.
    CachedReadUs,
    /// Rate of random 4 KiB reads from a gibibyte written just before, in I/Os per second.
    CachedReadIops,
    /// Mean latency of random 4 KiB writes to an idle drive, in microseconds.
    RandomWriteUs,
    /// Rate of random 4 KiB writes to a full drive in its steady state, in I/Os per second.
    SteadyWriteIops,
    /// Write amplification of random 4 KiB writes to a full drive in its steady state.
    SteadyAmplification,
    /// Throughput of sequential 128 KiB reads of sequentially written data, in MB/s.
    SequentialReadMbPerS,
    /// Throughput of sequential 128 KiB writes to a drive that was never written, in MB/s.
    SequentialWriteMbPerS,
    /// Throughput of sequential 128 KiB writes when the SLC cache is full, in MB/s.
    WritePastCacheMbPerS,
    /// Rate of durable 4 KiB writes, each followed by a flush if the drive needs one.
    SyncedWritesPerS,
    /// Rate of a random 4 KiB mix of 70 % reads and 30 % writes on a full drive in its steady
    /// state, in I/Os per second.
    MixedIops,
    /// 99th percentile of the read latency in the random mix of 70 % reads and 30 % writes, in
    /// microseconds.
    MixedReadP99Us,
}

/// Name of a figure in files, with its description and unit in tables.
struct FigureText {
    name: &'static str,
    description: &'static str,
    unit: &'static str,
}

impl Figure {
    /// Returns all figures of disks and flash drives.
    pub fn iter_all() -> impl Iterator<Item = Figure> + Clone {
        let disk = DiskFigure::ALL.into_iter().map(Figure::Disk);
        disk.chain(FlashFigure::ALL.into_iter().map(Figure::Flash))
    }

    /// Returns the name of the figure in files of `expected/`.
    pub fn name(self) -> &'static str {
        self.text().name
    }

    /// Returns the description of the figure, for tables.
    pub fn description(self) -> &'static str {
        self.text().description
    }

    /// Returns the unit of the figure, for tables.
    pub fn unit(self) -> &'static str {
        self.text().unit
    }

    fn text(self) -> FigureText {
        match self {
            Figure::Disk(figure) => figure.text(),
            Figure::Flash(figure) => figure.text(),
        }
    }
}

impl TryFrom<String> for Figure {
    type Error = UnknownFigure;

    fn try_from(name: String) -> Result<Self, UnknownFigure> {
        Figure::iter_all()
            .find(|figure| figure.name() == name)
            .ok_or(UnknownFigure(name))
    }
}

/// Name that does not belong to any figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFigure(String);

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = names::suggest_names(&self.0, Figure::iter_all().map(Figure::name));
        write!(f, "there is no figure `{}`: {near}", self.0)
    }
}

impl std::error::Error for UnknownFigure {}

impl DiskFigure {
    /// All figures of disk drives.
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

    fn text(self) -> FigureText {
        let (name, description, unit) = match self {
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
        };
        FigureText {
            name,
            description,
            unit,
        }
    }
}

impl FlashFigure {
    /// All figures of flash drives.
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

    /// Returns the drive settings for the measurement: the precondition state, and no SLC cache for
    /// a figure that measures the state after the cache is full.
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

    fn text(self) -> FigureText {
        let (name, description, unit) = match self {
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
        };
        FigureText {
            name,
            description,
            unit,
        }
    }
}

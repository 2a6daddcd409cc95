//! A disk as a catalogue file or an importer describes it.

use super::super::cache::{ReadCacheSpecification, WriteCacheSpecification};
use super::super::link::{DiskLinkSpecification, ReadDelivery};
use super::super::mechanism::{MechanismError, MechanismSpecification};
use super::super::overheads::OverheadSpecification;
use super::super::queue::QueueSpecification;
use super::super::shingled::ShingledSpecification;

/// Specification of a hard disk, of 1990 to 2026.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct DiskSpecification {
    /// Actuator, platters and sector layout.
    pub mechanism: MechanismSpecification,
    /// Sector size that the host sees, in bytes.
    pub sector_bytes: u32,
    /// Host sectors per sector of the medium: 8 on a 512e disk, else 1.
    #[cfg_attr(feature = "serde", serde(default = "default_one"))]
    pub sectors_per_medium_sector: u32,
    /// Maximum number of commands in flight in the drive.
    pub queue_depth: u32,
    /// Scheduling of pending commands and destages.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: QueueSpecification,
    /// Firmware overheads by kind of command.
    #[cfg_attr(feature = "serde", serde(default))]
    pub overheads: OverheadSpecification,
    /// Link between drive and host.
    pub link: DiskLinkSpecification,
    /// Read cache and read-ahead.
    pub read_cache: ReadCacheSpecification,
    /// Write-back cache. Without one, each write goes to the medium before it completes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub write_cache: Option<WriteCacheSpecification>,
    /// Effect of a flush on other commands in the queue.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "flush"))]
    pub flush_order: FlushOrder,
    /// Shingled tracks, if the disk has them. The first zone must begin with as many dead sectors
    /// as the media cache has.
    #[cfg_attr(feature = "serde", serde(default))]
    pub shingled: Option<ShingledSpecification>,
}

#[cfg(feature = "serde")]
fn default_one() -> u32 {
    1
}

/// Effect of a cache flush on other commands in the drive's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FlushOrder {
    /// The flush runs alone: FLUSH CACHE of SATA, before which the host waits until the queue is
    /// empty.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "drains"))]
    DrainsQueue,
    /// The flush queues like other commands, and covers the writes acknowledged before it:
    /// SYNCHRONIZE CACHE of SAS.
    #[cfg_attr(feature = "serde", serde(rename = "queues"))]
    QueuesWrites,
}

/// Reason why a disk specification is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum DiskError {
    /// Error in the specification of the actuator and platters.
    Mechanism(MechanismError),
    /// A parameter of the disk is out of range.
    OutOfRange {
        /// Key of the parameter that is out of range.
        key: &'static str,
        /// Value that is out of range.
        value: f64,
        /// Valid range of the parameter, for the message.
        must: &'static str,
    },
}

impl std::fmt::Display for DiskError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mechanism(error) => error.fmt(formatter),
            Self::OutOfRange { key, value, must } => {
                write!(formatter, "`{key}` is {value}, and must be {must}")
            }
        }
    }
}

impl std::error::Error for DiskError {}

impl From<MechanismError> for DiskError {
    fn from(error: MechanismError) -> Self {
        Self::Mechanism(error)
    }
}

impl DiskSpecification {
    /// Returns the size of the buffer, read cache and write-back cache together, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        let written_sectors = self.write_cache.as_ref().map_or(0, |of| of.sectors_max);
        let written_bytes = written_sectors.saturating_mul(u64::from(self.sector_bytes));
        self.read_cache_bytes().saturating_add(written_bytes)
    }

    /// Returns the size of a medium sector, in bytes.
    pub fn medium_sector_bytes(&self) -> u64 {
        u64::from(self.sector_bytes) * u64::from(self.sectors_per_medium_sector)
    }

    /// Returns the capacity of all read-cache segments together, in bytes.
    pub fn read_cache_bytes(&self) -> u64 {
        let reads = &self.read_cache;
        u64::from(reads.segments)
            .saturating_mul(u64::from(reads.segment_sectors))
            .saturating_mul(self.medium_sector_bytes())
    }

    /// Validates the parameters of the specification, except those of the mechanism.
    ///
    /// # Errors
    ///
    /// [`DiskError`] with the first parameter that is out of range.
    pub fn validate(&self) -> Result<(), DiskError> {
        let within = |key, value: f64, (least, most): (f64, f64), must| match (least..=most)
            .contains(&value)
        {
            true => Ok(()),
            false => Err(DiskError::OutOfRange { key, value, must }),
        };
        let count = (1.0, 4_294_967_295.0);
        let ms = (0.0, 1000.0);
        within(
            "sector_bytes",
            f64::from(self.sector_bytes),
            (1.0, 65_536.0),
            "1 to 65536",
        )?;
        let per_medium = f64::from(self.sectors_per_medium_sector);
        within(
            "sectors_per_medium_sector",
            per_medium,
            (1.0, 1024.0),
            "1 to 1024",
        )?;
        within(
            "queue_depth",
            f64::from(self.queue_depth),
            count,
            "at least 1",
        )?;
        within(
            "bytes_per_s",
            self.link.bytes_per_s,
            (1e3, 1e12),
            "1000 to 10^12",
        )?;
        let written = self.link.write_bytes_per_s.unwrap_or(1e3);
        within("bytes_per_s", written, (1e3, 1e12), "1000 to 10^12")?;
        within("overhead_ms", self.link.overhead_ms, ms, MS_RANGE)?;
        within("reconnect_ms", self.link.reconnect_ms, ms, MS_RANGE)?;
        if let ReadDelivery::Reconnected { share } = self.link.read_delivery {
            within("share", share, (0.0, 1.0), "from 0 to 1")?;
        }
        let of = &self.overheads;
        for after in [of.read_hit_ms, of.read_miss_ms, of.write_ms] {
            for time_ms in after.list_times_ms() {
                within("after_read_ms", time_ms, ms, MS_RANGE)?;
            }
        }
        within("write_sector_ms", of.write_sector_ms, ms, MS_RANGE)?;
        within("read_completion_ms", of.read_completion_ms, ms, MS_RANGE)?;
        within("write_completion_ms", of.write_completion_ms, ms, MS_RANGE)?;
        let segments = f64::from(self.read_cache.segments);
        within("segments", segments, (0.0, 65_536.0), "up to 65536")?;
        if let Some(write) = &self.write_cache {
            within(
                "most_sectors",
                write.sectors_max as f64,
                (1.0, 1e15),
                "at least 1",
            )?;
            within(
                "most_extents",
                f64::from(write.extents_max),
                count,
                "at least 1",
            )?;
            let share = write.high_water_share;
            within("high_water_share", share, (0.0, 1.0), "from 0 to 1")?;
            within(
                "idle_ms",
                write.destage_idle_ms,
                (0.0, 1e6),
                "from 0 to 1000000",
            )?;
            let destaged = f64::from(write.destage_sectors_max);
            within("most_destaged_sectors", destaged, count, "at least 1")?;
        }
        self.shingled.as_ref().map_or(Ok(()), |of| {
            let first = self.mechanism.layout.zones.first();
            let dead = first.map_or(0, |zone| zone.dead_sectors);
            validate_shingled(of, dead)
        })
    }
}

fn validate_shingled(of: &ShingledSpecification, dead_sectors: u64) -> Result<(), DiskError> {
    let some = (1.0, 4_294_967_295.0);
    for (key, value, (least, most), must) in [
        (
            "band_sectors",
            f64::from(of.band_sectors),
            some,
            "at least 1",
        ),
        (
            "stream_sectors",
            f64::from(of.stream_sectors_min),
            some,
            "at least 1",
        ),
        (
            "step_sectors",
            f64::from(of.cleaning_step_sectors),
            some,
            "at least 1",
        ),
        (
            "map_extents",
            f64::from(of.map_extents_max),
            (4.0, 4_294_967_295.0),
            "at least 4",
        ),
        (
            "clean_idle_ms",
            of.cleaning_idle_ms,
            (0.0, 1e9),
            "from 0 to 10^9",
        ),
    ] {
        if !(least..=most).contains(&value) {
            return Err(DiskError::OutOfRange { key, value, must });
        }
    }
    if of.media_cache_sectors != dead_sectors || dead_sectors == 0 {
        return Err(DiskError::OutOfRange {
            key: "cache_sectors",
            value: of.media_cache_sectors as f64,
            must: "the number of dead sectors of the first zone, and at least 1",
        });
    }
    Ok(())
}

const MS_RANGE: &str = "from 0 to 1000";

//! The block layer: bios, the device's limits, plugs, merges, and the flush machinery.

mod bio;
mod queue;

pub use bio::{Bio, BioContent, BioFlags, BioOperation, FileId, MetadataKind};
pub use queue::{BlockRequest, DeviceQueue};

/// Bytes of a sector, the unit of places on a device.
pub const SECTOR_BYTES: u64 = 512;

/// Properties of a block device that shape requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Size of the device in sectors.
    pub sectors: u64,
    /// Whether writes are durable only after a flush.
    pub has_write_cache: bool,
    /// Whether a write may be durable at its completion by itself (FUA).
    pub has_fua: bool,
    /// Maximum length of a request (`max_sectors_kb`).
    pub max_sectors_kib: u32,
    /// Maximum number of segments of a request.
    pub segments_max: u32,
    /// Read-ahead of an open file (`read_ahead_kb`).
    pub read_ahead_kib: u32,
    /// Whether the device says that it rotates (`queue/rotational`).
    pub is_rotational: bool,
    /// Whether a bio is complete when its submission returns, as on a RAM disk: what follows its
    /// end is done before the submitter goes on.
    pub completes_at_submit: bool,
}

impl DeviceLimits {
    /// Returns the size of the device in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR_BYTES)
    }

    /// Returns a loop device of `bytes` over memory: write cache, no FUA, 1280 KiB a request.
    #[must_use]
    pub fn loop_device(bytes: u64) -> Self {
        Self {
            sectors: bytes / SECTOR_BYTES,
            has_write_cache: true,
            has_fua: false,
            max_sectors_kib: 1280,
            segments_max: 128,
            read_ahead_kib: 128,
            is_rotational: false,
            completes_at_submit: false,
        }
    }
}

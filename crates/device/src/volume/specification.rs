//! Specification of a cloud volume.

use super::charge::ChargeRules;
use super::device::VolumeDevice;
use super::limit::{LimitBucket, LimitSpecification, Pacing};
use super::service::ServiceQuantiles;
use super::touch::FirstTouch;
use crate::specification::{BuildDevice, Unit};
use diskperf_sim::{RandomStreams, Time};

#[cfg(feature = "catalogue")]
mod read;

/// Configuration of a cloud volume and of the instance that it is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpecification {
    /// Number of sectors that the volume shows.
    pub sectors: u64,
    /// Sector size of the volume, in bytes.
    pub sector_bytes: u32,
    /// Rules by which requests are charged.
    pub charge_rules: ChargeRules,
    /// Limits of the volume and of its instance.
    pub limits: Vec<LimitSpecification>,
    /// Enforcement of the highest rate of each limit.
    pub pacing: Pacing,
    /// Distribution of the service time of reads.
    pub read_service: ServiceQuantiles,
    /// Distribution of the service time of writes, flushes and discards.
    pub write_service: ServiceQuantiles,
    /// Maximum number of requests in flight, in service or waiting.
    pub queue_depth: u32,
    /// Fetch of blocks at their first access; `None` for a volume that was not made from a snapshot.
    pub first_touch: Option<FirstTouch>,
}

impl VolumeSpecification {
    /// Returns a volume without limits and with a constant service time, which later calls restrict.
    pub fn unlimited(sectors: u64, service_time: Time) -> Self {
        Self {
            sectors,
            sector_bytes: 4096,
            charge_rules: ChargeRules {
                operation_bytes: 256 << 10,
                random_charge_bytes: 0,
                merge_streams: 0,
            },
            limits: Vec::new(),
            pacing: Pacing {
                window_ns: 0,
                slack_ns: 0,
            },
            read_service: ServiceQuantiles::constant(service_time),
            write_service: ServiceQuantiles::constant(service_time),
            queue_depth: 65_536,
            first_touch: None,
        }
    }

    /// Returns the buckets of all limits at time zero.
    pub fn buckets(&self) -> Vec<LimitBucket> {
        let limits = self.limits.iter();
        limits
            .flat_map(|limit| limit.buckets(self.pacing))
            .collect()
    }
}

impl BuildDevice for VolumeSpecification {
    type Device = VolumeDevice;

    #[cfg(feature = "catalogue")]
    fn read(reader: &mut diskperf_catalogue::Reader<'_>) -> Self {
        read::read_volume(reader)
    }

    fn build(&self, streams: &RandomStreams, unit: Unit) -> VolumeDevice {
        let draws = streams.named_stream(&format!("drive.{}.service", unit.number));
        VolumeDevice::new(self.clone(), draws)
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn sectors(&self) -> Option<u64> {
        Some(self.sectors)
    }

    fn cache_bytes(&self) -> u64 {
        0
    }
}

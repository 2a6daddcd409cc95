//! ACSI disk and Minix's disk task as described in the catalogue.

use super::driver::{DiskTaskConfig, DiskTaskDriver};
use super::hardware::{Acsi, AcsiConfig};
use crate::parts::{DriverSource, PartBuilder, PartSpecification, buffer_sectors};
use crate::specification::{COST_MS_MAX, scale_cost};
use diskperf_catalogue::Reader;
use diskperf_sim::Time;

/// Disk with its embedded controller, and the task that commands it.
#[derive(Clone, Debug)]
pub struct AcsiSpecification {
    /// Parameters of the embedded controller.
    pub controller: AcsiConfig,
    /// Costs and read-ahead of the disk task.
    pub driver: DiskTaskConfig,
}

impl PartSpecification for AcsiSpecification {
    type Driver = DiskTaskDriver;

    fn read_specification(reader: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        Self {
            controller: read_controller(reader),
            driver: read_driver(driver),
        }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> DiskTaskDriver {
        let (config, streams) = (self.controller.clone(), builder.streams);
        let drives = builder.mechanisms(builder.drive_indices);
        let controller =
            builder.add_controller(|id, number| Acsi::new((id, number), config, drives, streams));
        DiskTaskDriver::new(self.driver.clone(), controller)
    }
}

fn read_controller(reader: &mut Reader<'_>) -> AcsiConfig {
    buffer_sectors(reader);
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    AcsiConfig {
        command_delay: time(
            "command_ms",
            "delay from a command until the controller looks for its first sector",
        ),
        command_poll_interval: time(
            "command_poll_ms",
            "interval at which the controller's processor polls for commands; 0 if hardware detects them",
        ),
    }
}

fn read_driver(driver: &DriverSource<'_>) -> DiskTaskConfig {
    let mut reader = driver.reader();
    let request = reader.milliseconds(
        "request_ms",
        0.0..=COST_MS_MAX,
        "processor time of a physical request: DMA chip, command and status",
    );
    let config = DiskTaskConfig {
        request_cost: scale_cost(request, driver.speed),
        read_ahead_bytes: reader.integer(
            "read_ahead_bytes",
            0..=65_536,
            "minimum size of a read, whose surplus is kept; 0 reads no more than requested",
        ) as u32,
    };
    reader.finish();
    config
}

//! PC-AT disk controller and the hd driver as described in the catalogue.

use super::driver::{HdDriver, HdDriverConfig};
use super::hardware::{Wd1003, Wd1003Config};
use crate::driver::QueueOrder;
use crate::parts::{DriverSource, PartBuilder, PartSpecification, buffer_sectors};
use crate::specification::{COST_MS_MAX, scale_cost};
use diskperf_catalogue::Reader;
use diskperf_sim::Time;

/// PC-AT disk controller and its driver.
#[derive(Clone, Debug)]
pub struct Wd1003Specification {
    /// Parameters of the controller.
    pub controller: Wd1003Config,
    /// Processor costs and request order of the driver.
    pub driver: HdDriverConfig,
}

impl PartSpecification for Wd1003Specification {
    type Driver = HdDriver;

    fn read_specification(reader: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        Self {
            controller: read_controller(reader),
            driver: read_driver(driver),
        }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> HdDriver {
        let (config, streams) = (self.controller.clone(), builder.streams);
        let drives = builder.mechanisms(builder.drive_indices);
        let controller =
            builder.add_controller(|id, number| Wd1003::new((id, number), config, drives, streams));
        let driver = HdDriverConfig {
            queue_order: builder.queue_order,
            ..self.driver.clone()
        };
        HdDriver::new(driver, controller, builder.drive_count)
    }
}

fn read_controller(reader: &mut Reader<'_>) -> Wd1003Config {
    let buffer_sectors = buffer_sectors(reader);
    let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
    Wd1003Config {
        buffer_sectors,
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

fn read_driver(driver: &DriverSource<'_>) -> HdDriverConfig {
    let mut reader = driver.reader();
    let mut cost = |key, doc| {
        scale_cost(
            reader.milliseconds(key, 0.0..=COST_MS_MAX, doc),
            driver.speed,
        )
    };
    let config = HdDriverConfig {
        queue_order: QueueOrder::CylinderScan,
        strategy_cost: cost("strategy_ms", "processor time to queue a request"),
        start_cost: cost(
            "start_ms",
            "processor time to load the controller's registers",
        ),
        move_sector_cost: cost(
            "move_sector_ms",
            "processor time to move a sector through the data register",
        ),
        complete_cost: cost(
            "complete_ms",
            "processor time to handle the end of a transfer",
        ),
    };
    reader.finish();
    config
}

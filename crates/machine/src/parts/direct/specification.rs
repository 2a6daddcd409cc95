//! Directly attached devices and their driver as described in the catalogue.

use super::driver::{DirectDriver, DirectDriverConfig};
use super::hardware::Direct;
use crate::parts::{DriverSource, PartBuilder, PartSpecification};
use crate::specification::{COST_MS_MAX, scale_cost};
use diskperf_catalogue::Reader;

/// Connections of the directly attached devices, and their driver.
#[derive(Clone, Debug)]
pub struct DirectSpecification {
    /// Processor costs of the driver.
    pub driver: DirectDriverConfig,
}

impl PartSpecification for DirectSpecification {
    type Driver = DirectDriver;
    const COMMANDS_MECHANISMS: bool = false;

    fn read_specification(_: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        let mut costs = driver.reader();
        let mut cost = |key, doc| {
            let cost = costs.milliseconds(key, 0.0..=COST_MS_MAX, doc);
            scale_cost(cost, driver.speed)
        };
        let driver = DirectDriverConfig {
            start_cost: cost(
                "start_ms",
                "processor time to queue a request and submit it to the device",
            ),
            complete_cost: cost(
                "complete_ms",
                "processor time to handle a completed request",
            ),
        };
        costs.finish();
        Self { driver }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> DirectDriver {
        let devices = builder.devices().into_iter();
        let connected = devices.map(|(drive, device)| {
            let connection = builder.add_controller(|id, _| Direct::new(id, device));
            (drive, connection)
        });
        DirectDriver::new(self.driver.clone(), connected)
    }
}

//! SMD controller on a UNIBUS and the up driver as described in the catalogue.

use super::driver::{UpDriver, UpDriverConfig, UpSearchLead};
use super::hardware::{Up, UpHardwareConfig};
use crate::parts::{DriverSource, PartBuilder, PartSpecification, buffer_sectors};
use crate::specification::{COST_MS_MAX, scale_cost};
use diskperf_catalogue::Reader;
use diskperf_sim::Time;

/// SMD controller on a UNIBUS and its driver.
#[derive(Clone, Debug)]
pub struct UpSpecification {
    /// Parameters of the controller.
    pub controller: UpHardwareConfig,
    /// Constants and costs of the driver for each drive of the computer.
    pub driver: Vec<UpDriverConfig>,
}

impl PartSpecification for UpSpecification {
    type Driver = UpDriver;

    fn read_specification(reader: &mut Reader<'_>, driver: &DriverSource<'_>) -> Self {
        let buffer_sectors = buffer_sectors(reader);
        let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
        let controller = UpHardwareConfig {
            buffer_sectors,
            command_delay: time(
                "command_ms",
                "delay from a command until the controller acts on it",
            ),
            bus_grant_delay_max: time(
                "grant_ms",
                "maximum wait for the bus before the data of a sector",
            ),
        };
        Self {
            controller,
            driver: read_driver(driver),
        }
    }

    fn attach_part(&self, builder: &mut PartBuilder<'_>) -> UpDriver {
        let (config, streams) = (self.controller.clone(), builder.streams);
        let drives = builder.mechanisms(builder.drive_indices);
        let controller =
            builder.add_controller(|id, number| Up::new((id, number), config, drives, streams));
        UpDriver::new(builder.queue_order, self.driver.clone(), controller)
    }

    fn may_lose_data(&self) -> bool {
        self.controller.bus_grant_delay_max > Time::ZERO
    }
}

fn read_driver(driver: &DriverSource<'_>) -> Vec<UpDriverConfig> {
    let mut configs = vec![UpDriverConfig::default(); driver.drives.len()];
    for place in driver.attached_drives {
        let drive = &driver.drives[*place];
        let mut reader = driver.reader();
        reader.select("type", &drive.driver_type);
        let lead = read_lead(&mut reader, drive.slots_per_track());
        let mut cost = |key, doc| {
            let cost = reader.milliseconds(key, 0.0..=COST_MS_MAX, doc);
            scale_cost(cost, driver.speed)
        };
        let strategy = cost("strategy_ms", "processor time to queue a request");
        let start = cost(
            "start_ms",
            "processor time to decide how to start a request, and to command the drive",
        );
        let complete = cost(
            "complete_ms",
            "processor time to handle the end of a transfer",
        );
        let register = reader.microseconds(
            "map_register_us",
            0.0..=COST_MS_MAX,
            "processor time to load a map register, which maps 512 bytes",
        );
        configs[*place] = UpDriverConfig {
            search_lead: lead,
            strategy_cost: strategy,
            start_cost: start,
            map_register_cost: scale_cost(register, driver.speed),
            complete_cost: complete,
        };
        reader.finish();
    }
    configs
}

fn read_lead(reader: &mut Reader<'_>, slots: u64) -> UpSearchLead {
    let allowed = format!("less than the {slots} sectors of a track");
    let mut sectors = |key, doc| {
        let sectors = reader.integer(key, 0..=100_000, doc);
        if sectors >= slots {
            reader.fail_with_choices(key, "longer than a track", &allowed);
        }
        sectors.min(slots) as u32
    };
    UpSearchLead {
        lead_sectors: sectors(
            "search_lead_sectors",
            "sectors between the searched sector and the requested one (sdist)",
        ),
        window_sectors: sectors(
            "position_window_sectors",
            "distance below which no search is made, in sectors (rdist)",
        ),
    }
}

//! An SMD controller on a UNIBUS and the up driver, as the catalogue describes them.

use super::driver::{Lead, UpConfig, UpDriver};
use super::hardware::{Up, UpHardwareConfig};
use crate::catalogue::Reader;
use crate::kernel::driver::QueueOrder;
use crate::parts::{Attaching, Described, DriverReading, buffer_sectors};
use crate::specification::{LONGEST_MS, scaled};
use diskperf_sim::Time;

/// A controller of this kind, and its driver.
#[derive(Clone, Debug)]
pub struct Specification {
    /// How it is built.
    pub controller: UpHardwareConfig,
    /// The driver's constants and costs.
    pub driver: UpConfig,
}

impl Described for Specification {
    type Driver = UpDriver;

    fn read(reader: &mut Reader<'_>, driver: &DriverReading<'_>) -> Self {
        let buffer_sectors = buffer_sectors(reader);
        let mut time = |key, doc| Time(reader.milliseconds(key, 0.0..=1000.0, doc));
        let controller = UpHardwareConfig {
            buffer_sectors,
            command: time("command_ms", "from a command to something acting on it"),
            grant: time(
                "grant_ms",
                "longest wait for the bus before the data of a sector",
            ),
        };
        Self {
            controller,
            driver: read_driver(driver),
        }
    }

    fn attach(&self, to: &mut Attaching<'_>) -> UpDriver {
        let (config, drives, streams) = (self.controller.clone(), to.drives, to.streams);
        let controller = to.add(|id, number| Up::new((id, number), config, drives, streams));
        let driver = UpConfig {
            order: to.order,
            ..self.driver.clone()
        };
        UpDriver::new(driver, controller, to.drive_count)
    }

    fn loses_data(&self) -> bool {
        self.controller.grant > Time::ZERO
    }
}

/// The driver, which has numbers for each type of drive.
fn read_driver(driver: &DriverReading<'_>) -> UpConfig {
    let mut config = UpConfig {
        lead: vec![Lead::default(); driver.drives.len()],
        order: QueueOrder::Scan,
        strategy: Time::ZERO,
        start: Time::ZERO,
        map_register: Time::ZERO,
        complete: Time::ZERO,
    };
    for place in driver.of {
        let drive = &driver.drives[*place];
        let mut reader = driver.reader();
        reader.select("type", &drive.driver_type);
        let slots = drive.slots();
        config.lead[*place] = read_lead(&mut reader, slots);
        let mut cost = |key, doc| {
            let cost = reader.milliseconds(key, 0.0..=LONGEST_MS, doc);
            scaled(cost, driver.speed)
        };
        config.strategy = cost("strategy_ms", "queueing a request");
        config.start = cost(
            "start_ms",
            "deciding how to start one, and telling the drive",
        );
        config.complete = cost("complete_ms", "seeing to a transfer that has ended");
        let register = reader.microseconds(
            "map_register_us",
            0.0..=LONGEST_MS,
            "loading a map register, one for each 512 bytes",
        );
        config.map_register = scaled(register, driver.speed);
        reader.finish();
    }
    config
}

fn read_lead(reader: &mut Reader<'_>, slots: u64) -> Lead {
    let allowed = format!("less than the {slots} sectors of a track");
    let mut sectors = |key, doc| {
        let sectors = reader.integer(key, 0..=100_000, doc);
        if sectors >= slots {
            reader.fail_allowing(key, "longer than a track", &allowed);
        }
        sectors.min(slots) as u32
    };
    Lead {
        lead_sectors: sectors(
            "search_lead_sectors",
            "between the sector that is searched and the one wanted (sdist)",
        ),
        window_sectors: sectors(
            "position_window_sectors",
            "no search if the sector to search for is nearer than this (rdist)",
        ),
    }
}

//! A device without mechanics and its driver, as the catalogue describes them.

use super::driver::{FixedDriver, FixedDriverConfig};
use super::hardware::{Fixed, FixedConfig, Service};
use crate::catalogue::Reader;
use crate::parts::{Attaching, Described, DriverReading};
use crate::specification::{LONGEST_MS, scaled};
use diskperf_sim::Time;

/// Devices of this kind, one for each drive, and their driver.
#[derive(Clone, Debug)]
pub struct Specification {
    /// How it is built.
    pub controller: FixedConfig,
    /// The driver's costs.
    pub driver: FixedDriverConfig,
}

impl Described for Specification {
    type Driver = FixedDriver;
    const COMMANDS_MECHANISMS: bool = false;

    fn read(reader: &mut Reader<'_>, driver: &DriverReading<'_>) -> Self {
        let servers = reader.integer("servers", 1..=4096, "requests that it works on at once");
        let depth = reader.integer(
            "queue_depth",
            1..=65_536,
            "requests that it takes: those that it works on, and those that wait in it",
        );
        let controller = FixedConfig {
            service: read_service(reader),
            servers: servers as u32,
            queue_depth: depth as u32,
            stalls: read_stalls(reader),
        };
        let mut costs = driver.reader();
        let mut cost = |key, doc| {
            let cost = costs.milliseconds(key, 0.0..=LONGEST_MS, doc);
            scaled(cost, driver.speed)
        };
        let driver = FixedDriverConfig {
            start: cost(
                "start_ms",
                "queueing a request, and giving it to the device",
            ),
            complete: cost("complete_ms", "seeing to a request that is done"),
        };
        costs.finish();
        Self { controller, driver }
    }

    fn attach(&self, to: &mut Attaching<'_>) -> FixedDriver {
        let (streams, drives) = (to.streams, to.drives);
        let device = |drive: &usize| {
            let config = self.controller.clone();
            let id = to.add(|id, number| Fixed::new((id, number), config, streams));
            (*drive, id)
        };
        FixedDriver::new(self.driver.clone(), drives.iter().map(device))
    }
}

fn read_service(reader: &mut Reader<'_>) -> Service {
    let kinds = [("constant", false), ("exponential", true)];
    let exponential = reader.choice("service", &kinds, "how the times of service spread");
    let mean =
        Time(reader.milliseconds("service_ms", 0.000_001..=LONGEST_MS, "mean time of service"));
    let quantiles = reader.integers(
        "service_quantiles_ns",
        0..=10_000_000_000,
        "quantiles of the service time in nanoseconds: equal shares of the requests lie between them; replaces service_ms",
    );
    if quantiles.len() == 1 || !quantiles.is_sorted() {
        let allowed = "two times or more, none less than the one before it";
        reader.fail_allowing("service_quantiles_ns", "no distribution", allowed);
    }
    match (quantiles.len() > 1, exponential) {
        (true, _) => Service::Quantiles(quantiles.into_iter().map(Time).collect()),
        (false, true) => Service::Exponential(mean),
        (false, false) => Service::Constant(mean),
    }
}

fn read_stalls(reader: &mut Reader<'_>) -> Vec<(Time, Time)> {
    let stalls = reader.pairs(
        "stalls_ms",
        [0..=1_000_000_000, 1..=1_000_000],
        "[start, length] of each time in which nothing gets done, since the start of the machine",
    );
    let overlap = |pair: &[[u64; 2]]| pair[1][0] < pair[0][0] + pair[0][1];
    if stalls.windows(2).any(overlap) {
        let allowed = "in the order of time, each after the end of the one before it";
        reader.fail_allowing("stalls_ms", "stalls overlap", allowed);
    }
    let time = |[from, length]: [u64; 2]| (Time::from_millis(from), Time::from_millis(length));
    stalls.into_iter().map(time).collect()
}

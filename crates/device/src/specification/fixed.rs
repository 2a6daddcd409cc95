//! Reader of devices without mechanics from the catalogue.

use crate::fixed::{FixedConfig, ServiceTime};
use diskperf_catalogue::Reader;
use diskperf_sim::Time;

/// Maximum mean service time that an entry may have, in ms.
const TIME_MS_MAX: f64 = 10_000.0;

/// Reads the configuration of a device without mechanics from an entry of the catalogue.
pub(super) fn read_fixed(reader: &mut Reader<'_>) -> FixedConfig {
    let sectors = 1..=u64::from(u32::MAX);
    let sectors = reader.integer("sectors", sectors, "number of sectors");
    let bytes = reader.integer("sector_bytes", 128..=65_536, "size of a sector");
    let service = read_service(reader);
    let servers = reader.integer(
        "servers",
        1..=4096,
        "requests that the device serves in parallel",
    );
    let depth = reader.integer(
        "queue_depth",
        1..=65_536,
        "queue depth: requests that the device accepts, in service or waiting",
    );
    FixedConfig {
        sectors,
        sector_bytes: bytes as u32,
        service_time: service,
        server_count: servers as u32,
        queue_depth: depth as u32,
        stall_periods: read_stalls(reader),
    }
}

fn read_service(reader: &mut Reader<'_>) -> ServiceTime {
    let kinds = [("constant", false), ("exponential", true)];
    let exponential = reader.choice("service", &kinds, "distribution of service times");
    let mean =
        Time(reader.milliseconds("service_ms", 0.000_001..=TIME_MS_MAX, "mean service time"));
    let quantiles = reader.integers(
        "service_quantiles_ns",
        0..=10_000_000_000,
        "quantiles of the service time in nanoseconds, with equal shares of the requests between them; replaces service_ms",
    );
    if quantiles.len() == 1 || !quantiles.is_sorted() {
        let allowed = "at least two times, in ascending order";
        reader.fail_with_choices(
            "service_quantiles_ns",
            "the quantiles do not form a distribution",
            allowed,
        );
    }
    match (quantiles.len() > 1, exponential) {
        (true, _) => ServiceTime::Quantiles(quantiles.into_iter().map(Time).collect()),
        (false, true) => ServiceTime::Exponential(mean),
        (false, false) => ServiceTime::Constant(mean),
    }
}

fn read_stalls(reader: &mut Reader<'_>) -> Vec<(Time, Time)> {
    let stalls = reader.pairs(
        "stalls_ms",
        [0..=1_000_000_000, 1..=1_000_000],
        "[start, length] of each stall, during which no request progresses; starts count from the start of the machine",
    );
    let overlap = |pair: &[[u64; 2]]| pair[1][0] < pair[0][0] + pair[0][1];
    if stalls.windows(2).any(overlap) {
        let allowed = "in order of time, each after the end of the previous one";
        reader.fail_with_choices("stalls_ms", "stalls overlap", allowed);
    }
    let time = |[from, length]: [u64; 2]| (Time::from_millis(from), Time::from_millis(length));
    stalls.into_iter().map(time).collect()
}

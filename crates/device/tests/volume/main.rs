//! Cloud volumes against the exact expectations of the facts (cloud volumes, 14), and the fluid
//! calculation against the simulation of each request.

mod charges;
mod diurnal;
mod expectations;
mod extremes;
mod fluid;
mod simulated;
mod week;

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::volume::VolumeSpecification;
use diskperf_device::volume::charge::{ChargedRequest, Meter};
use diskperf_device::volume::fluid::{
    ChargeTotal, FluidArrivals, FluidLoad, FluidVolume, NANOREQUESTS, Phase,
};
use diskperf_device::volume::limit::{Burst, DirectionRates, LimitSpecification};
use diskperf_spans::VolumeLimit;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;

/// A drive of a system of the catalogue with settings, `drive.` left out.
fn volume(system: &str, settings: &[(&str, &str)]) -> Result<VolumeSpecification, String> {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
        .collect();
    let resolved = Catalogue::embedded().resolve(&format!("bare-{system}"), &settings);
    let resolved = resolved.map_err(|errors| errors.to_string())?;
    match DeviceSpecification::from_rig(resolved) {
        Ok(DeviceSpecification::Volume(volume)) => Ok(*volume),
        Ok(other) => panic!("{system} is no volume: {other:?}"),
        Err(errors) => Err(errors.to_string()),
    }
}

fn limit(kind: VolumeLimit, base: u64, burst: Option<(u64, u64)>) -> LimitSpecification {
    LimitSpecification {
        kind,
        base: DirectionRates::equal(base * 1000),
        burst: burst.map(|(rate, credits)| Burst {
            rate_milli: rate * 1000,
            credits,
            credits_at_start: credits,
        }),
    }
}

/// Charges of a stream of requests of one size, sequential or far from each other.
fn charges(of: &VolumeSpecification, bytes: u64, sequential: bool, is_write: bool) -> ChargeTotal {
    const STREAM_REQUESTS: u64 = 4096;
    let mut meter = Meter::new(of.charge_rules);
    let mut total = ChargeTotal::default();
    let step = if sequential { bytes } else { bytes + MIB };
    // The first request of a stream continues none; it is not of the mean.
    for number in 0..=STREAM_REQUESTS {
        let request = ChargedRequest {
            start_byte: number * step,
            bytes,
            is_write,
        };
        let charge = meter.pass(request);
        if number > 0 {
            total.add(charge, is_write);
        }
    }
    total
}

fn closed(of: &VolumeSpecification, bytes: u64, depth: u32, service_us: u64) -> FluidLoad {
    FluidLoad {
        arrivals: FluidArrivals::Closed {
            depth,
            service_ns: service_us * 1000,
        },
        charges: charges(of, bytes, false, false),
    }
}

fn open(of: &VolumeSpecification, bytes: u64, per_s: u64) -> FluidLoad {
    FluidLoad {
        arrivals: FluidArrivals::Open {
            nanorequests_per_s: u128::from(per_s) * NANOREQUESTS,
        },
        charges: charges(of, bytes, false, false),
    }
}

fn phases(of: &VolumeSpecification, load: &FluidLoad, duration_ns: u64) -> Vec<Phase> {
    let mut found = Vec::new();
    FluidVolume::new(of).run(load, duration_ns, |phase| found.push(phase));
    found
}

/// Rates of the phases in requests per second, with the second at which each ends.
fn rates(phases: &[Phase]) -> Vec<(f64, f64)> {
    let row = |phase: &Phase| {
        let rate = phase.nanorequests_per_s as f64 / NANOREQUESTS as f64;
        (rate, phase.end_ns as f64 / 1e9)
    };
    phases.iter().map(row).collect()
}

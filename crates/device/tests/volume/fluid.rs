//! The fluid calculation against the simulation of each request, on random volumes and loads.

use super::*;
use diskperf_device::specification::{BuildDevice, Unit};
use diskperf_device::volume::limit::Pacing;
use diskperf_device::{Device, Drive, Operation};
use diskperf_sim::{RandomStream, RandomStreams, Time};

/// Random volume whose credits end within minutes, and a closed or open load on it.
struct Case {
    volume: VolumeSpecification,
    load: FluidLoad,
    bytes: u64,
}

pub(super) fn draw_between(draws: &mut RandomStream, low: u64, high: u64) -> u64 {
    low + draws.draw_below(high - low)
}

/// Volume with a constant service time and drawn limits, some of them with credits.
pub(super) fn draw_volume(draws: &mut RandomStream) -> VolumeSpecification {
    let service_us = draw_between(draws, 50, 3000);
    let mut volume = VolumeSpecification::unlimited(1 << 28, Time(service_us * 1000));
    volume.queue_depth = u32::MAX;
    for kind in VolumeLimit::ALL {
        if !draws.draw_with_probability(0.7) && kind != VolumeLimit::VolumeRequests {
            continue;
        }
        let unit = if kind.is_of_bytes() { 16 * KIB } else { 1 };
        let base = draw_between(draws, 50, 800) * unit;
        let burst = draws.draw_with_probability(0.7).then(|| {
            let rate = base + draw_between(draws, 100, 3000) * unit;
            (rate, (rate - base) * draw_between(draws, 5, 60))
        });
        let mut limit = limit(kind, base, burst);
        if let Some(burst) = &mut limit.burst {
            burst.credits_at_start = draws.draw_below(burst.credits + 1);
        }
        volume.limits.push(limit);
    }
    volume
}

fn draw_case(seed: u64) -> Case {
    let draws = &mut RandomStreams::new(seed).named_stream("case");
    let volume = draw_volume(draws);
    let service_ns = volume.read_service.mean().0;
    let bytes = draw_between(draws, 1, 128) * 4096;
    let arrivals = match draws.draw_with_probability(0.5) {
        true => FluidArrivals::Closed {
            depth: draw_between(draws, 1, 64) as u32,
            service_ns,
        },
        // Arrivals a whole number of microseconds apart.
        false => FluidArrivals::Open {
            nanorequests_per_s: NANOREQUESTS * 1_000_000
                / u128::from(draw_between(draws, 400, 9000)),
        },
    };
    let charges = charges(&volume, bytes, false, false);
    Case {
        load: FluidLoad { arrivals, charges },
        volume,
        bytes,
    }
}

/// Simulates each request, and returns the requests that completed by each of these seconds.
fn simulate(case: &Case, seconds: &[u64]) -> Vec<u64> {
    let device = case.volume.build(&RandomStreams::new(1), Unit::default());
    let mut drive = Drive::new(Device::Volume(Box::new(device)));
    let sectors = (case.bytes / 4096) as u32;
    let mut place = 0;
    let mut submit = |drive: &mut Drive| {
        place = (place + u64::from(sectors) + 512) % ((1 << 28) - 1024);
        drive
            .submit(Operation::Read, place, sectors)
            .expect("room in the queue");
    };
    let (mut completed, mut found) = (0, Vec::new());
    let (depth, gap_ns) = match case.load.arrivals {
        FluidArrivals::Closed { depth, .. } => (depth, None),
        FluidArrivals::Open { nanorequests_per_s } => (
            0,
            Some((NANOREQUESTS * u128::from(SECOND) / nanorequests_per_s) as u64),
        ),
    };
    for _ in 0..depth {
        submit(&mut drive);
    }
    let mut arrival = gap_ns.unwrap_or(u64::MAX);
    for second in seconds {
        let until = Time(second * SECOND);
        loop {
            let next = drive.next_due().map_or(u64::MAX, |due| due.0).min(arrival);
            if next > until.0 {
                break;
            }
            drive.run_until(Time(next));
            let done = drive.completions().count();
            completed += done as u64;
            if next == arrival {
                submit(&mut drive);
                arrival += gap_ns.expect("an open loop");
            } else if gap_ns.is_none() {
                (0..done).for_each(|_| submit(&mut drive));
            }
        }
        found.push(completed);
    }
    found
}

#[test]
fn phases_and_totals_equal_those_of_each_request_simulated() {
    const CASES: u64 = 60;
    let seconds: Vec<u64> = (1..=12).map(|step| step * 10).collect();
    let mut changes = 0;
    for seed in 0..CASES {
        let case = draw_case(seed);
        let simulated = simulate(&case, &seconds);
        let mut fluid = FluidVolume::new(&case.volume);
        let (mut served, mut phases) = (0, 0);
        for (second, simulated) in seconds.iter().zip(&simulated) {
            let duration = second * SECOND - fluid.now_ns();
            fluid.run(&case.load, duration, |phase| {
                served += phase.served();
                phases += 1;
            });
            let served = (served / NANOREQUESTS) as u64;
            // A closed loop is behind by the requests in flight, an open one by those in service.
            let in_flight = match case.load.arrivals {
                FluidArrivals::Closed { depth, .. } => u64::from(depth),
                FluidArrivals::Open { nanorequests_per_s } => {
                    let service_ns = u128::from(case.volume.read_service.mean().0);
                    (nanorequests_per_s.min(4_000_000_000_000) * service_ns
                        / 1_000_000_000_000_000_000) as u64
                }
            };
            // Each limit lets one request pass at once that its rate has yet to pay for.
            let limits = case.volume.limits.len() as u64;
            assert!(
                *simulated <= served + 2 * limits + 1
                    && served <= simulated + in_flight + 2 * limits + 1,
                "seed {seed}, second {second}: {simulated} simulated, {served} calculated: {:?}",
                case.load
            );
        }
        changes += u64::from(phases > seconds.len());
    }
    assert!(
        changes * 2 > CASES,
        "only {changes} of {CASES} loads ended their credits"
    );
}

/// The test above must notice a limit that is a hundredth off.
#[test]
fn a_limit_that_is_a_hundredth_off_is_noticed() {
    let mut case = draw_case(1);
    case.volume.limits = vec![limit(VolumeLimit::VolumeRequests, 1000, None)];
    case.load.arrivals = FluidArrivals::Closed {
        depth: 8,
        service_ns: case.volume.read_service.mean().0,
    };
    let simulated = simulate(&case, &[60])[0];
    case.volume.limits = vec![limit(VolumeLimit::VolumeRequests, 1010, None)];
    let served: u128 = phases(&case.volume, &case.load, 60 * SECOND)
        .iter()
        .map(Phase::served)
        .sum();
    let served = (served / NANOREQUESTS) as u64;
    assert!(served > simulated + 100, "{served} against {simulated}");
}

/// Windows of 100 ms, 1000 requests/s, depth 32: half of the requests take the service time, and a
/// tenth waits for the next window. Evenly spaced, all wait equally long.
#[test]
fn a_window_makes_two_kinds_of_requests_and_a_pacer_one() {
    let quantiles = |window_ms: u64| {
        let mut volume = VolumeSpecification::unlimited(1 << 20, Time(300_000));
        volume.limits = vec![limit(VolumeLimit::VolumeRequests, 1000, None)];
        volume.pacing = Pacing {
            window_ns: window_ms * 1_000_000,
            slack_ns: 0,
        };
        let device = volume.build(&RandomStreams::new(1), Unit::default());
        let mut drive = Drive::new(Device::Volume(Box::new(device)));
        let mut place = 0;
        let next = || {
            place += 1;
            diskperf_device::Command {
                operation: Operation::Read,
                sector: place * 7919 % (1 << 20),
                sectors: 1,
            }
        };
        let reads = diskperf_device::ClosedLoop::start(&mut drive, 32, next).expect("room");
        let mut times: Vec<u64> = reads
            .skip(1000)
            .take(20_000)
            .map(|completion| completion.expect("a read").latency().0)
            .collect();
        times.sort_unstable();
        [0.01, 0.5, 0.9, 0.99]
            .map(|share| times[(times.len() as f64 * share) as usize] as f64 / 1e6)
    };
    let [_, half, late, _] = quantiles(100);
    assert!(half == 0.3 && late > 95.0, "{half} {late}");
    let [first, _, _, last] = quantiles(0);
    for time in [first, last] {
        assert!((time / 32.0 - 1.0).abs() < 0.02, "{time}");
    }
}

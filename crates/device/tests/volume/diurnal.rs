//! Jobs of several parts with rates and sizes of their own, against the simulation of each request.

use super::*;
use crate::fluid::{draw_between, draw_volume};
use diskperf_device::specification::{BuildDevice, Unit};
use diskperf_device::{Device, Drive, Operation};
use diskperf_sim::{RandomStreams, Time};

/// Arrivals that are evenly spaced for a time.
struct Part {
    seconds: u64,
    gap_ns: u64,
    bytes: u64,
}

impl Part {
    fn load(&self, volume: &VolumeSpecification) -> FluidLoad {
        FluidLoad {
            arrivals: FluidArrivals::Open {
                nanorequests_per_s: NANOREQUESTS * u128::from(SECOND) / u128::from(self.gap_ns),
            },
            charges: charges(volume, self.bytes, false, false),
        }
    }
}

/// Completed requests, and the longest response of those that completed in the step.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    completed: u64,
    response_max_ns: u64,
}

const STEP_S: u64 = 10;

/// Simulates each request of the parts, in turn and `repeats` times, and returns the steps.
fn simulate(volume: &VolumeSpecification, parts: &[Part], repeats: u64) -> Vec<Step> {
    let device = volume.build(&RandomStreams::new(1), Unit::default());
    let mut drive = Drive::new(Device::Volume(Box::new(device)));
    let space = volume.sectors - (1 << 12);
    let (mut now, mut sector, mut steps) = (0, 0, Vec::new());
    let mut step = Step::default();
    let mut reap = |drive: &mut Drive, until: u64, steps: &mut Vec<Step>| {
        drive.run_until(Time(until));
        for completion in drive.completions() {
            step.completed += 1;
            step.response_max_ns = step.response_max_ns.max(completion.latency().0);
        }
        if until.is_multiple_of(STEP_S * SECOND) {
            steps.push(step);
            step.response_max_ns = 0;
        }
    };
    for part in (0..repeats).flat_map(|_| parts) {
        let end = now + part.seconds * SECOND;
        let (mut arrival, mut boundary) = (now + part.gap_ns, now + STEP_S * SECOND);
        while now < end {
            let next = arrival.min(boundary).min(end);
            reap(&mut drive, next, &mut steps);
            now = next;
            if now == boundary {
                boundary += STEP_S * SECOND;
            }
            if now == arrival {
                let sectors = part.bytes / u64::from(volume.sector_bytes);
                sector = (sector + sectors + 512) % space;
                drive
                    .submit(Operation::Read, sector, sectors as u32)
                    .expect("room in the queue");
                arrival += part.gap_ns;
            }
        }
    }
    steps
}

/// Compares the fluid calculation with each request simulated, step by step.
fn compare(volume: &VolumeSpecification, parts: &[Part], repeats: u64, title: &str) {
    let simulated = simulate(volume, parts, repeats);
    let mut fluid = FluidVolume::new(volume);
    let (mut served, mut calculated) = (0, Vec::new());
    for part in (0..repeats).flat_map(|_| parts) {
        let load = part.load(volume);
        for _ in 0..part.seconds / STEP_S {
            let mut wait_max_ns = 0;
            fluid.run(&load, STEP_S * SECOND, |phase| {
                served += phase.served();
                wait_max_ns = phase.wait_start_ns.max(phase.wait_end_ns).max(wait_max_ns);
            });
            calculated.push(((served / NANOREQUESTS) as u64, wait_max_ns));
        }
    }
    assert_eq!(simulated.len(), calculated.len(), "{title}");
    let service_ns = volume.read_service.times.last().expect("a time").0;
    let slack = 2 * volume.limits.len() as u64 + 2;
    let shortest_gap = parts.iter().map(|part| part.gap_ns).min().expect("a part");
    for (at, (found, (served, wait_ns))) in simulated.iter().zip(&calculated).enumerate() {
        let in_service = service_ns / shortest_gap + slack;
        assert!(
            found.completed <= served + slack && *served <= found.completed + in_service,
            "{title}, step {at}: {found:?} simulated, {served} calculated"
        );
        // A request that is served slowly lets those behind it wait for as long as its cost.
        let largest = wait_ns + service_ns + SECOND;
        assert!(
            found.response_max_ns <= largest && *wait_ns <= found.response_max_ns + SECOND,
            "{title}, step {at}: {found:?} simulated, a wait of {wait_ns} calculated"
        );
    }
}

#[test]
fn days_of_drawn_parts_equal_those_of_each_request_simulated() {
    const CASES: u64 = 40;
    for seed in 0..CASES {
        let draws = &mut RandomStreams::new(seed).named_stream("days");
        let volume = draw_volume(draws);
        let parts: Vec<Part> = (0..draw_between(draws, 2, 5))
            .map(|_| Part {
                seconds: STEP_S * draw_between(draws, 1, 6),
                gap_ns: 1000 * draw_between(draws, 400, 20_000),
                bytes: 4096 * draw_between(draws, 1, 64),
            })
            .collect();
        compare(&volume, &parts, 2, &format!("seed {seed}"));
    }
}

/// A week of days of 8 h x 500/s and 16 h x 100/s on twelve types of volumes: 140 million requests
/// each, for `cargo test --release -- --ignored`.
#[test]
#[ignore = "simulates 1.7 billion requests"]
fn a_week_of_a_day_and_a_night_equals_that_of_each_request_simulated() {
    let day = [
        Part {
            seconds: 8 * 3600,
            gap_ns: SECOND / 500,
            bytes: 16 * KIB,
        },
        Part {
            seconds: 16 * 3600,
            gap_ns: SECOND / 100,
            bytes: 16 * KIB,
        },
    ];
    for (system, settings) in [
        ("gp2", &[][..]),
        ("gp3", &[]),
        ("io1", &[]),
        ("io2", &[]),
        ("st1", &[("size_gib", "16384")]),
        ("pd-standard", &[("size_gib", "1000")]),
        ("pd-balanced", &[]),
        ("pd-ssd", &[]),
        ("hyperdisk-balanced", &[]),
        ("premium-ssd", &[]),
        ("premium-ssd-v2", &[]),
        ("standard-ssd", &[]),
    ] {
        let mut volume = volume(system, settings).expect("a volume");
        volume.queue_depth = u32::MAX;
        compare(&volume, &day, 7, system);
    }
}

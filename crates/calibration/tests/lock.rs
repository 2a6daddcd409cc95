//! Drives that were drawn: whether the fit locks on the period and finds where the phase
//! jumps, with zones that have origins of their own, files with wrong skews, and dropped lines.

use diskperf_calibration::{Calibration, FitOptions, calibrate};
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace::{ValidationOperation, ValidationRequest};
use diskperf_diskspecs::{SpecificationFiles, SpecifiedDrive, import};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 1848;
const NOMINAL_US: f64 = 8_000.0;
const REQUESTS: usize = 6_000;
/// Requests that are dropped at a jump.
const DROPPED: usize = 150;
/// Noise of a completion, in microseconds: uniform to both sides.
const NOISE_US: f64 = 50.0;

/// What is drawn of a drive and its trace.
#[derive(Clone, Debug)]
struct Case {
    zones: u64,
    surfaces: u64,
    ppm: f64,
    think: ThinkPosition,
    /// Lines after which some were dropped.
    gaps: Vec<usize>,
    /// Sectors by which the files' skews are off.
    wrong_sectors: i64,
    /// Whether blocks cross the bus faster than they pass the head.
    fast_bus: bool,
}

struct Chance(Pcg64Mcg);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn share(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / 2_f64.powi(32)
    }
}

const ZONE_CYLINDERS_ALL: u64 = 6_000;

/// A drive's true angles, which its files have wrong.
struct Disk {
    case: Case,
    cylinders: u64,
    track_skew: f64,
    cylinder_skew: f64,
    origins: Vec<f64>,
}

impl Disk {
    fn draw(case: &Case, chance: &mut Chance) -> Disk {
        Disk {
            cylinders: ZONE_CYLINDERS_ALL / case.zones,
            track_skew: 0.06 + 0.15 * chance.share(),
            cylinder_skew: 0.1 + 0.2 * chance.share(),
            origins: (0..case.zones).map(|_| chance.share()).collect(),
            case: case.clone(),
        }
    }

    fn sectors(&self, zone: u64) -> u64 {
        200 - 100 * zone / self.case.zones
    }

    /// As its files have it: skews in sectors, and no origins of zones.
    fn drive(&self) -> SpecifiedDrive {
        let Case {
            zones, surfaces, ..
        } = self.case;
        let zone_text = |zone: u64| {
            let sectors = self.sectors(zone);
            let skew = |turns: f64| {
                ((turns * sectors as f64).round() as i64 + self.case.wrong_sectors).max(0)
            };
            format!(
                "dm_layout_g1_zone {{ First cylinder number = {}, Last cylinder number = {},
                Blocks per track = {sectors}, Offset of first block = 0.0,
                Empty space at zone front = 0, Skew for track switch = {},
                Skew for cylinder switch = {}, Number of spares = 0,
                slips = [], defects = [] }}",
                zone * self.cylinders,
                (zone + 1) * self.cylinders - 1,
                skew(self.track_skew),
                skew(self.cylinder_skew),
            )
        };
        let texts: Vec<String> = (0..zones).map(zone_text).collect();
        let blocks: u64 = (0..zones)
            .map(|zone| self.sectors(zone) * surfaces * self.cylinders)
            .sum();
        let text = format!(
            "dm_disk DRAWN {{ Block count = {blocks}, Number of data surfaces = {surfaces},
            Number of cylinders = {},
            Mechanical Model = dm_mech_g1 {{ Access time type = trackSwitchPlusRotation,
                Seek type = constant, Constant seek time = 2.5, Head switch time = 0.9,
                Add. write settling delay = 0.0, Rotation speed (in rpms) = 7500 }},
            Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0,
                Sparing scheme used = 0, Zones = [ {} ] }} }}",
            zones * self.cylinders,
            texts.join(", ")
        );
        let files = SpecificationFiles::Memory([("drawn.model".to_owned(), text)].into());
        let import = import("drawn.model", &files).unwrap_or_else(|errors| panic!("{errors}"));
        import.drives.into_iter().next().expect("a drive")
    }

    /// Random reads; the lines after a gap are of a drive that went on without being traced.
    fn trace(&self, chance: &mut Chance) -> Vec<ValidationRequest> {
        let period_us = NOMINAL_US * (1.0 + 1e-6 * self.case.ppm);
        let surfaces = self.case.surfaces;
        let zone_blocks: Vec<u64> = (0..self.case.zones)
            .map(|zone| self.sectors(zone) * surfaces * self.cylinders)
            .collect();
        let (mut now_us, mut at) = (0.0, (0, 0));
        let mut requests: Vec<ValidationRequest> = Vec::new();
        while requests.len() < REQUESTS {
            let dropped = match self.case.gaps.contains(&requests.len()) {
                true => DROPPED,
                false => 0,
            };
            for number in 0..=dropped {
                let zone = chance.below(self.case.zones);
                let sectors = self.sectors(zone);
                let blocks = 1 + chance.below(16);
                let track = chance.below(self.cylinders * surfaces);
                let sector = chance.below(sectors - blocks);
                let (cylinder, head) = (track / surfaces, track % surfaces);
                let think_us = (5_000 + chance.below(60_000)) as f64;
                let place = (zone * self.cylinders + cylinder, head);
                let moved_us = match at {
                    same if same == place => 0.0,
                    (same, _) if same == place.0 => 900.0,
                    _ => 2_500.0,
                };
                let issue_us: f64 = now_us + think_us;
                let arrival_us = issue_us + 600.0 + moved_us;
                let per_cylinder = (surfaces - 1) as f64 * self.track_skew + self.cylinder_skew;
                let angle = self.origins[zone as usize]
                    + head as f64 * self.track_skew
                    + cylinder as f64 * per_cylinder
                    + sector as f64 / sectors as f64;
                let turns = (arrival_us / period_us - angle).ceil();
                let bus_us = if self.case.fast_bus { 10.0 } else { 110.0 };
                let block_us = f64::max(bus_us, period_us / sectors as f64);
                let noise_us = NOISE_US * (2.0 * chance.share() - 1.0);
                now_us = (turns + angle) * period_us + blocks as f64 * block_us + noise_us;
                at = place;
                if number < dropped {
                    continue;
                }
                if let (ThinkPosition::AfterRequest, Some(last)) =
                    (self.case.think, requests.last_mut())
                {
                    last.think_us = think_us;
                }
                let first_block = zone_blocks[..zone as usize].iter().sum::<u64>();
                requests.push(ValidationRequest {
                    operation: ValidationOperation::Read,
                    first_block: first_block + track * sectors + sector,
                    block_count: blocks as u32,
                    service_us: (now_us - issue_us).round(),
                    think_us: match self.case.think {
                        ThinkPosition::BeforeRequest => think_us,
                        ThinkPosition::AfterRequest => 0.0,
                    },
                });
            }
        }
        requests
    }
}

fn draw(chance: &mut Chance, number: usize) -> Case {
    let gap_count = chance.below(9);
    let mut gaps: Vec<usize> = (0..gap_count)
        .map(|_| 150 + chance.below(REQUESTS as u64 - 300) as usize)
        .collect();
    gaps.sort_unstable();
    // Stretches that hold something.
    gaps.dedup_by(|b, a| *b - *a < 200);
    gaps.retain(|gap| gap.abs_diff(REQUESTS / 2) >= 150);
    Case {
        zones: 3 + chance.below(58),
        surfaces: 2 + chance.below(12),
        ppm: match number {
            0 => 18_000.0,
            1 => -19_900.0,
            2 => -200.0,
            _ => 40_000.0 * (chance.share() - 0.5),
        },
        think: match chance.below(2) {
            0 => ThinkPosition::BeforeRequest,
            _ => ThinkPosition::AfterRequest,
        },
        gaps,
        wrong_sectors: chance.below(5) as i64 - 2,
        fast_bus: chance.below(2) == 0,
    }
}

fn period_us(found: &Calibration) -> Option<f64> {
    let mut all = found.parameters.iter();
    all.find(|one| one.name == "spindle.period_us")
        .map(|one| one.value)
}

#[test]
fn drawn_drives_are_locked_on_and_their_jumps_are_found() {
    println!("seed {SEED}");
    const CASES: usize = 9;
    let (mut jumps, mut seen) = (0, 0);
    for number in 0..CASES {
        let mut chance = Chance(Pcg64Mcg::seed_from_u64(SEED + number as u64));
        let case = draw(&mut chance, number);
        let disk = Disk::draw(&case, &mut chance);
        let requests = disk.trace(&mut chance);
        let found = calibrate(&disk.drive(), &requests, FitOptions::default());
        let found = found.expect("all on the drive");
        let phase = found.phase.expect("pairs in a zone");
        let true_us = NOMINAL_US * (1.0 + 1e-6 * case.ppm);
        let off_ppm = (period_us(&found).expect("a period") / true_us - 1.0) * 1e6;
        let steps: Vec<usize> = found
            .phase_steps
            .iter()
            .map(|step| step.request_index)
            .collect();
        println!(
            "{case:?}: {off_ppm:.2} ppm, R {:.3}, false alarm {:.0e}, jumps {steps:?}, {:.1} %",
            found.agreement,
            phase.false_alarm_probability,
            found.fitted_score.within_half_ms_percent
        );
        assert_eq!(phase.think_position, Some(case.think), "{case:?}");
        assert!(off_ppm.abs() < 5.0, "{case:?}: {off_ppm} ppm");
        assert!(found.agreement > 0.98, "{case:?}: R {}", found.agreement);
        // The replay locks on again by itself at the first request that waits for the platter.
        assert!(
            found.fitted_score.within_half_ms_percent > 93.0,
            "{case:?}: {:?}",
            found.fitted_score
        );
        // A step is at the first reference behind the gap; none is where no line was dropped.
        let near = |gap: &usize, step: &usize| (*gap..gap + 25).contains(step);
        for step in &steps {
            assert!(
                case.gaps.iter().any(|gap| near(gap, step)),
                "{case:?}: {steps:?}"
            );
        }
        let fitted = case.gaps.iter().filter(|gap| **gap < REQUESTS / 2);
        for gap in fitted {
            jumps += 1;
            seen += usize::from(steps.iter().any(|step| near(gap, step)));
        }
    }
    println!("{seen} of {jumps} jumps");
    // A jump of a few hundredths of a revolution is none: one in ten is as small.
    assert!(jumps > 5 && 100 * seen >= 85 * jumps, "{seen} of {jumps}");
}

//! Drives that were made up: their traces alone show their period and their tracks.

use diskperf_calibration::alone::identify_drive;
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace::{ValidationOperation, ValidationRequest};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const REQUESTS: usize = 4000;

/// A drive and how its trace was taken.
struct Case {
    seed: u64,
    period_us: f64,
    /// Sectors of the tracks of zones of the same number of tracks.
    zones: &'static [u64],
    tracks_per_zone: u64,
    skew: f64,
    think: ThinkPosition,
    /// Request before which lines are missing.
    gap: Option<usize>,
    noise_us: f64,
}

const CASES: [Case; 4] = [
    Case {
        seed: 1,
        period_us: 8_299.4,
        zones: &[186, 170, 148],
        tracks_per_zone: 3000,
        skew: 0.19,
        think: ThinkPosition::BeforeRequest,
        gap: None,
        noise_us: 50.0,
    },
    Case {
        seed: 2,
        period_us: 6_000.2,
        zones: &[334, 324, 306, 288, 262],
        tracks_per_zone: 4000,
        skew: 0.21,
        think: ThinkPosition::AfterRequest,
        gap: None,
        noise_us: 50.0,
    },
    Case {
        seed: 3,
        period_us: 11_133.0,
        zones: &[96, 88, 80, 70],
        tracks_per_zone: 2500,
        skew: 0.12,
        think: ThinkPosition::AfterRequest,
        gap: Some(1700),
        noise_us: 50.0,
    },
    Case {
        seed: 4,
        period_us: 4_006.0,
        zones: &[420, 400, 350],
        tracks_per_zone: 3000,
        skew: 0.15,
        think: ThinkPosition::BeforeRequest,
        gap: None,
        noise_us: 20.0,
    },
];

fn share(random: &mut Pcg64Mcg) -> f64 {
    random.next_u64() as f64 / u64::MAX as f64
}

impl Case {
    fn blocks(&self) -> u64 {
        self.zones.iter().sum::<u64>() * self.tracks_per_zone
    }

    /// Track of a block, its sectors, and the angle at which the block begins.
    fn spot(&self, block: u64) -> (u64, u64, f64) {
        let (mut first, mut track) = (0, 0);
        for sectors in self.zones {
            let blocks = sectors * self.tracks_per_zone;
            if block < first + blocks {
                let (of_zone, sector) = ((block - first) / sectors, (block - first) % sectors);
                let angle = 0.37 * track as f64 + sector as f64 / *sectors as f64;
                return (
                    track + of_zone,
                    *sectors,
                    angle + self.skew * of_zone as f64,
                );
            }
            first += blocks;
            track += self.tracks_per_zone;
        }
        unreachable!("a block of the drive")
    }

    /// Reads that visit a place two or three times, near each other; `turns` is whether a
    /// platter turns at all.
    fn trace(&self, turns: bool) -> Vec<ValidationRequest> {
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let (mut now_us, mut at, mut block) = (0.0, 0, 0);
        let mut requests = Vec::with_capacity(REQUESTS);
        for number in 0..REQUESTS {
            let near = number > 0 && share(&mut random) < 0.4;
            block = match near {
                true => block + (share(&mut random) * 120.0) as u64 + 8,
                false => (share(&mut random) * (self.blocks() - 500) as f64) as u64,
            }
            .min(self.blocks() - 64);
            let blocks = 4 * (1 + (share(&mut random) * 4.0) as u32);
            let think_us = 2_000.0 + 60_000.0 * share(&mut random);
            if self.think == ThinkPosition::BeforeRequest {
                now_us += think_us;
            }
            if self.gap == Some(number) {
                now_us += 123_456.7;
            }
            let (track, sectors, angle) = self.spot(block);
            let way = (track.abs_diff(at) as f64).sqrt();
            let arrives_us = now_us + 900.0 + 60.0 * way;
            let turned = match turns {
                true => (angle - arrives_us / self.period_us).rem_euclid(1.0),
                false => share(&mut random),
            };
            let passes = turned + f64::from(blocks) / sectors as f64;
            let noise_us = self.noise_us * (share(&mut random) + share(&mut random) - 1.0);
            let done_us = arrives_us + passes * self.period_us + noise_us;
            let service_us = done_us - now_us;
            requests.push(ValidationRequest {
                operation: ValidationOperation::Read,
                first_block: block,
                block_count: blocks,
                service_us,
                think_us,
            });
            (now_us, at) = (done_us, track);
            if self.think == ThinkPosition::AfterRequest {
                now_us += think_us;
            }
        }
        requests
    }
}

#[test]
fn a_trace_alone_shows_the_period_and_the_tracks_of_each_zone() {
    for case in &CASES[..3] {
        let seed = case.seed;
        let found =
            identify_drive(&case.trace(true)).unwrap_or_else(|| panic!("seed {seed}: nothing"));
        assert_eq!(found.think_position, case.think, "seed {seed}");
        let period = &found.period_us;
        let off_ppm = (period.value / case.period_us - 1.0) * 1e6;
        assert!(off_ppm.abs() < 20.0, "seed {seed}: {off_ppm} ppm");
        let interval = period.interval.low..=period.interval.high;
        assert!(
            interval.contains(&case.period_us),
            "seed {seed}: {interval:?}"
        );
        let gaps: Vec<usize> = case.gap.into_iter().collect();
        assert_eq!(
            found.trace_gaps.len(),
            gaps.len(),
            "seed {seed}: {:?}",
            found.trace_gaps
        );
        for (jump, gap) in found.trace_gaps.iter().zip(gaps) {
            assert!(jump.abs_diff(gap) < 100, "seed {seed}: {jump} for {gap}");
        }
        assert_eq!(found.zones.len(), case.zones.len(), "seed {seed}");
        let mut first = 0;
        for (zone, sectors) in found.zones.iter().zip(case.zones) {
            let tracks = &zone.sectors_per_track;
            let off = tracks.value / *sectors as f64 - 1.0;
            assert!(off.abs() < 0.01, "seed {seed}: {tracks:?} for {sectors}");
            let low_high = tracks.interval.low..=tracks.interval.high;
            assert!(
                low_high.contains(&(*sectors as f64)),
                "seed {seed}: {tracks:?} for {sectors}"
            );
            let boundary = &zone.first_block.interval;
            let boundary = boundary.low..=boundary.high;
            assert!(
                boundary.contains(&(first as f64)),
                "seed {seed}: {boundary:?} for {first}"
            );
            first += sectors * case.tracks_per_zone;
        }
    }
}

#[test]
fn a_trace_without_a_platter_shows_no_drive() {
    for case in &CASES[..2] {
        assert_eq!(
            identify_drive(&case.trace(false)),
            None,
            "seed {}",
            case.seed
        );
    }
}

/// The reads of a fast spindle say less of it. What they do not determine is not claimed.
#[test]
fn the_period_of_a_fast_spindle_is_right_or_absent() {
    let case = &CASES[3];
    let Some(found) = identify_drive(&case.trace(true)) else {
        return;
    };
    let interval = &found.period_us.interval;
    let interval = interval.low..=interval.high;
    assert!(
        interval.contains(&case.period_us),
        "seed {}: {interval:?}",
        case.seed
    );
}

//! A past made at once against a drive that was really written over and over: the first
//! 1 % of writes amplify as the long run does.

use crate::support::{self, SEED, below, check, random, share};
use diskperf_ftl::{Features, Ftl, Instant, Past, Policy, Separation, Specification};
use rand_pcg::Pcg64Mcg;

/// Superblocks and their units: 1 % of the writes collects a hundred superblocks or two.
const SIZE: (u32, u32) = (3000, 64);
/// Times the space is written before and while the long run is counted.
const UNSEEN: u64 = 6;
const UNSEEN_BY_COST_BENEFIT: u64 = 40;
const COUNTED: u64 = 3;
/// Seeds of which the first writes are counted.
const SEEDS: u64 = 12;

/// Draws units as the past did.
struct Draw {
    past: Past,
    filled: u32,
    random: Pcg64Mcg,
    /// Of Zipf's law: the share of the writes below each rank.
    sums: Vec<f64>,
}

impl Draw {
    fn new(past: Past, filled: u32) -> Self {
        let mut sums = Vec::new();
        if let Past::Zipf { theta_percent } = past {
            let theta = f64::from(theta_percent) / 100.0;
            let mut sum = 0.0;
            for rank in 1..=filled {
                sum += f64::from(rank).powf(-theta);
                sums.push(sum);
            }
            sums.iter_mut().for_each(|it| *it /= sum);
        }
        Self {
            past,
            filled,
            random: random(),
            sums,
        }
    }

    fn unit(&mut self) -> u32 {
        match self.past {
            Past::Zipf { .. } => {
                let share = share(&mut self.random);
                self.sums.partition_point(|&sum| sum <= share) as u32
            }
            Past::HotCold {
                writes_percent,
                space_percent,
            } => {
                let hot = self.filled * u32::from(space_percent) / 100;
                match below(&mut self.random, 100) < u32::from(writes_percent) {
                    true => below(&mut self.random, hot),
                    false => hot + below(&mut self.random, self.filled - hot),
                }
            }
            _ => below(&mut self.random, self.filled),
        }
    }
}

/// Really writes the past over and over; its amplification at the end.
fn long_run(specification: Specification, past: Past, filled: u32) -> f64 {
    let mut drive = Instant::new(Ftl::fresh(specification).unwrap());
    // In an order that does not part hot and cold: 7919 is prime, and no divisor.
    for index in 0..u64::from(filled) {
        drive.write((index * 7919 % u64::from(filled)) as u32, 0);
    }
    let mut draw = Draw::new(past, filled);
    let mut draw = || (draw.unit(), 0);
    let unseen = match specification.policy {
        Policy::CostBenefit => UNSEEN_BY_COST_BENEFIT,
        _ => UNSEEN,
    };
    support::write(&mut drive, unseen * u64::from(filled), &mut draw);
    support::write(&mut drive, COUNTED * u64::from(filled), &mut draw).amplification()
}

/// The first 1 % of writes after a past made at once, the mean of several seeds.
fn first_writes(specification: Specification, features: Features, past: Past, filled: u32) -> f64 {
    let mut draw = Draw::new(past, filled);
    let sum: f64 = (SEED..SEED + SEEDS)
        .map(|seed| {
            let of_seed = Specification {
                seed,
                ..specification
            };
            let ftl = Ftl::written(of_seed, features, past, filled).unwrap();
            ftl.check().unwrap();
            assert_eq!(ftl.mapped_units(), u64::from(filled));
            let mut drive = Instant::new(ftl);
            let writes = u64::from(filled) / 100;
            let traffic = support::write(&mut drive, writes, || (draw.unit(), 0));
            drive.ftl().check().unwrap();
            traffic.amplification()
        })
        .sum();
    sum / SEEDS as f64
}

/// Both ways to keep a made past's units, each against the long run.
fn check_past(policy: Policy, separation: Separation, past: Past, fill: f64) {
    let specification = support::drive(SIZE, 0.10, policy, (separation, 1));
    let filled = (fill * f64::from(specification.logical_units)) as u32;
    let should_be = long_run(specification, past, filled);
    for anonymous in [false, true] {
        let features = Features {
            anonymous,
            ..Features::default()
        };
        let is = first_writes(specification, features, past, filled);
        let name = format!("{past:?} {policy:?} {separation:?} {fill} full, {anonymous}");
        check(&name, is, should_be, 0.02);
    }
}

const APART: Separation = Separation::Apart;
const EIGHTY: Past = Past::HotCold {
    writes_percent: 80,
    space_percent: 20,
};
const NINETY: Past = Past::HotCold {
    writes_percent: 90,
    space_percent: 10,
};

#[test]
pub(crate) fn a_random_past_is_steady_from_its_first_writes() {
    check_past(Policy::Greedy, APART, Past::Random, 1.0);
    check_past(Policy::Greedy, Separation::Mixed, Past::Random, 1.0);
    check_past(Policy::Fifo, APART, Past::Random, 1.0);
    check_past(Policy::Choices(3), APART, Past::Random, 1.0);
    check_past(Policy::CostBenefit, APART, Past::Random, 1.0);
}

#[test]
fn a_past_that_filled_a_part_is_steady_too() {
    check_past(Policy::Greedy, APART, Past::Random, 0.8);
    check_past(Policy::Fifo, APART, EIGHTY, 0.8);
}

#[test]
fn a_hot_and_cold_past_is_steady_from_its_first_writes() {
    check_past(Policy::Greedy, APART, EIGHTY, 1.0);
    check_past(Policy::Greedy, Separation::Mixed, NINETY, 1.0);
    check_past(Policy::Fifo, APART, NINETY, 1.0);
    check_past(Policy::CostBenefit, APART, NINETY, 1.0);
}

#[test]
fn a_past_by_zipf_is_steady_from_its_first_writes() {
    for theta_percent in [80, 99, 120] {
        check_past(Policy::Greedy, APART, Past::Zipf { theta_percent }, 1.0);
    }
}

/// A sequential past has no state to wait for: in order again it is never copied, and at
/// random it is as one that was really written so.
#[test]
fn a_sequential_past_is_as_one_that_was_written() {
    let specification = support::drive((2000, 64), 0.10, Policy::Greedy, (APART, 1));
    let filled = specification.logical_units;
    let mut made = Instant::new(Ftl::with_past(specification, Past::Sequential).unwrap());
    let mut written = Instant::new(Ftl::fresh(specification).unwrap());
    for logical in 0..filled {
        written.write(logical, 0);
    }
    made.ftl().check().unwrap();
    for logical in 0..filled {
        assert_eq!(made.ftl().read(logical), written.ftl().read(logical));
    }
    let before = *written.ftl().traffic();
    let mut random = random();
    for write in 0..filled {
        let logical = below(&mut random, filled);
        match write % 16 {
            0 => assert_eq!(made.trim(logical), written.trim(logical)),
            _ => {
                made.write(logical, 0);
                written.write(logical, 0);
            }
        }
    }
    made.ftl().check().unwrap();
    assert_eq!(
        *made.ftl().traffic(),
        written.ftl().traffic().since(&before)
    );
    for logical in 0..filled {
        assert_eq!(made.ftl().read(logical), written.ftl().read(logical));
    }
    assert!(made.ftl().traffic().collection > 0);
}

/// Random writes after a sequential fill cost nothing until the spare is used up, and are
/// steady when half the space was written again.
#[test]
fn a_filled_drive_comes_to_the_steady_state() {
    let specification = support::drive((1000, 1000), 0.10, Policy::Greedy, (APART, 1));
    let space = specification.logical_units;
    let mut drive = Instant::new(Ftl::with_past(specification, Past::Sequential).unwrap());
    let mut random = random();
    let mut write = |share: f64| {
        let writes = (share * f64::from(space)) as u64;
        let traffic = support::write(&mut drive, writes, || (below(&mut random, space), 0));
        traffic.amplification()
    };
    assert_eq!(write(0.1), 1.0);
    check("next tenth", write(0.1), 5.77, 0.02);
    write(0.3);
    check("from half on", write(0.5), 5.15, 0.01);
}

/// A made past of a full-size drive, its first 1 % of writes paced as a device does it.
#[test]
fn a_large_drive_is_steady_from_its_first_writes() {
    let specification = Specification {
        geometry: diskperf_ftl::Geometry {
            superblocks: 456,
            dies: 128,
            program_units: 24,
            rows: 384,
        },
        logical_units: 468_750_000,
        policy: Policy::Greedy,
        separation: APART,
        streams: 1,
        soft_free: 5,
        hard_free: 3,
        wear_threshold: None,
        seed: SEED,
    };
    let features = Features {
        anonymous: true,
        ..Features::default()
    };
    let filled = specification.logical_units;
    let ftl = Ftl::written(specification, features, Past::Random, filled).unwrap();
    let mut drive = Instant::new(ftl);
    let mut random = random();
    for _ in 0..filled / 100 {
        drive.write_paced(below(&mut random, filled), 0);
    }
    // What is free or not yet written in open superblocks is no spare: between 5.5 of them,
    // when the host opens one, and the 5.7 that pacing comes to until it is full.
    let spare = 1.0 - 468_750_000.0 / (450.4 * 1_179_648.0);
    let should_be = diskperf_ftl::analytic::fifo(spare);
    let is = drive.ftl().traffic().amplification();
    check("1.92 TB at once", is, should_be, 0.02);
}

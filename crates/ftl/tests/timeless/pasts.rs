//! A past made at once against a drive that was really written over and over: the first
//! 1 % of writes amplify as the long run does.

use crate::mean_field::MeanField;
use crate::support::{self, SEED, below, check, random, share};
use diskperf_ftl::{
    DataSeparation, Features, Ftl, PreconditionState, Specification, UntimedFtl, VictimPolicy,
};
use rand_pcg::Pcg64Mcg;

/// Superblocks and their units: 1 % of the writes collects a hundred superblocks or two.
const SIZE: (u32, u32) = (3000, 64);
/// The same by cost-benefit, which looks at all of them for each that it collects.
const SIZE_BY_COST_BENEFIT: (u32, u32) = (1000, 64);
/// Times the space is written before and while the long run is counted.
const UNSEEN: u64 = 6;
const UNSEEN_BY_COST_BENEFIT: u64 = 12;
const COUNTED: u64 = 3;
/// Seeds of which the first writes are counted.
const SEEDS: u64 = 12;

/// Of skewed pasts each takes longer to make, and differs as little; by cost-benefit what
/// nine superblocks of writes collect differs by a tenth.
fn seeds(policy: VictimPolicy, past: PreconditionState) -> u64 {
    match (policy, past) {
        (_, PreconditionState::Random) => SEEDS,
        (VictimPolicy::CostBenefit, _) => 3 * SEEDS,
        _ => SEEDS / 2,
    }
}

/// Draws units as the past did.
struct Draw {
    past: PreconditionState,
    filled: u32,
    random: Pcg64Mcg,
    /// Of Zipf's law: the share of the writes below each rank.
    sums: Vec<f64>,
}

impl Draw {
    fn new(past: PreconditionState, filled: u32) -> Self {
        let mut sums = Vec::new();
        if let PreconditionState::Zipf { theta_percent } = past {
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
            PreconditionState::Zipf { .. } => {
                let share = share(&mut self.random);
                self.sums.partition_point(|&sum| sum <= share) as u32
            }
            PreconditionState::HotCold {
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
fn long_run(specification: Specification, past: PreconditionState, filled: u32) -> f64 {
    let mut drive = UntimedFtl::new(Ftl::new_unwritten(specification).unwrap());
    // In an order that does not part hot and cold: 7919 is prime, and no divisor.
    for index in 0..u64::from(filled) {
        drive.write((index * 7919 % u64::from(filled)) as u32, 0);
    }
    let mut draw = Draw::new(past, filled);
    let mut draw = || (draw.unit(), 0);
    let unseen = match specification.policy {
        VictimPolicy::CostBenefit => UNSEEN_BY_COST_BENEFIT,
        _ => UNSEEN,
    };
    support::write(&mut drive, unseen * u64::from(filled), &mut draw);
    support::write(&mut drive, COUNTED * u64::from(filled), &mut draw).write_amplification()
}

/// The first 1 % of writes after a past made at once, the mean of several seeds.
fn first_writes(
    specification: Specification,
    features: Features,
    past: PreconditionState,
    filled: u32,
) -> f64 {
    let mut draw = Draw::new(past, filled);
    let seeds = seeds(specification.policy, past);
    let sum: f64 = (SEED..SEED + seeds)
        .map(|seed| {
            let of_seed = Specification {
                seed,
                ..specification
            };
            let ftl =
                Ftl::new_preconditioned_with_features(of_seed, features, past, filled).unwrap();
            ftl.check_invariants().unwrap();
            assert_eq!(ftl.mapped_host_units(), u64::from(filled));
            let mut drive = UntimedFtl::new(ftl);
            let writes = u64::from(filled) / 100;
            let traffic = support::write(&mut drive, writes, || (draw.unit(), 0));
            drive.ftl().check_invariants().unwrap();
            traffic.write_amplification()
        })
        .sum();
    sum / seeds as f64
}

/// Both ways to keep a made past's units, each against the long run.
fn check_past(
    policy: VictimPolicy,
    separation: DataSeparation,
    past: PreconditionState,
    fill: f64,
) {
    let size = match policy {
        VictimPolicy::CostBenefit => SIZE_BY_COST_BENEFIT,
        _ => SIZE,
    };
    let specification = support::drive(size, 0.10, policy, (separation, 1));
    let filled = (fill * f64::from(specification.logical_units)) as u32;
    let should_be = long_run(specification, past, filled);
    for anonymous in [false, true] {
        let features = Features {
            anonymous_precondition: anonymous,
            ..Features::default()
        };
        let is = first_writes(specification, features, past, filled);
        let name = format!("{past:?} {policy:?} {separation:?} {fill} full, {anonymous}");
        check(&name, is, should_be, 0.02);
    }
}

const APART: DataSeparation = DataSeparation::MovedApart;
const EIGHTY: PreconditionState = PreconditionState::HotCold {
    writes_percent: 80,
    space_percent: 20,
};
const NINETY: PreconditionState = PreconditionState::HotCold {
    writes_percent: 90,
    space_percent: 10,
};

#[test]
pub(crate) fn a_random_past_is_steady_from_its_first_writes() {
    check_past(VictimPolicy::Greedy, APART, PreconditionState::Random, 1.0);
    check_past(
        VictimPolicy::Greedy,
        DataSeparation::Mixed,
        PreconditionState::Random,
        1.0,
    );
    check_past(
        VictimPolicy::OldestFirst,
        APART,
        PreconditionState::Random,
        1.0,
    );
    check_past(
        VictimPolicy::RandomChoices(3),
        APART,
        PreconditionState::Random,
        1.0,
    );
    check_past(
        VictimPolicy::CostBenefit,
        APART,
        PreconditionState::Random,
        1.0,
    );
}

#[test]
fn a_past_that_filled_a_part_is_steady_too() {
    check_past(VictimPolicy::Greedy, APART, PreconditionState::Random, 0.8);
    check_past(VictimPolicy::OldestFirst, APART, EIGHTY, 0.8);
}

#[test]
fn a_hot_and_cold_past_is_steady_from_its_first_writes() {
    check_past(VictimPolicy::Greedy, APART, EIGHTY, 1.0);
    check_past(VictimPolicy::Greedy, DataSeparation::Mixed, NINETY, 1.0);
    check_past(VictimPolicy::OldestFirst, APART, NINETY, 1.0);
    check_past(VictimPolicy::CostBenefit, APART, NINETY, 1.0);
}

#[test]
fn a_past_by_zipf_is_steady_from_its_first_writes() {
    for theta_percent in [80, 99, 120] {
        check_past(
            VictimPolicy::Greedy,
            APART,
            PreconditionState::Zipf { theta_percent },
            1.0,
        );
    }
}

/// A sequential past has no state to wait for: in order again it is never copied, and at
/// random it is as one that was really written so.
#[test]
fn a_sequential_past_is_as_one_that_was_written() {
    let specification = support::drive((2000, 64), 0.10, VictimPolicy::Greedy, (APART, 1));
    let filled = specification.logical_units;
    let mut made = UntimedFtl::new(
        Ftl::new_preconditioned(specification, PreconditionState::Sequential).unwrap(),
    );
    let mut written = UntimedFtl::new(Ftl::new_unwritten(specification).unwrap());
    for logical in 0..filled {
        written.write(logical, 0);
    }
    made.ftl().check_invariants().unwrap();
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
    made.ftl().check_invariants().unwrap();
    assert_eq!(
        *made.ftl().traffic(),
        written.ftl().traffic().traffic_since(&before)
    );
    for logical in 0..filled {
        assert_eq!(made.ftl().read(logical), written.ftl().read(logical));
    }
    assert!(made.ftl().traffic().collection_units > 0);
}

/// Random writes after a sequential fill cost nothing until the spare is used up, then more
/// than in the long run, and are steady when half the space was written again: tenth by
/// tenth as the mean field has it. The published 5.77 of the second tenth is of superblocks
/// whose size is not told: the mean field has 5.67 for 256 units, and 6.01 for these.
#[test]
fn a_filled_drive_comes_to_the_steady_state() {
    let specification = support::drive((1000, 1000), 0.10, VictimPolicy::Greedy, (APART, 1));
    let space = specification.logical_units;
    let mut drive = UntimedFtl::new(
        Ftl::new_preconditioned(specification, PreconditionState::Sequential).unwrap(),
    );
    let mut random = random();
    let mut write = |share: f64| {
        let writes = (share * f64::from(space)) as u64;
        let traffic = support::write(&mut drive, writes, || (below(&mut random, space), 0));
        traffic.write_amplification()
    };
    assert_eq!(write(0.1), 1.0);
    // A victim is chosen when half a superblock more is written than are closed, on average:
    // collection begins with all that the host has filled, and ends with one less.
    let mut theory = MeanField::in_order(900.0, 1000.5, 1000);
    assert!((theory.write(0.1) - 1.0).abs() < 1e-9);
    for tenth in 2..=5 {
        check(
            &format!("tenth {tenth}"),
            write(0.1),
            theory.write(0.1),
            0.01,
        );
    }
    check("from half on", write(0.5), 5.15, 0.01);
}

/// 1.92 TB: 456 superblocks of 1.2 million units, or as many of `units`.
fn large_drive(units: u32, seed: u64) -> Specification {
    let full = 128 * 24 * 384;
    let share = f64::from(units) / f64::from(full);
    Specification {
        geometry: diskperf_ftl::Geometry {
            superblock_count: 456,
            die_count: 8,
            units_per_program: 24,
            rows_per_superblock: units / (8 * 24),
        },
        logical_units: (468_750_000.0 * share) as u32,
        policy: VictimPolicy::Greedy,
        separation: APART,
        stream_count: 1,
        soft_free_superblocks: 5,
        hard_free_superblocks: 3,
        wear_threshold_erases: None,
        seed,
    }
}

/// Paced random writes to a share of a drive's units; what they amplify.
fn paced(drive: &mut UntimedFtl, random: &mut Pcg64Mcg, share: f64) -> f64 {
    let units = drive.ftl().specification().logical_units;
    let before = *drive.ftl().traffic();
    for _ in 0..(share * f64::from(units)) as u32 {
        drive.write_paced(below(random, units), 0);
    }
    drive
        .ftl()
        .traffic()
        .traffic_since(&before)
        .write_amplification()
}

fn made(specification: Specification) -> UntimedFtl {
    let features = Features {
        anonymous_precondition: true,
        ..Features::default()
    };
    let filled = specification.logical_units;
    UntimedFtl::new(
        Ftl::new_preconditioned_with_features(
            specification,
            features,
            PreconditionState::Random,
            filled,
        )
        .unwrap(),
    )
}

/// A made past of a drive of few superblocks, its first 1 % of writes paced as a device
/// does it. They fill four superblocks and collect eighteen: one of these more or less, as
/// the superblock that takes what is moved happens to be filled, is 4 %, so that the mean of
/// seeds is compared.
#[test]
fn a_large_drive_is_steady_from_its_first_writes() {
    const UNITS: u32 = 8 * 24 * 4;
    let mut random = random();
    let mut drive = UntimedFtl::new(Ftl::new_unwritten(large_drive(UNITS, SEED)).unwrap());
    for logical in 0..drive.ftl().specification().logical_units {
        drive.write_paced(logical, 0);
    }
    paced(&mut drive, &mut random, 3.0);
    let long_run = paced(&mut drive, &mut random, 2.0);
    // What is free or not yet written in open superblocks is no spare: between 5.5 of them,
    // when the host opens one, and the 5.7 that pacing comes to until it is full.
    let spare = 1.0 - 468_750_000.0 / (450.4 * 1_179_648.0);
    let formula = diskperf_ftl::analytic::greedy_write_amplification(spare, UNITS);
    check("1.92 TB in the long run", long_run, formula, 0.02);
    let seeds = SEED..SEED + 4 * SEEDS;
    let firsts: Vec<f64> = (seeds.clone())
        .map(|seed| paced(&mut made(large_drive(UNITS, seed)), &mut random, 0.01))
        .collect();
    let mean = firsts.iter().sum::<f64>() / firsts.len() as f64;
    check("1.92 TB at once", mean, long_run, 0.02);
    // In its size it collects as many as the small one of the same seed.
    let small = paced(&mut made(large_drive(UNITS, SEED)), &mut random, 0.005);
    let large = paced(
        &mut made(large_drive(128 * 24 * 384, SEED)),
        &mut random,
        0.005,
    );
    check("1.92 TB in its size", large, small, 0.02);
}

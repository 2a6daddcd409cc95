//! Hot and cold writes, trims and writes in order, against the formulas and tables.

use diskperf_ftl::{Ftl, Geometry, Instant, Past, Policy, Separation, Specification, analytic};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 27;
const SOFT: u32 = 6;
const UNITS: u32 = 64;
const CLOSED: u32 = 4000;

fn drive(spare: f64, policy: Policy, separation: Separation, streams: u32) -> Specification {
    let open = match separation {
        Separation::Mixed => streams,
        Separation::Apart => streams + 1,
        Separation::ByStream => 2 * streams,
    };
    Specification {
        // Open superblocks are half full on average: two hold as much as a closed one.
        geometry: Geometry {
            superblocks: CLOSED + SOFT + open / 2,
            dies: 4,
            program_units: 4,
            rows: UNITS / 16,
        },
        logical_units: ((1.0 - spare) * f64::from(CLOSED * UNITS)).round() as u32,
        policy,
        separation,
        streams,
        soft_free: SOFT,
        hard_free: SOFT - 1,
        wear_threshold: None,
        seed: SEED,
    }
}

fn check(name: &str, is: f64, should_be: f64, tolerance: f64) {
    let error = is / should_be - 1.0;
    println!(
        "{name}: {is:.4}, should be {should_be:.4} ({:+.2} %, seed {SEED})",
        100.0 * error
    );
    assert!(
        error.abs() <= tolerance,
        "{name}: {is:.4}, should be {should_be:.4}"
    );
}

fn below(random: &mut Pcg64Mcg, bound: u32) -> u32 {
    (random.next_u64() % u64::from(bound)) as u32
}

/// Share `writes` of the writes goes to the first `space` of the units, to a stream of
/// their own if the drive has two.
fn hot_and_cold(specification: Specification, writes: f64, space: f64) -> f64 {
    let mut drive = Instant::new(Ftl::fresh(specification).unwrap());
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let units = specification.logical_units;
    let hot_units = (space * f64::from(units)) as u32;
    let stream = |hot: bool| u32::from(!hot && specification.streams == 2);
    for logical in 0..units {
        drive.write(logical, stream(logical < hot_units));
    }
    let mut before = *drive.ftl().traffic();
    for write in 0..u64::from(units) * 12 {
        if write == u64::from(units) * 8 {
            before = *drive.ftl().traffic();
        }
        let hot = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 <= writes;
        let logical = match hot {
            true => below(&mut random, hot_units),
            false => hot_units + below(&mut random, units - hot_units),
        };
        drive.write(logical, stream(hot));
    }
    drive.ftl().check().unwrap();
    drive.ftl().traffic().since(&before).amplification()
}

/// Spare, share of writes, share of space; FIFO mixed, greedy mixed, greedy apart,
/// greedy by stream, and pools with the best split.
#[rustfmt::skip]
const HOT_COLD: [(f64, f64, f64, [f64; 5]); 4] = [
    (0.10, 0.8, 0.2, [5.54, 5.23, 5.18, 4.85, 3.57]),
    (0.10, 0.9, 0.1, [6.17, 5.96, 5.57, 4.82, 2.34]),
    (0.20, 0.8, 0.2, [3.03, 2.96, 2.86, 2.61, 2.00]),
    (0.20, 0.9, 0.1, [3.53, 3.49, 3.10, 2.60, 1.48]),
];

#[test]
fn hot_and_cold_writes_amplify_as_the_table_says() {
    let columns = [
        (Policy::Fifo, Separation::Mixed, 1),
        (Policy::Greedy, Separation::Mixed, 1),
        (Policy::Greedy, Separation::Apart, 1),
        (Policy::Greedy, Separation::ByStream, 2),
    ];
    for (spare, writes, space, row) in HOT_COLD {
        for ((policy, separation, streams), should_be) in columns.into_iter().zip(row) {
            let is = hot_and_cold(drive(spare, policy, separation, streams), writes, space);
            let name = format!("{policy:?} {separation:?} {writes}/{space} at {spare}");
            check(&name, is, should_be, 0.02);
        }
        let formula = analytic::hot_cold_fifo(spare, writes, space);
        check("FIFO by formula", formula, row[0], 0.005);
        check(
            "pools by formula",
            analytic::hot_cold_split(spare, writes, space),
            row[4],
            0.005,
        );
    }
}

/// A share of the space unmapped at random, and never written again.
#[test]
fn what_is_trimmed_is_spare() {
    for (spare, trimmed, should_be) in [
        (0.07, 0.1, 3.26),
        (0.07, 0.2, 2.16),
        (0.07, 0.5, 1.20),
        (0.10, 0.1, 2.82),
        (0.10, 0.3, 1.58),
        (0.10, 0.5, 1.18),
    ] {
        let formula = analytic::fifo(analytic::spare_after_trim(spare, trimmed));
        check("trim by formula", formula, should_be, 0.005);
        let specification = drive(spare, Policy::Fifo, Separation::Apart, 1);
        let mut drive = Instant::new(Ftl::with_past(specification, Past::Random).unwrap());
        let mut random = Pcg64Mcg::seed_from_u64(SEED);
        let mut left: Vec<u32> = (0..specification.logical_units).collect();
        for _ in 0..(trimmed * f64::from(specification.logical_units)) as u32 {
            let index = below(&mut random, left.len() as u32);
            assert!(drive.trim(left.swap_remove(index as usize)));
        }
        let mut before = *drive.ftl().traffic();
        for write in 0..left.len() * 6 {
            if write == left.len() * 4 {
                before = *drive.ftl().traffic();
            }
            drive.write(left[below(&mut random, left.len() as u32) as usize], 0);
        }
        drive.ftl().check().unwrap();
        let is = drive.ftl().traffic().since(&before).amplification();
        check(
            &format!("{trimmed} trimmed at {spare}"),
            is,
            should_be,
            0.02,
        );
    }
}

#[test]
fn writes_in_order_are_never_copied() {
    for policy in [Policy::Greedy, Policy::Fifo, Policy::CostBenefit] {
        let specification = drive(0.10, policy, Separation::Apart, 1);
        let mut drive = Instant::new(Ftl::with_past(specification, Past::Sequential).unwrap());
        for logical in (0..3).flat_map(|_| 0..specification.logical_units) {
            drive.write(logical, 0);
        }
        let traffic = drive.ftl().traffic();
        assert_eq!(traffic.programmed(), traffic.host, "{policy:?}");
        drive.ftl().check().unwrap();
    }
}

#[test]
fn after_all_is_trimmed_a_fill_costs_nothing() {
    let specification = drive(0.10, Policy::Greedy, Separation::Apart, 1);
    let mut drive = Instant::new(Ftl::with_past(specification, Past::Random).unwrap());
    for logical in 0..specification.logical_units {
        assert!(drive.trim(logical));
        assert!(!drive.trim(logical));
    }
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    for _ in 0..specification.logical_units / 2 {
        drive.write(below(&mut random, specification.logical_units), 0);
    }
    assert_eq!(drive.ftl().traffic().amplification(), 1.0);
}

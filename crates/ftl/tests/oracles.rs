//! Write amplification of the model against the published formulas and tables.

use diskperf_ftl::{Ftl, Geometry, Instant, Past, Policy, Separation, Specification, analytic};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 27;
const SOFT: u32 = 4;

/// A drive whose closed superblocks have this spare.
fn drive(closed: u32, units: u32, spare: f64, policy: Policy) -> Specification {
    Specification {
        // One of the two open superblocks is full on average, together.
        geometry: Geometry {
            superblocks: closed + SOFT + 1,
            dies: 1,
            program_units: 1,
            rows: units,
        },
        logical_units: ((1.0 - spare) * f64::from(closed) * f64::from(units)).round() as u32,
        policy,
        separation: Separation::Apart,
        streams: 1,
        soft_free: SOFT,
        hard_free: 2,
        wear_threshold: None,
        seed: SEED,
    }
}

/// Write amplification over `counted` times the space, after `unseen` times.
fn measured(specification: Specification, unseen: f64, counted: f64) -> f64 {
    let ftl = Ftl::with_past(specification, Past::Random).unwrap();
    ftl.check().unwrap();
    let mut drive = Instant::new(ftl);
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let space = u64::from(specification.logical_units);
    let mut write = |drive: &mut Instant, times: f64| {
        for _ in 0..(times * space as f64) as u64 {
            drive.write((random.next_u64() % space) as u32, 0);
        }
    };
    write(&mut drive, unseen);
    let before = *drive.ftl().traffic();
    write(&mut drive, counted);
    drive.ftl().check().unwrap();
    drive.ftl().traffic().since(&before).amplification()
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

/// Spare, then FIFO, greedy with 16, 64, 256 units, 2, 3 and 10 choices of 64 units.
#[rustfmt::skip]
const TABLE: [(f64, [f64; 7]); 5] = [
    (0.07, [7.32, 5.15, 6.62, 7.12, 9.64, 8.30, 6.89]),
    (0.10, [5.18, 3.98, 4.82, 5.08, 6.85, 5.95, 5.00]),
    (0.15, [3.52, 2.97, 3.35, 3.48, 4.65, 4.07, 3.46]),
    (0.20, [2.69, 2.36, 2.60, 2.67, 3.53, 3.11, 2.68]),
    (0.28, [1.99, 1.81, 1.94, 1.98, 2.57, 2.29, 1.99]),
];
const COLUMNS: [(Policy, u32, f64); 7] = [
    (Policy::Fifo, 256, 0.015),
    (Policy::Greedy, 16, 0.015),
    (Policy::Greedy, 64, 0.015),
    (Policy::Greedy, 256, 0.015),
    (Policy::Choices(2), 64, 0.03),
    (Policy::Choices(3), 64, 0.03),
    (Policy::Choices(10), 64, 0.03),
];

#[test]
fn formulas_give_the_published_table() {
    for (spare, row) in TABLE {
        for ((policy, units, _), should_be) in COLUMNS.into_iter().zip(row) {
            let is = match policy {
                Policy::Fifo => analytic::fifo(spare),
                Policy::Choices(choices) => analytic::choices(spare, units, choices),
                _ => analytic::greedy(spare, units),
            };
            check(
                &format!("{policy:?} {units} at {spare}"),
                is,
                should_be,
                0.002,
            );
        }
    }
    for (units, spare, should_be) in [
        (2, 0.5, 1.0),
        (4, 0.5, 24.0 / 23.0),
        (4, 0.25, 1.6),
        (8, 0.5, 1.1359),
        (8, 0.25, 1.8241),
    ] {
        check(
            &format!("greedy {units}"),
            analytic::greedy(spare, units),
            should_be,
            5e-5,
        );
    }
    check(
        "two choices of 4",
        analytic::choices(0.5, 4, 2),
        1.4501,
        5e-5,
    );
}

#[test]
fn uniform_writes_amplify_as_the_table_says() {
    for (spare, row) in TABLE {
        for ((policy, units, tolerance), should_be) in COLUMNS.into_iter().zip(row) {
            let closed = (256_000 / units).max(2000);
            let is = measured(drive(closed, units, spare, policy), 0.3, 0.7);
            check(
                &format!("{policy:?} {units} at {spare}"),
                is,
                should_be,
                tolerance,
            );
        }
    }
}

#[test]
fn a_made_past_is_steady_from_its_first_writes() {
    for (policy, units, should_be) in [(Policy::Fifo, 256, 5.18), (Policy::Greedy, 64, 4.82)] {
        let is = measured(drive(16_000, units, 0.10, policy), 0.0, 0.02);
        check(&format!("{policy:?} at once"), is, should_be, 0.02);
    }
}

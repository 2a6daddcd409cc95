//! What tests of amplification share.

use diskperf_ftl::{Geometry, Instant, Policy, Separation, Specification, Traffic};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

pub(crate) const SEED: u64 = 27;
pub(crate) const SOFT: u32 = 6;

/// A drive whose closed superblocks have this spare: open ones are half full on average,
/// so that two hold as much as a closed one.
pub(crate) fn drive(
    (closed, units): (u32, u32),
    spare: f64,
    policy: Policy,
    (separation, streams): (Separation, u32),
) -> Specification {
    let open = match separation {
        Separation::Mixed => streams,
        Separation::Apart => streams + 1,
        Separation::ByStream => 2 * streams,
    };
    Specification {
        geometry: Geometry {
            superblocks: closed + SOFT + open / 2,
            dies: 1,
            program_units: 1,
            rows: units,
        },
        logical_units: ((1.0 - spare) * f64::from(closed * units)).round() as u32,
        policy,
        separation,
        streams,
        soft_free: SOFT,
        hard_free: SOFT - 1,
        wear_threshold: None,
        seed: SEED,
    }
}

/// A drive as those of the published tables of hot and cold writes: of all its superblocks
/// 3 are free when collection ends, and no spare is added for them or for open ones.
pub(crate) fn published(
    (superblocks, units): (u32, u32),
    spare: f64,
    policy: Policy,
    (separation, streams): (Separation, u32),
) -> Specification {
    let other = drive((superblocks, units), spare, policy, (separation, streams));
    Specification {
        geometry: Geometry {
            superblocks,
            ..other.geometry
        },
        soft_free: 4,
        hard_free: 3,
        ..other
    }
}

pub(crate) fn random() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(SEED)
}

pub(crate) fn below(random: &mut Pcg64Mcg, bound: u32) -> u32 {
    (random.next_u64() % u64::from(bound)) as u32
}

/// A number in [0, 1).
pub(crate) fn share(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Writes so many drawn units; gives what was programmed meanwhile.
pub(crate) fn write(
    drive: &mut Instant,
    writes: u64,
    mut draw: impl FnMut() -> (u32, u32),
) -> Traffic {
    let before = *drive.ftl().traffic();
    for _ in 0..writes {
        let (logical, stream) = draw();
        drive.write(logical, stream);
    }
    drive.ftl().traffic().since(&before)
}

pub(crate) fn check(name: &str, is: f64, should_be: f64, tolerance: f64) {
    let error = is / should_be - 1.0;
    println!(
        "{name}: {is:.4}, should be {should_be:.4} ({:+.2} %, seed {SEED})",
        100.0 * error
    );
    assert!(
        error.abs() <= tolerance,
        "{name}: {is:.4}, should be {should_be:.4} within {tolerance}"
    );
}

//! What tests of amplification share.

use diskperf_ftl::{
    DataSeparation, Geometry, ProgrammedUnits, Specification, UntimedFtl, VictimPolicy,
};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

pub(crate) const SEED: u64 = 27;
pub(crate) const SOFT: u32 = 6;

/// A drive whose closed superblocks have this spare: open ones are half full on average,
/// so that two hold as much as a closed one.
pub(crate) fn drive(
    (closed, units): (u32, u32),
    spare: f64,
    policy: VictimPolicy,
    (separation, streams): (DataSeparation, u32),
) -> Specification {
    let open = match separation {
        DataSeparation::Mixed => streams,
        DataSeparation::MovedApart => streams + 1,
        DataSeparation::ByStream => 2 * streams,
    };
    Specification {
        geometry: Geometry {
            superblock_count: closed + SOFT + open / 2,
            die_count: 1,
            units_per_program: 1,
            rows_per_superblock: units,
        },
        logical_units: ((1.0 - spare) * f64::from(closed * units)).round() as u32,
        policy,
        separation,
        stream_count: streams,
        soft_free_superblocks: SOFT,
        hard_free_superblocks: SOFT - 1,
        wear_threshold_erases: None,
        seed: SEED,
    }
}

/// A drive as those of the published tables of hot and cold writes: of all its superblocks
/// 3 are free when collection ends, and no spare is added for them or for open ones.
pub(crate) fn published(
    (superblocks, units): (u32, u32),
    spare: f64,
    policy: VictimPolicy,
    (separation, streams): (DataSeparation, u32),
) -> Specification {
    let other = drive((superblocks, units), spare, policy, (separation, streams));
    Specification {
        geometry: Geometry {
            superblock_count: superblocks,
            ..other.geometry
        },
        soft_free_superblocks: 4,
        hard_free_superblocks: 3,
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
    drive: &mut UntimedFtl,
    writes: u64,
    mut draw: impl FnMut() -> (u32, u32),
) -> ProgrammedUnits {
    let before = *drive.ftl().traffic();
    for _ in 0..writes {
        let (logical, stream) = draw();
        drive.write(logical, stream);
    }
    drive.ftl().traffic().traffic_since(&before)
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

//! Write amplification of a modelled translation layer, measured by real writes to it.

use super::FlashRequest;
use diskperf_ftl::{
    DataSeparation, Features, Ftl, Geometry, ImpossibleSpecification, PreconditionState,
    Specification, UntimedFtl, VictimPolicy,
};
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Maximum number of closed superblocks, and of mapping units in all of them.
const SUPERBLOCK_COUNT: u32 = 2000;
const UNIT_COUNT: u32 = 1 << 21;
/// Number of free superblocks. The amplification is determined by the spare capacity of the closed
/// ones.
const FREE_SUPERBLOCKS: u32 = 6;
/// Mapping units programmed before and during the count.
const WARM_UP_WRITES: u64 = 1_000_000;
const COUNTED_WRITES: u64 = 4_000_000;

/// Returns the write amplification in the steady state after this precondition: mapping units
/// programmed per unit written.
pub(super) fn simulate_amplification(
    asked: &FlashRequest,
    spare: f64,
    policy: VictimPolicy,
    past: PreconditionState,
) -> Result<f64, ImpossibleSpecification> {
    let specification = layer_specification(asked, spare, policy);
    let logical = f64::from(specification.logical_units);
    let filled = ((1.0 - asked.trimmed_share) * logical).round() as u32;
    let ftl =
        Ftl::new_preconditioned_with_features(specification, Features::default(), past, filled)?;
    let mut drive = UntimedFtl::new(ftl);
    let mut random = Pcg64Mcg::seed_from_u64(asked.seed);
    let mut write = |drive: &mut UntimedFtl, programmed: u64| {
        let before = *drive.ftl().traffic();
        while drive
            .ftl()
            .traffic()
            .traffic_since(&before)
            .programmed_units()
            < programmed
        {
            drive.write(draw_unit(&mut random, past, filled), 0);
        }
        drive
            .ftl()
            .traffic()
            .traffic_since(&before)
            .write_amplification()
    };
    write(&mut drive, WARM_UP_WRITES);
    Ok(write(&mut drive, COUNTED_WRITES))
}

fn layer_specification(asked: &FlashRequest, spare: f64, policy: VictimPolicy) -> Specification {
    let units = asked.superblock_units;
    let closed = SUPERBLOCK_COUNT.min(UNIT_COUNT / units).max(100);
    let (separation, open) = match asked.separates_hot {
        true => (DataSeparation::MovedApart, 2),
        false => (DataSeparation::Mixed, 1),
    };
    Specification {
        // Open superblocks are half full on average.
        geometry: Geometry {
            superblock_count: closed + FREE_SUPERBLOCKS + open / 2,
            die_count: 1,
            units_per_program: 1,
            rows_per_superblock: units,
        },
        logical_units: ((1.0 - spare) * f64::from(closed) * f64::from(units)).round() as u32,
        policy,
        separation,
        stream_count: 1,
        soft_free_superblocks: FREE_SUPERBLOCKS,
        hard_free_superblocks: FREE_SUPERBLOCKS - 1,
        wear_threshold_erases: None,
        seed: asked.seed,
    }
}

fn draw_unit(random: &mut Pcg64Mcg, past: PreconditionState, filled: u32) -> u32 {
    let mut below = |bound: u32| (random.next_u64() % u64::from(bound)) as u32;
    let PreconditionState::HotCold {
        writes_percent,
        space_percent,
    } = past
    else {
        return below(filled);
    };
    let hot = (u64::from(filled) * u64::from(space_percent) / 100).max(1) as u32;
    match below(100) < u32::from(writes_percent) {
        true => below(hot),
        false => hot + below(filled - hot),
    }
}

//! Steady state by simulation: skewed preconditioning without a formula is really written on a
//! small drive with the same shares. The contents of its superblocks, by age, give the state of the
//! large drive.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::collection::draw_below;
use crate::ftl::{Ftl, SuperblockState};
use crate::instant::UntimedFtl;
use crate::skew::{self, AccessClass};
use crate::specification::{
    DataSeparation, Geometry, ImpossibleSpecification, Specification, VictimPolicy,
};
use crate::steady::{self, RemainingUnits, SteadyState};

/// Minimum bound on the number of superblocks of a small drive. It may have more if its superblocks
/// are small.
const SMALL_DRIVE_SUPERBLOCKS: u32 = 1024;

/// Returns the maximum number of mapping units of a small drive, and how many times its capacity is
/// written before its state is taken. Cost-benefit leaves cold data alone for long, and becomes
/// steady later than other policies.
fn small_drive_size(policy: VictimPolicy) -> (u32, u32) {
    match policy {
        VictimPolicy::Greedy | VictimPolicy::RandomChoices(_) | VictimPolicy::OldestFirst => {
            (512 * 1024, 3)
        }
        VictimPolicy::CostBenefit => (256 * 1024, 12),
    }
}

/// Returns the steady state of superblocks of `units` mapping units, by simulation of a small
/// drive. `filled` of the `written` units are mapped.
///
/// # Errors
/// When the scaled-down specification cannot work.
pub(crate) fn simulate_steady_state(
    specification: &Specification,
    units: u32,
    (filled, written): (u32, f64),
    classes: &[AccessClass],
) -> Result<SteadyState, ImpossibleSpecification> {
    let mapped = f64::from(filled) / written;
    let small = scale_down_specification(specification, units, mapped, classes)?;
    let (mut ftl, units) = (Ftl::new_unwritten(small)?, small.logical_units);
    let ends = skew::class_ends(classes, units);
    // The state of another policy is near its own.
    let closed = steady::fifo_steady_state(1.0 - mapped, small.geometry.superblock_count, classes);
    let has_open = small.separation != DataSeparation::Mixed;
    let open = closed.last().cloned().filter(|_| has_open);
    let open = open.map(|left| (left, f64::midpoint(mapped, 1.0)));
    ftl.fill_to_steady_state(
        &SteadyState {
            closed_superblocks: closed,
            open_superblock: open,
        },
        &ends,
    );
    let mut drive = UntimedFtl::new(ftl);
    let mut random = drive.ftl().random.clone();
    let (_, turns) = small_drive_size(specification.policy);
    let mut write =
        |drive: &mut UntimedFtl| drive.write(draw_logical_unit(&mut random, classes, &ends), 0);
    for _ in 0..u64::from(turns) * u64::from(units) {
        write(&mut drive);
    }
    // Until the host is about to open a superblock.
    while drive.ftl().open_superblocks[0].is_some() {
        write(&mut drive);
    }
    Ok(measure_steady_state(drive.ftl(), &ends))
}

/// Returns the specification of a small drive on which the same share of the written mapping units
/// is mapped.
fn scale_down_specification(
    specification: &Specification,
    units: u32,
    mapped: f64,
    classes: &[AccessClass],
) -> Result<Specification, ImpossibleSpecification> {
    let Geometry {
        superblock_count: superblocks,
        ..
    } = specification.geometry;
    let (most_units, _) = small_drive_size(specification.policy);
    let fewer = superblocks.min(SMALL_DRIVE_SUPERBLOCKS.max(most_units / units));
    let smaller = units.min(most_units / fewer);
    let scale =
        |count: u32| (u64::from(count) * u64::from(fewer)).div_ceil(u64::from(superblocks)) as u32;
    let hard_free = specification
        .hard_free_superblocks
        .min(scale(specification.hard_free_superblocks).max(3));
    let mut small = Specification {
        geometry: Geometry {
            superblock_count: fewer,
            die_count: 1,
            units_per_program: 1,
            rows_per_superblock: smaller,
        },
        stream_count: 1,
        soft_free_superblocks: scale(specification.soft_free_superblocks).max(hard_free + 1),
        hard_free_superblocks: hard_free,
        wear_threshold_erases: None,
        logical_units: 1,
        ..*specification
    };
    // As much is open as on the large one: that share hangs on what is mapped alone.
    let ftl = Ftl::new_unwritten(small)?;
    let guess = mapped * f64::from(ftl.closed_superblock_count()) * f64::from(smaller);
    let written = ftl.mean_written_units(libm::round(guess) as u32, classes);
    small.logical_units = (libm::round(mapped * written) as u32).max(1);
    Ok(small)
}

fn draw_logical_unit(random: &mut Pcg64Mcg, classes: &[AccessClass], ends: &[u32]) -> u32 {
    let mut share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut first = 0;
    for (class, &end) in classes.iter().zip(ends) {
        share -= class.write_share;
        if share < 0.0 && end > first {
            return first + draw_below(random, end - first);
        }
        first = end;
    }
    draw_below(random, first)
}

/// Returns the contents of a drive's superblocks as a steady state.
fn measure_steady_state(ftl: &Ftl, ends: &[u32]) -> SteadyState {
    let mut closed: Vec<u32> = (0..ftl.superblocks.len() as u32)
        .filter(|&index| ftl.superblocks[index as usize].state == SuperblockState::Closed)
        .collect();
    closed.sort_by_key(|&index| ftl.superblocks[index as usize].closed_at_clock);
    let all = closed.len() as f64 * f64::from(ftl.superblock_units);
    let left = |superblock: u32| {
        let block = &ftl.superblocks[superblock as usize];
        let one = 1.0 / f64::from(block.placed_count);
        let mut shares = vec![0.0; ends.len()];
        for physical in superblock * ftl.superblock_units..(superblock + 1) * ftl.superblock_units {
            let logical = ftl.reverse_entry(physical);
            if logical != 0 && ftl.effective_entry(logical - 1) == physical + 1 {
                shares[ends.partition_point(|&end| end < logical)] += one;
            }
        }
        let age = (ftl.placed_clock - block.closed_at_clock) as f64 / all;
        RemainingUnits {
            shares_by_class: shares,
            age_in_writes: age,
        }
    };
    let fill = |open: u32| {
        f64::from(ftl.superblocks[open as usize].placed_count) / f64::from(ftl.superblock_units)
    };
    let open = ftl.open_superblocks.iter().skip(1).find_map(|&it| it);
    SteadyState {
        open_superblock: open.map(|open| (left(open), fill(open))),
        closed_superblocks: closed.into_iter().map(left).collect(),
    }
}

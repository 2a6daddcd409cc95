//! Steady state by simulation: skewed preconditioning without a formula is really written on a
//! small drive with the same shares. The contents of its superblocks, by age, give the state of the
//! large drive.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::collection::below;
use crate::ftl::{Ftl, State};
use crate::instant::Instant;
use crate::skew::{self, Class};
use crate::specification::{Geometry, Impossible, Policy, Separation, Specification};
use crate::steady::{self, Left, Steady};

/// Minimum bound on the number of superblocks of a small drive. It may have more if its superblocks
/// are small.
const SUPERBLOCKS: u32 = 1024;

/// Returns the maximum number of mapping units of a small drive, and how many times its capacity is
/// written before its state is taken. Cost-benefit leaves cold data alone for long, and becomes
/// steady later than other policies.
fn size(policy: Policy) -> (u32, u32) {
    match policy {
        Policy::Greedy | Policy::Choices(_) | Policy::Fifo => (512 * 1024, 3),
        Policy::CostBenefit => (256 * 1024, 12),
    }
}

/// Returns the steady state of superblocks of `units` mapping units, by simulation of a small
/// drive. `filled` of the `written` units are mapped.
///
/// # Errors
/// When the scaled-down specification cannot work.
pub(crate) fn steady(
    specification: &Specification,
    units: u32,
    (filled, written): (u32, f64),
    classes: &[Class],
) -> Result<Steady, Impossible> {
    let mapped = f64::from(filled) / written;
    let small = scaled_down(specification, units, mapped, classes)?;
    let (mut ftl, units) = (Ftl::fresh(small)?, small.logical_units);
    let ends = skew::ends(classes, units);
    // The state of another policy is near its own.
    let closed = steady::fifo(1.0 - mapped, small.geometry.superblocks, classes);
    let has_open = small.separation != Separation::Mixed;
    let open = closed.last().cloned().filter(|_| has_open);
    let open = open.map(|left| (left, f64::midpoint(mapped, 1.0)));
    ftl.fill_as(&Steady { closed, open }, &ends);
    let mut drive = Instant::new(ftl);
    let mut random = drive.ftl().random.clone();
    let (_, turns) = size(specification.policy);
    let mut write = |drive: &mut Instant| drive.write(draw(&mut random, classes, &ends), 0);
    for _ in 0..u64::from(turns) * u64::from(units) {
        write(&mut drive);
    }
    // Until the host is about to open a superblock.
    while drive.ftl().frontiers[0].is_some() {
        write(&mut drive);
    }
    Ok(left(drive.ftl(), &ends))
}

/// Returns the specification of a small drive on which the same share of the written mapping units
/// is mapped.
fn scaled_down(
    specification: &Specification,
    units: u32,
    mapped: f64,
    classes: &[Class],
) -> Result<Specification, Impossible> {
    let Geometry { superblocks, .. } = specification.geometry;
    let (most_units, _) = size(specification.policy);
    let fewer = superblocks.min(SUPERBLOCKS.max(most_units / units));
    let smaller = units.min(most_units / fewer);
    let scale =
        |count: u32| (u64::from(count) * u64::from(fewer)).div_ceil(u64::from(superblocks)) as u32;
    let hard_free = specification
        .hard_free
        .min(scale(specification.hard_free).max(3));
    let mut small = Specification {
        geometry: Geometry {
            superblocks: fewer,
            dies: 1,
            program_units: 1,
            rows: smaller,
        },
        streams: 1,
        soft_free: scale(specification.soft_free).max(hard_free + 1),
        hard_free,
        wear_threshold: None,
        logical_units: 1,
        ..*specification
    };
    // As much is open as on the large one: that share hangs on what is mapped alone.
    let ftl = Ftl::fresh(small)?;
    let guess = mapped * f64::from(ftl.closed_by_past()) * f64::from(smaller);
    let written = ftl.mean_written(libm::round(guess) as u32, classes);
    small.logical_units = (libm::round(mapped * written) as u32).max(1);
    Ok(small)
}

fn draw(random: &mut Pcg64Mcg, classes: &[Class], ends: &[u32]) -> u32 {
    let mut share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut first = 0;
    for (class, &end) in classes.iter().zip(ends) {
        share -= class.writes;
        if share < 0.0 && end > first {
            return first + below(random, end - first);
        }
        first = end;
    }
    below(random, first)
}

/// Returns the contents of a drive's superblocks as a steady state.
fn left(ftl: &Ftl, ends: &[u32]) -> Steady {
    let mut closed: Vec<u32> = (0..ftl.superblocks.len() as u32)
        .filter(|&index| ftl.superblocks[index as usize].state == State::Closed)
        .collect();
    closed.sort_by_key(|&index| ftl.superblocks[index as usize].closed_at);
    let all = closed.len() as f64 * f64::from(ftl.units);
    let left = |superblock: u32| {
        let block = &ftl.superblocks[superblock as usize];
        let one = 1.0 / f64::from(block.written);
        let mut shares = vec![0.0; ends.len()];
        for physical in superblock * ftl.units..(superblock + 1) * ftl.units {
            let logical = ftl.owner(physical);
            if logical != 0 && ftl.entry(logical - 1) == physical + 1 {
                shares[ends.partition_point(|&end| end < logical)] += one;
            }
        }
        let age = (ftl.clock - block.closed_at) as f64 / all;
        Left { shares, age }
    };
    let fill = |open: u32| f64::from(ftl.superblocks[open as usize].written) / f64::from(ftl.units);
    let open = ftl.frontiers.iter().skip(1).find_map(|&it| it);
    Steady {
        open: open.map(|open| (left(open), fill(open))),
        closed: closed.into_iter().map(left).collect(),
    }
}

//! A skewed past that no formula covers is really written on a small drive with the same
//! shares; what is in its superblocks, by age, is the state of the large one.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::collection::below;
use crate::ftl::{Ftl, State};
use crate::instant::Instant;
use crate::skew::{self, Class};
use crate::specification::{Geometry, Impossible, Policy, Separation, Specification};
use crate::steady;

/// Superblocks of a small drive, at most.
const SUPERBLOCKS: u32 = 1024;

/// Units of a small drive, at most, and how often its space is written before its state is
/// taken. Cost-benefit leaves cold data alone for long, and is steady long after the others.
fn size(policy: Policy) -> (u32, u32) {
    match policy {
        Policy::Greedy | Policy::Choices(_) | Policy::Fifo => (512 * 1024, 6),
        Policy::CostBenefit => (128 * 1024, 40),
    }
}

/// The share of a superblock of so many units that is valid and of each class, the oldest
/// superblock first, where closed ones have this spare.
pub(crate) fn ages(
    specification: &Specification,
    units: u32,
    spare: f64,
    classes: &[Class],
) -> Result<Vec<Vec<f64>>, Impossible> {
    let small = scaled_down(specification, units, spare);
    let mut ftl = Ftl::fresh(small)?;
    let units = small.logical_units;
    // Where no formula has the state after uniform writes, one that is near it.
    let near = ftl.uniform_ages(units);
    let near = near.unwrap_or_else(|| {
        let shares = steady::fifo(ftl.spare_of(units), small.geometry.superblocks);
        shares.into_iter().map(|share| vec![share]).collect()
    });
    ftl.fill_by_age(&near, &[units]);
    let mut drive = Instant::new(ftl);
    let mut random = drive.ftl().random.clone();
    let ends = skew::ends(classes, units);
    let (_, turns) = size(specification.policy);
    for _ in 0..u64::from(turns) * u64::from(small.logical_units) {
        drive.write(draw(&mut random, classes, &ends), 0);
    }
    Ok(by_age(drive.ftl(), &ends))
}

fn scaled_down(specification: &Specification, units: u32, spare: f64) -> Specification {
    let Geometry { superblocks, .. } = specification.geometry;
    let fewer = superblocks.min(SUPERBLOCKS);
    let (most_units, _) = size(specification.policy);
    let smaller = units.min(most_units / fewer);
    let scale =
        |count: u32| (u64::from(count) * u64::from(fewer)).div_ceil(u64::from(superblocks)) as u32;
    let hard_free = specification
        .hard_free
        .min(scale(specification.hard_free).max(3));
    let soft_free = scale(specification.soft_free).max(hard_free + 1);
    // Those that are neither free nor open, and the half of the open one.
    let open = u32::from(specification.separation != Separation::Mixed);
    let closed = f64::from(fewer - soft_free - open) + f64::from(open) / 2.0;
    let mapped = (1.0 - spare) * closed * f64::from(smaller);
    Specification {
        geometry: Geometry {
            superblocks: fewer,
            dies: 1,
            program_units: 1,
            rows: smaller,
        },
        logical_units: (libm::round(mapped) as u32).max(1),
        streams: 1,
        soft_free,
        hard_free,
        wear_threshold: None,
        ..*specification
    }
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

fn by_age(ftl: &Ftl, ends: &[u32]) -> Vec<Vec<f64>> {
    let mut closed: Vec<u32> = (0..ftl.superblocks.len() as u32)
        .filter(|&index| ftl.superblocks[index as usize].state == State::Closed)
        .collect();
    closed.sort_by_key(|&index| ftl.superblocks[index as usize].closed_at);
    let units = ftl.units;
    let one = 1.0 / f64::from(units);
    let shares = |superblock: u32| {
        let mut shares = vec![0.0; ends.len()];
        for physical in superblock * units..(superblock + 1) * units {
            let logical = ftl.owner(physical);
            if logical != 0 && ftl.entry(logical - 1) == physical + 1 {
                shares[ends.partition_point(|&end| end < logical)] += one;
            }
        }
        shares
    };
    closed.into_iter().map(shares).collect()
}

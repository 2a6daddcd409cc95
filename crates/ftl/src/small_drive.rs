//! A skewed past that no formula covers is really written on a small drive with the same
//! shares; what is in its superblocks, by age, is the state of the large one.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::collection::below;
use crate::ftl::{Ftl, State};
use crate::instant::Instant;
use crate::past::Past;
use crate::skew::{self, Class};
use crate::specification::{Geometry, Impossible, Specification};

/// Superblocks and units of a superblock of a small drive, at most.
const SUPERBLOCKS: u32 = 1024;
const UNITS: u32 = 256;
/// Times the space is written before the state is taken: the facts' hot and cold tables
/// are steady from there.
const TURNS: u32 = 6;

/// The share of a superblock that is valid and of each class, the oldest superblock first.
pub(crate) fn ages(
    specification: &Specification,
    filled: u32,
    classes: &[Class],
) -> Result<Vec<Vec<f64>>, Impossible> {
    let small = scaled_down(specification, filled);
    let mut drive = Instant::new(Ftl::with_past(small, Past::Random)?);
    let mut random = drive.ftl().random.clone();
    let ends = skew::ends(classes, small.logical_units);
    for _ in 0..u64::from(TURNS) * u64::from(small.logical_units) {
        drive.write(draw(&mut random, classes, &ends), 0);
    }
    Ok(by_age(drive.ftl(), &ends))
}

fn scaled_down(specification: &Specification, filled: u32) -> Specification {
    let Geometry { superblocks, .. } = specification.geometry;
    let units = specification.geometry.superblock_units();
    let (fewer, smaller) = (superblocks.min(SUPERBLOCKS), units.min(UNITS));
    let scale =
        |count: u32| (u64::from(count) * u64::from(fewer)).div_ceil(u64::from(superblocks)) as u32;
    let hard_free = specification
        .hard_free
        .min(scale(specification.hard_free).max(3));
    let share = f64::from(filled) / (f64::from(superblocks) * f64::from(units));
    Specification {
        geometry: Geometry {
            superblocks: fewer,
            dies: 1,
            program_units: 1,
            rows: smaller,
        },
        logical_units: libm::round(share * f64::from(fewer * smaller)) as u32,
        streams: 1,
        soft_free: scale(specification.soft_free).max(hard_free + 1),
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
            let logical = ftl.reverse[physical as usize];
            if logical != 0 && ftl.map[logical as usize - 1] == physical + 1 {
                shares[ends.partition_point(|&end| end < logical)] += one;
            }
        }
        shares
    };
    closed.into_iter().map(shares).collect()
}

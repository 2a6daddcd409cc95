//! Steady state of superblocks after long preconditioning: the valid share of each, by class of
//! mapping units, and its age.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::analytic;
use crate::skew::Class;
use crate::specification::Policy;

/// Maximum superblock size, in mapping units, for which the steady state of `Policy::Choices` is
/// computed exactly. Larger superblocks use the state of this size, which is close.
const EXACT_UNITS_MAX: u32 = 4096;

/// Steady state of a drive after long preconditioning.
#[derive(Debug, Clone)]
pub(crate) struct Steady {
    /// Contents of the closed superblocks, the oldest first.
    pub(crate) closed: Vec<Left>,
    /// Contents of the open superblock for moved data, and the share of it that is written.
    pub(crate) open: Option<(Left, f64)>,
}

/// Contents of a superblock: valid shares by class, and age.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    /// Valid share of the superblock's written mapping units, by class.
    pub(crate) shares: Vec<f64>,
    /// Number of superblocks programmed since this one was closed, as a share of all closed ones.
    pub(crate) age: f64,
}

/// Draws the written share of the open superblock for moved data, at the time when the host is
/// about to open a superblock. Garbage collection ends with the first victim that fits into that
/// superblock, because this frees a superblock without opening another. Every fill level before the
/// victim is equally likely, so every level from the victim's valid share on is.
pub(crate) fn fill_of_open(victim_share: f64, random: &mut Pcg64Mcg) -> f64 {
    let drawn = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    victim_share + (1.0 - victim_share) * drawn
}

/// Returns the valid share of a victim in the steady state.
pub(crate) fn victim_share(policy: Policy, spare: f64, units: u32, classes: &[Class]) -> f64 {
    let amplification = match (policy, classes) {
        (Policy::Greedy, [_]) => analytic::greedy(spare, units),
        (Policy::Choices(choices), [_]) => {
            analytic::choices(spare, units.min(EXACT_UNITS_MAX), choices)
        }
        // By other policies too it is near that of the oldest superblock.
        _ => {
            let rates = analytic::fifo_rates(spare, &shares_of(classes));
            let valid = |(class, rate): (&Class, &f64)| {
                class.space * (1.0 - spare) * density(*rate) * libm::exp(-rate)
            };
            return classes.iter().zip(&rates).map(valid).sum();
        }
    };
    1.0 - 1.0 / amplification
}

fn shares_of(classes: &[Class]) -> Vec<(f64, f64)> {
    (classes.iter().map(|it| (it.writes, it.space))).collect()
}

/// Returns the closed superblocks of the steady state by formula. Returns `None` for cost-benefit,
/// and for skewed writes under other policies than FIFO.
pub(crate) fn by_formula(
    policy: Policy,
    spare: f64,
    units: u32,
    superblocks: u32,
    classes: &[Class],
) -> Option<Vec<Left>> {
    let shares = match (policy, classes) {
        (Policy::Greedy, [_]) => greedy(spare, units, superblocks),
        (Policy::Choices(choices), [_]) => {
            of_choices(spare, units.min(EXACT_UNITS_MAX), choices, superblocks)
        }
        (Policy::Fifo, _) => return Some(fifo(spare, superblocks, classes)),
        _ => return None,
    };
    let left = |(rank, share)| Left {
        shares: vec![share],
        age: 1.0 - rank,
    };
    Some(ranks(superblocks).zip(shares).map(left).collect())
}

/// Returns the closed superblocks of the steady state under FIFO garbage collection.
pub(crate) fn fifo(spare: f64, superblocks: u32, classes: &[Class]) -> Vec<Left> {
    let rates = analytic::fifo_rates(spare, &shares_of(classes));
    let left = |rank: f64| {
        let share = |(class, rate): (&Class, &f64)| {
            class.space * (1.0 - spare) * density(*rate) * libm::exp(-rate * (1.0 - rank))
        };
        Left {
            shares: classes.iter().zip(&rates).map(share).collect(),
            age: 1.0 - rank,
        }
    };
    ranks(superblocks).map(left).collect()
}

/// Returns the density of a class in the newest superblock relative to its average, when its
/// mapping units become invalid at `rate`.
fn density(rate: f64) -> f64 {
    match rate < 1e-9 {
        true => 1.0,
        false => rate / (1.0 - libm::exp(-rate)),
    }
}

fn greedy(spare: f64, units: u32, superblocks: u32) -> Vec<f64> {
    let state = analytic::greedy_state(spare, units);
    let mut valid = state.victim_valid;
    let mut below = state.at_victim;
    let share = |rank: f64| {
        while below < rank && valid < units {
            valid += 1;
            below += state.c / f64::from(valid);
        }
        f64::from(valid) / f64::from(units)
    };
    ranks(superblocks).map(share).collect()
}

fn of_choices(spare: f64, units: u32, choices: u32, superblocks: u32) -> Vec<f64> {
    let (at_least, _) = analytic::choices_state(spare, units, choices);
    let mut valid = units;
    let share = |rank: f64| {
        // The newest first: the share of superblocks with more shrinks as counts grow.
        while valid > 0 && at_least[valid as usize] <= rank {
            valid -= 1;
        }
        f64::from(valid) / f64::from(units)
    };
    let mut shares: Vec<f64> = ranks(superblocks).map(share).collect();
    shares.reverse();
    shares
}

/// Iterates over the middle of each superblock's age rank, from the oldest (near 0) to the newest
/// (near 1).
fn ranks(superblocks: u32) -> impl Iterator<Item = f64> {
    (0..superblocks).map(move |index| (f64::from(index) + 0.5) / f64::from(superblocks))
}

/// Returns the number of mapping units of each class in superblocks with `rooms` written units and
/// these shares. The numbers add up to `left` for each class.
pub(crate) fn counts(shares: &[&[f64]], rooms: &[u32], left: &[u32]) -> Vec<Vec<u32>> {
    assert_eq!(shares.len(), rooms.len(), "each superblock has its shares");
    let mut left = left.to_vec();
    let scale: Vec<f64> = (0..left.len())
        .map(|class| {
            let sum: f64 = (rooms.iter().enumerate())
                .map(|(index, &room)| shares[index][class] * f64::from(room))
                .sum();
            if sum > 0.0 {
                f64::from(left[class]) / sum
            } else {
                0.0
            }
        })
        .collect();
    let mut owed = vec![0.0; left.len()];
    let mut counts = vec![vec![0; left.len()]; rooms.len()];
    for (index, counts) in counts.iter_mut().enumerate() {
        let mut room = rooms[index];
        for class in 0..left.len() {
            owed[class] += shares[index][class] * scale[class] * f64::from(rooms[index]);
            // What was rounded off, or had no room, is the next one's.
            let count = (libm::round(owed[class]) as u32).min(room).min(left[class]);
            owed[class] -= f64::from(count);
            counts[class] = count;
            room -= count;
            left[class] -= count;
        }
    }
    // What no later one had room for, and classes that no superblock had.
    for (counts, &room) in counts.iter_mut().zip(rooms).rev() {
        for class in 0..left.len() {
            let more = (room - counts.iter().sum::<u32>()).min(left[class]);
            counts[class] += more;
            left[class] -= more;
        }
    }
    assert!(
        left.iter().all(|&left| left == 0),
        "superblocks have room for all units of the past"
    );
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_to_each_class_and_no_superblock_overflows() {
        for (rooms, left) in [
            (vec![64; 9], vec![300, 200]),
            (vec![64, 64, 64, 32, 5, 0], vec![100, 129]),
            (vec![7; 3], vec![0, 21]),
        ] {
            let shares: [&[f64]; 3] = [&[0.1, 0.5], &[0.9, 0.4], &[0.3, 0.0]];
            let counts = counts(&shares.repeat(rooms.len() / 3), &rooms, &left);
            for (counts, room) in counts.iter().zip(&rooms) {
                assert!(counts.iter().sum::<u32>() <= *room, "{counts:?} in {room}");
            }
            for class in 0..2 {
                let sum: u32 = counts.iter().map(|counts| counts[class]).sum();
                assert_eq!(sum, left[class]);
            }
        }
    }

    #[test]
    fn superblocks_of_a_uniform_past_hold_what_is_mapped() {
        let all = [Class {
            writes: 1.0,
            space: 1.0,
        }];
        for policy in [Policy::Greedy, Policy::Choices(3), Policy::Fifo] {
            for (spare, units) in [(0.1, 64), (0.28, 4096), (0.05, 1_000_000)] {
                let closed = by_formula(policy, spare, units, 4000, &all).unwrap();
                let mean = closed.iter().map(|left| left.shares[0]).sum::<f64>() / 4000.0;
                assert!(
                    (mean - (1.0 - spare)).abs() < 0.003,
                    "{policy:?} {units}: {mean}, should be {}",
                    1.0 - spare
                );
                assert!(closed.is_sorted_by(|a, b| a.shares[0] <= b.shares[0]));
            }
        }
    }
}

//! Steady state of superblocks after long preconditioning: the valid share of each, by class of
//! mapping units, and its age.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

use crate::analytic;
use crate::skew::AccessClass;
use crate::specification::VictimPolicy;

/// Maximum superblock size, in mapping units, for which the steady state of `Policy::RandomChoices` is
/// computed exactly. Larger superblocks use the state of this size, which is close.
const EXACT_UNITS_MAX: u32 = 4096;

/// Steady state of a drive after long preconditioning.
#[derive(Debug, Clone)]
pub(crate) struct SteadyState {
    /// Contents of the closed superblocks, the oldest first.
    pub(crate) closed_superblocks: Vec<RemainingUnits>,
    /// Contents of the open superblock for moved data, and the share of it that is written.
    pub(crate) open_superblock: Option<(RemainingUnits, f64)>,
}

/// Contents of a superblock: valid shares by class, and age.
#[derive(Debug, Clone)]
pub(crate) struct RemainingUnits {
    /// Valid share of the superblock's written mapping units, by class.
    pub(crate) shares_by_class: Vec<f64>,
    /// Number of superblocks programmed since this one was closed, as a share of all closed ones.
    pub(crate) age_in_writes: f64,
}

/// Draws the written share of the open superblock for moved data, at the time when the host is
/// about to open a superblock. Garbage collection ends with the first victim that fits into that
/// superblock, because this frees a superblock without opening another. Every fill level before the
/// victim is equally likely, so every level from the victim's valid share on is.
pub(crate) fn draw_open_fill(victim_share: f64, random: &mut Pcg64Mcg) -> f64 {
    let drawn = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    victim_share + (1.0 - victim_share) * drawn
}

pub(crate) fn victim_share(
    policy: VictimPolicy,
    spare: f64,
    units: u32,
    classes: &[AccessClass],
) -> f64 {
    let amplification = match (policy, classes) {
        (VictimPolicy::Greedy, [_]) => analytic::greedy_write_amplification(spare, units),
        (VictimPolicy::RandomChoices(choices), [_]) => {
            analytic::choices_write_amplification(spare, units.min(EXACT_UNITS_MAX), choices)
        }
        // By other policies too it is near that of the oldest superblock.
        _ => {
            let rates = analytic::fifo_cost_by_class(spare, &write_and_space_shares(classes));
            let valid = |(class, rate): (&AccessClass, &f64)| {
                class.space_share * (1.0 - spare) * age_density(*rate) * libm::exp(-rate)
            };
            return classes.iter().zip(&rates).map(valid).sum();
        }
    };
    1.0 - 1.0 / amplification
}

fn write_and_space_shares(classes: &[AccessClass]) -> Vec<(f64, f64)> {
    (classes.iter().map(|it| (it.write_share, it.space_share))).collect()
}

/// Returns the closed superblocks of the steady state by formula. Returns `None` for cost-benefit,
/// and for skewed writes under other policies than FIFO.
pub(crate) fn steady_state_by_formula(
    policy: VictimPolicy,
    spare: f64,
    units: u32,
    superblocks: u32,
    classes: &[AccessClass],
) -> Option<Vec<RemainingUnits>> {
    let shares = match (policy, classes) {
        (VictimPolicy::Greedy, [_]) => greedy_valid_shares(spare, units, superblocks),
        (VictimPolicy::RandomChoices(choices), [_]) => {
            choices_valid_shares(spare, units.min(EXACT_UNITS_MAX), choices, superblocks)
        }
        (VictimPolicy::OldestFirst, _) => {
            return Some(fifo_steady_state(spare, superblocks, classes));
        }
        _ => return None,
    };
    let left = |(rank, share)| RemainingUnits {
        shares_by_class: vec![share],
        age_in_writes: 1.0 - rank,
    };
    Some(midpoint_ranks(superblocks).zip(shares).map(left).collect())
}

/// Returns the closed superblocks of the steady state under FIFO garbage collection.
pub(crate) fn fifo_steady_state(
    spare: f64,
    superblocks: u32,
    classes: &[AccessClass],
) -> Vec<RemainingUnits> {
    let rates = analytic::fifo_cost_by_class(spare, &write_and_space_shares(classes));
    let left = |rank: f64| {
        let share = |(class, rate): (&AccessClass, &f64)| {
            class.space_share * (1.0 - spare) * age_density(*rate) * libm::exp(-rate * (1.0 - rank))
        };
        RemainingUnits {
            shares_by_class: classes.iter().zip(&rates).map(share).collect(),
            age_in_writes: 1.0 - rank,
        }
    };
    midpoint_ranks(superblocks).map(left).collect()
}

/// Returns the density of a class in the newest superblock relative to its average, when its
/// mapping units become invalid at `rate`.
fn age_density(rate: f64) -> f64 {
    match rate < 1e-9 {
        true => 1.0,
        false => rate / (1.0 - libm::exp(-rate)),
    }
}

fn greedy_valid_shares(spare: f64, units: u32, superblocks: u32) -> Vec<f64> {
    let state = analytic::solve_greedy_steady_state(spare, units);
    let mut valid = state.victim_valid;
    let mut below = state.victim_valid_share;
    let share = |rank: f64| {
        while below < rank && valid < units {
            valid += 1;
            below += state.share_constant / f64::from(valid);
        }
        f64::from(valid) / f64::from(units)
    };
    midpoint_ranks(superblocks).map(share).collect()
}

fn choices_valid_shares(spare: f64, units: u32, choices: u32, superblocks: u32) -> Vec<f64> {
    let (at_least, _) = analytic::solve_choices_steady_state(spare, units, choices);
    let mut valid = units;
    let share = |rank: f64| {
        // The newest first: the share of superblocks with more shrinks as counts grow.
        while valid > 0 && at_least[valid as usize] <= rank {
            valid -= 1;
        }
        f64::from(valid) / f64::from(units)
    };
    let mut shares: Vec<f64> = midpoint_ranks(superblocks).map(share).collect();
    shares.reverse();
    shares
}

/// Iterates over the middle of each superblock's age rank, from the oldest (near 0) to the newest
/// (near 1).
fn midpoint_ranks(superblocks: u32) -> impl Iterator<Item = f64> {
    (0..superblocks).map(move |index| (f64::from(index) + 0.5) / f64::from(superblocks))
}

/// Returns the number of mapping units of each class in superblocks with `rooms` written units and
/// these shares. The numbers add up to `left` for each class.
pub(crate) fn units_by_superblock(shares: &[&[f64]], rooms: &[u32], left: &[u32]) -> Vec<Vec<u32>> {
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
            let counts = units_by_superblock(&shares.repeat(rooms.len() / 3), &rooms, &left);
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
        let all = [AccessClass {
            write_share: 1.0,
            space_share: 1.0,
        }];
        for policy in [
            VictimPolicy::Greedy,
            VictimPolicy::RandomChoices(3),
            VictimPolicy::OldestFirst,
        ] {
            for (spare, units) in [(0.1, 64), (0.28, 4096), (0.05, 1_000_000)] {
                let closed = steady_state_by_formula(policy, spare, units, 4000, &all).unwrap();
                let mean = closed
                    .iter()
                    .map(|left| left.shares_by_class[0])
                    .sum::<f64>()
                    / 4000.0;
                assert!(
                    (mean - (1.0 - spare)).abs() < 0.003,
                    "{policy:?} {units}: {mean}, should be {}",
                    1.0 - spare
                );
                assert!(closed.is_sorted_by(|a, b| a.shares_by_class[0] <= b.shares_by_class[0]));
            }
        }
    }
}

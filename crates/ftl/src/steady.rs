//! What a long past leaves in superblocks, by their age: shares of a superblock that are
//! valid, of each class of units, the oldest superblock first.

use crate::analytic;
use crate::specification::Policy;

/// Units of a superblock up to which the state by choices is calculated exactly; beyond,
/// that of so many units is it too.
const MOST_COUNTS: u32 = 4096;

/// The state after uniform writes, where a formula has it; none for cost-benefit.
pub(crate) fn uniform(
    policy: Policy,
    spare: f64,
    units: u32,
    superblocks: u32,
) -> Option<Vec<Vec<f64>>> {
    let shares = match policy {
        Policy::Greedy => greedy(spare, units, superblocks),
        Policy::Choices(choices) => of_choices(spare, units.min(MOST_COUNTS), choices, superblocks),
        Policy::Fifo => fifo(spare, superblocks),
        Policy::CostBenefit => return None,
    };
    Some(shares.into_iter().map(|share| vec![share]).collect())
}

/// The state after uniform writes when the oldest superblock is collected.
pub(crate) fn fifo(spare: f64, superblocks: u32) -> Vec<f64> {
    let oldest = libm::log(analytic::fifo_victim_share(spare));
    let share = |rank: f64| libm::exp(oldest * (1.0 - rank));
    ranks(superblocks).map(share).collect()
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

/// The middle of each age rank, from the oldest (near 0) to the newest.
fn ranks(superblocks: u32) -> impl Iterator<Item = f64> {
    (0..superblocks).map(move |index| (f64::from(index) + 0.5) / f64::from(superblocks))
}

/// Units of each class in superblocks that have `rooms`, the oldest first, so that they
/// add up to `left` of each class.
pub(crate) fn counts(ages: &[Vec<f64>], rooms: &[u32], left: &[u32]) -> Vec<Vec<u32>> {
    let age = |index: usize| &ages[index * ages.len() / rooms.len()];
    let mut left = left.to_vec();
    let scale: Vec<f64> = (0..left.len())
        .map(|class| {
            let sum: f64 = (rooms.iter().enumerate())
                .map(|(index, &room)| age(index)[class] * f64::from(room))
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
            owed[class] += age(index)[class] * scale[class] * f64::from(rooms[index]);
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
            (vec![64; 10], vec![300, 200]),
            (vec![64, 64, 64, 32, 5], vec![100, 129]),
            (vec![7; 3], vec![0, 21]),
        ] {
            let ages = vec![vec![0.1, 0.5], vec![0.9, 0.4], vec![0.3, 0.0]];
            let counts = counts(&ages, &rooms, &left);
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
        for policy in [Policy::Greedy, Policy::Choices(3), Policy::Fifo] {
            for (spare, units) in [(0.1, 64), (0.28, 4096), (0.05, 1_000_000)] {
                let shares = uniform(policy, spare, units, 4000).unwrap();
                let mean = shares.iter().map(|share| share[0]).sum::<f64>() / 4000.0;
                assert!(
                    (mean - (1.0 - spare)).abs() < 0.003,
                    "{policy:?} {units}: {mean}, should be {}",
                    1.0 - spare
                );
                assert!(shares.is_sorted_by(|a, b| a[0] <= b[0]));
            }
        }
    }
}

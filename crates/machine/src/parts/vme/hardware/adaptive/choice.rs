//! Policy for each kind of command, and the search for better policies.

use super::super::policy::Policy;
use diskperf_device::Hint;
use diskperf_sim::Time;

/// Kind of command for which a policy is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Read that continues a sequence.
    Sequence(Hint),
    /// Read that continues no sequence.
    Other(Hint),
    /// Write that continues a sequence.
    WriteSequence,
    /// Write that continues no sequence.
    WriteOther,
}

impl Kind {
    const COUNT: usize = 2 * Hint::ALL.len() + 2;

    fn index(self) -> usize {
        match self {
            Self::Sequence(class) => class as usize,
            Self::Other(class) => Hint::ALL.len() + class as usize,
            Self::WriteSequence => Self::COUNT - 2,
            Self::WriteOther => Self::COUNT - 1,
        }
    }

    fn is_write(index: usize) -> bool {
        index >= Self::COUNT - 2
    }
}

/// Read-ahead distances that the search tries, in sectors.
const DISTANCES: [u32; 6] = [0, 10, 30, 60, 100, 244];

/// Initial read-ahead distance for sequences, in sectors: half a track.
const AT_FIRST: u32 = 30;

/// Rarity limit of a kind of command: the search considers a kind only if at least one in this many
/// commands is of it.
const WORTH: usize = 16;

/// Minimum gain of an accepted change, as a share. Some of the many tried changes are better by
/// chance.
const GAIN: f64 = 0.03;

/// Minimum gain, as a share, of an accepted change that harms the first half of the commands. After
/// a change of the workload, future commands resemble the second half.
const GAIN_AFTER_CHANGE: f64 = 0.1;

/// Total time of the commands: of the first half and of the second half.
pub(super) type Halves = [Time; 2];

/// Tests whether `one` is better than `other`. The total must be lower by [`GAIN`] with neither
/// half longer, or lower by [`GAIN_AFTER_CHANGE`] with only the first half longer.
fn is_better(one: Halves, other: Halves) -> bool {
    let gain = match one[0] <= other[0] {
        true => GAIN,
        false => GAIN_AFTER_CHANGE,
    };
    one[1] <= other[1] && (sum(one).0 as f64) < sum(other).0 as f64 * (1.0 - gain)
}

fn sum(halves: Halves) -> Time {
    halves[0] + halves[1]
}

/// Cache policies chosen for all kinds of commands.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    policies: [Policy; Kind::COUNT],
}

impl Default for Choice {
    fn default() -> Self {
        let read = |ahead_sectors| Policy {
            search: true,
            save_reads: true,
            ahead_priority: ahead_sectors > 0,
            sort_reads: true,
            sort_writes: true,
            across_heads: true,
            across_cylinders: true,
            ahead_sectors,
            ..Policy::default()
        };
        let write = |save_writes| Policy {
            search: true,
            save_writes,
            sort_reads: true,
            sort_writes: true,
            ..Policy::default()
        };
        let mut policies = [read(0); Kind::COUNT];
        for class in Hint::ALL {
            policies[Kind::Sequence(class).index()] = read(AT_FIRST);
        }
        // What is written in sequence is seldom read soon.
        policies[Kind::WriteSequence.index()] = write(false);
        policies[Kind::WriteOther.index()] = write(true);
        Self { policies }
    }
}

impl Choice {
    /// Returns the policy for a kind of command.
    pub(super) fn policy(&self, kind: Kind) -> Policy {
        self.policies[kind.index()]
    }

    fn reads(&mut self) -> impl Iterator<Item = &mut Policy> {
        let policies = self.policies.iter_mut().enumerate();
        let reads = policies.filter(|(index, _)| !Kind::is_write(*index));
        reads.map(|(_, policy)| policy)
    }

    fn at(mut self, ahead_sectors: u32) -> Self {
        for policy in self.reads() {
            policy.ahead_sectors = ahead_sectors;
        }
        self
    }

    /// Returns the policies without caching of read sectors, which leaves the cache to writes and
    /// read-ahead. A host with its own cache already has the sectors that it has read.
    fn without_saved_reads(mut self) -> Self {
        for policy in self.reads() {
            policy.save_reads = false;
        }
        self
    }

    /// Improves the cache policies by rehearsal. `kinds` holds the kind of each recent command, and
    /// `took` returns the time of these commands with given policies.
    pub(super) fn improve(&mut self, kinds: &[Kind], took: impl Fn(&Self) -> Halves) {
        let of_own = took(self);
        let (own, of_own) = self.clone().climbed(of_own, kinds, &took);
        // Single steps from here may lead nowhere, where two at once are far better.
        let plain = Self::default();
        let others = DISTANCES.map(|distance| plain.clone().at(distance));
        let plain = std::iter::once(plain).chain(others);
        let starts = plain.flat_map(|one| [one.clone(), one.without_saved_reads()]);
        let starts = starts.map(|start| (took(&start), start));
        let (of_fresh, fresh) = starts
            .min_by_key(|(halves, _)| sum(*halves))
            .expect("there are some");
        let (fresh, of_fresh) = fresh.climbed(of_fresh, kinds, &took);
        *self = match is_better(of_fresh, of_own) {
            true => fresh,
            false => own,
        };
    }

    /// Improves the cache policies in single steps (hill climbing). `best` is the time of the
    /// commands without a step. Returns the policies and the time of the commands with them.
    fn climbed(
        mut self,
        mut best: Halves,
        kinds: &[Kind],
        took: &impl Fn(&Self) -> Halves,
    ) -> (Self, Halves) {
        let count = |index| kinds.iter().filter(|kind| kind.index() == index).count();
        let is_worth = |index: &usize| count(*index) * WORTH >= kinds.len().max(1);
        for index in (0..Kind::COUNT).filter(is_worth) {
            let variations = match Kind::is_write(index) {
                true => &OF_WRITES[..],
                false => &OF_READS[..],
            };
            for variation in variations {
                for policy in variation.of(self.policies[index]) {
                    let mut other = self.clone();
                    other.policies[index] = policy;
                    let of_other = took(&other);
                    if is_better(of_other, best) {
                        (self, best) = (other, of_other);
                    }
                }
            }
        }
        (self, best)
    }
}

#[derive(Clone, Copy, Debug)]
enum Variation {
    /// Variation of the read-ahead distance and of its limits at track and cylinder ends.
    Ahead,
    Flip(&'static str),
}

const OF_READS: [Variation; 4] = [
    Variation::Ahead,
    Variation::Flip("CRD"),
    Variation::Flip("RAP"),
    Variation::Flip("SRD"),
];
const OF_WRITES: [Variation; 2] = [Variation::Flip("CWT"), Variation::Flip("SWT")];

impl Variation {
    fn of(self, mut policy: Policy) -> Vec<Policy> {
        match self {
            Self::Ahead => aheads(policy),
            Self::Flip(name) => {
                for (other, bit) in policy.bits() {
                    *bit ^= other == name;
                }
                vec![policy]
            }
        }
    }
}

/// Returns policies with other read-ahead distances or with other limits at track and cylinder
/// ends.
fn aheads(policy: Policy) -> Vec<Policy> {
    let across = [(false, false), (true, false), (true, true)];
    let all = DISTANCES.into_iter().flat_map(|ahead_sectors| {
        across.map(|(across_heads, across_cylinders)| Policy {
            ahead_sectors,
            across_heads,
            across_cylinders,
            ..policy
        })
    });
    all.filter(|other| *other != policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that take longer the further a distance is from the best one.
    fn best_at(best: u32) -> impl Fn(&Choice) -> Halves {
        move |choice: &Choice| {
            let policy = choice.policy(Kind::Sequence(Hint::Raw));
            [Time(10_000 + 100 * u64::from(policy.ahead_sectors.abs_diff(best))); 2]
        }
    }

    #[test]
    fn the_best_distance_is_found_and_another_one_when_things_change() {
        let mut choice = Choice::default();
        let kinds = [Kind::Sequence(Hint::Raw)];
        for best in [244, 10, 100, 0] {
            choice.improve(&kinds, best_at(best));
            assert_eq!(choice.policy(kinds[0]).ahead_sectors, best);
        }
    }

    #[test]
    fn what_single_steps_do_not_lead_to_is_found() {
        let mut choice = Choice::default();
        let kinds = [Hint::Raw, Hint::FileWhole].map(Kind::Other);
        choice.improve(&kinds, |choice| {
            let is_there = |kind| choice.policy(kind).ahead_sectors == 60;
            let gain = if kinds.into_iter().all(is_there) {
                1000
            } else {
                0
            };
            [Time(10_000 - gain); 2]
        });
        assert_eq!(choice.policy(kinds[0]).ahead_sectors, 60);
    }

    #[test]
    fn what_gains_little_is_left() {
        let mut choice = Choice::default();
        let kinds = [Kind::Other(Hint::Raw)];
        choice.improve(&kinds, |choice| {
            let ahead = u64::from(choice.policy(kinds[0]).ahead_sectors);
            [Time(10_000 - ahead.min(100)); 2]
        });
        assert_eq!(choice.policies, Choice::default().policies);
    }

    #[test]
    fn what_helps_some_and_harms_others_is_left() {
        let mut choice = Choice::default();
        let kinds = [Kind::Other(Hint::FileWhole)];
        choice.improve(&kinds, |choice| {
            let ahead = u64::from(choice.policy(kinds[0]).ahead_sectors);
            [Time(20_000 - 50 * ahead), Time(20_000 + ahead)]
        });
        assert_eq!(choice.policy(kinds[0]).ahead_sectors, 0);
    }

    #[test]
    fn after_a_change_the_later_half_counts() {
        let kinds = [Kind::Other(Hint::FileWhole)];
        for (gain, expected) in [(40, 244), (4, 0)] {
            let mut choice = Choice::default();
            choice.improve(&kinds, |choice| {
                let ahead = u64::from(choice.policy(kinds[0]).ahead_sectors);
                [Time(20_000 + ahead), Time(20_000 - gain * ahead)]
            });
            assert_eq!(choice.policy(kinds[0]).ahead_sectors, expected);
        }
    }
}

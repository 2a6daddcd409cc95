//! Policy for each kind of command, and the search for better policies.

use super::super::policy::CachePolicy;
use diskperf_device::AccessHint;
use diskperf_sim::Time;

/// Kind of command for which a policy is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    /// Read that continues a sequence.
    SequentialRead(AccessHint),
    /// Read that continues no sequence.
    OtherRead(AccessHint),
    /// Write that continues a sequence.
    SequentialWrite,
    /// Write that continues no sequence.
    OtherWrite,
}

impl CommandKind {
    const KIND_COUNT: usize = 2 * AccessHint::ALL.len() + 2;

    fn kind_index(self) -> usize {
        match self {
            Self::SequentialRead(class) => class as usize,
            Self::OtherRead(class) => AccessHint::ALL.len() + class as usize,
            Self::SequentialWrite => Self::KIND_COUNT - 2,
            Self::OtherWrite => Self::KIND_COUNT - 1,
        }
    }

    fn is_write(index: usize) -> bool {
        index >= Self::KIND_COUNT - 2
    }
}

/// Read-ahead distances that the search tries, in sectors.
const READ_AHEAD_DISTANCES: [u32; 6] = [0, 10, 30, 60, 100, 244];

/// Initial read-ahead distance for sequences, in sectors: half a track.
const INITIAL_READ_AHEAD_DISTANCE: u32 = 30;

/// Rarity limit of a kind of command: the search considers a kind only if at least one in this many
/// commands is of it.
const KIND_RARITY_MAX: usize = 16;

/// Minimum gain of an accepted change, as a share. Some of the many tried changes are better by
/// chance.
const GAIN_MIN: f64 = 0.03;

/// Minimum gain, as a share, of an accepted change that harms the first half of the commands. After
/// a change of the workload, future commands resemble the second half.
const GAIN_AFTER_CHANGE_MIN: f64 = 0.1;

/// Total time of the commands: of the first half and of the second half.
pub(super) type HalfTimes = [Time; 2];

/// Tests whether `one` is better than `other`. The total must be lower by [`GAIN_MIN`] with neither
/// half longer, or lower by [`GAIN_AFTER_CHANGE_MIN`] with only the first half longer.
fn is_faster_in_both_halves(one: HalfTimes, other: HalfTimes) -> bool {
    let gain = match one[0] <= other[0] {
        true => GAIN_MIN,
        false => GAIN_AFTER_CHANGE_MIN,
    };
    one[1] <= other[1] && (total_time(one).0 as f64) < total_time(other).0 as f64 * (1.0 - gain)
}

fn total_time(halves: HalfTimes) -> Time {
    halves[0] + halves[1]
}

/// Cache policies chosen for all kinds of commands.
#[derive(Clone, Debug)]
pub(super) struct PolicyChoice {
    policies: [CachePolicy; CommandKind::KIND_COUNT],
}

impl Default for PolicyChoice {
    fn default() -> Self {
        let read = |ahead_sectors| CachePolicy {
            searches_cache: true,
            caches_reads: true,
            prioritizes_read_ahead: ahead_sectors > 0,
            sorts_reads: true,
            sorts_writes: true,
            reads_ahead_across_heads: true,
            reads_ahead_across_cylinders: true,
            read_ahead_sectors: ahead_sectors,
            ..CachePolicy::default()
        };
        let write = |save_writes| CachePolicy {
            searches_cache: true,
            caches_writes: save_writes,
            sorts_reads: true,
            sorts_writes: true,
            ..CachePolicy::default()
        };
        let mut policies = [read(0); CommandKind::KIND_COUNT];
        for class in AccessHint::ALL {
            policies[CommandKind::SequentialRead(class).kind_index()] =
                read(INITIAL_READ_AHEAD_DISTANCE);
        }
        // What is written in sequence is seldom read soon.
        policies[CommandKind::SequentialWrite.kind_index()] = write(false);
        policies[CommandKind::OtherWrite.kind_index()] = write(true);
        Self { policies }
    }
}

impl PolicyChoice {
    pub(super) fn policy(&self, kind: CommandKind) -> CachePolicy {
        self.policies[kind.kind_index()]
    }

    fn read_policies(&mut self) -> impl Iterator<Item = &mut CachePolicy> {
        let policies = self.policies.iter_mut().enumerate();
        let reads = policies.filter(|(index, _)| !CommandKind::is_write(*index));
        reads.map(|(_, policy)| policy)
    }

    fn with_read_ahead(mut self, ahead_sectors: u32) -> Self {
        for policy in self.read_policies() {
            policy.read_ahead_sectors = ahead_sectors;
        }
        self
    }

    /// Returns the policies without caching of read sectors, which leaves the cache to writes and
    /// read-ahead. A host with its own cache already has the sectors that it has read.
    fn without_saved_reads(mut self) -> Self {
        for policy in self.read_policies() {
            policy.caches_reads = false;
        }
        self
    }

    /// Improves the cache policies by rehearsal. `kinds` holds the kind of each recent command, and
    /// `measure` returns the time of these commands with given policies.
    pub(super) fn improve_policies(
        &mut self,
        kinds: &[CommandKind],
        measure: impl Fn(&Self) -> HalfTimes,
    ) {
        let of_own = measure(self);
        let (own, of_own) = self.clone().hill_climb(of_own, kinds, &measure);
        // Single steps from here may lead nowhere, where two at once are far better.
        let plain = Self::default();
        let others = READ_AHEAD_DISTANCES.map(|distance| plain.clone().with_read_ahead(distance));
        let plain = std::iter::once(plain).chain(others);
        let starts = plain.flat_map(|one| [one.clone(), one.without_saved_reads()]);
        let starts = starts.map(|start| (measure(&start), start));
        let (of_fresh, fresh) = starts
            .min_by_key(|(halves, _)| total_time(*halves))
            .expect("there are some");
        let (fresh, of_fresh) = fresh.hill_climb(of_fresh, kinds, &measure);
        *self = match is_faster_in_both_halves(of_fresh, of_own) {
            true => fresh,
            false => own,
        };
    }

    /// Improves the cache policies in single steps (hill climbing). `best` is the time of the
    /// commands without a step. Returns the policies and the time of the commands with them.
    fn hill_climb(
        mut self,
        mut best: HalfTimes,
        kinds: &[CommandKind],
        measure: &impl Fn(&Self) -> HalfTimes,
    ) -> (Self, HalfTimes) {
        let count = |index| {
            kinds
                .iter()
                .filter(|kind| kind.kind_index() == index)
                .count()
        };
        let is_worth = |index: &usize| count(*index) * KIND_RARITY_MAX >= kinds.len().max(1);
        for index in (0..CommandKind::KIND_COUNT).filter(is_worth) {
            let variations = match CommandKind::is_write(index) {
                true => &WRITE_VARIATIONS[..],
                false => &READ_VARIATIONS[..],
            };
            for variation in variations {
                for policy in variation.apply_to_policy(self.policies[index]) {
                    let mut other = self.clone();
                    other.policies[index] = policy;
                    let of_other = measure(&other);
                    if is_faster_in_both_halves(of_other, best) {
                        (self, best) = (other, of_other);
                    }
                }
            }
        }
        (self, best)
    }
}

#[derive(Clone, Copy, Debug)]
enum PolicyVariation {
    /// Variation of the read-ahead distance and of its limits at track and cylinder ends.
    ReadAhead,
    FlipPolicyBit(&'static str),
}

const READ_VARIATIONS: [PolicyVariation; 4] = [
    PolicyVariation::ReadAhead,
    PolicyVariation::FlipPolicyBit("CRD"),
    PolicyVariation::FlipPolicyBit("RAP"),
    PolicyVariation::FlipPolicyBit("SRD"),
];
const WRITE_VARIATIONS: [PolicyVariation; 2] = [
    PolicyVariation::FlipPolicyBit("CWT"),
    PolicyVariation::FlipPolicyBit("SWT"),
];

impl PolicyVariation {
    fn apply_to_policy(self, mut policy: CachePolicy) -> Vec<CachePolicy> {
        match self {
            Self::ReadAhead => read_ahead_variations(policy),
            Self::FlipPolicyBit(name) => {
                for (other, bit) in policy.named_bits() {
                    *bit ^= other == name;
                }
                vec![policy]
            }
        }
    }
}

/// Returns policies with other read-ahead distances or with other limits at track and cylinder
/// ends.
fn read_ahead_variations(policy: CachePolicy) -> Vec<CachePolicy> {
    let across = [(false, false), (true, false), (true, true)];
    let all = READ_AHEAD_DISTANCES.into_iter().flat_map(|ahead_sectors| {
        across.map(|(across_heads, across_cylinders)| CachePolicy {
            read_ahead_sectors: ahead_sectors,
            reads_ahead_across_heads: across_heads,
            reads_ahead_across_cylinders: across_cylinders,
            ..policy
        })
    });
    all.filter(|other| *other != policy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that take longer the further a distance is from the best one.
    fn best_at(best: u32) -> impl Fn(&PolicyChoice) -> HalfTimes {
        move |choice: &PolicyChoice| {
            let policy = choice.policy(CommandKind::SequentialRead(AccessHint::Raw));
            [Time(10_000 + 100 * u64::from(policy.read_ahead_sectors.abs_diff(best))); 2]
        }
    }

    #[test]
    fn the_best_distance_is_found_and_another_one_when_things_change() {
        let mut choice = PolicyChoice::default();
        let kinds = [CommandKind::SequentialRead(AccessHint::Raw)];
        for best in [244, 10, 100, 0] {
            choice.improve_policies(&kinds, best_at(best));
            assert_eq!(choice.policy(kinds[0]).read_ahead_sectors, best);
        }
    }

    #[test]
    fn a_policy_that_single_steps_do_not_reach_is_found() {
        let mut choice = PolicyChoice::default();
        let kinds = [AccessHint::Raw, AccessHint::FileWhole].map(CommandKind::OtherRead);
        choice.improve_policies(&kinds, |choice| {
            let is_there = |kind| choice.policy(kind).read_ahead_sectors == 60;
            let gain = if kinds.into_iter().all(is_there) {
                1000
            } else {
                0
            };
            [Time(10_000 - gain); 2]
        });
        assert_eq!(choice.policy(kinds[0]).read_ahead_sectors, 60);
    }

    #[test]
    fn a_small_gain_changes_no_policy() {
        let mut choice = PolicyChoice::default();
        let kinds = [CommandKind::OtherRead(AccessHint::Raw)];
        choice.improve_policies(&kinds, |choice| {
            let ahead = u64::from(choice.policy(kinds[0]).read_ahead_sectors);
            [Time(10_000 - ahead.min(100)); 2]
        });
        assert_eq!(choice.policies, PolicyChoice::default().policies);
    }

    #[test]
    fn a_policy_that_helps_some_commands_and_harms_others_is_not_chosen() {
        let mut choice = PolicyChoice::default();
        let kinds = [CommandKind::OtherRead(AccessHint::FileWhole)];
        choice.improve_policies(&kinds, |choice| {
            let ahead = u64::from(choice.policy(kinds[0]).read_ahead_sectors);
            [Time(20_000 - 50 * ahead), Time(20_000 + ahead)]
        });
        assert_eq!(choice.policy(kinds[0]).read_ahead_sectors, 0);
    }

    #[test]
    fn after_a_workload_change_the_second_half_decides() {
        let kinds = [CommandKind::OtherRead(AccessHint::FileWhole)];
        for (gain, expected) in [(40, 244), (4, 0)] {
            let mut choice = PolicyChoice::default();
            choice.improve_policies(&kinds, |choice| {
                let ahead = u64::from(choice.policy(kinds[0]).read_ahead_sectors);
                [Time(20_000 + ahead), Time(20_000 - gain * ahead)]
            });
            assert_eq!(choice.policy(kinds[0]).read_ahead_sectors, expected);
        }
    }
}

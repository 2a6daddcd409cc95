//! Difference between two runs of one program: stage by stage, by the diagnosis of their spans,
//! and, where both can be run again, parameter by parameter.

use super::TimeAccount;
use crate::diagnosis::Diagnosis;
use diskperf_timeline::{Nanoseconds, Stage};
use serde::Serialize;

/// Differences between two runs, program by program.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplanationDifferences {
    /// Description of the first of the two compared runs.
    pub a_name: String,
    /// Description of the second of the two compared runs.
    pub b_name: String,
    /// Differences between the two runs, program by program.
    pub programs: Vec<ProgramDifference>,
    /// Facts that differ between the two runs, but that no rerun can try out.
    pub setting_differences: Vec<String>,
    /// Notes to the reader about the difference between the two runs.
    pub notes: Vec<String>,
}

/// Difference of one program between two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramDifference {
    /// Name of the program that both runs contain.
    pub program: String,
    /// File systems and drives of the first and of the second run, where they differ.
    pub filesystems: (String, String),
    /// Drives that ran the program concurrently, in the first and the second run.
    pub drives: (u32, u32),
    /// Elapsed times of the first and the second run.
    pub elapsed: (Nanoseconds, Nanoseconds),
    /// Requests that each run completed, for a program that runs for a set time. All times of the
    /// second run are then scaled to the requests of the first. Absent for a program that ends when
    /// its work is done.
    pub request_counts: Option<RequestCounts>,
    /// Time of each stage in both runs. Stages that neither run has are left out.
    pub stage_differences: Vec<StageDifference>,
    /// Diagnosis from the spans of the two traces alone.
    pub diagnosis: Option<Diagnosis>,
    /// Contribution of each change from the first run to the second; they sum to the difference.
    /// Empty where no change is known.
    pub contributions: Vec<Contribution>,
    /// Method by which the contributions of the changes were found.
    pub method: Option<ContributionMethod>,
}

/// Requests that a program of a set duration completed in each of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCounts {
    /// Number of requests that the first run completed.
    pub a: u64,
    /// Number of requests that the second run completed.
    pub b: u64,
}

impl RequestCounts {
    /// Returns both counts, where they differ and neither is 0.
    pub fn new_if_different(a: u64, b: u64) -> Option<Self> {
        (a != b && a > 0 && b > 0).then_some(Self { a, b })
    }

    /// Describes the number of requests to which a program's times refer.
    pub fn describe_counts(self, program: &str) -> String {
        format!(
            "{program} runs for a fixed time, in which A completed {} requests and B {}: B's times are scaled to the requests of A",
            self.a, self.b
        )
    }
}

/// Time that one stage took in each of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageDifference {
    /// Stage that is compared between the two runs.
    pub stage: Stage,
    /// Time of the stage in the first run.
    pub a: Nanoseconds,
    /// Time of the stage in the second run.
    pub b: Nanoseconds,
}

impl StageDifference {
    /// Returns the additional time of the second run in nanoseconds; negative where it took less.
    pub fn difference_ns(&self) -> i64 {
        self.b.0 as i64 - self.a.0 as i64
    }
}

/// Contribution of one change, or of several inseparable ones, to a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contribution {
    /// Changed parameters with both values: `controller.data_late_per_sector: 0 to 0.0007`.
    #[serde(rename = "changes")]
    pub setting_changes: Vec<String>,
    /// Additional time of the second run due to the change, in nanoseconds; negative where the
    /// change makes it faster.
    #[serde(rename = "ns")]
    pub contribution_ns: i64,
}

/// Method by which the contributions to a difference were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContributionMethod {
    /// Mean over all orders of the changes. Every subset of them was run.
    AllOrders {
        /// Number of runs that the method made.
        runs: u32,
    },
    /// Mean over some random orders of the changes, from a fixed seed.
    SampledOrders {
        /// Number of orders that the method drew.
        orders: u32,
        /// Number of runs that the method made.
        runs: u32,
    },
}

/// Compares the stages of two accounts, with the second scaled to the work of the first. The scaled
/// stages still sum to the second's scaled time.
pub fn compare_stages(a: &TimeAccount, b: &TimeAccount, work: WorkRatio) -> Vec<StageDifference> {
    let share = |stage| i128::from(b.ledger.stage_duration(stage).0) * i128::from(work.a.max(1));
    let scaled = round_shares(&Stage::ALL.map(share), i128::from(work.b.max(1)));
    let of = |(stage, ns): (Stage, i64)| StageDifference {
        stage,
        a: a.ledger.stage_duration(stage),
        b: Nanoseconds(ns as u64),
    };
    let all = Stage::ALL.into_iter().zip(scaled).map(of);
    all.filter(|one| one.a.0 + one.b.0 > 0).collect()
}

/// Amount of work of two runs, in requests or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkRatio {
    /// Amount of work of the first run.
    pub a: u64,
    /// Amount of work of the second run.
    pub b: u64,
}

impl WorkRatio {
    /// Equal amounts of work in both runs, so that nothing is scaled.
    pub const EQUAL: Self = Self { a: 1, b: 1 };
}

impl From<RequestCounts> for WorkRatio {
    fn from(requests: RequestCounts) -> Self {
        Self {
            a: requests.a,
            b: requests.b,
        }
    }
}

/// Returns the contribution of each of `count` changes by the Shapley value (Shapley 1953). `of`
/// holds the elapsed time for each subset of the changes, one bit per change.
///
/// A contribution is the mean, over all orders of the changes, of what the change adds. The result
/// is exact: the parts sum to what all changes together add.
pub fn average_over_all_orders(count: usize, of: &[i64]) -> Vec<i64> {
    assert_eq!(of.len(), 1 << count, "an elapsed time for each subset");
    // A subset of s changes stands before another in s! (n - s - 1)! of the n!
    // orders.
    let factorial: Vec<i128> = (0..=count as i128)
        .scan(1, |product, n| {
            *product *= n.max(1);
            Some(*product)
        })
        .collect();
    let all = factorial[count];
    let share = |change: usize| -> i128 {
        (0..of.len())
            .filter(|subset| subset & (1 << change) == 0)
            .map(|subset| {
                let before = subset.count_ones() as usize;
                let orders = factorial[before] * factorial[count - before - 1];
                orders * i128::from(of[subset | (1 << change)] - of[subset])
            })
            .sum()
    };
    let shares: Vec<i128> = (0..count).map(share).collect();
    round_shares(&shares, all)
}

/// Rounds shares in parts of `of` to whole numbers with the same sum, which is a whole number. The
/// largest remainders are rounded up.
pub fn round_shares(shares: &[i128], of: i128) -> Vec<i64> {
    let mut whole: Vec<i64> = shares.iter().map(|one| one.div_euclid(of) as i64).collect();
    let sum: i128 = shares.iter().sum();
    let missing = sum.div_euclid(of) - whole.iter().map(|one| i128::from(*one)).sum::<i128>();
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by_key(|place| std::cmp::Reverse(shares[*place].rem_euclid(of)));
    for place in by_remainder.into_iter().take(missing as usize) {
        whole[place] += 1;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::{average_over_all_orders, round_shares};

    #[test]
    fn joint_effects_of_changes_are_shared() {
        // 1 costs 10, 2 costs 20, and both together 6 more.
        assert_eq!(average_over_all_orders(2, &[100, 110, 120, 136]), [13, 23]);
        // One that does nothing has no part.
        assert_eq!(average_over_all_orders(2, &[100, 100, 107, 107]), [0, 7]);
        assert_eq!(average_over_all_orders(0, &[5]), Vec::<i64>::new());
    }

    #[test]
    fn parts_sum_to_the_difference_whatever_is_rounded() {
        let of = [0, 1, 1, 2, 0, 0, 4, 11];
        assert_eq!(average_over_all_orders(3, &of).iter().sum::<i64>(), 11);
        assert_eq!(round_shares(&[-5, -5, 4], 3), [-1, -2, 1]);
    }
}

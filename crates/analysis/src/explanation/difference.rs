//! Why two runs of one program differ: stage by stage, what their spans alone
//! say is behind it, and, where both can be made again, parameter by parameter.

use super::Account;
use crate::diagnosis::Diagnosis;
use diskperf_timeline::{Nanoseconds, Stage};
use serde::Serialize;

/// Two runs, and why they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Differences {
    /// The first, in words.
    pub a: String,
    /// The second.
    pub b: String,
    /// Program by program.
    pub programs: Vec<Difference>,
    /// How the two were not made alike, where that cannot be tried out.
    pub unlike: Vec<String>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// Why one program differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The program.
    pub program: String,
    /// The first run's file system and drives, and the second's, where they
    /// are not the same.
    pub filesystems: (String, String),
    /// Drives that ran it at once.
    pub drives: (u32, u32),
    /// How long it took.
    pub elapsed: (Nanoseconds, Nanoseconds),
    /// Requests that each completed, of a program that lasts a time: all times of the
    /// second are then for as many as the first completed. Absent of a program that ends
    /// when its work is done.
    pub requests: Option<Requests>,
    /// What each stage took in both; stages that neither has are left out.
    pub stages: Vec<StageDifference>,
    /// What the spans alone say.
    pub diagnosis: Option<Diagnosis>,
    /// What each change from the first to the second accounts for: they sum to
    /// the difference. Empty where nothing is known to be changed.
    pub parts: Vec<Contribution>,
    /// How these were found.
    pub method: Option<Method>,
}

/// Requests that a program which lasts a time completed in either run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// In the first run.
    pub a: u64,
    /// In the second.
    pub b: u64,
}

impl Requests {
    /// Both, where they differ and neither is nothing.
    pub fn if_unlike(a: u64, b: u64) -> Option<Self> {
        (a != b && a > 0 && b > 0).then_some(Self { a, b })
    }

    /// Sentence that says of a program what its times are of.
    pub fn note(self, program: &str) -> String {
        format!(
            "{program} lasts a time, in which A completed {} requests and B {}: the time of each request is compared, and B's times are for as many requests as A's",
            self.a, self.b
        )
    }
}

/// A stage in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageDifference {
    /// Which.
    pub stage: Stage,
    /// In the first run.
    pub a: Nanoseconds,
    /// In the second.
    pub b: Nanoseconds,
}

impl StageDifference {
    /// How much more the second took.
    pub fn more_ns(&self) -> i64 {
        self.b.0 as i64 - self.a.0 as i64
    }
}

/// What one change, or several that go together, accounts for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contribution {
    /// `controller.data_late_per_sector: 0 to 0.0007`.
    pub changes: Vec<String>,
    /// How much longer the second run takes for it; less than nothing where it
    /// makes it faster.
    pub ns: i64,
}

/// How the parts of a difference were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Over all orders of the changes, by running every subset of them.
    AllOrders {
        /// Runs that were made.
        runs: u32,
    },
    /// Over some orders, drawn by chance from a fixed seed.
    SampledOrders {
        /// How many orders.
        orders: u32,
        /// Runs that were made.
        runs: u32,
    },
}

/// The stages of two accounts side by side, the second's as if it had done as much work
/// as the first; they still sum to its time.
pub fn stages(a: &Account, b: &Account, work: Work) -> Vec<StageDifference> {
    let share = |stage| i128::from(b.ledger.stage(stage).0) * i128::from(work.a.max(1));
    let scaled = rounded(&Stage::ALL.map(share), i128::from(work.b.max(1)));
    let of = |(stage, ns): (Stage, i64)| StageDifference {
        stage,
        a: a.ledger.stage(stage),
        b: Nanoseconds(ns as u64),
    };
    let all = Stage::ALL.into_iter().zip(scaled).map(of);
    all.filter(|one| one.a.0 + one.b.0 > 0).collect()
}

/// How much work each of two runs did, in requests or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The first run.
    pub a: u64,
    /// The second.
    pub b: u64,
}

impl Work {
    /// As much in both.
    pub const ALIKE: Self = Self { a: 1, b: 1 };
}

impl From<Requests> for Work {
    fn from(requests: Requests) -> Self {
        Self {
            a: requests.a,
            b: requests.b,
        }
    }
}

/// What each of `count` changes accounts for, when the elapsed time with the
/// changes of a subset (a bit for each) is `of`: the mean, over all orders in
/// which they may be made, of what each adds (Shapley 1953). Exact: the parts
/// sum to what all of them together add.
pub fn over_all_orders(count: usize, of: &[i64]) -> Vec<i64> {
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
    rounded(&shares, all)
}

/// Shares in parts of `of` as whole numbers that have the same sum, which is a
/// whole number: the largest remainders are rounded up.
pub fn rounded(shares: &[i128], of: i128) -> Vec<i64> {
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
    use super::{over_all_orders, rounded};

    #[test]
    fn what_changes_do_together_is_shared() {
        // 1 costs 10, 2 costs 20, and both together 6 more.
        assert_eq!(over_all_orders(2, &[100, 110, 120, 136]), [13, 23]);
        // One that does nothing has no part.
        assert_eq!(over_all_orders(2, &[100, 100, 107, 107]), [0, 7]);
        assert_eq!(over_all_orders(0, &[5]), Vec::<i64>::new());
    }

    #[test]
    fn parts_sum_to_the_difference_whatever_is_rounded() {
        let of = [0, 1, 1, 2, 0, 0, 4, 11];
        assert_eq!(over_all_orders(3, &of).iter().sum::<i64>(), 11);
        assert_eq!(rounded(&[-5, -5, 4], 3), [-1, -2, 1]);
    }
}

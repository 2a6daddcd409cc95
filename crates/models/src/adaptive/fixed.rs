//! Fixed settings of one workload. Each setting that can have an effect runs once.

use super::{
    AccessHint, AdaptiveRig, AdaptiveWorkload, CachePolicy, CacheStatistics, PolicyByClass,
    PolicyChooser, WorkloadTimes,
};
use crate::error::LaboratoryError;

/// Read-ahead distances of the search, in sectors: those of Zachariassen 1987 and some in between.
pub const LOOK_DISTANCES: [u32; 6] = [0, 10, 30, 60, 100, 244];

/// Results of one workload with each fixed setting tried so far.
pub struct FixedPolicyRuns {
    rig: AdaptiveRig,
    known_times: Vec<(PolicyByClass, WorkloadTimes)>,
}

impl FixedPolicyRuns {
    /// Creates an empty collection of results for the workload of a rig.
    pub fn new(rig: AdaptiveRig) -> Self {
        Self {
            rig,
            known_times: Vec::new(),
        }
    }

    /// Workload whose results are collected here.
    pub fn workload(&self) -> &AdaptiveWorkload {
        &self.rig.workload
    }

    /// Number of modelled machines that have run.
    pub fn run_count(&self) -> usize {
        self.known_times.len()
    }

    /// Returns the elapsed times with these policies. A known result is reused if its run never did
    /// anything for which its policies differ from these.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`AdaptiveRig::run`].
    pub fn times_with(
        &mut self,
        policies: PolicyByClass,
    ) -> Result<WorkloadTimes, LaboratoryError> {
        let same = |(other, took): &&(PolicyByClass, WorkloadTimes)| {
            effective_policies(policies, &took.seen) == effective_policies(*other, &took.seen)
        };
        if let Some((_, took)) = self.known_times.iter().find(same) {
            return Ok(*took);
        }
        let took = self.rig.run_workload(PolicyChooser::Driver(policies))?;
        self.known_times.push((policies, took));
        Ok(took)
    }

    /// Searches from a setting that is the same for all access classes. Each step changes one bit
    /// or the distance of one class and takes the best such change, until none is better.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`AdaptiveRig::run`].
    pub fn best_by_class(
        &mut self,
        (policy, took): (CachePolicy, WorkloadTimes),
    ) -> Result<(PolicyByClass, WorkloadTimes), LaboratoryError> {
        let seconds = took.counted_seconds(self.workload());
        let start = ([policy; AccessHint::ALL.len()], (seconds, took));
        let (policies, (_, took)) = descend_coordinates(start, |policies| {
            let took = self.times_with(policies)?;
            Ok((took.counted_seconds(self.workload()), took))
        })?;
        Ok((policies, took))
    }
}

/// Searches by access class for policies with a minimal measure, until no change of one class
/// reduces it. The first member of the measure is minimized.
pub(super) fn descend_coordinates<T: Copy>(
    start: (PolicyByClass, (f64, T)),
    mut measure: impl FnMut(PolicyByClass) -> Result<(f64, T), LaboratoryError>,
) -> Result<(PolicyByClass, (f64, T)), LaboratoryError> {
    let mut best = start;
    loop {
        let here = best;
        for class in AccessHint::ALL {
            for step in neighbour_policies(here.0[class as usize]) {
                let mut policies = here.0;
                policies[class as usize] = step;
                let measured = measure(policies)?;
                if measured.0 < best.1.0 {
                    best = (policies, measured);
                }
            }
        }
        if best.0 == here.0 {
            return Ok(best);
        }
    }
}

/// Policies that differ from the given one in one bit or in the distance.
fn neighbour_policies(policy: CachePolicy) -> Vec<CachePolicy> {
    let all = CachePolicy::all_effective(&LOOK_DISTANCES).into_iter();
    all.filter(|other| {
        let (mut one, mut other) = (policy, *other);
        let distance = usize::from(one.read_ahead_sectors != other.read_ahead_sectors);
        let bits = one.named_bits().into_iter().zip(other.named_bits());
        let bits = bits.filter(|((_, one), (_, other))| **one != **other);
        bits.count() + distance == 1
    })
    .collect()
}

/// Reduces policies to the parts that can have an effect in a run with these statistics.
fn effective_policies(policies: PolicyByClass, seen: &[CacheStatistics; 3]) -> PolicyByClass {
    let writes = seen.iter().any(|class| class.write_count > 0);
    let choices = seen.iter().any(|class| class.policy_choice_count > 0);
    let mut shows = policies.map(|policy| policy.without_ineffective_bits(writes, choices));
    for (policy, class) in shows.iter_mut().zip(seen) {
        if class.read_count + class.write_count == 0 {
            *policy = CachePolicy::default();
        }
    }
    shows
}

//! Comparison of several workloads, each with every setting.

use super::fixed::descend_coordinates;
use super::{
    AccessHint, AdaptiveRig, AdaptiveWorkload, CachePolicy, FixedPolicyRuns, PolicyByClass,
    PolicyChooser, WorkloadTimes,
};
use crate::crew::{Crew, SingleThread, lock_slot, results};
use crate::error::LaboratoryError;
use diskperf_catalogue::Catalogue;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Results of one workload with the adaptive controller and with fixed settings.
pub struct SetRow {
    /// Elapsed times of the workload with the adaptive controller.
    pub adaptive_times: WorkloadTimes,
    /// Best setting that is the same for all access classes, with its times.
    pub best_policy: (CachePolicy, WorkloadTimes),
    /// Best settings by access class and their times, found by a search from the best common
    /// setting.
    pub best_by_class: (PolicyByClass, WorkloadTimes),
    /// All results of the workload with fixed settings.
    pub fixed_runs: FixedPolicyRuns,
}

/// Results of several workloads, and the best fixed setting for all of them.
pub struct WorkloadSet {
    /// Results of each single workload.
    pub rows: Vec<SetRow>,
    /// Fixed setting that is best for all workloads together.
    pub best_over_all: BestOverAll,
}

/// A fixed setting, compared with the adaptive controller over several workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestOverAll {
    /// Best setting that is the same for all access classes.
    pub policy: CachePolicy,
    /// Geometric mean of the setting's times divided by those of the adaptive controller. It
    /// exceeds 1 if the controller is faster.
    pub time_ratio: f64,
    /// Result of a search by access class from the best common setting, with its ratio of times to
    /// the adaptive controller; `None` before the search.
    pub by_class: Option<(PolicyByClass, f64)>,
}

impl SetRow {
    /// Runs a workload with the adaptive controller and with each of these fixed settings, then
    /// searches by access class from the best of them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`AdaptiveRig::run`].
    pub fn new(rig: AdaptiveRig, policies: &[CachePolicy]) -> Result<Self, LaboratoryError> {
        let adaptive = rig.run_workload(PolicyChooser::Controller)?;
        let mut fixed = FixedPolicyRuns::new(rig);
        let mut best: Option<(CachePolicy, WorkloadTimes)> = None;
        for policy in policies {
            let took = fixed.times_with(same_for_all(*policy))?;
            let seconds = |took: &WorkloadTimes| took.counted_seconds(fixed.workload());
            if best.is_none_or(|(_, best)| seconds(&took) < seconds(&best)) {
                best = Some((*policy, took));
            }
        }
        let best = best.expect("some setting is tried");
        let by_class = fixed.best_by_class(best)?;
        Ok(Self {
            adaptive_times: adaptive,
            best_policy: best,
            best_by_class: by_class,
            fixed_runs: fixed,
        })
    }

    /// Workload whose results are collected here.
    pub fn workload(&self) -> &AdaptiveWorkload {
        self.fixed_runs.workload()
    }

    /// Time of the best fixed setting divided by that of the adaptive controller: 1 if both are
    /// equal, less if the controller is slower.
    pub fn share_of_best_policy(&self) -> f64 {
        let seconds = |took: &WorkloadTimes| took.counted_seconds(self.workload());
        seconds(&self.best_by_class.1) / seconds(&self.adaptive_times)
    }

    /// Time of the best fixed setting in the first pass divided by that of the adaptive controller,
    /// which has everything to learn in that pass.
    pub fn share_of_first_policy(&self) -> f64 {
        self.best_by_class.1.passes_s[0] / self.adaptive_times.passes_s[0]
    }

    fn log_ratio(&self, took: &WorkloadTimes) -> f64 {
        took.counted_seconds(self.workload()).ln()
    }
}

fn same_for_all(policy: CachePolicy) -> PolicyByClass {
    [policy; AccessHint::ALL.len()]
}

impl WorkloadSet {
    /// Runs every workload with the adaptive controller and with each of these fixed settings,
    /// several workloads in parallel. `progress` receives each finished row.
    ///
    /// # Errors
    ///
    /// Returns the error of the first workload that fails.
    pub fn run_set(
        catalogue: &Catalogue,
        workloads: &[AdaptiveWorkload],
        policies: &[CachePolicy],
        (crew, stop): (&dyn Crew, &Arc<AtomicBool>),
        progress: &(dyn Fn(&SetRow) + Sync),
    ) -> Result<Self, LaboratoryError> {
        let rigs = workloads
            .iter()
            .map(|workload| {
                AdaptiveRig::new(catalogue, workload, stop).map(|rig| Mutex::new(Some(rig)))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rows = results(crew, rigs.len(), |number| {
            let rig = lock_slot(&rigs[number]).take().expect("each is run once");
            let row = SetRow::new(rig, policies)?;
            progress(&row);
            Ok(row)
        });
        let mut rows = rows
            .into_iter()
            .collect::<Result<Vec<_>, LaboratoryError>>()?;
        let over_all = BestOverAll::find_best(&mut rows, policies)?;
        Ok(Self {
            rows,
            best_over_all: over_all,
        })
    }

    /// Searches by access class, from the fixed setting that is best for all workloads together.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`AdaptiveRig::run`].
    pub fn search_by_class(&mut self, crew: &dyn Crew) -> Result<(), LaboratoryError> {
        self.best_over_all.search_by_class(&mut self.rows, crew)
    }

    /// Smallest [`SetRow::share_of_best_policy`] among all workloads, for the workload on which the adaptive
    /// controller is worst.
    pub fn worst_share(&self) -> f64 {
        let shares = self.rows.iter().map(SetRow::share_of_best_policy);
        shares.fold(f64::INFINITY, f64::min)
    }

    /// Number of modelled machines that have run.
    pub fn run_count(&self) -> usize {
        self.rows
            .iter()
            .map(|row| 1 + row.fixed_runs.run_count())
            .sum()
    }
}

impl BestOverAll {
    /// Finds the setting with the smallest geometric mean of all workloads' times.
    fn find_best(rows: &mut [SetRow], policies: &[CachePolicy]) -> Result<Self, LaboratoryError> {
        let mut best: Option<Self> = None;
        for policy in policies {
            let ratio = mean_ratio(rows, same_for_all(*policy), &SingleThread)?;
            if best.is_none_or(|best| ratio < best.time_ratio) {
                best = Some(Self {
                    policy: *policy,
                    time_ratio: ratio,
                    by_class: None,
                });
            }
        }
        Ok(best.expect("some setting is tried"))
    }

    fn search_by_class(
        &mut self,
        rows: &mut [SetRow],
        crew: &dyn Crew,
    ) -> Result<(), LaboratoryError> {
        let start = (same_for_all(self.policy), (self.time_ratio, ()));
        let (policies, (least, ())) = descend_coordinates(start, |policies| {
            Ok((mean_ratio(rows, policies, crew)?, ()))
        })?;
        self.by_class = Some((policies, least));
        Ok(())
    }
}

/// Returns the geometric mean of the workloads' times with a setting, divided by those of the
/// adaptive controller.
fn mean_ratio(
    rows: &mut [SetRow],
    policies: PolicyByClass,
    crew: &dyn Crew,
) -> Result<f64, LaboratoryError> {
    let rows: Vec<Mutex<&mut SetRow>> = rows.iter_mut().map(Mutex::new).collect();
    let logs = results(crew, rows.len(), |number| {
        let row = &mut *lock_slot(&rows[number]);
        let took = row.fixed_runs.times_with(policies)?;
        Ok(row.log_ratio(&took) - row.log_ratio(&row.adaptive_times))
    });
    let logs = logs
        .into_iter()
        .collect::<Result<Vec<f64>, LaboratoryError>>()?;
    Ok((logs.iter().sum::<f64>() / rows.len() as f64).exp())
}

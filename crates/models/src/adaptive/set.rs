//! Comparison of several workloads, each with every setting.

use super::fixed::descend;
use super::{CachePolicy, Chooser, Fixed, Hint, Policies, Rig, Took, Workload};
use crate::crew::{Alone, Crew, lock, results};
use crate::error::LaboratoryError;
use diskperf_catalogue::Catalogue;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Results of one workload with the adaptive controller and with fixed settings.
pub struct Row {
    /// Elapsed times of the workload with the adaptive controller.
    pub adaptive: Took,
    /// Best setting that is the same for all access classes, with its times.
    pub best: (CachePolicy, Took),
    /// Best settings by access class and their times, found by a search from the best common
    /// setting.
    pub by_class: (Policies, Took),
    /// All results of the workload with fixed settings.
    pub fixed: Fixed,
}

/// Results of several workloads, and the best fixed setting for all of them.
pub struct Set {
    /// Results of each single workload.
    pub rows: Vec<Row>,
    /// Fixed setting that is best for all workloads together.
    pub over_all: OverAll,
}

/// A fixed setting, compared with the adaptive controller over several workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverAll {
    /// Best setting that is the same for all access classes.
    pub policy: CachePolicy,
    /// Geometric mean of the setting's times divided by those of the adaptive controller. It
    /// exceeds 1 if the controller is faster.
    pub ratio: f64,
    /// Result of a search by access class from the best common setting, with its ratio of times to
    /// the adaptive controller; `None` before the search.
    pub by_class: Option<(Policies, f64)>,
}

impl Row {
    /// Runs a workload with the adaptive controller and with each of these fixed settings, then
    /// searches by access class from the best of them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Rig::run`].
    pub fn new(rig: Rig, policies: &[CachePolicy]) -> Result<Self, LaboratoryError> {
        let adaptive = rig.run(Chooser::Controller)?;
        let mut fixed = Fixed::new(rig);
        let mut best: Option<(CachePolicy, Took)> = None;
        for policy in policies {
            let took = fixed.took(same(*policy))?;
            let seconds = |took: &Took| took.counted_s(fixed.workload());
            if best.is_none_or(|(_, best)| seconds(&took) < seconds(&best)) {
                best = Some((*policy, took));
            }
        }
        let best = best.expect("some setting is tried");
        let by_class = fixed.by_class(best)?;
        Ok(Self {
            adaptive,
            best,
            by_class,
            fixed,
        })
    }

    /// Workload whose results are collected here.
    pub fn workload(&self) -> &Workload {
        self.fixed.workload()
    }

    /// Time of the best fixed setting divided by that of the adaptive controller: 1 if both are
    /// equal, less if the controller is slower.
    pub fn share_of_best(&self) -> f64 {
        let seconds = |took: &Took| took.counted_s(self.workload());
        seconds(&self.by_class.1) / seconds(&self.adaptive)
    }

    /// Time of the best fixed setting in the first pass divided by that of the adaptive controller,
    /// which has everything to learn in that pass.
    pub fn share_at_first(&self) -> f64 {
        self.by_class.1.passes_s[0] / self.adaptive.passes_s[0]
    }

    fn log(&self, took: &Took) -> f64 {
        took.counted_s(self.workload()).ln()
    }
}

fn same(policy: CachePolicy) -> Policies {
    [policy; Hint::ALL.len()]
}

impl Set {
    /// Runs every workload with the adaptive controller and with each of these fixed settings,
    /// several workloads in parallel. `progress` receives each finished row.
    ///
    /// # Errors
    ///
    /// Returns the error of the first workload that fails.
    pub fn run(
        catalogue: &Catalogue,
        workloads: &[Workload],
        policies: &[CachePolicy],
        (crew, stop): (&dyn Crew, &Arc<AtomicBool>),
        progress: &(dyn Fn(&Row) + Sync),
    ) -> Result<Self, LaboratoryError> {
        let rigs = workloads
            .iter()
            .map(|workload| Rig::new(catalogue, workload, stop).map(|rig| Mutex::new(Some(rig))))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = results(crew, rigs.len(), |number| {
            let rig = lock(&rigs[number]).take().expect("each is run once");
            let row = Row::new(rig, policies)?;
            progress(&row);
            Ok(row)
        });
        let mut rows = rows
            .into_iter()
            .collect::<Result<Vec<_>, LaboratoryError>>()?;
        let over_all = OverAll::find(&mut rows, policies)?;
        Ok(Self { rows, over_all })
    }

    /// Searches by access class, from the fixed setting that is best for all workloads together.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Rig::run`].
    pub fn search_by_class(&mut self, crew: &dyn Crew) -> Result<(), LaboratoryError> {
        self.over_all.search_by_class(&mut self.rows, crew)
    }

    /// Smallest [`Row::share_of_best`] among all workloads, for the workload on which the adaptive
    /// controller is worst.
    pub fn worst(&self) -> f64 {
        let shares = self.rows.iter().map(Row::share_of_best);
        shares.fold(f64::INFINITY, f64::min)
    }

    /// Number of modelled machines that have run.
    pub fn runs(&self) -> usize {
        self.rows.iter().map(|row| 1 + row.fixed.runs()).sum()
    }
}

impl OverAll {
    /// Finds the setting with the smallest geometric mean of all workloads' times.
    fn find(rows: &mut [Row], policies: &[CachePolicy]) -> Result<Self, LaboratoryError> {
        let mut best: Option<Self> = None;
        for policy in policies {
            let ratio = ratio(rows, same(*policy), &Alone)?;
            if best.is_none_or(|best| ratio < best.ratio) {
                best = Some(Self {
                    policy: *policy,
                    ratio,
                    by_class: None,
                });
            }
        }
        Ok(best.expect("some setting is tried"))
    }

    fn search_by_class(
        &mut self,
        rows: &mut [Row],
        crew: &dyn Crew,
    ) -> Result<(), LaboratoryError> {
        let start = (same(self.policy), (self.ratio, ()));
        let (policies, (least, ())) =
            descend(start, |policies| Ok((ratio(rows, policies, crew)?, ())))?;
        self.by_class = Some((policies, least));
        Ok(())
    }
}

/// Returns the geometric mean of the workloads' times with a setting, divided by those of the
/// adaptive controller.
fn ratio(rows: &mut [Row], policies: Policies, crew: &dyn Crew) -> Result<f64, LaboratoryError> {
    let rows: Vec<Mutex<&mut Row>> = rows.iter_mut().map(Mutex::new).collect();
    let logs = results(crew, rows.len(), |number| {
        let row = &mut *lock(&rows[number]);
        let took = row.fixed.took(policies)?;
        Ok(row.log(&took) - row.log(&row.adaptive))
    });
    let logs = logs
        .into_iter()
        .collect::<Result<Vec<f64>, LaboratoryError>>()?;
    Ok((logs.iter().sum::<f64>() / rows.len() as f64).exp())
}

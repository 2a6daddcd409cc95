//! Several workloads, each with every setting.

use super::fixed::descend;
use super::{Chooser, Fixed, Hint, Policies, Policy, Rig, Took, Workload};
use crate::crew::{Alone, Crew, lock, results};
use crate::error::LaboratoryError;
use diskperf_catalogue::Catalogue;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// What became of one workload.
pub struct Row {
    /// The controller that adapts.
    pub adaptive: Took,
    /// The best of the settings that are the same for all classes.
    pub best: (Policy, Took),
    /// What a search from there, class by class, came to.
    pub by_class: (Policies, Took),
    /// What has been run.
    pub fixed: Fixed,
}

/// What became of several.
pub struct Set {
    /// Each of them.
    pub rows: Vec<Row>,
    /// The fixed setting that is best over all, class by class.
    pub over_all: OverAll,
}

/// A fixed setting over several workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverAll {
    /// The best that is the same for all classes.
    pub policy: Policy,
    /// The geometric mean of its seconds, over that of the controller that
    /// adapts: more than 1 where that is faster.
    pub ratio: f64,
    /// What a search from there, class by class, came to, if there was one; and
    /// the same of it.
    pub by_class: Option<(Policies, f64)>,
}

impl Row {
    /// Runs a workload with the controller that adapts and with these fixed
    /// settings, then class by class from the best of them.
    ///
    /// # Errors
    ///
    /// As [`Rig::run`].
    pub fn new(rig: Rig, policies: &[Policy]) -> Result<Self, LaboratoryError> {
        let adaptive = rig.run(Chooser::Controller)?;
        let mut fixed = Fixed::new(rig);
        let mut best: Option<(Policy, Took)> = None;
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

    /// Which one.
    pub fn workload(&self) -> &Workload {
        self.fixed.workload()
    }

    /// The seconds of the best fixed setting over those of the controller that
    /// adapts: 1 where it is as fast, less where it is slower.
    pub fn share_of_best(&self) -> f64 {
        let seconds = |took: &Took| took.counted_s(self.workload());
        seconds(&self.by_class.1) / seconds(&self.adaptive)
    }

    /// The same of the first pass, in which it had everything to learn.
    pub fn share_at_first(&self) -> f64 {
        self.by_class.1.passes_s[0] / self.adaptive.passes_s[0]
    }

    fn log(&self, took: &Took) -> f64 {
        took.counted_s(self.workload()).ln()
    }
}

fn same(policy: Policy) -> Policies {
    [policy; Hint::ALL.len()]
}

impl Set {
    /// Runs every workload with the controller that adapts and with these fixed
    /// settings, several workloads at a time; tells of each row.
    ///
    /// # Errors
    ///
    /// What the first workload to fail fails with.
    pub fn run(
        catalogue: &Catalogue,
        workloads: &[Workload],
        policies: &[Policy],
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

    /// Searches, class by class, from the setting that is best over all.
    ///
    /// # Errors
    ///
    /// As [`Rig::run`].
    pub fn search_by_class(&mut self, crew: &dyn Crew) -> Result<(), LaboratoryError> {
        self.over_all.search_by_class(&mut self.rows, crew)
    }

    /// The least of the rows' [`Row::share_of_best`].
    pub fn worst(&self) -> f64 {
        let shares = self.rows.iter().map(Row::share_of_best);
        shares.fold(f64::INFINITY, f64::min)
    }

    /// Machines that were run.
    pub fn runs(&self) -> usize {
        self.rows.iter().map(|row| 1 + row.fixed.runs()).sum()
    }
}

impl OverAll {
    /// The setting with the least geometric mean of the rows' seconds.
    fn find(rows: &mut [Row], policies: &[Policy]) -> Result<Self, LaboratoryError> {
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

/// The geometric mean of the rows' seconds with a setting, over that of the
/// controller that adapts.
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

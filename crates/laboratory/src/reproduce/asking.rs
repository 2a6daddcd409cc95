//! What every document is reproduced with, and the values that come of it.

use super::jobs::{Figure, Job, Workshop};
use diskperf_analysis::accuracy::TwoDrives;
use diskperf_battery::Program;
use diskperf_catalogue::{Catalogue, Cell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::Computer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is asked of the models, and who runs them.
pub(super) struct Asking<'a> {
    pub(super) catalogue: &'a Catalogue,
    /// The user's changes to every system.
    pub(super) settings: &'a [Setting],
    pub(super) seed: u64,
    pub(super) two_drives: &'a TwoDrives,
    pub(super) workshop: &'a Workshop<'a>,
}

impl Asking<'_> {
    /// The settings of a case, which those of the user overrule.
    pub(super) fn over(&self, own: &[Setting]) -> Vec<Setting> {
        own.iter().chain(self.settings).cloned().collect()
    }

    /// The settings of a case that is what is tried, whatever the user sets.
    pub(super) fn under(&self, own: impl IntoIterator<Item = Setting>) -> Vec<Setting> {
        self.settings.iter().cloned().chain(own).collect()
    }

    /// One program on the first drive of a system, one round to clear the cache
    /// and two that count.
    pub(super) fn job(
        &self,
        target: &str,
        own: &[Setting],
        program: Program,
        size_bytes: u64,
    ) -> Result<Job, LaboratoryError> {
        let computer = Computer::read(self.catalogue, target, &self.over(own))?;
        Ok(Job::of(Arc::new(computer), program, size_bytes, self.seed))
    }

    /// The figures of jobs of one program each, in their order.
    pub(super) fn figures(&self, jobs: &[Job]) -> Result<Vec<Figure>, LaboratoryError> {
        let done = self.workshop.carry_out(jobs)?;
        Ok(done.into_iter().flatten().collect())
    }

    /// KB/s of jobs of one program each, in their order.
    pub(super) fn rates(&self, jobs: &[Job]) -> Result<Vec<f64>, LaboratoryError> {
        let figures = self.figures(jobs)?;
        Ok(figures.iter().map(|figure| figure.kb_per_s).collect())
    }
}

/// Settings of a case, from paths and values.
pub(super) fn settings(pairs: &[(&str, &str)]) -> Vec<Setting> {
    let setting = |(path, text): &(&str, &str)| Setting::new(path, text);
    pairs.iter().map(setting).collect()
}

/// Modelled values by the ids of their cells, each in its cell's quantity.
#[derive(Default)]
pub(super) struct Values(BTreeMap<String, f64>);

impl Values {
    /// The modelled value of a cell, if a model has one.
    pub(super) fn of(&self, cell: &Cell) -> Option<f64> {
        self.by_id(cell.id.as_deref()?)
    }

    pub(super) fn by_id(&self, id: &str) -> Option<f64> {
        self.0.get(id).copied()
    }

    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = (String, f64)>) {
        self.0.extend(more);
    }
}

impl FromIterator<(String, f64)> for Values {
    fn from_iter<I: IntoIterator<Item = (String, f64)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl IntoIterator for Values {
    type Item = (String, f64);
    type IntoIter = std::collections::btree_map::IntoIter<String, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

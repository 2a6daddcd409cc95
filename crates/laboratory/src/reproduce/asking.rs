//! Context that all documents are reproduced in, and the modelled values of their cells.

use super::jobs::{ModelFigures, ModelJob, ModelWorkshop};
use diskperf_analysis::accuracy::TwoDriveSettings;
use diskperf_battery::Program;
use diskperf_catalogue::{Catalogue, PublishedCell, Setting};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Context of a reproduction: catalogue, settings, and the executor of the modelled jobs.
pub(super) struct ModelQueries<'a> {
    pub(super) catalogue: &'a Catalogue,
    /// User's settings, which apply to every system.
    pub(super) settings: &'a [Setting],
    pub(super) seed: u64,
    pub(super) two_drives: &'a TwoDriveSettings,
    pub(super) workshop: &'a ModelWorkshop<'a>,
}

impl ModelQueries<'_> {
    /// Combines the settings of a case with those of the user, which take precedence.
    pub(super) fn own_settings_last(&self, own: &[Setting]) -> Vec<Setting> {
        own.iter().chain(self.settings).cloned().collect()
    }

    /// Combines the user's settings with those that define the case, which take precedence.
    pub(super) fn own_settings_first(
        &self,
        own: impl IntoIterator<Item = Setting>,
    ) -> Vec<Setting> {
        self.settings.iter().cloned().chain(own).collect()
    }

    /// Creates a job: one program on the first drive of a system, with one round to clear the cache
    /// and two that count.
    pub(super) fn build_job(
        &self,
        target: &str,
        own: &[Setting],
        program: Program,
        size_bytes: u64,
    ) -> Result<ModelJob, LaboratoryError> {
        let computer =
            ModelComputer::read_catalogue(self.catalogue, target, &self.own_settings_last(own))?;
        Ok(ModelJob::from_repetitions(
            Arc::new(computer),
            program,
            size_bytes,
            self.seed,
        ))
    }

    pub(super) fn run_figures(
        &self,
        jobs: &[ModelJob],
    ) -> Result<Vec<ModelFigures>, LaboratoryError> {
        let done = self.workshop.run_jobs(jobs)?;
        Ok(done.into_iter().flatten().collect())
    }

    /// Runs jobs of one program each and returns their rates in KB/s, in the order of the jobs.
    pub(super) fn run_rates(&self, jobs: &[ModelJob]) -> Result<Vec<f64>, LaboratoryError> {
        let figures = self.run_figures(jobs)?;
        Ok(figures.iter().map(|figure| figure.kb_per_s).collect())
    }
}

pub(super) fn parse_settings(pairs: &[(&str, &str)]) -> Vec<Setting> {
    let setting = |(path, text): &(&str, &str)| Setting::new(path, text);
    pairs.iter().map(setting).collect()
}

/// Modelled values of published cells, by cell id. Each value has the quantity of its cell.
#[derive(Default)]
pub(super) struct CellValues(BTreeMap<String, f64>);

impl CellValues {
    /// Returns the modelled value of a cell, if a model has one.
    pub(super) fn value_of_cell(&self, cell: &PublishedCell) -> Option<f64> {
        self.value_of_id(cell.id.as_deref()?)
    }

    pub(super) fn value_of_id(&self, id: &str) -> Option<f64> {
        self.0.get(id).copied()
    }

    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = (String, f64)>) {
        self.0.extend(more);
    }
}

impl FromIterator<(String, f64)> for CellValues {
    fn from_iter<I: IntoIterator<Item = (String, f64)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl IntoIterator for CellValues {
    type Item = (String, f64);
    type IntoIter = std::collections::btree_map::IntoIter<String, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

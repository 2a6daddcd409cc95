//! Accuracy card: published figures beside modelled ones.

use crate::errors::to_exception;
use crate::interruptible::run_interruptible;
use crate::run::ChartParts;
use diskperf_analysis::accuracy;
use diskperf_analysis::report::{self, ReportFormat, html};
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::reproduce::{ReproduceOptions, reproduce_with};
use diskperf_machine::RunBudget;
use diskperf_models::model::{load_catalogue, parse_settings};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Accuracy card with its tables and charts.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Card {
    accuracy_card: accuracy::AccuracyCard,
}

#[pymethods]
impl Card {
    /// Returns the JSON of `diskperf reproduce --format json`.
    fn json(&self) -> String {
        report::render_card(&self.accuracy_card, ReportFormat::Json, 0)
    }

    /// Returns the tables of `diskperf reproduce`, at most `width` columns wide.
    fn text(&self, width: u16) -> String {
        report::render_card(&self.accuracy_card, ReportFormat::Table, width)
    }

    /// Returns the charts of the card's page.
    fn charts(&self) -> Vec<ChartParts> {
        let charts = html::build_card_charts(&self.accuracy_card).into_iter();
        charts.map(ChartParts::from).collect()
    }
}

/// Keywords of an accuracy card, as `python/diskperf/_reproduce.py` collects them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReproduceArguments {
    documents: Vec<String>,
    settings: Vec<String>,
    cells: Vec<String>,
    table: Option<String>,
    catalogue: Option<PathBuf>,
    seed: u64,
    threads: Option<usize>,
}

/// Models the published measurements and returns the accuracy card.
#[pyfunction]
pub(crate) fn reproduce(py: Python<'_>, asked: ReproduceArguments) -> PyResult<Card> {
    let card = run_interruptible(py, |stop| {
        let catalogue = load_catalogue(asked.catalogue.as_deref())?;
        let options = ReproduceOptions {
            documents: asked.documents,
            settings: parse_settings(&asked.settings)?,
            thread_count: asked.threads.unwrap_or_else(available_threads),
            seed: asked.seed,
            cell_patterns: asked.cells,
            table_title: asked.table,
            catalogue: asked.catalogue,
            budget: RunBudget::DEFAULT,
            stop: Arc::clone(stop),
        };
        reproduce_with(&catalogue, &options, &|_, _| ())
    })?;
    let card = card.map_err(|error| to_exception(py, &error))?;
    Ok(Card {
        accuracy_card: card,
    })
}

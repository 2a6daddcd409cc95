//! Published numbers beside modelled ones.

use crate::errors::exception;
use crate::interruptible::interruptible;
use crate::run::parts;
use diskperf_analysis::accuracy;
use diskperf_analysis::report::{self, Format, html};
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::reproduce::{Options, reproduce_with};
use diskperf_machine::RunBudget;
use diskperf_models::model::{load_catalogue, settings};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// An accuracy card.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Card {
    card: accuracy::Card,
}

#[pymethods]
impl Card {
    /// The JSON of `diskperf reproduce --format json`.
    fn json(&self) -> String {
        report::card(&self.card, Format::Json, 0)
    }

    /// The tables of `diskperf reproduce`, as wide as this many columns.
    fn text(&self, width: u16) -> String {
        report::card(&self.card, Format::Table, width)
    }

    /// The charts of the card as a page: name, title, caption and the Vega-Lite
    /// specification as JSON.
    fn charts(&self) -> Vec<(String, String, String, String)> {
        let charts = html::card_charts(&self.card).into_iter();
        charts.map(parts).collect()
    }
}

/// How a card is asked for, as `python/diskperf/_reproduce.py` gathers it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    documents: Vec<String>,
    settings: Vec<String>,
    cells: Vec<String>,
    table: Option<String>,
    catalogue: Option<PathBuf>,
    seed: u64,
    threads: Option<usize>,
}

/// The accuracy card.
#[pyfunction]
pub(crate) fn reproduce(py: Python<'_>, asked: Asked) -> PyResult<Card> {
    let card = interruptible(py, |stop| {
        let catalogue = load_catalogue(asked.catalogue.as_deref())?;
        let options = Options {
            documents: asked.documents,
            settings: settings(&asked.settings)?,
            threads: asked.threads.unwrap_or_else(available_threads),
            seed: asked.seed,
            cells: asked.cells,
            table: asked.table,
            catalogue: asked.catalogue,
            budget: RunBudget::DEFAULT,
            stop: Arc::clone(stop),
        };
        reproduce_with(&catalogue, &options, &|_, _| ())
    })?;
    let card = card.map_err(|error| exception(py, &error))?;
    Ok(Card { card })
}

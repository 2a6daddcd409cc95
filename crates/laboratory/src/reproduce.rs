//! Published results beside modelled ones: the accuracy card, and the cells that a calibration
//! requests.
//!
//! A cell names its system, its file system, its program and the number of drives that ran it. The
//! programs are those of the battery, under the protocol of Kridle and McKusick 1983: a fresh file
//! system and four programs in the script's order, each three times, the first time to clear the
//! cache. The rate of two drives depends on the relative position of their spindles, so their
//! figures are means over evenly spaced relative phases. No phase and no seed is chosen for a cell.

mod asking;
mod document;
mod filling;
mod free;
mod gaps;
pub(crate) mod glob;
mod interleave;
pub(crate) mod jobs;
mod kirkendall;
mod notes;
pub mod real_drives;
mod setups;
mod speck;
mod statements;
mod zachariassen;

use crate::crew::{ThreadCrew, available_threads};
use diskperf_analysis::accuracy::{AccuracyCard, CellQuantity};
use diskperf_catalogue::{Catalogue, PublishedValues, Setting};
use diskperf_machine::RunBudget;
use diskperf_models::LaboratoryError;
use diskperf_models::crew::WatchedCrew;
use jobs::ModelWorkshop;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use diskperf_models::two_drives::two_drive_settings;

/// Selection of published cells to reproduce, and options of their runs.
#[derive(Clone)]
pub struct ReproduceOptions {
    /// Documents to reproduce, such as `kridle-mckusick-1983`; empty for all documents with models.
    pub documents: Vec<String>,
    /// Settings that apply to every reproduced system.
    pub settings: Vec<Setting>,
    /// Number of machines that run in parallel. The results do not depend on it.
    pub thread_count: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Patterns of cell ids to reproduce, in which `*` stands for any characters; empty for all
    /// cells.
    pub cell_patterns: Vec<String>,
    /// Table to reproduce; `None` for all tables.
    pub table_title: Option<String>,
    /// User's folder that overlays the catalogue, which may hold further notes.
    pub catalogue: Option<PathBuf>,
    /// Budget of events, virtual time and memory for each machine.
    pub budget: RunBudget,
    /// Flag that is set when the user ends the reproduction.
    pub stop: Arc<AtomicBool>,
}

impl Default for ReproduceOptions {
    fn default() -> Self {
        Self {
            documents: Vec::new(),
            settings: Vec::new(),
            thread_count: available_threads(),
            seed: DEFAULT_SEED,
            cell_patterns: Vec::new(),
            table_title: None,
            catalogue: None,
            budget: RunBudget::DEFAULT,
            stop: Arc::default(),
        }
    }
}

/// Default seed: the year of the first document.
pub const DEFAULT_SEED: u64 = 1983;

/// Makes the accuracy card.
///
/// # Errors
///
/// Returns an error if a document is unknown, if the catalogue or a setting is faulty, or if a
/// machine fails.
pub fn reproduce(
    catalogue: &Catalogue,
    options: &ReproduceOptions,
) -> Result<AccuracyCard, LaboratoryError> {
    reproduce_with(catalogue, options, &|_, _| ())
}

/// Makes the accuracy card and reports the number of machines that have run, and their total.
///
/// # Errors
///
/// Returns the errors of [`reproduce`].
pub fn reproduce_with(
    catalogue: &Catalogue,
    options: &ReproduceOptions,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<AccuracyCard, LaboratoryError> {
    let crew = WatchedCrew {
        crew: &ThreadCrew(options.thread_count.max(1)),
        stop: &options.stop,
        progress,
    };
    filling::build_card(
        catalogue,
        options,
        &ModelWorkshop::new(crew, options.budget),
    )
}

/// Description of a published cell for the accuracy card.
struct CellDescription {
    quantity: CellQuantity,
    /// Value that the document prints. None if the cell only compares.
    printed_value: Option<f64>,
    /// Name of the test of the cell.
    test: Option<String>,
}

/// Modelled rate and CPU share of a published cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelledCell {
    /// Id of the cell, as it was requested.
    pub id: String,
    /// Transfer rate in KB/s: the mean over the spindle phases and seeds.
    pub kb_per_s: f64,
    /// CPU time in percent of the elapsed time: the mean over the spindle phases and seeds.
    pub cpu_percent: f64,
}

/// Returns the modelled KB/s and CPU share of cells of Kridle and McKusick 1983, in the order of
/// the ids. The settings apply to every system of the cells. An id with `#cpu` stands for that of
/// its cell.
///
/// # Errors
///
/// Returns the errors of [`reproduce`], and an error for an id that no document has or that names
/// no program on a modelled system.
pub fn run_cells(
    catalogue: &Catalogue,
    settings: &[Setting],
    ids: &[&str],
    threads: usize,
) -> Result<Vec<ModelledCell>, LaboratoryError> {
    let published = read_published(catalogue)?;
    let stop = Arc::default();
    let crew = WatchedCrew {
        crew: &ThreadCrew(threads.max(1)),
        stop: &stop,
        progress: &|_, _| (),
    };
    let workshop = ModelWorkshop::new(crew, RunBudget::DEFAULT);
    let mut wanted = Vec::new();
    for id in ids {
        let plain = id.strip_suffix("#cpu").unwrap_or(id);
        let cell = published
            .find_cell(plain)
            .ok_or_else(|| unknown_cell_error(plain))?;
        let place = setups::TablePlace::from_cell(cell).ok_or_else(|| {
            LaboratoryError::Request(format!("cell `{id}` names no program on a modelled system"))
        })?;
        wanted.push(place);
    }
    let places: Vec<&setups::TablePlace> = wanted.iter().collect();
    let two = two_drive_settings();
    let figures = setups::run_figures(
        catalogue,
        settings,
        (&places, DEFAULT_SEED),
        &two,
        &workshop,
    )?;
    Ok(ids
        .iter()
        .zip(&wanted)
        .map(|(id, place)| {
            let figure = &figures[place];
            ModelledCell {
                id: (*id).to_owned(),
                kb_per_s: figure.kb_per_s.mean,
                cpu_percent: figure.cpu_percent.mean,
            }
        })
        .collect())
}

pub(crate) fn read_published(catalogue: &Catalogue) -> Result<PublishedValues, LaboratoryError> {
    catalogue
        .published_values()
        .map_err(LaboratoryError::catalogue)
}

fn unknown_cell_error(id: &str) -> LaboratoryError {
    LaboratoryError::Request(format!(
        "no document has a cell `{id}`; `diskperf list published` names the documents, and `diskperf reproduce DOCUMENT --format csv` their cells"
    ))
}

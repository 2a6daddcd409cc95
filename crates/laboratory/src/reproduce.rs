//! Published numbers beside modelled ones: the accuracy card, and the cells
//! that a calibration asks for.
//!
//! A cell names its system, its file system, its program and how many drives
//! ran it. The programs are the battery's, under the protocol of Kridle and McKusick 1983: a
//! fresh file system, four programs in the script's order, each three times,
//! the first time to clear the cache. What two drives do depends on how their
//! spindles stand to each other, so their figures are means over evenly
//! spaced relative phases. No phase and no seed is chosen for a cell.

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

use crate::crew::{Threads, available_threads};
use diskperf_analysis::accuracy::Card;
use diskperf_catalogue::{Catalogue, Published, Setting};
use diskperf_machine::Budget;
use diskperf_models::LaboratoryError;
use diskperf_models::crew::Watched;
use jobs::Workshop;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use diskperf_models::two_drives::two_drives;

/// What is reproduced, and how.
#[derive(Clone)]
pub struct Options {
    /// The documents: `kridle-mckusick-1983`; all that have models if empty.
    pub documents: Vec<String>,
    /// Changes to every system.
    pub settings: Vec<Setting>,
    /// Machines at a time; the results do not depend on it.
    pub threads: usize,
    /// Of all random choices.
    pub seed: u64,
    /// Only cells whose id fits one of these patterns, in which `*` stands for
    /// any characters; all cells if empty.
    pub cells: Vec<String>,
    /// Only cells of this table.
    pub table: Option<String>,
    /// The folder laid over the catalogue, for its notes.
    pub catalogue: Option<PathBuf>,
    /// What each machine may take.
    pub budget: Budget,
    /// Set when the user ends it.
    pub stop: Arc<AtomicBool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            documents: Vec::new(),
            settings: Vec::new(),
            threads: available_threads(),
            seed: SEED,
            cells: Vec::new(),
            table: None,
            catalogue: None,
            budget: Budget::USUAL,
            stop: Arc::default(),
        }
    }
}

/// The seed where none is asked for: the year of the first document.
pub const SEED: u64 = 1983;

/// The accuracy card.
///
/// # Errors
///
/// An unknown document, a catalogue or a setting that is wrong, a machine that
/// fails.
pub fn reproduce(catalogue: &Catalogue, options: &Options) -> Result<Card, LaboratoryError> {
    reproduce_with(catalogue, options, &|_, _| ())
}

/// The same, telling how many machines have run, and of how many.
///
/// # Errors
///
/// As [`reproduce`].
pub fn reproduce_with(
    catalogue: &Catalogue,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Card, LaboratoryError> {
    let crew = Watched {
        crew: &Threads(options.threads.max(1)),
        stop: &options.stop,
        progress,
    };
    filling::card(catalogue, options, &Workshop::new(crew, options.budget))
}

/// The modelled KB/s and CPU share of these cells of Kridle and McKusick 1983, in the order
/// asked for, with changes to every system that they are about. An id with
/// `#cpu` is that of its cell.
///
/// # Errors
///
/// An id that no document has or that names no program on a modelled system,
/// and as [`reproduce`].
pub fn cells(
    catalogue: &Catalogue,
    settings: &[Setting],
    ids: &[&str],
    threads: usize,
) -> Result<Vec<(String, f64, f64)>, LaboratoryError> {
    let published = published(catalogue)?;
    let stop = Arc::default();
    let crew = Watched {
        crew: &Threads(threads.max(1)),
        stop: &stop,
        progress: &|_, _| (),
    };
    let workshop = Workshop::new(crew, Budget::USUAL);
    let mut wanted = Vec::new();
    for id in ids {
        let plain = id.strip_suffix("#cpu").unwrap_or(id);
        let cell = published.cell(plain).ok_or_else(|| unknown_cell(plain))?;
        let place = setups::Place::of(cell).ok_or_else(|| {
            LaboratoryError::Request(format!("cell `{id}` names no program on a modelled system"))
        })?;
        wanted.push(place);
    }
    let places: Vec<&setups::Place> = wanted.iter().collect();
    let two = two_drives();
    let figures = setups::figures(catalogue, settings, (&places, SEED), &two, &workshop)?;
    Ok(ids
        .iter()
        .zip(&wanted)
        .map(|(id, place)| {
            let figure = &figures[place];
            (
                (*id).to_owned(),
                figure.kb_per_s.mean,
                figure.cpu_percent.mean,
            )
        })
        .collect())
}

pub(crate) fn published(catalogue: &Catalogue) -> Result<Published, LaboratoryError> {
    catalogue.published().map_err(LaboratoryError::catalogue)
}

fn unknown_cell(id: &str) -> LaboratoryError {
    LaboratoryError::Request(format!(
        "no document has a cell `{id}`; `diskperf list published` names the documents, and `diskperf reproduce DOCUMENT --format csv` their cells"
    ))
}

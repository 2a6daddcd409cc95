//! `diskperf reproduce`.

use super::{Outcome, stop_on_signals};
use crate::arguments::ReproduceArguments;
use crate::output::{print, width};
use crate::progress::MachinesProgress;
use diskperf_laboratory::analysis::report;
use diskperf_laboratory::model::{load_catalogue, settings};
use diskperf_laboratory::reproduce::{Options, available_threads, reproduce_with};
use std::process::ExitCode;

/// The accuracy card.
pub(crate) fn reproduce(arguments: &ReproduceArguments) -> Outcome {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let options = Options {
        documents: arguments.documents.clone(),
        settings: settings(&arguments.settings)?,
        threads: arguments
            .threads
            .map_or_else(available_threads, |threads| threads as usize),
        seed: arguments.seed,
        cell: arguments.cell.clone(),
        table: arguments.table.clone(),
        catalogue: arguments.catalogue.clone(),
        stop: stop_on_signals()?,
    };
    let progress = MachinesProgress::new(arguments.quiet);
    let card = reproduce_with(&catalogue, &options, &|done, of| progress.show(done, of))?;
    drop(progress);
    print(&report::card(&card, arguments.format.into(), width()));
    Ok(ExitCode::SUCCESS)
}

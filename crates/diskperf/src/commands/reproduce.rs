//! `diskperf reproduce`.

use super::Outcome;
use crate::arguments::ReproduceArguments;
use crate::output::{print, width};
use crate::progress::MachinesProgress;
use crate::signals::stop_on_signals;
use diskperf_laboratory::analysis::report;
use diskperf_laboratory::model::{load_catalogue, settings};
use diskperf_laboratory::reproduce::{Options, reproduce_with};
use diskperf_laboratory::runs::{check_writable, write_file};
use std::process::ExitCode;

/// The accuracy card.
pub(crate) fn reproduce(arguments: &ReproduceArguments) -> Outcome {
    if let Some(path) = &arguments.report {
        check_writable(path)?;
    }
    let catalogue = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let options = Options {
        documents: arguments.documents.clone(),
        settings: settings(&arguments.settings)?,
        threads: arguments.machines.threads(),
        seed: arguments.machines.seed,
        cells: arguments.cell.iter().cloned().collect(),
        table: arguments.table.clone(),
        catalogue: arguments.machines.catalogue.clone(),
        stop: stop_on_signals()?,
    };
    let progress = MachinesProgress::new(arguments.machines.quiet);
    let card = reproduce_with(&catalogue, &options, &|done, of| progress.show(done, of))?;
    drop(progress);
    if let Some(path) = &arguments.report {
        write_file(path, report::html::card(&card).as_bytes())?;
    }
    print(&report::card(
        &card,
        arguments.machines.format.into(),
        width(),
    ));
    Ok(ExitCode::SUCCESS)
}

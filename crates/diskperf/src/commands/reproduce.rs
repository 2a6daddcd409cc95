//! Command `diskperf reproduce`: compares the models with published measurements.

use super::{CommandResult, DONE, FAILED};
use crate::arguments::ReproduceArguments;
use crate::output::{print, width};
use crate::progress::ModelRunDisplay;
use crate::signals::stop_on_signals;
use diskperf_analysis::report;
use diskperf_laboratory::reproduce::{ReproduceOptions, real_drives, reproduce_with};
use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_machine::RunBudget;
use diskperf_models::model::load_catalogue;
use std::path::Path;

/// Name given in place of a document for drives measured by others.
const REAL_DRIVES: &str = "real-drives";

/// Executes `diskperf reproduce`: prints the accuracy card.
pub(crate) fn reproduce(arguments: &ReproduceArguments) -> CommandResult {
    let asks_for_drives = arguments.documents.iter().any(|one| one == REAL_DRIVES);
    match (&arguments.data, asks_for_drives) {
        (Some(data), true) => return real_drives(arguments, data),
        (None, true) => {
            return Err(request_error(
                "real-drives are those of a directory: name it with --data",
            ));
        }
        (Some(_), false) => {
            let error = "--data is a directory of measured drives: give it as `reproduce real-drives --data DIR`";
            return Err(request_error(error));
        }
        (None, false) => {}
    }
    let page = match &arguments.report {
        Some(path) => Some(Output::open_beside_table("--report", path)?),
        None => None,
    };
    let catalogue = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let options = ReproduceOptions {
        documents: arguments.documents.clone(),
        settings: arguments.settings.clone(),
        thread_count: arguments.machines.thread_count(),
        seed: arguments.machines.seed,
        cell_patterns: arguments.cell.iter().cloned().collect(),
        table_title: arguments.table.clone(),
        catalogue: arguments.machines.catalogue.clone(),
        budget: RunBudget::default_unless_lifted(arguments.machines.no_budget),
        stop: stop_on_signals()?,
    };
    let progress = ModelRunDisplay::new(arguments.machines.quiet);
    let card = reproduce_with(&catalogue, &options, &|done, of| progress.update(done, of))?;
    drop(progress);
    let printed = print(&report::render_card(
        &card,
        arguments.machines.format.into(),
        width(),
    ));
    if let Some(page) = page {
        page.write(report::html::render_card(&card).as_bytes())?;
    }
    printed?;
    Ok(DONE)
}

/// Fits each drive of a directory to half of its trace and scores the replay of the other half.
fn real_drives(arguments: &ReproduceArguments, data: &Path) -> CommandResult {
    reject_other_arguments(arguments)?;
    let page = match &arguments.report {
        Some(path) => Some(Output::open_beside_table("--report", path)?),
        None => None,
    };
    let stop = stop_on_signals()?;
    let progress = ModelRunDisplay::new(arguments.machines.quiet);
    let found = real_drives::reproduce(data, &stop, &|done, of| progress.update(done, of))?;
    drop(progress);
    let printed = print(&report::render_real_drives(
        &found,
        arguments.machines.format.into(),
        width(),
    ));
    if let Some(page) = page {
        page.write(report::html::render_real_drives(&found).as_bytes())?;
    }
    printed?;
    Ok(match found.has_replayed_drives() {
        true => DONE,
        false => FAILED,
    })
}

/// Rejects options for modelled machines, which do not apply to real drives.
fn reject_other_arguments(arguments: &ReproduceArguments) -> Result<(), LaboratoryError> {
    let machines = &arguments.machines;
    let given = [
        (arguments.documents.len() > 1, "another document"),
        (arguments.cell.is_some(), "--cell"),
        (arguments.table.is_some(), "--table"),
        (!arguments.settings.is_empty(), "--set"),
        (machines.catalogue.is_some(), "--catalogue"),
        (machines.threads.is_some(), "--threads"),
        (machines.no_budget, "--no-budget"),
    ];
    match given.iter().find(|one| one.0) {
        Some((_, what)) => Err(request_error(&format!(
            "real-drives are fitted to their own files and traces: {what} has no effect on them"
        ))),
        None => Ok(()),
    }
}

fn request_error(why: &str) -> LaboratoryError {
    LaboratoryError::Request(why.to_owned())
}

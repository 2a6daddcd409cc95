//! `diskperf reproduce`.

use super::{DONE, Outcome};
use crate::arguments::ReproduceArguments;
use crate::output::{print, width};
use crate::progress::MachinesProgress;
use crate::signals::stop_on_signals;
use diskperf_laboratory::Output;
use diskperf_laboratory::analysis::report;
use diskperf_laboratory::machine::Budget;
use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::reproduce::{Options, reproduce_with};
use std::path::Path;

/// The accuracy card.
pub(crate) fn reproduce(arguments: &ReproduceArguments, store: Option<&Path>) -> Outcome {
    let page = match &arguments.report {
        Some(path) => Some(Output::open_beside_table("--report", path)?.sparing(store, [""; 0])?),
        None => None,
    };
    let catalogue = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let options = Options {
        documents: arguments.documents.clone(),
        settings: arguments.settings.clone(),
        threads: arguments.machines.threads(),
        seed: arguments.machines.seed,
        cells: arguments.cell.iter().cloned().collect(),
        table: arguments.table.clone(),
        catalogue: arguments.machines.catalogue.clone(),
        budget: Budget::unless(arguments.machines.no_budget),
        stop: stop_on_signals()?,
    };
    let progress = MachinesProgress::new(arguments.machines.quiet);
    let card = reproduce_with(&catalogue, &options, &|done, of| progress.show(done, of))?;
    drop(progress);
    let printed = print(&report::card(
        &card,
        arguments.machines.format.into(),
        width(),
    ));
    if let Some(page) = page {
        page.write(report::html::card(&card).as_bytes())?;
    }
    printed?;
    Ok(DONE)
}

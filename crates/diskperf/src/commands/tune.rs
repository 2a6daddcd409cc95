//! `diskperf tune`.

use super::{Outcome, stop_on_signals};
use crate::arguments::TuneArguments;
use crate::output::{print, width};
use crate::progress::MachinesProgress;
use diskperf_laboratory::analysis::report;
use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::runs::{check_writable, write_text};
use diskperf_laboratory::tune::{Search, tune as search};
use std::process::ExitCode;

/// Every combination of some parameters' values.
pub(crate) fn tune(arguments: &TuneArguments) -> Outcome {
    if let Some(path) = &arguments.machines.report {
        check_writable(path)?;
    }
    let catalogue = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let wanted = Search {
        program: arguments.program.clone(),
        settings: arguments.settings.clone(),
        target: arguments.on.clone(),
        drives: arguments.drives,
        size_bytes: arguments.size,
        over: arguments.over.clone(),
        seed: arguments.machines.seed,
        threads: arguments.machines.threads(),
        stop: stop_on_signals()?,
    };
    let progress = MachinesProgress::new(arguments.machines.quiet);
    let tuned = search(&catalogue, &wanted, &|done, of| progress.show(done, of))?;
    drop(progress);
    if let Some(path) = &arguments.machines.report {
        write_text(path, &report::html::tuned(&tuned))?;
    }
    print(&report::tuned(
        &tuned,
        arguments.machines.format.into(),
        width(),
    ));
    Ok(ExitCode::SUCCESS)
}

//! Command `diskperf tune`: searches for the best parameter values.

use super::{CommandResult, DONE};
use crate::arguments::TuneArguments;
use crate::output::{print, print_message, width};
use crate::progress::ModelRunDisplay;
use crate::signals::stop_on_signals;
use diskperf_analysis::report;
use diskperf_analysis::tuning::TuningResult;
use diskperf_laboratory::crew::ThreadCrew;
use diskperf_laboratory::files::HostFiles;
use diskperf_laboratory::plan::is_model;
use diskperf_laboratory::tune::{HostSearch, PointStore, tune_host};
use diskperf_laboratory::{LaboratoryError, Output, Workload};
use diskperf_models::model::load_catalogue;
use diskperf_models::tune::{TuningSearch, tune_model as search};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Executes `diskperf tune`: finds the best values of parameters.
pub(crate) fn tune(arguments: &TuneArguments, store: Option<&Path>) -> CommandResult {
    let (target, what) = resolve_target_and_workload(arguments)?;
    let page = match &arguments.report {
        Some(path) => Some(Output::open_beside_table("--report", path)?),
        None => None,
    };
    let catalogue = arguments.machines.catalogue.as_deref();
    let (tuned, left) = match is_model(Path::new(&target), catalogue) {
        true => (tune_model(arguments, (target, what), store)?, None),
        false => tune_path(arguments, (target, what), store)?,
    };
    let format = arguments.machines.format.into();
    let printed = print(&report::render_tuning(&tuned, format, width()));
    if let Some(page) = page {
        page.write(report::html::render_tuning(&tuned).as_bytes())?;
    }
    printed?;
    left.map_or(Ok(DONE), Err)
}

fn tune_model(
    arguments: &TuneArguments,
    (target, what): (String, Workload),
    store: Option<&Path>,
) -> Result<TuningResult, LaboratoryError> {
    if arguments.change_device_settings {
        return Err(LaboratoryError::Request(format!(
            "--change-device-settings applies to real storage, and {target} is a modelled system; omit it"
        )));
    }
    let catalogue = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let wanted = TuningSearch {
        experiment: arguments.to_experiment(what),
        target,
        over_options: arguments.over.clone(),
        goal: arguments.goal.into(),
        run_budget: arguments.budget,
        seed_count: arguments.seeds,
        crew: Arc::new(ThreadCrew(arguments.machines.thread_count())),
        files: Arc::new(HostFiles),
        stop: stop_on_signals()?,
    };
    let kept = PointStore::open(store, arguments.fresh);
    let quiet = arguments.machines.quiet;
    let progress = ModelRunDisplay::new(quiet);
    let told = AtomicBool::new(false);
    let tuned = search(&catalogue, &wanted, &kept, &|done, of| {
        if let Some(failure) = kept.failure()
            && !told.swap(true, Ordering::Relaxed)
        {
            progress.print_message(&format!(
                "{failure}; the points are stored as soon as the store accepts them"
            ));
        }
        progress.update(done, of)
    });
    drop(progress);
    if let Some(failure) = kept.failure() {
        print_message(&format!("the points are not in the store: {failure}"));
    }
    if matches!(tuned, Err(LaboratoryError::Interrupted)) && kept.failure().is_none() && !quiet {
        print_message("the finished points are in the store: the same command resumes from there");
    }
    tuned
}

/// Finds the best parameter values on real storage, and reports settings that could not be
/// restored.
fn tune_path(
    arguments: &TuneArguments,
    (target, what): (String, Workload),
    store: Option<&Path>,
) -> Result<(TuningResult, Option<LaboratoryError>), LaboratoryError> {
    let of_models = [
        (arguments.drives.is_some(), "--drives"),
        (arguments.machines.catalogue.is_some(), "--catalogue"),
        (arguments.machines.threads.is_some(), "--threads"),
    ];
    if let Some((_, option)) = of_models.into_iter().find(|(given, _)| *given) {
        return Err(LaboratoryError::Request(format!(
            "{option} applies to modelled systems, and {target} is a path; omit it"
        )));
    }
    let wanted = HostSearch {
        experiment: arguments.to_experiment(what),
        target: target.into(),
        over_options: arguments.over.clone(),
        goal: arguments.goal.into(),
        repetitions: arguments.runs,
        changes_device_settings: arguments.change_device_settings,
        stop: stop_on_signals()?,
    };
    let progress = ModelRunDisplay::new(arguments.machines.quiet);
    let tuned = tune_host(&wanted, store, &|done, of| progress.update(done, of));
    drop(progress);
    tuned
}

/// Returns target and workload from `tune TARGET --suite WHAT`, or from `tune WHAT --on TARGET` in
/// the style of `run`.
fn resolve_target_and_workload(
    arguments: &TuneArguments,
) -> Result<(String, Workload), LaboratoryError> {
    let (first, suite) = (arguments.target.clone(), arguments.suite.clone());
    let (target, what) = match (first, arguments.on.clone(), suite) {
        (Some(_), Some(on), Some(_)) => {
            return Err(LaboratoryError::Request(format!(
                "two targets: write `diskperf tune {on} --suite WHAT`"
            )));
        }
        (what, Some(on), suite) => (on, suite.or(what)),
        (Some(target), None, suite) => (target, suite),
        (None, None, _) => {
            return Err(LaboratoryError::Request(
                "no target: write `diskperf tune vax780-sc780-eagle --suite write_8192 --over filesystem.rotdelay_ms=0..10`"
                    .to_owned(),
            ));
        }
    };
    Ok((target, Workload::from_suite_name(what)))
}

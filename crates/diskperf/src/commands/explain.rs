//! Command `diskperf explain`: attributes the time of a run to causes.

use super::{CommandResult, DONE};
use crate::arguments::ExplainArguments;
use crate::output::{print, width};
use crate::progress::{ModelRunDisplay, RunDisplay};
use crate::signals::stop_on_signals;
use diskperf_analysis::explanation::{Explanation, ProgramExplanation};
use diskperf_analysis::perfetto::encode_trace;
use diskperf_analysis::report;
use diskperf_laboratory::crew::{ThreadCrew, available_threads};
use diskperf_laboratory::execute::prepare_process;
use diskperf_laboratory::explain::storage::{self, StorageExplanation};
use diskperf_laboratory::files::HostFiles;
use diskperf_laboratory::plan::{self, HostPlan, Plan};
use diskperf_laboratory::{LaboratoryError, Output, Setting, SizeChoice, runs};
use diskperf_models::explain::{self, ExplainedSystem, ExplanationOptions};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::{MeasuredWorld, Run, Trace};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Subject that `diskperf explain` explains or compares.
enum ExplainedSide {
    /// Modelled system, or a stored run of one.
    Model(Box<ExplainedSystem>),
    Run(Box<Run>),
    /// Real storage, on which the programs still have to run.
    Storage(Box<HostPlan>),
}

/// Executes `diskperf explain`: shows the time of a run by stage and effective changes, or the
/// causes of the difference between two runs.
pub(crate) fn explain(arguments: &ExplainArguments, store: Option<&Path>) -> CommandResult {
    let output = match &arguments.perfetto {
        Some(path) => Some(Output::open_beside_table("--perfetto", path)?),
        None => None,
    };
    let sides = resolve_sides(arguments, store)?;
    if sides.len() > 1 && arguments.perfetto.is_some() {
        return Err(LaboratoryError::Request(
            "--perfetto takes one run or system: explain each separately, with its own file"
                .to_owned(),
        ));
    }
    let plans: Vec<Plan> = sides.iter().filter_map(ExplainedSide::to_plan).collect();
    prepare_process(&plans)?;
    let stop = stop_on_signals()?;
    let hint = match arguments.no_counterfactuals {
        true => "",
        false => "--no-counterfactuals omits most of them",
    };
    let progress = ModelRunDisplay::with_hint(arguments.machines.quiet, hint);
    let means = ExplanationOptions {
        crew: &ThreadCrew(arguments.machines.thread_count()),
        runs_counterfactuals: !arguments.no_counterfactuals,
        stop: &stop,
        progress: &|done, of| progress.update(done, of),
    };
    let format = arguments.machines.format.into();
    // What goes to the file, where one is wanted.
    let mut trace = Ok(Vec::new());
    let text = match sides.as_slice() {
        [ExplainedSide::Model(one)] => {
            let (found, traces) = explain::explain_system(one, &means)?;
            if output.is_some() {
                trace = Ok(encode_program_traces(&found, traces.iter()));
            }
            report::render_explanation(&found, format, width())
        }
        [ExplainedSide::Model(a), ExplainedSide::Model(b)] => {
            let found = explain::compare_systems(a, b, &means)?;
            report::render_differences(&found, format, width())
        }
        [one] => {
            let told = one.explain_side(arguments, store, &means)?;
            if output.is_some() {
                trace = encode_storage_trace(&told);
            }
            report::render_explanation(&told.explanation, format, width())
        }
        [a, b, ..] => {
            let a = a.explain_side(arguments, store, &means)?;
            let b = b.explain_side(arguments, store, &means)?;
            report::render_differences(&storage::compare_explanations(&a, &b)?, format, width())
        }
        [] => unreachable!("without a name there is the last run"),
    };
    drop(progress);
    let printed = print(&text);
    if let Some(output) = output {
        output.write(&trace?)?;
    }
    printed?;
    match stop.load(Ordering::Relaxed) {
        true => Err(LaboratoryError::Interrupted),
        false => Ok(DONE),
    }
}

impl ExplainedSide {
    fn is_stored(&self) -> bool {
        match self {
            Self::Model(subject) => subject.run.is_some(),
            Self::Run(_) => true,
            Self::Storage(_) => false,
        }
    }

    fn to_plan(&self) -> Option<Plan> {
        match self {
            Self::Storage(plan) => Some(Plan::Host(plan.clone())),
            Self::Model(_) | Self::Run(_) => None,
        }
    }

    fn explain_side(
        &self,
        arguments: &ExplainArguments,
        store: Option<&Path>,
        means: &ExplanationOptions<'_>,
    ) -> Result<StorageExplanation, LaboratoryError> {
        match self {
            Self::Model(subject) => storage::explain_model(subject, means),
            Self::Run(run) => storage::explain_run(Run::clone(run)),
            Self::Storage(plan) => {
                let mut progress = RunDisplay::new(arguments.machines.quiet, means.stop);
                storage::explain_target(plan, store, means.stop, &mut progress)
            }
        }
    }
}

/// Opens the output of `run --perfetto` for a trace of these plans.
pub(super) fn open_trace(path: &Path, plans: &[Plan]) -> Result<Output, LaboratoryError> {
    if plans.iter().any(|plan| matches!(plan, Plan::Host(_))) {
        return Err(LaboratoryError::Request(
            "`run --perfetto` traces modelled systems only; for real storage use `diskperf explain PATH --perfetto FILE`".to_owned(),
        ));
    }
    Output::open_beside_table("--perfetto", path)
}

/// Repeats modelled runs to write a trace of their events. Programs are labelled with the name of
/// their system.
pub(super) fn repeat_with_trace(
    output: Output,
    made: &[Run],
    stop: &Arc<AtomicBool>,
) -> Result<(), LaboratoryError> {
    let means = ExplanationOptions {
        crew: &ThreadCrew(available_threads()),
        runs_counterfactuals: false,
        stop,
        progress: &|_, _| {},
    };
    let mut named: Vec<(String, Trace)> = Vec::new();
    for run in made {
        let subject = ExplainedSystem::from_stored_run(run.clone(), &HostFiles)?;
        let (found, traces) = explain::explain_system(&subject, &means)?;
        let names = found.programs.iter();
        let names =
            names.map(|one| format!("{} {} {}", run.target_label, one.program, one.filesystem));
        named.extend(names.zip(traces));
    }
    let all: Vec<(String, &Trace)> = named
        .iter()
        .map(|(name, trace)| (name.clone(), trace))
        .collect();
    output.write(&encode_trace(&all))
}

/// Combines the traces of all programs into the bytes of one file.
fn encode_program_traces<'t>(
    found: &Explanation,
    traces: impl Iterator<Item = &'t Trace>,
) -> Vec<u8> {
    let name = |program: &ProgramExplanation| format!("{} {}", program.program, program.filesystem);
    let named = found.programs.iter().map(name).zip(traces);
    encode_trace(&named.collect::<Vec<_>>())
}

/// Returns the trace of real storage.
///
/// # Errors
///
/// No events were recorded.
fn encode_storage_trace(told: &StorageExplanation) -> Result<Vec<u8>, LaboratoryError> {
    let traces: Option<Vec<&Trace>> = told.traces.iter().map(Option::as_ref).collect();
    match traces {
        Some(traces) => Ok(encode_program_traces(&told.explanation, traces.into_iter())),
        None => Err(LaboratoryError::Request(format!(
            "--perfetto has nothing to write, because no events of {} were recorded: {}",
            told.name,
            told.explanation.notes.join("; ")
        ))),
    }
}

/// Converts an error in a setting into one about the `--change` option that contains it.
fn explain_change_error(error: LaboratoryError) -> LaboratoryError {
    match error {
        LaboratoryError::Catalogue(errors) => {
            LaboratoryError::Request(errors.to_string().replace("--> --set:", "--> --change:"))
        }
        other => other,
    }
}

fn resolve_sides(
    arguments: &ExplainArguments,
    store: Option<&Path>,
) -> Result<Vec<ExplainedSide>, LaboratoryError> {
    let last = ["last".to_owned()];
    let names = match arguments.subjects.as_slice() {
        [] => &last,
        names => names,
    };
    let mut sides = Vec::new();
    for (number, name) in names.iter().enumerate() {
        sides.push(resolve_side(arguments, store, (name, number))?);
    }
    if names_target(arguments) && sides.iter().all(ExplainedSide::is_stored) {
        let how = match sides[0] {
            ExplainedSide::Run(_) => "is explained from its stored data",
            ExplainedSide::Model(_) | ExplainedSide::Storage(_) => "is repeated exactly",
        };
        return Err(LaboratoryError::Request(format!(
            "`{}` is a run, which {how}: --suite, --set, --size, --runs, --drives, --fresh and --direct apply only to a target, as in `diskperf explain vax780-sc780-eagle --suite write_8192`",
            names[0]
        )));
    }
    if !arguments.changes.is_empty() {
        if !matches!(sides.as_slice(), [ExplainedSide::Model(subject)] if subject.run.is_none()) {
            return Err(LaboratoryError::Request(
                "--change takes one modelled system: `diskperf explain vax780-sc780-eagle --change driver.search_lead_sectors=2`".to_owned(),
            ));
        }
        let changed = resolve_modelled_side(arguments, (&names[0], 1), &arguments.changes);
        let changed = changed.map_err(explain_change_error)?;
        sides.push(ExplainedSide::Model(Box::new(changed)));
    }
    if let ([first, second, ..], [ExplainedSide::Model(subject)]) =
        (&arguments.drives[..], &mut sides[..])
    {
        let name = subject.name.clone();
        let on = |drives: u32| {
            let plural = if drives == 1 { "" } else { "s" };
            format!("{name} on {drives} drive{plural}")
        };
        subject.name = on(*first);
        let mut other = resolve_modelled_side(arguments, (&names[0], 1), &[])?;
        other.name = on(*second);
        sides.push(ExplainedSide::Model(Box::new(other)));
    }
    Ok(sides)
}

/// Determines the subject that a name on the command line denotes.
fn resolve_side(
    arguments: &ExplainArguments,
    store: Option<&Path>,
    (name, number): (&str, usize),
) -> Result<ExplainedSide, LaboratoryError> {
    if is_system(arguments, name)? {
        let subject = resolve_modelled_side(arguments, (name, number), &[])?;
        return Ok(ExplainedSide::Model(Box::new(subject)));
    }
    let path = Path::new(name);
    // A file may be an exported run, or data to be read.
    let exported = path.is_file() && (name.ends_with(".json") || !name.contains('/'));
    if (name.contains('/') || path.is_dir()) && !exported && !is_export(path) {
        let plan = plan::plan_on_storage(&arguments.to_experiment((name, 0)))?;
        return Ok(ExplainedSide::Storage(plan));
    }
    let mut loaded = runs::load_runs(store, name).map_err(|error| match error {
        LaboratoryError::Store(_) => LaboratoryError::Request(format!(
            "{error}; and no modelled system is called `{name}`: `diskperf list systems` lists them"
        )),
        error => error,
    })?;
    if loaded.len() != 1 {
        return Err(LaboratoryError::Request(format!(
            "{name} holds {} runs, and explain takes one: export it to a file of its own",
            loaded.len()
        )));
    }
    let run = loaded.remove(0);
    match run.world {
        MeasuredWorld::Host => Ok(ExplainedSide::Run(Box::new(run))),
        MeasuredWorld::Model => Ok(ExplainedSide::Model(Box::new(
            ExplainedSystem::from_stored_run(run, &HostFiles)?,
        ))),
    }
}

/// Reports whether a file is an export of runs, whatever its name.
fn is_export(path: &Path) -> bool {
    path.is_file() && runs::load_runs(None, &path.to_string_lossy()).is_ok()
}

fn names_target(arguments: &ExplainArguments) -> bool {
    arguments.suite.is_some()
        || !arguments.settings.is_empty()
        || !arguments.drives.is_empty()
        || arguments.fresh.is_some()
        || arguments.direct
        || arguments.runs.is_some()
        || arguments.size != SizeChoice::AutomaticSize
}

/// Reports whether a name denotes a modelled system rather than a run.
fn is_system(arguments: &ExplainArguments, name: &str) -> Result<bool, LaboratoryError> {
    if name.ends_with(".toml") {
        return Ok(true);
    }
    let known = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let base = name.split(':').next().unwrap_or(name);
    Ok(known.system_names().iter().any(|system| system == base))
}

fn resolve_modelled_side(
    arguments: &ExplainArguments,
    (name, number): (&str, usize),
    changes: &[Setting],
) -> Result<ExplainedSystem, LaboratoryError> {
    if arguments.fresh.is_some() {
        return Err(LaboratoryError::Request(format!(
            "--fresh applies to real storage, and {name} is a modelled system; omit it"
        )));
    }
    let mut experiment = arguments.to_experiment((name, number));
    experiment.settings.extend(changes.iter().cloned());
    ExplainedSystem::from_plan(name.to_owned(), &experiment, &HostFiles)
}

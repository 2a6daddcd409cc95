//! `diskperf explain`.

use super::{Outcome, stop_on_signals};
use crate::again::{only_model, plan_of};
use crate::arguments::ExplainArguments;
use crate::output::{print, width};
use crate::progress::MachinesProgress;
use diskperf_laboratory::analysis::explanation::{Explanation, ProgramExplanation};
use diskperf_laboratory::analysis::perfetto::perfetto;
use diskperf_laboratory::analysis::report;
use diskperf_laboratory::explain::{self, Means, Subject};
use diskperf_laboratory::model::load_catalogue;
use diskperf_laboratory::plan::{self, ModelPlan};
use diskperf_laboratory::timeline::Trace;
use diskperf_laboratory::{LaboratoryError, Request, runs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the time of a run went and what would change it, or why two differ.
pub(crate) fn explain(arguments: &ExplainArguments, store: Option<&Path>) -> Outcome {
    if let Some(path) = &arguments.perfetto {
        runs::check_writable(path)?;
    }
    let subjects = subjects(arguments, store)?;
    let stop = stop_on_signals()?;
    let progress = MachinesProgress::new(arguments.machines.quiet);
    let means = Means {
        threads: arguments.machines.threads(),
        counterfactuals: !arguments.no_counterfactuals,
        stop: &stop,
        progress: &|done, of| progress.show(done, of),
    };
    let format = arguments.machines.format.into();
    let text = match subjects.as_slice() {
        [one] => {
            let (found, traces) = explain::explain(one, &means)?;
            if let Some(path) = &arguments.perfetto {
                write_trace(path, &found, &traces)?;
            }
            report::explanation(&found, format, width())
        }
        [_, _, ..] if arguments.perfetto.is_some() => {
            return Err(LaboratoryError::Request(
                "--perfetto is of one run or system: explain each by itself, with a file of its own".to_owned(),
            ));
        }
        [a, b, ..] => {
            let found = explain::differences(a, b, &means)?;
            report::differences(&found, format, width())
        }
        [] => unreachable!("without a name there is the last run"),
    };
    drop(progress);
    print(&text);
    Ok(ExitCode::SUCCESS)
}

/// The traces of all programs in one file.
fn write_trace(path: &Path, found: &Explanation, traces: &[Trace]) -> Result<(), LaboratoryError> {
    let name = |program: &ProgramExplanation| format!("{} {}", program.program, program.filesystem);
    let named = found.programs.iter().map(name).zip(traces);
    let bytes = perfetto(&named.collect::<Vec<_>>());
    runs::write_file(path, &bytes)
}

fn subjects(
    arguments: &ExplainArguments,
    store: Option<&Path>,
) -> Result<Vec<Subject>, LaboratoryError> {
    let last = ["last".to_owned()];
    let names = match arguments.subjects.as_slice() {
        [] => &last,
        names => names,
    };
    let mut subjects = Vec::new();
    for (number, name) in names.iter().enumerate() {
        subjects.push(subject(arguments, store, (name, number))?);
    }
    if !arguments.changes.is_empty() {
        if subjects.len() > 1 || subjects[0].run.is_some() {
            return Err(LaboratoryError::Request(
                "--change is of one modelled system: `diskperf explain vax780-sc780-eagle --change driver.search_lead_sectors=2`".to_owned(),
            ));
        }
        let plan = planned(arguments, &names[0], &arguments.changes, 1)?;
        subjects.push(Subject {
            name: format!("{} with {}", names[0], arguments.changes.join(", ")),
            plan,
            run: None,
        });
    }
    let twice = arguments.drives.len() > 1 && subjects.len() == 1;
    if twice {
        let plan = planned(arguments, &names[0], &[], 1)?;
        subjects[0].name = format!("{} on {} drives", names[0], arguments.drives[0]);
        subjects.push(Subject {
            name: format!("{} on {} drives", names[0], arguments.drives[1]),
            plan,
            run: None,
        });
    }
    Ok(subjects)
}

/// What one of the names stands for.
fn subject(
    arguments: &ExplainArguments,
    store: Option<&Path>,
    (name, number): (&str, usize),
) -> Result<Subject, LaboratoryError> {
    if is_system(arguments, name)? {
        return Ok(Subject {
            name: name.to_owned(),
            plan: planned(arguments, name, &[], number)?,
            run: None,
        });
    }
    let path = Path::new(name);
    if path.is_dir() || name.starts_with("/dev/") {
        return Err(LaboratoryError::Request(format!(
            "`{name}` is real storage, which keeps no account of its time; `diskperf run seqread89 --on {name}` measures where the time of a read call goes, layer by layer"
        )));
    }
    let mut loaded = runs::load(store, name).map_err(|error| match error {
        LaboratoryError::Store(_) => LaboratoryError::Request(format!(
            "{error}; and no modelled system is called `{name}`: `diskperf list systems` names them"
        )),
        error => error,
    })?;
    if loaded.len() != 1 {
        return Err(LaboratoryError::Request(format!(
            "{name} holds {} runs, and one is explained at a time: export one by itself",
            loaded.len()
        )));
    }
    let run = loaded.remove(0);
    if of_target(arguments) {
        return Err(LaboratoryError::Request(format!(
            "`{name}` is a run, which is made again as it was: --suite, --set, --size, --runs and --drives are of a system, as in `diskperf explain vax780-sc780-eagle --suite write_8192`"
        )));
    }
    let plan = plan_of(&run)?;
    Ok(Subject {
        name: format!("{} (run {})", run.target, run.id),
        plan,
        run: Some(run),
    })
}

fn of_target(arguments: &ExplainArguments) -> bool {
    arguments.suite.is_some()
        || !arguments.settings.is_empty()
        || !arguments.drives.is_empty()
        || arguments.runs.is_some()
        || arguments.size != diskperf_laboratory::SizeChoice::Auto
}

/// Whether it names a modelled system and not a run.
fn is_system(arguments: &ExplainArguments, name: &str) -> Result<bool, LaboratoryError> {
    if name.ends_with(".toml") {
        return Ok(true);
    }
    let known = load_catalogue(arguments.machines.catalogue.as_deref())?;
    let base = name.split(':').next().unwrap_or(name);
    Ok(known.system_names().iter().any(|system| system == base))
}

fn planned(
    arguments: &ExplainArguments,
    name: &str,
    changes: &[String],
    number: usize,
) -> Result<ModelPlan, LaboratoryError> {
    let drives = arguments.drives.get(number).or(arguments.drives.first());
    let wanted = Request {
        what: arguments.suite.clone(),
        drives: drives.copied(),
        catalogue: arguments.machines.catalogue.clone(),
        size: arguments.size,
        settings: arguments.settings.iter().chain(changes).cloned().collect(),
        repetitions: arguments.runs,
        cache: arguments.cache.into(),
        ..Request::of(vec![PathBuf::from(name)], arguments.machines.seed)
    };
    only_model(plan::plan(&wanted)?, name)
}

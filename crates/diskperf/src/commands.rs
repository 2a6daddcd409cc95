//! Commands of the `diskperf` program: each calls the laboratory and prints its result.

mod ab;
mod calculate;
mod catalogue;
mod crash;
mod explain;
mod export;
mod import;
mod pages;
mod record;
mod replay;
mod reproduce;
mod serve;
mod shell;
mod trace;
mod tune;

pub(crate) use ab::ab;
pub(crate) use calculate::calculate;
pub(crate) use crash::crash;
pub(crate) use explain::explain;
pub(crate) use export::export;
pub(crate) use import::import;
pub(crate) use pages::report;
pub(crate) use record::record;
pub(crate) use replay::replay;
pub(crate) use reproduce::reproduce;
pub(crate) use serve::serve;
pub(crate) use shell::{completions, man};
pub(crate) use trace::trace;
pub(crate) use tune::tune;

use crate::arguments::{
    CleanArguments, CompareArguments, DeleteArguments, GateArguments, ListArguments, ListSubject,
    OutputFormat, RunArguments, RunFormat, ShowArguments,
};
use crate::listing::Listing;
use crate::output::{print, print_message, width};
use crate::progress::{ModelRunDisplay, RunDisplay};
use crate::signals::stop_on_signals;
use diskperf_analysis::comparison::{self, Comparison, ComparisonTerms};
use diskperf_analysis::report;
use diskperf_battery::program::nearest_name;
use diskperf_battery::{Medium, Program, Suite};
use diskperf_catalogue::Catalogue;
use diskperf_laboratory::ab::repeat_experiment;
use diskperf_laboratory::clean::{self, CleanRequest};
use diskperf_laboratory::crew::{ThreadCrew, available_threads};
use diskperf_laboratory::execute::{execute, prepare_process};
use diskperf_laboratory::recording::{RecordingDestination, RecordingObserver};
use diskperf_laboratory::runs::{RunDeletion, RunSelection};
use diskperf_laboratory::{
    Experiment, LaboratoryError, Output, Plan, RunRecorder, Workload, job_file, plan, runs,
};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::units::format_utc;
use diskperf_timeline::{Run, escape_unprintable_line};
use std::path::Path;

/// Exit code of a command, or an error with an exit code of its own.
type CommandResult = Result<u8, LaboratoryError>;

const DONE: u8 = 0;

/// Exit code of a command that did nothing or only part of its work; messages have given the
/// reason.
const FAILED: u8 = 1;

/// Executes `diskperf run`: measures and stores runs.
pub(crate) fn run(
    arguments: &RunArguments,
    command_line: Vec<String>,
    store: Option<&Path>,
) -> CommandResult {
    let earlier = match &arguments.like {
        Some(name) => Some(load_experiment(store, name)?),
        None => None,
    };
    let mut plans = plan::plan(&read_standard_input_job(arguments.to_experiment(earlier))?)?;
    arguments.format.reject_unsupported(&plans)?;
    if arguments.dry_run {
        let texts: Vec<_> = plans.iter().map(plan::Plan::describe).collect();
        print(&texts.join("\n"))?;
        return Ok(DONE);
    }
    let trace = match &arguments.perfetto {
        Some(path) => Some(explain::open_trace(path, &plans)?),
        None => None,
    };
    let record = match &arguments.record {
        Some(path) => {
            let place = RecordingDestination::open_for_plans(path, arguments.force, &plans)?;
            plans = plans.into_iter().map(Plan::with_recording).collect();
            Some(place)
        }
        None => None,
    };
    let shown = (arguments.format, arguments.quiet);
    let metrics = arguments.metrics.as_deref().map(export::open_metrics);
    let wanted = RunOutputs {
        metrics_output: metrics.transpose()?,
        perfetto_output: trace,
        trace_output: record,
    };
    run_plans(&plans, shown, wanted, (command_line, store))
}

#[derive(Default)]
struct RunOutputs {
    /// Output file for a Perfetto trace of the runs; `None` without the option.
    perfetto_output: Option<Output>,
    /// Output file for a block trace of the storage requests; `None` without the option.
    trace_output: Option<RecordingDestination>,
    /// Output file for metrics of the runs; `None` without the option.
    metrics_output: Option<Output>,
}

/// Executes plans, prints their runs and reports where the runs are stored.
fn run_plans(
    plans: &[Plan],
    (format, quiet): (RunFormat, bool),
    wanted: RunOutputs,
    (command_line, store): (Vec<String>, Option<&Path>),
) -> CommandResult {
    prepare_process(plans)?;
    let stop = stop_on_signals()?;
    let mut recorder = RunRecorder::open(store).with_command_line(command_line);
    if let Some(failure) = recorder.store_failure() {
        print_message(&format!(
            "{failure}; the results are kept in a file until the store accepts them"
        ));
    }
    let mut progress = RunDisplay::new(quiet, &stop);
    let (mut runs, mut error) = (Vec::new(), None);
    let mut recording = RecordingObserver::new(wanted.trace_output, &mut progress);
    for plan in plans {
        let executed = execute(plan, &stop, &mut recording, &mut recorder);
        runs.push(executed.run);
        error = executed.error;
        if error.is_some() {
            break;
        }
    }
    let recorded = recording.finish_recording();
    drop(progress);
    let printed = match error.is_none() || runs.iter().any(has_figures) {
        true => format
            .render_runs(&runs, width())
            .and_then(|text| print(text.trim_end())),
        false => Ok(()),
    };
    print_run_location(&runs, &recorder, quiet);
    let recorded = record::report_recording(recorded, quiet);
    if let Some(error) = error {
        return Err(error);
    }
    let is_recorded = recorded?;
    if let Some(output) = wanted.metrics_output {
        export::write_metrics(output, &runs)?;
    }
    if let Some(output) = wanted.perfetto_output {
        explain::repeat_with_trace(output, &runs, &stop)?;
    }
    printed?;
    Ok(match recorder.store_failure().is_some() || !is_recorded {
        true => FAILED,
        false => DONE,
    })
}

/// Reads the job file from standard input if that is the experiment's workload.
fn read_standard_input_job(experiment: Experiment) -> Result<Experiment, LaboratoryError> {
    if experiment.workload != Workload::NamedSuite("-".to_owned()) {
        return Ok(experiment);
    }
    let text = std::io::read_to_string(std::io::stdin()).map_err(|error| {
        LaboratoryError::Request(format!("standard input: {error}; a fio job file is text"))
    })?;
    let text = job_file::parse_named_text("-", &text, &experiment.fio_arguments)?;
    Ok(Experiment {
        workload: Workload::JobFile(text),
        fio_arguments: Vec::new(),
        ..experiment
    })
}

fn load_experiment(store: Option<&Path>, name: &str) -> Result<Experiment, LaboratoryError> {
    match &load_runs(store, name)?[..] {
        [run] => repeat_experiment(run),
        several => Err(LaboratoryError::Request(format!(
            "{name} holds {} runs, and --like takes one: name it by its id",
            several.len()
        ))),
    }
}

fn load_runs(store: Option<&Path>, name: &str) -> Result<Vec<Run>, LaboratoryError> {
    runs::load_runs(store, name).map_err(|error| catalogue::suggest_run(name, error))
}

/// Reports whether a run has a measurement that counts, or a failed program with a result of its
/// own, such as the number of differing blocks.
fn has_figures(run: &Run) -> bool {
    run.results.iter().any(|result| {
        result.kept_repetitions().next().is_some() || result.first_failure().is_some()
    })
}

/// Reports where the results are stored, and any error in storing them.
fn print_run_location(runs: &[Run], recorder: &RunRecorder, quiet: bool) {
    let measured = runs.iter().any(has_figures);
    if let Some(failure) = recorder.store_failure().filter(|_| measured) {
        print_message(&format!("the results are not in the store: {failure}"));
    }
    for (run, place) in recorder.list_unstored() {
        match place {
            Ok(path) if !has_figures(run) => print_message(&format!(
                "nothing was measured; what is known of the run is in {}",
                path.display()
            )),
            Ok(path) => print_message(&format!(
                "they are saved in {0}; `diskperf show {0}` shows them",
                path.display()
            )),
            Err(why) => print_message(&format!(
                "the results of run {} are lost, no file could be written either: {why}",
                run.run_id
            )),
        }
    }
    if !quiet {
        let is_stored = |run: &&Run| {
            recorder
                .list_unstored()
                .all(|(other, _)| other.run_id != run.run_id)
        };
        for run in runs.iter().filter(is_stored).filter(|run| has_figures(run)) {
            print_message(&format!(
                "stored as run {}; `diskperf show {}` prints the details",
                run.run_id, run.run_id
            ));
        }
    }
}

/// Executes `diskperf compare`: compares stored runs.
pub(crate) fn compare(arguments: &CompareArguments, store: Option<&Path>) -> CommandResult {
    let mut compared = Vec::new();
    for name in &arguments.runs {
        compared.extend(load_runs(store, name)?);
    }
    if compared.len() < 2 {
        return Err(LaboratoryError::Request(
            "compare takes two runs or more: `diskperf list runs` lists them".to_owned(),
        ));
    }
    let terms = ComparisonTerms {
        history: runs::load_history(store, &compared)?,
        limits: arguments.gate.to_limits(),
    };
    let comparison = comparison::compare_with_terms(&compared, &terms);
    print_comparison(comparison, &arguments.gate, arguments.format)
}

/// Prints a comparison. A limit, if given, decides the exit code.
fn print_comparison(
    mut comparison: Comparison,
    gate: &GateArguments,
    format: OutputFormat,
) -> CommandResult {
    let gate = gate.fail_over.map(|limit| comparison.apply_gate(limit));
    print(&report::render_comparison(
        &comparison,
        format.into(),
        width(),
    ))?;
    let Some(gate) = gate else {
        return Ok(DONE);
    };
    for failure in &gate.failures {
        print_message(&failure.to_string());
    }
    Ok(gate.outcome.exit_code())
}

/// Executes `diskperf list`: lists runs, programs or catalogue entries.
pub(crate) fn list(arguments: &ListArguments, store: Option<&Path>) -> CommandResult {
    if arguments.name.is_some() && arguments.what != Some(ListSubject::Parameters) {
        return Err(LaboratoryError::Request(
            "only `list parameters` takes the name of a program, a suite or a system".to_owned(),
        ));
    }
    let selection = arguments.selection.to_selection();
    if selection != RunSelection::default() && arguments.what != Some(ListSubject::Runs) {
        return Err(LaboratoryError::Request(
            "--suite, --on, --label, --since and --limit choose among stored runs: write `diskperf list runs`"
                .to_owned(),
        ));
    }
    let known = load_catalogue(arguments.catalogue.as_deref())?;
    let listings = match arguments.what {
        None => vec![
            Listing::from_names("suites", "suite", &Suite::list_suites()),
            Listing::from_names("programs", "program", &Program::list_programs()),
        ],
        Some(ListSubject::Suites) => vec![Listing::from_names(
            "suites",
            "suite",
            &Suite::list_suites(),
        )],
        Some(ListSubject::Programs) => {
            vec![Listing::from_names(
                "programs",
                "program",
                &Program::list_programs(),
            )]
        }
        Some(ListSubject::Runs) => vec![list_stored_runs(store, &selection)?],
        Some(ListSubject::Parameters) => vec![list_target_parameters(arguments, &known)?],
        Some(listed) => catalogue::list_subject(&known, listed)?
            .into_iter()
            .collect(),
    };
    if arguments.format == OutputFormat::Json {
        print(&Listing::render_json(&listings.iter().collect::<Vec<_>>()))?;
        return Ok(DONE);
    }
    let width = width();
    let texts: Vec<_> = listings
        .iter()
        .map(|listing| listing.render(arguments.format, width))
        .collect();
    print(&texts.join(if arguments.format == OutputFormat::Csv {
        "\n"
    } else {
        "\n\n"
    }))?;
    Ok(DONE)
}

/// Lists the selected runs of a store. Damaged rows come with advice on how to remove them.
fn list_stored_runs(
    store: Option<&Path>,
    selection: &RunSelection,
) -> Result<Listing, LaboratoryError> {
    let store = runs::open_store(store)?;
    let damaged = store.list_damaged_runs().map_err(runs::store_failed)?;
    for run in &damaged {
        let file = store.path().display().to_string().replace('\'', "'\\''");
        print_message(&format!(
            "run `{}` is damaged: {}; to remove it: sqlite3 '{file}' 'PRAGMA foreign_keys = ON; DELETE FROM runs WHERE rowid = {}'",
            escape_unprintable_line(&run.id),
            run.problem,
            run.row
        ));
    }
    let listed = selection.select(store.list_runs().map_err(runs::store_failed)?);
    // Nobody knows of what suite a damaged one is.
    match *selection == RunSelection::default() {
        true => Ok(Listing::from_runs(&listed, &damaged)),
        false => Ok(Listing::from_runs(&listed, &[])),
    }
}

/// Lists the parameters of a program, a suite or a modelled system; without a name, those of all
/// programs.
fn list_target_parameters(
    arguments: &ListArguments,
    known: &Catalogue,
) -> Result<Listing, LaboratoryError> {
    let Some(name) = arguments.name.as_deref() else {
        let all = Program::list_programs();
        let programs = all.iter().filter_map(|(name, _)| Program::from_name(name));
        return Ok(list_program_parameters(programs));
    };
    if let Some(program) = Program::from_name(name) {
        return Ok(list_program_parameters([program]));
    }
    if let Some(suite) = Suite::from_name(name, Medium::Directory) {
        return Ok(list_program_parameters(suite.iter_programs().cloned()));
    }
    // A name of none is told the nearest of what it looks like.
    let systems = known.system_names();
    let base = name.split(':').next().unwrap_or(name);
    let is_system = name.ends_with(".toml") || systems.iter().any(|system| system == base);
    let words = Program::list_programs()
        .into_iter()
        .chain(Suite::list_suites());
    match nearest_name(name, words.map(|(word, _)| word)) {
        Some(near) if !is_system && !name.contains('-') => Err(LaboratoryError::Request(format!(
            "no program or suite is called `{name}`; did you mean `{near}`?"
        ))),
        _ => {
            let entry =
                diskperf_laboratory::catalogue::describe_system(known, name, &arguments.settings)?;
            Ok(catalogue::list_parameters(&entry.parameters))
        }
    }
}

/// Lists the parameters of programs. A program that occurs several times, as in a suite, has one
/// row for each parameter with all values.
fn list_program_parameters(programs: impl IntoIterator<Item = Program>) -> Listing {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for program in programs {
        for parameter in program.list_parameters() {
            let path = format!("program.{}", parameter.parameter_name);
            let same = |row: &&mut Vec<String>| row[0] == program.name() && row[1] == path;
            match rows.iter_mut().find(same) {
                Some(row) if row[2].split(", ").any(|value| value == parameter.value) => {}
                Some(row) => row[2] += &format!(", {}", parameter.value),
                None => rows.push(vec![
                    program.name().to_owned(),
                    path,
                    parameter.value,
                    parameter.allowed_values,
                    parameter.description.to_owned(),
                ]),
            }
        }
    }
    Listing {
        name: "parameters",
        heading: vec!["program", "path", "value", "allowed", "meaning"],
        rows,
        ..Listing::default()
    }
}

/// Executes `diskperf show`: prints a run, a suite or a catalogue entry.
pub(crate) fn show(arguments: &ShowArguments, store: Option<&Path>) -> CommandResult {
    let name = arguments.name.as_str();
    if arguments.expected {
        return show_expected(arguments);
    }
    if arguments.series {
        let loaded = runs::load_runs(store, name)?;
        let format = require_output_format(arguments.format, "the course of a run over time")?;
        print(&report::render_series(&loaded, format.into(), width()))?;
    } else if let Some(suite) = Suite::from_name(name, Medium::Directory) {
        let format = require_output_format(arguments.format, "a suite")?;
        print(&list_suite_steps(&suite).render(format, width()))?;
    } else if let Some(program) = Program::from_name(name) {
        let format = require_output_format(arguments.format, "a program")?;
        print(&list_program_parameters([program]).render(format, width()))?;
    } else if let Some(shown) = catalogue::show(
        &load_catalogue(arguments.catalogue.as_deref())?,
        name,
        arguments
            .format
            .output_format()
            .unwrap_or(OutputFormat::Json),
    ) {
        return shown;
    } else {
        let loaded = runs::load_runs(store, name)
            .map_err(|error| catalogue::suggest_command(name, error))?;
        print(&match arguments.format {
            RunFormat::Table => {
                let details: Vec<_> = loaded
                    .iter()
                    .map(|run| report::render_details(run, width()))
                    .collect();
                details.join("\n\n")
            }
            format => format.render_runs(&loaded, width())?.trim_end().to_owned(),
        })?;
    }
    Ok(DONE)
}

/// Prints the figures of a modelled drive next to the expected ones.
fn show_expected(arguments: &ShowArguments) -> CommandResult {
    let format = require_output_format(arguments.format, "what is expected of a drive")?;
    let known = load_catalogue(arguments.catalogue.as_deref())?;
    let name = arguments.name.as_str();
    if name.ends_with(".toml") {
        return Err(LaboratoryError::Request(expected_in_file_help(Path::new(
            name,
        ))));
    }
    let drive = name.strip_prefix("drive/").unwrap_or(name);
    let drive = drive.strip_prefix("bare-").unwrap_or(drive);
    let stop = stop_on_signals()?;
    let progress = ModelRunDisplay::new(false);
    let threads = ThreadCrew(available_threads());
    let shown = |done, of| progress.update(done, of);
    let found =
        diskperf_models::expected::compare_expected((&known, drive), &threads, &stop, &shown)?;
    drop(progress);
    print(&report::render_expected(&found, format.into(), width()))?;
    Ok(DONE)
}

/// Returns advice on how to show the expected figures of a drive in a user's file.
fn expected_in_file_help(file: &Path) -> String {
    let drive = file.file_stem().unwrap_or_default().to_string_lossy();
    let parent = file.parent();
    let folder = parent.filter(|folder| folder.ends_with("drives"));
    let catalogue = folder.and_then(Path::parent).map_or_else(
        || "DIR".to_owned(),
        |catalogue| catalogue.display().to_string(),
    );
    format!(
        "{}: --expected takes the name of a drive, with its figures in DIR/expected/{drive}.toml beside DIR/drives/{drive}.toml: `diskperf show {drive} --expected --catalogue {catalogue}`",
        file.display()
    )
}

/// Returns the output format for an item without results.
fn require_output_format(format: RunFormat, what: &str) -> Result<OutputFormat, LaboratoryError> {
    format.output_format().ok_or_else(|| {
        LaboratoryError::Request(format!(
            "fio's form is that of results, and {what} has none in it: give --format json"
        ))
    })
}

fn list_suite_steps(suite: &Suite) -> Listing {
    let row = |program: &Program| {
        let parameters = program.list_parameters();
        let values: Vec<_> = parameters
            .iter()
            .map(|parameter| format!("{}={}", parameter.parameter_name, parameter.value))
            .collect();
        vec![
            program.name().to_owned(),
            values.join(" "),
            suite.default_protocol.repetition_count.to_string(),
        ]
    };
    Listing {
        name: "steps",
        heading: vec!["program", "parameters", "repetitions"],
        rows: suite.iter_programs().map(row).collect(),
        ..Listing::default()
    }
}

/// Executes `diskperf delete`: deletes stored runs.
pub(crate) fn delete(arguments: &DeleteArguments, store: Option<&Path>) -> CommandResult {
    let deletion = RunDeletion {
        run_names: arguments.runs.clone(),
        only_interrupted: arguments.killed,
        is_dry_run: arguments.dry_run,
    };
    let done = match arguments.dry_run {
        true => "would remove",
        false => "removed",
    };
    for run in deletion.delete_runs(store)? {
        let label = run.label.iter().map(|label| format!(" ({label})"));
        print(&format!(
            "{done} run {}{}: {} on {}, started {} UTC",
            run.id,
            label.collect::<String>(),
            run.suite,
            run.target,
            format_utc(run.started_unix_ms)
        ))?;
    }
    Ok(DONE)
}

/// Executes `diskperf clean`: removes files that interrupted runs left behind.
pub(crate) fn clean(arguments: &CleanArguments, store: Option<&Path>) -> CommandResult {
    let mut opened = runs::open_store(store);
    if let Err(error) = &opened {
        print_message(&format!("looking only in the directories of --on: {error}"));
    }
    let cleaning = CleanRequest {
        directories: arguments.directories.clone(),
        is_dry_run: arguments.dry_run,
        forgets_unmounted: arguments.forget_unmounted,
    };
    let mut cleaned = clean::clean(&cleaning, opened.as_mut().ok())?;
    serve::clean(&cleaning, &mut cleaned);
    for leftover in &cleaned.removed {
        print(&leftover.describe(arguments.dry_run))?;
    }
    for text in cleaned.notes.iter().chain(&cleaned.failures) {
        print_message(text);
    }
    if cleaned.removed.is_empty() && cleaned.failures.is_empty() {
        print("nothing to remove")?;
    }
    Ok(if cleaned.failures.is_empty() {
        DONE
    } else {
        FAILED
    })
}

//! Runs: execution, results and charts.

use crate::arguments::RunArguments;
use crate::columns::Columns;
use crate::errors::{request_exception, to_exception};
use crate::figures;
use crate::interruptible::run_interruptible;
use diskperf_analysis::report::{self, FioFormat, ReportFormat, html};
use diskperf_laboratory::execute::{execute, prepare_process};
use diskperf_laboratory::plan::{Plan, plan};
use diskperf_laboratory::recording::{RecordingDestination, RecordingObserver};
use diskperf_laboratory::report::build_reports;
use diskperf_laboratory::{
    Experiment, LaboratoryError, RunRecorder, SilentObserver, job_file, runs,
};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::{self as timeline, MeasuredWorld, RunState};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Run of a suite or program on a target, with its measurements.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Run {
    pub(crate) run: Arc<timeline::Run>,
}

#[pymethods]
impl Run {
    /// Returns the id of the run: ten hexadecimal digits.
    #[getter]
    fn id(&self) -> &str {
        &self.run.run_id
    }

    /// Returns the suite, or the program that ran alone.
    #[getter]
    fn suite(&self) -> &str {
        &self.run.suite_name
    }

    /// Returns the target; several are joined by ` + `.
    #[getter]
    fn target(&self) -> &str {
        &self.run.target_label
    }

    /// Returns the kind of system: `host` or `model`.
    #[getter]
    fn world(&self) -> &'static str {
        match self.run.world {
            MeasuredWorld::Host => "host",
            MeasuredWorld::Model => "model",
        }
    }

    /// Returns the seed of all random choices.
    #[getter]
    fn seed(&self) -> u64 {
        self.run.seed
    }

    /// Returns the label that the user gave the run.
    #[getter]
    fn label(&self) -> Option<&str> {
        self.run.user_label.as_deref()
    }

    /// Returns the state of the run: `running`, `finished`, `interrupted` or `failed`.
    #[getter]
    fn state(&self) -> &'static str {
        match self.run.state {
            RunState::Running => "running",
            RunState::Finished => "finished",
            RunState::Interrupted => "interrupted",
            RunState::Failed(_) => "failed",
        }
    }

    /// Returns the notes that a reader of the results needs.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.run.notes.clone()
    }

    /// Returns the words of the command line that started the run; none for a run of Python.
    #[getter]
    fn command_line(&self) -> Vec<String> {
        self.run.command_line.clone()
    }

    /// Returns a row for each program and file system.
    fn results(&self) -> Columns {
        figures::result_columns(&self.run)
    }

    /// Returns a row for each repetition of each program and file system.
    fn repetitions(&self) -> Columns {
        figures::repetition_columns(&self.run)
    }

    /// Returns a row for each operation of each program with several requests in flight.
    fn latencies(&self) -> Columns {
        figures::latency_columns(&self.run)
    }

    /// Returns a row for each interval of each repetition of a program with several requests in
    /// flight.
    fn series(&self) -> Columns {
        figures::series_columns(&self.run)
    }

    /// Returns a row for each stage of each worker of each repetition.
    fn ledger(&self) -> Columns {
        figures::ledger_columns(&self.run)
    }

    /// Returns the JSON of `diskperf run --format json`.
    fn json(&self) -> String {
        report::render_runs(std::slice::from_ref(&self.run), ReportFormat::Json, 0)
    }

    /// Returns the JSON of `diskperf run --format fio-json`, or of `fio-json+`.
    fn fio_json(&self, py: Python<'_>, plus: bool) -> PyResult<String> {
        let format = match plus {
            true => FioFormat::JsonPlus,
            false => FioFormat::Json,
        };
        let printed = report::render_fio_json(std::slice::from_ref(&self.run), format);
        printed.map_err(|error| request_exception(py, format!("{error}; to_json() has every run")))
    }

    /// Returns the table of `diskperf run`, at most `width` columns wide.
    fn text(&self, width: u16) -> String {
        report::render_runs(std::slice::from_ref(&self.run), ReportFormat::Table, width)
    }

    /// Returns the text of the file that `diskperf export` writes.
    fn export(&self, py: Python<'_>) -> PyResult<String> {
        let text = runs::render_export(std::slice::from_ref(&self.run));
        text.map_err(|error| to_exception(py, &error))
    }
}

#[derive(FromPyObject)]
pub(crate) enum StoreArgument {
    /// User's default store for `true`, no store for `false`.
    DefaultStore(bool),
    StoreAt(PathBuf),
}

/// Executes the requested runs, one for each target.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    options: RunArguments,
    store: Option<StoreArgument>,
    record: Option<(PathBuf, bool)>,
) -> PyResult<RunOutcome> {
    let experiment = options.into_experiment(py)?;
    let made = run_interruptible(py, |stop| {
        execute_plans(&experiment, (store.as_ref(), record), stop)
    })?;
    made.map_err(|error| to_exception(py, &error))
}

/// Describes what a run would write, where, how much and for how long.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>, options: RunArguments) -> PyResult<String> {
    let experiment = options.into_experiment(py)?;
    let plans = run_interruptible(py, |_| plan(&experiment))?;
    let plans = plans.map_err(|error| to_exception(py, &error))?;
    let texts: Vec<_> = plans.iter().map(Plan::describe).collect();
    Ok(texts.join("\n"))
}

/// Reports whether the name of a suite or program is that of a fio job file, which may name its own
/// targets.
#[pyfunction]
pub(crate) fn is_job_file(what: &str) -> bool {
    job_file::names_job_file(what)
}

/// Runs of a request; a tuple in Python.
pub(crate) struct RunOutcome {
    runs: Vec<Run>,
    /// Message about a failed store; `None` if nothing failed.
    store_failure: Option<String>,
    /// Message about requests that were not recorded; `None` if all were.
    unrecorded: Option<String>,
}

impl<'py> IntoPyObject<'py> for RunOutcome {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.runs, self.store_failure, self.unrecorded).into_pyobject(py)
    }
}

fn execute_plans(
    experiment: &Experiment,
    (store, record): (Option<&StoreArgument>, Option<(PathBuf, bool)>),
    stop: &Arc<AtomicBool>,
) -> Result<RunOutcome, LaboratoryError> {
    let mut plans = plan(experiment)?;
    let place =
        record.map(|(path, force)| RecordingDestination::open_for_plans(&path, force, &plans));
    let place = place.transpose()?;
    if place.is_some() {
        plans = plans.into_iter().map(Plan::with_recording).collect();
    }
    let mut nobody = SilentObserver;
    let mut recording = RecordingObserver::new(place, &mut nobody);
    // File systems are mounted for this thread and those that it starts.
    prepare_process(&plans)?;
    let mut made = Vec::new();
    let mut failure = None;
    for plan in plans {
        let mut recorder = open_recorder(store, &plan);
        let executed = execute(&plan, stop, &mut recording, &mut recorder);
        failure = unstored_message(&recorder).or(failure);
        if let Some(error) = executed.error {
            return Err(error);
        }
        made.push(Run {
            run: Arc::new(executed.run),
        });
    }
    let came = recording.finish_recording()?;
    Ok(RunOutcome {
        runs: made,
        store_failure: failure,
        unrecorded: came.and_then(|came| came.describe_missing()),
    })
}

/// Returns a message about a failed store and the location of the results; `None` if nothing
/// failed.
pub(crate) fn unstored_message(recorder: &RunRecorder) -> Option<String> {
    let why = recorder.store_failure()?;
    let saved = recorder.list_unstored().map(|(_, place)| match place {
        Ok(path) => format!("they are saved in {}", path.display()),
        Err(why) => format!("they are kept nowhere: {why}"),
    });
    let saved: Vec<_> = saved.collect();
    Some(format!(
        "the results are not in the store: {why}; {}",
        saved.join(", ")
    ))
}

/// Opens the recorder of a run. Runs on real storage are stored unless the user declines; modelled
/// runs, which can be repeated, are stored on request.
pub(crate) fn open_recorder(store: Option<&StoreArgument>, plan: &Plan) -> RunRecorder {
    match (store, plan) {
        (Some(StoreArgument::StoreAt(path)), _) => RunRecorder::open(Some(path)),
        (Some(StoreArgument::DefaultStore(true)), _) | (None, Plan::Host(_)) => {
            RunRecorder::open(None)
        }
        (Some(StoreArgument::DefaultStore(false)), Plan::Host(_)) => {
            RunRecorder::open_for_leftovers(None)
        }
        (Some(StoreArgument::DefaultStore(false)) | None, Plan::Model(_)) => {
            RunRecorder::without_store()
        }
    }
}

/// Returns the charts of runs, as a report has them.
#[pyfunction]
pub(crate) fn charts(py: Python<'_>, runs: Vec<PyRef<'_, Run>>) -> PyResult<Vec<ChartParts>> {
    let runs = runs.iter().map(|one| timeline::Run::clone(&one.run));
    let runs: Vec<_> = runs.collect();
    let drawn = py.detach(|| {
        let reported = build_reports(&load_catalogue(None)?, runs)?;
        Ok(html::build_charts(&reported))
    });
    let drawn = drawn.map_err(|error| to_exception(py, &error))?;
    Ok(drawn.into_iter().map(ChartParts::from).collect())
}

/// Texts of a chart; a tuple in Python.
pub(crate) struct ChartParts {
    name: String,
    title: String,
    caption: String,
    /// Vega-Lite specification as JSON.
    specification: String,
}

impl From<html::Chart> for ChartParts {
    fn from(chart: html::Chart) -> Self {
        Self {
            specification: chart.vega_spec.to_string(),
            name: chart.name,
            title: chart.title,
            caption: chart.caption,
        }
    }
}

impl<'py> IntoPyObject<'py> for ChartParts {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.name, self.title, self.caption, self.specification).into_pyobject(py)
    }
}

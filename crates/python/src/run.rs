//! Runs: made, looked at, drawn.

use crate::arguments::Options;
use crate::columns::Columns;
use crate::errors::{exception, request_error};
use crate::figures;
use crate::interruptible::interruptible;
use diskperf_analysis::report::{self, FioFormat, Format, html};
use diskperf_laboratory::execute::{execute, prepare_process};
use diskperf_laboratory::plan::{Plan, plan};
use diskperf_laboratory::recording::{Place, Recording};
use diskperf_laboratory::report::reported;
use diskperf_laboratory::{Experiment, LaboratoryError, Nobody, Recorder, job_file, runs};
use diskperf_models::model::load_catalogue;
use diskperf_timeline::{self as timeline, MeasuredWorld, RunState};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One suite or program on one target, with all that was measured.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Run {
    pub(crate) run: Arc<timeline::Run>,
}

#[pymethods]
impl Run {
    /// Ten hexadecimal digits.
    #[getter]
    fn id(&self) -> &str {
        &self.run.run_id
    }

    /// The suite, or the program when it was run by itself.
    #[getter]
    fn suite(&self) -> &str {
        &self.run.suite_name
    }

    /// The target; several, joined by ` + `.
    #[getter]
    fn target(&self) -> &str {
        &self.run.target_label
    }

    /// `host` or `model`.
    #[getter]
    fn world(&self) -> &'static str {
        match self.run.world {
            MeasuredWorld::Host => "host",
            MeasuredWorld::Model => "model",
        }
    }

    /// The seed of every random choice.
    #[getter]
    fn seed(&self) -> u64 {
        self.run.seed
    }

    /// The user's own name for it.
    #[getter]
    fn label(&self) -> Option<&str> {
        self.run.user_label.as_deref()
    }

    /// How far it came: `running`, `finished`, `interrupted` or `failed`.
    #[getter]
    fn state(&self) -> &'static str {
        match self.run.state {
            RunState::Running => "running",
            RunState::Finished => "finished",
            RunState::Interrupted => "interrupted",
            RunState::Failed(_) => "failed",
        }
    }

    /// What a reader must know about it.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.run.notes.clone()
    }

    /// The command line that made it, word by word; none of a run that Python made.
    #[getter]
    fn command_line(&self) -> Vec<String> {
        self.run.command_line.clone()
    }

    /// One row for each program and file system.
    fn results(&self) -> Columns {
        figures::results(&self.run)
    }

    /// One row for each repetition of each of these.
    fn repetitions(&self) -> Columns {
        figures::repetitions(&self.run)
    }

    /// One row for each operation of each program with several requests under way.
    fn latencies(&self) -> Columns {
        figures::latencies(&self.run)
    }

    /// One row for each interval of each repetition of such a program.
    fn series(&self) -> Columns {
        figures::series(&self.run)
    }

    /// One row for each stage of each worker of each repetition.
    fn ledger(&self) -> Columns {
        figures::ledger(&self.run)
    }

    /// The JSON of `diskperf run --format json`.
    fn json(&self) -> String {
        report::runs(std::slice::from_ref(&self.run), Format::Json, 0)
    }

    /// The JSON of `diskperf run --format fio-json`, or of `fio-json+`.
    fn fio_json(&self, py: Python<'_>, plus: bool) -> PyResult<String> {
        let format = match plus {
            true => FioFormat::JsonPlus,
            false => FioFormat::Json,
        };
        let printed = report::fio_json(std::slice::from_ref(&self.run), format);
        printed.map_err(|error| request_error(py, format!("{error}; to_json() has every run")))
    }

    /// The table of `diskperf run`, as wide as this many columns.
    fn text(&self, width: u16) -> String {
        report::runs(std::slice::from_ref(&self.run), Format::Table, width)
    }

    /// The file of `diskperf export`, as text.
    fn export(&self, py: Python<'_>) -> PyResult<String> {
        let text = runs::export_text(std::slice::from_ref(&self.run));
        text.map_err(|error| exception(py, &error))
    }
}

/// Where a run is kept.
#[derive(FromPyObject)]
pub(crate) enum Keeping {
    /// In the user's store, or nowhere.
    Usual(bool),
    /// In this store.
    Store(PathBuf),
}

/// Carries out what is asked for: a run for each target, and what went wrong with
/// the store, if anything did.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    options: Options,
    store: Option<Keeping>,
    record: Option<(PathBuf, bool)>,
) -> PyResult<Made> {
    let experiment = options.experiment(py)?;
    let made = interruptible(py, |stop| {
        carry_out(&experiment, (store.as_ref(), record), stop)
    })?;
    made.map_err(|error| exception(py, &error))
}

/// What would be written where, how much and for how long.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>, options: Options) -> PyResult<String> {
    let experiment = options.experiment(py)?;
    let plans = interruptible(py, |_| plan(&experiment))?;
    let plans = plans.map_err(|error| exception(py, &error))?;
    let texts: Vec<_> = plans.iter().map(Plan::describe).collect();
    Ok(texts.join("\n"))
}

/// Whether what is called a suite or a program is a fio job file, which may say itself
/// where it runs.
#[pyfunction]
pub(crate) fn is_job_file(what: &str) -> bool {
    job_file::is_named(what)
}

/// Runs, what went wrong with the store, and what was not recorded.
type Made = (Vec<Run>, Option<String>, Option<String>);

fn carry_out(
    experiment: &Experiment,
    (store, record): (Option<&Keeping>, Option<(PathBuf, bool)>),
    stop: &Arc<AtomicBool>,
) -> Result<Made, LaboratoryError> {
    let mut plans = plan(experiment)?;
    let place = record.map(|(path, force)| Place::of_plans(&path, force, &plans));
    let place = place.transpose()?;
    if place.is_some() {
        plans = plans.into_iter().map(Plan::recorded).collect();
    }
    let mut nobody = Nobody;
    let mut recording = Recording::new(place, &mut nobody);
    // File systems are mounted for this thread and those that it starts.
    prepare_process(&plans)?;
    let mut made = Vec::new();
    let mut failure = None;
    for plan in plans {
        let mut recorder = recorder(store, &plan);
        let executed = execute(&plan, stop, &mut recording, &mut recorder);
        failure = unstored(&recorder).or(failure);
        if let Some(error) = executed.error {
            return Err(error);
        }
        made.push(Run {
            run: Arc::new(executed.run),
        });
    }
    let came = recording.finish()?;
    Ok((made, failure, came.and_then(|came| came.missing())))
}

/// What went wrong with the store, and where the results are instead.
pub(crate) fn unstored(recorder: &Recorder) -> Option<String> {
    let why = recorder.failure()?;
    let saved = recorder.unstored().map(|(_, place)| match place {
        Ok(path) => format!("they are saved in {}", path.display()),
        Err(why) => format!("they are kept nowhere: {why}"),
    });
    let saved: Vec<_> = saved.collect();
    Some(format!(
        "the results are not in the store: {why}; {}",
        saved.join(", ")
    ))
}

/// What was measured on real storage is kept unless it is said not to be; what a
/// model did can be made again.
pub(crate) fn recorder(store: Option<&Keeping>, plan: &Plan) -> Recorder {
    match (store, plan) {
        (Some(Keeping::Store(path)), _) => Recorder::open(Some(path)),
        (Some(Keeping::Usual(true)), _) | (None, Plan::Host(_)) => Recorder::open(None),
        (Some(Keeping::Usual(false)), Plan::Host(_)) => Recorder::of_leftovers(None),
        (Some(Keeping::Usual(false)) | None, Plan::Model(_)) => Recorder::of_nothing(),
    }
}

/// The charts of runs, as a report has them: name, title, caption and the
/// Vega-Lite specification as JSON.
#[pyfunction]
pub(crate) fn charts(
    py: Python<'_>,
    runs: Vec<PyRef<'_, Run>>,
) -> PyResult<Vec<(String, String, String, String)>> {
    let runs = runs.iter().map(|one| timeline::Run::clone(&one.run));
    let runs: Vec<_> = runs.collect();
    let drawn = py.detach(|| {
        let reported = reported(&load_catalogue(None)?, runs)?;
        Ok(html::charts(&reported))
    });
    let drawn = drawn.map_err(|error| exception(py, &error))?;
    Ok(drawn.into_iter().map(parts).collect())
}

/// A chart taken apart.
pub(crate) fn parts(chart: html::Chart) -> (String, String, String, String) {
    let spec = chart.spec.to_string();
    (chart.name, chart.title, chart.caption, spec)
}

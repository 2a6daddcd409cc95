//! Runs that the command line or Python stored.

use crate::columns::Columns;
use crate::errors::to_exception;
use crate::run::Run;
use crate::table::{TableBuilder, to_signed};
use diskperf_laboratory::runs;
use diskperf_timeline::{MeasuredWorld, RunState};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lists the runs of a store, the newest first; without a path, those of the user's default store.
#[pyfunction]
pub(crate) fn stored_runs(py: Python<'_>, path: Option<PathBuf>) -> PyResult<Columns> {
    let listed = py.detach(|| {
        let store = runs::open_store(path.as_deref())?;
        store.list_runs().map_err(runs::store_failed)
    });
    let listed = listed.map_err(|error| to_exception(py, &error))?;
    let all = || listed.iter();
    Ok(TableBuilder::default()
        .text_column("id", all().map(|run| run.id.as_str()))
        .integer_column(
            "started_unix_ms",
            all().map(|run| to_signed(run.started_unix_ms)),
        )
        .text_column("suite", all().map(|run| run.suite.as_str()))
        .text_column("target", all().map(|run| run.target.as_str()))
        .text_column(
            "world",
            all().map(|run| match run.world {
                MeasuredWorld::Host => "host",
                MeasuredWorld::Model => "model",
            }),
        )
        .text_column("label", all().map(|run| run.label.as_deref()))
        .text_column(
            "state",
            all().map(|run| match run.state {
                RunState::Running => "running",
                RunState::Finished => "finished",
                RunState::Interrupted => "interrupted",
                RunState::Failed(_) => "failed",
            }),
        )
        .integer_column("results", all().map(|run| i64::from(run.result_count)))
        .integer_column(
            "repetitions",
            all().map(|run| i64::from(run.repetition_count)),
        )
        .into_columns())
}

/// Loads runs by a label, an id, a unique prefix of one, `last`, or a file of `diskperf export`,
/// which may hold several.
#[pyfunction]
pub(crate) fn load_runs(py: Python<'_>, path: Option<PathBuf>, name: &str) -> PyResult<Vec<Run>> {
    let path = path.as_deref();
    let loaded = py.detach(|| runs::load_runs(path.map(Path::new), name));
    let loaded = loaded.map_err(|error| to_exception(py, &error))?;
    let runs = loaded.into_iter().map(Arc::new);
    Ok(runs.map(|run| Run { run }).collect())
}

/// Deletes stored runs by name, all or none, and returns their ids.
#[pyfunction]
pub(crate) fn delete_runs(
    py: Python<'_>,
    path: Option<PathBuf>,
    names: Vec<String>,
    killed: bool,
    dry_run: bool,
) -> PyResult<Vec<String>> {
    let deletion = runs::RunDeletion {
        run_names: names,
        only_interrupted: killed,
        is_dry_run: dry_run,
    };
    let deleted = py.detach(|| deletion.delete_runs(path.as_deref()));
    let deleted = deleted.map_err(|error| to_exception(py, &error))?;
    Ok(deleted.into_iter().map(|run| run.id).collect())
}

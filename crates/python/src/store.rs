//! Runs that the command line or Python stored.

use crate::columns::Columns;
use crate::errors::exception;
use crate::run::Run;
use crate::table::{Table, whole};
use diskperf_laboratory::runs;
use diskperf_timeline::{MeasuredWorld, RunState};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The runs of a store, the newest first; of the user's own without a path.
#[pyfunction]
pub(crate) fn stored_runs(py: Python<'_>, path: Option<PathBuf>) -> PyResult<Columns> {
    let listed = py.detach(|| {
        let store = runs::open_store(path.as_deref())?;
        store.list().map_err(runs::store_failed)
    });
    let listed = listed.map_err(|error| exception(py, &error))?;
    let all = || listed.iter();
    Ok(Table::default()
        .text("id", all().map(|run| run.id.as_str()))
        .integer(
            "started_unix_ms",
            all().map(|run| whole(run.started_unix_ms)),
        )
        .text("suite", all().map(|run| run.suite.as_str()))
        .text("target", all().map(|run| run.target.as_str()))
        .text(
            "world",
            all().map(|run| match run.world {
                MeasuredWorld::Host => "host",
                MeasuredWorld::Model => "model",
            }),
        )
        .text("label", all().map(|run| run.label.as_deref()))
        .text(
            "state",
            all().map(|run| match run.state {
                RunState::Running => "running",
                RunState::Finished => "finished",
                RunState::Interrupted => "interrupted",
                RunState::Failed(_) => "failed",
            }),
        )
        .integer("results", all().map(|run| i64::from(run.results)))
        .integer("repetitions", all().map(|run| i64::from(run.repetitions)))
        .finish())
}

/// Loads what the user calls a run: a label, an id, a unique prefix of one,
/// `last`, or a file of `diskperf export`, which may hold several.
#[pyfunction]
pub(crate) fn load_runs(py: Python<'_>, path: Option<PathBuf>, name: &str) -> PyResult<Vec<Run>> {
    let path = path.as_deref();
    let loaded = py.detach(|| runs::load(path.map(Path::new), name));
    let loaded = loaded.map_err(|error| exception(py, &error))?;
    let runs = loaded.into_iter().map(Arc::new);
    Ok(runs.map(|run| Run { run }).collect())
}

/// Removes stored runs by their names, all or none, and gives their ids.
#[pyfunction]
pub(crate) fn delete_runs(
    py: Python<'_>,
    path: Option<PathBuf>,
    names: Vec<String>,
    killed: bool,
    dry_run: bool,
) -> PyResult<Vec<String>> {
    let deletion = runs::Deletion {
        names,
        killed,
        dry_run,
    };
    let deleted = py.detach(|| deletion.carry_out(path.as_deref()));
    let deleted = deleted.map_err(|error| exception(py, &error))?;
    Ok(deleted.into_iter().map(|run| run.id).collect())
}

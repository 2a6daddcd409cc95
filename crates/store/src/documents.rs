//! The JSON documents of the rows, and the words and numbers of their columns.

use crate::error::StoreErrorKind;
use diskperf_timeline::{ProgramResult, Repetition, Run, RunState, World};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Which row a document belongs to, for messages.
pub(crate) fn place_of_run(run_id: &str) -> String {
    format!("run `{run_id}`")
}

pub(crate) fn place_of_result(run_id: &str, ordinal: u32) -> String {
    format!("result {ordinal} of run `{run_id}`")
}

pub(crate) fn place_of_repetition(run_id: &str, ordinal: u32, number: u32) -> String {
    format!("repetition {number} of result {ordinal} of run `{run_id}`")
}

/// A run's document, which leaves its results to their own rows.
pub(crate) fn run_document(run: &Run) -> Result<String, StoreErrorKind> {
    let row = Run {
        results: Vec::new(),
        ..run.clone()
    };
    write(&row, || place_of_run(&run.id))
}

/// A result's document, which leaves its repetitions to their own rows.
pub(crate) fn result_document(
    run_id: &str,
    ordinal: u32,
    result: &ProgramResult,
) -> Result<String, StoreErrorKind> {
    let row = ProgramResult {
        repetitions: Vec::new(),
        ..result.clone()
    };
    write(&row, || place_of_result(run_id, ordinal))
}

/// A repetition's document.
pub(crate) fn repetition_document(
    run_id: &str,
    ordinal: u32,
    number: u32,
    repetition: &Repetition,
) -> Result<String, StoreErrorKind> {
    write(repetition, || place_of_repetition(run_id, ordinal, number))
}

/// Writes a document, and reads it back: what JSON cannot hold must be an
/// error now, while the figures still exist, not when they are asked for.
fn write<T: Serialize + DeserializeOwned + PartialEq>(
    value: &T,
    place: impl FnOnce() -> String,
) -> Result<String, StoreErrorKind> {
    serde_json::to_string(value)
        .ok()
        .filter(|text| serde_json::from_str::<T>(text).is_ok_and(|read| read == *value))
        .ok_or_else(|| StoreErrorKind::NotStorable { place: place() })
}

/// Reads a document.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    place: impl FnOnce() -> String,
) -> Result<T, StoreErrorKind> {
    serde_json::from_str(text).map_err(|error| StoreErrorKind::Malformed {
        place: place(),
        detail: error.to_string(),
    })
}

/// The columns `state` and `error`.
pub(crate) fn state_columns(state: &RunState) -> (&'static str, Option<&str>) {
    match state {
        RunState::Running => ("running", None),
        RunState::Finished => ("finished", None),
        RunState::Interrupted => ("interrupted", None),
        RunState::Failed(error) => ("failed", Some(error)),
    }
}

/// The state that the columns `state` and `error` say.
pub(crate) fn state_of_columns(state: &str, error: Option<String>) -> Option<RunState> {
    match (state, error) {
        ("running", None) => Some(RunState::Running),
        ("finished", None) => Some(RunState::Finished),
        ("interrupted", None) => Some(RunState::Interrupted),
        ("failed", Some(error)) => Some(RunState::Failed(error)),
        _ => None,
    }
}

/// The column `world`.
pub(crate) fn world_column(world: World) -> &'static str {
    match world {
        World::Host => "host",
        World::Model => "model",
    }
}

/// The world that the column says.
pub(crate) fn world_of_column(world: &str) -> Option<World> {
    match world {
        "host" => Some(World::Host),
        "model" => Some(World::Model),
        _ => None,
    }
}

/// A column's integer; SQLite's have a sign. The document keeps the value.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

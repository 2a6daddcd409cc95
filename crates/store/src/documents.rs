//! Conversion of runs to the JSON documents and the columns of the store's rows, and back.

use crate::error::StoreErrorKind;
use diskperf_timeline::{MeasuredWorld, ProgramResult, Repetition, Run, RunState};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Describes the row of a run, for messages.
pub(crate) fn describe_run_row(run_id: &str) -> String {
    format!("run `{run_id}`")
}

pub(crate) fn describe_result_row(run_id: &str, ordinal: u32) -> String {
    format!("result {ordinal} of run `{run_id}`")
}

pub(crate) fn describe_repetition_row(run_id: &str, ordinal: u32, number: u32) -> String {
    format!("repetition {number} of result {ordinal} of run `{run_id}`")
}

/// Returns the document of a run, without its results, which have rows of their own.
pub(crate) fn encode_run(run: &Run) -> Result<String, StoreErrorKind> {
    let row = Run {
        results: Vec::new(),
        ..run.clone()
    };
    encode_document(&row, || describe_run_row(&run.run_id))
}

/// Returns the document of a result, without its repetitions, which have rows of their own.
pub(crate) fn encode_result(
    run_id: &str,
    ordinal: u32,
    result: &ProgramResult,
) -> Result<String, StoreErrorKind> {
    let row = ProgramResult {
        repetitions: Vec::new(),
        ..result.clone()
    };
    encode_document(&row, || describe_result_row(run_id, ordinal))
}

pub(crate) fn encode_repetition(
    run_id: &str,
    ordinal: u32,
    number: u32,
    repetition: &Repetition,
) -> Result<String, StoreErrorKind> {
    encode_document(repetition, || {
        describe_repetition_row(run_id, ordinal, number)
    })
}

/// Writes a value as JSON and reads it back. A value that JSON cannot represent thus causes an
/// error while the results still exist, not when they are read later.
fn encode_document<T: Serialize + DeserializeOwned + PartialEq>(
    value: &T,
    place: impl FnOnce() -> String,
) -> Result<String, StoreErrorKind> {
    serde_json::to_string(value)
        .ok()
        .filter(|text| serde_json::from_str::<T>(text).is_ok_and(|read| read == *value))
        .ok_or_else(|| StoreErrorKind::ValueNotStorable { place: place() })
}

/// Parses the JSON document of a row.
pub(crate) fn decode_document<T: DeserializeOwned>(
    text: &str,
    place: impl FnOnce() -> String,
) -> Result<T, StoreErrorKind> {
    serde_json::from_str(text).map_err(|error| StoreErrorKind::Malformed {
        place: place(),
        detail: error.to_string(),
    })
}

/// Returns the values of the columns `state` and `error`.
pub(crate) fn state_columns(state: &RunState) -> (&'static str, Option<&str>) {
    match state {
        RunState::Running => ("running", None),
        RunState::Finished => ("finished", None),
        RunState::Interrupted => ("interrupted", None),
        RunState::Failed(error) => ("failed", Some(error)),
    }
}

/// Returns the run state for the columns `state` and `error`, or `None` for an invalid combination.
pub(crate) fn state_from_columns(state: &str, error: Option<String>) -> Option<RunState> {
    match (state, error) {
        ("running", None) => Some(RunState::Running),
        ("finished", None) => Some(RunState::Finished),
        ("interrupted", None) => Some(RunState::Interrupted),
        ("failed", Some(error)) => Some(RunState::Failed(error)),
        _ => None,
    }
}

/// Returns the value of the column `world`.
pub(crate) fn world_column(world: MeasuredWorld) -> &'static str {
    match world {
        MeasuredWorld::Host => "host",
        MeasuredWorld::Model => "model",
    }
}

/// Returns the world for the column `world`, or `None` for an invalid value.
pub(crate) fn world_from_column(world: &str) -> Option<MeasuredWorld> {
    match world {
        "host" => Some(MeasuredWorld::Host),
        "model" => Some(MeasuredWorld::Model),
        _ => None,
    }
}

/// Converts a number to a column's integer, which SQLite limits to 2^63 - 1. The document keeps the
/// exact value.
pub(crate) fn to_sqlite_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

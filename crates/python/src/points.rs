//! Execution of many points of one system and suite in one call.

use crate::arguments::RunArguments;
use crate::catalogue::Catalogue;
use crate::columns::Columns;
use crate::errors::{error_message, to_exception};
use crate::interruptible::run_interruptible;
use crate::table::{TableBuilder, to_signed};
use diskperf_laboratory::LaboratoryError;
use diskperf_models::model::parse_settings;
use diskperf_models::points::{ModelStudy, StudyFigures, StudyPoint};
use diskperf_models::tune;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Index of a point, with the figures of a program or the reason of a failure.
type PointRow = (usize, Result<StudyFigures, String>);

/// Runs points one after the other, each with its settings and its seed. A point that fails raises
/// an exception with the point's index, or has a row with the message if `keep_errors` is set.
#[pyfunction]
pub(crate) fn run_points(
    py: Python<'_>,
    catalogue: &Catalogue,
    shared: RunArguments,
    points: Vec<(Vec<String>, u64)>,
    keep_errors: bool,
) -> PyResult<Columns> {
    let experiment = shared.into_experiment(py)?;
    let study = ModelStudy {
        catalogue: catalogue.catalogue.clone(),
        target: experiment.targets[0].to_string_lossy().into_owned(),
        experiment,
    };
    let mut parsed = Vec::with_capacity(points.len());
    for (number, (own, seed)) in points.into_iter().enumerate() {
        let settings = parse_settings(&own)
            .map_err(|error| point_exception(py, number, to_exception(py, &error)))?;
        parsed.push(StudyPoint { settings, seed });
    }
    let points = parsed;
    study
        .check_study()
        .map_err(|error| to_exception(py, &error))?;
    let rows = run_interruptible(py, |stop| {
        run_all_points(&study, &points, keep_errors, stop)
    })?;
    let rows =
        rows.map_err(|(number, error)| point_exception(py, number, to_exception(py, &error)))?;
    Ok(point_columns(&rows, &points))
}

/// Returns the values of a range (`0..10:2`) or a list (`4K,8K`) for a parameter.
#[pyfunction]
pub(crate) fn values_of(py: Python<'_>, key: &str, values: &str) -> PyResult<Vec<String>> {
    tune::parse_values(key, values).map_err(|error| to_exception(py, &error))
}

/// Adds the index of the failed point to an exception.
fn point_exception(py: Python<'_>, number: usize, error: PyErr) -> PyErr {
    match error.value(py).setattr("point", number) {
        Ok(()) => error,
        Err(other) => other,
    }
}

fn run_all_points(
    study: &ModelStudy,
    points: &[StudyPoint],
    keep_errors: bool,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<PointRow>, (usize, LaboratoryError)> {
    let mut rows = Vec::with_capacity(points.len());
    for (number, point) in points.iter().enumerate() {
        let outcome = match stop.load(Ordering::Relaxed) {
            true => Err(LaboratoryError::Interrupted),
            false => study.run_point(point, stop),
        };
        match outcome {
            Ok(programs) => rows.extend(programs.into_iter().map(|one| (number, Ok(one)))),
            Err(LaboratoryError::Interrupted) => {
                return Err((number, LaboratoryError::Interrupted));
            }
            Err(error) if keep_errors => rows.push((number, Err(error_message(&error)))),
            Err(error) => return Err((number, error)),
        }
    }
    Ok(rows)
}

fn point_columns(rows: &[PointRow], points: &[StudyPoint]) -> Columns {
    let of = || rows.iter().map(|(_, one)| one.as_ref().ok());
    let count = |figure: fn(&StudyFigures) -> u64| {
        of().map(move |one| one.map(|one| to_signed(figure(one))))
    };
    let number = |figure: fn(&StudyFigures) -> f64| of().map(move |one| one.map(figure));
    TableBuilder::default()
        .integer_column("point", rows.iter().map(|(number, _)| *number as i64))
        .seed_column("seed", rows.iter().map(|(number, _)| points[*number].seed))
        .text_column(
            "program",
            of().map(|one| one.map(|one| one.program.as_str())),
        )
        .text_column(
            "filesystem",
            of().map(|one| one.map(|one| one.filesystem.as_str())),
        )
        .integer_column("drives", count(|one| u64::from(one.drive_count)))
        .integer_column("kept", count(|one| u64::from(one.kept_count)))
        .number_column("kb_per_s", number(|one| one.kb_per_s))
        .number_column(
            "durable_kb_per_s",
            of().map(|one| one.and_then(|one| one.durable_kb_per_s)),
        )
        .number_column("cpu_percent", number(|one| one.cpu_percent))
        .integer_column("elapsed_ns", count(|one| one.elapsed_time.0))
        .integer_column(
            "durable_ns",
            of().map(|one| {
                one.and_then(|one| one.durable_elapsed_time.map(|time| to_signed(time.0)))
            }),
        )
        .integer_column("cpu_ns", count(|one| one.cpu_time.0))
        .integer_column("processor_ns", count(|one| one.processor_busy_time.0))
        .integer_column("bytes", count(|one| one.payload_bytes))
        .integer_column("read_bytes", count(|one| one.read_bytes))
        .integer_column("written_bytes", count(|one| one.written_bytes))
        .integer_column("calls", count(|one| one.call_count))
        .integer_column("requests", count(|one| one.request_count))
        .integer_column(
            "missed_revolutions",
            count(|one| one.missed_revolution_count),
        )
        .integer_column(
            "read_p99_ns",
            of().map(|one| one.and_then(|one| one.read_p99_ns.map(to_signed))),
        )
        .integer_column(
            "write_p99_ns",
            of().map(|one| one.and_then(|one| one.write_p99_ns.map(to_signed))),
        )
        .text_column(
            "error",
            rows.iter()
                .map(|(_, one)| one.as_ref().err().map(String::as_str)),
        )
        .into_columns()
}

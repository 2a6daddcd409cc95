//! Many points of one system and suite in one call.

use crate::arguments::Options;
use crate::catalogue::Catalogue;
use crate::columns::Columns;
use crate::errors::{exception, words};
use crate::interruptible::interruptible;
use crate::table::{Table, whole};
use diskperf_laboratory::LaboratoryError;
use diskperf_models::model::parse_settings;
use diskperf_models::points::{ModelStudy, StudyFigures, StudyPoint};
use diskperf_models::tune;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Programs of points, or why a point has none; each with its point's number.
type Row = (usize, Result<StudyFigures, String>);

/// Runs points one after the other: for each its settings and its seed. Of a
/// point that fails, the exception has its number as its second argument, or its
/// row has the words, if these are to be kept.
#[pyfunction]
pub(crate) fn run_points(
    py: Python<'_>,
    catalogue: &Catalogue,
    shared: Options,
    points: Vec<(Vec<String>, u64)>,
    keep_errors: bool,
) -> PyResult<Columns> {
    let experiment = shared.experiment(py)?;
    let study = ModelStudy {
        catalogue: catalogue.catalogue.clone(),
        target: experiment.targets[0].to_string_lossy().into_owned(),
        experiment,
    };
    let mut parsed = Vec::with_capacity(points.len());
    for (number, (own, seed)) in points.into_iter().enumerate() {
        let settings =
            parse_settings(&own).map_err(|error| at(py, number, exception(py, &error)))?;
        parsed.push(StudyPoint { settings, seed });
    }
    let points = parsed;
    study.check_study().map_err(|error| exception(py, &error))?;
    let rows = interruptible(py, |stop| rows(&study, &points, keep_errors, stop))?;
    let rows = rows.map_err(|(number, error)| at(py, number, exception(py, &error)))?;
    Ok(table(&rows, &points))
}

/// The values that a range (`0..10:2`) or a list (`4K,8K`) has for a parameter.
#[pyfunction]
pub(crate) fn values_of(py: Python<'_>, key: &str, values: &str) -> PyResult<Vec<String>> {
    tune::parse_values(key, values).map_err(|error| exception(py, &error))
}

/// An exception that says at which point it came up.
fn at(py: Python<'_>, number: usize, error: PyErr) -> PyErr {
    match error.value(py).setattr("point", number) {
        Ok(()) => error,
        Err(other) => other,
    }
}

fn rows(
    study: &ModelStudy,
    points: &[StudyPoint],
    keep_errors: bool,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Row>, (usize, LaboratoryError)> {
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
            Err(error) if keep_errors => rows.push((number, Err(words(&error)))),
            Err(error) => return Err((number, error)),
        }
    }
    Ok(rows)
}

fn table(rows: &[Row], points: &[StudyPoint]) -> Columns {
    let of = || rows.iter().map(|(_, one)| one.as_ref().ok());
    let count =
        |figure: fn(&StudyFigures) -> u64| of().map(move |one| one.map(|one| whole(figure(one))));
    let number = |figure: fn(&StudyFigures) -> f64| of().map(move |one| one.map(figure));
    Table::default()
        .integer("point", rows.iter().map(|(number, _)| *number as i64))
        .seed("seed", rows.iter().map(|(number, _)| points[*number].seed))
        .text(
            "program",
            of().map(|one| one.map(|one| one.program.as_str())),
        )
        .text(
            "filesystem",
            of().map(|one| one.map(|one| one.filesystem.as_str())),
        )
        .integer("drives", count(|one| u64::from(one.drive_count)))
        .integer("kept", count(|one| u64::from(one.kept_count)))
        .number("kb_per_s", number(|one| one.kb_per_s))
        .number(
            "durable_kb_per_s",
            of().map(|one| one.and_then(|one| one.durable_kb_per_s)),
        )
        .number("cpu_percent", number(|one| one.cpu_percent))
        .integer("elapsed_ns", count(|one| one.elapsed_time.0))
        .integer(
            "durable_ns",
            of().map(|one| one.and_then(|one| one.durable_elapsed_time.map(|time| whole(time.0)))),
        )
        .integer("cpu_ns", count(|one| one.cpu_time.0))
        .integer("processor_ns", count(|one| one.processor_busy_time.0))
        .integer("bytes", count(|one| one.payload_bytes))
        .integer("read_bytes", count(|one| one.read_bytes))
        .integer("written_bytes", count(|one| one.written_bytes))
        .integer("calls", count(|one| one.call_count))
        .integer("requests", count(|one| one.request_count))
        .integer(
            "missed_revolutions",
            count(|one| one.missed_revolution_count),
        )
        .integer(
            "read_p99_ns",
            of().map(|one| one.and_then(|one| one.read_p99_ns.map(whole))),
        )
        .integer(
            "write_p99_ns",
            of().map(|one| one.and_then(|one| one.write_p99_ns.map(whole))),
        )
        .text(
            "error",
            rows.iter()
                .map(|(_, one)| one.as_ref().err().map(String::as_str)),
        )
        .finish()
}

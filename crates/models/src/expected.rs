//! Comparison of a catalogue drive with the figures expected of it.

use crate::crew::{Crew, WatchedCrew};
use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use diskperf_analysis::expected::{ExpectedFigures, ExpectedValue};
use diskperf_catalogue::{Catalogue, DataSheetExpectation, DiskFigure, Figure};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::expected::flash::FigureExperiment;
use diskperf_device::expected::{disk, flash};
use diskperf_device::flash::specification::FlashSpecification;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Measures each expected figure on the modelled drive, in the `bare-` system that consists of the
/// drive alone. `progress` receives the number of finished experiments and their total; one
/// experiment may give several figures.
///
/// # Errors
///
/// Returns an error if the drive does not exist, has no `bare-` system, has no expected figures, or
/// is neither a disk with firmware nor a flash drive; if it cannot have a figure; or if the user
/// ends the measurement.
pub fn compare_expected(
    (catalogue, drive): (&Catalogue, &str),
    crew: &dyn Crew,
    stop: &Arc<AtomicBool>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<ExpectedFigures, LaboratoryError> {
    let of = catalogue
        .data_sheet_expectations(drive)
        .map_err(LaboratoryError::catalogue)?;
    let together = group_by_experiment(&of.figures);
    progress(0, together.len());
    let crew = WatchedCrew {
        crew,
        stop,
        progress,
    };
    let found = crew.run_each(together.len(), |number| {
        let figures: Vec<&DataSheetExpectation> = together[number]
            .iter()
            .map(|place| &of.figures[*place])
            .collect();
        measure_group(catalogue, drive, &figures)
    })?;
    let places = together.into_iter().flatten();
    let mut values: Vec<(usize, f64)> = places.zip(found.into_iter().flatten()).collect();
    values.sort_by_key(|(place, _)| *place);
    Ok(ExpectedFigures {
        drive: drive.to_owned(),
        seed: match of.figures.first().map(|of| of.figure) {
            Some(Figure::Flash(_)) => flash::LOAD_SEED,
            Some(Figure::Disk(_)) | None => disk::LOAD_SEED,
        },
        values: values
            .iter()
            .map(|(place, found)| build_value(*found, &of.figures[*place]))
            .collect(),
    })
}

fn group_by_experiment(values: &[DataSheetExpectation]) -> Vec<Vec<usize>> {
    let mut together: Vec<Vec<usize>> = Vec::new();
    for (place, one) in values.iter().enumerate() {
        let is_same = |group: &&mut Vec<usize>| {
            let other = &values[group[0]];
            let experiments = match (one.figure, other.figure) {
                (Figure::Flash(one), Figure::Flash(other)) => {
                    FigureExperiment::from(one) == FigureExperiment::from(other)
                }
                (one, other) => one == other,
            };
            experiments
                && one.depth == other.depth
                && one.drive_settings() == other.drive_settings()
        };
        match together.iter_mut().find(is_same) {
            Some(group) => group.push(place),
            None => together.push(vec![place]),
        }
    }
    together
}

/// Measures the figures of one experiment on the modelled drive, with the settings that they are
/// expected for.
fn measure_group(
    catalogue: &Catalogue,
    drive: &str,
    figures: &[&DataSheetExpectation],
) -> Result<Vec<f64>, LaboratoryError> {
    let system = format!("bare-{drive}");
    let first = figures[0];
    let computer = ModelComputer::read_catalogue(catalogue, &system, &first.drive_settings())?;
    let no = |kind: &str| {
        LaboratoryError::Request(format!(
            "{drive}: `{}` is a figure of {kind}, and {system} has none of that name",
            first.figure.name()
        ))
    };
    match first.figure {
        Figure::Disk(figure) => {
            let disk = computer.find_disk(drive);
            let disk = disk.ok_or_else(|| no("a disk with command queue and cache"))?;
            check_disk(drive, disk, (figure, first.depth))?;
            let found = disk::measure_figure(disk, figure, first.depth);
            Ok(vec![found; figures.len()])
        }
        Figure::Flash(figure) => {
            let flash = computer.find_flash(drive);
            let flash = flash.ok_or_else(|| no("a flash drive"))?;
            check_flash(drive, flash, first.depth)?;
            let measured = flash::run_experiment(flash, figure.into(), first.depth);
            let figure = |of: &&DataSheetExpectation| match of.figure {
                Figure::Flash(figure) => measured.figure_value(figure),
                Figure::Disk(_) => unreachable!("figures of one experiment are of one kind"),
            };
            Ok(figures.iter().map(figure).collect())
        }
    }
}

fn check_depth(drive: &str, depth: u32, most: u32) -> Result<(), LaboratoryError> {
    match depth {
        0 => Err(unusable_drive_error(
            drive,
            "a figure is expected at depth 0; the queue depth must be at least 1",
        )),
        _ if depth > most => Err(unusable_drive_error(
            drive,
            &format!(
                "a figure is expected at depth {depth}, and the queue depth of the drive is 1 to {most}"
            ),
        )),
        _ => Ok(()),
    }
}

fn unusable_drive_error(drive: &str, why: &str) -> LaboratoryError {
    LaboratoryError::Request(format!("{drive}: {why}"))
}

fn check_disk(
    drive: &str,
    disk: &DiskSpecification,
    (figure, depth): (DiskFigure, u32),
) -> Result<(), LaboratoryError> {
    check_depth(drive, depth, disk.queue_depth)?;
    match (figure, disk.shingled) {
        (DiskFigure::WriteMapFullMs, None) => {
            let why = "the entry expects `write_map_full_ms`, and the drive has no media cache";
            Err(unusable_drive_error(drive, why))
        }
        _ => Ok(()),
    }
}

/// Minimum size of a flash drive in mapping units, since some figures start after two gibibytes
/// were written.
const WRITTEN_UNITS_MIN: u32 = 1 << 19;

fn check_flash(drive: &str, of: &FlashSpecification, depth: u32) -> Result<(), LaboratoryError> {
    check_depth(drive, depth, of.interface.queue_depth)?;
    if of.translation.logical_units < WRITTEN_UNITS_MIN {
        let why = "expected figures need a drive of at least 2 GiB";
        return Err(unusable_drive_error(drive, why));
    }
    Ok(())
}

fn build_value(found: f64, of: &DataSheetExpectation) -> ExpectedValue {
    let off_share = found / of.expected_value - 1.0;
    let settings = of.settings.iter();
    ExpectedValue {
        figure: of.figure.name().to_owned(),
        description: of.figure.description().to_owned(),
        unit: of.figure.unit().to_owned(),
        queue_depth: of.depth,
        settings: settings
            .map(|(key, value)| format!("drive.{key}={value}"))
            .collect(),
        expected_value: of.expected_value,
        modelled_value: found,
        deviation_share: off_share,
        tolerance_share: of.tolerance_share,
        is_within_tolerance: off_share.abs() <= of.tolerance_share,
        source: of.source.clone(),
    }
}

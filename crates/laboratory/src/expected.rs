//! A drive of the catalogue beside what is expected of it.

use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use diskperf_analysis::expected::{ExpectedFigures, ExpectedValue};
use diskperf_catalogue::{Catalogue, DiskFigure, Expected, Figure};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_machine::expected::{disk, flash};
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures each figure that is expected of a drive on the modelled one, in the system that
/// has nothing but it. `shown` is called with how many are done, of how many, and with the
/// figure that comes next, in words.
///
/// # Errors
///
/// A drive that there is not, that no `bare-` system has, of which nothing is expected, or
/// that is neither a disk with firmware nor a flash drive; a figure that it cannot have; an
/// end that the user asked for.
pub fn expected(
    catalogue: &Catalogue,
    drive: &str,
    stop: &AtomicBool,
    shown: &dyn Fn(usize, usize, &str),
) -> Result<ExpectedFigures, LaboratoryError> {
    let of = catalogue
        .expectations(drive)
        .map_err(LaboratoryError::catalogue)?;
    let mut values = Vec::new();
    for one in &of.values {
        shown(values.len(), of.values.len(), one.what.words().0);
        if stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        let found = found(catalogue, drive, one)?;
        values.push(value(found, one));
    }
    shown(values.len(), values.len(), "");
    Ok(ExpectedFigures {
        drive: drive.to_owned(),
        seed: match of.values.first().map(|of| of.what) {
            Some(Figure::Flash(_)) => flash::SEED,
            Some(Figure::Disk(_)) | None => disk::SEED,
        },
        values,
    })
}

/// The figure of the modelled drive, with the settings that it is expected of.
fn found(catalogue: &Catalogue, drive: &str, of: &Expected) -> Result<f64, LaboratoryError> {
    let system = format!("bare-{drive}");
    let computer = Computer::read(catalogue, &system, &of.settings())?;
    let no = |kind: &str| {
        LaboratoryError::Request(format!(
            "{drive}: `{}` is a figure of {kind}, and {system} has none of that name",
            of.what.name()
        ))
    };
    match of.what {
        Figure::Disk(figure) => {
            let disk = computer.disk(drive);
            let disk = disk.ok_or_else(|| no("a disk with firmware of its own"))?;
            check_disk(drive, disk, (figure, of.depth))?;
            Ok(disk::measured(disk, figure, of.depth))
        }
        Figure::Flash(figure) => {
            let flash = computer.flash(drive);
            let flash = flash.ok_or_else(|| no("a flash drive"))?;
            check_flash(drive, flash, of.depth)?;
            Ok(flash::measured(flash, figure, of.depth))
        }
    }
}

fn check_depth(drive: &str, depth: u32, most: u32) -> Result<(), LaboratoryError> {
    match depth {
        0 => Err(refused(drive, "a figure is expected at depth 0")),
        _ if depth > most => Err(refused(
            drive,
            &format!("a figure is expected at depth {depth}, and its queue takes 1 to {most}"),
        )),
        _ => Ok(()),
    }
}

fn refused(drive: &str, why: &str) -> LaboratoryError {
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
            let why = "`write_map_full_ms` is expected of it, and it has no media cache";
            Err(refused(drive, why))
        }
        _ => Ok(()),
    }
}

/// Some figures begin with two gibibytes written.
const LEAST_UNITS: u32 = 1 << 19;

fn check_flash(drive: &str, of: &FlashSpecification, depth: u32) -> Result<(), LaboratoryError> {
    check_depth(drive, depth, of.interface.queue_depth)?;
    if of.layer.logical_units < LEAST_UNITS {
        let why = "figures are of drives of 2 GiB and more";
        return Err(refused(drive, why));
    }
    Ok(())
}

fn value(found: f64, of: &Expected) -> ExpectedValue {
    let off_share = found / of.expected - 1.0;
    let (words, unit) = of.what.words();
    let settings = of.settings.iter();
    ExpectedValue {
        what: of.what.name().to_owned(),
        words: words.to_owned(),
        unit: unit.to_owned(),
        depth: of.depth,
        settings: settings
            .map(|(key, value)| format!("drive.{key}={value}"))
            .collect(),
        expected: of.expected,
        found,
        off_share,
        tolerance_share: of.tolerance_share,
        met: off_share.abs() <= of.tolerance_share,
        source: of.source.clone(),
    }
}

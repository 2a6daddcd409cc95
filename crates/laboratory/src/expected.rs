//! A disk of the catalogue beside what is expected of it.

use crate::error::LaboratoryError;
use crate::model::computer::Computer;
use diskperf_analysis::expected::{ExpectedFigures, ExpectedValue};
use diskperf_machine::catalogue::{Catalogue, Expected, Figure};
use diskperf_machine::hardware::disk::device::DiskSpecification;
use diskperf_machine::hardware::disk::expected::{SEED, measured};
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures each figure that is expected of a drive on the modelled one, in the system that
/// has nothing but it. `shown` is called with how many are done, of how many.
///
/// # Errors
///
/// A drive that there is not, that no `bare-` system has, of which nothing is expected, or
/// that is no disk with firmware; an end that the user asked for.
pub fn expected(
    catalogue: &Catalogue,
    drive: &str,
    stop: &AtomicBool,
    shown: &dyn Fn(usize, usize),
) -> Result<ExpectedFigures, LaboratoryError> {
    let of = catalogue
        .expectations(drive)
        .map_err(LaboratoryError::catalogue)?;
    let system = format!("bare-{drive}");
    let computer = Computer::read(catalogue, &system, &[])?;
    let disk = computer.disk(drive).ok_or_else(|| {
        LaboratoryError::Request(format!(
            "{system} has no disk `{drive}` with firmware of its own"
        ))
    })?;
    let mut values = Vec::new();
    for one in &of.values {
        shown(values.len(), of.values.len());
        if stop.load(Ordering::Relaxed) {
            return Err(LaboratoryError::Interrupted);
        }
        check(drive, disk, one)?;
        values.push(value(disk, one));
    }
    shown(values.len(), values.len());
    Ok(ExpectedFigures {
        drive: drive.to_owned(),
        seed: SEED,
        values,
    })
}

/// The most commands that a figure has under way.
fn check(drive: &str, disk: &DiskSpecification, of: &Expected) -> Result<(), LaboratoryError> {
    let refused = |why: String| Err(LaboratoryError::Request(format!("{drive}: {why}")));
    if of.depth == 0 || of.depth > disk.queue_depth {
        return refused(format!(
            "a figure is expected at depth {}, and its queue takes 1 to {}",
            of.depth, disk.queue_depth
        ));
    }
    match (of.what, disk.shingled) {
        (Figure::WriteMapFullMs, None) => {
            refused("`write_map_full_ms` is expected of it, and it has no media cache".to_owned())
        }
        _ => Ok(()),
    }
}

fn value(disk: &DiskSpecification, of: &Expected) -> ExpectedValue {
    let found = measured(disk, of.what, of.depth);
    let off_share = found / of.expected - 1.0;
    let (words, unit) = of.what.words();
    ExpectedValue {
        what: of.what.name().to_owned(),
        words: words.to_owned(),
        unit: unit.to_owned(),
        depth: of.depth,
        expected: of.expected,
        found,
        off_share,
        tolerance_share: of.tolerance_share,
        met: off_share.abs() <= of.tolerance_share,
        source: of.source.clone(),
    }
}

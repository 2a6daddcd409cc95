//! Duration of formatting and verifying a drive by the controller of a modelled system.

use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use diskperf_analysis::formatting::FormattingTime;
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_machine::maintenance::{MaintenanceUnavailable, maintenance_times};
use diskperf_timeline::Nanoseconds;

/// Formats a drive, numbered from one, and verifies it the given number of times.
///
/// # Errors
///
/// Returns an error if the system or a setting is faulty, if the system has no such drive, or if
/// nothing is known about its controller.
pub fn estimate_formatting(
    catalogue: &Catalogue,
    (target, settings): (&str, &[Setting]),
    drive: u32,
    passes: u32,
) -> Result<FormattingTime, LaboratoryError> {
    let computer = ModelComputer::read_catalogue(catalogue, target, settings)?;
    let place = (drive as usize).wrapping_sub(1);
    let times = maintenance_times(&computer.specification, place).map_err(|error| {
        LaboratoryError::Request(match error {
            MaintenanceUnavailable::UnknownTimes(drive) => format!(
                "the controller of drive {drive} of {target} has no formatting times: its entry lacks `maintenance_track_ms`; name a system that has it, such as sun3-rimfire-2344"
            ),
            MaintenanceUnavailable::NoSuchDrive => format!(
                "--drive {drive}: {target} has {} configured",
                computer.drive_names.len()
            ),
        })
    })?;
    Ok(FormattingTime {
        drive_name: format!("{} of {target}", computer.drive_names[place]),
        track_count: times.track_count,
        revolution_time: Nanoseconds(times.revolution_time.0),
        format_time: Nanoseconds(times.format_time.0),
        verify_pass_time: Nanoseconds(times.verify_pass_time.0),
        verify_pass_count: passes,
    })
}

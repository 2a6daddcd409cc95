//! Maintenance of a whole drive by a controller's maintenance program, in virtual time: format and
//! verify, track by track. No other requests use the drive meanwhile.

use crate::hardware::mechanism::Mechanism;
use crate::parts::vme::{MaintenanceCommands, VerifyPass};
use crate::specification::MachineSpecification;
use diskperf_sim::Time;

/// Durations of a drive's format and verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceTimes {
    /// Number of tracks of the drive.
    pub track_count: u64,
    /// Duration of one revolution of the drive.
    pub revolution_time: Time,
    /// Duration of formatting all tracks.
    pub format_time: Time,
    /// Duration of one verify pass over all tracks after the format.
    pub verify_pass_time: Time,
}

/// Reason why no maintenance times are available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceUnavailable {
    /// Unknown format procedure of the controller of this drive. The drive's number is counted from
    /// 1.
    UnknownTimes(usize),
    /// Absence of a drive with the given number.
    NoSuchDrive,
}

/// Formats and verifies a drive of a system, given by its index, and returns the durations.
///
/// # Errors
///
/// If there is no such drive, or if the maintenance procedure of its controller is unknown.
pub fn maintenance_times(
    specification: &MachineSpecification,
    place: usize,
) -> Result<MaintenanceTimes, MaintenanceUnavailable> {
    let of = specification.drives.get(place);
    let of = of.ok_or(MaintenanceUnavailable::NoSuchDrive)?;
    let of = of
        .mechanism_specification()
        .ok_or(MaintenanceUnavailable::UnknownTimes(place + 1))?;
    let kernel = specification.software.kernel();
    let kernel = kernel.ok_or(MaintenanceUnavailable::UnknownTimes(place + 1))?;
    let mut hanging = kernel
        .attachments()
        .iter()
        .filter(|one| one.drive_indices.contains(&place));
    let maintenance = hanging.find_map(|one| one.controller_part.maintenance());
    let maintenance = maintenance.ok_or(MaintenanceUnavailable::UnknownTimes(place + 1))?;
    let mut work = MaintenanceRun {
        drive: of.new_mechanism(),
        maintenance,
        copy_per_kb: kernel.computer().kernel.kernel_costs.copy_time_per_kb,
        now: Time::ZERO,
    };
    let tracks = work.list_tracks();
    work.format_tracks(&tracks);
    let format = work.now;
    work.verify_tracks(&tracks);
    Ok(MaintenanceTimes {
        track_count: tracks.len() as u64,
        revolution_time: work.drive.spindle().revolution_time(),
        format_time: format,
        verify_pass_time: work.now - format,
    })
}

/// Maintenance in progress: the drive, its procedure and the current time.
struct MaintenanceRun {
    drive: Mechanism,
    maintenance: MaintenanceCommands,
    /// Processor time to compare 1 KiB read with its pattern. It equals that of a copy: a compare
    /// reads two words, a copy reads one and writes one.
    copy_per_kb: Time,
    now: Time,
}

impl MaintenanceRun {
    fn list_tracks(&self) -> Vec<(u64, u32)> {
        let geometry = self.drive.geometry();
        let mut tracks = Vec::new();
        let mut first = 0;
        for cylinder in 0..geometry.cylinders() {
            let sectors = geometry.sectors_per_track(cylinder);
            for _ in 0..geometry.heads() {
                tracks.push((first, sectors));
                first += u64::from(sectors);
            }
        }
        tracks
    }

    /// Spends the processor time of comparing a track with the given number of sectors.
    fn compare_time(&self, sectors: u32) -> Time {
        let track_bytes = f64::from(sectors) * f64::from(self.drive.geometry().sector_bytes());
        Time((self.copy_per_kb.0 as f64 * track_bytes / 1024.0) as u64)
    }

    /// Formats all tracks: headers and sectors are written over a full revolution, from the first
    /// sector of the track.
    fn format_tracks(&mut self, tracks: &[(u64, u32)]) {
        for (first, _) in tracks {
            self.now += self.maintenance.track_command_time;
            let passage = self.drive.transfer_sectors(self.now, *first, 1, true);
            let period = self.drive.spindle().revolution_time();
            self.now = self.now + passage.time_to_first_sector() + period;
            if self.maintenance.checks_after_format {
                self.now += self.maintenance.track_command_time;
                self.read_sector(*first);
            }
        }
    }

    fn verify_tracks(&mut self, tracks: &[(u64, u32)]) {
        for (first, sectors) in tracks {
            self.now += self.maintenance.track_command_time;
            if self.maintenance.verify_pass == VerifyPass::PatternPass {
                // Its buffer holds a track, which is written as it is read:
                // from whatever sector comes first.
                self.now += self.compare_time(*sectors);
                self.read_sector(*first);
                self.now += self.maintenance.track_command_time;
            }
            self.read_sector(*first);
        }
    }

    fn read_sector(&mut self, first: u64) {
        let read = self.drive.read_track(self.now, first);
        self.now = read
            .sector_end_times
            .last()
            .map_or(self.now, |(_, passes)| *passes);
    }
}

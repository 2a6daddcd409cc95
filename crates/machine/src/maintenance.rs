//! What a controller's maintenance program does to a whole drive, in virtual
//! time: formatting and verifying, track after track. Nothing else uses the
//! drive meanwhile.

use crate::hardware::mechanism::Mechanism;
use crate::parts::vme::{Maintenance, VerifyPass};
use crate::specification::Specification;
use diskperf_sim::Time;

/// How long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceTimes {
    /// Tracks of the drive.
    pub tracks: u64,
    /// One revolution.
    pub revolution: Time,
    /// Formatting all of them.
    pub format: Time,
    /// One pass over all of them afterwards.
    pub verify_pass: Time,
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoMaintenance {
    /// Nothing is known of how the controller of this drive, counted from one,
    /// formats.
    Unknown(usize),
    /// There is no such drive.
    NoDrive,
}

/// Formats and verifies a drive of a system, by its place.
///
/// # Errors
///
/// A drive that there is not, or whose controller's ways are not known.
pub fn maintain(
    specification: &Specification,
    place: usize,
) -> Result<MaintenanceTimes, NoMaintenance> {
    let of = specification.drives.get(place);
    let of = of.ok_or(NoMaintenance::NoDrive)?;
    let of = of.mechanism().ok_or(NoMaintenance::Unknown(place + 1))?;
    let kernel = specification.software.kernel();
    let kernel = kernel.ok_or(NoMaintenance::Unknown(place + 1))?;
    let mut hanging = kernel
        .attachments()
        .iter()
        .filter(|one| one.drives.contains(&place));
    let maintenance = hanging.find_map(|one| one.part.maintenance());
    let maintenance = maintenance.ok_or(NoMaintenance::Unknown(place + 1))?;
    let mut work = Work {
        drive: of.mechanism(),
        maintenance,
        copy_per_kb: kernel.computer().kernel.costs.copy_per_kb,
        now: Time::ZERO,
    };
    let tracks = work.tracks();
    work.format(&tracks);
    let format = work.now;
    work.verify(&tracks);
    Ok(MaintenanceTimes {
        tracks: tracks.len() as u64,
        revolution: work.drive.spindle().period(),
        format,
        verify_pass: work.now - format,
    })
}

/// A drive under maintenance.
struct Work {
    drive: Mechanism,
    maintenance: Maintenance,
    /// The processor comparing what was read with its pattern: two words read, as a
    /// copy reads one and writes one.
    copy_per_kb: Time,
    now: Time,
}

impl Work {
    /// The first sector of each track, and how many there are on it.
    fn tracks(&self) -> Vec<(u64, u32)> {
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

    /// The processor comparing a track of so many sectors.
    fn compare(&self, sectors: u32) -> Time {
        let track_bytes = f64::from(sectors) * f64::from(self.drive.geometry().sector_bytes());
        Time((self.copy_per_kb.0 as f64 * track_bytes / 1024.0) as u64)
    }

    /// Headers and sectors are written from the track's first on, all round.
    fn format(&mut self, tracks: &[(u64, u32)]) {
        for (first, _) in tracks {
            self.now += self.maintenance.track_command;
            let passage = self.drive.transfer(self.now, *first, 1, true);
            let period = self.drive.spindle().period();
            self.now = self.now + passage.to_first_sector() + period;
            if self.maintenance.format_check {
                self.now += self.maintenance.track_command;
                self.read(*first);
            }
        }
    }

    fn verify(&mut self, tracks: &[(u64, u32)]) {
        for (first, sectors) in tracks {
            self.now += self.maintenance.track_command;
            if self.maintenance.verify == VerifyPass::Pattern {
                // Its buffer holds a track, which is written as it is read:
                // from whatever sector comes first.
                self.now += self.compare(*sectors);
                self.read(*first);
                self.now += self.maintenance.track_command;
            }
            self.read(*first);
        }
    }

    fn read(&mut self, first: u64) {
        let read = self.drive.read_track(self.now, first);
        self.now = read.sectors.last().map_or(self.now, |(_, passes)| *passes);
    }
}

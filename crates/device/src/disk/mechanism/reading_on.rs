//! Read-ahead of the mechanism behind the requested sectors.

use super::*;

impl Mechanism {
    /// Reads ahead from time `at` until sector `end` or until time `stop`. A seek or a sector that
    /// has begun is finished first. Returns the end of the sectors read and the time of the stop.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    pub fn read_ahead(&mut self, at: Time, range: (u64, u64), stop: Time) -> (u64, Time) {
        self.read_ahead_from(at, range, None, stop).0
    }

    /// Returns the time components of a read-ahead that nothing interrupts.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[cold]
    pub fn read_ahead_times(&mut self, at: Time, (first, end): (u64, u64)) -> AccessTimes {
        let (mut at, mut sector, mut parts) = (at, first, AccessTimes::default());
        while sector < end {
            let run = self.layout.run_at(sector);
            let sectors = u64::from(run.sector_count).min(end - sector);
            let arrives = self.move_arm(at, (&run.position, false), false, &mut parts);
            let latency = self.spindle.time_until(arrives, run.position.start_angle);
            let transfer = self.spindle.passing_times(
                arrives + latency,
                run.position.start_angle,
                run.position.sector_angle * sectors,
            );
            parts.rotational_latency += latency;
            parts.transfer_time += transfer;
            at = arrives + latency + transfer;
            sector += sectors;
        }
        parts
    }

    /// Reads ahead like [`Self::read_ahead`], with the position of the first run if `known`. Also
    /// returns whether the arm was moving to sectors or waiting for them at the stop.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[inline(always)]
    pub fn read_ahead_from(
        &mut self,
        at: Time,
        (first, end): (u64, u64),
        known: Option<&SectorRun>,
        stop: Time,
    ) -> ((u64, Time), bool) {
        let (mut at, mut sector) = (at, first);
        while sector < end && at < stop {
            let further;
            let run = match known {
                Some(run) if sector == first => run,
                _ => {
                    further = self.layout.run_at(sector);
                    &further
                }
            };
            let place = &run.position;
            let arrives = self.move_arm(at, (place, false), false, &mut AccessTimes::default());
            self.time_until_angle(arrives, place.start_angle);
            let begins = arrives + self.spindle.time_until(arrives, place.start_angle);
            if begins >= stop {
                return ((sector, arrives.max(stop)), true);
            }
            let sectors = u64::from(run.sector_count).min(end - sector);
            let ends = begins
                + self.spindle.passing_times(
                    begins,
                    place.start_angle,
                    place.sector_angle * sectors,
                );
            if ends <= stop {
                (sector, at) = (sector + sectors, ends);
                continue;
            }
            let turned = self.spindle.angle_at(stop) - place.start_angle;
            let passed = (turned.0 / place.sector_angle + 1).min(sectors);
            let ends = begins
                + self.spindle.passing_times(
                    begins,
                    place.start_angle,
                    place.sector_angle * passed,
                );
            return ((sector + passed, ends), false);
        }
        ((sector, at), false)
    }
}

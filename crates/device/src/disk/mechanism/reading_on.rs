//! Read-ahead of the mechanism behind the requested sectors.

use super::*;

impl Mechanism {
    /// Reads ahead from time `at` until sector `end` or until time `stop`. A seek or a sector that
    /// has begun is finished first. Returns the end of the sectors read and the time of the stop.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    pub fn read_on(&mut self, at: Time, range: (u64, u64), stop: Time) -> (u64, Time) {
        self.read_on_from(at, range, None, stop).0
    }

    /// Returns the time components of a read-ahead that nothing interrupts.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[cold]
    pub fn parts_of_reading_on(&mut self, at: Time, (first, end): (u64, u64)) -> Parts {
        let (mut at, mut sector, mut parts) = (at, first, Parts::default());
        while sector < end {
            let run = self.layout.run(sector);
            let sectors = u64::from(run.sectors).min(end - sector);
            let arrives = self.go(at, (&run.place, false), false, &mut parts);
            let latency = self.spindle.until(arrives, run.place.start);
            let transfer =
                self.spindle
                    .passing(arrives + latency, run.place.start, run.place.arc * sectors);
            parts.latency += latency;
            parts.transfer += transfer;
            at = arrives + latency + transfer;
            sector += sectors;
        }
        parts
    }

    /// Reads ahead like [`Self::read_on`], with the position of the first run if `known`. Also
    /// returns whether the arm was moving to sectors or waiting for them at the stop.
    ///
    /// # Panics
    ///
    /// When the disk has no such sectors.
    #[inline(always)]
    pub fn read_on_from(
        &mut self,
        at: Time,
        (first, end): (u64, u64),
        known: Option<&Run>,
        stop: Time,
    ) -> ((u64, Time), bool) {
        let (mut at, mut sector) = (at, first);
        while sector < end && at < stop {
            let further;
            let run = match known {
                Some(run) if sector == first => run,
                _ => {
                    further = self.layout.run(sector);
                    &further
                }
            };
            let place = &run.place;
            let arrives = self.go(at, (place, false), false, &mut Parts::default());
            self.turn_to(arrives, place.start);
            let begins = arrives + self.spindle.until(arrives, place.start);
            if begins >= stop {
                return ((sector, arrives.max(stop)), true);
            }
            let sectors = u64::from(run.sectors).min(end - sector);
            let ends = begins
                + self
                    .spindle
                    .passing(begins, place.start, place.arc * sectors);
            if ends <= stop {
                (sector, at) = (sector + sectors, ends);
                continue;
            }
            let turned = self.spindle.angle(stop) - place.start;
            let passed = (turned.0 / place.arc + 1).min(sectors);
            let ends = begins
                + self
                    .spindle
                    .passing(begins, place.start, place.arc * passed);
            return ((sector + passed, ends), false);
        }
        ((sector, at), false)
    }
}

//! Reading on behind what was asked for.

use super::*;

impl Mechanism {
    /// Reads on, from `at`, until `end` or until something stops it: a seek that has begun
    /// is finished first, and so is a sector. The sector that it came to, and when.
    ///
    /// # Panics
    ///
    /// When there are no such sectors.
    pub fn read_on(&mut self, at: Time, range: (u64, u64), stop: Time) -> (u64, Time) {
        self.read_on_from(at, range, None, stop).0
    }

    /// Where the time of that goes, if nothing stops it.
    ///
    /// # Panics
    ///
    /// When there are no such sectors.
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

    /// The same, where it may be known where the first sectors are; and whether it was on
    /// its way to sectors, or waited for them, when it was stopped.
    ///
    /// # Panics
    ///
    /// When there are no such sectors.
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

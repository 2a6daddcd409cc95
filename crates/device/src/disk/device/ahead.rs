//! Reading on behind a read: what the arm does until somebody wants it, and what
//! requests for the next sectors wait for.

use super::super::layout::Run;
use super::super::mechanism::{Mechanism, Parts};
use diskperf_sim::Time;

/// Reading on, from some state of the arm on. How far it has come is worked out when
/// somebody asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The segment that it fills.
    pub(super) segment: usize,
    /// The sector that is next at `at`, and where the arm is then.
    sector: u64,
    at: Time,
    /// Where that sector is, if it is known.
    run: Option<Run>,
    cylinder: u32,
    head: u32,
    /// Where it stops.
    pub(super) limit: u64,
    /// When it is there; never, as long as nobody has asked.
    pub(super) ends: Time,
    /// Until when nothing else is done: somebody waits for what comes by then.
    committed: Time,
    /// The sector that it has come to then.
    committed_to: u64,
    /// What it is known to have read, up to this sector.
    noted: u64,
}

impl Ahead {
    /// Reads on from `at`, where the arm is. It may be known where the first sectors are.
    #[inline(always)]
    pub(super) fn new(
        mechanism: &Mechanism,
        at: Time,
        segment: usize,
        ((sector, limit), run): ((u64, u64), Option<Run>),
    ) -> Self {
        Self {
            segment,
            sector,
            at,
            run,
            cylinder: mechanism.cylinder(),
            head: mechanism.head(),
            limit,
            ends: Time::NEVER,
            committed: at,
            committed_to: sector,
            noted: sector,
        }
    }

    /// It reads so many sectors in any case.
    #[cold]
    pub(super) fn commit(&mut self, mechanism: &mut Mechanism, sectors: u64) {
        let until = self.limit.min(self.sector + sectors);
        self.committed_to = until;
        self.committed = mechanism
            .read_on(self.at, (self.sector, until), Time::NEVER)
            .1;
        mechanism.place_arm(self.cylinder, self.head);
    }

    /// Works out when it ends, for somebody who waits for that; the arm is there
    /// afterwards.
    pub(super) fn watch(&mut self, mechanism: &mut Mechanism) {
        if self.ends == Time::NEVER {
            self.run_to_the_limit(mechanism);
        }
    }

    /// Whether it has come to its end, as far as it is known to have come.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.ends <= now || (self.sector == self.limit && self.at <= now)
    }

    /// Until when it has been at work by now, as far as it is known to have come.
    pub(super) fn came_by(&self, now: Time) -> Time {
        match self.ends <= now {
            true => self.ends,
            false if self.is_over(now) => self.at,
            false => now,
        }
    }

    /// Leaves the arm where it is at the end; since when it is there.
    pub(super) fn rest(self, mechanism: &mut Mechanism) -> Time {
        if self.ends < Time::NEVER {
            return self.ends;
        }
        mechanism.place_arm(self.cylinder, self.head);
        self.at
    }

    fn run_to_the_limit(&mut self, mechanism: &mut Mechanism) {
        mechanism.place_arm(self.cylinder, self.head);
        self.ends = mechanism
            .read_on(self.at, (self.sector, self.limit), Time::NEVER)
            .1;
    }

    /// The sector that it has come to.
    pub(super) fn progress(&mut self, mechanism: &mut Mechanism, now: Time) -> u64 {
        if now >= self.ends {
            return self.limit;
        }
        if now >= self.at {
            let arm = (mechanism.cylinder(), mechanism.head());
            self.go_on(mechanism, now);
            mechanism.place_arm(arm.0, arm.1);
            // The last sector may still be passing.
            let passing = u64::from(self.at > now);
            self.noted = self.noted.max(self.sector.saturating_sub(passing));
        }
        self.noted
    }

    /// Whether something has to be read after this moment, before it stops.
    #[inline(always)]
    pub(super) fn is_committed(&self, now: Time) -> bool {
        self.committed > now
    }

    /// Where the time of that goes.
    #[cold]
    pub(super) fn rest_of_committed(&self, mechanism: &mut Mechanism, now: Time) -> Parts {
        let arm = (mechanism.cylinder(), mechanism.head());
        let mut rest = *self;
        if now > rest.at {
            rest.go_on(mechanism, now);
        }
        mechanism.place_arm(rest.cylinder, rest.head);
        let range = (rest.sector, rest.committed_to);
        let parts = mechanism.parts_of_reading_on(rest.at, range);
        mechanism.place_arm(arm.0, arm.1);
        parts
    }

    #[inline(always)]
    fn go_on(&mut self, mechanism: &mut Mechanism, stop: Time) -> bool {
        self.read_up_to(mechanism, self.limit, stop)
    }

    /// Whether it was on its way to a track when it had to stop.
    #[inline(always)]
    fn read_up_to(&mut self, mechanism: &mut Mechanism, end: u64, stop: Time) -> bool {
        mechanism.place_arm(self.cylinder, self.head);
        let range = (self.sector, end);
        let (came_to, moves) = mechanism.read_on_from(self.at, range, self.run.as_ref(), stop);
        self.run = None;
        (self.sector, self.at) = came_to;
        (self.cylinder, self.head) = (mechanism.cylinder(), mechanism.head());
        moves
    }

    /// Has it read a sector; when that has passed, unless it had before.
    pub(super) fn passed(&mut self, mechanism: &mut Mechanism, sector: u64) -> Option<Time> {
        if sector >= self.sector {
            self.read_up_to(mechanism, sector + 1, Time::NEVER);
        }
        (sector + 1 == self.sector).then_some(self.at)
    }

    /// Has it read up to `end` for somebody, and then on to `limit`; when it has.
    pub(super) fn join(&mut self, mechanism: &mut Mechanism, (end, limit): (u64, u64)) -> Time {
        self.limit = self.limit.max(limit).max(end);
        if end > self.sector {
            self.read_up_to(mechanism, end, Time::NEVER);
        }
        self.committed = self.committed.max(self.at);
        self.committed_to = self.committed_to.max(end);
        if self.ends < Time::NEVER {
            self.run_to_the_limit(mechanism);
        }
        self.at
    }

    /// Stops it as soon as it may be: the sector that it came to and since when, or from
    /// when on, the arm rests there; and whether it is on its way to a track until then.
    #[inline(always)]
    pub(super) fn stop(&mut self, mechanism: &mut Mechanism, now: Time) -> ((u64, Time), bool) {
        let stop = now.max(self.committed);
        if stop >= self.ends {
            mechanism.place_arm(self.cylinder, self.head);
            mechanism.read_on(self.at, (self.sector, self.limit), Time::NEVER);
            return ((self.limit, self.ends), false);
        }
        let moves = self.go_on(mechanism, stop);
        ((self.sector, self.at), moves)
    }
}

//! Read-ahead behind a read: background work of the actuator until a request interrupts it or joins
//! it for its sectors.

use super::super::layout::Run;
use super::super::mechanism::{Mechanism, Parts};
use diskperf_sim::Time;

/// Read-ahead from a given state of the actuator. Its progress is computed on demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// Cache segment that the read-ahead fills.
    pub(super) segment: usize,
    /// Next sector to read at time `at`, when the arm is at `cylinder` and `head`.
    sector: u64,
    at: Time,
    /// Position of the next sector to read, if known.
    run: Option<Run>,
    cylinder: u32,
    head: u32,
    /// End sector (exclusive) of the read-ahead.
    pub(super) limit: u64,
    /// Time at which the read-ahead reaches its limit; [`Time::NEVER`] until it has been computed.
    pub(super) ends: Time,
    /// Time until which the read-ahead cannot be interrupted, because a request waits for its
    /// sectors or its minimum length is not reached.
    committed: Time,
    /// End sector of the read-ahead that cannot be interrupted.
    committed_to: u64,
    /// End of the sectors known to have been read.
    noted: u64,
}

impl Ahead {
    /// Starts a read-ahead at time `at` from the current position of the arm. `run` is the position
    /// of the first sectors, if known.
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

    /// Protects the first `sectors` sectors of the read-ahead from interruption.
    #[cold]
    pub(super) fn commit(&mut self, mechanism: &mut Mechanism, sectors: u64) {
        let until = self.limit.min(self.sector + sectors);
        self.committed_to = until;
        self.committed = mechanism
            .read_on(self.at, (self.sector, until), Time::NEVER)
            .1;
        mechanism.place_arm(self.cylinder, self.head);
    }

    /// Computes the end time of the read-ahead, and leaves the arm at its end position.
    pub(super) fn watch(&mut self, mechanism: &mut Mechanism) {
        if self.ends == Time::NEVER {
            self.run_to_the_limit(mechanism);
        }
    }

    /// Tests whether the read-ahead has reached its limit, as far as its progress is known.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.ends <= now || (self.sector == self.limit && self.at <= now)
    }

    /// Returns the time until which the read-ahead has worked by `now`, as far as its progress is
    /// known.
    pub(super) fn came_by(&self, now: Time) -> Time {
        match self.ends <= now {
            true => self.ends,
            false if self.is_over(now) => self.at,
            false => now,
        }
    }

    /// Leaves the arm at the end of the read-ahead, and returns the time since which it rests
    /// there.
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

    /// Updates the progress of the read-ahead to `now`, and returns the end of the sectors read.
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

    /// Tests whether a part of the read-ahead that cannot be interrupted remains after `now`.
    #[inline(always)]
    pub(super) fn is_committed(&self, now: Time) -> bool {
        self.committed > now
    }

    /// Returns the time components of the read-ahead's remaining part that cannot be interrupted.
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

    /// Reads up to `end` or until time `stop`, and returns whether the arm was moving to a track at
    /// that time.
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

    /// Continues the read-ahead through a sector, and returns the time at which that sector has
    /// passed the head. Returns `None` if it passed earlier.
    pub(super) fn passed(&mut self, mechanism: &mut Mechanism, sector: u64) -> Option<Time> {
        if sector >= self.sector {
            self.read_up_to(mechanism, sector + 1, Time::NEVER);
        }
        (sector + 1 == self.sector).then_some(self.at)
    }

    /// Continues the read-ahead to `end` for a request and then to `limit`, and returns the time at
    /// which `end` is reached.
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

    /// Stops the read-ahead as soon as possible. Returns the sector that it reached with the time
    /// from which the arm rests there, and whether the arm moves to a track until then.
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

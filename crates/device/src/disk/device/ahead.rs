//! Read-ahead behind a read: background work of the actuator until a request interrupts it or joins
//! it for its sectors.

use super::super::layout::SectorRun;
use super::super::mechanism::{AccessTimes, Mechanism};
use diskperf_sim::Time;

/// Read-ahead from a given state of the actuator. Its progress is computed on demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAheadProgress {
    pub(super) segment_index: usize,
    /// Next sector to read at time `at`, when the arm is at `arm_cylinder` and `arm_head`.
    next_sector: u64,
    next_sector_time: Time,
    next_run: Option<SectorRun>,
    arm_cylinder: u32,
    arm_head: u32,
    /// End sector (exclusive) of the read-ahead.
    pub(super) limit_sector: u64,
    /// Time at which the read-ahead reaches its limit; [`Time::NEVER`] until it has been computed.
    pub(super) limit_time: Time,
    /// Time until which the read-ahead cannot be interrupted, because a request waits for its
    /// sectors or its minimum length is not reached.
    uninterruptible_until: Time,
    uninterruptible_end_sector: u64,
    /// End of the sectors known to have been read.
    noted_end_sector: u64,
}

impl ReadAheadProgress {
    /// Starts a read-ahead at time `at` from the current position of the arm. `run` is the position
    /// of the first sectors, if known.
    #[inline(always)]
    pub(super) fn new(
        mechanism: &Mechanism,
        at: Time,
        segment: usize,
        ((sector, limit), run): ((u64, u64), Option<SectorRun>),
    ) -> Self {
        Self {
            segment_index: segment,
            next_sector: sector,
            next_sector_time: at,
            next_run: run,
            arm_cylinder: mechanism.arm_cylinder(),
            arm_head: mechanism.arm_head(),
            limit_sector: limit,
            limit_time: Time::NEVER,
            uninterruptible_until: at,
            uninterruptible_end_sector: sector,
            noted_end_sector: sector,
        }
    }

    /// Protects the first `sectors` sectors of the read-ahead from interruption.
    #[cold]
    pub(super) fn protect_sectors(&mut self, mechanism: &mut Mechanism, sectors: u64) {
        let until = self.limit_sector.min(self.next_sector + sectors);
        self.uninterruptible_end_sector = until;
        self.uninterruptible_until = mechanism
            .read_ahead(
                self.next_sector_time,
                (self.next_sector, until),
                Time::NEVER,
            )
            .1;
        mechanism.place_arm(self.arm_cylinder, self.arm_head);
    }

    /// Computes the end time of the read-ahead, and leaves the arm at its end position.
    pub(super) fn read_to_protected_end(&mut self, mechanism: &mut Mechanism) {
        if self.limit_time == Time::NEVER {
            self.read_to_limit(mechanism);
        }
    }

    pub(super) fn has_reached_limit(&self, now: Time) -> bool {
        self.limit_time <= now
            || (self.next_sector == self.limit_sector && self.next_sector_time <= now)
    }

    /// Returns the time until which the read-ahead has worked by `now`, as far as its progress is
    /// known.
    pub(super) fn time_at_sector(&self, now: Time) -> Time {
        match self.limit_time <= now {
            true => self.limit_time,
            false if self.has_reached_limit(now) => self.next_sector_time,
            false => now,
        }
    }

    /// Leaves the arm at the end of the read-ahead, and returns the time since which it rests
    /// there.
    pub(super) fn finish(self, mechanism: &mut Mechanism) -> Time {
        if self.limit_time < Time::NEVER {
            return self.limit_time;
        }
        mechanism.place_arm(self.arm_cylinder, self.arm_head);
        self.next_sector_time
    }

    fn read_to_limit(&mut self, mechanism: &mut Mechanism) {
        mechanism.place_arm(self.arm_cylinder, self.arm_head);
        self.limit_time = mechanism
            .read_ahead(
                self.next_sector_time,
                (self.next_sector, self.limit_sector),
                Time::NEVER,
            )
            .1;
    }

    /// Updates the progress of the read-ahead to `now`, and returns the end of the sectors read.
    pub(super) fn advance_to(&mut self, mechanism: &mut Mechanism, now: Time) -> u64 {
        if now >= self.limit_time {
            return self.limit_sector;
        }
        if now >= self.next_sector_time {
            let arm = (mechanism.arm_cylinder(), mechanism.arm_head());
            self.advance_track(mechanism, now);
            mechanism.place_arm(arm.0, arm.1);
            // The last sector may still be passing.
            let passing = u64::from(self.next_sector_time > now);
            self.noted_end_sector = self
                .noted_end_sector
                .max(self.next_sector.saturating_sub(passing));
        }
        self.noted_end_sector
    }

    /// Tests whether a part of the read-ahead that cannot be interrupted remains after `now`.
    #[inline(always)]
    pub(super) fn is_uninterruptible(&self, now: Time) -> bool {
        self.uninterruptible_until > now
    }

    /// Returns the time components of the read-ahead's remaining part that cannot be interrupted.
    #[cold]
    pub(super) fn remaining_protected_parts(
        &self,
        mechanism: &mut Mechanism,
        now: Time,
    ) -> AccessTimes {
        let arm = (mechanism.arm_cylinder(), mechanism.arm_head());
        let mut rest = *self;
        if now > rest.next_sector_time {
            rest.advance_track(mechanism, now);
        }
        mechanism.place_arm(rest.arm_cylinder, rest.arm_head);
        let range = (rest.next_sector, rest.uninterruptible_end_sector);
        let parts = mechanism.read_ahead_times(rest.next_sector_time, range);
        mechanism.place_arm(arm.0, arm.1);
        parts
    }

    #[inline(always)]
    fn advance_track(&mut self, mechanism: &mut Mechanism, stop: Time) -> bool {
        self.read_until_sector(mechanism, self.limit_sector, stop)
    }

    /// Reads up to `end` or until time `stop`, and returns whether the arm was moving to a track at
    /// that time.
    #[inline(always)]
    fn read_until_sector(&mut self, mechanism: &mut Mechanism, end: u64, stop: Time) -> bool {
        mechanism.place_arm(self.arm_cylinder, self.arm_head);
        let range = (self.next_sector, end);
        let (came_to, moves) =
            mechanism.read_ahead_from(self.next_sector_time, range, self.next_run.as_ref(), stop);
        self.next_run = None;
        (self.next_sector, self.next_sector_time) = came_to;
        (self.arm_cylinder, self.arm_head) = (mechanism.arm_cylinder(), mechanism.arm_head());
        moves
    }

    /// Continues the read-ahead through a sector, and returns the time at which that sector has
    /// passed the head. Returns `None` if it passed earlier.
    pub(super) fn passing_time(&mut self, mechanism: &mut Mechanism, sector: u64) -> Option<Time> {
        if sector >= self.next_sector {
            self.read_until_sector(mechanism, sector + 1, Time::NEVER);
        }
        (sector + 1 == self.next_sector).then_some(self.next_sector_time)
    }

    /// Continues the read-ahead to `end` for a request and then to `limit`, and returns the time at
    /// which `end` is reached.
    pub(super) fn join_request(
        &mut self,
        mechanism: &mut Mechanism,
        (end, limit): (u64, u64),
    ) -> Time {
        self.limit_sector = self.limit_sector.max(limit).max(end);
        if end > self.next_sector {
            self.read_until_sector(mechanism, end, Time::NEVER);
        }
        self.uninterruptible_until = self.uninterruptible_until.max(self.next_sector_time);
        self.uninterruptible_end_sector = self.uninterruptible_end_sector.max(end);
        if self.limit_time < Time::NEVER {
            self.read_to_limit(mechanism);
        }
        self.next_sector_time
    }

    /// Stops the read-ahead as soon as possible. Returns the sector that it reached with the time
    /// from which the arm rests there, and whether the arm moves to a track until then.
    #[inline(always)]
    pub(super) fn stop_at(&mut self, mechanism: &mut Mechanism, now: Time) -> ((u64, Time), bool) {
        let stop = now.max(self.uninterruptible_until);
        if stop >= self.limit_time {
            mechanism.place_arm(self.arm_cylinder, self.arm_head);
            mechanism.read_ahead(
                self.next_sector_time,
                (self.next_sector, self.limit_sector),
                Time::NEVER,
            );
            return ((self.limit_sector, self.limit_time), false);
        }
        let moves = self.advance_track(mechanism, stop);
        ((self.next_sector, self.next_sector_time), moves)
    }
}

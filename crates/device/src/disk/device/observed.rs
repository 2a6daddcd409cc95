//! Observation of single commands for fits of drive parameters, and assumptions about the drive's
//! hidden state.

use super::*;
use crate::disk::layout::Place;

/// Source or destination of a command's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// All sectors of a read were in the buffer.
    Buffer,
    /// A read got its last sectors from a read-ahead in progress.
    ReadAhead,
    /// The arm moved for the command, because the buffer could not answer it.
    #[default]
    Medium,
    /// The write-back cache accepted a write.
    WriteCache,
}

/// Circumstances of one command, as a fit of drive parameters needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Source or destination of the command's data.
    pub answer: Answer,
    /// Whether the arm read ahead when the firmware began to decode the command.
    pub reads_ahead: bool,
    /// Whether the arm worked for another command or for the write-back cache when the firmware
    /// began to decode the command.
    pub arm_is_busy: bool,
    /// Access to the medium; `None` where the buffer answered the command.
    pub access: Option<ObservedAccess>,
}

/// Arm and platter during the access of one command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedAccess {
    /// Cylinder and head of the arm before the seek.
    pub from: (u32, u32),
    /// Position of the first sector that passes the head.
    pub to: Place,
    /// Time at which the arm starts its seek.
    pub begins: Time,
    /// Time at which seek, head switch and settle end.
    pub arrives: Time,
    /// Time at which the first sector begins to pass the head.
    pub first_passes: Time,
    /// Whether all sectors of the command lie side by side on one track and none was in the buffer.
    pub is_one_run: bool,
}

impl Disk {
    /// Keeps an [`Observation`] of each command from now on.
    pub fn observe(&mut self) {
        self.observed = Some(Observation::default());
    }

    /// Returns the circumstances of the command that was decoded last; `None` without
    /// [`Self::observe`].
    pub fn observation(&self) -> Option<Observation> {
        self.observed
    }

    /// Notes that the firmware begins to decode a command.
    #[cold]
    pub(super) fn observe_decoding(&mut self, now: Time) {
        let reads_ahead = self.reads_ahead(now);
        self.observed = Some(Observation {
            reads_ahead,
            arm_is_busy: self.job.is_some(),
            ..Observation::default()
        });
    }

    /// Records the source or destination of a command's data.
    #[inline]
    pub(super) fn observe_answer(&mut self, answer: Answer) {
        if let Some(observed) = &mut self.observed {
            observed.answer = answer;
        }
    }

    /// Returns the observation of an access that is about to begin, while the arm is still at its
    /// old position. The rotation times are filled in later.
    #[cold]
    pub(super) fn observed_access(
        &self,
        begins: Time,
        (access, held): (&Access, u64),
    ) -> ObservedAccess {
        let run = self.mechanism.layout().run(access.sector);
        ObservedAccess {
            from: (self.mechanism.cylinder(), self.mechanism.head()),
            to: run.place,
            begins,
            arrives: begins + self.mechanism.way_to(&run.place, access.write),
            first_passes: begins,
            is_one_run: held == 0 && run.sectors >= access.sectors,
        }
    }

    /// Records an access to the medium, and the time at which its first sector reaches the head.
    #[cold]
    pub(super) fn observe_access(&mut self, access: ObservedAccess, first_passes: Time) {
        if let Some(observed) = &mut self.observed {
            observed.answer = Answer::Medium;
            observed.access = Some(ObservedAccess {
                first_passes,
                ..access
            });
        }
    }

    /// Puts the drive into the state after a long idle period: ends background work of the arm,
    /// drops pending writes from the buffer, and places the arm on a track.
    pub fn suppose_idle_at(&mut self, now: Time, (cylinder, head): (u32, u32)) {
        self.stop_reading_on(now);
        self.job = None;
        if let (Some(written), Some(write)) = (&mut self.written, &self.specification.write_cache) {
            *written = Written::new(write);
        }
        self.mechanism.place_arm(cylinder, head);
        self.next = self.next_moment();
    }

    /// Empties the read cache.
    pub fn suppose_empty_read_cache(&mut self) {
        self.ahead = None;
        self.segments = Segments::new(&self.specification.read_cache);
        self.next = self.next_moment();
    }
}

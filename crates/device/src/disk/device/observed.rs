//! What a fit sees of each command, and what it supposes of the drive's unseen state.

use super::*;
use crate::disk::layout::Place;

/// Where the data of a command came from or went to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// All sectors of a read were in the buffer.
    Buffer,
    /// A read got its last sectors from a read-ahead that was under way.
    ReadAhead,
    /// The arm moved for the command.
    #[default]
    Medium,
    /// The buffer took a write.
    WriteCache,
}

/// Circumstances of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Source or target of its data.
    pub answer: Answer,
    /// Whether the arm read ahead when the firmware began to decode the command.
    pub reads_ahead: bool,
    /// Whether the arm was at work for another command or for the write cache then.
    pub arm_is_busy: bool,
    /// Access to the medium; absent where the buffer answered.
    pub access: Option<ObservedAccess>,
}

/// Arm and platter during the access of one command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedAccess {
    /// Cylinder and head before the seek.
    pub from: (u32, u32),
    /// First sector that passes.
    pub to: Place,
    /// Start of the seek.
    pub begins: Time,
    /// End of seek, head switch and settling.
    pub arrives: Time,
    /// First sector begins to pass.
    pub first_passes: Time,
    /// Whether all sectors of the command lie side by side and none was in the buffer.
    pub is_one_run: bool,
}

impl Disk {
    /// Keeps an [`Observation`] of each command from now on.
    pub fn observe(&mut self) {
        self.observed = Some(Observation::default());
    }

    /// Circumstances of the command that was decoded last; `None` without [`Self::observe`].
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

    /// Records whether the buffer or the medium has the data of a command.
    #[inline]
    pub(super) fn observe_answer(&mut self, answer: Answer) {
        if let Some(observed) = &mut self.observed {
            observed.answer = answer;
        }
    }

    /// Access that begins with this sector while the arm is still where it was; only its times
    /// on the platter are missing.
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

    /// Ends all work of the arm for no command, drops the writes that wait in the buffer, and
    /// puts the arm at a track: the state of the drive had it been idle for long.
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

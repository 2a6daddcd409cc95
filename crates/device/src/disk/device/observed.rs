//! Observation of single commands for fits of drive parameters, and assumptions about the drive's
//! hidden state.

use super::*;
use crate::disk::layout::SectorPosition;

/// Source or destination of a command's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerSource {
    /// All sectors of a read were in the buffer.
    Buffer,
    /// A read got its last sectors from a read-ahead in progress.
    ReadAhead,
    /// The arm moved for the command, because the buffer could not answer it.
    #[default]
    Media,
    /// The write-back cache accepted a write.
    WriteCache,
}

/// Circumstances of one command, as a fit of drive parameters needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// Source or destination of the command's data.
    pub answer_source: AnswerSource,
    /// Whether the arm read ahead when the firmware began to decode the command.
    pub was_reading_ahead: bool,
    /// Whether the arm worked for another command or for the write-back cache when the firmware
    /// began to decode the command.
    pub was_arm_busy: bool,
    /// Access to the medium; `None` where the buffer answered the command.
    pub access: Option<ObservedAccess>,
}

/// Arm and platter during the access of one command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedAccess {
    /// Cylinder and head of the arm before the seek.
    pub start_position: (u32, u32),
    /// Position of the first sector that passes the head.
    pub target: SectorPosition,
    /// Time at which the arm starts its seek.
    pub start: Time,
    /// Time at which seek, head switch and settle end.
    pub arrival: Time,
    /// Time at which the first sector begins to pass the head.
    pub first_sector_passing: Time,
    /// Whether all sectors of the command lie side by side on one track and none was in the buffer.
    pub is_single_run: bool,
}

impl Disk {
    /// Keeps an [`Observation`] of each command from now on.
    pub fn start_observing(&mut self) {
        self.observation = Some(Observation::default());
    }

    /// Returns the circumstances of the command that was decoded last; `None` without
    /// [`Self::start_observing`].
    pub fn observation(&self) -> Option<Observation> {
        self.observation
    }

    /// Notes that the firmware begins to decode a command.
    #[cold]
    pub(super) fn note_decoding(&mut self, now: Time) {
        let reads_ahead = self.is_reading_ahead(now);
        self.observation = Some(Observation {
            was_reading_ahead: reads_ahead,
            was_arm_busy: self.media_job.is_some(),
            ..Observation::default()
        });
    }

    /// Notes that a write waits until the arm has stopped to read ahead.
    #[cold]
    pub(super) fn note_wait_for_arm(&mut self, now: Time) {
        if let Some(observed) = &mut self.observation {
            observed.was_arm_busy |= self.idle_since > now;
        }
    }

    /// Records the source or destination of a command's data.
    #[inline]
    pub(super) fn note_answer(&mut self, answer: AnswerSource) {
        if let Some(observed) = &mut self.observation {
            observed.answer_source = answer;
        }
    }

    /// Returns the observation of an access that is about to begin, while the arm is still at its
    /// old position. The rotation times are filled in later.
    #[cold]
    pub(super) fn build_access(
        &self,
        begins: Time,
        (access, held): (&MediaAccess, u64),
    ) -> ObservedAccess {
        let run = self.mechanism.layout().run_at(access.first_sector);
        ObservedAccess {
            start_position: (self.mechanism.arm_cylinder(), self.mechanism.arm_head()),
            target: run.position,
            start: begins,
            arrival: begins + self.mechanism.arm_move_time(&run.position, access.is_write),
            first_sector_passing: begins,
            is_single_run: held == 0 && run.sector_count >= access.sector_count,
        }
    }

    /// Records an access to the medium, and the time at which its first sector reaches the head.
    #[cold]
    pub(super) fn note_access(&mut self, access: ObservedAccess, first_passes: Time) {
        if let Some(observed) = &mut self.observation {
            observed.answer_source = AnswerSource::Media;
            observed.access = Some(ObservedAccess {
                first_sector_passing: first_passes,
                ..access
            });
        }
    }

    /// Puts the drive into the state after a long idle period: ends background work of the arm,
    /// drops pending writes from the buffer, and places the arm on a track.
    pub fn suppose_idle_at(&mut self, now: Time, (cylinder, head): (u32, u32)) {
        self.interrupt_read_ahead(now);
        self.media_job = None;
        if let (Some(written), Some(write)) =
            (&mut self.write_back_cache, &self.specification.write_cache)
        {
            *written = WriteBackCache::new(write);
        }
        self.mechanism.place_arm(cylinder, head);
        self.next_event_time = self.find_next_event_time();
    }

    /// Empties the read cache.
    pub fn suppose_empty_read_cache(&mut self) {
        self.read_ahead = None;
        self.read_segments = SegmentCache::new(&self.specification.read_cache);
        self.next_event_time = self.find_next_event_time();
    }
}

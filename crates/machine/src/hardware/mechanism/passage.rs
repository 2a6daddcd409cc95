//! Times of a disk transfer: seek, settle, head switch, rotational latency and media transfer.

use super::TransferRun;
use diskperf_device::BusyTimes;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Times of an arm movement to a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmMove {
    /// Seek time of the arm movement, zero within a cylinder.
    pub seek_time: Time,
    /// Settle time at the end of the arm movement.
    pub settle_time: Time,
    /// Additional settle time of a write compared with a read.
    pub write_settle_time: Time,
    /// Head switch time if the track is on the same cylinder.
    pub head_switch_time: Time,
}

impl ArmMove {
    /// Returns the total time of the arm movement.
    pub fn total_time(&self) -> Time {
        self.seek_time + self.settle_time + self.write_settle_time + self.head_switch_time
    }

    /// Returns the stages of the arm movement in order, with their times.
    pub fn stage_times(&self) -> [(Stage, Time); 4] {
        [
            (Stage::Seek, self.seek_time),
            (Stage::Settle, self.settle_time),
            (Stage::WriteSettle, self.write_settle_time),
            (Stage::HeadSwitch, self.head_switch_time),
        ]
    }
}

/// Times of a transfer from its command to its last sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTimes {
    /// Arm movement to the first track.
    pub move_to_track: ArmMove,
    /// Rotational latency after the arm movement, until the first sector passes.
    pub rotational_latency: Time,
    /// Arm movements to further tracks, if the transfer continues there.
    pub track_switch_moves: ArmMove,
    /// Rotational latency of the transfer on further tracks.
    pub track_switch_rotational_latency: Time,
    /// Media transfer time, including sectors in between if sectors are interleaved.
    pub media_transfer_time: Time,
}

impl TransferTimes {
    /// Returns the time from the command to the first sector.
    pub fn time_to_first_sector(&self) -> Time {
        self.move_to_track.total_time() + self.rotational_latency
    }

    /// Reports whether the transfer continues on another track.
    pub(super) fn crosses_tracks(&self) -> bool {
        self.track_switch_moves != NO_MOVE || self.track_switch_rotational_latency > Time::ZERO
    }

    /// Returns the time from the command to the end of the last sector.
    pub fn total_time(&self) -> Time {
        self.time_to_first_sector()
            + self.track_switch_moves.total_time()
            + self.track_switch_rotational_latency
            + self.media_transfer_time
    }
}

/// Arm movement of zero duration, for a transfer that begins on the current track.
pub(super) const NO_MOVE: ArmMove = ArmMove {
    seek_time: Time::ZERO,
    settle_time: Time::ZERO,
    write_settle_time: Time::ZERO,
    head_switch_time: Time::ZERO,
};

/// Leg of a transfer: a run of sectors, or the way to the next run.
pub(super) enum TransferLeg<'a> {
    /// Run of consecutive slots that pass under the head, with the number of sectors used.
    SectorRun { run: &'a TransferRun, sectors: u32 },
    /// Movement and wait between two runs of a transfer.
    TrackSwitch {
        starts_at: Time,
        arm: ArmMove,
        wait: Time,
        /// Whether the next run is on the same track, so that the sectors in between pass under the
        /// head.
        same_track: bool,
    },
}

impl TransferTimes {
    #[inline]
    pub(super) fn add_to_busy(&self, busy: &mut BusyTimes) {
        busy.positioning_time +=
            self.move_to_track.total_time() + self.track_switch_moves.total_time();
        busy.rotational_latency_time +=
            self.rotational_latency + self.track_switch_rotational_latency;
        busy.transfer_time += self.media_transfer_time;
    }

    pub(super) fn subtract_from_busy(&self, busy: &mut BusyTimes) {
        busy.positioning_time = busy.positioning_time
            - (self.move_to_track.total_time() + self.track_switch_moves.total_time());
        busy.rotational_latency_time = busy.rotational_latency_time
            - (self.rotational_latency + self.track_switch_rotational_latency);
        busy.transfer_time = busy.transfer_time - self.media_transfer_time;
    }
}

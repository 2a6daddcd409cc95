//! Times of a disk transfer: seek, settle, head switch, rotational latency and media transfer.

use super::TransferRun;
use diskperf_device::BusyTimes;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Times of an arm movement to a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmMove {
    /// Seek time of the arm movement, zero within a cylinder.
    pub seek: Time,
    /// Settle time at the end of the arm movement.
    pub settle: Time,
    /// Additional settle time of a write compared with a read.
    pub write_settle: Time,
    /// Head switch time if the track is on the same cylinder.
    pub head_switch: Time,
}

impl ArmMove {
    /// Returns the total time of the arm movement.
    pub fn total(&self) -> Time {
        self.seek + self.settle + self.write_settle + self.head_switch
    }

    /// Returns the stages of the arm movement in order, with their times.
    pub fn stages(&self) -> [(Stage, Time); 4] {
        [
            (Stage::Seek, self.seek),
            (Stage::Settle, self.settle),
            (Stage::WriteSettle, self.write_settle),
            (Stage::HeadSwitch, self.head_switch),
        ]
    }
}

/// Times of a transfer from its command to its last sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferTimes {
    /// Arm movement to the first track.
    pub to_track: ArmMove,
    /// Rotational latency after the arm movement, until the first sector passes.
    pub latency: Time,
    /// Arm movements to further tracks, if the transfer continues there.
    pub track_switches: ArmMove,
    /// Rotational latency of the transfer on further tracks.
    pub track_switch_latency: Time,
    /// Media transfer time, including sectors in between if sectors are interleaved.
    pub transfer: Time,
}

impl TransferTimes {
    /// Returns the time from the command to the first sector.
    pub fn to_first_sector(&self) -> Time {
        self.to_track.total() + self.latency
    }

    /// Reports whether the transfer continues on another track.
    pub(super) fn crosses_tracks(&self) -> bool {
        self.track_switches != NO_MOVE || self.track_switch_latency > Time::ZERO
    }

    /// Returns the time from the command to the end of the last sector.
    pub fn total(&self) -> Time {
        self.to_first_sector()
            + self.track_switches.total()
            + self.track_switch_latency
            + self.transfer
    }
}

/// Arm movement of zero duration, for a transfer that begins on the current track.
pub(super) const NO_MOVE: ArmMove = ArmMove {
    seek: Time::ZERO,
    settle: Time::ZERO,
    write_settle: Time::ZERO,
    head_switch: Time::ZERO,
};

/// Leg of a transfer: a run of sectors, or the way to the next run.
pub(super) enum TransferLeg<'a> {
    /// Run of consecutive slots that pass under the head, with the number of sectors used.
    Run { run: &'a TransferRun, sectors: u32 },
    /// Movement and wait between two runs of a transfer.
    Between {
        starts_at: Time,
        arm: ArmMove,
        wait: Time,
        /// Whether the next run is on the same track, so that the sectors in between pass under the
        /// head.
        same_track: bool,
    },
}

impl TransferTimes {
    /// Adds the times of the transfer to the busy times of the drive.
    #[inline]
    pub(super) fn book(&self, busy: &mut BusyTimes) {
        busy.positioning_time += self.to_track.total() + self.track_switches.total();
        busy.rotational_latency_time += self.latency + self.track_switch_latency;
        busy.transfer_time += self.transfer;
    }

    /// Subtracts the times of the transfer from the busy times of the drive.
    pub(super) fn unbook(&self, busy: &mut BusyTimes) {
        busy.positioning_time =
            busy.positioning_time - (self.to_track.total() + self.track_switches.total());
        busy.rotational_latency_time =
            busy.rotational_latency_time - (self.latency + self.track_switch_latency);
        busy.transfer_time = busy.transfer_time - self.transfer;
    }
}

//! What a transfer is made of, and how long a drive was busy with what.

use super::LastRun;
use diskperf_device::Busy;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// The arm's way to a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Across cylinders.
    pub seek: Time,
    /// Until the arm rests.
    pub settle: Time,
    /// Until it rests well enough to write.
    pub write_settle: Time,
    /// To another head.
    pub head_switch: Time,
}

impl Move {
    /// All of it.
    pub fn total(&self) -> Time {
        self.seek + self.settle + self.write_settle + self.head_switch
    }

    /// Its parts, in order.
    pub fn stages(&self) -> [(Stage, Time); 4] {
        [
            (Stage::Seek, self.seek),
            (Stage::Settle, self.settle),
            (Stage::WriteSettle, self.write_settle),
            (Stage::HeadSwitch, self.head_switch),
        ]
    }
}

/// A transfer from its command to the last sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// To the first track.
    pub to_track: Move,
    /// From there until the first sector comes by.
    pub latency: Time,
    /// To further tracks, if the transfer goes on there.
    pub between: Move,
    /// Waiting on further tracks for the next sector.
    pub between_latency: Time,
    /// Sectors of the transfer passing under the heads, and those in between
    /// where sectors are interleaved.
    pub transfer: Time,
}

impl Passage {
    /// From the command to the first sector.
    pub fn to_first_sector(&self) -> Time {
        self.to_track.total() + self.latency
    }

    /// Whether it goes on to another track.
    pub(super) fn crosses(&self) -> bool {
        self.between != STILL || self.between_latency > Time::ZERO
    }

    /// From the command to the end.
    pub fn total(&self) -> Time {
        self.to_first_sector() + self.between.total() + self.between_latency + self.transfer
    }
}

/// The arm stays where it is.
pub(super) const STILL: Move = Move {
    seek: Time::ZERO,
    settle: Time::ZERO,
    write_settle: Time::ZERO,
    head_switch: Time::ZERO,
};

/// A part of a transfer, from its first sector on.
pub(super) enum Leg<'a> {
    /// Sectors that lie side by side pass.
    Run { run: &'a LastRun, sectors: u32 },
    /// The way to the next of them, which begins then.
    Between {
        begins: Time,
        arm: Move,
        wait: Time,
        /// It is on the same track, and what is in between passes as well.
        same_track: bool,
    },
}

impl Passage {
    /// Adds its time to what the drive has done.
    #[inline]
    pub(super) fn book(&self, busy: &mut Busy) {
        busy.positioning += self.to_track.total() + self.between.total();
        busy.latency += self.latency + self.between_latency;
        busy.transfer += self.transfer;
    }

    /// Takes its time back.
    pub(super) fn unbook(&self, busy: &mut Busy) {
        busy.positioning = busy.positioning - (self.to_track.total() + self.between.total());
        busy.latency = busy.latency - (self.latency + self.between_latency);
        busy.transfer = busy.transfer - self.transfer;
    }
}

//! Work of the parts of a served drive, for those who watch it: the arm of a disk, or the dies of a
//! flash drive.

use diskperf_device::{Completion, Device, Drive, Operation};
use diskperf_sim::Time;
use diskperf_spans::{ArmWork, DieBusy, DiskPosition, Position, Stage, StageInterval};

/// Number of periods that are kept until they are taken. Older ones are dropped first.
pub const ACTIVITY_PERIODS_MAX: usize = 1 << 14;

/// Parts of a drive that can be watched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DriveShape {
    /// A disk with one arm.
    Disk {
        /// Number of cylinders; 0 is the outermost.
        cylinders: u32,
        /// Number of recorded surfaces, each with a head.
        heads: u32,
        /// Duration of a revolution, in virtual ns.
        period_ns: f64,
        /// Angle of the platters at time zero, in revolutions.
        start_angle: f64,
    },
    /// A flash drive. Consecutive dies are on consecutive channels.
    Flash {
        /// Number of channels, which the dies share.
        channels: u32,
        /// Number of dies, over all channels.
        dies: u32,
    },
    /// A drive without parts.
    Plain,
}

/// Period in which a part of the drive did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityPeriod {
    /// Start of the period.
    pub start: Time,
    /// End of the period.
    pub end: Time,
    /// Part that was busy.
    pub part: ActivePart,
}

/// Part of a drive, with what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivePart {
    /// The arm of a disk, on its way to a track or there.
    Arm {
        /// Track that the arm is at or goes to.
        position: DiskPosition,
        /// Stage of the access.
        stage: Stage,
        /// Name of the access: that of a request, or of the drive's own work.
        access: &'static str,
    },
    /// A die of a flash drive.
    Die {
        /// Number of the die.
        index: u32,
        /// Operation of the die.
        operation: DieBusy,
    },
}

/// Returns the parts of a drive.
pub(super) fn drive_shape(device: &Device) -> DriveShape {
    if let Some(disk) = device.disk() {
        let mechanism = disk.mechanism();
        return DriveShape::Disk {
            cylinders: mechanism.layout().cylinder_count(),
            heads: mechanism.layout().surface_count(),
            period_ns: mechanism.spindle().exact_period_ns(),
            start_angle: mechanism.spindle().angle_at(Time::ZERO).to_revolutions(),
        };
    }
    match device.flash() {
        Some(flash) => {
            let geometry = flash.geometry();
            DriveShape::Flash {
                channels: geometry.channel_count,
                dies: geometry.die_count(),
            }
        }
        None => DriveShape::Plain,
    }
}

/// Returns what the arm of a disk did for a request; nothing for other drives, and for requests
/// that needed no arm.
pub(super) fn arm_periods(device: &Device, completion: &Completion) -> Vec<ActivityPeriod> {
    let Some(Position::Disk(position)) = device.position(completion.sector) else {
        return Vec::new();
    };
    let access = match completion.operation {
        Operation::Read => "read",
        _ => "write",
    };
    let intervals = completion.stage_intervals();
    let moves = intervals.filter(|interval| is_of_arm(interval.stage));
    moves
        .map(|interval| arm_period(interval, position, access))
        .collect()
}

fn arm_period(
    interval: StageInterval,
    position: DiskPosition,
    access: &'static str,
) -> ActivityPeriod {
    ActivityPeriod {
        start: Time(interval.start.0),
        end: Time(interval.end.0),
        part: ActivePart::Arm {
            position,
            stage: interval.stage,
            access,
        },
    }
}

fn is_of_arm(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Seek
            | Stage::Settle
            | Stage::WriteSettle
            | Stage::HeadSwitch
            | Stage::RotationalLatency
            | Stage::MissedRevolution(_)
            | Stage::MediaTransfer
    )
}

/// Removes and returns the drive's own record of its work: that of the arm which belongs to no
/// request, or that of the dies.
pub(super) fn take_recorded(drive: &mut Drive) -> Vec<ActivityPeriod> {
    let mut periods = Vec::new();
    for work in drive.recorded_arm() {
        let access = match work.arm_work {
            ArmWork::Destage => "destage",
            ArmWork::Cleaning => "cleaning",
            ArmWork::ReadAhead => "read-ahead",
        };
        let moves = work
            .stage_intervals()
            .filter(|interval| is_of_arm(interval.stage));
        periods.extend(moves.map(|interval| arm_period(interval, work.arm_position, access)));
    }
    let busy = drive.recorded_flash().map(|flash| flash.recorded_periods);
    periods.extend(busy.into_iter().flatten().map(|period| ActivityPeriod {
        start: Time(period.busy_start.0),
        end: Time(period.busy_end.0),
        part: ActivePart::Die {
            index: period.die_index,
            operation: period.busy_with,
        },
    }));
    periods
}

//! Disk mechanism that a controller commands, based on the layout, the seek curve and the spindle
//! that all disks share.
//!
//! A mechanism knows no files and no request queue. It computes how long it takes to reach and
//! transfer some sectors from a given time on, and then stays where the transfer ended.

mod geometry;
mod last;
mod passage;
mod streaming;

pub use geometry::{
    DiskFormat, DiskGeometry, GeometryError, HeadGroups, RevectoredExtent, TrackZone,
};
pub use passage::{ArmMove, TransferTimes};
pub use streaming::TrackRead;

use diskperf_device::disk::layout::SectorRun;
use diskperf_device::disk::seek::SeekCurve;
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_device::{BusyTimes, WhatIf};
use diskperf_sim::Time;
use passage::{NO_MOVE, TransferLeg};
use std::sync::Arc;

/// Constant properties of a disk mechanism: geometry, seek curve and head times.
#[derive(Clone, Debug)]
pub struct Mechanics {
    /// Layout of the sectors on the tracks.
    pub geometry: DiskGeometry,
    /// Seek curve: seek time by distance in cylinders.
    pub seek_curve: SeekCurve,
    /// Settle time after a seek, as far as the seek times do not include it.
    pub settle_time: Time,
    /// Additional settle time of a write compared with a read.
    pub write_settle_time: Time,
    /// Duration of a head switch within a cylinder.
    pub head_switch_time: Time,
}

/// Rotating disk mechanism with its current arm position.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// Constant properties, shared with copies of the mechanism. An adaptive controller makes a new
    /// copy for each rehearsal.
    mechanics: Arc<Mechanics>,
    spindle: Spindle,
    cylinder: u32,
    head: u32,
    last_commanded_transfer: Option<CommandedTransfer>,
    /// Last run from which stages were reported, with the start time and the first sector of its
    /// transfer. A stream that grows for minutes need not be evaluated from its first sector again.
    reported_run: Option<(Time, u64, TransferRun)>,
    busy_times: BusyTimes,
    last_operation_duration: Time,
    counterfactual: WhatIf,
}

/// Transfer of the mechanism, with the arm position when it was commanded.
#[derive(Clone, Copy, Debug)]
struct CommandedTransfer {
    commanded_time: Time,
    sector: u64,
    transfer_sectors: u32,
    is_write: bool,
    cylinder: u32,
    head: u32,
    transfer_end: Time,
    /// Parts of the transfer. None for a full-track read, which starts at any sector.
    computed_times: Option<(TransferTimes, TransferRun)>,
}

/// Last run of consecutive slots in a transfer.
#[derive(Clone, Copy, Debug)]
struct TransferRun {
    sectors_before: u32,
    run_start: Time,
    sector_run: SectorRun,
    transfer_times: TransferTimes,
    /// Spindle at the start of the run. A counterfactual may have changed the rotation since.
    spindle: Spindle,
}

impl TransferRun {
    /// Returns the time in which the first `sectors` sectors of the run pass.
    #[inline]
    fn passing_time(&self, sectors: u32) -> Time {
        let place = &self.sector_run.position;
        let arcs = place.sector_angle * u64::from(sectors);
        self.spindle
            .passing_times(self.run_start, place.start_angle, arcs)
    }
}

/// Tests whether a sector that passes at `passes_at` already passed after `ready_since` with the
/// arm in position, so that a revolution was missed. `ready_since` is the end of the drive's last
/// transfer, or the time when it found the sector.
pub fn is_missed_revolution(
    ready_since: Option<Time>,
    period: Time,
    passes_at: Time,
    arm: ArmMove,
) -> bool {
    match (ready_since, passes_at.0.checked_sub(period.0)) {
        (Some(ready_since), Some(passed)) => {
            arm.seek_time == Time::ZERO && passed + 2 >= ready_since.0
        }
        _ => false,
    }
}

impl Mechanism {
    /// Returns an idle mechanism at cylinder 0, head 0.
    pub fn new(mechanics: Mechanics, spindle: Spindle) -> Self {
        Self::from_shared_mechanics(Arc::new(mechanics), spindle)
    }

    fn from_shared_mechanics(mechanics: Arc<Mechanics>, spindle: Spindle) -> Self {
        Self {
            mechanics,
            spindle,
            cylinder: 0,
            head: 0,
            last_commanded_transfer: None,
            reported_run: None,
            busy_times: BusyTimes::default(),
            last_operation_duration: Time::ZERO,
            counterfactual: WhatIf::default(),
        }
    }

    /// Returns an idle copy of the mechanism at cylinder 0, head 0.
    pub(crate) fn clone_idle(&self) -> Self {
        Self::from_shared_mechanics(Arc::clone(&self.mechanics), self.spindle)
            .with_counterfactual(self.counterfactual)
    }

    /// Returns the mechanism with some of its costs removed, for counterfactual runs.
    pub fn with_counterfactual(self, what_if: WhatIf) -> Self {
        Self {
            counterfactual: what_if,
            ..self
        }
    }

    /// Layout of the sectors on the tracks.
    pub fn geometry(&self) -> &DiskGeometry {
        &self.mechanics.geometry
    }

    /// Spindle, which determines the angle of the platters at any time.
    pub fn spindle(&self) -> &Spindle {
        &self.spindle
    }

    /// Cylinder of the arm, or the target cylinder of a seek in progress.
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// End of the last transfer. None before the first transfer.
    pub fn last_transfer_end(&self) -> Option<Time> {
        self.last_commanded_transfer.map(|last| last.transfer_end)
    }

    /// Busy times of the mechanism so far: positioning, rotational latency and transfer.
    pub fn busy_times(&self) -> BusyTimes {
        self.busy_times
    }

    /// Duration of the operation that was commanded last. All of it is booked when the operation
    /// starts.
    pub fn last_operation_duration(&self) -> Time {
        self.last_operation_duration
    }

    /// Returns the number of the sector slot under the heads.
    pub fn slot_under_head(&self, now: Time) -> u32 {
        let arc = self.mechanics.geometry.sector_arc(self.cylinder);
        let slot = self.spindle.angle_at(now).0 / arc;
        // The last one still in the gap behind it.
        (slot as u32).min(self.mechanics.geometry.slots_per_track(self.cylinder) - 1)
    }

    /// Returns the time in which the given number of slots of a cylinder's tracks pass, without
    /// track switches.
    pub fn time_of_slots(&self, cylinder: u32, slots: u32) -> Time {
        let arcs = u128::from(self.mechanics.geometry.sector_arc(cylinder)) * u128::from(slots);
        let revolutions = (arcs >> 64) as u64;
        Time(self.spindle.revolution_time().0 * revolutions)
            + self.spindle.turning_time(arcs as u64)
    }

    fn slot_angle(&self, slot: u32) -> RotationAngle {
        RotationAngle(self.mechanics.geometry.sector_arc(self.cylinder)).times(u64::from(slot))
    }

    /// Moves the arm to a cylinder. Returns the times of the movement.
    pub fn seek_to_cylinder(&mut self, cylinder: u32, write: bool) -> ArmMove {
        let arm = self.arm_move_to_track(cylinder, self.head, write);
        self.cylinder = cylinder;
        self.busy_times.positioning_time += arm.total_time();
        self.last_operation_duration = arm.total_time();
        arm
    }

    /// Returns the time from `now` until the start of a slot of the current cylinder's tracks
    /// passes.
    pub fn time_until_slot(&self, now: Time, slot: u32) -> Time {
        self.spindle.time_until(now, self.slot_angle(slot))
    }

    /// Reads or writes `count` sectors from `sector` on, starting now. Returns the times of the
    /// seek, the waits and the transfer. Afterwards, the mechanism is at the last sector.
    #[inline]
    pub fn transfer_sectors(
        &mut self,
        now: Time,
        sector: u64,
        count: u32,
        write: bool,
    ) -> TransferTimes {
        self.transfer_with_ready_time(now, (sector, count), write, self.last_transfer_end())
    }

    /// Performs a transfer like [`Mechanism::transfer_sectors`]. The controller has been ready for the
    /// first sector since `ready_since`, so that the sector was missed if it passed after that.
    #[inline]
    pub fn transfer_with_ready_time(
        &mut self,
        now: Time,
        (sector, count): (u64, u32),
        write: bool,
        ready_since: Option<Time>,
    ) -> TransferTimes {
        let (cylinder, head) = (self.cylinder, self.head);
        if self.counterfactual.meets_deadlines {
            self.rotate_back_to_sector(now, sector, write, ready_since);
        }
        let (times, run) = self.compute_transfer(now, (sector, count), write, |_| ());
        times.add_to_busy(&mut self.busy_times);
        self.busy_times.transferred_bytes += self.bytes_of_sectors(count);
        self.busy_times.transfer_count += 1;
        self.last_operation_duration = times.total_time();
        self.last_commanded_transfer = Some(CommandedTransfer {
            commanded_time: now,
            sector,
            transfer_sectors: count,
            is_write: write,
            cylinder,
            head,
            transfer_end: now + times.total_time(),
            computed_times: Some((times, run)),
        });
        times
    }

    /// Rotates the platter back to a missed sector, so that the sector is under the head when the
    /// arm arrives. For counterfactual runs.
    fn rotate_back_to_sector(
        &mut self,
        now: Time,
        sector: u64,
        write: bool,
        ready_since: Option<Time>,
    ) {
        let place = self.mechanics.geometry.locate_sector(sector);
        let arm = self.arm_move_to_track(place.cylinder, place.head, write);
        let arrived = now + arm.total_time();
        let passes_at = arrived + self.spindle.time_until(arrived, place.start_angle);
        if is_missed_revolution(ready_since, self.spindle.revolution_time(), passes_at, arm) {
            self.spindle = self.spindle.with_angle_at(arrived, place.start_angle);
        }
    }

    /// Returns the wait from `arrived` until the start of a slot of the current cylinder's tracks
    /// passes, after the given arm movement. The drive has been ready for the slot since
    /// `ready_since`.
    pub fn wait_for_slot(
        &mut self,
        arrived: Time,
        slot: u32,
        (arm, ready_since): (ArmMove, Option<Time>),
    ) -> Time {
        let wait = self.time_until_slot(arrived, slot);
        let missed = is_missed_revolution(
            ready_since,
            self.spindle.revolution_time(),
            arrived + wait,
            arm,
        );
        if self.counterfactual.no_rotational_latency
            || (self.counterfactual.meets_deadlines && missed)
        {
            let target = self.slot_angle(slot);
            self.spindle = self.spindle.with_angle_at(arrived, target);
            return Time::ZERO;
        }
        wait
    }

    fn bytes_of_sectors(&self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.mechanics.geometry.sector_bytes())
    }

    /// Computes the times of a transfer, and passes each leg of it to `visit`.
    #[inline]
    fn compute_transfer(
        &mut self,
        now: Time,
        sectors: (u64, u32),
        write: bool,
        visit: impl FnMut(TransferLeg<'_>),
    ) -> (TransferTimes, TransferRun) {
        let run = self.mechanics.geometry.run_from_sector(sectors.0);
        let to_track = self.arm_move_to_track(run.position.cylinder, run.position.head, write);
        let arrived = now + to_track.total_time();
        let latency = self.wait_for_angle(arrived, run.position.start_angle);
        let first = TransferRun {
            sectors_before: 0,
            run_start: arrived + latency,
            sector_run: run,
            spindle: self.spindle,
            transfer_times: TransferTimes {
                move_to_track: to_track,
                rotational_latency: latency,
                track_switch_moves: NO_MOVE,
                track_switch_rotational_latency: Time::ZERO,
                media_transfer_time: Time::ZERO,
            },
        };
        self.compute_transfer_from(first, sectors, write, visit)
    }

    /// Computes the times of a transfer from the start of one of its runs on. The transfer may
    /// cross ends of tracks and cylinders, interleaved sectors and slipped sectors.
    fn compute_transfer_from(
        &mut self,
        mut run: TransferRun,
        (sector, count): (u64, u32),
        write: bool,
        mut visit: impl FnMut(TransferLeg<'_>),
    ) -> (TransferTimes, TransferRun) {
        loop {
            let place = run.sector_run.position;
            (self.cylinder, self.head) = (place.cylinder, place.head);
            let sectors = run.sector_run.sector_count.min(count - run.sectors_before);
            let span = run.passing_time(sectors);
            visit(TransferLeg::SectorRun { run: &run, sectors });
            let mut times = run.transfer_times;
            times.media_transfer_time += span;
            let done = run.sectors_before + sectors;
            if done == count {
                return (times, run);
            }
            let at = run.run_start + span;
            let next = self
                .mechanics
                .geometry
                .run_from_sector(sector + u64::from(done));
            let arm = self.arm_move_to_track(next.position.cylinder, next.position.head, write);
            let same_track = next.position.is_on_same_track(&place);
            let wait = match same_track {
                true => self.spindle.time_until(at, next.position.start_angle),
                false => self.wait_for_angle(at + arm.total_time(), next.position.start_angle),
            };
            visit(TransferLeg::TrackSwitch {
                starts_at: at,
                arm,
                wait,
                same_track,
            });
            times.track_switch_moves.seek_time += arm.seek_time;
            times.track_switch_moves.settle_time += arm.settle_time;
            times.track_switch_moves.write_settle_time += arm.write_settle_time;
            times.track_switch_moves.head_switch_time += arm.head_switch_time;
            if same_track {
                times.media_transfer_time += wait;
            } else {
                times.track_switch_rotational_latency += wait;
            }
            run = TransferRun {
                sectors_before: done,
                run_start: at + arm.total_time() + wait,
                sector_run: next,
                transfer_times: times,
                spindle: self.spindle,
            };
        }
    }

    /// Returns the time from `now` until an angle passes. The platter is rotated there immediately
    /// if a counterfactual run has no rotational latency.
    fn wait_for_angle(&mut self, now: Time, angle: RotationAngle) -> Time {
        if self.counterfactual.no_rotational_latency {
            self.spindle = self.spindle.with_angle_at(now, angle);
            return Time::ZERO;
        }
        self.spindle.time_until(now, angle)
    }

    fn arm_move_to_track(&self, cylinder: u32, head: u32, write: bool) -> ArmMove {
        let distance = self.cylinder.abs_diff(cylinder);
        if distance > 0 && self.counterfactual.no_seek {
            NO_MOVE
        } else if distance > 0 {
            ArmMove {
                seek_time: self.mechanics.seek_curve.time_over(distance),
                settle_time: self.mechanics.settle_time,
                write_settle_time: if write {
                    self.mechanics.write_settle_time
                } else {
                    Time::ZERO
                },
                head_switch_time: Time::ZERO,
            }
        } else if head != self.head {
            ArmMove {
                head_switch_time: self.mechanics.head_switch_time,
                ..NO_MOVE
            }
        } else {
            NO_MOVE
        }
    }
}

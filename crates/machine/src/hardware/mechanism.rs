//! Disk mechanism that a controller commands, based on the layout, the seek curve and the spindle
//! that all disks share.
//!
//! A mechanism knows no files and no request queue. It computes how long it takes to reach and
//! transfer some sectors from a given time on, and then stays where the transfer ended.

mod geometry;
mod last;
mod passage;
mod streaming;

pub use geometry::{Format, Geometry, GeometryError, HeadGroups, Revectored, Zone};
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
    pub geometry: Geometry,
    /// Seek curve: seek time by distance in cylinders.
    pub seek: SeekCurve,
    /// Settle time after a seek, as far as the seek times do not include it.
    pub settle: Time,
    /// Additional settle time of a write compared with a read.
    pub write_settle: Time,
    /// Duration of a head switch within a cylinder.
    pub head_switch: Time,
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
    last: Option<CommandedTransfer>,
    /// Last run from which stages were reported, with the start time and the first sector of its
    /// transfer. A stream that grows for minutes need not be evaluated from its first sector again.
    reported_run: Option<(Time, u64, TransferRun)>,
    busy: BusyTimes,
    last_operation_time: Time,
    what_if: WhatIf,
}

/// Transfer of the mechanism, with the arm position when it was commanded.
#[derive(Clone, Copy, Debug)]
struct CommandedTransfer {
    commanded_at: Time,
    sector: u64,
    count: u32,
    write: bool,
    cylinder: u32,
    head: u32,
    ends_at: Time,
    /// Parts of the transfer. None for a full-track read, which starts at any sector.
    times: Option<(TransferTimes, TransferRun)>,
}

/// Last run of consecutive slots in a transfer.
#[derive(Clone, Copy, Debug)]
struct TransferRun {
    sectors_before: u32,
    starts_at: Time,
    run: SectorRun,
    times: TransferTimes,
    /// Spindle at the start of the run. A counterfactual may have changed the rotation since.
    spindle: Spindle,
}

impl TransferRun {
    /// Returns the time in which the first `sectors` sectors of the run pass.
    #[inline]
    fn passing_time(&self, sectors: u32) -> Time {
        let place = &self.run.position;
        let arcs = place.sector_angle * u64::from(sectors);
        self.spindle
            .passing_times(self.starts_at, place.start_angle, arcs)
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
        (Some(ready_since), Some(passed)) => arm.seek == Time::ZERO && passed + 2 >= ready_since.0,
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
            last: None,
            reported_run: None,
            busy: BusyTimes::default(),
            last_operation_time: Time::ZERO,
            what_if: WhatIf::default(),
        }
    }

    /// Returns an idle copy of the mechanism at cylinder 0, head 0.
    pub(crate) fn idle_copy(&self) -> Self {
        Self::from_shared_mechanics(Arc::clone(&self.mechanics), self.spindle)
            .supposing(self.what_if)
    }

    /// Returns the mechanism with some of its costs removed, for counterfactual runs.
    pub fn supposing(self, what_if: WhatIf) -> Self {
        Self { what_if, ..self }
    }

    /// Layout of the sectors on the tracks.
    pub fn geometry(&self) -> &Geometry {
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
    pub fn last_transfer(&self) -> Option<Time> {
        self.last.map(|last| last.ends_at)
    }

    /// Busy times of the mechanism so far: positioning, rotational latency and transfer.
    pub fn busy(&self) -> BusyTimes {
        self.busy
    }

    /// Duration of the operation that was commanded last. All of it is booked when the operation
    /// starts.
    pub fn last_operation_time(&self) -> Time {
        self.last_operation_time
    }

    /// Returns the number of the sector slot under the heads.
    pub fn slot_under_head(&self, now: Time) -> u32 {
        let arc = self.mechanics.geometry.arc(self.cylinder);
        let slot = self.spindle.angle_at(now).0 / arc;
        // The last one still in the gap behind it.
        (slot as u32).min(self.mechanics.geometry.slots(self.cylinder) - 1)
    }

    /// Returns the time in which the given number of slots of a cylinder's tracks pass, without
    /// track switches.
    pub fn slots_time(&self, cylinder: u32, slots: u32) -> Time {
        let arcs = u128::from(self.mechanics.geometry.arc(cylinder)) * u128::from(slots);
        let revolutions = (arcs >> 64) as u64;
        Time(self.spindle.revolution_time().0 * revolutions)
            + self.spindle.turning_time(arcs as u64)
    }

    fn angle_of_slot(&self, slot: u32) -> RotationAngle {
        RotationAngle(self.mechanics.geometry.arc(self.cylinder)).times(u64::from(slot))
    }

    /// Moves the arm to a cylinder. Returns the times of the movement.
    pub fn seek(&mut self, cylinder: u32, write: bool) -> ArmMove {
        let arm = self.arm_move_to(cylinder, self.head, write);
        self.cylinder = cylinder;
        self.busy.positioning_time += arm.total();
        self.last_operation_time = arm.total();
        arm
    }

    /// Returns the time from `now` until the start of a slot of the current cylinder's tracks
    /// passes.
    pub fn until_slot(&self, now: Time, slot: u32) -> Time {
        self.spindle.time_until(now, self.angle_of_slot(slot))
    }

    /// Reads or writes `count` sectors from `sector` on, starting now. Returns the times of the
    /// seek, the waits and the transfer. Afterwards, the mechanism is at the last sector.
    #[inline]
    pub fn transfer(&mut self, now: Time, sector: u64, count: u32, write: bool) -> TransferTimes {
        self.transfer_ready_since(now, (sector, count), write, self.last_transfer())
    }

    /// Performs a transfer like [`Mechanism::transfer`]. The controller has been ready for the
    /// first sector since `ready_since`, so that the sector was missed if it passed after that.
    #[inline]
    pub fn transfer_ready_since(
        &mut self,
        now: Time,
        (sector, count): (u64, u32),
        write: bool,
        ready_since: Option<Time>,
    ) -> TransferTimes {
        let (cylinder, head) = (self.cylinder, self.head);
        if self.what_if.meets_deadlines {
            self.rotate_back_to(now, sector, write, ready_since);
        }
        let (times, run) = self.compute_transfer(now, (sector, count), write, |_| ());
        times.book(&mut self.busy);
        self.busy.transferred_bytes += self.bytes(count);
        self.busy.transfer_count += 1;
        self.last_operation_time = times.total();
        self.last = Some(CommandedTransfer {
            commanded_at: now,
            sector,
            count,
            write,
            cylinder,
            head,
            ends_at: now + times.total(),
            times: Some((times, run)),
        });
        times
    }

    /// Rotates the platter back to a missed sector, so that the sector is under the head when the
    /// arm arrives. For counterfactual runs.
    fn rotate_back_to(&mut self, now: Time, sector: u64, write: bool, ready_since: Option<Time>) {
        let place = self.mechanics.geometry.locate(sector);
        let arm = self.arm_move_to(place.cylinder, place.head, write);
        let arrived = now + arm.total();
        let passes_at = arrived + self.spindle.time_until(arrived, place.start_angle);
        if is_missed_revolution(ready_since, self.spindle.revolution_time(), passes_at, arm) {
            self.spindle = self.spindle.with_angle_at(arrived, place.start_angle);
        }
    }

    /// Returns the wait from `arrived` until the start of a slot of the current cylinder's tracks
    /// passes, after the given arm movement. The drive has been ready for the slot since
    /// `ready_since`.
    pub fn await_slot(
        &mut self,
        arrived: Time,
        slot: u32,
        (arm, ready_since): (ArmMove, Option<Time>),
    ) -> Time {
        let wait = self.until_slot(arrived, slot);
        let missed = is_missed_revolution(
            ready_since,
            self.spindle.revolution_time(),
            arrived + wait,
            arm,
        );
        if self.what_if.no_rotational_latency || (self.what_if.meets_deadlines && missed) {
            let target = self.angle_of_slot(slot);
            self.spindle = self.spindle.with_angle_at(arrived, target);
            return Time::ZERO;
        }
        wait
    }

    fn bytes(&self, count: u32) -> u64 {
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
        let run = self.mechanics.geometry.run(sectors.0);
        let to_track = self.arm_move_to(run.position.cylinder, run.position.head, write);
        let arrived = now + to_track.total();
        let latency = self.wait_for_angle(arrived, run.position.start_angle);
        let first = TransferRun {
            sectors_before: 0,
            starts_at: arrived + latency,
            run,
            spindle: self.spindle,
            times: TransferTimes {
                to_track,
                latency,
                track_switches: NO_MOVE,
                track_switch_latency: Time::ZERO,
                transfer: Time::ZERO,
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
            let place = run.run.position;
            (self.cylinder, self.head) = (place.cylinder, place.head);
            let sectors = run.run.sector_count.min(count - run.sectors_before);
            let span = run.passing_time(sectors);
            visit(TransferLeg::Run { run: &run, sectors });
            let mut times = run.times;
            times.transfer += span;
            let done = run.sectors_before + sectors;
            if done == count {
                return (times, run);
            }
            let at = run.starts_at + span;
            let next = self.mechanics.geometry.run(sector + u64::from(done));
            let arm = self.arm_move_to(next.position.cylinder, next.position.head, write);
            let same_track = next.position.is_on_same_track(&place);
            let wait = match same_track {
                true => self.spindle.time_until(at, next.position.start_angle),
                false => self.wait_for_angle(at + arm.total(), next.position.start_angle),
            };
            visit(TransferLeg::Between {
                starts_at: at,
                arm,
                wait,
                same_track,
            });
            times.track_switches.seek += arm.seek;
            times.track_switches.settle += arm.settle;
            times.track_switches.write_settle += arm.write_settle;
            times.track_switches.head_switch += arm.head_switch;
            if same_track {
                times.transfer += wait;
            } else {
                times.track_switch_latency += wait;
            }
            run = TransferRun {
                sectors_before: done,
                starts_at: at + arm.total() + wait,
                run: next,
                times,
                spindle: self.spindle,
            };
        }
    }

    /// Returns the time from `now` until an angle passes. The platter is rotated there immediately
    /// if a counterfactual run has no rotational latency.
    fn wait_for_angle(&mut self, now: Time, angle: RotationAngle) -> Time {
        if self.what_if.no_rotational_latency {
            self.spindle = self.spindle.with_angle_at(now, angle);
            return Time::ZERO;
        }
        self.spindle.time_until(now, angle)
    }

    fn arm_move_to(&self, cylinder: u32, head: u32, write: bool) -> ArmMove {
        let distance = self.cylinder.abs_diff(cylinder);
        if distance > 0 && self.what_if.no_seek {
            NO_MOVE
        } else if distance > 0 {
            ArmMove {
                seek: self.mechanics.seek.time_over(distance),
                settle: self.mechanics.settle,
                write_settle: if write {
                    self.mechanics.write_settle
                } else {
                    Time::ZERO
                },
                head_switch: Time::ZERO,
            }
        } else if head != self.head {
            ArmMove {
                head_switch: self.mechanics.head_switch,
                ..NO_MOVE
            }
        } else {
            NO_MOVE
        }
    }
}

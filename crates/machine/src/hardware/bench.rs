//! Test bench for controllers without a kernel: a script commands the controller and receives its
//! interrupts.

pub(crate) use super::bare::BareController as Bench;
pub(crate) use super::bus::Bus;
use super::drives::MechanismIds;
pub(crate) use super::mechanism::Mechanism;
use super::mechanism::{DiskFormat, DiskGeometry, Mechanics, TrackZone};
use crate::controllers::ControllerKind;
use crate::id::ComponentId;
use diskperf_device::disk::seek::{SeekCurve, SeekSpecification};
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_device::{Operation, Request, Requests};
pub(crate) use diskperf_device::{RequestId, moment};
use diskperf_sim::{CpuId, RandomStream};
pub(crate) use diskperf_sim::{RandomStreams, Time};
pub(crate) use diskperf_timeline::Stage;
pub(crate) use std::cell::RefCell;
pub(crate) use std::rc::Rc;

pub(crate) const SLOTS_PER_TRACK: u32 = 48;
pub(crate) const CYLINDER_COUNT: u32 = 100;
pub(crate) const HEAD_COUNT: u32 = 2;
pub(crate) const CYLINDER_SECTORS: u64 = SLOTS_PER_TRACK as u64 * HEAD_COUNT as u64;
const RPM: f64 = 3961.0;

/// Returns a drive with the geometry of an Eagle, but fewer cylinders. `phase` is its rotational
/// offset at time zero.
pub(crate) fn bench_drive(phase: u32) -> Mechanism {
    let format = DiskFormat {
        cylinders: CYLINDER_COUNT,
        heads: HEAD_COUNT,
        sector_bytes: 512,
        zones: vec![TrackZone {
            first_cylinder: 0,
            sectors_per_track: SLOTS_PER_TRACK,
        }],
        interleave_step: 1,
        ..DiskFormat::default()
    };
    let seek = SeekSpecification::DataSheet {
        single_cylinder_ms: 5.0,
        average_ms: 9.0,
        full_stroke_ms: 15.0,
    };
    let mechanics = Mechanics {
        geometry: DiskGeometry::new(&format).expect("a geometry"),
        seek_curve: SeekCurve::new(&seek, CYLINDER_COUNT).expect("a curve"),
        settle_time: Time::ZERO,
        write_settle_time: Time::ZERO,
        head_switch_time: Time::ZERO,
    };
    let phase = RotationAngle(u64::from(phase) << 32);
    Mechanism::new(mechanics, Spindle::from_rpm(RPM, phase))
}

pub(crate) fn random_stream(name: &str) -> RandomStream {
    RandomStreams::new(1).named_stream(name)
}

pub(crate) fn revolution_time() -> Time {
    bench_drive(0).spindle().revolution_time()
}

/// Returns the time in which the given number of slots of a track pass.
pub(crate) fn slots_time(count: u32) -> Time {
    bench_drive(0).time_of_slots(0, count)
}

/// Asserts that two times are equal, up to the given number of roundings to a whole nanosecond.
#[track_caller]
pub(crate) fn assert_near(one: Time, other: Time, roundings: u64) {
    let apart = one.0.abs_diff(other.0);
    assert!(apart <= roundings, "{one} and {other} differ by {apart} ns");
}

impl<C: ControllerKind + 'static> Bench<C> {
    pub(crate) fn with_controller(
        drives: Vec<Mechanism>,
        controller: impl FnOnce((ComponentId<C>, usize), MechanismIds) -> C,
        bus: Bus,
    ) -> Rc<Self> {
        let mut requests = Requests::default();
        for _ in 0..600 {
            requests.issue(Request::default());
        }
        Rc::new(Self::new(drives, controller, bus, requests))
    }

    /// Keeps the processor busy with a process for the given duration from now on.
    pub(crate) fn run_busy_process(self: &Rc<Self>, span: Time) {
        let bench = Rc::clone(self);
        self.sim.spawn("program", true, async move {
            let processor = &bench.processors[CpuId::default()];
            processor.give_processor_to(bench.sim.expect_current_task());
            processor.spend_work(&bench.sim, span).await;
            processor.release_processor(&bench.sim);
        });
    }

    /// Keeps the processor busy in an interrupt handler, without a process, for the given duration
    /// from now on.
    pub(crate) fn run_busy_handler(self: &Rc<Self>, span: Time) {
        self.processors[CpuId::default()].run_interrupts(&self.sim, &[(1, span)]);
    }

    pub(crate) fn now(&self) -> Time {
        self.sim.now()
    }

    /// Submits a request now, given its drive, first sector, number of sectors, and whether it
    /// writes.
    pub(crate) fn issue_request(
        &self,
        id: u32,
        (drive, sector, sectors, write): (usize, u64, u32, bool),
    ) -> RequestId {
        let id = RequestId::first_of_slot(id);
        let mut request = Request {
            operation: Operation::from_direction(write),
            device: drive,
            sector,
            sectors,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.sim.now()));
        self.hardware.borrow_mut().submitted_requests[id] = request;
        id
    }

    /// Marks the time of a request up to now as spent in the driver.
    pub(crate) fn mark_request(&self, id: RequestId) {
        let now = moment(self.sim.now());
        let mut hardware = self.hardware.borrow_mut();
        hardware.submitted_requests[id].book_stage(Stage::DriverQueue, now);
    }

    /// Returns the stages of a request and their durations. They cover exactly its time up to now.
    #[track_caller]
    pub(crate) fn list_stage_times(&self, id: RequestId) -> Vec<(Stage, Time)> {
        let hardware = self.hardware.borrow();
        let request = &hardware.submitted_requests[id].spans;
        let mut at = request.issued_at().0;
        let mut spans = Vec::new();
        for span in request.spans() {
            assert!(span.stage_end.0 > at, "an empty span, or one that overlaps");
            spans.push((span.stage, Time(span.stage_end.0 - at)));
            at = span.stage_end.0;
        }
        assert_eq!(
            at,
            self.sim.now().0,
            "a request is accounted for up to its end"
        );
        spans
    }

    #[track_caller]
    pub(crate) fn stage_time(&self, id: RequestId, stage: Stage) -> Time {
        let spans = self.list_stage_times(id);
        spans
            .iter()
            .filter(|(of, _)| *of == stage)
            .map(|(_, span)| *span)
            .sum()
    }

    pub(crate) fn time_until_slot(&self, drive: usize, slot: u32) -> Time {
        let hardware = self.hardware.borrow();
        hardware.drives.mechanisms()[drive].time_until_slot(self.sim.now(), slot)
    }

    pub(crate) fn next_slot_under_head(&self, drive: usize) -> u32 {
        let hardware = self.hardware.borrow();
        hardware.drives.mechanisms()[drive].slot_under_head(self.sim.now() + Time(1))
    }
}

//! Test bench for controllers without a kernel: a script commands the controller and receives its
//! interrupts.

pub(crate) use super::bare::BareController as Bench;
pub(crate) use super::bus::Bus;
use super::drives::Mechanisms;
pub(crate) use super::mechanism::Mechanism;
use super::mechanism::{Format, Geometry, Mechanics, Zone};
use crate::controllers::ControllerKind;
use crate::id::Id;
use diskperf_device::disk::seek::{SeekCurve, SeekSpecification};
use diskperf_device::disk::spindle::{RotationAngle, Spindle};
use diskperf_device::{Operation, Request, Requests};
pub(crate) use diskperf_device::{RequestId, moment};
use diskperf_sim::{CpuId, Stream};
pub(crate) use diskperf_sim::{Streams, Time};
pub(crate) use diskperf_timeline::Stage;
pub(crate) use std::cell::RefCell;
pub(crate) use std::rc::Rc;

pub(crate) const SLOTS: u32 = 48;
pub(crate) const CYLINDERS: u32 = 100;
pub(crate) const HEADS: u32 = 2;
pub(crate) const CYLINDER_SECTORS: u64 = SLOTS as u64 * HEADS as u64;
const RPM: f64 = 3961.0;

/// Returns a drive with the geometry of an Eagle, but fewer cylinders. `phase` is its rotational
/// offset at time zero.
pub(crate) fn drive(phase: u32) -> Mechanism {
    let format = Format {
        cylinders: CYLINDERS,
        heads: HEADS,
        sector_bytes: 512,
        zones: vec![Zone {
            first_cylinder: 0,
            sectors_per_track: SLOTS,
        }],
        interleave: 1,
        ..Format::default()
    };
    let seek = SeekSpecification::DataSheet {
        single_cylinder_ms: 5.0,
        average_ms: 9.0,
        full_stroke_ms: 15.0,
    };
    let mechanics = Mechanics {
        geometry: Geometry::new(&format).expect("a geometry"),
        seek: SeekCurve::new(&seek, CYLINDERS).expect("a curve"),
        settle: Time::ZERO,
        write_settle: Time::ZERO,
        head_switch: Time::ZERO,
    };
    let phase = RotationAngle(u64::from(phase) << 32);
    Mechanism::new(mechanics, Spindle::from_rpm(RPM, phase))
}

pub(crate) fn stream(name: &str) -> Stream {
    Streams::new(1).stream(name)
}

pub(crate) fn period() -> Time {
    drive(0).spindle().revolution_time()
}

/// Returns the time in which the given number of slots of a track pass.
pub(crate) fn slots(count: u32) -> Time {
    drive(0).slots_time(0, count)
}

/// Asserts that two times are equal, up to the given number of roundings to a whole nanosecond.
#[track_caller]
pub(crate) fn assert_near(one: Time, other: Time, roundings: u64) {
    let apart = one.0.abs_diff(other.0);
    assert!(apart <= roundings, "{one} and {other} differ by {apart} ns");
}

impl<C: ControllerKind + 'static> Bench<C> {
    /// Returns a test bench with a single controller and the given drives.
    pub(crate) fn with_controller(
        drives: Vec<Mechanism>,
        controller: impl FnOnce((Id<C>, usize), Mechanisms) -> C,
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
            processor.give(bench.sim.current());
            processor.work(&bench.sim, span).await;
            processor.give_up(&bench.sim);
        });
    }

    /// Keeps the processor busy in an interrupt handler, without a process, for the given duration
    /// from now on.
    pub(crate) fn run_busy_handler(self: &Rc<Self>, span: Time) {
        self.processors[CpuId::default()].interrupt(&self.sim, &[(1, span)]);
    }

    pub(crate) fn now(&self) -> Time {
        self.sim.now()
    }

    /// Submits a request now, given its drive, first sector, number of sectors, and whether it
    /// writes.
    pub(crate) fn issue(
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
        request.spans.issue(moment(self.sim.now()));
        self.hardware.borrow_mut().requests[id] = request;
        id
    }

    /// Marks the time of a request up to now as spent in the driver.
    pub(crate) fn mark(&self, id: RequestId) {
        let now = moment(self.sim.now());
        let mut hardware = self.hardware.borrow_mut();
        hardware.requests[id].book_stage(Stage::DriverQueue, now);
    }

    /// Returns the stages of a request and their durations. They cover exactly its time up to now.
    #[track_caller]
    pub(crate) fn spans(&self, id: RequestId) -> Vec<(Stage, Time)> {
        let hardware = self.hardware.borrow();
        let request = &hardware.requests[id].spans;
        let mut at = request.issued().0;
        let mut spans = Vec::new();
        for span in request.spans() {
            assert!(span.until.0 > at, "an empty span, or one that overlaps");
            spans.push((span.stage, Time(span.until.0 - at)));
            at = span.until.0;
        }
        assert_eq!(
            at,
            self.sim.now().0,
            "a request is accounted for up to its end"
        );
        spans
    }

    /// Returns the time that a request has spent in a stage.
    #[track_caller]
    pub(crate) fn span(&self, id: RequestId, stage: Stage) -> Time {
        let spans = self.spans(id);
        spans
            .iter()
            .filter(|(of, _)| *of == stage)
            .map(|(_, span)| *span)
            .sum()
    }

    pub(crate) fn until_slot(&self, drive: usize, slot: u32) -> Time {
        let hardware = self.hardware.borrow();
        hardware.drives.mechanisms()[drive].until_slot(self.sim.now(), slot)
    }

    /// Returns the slot that is under the heads of a drive shortly after now.
    pub(crate) fn next_slot(&self, drive: usize) -> u32 {
        let hardware = self.hardware.borrow();
        hardware.drives.mechanisms()[drive].slot_under_head(self.sim.now() + Time(1))
    }
}

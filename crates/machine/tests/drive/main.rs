//! The drive against its data sheet, against exact arithmetic, and against
//! queueing theory.

mod geometry;
mod passage;
#[path = "../support/queueing.rs"]
mod queueing;
mod queues;
mod rotation;
mod seek;

use diskperf_machine::hardware::mechanism::{
    Angle, Geometry, Mechanics, Mechanism, Rotation, SeekCurve,
};
use diskperf_sim::Time;

/// The Eagle's data sheet, as shape and seek times; tests that hang on
/// nothing of it vary it.
fn eagle() -> Mechanics {
    mechanics(Geometry::new((842, 20, 48), (0, 1), 512).expect("a geometry"))
}

/// A drive of this shape whose other times are zero.
fn mechanics(geometry: Geometry) -> Mechanics {
    let times = [5, 18, 35].map(Time::from_millis);
    let seek = SeekCurve::fit(geometry.cylinders(), (times[0], times[1], times[2]));
    let flat = SeekCurve::fit(geometry.cylinders(), (times[0], times[0], times[0]));
    Mechanics {
        geometry,
        seek: seek.or(flat).expect("a flat curve always fits"),
        settle: Time::ZERO,
        write_settle: Time::ZERO,
        head_switch: Time::ZERO,
    }
}

const EAGLE_SPEED: u64 = 396_100;
const SPEED_3600: u64 = 360_000;

fn drive(mechanics: Mechanics, hundredths_of_rpm: u64) -> Mechanism {
    Mechanism::new(mechanics, Rotation::new(hundredths_of_rpm, Angle::ZERO))
}

/// Asserts that two times are the same but for this many roundings to a
/// whole nanosecond.
#[track_caller]
fn assert_near(one: Time, other: Time, roundings: u64) {
    assert!(
        one.0.abs_diff(other.0) <= roundings,
        "{} ns and {} ns differ by more than {roundings} ns",
        one.0,
        other.0
    );
}
